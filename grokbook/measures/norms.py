"""How large weights and embeddings are, and how many dimensions they fill."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array, as_embedding, ratio


def embedding_norm(embedding: ArrayLike) -> Array:
    """R, the root mean square length of the embeddings: (..., p, d) -> (...)."""
    return np.sqrt(np.square(np.asarray(embedding, float)).sum(-1).mean(-1))


def effective_dimension(embedding: ArrayLike) -> Array:
    """How many principal components embeddings fill: the exponential of the entropy of their variance shares.

    From (..., p, d) to (...), 1 to min(p - 1, d); nan if all coincide. Liu et al. (2022), section 4.2, figure 7 left.
    """
    embedding = as_embedding(embedding, "(..., p, d)", 2)
    centred = embedding - embedding.mean(-2, keepdims=True)
    known = np.isfinite(centred).all((-2, -1))
    variance = np.square(np.linalg.svd(np.where(known[..., None, None], centred, 0.0), compute_uv=False))
    share = ratio(variance, variance.sum(-1, keepdims=True))
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(-1)
    return np.where(known, np.exp(entropy), np.nan)
