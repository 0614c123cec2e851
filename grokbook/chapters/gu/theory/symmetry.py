"""What memorised symmetry alone would answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, ratio

Mask = NDArray[np.bool_]


def symmetry_orbits(p: int, moves: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """Which pairs linear symmetries of a task carry into each other: (p, p), a number that is an orbit's own.

    ``moves`` are 2 x 2 integer matrices acting on (i, j) mod p, their determinants prime to p. The mirror is
    [[0, 1], [1, 0]], a joint sign [[-1, 0], [0, -1]], a cube root w of 1 in i [[w, 0], [0, 1]].
    """
    i, j = np.divmod(np.arange(p * p), p)
    orbit, images = np.arange(p * p), []
    for move in moves:
        (a, b), (c, d) = np.asarray(move).tolist()
        images.append((a * i + b * j) % p * p + (c * i + d * j) % p)
    while True:  # the smallest number wins
        before = orbit
        for image in images:
            least = np.minimum(orbit, orbit[image])
            orbit = least.copy()
            orbit[image] = least
        if (orbit == before).all():
            return orbit.reshape(p, p)


def symmetry_share(train_mask: Mask, moves: Sequence[ArrayLike]) -> Array:
    """The share of test pairs that some symmetry carries into the training set: (..., p, p) -> (...).

    nan where there is no test pair.
    """
    p = train_mask.shape[-1]
    orbit = symmetry_orbits(p, moves).ravel()
    flat = train_mask.reshape(-1, p * p)
    known = np.zeros(flat.shape, bool)
    for seen, trained in zip(known, flat, strict=True):
        seen[orbit[trained]] = True
    reached = known[:, orbit] & ~flat
    return ratio(reached.sum(-1), (~flat).sum(-1)).reshape(train_mask.shape[:-2])


def roots_of_unity(p: int, n: int) -> tuple[int, ...]:
    """The solutions of x**n = 1 mod p, in order: symmetries of x**n + y**n."""
    return tuple(x for x in range(p) if pow(x, n, p) == 1)
