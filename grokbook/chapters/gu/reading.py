"""What the rooms of this chapter read off a record. Curves are read on its even grid of steps."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.gu import theory
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.curves import first, own_steps, spearman, t_test
from grokbook.measures.common import Array

FITTED = 0.999  # train accuracy at which a run has memorised
SMOOTHING = 100  # steps: standard deviation of the Gaussian, and the length of an increment
PLATEAU = 500  # steps a running median spans

MED = "med_M1"  # definition 4.2
CONTROLS = {  # what knows nothing of the order of residues -> its name on the page
    "med_permuted": "MED of permuted residues",
    "embedding_norm": "embedding norm R",
    "total_norm": "norm of all weights W",
}


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


def smooth(values: ArrayLike, steps: ArrayLike) -> Array:
    """(step,) a finite curve on an even grid of steps, averaged under a Gaussian that is cut at its ends."""
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    distance = steps[1] - steps[0] if len(steps) > 1 else 1.0
    reach = int(np.ceil(4 * SMOOTHING / distance))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * distance / SMOOTHING) ** 2)
    total, weight = (np.convolve(row, kernel)[reach:-reach] for row in (values, np.ones(len(steps))))
    return total / weight


def running_median(values: ArrayLike, steps: ArrayLike) -> Array:
    """(step,) the median over a window of about ``PLATEAU`` steps, shorter at both ends."""
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    half = max(1, round(PLATEAU / (steps[1] - steps[0]) / 2)) if len(steps) > 1 else 1
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def known(record: xr.Dataset, name: str) -> Iterator[tuple[Array, Array]]:
    """Values and steps of a curve of each run, on the even grid, where it was measured."""
    grid = even(record)
    for values in grid[name].values:
        there = np.isfinite(values)
        yield values[there], grid.step.values[there].astype(float)


def best(record: xr.Dataset, name: str = "test_accuracy") -> Array:
    """(run,) the largest value of a curve smoothed over 100 steps."""
    return np.array([smooth(v, steps).max() if len(v) else np.nan for v, steps in known(record, name)])


def settled(record: xr.Dataset, name: str) -> Array:
    """(run,) the median of a curve's last 500 steps."""
    curves = known(record, name)
    return np.array([np.median(v[steps >= steps[-1] - PLATEAU]) if len(v) else np.nan for v, steps in curves])


def floor(record: xr.Dataset, name: str) -> Array:
    """(run,) the least value of a curve after t_fit; nan if the training set is never memorised."""
    late = [record[name].values[run, after_fit(record, run)] for run in range(record.sizes["run"])]
    return np.array([values.min() if len(values) else np.nan for values in late], float)


def still_rising(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether a run ends with a test accuracy more than 0.05 above that after four fifths of its steps."""
    found = np.zeros(record.sizes["run"], bool)
    for run, values in enumerate(record.test_accuracy.values):
        steps, values = record.step.values[np.isfinite(values)], values[np.isfinite(values)]
        found[run] = values[-1] - np.interp(0.8 * steps[-1], steps, values) > 0.05
    return found


def after_fit(record: xr.Dataset, run: int) -> NDArray[np.int64]:
    """Positions on the step axis, of one run, that are measured after t_fit."""
    late = record.step.values > t_fit(record)[run]
    return np.flatnonzero(late & np.isfinite(record.test_loss.values[run]))


def correlation(record: xr.Dataset, quantity: str = MED) -> Array:
    """(run,) Spearman's, of a quantity with the test loss after t_fit; nan with fewer than ten steps left then."""
    grid = even(record)
    found = np.full(record.sizes["run"], np.nan)
    for run in range(record.sizes["run"]):
        if len(late := after_fit(grid, run)) >= 10:
            found[run] = spearman(grid[quantity].values[run, late], grid.test_loss.values[run, late])
    return found


def agreement(record: xr.Dataset, quantity: str = MED) -> Array:
    """(run,) share of 100-step increments after t_fit in which a quantity and the log test loss have one sign.

    Both are smoothed over 100 steps before; nan as in ``correlation``.
    """
    grid = even(record)
    steps = grid.step.values
    lag = max(1, round(SMOOTHING / (steps[1] - steps[0])))
    found = np.full(record.sizes["run"], np.nan)
    for run in range(record.sizes["run"]):
        if len(late := after_fit(grid, run)) >= 10:
            values = grid[quantity].values[run, late], np.log(grid.test_loss.values[run, late])
            found[run] = same_sign(*(one[lag:] - one[:-lag] for one in (smooth(v, steps[late]) for v in values)))
    return found


def raw_agreement(record: xr.Dataset, quantity: str = MED) -> Array:
    """(run,) the same for single steps inside a record's windows, as they are; nan with fewer than fifty."""
    found = np.full(record.sizes["run"], np.nan)
    for run in range(record.sizes["run"]):
        late = after_fit(record, run)
        pairs = late[:-1][np.diff(record.step.values[late]) == 1]  # steps whose next one was measured too
        if len(pairs) >= 50:
            values = (record[name].values[run].astype(float) for name in (quantity, "test_loss"))
            found[run] = same_sign(*(one[pairs + 1] - one[pairs] for one in values))
    return found


def same_sign(a: Array, b: Array) -> float:
    """The share of places at which two sequences have one sign; nan if they are empty."""
    return float((np.sign(a) == np.sign(b)).mean()) if len(a) else float("nan")


def lead(record: xr.Dataset) -> Array:
    """(run,) how far the correlation of MED is above that of the control that follows the test loss best."""
    return correlation(record) - np.max([correlation(record, name) for name in CONTROLS], axis=0)


def mask_of(record: xr.Dataset, run: int) -> NDArray[np.bool_]:
    """The training set of a run, (p, p), drawn again from its recipe."""
    names = [field.name for field in dataclasses.fields(HoledTask) if field.name in record.coords]
    fields = {name: record[name].values[run].item() for name in names}
    split_seed = fields.pop("split_seed", np.nan)
    task = HoledTask(**fields, split_seed=int(split_seed) if np.isfinite(split_seed) else None)
    return task.in_train(int(record.seed.values[run])).reshape(task.p, task.p)


SYMMETRIES = {  # moves under which a function keeps its answer, as ``theory.symmetry_orbits`` reads them
    "mirror": lambda p: [[[0, 1], [1, 0]]],
    "negative mirror": lambda p: [[[0, -1], [-1, 0]]],
    "joint sign": lambda p: [[[-1, 0], [0, -1]]],
    "sign": lambda p: [[[-1, 0], [0, 1]]],
    "cube root": lambda p: [[[w, 0], [0, 1]] for w in theory.roots_of_unity(p, 3)],
}
KEPT = {  # which of them hold for the functions of Figs 12 to 19
    "n - m": ("negative mirror",),
    "n*m": ("mirror", "joint sign"),
    "n**2 + m**2": ("mirror", "sign"),
    "n**3 + m**3": ("mirror", "cube root"),
    "n**2 + n*m + m**2": ("mirror", "joint sign"),
    "n**3 + n*m + m**3": ("mirror",),
    "n + m": ("mirror",),
}


def moves(f: str, p: int, names: Sequence[str] | None = None) -> list[list[list[int]]]:
    """The moves of a function's symmetries, or of the named ones."""
    return [move for name in (KEPT.get(f, ()) if names is None else names) for move in SYMMETRIES[name](p)]


def symmetry_share(record: xr.Dataset, names: Sequence[str] | None = ("mirror",)) -> Array:
    """(run,) test accuracy of knowing nothing but the training set and the mirror, or None for all its symmetries."""
    found = np.zeros(record.sizes["run"])
    for run, (f, p) in enumerate(zip(record.f.values.tolist(), record.p.values.tolist(), strict=True)):
        if known := moves(f, p, names):
            found[run] = theory.symmetry_share(mask_of(record, run), known)
    return found
