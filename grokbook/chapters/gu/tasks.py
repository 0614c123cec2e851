"""The tables of the chapter: modular functions with pairs that are never trained, and the released scripts' split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grokbook import checks
from grokbook.chapters.gu.theory import draw_circled_mask, draw_training_mask, hole, training_size, units
from grokbook.tasks import ModularTask


@dataclass(frozen=True)
class HoledTask(ModularTask):
    """A modular function f(n, m), trained on a random set of pairs outside a hole.

    Args:
        hole: "square" and "strip" keep the pairs of ``theory.hole`` out of training, "none" keeps out nothing.
        size: the paper's k or t, from 0 to p - 2.
        split: which pairs are trained; see ``theory.draw_training_mask``.
        split_seed: draws the training set for every run; None leaves that to the run's own seed.

    Raises:
        ValueError: what ``ModularTask`` refuses, an unknown hole or split, or a hole larger than the grid.
    """

    hole: str = "none"
    size: int = 0
    split: str = "code"
    split_seed: int | None = None
    split_fields: ClassVar[tuple[str, ...]] = ("train_fraction", "hole", "size", "split", "split_seed")

    @property
    def train_size(self) -> int:
        """Number of pairs trained on: the fraction of all, or of what the hole leaves, rounded down."""
        return training_size(self.p, self.train_fraction, int(self.never_trained().sum()), split=self.split)

    def never_trained(self) -> NDArray[np.bool_]:
        """The hole, (p, p)."""
        return np.zeros((self.p, self.p), bool) if self.hole == "none" else hole(self.hole, self.p, self.size)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows of the table a seed trains on: (p*p,), ``train_size`` of them true."""
        chosen = seed if self.split_seed is None else self.split_seed
        mask = draw_training_mask(
            self.p, self.train_fraction, holed=self.never_trained(), split=self.split, generator=chosen
        )
        return mask.ravel()


@dataclass(frozen=True)
class CircledTask(ModularTask):
    """A modular function, trained on a set that is even under several names; see ``theory.draw_circled_mask``.

    Args:
        circles: how many, from 1 to half of the numbers that have no divisor in common with p.

    Raises:
        ValueError: what ``ModularTask`` refuses, or a number of circles out of range.
    """

    circles: int = 1
    split_fields: ClassVar[tuple[str, ...]] = ("train_fraction", "circles")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("circles", self.circles, 1, len(units(self.p)) // 2)

    @property
    def train_size(self) -> int:
        """Number of pairs trained on, rounded down."""
        return training_size(self.p, self.train_fraction)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows of the table a seed trains on: (p*p,), ``train_size`` of them true."""
        return draw_circled_mask(self.p, self.train_fraction, self.circles, generator=seed).ravel()
