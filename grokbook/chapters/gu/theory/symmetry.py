"""What memorised symmetry alone would answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grokbook.measures.common import Array, ratio

Mask = NDArray[np.bool_]
Move = Sequence[Sequence[int]]


def symmetry_orbits(p: int, moves: Sequence[Move]) -> NDArray[np.int64]:
    """Which pairs linear symmetries of a task carry into each other: (p, p), a number that is an orbit's own.

    ``moves`` are 2 x 2 integer matrices acting on (i, j) mod p, their determinants prime to p. The mirror is
    [[0, 1], [1, 0]], a joint sign [[-1, 0], [0, -1]], a cube root w of 1 in i [[w, 0], [0, 1]].
    """
    orbit = np.arange(p * p)
    i, j = np.divmod(orbit, p)
    images = [(a * i + b * j) % p * p + (c * i + d * j) % p for (a, b), (c, d) in moves]
    while True:  # the smallest number wins; moved often enough, every pair comes back to itself
        before = orbit
        for image in images:
            orbit = np.minimum(orbit, orbit[image])
        if (orbit == before).all():
            return orbit.reshape(p, p)


def symmetry_share(train_mask: Mask, moves: Sequence[Move]) -> Array:
    """The share of test pairs that some symmetry carries into the training set: (..., p, p) -> (...).

    nan where there is no test pair.
    """
    orbit, reached = symmetry_orbits(train_mask.shape[-1], moves), ~train_mask
    for place in np.ndindex(train_mask.shape[:-2]):
        reached[place] &= np.isin(orbit, orbit[train_mask[place]])
    return ratio(reached.sum((-2, -1)), (~train_mask).sum((-2, -1)))


def roots_of_unity(p: int, n: int) -> tuple[int, ...]:
    """The solutions of x**n = 1 mod p, in order: symmetries of x**n + y**n."""
    return tuple(x for x in range(p) if pow(x, n, p) == 1)
