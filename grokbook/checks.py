"""Checks of arguments that theories and measures share: a wrong one gets one line that says what is allowed."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any


def integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int of at least ``least`` and at most ``most``.

    Raises:
        ValueError: it is no integer, or outside.
    """
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer {wanted}, got {name}={value!r}") from None
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} must be an integer {wanted}, got {name}={number}")
    return number


def one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices.

    Raises:
        ValueError: it is not.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
