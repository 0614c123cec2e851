"""The four-shape sum of Gu et al. (2025), section 6.3: does a deep network grok, and on what?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import NOT_NEGATIVE, POSITIVE, Range, Seeds, Share, choice, whole

EVEN = Range("an even number from 8 to 1,024", lambda pixels: type(pixels) is int and pixels in range(8, 1025, 2))
WIDTH = Range("a number above 0, up to 1,000,", lambda width: POSITIVE.allows(width) and width <= 1000)
FILE = Range("the path of a file, or nothing,", lambda path: not path or Path(path).is_file())


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    symbols: Annotated[int, whole(2, 11)] = 11
    train_fraction: Share = 0.25
    size: Annotated[int, EVEN] = 224
    width: Annotated[float, WIDTH] = 1.0
    channels: Annotated[int, whole(1, 3)] = 3
    drawing: Annotated[str, choice("as_released", "intended")] = "as_released"
    weight_decay: Annotated[float, NOT_NEGATIVE] = 1e-4
    epochs: Annotated[int, whole(1)] = 4000
    seeds: Seeds = 2
    weights: Annotated[str, FILE] = ""

    def __post_init__(self) -> None:
        """Refuse, by ``ValueError``, a training set, or a rest, without a picture."""
        super().__post_init__()
        pictures = self.symbols**4
        if not 0 < self.train_size < pictures:
            told = f"train_fraction = {self.train_fraction}: {self.train_size} of {pictures} pictures"
            raise ValueError(f"{told}, and some must be left on either side")

    @property
    def train_size(self) -> int:
        """Pictures trained on."""
        return round(self.train_fraction * self.symbols**4)


CHAPTER = Chapter(
    "resnet",
    Settings,
    ("counting", "network", "ablations", "surrogate"),
    quick={"symbols": 7, "size": 32, "width": 0.125, "channels": 1, "weight_decay": 1e-3, "epochs": 650, "seeds": 1},
)
