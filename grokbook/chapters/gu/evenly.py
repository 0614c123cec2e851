"""Beyond theorem 3.10: training sets that lie evenly, under one name of the numbers or several, and what they teach."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings
from grokbook.chapters.gu.reading import mask_of, reached, t_fit
from grokbook.chapters.gu.tasks import CircledTask, HoledTask
from grokbook.chapters.gu.theory import power_shown, units
from grokbook.chapters.gu.training import TRACKED, every
from grokbook.claims import Part, at_least, at_most, below
from grokbook.curves import at, last, median, spearman
from grokbook.measures.common import Array
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Share, Shares, Steps, several, whole
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("evenly")


@section.experiment(smaller=[{"seeds": 1}], quick={"shares": (0.7,), "steps": 40})
def spread(s: Settings, *, shares: Shares = (0.3, 0.25), steps: Steps = 25_000) -> Experiment:
    """Section 7: training sets that lie evenly, which by theorem 3.10 cover more, and random ones of the same sizes."""
    conditions = (
        (way, HoledTask(s.p, "n + m", alpha, split=split), PairTransformer(s.p, s.d_model), steps)
        for alpha in shares
        for way, split in (("random", "code"), ("even", "even"))
    )
    runs = every(s.seeds, conditions)
    return Experiment("gu/spread", runs, Schedule(log=60, every=25), TRACKED, stop=Stop(evaluations=10))


@section.experiment(smaller=[{"seeds": 1}], quick={"share": 0.7, "steps": 40})
def alike(s: Settings, *, share: Share = 0.3, steps: Steps = 25_000) -> Experiment:
    """Beside ``spread``: training sets that hold every sum alike, as even ones do, and each at random places."""
    task = HoledTask(s.p, "n + m", share, split="alike")
    runs = every(s.seeds, [("alike", task, PairTransformer(s.p, s.d_model), steps)])
    return Experiment("gu/alike", runs, Schedule(log=60, every=25), TRACKED, stop=Stop(evaluations=10))


@section.experiment(smaller=[{"seeds": 1}], quick={"share": 0.7, "steps": 40, "look": 20})
def spacing(s: Settings, *, share: Share = 0.3, steps: Steps = 25_000, look: Steps = 12_500) -> Experiment:
    """Why ``spread``: sets nearly as even but irregular, or regular for each sum by itself, and even ones again."""
    runs = every(
        s.seeds,
        (
            (way, HoledTask(s.p, "n + m", share, split=way), PairTransformer(s.p, s.d_model), length)
            for way, length in (("stratified", steps), ("multiplied", steps), ("even", look))
        ),
    )
    measured = ("wrong_answers", "spacing_power")
    return Experiment("gu/spacing", runs, Schedule(log=60, every=25), measured, stop=Stop(evaluations=10))


@section.experiment(smaller=[{"seeds": 1}], quick={"prime": 11, "steps": 20, "circles": (1, 2)})
def circles(
    s: Settings,
    *,
    prime: Annotated[int, whole(5)] = 59,
    share: Share = 0.4069,  # 24 pairs of each sum modulo 59
    circles: Annotated[tuple[int, ...], several(whole(1))] = (1, 2, 4, 8, 29),
    steps: Steps = 8_000,
) -> Experiment:
    """On how many circles sums are even: one, as in ``spread``, to all that there are; and random sets."""
    model, even = PairTransformer(prime, s.d_model), (CircledTask(prime, "n + m", share, one) for one in circles)
    tasks = [("random", HoledTask(prime, "n + m", share))] + [("circles", one) for one in even]
    runs = every(s.more, [(label, task, model, steps) for label, task in tasks])
    return Experiment("gu/circles", runs, Schedule(log=60, every=10), ("frequencies",), stop=Stop(evaluations=10))


@section.experiment(smaller=[{"seeds": 1}], quick={"share": 0.7, "steps": 40})
def eight(
    s: Settings, *, share: Share = 0.3, circles: Annotated[int, whole(1)] = 8, steps: Steps = 25_000
) -> Experiment:
    """Eight circles, which ``circles`` found best, or all that there are, on the table and the share of ``spread``."""
    return _on_circles(s, "eight", (share,), circles, steps)


@section.experiment(smaller=[{"seeds": 1}], quick={"shares": (0.7,), "steps": 40})
def fewer(
    s: Settings, *, shares: Shares = (0.25, 0.2), circles: Annotated[int, whole(1)] = 8, steps: Steps = 25_000
) -> Experiment:
    """``eight`` from fewer pairs: how much of the table is enough?"""
    return _on_circles(s, "fewer", shares, circles, steps)


def _on_circles(s: Settings, name: str, shares: tuple[float, ...], circles: int, steps: int) -> Experiment:
    most, model = min(circles, len(units(s.p)) // 2), PairTransformer(s.p, s.d_model)
    runs = every(s.seeds, [("circles", CircledTask(s.p, "n + m", share, most), model, steps) for share in shares])
    measured = ("frequencies", "shown_power")
    return Experiment(f"gu/{name}", runs, Schedule(log=60, every=25), measured, stop=Stop(evaluations=10))


@section.study
def by_chance(base: xr.Dataset, eight: xr.Dataset) -> xr.Dataset:
    """``power`` (run, step): of the embeddings of the baseline at the waves that its random sets show most.

    They are as many as ``eight`` has circles; ``luck`` is what each as strong as the next would give.
    """
    circles, p = int(eight.circles.values[0]), int(base.p.values[0])
    found = [power_shown(tokens[:, :p], mask_of(base, run), circles) for run, tokens in enumerate(base.W_E.values)]
    data = {"power": (("run", "step"), found), "luck": circles / (p // 2)}
    return xr.Dataset(data, {"step": base.snapshot_step.values[0]})


def of_way(record: xr.Dataset, way: str, alpha: float) -> xr.Dataset:
    """The runs of one way to draw the training set, at a share; the nearest that there is."""
    shares = record.train_fraction.values
    return select(record, label=way, train_fraction=float(shares[np.abs(shares - alpha).argmin()]))


def _ratio(one: xr.Dataset, other: xr.Dataset) -> Array:
    """Median t_0.9 of some networks over that of others."""
    return median(reached(one, 0.9)) / median(reached(other, 0.9))


def _even(spread: xr.Dataset, share: float) -> Array:
    """Median t_0.9 from an even share over that from a random 30 %."""
    return _to_random(of_way(spread, "even", share), spread)


def _to_random(record: xr.Dataset, spread: xr.Dataset) -> Array:
    """Median t_0.9 over that from a random 30 %."""
    return _ratio(record, of_way(spread, "random", 0.3))


_LONE = ("a way has one network", lambda record: len(np.unique(record.seed)) < 2)
section.claim("structured", "beyond Sec. 7",
    "A quarter of the table that lies evenly teaches sooner than a random 30 %.",
    Part("median t_0.9, an even 25 % / a random 30 %", lambda r: _even(r, 0.25), below(1), times, open=_LONE),
    Part("test accuracy at the end from an even 25 %",
        lambda r: last(of_way(r, "even", 0.25), "test_accuracy"), at_least(0.99), percent, open=_LONE),
    on="spread", whose="ours")  # fmt: skip
section.claim("even-sooner", "beyond Sec. 7",
    "From as many pairs an even training set is understood sooner than a random one.",
    Part("median t_0.9, an even 30 % / a random 30 %", lambda r: _even(r, 0.3), at_most(0.8), times, open=_LONE),
    on="spread", whose="ours")  # fmt: skip
_HINDERS = Part("median t_0.9, an even 30 % / a random 30 %", lambda spread: _even(spread, 0.3), at_least(2), times,
    premise=True)  # fmt: skip
section.claim("not-alike", "beyond Sec. 7",
    "What keeps an even training set from being understood is where its pairs lie, not that every sum occurs alike.",
    Part("median t_0.9 from a random 30 %, with every sum alike / without",
        _to_random, at_most(2), times, on=("alike", "spread")),
    _HINDERS, whose="ours")  # fmt: skip
section.claim("one-spacing", "beyond Sec. 7",
    "What hinders is one spacing that all sums share: not that pairs lie near, nor that each sum is spaced by itself.",
    Part("median t_0.9, nearly as near but irregular / random",
        lambda spacing, spread: _to_random(select(spacing, label="stratified"), spread), at_most(2), times),
    Part("median t_0.9, each sum spaced in names of its own / random",
        lambda spacing, spread: _to_random(select(spacing, label="multiplied"), spread), at_most(2), times),
    _HINDERS, forecast="both hold", whose="ours")  # fmt: skip
section.claim("spacing-circle", "beyond Sec. 7",
    "From an even set a network lays its numbers out on the circle on which they are all one stretch.",
    Part("share of the embedding's power at the spacing's two frequencies, of 48, from even sets",
        lambda spacing: last(select(spacing, label="even"), "spacing_power"), at_least(0.5), percent, every=True),
    Part("the same from irregular ones", lambda spacing: last(select(spacing, label="stratified"), "spacing_power"),
        at_most(0.1), percent),
    forecast="85 and 4 % (a pilot at p = 59, 24 pairs a sum, two networks each)", whose="ours")  # fmt: skip
section.claim("near-misses", "beyond Sec. 7",
    "Where an even set is not understood, wrong answers lie near the right ones on that circle.",
    Part("mean distance of wrong answers, from even sets, of the way round", lambda spacing:
        last(select(spacing, label="even"), "answers_off"), at_most(0.125), every=True),
    forecast="1/40 (the pilot), 1/4 by luck: the next sum whose stretch lies there", whose="ours")  # fmt: skip


def _arms(record: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The networks of random sets, and of those even on the most circles."""
    return select(record, label="random"), select(record, circles=float(np.nanmax(record.circles.values)))


def _waves(record: xr.Dataset) -> Array:
    """Median IPR of directions when the training set is learnt, on the most circles over that on random sets."""
    random, most = (median(at(one, "direction_ipr", t_fit(one))) for one in _arms(record))
    return most / random


def _with_circles(record: xr.Dataset) -> Array:
    """Rank correlation of t_0.9, late where it never comes, with the number of circles, from two on, over networks."""
    some = record.isel(run=np.flatnonzero(record.circles.values >= 2))
    return np.asarray(spearman(some.circles.values, np.minimum(reached(some, 0.9), 2.0 * some.steps.values)))


section.claim("circles-sooner", "beyond Sec. 7",
    "Even on as many circles as there are, a training set is understood sooner than a random one of its size.",
    Part("median t_0.9, random / on all circles", lambda r: _ratio(*_arms(r)), at_least(2), times),
    on="circles", forecast="4, from the first networks at p = 97", whose="ours")  # fmt: skip
section.claim("circles-more", "beyond Sec. 7",
    "The more circles sums are even on, from two on, the sooner.",
    Part("rank correlation of t_0.9 with the number of circles", _with_circles, at_most(-0.5)),
    on="circles", whose="ours")  # fmt: skip
section.claim("circles-waves", "beyond Sec. 7",
    "Once the training set is learnt, directions of the embeddings are nearer to waves on all circles than without.",
    Part("direction IPR at t_fit, all circles / random", _waves, at_least(1.5), times),
    on="circles", forecast="2: memory is made of the waves that the rule is made of", whose="ours")  # fmt: skip
section.claim("eight", "beyond Sec. 7",
    "Even on eight circles, a training set is understood sooner than a random one of its size.",
    Part("median t_0.9, a random 30 % / on eight circles", lambda eight, spread: 1 / _to_random(eight, spread),
         at_least(2), times),
    forecast="3, as at p = 59, where eight were the best of five numbers", whose="ours")  # fmt: skip
section.claim("shown", "beyond Sec. 7",
    "A network makes its embeddings of the waves that its training set shows.",
    Part("share of the embeddings' power at the eight waves shown, of 48, at the end",
        lambda eight: last(eight, "shown_power"), at_least(0.5), percent, every=True),
    forecast="90 %, by luck 17 % (a pilot at p = 59, two networks: 86 % and more)", whose="ours")  # fmt: skip
section.claim("fifth", "beyond Sec. 7",
    "Even on eight circles, a fifth of the table is enough, of which random pairs teach next to nothing.",
    Part("median test accuracy at the end from a fifth of the table",
        lambda fewer: median(last(of_way(fewer, "circles", 0.2), "test_accuracy")), at_least(0.9), percent),
    forecast="holds; at p = 59 random pairs needed a third more", whose="ours")  # fmt: skip
