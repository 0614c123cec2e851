"""What the page's parameters may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from grokbook import settings
from grokbook.settings import Rate, several, whole


class Declared:
    """The parameters cell's, with their ranges."""

    workers: Annotated[list[int], several(whole(1))]
    gpu_tflops: Rate
    launch_ms: Rate


def check(values: Mapping[str, Any]) -> None:
    """Refuse what no plan can be made for.

    Raises:
        ValueError: a value out of range.
    """
    settings.check(Declared, values)
