"""A table with blanks that the axioms of a group fill in one way only: Fig. 1, right, with a proof."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

# Every group of eight elements but one is a^i b^j with i < 4, j < 2, b a = a^turned b and b^2 = a^squared.
EXTENSIONS = {"Z8": (1, 1), "Z4 x Z2": (1, 0), "D4": (-1, 0), "Q8": (-1, 2)}


def groups() -> dict[str, Integers]:
    """The five groups of eight elements by name, each as its table of products (8, 8)."""
    i, j = np.arange(8) % 4, np.arange(8) // 4
    made = {"Z2 x Z2 x Z2": np.bitwise_xor.outer(np.arange(8), np.arange(8))}
    for name, (turned, squared) in EXTENSIONS.items():
        power = i[:, None] + np.where(j == 1, turned, 1)[:, None] * i + squared * np.outer(j, j)
        made[name] = power % 4 + 4 * np.bitwise_xor.outer(j, j)
    return made


def tables() -> NDArray[np.int8]:
    """All group tables on the symbols 0 to 7, (22080, 8, 8): each group under all names of its elements, each once."""
    names = np.array(list(itertools.permutations(range(8))), np.int8)
    backs = names.argsort(1)
    renamed = (
        np.take_along_axis(names, product[backs[:, :, None], backs[:, None]].reshape(-1, 64), 1)
        for product in groups().values()
    )
    return np.concatenate([np.unique(one, axis=0) for one in renamed]).reshape(-1, 8, 8)


def puzzle(seed: int) -> tuple[Integers, NDArray[np.bool_]]:
    """The symmetries of a square, renamed at random, and which cells to show, both (8, 8).

    Cells are blanked in a random order, each only if no other group table agrees with what is left, until 30 % are
    blank.
    """
    generator = np.random.default_rng(seed)
    product, name = groups()["D4"], generator.permutation(8)
    table = np.empty_like(product)
    table[name[:, None], name] = name[product]
    differs = (tables() != table).reshape(-1, 64)
    differs = differs[differs.any(1)]  # (other table, cell)
    shown = np.ones(64, bool)
    for cell in generator.permutation(64):
        if (~shown).sum() < round(0.3 * 64):
            shown[cell] = False
            shown[cell] = not differs[:, shown].any(1).all()
    return table, shown.reshape(8, 8)
