"""Power et al. (2022), "Grokking: generalization beyond overfitting on small algorithmic datasets"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.models.decoder import Decoder
from grokbook.settings import Seeds, Share, Steps, Width, choice, prime, whole

PRIME = prime(5, 997)  # division needs one, and halves of both sets need more rows than 3 * 2


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, PRIME] = 97
    group: Annotated[str, choice("S5", "S4", "S3")] = "S5"
    d_model: Width = 128
    layers: Annotated[int, whole(1, 100)] = 2
    heads: Width = 4
    train_fraction: Share = 0.5
    seeds: Seeds = 3
    steps: Steps = 100_000

    def __post_init__(self) -> None:
        super().__post_init__()
        Decoder(self.p, self.d_model, self.layers, self.heads)  # says which heads are possible


CHAPTER = Chapter(
    "power",
    Settings,
    ("curve", "shares", "operations", "optimizers", "rows", "outliers", "flatness"),
    quick={"p": 31, "group": "S3", "d_model": 32, "layers": 1, "train_fraction": 0.7, "seeds": 1, "steps": 300},
)
