"""The register: which criteria a claim has had, when each was written down, and which of them is counted.

``results/<chapter>/criteria.json`` holds an entry a claim: ``whose`` it is (``"paper"`` or ``"ours"``) and its
``versions``, the first one first. A version has its ``date`` and ``commit``, the ``criterion``, the size of the
``record`` that existed by then (``RECORDS``), the ``verdict`` it gave last, and, from the second on, ``why`` it was
written and whether an error in the one before it ``forced`` that. ``added_later`` marks a first version that was
written after its record, ``together`` one that came into the history in one commit with it, so that the history does
not say which was first. Where the last change was made after a record and not forced, ``counted`` is what the
criterion before all such changes gives on today's record, and ``counted_how`` the number that decides. Claims that
are gone say when and why in ``withdrawn``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grokbook.train import records

RECORDS = ("none", "smaller", "fewer seeds", "full")

Entry = Mapping[str, Any]


def path(chapter: str) -> Path:
    """Where a chapter's register lies."""
    return records.ROOT / "results" / chapter / "criteria.json"


def load(chapter: str) -> dict[str, Any]:
    """Claim id -> entry, in the order of the chapter; empty where a chapter has no register.

    Raises:
        ValueError: the file is no JSON.
    """
    file = path(chapter)
    if not file.exists():
        return {}
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file.name} of {chapter}, line {error.lineno}: {error.msg}") from None


def changes(entry: Entry) -> list[Entry]:
    """The versions that were written after a record existed, without the first version."""
    return [version for version in entry["versions"][1:] if version["record"] != "none"]


def changed(entry: Entry) -> bool:
    """Whether the criterion is another than before the record, forced or not."""
    return bool(changes(entry))


def ours(entry: Entry) -> bool:
    """Whether the claim is a check of our own, not the paper's."""
    return entry["whose"] == "ours"


def counted(entry: Entry, outcome: str) -> str:
    """The verdict to count: that of the criterion before unforced changes, where there are any, else ``outcome``.

    Args:
        entry: of the claim.
        outcome: what today's criterion gives on the committed records.
    """
    return entry.get("counted", outcome)


def earlier(entry: Entry) -> str | None:
    """For a changed criterion, the verdict by the earlier one: on today's record where it is known, else on its own."""
    if not changed(entry):
        return None
    before = entry["versions"][entry["versions"].index(changes(entry)[0]) - 1]
    return entry.get("counted", before["verdict"])
