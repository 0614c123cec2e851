"""Means and spreads of angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, ratio


def resultant_length(angles: ArrayLike) -> Array:
    """Length of the mean unit vector of (..., n) angles in radians, from 0 to 1; nan is left out."""
    return np.abs(_mean_vector(angles))


def circular_mean(angles: ArrayLike) -> Array:
    """Direction of the mean unit vector of (..., n) angles, in radians in (-pi, pi]; nan is left out."""
    return np.angle(_mean_vector(angles))


def circular_sd(angles: ArrayLike) -> Array:
    """Circular standard deviation sqrt(-2 ln R) of (..., n) radians, the ordinary one if narrow; nan is left out."""
    length = np.minimum(resultant_length(angles), 1.0)  # rounding may leave 1 + 1e-16
    with np.errstate(divide="ignore"):
        return np.sqrt(-2 * np.log(length)) + 0.0  # + 0.0 turns -0 into 0


def _mean_vector(angles: ArrayLike) -> NDArray[np.complex128]:
    angles = np.asarray(angles, float)
    known = ~np.isnan(angles)
    vectors = np.where(known, np.exp(1j * np.where(known, angles, 0.0)), 0.0)
    return ratio(vectors.sum(-1), known.sum(-1))
