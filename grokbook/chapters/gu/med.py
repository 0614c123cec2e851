"""Fig. 5: does MED follow the test loss, and does it do so better than what knows nothing of order?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings, reading
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import TRACKED, WindowedSchedule, every
from grokbook.claims import Part, above, at_least, between
from grokbook.curves import median
from grokbook.measures.common import Array
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Steps, several, whole
from grokbook.train.experiment import Experiment
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("med")
Moduli = Annotated[tuple[int, ...], several(whole(3))]
Lengths = Annotated[tuple[int, ...], several(whole(1))]


@section.experiment(smaller=[{"seeds": 1}], quick={"moduli": (31,), "steps": (40,)})
def primes(s: Settings, *, moduli: Moduli = (47, 211), steps: Lengths = (30_000, 6_000)) -> Experiment:
    """Fig. 5: loss, MED and accuracy for other primes than 97."""
    conditions = [
        (f"p = {p}", HoledTask(p, "n + m", s.train_fraction), PairTransformer(p, s.d_model), count)
        for p, count in zip(moduli, steps, strict=True)
    ]
    return Experiment("gu/primes", every(s.seeds, conditions), WindowedSchedule(log=60, every=10), TRACKED)


@section.experiment(smaller=[{"seeds": 1}], quick={"largest": 53, "steps": 40})
def largest_prime(s: Settings, *, largest: Annotated[int, whole(3)] = 379, steps: Steps = 4_000) -> Experiment:
    """Fig. 5: the largest prime, which costs more than all others."""
    return dataclasses.replace(primes(s, moduli=(largest,), steps=(steps,)), name="gu/largest_prime")


RECIPE = ("f", "p", "train_fraction", "hole", "size", "split", "d_model", "layers", "offset", "start", "positions")


def distinct(records: Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """Of each record the runs with p >= 47 that stand in none before it."""
    seen: set[tuple[object, ...]] = set()
    for record in records:
        split = record.split_seed.fillna(record.seed) if "split_seed" in record.coords else record.seed
        columns, new = (*(record[name] for name in RECIPE), record.seed, split), []
        for run, recipe in enumerate(zip(*(column.values.tolist() for column in columns), strict=True)):
            if record.p.values[run] >= 47 and recipe not in seen:
                new.append(run)
            seen.add(recipe)
        yield record.isel(run=new)


@section.study
def rivals(base, primes, largest_prime, seeds_apart, width_shared, holes, holes_by_text, fractions, operations, overlap,
           diameters, toeplitz):  # fmt: skip
    """What follows the test loss after t_fit, over the distinct one-layer transformers of this chapter with p >= 47.

    ``correlation`` (quantity, network) for MED, its controls and the steps left; along network ``family``, ``grokked``,
    ``p``. One of two records is taken once, from the first; those that do not memorise in time are left out.
    ``ValueError`` where none remains.
    """
    names = [reading.MED, *reading.CONTROLS, "steps_left"]
    families = {"addition": (base, primes, largest_prime, seeds_apart, width_shared), "a hole": (holes, holes_by_text),
                "other operations": (fractions, operations), "other vocabularies": (overlap, diameters),
                "other starts": (toeplitz,)}  # fmt: skip
    family_of = [family for family, records in families.items() for _ in records]
    each, found = distinct(record for records in families.values() for record in records), []
    for family, record in zip(family_of, each, strict=True):
        left = record.assign(steps_left=-record.step.broadcast_like(record.test_loss).transpose("run", "step"))
        families_of = np.full(record.sizes["run"], family)
        along = {"family": families_of, "grokked": reading.grokked(record), "p": record.p.values}
        found.append(
            xr.Dataset(
                {"correlation": (("quantity", "network"), [reading.correlation(left, name) for name in names])},
                {"quantity": names, **{name: ("network", values) for name, values in along.items()}},
            )
        )
    study = xr.concat(found, "network").dropna("network")
    if not study.sizes["network"]:
        raise ValueError("none of these networks has p >= 47 and memorises in time")
    return study


def below_start(record: xr.Dataset) -> Array:
    """(run,) the first step after t_fit at which MED is below its start, over t_0.5 outside a hole, if there is one.

    Infinity if never.
    """
    med = record[reading.MED].values
    low = reading.after_fit(record) & (med < med[:, :1])
    return np.where(low, record.step.values, np.inf).min(1) / reading.reached_outside(record, 0.5)


SUMS = ("base", "primes", "width_shared", "seeds_apart")  # additions that are trained on after they have generalised


def stop_together(records: Iterable[xr.Dataset], quantity: str = reading.MED) -> NDArray[np.bool_]:
    """(network,) whether 95 % of a quantity's fall, and of the rise of test accuracy, are over within a factor of 1.5.

    Both smoothed over 100 steps; of the distinct networks with p >= 47 that reach 0.9.
    """
    found = []
    for record in distinct(records):
        curves = zip(reading.known(record, quantity), reading.known(record, "test_accuracy"), strict=True)
        for (values, steps), (right, _) in curves:
            fall, rise = reading.smooth(values, steps), reading.smooth(right, steps)
            if right.max() >= 0.9:
                top = fall.argmax()
                over = fall <= fall[top:].min() + 0.05 * (fall[top] - fall[top:].min())
                ends = top + over[top:].argmax(), (rise >= rise[0] + 0.95 * (rise.max() - rise[0])).argmax()
                found.append(steps[ends[0]] / steps[ends[1]])
    return (np.array(found) > 1 / 1.5) & (np.array(found) < 1.5)


RECORDS = {47: "primes", 97: "base", 211: "primes", 379: "largest_prime"}


def per_prime(quantity: str, values, bound, **more) -> tuple[Part, ...]:
    """A part a prime, (run,), over its runs that grok; none at p = 379, where there is no delay, see fig5-sooner."""

    def measure(record: xr.Dataset, p: int) -> ArrayLike:
        runs = select(record, p=p)
        return np.where(reading.grokked(runs), values(runs), np.nan) if runs.sizes["run"] else np.nan

    return tuple(
        Part(f"p = {p}: {quantity}", partial(measure, p=p), bound, on=(RECORDS[p],), **more) for p in (47, 97, 211)
    )


def over_primes(values):
    """The median over the four primes of the median over seeds, whether they grok or not."""
    return lambda base, primes, largest_prime: median(
        [median(values(select(record, p=p))) for record in (base, primes, largest_prime) for p in np.unique(record.p)]
    )


def t_most(record: xr.Dataset, p: int) -> float:
    """The median t_0.9 of one prime; nan without any run."""
    return float(median(reading.reached(select(record, p=p), 0.9)))


section.claim(
    "fig5-follows", "Fig. 5", "MED and the test loss change together, at every prime that groks.",
    *per_prime("rank correlation of MED with the test loss", reading.correlation, at_least(0.8)),
    paper="consistent trends for all four primes", forecast="no: −.43 and .74 in two earlier runs at p = 97",
)  # fmt: skip
section.claim(
    "fig5-increments",
    "Fig. 5, earlier Fig. 4",
    "Increments of MED and of the test loss have the same sign, at every prime that groks.",
    *per_prime("same sign over 100 steps, smoothed", reading.agreement, at_least(0.75), show=percent),
    *per_prime("same sign over single steps", reading.raw_agreement, at_least(0.6), show=percent),
    paper="the same sign",
    earlier=(
        Part("same sign over 100 steps, smoothed, median over primes", over_primes(reading.agreement), at_least(0.75)),
        Part("same sign over single steps, median over primes", over_primes(reading.raw_agreement), at_least(0.6)),
    ),
)  # fmt: skip
section.claim(
    "fig5-below", "Earlier Fig. 4", "Grokking comes when MED falls below its starting value.",
    *per_prime("first step after t_fit with MED below its start / t_0.5", below_start, between(1 / 1.5, 1.5)),
    paper="at that time", forecast="never at p = 97 in two earlier runs",
)  # fmt: skip
section.claim(
    "med-stops", "Earlier Sec. 5.1", "When MED stops falling, test accuracy stops rising.",
    Part("networks whose fall and rise are over within a factor of 1.5, to 95 %",
         lambda *records: stop_together(records).mean(), at_least(0.9), percent),
    on=SUMS,
)  # fmt: skip
section.claim(
    "fig5-special",
    "beyond Fig. 5",
    "MED says more than that weights shrink: it follows the test loss better than each of three controls.",
    *per_prime("lead of MED over the best control", reading.lead, at_least(0.05)),
    forecast="no: the norm of all weights did better in every earlier run", whose="ours",
)  # fmt: skip
section.claim(
    "fig5-sooner", "Fig. 5, earlier Fig. 4", "Larger primes grok sooner.",
    *(
        Part(f"t_0.9 at p = {a} / at p = {b}", lambda larger, smaller, a=a, b=b: t_most(smaller, a) / t_most(larger, b),
            above(1), times, on=(RECORDS[b], RECORDS[a]))
        for a, b in pairwise(RECORDS)
    ),
    *(
        Part(f"p = {p}: t_0.9 / t_fit",
            lambda record, p=p: t_most(record, p) / median(reading.t_fit(select(record, p=p))), at_least(5), times,
            on=(on,))
        for p, on in RECORDS.items()
    ),
    paper="from above 10,000 steps at p = 47 to one or two thousand at p = 397 (379 in the later version)",
)  # fmt: skip
