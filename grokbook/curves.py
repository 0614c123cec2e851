"""What all chapters ask of a record's curves: first crossings, values at a time, last and best ones, sweeps.

A run that never reaches a threshold has the time infinity, which sorts and compares as "never"; nan is "not measured".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array, unmeasured

LEARNT = 0.99  # the accuracy at which a set counts as learnt, where a paper names none


def own_steps(record: xr.Dataset) -> xr.Dataset:
    """Without the steps at which none of these runs was measured: conditions of one record may differ in them."""
    return record.isel(step=np.flatnonzero(np.isfinite(record.train_loss.values).any(0)))


def first_step(values: ArrayLike, steps: ArrayLike, threshold: ArrayLike) -> Array:
    """The first of ``steps`` (step,) at which a curve (..., step) is at least ``threshold``; (...), nan if none.

    One threshold for all curves, or (..., 1) one for each. A value that is nan counts as not reached. ``ValueError``
    if values and steps are not as many.
    """
    values, steps = np.asarray(values), np.asarray(steps, float)
    if values.shape[-1:] != steps.shape:
        raise ValueError(f"values must have one entry per step, got values {values.shape} and steps {steps.shape}")
    found = np.where(values >= threshold, steps, np.inf).min(-1, initial=np.inf)
    return np.where(np.isfinite(found), found, np.nan)


def first(record: xr.Dataset, curve: str, threshold: float | Array = LEARNT) -> Array:
    """(run,) the first measured step of a curve at or above ``threshold``, (run, 1) for one each; infinity if never."""
    return np.nan_to_num(first_step(record[curve].values, record.step.values, threshold), nan=np.inf)


def t_train(record: xr.Dataset, threshold: float = LEARNT) -> Array:
    """(run,) when the training set is learnt; infinity if never."""
    return first(record, "train_accuracy", threshold)


def t_test(record: xr.Dataset, threshold: float = LEARNT) -> Array:
    """(run,) when the test set is answered; infinity if never."""
    return first(record, "test_accuracy", threshold)


def least_t_test(record: xr.Dataset, threshold: float = LEARNT) -> Array:
    """(run,) when the test set is answered; a run that never does that counts with its last step."""
    return np.minimum(
        t_test(record, threshold), np.where(np.isfinite(record.test_accuracy.values), record.step.values, 0).max(1)
    )


def at(record: xr.Dataset, curve: str | Array, steps: ArrayLike) -> Array:
    """(run,) a curve, by name or as (run, step), at each run's own step: the last value up to it; nan if none."""
    values = record[curve].values if isinstance(curve, str) else curve
    until = np.broadcast_to(np.asarray(steps, float), len(values))[:, None]
    return last_value(np.where(np.isfinite(until) & (record.step.values <= until), values, np.nan))


def last_value(values: ArrayLike) -> Array:
    """(...), the last finite value of a curve (..., step); nan if there is none."""
    values = np.asarray(values, float)
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    where = values.shape[-1] - 1 - np.isfinite(values)[..., ::-1].argmax(-1)
    return np.take_along_axis(np.where(np.isfinite(values), values, np.nan), where[..., None], -1)[..., 0]


def last(record: xr.Dataset, curve: str | Array) -> Array:
    """(run,) the last measured value of a curve; nan where there is none."""
    return last_value(record[curve].values if isinstance(curve, str) else curve)


def best(record: xr.Dataset, curve: str = "test_accuracy") -> Array:
    """(run,) the highest value of a curve."""
    return np.nanmax(record[curve].values, axis=1)


def peak(record: xr.Dataset, curve: str | Array, after: ArrayLike = 0.0) -> tuple[Array, Array]:
    """Step and value, each (run,), at which a curve is largest at or after each run's own step; nan if not measured."""
    values = record[curve].values if isinstance(curve, str) else curve
    begin = np.broadcast_to(np.asarray(after, float), len(values))[:, None]
    masked = np.where(np.isfinite(values) & (record.step.values >= begin), values, -np.inf)
    height = masked.max(1)
    some = np.isfinite(height)
    return np.where(some, record.step.values[masked.argmax(1)], np.nan), np.where(some, height, np.nan)


def sweep(record: xr.Dataset, over: str, values: Callable[[xr.Dataset], Array]) -> tuple[Array, Array]:
    """(n,) the settings of a sweep, increasing, and (seed, n) a quantity at them; nan where a seed has no such run.

    Of the runs of one condition, over a coordinate, as ``"width"``; ``values`` gives the quantity, (run,).
    """
    settings, seeds = np.unique(record[over].values), np.unique(record.seed.values)
    table = np.full((len(seeds), len(settings)), np.nan)
    table[np.searchsorted(seeds, record.seed.values), np.searchsorted(settings, record[over].values)] = values(record)
    return settings, table


def median(values: ArrayLike, axis: int | None = None) -> Array:
    """The median of what was measured; infinity ("never") counts as larger than any number."""
    values = np.asarray(values, float)
    some = np.nanmedian if np.isnan(values).any() else np.median  # four times as fast
    with unmeasured():
        return np.asarray(some(values, axis=axis))


def smallest(settings: Array, table: Array, holds: Callable[[Array], NDArray[np.bool_]] = np.isfinite) -> float:
    """The smallest setting from which on upwards the median over seeds, of (seed, n), holds; infinity if none.

    The one definition of "smallest share that groks", "smallest width that suffices".
    """
    good = np.asarray(holds(median(table, axis=0)))
    unbroken = np.cumprod(good[::-1])[::-1].astype(bool)
    return float(settings[unbroken.argmax()]) if unbroken.any() else float("inf")


def ranks(values: ArrayLike) -> Array:
    """Ranks from 1 of a row of numbers, (n,); equal ones share their mean."""
    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Rank correlation of two sequences, (n,) each; nan for fewer than three points, or if one is constant."""
    one, other = ranks(x), ranks(y)
    if len(one) < 3 or not one.std() or not other.std():
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def spearman_within(groups: ArrayLike, x: ArrayLike, y: ArrayLike) -> float:
    """Rank correlation within groups, (n,) each: ranks are taken in each group and counted from its middle.

    nan where there are none.
    """
    places = [np.flatnonzero(np.asarray(groups) == one) for one in np.unique(groups)]
    if not places:
        return float("nan")
    a, b = (np.concatenate([ranks(some) - (len(some) + 1) / 2 for some in (np.asarray(of)[one] for one in places)])
            for of in (x, y))  # fmt: skip
    with np.errstate(invalid="ignore"):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))
