"""A chapter: settings, and sections that say what is trained, what is computed and what is claimed.

A section of a page is a module: it makes a ``Section`` and enters experiments, studies and claims with its decorators.
What a study or a part of a claim needs is what its arguments are called. The notebook opens the chapter as a ``Page``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import xarray as xr

from grokbook import settings
from grokbook.checks import one_of
from grokbook.claims import Claim, Part
from grokbook.settings import Settings
from grokbook.train.experiment import Experiment

if TYPE_CHECKING:
    from grokbook.page import Page


@dataclass(frozen=True)
class Recipe:
    """How an experiment follows from a chapter's settings."""

    make: Callable[..., Experiment]  #: of settings and keywords, whose defaults are the paper's settings, or ours
    smaller: Sequence[Mapping[str, Any]]  #: keywords and settings of what may stand in for it, the largest first
    quick: Mapping[str, Any]  #: keywords and settings at the quick scale

    def __call__(self, chosen: Settings, **given: Any) -> Experiment:
        """The experiment at some settings; ``given`` may name a keyword or a setting.

        ``ValueError`` for a value out of its range, or a name that neither has.
        """
        own = settings.declared(self.make)
        known = [*dict.fromkeys([*own, *chosen.names()])]
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f"{self.make.__name__} takes no {unknown[0]}; it takes {', '.join(known)}")
        settings.check(self.make, given)
        arguments = {name: given.pop(name) for name in own if name in given}
        return self.make(dataclasses.replace(chosen, **given), **arguments)

    def stand_ins(self, chosen: Settings) -> list[Experiment]:
        """The smaller experiments, the largest first."""
        return [dataclasses.replace(self(chosen, **given), scale="reduced") for given in self.smaller]


class Section:
    """One section of a page: its experiments, studies and claims, entered where they are written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.experiments: dict[str, Recipe] = {}
        self.studies: dict[str, Callable[..., xr.Dataset]] = {}
        self.claims: list[Claim] = []

    def experiment(
        self, *, smaller: Sequence[Mapping[str, Any]] = (), quick: Mapping[str, Any] | None = None
    ) -> Callable[[Callable[..., Experiment]], Recipe]:
        """Enter an experiment under its function's name (see ``Recipe``)."""

        def enter(make: Callable[..., Experiment]) -> Recipe:
            made = self.experiments[make.__name__] = Recipe(make, smaller, quick or {})
            return made

        return enter

    def study(self, compute: Callable[..., xr.Dataset]) -> Callable[..., xr.Dataset]:
        """Enter a dataset that is computed without training, under its function's name.

        Its arguments name records and studies; ``s`` is the settings. It raises ``ValueError`` where it has no meaning.
        """
        self.studies[compute.__name__] = compute
        return compute

    def claim(
        self,
        id: str,
        figure: str,
        statement: str,
        *parts: Part,
        on: str | Sequence[str] = (),
        earlier: Sequence[Part] = (),
        **about: str,
    ) -> None:
        """Enter a claim (see ``Claim``); ``on`` names the records that its parts measure, where they do not say."""
        names = (on,) if isinstance(on, str) else tuple(on)
        placed = [tuple(dataclasses.replace(one, on=one.on or names) for one in group) for group in (parts, earlier)]
        self.claims.append(Claim(id, figure, statement, placed[0], earlier=placed[1], **about))


@dataclass(eq=False)
class Chapter:
    """A notebook and the package folder that backs it."""

    name: str  #: of the folder and the notebook
    settings: type[Settings]  #: the class whose defaults are what the figures are committed with
    modules: Sequence[str]  #: names of its sections, in the order of the page
    quick: dict[str, Any]  #: settings at the quick scale

    @cached_property
    def sections(self) -> dict[str, Section]:
        """Its sections by name, imported when first asked for."""
        place = f"grokbook.chapters.{self.name}"
        return {name: importlib.import_module(f"{place}.{name}").section for name in self.modules}

    def room(self, name: str) -> str:
        """The module that makes an experiment, as a path in the repository."""
        (section,) = (one for one in self.sections.values() if name in one.experiments)
        return f"grokbook/chapters/{self.name}/{section.name}.py"

    @cached_property
    def experiments(self) -> dict[str, Recipe]:
        """All of its experiments."""
        return self._all("experiment", lambda section: section.experiments.items())

    @cached_property
    def studies(self) -> dict[str, Callable[..., xr.Dataset]]:
        """All of its studies."""
        return self._all("study", lambda section: section.studies.items())

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """All of its claims by id."""
        return self._all("claim", lambda section: ((one.id, one) for one in section.claims))

    def _all(self, what: str, entered: Callable[[Section], Iterable[tuple[str, Any]]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for section in self.sections.values():
            for name, one in entered(section):
                if name in found:
                    raise ValueError(f"{self.name}: {section.name} has a {what} {name!r}, as a section before it has")
                found[name] = one
        return found

    def needed_by(self, *names: str) -> list[str]:
        """The experiments behind experiments, studies, or what parts' arguments name, each once."""
        found: list[str] = []
        for name in names:
            if name in self.experiments:
                found.append(name)
            elif name != "s":  # the settings
                one_of("what a study or a part of a claim needs", name, [*self.experiments, *self.studies])
                found += self.needed_by(*inspect.signature(self.studies[name]).parameters)
        return list(dict.fromkeys(found))

    def page(self, parameters: Mapping[str, Any]) -> Page:
        """The page at the parameters that a notebook's namespace holds, else the book's; called in its set-up cell."""
        from grokbook.page import Page

        return Page(
            self, self.settings(**{name: parameters[name] for name in self.settings.names() if name in parameters})
        )
