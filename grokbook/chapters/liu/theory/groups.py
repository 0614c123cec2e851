"""Groups whose elements are embedded as matrices, Liu et al. (2022), appendix H."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.chapters.liu.theory.relations import Array
from grokbook.chapters.liu.theory.training_sets import share_reached
from grokbook.measures import group_parallelogram_gaps


def group_predicted_accuracy(
    embedding: ArrayLike, train_pairs: ArrayLike, table: ArrayLike, delta: float = 0.5**0.5
) -> Array:
    """The accuracy that matrices allow after training on ordered pairs, eqs. 12 and 13 with products, figure 18 (d).

    Args:
        embedding: (..., element, k, k).
        train_pairs: (..., n, 2) ordered pairs of elements.
        table: (element, element) from `group_table`.
        delta: as in `grokbook.measures.group_representation_quality_index`.

    Returns:
        (...), a fraction of all ordered pairs.
    """
    closed = group_parallelogram_gaps(embedding, table) <= delta
    answers, pairs = np.asarray(table).ravel(), np.asarray(train_pairs)
    held = np.zeros((*pairs.shape[:-2], len(answers)), bool)
    np.put_along_axis(held, pairs[..., 0] * len(np.asarray(table)) + pairs[..., 1], True, -1)
    couples = [(x, y) for x in range(len(answers)) for y in range(x + 1, len(answers)) if answers[x] == answers[y]]
    return share_reached(held, closed, np.array(couples), held_out=False)
