"""What was run, as a phrase: what all conditions share, what each has of its own, then seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from grokbook.train.experiment import coordinates

# How a setting is said, in this order; one that is zero everywhere, or has its USUAL value, is not.
WORDS = {
    "source": "{}", "p": "p = {}", "width": "N = {}", "d_model": "d = {}", "heads": "H = {}", "layers": "blocks {}",
    "hidden": "hidden units {}", "activation": "{} units", "offset": "k = {}", "f": "f = {}",
    "train_fraction": "α = {}", "train_size": "n = {}", "steps": "{} steps", "loss": "{}", "optimizer": "{}",
    "beta2": "β₂ = {}", "eps": "ε = {}", "warmup": "warm-up {}", "lr": "lr {}", "W_E_lr": "embeddings' lr {}",
    "W_2_lr": "last layer's lr {}", "momentum": "momentum {}", "weight_decay": "decay {}",
    "W_E_weight_decay": "embeddings' decay {}", "decay_to_start": "towards the start",
    "update_noise": "noise of updates {}", "weight_noise": "noise of weights {}", "dropout": "dropout {}",
    "batch_size": "batch {}", "last_batch": "an epoch's last batch {}", "init_scale": "initial scale {}",
    "scaling": "scaling {}", "embedding_std": "embeddings' sd {}",
}  # fmt: skip
USUAL = {"init_scale": 1.0, "beta2": 0.999, "eps": 1e-8}
NAMES = {
    "mse": "squared error", "cross_entropy": "cross-entropy", "SGD": "gradient descent", "WarmAdamW": "AdamW",
    "mnist": "MNIST", "digits": "digits of 8 × 8 pixels",
}  # fmt: skip


def describe(record: xr.Dataset) -> str:
    """The settings of a record as a phrase."""
    columns = {str(name): record[name].values for name in record.coords if record[name].dims == ("run",)}
    return _phrase(columns, [_batches(run.get) for run in json.loads(record.attrs["recipe"])["runs"]])


def settings(runs: Sequence[Any]) -> str:
    """The same for runs that have no record."""
    columns = {name: np.array(values) for name, values in coordinates(runs).items()}
    return _phrase(columns, [_batches(vars(run).get) for run in runs])


def _batches(of: Callable[[str], Any]) -> tuple[int, str]:
    """A run's batch size, 0 for the whole training set, and what becomes of an epoch's last samples."""
    return of("batch_size") or 0, of("last_batch") or ""


def _phrase(columns: Mapping[str, Any], batches: Sequence[tuple[int, str]]) -> str:
    sizes, rests = map(np.array, zip(*batches, strict=True))
    if sizes.any():  # else every step takes the whole training set
        whole = columns.get("train_size", np.zeros(len(sizes), int))
        columns = {**columns, "batch_size": np.where(sizes == 0, whole, sizes), "last_batch": rests}
    decayed = np.any([np.nan_to_num(columns[name]) > 0 for name in columns if name.endswith("weight_decay")], axis=0)
    named = np.array([NAMES.get(one, one) for one in columns["optimizer"]])
    columns = {**columns, "optimizer": np.where((named == "AdamW") & ~decayed, "Adam", named)}  # which it is then
    own: dict[str, list[str]] = {}
    for label in dict.fromkeys(columns["label"].tolist()):
        here = {name: columns[name][columns["label"] == label] for name in WORDS if name in columns}
        said = {name: _values(values, label, USUAL.get(name, 0.0)) for name, values in here.items()}
        own[label] = [WORDS[name].format(text) for name, text in said.items() if text]
    shared = [one for one in next(iter(own.values())) if all(one in others for others in own.values())]
    apart: dict[str, list[str]] = {}  # what only some conditions have -> their labels
    for label, phrases in own.items():
        apart.setdefault(", ".join(one for one in phrases if one not in shared), []).append(_starless(label))
    conditions = [", ".join(labels) + (f" ({how})" if how else "") for how, labels in apart.items()]
    seeds, runs = len(np.unique(columns["seed"])), len(columns["seed"])
    counted = f"{seeds} seed{'s' if seeds > 1 else ''}" + (f", {runs} networks in all" if runs != seeds else "")
    return "; ".join(filter(None, [", ".join(shared), *conditions, counted]))


def _values(values: Any, label: str = "", usual: float = 0.0) -> str:
    """One value, a few, or their range; nothing where all are as usual, or what the label says."""
    if values.dtype.kind not in "iuf":
        said = [NAMES.get(one, one) for one in dict.fromkeys(values.tolist())]
        return ", ".join(_starless(one) for one in said if one not in ("", label))
    distinct = list(dict.fromkeys(np.nan_to_num(values, nan=usual).tolist()))
    if distinct == [usual]:
        return ""
    few = len(distinct) <= 3
    shown = [f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}" for x in (distinct if few else sorted(distinct))]
    return ", ".join(shown) if few else f"{shown[0]} to {shown[-1]} ({len(shown)} values)"


def _starless(words: str) -> str:
    """A function of n and m without stars, which are Markdown's."""
    return words.replace("**", "^").replace("*", " · ")
