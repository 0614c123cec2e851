"""What this chapter reads off a record: times in epochs, and the plateau between fitting and understanding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook.chapters.resnet.tasks import steps_per_epoch
from grokbook.curves import first, median
from grokbook.measures.common import Array, ratio

FIT, LEARNT = 0.99, 0.9  # train accuracy of "fitted", test accuracy of "understood"


def per_epoch(record: xr.Dataset) -> Array:
    """(run,) updates of one epoch."""
    return np.array([steps_per_epoch(int(size)) for size in record.train_size.values], float)


def epochs(record: xr.Dataset) -> Array:
    """(step,) the measured steps as epochs, of a record whose runs have training sets of one size."""
    return record.step.values / per_epoch(record)[0]


def t_fit(record: xr.Dataset) -> Array:
    """(run,) epochs until the training set is fitted; infinity if never."""
    return first(record, "train_accuracy", FIT) / per_epoch(record)


def t_test(record: xr.Dataset, threshold: float = LEARNT) -> Array:
    """(run,) epochs until the test accuracy is at least ``threshold``; infinity if never."""
    return first(record, "test_accuracy", threshold) / per_epoch(record)


def t_late(record: xr.Dataset, threshold: float | Array = LEARNT) -> Array:
    """(run,) epochs until the test accuracy is at least ``threshold``, or (run, 1) each run's, after fitting."""
    late = record.assign(late=record.test_accuracy.where(record.step >= _by_run(record, t_fit(record))))
    return first(late, "late", threshold) / per_epoch(record)


def _by_run(record: xr.Dataset, times: Array) -> xr.DataArray:
    """Epochs as steps, (run,)."""
    return xr.DataArray(times * per_epoch(record), dims="run")


def during(record: xr.Dataset, curve: str, begin: ArrayLike, end: ArrayLike, quantile: float = 0.5) -> Array:
    """(run,) a quantile of a curve between two epochs, of all runs or of each; nan where nothing was measured there."""
    found = np.full(record.sizes["run"], np.nan)
    at = record.step.values / per_epoch(record)[:, None]
    inside = (at >= np.reshape(begin, (-1, 1))) & (at <= np.reshape(end, (-1, 1))) & np.isfinite(record[curve].values)
    for run in np.flatnonzero(inside.any(1)):
        found[run] = np.quantile(record[curve].values[run, inside[run]], quantile)
    return found


def calm(record: xr.Dataset, curve: str) -> Array:
    """(run, step) the running median of a curve over 50 epochs, in the first 50 over as many as passed."""
    at, values = epochs(record), record[curve].values
    return np.stack([median(values[:, np.abs(at - t) <= min(50, t) / 2], axis=1) for t in at], -1)


def before_fit(record: xr.Dataset) -> Array:
    """What each run knows of the other pictures before it fits, and later with as much of its training set right.

    Returns:
        (4, run): the highest test accuracy until the training set is fitted; the median of test over train accuracy
        where the latter is 0.5 to 0.95, until then but at most for 130 epochs; the same after it, nan where there is
        no such moment; and how many moments the first of these medians is of.
    """
    at, found = epochs(record), []
    for run, fit in enumerate(t_fit(record)):
        train, test = record.train_accuracy.values[run], record.test_accuracy.values[run]
        half = (train >= 0.5) & (train <= 0.95)
        moments = half & (at <= min(fit, 130)), half & (at > fit)
        early, later = (median(test[some] / train[some]) for some in moments)
        found.append((test[at <= fit].max(), early, later, moments[0].sum()))
    return np.reshape(found, (-1, 4)).T


def broken(record: xr.Dataset, level: float = FIT) -> Array:
    """(run,) how often, of the looks once the training set was fitted, less of it is right; nan if it never was."""
    later = record.train_accuracy.where(record.step >= _by_run(record, t_fit(record)))
    return ((later < level).sum("step") / later.notnull().sum("step")).values


def across_breakdowns(record: xr.Dataset) -> Array:
    """(run,) the share of the rise in test accuracy, from fitting to understanding or the end, that takes breakdowns.

    It lies between two looks at which the training set is fitted, with less than nine tenths of that right in between.
    """
    at, found = epochs(record), []
    for run, (fit, late) in enumerate(zip(t_fit(record), t_late(record), strict=True)):
        train, test = record.train_accuracy.values[run], record.test_accuracy.values[run]
        fitted = np.flatnonzero((at >= fit) & (at <= late) & (train >= FIT))
        gains = np.diff(test[fitted])
        lost = np.array([np.nanmin(train[one:next]) < 0.9 for one, next in pairwise(fitted)], bool)
        found.append(ratio(gains[lost].sum(), gains.sum()))
    return np.array(found)


def plateau(record: xr.Dataset, curve: str = "test_accuracy", quantile: float = 0.5) -> Array:
    """(run,) a quantile of a curve from fitting to half of the time at which the test set is understood, or the end.

    nan where the training set is never fitted, or the test set is understood before twice that time.
    """
    return during(record, curve, t_fit(record), t_test(record) / 2, quantile)


def after_fit(record: xr.Dataset) -> Array:
    """(run,) the median test accuracy in the 200 epochs after fitting."""
    return during(record, "test_accuracy", t_fit(record), t_fit(record) + 200)


def spread(record: xr.Dataset) -> Array:
    """(run,) how far test accuracy moves on the plateau: its range from the tenth to the ninetieth percentile."""
    return plateau(record, quantile=0.9) - plateau(record, quantile=0.1)


def apart(record: xr.Dataset) -> Array:
    """(run,) accuracy on the plateau of pictures with a trained permutation, less that of the others."""
    return plateau(record, "accuracy_seen") - plateau(record, "accuracy_unseen")


def final(record: xr.Dataset, curve: str = "test_accuracy") -> Array:
    """(run,) the median of a curve over the last twentieth of the run."""
    end = record.step.values[-1] / per_epoch(record)
    return during(record, curve, 0.95 * end, end)


def past_order(record: xr.Dataset, level: float = 0.9) -> Array:
    """(run,) test accuracy when that share of the answers first stays as two cells change places, once all is fitted.

    Of the two bottom cells and of the two top ones; nan where it never does.
    """
    stays = np.minimum(record.swap_alike, record.swap_odd) >= level
    there = stays & (record.train_accuracy >= FIT)  # a network that broke down may answer all pictures alike
    return record.test_accuracy.isel(step=there.argmax("step")).where(there.any("step")).values


def delay(record: xr.Dataset) -> Array:
    """(run,) time to understand the test set over time to fit the training set; nan where one of them never is."""
    return _known(t_test(record)) / _known(t_fit(record))


def jump(record: xr.Dataset) -> Array:
    """(run,) how long the rise from half to nine tenths takes, over the time at which it ends; nan if there is none."""
    begin, end = _known(t_late(record, 0.5)), _known(t_late(record))
    return (end - begin) / end


def _known(times: Array) -> Array:
    """Times with nan for never."""
    return np.where(np.isfinite(times), times, np.nan)
