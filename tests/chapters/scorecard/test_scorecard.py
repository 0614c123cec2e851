"""The scorecard against what chapters say of themselves."""

from __future__ import annotations

import json
import re

import pytest

from grokbook import plotting
from grokbook.book import build as book
from grokbook.book.parameters import BadInput
from grokbook.chapters.scorecard import figures
from grokbook.chapters.scorecard.figures import Card
from grokbook.train import records


def claim(id, outcome, size="full", whose="paper", changed=False):
    said = {"id": id, "figure": f"Fig. {id}", "statement": f"{id} < 2.", "whose": whose, "outcome": outcome}
    return said | {"today": "reproduced", "size": size, "changed": changed}


ONE = Card(
    "one",
    "One: a title",
    [claim("a", "reproduced"), claim("b", "undecided", "smaller"), claim("c", "not tested")],
    [
        {"name": "x", "size": "full", "networks": ["u", "v"], "core_seconds": 3600},
        {"name": "y", "size": "smaller", "networks": ["v", "w"], "core_seconds": 0},
        {"name": "z", "size": "missing", "networks": [], "core_seconds": 0},
    ],
)
TWO = Card(
    "two",
    "Two",
    [claim("d", "not reproduced", changed=True), claim("e", "partly", "fewer seeds", whose="ours")],
    [{"name": "x", "size": "full", "networks": ["u"], "core_seconds": 0}],
)


def test_cards_come_from_the_chapters_that_judge_claims_in_the_order_of_the_book(tmp_path, handed):
    handed(figures=str(tmp_path / "figures"))
    (tmp_path / "_toc.yml").write_text("chapters:\n- file: book/two\n- file: book/none\n- file: book/one\n")
    (tmp_path / "book").mkdir()
    with pytest.raises(FileNotFoundError, match="make figures"):
        figures.cards(tmp_path)
    for card in (ONE, TWO):
        said = {"claims": card.claims, "records": card.records}
        records.write_whole(plotting.folder(card.chapter) / "claims.json", json.dumps(said).encode())
        notebook = {"cells": [{"source": [f"# {card.title}\n", "text"]}]}
        (tmp_path / "book" / f"{card.chapter}.ipynb").write_text(json.dumps(notebook))
    assert figures.cards(tmp_path) == [TWO, ONE]


def test_the_summary_and_the_overview_count_verdicts_and_every_network_once():
    text = figures.summary([ONE, TWO]).text
    assert "Of 4 claims of papers in 2 chapters: 1 reproduced, 1 not reproduced, 1 undecided, 1 not tested." in text
    assert "Of 1 checks of our own: 1 partly. 1 of all rest on fewer seeds" in text and "1 on smaller" in text
    assert "1 criteria were changed" in text and "3 different networks and 1 core hours" in text
    rows = figures.overview([ONE, TWO]).markup.split("<tr>")[2:]
    cells = ["1 + 0", "0 + 0", "0 + 0", "1 + 0", "1 + 0", "1 / 0 / 1", "0", "1 / 0 / 1 / 1", "3", "1.0&nbsp;h"]
    assert re.findall("<td.*?>(.*?)</td>", rows[0]) == cells and 'href="one.html"' in rows[0]


def test_the_bars_are_as_long_as_the_chapters_claims():
    (ax,) = figures.bars([ONE, TWO]).axes
    assert [bar.get_width() for bar in ax.patches] == [1, 1, 1, 1, 1]
    assert [bar.get_hatch() for bar in ax.patches] == [None, "xxxx", None, None, "///"], "hatched by size"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["One", "Two", "our own"]
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) == 3


def test_claims_are_listed_by_verdict_and_lead_to_their_place():
    markup = figures.lists([ONE, TWO], ["not tested", "not reproduced"]).markup
    assert 'href="one.html#claim-c"' in markup and 'href="two.html#claim-d"' in markup
    assert "c &lt; 2." in markup and "claim-a" not in markup and "criterion changed" in markup
    assert ">smaller<" in figures.lists([ONE], ["undecided"]).markup
    assert figures.lists([ONE], ["partly"]).markup == "<p>None.</p>"


def test_every_committed_claim_has_a_place_on_its_page(root):
    for card in figures.cards():
        source = (root / "book" / f"{card.chapter}.ipynb").read_text()
        for one in card.claims:
            assert f'\\"{one["id"]}\\"' in source, f"{card.chapter} shows no claim {one['id']}"


def test_an_unknown_verdict_is_refused():
    with pytest.raises(BadInput, match="listed = 'wrong': choose from reproduced, partly"):
        book.plan("scorecard", {"listed": '["wrong"]'}, book.Settings())
