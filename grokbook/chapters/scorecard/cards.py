"""What each chapter said of itself when its page was made last, and how it is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd  # type: ignore[import-untyped]
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grokbook import page, plotting, register, session
from grokbook.claims import OUTCOMES
from grokbook.fold import Html, badge
from grokbook.train import records
from grokbook.words import number

COLORS = dict(zip(OUTCOMES, ("#1b6e4b", "#8a5a00", "#a3252b", "#9a9aa2", "#dcdce0"), strict=True))  # as in grok.css
SIGNS = {"reproduced": "✓", "partly": "~", "not reproduced": "✗"}
# To a question of ours, of which none fails.
ANSWERS = dict(zip(SIGNS, ("yes", "in part", "no"), strict=True))
OURS = {**COLORS, "reproduced": "#1d5a8c", "partly": "#5585b0", "not reproduced": "#a9c1d9"}
STYLES: dict[str, dict[str, Any]] = {  # of a bar, by the size of what it rests on
    "full": {},
    "fewer seeds": {"alpha": 0.75, "hatch": "///", "edgecolor": "white", "lw": 0},
    "smaller": {"alpha": 0.5, "hatch": "xxxx", "edgecolor": "white", "lw": 0},
}


@dataclass(frozen=True)
class Card:
    """A chapter, in its own words: see ``Page.summary``."""

    chapter: str  #: its name, as in ``book/<chapter>.ipynb``
    title: str  #: the heading of its page
    #: ``id``, ``figure``, ``statement``, ``whose`` it is ("paper" or "ours"), ``outcome`` by the criterion that counts,
    #: ``today`` by today's, ``size``, ``changed``, ``paper``, ``ours``, ``records`` and, of some, ``note``.
    claims: Sequence[dict[str, Any]]
    #: ``name``, ``size`` ("missing" where there is none), ``networks`` (a digest each), ``seeds`` and ``core_seconds``.
    records: Sequence[dict[str, Any]]
    figures: Mapping[str, dict[str, Any]] = field(default_factory=dict)  #: id -> ``records`` and ``claims``, as shown
    facts: Mapping[str, str] = field(default_factory=dict)  #: name -> what the page's prose says

    @property
    def name(self) -> str:
        """The title before its colon."""
        return self.title.split(":")[0]

    def of(self, whose: str) -> list[dict[str, Any]]:
        """The claims of the paper, or the checks of our own."""
        return [claim for claim in self.claims if claim["whose"] == whose]

    def behind(self, names: Sequence[str] | None = None) -> set[str]:
        """The distinct networks of its records, or of those with these names."""
        held = [record for record in self.records if names is None or record["name"] in names]
        return {one for record in held for one in record["networks"]}


def notebook(chapter: str, root: Path = records.ROOT) -> list[dict[str, Any]]:
    """The cells of a chapter as it is written."""
    found = json.loads((root / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in found]


def cards(root: Path = records.ROOT) -> list[Card]:
    """The chapters that judge claims, in the order of the book.

    Raises:
        FileNotFoundError: no chapter has been executed yet.
    """
    found = []
    for chapter in re.findall(r"file: book/(\w+)", (root / "_toc.yml").read_text(encoding="utf-8")):
        said = plotting.folder(chapter) / "claims.json"
        if said.exists():
            title = notebook(chapter, root)[0]["source"].splitlines()[0].lstrip("# ")
            found.append(Card(chapter, title, **json.loads(said.read_text(encoding="utf-8"))))
    if not found:
        raise FileNotFoundError(f"no chapter has left its verdicts in {plotting.folder('')}; run: make figures")
    return found


def facts(found: Sequence[Card]) -> dict[str, str]:
    """Counts over the book, and each chapter's own facts as ``<chapter>_<name>``; glued for the prose as well.

    There every verdict is a badge that leads to its claim, ``<chapter>-<claim>``, too, which says no more than that.
    """
    claims = [claim for card in found for claim in card.claims]
    decided = [claim for claim in claims if claim["outcome"] not in ("undecided", "not tested")]

    def count(some: Sequence[dict[str, Any]], **wanted: object) -> int:
        return sum(all(one[key] == value for key, value in wanted.items()) for one in some)

    registers = {card.chapter: register.load(card.chapter) for card in found}
    counted: dict[str, float] = {
        "chapters": len(found),
        "claims": len(claims),
        "fewer": count(decided, size="fewer seeds"),
        "smaller": count(decided, size="smaller"),
        "changed": count(claims, changed=True),
        "untouched": sum(
            (one["outcome"], one["changed"]) == ("reproduced", False)
            and not register.added_later(registers[card.chapter].get(one["id"], {}))
            for card in found
            for one in card.of("paper")
        ),
        "raised": sum(
            (one["outcome"], one["changed"]) == ("reproduced", True)
            and register.raised(registers[card.chapter].get(one["id"], {}))
            for card in found
            for one in card.of("paper")
        ),
        "decided_full": count(decided, whose="paper", size="full"),
        "networks": len(set().union(*(card.behind() for card in found))),
        "core_hours": round(sum(record["core_seconds"] for card in found for record in card.records) / 3600),
        "records": sum(len(card.records) for card in found),
    }
    for card in found:
        counted[f"full_{card.chapter}"] = sum(one in decided and one["size"] == "full" for one in card.of("paper"))
    for whose in ("paper", "ours"):
        own = [one for one in claims if one["whose"] == whose]
        counted[f"{whose}_claims"] = len(own)
        for outcome in OUTCOMES:
            name = f"{whose}_{outcome}".replace(" ", "_")
            counted[name] = count(own, outcome=outcome)
            counted[f"{name}_full"] = count(own, outcome=outcome, size="full")
        counted[f"{whose}_up"] = sum(one["today"] == "reproduced" != one["outcome"] for one in own)
        counted[f"{whose}_fewer"] = count(decided, whose=whose, size="fewer seeds")
        counted[f"{whose}_smaller"] = count(decided, whose=whose, size="smaller")
    told = {f"{card.chapter}_{name}": text for card in found for name, text in card.facts.items()}
    told |= {name: number(value) if value else "none" for name, value in counted.items()}
    bare = [f"{card.chapter}/{one['name']}" for card in found for one in card.records if one["size"] == "missing"]
    told["missing"] = ", ".join(bare) or "none"
    for name, text in told.items():
        page.glue(name, text)
    for card in found:
        for one in card.claims:
            place = f"{card.chapter}.html#claim-{one['id']}"
            verdict = badge(one["outcome"], whose=one["whose"])
            page.glue(f"{card.chapter}-{one['id']}", Html(f'<a href="{place}">{verdict}</a>'))
    return told


@matplotlib.rc_context(plotting.RC)
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
                colors = COLORS if whose == "paper" else OURS
                ax.barh(row, count, 0.72, left=start, color=colors[name], **style)
                sign = SIGNS.get(name, "") if whose == "paper" else ""
                said = (str(count) if count > (2 if sign else 1) else "") + sign
                if said:
                    dark = size == "full" and name in SIGNS and colors[name] != OURS["not reproduced"]
                    color = "white" if dark else plotting.INK
                    text = ax.text(start + count / 2, row, said, ha="center", va="center", color=color)
                    text.set_fontsize(plotting.SMALL)
                    if size != "full":  # on a ground without hatches
                        text.set_bbox({"facecolor": "white", "alpha": 0.85, "lw": 0, "boxstyle": "round,pad=0.03"})
                start += count
    ax.set_yticks(
        range(len(rows)), ["our own" if whose == "ours" and card.of("paper") else card.name for card, whose in rows]
    )
    ax.invert_yaxis()
    ax.set_xlabel("claims")
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    occur = {one["outcome"] for card in found for one in card.claims}
    one_each = {name: Patch(color=color) for name, color in COLORS.items() if name in occur}
    one_each |= {f"ours: {answer}": Patch(color=OURS[name]) for name, answer in ANSWERS.items()}
    one_each |= {size: Patch(facecolor="#9a9aa2", **style) for size, style in STYLES.items() if style}
    figure.legend(one_each.values(), one_each, loc="outside upper center", ncols=4, columnspacing=1, handletextpad=0.5)
    return figure


def save(found: Sequence[Card]) -> Html:
    """Keep figure and claims (CSV, JSON) where figures are collected, and link the two tables."""
    place = plotting.folder("scorecard")
    rows = [
        {"chapter": card.chapter, **one, "networks": len(card.behind(one["records"]))}
        for card in found for one in card.claims
    ]  # fmt: skip
    for row in rows:
        row["records"] = " ".join(row["records"])
    if session.current().figures:
        table = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
        plotting.save(bars(found), "scorecard", "verdicts")
        records.write_whole(place / "scorecard.csv", table.encode())
        records.write_whole(place / "scorecard.json", (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode())
    links = [f'<a href="../scorecard/scorecard.{kind}" download>{kind.upper()}</a>' for kind in ("csv", "json")]
    return Html(f"<p>All of it as {' or '.join(links)}.</p>")
