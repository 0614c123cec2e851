"""Front page, scorecard and gallery against what chapters say of themselves."""

from __future__ import annotations

import json
import re

import pytest
import yaml

import grokbook
from grokbook import fold, page, plotting
from grokbook.chapters.scorecard import cards, gallery, tables
from grokbook.chapters.scorecard.cards import Card
from grokbook.claims import Verdict
from grokbook.train import records


def claim(id, outcome, size="full", whose="paper", changed=False):
    said = {"id": id, "figure": f"Fig. {id}", "statement": f"{id} < 2.", "whose": whose, "outcome": outcome}
    said |= {"today": "reproduced", "size": size, "changed": changed, "paper": "1", "ours": "1.5"}
    return said | {"records": ["x"]}


HAIR = {"note": "by a hair"}  # what a reader must know beside a verdict
ONE = Card(
    "one",
    "One: a title",
    [claim("a", "reproduced"), claim("b", "undecided", "smaller"), claim("c", "not tested")],
    [
        {"name": "x", "size": "full", "networks": ["u", "v"], "core_seconds": 3600, "seeds": 2},
        {"name": "y", "size": "smaller", "networks": ["v", "w"], "core_seconds": 0, "seeds": 0},
        {"name": "z", "size": "missing", "networks": [], "core_seconds": 0, "seeds": 0},
    ],
    facts={"delay": "1.2"},
)
TWO = Card(
    "two",
    "Two",
    [claim("d", "not reproduced", changed=True), claim("e", "partly", "fewer seeds", whose="ours") | HAIR],
    [{"name": "x", "size": "full", "networks": ["u"], "core_seconds": 0, "seeds": 0}],
)


def test_cards_come_from_the_chapters_that_judge_claims_in_the_order_of_the_book(tmp_path, handed):
    handed(figures=str(tmp_path / "figures"))
    (tmp_path / "_toc.yml").write_text("chapters:\n- file: book/two\n- file: book/none\n- file: book/one\n")
    (tmp_path / "book").mkdir()
    with pytest.raises(FileNotFoundError, match="make figures"):
        cards.cards(tmp_path)
    for card in (ONE, TWO):
        said = {"claims": card.claims, "records": card.records, "facts": card.facts}
        records.write_whole(plotting.folder(card.chapter) / "claims.json", json.dumps(said).encode())
        notebook = {"cells": [{"source": [f"# {card.title}\n", "text"]}]}
        (tmp_path / "book" / f"{card.chapter}.ipynb").write_text(json.dumps(notebook))
    assert cards.cards(tmp_path) == [TWO, ONE]


def test_counts_are_by_paper_and_outcome_and_every_network_counts_once(monkeypatch):
    glued = {}
    monkeypatch.setattr(page, "glue", glued.__setitem__)
    facts = cards.facts([ONE, TWO])
    assert glued.keys() > facts.keys() and glued["one-a"].markup.startswith('<a href="one.html#claim-a">')
    assert (facts["paper_claims"], facts["ours_claims"], facts["networks"], facts["core_hours"]) == ("4", "1", "3", "1")
    assert (facts["one_delay"], facts["paper_reproduced"], facts["paper_reproduced_full"]) == ("1.2", "1", "1")
    assert (facts["missing"], facts["records"], facts["smaller"], facts["fewer"]) == ("one/z", "4", "none", "1"), (
        "what is decided"
    )
    assert (facts["paper_fewer"], facts["ours_fewer"], facts["paper_up"]) == ("none", "1", "3")
    assert facts["raised"] == "none"
    changed = {"versions": [{"verdict": "partly"}, {}]}
    monkeypatch.setattr(cards.register, "load", lambda chapter: {"a": changed, "d": changed})
    was = [claim("a", "reproduced", changed=True), claim("d", "partly", changed=True), claim("f", "reproduced")]
    assert cards.facts([Card("one", "One", was, [])])["raised"] == "1"


def test_the_overview_has_a_row_a_paper_and_one_for_our_own_checks_by_size():
    rows = tables.overview([ONE, TWO]).markup.split("<tr")[2:]
    assert [re.findall('scope="row">(?:<a.*?>)?(.*?)<', row)[0] for row in rows] == ["One", "Two", "our own"]
    assert re.findall("<td.*?>(?:<.*?</span>)?(.*?)(?:</span>)?</td>", rows[0]) == ["1", "", "1", "1"], (
        "no column where no claim is"
    )


def test_a_strip_says_how_many_verdicts_are_at_full_size_and_is_paler_elsewhere():
    markup = tables.strip(ONE).markup
    assert "1 reproduced, 1 undecided, 1 not tested. At full size 1 of 1 reproduced." in markup
    assert re.findall('<i class="(.*?)"', markup) == ["reproduced", "undecided less", "not-tested"]
    small = Card("three", "Three", [claim("f", "reproduced", "smaller")], [])
    assert "None at full size." in tables.strip(small).markup


def test_the_bars_are_as_long_as_the_chapters_claims():
    (ax,) = cards.bars([ONE, TWO]).axes
    assert [bar.get_width() for bar in ax.patches] == [1, 1, 1, 1, 1]
    assert [bar.get_hatch() for bar in ax.patches] == [None, "xxxx", None, None, "///"], "hatched by size"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["One", "Two", "our own"]
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) == 3


def test_claims_that_fail_come_first_and_lead_to_their_place():
    markup = tables.claims([ONE, TWO]).markup
    assert re.findall('<tr id="(.*?)"', markup) == ["two-d", "two-e", "one-b", "one-c", "one-a"]
    assert 'href="one.html#claim-c"' in markup and "c &lt; 2.<small>1 → 1.5</small>" in markup
    assert 'data-outcome="not reproduced"' in markup and 'data-changed="changed"' in markup
    assert "1 → 1.5 · by a hair</small>" in markup
    assert "holds in part</span>" in markup and "criterion changed; today: holds<" in markup, "a question of ours"


def test_all_claims_are_kept_as_csv_and_json(tmp_path, handed):
    handed(figures=str(tmp_path))
    cards.save([ONE, TWO])
    rows = json.loads((tmp_path / "scorecard" / "scorecard.json").read_text())
    assert [row["id"] for row in rows] == list("abcde") and rows[0]["networks"] == 2
    assert len((tmp_path / "scorecard" / "scorecard.csv").read_text().splitlines()) == 6


def test_the_gallery_has_every_figure_by_number_and_lists_what_is_not_trained(tmp_path, handed, monkeypatch):
    handed(figures=str(tmp_path))
    for file in ("late.png", "fig10.png", "fig2.png", "fig2.csv"):
        records.write_whole(tmp_path / "one" / file, b"\x89PNG\r\n\x1a\n" + bytes(8) + bytes([0, 0, 0, 4] * 2))
    told = {id: {"records": ["x"], "claims": []} for id in ("late", "fig10")} | {"fig2": {"records": ["x", "y"]}}
    cells = [
        {"source": f'%matplotlib inline\npage.show(frames(a, description="x"), {given}"{id}")', "metadata": about}
        for given, id, about in (
            ("", "late", {}),
            (
                "id=",
                "fig10",
                {"mystnb": {"figure": {"caption": "{glue:text}`n` (the paper's Fig. 10). More.", "name": "f"}}},
            ),
            (
                "",
                "fig2",
                {"mystnb": {"figure": {"caption": "Two (the paper's Fig. 2) and more (Fig. 4).", "name": "g"}}},
            ),
            ("", "fig3", {"mystnb": {"figure": {"caption": "Three (the paper's Fig. 3).", "name": "h"}}}),
        )
    ]
    monkeypatch.setattr(gallery, "notebook", lambda chapter: cells)
    markup = gallery.gallery(Card("one", "One", ONE.claims, ONE.records, told, {"n": "seven"})).markup
    assert re.findall('<b><a href="(.*?)">', markup) == ["one.html#g", "one.html#f", "one.html#made-late"]
    assert "Fig. 2, Fig. 4" in markup and markup.count('<span class="verdict size">in part smaller<') == 1
    assert "seven.<" in markup and "60 min of a core" in markup and "2 networks, 2 seeds" in markup
    assert 'href="../one/fig2.csv"' in markup and "late.csv" not in markup and '"one.html#h">Fig. 3' in markup


def test_the_book_is_cited_as_its_citation_file_says(root):
    assert "@software{grokbook" in gallery.bibtex(root).markup and "year = {20" in gallery.bibtex(root).markup
    about = yaml.safe_load((root / "CITATION.cff").read_text())
    assert about["version"] == grokbook.__version__
    assert f"## {about['version']} ({about['date-released']})" in (root / "CHANGELOG.md").read_text()


def test_every_committed_claim_has_a_place_on_its_page(root):
    for card in cards.cards():
        source = (root / "book" / f"{card.chapter}.ipynb").read_text()
        for one in card.claims:
            assert f'\\"{one["id"]}\\"' in source, f"{card.chapter} shows no claim {one['id']}"


def test_a_record_is_linked_below_its_figures_where_it_is_committed_and_not_from_a_page_of_other_settings():
    from grokbook.chapters.power import CHAPTER

    home, away = (page.Page(CHAPTER, CHAPTER.settings(**given)) for given in ({}, {"seeds": 4}))
    assert 'href="../power/with_decay.nc"' in fold.below(home, "x", ["with_decay"], "")
    away._found["with_decay"] = home["with_decay"]
    told = fold.below(away, "x", ["with_decay"], "")
    assert "NetCDF" not in told and "grokbook train" not in told
    assert "<code>make chapter CHAPTER=power PARAMS=&quot;seeds=4&quot;</code> draws it again" in told


def test_a_row_says_how_an_earlier_criterion_counted_and_what_to_know_beside_it_where_that_was_seen():
    from grokbook.chapters.gromov import CHAPTER

    home, away = (page.Page(CHAPTER, CHAPTER.settings(**given)) for given in ({}, {"p": 59}))
    found = Verdict("reproduced")
    for id, words in (("fig13", "By the criterion before, too"), ("fig4a-ii", "By a hair")):
        assert words in fold.claim_row(home, CHAPTER.claims[id], found, found)
        assert words not in fold.claim_row(away, CHAPTER.claims[id], found, found)
