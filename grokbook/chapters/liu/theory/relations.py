"""Parallelograms and the equations that they put on embeddings, Liu et al. (2022), eqs. 1 and 7 and appendix E."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.measures import sums_of

Array = NDArray[np.float64]
Seed = np.random.Generator | int | None

ZERO = 1e-8  # an eigenvalue of A^T A below this is zero; A holds integers, and rounding leaves about 1e-12


def parallelograms(p: int) -> NDArray[np.int64]:
    """The permissible set P0 of all samples, eq. 1: every (i, j, m, n) with i + j = m + n.

    Equation 19 lists the same sets as sorted quadruples, whose halves do not have equal sums; here the first two and
    the last two symbols are the samples.

    Returns:
        (|P0|, 4), rows i <= j and m <= n with i < m; |P0| = p (p - 2) (2 p + 1) / 24 for even p and (p**2 - 1)
        (2 p - 3) / 24 for odd p.
    """
    pairs, couples = sums_of(symbols(p))
    return pairs[couples].reshape(-1, 4)


def parallelograms_of(pairs: ArrayLike, p: int) -> NDArray[np.int64]:
    """P0(D), eq. 1: the permissible parallelograms both of whose samples are in one training set (n, 2).

    Returns:
        (k, 4), in the order of `parallelograms`; k may be 0.

    Raises:
        ValueError: more than one set, or symbols outside 0 to p - 1.
    """
    samples, couples = sums_of(symbols(p))
    held = which_held(pairs, p)
    if held.ndim > 1:
        raise ValueError(f"pairs must be one set of shape (n, 2), got {np.shape(pairs)}")
    return samples[couples[held[couples].all(-1)]].reshape(-1, 4)


def equations(rows: ArrayLike, p: int) -> NDArray[np.int64]:
    """A(P), eq. 7: the matrix whose null space are the representations in which the parallelograms (k, 4) close.

    Returns:
        (k, p), one equation E_i + E_j - E_m - E_n = 0 a row; a symbol used twice has 2.
    """
    rows = np.asarray(rows, np.int64).reshape(-1, 4)
    matrix = np.zeros((len(rows), symbols(p)), np.int64)
    for column, sign in zip(rows.T, (1, 1, -1, -1), strict=True):
        np.add.at(matrix, (np.arange(len(rows)), column), sign)
    return matrix


def free_directions(rows: ArrayLike, p: int) -> int:
    """n(A), appendix E: the dimension of the representations in which these parallelograms (k, 4) close."""
    A = equations(rows, p)
    return p - int((np.linalg.svd(A, compute_uv=False) > math.sqrt(ZERO)).sum()) if len(A) else p


class Hierarchy(NamedTuple):
    """All subsets of the equations of P0 and the arrows from each to those with one equation less, figure 11."""

    sets: tuple[tuple[int, ...], ...]  #: indices of parallelograms, the full set first
    arrows: tuple[tuple[int, int], ...]  #: (parent, child), indices into sets
    freedom: tuple[int, ...]  #: the null space's dimension of each set
    closure: tuple[tuple[int, ...], ...]  #: all the parallelograms that each set implies


def hierarchy(p: int = 4) -> Hierarchy:
    """The hierarchy of equation sets and of the representations they allow; p = 4 has 8 sets and p = 5 has 128."""
    rows = parallelograms(p)
    everything = range(len(rows))
    sets = [s for size in reversed(range(len(rows) + 1)) for s in itertools.combinations(everything, size)]
    where = {s: k for k, s in enumerate(sets)}
    arrows = [(where[s], where[tuple(e for e in s if e != gone)]) for s in sets for gone in s]
    freedom = [free_directions(rows[list(s)], p) for s in sets]
    closure = [
        tuple(e for e in everything if free_directions(rows[[*s, e]], p) == n)
        for s, n in zip(sets, freedom, strict=True)
    ]
    return Hierarchy(tuple(sets), tuple(arrows), tuple(freedom), tuple(closure))


def which_held(pairs: ArrayLike, p: int) -> NDArray[np.bool_]:
    """(..., n, 2) pairs -> (..., N), which of all samples are among them.

    Raises:
        ValueError: no pairs, not integers of that shape, or symbols outside 0 to p - 1.
    """
    p, pairs = symbols(p), np.asarray(pairs)
    if pairs.ndim < 2 or not pairs.size or pairs.shape[-1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"train_pairs must be integers of shape (..., n, 2), got {pairs.dtype} of {pairs.shape}")
    outside = (pairs < 0) | (pairs >= p)
    if outside.any():
        i, j = pairs[outside.any(-1)][0]
        raise ValueError(f"train_pairs must hold symbols from 0 to {p - 1}, got the pair ({i}, {j})")
    i, j = pairs.min(-1).astype(np.int64), pairs.max(-1).astype(np.int64)
    sample = i * p - i * (i - 1) // 2 + j - i  # lexicographic among i <= j
    held = np.zeros((*pairs.shape[:-2], p * (p + 1) // 2), bool)
    np.put_along_axis(held, sample, True, -1)
    return held


def symbols(p: int) -> int:
    """A number of symbols, checked."""
    return checks.integer("p", p, 3)
