"""What a training can log, by name: the bridge from a stack of members to measures of it.

General ones are here; a chapter registers its own in its module ``measures``, which is imported for its experiments.
"""

from __future__ import annotations

import re
import sys
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.lazy import Params, Tensor, torch
from grokbook.train.contract import optional, own_code

Numbers = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """M members at one step. What costs a pass through the network is a function, called when asked.

    Arrays are the host's; ``weights`` and ``gradients()`` are where members are trained, for a measure that is made of
    products, which takes arrays there with ``tensor``.
    """

    weights: Params  #: name -> (M, ...)
    params: Mapping[str, NDArray[Any]]  #: the weights, each brought here when it is asked for
    in_train: NDArray[np.bool_]  #: (M, rows) the rows trained on
    tasks: Sequence[Any]  #: (M,) which share inputs
    model: Any  #: that of the first member
    answers: Callable[[], NDArray[np.int64]]  #: (M, rows) the labels that members give
    correct: Callable[[], NDArray[np.bool_]]  #: (M, rows) whether they are the table's, whatever a row was trained as
    gradients: Callable[[], Params]  #: name -> (M, ...)
    losses: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]]  #: (M,) in training, that other params have
    outputs: Callable[[], NDArray[Any]]  #: (M, rows, classes)
    activations: Callable[[], NDArray[Any]]  #: (M, rows, hidden), and likewise
    preactivations: Callable[[], NDArray[Any]]

    def tensor(self, values: NDArray[Any]) -> Tensor:
        """An array on the members' device."""
        return torch.from_numpy(values).to(next(iter(self.weights.values())).device)


class Brought(UserDict[str, Any]):
    """Tensors as arrays, each brought to the host when it is first asked for."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        if isinstance(self.data[name], torch.Tensor):
            self.data |= host({name: self.data[name]})
        return self.data[name]


def host(values: Params) -> Numbers:
    """Tensors as arrays."""
    return {name: value.detach().cpu().numpy() for name, value in values.items()}


def _norms(prefix: str, values: Params) -> Numbers:
    return host({f"{prefix}_{n}": v.reshape(len(v), -1).double().square().sum(1).sqrt() for n, v in values.items()})


def _weight_norms(now: Measured) -> Numbers:
    """Of the weights that gradients move."""
    buffers = optional(now.model, "buffers")
    return _norms("weight_norm", {name: value for name, value in now.weights.items() if name not in buffers})


# Name in an experiment -> the numbers it logs, each (M,); or those that a summary makes of a record, by variable.
MEASURES: dict[str, Callable[[Any], dict[str, Any]]] = {}
WHERE: dict[str, str] = {}  # the modules that register them, which workers import
VERSIONS: dict[str, int] = {}  # of those that came to mean other numbers than at first


def register(version: int = 1, **functions: Callable[[Any], dict[str, Any]]) -> None:
    """Make measures known by their names; a version above 1 is part of the recipes that ask for them."""
    MEASURES.update(functions)
    WHERE.update(dict.fromkeys(functions, sys._getframe(1).f_globals["__name__"]))
    VERSIONS.update(dict.fromkeys(functions, version) if version > 1 else {})


def versions(experiment: str, names: Iterable[str]) -> dict[str, Any]:
    """The raised versions, or the code, of the measures that an experiment, ``"chapter/experiment"``, asks for."""
    of_chapter(experiment)
    known = [(name, VERSIONS.get(name, 1), own_code(MEASURES[name])) for name in sorted(set(names) & set(MEASURES))]
    return {name: f"{raised}, {code}" if code else raised for name, raised, code in known if code or raised > 1}


def of_chapter(experiment: str) -> None:
    """Make known the measures of an experiment's chapter, if it is one of the book's and has some."""
    chapter = f"grokbook.chapters.{experiment.partition('/')[0]}"
    try:
        import_module(f"{chapter}.measures")
    except ModuleNotFoundError as error:
        if error.name not in (chapter, f"{chapter}.measures"):
            raise


def known(name: str) -> Callable[[Any], dict[str, Any]]:
    """The measure of that name; a ValueError where neither the book nor the experiment's chapter has one."""
    if name not in MEASURES:
        there = ", ".join(sorted(MEASURES))
        raise ValueError(f"measures = {name!r}: none of that name; choose among {there}, or import a chapter's own")
    return MEASURES[name]


def numbers(names: Iterable[str], now: Measured) -> Numbers:
    """What the named measures give; raises what ``known`` does."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of networks that diverged, which is told elsewhere
        found = {name: known(name)(now) for name in names}
    for name, given in found.items():
        if not isinstance(given, dict):
            raise ValueError(
                f"measures = {name!r}: it gives {type(given).__name__}, and name -> numbers (M,) is needed"
            )
    return {key: values for given in found.values() for key, values in given.items()}


def arrays_of(record: xr.Dataset) -> list[str]:
    """What of a record was kept in snapshots."""
    return [str(name) for name, values in record.data_vars.items() if "snapshot" in values.dims and values.ndim > 2]


def kept(name: str, now: Measured) -> NDArray[Any]:
    """The array called ``name`` in ``Experiment.keep``, (M, ...); a ValueError if there is none."""
    if name in MEASURES:
        given = MEASURES[name](now)
        if len(given) != 1:
            raise ValueError(f"keep = {name!r}: one array (M, ...) is kept, and it gives {', '.join(given) or 'none'}")
        return next(iter(given.values()))
    if name in now.params:
        return now.params[name]
    if not (found := re.fullmatch(r"(output|activation|preactivation)\[(\d+)\]", name)):
        allowed = f"a parameter ({', '.join(now.params)}), output[q], activation[i], preactivation[i] or a measure"
        raise ValueError(f"keep = {name!r}: {allowed}")
    every, index = getattr(now, found[1] + "s")(), int(found[2])
    if index >= every.shape[-1]:
        raise ValueError(f"keep = {name!r}: there are {every.shape[-1]}, counted from 0")
    table = every[..., index]  # (M, rows)
    side = round(table.shape[-1] ** 0.5)
    if side**2 != table.shape[-1]:
        raise ValueError(f"keep = {name!r}: its {table.shape[-1]} rows make no square; a measure may be kept")
    return table.reshape(len(table), side, side)


register(
    weight_norm=_weight_norms,
    gradient_norm=lambda now: _norms("gradient_norm", now.gradients()),
    total_norm=lambda now: {"total_norm": np.sqrt(sum(np.square(norm) for norm in _weight_norms(now).values()))},
)
