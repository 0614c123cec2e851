"""The scorecard's two tables and the bars of verdicts, as HTML that works without a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from grokbook import words
from grokbook.chapters.scorecard.cards import ANSWERS, SIGNS, Card
from grokbook.claims import OUTCOMES, SIZES
from grokbook.fold import Html, badge, word

ORDER = ("not reproduced", "partly", "undecided", "not tested", "reproduced")  # what fails comes first
GROUPS = (*SIZES, "undecided", "not tested")


def strip(card: Card) -> Html:
    """A bar of the verdicts on a paper, one unit a claim, paler where not at its full size; both are said."""
    found = Counter((one["outcome"], one["size"] == "full") for one in card.of("paper"))
    counts = {name: found[name, True] + found[name, False] for name in OUTCOMES}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    full, good = sum(found[name, True] for name in SIGNS), found["reproduced", True]
    size = f"At full size {good} of {full} reproduced" if full else "None at full size"
    parts = [
        f'<i class="{name.replace(" ", "-")}{" less" * (not whole)}" style="flex:{found[name, whole]}"></i>'
        for name in OUTCOMES for whole in (True, False) if found[name, whole]
    ]  # fmt: skip
    bar = f'<span class="strip" role="img" aria-label="Claims of the paper: {said}">{"".join(parts)}</span>'
    return Html(f"{bar}<small>{said}. {size}.</small>")


def sizes(card: Card, whose: str) -> dict[str, Counter[str]]:
    """Decided claims by size and outcome, and apart from them the undecided and those that were not tested."""
    groups: dict[str, Counter[str]] = {}
    for one in card.of(whose):
        group = one["outcome"] if one["outcome"] in ("undecided", "not tested") else one["size"]
        groups.setdefault(group, Counter())[one["outcome"]] += 1
    return groups


def _mark(outcome: str, whose: str, count: int) -> str:
    sign = f'<span aria-hidden="true">{SIGNS.get(outcome, "")} </span>{count}'
    if whose == "ours":
        sign = f"{count} {ANSWERS.get(outcome, '')}"
    return f'<span class="verdict {outcome.replace(" ", "-")} {whose}" title="{word(outcome, whose)}">{sign}</span>'


def overview(found: Sequence[Card]) -> Html:
    """A row for each paper, and one for our own checks of it: verdicts by the size of what they rest on."""
    rows = []
    there = {group for card in found for whose in ("paper", "ours") for group in sizes(card, whose)}
    shown = [group for group in GROUPS if group in there]
    for card in found:
        for whose in ("paper", "ours"):
            if not (groups := sizes(card, whose)):
                continue
            name = f'<a href="{card.chapter}.html">{escape(card.name)}</a>'
            if whose == "ours":
                name = "our own" if card.of("paper") else f"{name}, our own"
            cells = []
            for group in shown:
                counts = groups.get(group, Counter())
                text = " ".join(_mark(one, whose, counts[one]) for one in OUTCOMES if counts[one])
                if group in ("undecided", "not tested"):
                    text = str(counts[group] or "")
                cells.append(f'<td data-label="{group}">{text}</td>' if text else "<td></td>")
            rows.append(f'<tr class="{whose}"><th scope="row">{name}</th>{"".join(cells)}</tr>')
    head = "".join(f'<th scope="col">{name.capitalize()}</th>' for name in ("chapter", *shown))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return Html(f'<div class="verdicts cards overview">{table}</div>')


def _option(value: str) -> str:
    said = " / ".join(dict.fromkeys(word(value, whose) for whose in ("paper", "ours"))) if value in ORDER else value
    return f'<option value="{escape(value)}">{escape(said)}</option>'


def claims(found: Sequence[Card]) -> Html:
    """Every claim, those that fail first, with fields that filter, search and sort them in the page (grok.js)."""
    rows = []
    for card in found:
        for one in card.claims:
            numbers = " → ".join(filter(None, (one["paper"], one["ours"])))
            evidence = words.html(" · ".join(filter(None, (numbers, one.get("note")))))
            n, rank = len(card.behind(one["records"])), ORDER.index(one["outcome"])
            facets = {
                "chapter": card.name,
                "outcome": one["outcome"],
                "size": one["size"],
                "changed": "changed" if one["changed"] else "unchanged",
                "whose": "of the paper" if one["whose"] == "paper" else "our own",
            }
            data = "".join(f' data-{key}="{escape(value)}"' for key, value in facets.items())
            place = f"{card.chapter}.html#claim-{escape(one['id'], quote=True)}"
            whose = "" if one["whose"] == "paper" else "Our own. "
            name = card.name if one["figure"] == card.name.lower() else f"{card.name}, {one['figure']}"
            how = {key: one[key] for key in ("whose", "changed", "today")}
            verdict = badge(one["outcome"], one["size"], **how)
            cells = (
                f'<th scope="row"><a href="{place}">{escape(name)}</a></th>'
                f"<td>{whose}{words.html(one['statement'])}<small>{evidence}</small></td>"
                f'<td data-label="Networks" data-sort="{n:06d}">{n or "–"}</td>'
                f'<td data-sort="{rank}">{verdict}</td>'
            )
            rows.append((rank, f'<tr id="{card.chapter}-{escape(one["id"])}"{data}>{cells}</tr>'))
    rows.sort(key=lambda row: row[0])
    choices = {
        "chapter": [card.name for card in found],
        "whose": ["of the paper", "our own"],
        "outcome": [name for name in ORDER if any(one["outcome"] == name for card in found for one in card.claims)],
        "size": list(SIZES),
        "changed": ["changed", "unchanged"],
    }
    titles = {"chapter": "Chapter", "whose": "Claims", "outcome": "Verdict", "size": "Size", "changed": "Criterion"}
    fields = "".join(
        f'<label>{titles[key]} <select data-key="{key}"><option value="">all</option>'
        f"{''.join(_option(value) for value in values)}</select></label>"
        for key, values in choices.items()
    )
    search = '<label>Search <input type="search"></label><output aria-live="polite"></output>'
    names = ("Figure", "Claim, and paper → ours", "Networks", "Verdict")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(row for _, row in rows)}</tbody></table>"
    return Html(f'<div class="verdicts cards grok-table"><p class="fields" hidden>{fields}{search}</p>{table}</div>')
