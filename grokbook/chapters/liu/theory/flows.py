"""Gradient flow of the effective loss, Liu et al. (2022), section 3.2 and appendices F and L."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grokbook.chapters.liu.theory.relations import ZERO, Array
from grokbook.chapters.liu.theory.training_sets import interactions, rate_factor


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


def flow(
    embedding: ArrayLike,
    train_pairs: ArrayLike,
    times: ArrayLike,
    *,
    averaging: str = "sum",
    renormalise: bool = True,
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

    Raises:
        ValueError: embeddings that are all zero, or a time below 0.
    """
    start, times = np.asarray(embedding, float), np.asarray(times, float)
    Z0 = float(np.square(start).sum())
    if not Z0 > 0:
        raise ValueError("the effective loss is l_0 / Z0, and these embeddings are all zero")
    if not (times >= 0).all():
        raise ValueError(f"times must be at least 0, got {times.min()}")
    values, vectors = np.linalg.eigh(interactions(train_pairs, len(start)))
    values = np.where(values > ZERO, values, 0.0) * rate_factor(train_pairs, len(start), averaging=averaging, Z0=Z0)
    parts = vectors.T @ start  # (mode, d)
    if renormalise:  # only ratios count, so nothing may vanish and no rounding may grow
        present = np.abs(parts).max(-1) > 1e-13 * np.abs(parts).max()
        values, parts, vectors = values[present], parts[present], vectors[:, present]
        values = values - values.min()
    R = vectors @ (np.exp(-values[:, None] * times[:, None, None]) * parts)  # (t, p, d)
    return R * np.sqrt(Z0 / conserved(R).Z0)[:, None, None] if renormalise else R


class LinearDecoder(NamedTuple):
    """A linear decoder and the samples it is trained on, at several times or at one."""

    A: Array  #: (..., out, d)
    b: Array  #: (..., out)
    r: Array  #: (..., sample, d) the sums of embeddings, trained too


def linear_decoder_flow(
    decoder: LinearDecoder, labels: ArrayLike, times: ArrayLike, *, decoder_rate: float, embedding_rate: float = 1.0,
    step: float = 1e-3,
) -> LinearDecoder:  # fmt: skip
    """Gradient flow of sum over samples of |A r + b - y|**2 / 2, eqs. 35 to 39, by the Runge-Kutta method of order 4.

    Args:
        decoder: the state at time 0.
        labels: (sample, out).
        times: (t,), ascending from 0.
        decoder_rate, embedding_rate: eta_A and eta_x.
        step: the longest step.

    Returns:
        The states, each with a leading axis (t,).
    """
    state, y = [np.asarray(part, float) for part in decoder], np.asarray(labels, float)

    def velocity(A: Array, b: Array, r: Array) -> list[Array]:
        error = r @ A.T + b - y  # (sample, out)
        return [-decoder_rate * error.T @ r, -decoder_rate * error.sum(0), -embedding_rate * error @ A]

    def moved(h: float, by: list[Array]) -> list[Array]:
        return [part + h * change for part, change in zip(state, by, strict=True)]

    found, now = [], 0.0
    for time in np.asarray(times, float):
        pieces = math.ceil((time - now) / step)
        for _ in range(pieces):
            h = (time - now) / pieces
            k1 = velocity(*state)
            k2 = velocity(*moved(h / 2, k1))
            k3 = velocity(*moved(h / 2, k2))
            k4 = velocity(*moved(h, k3))
            state = moved(h / 6, [a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)])
        found.append(state)
        now = float(time)
    return LinearDecoder(*(np.stack(parts) for parts in zip(*found, strict=True)))
