"""How long one waits: every network of the book by one definition of grokking, and what a seed is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Rate, Seeds, Share, Steps, prime


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, prime(5, 293)] = 97
    small_p: Annotated[int, prime(5, 293)] = 59
    seeds: Seeds = 5
    level: Share = 0.9
    later: Steps = 1000
    factor: Rate = 5.0


CHAPTER = Chapter(
    "waits", Settings, ("waits", "decays", "norms", "dealt", "doses"), quick={"p": 11, "small_p": 7, "seeds": 2}
)
