"""Theorems 3.12 and 3.10: how much of the grid a training set covers, and where a pair of the same class is near."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, ratio

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def coverage_bound(p: int, k: int) -> float:
    """Theorem 3.12: the training fraction 2 ln(p) / C that full coverage is said to need.

    It is where N (1 - C/N)^m, with N = p**2 points and m independent draws, falls to one expected uncovered point: an
    estimate of when coverage is likely, not a lower bound.
    """
    return 2 * math.log(p) / (1 + 2 * k * (k - 1))  # C points at a distance below k: 1 + 4 (1 + ... + (k - 1))


def _distances(p: int, *, torus: bool) -> Integers:
    """(p, p) distances of coordinates on the plain grid, or on the torus."""
    apart = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return np.minimum(apart, p - apart) if torus else apart


def diamond_counts(p: int, k: int, *, torus: bool = False) -> Integers:
    """How many points lie at a distance below k of each point, itself included: (p, p). Borders cut diamonds."""
    at = (_distances(p, torus=torus)[..., None] == np.arange(k)).sum(1)  # (p, k) coordinates at exactly that distance
    within = at.cumsum(-1)
    return (at @ within[:, ::-1].T).astype(np.int64)  # r away in i leaves k - 1 - r in j


def expected_uncovered(p: int, k: int, train_size: ArrayLike, *, torus: bool = False) -> Array:
    """The exact expected number of points at no distance below k from a training set of m random pairs, (...) -> (...).

    A diamond of c points stays empty with probability C(N - c, m) / C(N, m): pairs are drawn without replacement.
    """
    counts, points = np.unique(diamond_counts(p, k, torus=torus), return_counts=True)
    m, s = np.asarray(train_size)[..., None], np.arange(counts.max())
    missed = np.clip((p * p - m - s) / (p * p - s), 0, None)  # a diamond's next point is no training pair either
    return np.cumprod(missed, axis=-1)[..., counts - 1] @ points.astype(float)


def covered_fraction(train_mask: Mask, k: int) -> Array:
    """Theorem 3.12's prop, the share of test pairs at a distance below k of a training pair: (..., p, p) -> (...).

    nan where there is no test pair.
    """
    covered = _spread(train_mask, np.logical_or, k) & ~train_mask
    return ratio(covered.sum((-2, -1)), (~train_mask).sum((-2, -1)))


def coverage_times(p: int, k: int, draws: int, *, generator: int) -> Integers:
    """When each point gets covered while pairs join the training set in a random order: (draws, p, p), from 1 to p**2.

    A point is uncovered by the first m pairs if its time exceeds m; the largest time covers everything.
    """
    orders = np.tile(np.arange(1, p * p + 1, dtype=np.int64), (draws, 1))
    return _spread(np.random.default_rng(generator).permuted(orders, axis=1).reshape(draws, p, p), np.minimum, k)


def _spread(values: NDArray, combine: np.ufunc, k: int) -> NDArray:
    """Combine each cell with all at a distance below k, one ring of neighbours at a time."""
    for _ in range(k - 1):
        spread = values.copy()
        for cells, source in ((spread, values), (spread.swapaxes(-1, -2), values.swapaxes(-1, -2))):
            combine(cells[..., 1:], source[..., :-1], out=cells[..., 1:])
            combine(cells[..., :-1], source[..., 1:], out=cells[..., :-1])
        values = spread
    return values


def same_class_distance(train_mask: Mask, labels: Integers) -> Array:
    """How far each pair is on the torus from the nearest training pair of its answer: (..., p, p) -> (..., p, p).

    0 for training pairs, inf for a class without any. ``labels``: (p, p) answers.
    """
    apart, distance = _distances(len(labels), torus=True).astype(float), np.empty(train_mask.shape)
    for answer in np.unique(labels):
        i, j = np.nonzero(labels == answer)
        for place in np.ndindex(train_mask.shape[:-2]):
            u, v = np.nonzero(train_mask[place] & (labels == answer))
            distance[place][i, j] = (apart[i][:, u] + apart[j][:, v]).min(1, initial=np.inf)
    return distance


def same_class_coverage(train_mask: Mask, labels: Integers, D: ArrayLike) -> Array:
    """The share of test pairs with a training pair of the same answer at a distance of at most D.

    Theorem 3.10 (i) makes this the ceiling of test accuracy, with a strict d < D_1 and an unknown D_1; its case (ii) is
    left out, as the paper calls it rare. For x + y distances on the torus are even. Masks (..., p, p), answers (p, p)
    and D, a number or (n,), give (...) or (..., n); nan where there is no test pair.
    """
    D, test = np.asarray(D, float), ~train_mask
    distance = same_class_distance(train_mask, labels)
    reached = test & np.isfinite(distance)
    near = np.stack([(reached & (distance <= one)).sum((-2, -1)) for one in D.ravel()], -1)
    return ratio(near, test.sum((-2, -1))[..., None]).reshape((*test.shape[:-2], *D.shape))


def matching_distance(train_mask: Mask, labels: Integers, accuracy: float) -> float:
    """The D at which `same_class_coverage` of one mask (p, p) equals an accuracy, between the distances that occur.

    Infinite if the coverage never gets there.
    """
    distances = same_class_distance(train_mask, labels)[~train_mask]
    D, pairs = np.unique(distances[np.isfinite(distances)], return_counts=True)
    return float(np.interp(accuracy, np.r_[0, pairs.cumsum() / len(distances)], np.r_[0, D], right=math.inf))
