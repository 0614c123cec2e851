"""Errors of the paper that a number can show."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from grokbook import measures
from grokbook.chapters.liu import theory
from grokbook.chapters.liu.maps import published
from grokbook.words import percent


def drift(p: int = 10, shift: float = 1.0) -> tuple[float, float]:
    """Eq. 27: the sum of all embeddings under the exact flow, from a shifted start, at first and at the end."""
    start = measures.standardised(np.random.default_rng(0).normal(size=(p, 1)))
    start = start * np.sqrt(p / theory.conserved(start).Z0) + shift
    first, last = theory.conserved(theory.flow(start, measures.sums_of(p).pairs, [0.0, 50.0], averaging="mean")).C[:, 0]
    return round(float(first), 6), round(float(last), 6)


def random_index(delta: float, *, p: int = 10, draws: int = 2_000) -> float:
    """How often the representation quality index of random embeddings in one dimension is above zero."""
    embedding = np.random.default_rng(0).uniform(-0.5, 0.5, (draws, p, 1))
    return float((measures.representation_quality_index(embedding, delta) > 0).mean())


def least_samples(p: int = 6) -> int:
    """The size of the smallest training set that implies the line, by trying all sets of one size after the other."""
    samples = measures.sums_of(p).pairs
    for size in range(2, len(samples) + 1):
        sets = samples[np.array(list(combinations(range(len(samples)), size)))]
        if (theory.nullity(sets, p) == 2).any():
            return size
    raise AssertionError


def facts() -> dict[str, object]:
    """For the table of slips."""
    first, last = drift()
    slow = published("regression")
    return {
        "slip_sum": first,
        "slip_sum_end": last,
        "slip_wide_often": percent(random_index(0.1)),
        "slip_narrow_often": percent(random_index(0.01)),
        "slip_least": least_samples(),
        "slip_slow_train": float(slow.t_train[0, 0, 0]),
        "slip_slow_val": float(slow.t_val[0, 0, 0]),
    }
