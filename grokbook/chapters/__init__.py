"""The chapters are the folders here: each that trains makes a ``CHAPTER``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, get_type_hints

from grokbook.chapter import Chapter
from grokbook.settings import keywords
from grokbook.train.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment of the book, as the command line sees it.

    Args:
        name: ``"chapter/experiment"``.
        make: keywords -> experiment; without any, what its figure is meant to have.
        known: keyword -> (type as text, default).
        about: what it is, in a line.
        stand_ins: the smaller experiments that may stand in for it, the largest first.
    """

    name: str
    make: Callable[..., Experiment]
    known: dict[str, tuple[str, Any]]
    about: str
    stand_ins: Callable[[], list[Experiment]]


def entry(name: str, make: Callable[..., Experiment], stand_ins: Callable[[], list[Experiment]] = list) -> Entry:
    """The entry of a function from keywords to an experiment."""
    return Entry(name, make, _typed(make), _line(make), stand_ins)


@cache
def chapters() -> dict[str, Chapter]:
    """Name -> chapter of all that train."""
    modules = {one.name: importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)}
    return {name: module.CHAPTER for name, module in modules.items() if hasattr(module, "CHAPTER")}


def experiments(chapter: str | None = None) -> dict[str, Entry]:
    """Every experiment of the book, or of one chapter, by name."""
    entries = [entry for name in ([chapter] if chapter else chapters()) for entry in _entries(name)]
    return {entry.name: entry for entry in entries}


def _entries(chapter: str) -> list[Entry]:
    made = chapters()[chapter]
    home, of_page = made.settings(), _typed(made.settings)
    return [
        Entry(
            f"{chapter}/{name}",
            partial(recipe, home),
            of_page | _typed(recipe.make),
            _line(recipe.make),
            partial(recipe.stand_ins, home),
        )
        for name, recipe in made.experiments.items()
    ]


def _typed(function: Callable[..., Any]) -> dict[str, tuple[str, Any]]:
    """Keyword -> its type as text, without its range, and its default."""
    types = get_type_hints(function)
    found = {}
    for name, default in keywords(function).items():
        kind = types.get(name, type(default))
        found[name] = (kind.__name__ if type(kind) is type else str(kind).split("abc.")[-1], default)
    return found


def _line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "\n").splitlines()[0]
