"""The chapters are the folders here: each that trains makes a ``CHAPTER``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from grokbook.chapter import Chapter
from grokbook.settings import declared
from grokbook.train.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment of the book, as the command line sees it."""

    name: str  #: ``"chapter/experiment"``
    make: Callable[..., Experiment]  #: of keywords; without any, what its figure is meant to have
    known: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  #: keyword -> type and default
    about: str = ""  #: what it is, in a line
    stand_ins: Callable[[], list[Experiment]] = list  #: the smaller ones that may stand in for it, the largest first


@cache
def chapters() -> dict[str, Chapter]:
    """Name -> chapter of all that train."""
    modules = {one.name: importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)}
    return {name: module.CHAPTER for name, module in modules.items() if hasattr(module, "CHAPTER")}


def experiments(chapter: str | None = None) -> dict[str, Entry]:
    """Every experiment of the book, or of one chapter, by name."""
    entries = []
    for made in [chapters()[chapter]] if chapter else chapters().values():
        home, of_page = made.settings(), declared(made.settings)
        for name, recipe in made.experiments.items():
            known, about = of_page | declared(recipe.make), (recipe.make.__doc__ or "\n").splitlines()[0]
            known = {name: one for name, one in known.items() if name not in ("budget", "device")}  # of pages alone
            make, stand_ins = partial(recipe, home), partial(recipe.stand_ins, home)
            entries.append(Entry(f"{made.name}/{name}", make, known, about, stand_ins))
    return {entry.name: entry for entry in entries}
