"""Recipes, the training loop, records, and who runs them where."""

import sys


def say(line: str) -> None:
    """One line for whoever watches."""
    print(f"grokbook: {line}", file=sys.stderr, flush=True)
