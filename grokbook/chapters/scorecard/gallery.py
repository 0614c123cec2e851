"""Every figure of the book as a tile, read from the notebooks and from what they said of themselves."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from grokbook import plotting, words
from grokbook.chapters.scorecard.cards import Card, notebook
from grokbook.claims import SIZES
from grokbook.fold import Html, files, stored
from grokbook.train.records import ROOT

NUMBER = re.compile(  # a figure of the paper's, not one of another cell that a caption refers to
    r"(?:paper's |its |(earlier) version's |\()"
    r"(Table \d+|Figs?\.? \d+\w?(?:(?:, \d+)* (?:to|and) \d+|, (?:left|center|right|[a-f])\b)?)"
)
BRACKETS = re.compile(r" \((?:[^()]|\([^()]*\))*Figs?\.? \d[^()]*\)")


def shown(card: Card, cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of a chapter in the order of its page.

    Returns:
        ``id``, ``label`` ("Fig. 4a", or "Beyond" it), ``caption``, ``alt`` and ``place`` (its anchor) of each.
    """
    found = []
    for cell in cells:
        if "page.show(" not in cell["source"]:
            continue
        code = "\n".join(line for line in cell["source"].splitlines() if not line.startswith("%"))
        about = cell["metadata"].get("mystnb", {})
        figure = about.get("figure", {})
        numbers = NUMBER.findall(figure.get("caption", ""))
        said = BRACKETS.sub("", plain(figure.get("caption", ""), card))
        for call in ast.walk(ast.parse(code)):
            if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "page.show"):
                continue
            ids = [*call.args[1:2], *(given.value for given in call.keywords if given.arg == "id")]
            for id in (str(one.value) for one in ids if isinstance(one, ast.Constant)):
                found.append(
                    {
                        "id": id,
                        "label": ", ".join(" ".join(number).strip() for number in numbers) or "Beyond",
                        "caption": re.split(r"(?<!Fig\.)(?<=[\w)]\.) ", said)[0] or cell["metadata"].get("caption", id),
                        "alt": about.get("image", {}).get("alt") or f"Frames of {card.name}, {id}, the last of them.",
                        "place": figure.get("name", f"made-{id}").replace("_", "-"),  # as docutils writes it
                    }
                )
    return found


def plain(caption: str, card: Card) -> str:
    """A caption without roles and formulas' marks."""
    text = re.sub(r"\{glue:(?:text)?\}`([\w-]+)`", lambda name: card.facts.get(name[1], "–"), caption)
    text = re.sub(r"\{numref\}`[\w-]*?-fig(\d+\w?)`", r"Fig. \1", re.sub(r" ?\{eq\}`[^`]*`", "", text))
    text = re.sub(r"\{numref\}`[^`]*`\w?", "another figure", text)
    text = re.sub(r"\\text\{(\w+)\}", r"\1", text).replace("^\\top", "ᵀ").replace("^2", "²").replace("\\eta", "η")
    text = re.sub(r"\^\{\((\d)\)\}", lambda index: "₀₁₂₃"[int(index[1])], text)
    text = re.sub(r"\^\{(-?\d+)\}", lambda power: power[1].translate(words.RAISED), text)
    text = re.sub(r"\*(\S[^*]*)\*", r"\1", text)
    return re.sub(r"\\(?:var)?phi", "φ", text).replace("$", "").replace("\\", "")


def tile(card: Card, one: dict[str, Any], folder: Path) -> str:
    """One figure: picture, number, caption; its files, commands, sizes, seeds and time folded. Empty if not there."""
    id, name = one["id"], card.chapter
    place, said = f"{name}.html#{one['place']}", card.figures.get(id)
    if said is None or not (folder / f"{id}.png").exists():
        return ""
    behind = [record for record in card.records if record["name"] in said["records"]]
    sizes = sorted({record["size"] for record in behind}, key=SIZES.index)
    size = "in part " * (len(sizes) > 1) + sizes[-1] if sizes and sizes[-1] != "full" else ""
    mark = f' <span class="verdict size">{size}</span>' if size else ""
    head = f'<b><a href="{place}">{escape(one["label"])}</a></b>{mark} {words.html(one["caption"])}'
    width, height = struct.unpack(">II", (folder / f"{id}.png").read_bytes()[16:24])
    shape = ' class="tall"' if height > width else ""  # cut off below, where it would be a strip
    image = f'<a href="{place}"><img{shape} src="../{name}/{id}.png" alt="{escape(one["alt"])}"></a>'
    lines = [f"As it is drawn: {files(name, id)}"]
    for record in behind:
        link = stored(name, record["name"], "full") or stored(name, record["name"], "reduced")
        data = f" ({link})" if link else ""
        seeds = f"{record['seeds']} seed{'s' if record['seeds'] != 1 else ''}"
        lines.append(
            f"{escape(record['name'])}{data}: {record['size']}, {len(record['networks'])} networks, {seeds}, "
            f"{words.seconds(record['core_seconds'])} of a core; <code>grokbook train {name}/{record['name']}</code>"
        )
    if len(lines) == 1:
        lines.append("nothing is trained for it")
    lines.append("<code>make figures</code> draws it again")
    fold = "".join(f"<li>{line}</li>" for line in lines)
    return (
        f'<figure class="tile">{image}<figcaption>{head}<details><summary>Files and commands</summary>'
        f"<ul>{fold}</ul></details></figcaption></figure>"
    )


def thumbnail(card: Card) -> Html:
    """The first figure of a chapter that there is."""
    for one in shown(card, notebook(card.chapter)):
        if (plotting.folder(card.chapter) / f"{one['id']}.png").exists():
            image = f'<img src="../{card.chapter}/{one["id"]}.png" alt="{escape(one["alt"])}">'
            return Html(f'<a href="{card.chapter}.html">{image}</a>')
    return Html("")


def bibtex(root: Path = ROOT) -> Html:
    """How to cite the book, from CITATION.cff."""
    import yaml

    about = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    fields = {
        "title": f"{{{about['title']}}}",
        "author": " and ".join(f"{{{one['name']}}}" for one in about["authors"]),
        "version": about["version"],
        "year": about["date-released"].year,
    }
    fields |= {name: about[name] for name in ("url",) if name in about}  # where it is published
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return Html(
        f'<div class="highlight"><pre style="white-space: pre-wrap">@software{{grokbook,\n{lines}}}</pre></div>'
    )


def gallery(card: Card) -> Html:
    """The figures of one chapter by number, then those that its paper does not have."""
    folder = plotting.folder(card.chapter)

    def place(one: dict[str, Any]) -> tuple[int, str]:
        number = re.search(r"\d+", one["label"])
        return int(number[0]) if number else 10_000, one["label"].replace("left", "a")  # before center and right

    found = sorted(shown(card, notebook(card.chapter)), key=place)
    tiles = [tile(card, one, folder) for one in found]
    missing = [
        f'<a href="{card.chapter}.html#{one["place"]}">{escape(one["label"])}</a> {words.html(one["caption"])}'
        for one, made in zip(found, tiles, strict=True)
        if not made
    ]
    rest = f"<p>Not trained yet:</p><ul>{''.join(f'<li>{one}</li>' for one in missing)}</ul>" if missing else ""
    return Html(f'<div class="tiles">{"".join(tiles)}</div>{rest}')
