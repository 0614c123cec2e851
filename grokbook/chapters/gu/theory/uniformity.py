"""MED beside Fourier power, how both versions smooth their curves, and assumption 1 of the earlier one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from grokbook import checks
from grokbook.chapters.gu.theory.arrays import Array


def embedding_power(embedding: ArrayLike) -> Array:
    """P_f = |phi_hat(f)|**2 at the frequencies f = 0 .. p - 1, the transform divided by p: (..., p, d) -> (..., p).

    Raises:
        ValueError: not of two dimensions or more.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    return np.square(np.abs(np.fft.fft(embedding, axis=-2) / embedding.shape[-2])).sum(-1)


def circle_med(p: int, frequencies: ArrayLike, radii: ArrayLike = 1.0) -> float:
    """MED of residues on circles, one a frequency: sqrt(sum (2 R sin(pi f / p))**2), every step being the same.

    One circle has 2 R sin(pi f / p): at p = 97 from 0.065 R to 2.000 R, beside 1.41 R for random vectors.

    Args:
        frequencies: (n,) integers.
        radii: of the circles, a number or (n,).
    """
    chords = 2 * np.asarray(radii, float) * np.sin(np.pi * np.asarray(frequencies) / checks.integer("p", p, 2))
    return float(np.sqrt(np.square(chords).sum()))


def initial_difference(d: int) -> float:
    """E |phi(i + 1) - phi(i)| for independent entries of variance 1/d, close to sqrt(2) (1 - 1 / (4 d))."""
    d = checks.integer("d", d, 1)
    return 2 / math.sqrt(d) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def neighbour_weight(p: int, train_fraction: float) -> float:
    """Earlier version, assumption 1: the expected sum of 1 / (t1**2 + t2**2) over training neighbours of the centre.

    The paper bounds it by multiples of p**2 to explain why a larger p needs fewer steps; it grows like ln p. As "t1, t2
    in Z / {0}" has it, neighbours in the same row or column are left out.
    """
    t = np.arange(p) - p // 2
    t = t[t != 0]
    return train_fraction * float((1 / np.add.outer(t**2, t**2)).sum())


def published_smoothing(values: ArrayLike, *, start: int = 1000, window: int = 500, sigma: float = 10.0) -> Array:
    """How the dark curves of both versions are smoothed, by the released scripts.

    From ``start`` on each value becomes the mean of the ``window`` values on either side, itself left out, in place:
    those to its left are smoothed already. A Gaussian of ``sigma`` steps follows, and the steps before ``start`` stay
    as they were. A jump begins to rise ``window`` steps early and drags on for three times as long.

    Args:
        values: (n,) a curve with a value each step.
    """
    raw = np.asarray(values, float)
    found = raw.copy()
    for i in range(start, len(found)):
        found[i] = np.concatenate((found[max(0, i - window) : i], found[i + 1 : i + window + 1])).mean()
    reach = int(4 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    found = np.convolve(np.pad(found, reach, mode="symmetric"), kernel / kernel.sum(), "valid")
    return np.concatenate((raw[:start], found[start:]))
