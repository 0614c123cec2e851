"""Gu et al. (2025), both versions: where training pairs lie, how embeddings spread, what follows the test loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Range, Seeds, Share, Shares, Steps, several, whole

HEADS = Range(
    "a multiple of 4, the number of heads, up to 1000000",
    lambda value: type(value) is int and value in range(4, 1_000_001, 4),
)
Sizes = Annotated[tuple[int, ...], several(whole(0, 95))]  # of 97, scaled with p; a larger hole leaves nothing outside
Offsets = Annotated[tuple[int, ...], several(whole(0, 97))]  # of 97, scaled with p


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, whole(5, 400)] = 97
    d_model: Annotated[int, HEADS] = 128
    train_fraction: Share = 0.3
    seeds: Seeds = 3
    steps: Steps = 15_000
    squares: Sizes = (30, 35, 40, 45, 50, 55, 60)
    strips: Sizes = (67, 60, 50, 40)
    fractions: Shares = (0.5, 0.6, 0.7, 0.9)
    offsets: Offsets = (0, 45, 60, 81)
    budget: settings.Budget = 0.05

    @property
    def few(self) -> int:
        """Seeds where runs are long."""
        return min(self.seeds, 2)

    @property
    def more(self) -> int:
        """Seeds where speeds are compared."""
        return self.seeds + 2


CHAPTER = Chapter(
    "gu",
    Settings,
    ("base", "holes", "coverage", "evenly", "fractions", "med",
     "start", "depth", "operations", "embeddings", "proofs"),
    quick={"p": 47, "d_model": 64, "train_fraction": 0.7, "seeds": 1, "steps": 600, "squares": [41], "strips": [50],
           "fractions": [0.5, 0.9], "offsets": [0, 45]},
)  # fmt: skip
