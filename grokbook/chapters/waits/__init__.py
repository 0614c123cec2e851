"""How long one waits: every network of the book by one definition of grokking, and what a seed is worth."""

from __future__ import annotations

from dataclasses import dataclass

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Rate, Share, Steps


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    level: Share = 0.9
    later: Steps = 1000
    factor: Rate = 5.0


CHAPTER = Chapter("waits", Settings, ("waits",), quick={"later": 100})
