"""Arrays over all pairs: types, and checks of what was passed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Seed = np.random.Generator | int | None


def square_mask(mask: ArrayLike) -> Mask:
    """A mask over all pairs, or a line that says what is wrong with it."""
    mask = np.asarray(mask)
    if mask.ndim < 2 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 2 or mask.dtype != bool:
        raise ValueError(f"a mask must be boolean of shape (..., p, p), got {mask.dtype} of shape {mask.shape}")
    return mask


def class_labels(labels: ArrayLike, p: int) -> Integers:
    """Answers over all pairs, or a line that says what is wrong with them."""
    labels = np.asarray(labels)
    if labels.shape != (p, p) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"labels must be integers of at least 0 and shape (p, p) = ({p}, {p}), got {labels.dtype} of {labels.shape}"
        )
    return labels.astype(np.int64)


def line_distances(p: int) -> Integers:
    """(p, p) distances of coordinates on the plain grid."""
    return np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def ring_distances(p: int) -> Integers:
    """(p, p) distances of coordinates on the torus."""
    return np.minimum(line_distances(p), p - line_distances(p))
