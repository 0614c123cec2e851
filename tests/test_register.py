"""The register of criteria: no claim without an entry, no change without a reason, no count without a cause."""

from __future__ import annotations

import importlib
import json
from datetime import date

import pytest

from grokbook import register
from grokbook.claims import OUTCOMES, decided
from grokbook.train import records

FIRST = (records.ROOT / "grokbook" / "chapters").glob("*/claims.py")  # the chapters in their first form
CHAPTERS = sorted(file.parent.name for file in FIRST)
TODAY = json.loads((records.ROOT / "tests" / "guard" / "verdicts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_claim_is_registered_with_todays_criterion_in_the_order_of_the_chapter(chapter):
    claims = importlib.import_module(f"grokbook.chapters.{chapter}.claims").CLAIMS
    stand = {id: entry for id, entry in register.load(chapter).items() if "withdrawn" not in entry}
    last = {id: entry["versions"][-1]["criterion"] for id, entry in stand.items()}
    assert list(last.items()) == [(claim.id, claim.criterion) for claim in claims]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_entry_says_when_why_and_after_which_record_a_criterion_was_written(chapter):
    for id, entry in register.load(chapter).items():
        versions, late = entry["versions"], register.changes(entry)
        dates = [date.fromisoformat(version["date"]) for version in versions]
        assert dates == sorted(dates), id
        assert entry["whose"] in ("paper", "ours"), id
        assert {version["record"] for version in versions} <= {*register.RECORDS}, id
        assert {version["verdict"] for version in versions} <= {*OUTCOMES, None}, id
        assert all(version["why"] and isinstance(version["forced"], bool) for version in late), id
        assert versions[0].get("added_later", False) == (versions[0]["record"] != "none"), id


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_another_verdict_is_counted_only_after_an_unforced_change_and_for_todays_record(chapter):
    for id, entry in register.load(chapter).items():
        late = register.changes(entry)
        assert ("counted" in entry) == bool(late and not late[-1]["forced"]), id
        if "counted" in entry:
            assert entry["counted"] in OUTCOMES and entry["counted_how"], id
            # It was worked out on the record behind today's verdict: where another changes that, work it out anew.
            today = TODAY[chapter][id]
            assert decided(entry["versions"][-1]["verdict"], today["size"]) == today["outcome"], id


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_claim_fails_on_a_smaller_record(chapter):
    for id, today in TODAY[chapter].items():
        assert today["outcome"] == decided(today["outcome"], today["size"]), id
        assert (today["outcome"] != "undecided") or today["size"] == "smaller", id


VERSION = {"date": "2026-11-01", "criterion": "≥ 2", "record": "none", "verdict": "partly"}
LATE = VERSION | {"criterion": "≥ 1", "record": "full", "verdict": "reproduced", "why": "…", "forced": False}


def test_the_verdict_before_an_unforced_change_is_counted():
    entry = {"whose": "paper", "versions": [VERSION, LATE], "counted": "not reproduced", "counted_how": "1.5"}
    assert register.changed(entry)
    assert register.counted(entry, "reproduced") == register.earlier(entry) == "not reproduced"
    assert register.counted(entry, "reproduced", "fewer seeds") == "not reproduced"
    assert register.counted(entry, "reproduced", "smaller") == register.earlier(entry, "smaller") == "undecided"


def test_a_change_before_the_record_or_one_that_an_error_forced_leaves_todays_verdict():
    before = {"whose": "paper", "versions": [VERSION, LATE | {"record": "none"}]}
    forced = {"whose": "paper", "versions": [VERSION, LATE | {"forced": True}]}
    assert not register.changed(before) and register.earlier(before) is None
    assert register.changed(forced) and register.earlier(forced) == "partly"
    assert register.counted(before, "reproduced") == register.counted(forced, "reproduced") == "reproduced"


def test_a_chapter_without_a_register_has_no_entries_and_a_broken_one_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert register.load("none") == {}
    register.path("bad").parent.mkdir(parents=True)
    register.path("bad").write_text('{"a": ', encoding="utf-8")
    with pytest.raises(ValueError, match=r"criteria\.json of bad, line 1"):
        register.load("bad")
