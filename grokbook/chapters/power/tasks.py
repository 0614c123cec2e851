"""The tables that this chapter's networks learn: an operation, a share of its rows, and labels that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.power.theory import operations
from grokbook.tasks import group_table


@dataclass(frozen=True)
class OperationTask:
    """Learn a binary operation from a random share of its table.

    Args:
        operation: a name that ``theory.operations.operation`` knows.
        p: how many symbols there are: the modulus, or the order of the group.
        train_fraction: share of the rows that is trained on, strictly between 0 and 1.
        group: of x.y and the like, as "S5"; of no other operation.
        outliers: so many training rows, drawn from the seed, are trained with the answer of another training row that
            is not theirs: Power et al. (2022), Fig. 6. Their code draws from all rows, and leaves some right by chance.

    Raises:
        ValueError: what ``theory.operations.operation`` refuses, a group where none is needed, nothing to train on or
            to test, or more outliers than training rows.
    """

    operation: str
    p: int = 97
    train_fraction: float = 0.5
    group: str | None = field(default=None, metadata={"recipe": "where set"})
    outliers: int | None = field(default=None, metadata={"recipe": "where set"})
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (self.operation in operations.OF_GROUPS) != (self.group is not None):
            raise ValueError(f"group = {self.group!r}: x.y and the like need a group, other operations have none")
        if self.group is not None and len(group_table(self.group)) != self.p:
            raise ValueError(f"p = {self.p}: {self.group} has {len(group_table(self.group))} elements")
        if not 0 <= (self.outliers or 0) <= self.train_size:
            raise ValueError(f"outliers = {self.outliers}: from 0 to the {self.train_size} training rows are allowed")

    @property
    def split_fields(self) -> tuple[str, ...]:
        """Operations but division, which has fewer rows, also share their inputs."""
        return ("train_fraction", "outliers", *["operation"] * (self.operation != "x/y"))

    @property
    def train_size(self) -> int:
        """Number of rows trained on."""
        return operations.train_size(self.operation, len(self.table()[1]), self.train_fraction)

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows (rows, 2), the first operand outer, and their answers (rows,)."""
        return _table(self.operation, self.p, self.group)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows a seed trains on, (rows,); a larger share has all rows of a smaller one."""
        mask = np.zeros(len(self.table()[1]), bool)
        mask[self._order(seed)[: self.train_size]] = True
        return mask

    def train_labels(self, seed: int) -> NDArray[np.int64] | None:
        """The answers (rows,) that a seed trains with, where some are wrong."""
        if not self.outliers:
            return None
        labels, trained = self.table()[1], self._order(seed)[: self.train_size]
        generator = np.random.default_rng([seed, 6])
        wrong = generator.permutation(trained)[: self.outliers]
        given = labels.copy()
        while len(left := wrong[given[wrong] == labels[wrong]]):
            given[left] = labels[generator.choice(trained, len(left))]
        return given

    def partners(self, group: Literal["mirror", "all"]) -> NDArray[np.int64]:
        """For every row those that a symmetry gives the same answer, (rows, k), -1 where none: ``theory``."""
        return _partners(self.operation, self.p, self.group, group)

    def alone(self, trained: NDArray[np.bool_], group: Literal["mirror", "all"]) -> NDArray[np.bool_]:
        """The held-out rows, (rows,), none of whose partners is trained on."""
        return ~trained & ~np.append(trained, False)[self.partners(group)].any(-1)  # a partner -1 is not trained

    def _order(self, seed: int) -> NDArray[np.int64]:
        return np.random.default_rng([seed, 0]).permutation(len(self.table()[1]))


def of(operation: str, p: int, group: str, train_fraction: float, outliers: int | None = None) -> OperationTask:
    """The task of an operation, modulo p or on a group, whichever it needs."""
    needs_group = operation in operations.OF_GROUPS
    size, name = (len(group_table(group)), group) if needs_group else (p, None)
    return OperationTask(operation, size, train_fraction, name, outliers)


@cache
def _table(name: str, p: int, group: str | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return operations.operation(name, p, group=group or "S5")  # where it has none, none is looked at


@cache
def _partners(name: str, p: int, group: str | None, which: Literal["mirror", "all"]) -> NDArray[np.int64]:
    return operations.partners(name, p, group=which, of=group or "S5")
