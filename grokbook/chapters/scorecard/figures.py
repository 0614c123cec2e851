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
from grokbook.firstform.claims import OUTCOMES, Markdown, Table, badge, plain_table, tally
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
        claims: ``id``, ``figure``, ``statement``, ``whose`` it is ("paper" or "ours"), ``outcome`` (by the criterion
            that counts), ``today`` (by today's), ``reduced`` and ``changed`` of each.
        records: ``name``, ``scale``, ``networks`` and ``core_seconds`` of each, scale "missing" where there is none.
    """

    chapter: str
    title: str
    claims: Sequence[dict[str, Any]]
    records: Sequence[dict[str, Any]]

    def of(self, whose: str) -> list[dict[str, Any]]:
        """The claims of the paper, or the checks of our own."""
        return [claim for claim in self.claims if claim["whose"] == whose]


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
    """Two bars for each chapter, the paper's claims and our own checks, one unit a claim, divided by verdict."""
    rows = [(card, whose) for card in found for whose in ("paper", "ours") if card.of(whose)]
    figure, ((ax,),) = plotting.panels(1, 1, height=1.1 + 0.38 * len(rows))
    for row, (card, whose) in enumerate(rows):
        start = 0
        for name in OUTCOMES:
            for reduced in (False, True):
                count = sum(one["outcome"] == name and one["reduced"] == reduced for one in card.of(whose))
                if not count:
                    continue
                style = {"alpha": 0.55, "hatch": "////", "edgecolor": "white", "lw": 0} if reduced else {}
                ax.barh(row, count, 0.72, left=start, color=COLORS[name], **style)
                ink = plotting.INK if reduced else LETTERS[name]
                ax.text(start + count / 2, row, str(count), ha="center", va="center", color=ink, fontsize=10)
                start += count
    ax.set_yticks(
        range(len(rows)), [card.title.split(":")[0] if whose == "paper" else "our own" for card, whose in rows]
    )
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
    """The whole book in a few sentences."""
    claims = [claim for card in found for claim in card.claims]
    reduced, changed = (sum(claim[mark] for claim in claims) for mark in ("reduced", "changed"))
    networks = sum(record["networks"] for card in found for record in card.records)
    hours = sum(record["core_seconds"] for card in found for record in card.records) / 3600
    papers, own = ([one["outcome"] for card in found for one in card.of(whose)] for whose in ("paper", "ours"))
    return Markdown(
        f"Of {len(papers)} claims of papers in {len(found)} chapters: {tally(papers)}. Of {len(own)} checks of our "
        f"own: {tally(own)}. {reduced} verdicts rest on trainings at smaller settings than the paper's. {changed} "
        "criteria were changed after a record existed; where no error in the earlier one forced that, the earlier one "
        f"counts. Behind the verdicts are {networks:,} trained networks and {hours:,.0f} core hours."
    )


def overview(found: Sequence[Card]) -> Table:
    """A row for each chapter: verdicts, and the trainings that they rest on."""
    rows = []
    for card in found:
        scales = Counter(record["scale"] for record in card.records)
        papers, own = (Counter(one["outcome"] for one in card.of(whose)) for whose in ("paper", "ours"))
        rows.append(
            [
                f'<a href="{card.chapter}.html">{html.escape(card.title.split(":")[0])}</a>',
                *(f"{papers[name]} + {own[name]}" for name in OUTCOMES),
                *(str(sum(claim[mark] for claim in card.claims)) for mark in ("reduced", "changed")),
                " / ".join(str(scales[name]) for name in ("full", "reduced", "missing")),
                f"{sum(record['networks'] for record in card.records):,}",
                f"{sum(record['core_seconds'] for record in card.records) / 3600:.1f}&nbsp;h",
            ]
        )
    head = (
        "Chapter",
        *(name.capitalize() for name in OUTCOMES),
        "…on reduced settings",
        "…with a changed criterion",
        "Full / reduced / missing trainings",
        "Networks",
        "Core time",
    )
    return plain_table(
        head, rows, "Verdicts on the paper's claims + on our own, and trainings, of each chapter", cards=True
    )


def lists(found: Sequence[Card], listed: Sequence[str]) -> Table:
    """The claims with these verdicts, chapter by chapter, each leading to its place on its page."""
    markup = []
    for card in found:
        rows = []
        for claim in card.claims:
            if claim["outcome"] in listed:
                place = f"{card.chapter}.html#claim-{html.escape(claim['id'], quote=True)}"
                link = f'<a href="{place}">{html.escape(claim["figure"])}</a>'
                verdict = badge(claim["outcome"], reduced=claim["reduced"], changed=claim["changed"])
                rows.append([link, html.escape(claim["statement"]), verdict])
        if rows:
            markup.append(plain_table(("Paper", "Claim", "Verdict"), rows, card.title, cards=True).markup)
    return Table("".join(markup) or "<p>None.</p>")
