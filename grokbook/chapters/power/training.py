"""How the networks of this chapter are trained: the paper's appendix A.1.2 and, where that is silent, its code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.power import Settings
from grokbook.chapters.power.tasks import of
from grokbook.models.decoder import Decoder
from grokbook.optim import WarmAdamW
from grokbook.train.experiment import Experiment, Run, Schedule, Stop


def batch(rows: int) -> int:
    """The smaller of 512 and half of a training set."""
    return min(512, -(-rows // 2))


def adamw(lr: float = 1e-3, decay: float = 1.0, **variant: float | bool) -> WarmAdamW:
    """AdamW with the rate growing over ten updates; without decay it is Adam."""
    return WarmAdamW(lr, decay, (0.9, 0.98), **variant)  # type: ignore[arg-type]


ADAMW, ADAM = adamw(), adamw(decay=0.0)


def run(
    s: Settings,
    operation: str,
    fraction: float,
    optimizer: WarmAdamW,
    steps: int,
    seed: int,
    label: str,
    *,
    outliers: int | None = None,
    full_batch: bool = False,
    **model: Any,
) -> Run:
    """One network, on the batches of ``batch``, with the rest of an epoch as a short one, or on its whole set."""
    task = of(operation, s.p, s.group, fraction, outliers)
    net = Decoder(task.p, s.d_model, s.layers, s.heads, **model)
    size, last = (None, None) if full_batch else (batch(task.train_size), "short")
    return Run(task, net, optimizer, steps, seed, "cross_entropy", size, label, last)


def even(whole: Experiment, name: str, **fields: Any) -> Experiment:
    """The same networks, whose epochs leave out the rows that their last, short batch would have."""
    runs = tuple(replace(one, last_batch=None, **fields) for one in whole.runs)
    return replace(whole, name=f"power/{name}", runs=runs)


@dataclass(frozen=True)
class EpochSchedule(Schedule):
    """After each epoch of ``every`` updates, from the fiftieth on after those that are 2 % later each time: the code's.

    Its epochs have as many updates as the training set has batches: ten for half of a table modulo 97.
    """

    log: int = 0
    every: int = 10
    growth: float = 1.02

    def steps(self, last: int) -> NDArray[np.int64]:
        """The steps at which a run of ``last`` steps is measured, ascending."""
        epochs = [0]
        while epochs[-1] * self.every < last:
            epochs.append(max(epochs[-1] + 1, int(epochs[-1] * self.growth)))
        return np.array([*(epoch * self.every for epoch in epochs[:-1]), last], np.int64)


GRID = EpochSchedule()
AT_99 = Stop()  # a network leaves at the first evaluation with 99 % of the held-out rows right
