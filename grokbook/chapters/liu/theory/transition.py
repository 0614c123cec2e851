"""Where the transition of figure 4 (a) lies, over random training sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import checks
from grokbook.chapters.liu.theory.relations import Array, Seed, symbols, which_held
from grokbook.chapters.liu.theory.training_sets import (
    count_of,
    implied_by,
    random_training_sets,
    rates_of,
    share_reached,
)
from grokbook.measures import sums_of


def critical_sizes(p: int, count: int, *, generator: Seed = None) -> NDArray[np.int64]:
    """How many samples it takes until the line is the only solution, for each of ``count`` random orders.

    Every order adds all samples one by one; a sample can only lower the nullity, so bisection finds the first size
    with a nullity of 2. The share of orders with a critical size of at most n is the probability of figure 4 (a) at
    n, for all n at once.

    Returns:
        (count,), between p and N.
    """
    N = len(sums_of(symbols(p)).pairs)
    order = checks.generator(generator).random((checks.integer("count", count, 1), N)).argsort(-1)
    rank = order.argsort(-1)  # (count, sample): its place in the order
    below, above = np.full(count, p - 2), np.full(count, N)  # the line is not implied below, it is above
    while (open_ := above - below > 1).any():
        middle = (below + above) // 2
        unique = (rates_of(rank[open_] < middle[open_, None], p) == 0).sum(-1) == 2
        above[open_] = np.where(unique, middle[open_], above[open_])
        below[open_] = np.where(unique, below[open_], middle[open_])
    return above


def transition_study(ps: Sequence[int], count: int, *, seed: int = 0) -> xr.Dataset:
    """`critical_sizes` for several p.

    Returns:
        Dataset with ``critical_size`` (p, order), ``fraction`` (p) the median critical size as a share of all samples
        (r_c) and ``width`` (p) its interquartile range as such a share.
    """
    sizes = np.stack([critical_sizes(p, count, generator=np.random.default_rng([seed, p])) for p in ps])
    samples = np.array([p * (p + 1) // 2 for p in ps])
    low, middle, high = np.quantile(sizes, [0.25, 0.5, 0.75], axis=-1)
    return xr.Dataset(
        {
            "critical_size": (("p", "order"), sizes),
            "fraction": ("p", middle / samples),
            "width": ("p", (high - low) / samples),
        },
        {"p": list(ps)},
    )


def ideal_study(p: int, sizes: Sequence[int], count: int, *, seed: int = 0) -> xr.Dataset:
    """What random training sets imply, for figures 4 (a), 5 (a) and 10.

    Returns:
        Dataset with dims (size, draw): ``nullity``, ``rate`` (the third eigenvalue of A^T A), ``parallelograms``
        (|P0(D)|), ``ideal_rqi``, ``ideal_accuracy``.
    """
    found: dict[str, list[NDArray]] = {}
    for size in sizes:
        held = which_held(random_training_sets(p, size, count, generator=np.random.default_rng([seed, p, size])), p)
        values, implied = rates_of(held, p), implied_by(held, p)
        row = {
            "nullity": (values == 0).sum(-1),
            "rate": values[:, 2],
            "parallelograms": count_of(held, p),
            "ideal_rqi": implied.mean(-1),
            "ideal_accuracy": share_reached(held, implied, sums_of(p).couples, held_out=False),
        }
        for name, column in row.items():
            found.setdefault(name, []).append(column)
    variables = {name: (("size", "draw"), np.stack(rows)) for name, rows in found.items()}
    return xr.Dataset(variables, {"size": list(sizes)}, {"p": p, "samples": p * (p + 1) // 2})


def crossing(x: Array, y: Array, level: float = 0.5) -> float:
    """Where a curve through points first passes a level upwards, by linear interpolation; nan if it never does."""
    passed = np.flatnonzero((y[1:] >= level) & (y[:-1] < level))
    if not len(passed):
        return float("nan")
    i = int(passed[0])
    return float(x[i] + (level - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))
