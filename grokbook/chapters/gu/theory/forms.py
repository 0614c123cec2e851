"""What was published under the name of MED."""

from __future__ import annotations

from grokbook.measures import main_embedding_difference
from grokbook.measures.common import Array

_mean = main_embedding_difference


def _open_sum(block: Array) -> Array:
    return main_embedding_difference(block, cyclic=False, reduction="sum")


def _short_mean(block: Array) -> Array:
    """The slice of the released scripts: neither token p - 1 nor the wrap, p - 2 differences."""
    return main_embedding_difference(block[..., :-1, :], cyclic=False)


#: What was published as MED, from the embeddings (..., p, d) of the first and of the second operand, p of at least 3,
#: to (...). With shared tokens both are the same block, which M3, M5 and M6 then count twice.
MED_FORMS = {
    "M1": lambda a, b: (_mean(a) + _mean(b)) / 2,  # 2025, definition 4.2
    "M2": lambda a, b: a.shape[-2] * (_mean(a) + _mean(b)) / 2,  # 2025, figure 5
    "M3": lambda a, b: _open_sum(a) + _open_sum(b),  # earlier version, eq. 12
    "M4": lambda a, b: (_short_mean(a) + _short_mean(b)) / 2,  # script base.py
    "M5": lambda a, b: (a.shape[-2] - 1) * (_short_mean(a) + _short_mean(b)),  # script rec.py
    "M6": lambda a, b: _short_mean(a) + _short_mean(b),  # script str.py
}
