"""What several measures stand on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def as_embedding(embedding: ArrayLike, shape: str, least: int) -> Array:
    embedding = np.asarray(embedding, float)
    if embedding.ndim < least:
        raise ValueError(f"embedding must have shape {shape}, got {embedding.shape}")
    return embedding


def ratio(numerator, denominator):
    """numerator / denominator, nan where the denominator is zero, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)
