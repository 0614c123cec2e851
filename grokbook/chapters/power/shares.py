"""Fig. 1, center: how long it takes with how much of the table of S5, and by which law; Fig. 1, right: a puzzle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.theory.times import fit_times
from grokbook.chapters.power.training import ADAMW, AT_99, GRID, adamw, even, run
from grokbook.claims import Part, above, at_least, at_most, between
from grokbook.curves import median, spearman, sweep, t_test, t_train
from grokbook.settings import Seeds, Shares, Steps
from grokbook.train.experiment import Experiment, Stop
from grokbook.words import times

section = Section("shares")
NEAR = (0.25, 0.26, 0.27, 0.28, 0.29, 0.3)  # where the paper states what a per cent of data costs
SHARES = (*NEAR, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8)
SHORT = (0.25, 0.28, 0.29, 0.5)  # of S5, where the last batch of an epoch has 16, 448, 80 and 32 rows


@section.experiment(
    smaller=[{"fractions": (0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8), "seeds": 3, "updates": 60_000}],
    quick={"fractions": (0.7, 0.8), "seeds": 1, "updates": 100},
)
def scarce_data(s: Settings, *, fractions: Shares = SHARES, seeds: Seeds = 7, updates: Steps = 500_000) -> Experiment:
    """Fig. 1, center: products of S5 under AdamW from ever smaller shares; a run ends when it has generalised."""
    runs = (run(s, "x.y", share, ADAMW, updates, k, "decay 1") for share in fractions for k in range(seeds))
    return Experiment("power/scarce_data", tuple(runs), GRID, stop=AT_99)


@section.experiment(quick={"fractions": (0.7, 0.8), "seeds": 1, "updates": 100})
def by_heart(s: Settings, *, fractions: Shares = SHARES, seeds: Seeds = 7, updates: Steps = 20_000) -> Experiment:
    """The same shares and seeds, each network until it knows its training set: that takes no half a million updates."""
    runs = (run(s, "x.y", share, ADAMW, updates, k, "decay 1") for share in fractions for k in range(seeds))
    return Experiment("power/by_heart", tuple(runs), GRID, stop=Stop("train_accuracy"))


@section.experiment(quick={"fractions": (0.7, 0.8), "seeds": 1, "updates": 100})
def even_batches(s: Settings, *, fractions: Shares = SHORT, seeds: Seeds = 7, updates: Steps = 20_000) -> Experiment:
    """``by_heart`` without the short batches that end its epochs."""
    return even(by_heart(s, fractions=fractions, seeds=seeds, updates=updates), "even_batches")


@section.experiment(
    smaller=[{"fractions": (0.45, 0.5, 0.6, 0.7, 0.8), "seeds": 2, "updates": 40_000}],
    quick={"fractions": (0.7, 0.8), "seeds": 1, "updates": 100},
)
def weaker_decay(
    s: Settings, *, fractions: Shares = (0.4, 0.45, 0.5, 0.6, 0.7, 0.8), seeds: Seeds = 3, updates: Steps = 100_000
) -> Experiment:
    """The same with decay .3: does decay move the share that is needed, or only the time?"""
    how = adamw(decay=0.3)
    runs = (run(s, "x.y", share, how, updates, k, "decay 0.3") for share in fractions for k in range(seeds))
    return Experiment("power/weaker_decay", tuple(runs), GRID, stop=AT_99)


@section.study
def laws(scarce_data: xr.Dataset) -> xr.Dataset:
    """The three laws of ``fit_times`` for each run's t_test, how they compare, and the growth of the exponential."""
    fits = fit_times(scarce_data.train_fraction.values, t_test(scarce_data))
    at = np.linspace(0.2, 0.9, 141)
    return xr.Dataset(
        {
            "error": ("law", [fit.error for fit in fits.values()]),
            "aicc": ("law", [fit.aicc for fit in fits.values()]),
            "curve": (("law", "fraction"), [fit.curve(at) for fit in fits.values()]),
            "growth": ("value", np.array(fits["exponential"].parameters["b"])),
        },
        {"law": list(fits), "value": ["best", "low", "high"], "fraction": at},
    )


@section.study
def decay_laws(scarce_data: xr.Dataset, weaker_decay: xr.Dataset) -> xr.Dataset:
    """Divergence fitted to both decays over the shares that both have: critical share and factor, (decay, value)."""
    shared = set(scarce_data.train_fraction.values) & set(weaker_decay.train_fraction.values)
    found = []
    for record in (scarce_data, weaker_decay):
        own = np.isin(record.train_fraction.values, list(shared))
        fit = fit_times(record.train_fraction.values[own], t_test(record)[own])["divergence"]
        found.append([fit.parameters["c"], fit.parameters["a"]])
    table = np.array(found)
    return xr.Dataset(
        {"critical": (("decay", "value"), table[:, 0]), "factor": (("decay", "value"), table[:, 1])},
        {"decay": [1.0, 0.3], "value": ["best", "low", "high"]},
    )


def medians(record: xr.Dataset, of: Callable[[xr.Dataset], NDArray[np.float64]]) -> tuple[NDArray, NDArray]:
    """Shares (n,) and the median over seeds of a time at each, (n,)."""
    shares, table = sweep(record, "train_fraction", of)
    return shares, median(table, axis=0)


def per_point(record: xr.Dataset) -> float:
    """The factor in median t_test that one per cent of data less costs, from 25 to 30 %; nan with too few points."""
    shares, middle = medians(record, t_test)
    near = (shares >= NEAR[0] - 1e-9) & (shares <= NEAR[-1] + 1e-9) & np.isfinite(middle)
    return float(np.exp(-np.polyfit(100 * shares[near], np.log(middle[near]), 1)[0])) if near.sum() >= 4 else np.nan


def trend(record: xr.Dataset, of: Callable[[xr.Dataset], NDArray[np.float64]]) -> float:
    """Rank correlation of the share with the median time over seeds; shares without a median are left out."""
    shares, middle = medians(record, of)
    known = np.isfinite(middle)
    return spearman(shares[known], middle[known])


def slowed(short: xr.Dataset, even: xr.Dataset, share: float) -> float:
    """Median t_train at a share with a short last batch over that without; nan where either has no such share."""
    found = [dict(zip(*medians(record, t_train), strict=True)) for record in (short, even)]
    return float(found[0].get(share, np.nan) / found[1].get(share, np.nan))


section.claim(
    "fig1c-cost",
    "Fig. 1, center",
    "Near 25 to 30 % of the table of S5, one per cent of data less costs 40 to 50 % more updates.",
    Part("factor a per cent, 25 to 30 %", per_point, between(1.25, 1.7), times),
    on="scarce_data",
    paper="1.4 to 1.5",
)

section.claim(
    "fig1c-order",
    "Fig. 1, center",
    "The less data, the later the median network generalises.",
    Part("Spearman(share, median t_test)", lambda r: trend(r, t_test), at_most(-0.95)),
    on="scarce_data",
    forecast="-1",
)

section.claim(
    "fig1c-train",
    "Fig. 1, center",
    "Meanwhile the time to learn the training set falls with less data, and stays between 1,000 and 10,000 updates.",
    Part("median t_train of each share", lambda r: medians(r, t_train)[1], between(1e3, 1e4), every=True),
    Part("Spearman(share, median t_train)", lambda r: trend(r, t_train), at_least(0.5)),
    on="by_heart",
)

section.claim(
    "short-batch",
    "beside Fig. 1, center",
    "Where an epoch ends with a batch of few rows, the training set takes several times as long to learn.",
    Part(
        "median t_train with a last batch of 16 rows / without, at 25 %",
        partial(slowed, share=0.25),
        at_least(3),
        times,
    ),
    Part("of 32 rows, at 50 %", partial(slowed, share=0.5), at_least(3), times),
    Part("of 448 rows, at 28 %", partial(slowed, share=0.28), between(0.8, 1.25), times),
    on=("by_heart", "even_batches"),
    forecast="5.5 at 25 % and 9 at half of the table, from three networks of a pilot",
    whose="ours",
)

section.claim(
    "fig1c-exponential",
    "section 3.1.1",
    "The time grows exponentially as data get scarce.",
    Part("AICc(exponential) - best AICc", lambda d: float(d.aicc[1] - d.aicc.min()), at_most(2)),
    Part("root mean square error of ln t", lambda d: float(d.error[1]), at_most(0.3)),
    Part("growth per unit of share, lower end", lambda d: float(d.growth[1]), above(0)),
    on="laws",
)

section.claim(
    "decay-time",
    "beyond Fig. 1, center",
    "Weaker decay costs time and not data: the critical share stays, within 5 % of the table, and the factor grows.",
    Part(
        "critical shares with decay .3 and 1, difference",
        lambda d: float(abs(d.critical[1, 0] - d.critical[0, 0])),
        at_most(0.05),
    ),
    Part("factor with decay .3 / with 1", lambda d: float(d.factor[1, 0] / d.factor[0, 0]), at_least(1.5), times),
    Part("lower ends of both critical shares", lambda d: d.critical[:, 1], above(0), every=True),
    on="decay_laws",
    whose="ours",
)
