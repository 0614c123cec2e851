"""What the earlier version ends with: the positional table, the spread of seeds, the shape of two vocabularies."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
import xarray as xr

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.gu import Settings, theory
from grokbook.chapters.gu.arms import Factor, factor
from grokbook.chapters.gu.reading import reached, still_rising, told
from grokbook.chapters.gu.training import TRACKED, condition, every
from grokbook.claims import Part, above, at_least, at_most, between, exactly
from grokbook.curves import last
from grokbook.measures.common import Array
from grokbook.settings import Seeds, Steps, Width, Widths, whole
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.records import select
from grokbook.words import times

section = Section("embeddings")
OWN = "own split"  # the runs whose training sets differ as their seeds do


@section.experiment(
    smaller=[{"p": 31, "widths": (64, 128, 256), "train_fraction": 0.8, "seeds": 3, "steps": (6_000, 4_000, 3_000)}],
    quick={"p": 31, "widths": (16, 32, 64), "seeds": 1, "steps": (40, 38, 35)},
)
def positions(
    s: Settings, *, widths: Widths = (128, 256, 512), seeds: Seeds = 5, steps: Widths = (40_000, 30_000, 15_000)
) -> Experiment:
    """Earlier Figs 19 to 21: with and without a positional table, operands that share no token."""
    conditions = (
        condition(label, s.p, s.train_fraction, d, count, offset=s.p, positions=label == "with")
        for d, count in zip(widths, steps, strict=True)
        for label in ("with", "without")
    )
    runs = every(seeds, conditions)
    return Experiment("gu/positions", runs, Schedule(log=60, every=50), TRACKED, stop=Stop(evaluations=20))


@section.experiment(
    smaller=[{"width": 64, "train_fraction": 0.5, "seeds": 4, "steps": 2_500}],
    quick={"p": 31, "width": 32, "seeds": 1, "fixed": 1, "steps": 40},
)
def seeds_apart(
    s: Settings, *, p: Annotated[int, whole(3)] = 47, width: Width = 128, seeds: Seeds = 8, fixed: Seeds = 4,
    steps: Steps = 30_000,
) -> Experiment:  # fmt: skip
    """Earlier Fig. 22: how far seeds lie apart, and how far if all have one training set."""
    _, task, model, _ = condition(OWN, p, s.train_fraction, width, steps)
    one_split = dataclasses.replace(task, split_seed=0)
    runs = every(seeds, [(OWN, task, model, steps)]) + every(fixed, [("one split", one_split, model, steps)])
    return Experiment("gu/seeds_apart", runs, Schedule(log=60, every=25), TRACKED)


@section.experiment(smaller=[{"p": 47, "train_fraction": 0.7, "steps": 10_000}], quick={"steps": 40})
def diameters(s: Settings, *, steps: Steps = 40_000) -> Experiment:
    """Earlier appendix F: the embeddings of two vocabularies that share nothing."""
    return Experiment(
        "gu/diameters",
        every(1, [condition(f"k = {s.p}", s.p, s.train_fraction, s.d_model, steps, offset=s.p)]),
        Schedule(log=60, every=50),
        TRACKED,
        stop=Stop(threshold=0.999, evaluations=20),
        snapshots=(0, -1),
        keep=("W_E",),
    )


def halves(record: xr.Dataset, place: int, *labels: str) -> Array:
    """t_0.5 at one of the record's widths, of the runs with the table, without it, or of both."""
    runs = select(record, d_model=np.unique(record.d_model.values)[place])
    return reached(runs, 0.5)[np.isin(runs.label.values, labels)]


def slower(record: xr.Dataset, place: int) -> Factor:
    """The factor by which the table delays t_0.5 at one of the record's widths."""
    return factor(halves(record, place, "with"), halves(record, place, "without"))


def spread(values: Array) -> float:
    """Largest over smallest; infinity if some run never gets there."""
    return float(values.max() / values.min()) if np.isfinite(values).all() else float("inf")


AS_SPREAD = told("infinite, as some networks do not get there", "{:.3g}".format)


def vocabularies(record: xr.Dataset) -> xr.Dataset:
    """Sizes of the two operands' embeddings, (snapshot,), of the first run.

    ``A``, ``B`` and ``union`` are diameters; ``between`` the least distance of the two sets; ``neighbours`` the mean
    distance of consecutive residues (MED); ``relative``, that over the mean diameter.
    """
    p, offset = int(record.p.values[0]), int(record.offset.values[0])
    a, b = measures.embedding_blocks(record.W_E.values[0], p, offset)  # (snapshot, p, d)
    apart = [np.linalg.norm(x[:, :, None] - y[:, None], axis=-1) for x, y in ((a, a), (b, b), (a, b))]
    A, B, across = (one.max((1, 2)) for one in apart)
    med = theory.MED_FORMS["M1"](a, b)
    found = {"A": A, "B": B, "union": np.max([A, B, across], axis=0), "between": apart[2].min((1, 2)),
             "neighbours": med, "relative": 2 * med / (A + B)}  # fmt: skip
    return xr.Dataset({name: ("snapshot", values) for name, values in found.items()})


def ends(record: xr.Dataset, name: str) -> float:
    """One of these at the last snapshot."""
    return float(vocabularies(record)[name][-1])


section.claim("pos19", "Earlier Fig. 19", "At d = 128 a positional table makes grokking much slower.",
    Part("median t_0.5 with the table / without, smallest width", lambda r: slower(r, 0).middle, at_least(1.5), times),
    Part("lower end of its 90 % interval over seeds", lambda r: slower(r, 0).low, above(1), times),
    on="positions")  # fmt: skip

section.claim("pos20", "Earlier Fig. 20", "At d = 256 the order is a matter of luck.",
    Part("t_0.5 with the table / without, second width, lower end of its 90 % interval", lambda r: slower(r, 1).low,
         at_least(1 / 1.5), times),
    Part("t_0.5 with the table / without, second width, upper end", lambda r: slower(r, 1).high, at_most(1.5), times),
    on="positions", paper="fastest without, then with, then without")  # fmt: skip

section.claim("pos21", "Earlier Fig. 21", "At d = 512 the erratic speeds vanish.",
    Part("largest / smallest t_0.5 of all runs, third width", lambda r: spread(halves(r, 2, "with", "without")),
         at_most(2), AS_SPREAD),
    on="positions")  # fmt: skip

APART = (
    Part("range of final accuracy", lambda r: np.ptp(last(select(r, label=OWN), "test_accuracy")), at_least(0.2)),
    Part("largest / smallest t_0.5", lambda r: spread(reached(select(r, label=OWN), 0.5)), at_least(1.5), AS_SPREAD),
)
section.claim("seed22", "Earlier Fig. 22", "At p = 47 seeds differ in speed and in final accuracy.",
    *APART,
    Part("networks that still rise in the last fifth", lambda r: still_rising(select(r, label=OWN)).sum(), exactly(0)),
    on="seeds_apart", earlier=APART)  # fmt: skip

NEVER = "the network does not reach 0.9", lambda r: not np.isfinite(reached(r, 0.9)).all()
section.claim("diam", "Earlier App. F",
    "Two vocabularies that share nothing lie far apart, and neighbours half a diameter from each other: no circle.",
    Part("union / (d(A) + d(B))", lambda r: ends(r, "union") / (ends(r, "A") + ends(r, "B")), at_least(2), open=NEVER),
    Part("neighbours / diameter", lambda r: ends(r, "relative"), between(0.4, 0.6), open=NEVER),
    on="diameters", paper="d(A, B) much larger than d(A) + d(B)")  # fmt: skip
