"""What the rooms of this chapter read off a record. Curves are read on its even grid of steps."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapters.gu import theory
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.curves import first, own_steps, spearman, t_test
from grokbook.measures.common import Array, ratio

FITTED = 0.999  # train accuracy at which a run has memorised
SMOOTHING = 100  # steps: standard deviation of the Gaussian, and the length of an increment
PLATEAU = 500  # steps a running median spans

MED = "med_M1"  # definition 4.2
CONTROLS = ("med_permuted", "embedding_norm", "total_norm")  # which know nothing of the order of residues


def told(never: str, show: Callable[[float], str]) -> Callable[[float], str]:
    """How to show a number whose infinity means something else than a time that never came: in these words."""
    return lambda value: never if np.isinf(value) else show(value)


def t_fit(record: xr.Dataset) -> Array:
    """(run,) when the training set is memorised; infinity if never."""
    return first(record, "train_accuracy", FITTED)


reached = t_test  # (run,) the first step at which test accuracy is at least so high; infinity if never


def reached_outside(record: xr.Dataset, accuracy: float) -> Array:
    """(run,) the same for the test pairs outside a hole, which are all where there is none."""
    return first(record, "accuracy_outside" if "accuracy_outside" in record else "test_accuracy", accuracy)


def grokked(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether accuracy outside a hole reached 0.9, and not before five times t_fit."""
    late = reached_outside(record, 0.9)
    return np.isfinite(late) & (late >= 5 * t_fit(record))


def even(record: xr.Dataset) -> xr.Dataset:
    """The steps of a record's even grid, without what is measured more often early on or in windows."""
    every = json.loads(record.attrs["recipe"])["schedule"]["every"] or 1
    return own_steps(record.isel(step=np.flatnonzero(record.step.values % every == 0)))


def smooth(values: Array, steps: NDArray) -> Array:
    """(step,) a finite curve on an even grid of steps, averaged under a Gaussian that is cut at its ends."""
    distance = steps[1] - steps[0] if len(steps) > 1 else 1.0
    reach = int(np.ceil(4 * SMOOTHING / distance))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * distance / SMOOTHING) ** 2)
    total, weight = (np.convolve(row, kernel)[reach:-reach] for row in (values, np.ones(len(steps))))
    return total / weight


def running_median(values: Array, steps: NDArray) -> Array:
    """(step,) the median over a window of about ``PLATEAU`` steps, shorter at both ends."""
    values = values.astype(float)
    half = max(1, round(PLATEAU / (steps[1] - steps[0]) / 2)) if len(steps) > 1 else 1
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def known(record: xr.Dataset, name: str) -> Iterator[tuple[Array, Array]]:
    """Values and steps of a curve of each run, on the even grid, where it was measured."""
    grid = even(record)
    for values in grid[name].values:
        there = np.isfinite(values)
        yield values[there], grid.step.values[there].astype(float)


def best(record: xr.Dataset) -> Array:
    """(run,) the largest value of test accuracy smoothed over 100 steps."""
    return np.array([smooth(*curve).max() for curve in known(record, "test_accuracy")])


def settled(record: xr.Dataset, name: str) -> Array:
    """(run,) the median of a curve's last 500 steps."""
    curves = known(record, name)
    return np.array([np.median(v[steps >= steps[-1] - PLATEAU]) if len(v) else np.nan for v, steps in curves])


def after_fit(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run, step) where a run is measured after t_fit."""
    return (record.step.values > t_fit(record)[:, None]) & np.isfinite(record.test_loss.values)


def floor(record: xr.Dataset, name: str) -> Array:
    """(run,) the least value of a curve after t_fit; nan if the training set is never memorised."""
    return np.nanmin(np.where(after_fit(record), record[name].values, np.nan), axis=1)


def still_rising(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether a run ends with a test accuracy more than 0.05 above that after four fifths of its steps."""
    found = np.zeros(record.sizes["run"], bool)
    for run, values in enumerate(record.test_accuracy.values):
        steps, values = record.step.values[np.isfinite(values)], values[np.isfinite(values)]
        found[run] = values[-1] - np.interp(0.8 * steps[-1], steps, values) > 0.05
    return found


def correlation(record: xr.Dataset, quantity: str = MED) -> Array:
    """(run,) Spearman's, of a quantity with the test loss after t_fit; nan with fewer than ten steps left then."""
    grid = even(record)
    curves = zip(grid[quantity].values, grid.test_loss.values, after_fit(grid), strict=True)
    return np.array([spearman(one[late], loss[late]) if late.sum() >= 10 else np.nan for one, loss, late in curves])


def agreement(record: xr.Dataset, quantity: str = MED) -> Array:
    """(run,) share of 100-step increments after t_fit in which a quantity and the log test loss have one sign.

    Both are smoothed over 100 steps before; nan as in ``correlation``.
    """
    grid = even(record)
    steps = grid.step.values
    lag = max(1, round(SMOOTHING / (steps[1] - steps[0])))
    found = np.full(record.sizes["run"], np.nan)
    for run, late in enumerate(after_fit(grid)):
        if late.sum() >= 10:
            curves = grid[quantity].values[run, late], np.log(grid.test_loss.values[run, late])
            one, other = (np.sign(v[lag:] - v[:-lag]) for v in (smooth(curve, steps[late]) for curve in curves))
            found[run] = (one == other).mean()
    return found


def raw_agreement(record: xr.Dataset) -> Array:
    """(run,) the same of MED for single steps inside a record's windows, as they are; nan with fewer than fifty."""
    late = after_fit(record)
    pairs = late[:, 1:] & late[:, :-1] & (np.diff(record.step.values) == 1)
    one, other = (np.sign(np.diff(record[name].values)) for name in (MED, "test_loss"))
    return np.where(pairs.sum(1) >= 50, ratio((pairs & (one == other)).sum(1), pairs.sum(1)), np.nan)


def lead(record: xr.Dataset) -> Array:
    """(run,) how far the correlation of MED is above that of the control that follows the test loss best."""
    return correlation(record) - np.max([correlation(record, name) for name in CONTROLS], axis=0)


def mask_of(record: xr.Dataset, run: int) -> NDArray[np.bool_]:
    """The training set of a run, (p, p), drawn again from its recipe."""
    names = [field.name for field in dataclasses.fields(HoledTask) if field.name in record.coords]
    fields = {"split_seed": np.nan} | {name: record[name].values[run].item() for name in names}
    task = HoledTask(**fields | {"split_seed": None if np.isnan(fields["split_seed"]) else int(fields["split_seed"])})
    return task.in_train(int(record.seed.values[run])).reshape(task.p, task.p)


MIRROR, NEGATIVE_MIRROR, JOINT_SIGN, SIGN = [[0, 1], [1, 0]], [[0, -1], [-1, 0]], [[-1, 0], [0, -1]], [[-1, 0], [0, 1]]
KEPT = {  # moves, as ``theory.symmetry_orbits`` reads them, under which functions of Figs 12 to 19 keep their answers
    "n - m": [NEGATIVE_MIRROR],
    "n*m": [MIRROR, JOINT_SIGN],
    "n**2 + m**2": [MIRROR, SIGN],
    "n**3 + m**3": [MIRROR],  # and cube roots of 1 in i, which depend on p
    "n**2 + n*m + m**2": [MIRROR, JOINT_SIGN],
    "n**3 + n*m + m**3": [MIRROR],
    "n + m": [MIRROR],
}


def moves(f: str, p: int) -> list[list[list[int]]]:
    """The moves of a function's symmetries."""
    roots = theory.roots_of_unity(p, 3) if f == "n**3 + m**3" else ()
    return KEPT[f] + [[[w, 0], [0, 1]] for w in roots]


def symmetry_share(record: xr.Dataset, *, whole: bool = False) -> Array:
    """(run,) test accuracy of knowing nothing but the training set and the mirror, or the whole of the symmetries."""
    tables = zip(record.f.values.tolist(), record.p.values.tolist(), strict=True)
    own = [moves(f, p) if whole else [MIRROR] for f, p in tables]
    return np.array([theory.symmetry_share(mask_of(record, run), known) for run, known in enumerate(own)], float)
