"""What was published under the name of MED, and what MED must beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook import checks
from grokbook.measures import embedding_norm, main_embedding_difference, permuted_embedding_difference
from grokbook.measures.common import Array, ratio

_mean = main_embedding_difference


def _open_sum(block: Array) -> Array:
    return main_embedding_difference(block, cyclic=False, reduction="sum")


def _short_mean(block: Array) -> Array:
    """The slice of the released scripts: neither token p - 1 nor the wrap, p - 2 differences."""
    return main_embedding_difference(block[..., :-1, :], cyclic=False)


#: What was published as MED, from the embeddings (..., p, d) of the first and of the second operand. With
#: shared tokens both are the same block, which M3, M5 and M6 then count twice.
MED_FORMS = {
    "M1": lambda a, b: (_mean(a) + _mean(b)) / 2,  # 2025, definition 4.2
    "M2": lambda a, b: a.shape[-2] * (_mean(a) + _mean(b)) / 2,  # 2025, figure 5
    "M3": lambda a, b: _open_sum(a) + _open_sum(b),  # earlier version, eq. 12
    "M4": lambda a, b: (_short_mean(a) + _short_mean(b)) / 2,  # script base.py
    "M5": lambda a, b: (a.shape[-2] - 1) * (_short_mean(a) + _short_mean(b)),  # script rec.py
    "M6": lambda a, b: _short_mean(a) + _short_mean(b),  # script str.py
}


def published_med(first: ArrayLike, second: ArrayLike | None = None, *, form: str = "M1") -> Array:
    """MED in one of its six published forms.

    Args:
        first: (..., p, d) embedding of the first operand, p of at least 3.
        second: the same for the second operand; None if the operands share their tokens.
        form: a key of `MED_FORMS`.
    """
    checks.one_of("form", form, tuple(MED_FORMS))
    first = np.asarray(first, float)
    second = first if second is None else np.asarray(second, float)
    if first.shape != second.shape:
        raise ValueError(f"second must have the shape of first, {first.shape}, got {second.shape}")
    if first.ndim < 2 or first.shape[-2] < 3:
        raise ValueError(f"first must have shape (..., p, d) with p of at least 3, got {first.shape}")
    return MED_FORMS[form](first, second)


def med_controls(embedding: ArrayLike, *, seed: int = 0) -> dict[str, Array]:
    """What MED must beat to say more than that weights shrink, of an embedding (..., p, d).

    Returns:
        name -> (...): "embedding_norm" (R), "med_over_norm" (M1 over R, nan where the embedding is zero) and
        "med_permuted", over residues in an order drawn from ``seed``.
    """
    norm = embedding_norm(embedding)
    return {
        "embedding_norm": norm,
        "med_over_norm": ratio(main_embedding_difference(embedding), norm),
        "med_permuted": permuted_embedding_difference(embedding, seed=seed),
    }
