"""The effective theory of representation learning, Liu et al. (2022), section 3 and appendices C to F, I and L.

Equation numbers are the paper's; where a printed equation is wrong the docstring says what was corrected. The
symbols are 0 .. p - 1 and a sample is an unordered pair of them: in ``train_pairs`` (..., n, 2) the order within a
pair and repeats do not matter, and leading axes are independent training sets. There are N = p (p + 1) / 2 samples.
``modular=True`` takes the sums mod p. Embeddings are (p, d), or (..., p, d) where that is said. One step of an
optimizer lasts one learning rate of the theory's time. Random draws come from ``generator``: a numpy Generator, a
seed, or None for fresh entropy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.measures import (
    group_parallelogram_gaps,
    parallelogram_gaps,
    ranks,
    representation_quality_index,
    standardised,
    sums_of,
)
from grokbook.tasks import group_table

Array = NDArray[np.float64]
Seed = np.random.Generator | int | None

ZERO = 1e-8  # an eigenvalue of A^T A below this is zero; A holds integers, and rounding leaves about 1e-12
BLOCK = 1 << 20  # numbers held at once

#: Three readings of the rates lambda_i, see `rate_factor`.
AVERAGING = ("raw", "sum", "mean")


# --- parallelograms -----------------------------------------------------------------------------------------


def parallelograms(p: int, *, modular: bool = False) -> NDArray[np.int64]:
    """The permissible set P0 of all samples, eq. 1: every (i, j, m, n) with i + j = m + n.

    Equation 19 lists the same sets as sorted quadruples, whose halves do not have equal sums; here the first two and
    the last two symbols are the samples.

    Returns:
        (|P0|, 4), rows i <= j and m <= n with i < m; |P0| = p (p - 2) (2 p + 1) / 24 for even p and (p**2 - 1)
        (2 p - 3) / 24 for odd p (without modulus).
    """
    pairs, couples = sums_of(_symbols(p), modular=modular)
    return pairs[couples].reshape(-1, 4)


def parallelograms_of(pairs: ArrayLike, p: int, *, modular: bool = False) -> NDArray[np.int64]:
    """P0(D), eq. 1: the permissible parallelograms both of whose samples are in one training set (n, 2).

    Returns:
        (k, 4), in the order of `parallelograms`; k may be 0.

    Raises:
        ValueError: more than one set, or symbols outside 0 to p - 1.
    """
    samples, couples = sums_of(_symbols(p), modular=modular)
    held = _held(pairs, p, empty=True)
    if held.ndim > 1:
        raise ValueError(f"pairs must be one set of shape (n, 2), got {np.shape(pairs)}")
    return samples[couples[held[couples].all(-1)]].reshape(-1, 4)


def equations(rows: ArrayLike, p: int) -> NDArray[np.int64]:
    """A(P), eq. 7: the matrix whose null space are the representations in which the parallelograms close.

    Args:
        rows: (k, 4) parallelograms (i, j, m, n).

    Returns:
        (k, p), one equation E_i + E_j - E_m - E_n = 0 a row; a symbol used twice has 2.

    Raises:
        ValueError: symbols outside 0 to p - 1.
    """
    p = _symbols(p)
    rows = np.asarray(rows, np.int64).reshape(-1, 4)
    if rows.size and (rows.min() < 0 or rows.max() >= p):
        raise ValueError(f"parallelograms must hold symbols from 0 to {p - 1}, got {rows.min()} to {rows.max()}")
    matrix = np.zeros((len(rows), p), np.int64)
    for column, sign in zip(rows.T, (1, 1, -1, -1), strict=True):
        np.add.at(matrix, (np.arange(len(rows)), column), sign)
    return matrix


def free_directions(rows: ArrayLike, p: int) -> int:
    """n(A), appendix E: the dimension of the representations in which these parallelograms (k, 4) close."""
    A = equations(rows, p)
    return p - int((np.linalg.svd(A, compute_uv=False) > math.sqrt(ZERO)).sum()) if len(A) else p


class Hierarchy(NamedTuple):
    """All subsets of the equations of P0 and the arrows from each to those with one equation less, figure 11."""

    sets: tuple[tuple[int, ...], ...]  #: indices of parallelograms, the full set first
    arrows: tuple[tuple[int, int], ...]  #: (parent, child), indices into sets
    freedom: tuple[int, ...]  #: the null space's dimension of each set
    closure: tuple[tuple[int, ...], ...]  #: all the parallelograms that each set implies


def hierarchy(p: int = 4) -> Hierarchy:
    """The hierarchy of equation sets and of the representations they allow; p = 4 has 8 sets and p = 5 has 128.

    Raises:
        ValueError: p above 5, of which there are too many sets.
    """
    rows = parallelograms(p)
    if len(rows) > 12:
        raise ValueError(f"p={p} has 2**{len(rows)} sets of equations; the hierarchy is listed up to p = 5")
    everything = range(len(rows))
    sets = [s for size in reversed(range(len(rows) + 1)) for s in itertools.combinations(everything, size)]
    where = {s: k for k, s in enumerate(sets)}
    arrows = [(where[s], where[tuple(e for e in s if e != gone)]) for s in sets for gone in s]
    freedom = [free_directions(rows[list(s)], p) for s in sets]
    closure = [
        tuple(e for e in everything if free_directions(rows[[*s, e]], p) == n)
        for s, n in zip(sets, freedom, strict=True)
    ]
    return Hierarchy(tuple(sets), tuple(arrows), tuple(freedom), tuple(closure))


# --- what a training set implies ----------------------------------------------------------------------------


def random_training_sets(p: int, size: int, count: int, *, generator: Seed = None) -> NDArray[np.int64]:
    """Training sets drawn without replacement: (count, size, 2).

    Raises:
        ValueError: more samples than the table has, or none.
    """
    pairs, _ = sums_of(_symbols(p))
    if not 1 <= checks.integer("size", size, 0) <= len(pairs):
        raise ValueError(f"size must be from 1 to {len(pairs)} samples for p={p}, got size={size}")
    order = checks.generator(generator).random((checks.integer("count", count, 1), len(pairs))).argsort(-1)
    return pairs[order[:, :size]]


def interactions(train_pairs: ArrayLike, p: int, *, modular: bool = False) -> Array:
    """A^T A of the equations A(P0(D)): (..., p, p), of whole numbers.

    Gradient flow of sum |E_i + E_j - E_m - E_n|**2 over P0(D) is driven by it. It is summed over the samples of each
    answer, which is much faster than listing parallelograms.
    """
    return _interactions(_held(train_pairs, p), p, modular)


def rates(train_pairs: ArrayLike, p: int, *, modular: bool = False) -> Array:
    """The eigenvalues of A^T A in increasing order: (..., p); those that vanish are exactly 0.

    With ``modular``, odd p and all samples every eigenvalue but the first is p (p + 3) / 2: no wave is slower than
    another, so the effective loss of modular addition chooses no circle.
    """
    return _rates(_held(train_pairs, p), p, modular)


def nullity(train_pairs: ArrayLike, p: int, *, modular: bool = False) -> NDArray[np.int64]:
    """n_0: the degrees of freedom of the representations that close every parallelogram of the training set.

    Args:
        train_pairs: (..., n, 2).

    Returns:
        (...), from 2 (only a line E_k = a + k b is left) to p (no parallelogram). With ``modular`` the least is 1:
        only the collapsed representation closes all parallelograms.

    Reference: below eq. 7; figure 4 (a).
    """
    return (rates(train_pairs, p, modular=modular) == 0).sum(-1)


def rate_factor(
    train_pairs: ArrayLike, p: int, *, averaging: str = "sum", Z0: float | None = None, modular: bool = False
) -> Array:
    """What turns an eigenvalue of A^T A into a rate: 1 ("raw"), 2 / Z0 ("sum") or 2 / (Z0 |P0(D)|) ("mean").

    "mean" is eqs. 5 and 8 as printed; "sum" leaves the average out, which is what the time axes of figures 4 (c) and 5
    (b) need. Equation 42 has half of either.

    Args:
        Z0: the conserved size, eq. 6; None is p, that of embeddings with unit population variance in one dimension.

    Returns:
        (...); without a parallelogram |P0(D)| counts as 1, and there is no rate to multiply.

    Raises:
        ValueError: Z0 not above 0, or an unknown averaging.
    """
    checks.one_of("averaging", averaging, AVERAGING)
    Z0 = float(_symbols(p)) if Z0 is None else float(Z0)
    if not Z0 > 0:
        raise ValueError(f"Z0 must be above 0, got {Z0}")
    count = _count(_held(train_pairs, p), p, modular)
    ones = np.ones(count.shape)
    return {"raw": ones, "sum": ones * 2 / Z0, "mean": 2 / (Z0 * count.clip(1))}[averaging]


def grokking_rate(
    train_pairs: ArrayLike, p: int, *, averaging: str = "sum", Z0: float | None = None, modular: bool = False
) -> Array:
    """lambda_3: how fast the slowest part of a representation that is not a line dies out.

    Args:
        train_pairs: (..., n, 2).
        averaging, Z0: as in `rate_factor`.
        modular: takes lambda_2 instead, for there only one eigenvalue always vanishes.

    Returns:
        (...), 0 unless the training set implies the line.

    Reference: below eq. 9; figure 5 (a).
    """
    third = rates(train_pairs, p, modular=modular)[..., 1 if modular else 2]
    return third * rate_factor(train_pairs, p, averaging=averaging, Z0=Z0, modular=modular)


def grokking_steps(
    train_pairs: ArrayLike,
    p: int,
    *,
    learning_rate: float = 1e-3,
    averaging: str = "sum",
    Z0: float | None = None,
) -> Array:
    """n_h = 1 / (lambda_3 learning rate), the predicted optimizer steps, figure 5 (b): (...), inf if lambda_3 is 0.

    Raises:
        ValueError: a learning_rate not above 0; besides, as `rate_factor`.
    """
    if not learning_rate > 0:
        raise ValueError(f"learning_rate must be above 0, got {learning_rate}")
    with np.errstate(divide="ignore"):
        return 1 / (grokking_rate(train_pairs, p, averaging=averaging, Z0=Z0) * learning_rate)


def ideal_representation(
    train_pairs: ArrayLike, p: int, d: int = 1, *, generator: Seed = None, modular: bool = False
) -> Array:
    """A random representation that closes the parallelograms of the training set and no others it need not, figure 9.

    Returns:
        (..., p, d); a line if the nullity is 2. The same normal numbers are used for every training set.
    """
    values = checks.generator(generator).standard_normal((_symbols(p), checks.integer("d", d, 1)))
    return _ground_state(_held(train_pairs, p), p, modular, values)


def implied_parallelograms(train_pairs: ArrayLike, p: int, *, modular: bool = False) -> NDArray[np.bool_]:
    """P(D), eq. 14: which parallelograms of P0 follow from those of the training set.

    An equation follows if adding it leaves the rank as it is, that is if `ideal_representation` obeys it.

    Returns:
        (..., |P0|), in the order of `parallelograms`.
    """
    return _implied(_held(train_pairs, p), p, modular)


def ideal_rqi(train_pairs: ArrayLike, p: int, *, modular: bool = False) -> Array:
    """|P(D)| / |P0|, eq. 16: the representation quality index of an ideal model, (...).

    Without modulus it is 1 if and only if `nullity` is 2.
    """
    return implied_parallelograms(train_pairs, p, modular=modular).mean(-1)


def ideal_accuracy(train_pairs: ArrayLike, p: int, *, held_out: bool = False, modular: bool = False) -> Array:
    """The accuracy on all samples that an ideal model reaches, eq. 17: (...), a fraction.

    Args:
        held_out: count only the samples outside the training set.
    """
    held = _held(train_pairs, p)
    return _reached(held, _implied(held, p, modular), sums_of(p, modular=modular).couples, held_out)


def predicted_accuracy(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    delta: float = 0.1,
    *,
    normalise: bool = True,
    reduce: str = "mean",
    held_out: bool = False,
    modular: bool = False,
    metric: str = "vector",
) -> Array:
    """The accuracy that a representation allows after training on D, eqs. 12 and 13.

    A sample is right if it is trained on or closes a parallelogram with one that is.

    Args:
        embedding: (..., p, d).
        train_pairs: (..., n, 2); leading axes broadcast against those of the embedding.
        delta, normalise, reduce: as in `grokbook.measures.representation_quality_index`.
        held_out: count only the samples outside the training set.
        modular, metric: as in `grokbook.measures.modular_representation_quality_index`.

    Returns:
        (...), a fraction; nan where an embedding is not finite.
    """
    gaps = parallelogram_gaps(embedding, normalise=normalise, reduce=reduce, modular=modular, metric=metric)
    p = np.shape(embedding)[-2]
    found = _reached(_held(train_pairs, p), _within(gaps, delta), sums_of(p, modular=modular).couples, held_out)
    return np.where(np.isfinite(embedding).all((-2, -1)), found, np.nan)[()]


def _held(pairs: ArrayLike, p: int, *, empty: bool = False) -> NDArray[np.bool_]:
    """(..., n, 2) pairs -> (..., N), which of all samples are among them."""
    p = _symbols(p)
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        if not empty:
            raise ValueError("train_pairs must hold at least one pair, got an empty training set")
        pairs = pairs.reshape(*pairs.shape[: max(pairs.ndim - 2, 0)], 0, 2).astype(np.int64)
    if pairs.ndim < 2 or pairs.shape[-1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"train_pairs must be integers of shape (..., n, 2), got {pairs.dtype} of {pairs.shape}")
    outside = (pairs < 0) | (pairs >= p)
    if outside.any():
        i, j = pairs[outside.any(-1)][0]
        raise ValueError(f"train_pairs must hold symbols from 0 to {p - 1}, got the pair ({i}, {j})")
    i, j = pairs.min(-1).astype(np.int64), pairs.max(-1).astype(np.int64)
    sample = i * p - i * (i - 1) // 2 + j - i  # lexicographic among i <= j
    held = np.zeros((*pairs.shape[:-2], p * (p + 1) // 2), bool)
    np.put_along_axis(held, sample, True, -1)
    return held


def _blocks(held: NDArray[np.bool_], width: int, part: Callable[[NDArray[np.bool_]], NDArray]) -> NDArray:
    """Apply ``part`` to training sets (set, N), few enough at once that ``width`` numbers each fit the cache."""
    flat = held.reshape(-1, held.shape[-1])
    tall = max(1, BLOCK // width)
    parts = [part(flat[top : top + tall]) for top in range(0, len(flat), tall)]
    found = np.concatenate(parts) if parts else part(flat)
    return found.reshape(*held.shape[:-1], *found.shape[1:])


def _interactions(held: NDArray[np.bool_], p: int, modular: bool) -> Array:
    """With x = e_i + e_j, A^T A = sum over answers of (k sum x x^T - (sum x) (sum x)^T), k samples with the answer."""
    i, j = sums_of(p).pairs.T
    n, m = np.indices((p, p))
    answer = (n + m) % p if modular else n + m

    def part(held: NDArray[np.bool_]) -> Array:
        W = np.zeros((len(held), p, p))
        W[:, i, j] += held
        W[:, j, i] += held  # 2 on the diagonal
        T = np.zeros((len(held), p, int(answer.max()) + 1))  # (set, symbol, answer): sum x
        T[:, n, answer] = W
        K = W * (T.sum(1) / 2)[:, answer]
        K[:, range(p), range(p)] += K.sum(-1)
        return K - T @ T.swapaxes(-1, -2)

    return _blocks(held, 4 * p * p, part)


def _rates(held: NDArray[np.bool_], p: int, modular: bool) -> Array:
    values = _blocks(held, 4 * p * p, lambda part: np.linalg.eigvalsh(_interactions(part, p, modular)))
    return np.where(values > ZERO, values, 0.0)


def _count(held: NDArray[np.bool_], p: int, modular: bool) -> NDArray[np.int64]:
    """|P0(D)|: k (k - 1) / 2 summed over the answers."""
    i, j = sums_of(p).pairs.T
    answers = (i + j) % p if modular else i + j
    k = held.astype(np.int64) @ (answers[:, None] == np.arange(answers.max() + 1))
    return (k * (k - 1) // 2).sum(-1)


def _ground_state(held: NDArray[np.bool_], p: int, modular: bool, values: Array) -> Array:
    """Random values (p, d) projected on the null space of each training set: (..., p, d)."""

    def part(held: NDArray[np.bool_]) -> Array:
        rate, vectors = np.linalg.eigh(_interactions(held, p, modular))
        parts = np.where(rate[..., None] > ZERO, 0.0, vectors.swapaxes(-1, -2) @ values)  # (set, mode, d)
        return vectors @ parts

    return _blocks(held, 4 * p * p, part)


def _implied(held: NDArray[np.bool_], p: int, modular: bool) -> NDArray[np.bool_]:
    """What the general ground state closes; in three dimensions an equation holds by chance once in about 1e20."""

    def part(held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        R = _ground_state(held, p, modular, np.random.default_rng(0).standard_normal((p, 3)))
        return parallelogram_gaps(R, normalise=False, reduce="sum", modular=modular) < 1e-7

    return _blocks(held, 8 * len(sums_of(p, modular=modular).couples), part)


def _reached(
    held: NDArray[np.bool_],
    closed: NDArray[np.bool_],
    couples: NDArray[np.int64],
    held_out: bool,
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


def _within(gaps: Array, delta: float) -> NDArray[np.bool_]:
    if not delta >= 0:
        raise ValueError(f"delta must be at least 0, got {delta}")
    return gaps <= delta


# --- the transition -----------------------------------------------------------------------------------------


def critical_sizes(p: int, count: int, *, generator: Seed = None, modular: bool = False) -> NDArray[np.int64]:
    """How many samples it takes until the line is the only solution, for each of ``count`` random orders.

    Every order adds all samples one by one; a sample can only lower the nullity, so bisection finds the first size
    with the least nullity. The share of orders with a critical size of at most n is the probability of figure 4 (a) at
    n, for all n at once.

    Returns:
        (count,), between p and N without modulus.
    """
    N = len(sums_of(_symbols(p)).pairs)
    order = checks.generator(generator).random((checks.integer("count", count, 1), N)).argsort(-1)
    rank = order.argsort(-1)  # (count, sample): its place in the order
    least = 1 if modular else 2
    below, above = np.full(count, p - 2), np.full(count, N)  # the line is not implied below, it is above
    while (open_ := above - below > 1).any():
        middle = (below + above) // 2
        unique = (_rates(rank[open_] < middle[open_, None], p, modular) == 0).sum(-1) == least
        above[open_] = np.where(unique, middle[open_], above[open_])
        below[open_] = np.where(unique, below[open_], middle[open_])
    return above


def transition_study(ps: Sequence[int], count: int, *, seed: int = 0) -> xr.Dataset:
    """`critical_sizes` for several p.

    Returns:
        Dataset with ``critical_size`` (p, order), ``samples`` (p) the number N of all samples, ``fraction`` (p) the
        median critical size as a share of N (r_c) and ``width`` (p) its interquartile range as a share of N.
    """
    sizes = np.stack([critical_sizes(p, count, generator=np.random.default_rng([seed, p])) for p in ps])
    samples = np.array([p * (p + 1) // 2 for p in ps])
    low, middle, high = np.quantile(sizes, [0.25, 0.5, 0.75], axis=-1)
    return xr.Dataset(
        {
            "critical_size": (("p", "order"), sizes),
            "samples": ("p", samples),
            "fraction": ("p", middle / samples),
            "width": ("p", (high - low) / samples),
        },
        {"p": list(ps)},
    )


def ideal_study(p: int, sizes: Sequence[int], count: int, *, seed: int = 0, modular: bool = False) -> xr.Dataset:
    """What random training sets imply, for figures 4 (a), 5 (a) and 10.

    Returns:
        Dataset with dims (size, draw): ``nullity``, ``rate`` (raw lambda_3, `grokking_rate`), ``parallelograms``
        (|P0(D)|), ``ideal_rqi``, ``ideal_accuracy``.
    """
    found: dict[str, list[NDArray]] = {}
    for size in sizes:
        sets = random_training_sets(p, size, count, generator=np.random.default_rng([seed, p, size]))
        held = _held(sets, p)
        values, implied = _rates(held, p, modular), _implied(held, p, modular)
        row = {
            "nullity": (values == 0).sum(-1),
            "rate": values[:, 1 if modular else 2],
            "parallelograms": _count(held, p, modular),
            "ideal_rqi": implied.mean(-1),
            "ideal_accuracy": _reached(held, implied, sums_of(p, modular=modular).couples, held_out=False),
        }
        for name, column in row.items():
            found.setdefault(name, []).append(column)
    variables = {name: (("size", "draw"), np.stack(rows)) for name, rows in found.items()}
    return xr.Dataset(variables, {"size": list(sizes)}, {"p": p, "samples": p * (p + 1) // 2})


# --- gradient flow of the effective loss --------------------------------------------------------------------


class Conserved(NamedTuple):
    """The two quantities of eq. 6."""

    C: Array  #: (..., d) the sum of the embeddings
    Z0: Array  #: (...) the sum of their squares


def conserved(embedding: ArrayLike) -> Conserved:
    """C and Z0 of embeddings (..., p, d)."""
    embedding = np.asarray(embedding, float)
    return Conserved(embedding.sum(-2), np.square(embedding).sum((-2, -1)))


class LineFit(NamedTuple):
    """How near embeddings are to a line traversed evenly, E_k = a + k b."""

    r2: Array  #: (...) the share of the variance that the best such line explains
    rho: Array  #: (...) the size of the rest over the size of the linear part; r2 = 1 / (1 + rho**2)


def line_fit(embedding: ArrayLike) -> LineFit:
    """The best line through embeddings (..., p, d)."""
    embedding = np.asarray(embedding, float)
    centred = embedding - embedding.mean(-2, keepdims=True)
    k = np.arange(embedding.shape[-2]) - (embedding.shape[-2] - 1) / 2
    linear = k[:, None] * (k @ centred / (k @ k))[..., None, :]
    size, rest = (np.square(part).sum((-2, -1)) for part in (linear, centred - linear))
    with np.errstate(divide="ignore", invalid="ignore"):
        return LineFit(size / (size + rest), np.sqrt(rest / size))


def effective_loss(
    embedding: ArrayLike, train_pairs: ArrayLike, *, averaging: str = "mean", modular: bool = False
) -> Array:
    """l_eff = R^T H R / 2 of embeddings (..., p, d) and one training set (n, 2), with H as in `rate_factor`.

    "mean" is eq. 5 as printed, l_0 / Z0 with l_0 the mean squared gap of P0(D); "sum" has the sum in place of the mean;
    "raw" is half the sum, without Z0. Equation 42 is half of "mean".
    """
    embedding = _vectors(embedding)
    checks.one_of("averaging", averaging, AVERAGING)
    rows = parallelograms_of(train_pairs, embedding.shape[-2], modular=modular)
    i, j, m, n = rows.T
    gaps = embedding[..., i, :] + embedding[..., j, :] - embedding[..., m, :] - embedding[..., n, :]
    total, Z0 = np.square(gaps).sum((-2, -1)), conserved(embedding).Z0
    return {"raw": total / 2, "sum": total / Z0, "mean": total / (Z0 * max(len(rows), 1))}[averaging]


def flow(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    times: ArrayLike,
    *,
    averaging: str = "sum",
    renormalise: bool = True,
    modular: bool = False,
) -> Array:
    """Gradient flow of the effective loss, eqs. 4 and 23, in closed form.

    The flow is R(t) = sqrt(Z0) e^{-Ht} R0 / |e^{-Ht} R0| with H of eq. 8: the gradient of 1 / Z0 in eq. 25 does nothing
    but keep the size. Z0 is conserved always and C only if it is zero at the start: dC/dt = (2 l_0 / Z0**2) C, a
    term that eq. 27 leaves out. Equation 9, dR/dt = -H R, is a different flow (``renormalise=False``): it conserves C
    always and lets Z0 shrink to that of the part that no equation touches.

    Args:
        embedding: (p, d) at time 0; every dimension obeys the same equations.
        train_pairs: (n, 2).
        times: (t,), from 0; a step of gradient descent lasts one learning rate.
        averaging: as in `rate_factor`, with the Z0 of the embedding.

    Returns:
        (t, p, d).
    """
    start, A2, factor = _flow_setup(embedding, train_pairs, averaging, modular)
    times = _times(times)
    values, vectors = np.linalg.eigh(A2)
    values = np.where(values > ZERO, values, 0.0) * factor
    parts = vectors.T @ start  # (mode, d)
    if renormalise:  # only ratios count, so nothing may vanish and no rounding may grow
        present = np.abs(parts).max(-1) > 1e-13 * np.abs(parts).max()
        values, parts, vectors = values[present], parts[present], vectors[:, present]
        values = values - values.min()
    R = vectors @ (np.exp(-values[:, None] * times[:, None, None]) * parts)  # (t, p, d)
    if not renormalise:
        return R
    return R * np.sqrt(conserved(start).Z0 / conserved(R).Z0)[:, None, None]


def integrate_flow(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    times: ArrayLike,
    *,
    averaging: str = "sum",
    renormalise: bool = True,
    modular: bool = False,
    step: float | None = None,
) -> Array:
    """The same flow as `flow`, integrated by the classical Runge-Kutta method of order 4 from the gradient of eq. 25.

    Args:
        step: the longest step; None is 0.05 divided by the largest rate, which leaves errors of about 1e-9.

    Returns:
        (t, p, d).

    Raises:
        ValueError: a step not above 0; besides, as `rate_factor`.
    """
    start, A2, factor = _flow_setup(embedding, train_pairs, averaging, modular)
    times = _times(times)
    fastest = factor * np.abs(A2).sum(-1).max()
    longest = (0.05 / fastest if fastest > 0 else math.inf) if step is None else step
    if not longest > 0:
        raise ValueError(f"step must be above 0, got {step}")
    A = equations(parallelograms_of(train_pairs, len(start), modular=modular), len(start)).astype(float)
    Z_start = conserved(start).Z0

    def velocity(R: Array) -> Array:
        gaps = A @ R
        pull = -factor * (A.T @ gaps)
        if not renormalise:
            return pull
        Z0 = conserved(R).Z0  # H has 1 / Z0 of the present, the factor that of the start
        shrink = 1.0 if averaging == "raw" else Z_start / Z0
        return shrink * (pull + factor * np.square(gaps).sum() / Z0 * R)

    return _runge_kutta(velocity, start, times, longest)


def descend(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    steps: int,
    *,
    learning_rate: float = 1e-3,
    averaging: str = "sum",
    modular: bool = False,
) -> Array:
    """Gradient descent on the effective loss, l_0 / Z0 with the present Z0: (steps + 1, p, d).

    Steps of finite length raise Z0 a little: the gradient is at right angles to R.
    """
    start, A2, factor = _flow_setup(embedding, train_pairs, averaging, modular)
    Z_start = conserved(start).Z0
    R = np.empty((checks.integer("steps", steps, 0) + 1, *start.shape))
    R[0] = start
    for step in range(steps):
        Z0, pull = np.square(R[step]).sum(), A2 @ R[step]
        scale = learning_rate * factor * (1.0 if averaging == "raw" else Z_start / Z0)
        R[step + 1] = R[step] - scale * (pull - (R[step] * pull).sum() / Z0 * R[step])
    return R


def flow_steps_to_rqi(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    *,
    threshold: float = 0.95,
    delta: float = 0.1,
    learning_rate: float = 1e-3,
    averaging: str = "sum",
    budget: int = 10_000,
) -> float:
    """When the flow from these embeddings (p, d) first has a representation quality index above the threshold.

    Unlike n_h it knows where the embeddings start. Steps are looked at on a grid of 2000, evenly spaced.

    Returns:
        optimizer steps; nan if it does not happen within the budget.
    """
    steps = np.linspace(0, budget, 2001)
    R = flow(embedding, train_pairs, steps * learning_rate, averaging=averaging)
    above = representation_quality_index(R, delta) > threshold
    return float(steps[above.argmax()]) if above.any() else math.nan


def _flow_setup(
    embedding: ArrayLike, train_pairs: ArrayLike, averaging: str, modular: bool
) -> tuple[Array, Array, float]:
    """The start (p, d), A^T A (p, p) and what makes rates of its eigenvalues."""
    start = _vectors(embedding)
    if start.ndim != 2 or np.ndim(train_pairs) != 2:
        raise ValueError(
            f"a flow takes an embedding (p, d) and a training set (n, 2), got {start.shape}, {np.shape(train_pairs)}"
        )
    p, Z0 = len(start), float(np.square(start).sum())
    if not Z0 > 0:
        raise ValueError("the effective loss is l_0 / Z0, and these embeddings are all zero")
    factor = rate_factor(train_pairs, p, averaging=averaging, Z0=Z0, modular=modular)
    return start, interactions(train_pairs, p, modular=modular), float(factor)


def _runge_kutta(velocity: Callable[[Array], Array], start: Array, times: Array, longest: float) -> Array:
    """The states at the times, from the start at time 0."""
    states, R, now = np.empty((len(times), *start.shape)), start, 0.0
    for k in times.argsort(kind="stable"):
        pieces = max(1, math.ceil((times[k] - now) / longest))
        h, now = (times[k] - now) / pieces, times[k]
        for _ in range(pieces if h > 0 else 0):
            k1 = velocity(R)
            k2 = velocity(R + h / 2 * k1)
            k3 = velocity(R + h / 2 * k2)
            k4 = velocity(R + h * k3)
            R = R + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states[k] = R
    return states


# --- the effective loss from a linear decoder, appendix L ---------------------------------------------------


class LinearDecoder(NamedTuple):
    """A linear decoder and the samples it is trained on, at several times or at one."""

    A: Array  #: (..., out, d)
    b: Array  #: (..., out)
    r: Array  #: (..., sample, d) the sums of embeddings, trained too


def linear_decoder_flow(
    decoder: LinearDecoder,
    labels: ArrayLike,
    times: ArrayLike,
    *,
    decoder_rate: float,
    embedding_rate: float,
    gamma: float = 0.0,
    step: float = 1e-3,
) -> LinearDecoder:
    """Gradient flow of sum over samples of |A r + b - y|**2 / 2 + gamma |A|**2 / 2, eqs. 35 to 39, integrated.

    Args:
        decoder: the state at time 0.
        labels: (sample, out).
        times: (t,).
        decoder_rate, embedding_rate: eta_A and eta_x.
        gamma: weight decay; like the paper's eq. 39 it counts once a sample.
        step: the longest Runge-Kutta step.

    Returns:
        The states, each with a leading axis (t,).

    Raises:
        ValueError: shapes that do not belong together.
    """
    A, b, r = (np.asarray(part, float) for part in decoder)
    y = np.asarray(labels, float)
    if A.shape != (len(b), r.shape[-1]) or y.shape != (len(r), len(b)):
        raise ValueError(
            f"decoder must be A (out, d), b (out,), r (sample, d) and labels (sample, out), "
            f"got {A.shape}, {b.shape}, {r.shape} and {y.shape}"
        )
    ends = np.cumsum([A.size, b.size])

    def unpack(flat: Array) -> LinearDecoder:
        one, two, three = np.split(flat, ends, axis=-1)
        lead = flat.shape[:-1]
        return LinearDecoder(one.reshape(*lead, *A.shape), two, three.reshape(*lead, *r.shape))

    def velocity(flat: Array) -> Array:
        A, b, r = unpack(flat)
        error = r @ A.T + b - y  # (sample, out)
        dA = -decoder_rate * (error.T @ r + len(r) * gamma * A)
        return np.concatenate([dA.ravel(), -decoder_rate * error.sum(0), (-embedding_rate * error @ A).ravel()])

    start = np.concatenate([A.ravel(), b, r.ravel()])
    return unpack(_runge_kutta(velocity, start, _times(times), step))


def bias_flow(label: ArrayLike, times: ArrayLike, *, decoder_rate: float, samples: int = 2) -> Array:
    """b(t) = (1 - e^{-samples eta_A t}) y, below eq. 37, for b(0) = 0 and samples with one label that sum to zero.

    The paper prints the exponent 2 eta_A t already for one sample, where it is eta_A t; for the pair r' = -r of eq. 40
    it is right, and leaving out A r is then no approximation.

    Returns:
        (t, out).
    """
    return -np.expm1(-samples * decoder_rate * _times(times))[:, None] * np.asarray(label, float)


def separation_flow(separation: ArrayLike, A: ArrayLike, times: ArrayLike, *, embedding_rate: float) -> Array:
    """r - r' of two samples with one label, eq. 40 in the adiabatic limit: e^{-eta_x A^T A t} (r - r').

    For a fixed A it is exact whatever b and the label are, since the external force is the same on both. With A^T A = 1
    it is the attraction of eq. 41.

    Args:
        separation: (d,) at time 0.
        A: (out, d).

    Returns:
        (t, d).
    """
    A = np.asarray(A, float)
    values, vectors = np.linalg.eigh(A.T @ A)
    parts = vectors.T @ np.asarray(separation, float)
    return np.exp(-embedding_rate * _times(times)[:, None] * values) * parts @ vectors.T


def pair_energy(one: ArrayLike, other: ArrayLike, A: ArrayLike | None = None) -> Array:
    """U = |A (r - r')|**2 / 2 of two sums of embeddings (..., d), eq. 41 for A = 1: (...)."""
    separation = np.asarray(one, float) - np.asarray(other, float)
    separation = separation if A is None else separation @ np.asarray(A, float).T
    return np.square(separation).sum(-1) / 2


# --- the effective loss of image classes, appendix I --------------------------------------------------------


class ClassLoss(NamedTuple):
    """The effective loss of features with class labels, eq. 32."""

    l: float  #: the sum of squared distances over couples of the same class
    Z: float  #: the sum of squared features
    l_eff: float  #: l / Z


def class_loss(features: ArrayLike, labels: ArrayLike) -> ClassLoss:
    """Eq. 32 without listing couples: those of a class add up to its size times its scatter.

    Args:
        features: (n, d).
        labels: (n,) integers.

    Raises:
        ValueError: all features are zero.
    """
    f, labels, means, sizes = _classes(features, labels)
    l = float((sizes[labels] * np.square(f - means[labels]).sum(-1)).sum())
    Z = float(np.square(f).sum())
    if not Z > 0:
        raise ValueError("the effective loss is l / Z, and these features are all zero")
    return ClassLoss(l, Z, l / Z)


def class_gradient(features: ArrayLike, labels: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """The gradient of l / Z, or of l alone: (n, d).

    Equation 33 prints the opposite sign for df/dt; that Z is conserved does not depend on it.
    """
    f, labels, means, sizes = _classes(features, labels)
    pull = 2 * sizes[labels][:, None] * (f - means[labels])
    if not scale_invariant:
        return pull
    loss = class_loss(f, labels)
    return (pull - 2 * loss.l_eff * f) / loss.Z


def class_flow(features: ArrayLike, labels: ArrayLike, times: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """Gradient flow of eq. 32 in closed form: (t, n, d).

    The deviation from the mean of a class of n_c images decays at the rate 2 n_c / Z, the class means stay, and all is
    rescaled to the size at the start. Without the 1 / Z the rate is 2 n_c and nothing is rescaled: Z falls to that of
    the class means, which for free features is above zero; the collapse to nothing needs a shared encoder.
    """
    f, labels, means, sizes = _classes(features, labels)
    Z = class_loss(f, labels).Z
    rate = 2.0 * sizes[labels] / (Z if scale_invariant else 1.0)
    kept = np.exp(-rate * _times(times)[:, None])[..., None]  # (t, n, 1)
    moved = means[labels] + kept * (f - means[labels])
    if not scale_invariant:
        return moved
    return moved * np.sqrt(Z / np.square(moved).sum((-2, -1)))[:, None, None]


def class_descent(
    features: ArrayLike,
    labels: ArrayLike,
    steps: int,
    *,
    learning_rate: float = 1e-3,
    optimizer: str = "adam",
    scale_invariant: bool = True,
) -> Array:
    """The features at every step of Adam (figure 19; betas 0.9, 0.999, eps 1e-8) or gradient descent ("sgd") on eq. 32.

    Returns:
        (steps + 1, n, d).
    """
    checks.one_of("optimizer", optimizer, ("adam", "sgd"))
    f = _classes(features, labels)[0]
    states = np.empty((checks.integer("steps", steps, 0) + 1, *f.shape))
    states[0], first, second = f, np.zeros_like(f), np.zeros_like(f)
    for step in range(1, steps + 1):
        gradient = class_gradient(states[step - 1], labels, scale_invariant=scale_invariant)
        if optimizer == "adam":
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            gradient = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        states[step] = states[step - 1] - learning_rate * gradient
    return states


def scatter_ratio(features: ArrayLike, labels: ArrayLike) -> float:
    """The scatter of features (n, d) within classes over that of the class means around the mean of all, W / B."""
    f, labels, means, _ = _classes(features, labels)
    within, between = np.square(f - means[labels]).sum(), np.square(means[labels] - f.mean(0)).sum()
    return float(within / between) if between > 0 else math.inf


def _classes(features: ArrayLike, labels: ArrayLike) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]:
    """Features (n, d), labels as 0, 1, ... (n,), class means (class, d) and class sizes (class,)."""
    f, labels = np.asarray(features, float), np.asarray(labels)
    if f.ndim != 2 or labels.shape != f.shape[:1] or not len(f):
        raise ValueError(f"features must be (n, d) and labels (n,), got {f.shape} and {labels.shape}")
    _, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.zeros((len(sizes), f.shape[1]))
    np.add.at(means, labels, f)
    return f, labels, means / sizes[:, None], sizes


# --- groups, appendix H -------------------------------------------------------------------------------------


def permutation_matrices(group: str) -> Array:
    """The matrices of a permutation group that multiply as its elements do: (n, k, k).

    Raises:
        ValueError: another name than "S2" to "S5".
    """
    n = len(group_table(group))
    if not str(group).startswith("S"):
        raise ValueError(f"permutation_matrices knows the groups S2 to S5, got {group!r}")
    k = int(str(group)[1:])
    matrices = np.zeros((n, k, k))
    for row, element in enumerate(itertools.permutations(range(k))):
        matrices[row, element, range(k)] = 1
    return matrices


def group_parallelograms(table: ArrayLike) -> NDArray[np.int64]:
    """All (a, b, c, d) with a b = c d, as unordered couples of different ordered pairs: (90, 4) for S3."""
    table = np.asarray(table)
    n = len(table)
    answers = table.ravel()
    couples = [(x, y) for x in range(n * n) for y in range(x + 1, n * n) if answers[x] == answers[y]]
    return np.array([(*divmod(x, n), *divmod(y, n)) for x, y in couples], np.int64).reshape(-1, 4)


def group_predicted_accuracy(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    table: ArrayLike,
    delta: float = 0.5**0.5,
    *,
    normalise: bool = True,
    reduce: str = "mean",
    held_out: bool = False,
) -> Array:
    """The accuracy that matrices allow after training on ordered pairs, eqs. 12 and 13 with products, figure 18 (d).

    Args:
        embedding: (..., element, k, k).
        train_pairs: (..., n, 2) ordered pairs of elements.
        table: (element, element) from `group_table`.
        delta, normalise, reduce: as in `grokbook.measures.group_representation_quality_index`.
        held_out: count only the samples outside the training set.

    Returns:
        (...), a fraction.

    Raises:
        ValueError: pairs of elements that the table does not have.
    """
    gaps = group_parallelogram_gaps(embedding, table, normalise=normalise, reduce=reduce)
    n = len(np.asarray(table))
    pairs = np.asarray(train_pairs)
    _held(pairs, max(n, 3))  # the same complaints
    if pairs.max() >= n:
        raise ValueError(f"train_pairs must hold elements from 0 to {n - 1}, got {pairs.max()}")
    held = np.zeros((*pairs.shape[:-2], n * n), bool)
    np.put_along_axis(held, pairs[..., 0] * n + pairs[..., 1], True, -1)
    couples = group_parallelograms(table)[:, [0, 2]] * n + group_parallelograms(table)[:, [1, 3]]
    return _reached(held, _within(gaps, delta), couples, held_out)


# --- beyond the paper ---------------------------------------------------------------------------------------


def line_readout(embedding: ArrayLike) -> Array:
    """The projection of embeddings (..., p, d) that comes nearest to the symbols' numbers 0 .. p - 1: (..., p, 1).

    What a linear decoder may keep. With d >= p - 1 dimensions every embedding has a perfect line in it, so its
    representation quality index then says nothing.
    """
    embedding = _vectors(embedding)
    centred = embedding - embedding.mean(-2, keepdims=True)
    k = np.arange(embedding.shape[-2]) - (embedding.shape[-2] - 1) / 2
    return centred @ (np.linalg.pinv(centred) @ k[:, None])


def useless_dimensions_study(
    p: int, dimensions: Sequence[int], draws: int, *, delta: float = 0.1, seed: int = 0
) -> xr.Dataset:
    """A perfect line in one dimension beside random ones that a decoder may ignore, appendix D's caveat.

    Returns:
        Dataset (dimension, draw): the representation quality index of all dimensions with the mean and the sum over
        them (``rqi_mean``, ``rqi_sum``), of random embeddings without the line (``rqi_random``), and after
        `line_readout` with it (``rqi_readout``) and without (``rqi_random_readout``).
    """
    generator = np.random.default_rng(seed)
    rows: dict[str, list[Array]] = {}
    for d in dimensions:
        noise = generator.standard_normal((checks.integer("draws", draws, 1), p, d))
        with_line = noise.copy()
        with_line[..., 0] = np.arange(p)
        for name, value in {
            "rqi_mean": representation_quality_index(with_line, delta),
            "rqi_sum": representation_quality_index(with_line, delta, reduce="sum"),
            "rqi_random": representation_quality_index(noise, delta),
            "rqi_readout": representation_quality_index(line_readout(standardised(with_line)), delta),
            "rqi_random_readout": representation_quality_index(line_readout(standardised(noise)), delta),
        }.items():
            rows.setdefault(name, []).append(value)
    variables = {name: (("dimension", "draw"), np.stack(row)) for name, row in rows.items()}
    return xr.Dataset(variables, {"dimension": list(dimensions)}, {"p": p, "delta": delta})


class RateAgreement(NamedTuple):
    """How measured steps follow the prediction 1 / rate; intervals hold 95 % of bootstrap resamples."""

    runs: int  #: runs with a measured step and a rate above zero
    spearman: float
    spearman_interval: tuple[float, float]
    slope: float  #: of log steps against log(1 / rate) by least squares; the theory says 1
    slope_interval: tuple[float, float]


def rate_agreement(steps: ArrayLike, rates: ArrayLike, *, resamples: int = 2000, generator: Seed = 0) -> RateAgreement:
    """Rank correlation and log-log slope between measured steps (run,) and 1 / rates (run,).

    Runs that did not arrive (nan) or have no rate (0) are left out.

    Raises:
        ValueError: not one rate a run, or fewer than 3 runs with both.
    """
    steps, rates = np.asarray(steps, float).ravel(), np.asarray(rates, float).ravel()
    if steps.shape != rates.shape:
        raise ValueError(f"steps and rates must have one entry a run, got {steps.shape} and {rates.shape}")
    known = np.isfinite(steps) & (steps > 0) & (rates > 0)
    y, x = np.log(steps[known]), -np.log(rates[known])
    if len(x) < 3:
        raise ValueError(f"at least 3 runs with a step and a rate are needed, got {len(x)}")

    def slope(x: Array, y: Array) -> float:
        centred = x - x.mean()
        return float(centred @ y / (centred @ centred)) if centred.any() else math.nan

    def both(x: Array, y: Array) -> tuple[float, float]:
        one, other = ranks(x), ranks(y)
        return slope(one, other) * float(one.std() / other.std()) if np.ptp(y) > 0 else math.nan, slope(x, y)

    choices = checks.generator(generator).integers(len(x), size=(resamples, len(x)))
    spread = np.nanquantile([both(x[c], y[c]) for c in choices], [0.025, 0.975], axis=0)
    (low_r, low_s), (high_r, high_s) = spread.tolist()
    return RateAgreement(len(x), both(x, y)[0], (low_r, high_r), slope(x, y), (low_s, high_s))


# --- checks of what was passed ------------------------------------------------------------------------------


def _symbols(p: int) -> int:
    return checks.integer("p", p, 3)


def _vectors(embedding: ArrayLike) -> Array:
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    return embedding


def _times(times: ArrayLike) -> Array:
    times = np.atleast_1d(np.asarray(times, float))
    if times.ndim != 1 or not (times >= 0).all():
        raise ValueError(f"times must be a row of numbers of at least 0, got {times}")
    return times
