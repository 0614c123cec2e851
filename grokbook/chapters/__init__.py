"""The chapters are the folders here: each that trains makes a ``CHAPTER``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from grokbook.chapter import Chapter
from grokbook.settings import declared
from grokbook.train.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment of the book, as the command line sees it.

    Args:
        name: ``"chapter/experiment"``.
        make: keywords -> experiment; without any, what its figure is meant to have.
        known: keyword -> type and default.
        about: what it is, in a line.
        stand_ins: the smaller experiments that may stand in for it, the largest first.
    """

    name: str
    make: Callable[..., Experiment]
    known: dict[str, tuple[Any, Any]]
    about: str
    stand_ins: Callable[[], list[Experiment]]


def entry(name: str, make: Callable[..., Experiment], stand_ins: Callable[[], list[Experiment]] = list) -> Entry:
    """The entry of a function from keywords to an experiment."""
    return Entry(name, make, declared(make), _line(make), stand_ins)


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
    home, of_page = made.settings(), declared(made.settings)
    return [
        Entry(
            f"{chapter}/{name}",
            partial(recipe, home),
            of_page | declared(recipe.make),
            _line(recipe.make),
            partial(recipe.stand_ins, home),
        )
        for name, recipe in made.experiments.items()
    ]


def _line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "\n").splitlines()[0]
