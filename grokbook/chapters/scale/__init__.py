"""The page "Running it at scale": what was measured, and plans for larger machines."""

from __future__ import annotations

from dataclasses import dataclass

from grokbook import settings
from grokbook.settings import Rate, Widths


@dataclass(frozen=True)
class Settings:
    """The machines that a plan is made for; see the parameters cell of the notebook for the words."""

    workers: Widths = (1, 8, 1000)
    gpu_tflops: Rate = 25.0
    launch_ms: Rate = 0.1

    def __post_init__(self) -> None:
        settings.check(type(self), vars(self))
