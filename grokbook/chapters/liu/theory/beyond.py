"""Beyond the paper: dimensions that a decoder may ignore, and how measured times follow rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook import checks
from grokbook.chapters.liu.theory.flows import vectors
from grokbook.chapters.liu.theory.relations import Array, Seed
from grokbook.measures import ranks, representation_quality_index, standardised


def line_readout(embedding: ArrayLike) -> Array:
    """The projection of embeddings (..., p, d) that comes nearest to the symbols' numbers 0 .. p - 1: (..., p, 1).

    What a linear decoder may keep. With d >= p - 1 dimensions every embedding has a perfect line in it, so its
    representation quality index then says nothing.
    """
    embedding = vectors(embedding)
    centred = embedding - embedding.mean(-2, keepdims=True)
    k = np.arange(embedding.shape[-2]) - (embedding.shape[-2] - 1) / 2
    return centred @ (np.linalg.pinv(centred) @ k[:, None])


def useless_dimensions_study(
    p: int, dimensions: Sequence[int], draws: int, *, delta: float = 0.1, seed: int = 0
) -> xr.Dataset:
    """A perfect line in one dimension beside random ones that a decoder may ignore, appendix D's caveat.

    Returns:
        Dataset (dimension, draw): the representation quality index of all dimensions with the mean and the sum over
        them (``rqi_mean``, ``rqi_sum``), of random embeddings without the line (``rqi_random``), and after
        `line_readout` with it (``rqi_readout``) and without (``rqi_random_readout``).
    """
    generator = np.random.default_rng(seed)
    rows: dict[str, list[Array]] = {}
    for d in dimensions:
        noise = generator.standard_normal((checks.integer("draws", draws, 1), p, d))
        with_line = noise.copy()
        with_line[..., 0] = np.arange(p)
        for name, value in {
            "rqi_mean": representation_quality_index(with_line, delta),
            "rqi_sum": representation_quality_index(with_line, delta, reduce="sum"),
            "rqi_random": representation_quality_index(noise, delta),
            "rqi_readout": representation_quality_index(line_readout(standardised(with_line)), delta),
            "rqi_random_readout": representation_quality_index(line_readout(standardised(noise)), delta),
        }.items():
            rows.setdefault(name, []).append(value)
    variables = {name: (("dimension", "draw"), np.stack(row)) for name, row in rows.items()}
    return xr.Dataset(variables, {"dimension": list(dimensions)}, {"p": p, "delta": delta})


class RateAgreement(NamedTuple):
    """How measured steps follow the prediction 1 / rate; intervals hold 95 % of bootstrap resamples."""

    runs: int  #: runs with a measured step and a rate above zero
    spearman: float
    spearman_interval: tuple[float, float]
    slope: float  #: of log steps against log(1 / rate) by least squares; the theory says 1
    slope_interval: tuple[float, float]


def rate_agreement(steps: ArrayLike, rates: ArrayLike, *, resamples: int = 2000, generator: Seed = 0) -> RateAgreement:
    """Rank correlation and log-log slope between measured steps (run,) and 1 / rates (run,).

    Runs that did not arrive (nan) or have no rate (0) are left out.

    Raises:
        ValueError: not one rate a run, or fewer than 3 runs with both.
    """
    steps, rates = np.asarray(steps, float).ravel(), np.asarray(rates, float).ravel()
    if steps.shape != rates.shape:
        raise ValueError(f"steps and rates must have one entry a run, got {steps.shape} and {rates.shape}")
    known = np.isfinite(steps) & (steps > 0) & (rates > 0)
    y, x = np.log(steps[known]), -np.log(rates[known])
    if len(x) < 3:
        raise ValueError(f"at least 3 runs with a step and a rate are needed, got {len(x)}")

    def slope(x: Array, y: Array) -> float:
        centred = x - x.mean()
        return float(centred @ y / (centred @ centred)) if centred.any() else math.nan

    def both(x: Array, y: Array) -> tuple[float, float]:
        one, other = ranks(x), ranks(y)
        return slope(one, other) * float(one.std() / other.std()) if np.ptp(y) > 0 else math.nan, slope(x, y)

    choices = checks.generator(generator).integers(len(x), size=(resamples, len(x)))
    spread = np.nanquantile([both(x[c], y[c]) for c in choices], [0.025, 0.975], axis=0)
    (low_r, low_s), (high_r, high_s) = spread.tolist()
    return RateAgreement(len(x), both(x, y)[0], (low_r, high_r), slope(x, y), (low_s, high_s))
