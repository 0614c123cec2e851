"""Gradient flow of the effective loss, Liu et al. (2022), section 3.2 and appendix F."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grokbook import checks
from grokbook.chapters.liu.theory.relations import ZERO, Array, equations, parallelograms_of
from grokbook.chapters.liu.theory.training_sets import AVERAGING, interactions, rate_factor
from grokbook.measures import representation_quality_index


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
    embedding = vectors(embedding)
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
    times = checked_times(times)
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
    times = checked_times(times)
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

    return runge_kutta(velocity, start, times, longest)


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
    start = vectors(embedding)
    if start.ndim != 2 or np.ndim(train_pairs) != 2:
        raise ValueError(
            f"a flow takes an embedding (p, d) and a training set (n, 2), got {start.shape}, {np.shape(train_pairs)}"
        )
    p, Z0 = len(start), float(np.square(start).sum())
    if not Z0 > 0:
        raise ValueError("the effective loss is l_0 / Z0, and these embeddings are all zero")
    factor = rate_factor(train_pairs, p, averaging=averaging, Z0=Z0, modular=modular)
    return start, interactions(train_pairs, p, modular=modular), float(factor)


def runge_kutta(velocity: Callable[[Array], Array], start: Array, times: Array, longest: float) -> Array:
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


def vectors(embedding: ArrayLike) -> Array:
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    return embedding


def checked_times(times: ArrayLike) -> Array:
    times = np.atleast_1d(np.asarray(times, float))
    if times.ndim != 1 or not (times >= 0).all():
        raise ValueError(f"times must be a row of numbers of at least 0, got {times}")
    return times
