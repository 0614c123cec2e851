"""Beyond the paper: larger tables, and embeddings with more dimensions than they need."""

from __future__ import annotations

from itertools import product
from typing import Annotated

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.liu import Settings
from grokbook.chapters.liu.training import STRUCTURED, solvable_seeds, toy_run, two_groups
from grokbook.claims import Part, at_least, at_most
from grokbook.curves import median, smallest, spearman, sweep
from grokbook.measures.common import Array
from grokbook.settings import Steps, several, whole
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Schedule, Watch
from grokbook.train.records import select
from grokbook.words import percent

section = Section("beyond")
Moduli = Annotated[tuple[int, ...], several(whole(4, 50))]  # fewer symbols imply no parallelogram


@section.experiment(quick={"moduli": (5,), "steps": 100})
def critical_sizes(s: Settings, *, moduli: Moduli = (5, 10, 15, 20, 30), steps: Steps = 10_000) -> Experiment:
    """How much of the table a network needs before it finds the line, against the number of symbols."""
    shares = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    runs = [
        toy_run(AdditionTask(p, training_size), two_groups(embedding=1e-2), steps, seed, f"p = {p}")
        for p, n in ((p, p * (p + 1) // 2) for p in moduli)
        for training_size in (min(max(round(share * n), 1), n - 1) for share in shares)
        for seed in range(5)
    ]
    watch = Watch((("rqi", STRUCTURED),), every=20)
    return Experiment("liu/critical_sizes", tuple(runs), Schedule(log=20), ("rqi",), snapshots=(-1,), watch=watch)


@section.experiment(quick={"steps": 60})
def dimensions(s: Settings, *, steps: Steps = 20_000) -> Experiment:
    """Appendix D's caveat: in more dimensions a decoder may ignore some, and the index counts them all."""
    task, chosen = AdditionTask(s.p, s.train_size), solvable_seeds(s.p, s.train_size, 5)
    runs = [
        toy_run(task, two_groups(decay=decay), steps, seed, f"decay {decay:g}", dimension=d)
        for decay, d, seed in product((0.0, 5.0), (1, 2, 3, 4, 8), chosen)
    ]
    return Experiment("liu/dimensions", tuple(runs), Schedule(log=30), ("rqi",), snapshots=(-1,), keep=("rqi",))


def smallest_share(record: xr.Dataset) -> dict[int, Array]:
    """p -> for each seed the smallest share of the table from which on every larger one reached the line."""
    found = {}
    for p in np.unique(record.p.values).tolist():
        sizes, steps = sweep(select(record, p=p), "train_size", lambda one: one.reached_rqi.values)
        found[p] = np.array([smallest(sizes, row[None]) for row in steps]) / (p * (p + 1) / 2)
    return found


def falls_by_chance(record: xr.Dataset) -> float:
    """How often shares exchanged among the tables fall as steeply with p, by rank: of 2,000 shuffles."""
    found, generator = smallest_share(record), np.random.default_rng(0)
    p, shares = np.repeat(list(found), [len(one) for one in found.values()]), np.concatenate(list(found.values()))
    falls = spearman(p, shares)
    return float(np.mean([spearman(p, generator.permutation(shares)) <= falls for _ in range(2_000)]))


def _above_theory(record: xr.Dataset, study: xr.Dataset) -> float:
    found = smallest_share(record)
    predicted = np.exp(np.interp(np.log([*found]), np.log(study.p), np.log(study.fraction)))
    return float(min(median(own) - one for own, one in zip(found.values(), predicted, strict=True)))


section.claim(
    "critical-trained",
    "beyond Fig. 4b",
    "Networks need a smaller share of larger tables, nowhere much less than the theory's.",
    Part("smallest shares exchanged among the tables that fall with p as steeply, by rank", falls_by_chance,
        at_most(0.05), percent, on=("critical_sizes",)),
    Part("least difference to the theory's share", _above_theory, at_least(-0.05), on=("critical_sizes", "transition")),
    forecast="the theory's share falls",
    whose="ours",
)  # fmt: skip
