"""Checks of arguments that models, tasks and measures share: a wrong one gets one line that says what is allowed."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Collection
from typing import Any


def integer(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """``value`` as an int from ``least`` to ``most``; ``ValueError`` if it is no integer, or outside."""
    with contextlib.suppress(TypeError):
        value = operator.index(value)
    if not isinstance(value, int) or not least <= value <= most:
        wanted = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {wanted}, got {name}={value!r}")
    return value


def sizes(thing: Any, **least: int) -> None:
    """Refuse, with ``ValueError``, attributes of a thing that are below the least that each may be."""
    for name, low in least.items():
        if getattr(thing, name) < low:
            raise ValueError(f"{name} = {getattr(thing, name)}: at least {low} is needed")


def dropout(share: float) -> None:
    """Refuse, with ``ValueError``, what is no probability below 1 of being dropped."""
    if not 0 <= share < 1:
        raise ValueError(f"dropout = {share}: it must lie in [0, 1)")


def one_of(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse, with ``ValueError``, a value that is not among the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
