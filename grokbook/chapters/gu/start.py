"""Fewer shared tokens, the earlier version's Fig. 3, and a structured start of the embedding, Fig. 20."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings
from grokbook.chapters.gu.arms import Factor, factor
from grokbook.chapters.gu.reading import correlation, reached, t_fit
from grokbook.chapters.gu.training import TRACKED, condition, every, scaled
from grokbook.claims import Part, at_least, at_most, below, exactly
from grokbook.curves import median
from grokbook.measures.common import Array
from grokbook.settings import Shares, Steps
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("start")
STARTS = ("gaussian", "toeplitz", "matched")
SHARES = (0.3, 0.25, 0.2)


@section.experiment(
    smaller=[{"seeds": 1}, {"p": 31, "d_model": 64, "train_fraction": 0.8, "steps": 10_000}], quick={"steps": 40}
)
def overlap(s: Settings, *, steps: Steps = 30_000) -> Experiment:
    """Earlier Fig. 3: operands that share all, some or few of their tokens; a run ends when it has long grokked."""
    conditions = (
        condition(f"k = {k}", s.p, s.train_fraction, s.d_model, steps, offset=k) for k in scaled(s.offsets, s.p)
    )
    stop = Stop(threshold=0.999, evaluations=40)
    return Experiment("gu/overlap", every(s.seeds, conditions), Schedule(log=60, every=25), TRACKED, stop=stop)


@section.experiment(
    smaller=[
        {"once": (0.2,)},
        {"p": 31, "d_model": 64, "shares": (0.6, 0.55, 0.5), "seeds": 2, "steps": 8_000},
    ],
    quick={"shares": (0.7,), "steps": 40},
)
def toeplitz(s: Settings, *, shares: Shares = SHARES, once: Shares = (), steps: Steps = 40_000) -> Experiment:
    """Fig. 20: a structured start of the embedding, a random one, and a random one of the same means and norms.

    Shares that are named ``once``, too, get the first seed alone.
    """
    d = max(s.d_model, 4 * (s.p // 4 + 1))  # the structured start needs a dimension a token, and heads a fourth of them
    conditions = (condition(one, s.p, alpha, d, steps, start=one) for alpha in shares for one in STARTS)
    runs = tuple(run for run in every(s.seeds, conditions) if not (run.seed and run.task.train_fraction in once))
    return Experiment("gu/toeplitz", runs, Schedule(log=60, every=25), TRACKED, stop=Stop(evaluations=10))


def by_offset(record: xr.Dataset) -> list[xr.Dataset]:
    """The runs of each offset, the smallest first."""
    return [select(record, offset=k) for k in np.unique(record.offset.values)]


def slowdowns(record: xr.Dataset) -> list[float]:
    """Median t_0.5 of each offset over that of the one before; two that never get there count as one."""
    halves = [float(median(reached(runs, 0.5))) for runs in by_offset(record)]
    return [1.0 if a == b else b / a for a, b in pairwise(halves)]


def of_three_quarters(record: xr.Dataset) -> float:
    """The correlation of MED with the test loss that three quarters of the offsets reach, of those that memorise."""
    judged = [runs for runs in by_offset(record) if np.isfinite(median(t_fit(runs)))]
    found = sorted((float(median(correlation(runs))) for runs in judged), reverse=True)
    return found[int(np.ceil(0.75 * len(found))) - 1] if len(found) > 1 else float("nan")


def speeds(record: xr.Dataset, start: str, other: str) -> dict[float, Factor]:
    """Share -> the factor from another start's t_0.5 to one's, where some network of either gets there."""
    found = {}
    for alpha in np.unique(record.train_fraction.values)[::-1]:
        runs = select(record, train_fraction=float(alpha))
        a, b = (reached(select(runs, start=name), 0.5) for name in (start, other))
        if np.isfinite([np.median(a), np.median(b)]).any():
            found[float(alpha)] = factor(a, b)
    return found


def pairs(record: xr.Dataset, start: str, other: str) -> Array:
    """(pair,) the factors of networks of one share and seed, and so one training set, where one or both get there."""
    own, against = (select(record, start=name) for name in (start, other))
    keys = [[*zip(runs.train_fraction.values, runs.seed.values, strict=True)] for runs in (own, against)]
    late = dict(zip(keys[1], reached(against, 0.5), strict=True))
    found = [(ours, late[key]) for key, ours in zip(keys[0], reached(own, 0.5), strict=True)]
    return np.array([ours / theirs for ours, theirs in found if np.isfinite([ours, theirs]).any()])


def unranked(record: xr.Dataset) -> bool:
    """Whether half of the test set is never right at two offsets or more."""
    return int(np.sum([not np.isfinite(median(reached(runs, 0.5))) for runs in by_offset(record)])) > 1


RISES = Part(
    "offsets at which median t_0.5 is later than at the one before",
    lambda record: np.mean(np.array(slowdowns(record)) > 1),
    exactly(1),
    percent,
    open=("two of them never get there, which cannot be ranked", unranked),
)
section.claim("overlap-slower", "Earlier Fig. 3", "Grokking slows down as the operands share fewer tokens.",
    RISES,
    Part("least factor from one offset to the next", lambda record: min(slowdowns(record)), at_least(1), times),
    on="overlap", paper="slower with k", earlier=(RISES,))  # fmt: skip

section.claim("overlap-med", "Earlier Fig. 3", "MED tracks the test loss with three quarters of the offsets or more.",
    Part("Spearman(MED, test loss) after t_fit, as three quarters of the offsets have it", of_three_quarters,
         at_least(0.8)),
    on="overlap", paper="in all experiments")  # fmt: skip


def _faster(id: str, statement: str, other: str, words: str, paper: str = "") -> None:
    def most(record: xr.Dataset, end: str) -> float:
        return max((getattr(one, end) for one in speeds(record, "toeplitz", other).values()), default=float("nan"))

    ratio = f"median t_0.5, Toeplitz / {words}"
    lone = ("a start has one network", lambda r: len(np.unique(r.seed)) < 2)
    section.claim(
        id, "Fig. 20, earlier Fig. 7", statement,
        Part(f"{ratio}, the largest of all shares", lambda r: most(r, "middle"), at_most(0.65), times, open=lone),
        Part("upper end of its 90 % interval over seeds", lambda r: most(r, "high"), below(1), times, open=lone),
        on="toeplitz", paper=paper,
        earlier=tuple(
            Part(f"{ratio}, at α = {alpha:g}", lambda r, alpha=alpha: most(select(r, train_fraction=alpha), "middle"),
                 at_most(0.65), times, open=lone)
            for alpha in SHARES
        ),
    )  # fmt: skip


_faster("fig20-faster", "A Toeplitz start of the embedding halves the steps to grokking.", "gaussian", "random", "×0.5")
_faster("fig20-structure", "It is the structure that helps.", "matched", "random of the same means and norms")
