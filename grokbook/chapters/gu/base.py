"""Section 6.1's baseline: modular addition from a random 30 % of its table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings, theory
from grokbook.chapters.gu.reading import reached, t_fit
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import TRACKED, WindowedSchedule, every
from grokbook.claims import Part, at_least, at_most, between
from grokbook.curves import last
from grokbook.models.pair_transformer import PairTransformer
from grokbook.train.experiment import Experiment
from grokbook.words import percent

section = Section("base")


@section.experiment(smaller=[{"seeds": 1}])
def base(s: Settings) -> Experiment:
    """Section 6.1's random baseline, and p = 97 of Fig. 5: every 10 steps, and ten windows of single steps."""
    task, model = HoledTask(s.p, "n + m", s.train_fraction), PairTransformer(s.p, s.d_model)
    return Experiment(
        "gu/base",
        every(s.seeds, [(f"p = {s.p}", task, model, s.steps)]),
        WindowedSchedule(log=60, every=10),
        (*TRACKED, "accuracy_by_place"),
        snapshots=tuple(dict.fromkeys(round(s.steps * i / 30) for i in range(31))),
        keep=("W_E",),
    )


def plane(record: xr.Dataset, run: int) -> tuple[NDArray[np.float64], int]:
    """The two principal axes of a run's final embedding, (d, 2), and the strongest frequency on them."""
    p = int(record.p.values[run])
    final = record.W_E.values[run, -1, :p].astype(float)
    axes = np.linalg.svd(final - final.mean(0), full_matrices=False)[2][:2].T
    power = theory.embedding_power(final @ axes)[1 : (p - 1) // 2 + 1]
    return axes, int(power.argmax()) + 1


section.claim(
    "base",
    "Sec. 6.1",
    "With a random 30 % of the pairs test accuracy starts to rise around step 5,000 and ends at 1.",
    Part("t_0.5", lambda record: reached(record, 0.5), between(2500, 9000)),
    Part("test accuracy at the end", lambda record: last(record, "test_accuracy"), at_least(0.99), percent),
    Part("t_fit", t_fit, at_most(500)),
    on="base",
    paper="a rise around step 5,000, 100 % at the end",
    forecast="t_0.5 of 4,400 and 5,900 (two earlier runs)",
)  # fmt: skip
