"""Figure, tables and sentence of the page, from what each chapter says of itself when it is executed."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grokbook import plotting
from grokbook.firstform.claims import OUTCOMES, Markdown, Table, badge, plain_table
from grokbook.plotting import styled
from grokbook.train import records

COLORS = dict(zip(OUTCOMES, (plotting.GREEN, plotting.YELLOW, plotting.RED, "#dcdce0"), strict=True))
LETTERS = dict(zip(OUTCOMES, ("white", plotting.INK, "white", plotting.INK), strict=True))


@dataclass(frozen=True)
class Card:
    """What one chapter's page said when it was made last: see ``Page.summary``.

    Args:
        chapter: its name, as in ``book/<chapter>.ipynb``.
        title: the heading of its page.
        claims: ``id``, ``figure``, ``statement``, ``outcome`` and ``reduced`` of each.
        records: ``name``, ``scale``, ``networks`` and ``core_seconds`` of each, scale "missing" where there is none.
    """

    chapter: str
    title: str
    claims: Sequence[dict[str, Any]]
    records: Sequence[dict[str, Any]]

    @property
    def outcomes(self) -> Counter[str]:
        """How many claims came out how."""
        return Counter(claim["outcome"] for claim in self.claims)


def cards(root: Path = records.ROOT) -> list[Card]:
    """The chapters that judge claims, in the order of the book.

    Raises:
        FileNotFoundError: no chapter has been executed yet.
    """
    found = []
    for chapter in re.findall(r"file: book/(\w+)", (root / "_toc.yml").read_text(encoding="utf-8")):
        said = plotting.folder(chapter) / "claims.json"
        if said.exists():
            notebook = json.loads((root / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
            title = "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")
            found.append(Card(chapter, title, **json.loads(said.read_text(encoding="utf-8"))))
    if not found:
        raise FileNotFoundError(f"no chapter has left its verdicts in {plotting.folder('')}; run: make figures")
    return found


@styled
def bars(found: Sequence[Card]) -> Figure:
    """A bar for each chapter, one unit a claim, divided by verdict; hatched where it rests on reduced settings."""
    figure, ((ax,),) = plotting.panels(1, 1, height=1.1 + 0.42 * len(found))
    for row, card in enumerate(found):
        start = 0
        for name in OUTCOMES:
            for reduced in (False, True):
                count = sum(claim["outcome"] == name and claim["reduced"] == reduced for claim in card.claims)
                if not count:
                    continue
                style = {"alpha": 0.55, "hatch": "////", "edgecolor": "white", "lw": 0} if reduced else {}
                ax.barh(row, count, 0.72, left=start, color=COLORS[name], **style)
                ink = plotting.INK if reduced else LETTERS[name]
                ax.text(start + count / 2, row, str(count), ha="center", va="center", color=ink, fontsize=10)
                start += count
    ax.set_yticks(range(len(found)), [card.title.split(":")[0] for card in found])
    ax.invert_yaxis()
    ax.set_xlabel("claims")
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    one_each = {name: Patch(color=color) for name, color in COLORS.items()}
    one_each["reduced"] = Patch(facecolor="#9a9aa2", hatch="////", edgecolor="white", lw=0)
    figure.legend(one_each.values(), one_each, loc="outside upper center", ncols=3, fontsize=9.5)
    return figure


def save(figure: Figure) -> Figure:
    """Keep the figure where figures are collected; README and front page show it from there."""
    plotting.save_if_asked(figure, "scorecard", "verdicts")
    return figure


def summary(found: Sequence[Card]) -> Markdown:
    """The whole book in two sentences."""
    claims = [claim for card in found for claim in card.claims]
    counts = Counter(claim["outcome"] for claim in claims)
    reduced = sum(claim["reduced"] for claim in claims)
    networks = sum(record["networks"] for card in found for record in card.records)
    hours = sum(record["core_seconds"] for card in found for record in card.records) / 3600
    told = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    return Markdown(
        f"Of {len(claims)} claims in {len(found)} chapters: {told}. {reduced} verdicts rest on trainings at smaller "
        f"settings than the paper's. Behind them are {networks:,} trained networks and {hours:,.0f} core hours."
    )


def overview(found: Sequence[Card]) -> Table:
    """A row for each chapter: verdicts, and the trainings that they rest on."""
    rows = []
    for card in found:
        scales = Counter(record["scale"] for record in card.records)
        rows.append(
            [
                f'<a href="{card.chapter}.html">{html.escape(card.title.split(":")[0])}</a>',
                *(str(card.outcomes[name]) for name in OUTCOMES),
                str(sum(claim["reduced"] for claim in card.claims)),
                " / ".join(str(scales[name]) for name in ("full", "reduced", "missing")),
                f"{sum(record['networks'] for record in card.records):,}",
                f"{sum(record['core_seconds'] for record in card.records) / 3600:.1f}&nbsp;h",
            ]
        )
    head = (
        "Chapter",
        *(name.capitalize() for name in OUTCOMES),
        "…on reduced settings",
        "Full / reduced / missing trainings",
        "Networks",
        "Core time",
    )
    return plain_table(head, rows, "Verdicts and trainings of each chapter", cards=True)


def lists(found: Sequence[Card], listed: Sequence[str]) -> Table:
    """The claims with these verdicts, chapter by chapter, each leading to its place on its page."""
    markup = []
    for card in found:
        rows = []
        for claim in card.claims:
            if claim["outcome"] in listed:
                place = f"{card.chapter}.html#claim-{html.escape(claim['id'], quote=True)}"
                link = f'<a href="{place}">{html.escape(claim["figure"])}</a>'
                verdict = badge(claim["outcome"], reduced=claim["reduced"])
                rows.append([link, html.escape(claim["statement"]), verdict])
        if rows:
            markup.append(plain_table(("Paper", "Claim", "Verdict"), rows, card.title, cards=True).markup)
    return Table("".join(markup) or "<p>None.</p>")
