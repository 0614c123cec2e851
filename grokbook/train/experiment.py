"""Experiments: complete recipes of what is trained, measured and when. Plain data, no training, no torch."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.checks import integer, one_of
from grokbook.optim import KNOWN, Optimizer, kind
from grokbook.train import monitor
from grokbook.train.contract import optional, own_code

# Raised when the engine's own arithmetic changes; a task, model or optimizer carries its own version.
ENGINE_VERSION = 1

LOSSES = ("mse", "cross_entropy")
CURVES = ("train_loss", "test_loss", "train_accuracy", "test_accuracy")  # taken whatever else is asked for
PLAIN = {"bool": "True or False", "int": "an integer", "float": "a number"}  # what a field of such a type needs
COLUMNS = ("label", "seed", "steps", "loss")  # that a record has of a run, beside what it is made of
DIMENSIONS = ("run", "step", "snapshot", "snapshot_step", "stopped_at", "diverged_at")  # and what else a record says


@dataclass(frozen=True)
class Run:
    """The complete recipe of one member.

    Attributes:
        task: what to learn, a ``grokbook.train.contract.Task``; its split is drawn from ``seed``.
        model: sizes of the network, a ``grokbook.train.contract.Model``; its initial weights are drawn from ``seed``.
        optimizer: of ``grokbook.optim``.
        steps: of the optimizer.
        seed: drives split, initial weights, minibatch order and dropout.
        loss: ``"mse"``, the mean over samples and outputs against one-hot targets, or ``"cross_entropy"``, in nats.
        batch_size: samples a step; None is the full training set.
        label: what figures call this condition; no part of the recipe.
        last_batch: what becomes of the samples that do not fill an epoch's last batch: None leaves them out,
            ``"short"`` makes them a batch, whose mean is over as many as it has.
    """

    task: Any
    model: Any
    optimizer: Optimizer
    steps: int
    seed: int
    loss: str = "mse"
    batch_size: int | None = None
    label: str = field(default="", metadata={"recipe": False})
    last_batch: str | None = field(default=None, metadata={"recipe": "where set"})

    def __post_init__(self) -> None:
        for what, method, part in (("Task", "table", self.task), ("Model", "init", self.model)):
            if isinstance(part, type) or not (is_dataclass(part) and part.__hash__ and hasattr(part, method)):
                raise ValueError(f"{what} of grokbook.train.contract: a frozen dataclass is needed, not {type(part)}")
            _settle(part)
        if type(self.optimizer) not in KNOWN:
            raise ValueError(f"SGD, Adam, AdamW or WarmAdamW of grokbook.optim is needed, not {type(self.optimizer)}")
        _settle(self)
        integer("steps", self.steps, 1)
        integer("seed", self.seed, 0, 2**63 - 1)
        for part in (self.optimizer, *self.optimizer.groups):
            _settle(part)
            for f in fields(part):
                value, rate = getattr(part, f.name), f.type in ("float", "float | None")
                number = isinstance(value, int | float)
                if (rate and not number and value is not None) or (number and not 0 <= value < float("inf")):
                    raise ValueError(f"{f.name} = {value!r}: a finite number of at least 0 is needed")
                shares = {"momentum": (value,), "betas": value}.get(f.name, ())
                if not all(0 <= share < 1 for share in shares) or (f.name == "betas" and len(value) != 2):
                    raise ValueError(f"{f.name} = {value!r}: {'two ' * (f.name == 'betas')}in [0, 1) is needed")
        one_of("loss", self.loss, LOSSES)
        if self.batch_size is not None and not 1 <= self.batch_size <= self.task.train_size:
            most = self.task.train_size
            raise ValueError(f"batch_size = {self.batch_size}: between 1 and the {most} training samples is needed")
        if taken := sorted({f.name for part in (self.task, self.model) for f in fields(part)} & set(COLUMNS)):
            raise ValueError(f"a task's or model's {taken[0]}: a record has a column of that name; call it otherwise")
        if self.last_batch not in (None, "short") or (self.last_batch and self.batch_size is None):
            raise ValueError(f"last_batch = {self.last_batch!r}: None, or, where batch_size is set, 'short'")
        if (p := getattr(self.task, "p", None)) != (own := getattr(self.model, "p", p)) and p is not None:
            raise ValueError(f"the model is made for p = {own}, and the task has p = {p}")

    @property
    def samples(self) -> int:
        """How many a step takes, but for an epoch's short last batch."""
        return self.batch_size or self.task.train_size


@dataclass(frozen=True)
class Schedule:
    """When a run is measured: at both its ends, every ``every`` steps, and ``log`` times evenly in log step."""

    log: int = 100
    every: int | None = None

    def __post_init__(self) -> None:
        integer("log", self.log, 0)
        if self.every is not None:
            integer("every", self.every, 1)

    def steps(self, last: int) -> NDArray[np.int64]:
        """The steps at which a run of ``last`` steps is measured, ascending."""
        spaced = np.geomspace(1, last, self.log).round()
        regular = np.arange(0, last, self.every or last)
        return np.unique(np.concatenate([[0, last], spaced, regular]).astype(np.int64))


@dataclass(frozen=True)
class Stop:
    """A member leaves once ``measure`` has been at least ``threshold`` at ``evaluations`` evaluations in a row."""

    measure: str = "test_accuracy"
    threshold: float = 0.99
    evaluations: int = 1

    def __post_init__(self) -> None:
        integer("evaluations", self.evaluations, 1)
        if not np.isfinite(self.threshold):
            raise ValueError(f"threshold = {self.threshold}: a finite number is needed")


@dataclass(frozen=True)
class Watch:
    """When curves first reach their thresholds, on a finer grid than the schedule's; the record does not grow with it.

    The record holds ``reached_<measure>`` (run), the first step of the grid at which it was so, missing if never.
    """

    thresholds: tuple[tuple[str, float], ...]  #: (name, threshold) of losses, accuracies or ``measures``
    every: int = 10  #: the grid, in optimizer steps
    leave: bool = True  #: whether a member leaves once it has reached all of them


@dataclass(frozen=True)
class Experiment:
    """A named list of runs, with what to measure and when.

    Attributes:
        name: ``"chapter/experiment"``, also its record's path in ``results/``; no part of the recipe.
        runs: what is trained.
        schedule: when losses, accuracies and ``measures`` are taken.
        measures: besides losses and accuracies, by name: weight_norm, gradient_norm, total_norm, or the chapter's.
        stop: when a member may leave early.
        snapshots: steps at which ``keep`` is taken; -1 is the step at which the run ends.
        keep: what a snapshot holds: a parameter's name, ``"output[q]"`` (that output over the table),
            ``"activation[i]"`` or ``"preactivation[i]"`` (that hidden unit after or before its nonlinearity, over the
            table), or a measure.
        summary: a measure of the whole record, which holds what that finds in place of what was kept: where that is
            too large.
        watch: first crossings on a finer grid.
        precision: None for float32 throughout, ``"double"`` for float64; ``"fast"`` lets matrix products round their
            factors, to TF32 on CUDA and to bfloat16 on CPUs that have it, which is quicker and no longer exact. All
            runs of a figure have the same.
        scale: ``"full"``, or ``"reduced"`` where it stands in for a larger one.
    """

    name: str = field(metadata={"recipe": False})
    runs: tuple[Run, ...]
    schedule: Schedule = Schedule()
    measures: tuple[str, ...] = ()
    stop: Stop | None = None
    snapshots: tuple[int, ...] = ()
    keep: tuple[str, ...] = ()
    summary: str | None = field(default=None, metadata={"recipe": "where set"})
    watch: Watch | None = field(default=None, metadata={"recipe": "where set"})
    precision: str | None = field(default=None, metadata={"recipe": "where set"})
    scale: str = field(default="full", metadata={"recipe": False})

    def __post_init__(self) -> None:
        for name in ("runs", "measures", "snapshots", "keep"):
            value = getattr(self, name)
            if isinstance(value, str | Run) or not isinstance(value, Iterable):
                raise ValueError(f"{name}: a tuple is needed, also around one")
            object.__setattr__(self, name, tuple(dict.fromkeys(value)) if name == "snapshots" else tuple(value))
        for one in self.asked:
            if not isinstance(one, str) or "/" in one:
                raise ValueError(f"{one!r}: a measure's or parameter's name is needed, without a '/'")
        for name, needed in (("schedule", Schedule), ("stop", Stop | None), ("watch", Watch | None)):
            if not isinstance(value := getattr(self, name), needed):
                raise ValueError(f"{name} = {value!r}: a {name.capitalize()} of grokbook.train.experiment is needed")
            if value:
                _settle(value)
        if not self.runs:
            raise ValueError(f"{self.name}: an experiment needs at least one run (is seeds at least 1?)")
        for step in self.snapshots:
            integer("snapshots", step, -1)
        if min(self.snapshots, default=0) > (most := max(run.steps for run in self.runs)):
            raise ValueError(f"snapshots = {self.snapshots}: no run gets there, they have {most} steps at most")
        one_of("scale", self.scale, ("full", "reduced"))
        if self.precision not in (None, "fast", "double"):
            raise ValueError(f"precision = {self.precision!r}: None, for full float32, 'fast' or 'double'")
        if not re.fullmatch(r"\w+/\w+", str(self.name)):
            raise ValueError(f"name = {self.name!r}: words of letters, digits and _ on both sides of one / are needed")
        if self.keep and not self.snapshots:
            raise ValueError(f"keep = {self.keep}: snapshots say when, as in (0, -1)")
        if self.watch:
            integer("every", self.watch.every, 1)
        # What is waited for must be there; that of a measure is known once it has been taken.
        asked = [self.stop.measure] if self.stop else []
        asked += [name for name, _ in self.watch.thresholds] if self.watch else []
        if unknown := [name for name in asked if name not in CURVES and not self.measures]:
            raise ValueError(
                f"{unknown[0]!r} is waited for and never taken; losses and accuracies are {', '.join(CURVES)}"
            )

    @property
    def asked(self) -> tuple[str, ...]:
        """What may be names of measures."""
        return (*self.measures, *self.keep, self.summary or "")

    @property
    def recipe(self) -> dict[str, Any]:
        """Everything that decides the numbers, as plain JSON data."""
        raised = monitor.versions(self.name, self.asked)
        return {"engine": ENGINE_VERSION, **describe(self)} | ({"measure_versions": raised} if raised else {})

    @property
    def hash(self) -> str:
        """Content hash of the recipe, 16 hexadecimal digits. Names and plot code are not part of it."""
        return _hash(self, tuple(map(monitor.MEASURES.get, self.asked)))  # which a notebook may write anew

    @property
    def member_steps(self) -> int:
        """Optimizer steps in all, if no member leaves early."""
        return sum(run.steps for run in self.runs)

    def select(self, members: Sequence[int]) -> Experiment:
        """The same experiment with some of its runs."""
        some = copy.copy(self)  # unchecked: a snapshot may be one that only other runs reach
        object.__setattr__(some, "runs", tuple(self.runs[i] for i in members))
        return some

    def shards(self, block: int | None = None) -> Iterator[list[int]]:
        """Positions of runs that train as one stack: equal shapes, at most ``block`` members (None: any number).

        Learning rate, weight decay, seed, initial scale, split, (through padding) its size and, where a task says so,
        the answers may differ inside a stack; the size not where samples meet in batch normalisation, or where dropout
        deals its masks in the order of the stack's batch.
        """
        stacks: dict[str, list[int]] = defaultdict(list)
        for i, run in enumerate(self.runs):
            size = run.task.train_size if any(optional(run.model, one) for one in ("batch_norm", "dropout")) else None
            others = kind(run.optimizer), run.steps, run.loss, run.batch_size, run.last_batch, size
            stacks[repr((_without(run.task, "split_fields"), _without(run.model, "init_fields"), *others))].append(i)
        for members in stacks.values():
            size = block or len(members)
            yield from (members[begin : begin + size] for begin in range(0, len(members), size))


def _without(thing: Any, some: str) -> dict[str, Any]:
    """A recipe without the fields that an optional part of its protocol lists."""
    return {key: value for key, value in describe(thing).items() if key not in optional(thing, some)}


@functools.cache  # of this process: a worker must find out by itself what its version makes of it
def _hash(experiment: Experiment, measures: tuple[Any, ...] = ()) -> str:
    return hash_of(experiment.recipe)


def hash_of(recipe: dict[str, Any]) -> str:
    """What a recipe is known by."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _settle(thing: Any) -> None:
    """Make NumPy's numbers Python's and lists tuples; ``ValueError`` for what a field of flags or numbers cannot hold.

    Python takes 1 for True: recipes that differ in that would be equal, and have another hash each.
    """
    for f in fields(thing):
        value = getattr(thing, f.name)
        if isinstance(value, np.generic | list):
            value = tuple(value) if isinstance(value, list) else value.item()
            object.__setattr__(thing, f.name, value)
        kind = str(getattr(f.type, "__name__", f.type)).removesuffix(" | None")
        wrong = isinstance(value, bool) != (kind == "bool") or (kind == "int" and isinstance(value, float | str))
        if kind in PLAIN and value is not None and wrong:
            raise ValueError(f"{f.name} = {value!r}: {PLAIN[kind]} is needed")


def describe(thing: Any) -> Any:
    """A recipe as plain JSON data: dataclasses become dictionaries that carry their class and version, or its code.

    Settings added later are part of it only ``"where set"``, so that earlier records stay what they are.
    """
    if is_dataclass(thing):
        owner: Any = type(thing)
        found = {"type": owner.__name__, **({"version": thing.version} if hasattr(thing, "version") else {})}
        found |= {"code": code} if (code := own_code(owner)) else {}
        for f in fields(thing):
            value, kind = getattr(thing, f.name), f.metadata.get("recipe", True)
            if kind is True or (kind == "where set" and value is not None):
                is_rate = f.type in ("float", "float | None")  # of which 1 and 1.0 are one recipe
                found[f.name] = describe(float(value) if is_rate and type(value) is int else value)
        return found
    if isinstance(thing, (tuple, list)):
        return [describe(item) for item in thing]
    return _plain(thing)


def _plain(value: Any) -> Any:
    """A value as JSON knows it; a float to twelve digits: powers and logarithms end differently on other processors."""
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.12g}") if isinstance(value, float) else value


def difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """The first field in which two recipes differ, as ``"runs[0].model.width: 500 here, 256 there"``, or None."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        pairs = [(f"{path}.{key}" if path else key, ours.get(key), theirs.get(key)) for key in {**ours, **theirs}]
    elif isinstance(ours, list) and isinstance(theirs, list):
        pairs = [(f"{path}[{i}]", one, other) for i, (one, other) in enumerate(zip(ours, theirs, strict=False))]
        pairs.append((f"number of {path}", len(ours), len(theirs)))
    else:
        return None if ours == theirs else f"{path}: {ours!r} here, {theirs!r} there"
    return next(filter(None, (difference(one, other, at) for at, one, other in pairs)), None)


def coordinates(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """One list per recipe field, a value per run; names are the fields', the optimizer's class is ``optimizer``."""
    rows = [_flat(run) for run in runs]
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        missing = "" if any(isinstance(value, str) for value in values) else float("nan")
        columns[name] = [missing if value is None else value for value in values]
    return columns


def _flat(run: Run) -> dict[str, Any]:
    row = {name: getattr(run, name) for name in COLUMNS}
    for part, thing in (("task", run.task), ("model", run.model), ("optimizer", run.optimizer)):
        row[part] = type(thing).__name__
        for f in fields(thing):
            value = getattr(thing, f.name)
            if f.name == "betas":
                row["beta1"], row["beta2"] = value
            elif f.name == "groups":
                for group in value:
                    row[f"{group.prefix}_lr"], row[f"{group.prefix}_weight_decay"] = group.lr, group.weight_decay
            elif f.metadata.get("recipe", True) and isinstance(value, (int, float, str)):
                row[f.name] = int(value) if isinstance(value, bool) else value
    return {name: _plain(value) for name, value in row.items()}
