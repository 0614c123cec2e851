"""The effective loss from a linear decoder, Liu et al. (2022), appendix L."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grokbook.chapters.liu.theory.flows import checked_times, runge_kutta
from grokbook.chapters.liu.theory.relations import Array


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
    return unpack(runge_kutta(velocity, start, checked_times(times), step))


def bias_flow(label: ArrayLike, times: ArrayLike, *, decoder_rate: float, samples: int = 2) -> Array:
    """b(t) = (1 - e^{-samples eta_A t}) y, below eq. 37, for b(0) = 0 and samples with one label that sum to zero.

    The paper prints the exponent 2 eta_A t already for one sample, where it is eta_A t; for the pair r' = -r of eq. 40
    it is right, and leaving out A r is then no approximation.

    Returns:
        (t, out).
    """
    return -np.expm1(-samples * decoder_rate * checked_times(times))[:, None] * np.asarray(label, float)


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
    return np.exp(-embedding_rate * checked_times(times)[:, None] * values) * parts @ vectors.T


def pair_energy(one: ArrayLike, other: ArrayLike, A: ArrayLike | None = None) -> Array:
    """U = |A (r - r')|**2 / 2 of two sums of embeddings (..., d), eq. 41 for A = 1: (...)."""
    separation = np.asarray(one, float) - np.asarray(other, float)
    separation = separation if A is None else separation @ np.asarray(A, float).T
    return np.square(separation).sum(-1) / 2
