"""Across the papers: every measure on every family of networks, and which of them one should watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Seeds, prime, whole


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, prime(5, 293)] = 97
    small_p: Annotated[int, prime(5, 293)] = 59
    symbols: Annotated[int, whole(4, 11)] = 7
    seeds: Seeds = 3


CHAPTER = Chapter(
    "across",
    Settings,
    ("decoder", "toy", "mlp", "transformer", "surrogate", "answers"),
    quick={"p": 11, "small_p": 7, "symbols": 5, "seeds": 1},
)
