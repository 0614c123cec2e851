"""A table with blanks that the axioms of a group fill in one way only: Fig. 1, right, with a proof."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
BLANK = -1


def completions(table: ArrayLike, most: int = 2) -> list[Integers]:
    """The group tables that agree with a table where it is not blank, at most so many of them.

    Rules are applied until they say no more: in a row and in a column every element stands once, and (ab)c = a(bc)
    wherever three of the four products in it are known. Then a blank with the fewest candidates is tried with each.

    Args:
        table: (n, n) of elements 0 to n - 1, -1 where blank.
        most: stop when so many are found.

    Returns:
        Tables (n, n); none if no group has the given products.
    """
    given = np.array(table, np.int64)
    n = len(given)
    if given.shape != (n, n) or given.min() < BLANK or given.max() >= n:
        raise ValueError(f"table must be (n, n) of numbers from -1 to n - 1, got shape {given.shape}")
    found: list[Integers] = []
    for one in _search(given):
        found.append(one)
        if len(found) == most:
            break
    return found


def _search(table: Integers) -> Iterator[Integers]:
    candidates = _narrowed(table)
    if candidates is None:
        return
    counts = candidates.sum(-1)
    if (counts == 1).all():
        solved = candidates.argmax(-1)
        if is_group(solved):
            yield solved
        return
    x, y = divmod(int(np.where(counts == 1, len(table) + 1, counts).argmin()), len(table))
    for value in np.flatnonzero(candidates[x, y]):
        trial = np.where(counts == 1, candidates.argmax(-1), BLANK)
        trial[x, y] = value
        yield from _search(trial)


def _narrowed(table: Integers) -> NDArray[np.bool_] | None:
    """What can stand in each cell, (n, n, n), after all rules; None at a contradiction."""
    n = len(table)
    candidates = np.ones((n, n, n), bool)
    known = np.argwhere(table != BLANK).tolist()
    for x, y in known:
        candidates[x, y] = np.arange(n) == table[x, y]
    while True:
        before = candidates.sum()
        counts = candidates.sum(-1)
        for x, y in np.argwhere(counts == 1).tolist():
            value = int(candidates[x, y].argmax())
            candidates[np.arange(n) != x, y, value] = False
            candidates[x, np.arange(n) != y, value] = False
        for lines in (candidates, candidates.swapaxes(0, 1)):  # a value with one place left in a line goes there
            for line, value in np.argwhere(lines.sum(1) == 1).tolist():
                place = int(lines[line, :, value].argmax())
                lines[line, place] = np.arange(n) == value
        if (candidates.sum(-1) == 0).any() or (candidates.sum(0) == 0).any() or (candidates.sum(1) == 0).any():
            return None
        single = np.where(candidates.sum(-1) == 1, candidates.argmax(-1), BLANK)
        for a, b, c in np.argwhere((single[:, :, None] != BLANK) & (single[None] != BLANK)).tolist():
            left, right = (single[a, b], c), (a, single[b, c])  # (ab)c and a(bc) are one element
            both = candidates[left] & candidates[right]
            candidates[left] = candidates[right] = both
            if not both.any():
                return None
        if candidates.sum() == before:
            return candidates


def is_group(table: Integers) -> bool:
    """Whether products are associative and every element stands once in each row and column, which makes a group."""
    n = len(table)
    latin = all((np.sort(lines, 1) == np.arange(n)).all() for lines in (table, table.T))
    return latin and bool((table[table] == table[:, table]).all())


def puzzle(n: int = 4, share: float = 0.3, seed: int = 0) -> tuple[Integers, NDArray[np.bool_]]:
    """The symmetries of a regular polygon with n corners, renamed at random, and which cells to show.

    Cells are blanked in a random order, each only if what is left still has one completion, until ``share`` is blank.

    Returns:
        The table (2n, 2n) and the cells that are shown, of the same shape.
    """
    generator = np.random.default_rng(seed)
    turn, flip = np.arange(2 * n) % n, np.arange(2 * n) // n  # turn by so much, after a flip or none
    signs = np.where(flip == 1, -1, 1)
    product = (turn[:, None] + signs[:, None] * turn) % n + n * (flip[:, None] ^ flip)
    name = generator.permutation(2 * n)
    table = np.empty_like(product)
    table[name[:, None], name] = name[product]
    shown = np.ones(table.shape, bool)
    for cell in generator.permutation(table.size):
        if (~shown).sum() >= round(share * table.size):
            break
        shown.flat[cell] = False
        if len(completions(np.where(shown, table, BLANK))) != 1:
            shown.flat[cell] = True
    return table, shown
