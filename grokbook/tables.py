"""HTML tables of cells and Markdown text, for pages that are made of what others left."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass


class Markdown:
    """Text that notebooks and pages render as Markdown."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_markdown_(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """An HTML table; notebooks and pages show it as it is."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup


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
