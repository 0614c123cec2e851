"""What a training can log, by name: the bridge from a stack of members to measures of it.

General ones are here; a chapter registers its own in its module ``measures``, which is imported for its experiments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Params, Tensor, torch
from grokbook.train.contract import optional

Numbers = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """M members at one step, as arrays of the host but for ``weights`` and ``gradients()``, which are where they are
    trained. What costs a pass through the network is a function, called when asked, and ``params`` are the weights,
    each brought here when it is asked for; a measure that is made of products takes arrays there, with ``tensor``.

    ``weights``, ``params`` and ``gradients()`` map names to (M, ...), and ``losses(params)`` is the training loss (M,)
    that other params have. Over all rows of the table, ``outputs()`` is (M, rows, classes), ``activations()`` and
    ``preactivations()`` are (M, rows, hidden), ``answers()`` (M, rows) the labels that members give, and ``correct()``
    whether they are the table's, whatever a row was labelled in training. ``in_train`` (M, rows) are the rows trained
    on, ``tasks`` (M,) theirs, which share inputs, and ``model`` that of the first member.
    """

    weights: Params
    in_train: NDArray[np.bool_]
    tasks: Sequence[Any]
    model: Any
    answers: Callable[[], NDArray[np.int64]]
    correct: Callable[[], NDArray[np.bool_]]
    gradients: Callable[[], Params]
    losses: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]]
    outputs: Callable[[], NDArray[Any]]
    activations: Callable[[], NDArray[Any]]
    preactivations: Callable[[], NDArray[Any]]

    @cached_property
    def params(self) -> Brought:
        """The weights, brought here."""
        return Brought(self.weights)

    def tensor(self, values: NDArray[Any]) -> Tensor:
        """An array on the members' device."""
        return torch.from_numpy(values).to(next(iter(self.weights.values())).device)


class Brought(Mapping[str, NDArray[Any]]):
    """Tensors as arrays, each brought to the host when it is first asked for."""

    def __init__(self, there: Params) -> None:
        self.there = there
        self.here: Numbers = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.here:
            self.here |= host({name: self.there[name]})
        return self.here[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.there)

    def __len__(self) -> int:
        return len(self.there)


def host(values: Params) -> Numbers:
    """Tensors as arrays."""
    return {name: value.detach().cpu().numpy() for name, value in values.items()}


def _norms(prefix: str, values: Params) -> Numbers:
    found = {
        name: value.detach().reshape(len(value), -1).double().square().sum(1).sqrt() for name, value in values.items()
    }
    return host({f"{prefix}_{name}": norm for name, norm in found.items()})


def _learnt(now: Measured) -> Params:
    """The weights that gradients move."""
    buffers = set(optional(now.model, "buffers"))
    return {name: value for name, value in now.weights.items() if name not in buffers}


def _total_norm(now: Measured) -> Numbers:
    norms = _norms("weight_norm", _learnt(now)).values()
    return {"total_norm": np.sqrt(sum(np.square(norm) for norm in norms))}


Measure = Callable[[Measured], Numbers]

MEASURES: dict[str, Measure] = {}  # name in an experiment -> the numbers it logs, each (M,)
VERSIONS: dict[str, int] = {}  # of those that came to mean other numbers than at first


def register(version: int = 1, **functions: Measure) -> None:
    """Make measures known by their names; a version above 1 is part of the recipes that ask for them."""
    MEASURES.update(functions)
    VERSIONS.update(dict.fromkeys(functions, version) if version > 1 else {})


def versions(experiment: str, names: Iterable[str]) -> dict[str, int]:
    """The raised versions among the measures that an experiment, ``"chapter/experiment"``, asks for."""
    of_chapter(experiment)
    return {name: VERSIONS[name] for name in sorted(set(names) & set(VERSIONS))}


def of_chapter(experiment: str) -> None:
    """Make known the measures of an experiment's chapter, if it is one of the book's and has some."""
    chapter = f"grokbook.chapters.{experiment.partition('/')[0]}"
    try:
        import_module(f"{chapter}.measures")
    except ModuleNotFoundError as error:
        if error.name not in (chapter, f"{chapter}.measures"):
            raise


def numbers(names: Iterable[str], now: Measured) -> Numbers:
    """What the named measures give.

    Raises:
        ValueError: one that neither the book nor the experiment's chapter has.
    """
    found: Numbers = {}
    for name in names:
        if name not in MEASURES:
            known = ", ".join(sorted(MEASURES))
            raise ValueError(f"measures = {name!r}: none of that name; choose among {known}, or import a chapter's own")
        found.update(MEASURES[name](now))
    return found


def kept(name: str, now: Measured) -> NDArray[Any]:
    """The array called ``name`` in ``Experiment.keep``, (M, ...).

    Raises:
        ValueError: there is no such one.
    """
    if name in MEASURES:
        (values,) = MEASURES[name](now).values()
        return values
    if name in now.params:
        return now.params[name]
    found = re.fullmatch(r"(output|activation|preactivation)\[(\d+)\]", name)
    if not found:
        allowed = f"a parameter ({', '.join(now.params)}), output[q], activation[i], preactivation[i] or a measure"
        raise ValueError(f"keep = {name!r}: {allowed}")
    table = getattr(now, found[1] + "s")()[..., int(found[2])]  # (M, rows)
    side = round(table.shape[-1] ** 0.5)
    return table.reshape(len(table), side, side)


register(
    weight_norm=lambda now: _norms("weight_norm", _learnt(now)),
    gradient_norm=lambda now: _norms("gradient_norm", now.gradients()),
    total_norm=_total_norm,
)
