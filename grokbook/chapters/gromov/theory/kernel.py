"""The infinitely wide network whose features stay as they were drawn, eq. 4 in the limit of Jacot et al. (2018)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray


def kernel_flow(labels: ArrayLike, in_train: ArrayLike, times: Iterable[float]) -> Iterator[NDArray[np.float64]]:
    """(p, p, p) outputs at each time t of exp(-K t), from zero, under gradient flow on the squared error.

    The kernel K is 4 between all pairs, 6 more for a shared row, as for a column, and 12 more on a pair itself: in the
    first three, a sum over 2p + 1 features, lies all that it can say of a pair that is not trained on.

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
