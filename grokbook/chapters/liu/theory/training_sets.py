"""What a training set implies, by linear algebra alone: Liu et al. (2022), section 3 and appendices C to E."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.chapters.liu.theory.relations import ZERO, Array, Seed, symbols, which_held
from grokbook.measures import parallelogram_gaps, sums_of

BLOCK = 1 << 20  # numbers held at once


def random_training_sets(p: int, size: int, count: int, *, generator: Seed = None) -> NDArray[np.int64]:
    """Training sets drawn without replacement: (count, size, 2).

    Raises:
        ValueError: more samples than the table has, or none.
    """
    pairs, _ = sums_of(symbols(p))
    if not 1 <= checks.integer("size", size, 0) <= len(pairs):
        raise ValueError(f"size must be from 1 to {len(pairs)} samples for p={p}, got size={size}")
    order = checks.generator(generator).random((checks.integer("count", count, 1), len(pairs))).argsort(-1)
    return pairs[order[:, :size]]


def interactions(train_pairs: ArrayLike, p: int) -> Array:
    """A^T A of the equations A(P0(D)): (..., p, p), of whole numbers.

    Gradient flow of sum |E_i + E_j - E_m - E_n|**2 over P0(D) is driven by it.
    """
    return _interactions(which_held(train_pairs, p), p)


def rates(train_pairs: ArrayLike, p: int) -> Array:
    """The eigenvalues of A^T A in increasing order: (..., p); those that vanish are exactly 0."""
    return rates_of(which_held(train_pairs, p), p)


def nullity(train_pairs: ArrayLike, p: int) -> NDArray[np.int64]:
    """n_0: the degrees of freedom of the representations that close every parallelogram of the training set.

    Args:
        train_pairs: (..., n, 2).

    Returns:
        (...), from 2 (only a line E_k = a + k b is left) to p (no parallelogram).

    Reference: below eq. 7; figure 4 (a).
    """
    return (rates(train_pairs, p) == 0).sum(-1)


def rate_factor(train_pairs: ArrayLike, p: int, *, averaging: str = "sum", Z0: float | None = None) -> Array:
    """What turns an eigenvalue of A^T A into a rate: 2 / Z0 ("sum") or 2 / (Z0 |P0(D)|) ("mean").

    "mean" is eqs. 5 and 8 as printed; "sum" leaves the average out, which is what the time axes of figures 4 (c) and 5
    (b) need. Equation 42 has half of either.

    Args:
        Z0: the conserved size, eq. 6; None is p, that of embeddings with unit population variance in one dimension.

    Returns:
        (...); without a parallelogram |P0(D)| counts as 1, and there is no rate to multiply.

    Raises:
        ValueError: Z0 not above 0, or an unknown averaging.
    """
    checks.one_of("averaging", averaging, ("sum", "mean"))
    Z0 = float(symbols(p)) if Z0 is None else float(Z0)
    if not Z0 > 0:
        raise ValueError(f"Z0 must be above 0, got {Z0}")
    count = count_of(which_held(train_pairs, p), p)
    return 2 / Z0 / (count.clip(1) if averaging == "mean" else np.ones(count.shape))


def grokking_rate(train_pairs: ArrayLike, p: int, *, averaging: str = "sum", Z0: float | None = None) -> Array:
    """lambda_3: how fast the slowest part of a representation that is not a line dies out.

    Args:
        train_pairs: (..., n, 2).
        averaging, Z0: as in `rate_factor`.

    Returns:
        (...), 0 unless the training set implies the line.

    Reference: below eq. 9; figure 5 (a).
    """
    return rates(train_pairs, p)[..., 2] * rate_factor(train_pairs, p, averaging=averaging, Z0=Z0)


def grokking_steps(
    train_pairs: ArrayLike, p: int, *, learning_rate: float = 1e-3, averaging: str = "sum", Z0: float | None = None
) -> Array:
    """n_h = 1 / (lambda_3 learning rate), the predicted optimizer steps, figure 5 (b): (...), inf if lambda_3 is 0."""
    with np.errstate(divide="ignore"):
        return 1 / (grokking_rate(train_pairs, p, averaging=averaging, Z0=Z0) * learning_rate)


def ideal_representation(train_pairs: ArrayLike, p: int, d: int = 1, *, generator: Seed = None) -> Array:
    """A random representation that closes the parallelograms of the training set and no others it need not, figure 9.

    Returns:
        (..., p, d); a line if the nullity is 2. The same normal numbers are used for every training set.
    """
    values = checks.generator(generator).standard_normal((symbols(p), checks.integer("d", d, 1)))
    return _ground_state(which_held(train_pairs, p), p, values)


def implied_parallelograms(train_pairs: ArrayLike, p: int) -> NDArray[np.bool_]:
    """P(D), eq. 14: which parallelograms of P0 follow from those of the training set.

    An equation follows if adding it leaves the rank as it is, that is if `ideal_representation` obeys it.

    Returns:
        (..., |P0|), in the order of `parallelograms`.
    """
    return implied_by(which_held(train_pairs, p), p)


def ideal_rqi(train_pairs: ArrayLike, p: int) -> Array:
    """|P(D)| / |P0|, eq. 16: the index of an ideal model, (...); 1 if and only if `nullity` is 2."""
    return implied_parallelograms(train_pairs, p).mean(-1)


def ideal_accuracy(train_pairs: ArrayLike, p: int, *, held_out: bool = False) -> Array:
    """The accuracy on all samples, or on those held out, that an ideal model reaches, eq. 17: (...), a fraction."""
    held = which_held(train_pairs, p)
    return share_reached(held, implied_by(held, p), sums_of(p).couples, held_out)


def predicted_accuracy(
    embedding: ArrayLike, train_pairs: ArrayLike, delta: float = 0.1, *, held_out: bool = False
) -> Array:
    """The accuracy that a representation allows after training on D, eqs. 12 and 13.

    A sample is right if it is trained on or closes a parallelogram with one that is.

    Args:
        embedding: (..., p, d).
        train_pairs: (..., n, 2); leading axes broadcast against those of the embedding.
        delta: as in `grokbook.measures.representation_quality_index`.
        held_out: count only the samples outside the training set.

    Returns:
        (...), a fraction; nan where an embedding is not finite.
    """
    gaps, p = parallelogram_gaps(embedding), np.shape(embedding)[-2]
    found = share_reached(which_held(train_pairs, p), gaps <= delta, sums_of(p).couples, held_out)
    return np.where(np.isfinite(embedding).all((-2, -1)), found, np.nan)[()]


def _blocks(held: NDArray[np.bool_], width: int, part: Callable[[NDArray[np.bool_]], NDArray]) -> NDArray:
    """Apply ``part`` to training sets (set, N), few enough at once that ``width`` numbers each fit the cache."""
    flat = held.reshape(-1, held.shape[-1])
    tall = max(1, BLOCK // width)
    found = np.concatenate([part(flat[top : top + tall]) for top in range(0, len(flat), tall)])
    return found.reshape(*held.shape[:-1], *found.shape[1:])


def _interactions(held: NDArray[np.bool_], p: int) -> Array:
    """With x = e_i + e_j, A^T A = sum over answers of (k sum x x^T - (sum x) (sum x)^T), k samples with the answer.

    This is much faster than listing parallelograms.
    """
    i, j = sums_of(p).pairs.T
    n, m = np.indices((p, p))

    def part(held: NDArray[np.bool_]) -> Array:
        W = np.zeros((len(held), p, p))
        W[:, i, j] += held
        W[:, j, i] += held  # 2 on the diagonal
        T = np.zeros((len(held), p, 2 * p - 1))  # (set, symbol, answer): sum x
        T[:, n, n + m] = W
        K = W * (T.sum(1) / 2)[:, n + m]
        K[:, range(p), range(p)] += K.sum(-1)
        return K - T @ T.swapaxes(-1, -2)

    return _blocks(held, 4 * p * p, part)


def rates_of(held: NDArray[np.bool_], p: int) -> Array:
    """`rates` of training sets given as (..., N), as `which_held` gives them."""
    values = _blocks(held, 4 * p * p, lambda part: np.linalg.eigvalsh(_interactions(part, p)))
    return np.where(values > ZERO, values, 0.0)


def count_of(held: NDArray[np.bool_], p: int) -> NDArray[np.int64]:
    """|P0(D)|: k (k - 1) / 2 summed over the answers."""
    answers = sums_of(p).pairs.sum(-1)
    k = held.astype(np.int64) @ (answers[:, None] == np.arange(2 * p - 1))
    return (k * (k - 1) // 2).sum(-1)


def _ground_state(held: NDArray[np.bool_], p: int, values: Array) -> Array:
    """Random values (p, d) projected on the null space of each training set: (..., p, d)."""

    def part(held: NDArray[np.bool_]) -> Array:
        rate, vectors = np.linalg.eigh(_interactions(held, p))
        parts = np.where(rate[..., None] > ZERO, 0.0, vectors.swapaxes(-1, -2) @ values)  # (set, mode, d)
        return vectors @ parts

    return _blocks(held, 4 * p * p, part)


def implied_by(held: NDArray[np.bool_], p: int) -> NDArray[np.bool_]:
    """What the general ground state closes; in three dimensions an equation holds by chance once in about 1e20."""

    def part(held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        R = _ground_state(held, p, np.random.default_rng(0).standard_normal((p, 3)))
        return parallelogram_gaps(R, normalise=False, reduce="sum") < 1e-7

    return _blocks(held, 8 * len(sums_of(p).couples), part)


def share_reached(
    held: NDArray[np.bool_], closed: NDArray[np.bool_], couples: NDArray[np.int64], held_out: bool
) -> Array:
    """|D u {x : {x, y} closed, y in D}| as a share: held (..., sample), closed (..., couple) -> (...)."""
    edges = np.concatenate([couples, couples[:, ::-1]])  # (2 |P0|, 2): target, source
    order = edges[:, 0].argsort(kind="stable")
    (targets, starts), sources = np.unique(edges[order, 0], return_index=True), edges[order, 1]
    couple = order % max(len(couples), 1)
    lead = np.broadcast_shapes(held.shape[:-1], closed.shape[:-1])
    reached = np.broadcast_to(held, (*lead, held.shape[-1])).copy()
    for where in np.ndindex(lead[:-1]):  # one row of sets at a time
        h, c = (np.broadcast_to(x, (*lead, x.shape[-1]))[where] for x in (held, closed))
        found = c[..., couple] & h[..., sources]
        row = reached[where]
        row[..., targets] |= np.logical_or.reduceat(found, starts, axis=-1)
    if not held_out:
        return reached.mean(-1)
    if held.all(-1).any():
        raise ValueError("the training set holds every sample, so there is none held out to predict")
    return (reached & ~held).sum(-1) / (~held).sum(-1)
