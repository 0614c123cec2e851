"""Which training rows the minibatches of stacked members take, each member's from its own seed alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Tensor, torch
from grokbook.train.data import Data
from grokbook.train.experiment import Run


class Batches:
    """Minibatches of M members, whose training sets may differ in size: each is at its own epoch.

    The batches of the stack's longest epoch are drawn ahead at once. A batch that is shorter than the widest of its
    step is filled up with rows of weight zero; nothing is filled up where all training sets are equally large.

    Args:
        runs: the members, of one ``batch_size`` and ``last_batch``.
        data: theirs.
    """

    def __init__(self, runs: Sequence[Run], data: Data) -> None:
        self.runs, self.data = runs, data
        self.widths = [_widths(run) for run in runs]
        self.begin = self.step = self.width = -1
        self.drawn: list[tuple[Tensor, Tensor]] = []
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}  # by width: always the same memory, for a graph reads it

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Rows of the table and their weights in a member's mean, each (M, widest batch)."""
        if step != self.step:
            ahead = max(map(len, self.widths))
            if step // ahead * ahead != self.begin:
                self.begin = step // ahead * ahead
                self._draw(ahead)
            drawn, self.step = self.drawn[step - self.begin], step
            self.width = drawn[0].shape[1]
            if self.width not in self.taken:
                self.taken[self.width] = drawn[0].clone(), drawn[1].clone()
            for place, value in zip(self.taken[self.width], drawn, strict=True):
                place.copy_(value)
        return self.taken[self.width]

    def _draw(self, ahead: int) -> None:
        """The next ``ahead`` batches of everyone."""
        widest = self.runs[0].batch_size or 0
        rows = np.zeros((ahead, len(self.runs), widest), np.int64)
        weights = np.zeros(rows.shape)
        end = self.begin + ahead
        for member, (run, widths) in enumerate(zip(self.runs, self.widths, strict=True)):
            batches, used = len(widths), widths.sum()
            share = np.where(np.arange(widest) < widths[:, None], 1 / widths[:, None], 0)
            for epoch in range(self.begin // batches, -(-end // batches)):
                order = np.zeros(batches * widest, np.int64)
                order[:used] = self.data.trained[member][epoch_order(run, epoch)[:used]]
                first, last = max(epoch * batches, self.begin), min((epoch + 1) * batches, end)
                here, there = (slice(first - at, last - at) for at in (self.begin, epoch * batches))
                rows[here, member] = order.reshape(batches, widest)[there]
                weights[here, member] = share[there]
        labels, dtype = self.data.labels, self.data.dtype
        chosen, shares = torch.from_numpy(rows).to(labels.device), torch.from_numpy(weights).to(labels.device, dtype)
        width = (weights > 0).any(1).sum(-1).tolist()
        self.drawn = [(chosen[at, :, :wide], shares[at, :, :wide]) for at, wide in enumerate(width)]


def _widths(run: Run) -> NDArray[np.int64]:
    """How many samples each batch of an epoch has."""
    count, size = run.task.train_size, run.batch_size or 1
    return np.array([size] * (count // size) + [count % size] * (count % size > 0 and run.last_batch == "short"))


def epoch_order(run: Run, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch takes the training rows."""
    return np.random.default_rng([run.seed, 1, epoch]).permutation(run.task.train_size)
