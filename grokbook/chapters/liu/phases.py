"""Fig. 6: the four phases, on the published splits cell by cell and on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.liu import Settings
from grokbook.chapters.liu.maps import (
    GRID,
    Array,
    Diagram,
    contacts,
    diagram,
    outlying,
    same_phase,
    same_times,
    steps_up,
)
from grokbook.chapters.liu.theory.phases import (
    COMPREHENSION,
    CONFUSION,
    GROKKING,
    MEMORISATION,
    PHASES,
)
from grokbook.chapters.liu.training import BOTH_REACHED, every, solvable_seeds, toy_run, two_groups
from grokbook.claims import Bound, Part, above, at_least, at_most, exactly, near
from grokbook.models.toy import ProductDecoder
from grokbook.settings import whole
from grokbook.tasks import AdditionTask, GroupTask
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.words import number, percent

section = Section("phases")

PUBLISHED_SEED = {"regression": 58, "classification": 6, "group": 0}
RATES_A = tuple(float(10**e) for e in np.linspace(-5, -2, 13))
RATES = tuple(float(10**e) for e in np.linspace(-5, -2, 16))
DECAYS = {
    "regression": tuple(map(float, range(11))),
    "classification": tuple(map(float, range(0, 21, 2))),
    "group": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0),
}
# The published cross-entropy is averaged over the classes too. Dividing a loss by 19 changes nothing under Adam but
# the size of eps.
CLASS_MEAN_EPS = 1e-8
#: experiment -> (panel, what is on the y axis)
PANELS = {
    "phases_rates": ("rates", "W_E_lr"),
    "phases_regression": ("regression", "weight_decay"),
    "phases_classification": ("classification", "weight_decay"),
    "phases_group": ("group", "weight_decay"),
}
COARSE: list[dict[str, Any]] = [{"coarseness": 2}, {"steps": 10_000, "coarseness": 2}]
Samples = Annotated[int, whole(1, 35)]


def phase_map(name: str, runs: Sequence[Run]) -> Experiment:
    """A phase diagram: cells and seeds side by side; a run leaves when both accuracies have been reached."""
    return Experiment(f"liu/{name}", tuple(runs), Schedule(log=40), snapshots=(-1,), keep=("W_E",), watch=BOTH_REACHED)


def eps_of(task: AdditionTask) -> float:
    """Adam's eps that stands for the published loss of a task."""
    return 1e-8 if task.target_size else CLASS_MEAN_EPS * task.labels


def _rate_runs(s: Settings, task: AdditionTask, seeds: Sequence[int], **model: Any) -> list[Run]:
    """Embedding rate against decoder rate."""
    rates = every(RATES_A, s.coarseness)
    return [
        toy_run(task, two_groups(decoder, 0.0, embedding, eps=eps_of(task)), s.steps, seed, **model)
        for embedding in rates
        for decoder in rates
        for seed in seeds
    ]


def _decay_runs(s: Settings, kind: str, *, splits: bool = False) -> list[Run]:
    """Decoder rate against decoder decay, on the published split or on several."""
    target_size = 30 if kind == "regression" else 0
    task = AdditionTask(s.p, s.train_size, target_size, recipe="trainer" if splits else "diagram")
    chosen = solvable_seeds(s.p, s.train_size, s.split_seeds, target_size) if splits else (PUBLISHED_SEED[kind],)
    return [
        toy_run(task, two_groups(rate, decay, eps=eps_of(task)), s.steps, seed, **({} if splits else DIAGRAM))
        for decay in every(DECAYS[kind], s.coarseness)
        for rate in every(RATES, s.coarseness)
        for seed in chosen
    ]


DIAGRAM = {"recipe": "diagram"}  # the order of random draws behind the published step counts


def _group_runs(s: Settings, train_size: int, seeds: Sequence[int]) -> list[Run]:
    """As behind the published diagram, whose step counts tell: no shrinkage, and matrices that start ten times larger
    than in the code that was released with it."""
    task = GroupTask("S3", train_size, recipe="diagram")
    model = ProductDecoder(task.labels, init_scale=1.0, shrinkage=0.0, recipe="diagram")
    return [
        Run(task, model, two_groups(rate, decay), s.steps, seed)
        for decay in every(DECAYS["group"], s.coarseness)
        for rate in every(RATES, s.coarseness)
        for seed in seeds
    ]


@section.experiment(smaller=COARSE[1:])
def phases_rates(s: Settings) -> Experiment:
    """Fig. 6 (a): embedding against decoder learning rate, on the published split. Every cell a run."""
    task = AdditionTask(s.p, s.train_size, 30, recipe="diagram")
    return phase_map("phases_rates", _rate_runs(s, task, (PUBLISHED_SEED["regression"],), **DIAGRAM))


@section.experiment(smaller=COARSE[1:])
def phases_regression(s: Settings) -> Experiment:
    """Fig. 6 (b): decoder learning rate against weight decay, on the published split."""
    return phase_map("phases_regression", _decay_runs(s, "regression"))


@section.experiment(smaller=COARSE[1:])
def phases_classification(s: Settings) -> Experiment:
    """Fig. 6 (c): the same for classification."""
    return phase_map("phases_classification", _decay_runs(s, "classification"))


@section.experiment(smaller=COARSE[1:])
def phases_group(s: Settings, *, group_train_size: Samples = 24) -> Experiment:
    """Fig. 6 (d): the same for the permutation group S3, on the published split."""
    return phase_map("phases_group", _group_runs(s, group_train_size, (PUBLISHED_SEED["group"],)))


@section.experiment(smaller=COARSE)
def phases_rates_splits(s: Settings) -> Experiment:
    """Fig. 6 (a) over several splits that determine every held-out answer."""
    task = AdditionTask(s.p, s.train_size)
    return phase_map("phases_rates_splits", _rate_runs(s, task, solvable_seeds(s.p, s.train_size, s.split_seeds)))


@section.experiment(smaller=COARSE)
def phases_regression_splits(s: Settings) -> Experiment:
    """Fig. 6 (b) over several splits that determine every held-out answer."""
    return phase_map("phases_regression_splits", _decay_runs(s, "regression", splits=True))


@section.experiment(smaller=COARSE)
def phases_classification_splits(s: Settings) -> Experiment:
    """Fig. 6 (c) over several splits that determine every held-out answer."""
    return phase_map("phases_classification_splits", _decay_runs(s, "classification", splits=True))


@section.experiment(smaller=COARSE)
def phases_group_splits(s: Settings, *, group_train_size: Samples = 24) -> Experiment:
    """Fig. 6 (d) over several splits: the next seeds, since no algebra chooses."""
    return phase_map("phases_group_splits", _group_runs(s, group_train_size, range(1, 1 + s.split_seeds)))


# --------------------------------------------------------------------------------------- what is read off the diagrams


def panel(record: xr.Dataset, name: str) -> Diagram:
    """One panel of Fig. 6, or of the same over several splits."""
    return diagram(record, PANELS[name.removesuffix("_splits")][1])


def comparable(record: xr.Dataset) -> bool:
    """Whether a diagram is of the table and the number of samples of the published ones."""
    if "p" not in record.coords:
        return bool((record.train_size == 24).all())
    return bool((record.p == 10).all() and (record.train_size == 45).all())


def as_published(record: xr.Dataset, name: str) -> float:
    """Share of cells with the published phase; nan for another table."""
    return float(same_phase(panel(record, name), PANELS[name][0]).mean()) if comparable(record) else np.nan


def on_time(record: xr.Dataset, name: str, *, outliers: bool = True) -> float:
    """Share of the published generalising cells whose two times are ours, with or without those cells that do not fit
    their neighbours (see ``outlying``); nan for another table."""
    found = panel(record, name)
    agree = same_times(found, PANELS[name][0])
    if not outliers:
        agree = np.where(outlying(found, PANELS[name][0]), np.nan, agree)
    return float(np.nanmean(agree)) if comparable(record) else np.nan


def boundary(found: Diagram) -> dict[str, float]:
    """Between what generalises and what does not, in a diagram of the embeddings' rate over the decoder's.

    Returns:
        ``inside``: share of the decoder rates that have a boundary with it at 1 to 20 times their own rate; ``slope``
        of its logarithm; ``below``: cells that generalise at a third of the rate or less; ``confused``: in confusion.
    """
    good = found.generalises
    columns = np.flatnonzero(good.any(0) & ~good.all(0))
    edge = np.array([found.y[good[:, c]].min() for c in columns])
    ratio = edge / found.x[columns]
    return {
        "inside": float(((ratio >= 1 - 1e-9) & (ratio <= 20)).mean()) if len(columns) else np.nan,
        "slope": float(np.polyfit(np.log(found.x[columns]), np.log(edge), 1)[0]) if len(columns) > 1 else np.nan,
        "below": int(good[found.y[:, None] / found.x[None, :] <= 1 / 3].sum()),
        "confused": int((found.phases == CONFUSION).sum()),
    }


def touching(*records: xr.Dataset, axis: int) -> Array:
    """(panel,) how often comprehension and memorisation are neighbours along an axis in (b), (c) and (d)."""
    names = list(PANELS)[1:]
    return np.array([contacts(panel(one, name).phases, axis) for one, name in zip(records, names, strict=True)])


def held_back(record: xr.Dataset, name: str) -> tuple[int, int]:
    """Where two neighbouring decays both let a rate generalise: how often more decay takes longer, and of how many."""
    t = panel(record, name).t_val[..., 0]
    both = np.isfinite(t[1:]) & np.isfinite(t[:-1])
    return int((t[1:] > t[:-1])[both].sum()), int(both.sum())


def phase_name(code: float) -> str:
    """A phase's name from its code."""
    return PHASES[int(code)]


# --------------------------------------------------------------------------------------------------------------- claims


def _part(name: str, words: str, measure: Callable[[Diagram], Any], bound: Bound,
          show: Callable[[float], str] = number) -> Part:  # fmt: skip
    """A part about one diagram."""
    return Part(words, lambda record: measure(panel(record, name)), bound, show, on=(name,))


def _cells(name: str, least: float) -> Part:
    words = f"cells with the published phase, waits known to {GRID} steps"
    return Part(words, lambda record: as_published(record, name), at_least(least), percent, on=(name,))


def _occurring(name: str) -> Part:
    return _part(name, "phases that occur, of four", lambda one: len({*one.phases.ravel()} & set(range(4))), exactly(4))


def _edge(name: str) -> tuple[Part, ...]:
    def part(words: str, key: str, bound: Bound, show: Callable[[float], str] = number) -> Part:
        return _part(name, words, lambda found: boundary(found)[key], bound, show)

    return (
        part("decoder rates with a boundary at 1 to 20 times them", "inside", at_least(0.8), percent),
        part("slope of the boundary, on logarithmic axes", "slope", near(1, 0.25)),
        part("cells that generalise at a third of the decoder's rate or less", "below", exactly(0)),
        part("cells in confusion", "confused", exactly(0)),
    )


section.claim(
    "fig6a",
    "Fig. 6a",
    "Embeddings must learn faster than the decoder: below a constant ratio of the rates nothing generalises.",
    _cells("phases_rates", 0.85),
    *_edge("phases_rates"),
    paper="29 cells of comprehension, 31 of grokking, 109 of memorisation; boundary at 1.8 to 5.6 times",
)

section.claim(
    "fig6a-splits",
    "Fig. 6a",
    "The boundary is the same for other splits.",
    *_edge("phases_rates_splits"),
    whose="ours",
)


def _times(words: str, **how: Any) -> Part:
    measure = partial(on_time, name="phases_regression", **how)
    return Part(words, measure, at_least(0.9), percent, on=("phases_regression",))


section.claim(
    "fig6b",
    "Fig. 6b",
    "Regression has the four phases: cell by cell, those that are published.",
    _cells("phases_regression", 0.9),
    _times("times as published, to 1 % or 10 steps"),
    _times("without decays 2, 5 and 8 at the rate 1e-5", outliers=False),
    paper="17 cells of comprehension, 60 of grokking, 60 of memorisation, 39 of confusion",
)


def _up(other: int) -> Callable[[Diagram], int]:
    return lambda found: steps_up(found.phases, COMPREHENSION, other)


SWEEPS = tuple(PANELS)[1:]
section.claim(
    "fig6b-order",
    "Fig. 6b to d, section 4",
    "Grokking is sandwiched between comprehension and memorisation.",
    _part(SWEEPS[0], "in (b), steps from comprehension to memorisation as decay grows", _up(MEMORISATION),
          exactly(0)),
    _part(SWEEPS[0], "and to grokking", _up(GROKKING), above(0)),
    Part("contacts with memorisation along the decay in (b), (c), (d)", partial(touching, axis=0),
         exactly(0), every=True, on=SWEEPS),
    Part("and along the rate", partial(touching, axis=1), exactly(0), every=True, on=SWEEPS),
)  # fmt: skip


def _slow(found: Diagram) -> float:
    columns = np.broadcast_to(found.x, found.phases.shape)[found.phases == COMPREHENSION]
    return float((columns <= 1.001e-3).mean()) if len(columns) else np.nan


_of_splits = partial(_part, "phases_regression_splits")
section.claim(
    "fig6b-splits",
    "Fig. 6b",
    "The same four phases for other splits.",
    _of_splits("least share of cells in a phase", lambda one: min((one.phases == code).mean() for code in range(4)),
               at_least(0.04), percent),
    _of_splits("highest rate without decay", lambda one: one.phases[0, -1], exactly(MEMORISATION), phase_name),
    _of_splits("highest rate, highest decay", lambda one: one.phases[-1, -1], exactly(CONFUSION), phase_name),
    _of_splits("share of comprehension at rates up to 1e-3", _slow, at_least(0.75), percent),
    _of_splits("steps from comprehension to memorisation, less a fifth of those to grokking",
               lambda one: _up(MEMORISATION)(one) - 0.2 * _up(GROKKING)(one), at_most(1)),
    whose="ours",
)  # fmt: skip


def _apart(found: Diagram) -> float:
    rows = np.broadcast_to(found.y[:, None], found.phases.shape)
    late, clear = (rows[found.phases == code] for code in (GROKKING, COMPREHENSION))
    return float(np.median(late) - np.median(clear)) if len(late) and len(clear) else np.nan


section.claim(
    "fig6c",
    "Fig. 6c",
    "Classification has the same phases, and grokking needs more decay than comprehension.",
    _cells("phases_classification", 0.85),
    _part("phases_classification", "median decay of grokking above that of comprehension", _apart, at_least(4)),
    _occurring("phases_classification"),
    paper="30 cells of comprehension, 85 of grokking, 50 of memorisation, 11 of confusion",
)


def _middle(found: Diagram) -> float:
    inside = ((found.x >= 5e-5) & (found.x <= 2e-4))[None, :] & (found.y <= 30)[:, None]
    return float(found.generalises[inside].mean()) if inside.any() else np.nan


def _least_confused(found: Diagram) -> float:
    return float(found.y[(found.phases == CONFUSION).any(1)].min(initial=np.inf))


_of_groups = partial(_part, "phases_group_splits")
section.claim(
    "fig6d",
    "Fig. 6d",
    "The permutation group S₃ has the four phases too: other splits.",
    _occurring("phases_group_splits"),
    _of_groups("cells that generalise at rates of 5e-5 to 2e-4 and decays up to 30", _middle, at_least(0.6), percent),
    _of_groups("cells that generalise at decay 200", lambda one: one.generalises[one.y >= 200].sum(), exactly(0)),
    _of_groups("least decay with confusion", _least_confused, at_least(50)),
)

section.claim(
    "fig6d-published",
    "Fig. 6d",
    "S₃ on the split of the publication: the same phases, cell by cell.",
    _cells("phases_group", 0.85),
    _occurring("phases_group"),
    _part("phases_group", "most frequent phase", lambda one: np.bincount(one.phases.ravel()).argmax(),
          exactly(COMPREHENSION), phase_name),
    paper="73 cells of comprehension, 31 of grokking, 62 of memorisation, 10 of confusion",
)  # fmt: skip
