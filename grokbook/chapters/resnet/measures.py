"""What is measured of a network's answers: how a sum is wrong, and what misleads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.resnet import theory
from grokbook.chapters.resnet.tasks import ShapeSum
from grokbook.measures.common import ratio
from grokbook.train.monitor import Measured, register


def answers(now: Measured) -> dict[str, NDArray[Any]]:
    """The answer to every picture, (M, n**4)."""
    return {"answers": now.answers()}


def sums(now: Measured) -> dict[str, NDArray[np.float64]]:
    """How a network is wrong on the test pictures; see ``errors``."""
    return errors(now.tasks[0], now.answers(), now.in_train)


def errors(task: ShapeSum, given: NDArray, in_train: NDArray) -> dict[str, NDArray[np.float64]]:
    """What the answers to test pictures have in common.

    Args:
        task: whose pictures.
        given: (M, n**4) answers to all of them.
        in_train: (M, n**4) which were trained on.

    Returns:
        (M,) each: ``within_one``, the share at most one off; ``signed_error``, the mean of answer less sum;
        ``accuracy_seen`` and ``accuracy_unseen``, of pictures of which the training set holds, or does not hold, a
        permutation (nan over none); ``swap_alike`` and ``swap_odd``, the share of pictures whose answer stays when the
        bottom two symbols, or the top two, change places. Only pictures count whose two symbols differ. In the
        released drawing the bottom cells are drawn alike, the top ones are not.
    """
    places, labels = task.table()
    error, test, seen = given - labels, ~in_train, known(task, in_train)
    found = {
        "within_one": _mean(np.abs(error) <= 1, test),
        "signed_error": _mean(error, test),
        "accuracy_seen": _mean(error == 0, test & seen),
        "accuracy_unseen": _mean(error == 0, test & ~seen),
    }
    for name, (one, other) in (("swap_alike", (2, 3)), ("swap_odd", (0, 1))):
        found[name] = _mean(given[:, exchanged(task, one, other)] == given, test & (places[:, one] != places[:, other]))
    return found


def known(task: ShapeSum, in_train: NDArray) -> NDArray[np.bool_]:
    """(M, n**4) of which pictures a permutation is trained on, like ``in_train``."""
    orbit = theory.orbit_of(len(task.symbols), theory.group_of("all permutations"))
    return np.stack([np.isin(orbit, orbit[row]) for row in in_train])


def exchanged(task: ShapeSum, one: int, other: int) -> NDArray[np.int64]:
    """(n**4,) the number of the picture that each becomes when the symbols of two cells change places."""
    places = task.table()[0].copy()
    places[:, [one, other]] = places[:, [other, one]]
    return places @ len(task.symbols) ** np.arange(4)[::-1]


def one_away(task: ShapeSum) -> NDArray[np.int64]:
    """(n**4, 4 (n - 1)) the numbers of the pictures that differ from each in one cell: none of them has its sum."""
    n, places = len(task.symbols), task.table()[0][..., None]
    steps = (places + np.arange(1, n)) % n - places  # (n**4, 4, n - 1)
    return np.arange(n**4)[:, None] + (steps * n ** np.arange(4)[::-1, None]).reshape(n**4, -1)


def misled(task: ShapeSum, given: NDArray, test: NDArray, trained: NDArray, most: int = 4) -> NDArray[np.float64]:
    """What ``trained`` pictures one cell away do to the answers to ``test`` pictures, all (n**4,).

    Returns:
        (most + 2,): the share of wrong answers that are the sum of such a picture, and the share of right answers where
        0, 1 .. of these have a sum one larger or smaller, the last where ``most`` or more have; nan over none.
    """
    near, labels = one_away(task), task.table()[1]
    sums = np.where(trained[near], labels[near], -9)  # no sum, and none beside it
    close = (np.abs(sums - labels[:, None]) == 1).sum(1).clip(max=most)
    borrowed = _mean((sums == given[:, None]).any(1), (test & (given != labels))[None])
    return np.append(borrowed, _mean(given == labels, test & (close == np.arange(most + 1)[:, None])))


def agreement(one: NDArray, two: NDArray) -> tuple[float, float]:
    """How often two errors, (picture,) each, are the same, and would be if they were drawn independently."""
    values = np.union1d(one, two)
    shares = [(errors[:, None] == values).mean(0) for errors in (one, two)]
    return float((one == two).mean()), float(shares[0] @ shares[1])


def _mean(values: NDArray, where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(M,) the mean of each row of values over some of its entries; nan over none."""
    return ratio((values * where).sum(-1), where.sum(-1))


register(answers=answers, sums=sums)
