"""What a chapter's notebook talks to: datasets by name, figures to show, facts for its prose, claims to judge.

    page = CHAPTER.page(globals())
    record = page["learning_curves"]            # an xarray.Dataset: stored, trained now, or not to be had
    ...                                         # draw
    page.facts(delay=number(delay))             # {glue:text}`delay` in the prose
    page.show(figure, "fig1", claims=["fig1a"]) # the figure, "Paper / Here / badge", and the fold

A cell that asks for a record which is not there ends, and says in one line how to make it.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import xarray as xr
from IPython import get_ipython
from IPython.display import HTML, Image, display

from grokbook import drawn, fold, lint, plotting, register, session
from grokbook.chapter import Chapter
from grokbook.claims import OUTCOMES, SIZES, Claim, Verdict, lesser, smallest
from grokbook.measures.common import unmeasured
from grokbook.settings import Settings, given_as
from grokbook.sizes import fewer_seeds, networks, size_of
from grokbook.train import planning, records, runner
from grokbook.train.experiment import Experiment
from grokbook.words import number, suggest, unbroken

IMPOSSIBLE = ArithmeticError, LookupError, MemoryError, ValueError  # raised where there is nothing to go on


class NotTrained(KeyError):
    """A record that is not there and is not trained unasked; ``command`` makes it."""

    def __init__(self, name: str, command: str) -> None:
        super().__init__(name)
        self.name, self.command = name, command


class Page(Mapping[str, xr.Dataset]):
    """A chapter at some settings; a mapping from names to records and studies, filled when asked.

    Records carry ``size`` among their attributes: full, fewer seeds, or smaller than their figure is meant to have.
    """

    def __init__(self, chapter: Chapter, chosen: Settings) -> None:
        self.chapter, self.settings = chapter, chosen
        plain, quick = dataclasses.replace(chosen, budget=0.0, device="auto"), {**chapter.quick, "budget": 0.0}
        self.at_home = plain == chapter.settings(budget=0.0)
        self.of_a_reader = not self.at_home and plain != chapter.settings(**quick)  # at settings that we have not tried
        self.verdicts: dict[str, tuple[Verdict, Verdict]] = {}  # by today's parts, and by those before
        self._found: dict[str, xr.Dataset | NotTrained] = {}
        self._asked: list[str] = []  # names since the last figure
        self._shown: dict[str, dict[str, Any]] = {}  # figure id -> what the gallery says of it
        self._told: set[str] = set()  # claims whose rows stand on the page
        self._facts: dict[str, str] = {}
        self._shell: Any = get_ipython()
        if self._shell:
            plotting.use()
            if not any(isinstance(one, _Guarded) for one in self._shell.ast_transformers):
                self._shell.ast_transformers.append(_Guarded())
            if not self.at_home:
                display(HTML(f"<p><b>{self._elsewhere()}</b></p>"))

    def _elsewhere(self) -> str:
        """What a page at other settings than the book's has to say first."""
        book = self.chapter.settings()
        changed = ", ".join(f"{name} = {value} (book: {getattr(book, name)})" for name, value in self._apart())
        told = f"Not the book's settings: {changed}. The sentences were written for the book's; the verdicts"
        return escape(f"{told} are of these, by the book's criteria, and count nowhere else.")

    def _apart(self, last: int = -2) -> list[tuple[str, Any]]:
        """The parameters that are not the book's, budget and device, the last two, left out."""
        book, own = self.chapter.settings(), self.settings
        return [(one, getattr(own, one)) for one in own.names()[:last] if getattr(book, one) != getattr(own, one)]

    def __getitem__(self, name: str) -> xr.Dataset:
        if name not in (*self.chapter.experiments, *self.chapter.studies):
            raise KeyError(f"{self.chapter.name} has no record or study {name!r}{suggest(name, self)}")
        if name not in self._found:
            try:
                self._found[name] = self._obtain(name) if name in self.chapter.experiments else self._study(name)
            except NotTrained as error:
                self._found[name] = error
            except IMPOSSIBLE as error:
                if not (self.of_a_reader or (name in self.chapter.studies and isinstance(error, ValueError))):
                    raise
                told = str(error) if isinstance(error, ValueError) else f"at these settings {_what(error)}"
                self._found[name] = NotTrained(name, told)
        self._asked.append(name)
        if isinstance(found := self._found[name], NotTrained):
            raise found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([*self.chapter.experiments, *self.chapter.studies])

    def __len__(self) -> int:
        return len(self.chapter.experiments) + len(self.chapter.studies)

    def experiment(self, name: str) -> Experiment:
        """What the figure is meant to have at these settings."""
        recipe = self.chapter.experiments[name]
        return recipe(self.settings, **(recipe.quick if session.current().scale == "quick" else {}))

    def _study(self, name: str) -> xr.Dataset:
        compute = self.chapter.studies[name]
        arguments = inspect.signature(compute).parameters
        given: dict[str, Any] = {one: self.settings if one == "s" else self[one] for one in arguments}
        with unmeasured():
            study = compute(**given)
        behind = [data.attrs for data in (*given.values(), study) if isinstance(data, xr.Dataset)]
        sizes = [one["size"] for one in behind if "size" in one]
        return study.assign_attrs(size=smallest(sizes or ["full" if self.at_home else "smaller"]))

    def _obtain(self, name: str) -> xr.Dataset:
        wanted = self.experiment(name)
        candidates, fresh = [wanted], session.current().fresh
        if self.at_home:
            candidates += self.chapter.experiments[name].stand_ins(self.settings)
        if not fresh:
            for one in candidates:
                if (record := runner.known(one)) is not None:
                    return record.assign_attrs(size=self._size(name, one))
        if not self.at_home:
            candidates.extend(fewer_seeds(wanted))
        affordable = next((one for one in candidates if petaflop(one) <= self.settings.budget), None)
        if affordable is None or (self.at_home and not fresh):
            budget = np.format_float_positional(petaflop(wanted) * 1.05, 2, fractional=False)
            raise NotTrained(name, f"grokbook train {self.chapter.name}/{name}" if self.at_home else f"budget={budget}")
        record = runner.obtain(affordable, device=self.settings.device)
        return record.assign_attrs(size=self._size(name, affordable))

    @property
    def again(self) -> str:
        """The command that draws its figures again."""
        name = f"CHAPTER={self.chapter.name}"
        if self.at_home:
            return f"make figures {name}"
        return f'make chapter {name} PARAMS="{" ".join(given_as(*one) for one in self._apart(-1))}"'

    def command(self, name: str) -> str:
        """What would make a record that was asked for and is not there; or why it cannot be."""
        missing = self._found[name]
        return missing.command if isinstance(missing, NotTrained) else ""

    def _size(self, name: str, found: Experiment) -> str:
        """Of a record, against what the figure is meant to have at the book's settings, wherever the page is."""
        return size_of(self.chapter.experiments[name](self.chapter.settings()), found)

    def show(self, figure: Any, id: str, claims: Sequence[str] = ()) -> None:
        """Show a figure, save it as PNG and SVG and its numbers as CSV, and write what stands below it.

        Args:
            figure: a matplotlib figure, or a widget of frames.
            id: of the figure and its files, as "fig4b".
            claims: ids of the claims that it decides; ``KeyError`` where there is no such claim.
        """
        asked, self._asked = self._asked, []
        problems: list[str] = []
        alone = hasattr(figure, "savefig")
        if alone:
            canvas = plotting.drawn(figure)
            picture = plotting.palette(canvas)
        if self.at_home:  # how it comes out at other parameters is not its author's to mend
            problems = lint.problems(canvas) if alone else [*getattr(figure, "problems", ())]
        if session.current().figures:  # a reader's own execution does not overwrite the committed plots
            place = plotting.folder(self.chapter.name)
            if alone:
                plotting.save(figure, self.chapter.name, id, picture)
            else:
                records.write_whole(place / f"{id}.png", figure.poster)
            if numbers := drawn.table({"": figure} if alone else figure.figures):
                records.write_whole(place / f"{id}.csv", numbers)
            else:
                (place / f"{id}.csv").unlink(missing_ok=True)  # of other parameters
        display(Image(picture, retina=True) if alone else figure)
        source = self._shell.user_ns["In"][-1] if self._shell else ""
        behind = [one for one in self.chapter.needed_by(*asked) if one in self]
        self._shown[id] = {"records": behind, "claims": list(claims), "problems": problems}
        for problem in problems:
            print(f"{self.chapter.name}, {id}: {problem}", file=sys.stderr)  # which a build repeats
        display(HTML(self.rows(claims) + fold.below(self, id, behind, source)))
        self._asked = []  # what the fold has read stands behind this figure, not behind the next

    @contextlib.contextmanager
    def cell(self) -> Iterator[None]:
        """What cells run in: quiet about what was not measured, and where a record is missing one line that says so.

        So it is at a reader's settings where a cell fails, as with a figure of which nothing is left: the page goes on.
        """
        try:
            with unmeasured():
                yield
        except NotTrained as error:
            self._instead(f"Not trained yet: {error.name}\n{error.command}")
        except IMPOSSIBLE as error:
            if not self.of_a_reader:
                raise
            print(f"not to be had at these settings: {_what(error)}", file=sys.stderr)
            self._instead(f"Not to be had at these settings\n{_what(error)}")

    def _instead(self, told: str) -> None:
        """What stands where a figure would be."""
        self._asked = []
        figure, ((ax,),) = plotting.panels(height=1.5)
        plotting.blank(ax, told, color=plotting.INK, linespacing=1.6, wrap=True)
        display(plotting.picture(figure))

    def claims(self, *ids: str) -> None:
        """Show claims that no figure decides."""
        self._asked = []  # what the cell has read stands behind them, not behind the next figure
        display(HTML(self.rows(ids)))

    def rows(self, ids: Sequence[str]) -> str:
        """Claims as HTML rows: statement, paper, here, badge; parts, forecast and changes folded."""
        for id in ids:
            if id not in self.chapter.claims:
                raise KeyError(f"{self.chapter.name} has no claim {id!r}{suggest(id, self.chapter.claims)}")
        self._told |= set(ids)
        return "".join(fold.claim_row(self, self.chapter.claims[id], *self.judge(id)) for id in ids)

    def judge(self, id: str) -> tuple[Verdict, Verdict]:
        """The verdict by today's parts, and by those before changes that no error forced; the lesser counts."""
        if id not in self.verdicts:
            asked = list(self._asked)
            claim = self.chapter.claims[id]
            today, before = self._judged(claim), self._judged(claim, before=True)
            if self.at_home and not claim.earlier:
                entry = register.load(self.chapter.name).get(id, {})
                outcome = register.before(entry, before.outcome, before.size)
                told = entry.get("counted_how", "") if outcome != today.outcome else ""
                before = dataclasses.replace(before, outcome=outcome, told=told)
            missing: Any = [self._found[one] for one in claim.needs if one not in self]
            untested = Verdict("not tested", note="; ".join(dict.fromkeys(one.command for one in missing)))
            today, before = (untested if missing and one.outcome == "not tested" else one for one in (today, before))
            self.verdicts[id] = today, before
            self._asked = asked
            counted = lesser(today, before)
            badge = fold.badge(counted.outcome, counted.size, whose=claim.whose, today=today.outcome)
            glue(f"badge-{id}", fold.Html(badge, text=fold.word(counted.outcome, claim.whose)))
        return self.verdicts[id]

    def _judged(self, claim: Claim, *, before: bool = False) -> Verdict:
        try:
            return claim.judge(self, before=before)
        except IMPOSSIBLE as error:
            if not self.of_a_reader:
                raise
            return Verdict("not tested", note=f"not to be had at these settings: {_what(error)}")

    def facts(self, **facts: object) -> None:
        """Numbers and words for the prose: ``{glue:text}`` shows them. Text is taken as it is."""
        for name, value in facts.items():
            text = value if isinstance(value, str) else number(float(value))  # type: ignore[arg-type]
            self._facts[name] = unbroken(text)
            glue(name, self._facts[name])

    def summary(self) -> None:
        """Count the verdicts, paper's claims and ours apart, and keep them for the scorecard; last cell of a page."""
        for id in self.chapter.claims:
            self.judge(id)
        for whose in ("paper", "ours"):
            counted = [lesser(*self.verdicts[id]) for id, claim in self.chapter.claims.items() if claim.whose == whose]
            found = [one.outcome for one in counted]
            self.facts(**{f"{whose} {outcome}".replace(" ", "_"): found.count(outcome) for outcome in OUTCOMES})
            full = sum((one.outcome, one.size) == ("reproduced", "full") for one in counted)
            self.facts(**{f"{whose}_claims": len(found), f"{whose}_reproduced_full": full})
        entries = register.load(self.chapter.name)
        altered = sum(register.changed(entries.get(id, {})) for id in self.chapter.claims)
        self.facts(criteria_changed=altered, criteria_all=len(self.chapter.claims))
        held = {name: self[name] for name in self.chapter.experiments if name in self}
        self.facts(
            networks=len(networks(held.values())),
            core_hours=sum(float(one.attrs["wall_seconds"]) for one in held.values()) / 3600,
            full_records=sum(one.attrs["size"] == "full" for one in held.values()),
            all_records=len(self.chapter.experiments),
        )
        if session.current().figures:
            self._keep(held)
        rest = [id for id in self.chapter.claims if id not in self._told]  # the scorecard leads to each
        waiting = fold.folded("Claims whose figures are not trained yet", self.rows(rest))
        display(HTML(waiting + fold.records(self, held)))

    def _keep(self, held: Mapping[str, xr.Dataset]) -> None:
        entries = register.load(self.chapter.name)
        counted = {id: lesser(*both) for id, both in self.verdicts.items()}
        content = {
            "claims": [
                {
                    "id": id,
                    "figure": claim.figure,
                    "statement": claim.statement,
                    "whose": claim.whose,
                    "outcome": counted[id].outcome,
                    "today": self.verdicts[id][0].outcome,
                    "size": counted[id].size,
                    "changed": register.changed(entries.get(id, {})),
                    "paper": claim.paper,
                    "ours": counted[id].line,
                    "records": self.chapter.needed_by(*claim.needs),
                    **({"note": claim.note} if claim.note else {}),
                }
                for id, claim in self.chapter.claims.items()
            ],
            "records": [
                {
                    "name": name,
                    "size": held[name].attrs["size"] if name in held else "missing",
                    "networks": sorted(networks([held[name]])) if name in held else [],
                    "seeds": len(np.unique(held[name].seed.values)) if name in held else 0,
                    "core_seconds": round(float(held[name].attrs["wall_seconds"])) if name in held else 0,
                }
                for name in self.chapter.experiments
            ],
            "figures": self._shown,
            "facts": self._facts,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        records.write_whole(plotting.folder(self.chapter.name) / "claims.json", text.encode())


def _what(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def standing(chapter: Chapter) -> dict[str, str]:
    """Claim id -> the size of the records that decide it at the chapter's own settings, "none" where one is missing."""
    home, sizes = chapter.settings(), {}
    for name, recipe in chapter.experiments.items():
        wanted = recipe(home)
        tried = [(runner.status(one, whole=False).state, one) for one in (wanted, *recipe.stand_ins(home))]
        # Also one that is stale or damaged: it has been seen.
        there = sorted((one for one in tried if one[0] != "missing"), key=lambda one: one[0] != "present")
        sizes[name] = size_of(wanted, there[0][1]) if there else "none"
    order = (*SIZES, "none")
    return {  # what rests on theory alone has its "record" as soon as it is written
        id: max((sizes[one] for one in chapter.needed_by(*claim.needs)), key=order.index, default="full")
        for id, claim in chapter.claims.items()
    }


def petaflop(experiment: Experiment) -> float:
    """What a training costs, less the runs that committed records have: the same wherever, and however often."""
    held = {} if session.current().fresh else records.holders(experiment)
    place = records.stored_path(experiment).parent
    committed = [i for i, own in held.items() if any(path.parent == place for path, _ in own)]
    return 1e-15 * planning.work(experiment, committed)


def glue(name: str, value: Any) -> None:
    """Give a value to the page's prose; nothing outside of a notebook."""
    if get_ipython():
        from myst_nb import glue as give

        give(name, value, display=False)


class _Guarded(ast.NodeTransformer):
    """Has every cell that names the page run in ``page.cell()``."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        if any(isinstance(one, ast.Name) and one.id == "page" for one in ast.walk(node)):
            (guard,) = ast.parse("with page.cell(): pass").body
            assert isinstance(guard, ast.With)
            guard.body, node.body = node.body, [guard]
        return ast.fix_missing_locations(node)
