"""First crossings, last values, medians and ranks of learning curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array


def first_step(values: ArrayLike, steps: ArrayLike, threshold: float) -> Array:
    """When a curve first reaches a threshold.

    Args:
        values: (..., step) a measured quantity, for example an accuracy; nan counts as not reached.
        steps: (step,) the optimizer steps at which it was measured.
        threshold: the value to reach.

    Returns:
        (...), the first evaluated step with ``values >= threshold``; nan if there is none.

    Raises:
        ValueError: not one value per step.
    """
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    if steps.ndim != 1 or values.shape[-1:] != steps.shape:
        raise ValueError(f"values must have one entry per step, got values {values.shape} and steps {steps.shape}")
    if not len(steps):
        return np.full(values.shape[:-1], np.nan)
    reached = values >= threshold  # (..., step)
    return np.where(reached.any(-1), steps[reached.argmax(-1)], np.nan)


def last_value(values: ArrayLike) -> Array:
    """(...), the last finite value of a curve (..., step); nan if there is none."""
    values = np.asarray(values, float)
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    where = values.shape[-1] - 1 - np.isfinite(values)[..., ::-1].argmax(-1)
    return np.take_along_axis(np.where(np.isfinite(values), values, np.nan), where[..., None], -1)[..., 0]


def median(values: ArrayLike) -> float:
    """The median of the finite values; nan if there is none."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return float(np.median(known)) if len(known) else float("nan")


def ranks(values: ArrayLike) -> Array:
    """Ranks from 1 of a row of numbers, (n,); equal ones share their mean."""
    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]
