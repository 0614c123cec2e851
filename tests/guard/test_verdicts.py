"""Every claim of a chapter in rooms comes out as it did: another outcome needs a commit that says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grokbook.chapters import chapters

TODAY = json.loads((Path(__file__).parent / "verdicts.json").read_text(encoding="utf-8"))
ROOMS = {name: chapter for name, chapter in chapters().items() if chapter and name in TODAY}


@pytest.mark.parametrize("name", ROOMS)
def test_claims_on_trainings_come_out_as_they_did(name):
    chapter = ROOMS[name]
    home = chapter.settings()
    page = chapter.page({one: getattr(home, one) for one in chapter.settings.names()})
    trained = {id: one for id, one in chapter.claims.items() if all(chapter.needed_by(name) for name in one.needs)}
    assert len(trained) > len(chapter.claims) // 2  # those that rest on theory are as quick or slow as it is
    found = {id: claim.judge(page).outcome for id, claim in trained.items()}
    assert found == {id: TODAY[name][id]["outcome"] for id in trained}
    assert set(chapter.claims) == set(TODAY[name])
