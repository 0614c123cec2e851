"""Counting on the four-shape sum: pictures of 2 x 2 cells, a symbol in each, to be named by the sum of its symbols.

Everything here is exact. With n symbols there are N = n**4 pictures, of which ``train_size`` are drawn without
replacement to train on. Cells are numbered row by row: top left 0, top right 1, bottom left 2, bottom right 3.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
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
    """How many pictures carry each label.

    Args:
        symbols: what each symbol of the dictionary is worth, whole numbers.

    Returns:
        label -> number of pictures, all n**4 of them in sum; a label that does not occur counts 0.

    Raises:
        ValueError: fewer than two symbols.
    """
    if np.ndim(symbols) != 1 or len(symbols) < 2:
        raise ValueError(f"symbols = {symbols}: the values of at least 2 symbols are needed")
    counts = Counter({0: 1})
    for _ in range(CELLS):
        following: Counter[int] = Counter()
        for (label, count), value in itertools.product(counts.items(), symbols):
            following[label + int(value)] += count
        counts = following
    return Counter(dict(sorted(counts.items())))


def group_of(group: str | Iterable[Sequence[int]]) -> Permutations:
    """All permutations of the cells that a name in ``GROUPS``, or a set of permutations, generates.

    Raises:
        ValueError: an unknown name, or what is no permutation of the cells 0 to 3.
    """
    if isinstance(group, str) and group not in GROUPS:
        raise ValueError(f"group = {group!r}: choose one of {', '.join(GROUPS)}, or give permutations of the cells")
    generators = GROUPS[group] if isinstance(group, str) else tuple(tuple(map(int, one)) for one in group)
    for one in generators:
        if sorted(one) != list(range(CELLS)):
            raise ValueError(f"group: {one} is no permutation of the cells 0 to 3")
    found = {tuple(range(CELLS))}
    while True:
        more = found | {tuple(one[i] for i in other) for one in found for other in generators}
        if more == found:
            return tuple(sorted(found))
        found = more


def pictures_of(n: int) -> NDArray[np.int64]:
    """All pictures as the places of their four symbols in the dictionary: (n**4, 4), counting in base n."""
    return np.stack(np.unravel_index(np.arange(n**CELLS), (n,) * CELLS), -1)


@cache
def orbit_of(n: int, group: Permutations) -> NDArray[np.int64]:
    """(n**4,), the number of the orbit of each picture: that of its first picture. ``group`` is a whole group."""
    place = n ** np.arange(CELLS)[::-1]
    pictures = pictures_of(n)
    return np.min([pictures[:, one] @ place for one in group], axis=0)


def orbit_sizes(n: int, group: str | Iterable[Sequence[int]] = "all permutations") -> Counter[int]:
    """Size of an orbit -> number of orbits of that size; under all permutations an orbit is a multiset."""
    return Counter(np.unique(orbit_of(n, group_of(group)), return_counts=True)[1].tolist())


def orbit_share(n: int, group: str | Iterable[Sequence[int]], train_size: int) -> float:
    """Expected share of test pictures of which the training set holds a permutation: what memory can answer.

    Args:
        n: number of symbols.
        group: what the memory does not tell apart: a name in ``GROUPS``, or permutations of the cells 0 to 3 (the
            group that they generate is meant).
        train_size: pictures trained on, drawn without replacement.

    Raises:
        ValueError: an unknown group, or a training set that is empty or everything.
    """
    N = check(n, train_size)
    missed = sum(size * many * _untouched(N, size, train_size) for size, many in orbit_sizes(n, group).items())
    return 1 - missed / (N - train_size)


def unseen_label_share(symbols: Sequence[int], train_size: int) -> float:
    """Expected share of test pictures whose label no training picture carries: what nobody can know."""
    N = check(len(symbols), train_size)
    counts = class_histogram(symbols).values()
    return sum(count * _untouched(N, count, train_size) for count in counts) / (N - train_size)


def _untouched(N: int, size: int, train_size: int) -> float:
    """The probability that none of ``size`` given pictures is trained on."""
    return math.prod((N - train_size - i) / (N - i) for i in range(size))


def check(n: int, train_size: int) -> int:
    """The number of pictures, n**4.

    Raises:
        ValueError: fewer than two symbols, or a training set that is empty or everything.
    """
    if n < 2:
        raise ValueError(f"n = {n}: at least 2 symbols are needed")
    if not 0 < train_size < n**CELLS:
        raise ValueError(f"train_size = {train_size}: between 1 and {n**CELLS - 1} of the {n**CELLS} pictures")
    return n**CELLS


def merged_accuracy(symbols: Sequence[int], classes: Sequence[int]) -> float:
    """The best accuracy over all pictures of somebody who confuses symbols and adds without error.

    Args:
        symbols: what each symbol is worth.
        classes: for each symbol the number of its class; symbols of one class look the same.

    Raises:
        ValueError: not one class a symbol.
    """
    if len(classes) != len(symbols):
        raise ValueError(f"classes: one for each of the {len(symbols)} symbols is needed, not {len(classes)}")
    worth: dict[int, Counter[int]] = {}
    for value, kind in zip(symbols, classes, strict=True):
        worth.setdefault(kind, Counter())[value] += 1
    right = 0
    for seen in itertools.combinations_with_replacement(worth, CELLS):
        sums = Counter({0: 1})
        for kind in seen:
            following: Counter[int] = Counter()
            for (label, count), (value, many) in itertools.product(sums.items(), worth[kind].items()):
                following[label + value] += count * many
            sums = following
        repeats = math.prod(math.factorial(count) for count in Counter(seen).values())
        right += math.factorial(CELLS) // repeats * max(sums.values())
    return right / len(symbols) ** CELLS


def noisy_accuracy(sigma: float, within: int = 0) -> float:
    """The share of answers at most ``within`` off of somebody who rounds a sum with a normal error of size sigma."""
    return math.erf((within + 0.5) / (sigma * math.sqrt(2)))
