"""Fourier analysis on the symmetric group of five elements."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, ratio

ELEMENTS = np.array(list(itertools.permutations(range(5))))  # of S5, (120, 5), in lexicographic order


@lru_cache
def parity() -> NDArray[np.int64]:
    """0 for the even elements and 1 for the odd ones, (120,)."""
    return (np.linalg.det(np.eye(5)[ELEMENTS]) < 0).astype(np.int64)


@lru_cache
def characters() -> dict[str, NDArray[np.int64]]:
    """The irreducible characters, (120,) each: from the five points, and from squares of their representation."""
    sign, squares = 1 - 2 * parity(), np.take_along_axis(ELEMENTS, ELEMENTS, 1)
    four, of_square = ((g == range(5)).sum(1) - 1 for g in (ELEMENTS, squares))
    five, six = (four**2 + of_square) // 2 - 1 - four, (four**2 - of_square) // 2
    found = {"1": sign**2, "1, sign": sign, "4": four, "4, sign": four * sign, "5": five, "5, sign": five * sign}
    return found | {"6": six}


def representation_shares(rows: ArrayLike) -> Array:
    """The share of the variance of rows (120, d) in each irreducible representation of `characters`, (7,).

    What Fourier analysis is for residues: each column is a function on the group, and its part in the representation of
    character chi and dimension n is its convolution with n chi / 120. Random rows have n**2 / 119; rows of other
    symbols than the 120 have nan.
    """
    centred = np.asarray(rows, float)
    if len(centred) != len(ELEMENTS):
        return np.full(len(characters()), np.nan)
    centred = centred - centred.mean(0)
    digits = 5 ** np.arange(4, -1, -1)
    quotient = np.searchsorted(ELEMENTS @ digits, ELEMENTS.argsort(1)[:, ELEMENTS] @ digits)  # a**-1 b, (120, 120)
    parts = [chi[0] / 120 * (centred * (chi[quotient] @ centred)).sum() for chi in characters().values()]
    return ratio(np.array(parts), np.square(centred).sum())
