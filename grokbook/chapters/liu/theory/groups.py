"""Groups whose elements are embedded as matrices, Liu et al. (2022), appendix H."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.liu.theory.relations import Array, which_held
from grokbook.chapters.liu.theory.training_sets import closed_within, share_reached
from grokbook.measures import group_parallelogram_gaps
from grokbook.tasks import group_table


def permutation_matrices(group: str) -> Array:
    """The matrices of a permutation group that multiply as its elements do: (n, k, k).

    Raises:
        ValueError: another name than "S2" to "S5".
    """
    n = len(group_table(group))
    if not str(group).startswith("S"):
        raise ValueError(f"permutation_matrices knows the groups S2 to S5, got {group!r}")
    k = int(str(group)[1:])
    matrices = np.zeros((n, k, k))
    for row, element in enumerate(itertools.permutations(range(k))):
        matrices[row, element, range(k)] = 1
    return matrices


def group_parallelograms(table: ArrayLike) -> NDArray[np.int64]:
    """All (a, b, c, d) with a b = c d, as unordered couples of different ordered pairs: (90, 4) for S3."""
    table = np.asarray(table)
    n = len(table)
    answers = table.ravel()
    couples = [(x, y) for x in range(n * n) for y in range(x + 1, n * n) if answers[x] == answers[y]]
    return np.array([(*divmod(x, n), *divmod(y, n)) for x, y in couples], np.int64).reshape(-1, 4)


def group_predicted_accuracy(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    table: ArrayLike,
    delta: float = 0.5**0.5,
    *,
    normalise: bool = True,
    reduce: str = "mean",
    held_out: bool = False,
) -> Array:
    """The accuracy that matrices allow after training on ordered pairs, eqs. 12 and 13 with products, figure 18 (d).

    Args:
        embedding: (..., element, k, k).
        train_pairs: (..., n, 2) ordered pairs of elements.
        table: (element, element) from `group_table`.
        delta, normalise, reduce: as in `grokbook.measures.group_representation_quality_index`.
        held_out: count only the samples outside the training set.

    Returns:
        (...), a fraction.

    Raises:
        ValueError: pairs of elements that the table does not have.
    """
    gaps = group_parallelogram_gaps(embedding, table, normalise=normalise, reduce=reduce)
    n = len(np.asarray(table))
    pairs = np.asarray(train_pairs)
    which_held(pairs, max(n, 3))  # the same complaints
    if pairs.max() >= n:
        raise ValueError(f"train_pairs must hold elements from 0 to {n - 1}, got {pairs.max()}")
    held = np.zeros((*pairs.shape[:-2], n * n), bool)
    np.put_along_axis(held, pairs[..., 0] * n + pairs[..., 1], True, -1)
    couples = group_parallelograms(table)[:, [0, 2]] * n + group_parallelograms(table)[:, [1, 3]]
    return share_reached(held, closed_within(gaps, delta), couples, held_out)
