"""Figs 13 to 15: the decoder's rate against batch size, initial size and weight decay of the embeddings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.liu import Settings
from grokbook.chapters.liu.maps import Array, diagram
from grokbook.chapters.liu.phases import COARSE, eps_of, phase_map
from grokbook.chapters.liu.training import every, solvable_seeds, toy_run, two_groups
from grokbook.claims import Part, above, at_least, at_most
from grokbook.curves import median
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Run
from grokbook.train.records import conditions
from grokbook.words import percent

section = Section("knobs")

# The paper does not say which values it tried.
RATES = tuple(float(10**e) for e in np.linspace(-4, -2, 9))
BATCH_SIZES = (45, 25, 15, 9, 5, 3)
INIT_SCALES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
EMBEDDING_DECAYS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


def _knob(s: Settings, name: str, values: Sequence[float], turn: Callable[[float], dict[str, Any]]) -> Experiment:
    """Decoder rate against one other setting, for regression and classification, over several splits.

    Args:
        turn: value -> what it changes: ``embedding_decay``, ``init_scale`` or ``batch_size``.
    """
    runs: list[Run] = []
    for kind, target_size in (("regression", 30), ("classification", 0)):
        task = AdditionTask(s.p, s.train_size, target_size)
        for value in every(values, s.coarseness):
            changes = turn(value)
            decay, batch_size = changes.pop("embedding_decay", 0.0), changes.pop("batch_size", None)
            for rate in every(RATES, s.coarseness):
                optimizer = two_groups(rate, embedding_decay=decay, eps=eps_of(task))
                for seed in solvable_seeds(s.p, s.train_size, s.split_seeds, target_size):
                    run = toy_run(task, optimizer, s.steps, seed, kind, **changes)
                    runs.append(dataclasses.replace(run, batch_size=batch_size) if batch_size else run)
    return phase_map(name, runs)


@section.experiment(smaller=COARSE)
def phases_batch(s: Settings) -> Experiment:
    """Fig. 13: decoder learning rate against batch size."""
    return _knob(
        s, "phases_batch", BATCH_SIZES, lambda size: {"batch_size": int(size) if size < s.train_size else None}
    )


@section.experiment(smaller=COARSE)
def phases_scale(s: Settings) -> Experiment:
    """Fig. 14: decoder learning rate against the initial size of the embeddings."""
    return _knob(s, "phases_scale", INIT_SCALES, lambda scale: {"init_scale": scale})


@section.experiment(smaller=COARSE)
def phases_decay(s: Settings) -> Experiment:
    """Fig. 15: decoder learning rate against the weight decay of the embeddings."""
    return _knob(s, "phases_decay", EMBEDDING_DECAYS, lambda decay: {"embedding_decay": decay})


def batch_sizes(record: xr.Dataset) -> Array:
    """(run,) samples a step, from the recipe; a full batch is the whole training set."""
    sizes = [run["batch_size"] for run in json.loads(record.attrs["recipe"])["runs"]]
    return np.where([one is None for one in sizes], record.train_size, [one or 0 for one in sizes]).astype(float)


def generalising(record: xr.Dataset, label: str, values: Array) -> tuple[Array, Array]:
    """The values of a setting, (run,), that occur with a label, and the share of its networks that generalise."""
    own = record.label.values == label
    good, at = np.isfinite(record.reached_test_accuracy.values), np.unique(values[own])
    return at, np.array([good[own & (values == one)].mean() for one in at])


# --------------------------------------------------------------------------------------------------------------- claims


def _batches(record: xr.Dataset) -> tuple[Array, Array, float]:
    """Of the regression: batch sizes (run,), which runs, and the batch that is compared with the full one."""
    sizes = batch_sizes(record)
    small = sizes[sizes <= 5].max() if (sizes <= 5).any() else sizes.min()
    return sizes, record.label.values == "regression", float(small)


def slower(record: xr.Dataset) -> float:
    """Median t_train at a batch of 5 over that at the full one, at rates up to 3.2e-4."""
    sizes, own, small = _batches(record)
    own = own & (record.lr.values <= 3.3e-4)
    t = record.reached_train_accuracy.fillna(np.inf).values
    slow, fast = (float(median(t[own & (sizes == size)])) for size in (small, sizes.max()))
    return slow / fast if np.isfinite(fast) else np.nan


def fewer(record: xr.Dataset) -> float:
    """How much smaller the share that generalises is at a batch of 5 than at the full one."""
    sizes, _, small = _batches(record)
    at, share = generalising(record, "regression", sizes)
    return float(share[-1] - share[at == small][0])


section.claim(
    "fig13",
    "Fig. 13",
    "Smaller batches seem harmful.",
    Part("t_train at batch 5 (or less) / at the full one, rates up to 3.2e-4", slower, at_least(2)),
    Part("generalise at the full batch, less at the small one", fewer, above(0), percent),
    on="phases_batch",
)


def gain(record: xr.Dataset, label: str) -> float:
    """Share that generalises at initial sizes up to .3, less that from 3 on, at rates near 1e-3."""
    own = (np.abs(np.log10(record.lr.values) + 3) < 0.3) & (record.label.values == label)
    good = np.isfinite(record.reached_test_accuracy.values)
    small, large = (own & (record.init_scale.values <= 0.31)), (own & (record.init_scale.values >= 2.9))
    return float(good[small].mean() - good[large].mean()) if small.any() and large.any() else np.nan


def _gain(label: str) -> Part:
    words = f"{label}, rates near 1e-3: generalise at sizes up to 0.3, less from 3 on"
    return Part(words, lambda record: gain(record, label), at_least(0.6), percent)


section.claim(
    "fig14",
    "Fig. 14",
    "Small initial embeddings help generalisation.",
    _gain("regression"),
    _gain("classification"),
    on="phases_scale",
)


def changed(record: xr.Dataset) -> float:
    """Share of cells whose phase differs between no decay of the embeddings and a decay of 1 or the next larger."""
    rows = []
    for _, own in conditions(record):
        found = diagram(own, "W_E_weight_decay")
        if found.y[0] > 0 or found.y[-1] < 1 - 1e-9:
            return np.nan
        rows.append(found.phases[0] != found.phases[np.flatnonzero(found.y >= 1 - 1e-9)[0]])
    return float(np.mean(rows))


section.claim(
    "fig15",
    "Fig. 15",
    "Weight decay of the embeddings hardly matters.",
    Part("cells that change from decay 0 to 1 (or more)", changed, at_most(0.3), percent),
    on="phases_decay",
)
