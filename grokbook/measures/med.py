"""Distances between embeddings of consecutive numbers: MED of Gu et al. (2025)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook import checks
from grokbook.measures.common import Array, as_embedding


def main_embedding_difference(
    embedding: ArrayLike, *, cyclic: bool = True, reduction: str = "mean", step: int = 1
) -> Array:
    """MED: how far the embeddings of consecutive numbers lie apart, Gu et al. (2025), definition 4.2.

    From (..., p, d), a row a residue, in order, without a positional table, to (...). The defaults are the definition.
    The measure changes when the residues are relabelled by i -> a i, which leaves addition the same task: the MED of
    the relabelled embedding is the one with ``step=a``.

    Args:
        cyclic: count the differences that wrap from p - 1 to 0.
        reduction: "mean" or "sum" over the differences.
        step: compare i with i + step, not a multiple of p.

    ``ValueError`` for fewer than two rows, a step without a difference, or an unknown reduction.
    """
    embedding = as_embedding(embedding, "(..., p, d)", 2)
    p = embedding.shape[-2]
    if p < 2:
        raise ValueError(f"embedding must have p of at least 2, got {embedding.shape}")
    if not isinstance(step, int | np.integer) or step % p == 0 or not (cyclic or 0 < step < p):
        wanted = "a whole number, no multiple of p" if cyclic else "a whole number from 1 to p - 1 without the wrap"
        raise ValueError(f"step must be {wanted}, got step={step} with p={p}")
    checks.one_of("reduction", reduction, ("mean", "sum"))
    ahead = np.roll(embedding, -step, axis=-2)
    differences = np.sqrt(np.square(ahead - embedding).sum(-1))[..., : p if cyclic else p - step]
    return differences.mean(-1) if reduction == "mean" else differences.sum(-1)


def embedding_blocks(table: ArrayLike, p: int, offset: int = 0) -> tuple[Array, Array]:
    """The operands' parts (..., p, d) of embeddings (..., vocabulary, d): rows from 0 and from offset, p each.

    The offset is the token of the second operand's 0, the k of the earlier version's figure 3; 0 shares all tokens.
    The last row, of the token "cls", belongs to no operand. Raises ``ValueError`` if offset + p exceeds the vocabulary.
    """
    table = as_embedding(table, "(..., vocabulary, d)", 2)
    size = table.shape[-2]
    if p < 2 or offset < 0 or offset + p > size:
        bounds = f"p must be 2 or more, offset + p at most the vocabulary of {size} tokens"
        raise ValueError(f"{bounds}, got offset={offset} and p={p}")
    return table[..., :p, :], table[..., offset : offset + p, :]


def permuted_embedding_difference(embedding: ArrayLike, *, seed: int = 0) -> Array:
    """MED after one random relabelling of the residues, fixed by the seed: (..., p, d) -> (...).

    Whatever it shares with MED is due to the size of the embeddings, not to the order of the numbers.
    """
    embedding = as_embedding(embedding, "(..., p, d)", 2)
    order = np.random.default_rng(seed).permutation(embedding.shape[-2])
    return main_embedding_difference(embedding[..., order, :])
