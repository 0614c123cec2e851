"""Claims: what a paper says, the criterion that decides it, and the verdict that a record gives.

A criterion is to be written before the training is run; ``grokbook.register`` keeps what was changed or added after.
Its check is a pure function of records.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook import register
from grokbook.claims import OUTCOMES as OUTCOMES
from grokbook.claims import decided, smallest
from grokbook.fold import badge
from grokbook.words import number as number
from grokbook.words import percent as percent

Records = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Verdict:
    """What a record says about a claim.

    Args:
        outcome: one of ``OUTCOMES``.
        ours: what we saw, as text made of numbers.
        n: how many seeds (or draws) it rests on.
        median, low, high: of the deciding quantity over those seeds, where there is one.
        of: what that quantity is, as a word or two.
        note: what else a reader must know.
        size: of the smallest record that it rests on.
    """

    outcome: str
    ours: str = ""
    n: int | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    of: str = ""
    note: str = ""
    size: str = "full"

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome = {self.outcome!r}: choose one of {', '.join(OUTCOMES)}")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that a record can decide.

    Args:
        id: short name, unique in its chapter.
        figure: the paper's figure or section, as a reader would say it ("Fig. 1a").
        statement: what the paper says, in our words.
        paper: the paper's value, or the value expected from an independent computation.
        criterion: what must hold, as text.
        needs: names of the records that the check reads.
        check: records -> verdict.
    """

    id: str
    figure: str
    statement: str
    paper: str
    criterion: str
    needs: tuple[str, ...]
    check: Callable[[Records], Verdict]

    def judge(self, records: Records, *, train: Callable[[str], str] | None = None) -> Verdict:
        """The verdict; "not tested" where a record is missing, "undecided" where it fails on a smaller one.

        Args:
            records: name -> record, of those that are at hand.
            train: name of a missing record -> the command that makes it.
        """
        missing = [name for name in self.needs if name not in records]
        if missing:
            command = "; ".join(train(name) for name in missing) if train else ""
            return Verdict(
                "not tested", note=f"to train it: {command}" if command else f"no record of {', '.join(missing)}"
            )
        verdict = self.check(records)
        size = smallest([verdict.size, *(records[name].attrs.get("size", "full") for name in self.needs)])
        return replace(verdict, outcome=decided(verdict.outcome, size), size=size)


Check = Callable[[Records], Verdict]


def entering(claims: list[Claim]) -> Callable[..., Callable[[Check], Check]]:
    """The decorator with which a chapter enters its checks into ``claims``, in the order in which they are written."""

    def claim(
        id: str, figure: str, statement: str, *, expected: str, criterion: str, needs: tuple[str, ...] = ()
    ) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            claims.append(Claim(id, figure, statement, expected, criterion, needs, check))
            return check

        return register

    return claim


def spread(values: ArrayLike) -> dict[str, Any]:
    """``n``, ``median``, ``low`` and ``high`` of the finite values, as keywords of ``Verdict``."""
    known = np.asarray(values, float).ravel()
    known = known[np.isfinite(known)]
    if not len(known):
        return {"n": 0}
    return {
        "n": len(known),
        "median": float(np.median(known)),
        "low": float(known.min()),
        "high": float(known.max()),
    }


def outcome(*parts: bool) -> str:
    """ "reproduced" if every part of a criterion holds, "partly" if some do, else "not reproduced"."""
    held = [bool(part) for part in parts]
    return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"


class Markdown:
    """Text that notebooks and pages render as Markdown."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_markdown_(self) -> str:
        return self.text


@dataclass(frozen=True)
class Sentence:
    """Text made from records.

    Args:
        write: records -> text.
        needs: names of the records and studies it reads.
    """

    write: Callable[[Records], str]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """An HTML table of claims and verdicts; notebooks and pages show it as it is."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup


def history(entry: register.Entry, size: str) -> str:
    """What became of a criterion after its record existed, as small print in HTML; nothing where nothing did.

    Args:
        entry: of the claim in the register.
        size: of today's record.
    """
    first, *_ = entry["versions"]
    lines = [f"Added {first['date']}, after the record."] if first.get("added_later") else []
    for version in register.changes(entry):
        why = f"as the earlier was in error: {version['why']}" if version["forced"] else version["why"]
        lines.append(f"Changed {version['date']}, after the record: {why}.")
    if register.changed(entry):
        counts, how = (", which counts", f" ({entry['counted_how']})") if "counted" in entry else ("", "")
        lines.append(f"By the earlier one{counts}: {register.earlier(entry, size)}{how}.")
    return "".join(f"<br><small>{html.escape(line)}</small>" for line in lines)


def table(
    claims: Sequence[Claim],
    verdicts: Mapping[str, Verdict],
    caption: str,
    entries: Mapping[str, register.Entry] | None = None,
) -> Table:
    """Claims with the paper's value beside ours.

    On a narrow page each row becomes a card, else the table scrolls in its own box; it can be reached by keyboard, and
    says in its header cells what rows and columns are.

    Args:
        claims: in the order of the rows.
        verdicts: id -> verdict.
        caption: what the rows have in common.
        entries: id -> what the register says of a claim.
    """
    text = html.escape
    rows = []
    for claim in claims:
        verdict, entry = verdicts[claim.id], (entries or {}).get(claim.id)
        mark = badge(verdict.outcome, verdict.size, changed=bool(entry and register.changed(entry)))
        over = ""
        if verdict.n:
            over = f"n = {verdict.n}"
            if verdict.median is not None:
                over += f"; {verdict.of or 'value'}: median {number(verdict.median)}"
                if verdict.n > 1:
                    over += f", range {number(verdict.low)} to {number(verdict.high)}"
        ours = "<br>".join(text(part) for part in (verdict.ours, over, verdict.note) if part) or "–"
        rows.append(
            f'<tr id="claim-{text(claim.id)}"><th scope="row">{text(claim.figure)}</th>'
            f"<td>{text(claim.statement)}<br><small>Criterion: {text(claim.criterion)}</small>"
            f"{history(entry, verdict.size) if entry else ''}</td>"
            f'<td data-label="Expected">{text(claim.paper)}</td><td data-label="Ours">{ours}</td>'
            f"<td>{mark}</td></tr>"
        )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Paper", "Claim and criterion", "Expected", "Ours", "Verdict")
    )
    return Table(_box(caption, f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>", "verdicts cards"))


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, *, cards: bool = False) -> Table:
    """A table of cells that are HTML already, with the same caption, header cells and scrolling box.

    Args:
        head: name of each column.
        rows: one cell a column; the first names its row.
        caption: what the rows have in common.
        cards: whether each row becomes a card on a narrow page, as a table of sentences should.
    """
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    labels = [html.escape(re.sub("<.*?>", "", name), quote=True) for name in head[1:]]
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(f'<td data-label="{label}">{cell}</td>' for label, cell in zip(labels, rest, strict=True))
        + "</tr>"
        for first, *rest in rows
    )
    content = f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody>"
    return Table(_box(caption, content, "verdicts cards" if cards else "verdicts"))


def _box(caption: str, content: str, css: str = "verdicts") -> str:
    return (
        f'<div class="{css}" role="region" tabindex="0" aria-label="{html.escape(caption, quote=True)}">'
        f"<table><caption>{html.escape(caption)}</caption>{content}</table></div>"
    )


def tally(outcomes: Sequence[str]) -> str:
    """How often each outcome occurs, in words and in the order of ``OUTCOMES``."""
    return ", ".join(f"{outcomes.count(name)} {name}" for name in OUTCOMES if name in outcomes) or "none"
