"""The structure of embeddings that answer by adding: parallelograms, and the share of them that close."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, as_embedding

BLOCK = 1 << 20  # differences held at once: 8 MB


class Sums(NamedTuple):
    """The samples of an operation, and the couples of samples that have the same answer."""

    pairs: NDArray[np.int64]  #: (sample, 2) operands
    couples: NDArray[np.int64]  #: (parallelogram, 2) indices a < b into the samples, equal answers


@cache
def sums_of(p: int, *, modular: bool = False) -> Sums:
    """All samples i <= j of addition on 0 .. p - 1, or mod p, and the permissible parallelograms among them.

    These are couples of two different samples with one sum, so (i, j, i, j) is none but the degenerate i + n = 2 j is.
    """
    pairs = np.stack(np.triu_indices(p), axis=-1)
    answers = pairs.sum(-1) % p if modular else pairs.sum(-1)
    found = Sums(pairs, _couples(answers))
    for table in found:
        table.flags.writeable = False  # they are shared
    return found


def _couples(answers: NDArray[np.int64]) -> NDArray[np.int64]:
    classes = (np.flatnonzero(answers == answer).tolist() for answer in np.unique(answers))
    couples = sorted(couple for members in classes for couple in combinations(members, 2))
    return np.array(couples, int).reshape(-1, 2)


def standardised(embedding: ArrayLike, ddof: int = 1) -> Array:
    """Each dimension of (..., p, d) embeddings with mean zero and standard deviation one, divided by p - ddof.

    A dimension without spread becomes zero. Liu et al. (2022), section 3.2, print a variance where this is meant.
    """
    embedding = np.asarray(embedding, float)
    centred = embedding - embedding.mean(-2, keepdims=True)
    spread = centred.std(-2, ddof=ddof, keepdims=True)
    flat = spread <= 1e-14 * np.abs(embedding).max(-2, keepdims=True)  # only rounding is left
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


def parallelogram_gaps(embedding: ArrayLike, *, normalise: bool = True) -> Array:
    """How far each permissible parallelogram is from closing: E_i + E_j - E_m - E_n, its root mean square.

    From (..., p, d), `standardised` if ``normalise``, to (..., parallelogram) in the order of ``sums_of(p).couples``.
    """
    embedding = as_embedding(embedding, "(..., p, d)", 2)
    pairs, couples = sums_of(embedding.shape[-2])
    embedding = standardised(embedding) if normalise else embedding
    return _gaps(embedding[..., pairs[:, 0], :] + embedding[..., pairs[:, 1], :], couples)


def representation_quality_index(embedding: ArrayLike, delta: float = 0.1) -> Array:
    """The share of permissible parallelograms of addition that close within delta, Liu et al. (2022), eqs. 1-3.

    As in the authors' code: dimensions standardised with the sample standard deviation, and the mean square over
    dimensions at most 0.01. Equation 2 as printed takes the norm of embeddings as they are. From (..., p, d) to (...),
    0 to 1: a line E_k = a + k b has 1; nan where an embedding is not finite. ``delta`` is a length (not squared).
    """
    return _share_within(parallelogram_gaps(embedding), delta)


def group_parallelogram_gaps(embedding: ArrayLike, table: ArrayLike) -> Array:
    """How far each couple of products with one answer is from agreeing: E_a E_b - E_c E_d, its root mean square.

    All matrices are divided by their common root mean square first. (..., n, k, k) -> (..., parallelogram), couples of
    ordered pairs, row a * n + b, in lexicographic order. Raises ``ValueError`` for a table of another size than (n, n).
    """
    embedding = as_embedding(embedding, "(..., element, k, k)", 3)
    table = np.asarray(table)
    n, k = embedding.shape[-3], embedding.shape[-1]
    if embedding.shape[-2] != k or table.shape != (n, n):
        raise ValueError(f"embedding must be (..., n, k, k) and table (n, n), got {embedding.shape} and {table.shape}")
    size = np.sqrt(np.square(embedding).mean((-3, -2, -1), keepdims=True))
    embedding = embedding / np.where(size > 0, size, 1.0)
    products = embedding[..., :, None, :, :] @ embedding[..., None, :, :, :]  # (..., n, n, k, k)
    return _gaps(products.reshape(*embedding.shape[:-3], n * n, k * k), _couples(table.ravel()))


def group_representation_quality_index(embedding: ArrayLike, table: ArrayLike) -> Array:
    """The share of couples of equal products a b = c d for which E_a E_b and E_c E_d agree, Liu et al. (2022), app. H.

    That is to the authors' bound of 0.5 on the mean squared difference; the paper bounds the squared Frobenius norm
    instead. A matrix for each element, (..., element, k, k), and the table of products (element, element) give (...),
    0 to 1: a representation of the group has 1; nan where an embedding is not finite.
    """
    return _share_within(group_parallelogram_gaps(embedding, table), 0.5**0.5)


def _gaps(sums: Array, couples: NDArray[np.int64]) -> Array:
    """(..., sample, d) -> (..., couple), a block of couples at a time; what is only rounding counts as zero."""
    gaps = np.empty((*sums.shape[:-2], len(couples)))
    width = max(1, BLOCK // max(1, sums[..., 0, :].size))
    for start in range(0, len(couples), width):
        a, b = couples[start : start + width].T
        gaps[..., start : start + width] = np.linalg.norm(sums[..., a, :] - sums[..., b, :], axis=-1)
    rounding = np.nan_to_num(1e-12 * np.abs(sums).max((-2, -1)), posinf=0.0)
    gaps[gaps <= rounding[..., None]] = 0.0
    return gaps / np.sqrt(sums.shape[-1])


def _share_within(gaps: Array, delta: float) -> Array:
    """(..., parallelogram) -> (...)."""
    if not delta >= 0:
        raise ValueError(f"delta must be at least 0, got {delta}")
    if not gaps.shape[-1]:
        raise ValueError("there is no parallelogram among so few symbols: p must be at least 3")
    return np.where(np.isfinite(gaps).all(-1), (gaps <= delta).mean(-1), np.nan)
