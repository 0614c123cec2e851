"""Counting on the four-shape sum: pictures of 2 x 2 cells, a symbol in each, to be named by the sum of its symbols.

Everything here is exact. With n symbols there are N = n**4 pictures, of which ``train_size`` are drawn without
replacement to train on. Cells are numbered row by row: top left 0, top right 1, bottom left 2, bottom right 3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Permutations = tuple[tuple[int, ...], ...]

CELLS = 4
COLUMNS, ROWS, TOP, BOTTOM = (1, 0, 3, 2), (2, 3, 0, 1), (1, 0, 2, 3), (0, 1, 3, 2)
TURN = (2, 0, 3, 1)  # every cell is given the symbol of the one before it, clockwise

# What a network might not tell apart: permutations of the cells that generate a group each.
GROUPS: dict[str, Permutations] = {
    "one swap": (TOP,),
    "columns": (COLUMNS,),
    "swaps within rows": (TOP, BOTTOM),
    "columns and rows": (COLUMNS, ROWS),
    "rotations": (TURN,),
    "three cells": ((0, 2, 1, 3), (0, 1, 3, 2)),
    "dihedral": (TURN, COLUMNS),
    "all permutations": (TOP, (1, 2, 3, 0)),
}


def class_histogram(symbols: Sequence[int]) -> Counter[int]:
    """How many pictures carry each label, by label; ``symbols`` are what each symbol of the dictionary is worth."""
    return Counter(np.array(symbols)[pictures_of(len(symbols))].sum(-1).tolist())


def group_of(group: str) -> Permutations:
    """All permutations of the cells that those of a name in ``GROUPS`` generate."""
    found = {tuple(range(CELLS))}
    while (more := found | {tuple(one[i] for i in other) for one in found for other in GROUPS[group]}) != found:
        found = more
    return tuple(sorted(found))


def pictures_of(n: int) -> NDArray[np.int64]:
    """All pictures as the places of their four symbols in the dictionary: (n**4, 4), counting in base n."""
    return np.stack(np.unravel_index(np.arange(n**CELLS), (n,) * CELLS), -1)


@cache
def orbit_of(n: int, group: Permutations) -> NDArray[np.int64]:
    """(n**4,), the number of the orbit of each picture: that of its first picture. ``group`` is a whole group."""
    place = n ** np.arange(CELLS)[::-1]
    pictures = pictures_of(n)
    return np.min([pictures[:, one] @ place for one in group], axis=0)


def orbit_share(n: int, group: str, train_size: int) -> float:
    """Expected share of test pictures of which the training set holds a permutation: what memory can answer.

    Of n symbols, by a memory that does not tell apart what a ``group`` of ``GROUPS`` carries into each other.
    ``ValueError`` as `check`.
    """
    N, missed = check(n, train_size), 0.0
    sizes = np.unique(orbit_of(n, group_of(group)), return_counts=True)[1]  # of each orbit; of all, a multiset's
    for size, many in Counter(sizes.tolist()).items():
        untouched = math.prod((N - train_size - i) / (N - i) for i in range(size))  # none of them is trained on
        missed += size * many * untouched
    return 1 - missed / (N - train_size)


def check(n: int, train_size: int) -> int:
    """The number of pictures, n**4; ``ValueError`` for n below 2, or a training set that is empty or everything."""
    if n < 2:
        raise ValueError(f"n = {n}: at least 2 symbols are needed")
    if not 0 < train_size < n**CELLS:
        raise ValueError(f"train_size = {train_size}: between 1 and {n**CELLS - 1} of the {n**CELLS} pictures")
    return n**CELLS


def merged_accuracy(symbols: Sequence[int], classes: Sequence[int]) -> float:
    """The best accuracy over all pictures of somebody who confuses symbols of one class and adds without error.

    ``symbols`` are what each is worth, at least 0, and ``classes`` the number of each one's class.
    """
    places = pictures_of(len(symbols))
    seen = np.unique(np.array(classes)[places], axis=0, return_inverse=True)[1]
    counts = np.zeros((seen.max() + 1, CELLS * max(symbols) + 1))
    np.add.at(counts, (seen, np.array(symbols)[places].sum(1)), 1)
    return float(counts.max(1).sum() / len(places))


def noisy_accuracy(sigma: float, within: int = 0) -> float:
    """The share of answers at most ``within`` off of somebody who rounds a sum with a normal error of size sigma."""
    return math.erf((within + 0.5) / (sigma * math.sqrt(2)))
