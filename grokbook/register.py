"""The register: which criteria a claim has had, when each was written down, and what the one before a change gives.

``results/<chapter>/criteria.json`` holds an entry a claim: ``whose`` it is (``"paper"`` or ``"ours"``) and its
``versions``, the first one first. A version has its ``date`` and ``commit``, the ``criterion`` or its ``parts``, the
size of the ``record`` that existed by then ("none" where there was none), the ``verdict`` it gave last, and, from the
second on, ``why`` it was written and whether an error in the one before it ``forced`` that. Verdicts are those of the
criterion alone: that it decides nothing on a smaller record is left to who counts them.
``added_later`` marks a first version that was written after its record, ``together`` one that came into the history in
one commit with it. Where the last change was made after a record and not forced, ``counted`` is what the criterion
before all such changes gives on today's record, and ``counted_how`` the number that decides; of that and today's the
lesser verdict counts (``claims.lesser``). ``restated`` marks a
version that says the same in other words. Claims that are gone say when and why in ``withdrawn``.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grokbook.claims import Claim
from grokbook.train import records

Entry = Mapping[str, Any]


def path(chapter: str) -> Path:
    """Where a chapter's register lies."""
    return records.ROOT / "results" / chapter / "criteria.json"


def load(chapter: str) -> dict[str, Any]:
    """Claim id -> entry, in the order of the chapter; empty without a register, ``ValueError`` where it is none."""
    file = path(chapter)
    if not file.exists():
        return {}
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        if not all({"date", "record"} <= one.keys() for entry in entries.values() for one in entry["versions"]):
            raise TypeError
    except (AttributeError, LookupError, TypeError):
        told = "claims, each with a list of versions that have a date and a record, are needed"
        raise ValueError(f"{file.name} of {chapter}: {told}") from None
    except ValueError as error:
        raise ValueError(f"{file.name} of {chapter}: {error}") from None
    return entries


def changed(entry: Entry) -> bool:
    """Whether the criterion is another than before the record, forced or not."""
    return any(one["record"] != "none" and not one.get("restated") for one in entry.get("versions", ())[1:])


def added_later(entry: Entry) -> bool:
    """Whether there was a record before there was a criterion."""
    return any(one.get("added_later", False) for one in entry.get("versions", ())[:1])


def raised(entry: Entry) -> bool:
    """Whether some criterion before the last one gave less than reproduced, on the record of its time."""
    return any(one.get("verdict") not in (None, "reproduced") for one in entry.get("versions", ())[:-1])


def before(entry: Entry, outcome: str, size: str = "full") -> str:
    """The verdict of the criterion before unforced changes, where there are any.

    Else ``outcome``, today's on records of this size. What fails on smaller records, if in part, is undecided.
    """
    if "counted" not in entry:
        return outcome
    fails = entry["counted"] in ("partly", "not reproduced")
    return "undecided" if fails and size == "smaller" else entry["counted"]


def story(entry: Entry) -> list[str]:
    """The versions of a criterion that followed a record, each as a line."""
    lines = []
    versions = entry.get("versions", ())
    if added_later(entry):
        lines.append(f"Added on {versions[0]['date']}, after the record.")
    for before, one in itertools.pairwise(versions):
        if one["record"] != "none" and not one.get("restated"):
            error = " The earlier one was in error." if one.get("forced") else ""
            was = "; ".join(before["parts"]) if "parts" in before else before["criterion"]
            then = f" (verdict then: {before['verdict']})" if before.get("verdict") else ""
            why = one["why"].rstrip(".")
            lines.append(f"Changed on {one['date']}, after the record: {why}.{error} Before: {was}{then}.")
    return lines


def enter(chapter: str, claims: Mapping[str, Claim], standing: Mapping[str, str], why: str) -> list[str]:
    """Enter a chapter's claims whose parts are not the register's last version; their ids.

    ``standing`` has the size of the record that exists, or "none", by claim id; ``ValueError`` without a ``why`` for a
    claim that has one.
    """
    entries, made = load(chapter), []
    for id, claim in claims.items():
        parts, record = [part.criterion for part in claim.parts], standing[id]
        entry = entries.setdefault(id, {"whose": claim.whose, "versions": []})
        if entry["versions"] and entry["versions"][-1].get("parts") == parts:
            continue
        if record != "none" and not why:
            raise ValueError(f"{chapter}: the criterion of {id} changes after its record exists: say why, with --why")
        version: dict[str, Any] = {"date": datetime.date.today().isoformat(), "parts": parts, "record": record}
        if record != "none":
            version |= {"why": why, "forced": False} if entry["versions"] else {"why": why, "added_later": True}
        entry["versions"].append(version)
        made.append(id)
    records.write_whole(path(chapter), (json.dumps(entries, indent=1, ensure_ascii=False) + "\n").encode())
    return made
