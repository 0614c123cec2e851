"""Depth, Fig. 2, and width, Figs 9 to 11."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings
from grokbook.chapters.gu.arms import factor
from grokbook.chapters.gu.reading import MED, best, even, floor, reached, settled, told
from grokbook.chapters.gu.training import TRACKED, condition, every, scaled
from grokbook.claims import REACHED, Part, above, at_least, at_most, below, between
from grokbook.curves import last, median
from grokbook.measures.common import Array
from grokbook.settings import Seeds, Steps, Width, Widths, whole
from grokbook.train.experiment import Experiment, Schedule
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("depth")
Modulus = Annotated[int, whole(3)]
FOUR = {"p": 31, "widths": (32, 64, 128, 256), "seeds": 1, "steps": 10_000}  # stand-ins of Figs 10 and 11
TWO = {"p": 31, "widths": (32, 128)}  # and of Fig. 9
QUICK = {"p": 31, "widths": (16, 32, 64, 128), "steps": 30}


@section.experiment(
    smaller=[{"p": 31, "width": 64, "train_fraction": 0.8, "seeds": 1, "steps": 5_000}],
    quick={"width": 64, "depths": (1, 2), "steps": 40},
)
def layers(s: Settings, *, width: Width = 512, depths: Widths = (1, 2, 3, 4), steps: Steps = 10_000) -> Experiment:
    """Fig. 2: one to four layers, operands that share no token."""
    conditions = (
        condition(f"{n} layer{'s' * (n > 1)}", s.p, s.train_fraction, width, steps, layers=n, offset=s.p)
        for n in depths
    )
    return Experiment("gu/layers", every(s.few, conditions), Schedule(log=60, every=20), TRACKED)


def _widths(name: str, p: int, offset: int, widths: Widths, alpha: float, seeds: int, steps: int) -> Experiment:
    runs = every(seeds, (condition(f"d = {d}", p, alpha, d, steps, offset=offset) for d in widths))
    return Experiment(f"gu/{name}", runs, Schedule(log=100, every=50), TRACKED)


@section.experiment(
    smaller=[{**TWO, "train_fraction": 0.7, "seeds": 3, "steps": 8_000}], quick={**TWO, "seeds": 1, "steps": 30}
)
def width_apart(s: Settings, *, widths: Widths = (128, 256), seeds: Seeds = 5, steps: Steps = 60_000) -> Experiment:
    """Fig. 9, left: width where the operands share few tokens, k = 85 of 97."""
    return _widths("width_apart", s.p, scaled((85,), s.p)[0], widths, s.train_fraction, seeds, steps)


@section.experiment(
    smaller=[{"seeds": 1}, {**TWO, "train_fraction": 0.5, "seeds": 2, "steps": 10_000}],
    quick={**TWO, "seeds": 1, "steps": 40},
)
def width_shared(
    s: Settings, *, p: Modulus = 47, widths: Widths = (64, 256), seeds: Seeds = 5, steps: Steps = 40_000
) -> Experiment:
    """Fig. 9, right: width where they share all."""
    return _widths("width_shared", p, 0, widths, s.train_fraction, seeds, steps)


@section.experiment(smaller=[{**FOUR, "train_fraction": 0.5}], quick=QUICK)
def width_ceiling(
    s: Settings, *, p: Modulus = 43, widths: Widths = (128, 256, 512, 1024), steps: Steps = 50_000
) -> Experiment:
    """Fig. 10: how far width helps."""
    return _widths("width_ceiling", p, 0, widths, s.train_fraction, s.seeds, steps)


@section.experiment(smaller=[{**FOUR, "train_fraction": 0.7}], quick=QUICK)
def width_boundary(
    s: Settings, *, p: Modulus = 43, widths: Widths = (256, 512, 1024, 2048), steps: Steps = 200_000
) -> Experiment:
    """Fig. 11: width where the operands share nothing and data are scarce."""
    return _widths("width_boundary", p, p, widths, s.train_fraction, s.few, steps)


def over(record: xr.Dataset, column: str, measure: Callable[[xr.Dataset], Array]) -> Array:
    """Medians over seeds of a measure, (condition,), in the order of a depth or width."""
    return np.array([median(measure(select(record, **{column: one}))) for one in np.unique(record[column].values)])


def oscillation(record: xr.Dataset) -> Array:
    """(run,) standard deviation of test accuracy over the last 30 % of the steps."""
    grid = even(record)
    late = grid.step.values >= 0.7 * grid.step.values[-1]
    return np.nanstd(grid.test_accuracy.values[:, late], axis=1)


def shrinkage(record: xr.Dataset) -> Array:
    """MED over the last 500 steps with one layer more, in units of that with one less."""
    ends = over(record, "layers", lambda one: settled(one, MED))
    return ends[1:] / ends[:-1]


def arms(record: xr.Dataset) -> tuple[Array, Array]:
    """t_0.9 of the networks of the smallest and of the largest width; infinity if never."""
    widths = np.unique(record.d_model.values)
    return reached(select(record, d_model=widths[0]), 0.9), reached(select(record, d_model=widths[-1]), 0.9)


_final = partial(over, column="d_model", measure=partial(last, curve="test_accuracy"))


def gain(record: xr.Dataset) -> float:
    """Steps between the medians of both arms, in units of the run; a run that never gets there counts at its end."""
    end = float(record.step.values[-1])
    narrow, wide = (np.minimum(one, end) for one in arms(record))
    return float(median(narrow) - median(wide)) / end


section.claim("fig2", "Fig. 2, earlier Fig. 6",
    "One layer groks; two overfit; with three and four accuracy oscillates and MED ends lower.",
    Part("t_0.9 with one layer", lambda r: over(r, "layers", lambda one: reached(one, 0.9))[0], REACHED),
    Part("oscillation with most layers / with one", lambda r: np.divide(*over(r, "layers", oscillation)[[-1, 0]]),
         at_least(2), times),
    Part("MED at the end / with one layer less, largest", lambda r: shrinkage(r).max(),
         below(1), times),
    Part("best accuracy with one layer − with two", lambda r: -np.diff(over(r, "layers", best)[:2]), at_least(0.1)),
    on="layers")  # fmt: skip


def _wider(id: str, name: str, figure: str, share: float, paper: str) -> None:
    section.claim(id, figure, "A wider network groks much sooner.",
        Part("median t_0.9, narrow − wide, of the length of the runs", gain, above(share), percent),
        Part("t_0.9, narrow / wide, lower end of the 90 % interval over seeds", lambda r: factor(*arms(r)).low,
             above(1), told("infinite, as narrow networks do not get there", times)),
        on=name,
        paper=paper,
    )  # fmt: skip


_wider("fig9-left", "width_apart", "Fig. 9 left, earlier Fig. 5", 1 / 6, "more than 20,000 steps sooner")
_wider("fig9-right", "width_shared", "Fig. 9 right, earlier Fig. 5", 1 / 8, "more than 10,000 steps sooner")

section.claim("fig10", "Fig. 10, earlier Fig. 9", "Width helps up to a point, while the floor of MED goes on falling.",
    Part("final accuracy at the third width", lambda r: _final(r)[2], at_least(0.95), percent),
    Part("final accuracy at the first width", lambda r: _final(r)[0], between(0.5, 0.9), percent),
    Part("fourth − third", lambda r: abs(_final(r)[3] - _final(r)[2]), at_most(0.05)),
    Part("least MED (M3) after t_fit, fourth / third",
         lambda r: np.divide(*over(r, "d_model", lambda one: floor(one, "med_M3"))[[3, 2]]), at_most(0.9)),
    on="width_ceiling", paper="“no significant improvement” at last; 0.7 at d = 128, 0.99 from 512 on")  # fmt: skip


section.claim("fig11", "Fig. 11, earlier Fig. 10",
    "At the boundary no amount of training helps a narrow network, and a wide one groks.",
    Part("best accuracy, the better of the two narrowest", lambda r: over(r, "d_model", best)[:2].max(), below(0.2),
         percent),
    Part("the worst of the wider ones, in the first half of the run",
         lambda r: over(r.sel(step=slice(r.step[-1] / 2)), "d_model", best)[2:].min(), at_least(0.9), percent),
    on="width_boundary", paper="none at d = 256 and 512 in 200,000 steps, grokking at 1024 and 2048")  # fmt: skip
