"""Lemma B.1: what sums phi(i) + phi(j) of embeddings can say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def smallest_operator_norm(tokens: ArrayLike) -> float:
    """The least norm of a linear map with l(x_i) + l(x_{-i}) = r for all i and |r| = 1; infinity if there is none.

    It is 1 / dist(0, affine hull of the sums); lemma B.1 says 1 / (2M) for tokens (p, d) of a length of at most M.
    """
    tokens = np.asarray(tokens, float)
    sums = tokens + tokens[-np.arange(len(tokens))]
    v = np.linalg.lstsq(sums, np.ones(len(sums)), rcond=1e-10)[0]  # shortest with <sum, v> = 1 for all: w -> r <w, v>
    return float(np.linalg.norm(v)) if np.allclose(sums @ v, 1, atol=1e-6) else float("inf")
