"""Fig. 6: the inverse participation ratio, a measure of periodicity, through training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings
from grokbook.chapters.gromov.training import ADAMW, seeded
from grokbook.claims import Part, above, at_least, at_most, between, near
from grokbook.curves import at, last, median, peak, spearman, sweep, t_test, t_train
from grokbook.models.mlp import TwoLayerMLP
from grokbook.settings import Shares, Steps
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Schedule
from grokbook.words import times

section = Section("periodicity")


@section.experiment(quick={"train_fractions": (0.5, 0.8), "steps": 150})
def more_data(s: Settings, *, train_fractions: Shares = (0.4, 0.6, 0.7, 0.9), steps: Steps = 1_000) -> Experiment:
    """Fig. 6: "More training and more data helps to reduce the gap" to the ratio of the weights by hand."""
    model = TwoLayerMLP(s.p, s.width, "standard")
    tasks = (ModularTask(s.p, "n + m", alpha) for alpha in train_fractions)
    runs = tuple(run for task in tasks for run in seeded(s.few, task, model, ADAMW, steps, "AdamW"))
    return Experiment("gromov/more_data", runs, Schedule(log=60, every=10), ("ipr",))


def harmonics(record: xr.Dataset, *multiples: int) -> NDArray:
    """(run,) at the end: share of the power outside a row's strongest wave at these multiples of its frequency.

    The power of a row of W_in, one operand's half of a unit, is taken relative to its total, and averaged over rows.
    """
    rows = measures.halves(record.W_in.isel(snapshot=-1))  # (run, unit, operand, p)
    power, p = measures.fourier_power(rows), rows.shape[-1]
    power /= power.sum(-1, keepdims=True)
    strongest = power[..., 1:].argmax(-1, keepdims=True) + 1
    found = strongest * np.array(multiples) % p
    there = np.take_along_axis(power, np.minimum(found, p - found), -1).sum(-1)  # p - k is the same wave as k
    outside = 1 - np.take_along_axis(power, strongest, -1)[..., 0]
    return there.mean((1, 2)) / outside.mean((1, 2))


def slopes(record: xr.Dataset) -> tuple[NDArray, NDArray]:
    """Of the ratio between two looks: steps (n,) half-way, and slopes (run, n)."""
    steps = record.step.values
    return (steps[1:] + steps[:-1]) / 2, np.diff(record.ipr.values) / np.diff(steps)


def steepest(record: xr.Dataset) -> NDArray:
    """(run,) the step at which the ratio rises fastest."""
    middles, found = slopes(record)
    return peak(record.isel(step=slice(1, None)).assign_coords(step=middles), found)[0]


def pace(record: xr.Dataset, when: NDArray) -> NDArray:
    """(run,) the ratio's slope at each run's own step, in units of its largest."""
    middles, found = slopes(record)
    return np.array([np.interp(t, middles, row) / row.max() for t, row in zip(when, found, strict=True)])


def rises(record: xr.Dataset, until: float = 0.8) -> Iterator[tuple[NDArray, NDArray]]:
    """Steps and ratio of each run from a fifth of its rise on."""
    for values in record.ipr.values:
        share = (values - values[0]) / (np.nanmax(values) - values[0])
        upwards = np.arange(len(values)) <= int(np.nanargmax(share >= until))
        middle = upwards & (share >= 0.2) & (share <= until)
        yield record.step.values[middle].astype(float), values[middle]


def straightness(record: xr.Dataset) -> NDArray:
    """(run,) R squared of a straight line through the rise; nan where it has fewer than three points."""
    return np.array([np.corrcoef(x, y)[0, 1] ** 2 if len(x) > 2 else np.nan for x, y in rises(record)])


def bend(record: xr.Dataset, until: float = 0.8) -> NDArray:
    """(run,) largest over smallest slope of a cubic through the rise: 1 for a line, about 1.5 for a logistic curve.

    Infinity where it falls, or has under six points.
    """
    found = []
    for x, y in rises(record, until):
        slope = np.polynomial.Polynomial.fit(x, y, 3).deriv()(np.linspace(x[0], x[-1], 50)) if len(x) > 5 else [np.nan]
        found.append(np.max(slope) / np.min(slope) if np.min(slope) > 0 else np.inf)
    return np.array(found)


def gap(record: xr.Dataset, share: float = 1) -> NDArray:
    """(run,) how much the ratio lacks of 1, that of the weights by hand, after this share of the steps."""
    return 1 - at(record, "ipr", share * float(record.step.values[-1]))


def by_share(record: xr.Dataset) -> float:
    """The gap at the end from the largest share of data over that from the smallest."""
    _, gaps = sweep(record, "train_fraction", gap)
    return float(np.divide(*median(gaps, axis=0)[[-1, 0]]))


section.claim(
    "fig6",
    "Fig. 6",
    "The ratio rises slowly, then fast as the network groks, and saturates below the analytic value.",
    Part("IPR at first", lambda r: r.ipr.values[:, 0], near(0.04, 0.003)),
    Part("IPR at t_train / at first", lambda r: at(r, "ipr", t_train(r)) / r.ipr.values[:, 0], above(1.5)),
    Part("IPR at t_test", lambda r: at(r, "ipr", t_test(r)), between(0.2, 0.6)),
    Part("steepest at, in units of t_train", lambda r: steepest(r) / t_train(r), at_least(1)),
    Part("and of t_test", lambda r: steepest(r) / t_test(r), at_most(2)),
    Part("IPR at the end", lambda r: last(r, "ipr"), between(0.8, 0.98)),
    Part("rise after t_test", lambda r: last(r, "ipr") - at(r, "ipr", t_test(r)), at_least(0.2)),
    on="adamw_curves",
    forecast="0.040 at first, 0.45 at t_test, 0.894 at step 300",
)

section.claim(
    "fig6-linear",
    "Fig. 6",
    "Growth is linear in the fast regime.",
    Part("R² of a straight line through the rise", straightness, at_least(0.9), premise=True),
    Part("largest slope of a cubic through it / smallest", bend, at_most(1.2),
         open=("up to 60 % of the rise it is met", lambda r: median(bend(r, 0.6)) <= 1.2)),
    on="adamw_curves",
    forecast="a line through 20 to 80 % of the rise",
)  # fmt: skip

section.claim(
    "fig6-start",
    "Fig. 6",
    "Growth turns from slow to fast while the network groks, and is fast once the test set is learnt.",
    Part("slope at t_test, in units of the largest", lambda r: pace(r, t_test(r)), at_least(0.9), premise=True),
    Part("less that at t_train", lambda r: pace(r, t_test(r)) - pace(r, t_train(r)), at_least(0.5)),
    on="adamw_curves",
    paper="the transition “coincides with grokking”; linear growth “starts after 100% test accuracy was reached”",
    note="The bounds were set with the record known",
)

section.claim(
    "fig6-gap",
    "Fig. 6",
    "More training and more data make the gap to the weights by hand smaller.",
    Part("gap at the end / after a quarter of the steps, at α = 0.5", lambda r: gap(r) / gap(r, 0.25), at_most(0.9),
         times, every=True, on=("adamw_curves",)),
    Part("rank correlation of the gap at the end with α, of all networks",
         lambda r: spearman(r.train_fraction, gap(r)), at_most(-0.7), on=("more_data",)),
    Part("gap at the largest α / at the smallest, medians", by_share, at_most(0.9), times, on=("more_data",)),
)  # fmt: skip
