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
from grokbook.claims import OUTCOMES, SIZES
from grokbook.firstform.claims import Markdown, Table, plain_table, tally
from grokbook.fold import badge
from grokbook.plotting import styled
from grokbook.train import records

COLORS = dict(zip(OUTCOMES, (plotting.GREEN, plotting.YELLOW, plotting.RED, "#9a9aa2", "#dcdce0"), strict=True))
LETTERS = dict(zip(OUTCOMES, ("white", plotting.INK, "white", plotting.INK, plotting.INK), strict=True))
STYLES: dict[str, dict[str, Any]] = {  # of a bar, by the size of what it rests on
    "full": {},
    "fewer seeds": {"alpha": 0.75, "hatch": "///", "edgecolor": "white", "lw": 0},
    "smaller": {"alpha": 0.5, "hatch": "xxxx", "edgecolor": "white", "lw": 0},
}


@dataclass(frozen=True)
class Card:
    """What one chapter's page said when it was made last: see ``Page.summary``.

    Args:
        chapter: its name, as in ``book/<chapter>.ipynb``.
        title: the heading of its page.
        claims: ``id``, ``figure``, ``statement``, ``whose`` it is ("paper" or "ours"), ``outcome`` (by the criterion
            that counts), ``today`` (by today's), ``size``, ``changed``, ``paper`` and ``ours`` of each.
        records: ``name``, ``size``, ``networks`` (a digest each) and ``core_seconds`` of each, size "missing" where
            there is none.
    """

    chapter: str
    title: str
    claims: Sequence[dict[str, Any]]
    records: Sequence[dict[str, Any]]

    def of(self, whose: str) -> list[dict[str, Any]]:
        """The claims of the paper, or the checks of our own."""
        return [claim for claim in self.claims if claim["whose"] == whose]

    @property
    def networks(self) -> set[str]:
        """The distinct ones behind its records."""
        return {one for record in self.records for one in record["networks"]}


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
            for size, style in STYLES.items():
                count = sum((one["outcome"], one["size"]) == (name, size) for one in card.of(whose))
                if not count:
                    continue
                ax.barh(row, count, 0.72, left=start, color=COLORS[name], **style)
                ink = LETTERS[name] if size == "full" else plotting.INK
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
    one_each |= {size: Patch(facecolor="#9a9aa2", **style) for size, style in STYLES.items() if style}
    figure.legend(one_each.values(), one_each, loc="outside upper center", ncols=4, fontsize=9.5)
    return figure


def save(figure: Figure) -> Figure:
    """Keep the figure where figures are collected; README and front page show it from there."""
    plotting.save_if_asked(figure, "scorecard", "verdicts")
    return figure


def summary(found: Sequence[Card]) -> Markdown:
    """The whole book in a few sentences."""
    claims = [claim for card in found for claim in card.claims]
    fewer, smaller = (sum(claim["size"] == size for claim in claims) for size in ("fewer seeds", "smaller"))
    networks = set().union(*(card.networks for card in found))
    hours = sum(record["core_seconds"] for card in found for record in card.records) / 3600
    papers, own = ([one["outcome"] for card in found for one in card.of(whose)] for whose in ("paper", "ours"))
    return Markdown(
        f"Of {len(papers)} claims of papers in {len(found)} chapters: {tally(papers)}. Of {len(own)} checks of our "
        f"own: {tally(own)}. {fewer} of all rest on fewer seeds than wanted, {smaller} on smaller trainings. "
        f"{sum(claim['changed'] for claim in claims)} "
        "criteria were changed after a record existed; where no error in the earlier one forced that, the earlier one "
        f"counts. Behind the verdicts are {len(networks):,} different networks and {hours:,.0f} core hours."
    )


def overview(found: Sequence[Card]) -> Table:
    """A row for each chapter: verdicts, and the trainings that they rest on."""
    rows = []
    for card in found:
        papers, own = (Counter(one["outcome"] for one in card.of(whose)) for whose in ("paper", "ours"))
        decided = Counter(one["size"] for one in card.claims if one["outcome"] != "not tested")
        sizes = Counter(record["size"] for record in card.records)
        rows.append(
            [
                f'<a href="{card.chapter}.html">{html.escape(card.title.split(":")[0])}</a>',
                *(f"{papers[name]} + {own[name]}" for name in OUTCOMES),
                " / ".join(str(decided[size]) for size in SIZES),
                str(sum(claim["changed"] for claim in card.claims)),
                " / ".join(str(sizes[size]) for size in (*SIZES, "missing")),
                f"{len(card.networks):,}",
                f"{sum(record['core_seconds'] for record in card.records) / 3600:.1f}&nbsp;h",
            ]
        )
    head = (
        "Chapter",
        *(name.capitalize() for name in OUTCOMES),
        "Verdicts on full / fewer seeds / smaller",
        "Changed criteria",
        "Records full / fewer seeds / smaller / missing",
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
                verdict = badge(claim["outcome"], claim["size"], changed=claim["changed"])
                rows.append([link, html.escape(claim["statement"]), verdict])
        if rows:
            markup.append(plain_table(("Paper", "Claim", "Verdict"), rows, card.title, cards=True).markup)
    return Table("".join(markup) or "<p>None.</p>")
