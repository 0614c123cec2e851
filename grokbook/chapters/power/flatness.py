"""Fig. 7: is a network that has understood a flatter minimum than one that has learnt by heart?"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.measures import split_sharpness
from grokbook.chapters.power.training import ADAMW, GRID, run
from grokbook.claims import Part, at_most, between
from grokbook.curves import at, spearman
from grokbook.settings import Seeds, several, whole
from grokbook.train.experiment import Experiment

section = Section("flatness")
Times = Annotated[tuple[int, ...], several(whole(1))]
HIGH = 0.9  # held-out accuracy from which on a network counts as having generalised


@section.experiment(smaller=[{"seeds": 8}], quick={"seeds": 4, "at": (50, 100)})
def sharp_or_flat(s: Settings, *, seeds: Seeds = 20, at: Times = (6_500, 8_000, 10_000)) -> Experiment:
    """Fig. 7: twenty seeds on half of S5, with the sharpness of each at three times; one of them is looked at."""
    runs = (run(s, "x.y", s.train_fraction, ADAMW, max(at), seed, "decay 1") for seed in range(seeds))
    return Experiment("power/sharp_or_flat", tuple(runs), GRID, snapshots=at, keep=("sharpness",))


@section.study
def sharpness_by_accuracy(sharp_or_flat: xr.Dataset) -> xr.Dataset:
    """Sharpness in four forms and accuracy (run,) at the time at which most nearly half of the networks generalise.

    The time is chosen by accuracies alone, before any sharpness is looked at.
    """
    times = sharp_or_flat.snapshot_step.values[0]
    accuracy = np.stack([at(sharp_or_flat, "test_accuracy", time) for time in times], 1)  # (run, snapshot)
    chosen = int(np.abs((accuracy >= HIGH).mean(0) - 0.5).argmin())
    found = split_sharpness(sharp_or_flat.sharpness.values[:, chosen].astype(float))
    return xr.Dataset(
        {
            **{name: ("run", values) for name, values in found.items()},
            "accuracy": ("run", accuracy[:, chosen]),
            "step": float(times[chosen]),
        }
    )


def one_sided(x: xr.DataArray, y: xr.DataArray) -> float:
    """The one-sided p-value of a rank correlation below zero; nan where one of them is constant."""
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    return float(spearmanr(x, y, alternative="less").pvalue) if x.std() and y.std() else float("nan")


def at_equal_loss(record: xr.Dataset, snapshot: int) -> float:
    """Rank correlation of sharpness in subspaces with held-out accuracy at a snapshot, the training loss held fixed."""
    found = split_sharpness(record.sharpness.values[:, snapshot].astype(float))
    accuracy = at(record, "test_accuracy", float(record.snapshot_step.values[0, snapshot]))
    xy, xz, yz = (spearman(*pair) for pair in combinations((found["subspaces"], accuracy, found["loss"]), 2))
    return (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))


HALF = Part("networks that generalise, of all", lambda d: float((d.accuracy >= HIGH).mean()), between(0.3, 0.7))

section.claim(
    "fig7",
    "Fig. 7",
    "Networks that generalise lie in flatter minima: sharpness falls with accuracy.",
    HALF,
    Part("Spearman(sharpness, accuracy), subspaces", lambda d: spearman(d.subspaces, d.accuracy), at_most(-0.4)),
    Part("one-sided p", lambda d: one_sided(d.subspaces, d.accuracy), at_most(0.05)),
    on="sharpness_by_accuracy",
    paper="−0.795, p < 0.000014",
)

section.claim(
    "fig7-loss",
    "beside Fig. 7",
    "The training loss alone, without any sharpness, ranks the networks too.",
    HALF,
    Part("Spearman(training loss, accuracy)", lambda d: spearman(d.loss, d.accuracy), at_most(-0.4)),
    Part("one-sided p", lambda d: one_sided(d.loss, d.accuracy), at_most(0.05)),
    on="sharpness_by_accuracy",
    whose="ours",
)
