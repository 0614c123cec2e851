"""Every claim of a chapter comes out as its committed figures say: another outcome needs a commit that says why."""

from __future__ import annotations

import json

import pytest

from grokbook.chapters import chapters
from grokbook.train import records

SAID = {path.parent.name: path for path in (records.ROOT / "figures").glob("*/claims.json")}


@pytest.mark.parametrize("name", sorted(SAID))
def test_no_committed_figure_has_something_that_a_reader_would_trip_over(name):
    for id, one in json.loads(SAID[name].read_text(encoding="utf-8"))["figures"].items():
        assert one["problems"] == [], id


@pytest.mark.parametrize("name", sorted(SAID))
def test_claims_on_trainings_come_out_as_the_committed_figures_say(name):
    chapter, said = chapters()[name], json.loads(SAID[name].read_text(encoding="utf-8"))["claims"]
    home = chapter.settings()
    page = chapter.page({one: getattr(home, one) for one in chapter.settings.names()})
    assert set(chapter.claims) == {one["id"] for one in said}
    trained = {id: one for id, one in chapter.claims.items() if all(chapter.needed_by(name) for name in one.needs)}
    trained = trained or chapter.claims  # those that rest on theory are as quick or slow as it is
    found = {id: claim.judge(page).outcome for id, claim in trained.items()}
    assert found == {one["id"]: one["today"] for one in said if one["id"] in trained}
