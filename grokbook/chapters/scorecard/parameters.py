"""What the page's parameters may be."""

from __future__ import annotations

from typing import Any

from grokbook.claims import OUTCOMES


def check(values: dict[str, Any]) -> None:
    """Refuse a verdict that there is not.

    Raises:
        ValueError: the message names it and says which there are.
    """
    for name in values["listed"]:
        if name not in OUTCOMES:
            raise ValueError(f"listed = {name!r}: choose from {', '.join(OUTCOMES)}")
