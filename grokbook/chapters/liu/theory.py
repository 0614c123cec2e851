"""The effective theory of representation learning, Liu et al. (2022), section 3 and appendices C to F, I and L.

Equation numbers are the paper's; where a printed equation is wrong the docstring says what was corrected. The
symbols are 0 .. p - 1 and a sample is an unordered pair of them: in ``train_pairs`` (..., n, 2) the order within a
pair and repeats do not matter, and leading axes are independent training sets. There are N = p (p + 1) / 2 samples,
and ``held`` (..., N) says which of them a training set has. One step of an optimizer lasts one learning rate of the
theory's time. Random draws come from ``generator``: a numpy Generator or a seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.lazy import torch
from grokbook.measures import parallelogram_gaps, sums_of
from grokbook.measures.common import Array
from grokbook.optim import Adam, Optimizer, stepper

Held = NDArray[np.bool_]
Seed = np.random.Generator | int

ADAM = Adam(1e-3)  # of figure 19
ZERO = 1e-8  # an eigenvalue of A^T A below this is zero; A holds integers, and rounding leaves about 1e-12


# ----------------------------------------------------------------------------- parallelograms, eqs 1 and 7, appendix E


def parallelograms(p: int) -> NDArray[np.int64]:
    """The permissible set P0 of all samples, eq. 1: (|P0|, 4), every i <= j and m <= n with i + j = m + n and i < m.

    Equation 19 lists sorted quadruples instead, whose halves need not have equal sums.
    """
    pairs, couples = sums_of(p)
    return pairs[couples].reshape(-1, 4)


def as_table(pairs: ArrayLike, p: int) -> NDArray[np.bool_]:
    """(..., n, 2) pairs -> (..., p, p), which ordered pairs are among them; ``ValueError`` for a symbol outside."""
    pairs = np.asarray(pairs)
    if ((pairs < 0) | (pairs >= p)).any():
        raise ValueError(f"train_pairs must hold symbols from 0 to {p - 1}, got {pairs.min()} to {pairs.max()}")
    seen = np.zeros((*pairs.shape[:-2], p * p), bool)
    np.put_along_axis(seen, pairs.astype(np.int64) @ np.array([p, 1]), True, -1)
    return seen.reshape(*seen.shape[:-1], p, p)


def which_held(pairs: ArrayLike, p: int) -> Held:
    """(..., n, 2) pairs -> (..., N), which of all samples are among them; ``ValueError`` for a symbol outside."""
    seen, (i, j) = as_table(pairs, p), sums_of(p).pairs.T
    return seen[..., i, j] | seen[..., j, i]


# ------------------------------------------------------------------------- what a training set implies, section 3.2, C


def random_training_sets(p: int, size: int, count: int, *, generator: Seed) -> NDArray[np.int64]:
    """Training sets drawn without replacement, (count, size, 2), of 1 to N samples."""
    pairs = sums_of(p).pairs
    order = np.random.default_rng(generator).random((count, len(pairs))).argsort(-1)
    return pairs[order[:, :size]]


def interactions(held: Held, p: int) -> Array:
    """A^T A of the equations A(P0(D)), eq. 7: (..., p, p), of whole numbers.

    With x = e_i + e_j it is the sum over answers of (k sum x x^T - (sum x) (sum x)^T), k samples with the answer,
    which is much faster than listing parallelograms.
    """
    i, j = sums_of(p).pairs.T
    n, m = np.indices((p, p))
    W = np.zeros((*held.shape[:-1], p, p))
    W[..., i, j] += held
    W[..., j, i] += held  # 2 on the diagonal
    T = np.zeros((*held.shape[:-1], p, 2 * p - 1))  # (..., symbol, answer): sum x
    T[..., n, n + m] = W
    K = W * (T.sum(-2) / 2)[..., n + m]
    K[..., range(p), range(p)] += K.sum(-1)
    return K - T @ T.swapaxes(-1, -2)


def rates(held: Held, p: int) -> Array:
    """The eigenvalues of A^T A in increasing order: (..., p); those that vanish are exactly 0."""
    values = np.linalg.eigvalsh(interactions(held, p))
    return np.where(values > ZERO, values, 0.0)


def nullity(train_pairs: ArrayLike, p: int) -> NDArray[np.int64]:
    """n_0: the degrees of freedom of the representations that close every parallelogram of the training set.

    (...), from 2 (only a line E_k = a + k b is left) to p (no parallelogram): below eq. 7 and figure 4 (a).
    """
    return (rates(which_held(train_pairs, p), p) == 0).sum(-1)


def rate_factor(held: Held, p: int, averaging: str, Z0: float) -> Array:
    """What turns an eigenvalue of A^T A into a rate: 2 / Z0 ("sum") or 2 / (Z0 |P0(D)|) ("mean"), (...).

    "mean" is eqs 5 and 8 as printed; "sum" leaves the average out, which is what the time axes of figures 4 (c) and 5
    (b) need. Equation 42 has half of either. Without a parallelogram |P0(D)| counts as 1. ``ValueError`` for an unknown
    averaging.
    """
    checks.one_of("averaging", averaging, ("sum", "mean"))
    count = held[..., sums_of(p).couples].all(-1).sum(-1)
    return 2 / Z0 / (count.clip(1) if averaging == "mean" else np.ones(count.shape))


def grokking_rate(train_pairs: ArrayLike, p: int, *, averaging: str = "sum", Z0: float | None = None) -> Array:
    """lambda_3, below eq. 9: how fast the slowest part of a representation that is not a line dies out, figure 5 (a).

    (...), 0 unless the training set implies the line. ``averaging`` is that of `rate_factor`, Z0 the conserved size,
    eq. 6; None is p, the size of embeddings with unit population variance in one dimension.
    """
    held = which_held(train_pairs, p)
    return rates(held, p)[..., 2] * rate_factor(held, p, averaging, p if Z0 is None else Z0)


def ground_state(held: Held, p: int, values: Array) -> Array:
    """Values (p, d) projected on the null space of each training set's equations: (..., p, d)."""
    rate, vectors = np.linalg.eigh(interactions(held, p))
    return vectors @ np.where(rate[..., None] > ZERO, 0.0, vectors.swapaxes(-1, -2) @ values)


def implied(held: Held, p: int) -> NDArray[np.bool_]:
    """P(D), eq. 14: which parallelograms of P0 follow from those of the training set, (..., |P0|); eq. 16 is its mean.

    It is what a random ground state closes; in three dimensions an equation holds by chance once in about 1e20.
    """
    R = ground_state(held, p, np.random.default_rng(0).standard_normal((p, 3)))
    return parallelogram_gaps(R, normalise=False) < 1e-7


def ideal_accuracy(train_pairs: ArrayLike, p: int, *, held_out: bool = False) -> Array:
    """The accuracy on all samples, or on those held out, that an ideal model reaches, eq. 17: (...), a fraction."""
    held = which_held(train_pairs, p)
    return share_reached(held, implied(held, p), sums_of(p).couples, held_out)


def predicted_accuracy(embedding: Array, held: Held, delta: float = 0.1) -> Array:
    """The accuracy that embeddings (..., p, d) allow after training on D, eqs 12 and 13, as a fraction (...).

    A sample is right if it is trained on or closes a parallelogram, to ``delta`` as in
    `grokbook.measures.representation_quality_index`, with one that is. Leading axes of both broadcast; nan where an
    embedding is not finite.
    """
    found = share_reached(held, parallelogram_gaps(embedding) <= delta, sums_of(embedding.shape[-2]).couples)
    return np.where(np.isfinite(embedding).all((-2, -1)), found, np.nan)[()]


def share_reached(held: Held, closed: NDArray[np.bool_], couples: NDArray[np.int64], held_out: bool = False) -> Array:
    """|D u {x : {x, y} closed, y in D}| as a share: held (..., sample), closed (..., couple) -> (...)."""
    lead = np.broadcast_shapes(held.shape[:-1], closed.shape[:-1])
    reached = np.broadcast_to(held, (*lead, held.shape[-1])).copy()
    for k, (x, y) in enumerate(couples):
        reached[..., x] |= closed[..., k] & held[..., y]
        reached[..., y] |= closed[..., k] & held[..., x]
    return (reached & ~held).sum(-1) / (~held).sum(-1) if held_out else reached.mean(-1)


def critical_sizes(p: int, count: int, *, generator: Seed) -> NDArray[np.int64]:
    """How many samples it takes until the line is the only solution, figure 4 (a): (count,), between p and N.

    Each of ``count`` random orders adds all samples one by one, which can only lower the nullity, so bisection finds
    the first size with a nullity of 2. The share of sizes of at most n is the probability of the figure at n.
    """
    N = len(sums_of(p).pairs)
    order = np.random.default_rng(generator).random((count, N)).argsort(-1)
    rank = order.argsort(-1)  # (count, sample): its place in the order
    below, above = np.full(count, p - 2), np.full(count, N)  # the line is not implied below, it is above
    while (above - below > 1).any():
        middle = (below + above) // 2
        unique = (rates(rank < middle[:, None], p) == 0).sum(-1) == 2
        below, above = np.where(unique, below, middle), np.where(unique, middle, above)
    return above


def implied_products(known: NDArray[np.bool_], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The products (g, g) of a group that follow from those known, elements being invertible matrices; −1 for others.

    E_a E_d = E_b E_c says that E_b⁻¹ E_a = E_c E_d⁻¹; ratios that are equal so give new equations, three parallelograms
    a fourth (eqs 30 and 31), until none is new (App. H.1). A product follows where it equals a known one.
    """
    g = len(table)
    row, column = np.divmod(np.arange(g * g), g)
    name = np.where(known, table, -1 - np.arange(g * g).reshape(g, g)).ravel()
    same = name[:, None] == name
    while True:
        x, y = np.nonzero(same)
        ratio = _classes(2 * g * g, row[y] * g + row[x], g * g + column[y] * g + column[x])
        (b, a), (c, d) = (np.divmod(some, g) for some in np.nonzero(ratio[: g * g, None] == ratio[g * g :]))
        cell = _classes(g * g, a * g + d, b * g + c)
        more = cell[:, None] == cell
        if (more == same).all():
            answer = np.full(g * g, -1)
            answer[cell[known.ravel()]] = table[known]
            return answer[cell].reshape(g, g)
        same = more


def _classes(count: int, one: Array, other: Array) -> NDArray[np.int64]:
    """The class (count,) of each thing, where pairs of things are alike."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    return connected_components(coo_array((np.ones(len(one)), (one, other)), shape=(count, count)), directed=False)[1]


def crossing(x: Array, y: Array, level: float = 0.5) -> float:
    """Where a curve through points first passes a level upwards, by linear interpolation; nan if it never does."""
    passed = np.flatnonzero((y[1:] >= level) & (y[:-1] < level))
    return float(np.interp(level, y[passed[0] :][:2], x[passed[0] :][:2])) if len(passed) else float("nan")


# ------------------------------------------------------------------------------------- flows, section 3.2, F, I and L


def line_fit(embedding: ArrayLike) -> Array:
    """The share of the variance of embeddings (..., p, d) that the best line traversed evenly explains, (...).

    It is 1 / (1 + rho**2) with rho the size of the rest over that of the linear part.
    """
    embedding = np.asarray(embedding, float)
    centred = embedding - embedding.mean(-2, keepdims=True)
    k = np.arange(embedding.shape[-2]) - (embedding.shape[-2] - 1) / 2
    linear = k[:, None] * (k @ centred / (k @ k))[..., None, :]
    size, rest = (np.square(part).sum((-2, -1)) for part in (linear, centred - linear))
    return size / (size + rest)


def flow(
    embedding: ArrayLike, train_pairs: ArrayLike, times: ArrayLike, *, averaging: str = "sum", renormalise: bool = True
) -> Array:
    """Gradient flow of the effective loss, eqs 4 and 23, from embeddings (p, d) at time 0, at times (t,): (t, p, d).

    R(t) = sqrt(Z0) e^{-Ht} R0 / |e^{-Ht} R0| with H of eq. 8, averaged as in `rate_factor`, of one training set (n, 2).
    Z0 is conserved always and the sum C of the embeddings only if it is zero at the start: dC/dt = (2 l_0 / Z0**2) C, a
    term that eq. 27 leaves out. Equation 9, dR/dt = -H R, is a different flow (``renormalise=False``): it conserves C
    always and lets Z0 shrink.
    """
    start, times = np.asarray(embedding, float), np.asarray(times, float)
    p, size = len(start), float(np.square(start).sum())
    held = which_held(train_pairs, p)
    values, vectors = np.linalg.eigh(interactions(held, p))
    values = np.where(values > ZERO, values, 0.0) * rate_factor(held, p, averaging, size)
    parts = vectors.T @ start  # (mode, d)
    if renormalise:  # only ratios count, so nothing may vanish and no rounding may grow
        present = np.abs(parts).max(-1) > 1e-13 * np.abs(parts).max()
        values, parts, vectors = values[present], parts[present], vectors[:, present]
        values = values - values.min()
    R = vectors @ (np.exp(-values[:, None] * times[:, None, None]) * parts)
    return R * np.sqrt(size / np.square(R).sum((-2, -1), keepdims=True)) if renormalise else R


def class_gradient(features: Array, labels: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """The gradient of l / Z of eq. 32, or of l alone, at features (..., n, d) of images: (..., n, d).

    l sums squared distances over couples of one class, and Z the squared features. Equation 33 prints the opposite
    sign for df/dt; that Z is conserved does not depend on it.
    """
    same = np.equal.outer(labels, labels).astype(float)
    pull = 2 * (same.sum(1, keepdims=True) * features - same @ features)
    l, Z = (part.sum((-2, -1), keepdims=True) for part in (features * pull / 2, np.square(features)))
    return (pull - 2 * l / Z * features) / Z if scale_invariant else pull


def class_descent(
    features: Array, labels: ArrayLike, steps: int, optimizer: Optimizer = ADAM, *, scale_invariant: bool = True
) -> Array:
    """The features at every step of an optimizer, in figure 19 of Adam, on eq. 32: (steps + 1, n, d)."""
    held, states = stepper([optimizer], {"f": torch.tensor(features)[None]}), [features]
    for step in range(1, steps + 1):
        gradient = class_gradient(states[-1], labels, scale_invariant=scale_invariant)
        held.step({"f": torch.tensor(gradient)[None]}, step)
        states.append(held.params["f"][0].numpy().copy())
    return np.stack(states)
