"""Runs and steps picked out of a record, and what is read off a set of seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def select(record: xr.Dataset, **wanted: object) -> xr.Dataset:
    """The runs whose recipe has these values, for example ``label="GD"``; numbers are compared to nine digits."""
    keep = np.ones(record.sizes["run"], bool)
    for name, value in wanted.items():
        column = record[name].values
        keep &= np.isclose(column.astype(float), value) if isinstance(value, float) else column == value
    return record.isel(run=np.flatnonzero(keep))


def conditions(record: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """(label, its runs) in the order in which labels first occur."""
    for label in dict.fromkeys(record.label.values.tolist()):
        yield label, select(record, label=label)


def own_steps(record: xr.Dataset) -> xr.Dataset:
    """Without the steps at which none of these runs was measured: conditions of one record may differ in them."""
    return record.isel(step=np.flatnonzero(np.isfinite(record.train_loss.values).any(0)))


def regular_steps(record: xr.Dataset) -> xr.Dataset:
    """The steps of a record's even grid, without what is measured more often early on or in windows."""
    every = json.loads(record.attrs["recipe"])["schedule"]["every"] or 1
    return own_steps(record.isel(step=np.flatnonzero(record.step.values % every == 0)))


def median(values: ArrayLike) -> float:
    """The median of the finite values; nan if there is none."""
    known = np.asarray(values, float).ravel()
    known = known[np.isfinite(known)]
    return float(np.median(known)) if len(known) else float("nan")


def last(record: xr.Dataset, name: str) -> Array:
    """(run,) the last measured value of a curve; nan where there is none."""
    found = np.full(record.sizes["run"], np.nan)
    for run, values in enumerate(record[name].values):
        known = np.isfinite(values)
        if known.any():
            found[run] = values[known][-1]
    return found
