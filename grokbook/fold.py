"""What stands below a figure, as HTML: rows of claims, and a fold with code, settings, records and downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from grokbook import plotting, recipes, register, session, words
from grokbook.claims import Claim, Part, Verdict, lesser
from grokbook.sizes import networks

if TYPE_CHECKING:
    from grokbook.page import Page


# A question of ours was not said before, so that nothing is reproduced.
OURS = {"reproduced": "holds", "partly": "holds in part", "not reproduced": "does not hold"}


def word(outcome: str, whose: str = "paper") -> str:
    """The word for an outcome, of a claim of the paper's or of a question of ours."""
    return OURS.get(outcome, outcome) if whose == "ours" else outcome


def badge(outcome: str, size: str = "full", *, whose: str = "paper", changed: bool = False, today: str = "") -> str:
    """The word for a verdict, with others where its records are not full, or its criterion was changed: to what."""
    kind = outcome.replace(" ", "-") + " ours" * (whose == "ours")  # of another colour: a "no" of ours is no failure
    found = f'<span class="verdict {kind}">{word(outcome, whose)}</span>'
    if size != "full" and outcome != "not tested":
        found += f' <span class="verdict size">{size}</span>'
    other = f"; today: {word(today, whose)}" if today not in ("", outcome) else ""
    return found + (f' <span class="verdict size">criterion changed{other}</span>' if changed or other else "")


@dataclass(frozen=True, eq=False, repr=False)
class Html:
    """Markup that shows itself in a notebook and in the page."""

    markup: str
    poster: bytes = b""  #: a PNG that stands for it elsewhere
    figures: Mapping[str, Figure] = field(default_factory=dict)  #: what it shows one of at a time, by name
    problems: Sequence[str] = ()  #: what a reader of them would trip over (see ``lint``)
    text: str = "(shown in the page)"  #: what stands for it where there is no HTML

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return self.text


def claim_row(page: Page, claim: Claim, today: Verdict, before: Verdict) -> str:
    """One claim: figure, statement, "Paper: ... Here: ... [badge]"; the parts and their history folded."""
    entry, counted = register.load(page.chapter.name).get(claim.id, {}), lesser(today, before)
    changed = register.changed(entry)
    whose = "" if claim.whose == "paper" else "Our question. "
    paper, here = claim.paper and f"Paper: {claim.paper}", counted.line and f"Here: {counted.line}"
    said = words.html(" · ".join(filter(None, [paper, here, counted.note, claim.note if page.at_home else ""])))
    inside = _parts(claim.parts, today)
    if claim.earlier or before.outcome != today.outcome:
        how = word(before.outcome, claim.whose) + (before.told and f" ({before.told})")
        inside += f"<p>Before the changes that no error forced: {words.html(how)}. The lesser verdict counts.</p>"
        inside += _parts(claim.earlier, before) if claim.earlier else ""
    elif page.at_home and "counted_how" in entry:
        inside += f"<p>By the criterion before, too: {words.html(entry['counted_how'])}.</p>"
    if claim.forecast and page.at_home:
        inside += f"<p>Forecast before training: {words.html(claim.forecast)}.</p>"
    if page.at_home:
        inside += "".join(f"<p>{words.html(line)}</p>" for line in register.story(entry))
    inside += f'<p><a href="scorecard.html#{page.chapter.name}-{escape(claim.id)}">In the scorecard</a></p>'
    summary = f"<b>{escape(claim.figure)}</b> {whose}{words.html(claim.statement)} "
    verdict = badge(counted.outcome, counted.size, whose=claim.whose, changed=changed, today=today.outcome)
    summary += f'<span class="found">{said} {verdict}</span>'
    return folded(summary, inside, f' class="claim" id="claim-{escape(claim.id)}"')


def folded(summary: str, inside: str, attributes: str = ' class="below"') -> str:
    """Markup that shows its summary until it is opened; nothing where there is nothing inside."""
    return inside and f"<details{attributes}><summary>{summary}</summary>{inside}</details>"


def _parts(parts: Sequence[Part], verdict: Verdict) -> str:
    """What must hold and what we found, where it could be judged."""
    rows = [
        (one.part.criterion, one.ours, "holds" if one.holds else "fails" + ", undecided" * (not one.decides))
        for one in verdict.findings
    ]
    return table(("What must hold", "Here", "Result"), rows or [(part.criterion, "–", "–") for part in parts])


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", cell: Callable[[str], str] = words.html
) -> str:
    """An HTML table of texts, which ``cell`` makes HTML; the first of a row names it."""
    top = "".join(f"<th scope=col>{escape(one)}</th>" for one in head)
    body = ""
    for name, *rest in rows:
        labelled = zip(head[1:], rest, strict=True)
        cells = "".join(f'<td data-label="{escape(label)}">{cell(one)}</td>' for label, one in labelled)
        body += f"<tr><th scope=row>{cell(name)}</th>{cells}</tr>"
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{told}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def below(page: Page, id: str, behind: Sequence[str], source: str) -> str:
    """The fold below a figure: what was run, from which record, how to make it again, downloads and code."""
    chapter = page.chapter.name
    lines = [_ran(page, name) for name in behind] or ["Nothing is trained for it."]
    links = files(chapter, id) if session.current().figures else ""
    draw = f"{f'As it is drawn: {links}. ' if links else ''}<code>{escape(page.again)}</code> draws it again."
    made = f"<ul>{''.join(f'<li>{x}</li>' for x in (*lines, draw))}</ul>"
    code = str(highlight(source, PythonLexer(), HtmlFormatter())) if source else ""
    many = _count([page[name] for name in behind])
    attributes = f' class="below" id="made-{id}"'
    return folded(f"Settings, data and code{many}", made + folded("Code of this figure", code, ""), attributes)


def _count(held: Sequence[xr.Dataset]) -> str:
    """How many networks and seeds stand behind a figure."""
    if not held:
        return ""
    seeds, many = [len(np.unique(record.seed.values)) for record in held], len(networks(held))
    few = f"{min(seeds)} to {max(seeds)}" if len(set(seeds)) > 1 else f"{seeds[0]}"
    return f" ({many:,} network{'s' * (many > 1)}, {few} seed{'s' * (max(seeds) > 1)})"


def files(chapter: str, id: str) -> str:
    """Links to a figure's files, those that there are."""
    kinds = [kind for kind in ("png", "svg", "csv") if (plotting.folder(chapter) / f"{id}.{kind}").exists()]
    return ", ".join(f'<a href="../{chapter}/{id}.{kind}">{kind.upper()}</a>' for kind in kinds)


def stored(chapter: str, name: str, scale: str) -> str:
    """A link to a record's committed file; empty where there is none."""
    file = f"{chapter}/{name}{'-reduced' * (scale != 'full')}.nc"
    return f'<a href="../{file}">NetCDF</a>' if (plotting.ROOT / "results" / file).exists() else ""


def _ran(page: Page, name: str) -> str:
    record = page[name]
    size = "" if record.attrs["size"] == "full" else f' <span class="verdict size">{record.attrs["size"]}</span>'
    at_home = page.at_home and session.current().scale != "quick"
    data = f" ({link})" if at_home and (link := stored(page.chapter.name, name, record.attrs["scale"])) else ""
    text = (
        f"<b>{escape(name)}</b>{data}{size}: {escape(recipes.describe(record))}. "
        f"{words.seconds(record.attrs['wall_seconds'])} of {escape(record.attrs['machine'])}; "
        f"recipe <code>{record.attrs['hash'][:8]}</code>, <code>{escape(page.chapter.room(name))}</code>"
    )
    reduced = " --reduced" * (record.attrs["scale"] != "full")
    text += f"; <code>grokbook train {page.chapter.name}/{name}{reduced}</code>." if at_home else "."
    if size:
        book = page.chapter.experiments[name](page.chapter.settings())
        text += f" The full setting: {escape(recipes.settings(book.runs))}."
    return text


def records(page: Page, held: Mapping[str, xr.Dataset]) -> str:
    """All records of a page, folded."""
    rows = []
    for name in page.chapter.experiments:
        if name not in held:
            rows.append([name, "not trained", "", "", "", page.command(name)])
            continue
        about = held[name].attrs
        cells = [about["size"], str(held[name].sizes["run"]), str(len(np.unique(held[name].seed.values)))]
        rows.append([name, *cells, words.seconds(about["wall_seconds"]), f"{about['machine']}, {about['hash'][:8]}"])
    head = ("Record", "Size", "Networks", "Seeds", "Core time", "Made by")
    box = f'<div class="verdicts cards">{table(head, rows)}</div>'
    return folded("The records this page stands on", box)
