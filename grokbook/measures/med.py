"""Distances between embeddings of consecutive numbers: MED of Gu et al. (2025), its forms and its controls."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array, ratio
from grokbook.measures.norms import embedding_norm


def main_embedding_difference(
    embedding: ArrayLike, *, cyclic: bool = True, reduction: str = "mean", step: int = 1
) -> Array:
    """MED: how far the embeddings of consecutive numbers lie apart, Gu et al. (2025), definition 4.2.

    The defaults are the definition; `MED_FORMS` are the other things that were published under the name. The
    measure changes when the residues are relabelled by i -> a i, which leaves addition the same task: the MED
    of the relabelled embedding is the one with ``step=a``.

    Args:
        embedding: (..., p, d) one row a residue, in order; word embeddings, without a positional table.
        cyclic: count the differences that wrap from p - 1 to 0.
        reduction: "mean" or "sum" over the differences, "none" keeps them.
        step: compare i with i + step, not a multiple of p.

    Returns:
        (...), or with "none" (..., p) differences if cyclic, else (..., p - step).

    Raises:
        ValueError: fewer than two rows, a step without a difference, or an unknown reduction.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2 or embedding.shape[-2] < 2:
        raise ValueError(f"embedding must have shape (..., p, d) with p of at least 2, got {embedding.shape}")
    p = embedding.shape[-2]
    if not isinstance(step, int | np.integer) or step % p == 0 or not (cyclic or 0 < step < p):
        wanted = "a whole number, no multiple of p" if cyclic else "a whole number from 1 to p - 1 without the wrap"
        raise ValueError(f"step must be {wanted}, got step={step} with p={p}")
    reductions = {"mean": lambda d: d.mean(-1), "sum": lambda d: d.sum(-1), "none": lambda d: d}
    if reduction not in reductions:
        raise ValueError(f"reduction must be one of {', '.join(map(repr, reductions))}, got {reduction!r}")
    ahead = np.roll(embedding, -step, axis=-2)
    differences = np.sqrt(np.square(ahead - embedding).sum(-1))  # (..., p)
    return reductions[reduction](differences if cyclic else differences[..., : p - step])


def _cyclic_mean(block: Array) -> Array:
    return main_embedding_difference(block)


def _open_sum(block: Array) -> Array:
    return main_embedding_difference(block, cyclic=False, reduction="sum")


def _short_mean(block: Array) -> Array:
    """The slice of the released scripts: neither token p - 1 nor the wrap, p - 2 differences."""
    return main_embedding_difference(block[..., :-1, :], cyclic=False)


#: What was published as MED, from the embeddings (..., p, d) of the first and of the second operand. With
#: shared tokens both are the same block, which M3, M5 and M6 then count twice.
MED_FORMS = {
    "M1": lambda a, b: (_cyclic_mean(a) + _cyclic_mean(b)) / 2,  # 2025, definition 4.2
    "M2": lambda a, b: a.shape[-2] * (_cyclic_mean(a) + _cyclic_mean(b)) / 2,  # 2025, figure 5
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

    Returns:
        (...). For Gaussian entries of variance 1/d every single difference is close to sqrt(2).

    Raises:
        ValueError: fewer than three rows, blocks of two shapes, or an unknown form.
    """
    if form not in MED_FORMS:
        raise ValueError(f"form must be one of {', '.join(MED_FORMS)}, got {form!r}")
    first = np.asarray(first, float)
    second = first if second is None else np.asarray(second, float)
    if first.shape != second.shape:
        raise ValueError(f"second must have the shape of first, {first.shape}, got {second.shape}")
    if first.ndim < 2 or first.shape[-2] < 3:
        raise ValueError(f"first must have shape (..., p, d) with p of at least 3, got {first.shape}")
    return MED_FORMS[form](first, second)


def embedding_blocks(table: ArrayLike, p: int, offset: int = 0) -> tuple[Array, Array]:
    """The operands' parts of a vocabulary: rows 0 to p - 1 and rows offset to offset + p - 1.

    Args:
        table: (..., vocabulary, d) all embeddings; the last row, of the token "cls", belongs to no operand.
        p: modulus.
        offset: token of the second operand's 0, the k of the earlier version's figure 3; 0 shares all tokens.

    Returns:
        two arrays (..., p, d).

    Raises:
        ValueError: offset + p exceeds the vocabulary.
    """
    table = np.asarray(table, float)
    if table.ndim < 2:
        raise ValueError(f"table must have shape (..., vocabulary, d), got {table.shape}")
    if p < 2 or offset < 0 or offset + p > table.shape[-2]:
        raise ValueError(
            f"offset + p must fit the vocabulary of {table.shape[-2]} tokens, got offset={offset} and p={p}"
        )
    return table[..., :p, :], table[..., offset : offset + p, :]


def permuted_embedding_difference(embedding: ArrayLike, *, seed: int = 0) -> Array:
    """MED after one fixed random relabelling of the residues: (..., p, d) -> (...).

    Whatever it shares with MED is due to the size of the embeddings, not to the order of the numbers. The
    seed fixes the permutation, the same one for every leading index.

    Raises:
        ValueError: not of two dimensions or more.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    order = np.random.default_rng(seed).permutation(embedding.shape[-2])
    return main_embedding_difference(embedding[..., order, :])


def med_controls(embedding: ArrayLike, *, seed: int = 0) -> dict[str, Array]:
    """What MED must beat to say more than that weights shrink.

    Args:
        embedding: (..., p, d).
        seed: of the permutation of "med_permuted".

    Returns:
        name -> (...): "embedding_norm" (R), "med_over_norm" (M1 over R, nan where the embedding is zero) and
        "med_permuted".
    """
    norm = embedding_norm(embedding)
    return {
        "embedding_norm": norm,
        "med_over_norm": ratio(main_embedding_difference(embedding), norm),
        "med_permuted": permuted_embedding_difference(embedding, seed=seed),
    }
