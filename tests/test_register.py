"""The register of criteria: no claim without an entry, no change without a reason, no count without a cause."""

from __future__ import annotations

import pytest

from grokbook import register
from grokbook.train import records

VERSION = {"date": "2026-11-01", "criterion": "≥ 2", "record": "none", "verdict": "partly"}
LATE = VERSION | {"criterion": "≥ 1", "record": "full", "verdict": "reproduced", "why": "…", "forced": False}


def test_the_verdict_before_an_unforced_change_is_known():
    entry = {"whose": "paper", "versions": [VERSION, LATE], "counted": "not reproduced", "counted_how": "1.5"}
    assert register.changed(entry)
    assert register.before(entry, "reproduced") == "not reproduced"
    assert register.before(entry, "reproduced", "fewer seeds") == "not reproduced"
    assert register.before(entry, "reproduced", "smaller") == "undecided"


def test_a_change_before_the_record_or_one_that_an_error_forced_leaves_todays_verdict():
    before = {"whose": "paper", "versions": [VERSION, LATE | {"record": "none"}]}
    forced = {"whose": "paper", "versions": [VERSION, LATE | {"forced": True}]}
    assert not register.changed(before)
    assert register.changed(forced)
    assert register.before(before, "reproduced") == register.before(forced, "reproduced") == "reproduced"


def test_a_verdict_is_raised_where_an_earlier_criterion_gave_less():
    less, more, unknown = ({"verdict": one} for one in ("undecided", "reproduced", None))
    assert register.raised({"versions": [less, more]}) and register.raised({"versions": [more, less, {}]})
    assert not any(register.raised({"versions": one}) for one in ([more, less], [unknown, more], [less], []))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b'{"a": ', "line 1"), (b"\xff", "utf-8")]
    + [(one, "versions") for one in (b"[]", b"5", b'{"a": 5}', b'{"a": {}}', b'{"a": {"versions": [5]}}')],
)
def test_a_chapter_without_a_register_has_no_entries_and_a_broken_one_is_named(content, words, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert register.load("none") == {}
    register.path("bad").parent.mkdir(parents=True)
    register.path("bad").write_bytes(content)
    with pytest.raises(ValueError, match=rf"criteria\.json of bad: .*{words}"):
        register.load("bad")
