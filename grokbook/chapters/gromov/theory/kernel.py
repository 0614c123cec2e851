"""The infinitely wide network whose features stay as they were drawn, eq. 4 in the limit of Jacot et al. (2018)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray


def tangent_kernel(pairs: ArrayLike, others: ArrayLike) -> NDArray[np.float64]:
    """(a, b) 4 + 6 s², s counting the operands that two pairs share: mean product of an output's gradients over c² N.

    With unit normal weights the h of two pairs are normal, of variance 2 and covariance s. The readout's gradients,
    c h², give c² N E[h² h'²] = c² N (4 + 2 s²); those of the first layer, 2 c W_out h on the columns that are picked,
    give 4 c² N s E[h h'] = 4 c² N s², as two pairs pick s columns in common. Two outputs have nothing in common.

    Args:
        pairs, others: (a, 2) and (b, 2) operands.
    """
    shared = (np.asarray(pairs)[:, None] == np.asarray(others)).sum(-1)
    return 4 + 6.0 * shared**2


def kernel_flow(labels: ArrayLike, in_train: ArrayLike, times: Iterable[float]) -> Iterator[NDArray[np.float64]]:
    """(p, p, p) outputs at each time t of exp(-K t), from zero, under gradient flow on the squared error.

    `tangent_kernel` is 4 between all pairs, 6 more for a shared row, as for a column, and 12 more on a pair itself: in
    the first three, a sum over 2p + 1 features, lies all that it can say of a pair that is not trained on.

    Args:
        labels, in_train: (p, p) right answers, and whether a pair is trained on.
    """
    labels, seen = np.asarray(labels), np.asarray(in_train)
    one, (n, m) = np.eye(len(labels)), np.nonzero(seen)
    features = np.hstack([np.full((len(n), 1), 2.0), np.sqrt(6) * one[n], np.sqrt(6) * one[m]])  # (pair, 2p + 1)
    U, sizes, _ = np.linalg.svd(features, full_matrices=False)
    wanted, rates = one[labels[seen]], np.array([12.0, *(12 + sizes**2)])[:, None]
    along = U.T @ wanted
    for t in times:
        alone, joint = np.split((1 - np.exp(-rates * t)) / rates, [1])
        dual = alone * wanted + U @ ((joint - alone) * along)  # (1 - exp(-K t)) / K on what is wanted
        mean, rows, columns = np.split(features.T @ dual, [1, 1 + len(labels)])
        outputs = 2 * mean + np.sqrt(6) * (rows[:, None] + columns)
        outputs[seen] += 12 * dual
        yield outputs
