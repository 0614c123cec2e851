"""Gromov (2023), "Grokking modular arithmetic": a network small enough to be solved by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Budget, Seeds, Share, Shares, Steps, Width, Widths, whole


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, whole(5, 300)] = 97  # theory makes tables of p³
    width: Annotated[int, whole(8)] = 500
    train_fraction: Share = 0.49
    seeds: Seeds = 5
    gd_steps: Steps = 25_000
    adamw_steps: Steps = 1_000
    fractions: Shares = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
    widths: Widths = (8, 12, 18, 27, 40, 60, 91, 136, 205, 307, 512)
    d_model: Width = 128
    heads: Widths = (1, 2, 4, 8, 16, 32, 64)
    budget: Budget = 0.02

    def __post_init__(self) -> None:
        """Refuse, by ``ValueError``, heads that do not divide the width."""
        super().__post_init__()
        if wrong := [count for count in self.heads if self.d_model % count]:
            raise ValueError(f"heads = {wrong[0]}: a divisor of d_model is needed, which is {self.d_model}")

    @property
    def few(self) -> int:
        """Seeds of large sweeps."""
        return min(self.seeds, 3)


CHAPTER = Chapter(
    "gromov",
    Settings,
    ("dynamics", "solution", "found", "data", "activations", "periodicity", "functions", "transformers"),
    quick={"p": 31, "width": 128, "train_fraction": 0.6, "seeds": 2, "gd_steps": 2000, "adamw_steps": 200,
           "fractions": [0.5, 0.8], "widths": [8, 32, 128], "d_model": 32, "heads": [1, 4, 16]},
)  # fmt: skip
