"""The task of the chapter, as symbols and as pictures of them, and what is measured of a network's answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.resnet import pictures, theory
from grokbook.lazy import torch
from grokbook.train.monitor import MEASURES, Measured

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 200


@dataclass(frozen=True)
class ShapeSum:
    """Name the sum of four symbols, one in each cell of a picture: Gu et al. (2025), section 6.3.

    A sample is the places of its symbols in the dictionary.

    Args:
        symbols: the dictionary: 0 (blank) and 3 to 12 (sides), each worth its number.
        train_size: how many of the n**4 pictures are trained on.

    Raises:
        ValueError: a symbol outside the dictionary or twice, an empty or a full training set.
    """

    symbols: tuple[int, ...] = pictures.DICTIONARY
    train_size: int = 3660
    version: ClassVar[int] = 1
    split_fields: ClassVar[tuple[str, ...]] = ("train_size",)

    def __post_init__(self) -> None:
        pictures.check(self.symbols)
        theory.check(len(self.symbols), self.train_size)

    @property
    def classes(self) -> int:
        """Labels, from 0 to the largest sum; some of the small ones do not occur."""
        return 4 * max(self.symbols) + 1

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pictures as places in the dictionary, (n**4, 4), and their sums, (n**4,)."""
        places = theory.pictures_of(len(self.symbols))
        return places, np.array(self.symbols)[places].sum(-1)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which pictures a seed trains on, (n**4,)."""
        rows = len(self.symbols) ** 4
        mask = np.zeros(rows, bool)
        mask[np.random.default_rng([seed, 0]).permutation(rows)[: self.train_size]] = True
        return mask


def dictionary(n: int) -> tuple[int, ...]:
    """The first n symbols: blank, triangle, square and so on."""
    return pictures.DICTIONARY[:n]


def steps_per_epoch(train_size: int) -> int:
    """Updates of one pass over the training set, the last batch being short."""
    return -(-train_size // BATCH)


@dataclass(frozen=True)
class PictureSum(ShapeSum):
    """The same, seen as pictures: they are composed from patches for the samples at hand.

    Args:
        size: height and width of a picture in pixels.
        channels: 1 (grey) or 3.
        drawing: ``"as_released"`` or ``"intended"``; see ``pictures``.

    Raises:
        ValueError: what ``ShapeSum`` and ``pictures.patches`` refuse.
    """

    size: int = 224
    channels: int = 3
    drawing: pictures.Drawing = "as_released"

    def __post_init__(self) -> None:
        super().__post_init__()
        pictures.patches(self.symbols, self.size, self.drawing)

    def compose(self, rows: Tensor) -> Tensor:
        """Pictures (M, B, channels, size, size) of places ``rows`` (M, B, 4), as a network is given them."""
        return pictures.compose(_cells(self.symbols, self.size, self.drawing, self.channels, rows.device), rows)


@lru_cache(maxsize=8)
def _cells(symbols: tuple[int, ...], size: int, drawing: pictures.Drawing, channels: int, device: Any) -> Tensor:
    """Patches on their device, in memory that stays: a captured step reads it."""
    return torch.from_numpy(pictures.network_patches(symbols, size, drawing, channels)).to(device)


# ------------------------------------------------------------------------------------------------ what is measured


def answers(now: Measured) -> dict[str, NDArray[Any]]:
    """The answer to every picture, (M, n**4)."""
    return {"answers": now.answers()}


def sums(now: Measured) -> dict[str, NDArray[np.float64]]:
    """How a network is wrong on the test pictures; see ``errors``."""
    return errors(now.task, now.answers(), now.in_train)


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
        swapped = places.copy()
        swapped[:, [one, other]] = places[:, [other, one]]
        there = swapped @ n ** np.arange(4)[::-1]
        found[name] = _mean(given[:, there] == given, test & (places[:, one] != places[:, other]))
    return found


def _mean(values: NDArray, where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(M,) the mean of each row of values over some of its entries; nan over none."""
    counts = where.sum(-1)
    return np.divide((values * where).sum(-1), counts, out=np.full(len(where), np.nan), where=counts > 0)


MEASURES.update(answers=answers, sums=sums)
