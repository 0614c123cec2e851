"""What several measures stand on."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

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


@contextlib.contextmanager
def unmeasured() -> Iterator[None]:
    """While it lasts, what nan ("not measured"), infinity ("never") and empty arrays give comes without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice|All-NaN|Degrees of freedom", RuntimeWarning)
        warnings.simplefilter("ignore", np.exceptions.RankWarning)  # a line through points of one place
        yield
