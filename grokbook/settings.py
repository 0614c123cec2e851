"""Settings of a chapter and their ranges: declared once, in annotations, for notebook, papermill and command line.

    @dataclass(frozen=True)
    class Gromov(Settings):
        p: Annotated[int, whole(3)] = 97

Standard library only.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """Which values are allowed, and the words that say so."""

    words: str
    allows: Callable[[Any], bool]


LARGEST = 10**9  # of whole numbers: beyond, lists of so many runs, or of steps, are never made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def whole(least: int, most: int = LARGEST) -> Range:
    """Whole numbers from ``least`` to ``most``."""
    return Range(
        f"a whole number from {least} to {most:,}", lambda value: type(value) is int and least <= value <= most
    )


def prime(least: int, most: int) -> Range:
    """Prime numbers from ``least`` to ``most``."""

    def allows(value: Any) -> bool:
        return type(value) is int and least <= value <= most and all(value % k for k in range(2, math.isqrt(value) + 1))

    return Range(f"a prime number from {least} to {most}", allows)


def several(inner: Range) -> Range:
    """A list of different values, each in a range."""

    def allows(value: Any) -> bool:
        different = isinstance(value, list | tuple) and 0 < len(value) == len(set(map(repr, value)))
        return different and all(map(inner.allows, value))

    return Range(f"a list of different values, each {inner.words},", allows)


def choice(*known: str) -> Range:
    """One of some words."""
    return Range(f"one of {', '.join(known)}", lambda value: value in known)


SHARE = Range("a number strictly between 0 and 1", lambda value: _is_number(value) and 0 < value < 1)
POSITIVE = Range("a number above 0", lambda value: _is_number(value) and value > 0)
NOT_NEGATIVE = Range("a number of at least 0", lambda value: _is_number(value) and value >= 0)

Steps = Annotated[int, whole(1)]
Seeds = Annotated[int, whole(1, 1000)]
Width = Annotated[int, whole(1)]
Share = Annotated[float, SHARE]
Shares = Annotated[tuple[float, ...], several(SHARE)]
Widths = Annotated[tuple[int, ...], several(whole(1))]
Rate = Annotated[float, POSITIVE]
Budget = Annotated[float, NOT_NEGATIVE]  # PFLOP
DEVICES = ("auto", "cpu", "cuda")
Device = Annotated[str, choice(*DEVICES)]


@dataclass(frozen=True)
class Settings:
    """Base of a chapter's settings: what every page has. ``ValueError`` says of a value in one line what is allowed."""

    budget: Budget = 0.5  #: the most that a training may cost to be started from the page
    device: Device = "auto"  #: where to train

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        check(type(self), vars(self))

    @classmethod
    def names(cls) -> list[str]:
        """The parameters of the chapter's notebook, in their order."""
        names = [field.name for field in dataclasses.fields(cls)]
        return [*names[2:], *names[:2]]  # budget and device are every chapter's, and come last


def check(owner: Any, given: Mapping[str, Any]) -> None:
    """Hold values against the ranges in the annotations of a class or function; ``ValueError`` as ``Settings``."""
    for name, annotation in get_type_hints(owner, include_extras=True).items():
        for one in getattr(annotation, "__metadata__", ()) if name in given else ():
            if isinstance(one, Range) and not one.allows(given[name]):
                raise ValueError(f"{name} = {given[name]!r}: {one.words} is allowed")


def declared(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The keyword arguments of a function or class: name -> type, without its range, and default."""
    types = get_type_hints(function)
    return {
        name: (types.get(name, type(parameter.default)), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not parameter.empty
    }


def given_as(name: str, value: Any) -> str:
    """A parameter as a shell takes it: fractions=0.1,0.2."""
    return f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"


def read(value: Any, kind: Any) -> Any:
    """A value as a type: int, float, str, bool or a tuple of one of them. Text is read as that type.

    ``ValueError`` where it is not of that type; nothing is rounded.
    """
    if get_origin(kind) is tuple and isinstance(value, str | list | tuple):
        if isinstance(value, str):
            bare = value[1:-1] if value[:1] + value[-1:] in ("[]", "()") else value
            value = [one.strip(" '\"") for one in bare.split(",")]
        return tuple(read(one, get_args(kind)[0]) for one in value)
    if isinstance(value, str) and kind is not str:
        value = {"true": True, "false": False}.get(value.lower()) if kind is bool else kind(value)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise ValueError(f"{value!r} is not of type {kind}")
    return value
