"""Fig. 6: some training answers are wrong. Are they learnt by heart, and does the rule survive them?"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.tasks import of
from grokbook.chapters.power.training import ADAMW, GRID, run
from grokbook.claims import Part, at_least, at_most, between
from grokbook.curves import best, last, median, smallest, sweep, t_train
from grokbook.settings import Shares, several, whole
from grokbook.train.experiment import Experiment
from grokbook.words import percent

section = Section("outliers")
Counts = Annotated[tuple[int, ...], several(whole(0))]
COUNTS = (0, 10, 100, 1000, 2000, 3000)


@section.experiment(
    smaller=[
        {"seeds": 1, "correct": (0.5, 0.6, 0.7), "counts": (0, 1000, 3000), "long": (1000, 3000)},
        {"seeds": 1, "correct": (0.5, 0.6, 0.7), "counts": (0, 1000, 3000), "long": (1000,)},
        {"seeds": 1, "steps": 10_000, "correct": (0.5, 0.6, 0.7, 0.9), "counts": (0, 1000, 3000)},
    ],
    quick={"correct": (0.7,), "counts": (0, 3), "steps": 100},
)
def outliers(
    s: Settings, *, correct: Shares = (0.3, 0.4, 0.5, 0.6, 0.7, 0.79), counts: Counts = COUNTS, long: Counts = ()
) -> Experiment:
    """Fig. 6: products of S5 from a share of correct answers and so many wrong ones, where the table holds both.

    Where there are ``long`` numbers of wrong answers, networks with another get a tenth of the updates.
    """
    rows = len(of("x.y", s.p, s.group, 0.5).table()[1])
    steps = {count: s.steps if count in (long or counts) else s.steps // 10 for count in counts}
    runs = (
        run(s, "x.y", share + count / rows, ADAMW, steps[count], seed, f"{count:,} wrong", outliers=count or None)
        for count in counts
        for share in correct
        if share + count / rows < 1 or count == min(counts)  # one that never fits is refused by the task
        for seed in range(s.seeds)
    )
    return Experiment("power/outliers", tuple(runs), GRID, ("true_train_accuracy",))


def wrong(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) how many training answers are wrong."""
    return np.nan_to_num(record.outliers.values.astype(float))


def rows_of(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) how many rows each table has."""
    return record.p.values.astype(float) ** 2


def with_wrong(record: xr.Dataset, count: int) -> xr.Dataset:
    """The runs with so many wrong answers."""
    return record.isel(run=np.flatnonzero(wrong(record) == count))


def correct_share(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) correctly labelled training rows as a share of the table: the paper's axis."""
    return record.train_fraction.values - wrong(record) / rows_of(record)


def needed(record: xr.Dataset, count: int) -> float:
    """The smallest share of correct rows from which on a network with so many wrong ones generalises."""
    own = with_wrong(record, count)
    shares, table = sweep(own, "train_fraction", best)
    return smallest(shares, table, lambda value: value >= 0.99) - count / float(rows_of(own)[0])


def dearer(record: xr.Dataset, count: int) -> float:
    """How much more correct rows are needed with so many wrong ones, as a share; nan if even none wrong is too hard."""
    clean = needed(record, 0)
    return float("nan") if np.isinf(clean) else round(needed(record, count) - clean, 6)


def dearer_at_most(record: xr.Dataset, count: int) -> float:
    """The same; nan where none wrong is easy at the smallest share that was trained, so that it may be more."""
    easy = needed(record, 0) <= with_wrong(record, 0).train_fraction.values.min()
    return float("nan") if easy else dearer(record, count)


def memorised(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) at least this share of the wrong answers is learnt by heart at the end; nan without any."""
    trained = np.round(record.train_fraction.values * rows_of(record))
    missed = trained * (1 - last(record, "train_accuracy"))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wrong(record) > 0, 1 - missed / wrong(record), np.nan)


def slowed(record: xr.Dataset, count: int) -> float:
    """Median t_train with so many wrong answers over that with none."""
    return float(median(t_train(with_wrong(record, count))) / median(t_train(with_wrong(record, 0))))


section.claim(
    "fig6-memorised",
    "Fig. 6",
    "Every network learns its whole training set, wrong answers included.",
    Part("best training accuracy", lambda r: best(r, "train_accuracy"), at_least(0.999), percent, every=True),
    Part("wrong answers known at the end, at least", memorised, at_least(0.99), percent),
    on="outliers",
)

section.claim(
    "fig6-time",
    "Fig. 6",
    "How long that takes hardly depends on how many answers are wrong.",
    Part("t_train with 1,000 wrong / none", lambda r: slowed(r, 1000), between(0.5, 2)),
    on="outliers",
)

section.claim(
    "fig6-few",
    "Fig. 6",
    "Up to 1,000 wrong answers do little harm.",
    Part(
        "share needed with 1,000 less with none, which fail at the smallest share trained",
        lambda r: dearer_at_most(r, 1000),
        at_most(0.1),
    ),
    on="outliers",
)

section.claim(
    "fig6-many",
    "Fig. 6",
    "With 3,000 the range of shares that generalise shrinks.",
    Part("share needed with 3,000 less with none", lambda r: dearer(r, 3000), at_least(0.1)),
    Part(
        "training accuracy with 3,000", lambda r: best(with_wrong(r, 3000), "train_accuracy"), at_least(0.99), percent
    ),
    on="outliers",
)
