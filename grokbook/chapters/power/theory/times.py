"""How the time to generalise grows as data get scarce: three laws fitted to the points of Fig. 1, center."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array


class Interval(NamedTuple):
    """A fitted number, and between which two it lies with 95 % confidence; infinite where the data leave it open."""

    value: float
    low: float
    high: float


class Fit(NamedTuple):
    """One law fitted to times."""

    parameters: dict[str, Interval]
    error: float  #: root mean square of ln t, with the degrees of freedom left
    aicc: float  #: Akaike's criterion for few points; smaller is better, differences below 2 decide nothing
    curve: Callable[[ArrayLike], Array]  #: fractions -> times


def fit_times(fractions: ArrayLike, times: ArrayLike) -> dict[str, Fit]:
    """Fit three laws for the time t at a training share f by least squares in ln t.

    "power law", t = a f**-b; "exponential", t = a exp(-b f), which makes one per cent of data cost exp(b / 100); and
    "divergence", t = a (f - c)**-b at a critical share c below all shares: a fit by name of the law, parameters by
    these letters. Intervals are those of the profile: the values at which the best fit with that value fixed is not
    significantly worse.

    Args:
        fractions: (n,) shares between 0 and 1; one value may stand several times.
        times: (n,) steps above 0; what is nan or infinite never came and is left out.

    Raises:
        ValueError: fewer than five times at four different shares.
    """
    f, t = np.asarray(fractions, float), np.asarray(times, float)
    known = np.isfinite(t)
    f, y = f[known], np.log(t[known])
    if len(f) < 5 or len(np.unique(f)) < 4:
        raise ValueError(f"at least five times at four different fractions are needed, got {len(f)} finite ones")
    return {
        "power law": _straight(f, y, np.log),
        "exponential": _straight(f, y, np.asarray),
        "divergence": _divergence(f, y),
    }


def _line(x: Array, y: Array) -> Array:
    """Height at 0, slope and sum of squares of the best straight line: (..., 3) for x (..., n)."""
    centred = x - x.mean(-1, keepdims=True)
    slope = (centred @ y) / np.square(centred).sum(-1)
    height = y.mean() - slope * x.mean(-1)
    squares = np.square(y - height[..., None] - slope[..., None] * x).sum(-1)
    return np.stack([height, slope, squares], -1)


def _straight(f: Array, y: Array, scale: Callable[[ArrayLike], Array]) -> Fit:
    """ln t = ln a - b scale(f)."""
    x = scale(f)
    height, slope, squares = _line(x, y).tolist()
    free = len(x) - 2
    error = np.sqrt(squares / free)
    wide = student(free) * error / np.sqrt(len(x))
    around = wide / x.std()
    at_zero = wide * np.sqrt(1 + np.square(x.mean() / x.std()))
    parameters = {
        "a": Interval(*np.exp([height, height - at_zero, height + at_zero]).tolist()),
        "b": Interval(-slope, float(-slope - around), float(-slope + around)),
    }
    return Fit(parameters, float(error), _aicc(squares, len(x), 3), lambda at: np.exp(height + slope * scale(at)))


def _divergence(f: Array, y: Array) -> Fit:
    """ln t = ln a - b ln(f - c): straight for each c, which is searched from 0 up to the smallest share."""
    lowest = f.min()
    gaps = np.geomspace(lowest, 1e-4 * lowest, 2000)  # lowest - c
    lines = _line(np.log(f - lowest + gaps[:, None]), y)  # (c, 3)
    best = int(lines[:, 2].argmin())
    height, slope, squares = lines[best].tolist()
    free = len(f) - 3
    error = float(np.sqrt(squares / free))
    near = lines[:, 2] <= squares * (1 + student(free) ** 2 / free) + 1e-12
    c = lowest - gaps

    def across(values: Array, value: float) -> Interval:
        return Interval(float(value), float(values[near].min()), float(values[near].max()))

    critical = across(c, c[best])
    if near[-1]:
        critical = critical._replace(high=float(lowest))
    parameters = {"a": across(np.exp(lines[:, 0]), np.exp(height)), "b": across(-lines[:, 1], -slope), "c": critical}

    def curve(at: ArrayLike) -> Array:
        above = np.asarray(at, float) - c[best]
        return np.where(above > 0, np.exp(height + slope * np.log(np.where(above > 0, above, 1.0))), np.inf)

    return Fit(parameters, error, _aicc(squares, len(f), 4), curve)


def _aicc(squares: float, n: int, k: int) -> float:
    """For n points and k fitted numbers, their spread among them; infinite where there are too few points for it."""
    if n - k - 1 <= 0:
        return float("inf")
    return float(n * np.log(max(squares, 1e-24) / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


def student(free: int) -> float:
    """The two-sided quantile of Student's t at 95 %."""
    from scipy.stats import t  # type: ignore[import-untyped]

    return float(t.ppf(0.975, free))
