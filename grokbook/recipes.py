"""What was run, as a phrase: sizes, then how each condition was trained, then seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def describe(record: xr.Dataset) -> str:
    """The settings of a record as a phrase: sizes, then optimizers with their steps, then seeds."""
    columns = {str(name): record[name].values for name in record.coords if record[name].dims == ("run",)}
    sizes = [run.get("batch_size") for run in json.loads(record.attrs["recipe"])["runs"]]
    return _phrase(columns | _batches(columns, sizes))


def settings(runs: Sequence[Any]) -> str:
    """The same for runs that have no record."""
    from grokbook.train.experiment import coordinates

    columns = {name: np.array(values) for name, values in coordinates(runs).items()}
    return _phrase(columns | _batches(columns, [run.batch_size for run in runs]))


def _batches(columns: Mapping[str, Any], sizes: Sequence[int | None]) -> dict[str, Any]:
    """Samples a step as a column, unless all runs take the whole training set, whose size stands for itself."""
    whole = columns.get("train_size", np.zeros(len(sizes), int)).tolist()
    some = any(sizes)
    return {"batch_size": np.array([size or all_ for size, all_ in zip(sizes, whole, strict=True)])} if some else {}


SIZES = {
    "p": "p", "width": "N", "d_model": "d", "heads": "H", "offset": "k", "train_fraction": "α", "train_size": "n",
}  # fmt: skip


def _phrase(columns: Mapping[str, Any]) -> str:
    words = [f"{symbol} = {_values(columns[name])}" for name, symbol in SIZES.items() if name in columns]
    labels, functions = (list(dict.fromkeys(np.asarray(columns.get(name, [])).tolist())) for name in ("label", "f"))
    if all(functions) and functions != labels:
        words[1:1] = [f"f = {', '.join(map(_starless, functions))}"] if functions else []
    alike: dict[str, list[str]] = {}  # how conditions were trained -> their labels
    for label in labels:
        here = {name: values[columns["label"] == label] for name, values in columns.items()}
        alike.setdefault(", ".join(_training(here)), []).append(_starless(label))
    trained = [f"{', '.join(labels)} ({how})" if any(labels) else how for how, labels in alike.items()]
    seeds, runs = len(np.unique(columns["seed"])), len(columns["seed"])
    counted = f"{seeds} seed{'s' if seeds > 1 else ''}" + (f", {runs} networks in all" if runs != seeds else "")
    return "; ".join([", ".join(words), *trained, counted])


def _starless(words: str) -> str:
    """A function of n and m without stars, which are Markdown's."""
    return words.replace("**", "^").replace("*", " · ")


def _training(columns: Mapping[str, Any]) -> list[str]:
    """How one condition was trained, a phrase for each setting that is not zero, or for an initial scale not one."""
    words = [_values(columns["steps"]) + " steps"]
    for name, symbol in (
        ("lr", "lr"),
        ("W_E_lr", "embeddings' lr"),
        ("W_2_lr", "last layer's lr"),
        ("momentum", "momentum"),
        ("weight_decay", "decay"),
        ("W_E_weight_decay", "embeddings' decay"),
        ("dropout", "dropout"),
        ("batch_size", "batch"),
        ("init_scale", "initial scale"),
    ):
        usual = float(name == "init_scale")
        values = np.nan_to_num(columns.get(name, np.full(1, usual)).astype(float), nan=usual)
        if (values != usual).any():
            words.append(f"{symbol} {_values(values)}")
    if "hidden" in columns:
        words.append(f"blocks {_values(columns['layers'])}, hidden units {_values(columns['hidden'])}")
    if "scaling" in columns:
        words += [f"scaling {name}" for name in np.unique(columns["scaling"])]
    return words


def _values(values: Any) -> str:
    """One value, a few, or their range."""
    distinct = list(dict.fromkeys(np.asarray(values).tolist()))  # in the order of their conditions
    distinct = distinct if len(distinct) <= 3 else sorted(distinct)
    shown = [f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" for value in distinct]
    return ", ".join(shown) if len(shown) <= 3 else f"{shown[0]} to {shown[-1]} ({len(shown)} values)"
