"""The task of the chapter, as symbols and as pictures of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.resnet import pictures, theory
from grokbook.checks import one_of
from grokbook.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 200
DRAWS = 1000  # of combinations, until their orders are as many as asked for


@dataclass(frozen=True)
class ShapeSum:
    """Name the sum of four symbols, one in each cell of a picture: Gu et al. (2025), section 6.3.

    A sample is the places of its symbols in the dictionary. ``ValueError`` for a symbol outside it or twice, and an
    empty or a full training set, or one that no combinations make up.
    """

    symbols: tuple[int, ...] = pictures.DICTIONARY  #: 0 (blank) and 3 to 12 (sides), each worth its number
    train_size: int = 3660  #: how many of the n**4 pictures are trained on
    #: What is drawn to train on: pictures, or "combinations" of symbols, each in all its orders, others in none.
    split: Literal["combinations"] | None = field(default=None, metadata={"recipe": "where set"})
    version: ClassVar[int] = 1
    split_fields: ClassVar[tuple[str, ...]] = ("train_size", "split")

    def __post_init__(self) -> None:
        pictures.check(self.symbols)
        theory.check(len(self.symbols), self.train_size)
        one_of("split", self.split or "combinations", ("combinations",))

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
        rows, generator = len(self.symbols) ** 4, np.random.default_rng([seed, 0])
        if self.split:
            return self._combined(generator)
        mask = np.zeros(rows, bool)
        mask[generator.permutation(rows)[: self.train_size]] = True
        return mask

    def _combined(self, generator: np.random.Generator) -> NDArray[np.bool_]:
        """All orders of some combinations: each in turn that still fits, drawn anew if they do not fill the set."""
        orbit = theory.orbit_of(len(self.symbols), theory.group_of("all permutations"))
        combinations, orders = np.unique(orbit, return_counts=True)
        for _ in range(DRAWS):
            left, chosen = self.train_size, []
            for one in generator.permutation(len(orders)):
                if orders[one] <= left:
                    chosen.append(combinations[one])
                    left -= orders[one]
            if not left:
                return np.isin(orbit, chosen)
        raise ValueError(f"train_size = {self.train_size}: so many are not the orders of any combinations")


def dictionary(n: int) -> tuple[int, ...]:
    """The first n symbols: blank, triangle, square and so on."""
    return pictures.DICTIONARY[:n]


def steps_per_epoch(train_size: int) -> int:
    """Updates of one pass over the training set, the last batch being short."""
    return -(-train_size // BATCH)


@dataclass(frozen=True)
class PictureSum(ShapeSum):
    """The same, seen as pictures: they are composed from patches for the samples at hand.

    ``ValueError`` for what ``ShapeSum`` and ``pictures.patches`` refuse.
    """

    size: int = 224  #: height and width of a picture in pixels
    channels: int = 3  #: 1 (grey) or 3
    drawing: pictures.Drawing = "as_released"  #: or ``"intended"``; see ``pictures``

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
