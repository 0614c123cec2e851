"""What the families of the zoo have in common: where networks keep their symbols, a random table, how one is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from grokbook.optim import Optimizer
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.monitor import Measured


@dataclass(frozen=True)
class Family:
    """Networks of one paper, as measures see them."""

    name: str  #: of the experiment and of its room
    title: str  #: on the page
    model: type  #: the class of its networks
    #: The vectors of the symbols in order, (M, tables, symbols, d); a table for each operand that has its own.
    symbols: Callable[[Measured], NDArray[Any]]
    cyclic: bool  #: whether the order of the symbols closes to a ring
    readout: str  #: the name of the params of the last layer
    relus: bool = False  #: whether the model's ``activations`` are those of ReLUs, and its symbols the param ``W_E``

    @property
    def paper(self) -> str:
        """Whose network it is, the first word of its title."""
        return self.title.partition("'")[0]


FAMILIES: dict[str, Family] = {}


def enter(family: Family) -> Family:
    """Make a family known to measures, table and figures."""
    FAMILIES[family.name] = family
    return family


def family_of(model: Any) -> Family:
    """The family that a model belongs to."""
    return next(one for one in FAMILIES.values() if isinstance(model, one.model))


def experiment(
    family: Family,
    conditions: Iterable[tuple[str, Any, Any, Optimizer]],
    seeds: int,
    steps: int,
    loss: str = "cross_entropy",
    batch: Callable[[int], int] | None = None,
) -> Experiment:
    """All measures on conditions (label, task, model, optimizer), each with all seeds, on one grid of steps.

    ``batch`` gives the size of a batch from that of the training set, whose last batch is short; None takes it whole.
    """
    from grokbook.chapters.across.watched import WATCHED

    names, last = tuple(one.log for one in WATCHED.values()), "short" if batch else None
    runs = tuple(
        Run(task, model, how, steps, seed, loss, batch and batch(task.train_size), label, last)
        for label, task, model, how in conditions
        for seed in range(seeds)
    )
    return Experiment(f"across/{family.name}", runs, Schedule(log=60, every=max(1, steps // 60)), names)


@dataclass(frozen=True)
class Shuffled:
    """A task with the answers of all its rows dealt anew, once for all seeds: nothing to understand."""

    task: Any  #: whose inputs, split and number of answers stay
    version: ClassVar[int] = 1

    @property
    def train_size(self) -> int:
        """How many rows a seed trains on."""
        return self.task.train_size

    def table(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Inputs (rows, ...) and dealt answers (rows,)."""
        inputs, labels = self.task.table()
        return inputs, np.random.default_rng(0).permutation(labels)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows a seed trains on, (rows,)."""
        return self.task.in_train(seed)

    def targets(self, seed: int) -> NDArray[np.float64] | None:
        """What outputs are to be for each answer, as the task has it."""
        return self.task.targets(seed) if hasattr(self.task, "targets") else None
