"""What is measured of a network's answers: how a sum is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.resnet import theory
from grokbook.chapters.resnet.tasks import ShapeSum
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
    n = len(task.symbols)
    places, labels = task.table()
    orbit = theory.orbit_of(n, theory.group_of("all permutations"))
    error, test = given - labels, ~in_train
    seen = np.stack([np.isin(orbit, orbit[row]) for row in in_train])
    found = {
        "within_one": _mean(np.abs(error) <= 1, test),
        "signed_error": _mean(error, test),
        "accuracy_seen": _mean(error == 0, test & seen),
        "accuracy_unseen": _mean(error == 0, test & ~seen),
    }
    for name, (one, other) in (("swap_alike", (2, 3)), ("swap_odd", (0, 1))):
        found[name] = _mean(given[:, exchanged(task, one, other)] == given, test & (places[:, one] != places[:, other]))
    return found


def exchanged(task: ShapeSum, one: int, other: int) -> NDArray[np.int64]:
    """(n**4,) the number of the picture that each becomes when the symbols of two cells change places."""
    places = task.table()[0].copy()
    places[:, [one, other]] = places[:, [other, one]]
    return places @ len(task.symbols) ** np.arange(4)[::-1]


def agreement(one: NDArray, two: NDArray) -> tuple[float, float]:
    """How often two errors, (picture,) each, are the same, and would be if they were drawn independently."""
    values = np.union1d(one, two)
    shares = [(errors[:, None] == values).mean(0) for errors in (one, two)]
    return float((one == two).mean()), float(shares[0] @ shares[1])


def _mean(values: NDArray, where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(M,) the mean of each row of values over some of its entries; nan over none."""
    counts = where.sum(-1)
    return np.divide((values * where).sum(-1), counts, out=np.full(len(where), np.nan), where=counts > 0)


register(answers=answers, sums=sums)
