"""What a process is handed, and what a user may say."""

from __future__ import annotations

import os

import pytest

from grokbook import session
from grokbook.session import Session


def test_what_is_handed_on_arrives_and_outweighs_what_the_user_says(monkeypatch):
    sent = Session("quick", "cuda", True, "figures", "log", "progress", "turn", "cache", "tcp://a:1")
    for name, value in sent.variable().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GROKBOOK_DEVICE", "cpu")
    assert session.current() == sent


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("CACHE", "there", Session(cache=os.path.abspath("there"))),
        ("DEVICE", "cuda", Session(device="cuda")),
        ("DEVICE", "", Session()),
        ("FRESH", "1", Session(fresh=True)),
        ("FRESH", "0", Session()),
        ("SCHEDULER", "tcp://a:1", Session(scheduler="tcp://a:1")),
    ],
)
def test_a_user_says_by_four_variables_what_is_not_handed_on(monkeypatch, name, value, expected):
    monkeypatch.setenv(f"GROKBOOK_{name}", value)
    assert session.current() == expected
