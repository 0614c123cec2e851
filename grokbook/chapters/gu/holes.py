"""Table 1 and Fig. 3: training sets with a hole, and what a network can answer where it saw nothing."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings, theory
from grokbook.chapters.gu.reading import even, known, mask_of, running_median, settled, still_rising, t_fit
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import TRACKED, every, scaled
from grokbook.claims import Part, at_least, at_most, below
from grokbook.curves import median, spearman
from grokbook.measures.common import Array
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Steps, choice
from grokbook.tasks import modular_function
from grokbook.train.experiment import Experiment, Schedule
from grokbook.words import percent

section = Section("holes")
SCRIPTS = 30_000  # steps that the released scripts train for; that of the squares says 300, fewer than Table 1 needs
Split = Annotated[str, choice(*theory.SPLITS)]


@section.experiment(smaller=[{"seeds": 1}], quick={"steps": 40})
def holes(s: Settings, *, split: Split = "code", steps: Steps = 10_000) -> Experiment:
    """Table 1: training sets that leave out a square or a strip, drawn as the released scripts do."""
    model = PairTransformer(s.p, s.d_model)
    conditions = (
        (f"{kind} {size}", HoledTask(s.p, "n + m", s.train_fraction, kind, size, split), model, steps)
        for kind, sizes in (("square", s.squares), ("strip", s.strips))
        for size in scaled(sizes, s.p)
    )
    return Experiment(
        "gu/holes",
        every(s.seeds, conditions),
        Schedule(log=60, every=20),
        (*TRACKED, "accuracy_by_place"),
        snapshots=(-1,),
        keep=("correct",),
    )


@section.experiment(smaller=[{"seeds": 1}], quick={"steps": 40})
def holes_by_text(s: Settings, *, steps: Steps = 10_000) -> Experiment:
    """Table 1 again with the split that the text describes: the fraction of what the hole leaves."""
    return dataclasses.replace(holes(s, split="text", steps=steps), name="gu/holes_by_text")


@section.experiment(smaller=[{"seeds": 1}], quick={"steps": 40})
def squares_longer(s: Settings, *, steps: Steps = SCRIPTS) -> Experiment:
    """The squares of Table 1 for as long as the released script of the strips trains; for ceilings alone."""
    shorter = holes(s, steps=steps)
    return dataclasses.replace(
        shorter,
        name="gu/squares_longer",
        runs=tuple(run for run in shorter.runs if run.task.hole == "square"),
        schedule=Schedule(log=60, every=50),
        measures=("accuracy_by_place",),
        snapshots=(),
        keep=(),
    )


def reach(p: int) -> int:
    """The distance with which theorem 3.10 fits the square rows of Table 1 best on the torus: 12, at p = 97."""
    return 2 * round(6 * p / 97)


def hole_of(record: xr.Dataset, run: int) -> NDArray[np.bool_]:
    """The pairs that a run never trains on by design, (p, p)."""
    return theory.hole(str(record.hole.values[run]), int(record.p.values[run]), int(record["size"].values[run]))


def names(p: int) -> int:
    """What the number 1 is called where distances are told under other names: 10, or the next with an inverse mod p."""
    return next(one for one in itertools.count(10) if math.gcd(one, p) == 1)


def answers(record: xr.Dataset, run: int) -> NDArray[np.int64]:
    """The table that a run learns, (p, p)."""
    return modular_function(str(record.f.values[run]), int(record.p.values[run]))


def distances(record: xr.Dataset, run: int, times: int = 1) -> Array:
    """(p, p) how far the pairs of a run's hole are from a training pair of their class; nan elsewhere.

    Counted between the names ``times`` i, see ``theory.renamed``, and told under the old ones. A pair whose mirror was
    trained counts as trained: theorem 3.10 adds two embeddings, and so cannot tell them apart.
    """
    known = mask_of(record, run)
    known |= known.T
    apart = theory.same_class_distance(theory.renamed(known, times), answers(record, run))
    return np.where(hole_of(record, run) & ~known, theory.renamed(apart, pow(times, -1, len(known))), np.nan)


def covered(record: xr.Dataset, run: int, times: int = 1) -> float:
    """The share of a run's test pairs with a training pair of their class within ``reach``, between such names."""
    mask = theory.renamed(mask_of(record, run), times)
    return float(theory.same_class_coverage(mask, answers(record, run), reach(len(mask))))


def mirrored(record: xr.Dataset, run: int) -> float:
    """The share of a run's test pairs that are outside of its hole, or whose mirror was trained."""
    mask = mask_of(record, run)
    return float((mask.T | ~hole_of(record, run))[~mask].mean())


def summit(values: Array, steps: Array, fit: float) -> tuple[float, float, float, float]:
    """Of a curve of test accuracy, (step,), on its running median over 500 steps: highest, U, L and onset.

    ``highest`` is over the whole run, ``U`` after t_fit, ``L`` the least after that, and ``onset`` when the curve first
    is above U / 2; nan where a network never memorises, or, for ``L``, where the run ends at its highest.
    """
    level, late = running_median(values, steps), steps >= fit
    if late.sum() < 2:
        return level.max(), np.nan, np.nan, np.nan
    after = running_median(values[late], steps[late])
    top = after.argmax()
    least = after[top:].min() if top + 1 < len(after) else np.nan
    return level.max(), after[top], least, steps[np.argmax(level > after[top] / 2)]


PLACES = ("inside", "outside", "inside_mirrored", "inside_unmirrored")


def table(record: xr.Dataset) -> xr.Dataset:
    """Table 1 from a record of holes, (row, seed).

    ``highest``, ``U``, ``L``, ``onset`` (see ``summit``); accuracy by place over the last 500 steps; ``coverage`` and
    ``mirror``, what two explanations expect of U; ``rising``, whether the run still rises at its end. Along row:
    ``kind``, ``size`` and the paper's U.
    """
    p, runs = int(record.p.values[0]), range(record.sizes["run"])
    curves = zip(known(record, "test_accuracy"), t_fit(even(record)), strict=True)
    tops = zip(*(summit(*curve, fit) for curve, fit in curves), strict=True)
    found = dict(zip(("highest", "U", "L", "onset"), tops, strict=True)) | {
        "coverage": [covered(record, run) for run in runs],
        "mirror": [mirrored(record, run) for run in runs],
        "rising": still_rising(record).astype(float),
        **{place: settled(record, f"accuracy_{place}") for place in PLACES},
    }
    along = {"row": ("run", record.label.values), "seed": ("run", record.seed.values)}
    study = xr.Dataset({name: ("run", np.array(values)) for name, values in found.items()}, along)
    study = study.set_index(run=["row", "seed"]).unstack("run")
    labels = study.row.values.tolist()
    kinds, sizes = [label.split()[0] for label in labels], [int(label.split()[1]) for label in labels]
    printed = {f"{row.kind} {round(row.size * p / 97)}": row.highest for row in theory.TABLE_1}
    paper = [printed.get(label, np.nan) for label in labels]
    study = study.assign_coords(kind=("row", kinds), size=("row", sizes), paper_U=("row", paper))
    return study.assign_attrs(p=p, steps=int(record.step.values[-1]))


@section.study
def table_1(holes):
    """Table 1 with the split of the released scripts."""
    return table(holes)


@section.study
def squares(squares_longer):
    """The squares of Table 1 with that split, trained for longer."""
    return table(squares_longer)


@section.study
def table_1_by_text(holes_by_text):
    """Table 1 with the split that the text describes."""
    return table(holes_by_text)


def rows(study: xr.Dataset, kind: str) -> xr.Dataset:
    """The rows of one kind of hole, by size."""
    return study.isel(row=np.flatnonzero(study.kind.values == kind)).sortby("size")


def ceiling(study: xr.Dataset) -> Array:
    """(row,) the median U; nan in rows without any."""
    return median(study.U.values, axis=1)


def order(study: xr.Dataset, kind: str) -> float:
    """Spearman(size, U) over the rows of one kind that have a U."""
    of_kind = rows(study, kind)
    of_kind = of_kind.isel(row=np.isfinite(ceiling(of_kind)))
    return spearman(of_kind["size"].values, ceiling(of_kind))


def large_squares(study: xr.Dataset, place: str) -> Array:
    """(row,) the median accuracy at a place of squares of k >= 40 (of 97) that have a U; nan where none has."""
    squares = rows(study, "square")
    chosen = (squares["size"].values >= round(40 * study.attrs["p"] / 97)) & np.isfinite(ceiling(squares))
    return median(squares[place].values[chosen], axis=1) if chosen.any() else np.full(1, np.nan)


def gains(record: xr.Dataset, after: int) -> Array:
    """(row,) by how much the median U rises after a step."""
    return ceiling(table(record)) - ceiling(table(record.isel(step=record.step.values <= after)))


def error(study: xr.Dataset, rule: str, kind: str, of: str = "U") -> float:
    """Root mean square distance of an explanation, ``coverage`` or ``mirror``, over one kind of hole.

    From our U, or from the paper's with ``of="paper_U"``.
    """
    chosen = rows(study, kind)
    found = ceiling(chosen) if of == "U" else chosen[of].values
    return float(np.sqrt(np.nanmean(np.square(median(chosen[rule].values, axis=1) - found))))


def refitted(record: xr.Dataset, study: xr.Dataset, kind: str) -> float:
    """The same for coverage within the one distance that comes nearest to our U; nan where there is none."""
    chosen, D, apart = rows(study, kind), np.arange(2, study.attrs["p"] + 1, 2), []
    for row, top in zip(chosen.row.values, ceiling(chosen), strict=True):
        runs = np.flatnonzero(record.label.values == row).tolist()
        near = [theory.same_class_coverage(mask_of(record, run), answers(record, run), D) for run in runs]
        apart.append(median(near, axis=0) - top)
    return float(np.sqrt(np.nanmean(np.square(apart), axis=0)).min())


def close(study: xr.Dataset) -> int:
    """How many rows have a U within 8 points of the paper's."""
    return int((np.abs(ceiling(study) - study.paper_U.values) <= 0.08).sum())


def unsettled(study: xr.Dataset) -> bool:
    """Whether fewer than half of the rows have a median accuracy of 0.9 outside the hole."""
    return bool(np.mean(median(study["outside"].values, axis=1) >= 0.9) < 0.5)


def too_short(study: xr.Dataset) -> bool:
    """Whether runs end before those of the scripts, and eight rows are close or lie below, as U can only rise."""
    return study.attrs["steps"] < SCRIPTS and int((ceiling(study) <= study.paper_U.values + 0.08).sum()) >= 8


CLOSE = Part("rows of 11 within 8 points of the paper", close, at_least(8))
section.claim(
    "table1-order", "Table 1", "The larger the hole, the lower the ceiling of test accuracy.",
    Part("Spearman(size, U), squares", lambda study: order(study, "square"), at_most(-0.9)),
    Part("Spearman(size, U), strips", lambda study: order(study, "strip"), at_most(-0.9)),
    on="table_1", paper="−1 and −1",
)  # fmt: skip
section.claim(
    "table1-values", "Table 1",
    "The values of U-Acc, from 99 % down to 57 % for squares and from 90 % down to 8 % for strips.",
    dataclasses.replace(CLOSE, open=("at least 8 are so close or below, and end before the scripts do", too_short)),
    on="table_1", forecast="one distance for all rows misses by 15 points, so some rows will differ",
)  # fmt: skip
section.claim(
    "table1-squares", "Table 1", "Trained for 30,000 steps, networks with squares left out have the printed U-Acc.",
    Part("rows of 7 within 8 points of the paper", close, at_least(6)),
    on="squares", whose="ours", forecast="what is inside is learnt slowly, so 5 rows, where after 10,000 steps it is 4",
)  # fmt: skip
section.claim(
    "table1-places", "beside Table 1", "What large squares lose is lost in the hole.",
    Part("accuracy outside, least of the squares of k ≥ 40",
         lambda study: large_squares(study, "outside").min(), at_least(0.97), percent),
    Part("accuracy inside, highest of them",
         lambda study: large_squares(study, "inside").max(), at_most(0.6), percent),
    on="table_1", whose="ours",
)  # fmt: skip
section.claim(
    "table1-67", "Table 1", "With the widest strip, t = 67, test accuracy stays near the paper's 7.56 %.",
    Part("highest accuracy at t = 67, over the whole run",
         lambda study: rows(study, "strip").highest.values[-1], below(0.15), percent),
    on="table_1", paper="no grokking, U-Acc 7.56 %; three times our steps in the released scripts",
    note="None groks here. Missed by a hair; the first criterion, on U after t_fit, held",
)  # fmt: skip
section.claim(
    "table1-text-values", "Table 1",
    "Drawn as the text says, 30 % of what the hole leaves, Table 1 has the printed values.",
    dataclasses.replace(CLOSE, open=("fewer than half of the rows are right outside the hole, to 90 %", unsettled)),
    on="table_1_by_text",
    forecast="not: at t = 67 the text's split would need a negative accuracy in the hole",
)  # fmt: skip
