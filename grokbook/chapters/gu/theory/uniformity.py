"""How embeddings spread: MED of circles, how both versions smooth their curves, assumption 1, lemma B.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array


def circle_med(p: int, frequencies: ArrayLike, radii: ArrayLike = 1.0) -> float:
    """MED of residues on circles, one a frequency: sqrt(sum (2 R sin(pi f / p))**2), every step being the same.

    Args:
        frequencies: (n,) integers.
        radii: of the circles, a number or (n,).
    """
    chords = 2 * np.asarray(radii, float) * np.sin(np.pi * np.asarray(frequencies) / p)
    return float(np.sqrt(np.square(chords).sum()))


def neighbour_weight(p: int, train_fraction: float) -> float:
    """Earlier version, assumption 1: the expected sum of 1 / (t1**2 + t2**2) over training neighbours of the centre.

    As "t1, t2 in Z / {0}" has it, neighbours in the same row or column are left out.
    """
    t = np.arange(p) - p // 2
    t = t[t != 0]
    return train_fraction * float((1 / np.add.outer(t**2, t**2)).sum())


def published_smoothing(values: ArrayLike) -> Array:
    """How the dark curves of both versions, (n,) with a value each step, are smoothed by the released scripts.

    From step 1000 on each value becomes the mean of the 500 values on either side, itself left out, in place: those to
    its left are smoothed already. A Gaussian of 10 steps follows.
    """
    found = np.array(values, float)
    for i in range(1000, len(found)):
        found[i] = np.concatenate((found[i - 500 : i], found[i + 1 : i + 501])).mean()
    kernel = np.exp(-0.5 * (np.arange(-40, 41) / 10) ** 2)
    found[1000:] = np.convolve(np.pad(found, 40, mode="symmetric"), kernel / kernel.sum(), "valid")[1000:]
    return found


def smallest_operator_norm(tokens: ArrayLike) -> float:
    """The least norm of a linear map with l(x_i) + l(x_{-i}) = r for all i and |r| = 1; infinity if there is none.

    It is 1 / dist(0, affine hull of the sums); lemma B.1 says 1 / (2M) for tokens (p, d) of a length of at most M.
    """
    tokens = np.asarray(tokens, float)
    sums = tokens + tokens[-np.arange(len(tokens))]
    v = np.linalg.lstsq(sums, np.ones(len(sums)), rcond=1e-10)[0]  # shortest with <sum, v> = 1 for all: w -> r <w, v>
    return float(np.linalg.norm(v)) if np.allclose(sums @ v, 1, atol=1e-6) else float("inf")
