"""Periodicity of weights and of maps over the table of all pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, as_embedding, ratio


def fourier_power(weights: ArrayLike) -> Array:
    """The one-sided Fourier power of each row: (..., p) -> (..., p // 2 + 1)."""
    return np.square(np.abs(np.fft.rfft(np.asarray(weights, float), axis=-1)))


def wave_power(embedding: ArrayLike) -> Array:
    """The power of vectors of residues at each frequency but zero: (..., p, d) -> (..., p // 2)."""
    return fourier_power(np.swapaxes(as_embedding(embedding, "(..., p, d)", 2), -1, -2))[..., 1:].sum(-2)


def inverse_participation_ratio(power: ArrayLike) -> Array:
    """How concentrated a spectrum is: sum(power**2) / sum(power)**2, Gromov (2023), eq. 28 with r = 2.

    From non-negative power (..., n) to (...), between 1/n (flat) and 1 (a single frequency); nan where all is zero.
    """
    power = np.asarray(power, float)
    return ratio(np.square(power).sum(-1), np.square(power.sum(-1)))


def single_frequency_share(weights: ArrayLike) -> Array:
    """The share of a row's power that its strongest wave holds: (..., p) -> (...); nan for a row of zeros.

    The mean of the row counts in the total but is no wave, so a constant row has share 0.
    """
    power = fourier_power(weights)
    return ratio(power[..., 1:].max(-1), power.sum(-1))


def first_layer_ipr(W_in: ArrayLike) -> Array:
    """The inverse participation ratio of a first layer (..., width, 2p), averaged over its neurons: (...).

    Gromov (2023), eqs. 28-29 with r = 2, leaves the transform open, and other readings give other numbers for the same
    weights. Here the two halves (first and second operand) are transformed apart, the frequencies are 0 to p // 2, with
    zero among them, and both halves are averaged: a neuron made of one wave per half then has exactly 1, and Gaussian
    weights about 2 / (p // 2 + 1), 0.040 at p = 97. nan where one is zero.
    """
    return inverse_participation_ratio(fourier_power(halves(W_in))).mean((-2, -1))


class PhaseResiduals(NamedTuple):
    """Phases of the waves in each neuron's weights, in radians, and how far they miss eq. 12."""

    phi1: Array  #: (..., width) phase in the first operand
    phi2: Array  #: (..., width) phase in the second operand
    phi3: Array  #: (..., width) phase in the answer
    residual: Array  #: (..., width) phi1 + phi2 - phi3, wrapped to (-pi, pi]
    frequency: NDArray[np.int64]  #: (..., width) the neuron's frequency, 0 where it has no wave (phases are nan there)


def phase_residuals(W_in: ArrayLike, W_out: ArrayLike) -> PhaseResiduals:
    """How well each neuron obeys phi1 + phi2 = phi3, Gromov (2023), eq. 12 and figure 3.

    W_in (..., width, 2p) is the first layer, W_out (..., p, width) the readout; other shapes raise ``ValueError``.
    A neuron's frequency is where the normalised powers of its three rows, added up, are largest; its phases
    are the arguments of the Fourier coefficients there. With the signs of eqs. 6-7 all three enter alike.
    Frequency zero and, for even p, p / 2 are left out: their coefficients are real and have no phase.
    """
    inputs, out = halves(W_in), np.swapaxes(np.asarray(W_out, float), -1, -2)  # (..., width, 2, p), (..., width, p)
    p = inputs.shape[-1]
    if out.shape != (*inputs.shape[:-2], p):
        got = f"got W_out {np.shape(W_out)} and W_in {np.shape(W_in)}"
        raise ValueError(f"W_out must have shape (..., p, width) to match W_in (..., width, 2p), {got}")
    rows = np.concatenate([inputs, out[..., None, :]], axis=-2)  # (..., width, 3, p)
    waves = np.fft.rfft(rows, axis=-1)
    power = np.square(np.abs(waves))
    share = np.nan_to_num(ratio(power, power.sum(-1, keepdims=True)).sum(-2))  # (..., width, frequency)
    k = np.arange(p // 2 + 1)
    share[(share < 1e-12) | (k == 0) | (2 * k == p)] = 0.0  # what is left by rounding, or has no phase
    frequency = share.argmax(-1)  # (..., width)
    phases = np.angle(np.take_along_axis(waves, frequency[..., None, None], -1))[..., 0]  # (..., width, 3)
    phi1, phi2, phi3 = np.moveaxis(np.where(frequency[..., None] > 0, phases, np.nan), -1, 0)
    residual = np.angle(np.exp(1j * (phi1 + phi2 - phi3)))
    return PhaseResiduals(phi1, phi2, phi3, residual, frequency)


def halves(W_in: ArrayLike) -> Array:
    """(..., width, 2p) -> (..., width, 2, p): the weights of the first and of the second operand.

    ``ValueError`` for another shape.
    """
    W_in = np.asarray(W_in, float)
    if W_in.ndim < 2 or W_in.shape[-1] % 2:
        raise ValueError(f"W_in must have shape (..., width, 2p), got {W_in.shape}")
    return W_in.reshape(*W_in.shape[:-1], 2, W_in.shape[-1] // 2)


def line_shares(maps: ArrayLike) -> dict[str, Array]:
    """Which of the waves of eq. 11 maps (..., p, p) over (n, m), n first, are made of, Gromov (2023), figure 2.

    A wave in n + m lives on the diagonal a = b of the two-dimensional Fourier image, a wave in n - m on a = -b, one in
    2n on b = 0 and one in 2m on a = 0. For even p a wave in 2n has even frequencies only, so odd ones count as rest;
    and at a = b = p / 2 waves in n + m and n - m are the same function: each line gets half of that cell.

    Returns "n + m", "n - m", "2n", "2m" and "rest" -> (...) share of the power without the mean; nan for a constant
    map. Raises ``ValueError`` if the last two axes differ.
    """
    power = _map_power(maps)
    p, total = power.shape[-1], power.sum((-2, -1))
    a = np.arange(p)
    shared = power[..., p // 2, p // 2] / 2 if p % 2 == 0 else np.zeros(total.shape)
    wave = slice(None, None, 1 if p % 2 else 2)  # frequencies that a wave in 2n can have; the zero one holds no power
    lines = {
        "n + m": power[..., a, a].sum(-1) - shared,
        "n - m": power[..., a, -a].sum(-1) - shared,
        "2n": power[..., wave, 0].sum(-1),
        "2m": power[..., 0, wave].sum(-1),
    }
    shares = {name: ratio(line, total) for name, line in lines.items()}
    return shares | {"rest": 1.0 - np.sum(list(shares.values()), axis=0)}


def frequency_family_share(maps: ArrayLike) -> Array:
    """The share of a map's power held by one frequency in n and m together: (..., p, p) -> (...).

    The family of frequency k is every (a, b) other than (0, 0) with a and b among 0, +-k; the share is that of the
    strongest family, with the mean of the map left out (nan for a constant map). Raises ``ValueError`` if the last two
    axes differ.
    """
    power = _map_power(maps)
    p, families = power.shape[-1], []
    for k in range(1, p // 2 + 1):
        members = sorted({-k % p, 0, k})
        families.append(power[..., members, :][..., members].sum((-2, -1)))
    return ratio(np.max(families, axis=0), power.sum((-2, -1)))


def _map_power(maps: ArrayLike) -> Array:
    """The two-dimensional Fourier power of maps (..., p, p), their means left out."""
    maps = np.asarray(maps, float)
    if maps.ndim < 2 or maps.shape[-2] != maps.shape[-1]:
        raise ValueError(f"maps must have shape (..., p, p), got {maps.shape}")
    power = np.square(np.abs(np.fft.fft2(maps - maps.mean((-2, -1), keepdims=True))))
    power[..., 0, 0] = 0.0
    return power


class Ring(NamedTuple):
    """How much of a plane of embeddings is one wave around a circle."""

    share: Array  #: (...) share of the variance, from 0 to 1
    frequency: NDArray[np.int64]  #: (...) the winding number 1 .. (p - 1) // 2 that has it


def ring_share(plane: ArrayLike, frequency: int | None = None) -> Ring:
    """The share of the variance of p points that cosine and sine of 2 pi f k / p explain, at the best or a given f.

    From (..., p, d), the symbols in order on usually d = 2 principal components. A circle traversed evenly has 1, a
    random plane 2 / (p - 1) on average at a given f; nan where all points coincide. Raises ``ValueError`` for an f that
    p points cannot have.
    """
    points = as_embedding(plane, "(..., p, d)", 2)
    centred, p = points - points.mean(-2, keepdims=True), points.shape[-2]
    power = np.square(np.abs(np.fft.rfft(centred, axis=-2))).sum(-1)
    power = power[..., 1 : (p + 1) // 2] * 2 / p  # a frequency and its negative; (..., f)
    total = np.square(centred).sum((-2, -1))
    if frequency is None:
        best = power.argmax(-1)
    elif 1 <= frequency <= power.shape[-1]:
        best = np.full(power.shape[:-1], frequency - 1)
    else:
        raise ValueError(f"frequency must be from 1 to {power.shape[-1]} for p = {p}, got {frequency}")
    share = np.take_along_axis(power, best[..., None], -1)[..., 0]
    return Ring(ratio(share, total), best + 1)
