"""How the networks of this chapter are trained: what the papers leave open follows the released scripts, once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.gu.tasks import HoledTask
from grokbook.models.pair_transformer import PairTransformer
from grokbook.optim import WarmAdamW
from grokbook.train.experiment import Run, Schedule

OPTIMIZER = WarmAdamW(lr=1e-3, weight_decay=1.0, betas=(0.9, 0.98))
TRACKED = ("med", "total_norm")  # MED in all its forms, and what it must beat
QUADRATIC = "n**2 + n*m + m**2"


@dataclass(frozen=True)
class WindowedSchedule(Schedule):
    """As ``Schedule``, and at each of ``length`` steps in a row in ``windows`` windows that are spread evenly.

    Window i of n ends at the step (i + 1) / n of the way, so that what one step changes can be seen all along.
    """

    windows: int = 10
    length: int = 200

    def steps(self, last: int) -> NDArray[np.int64]:
        """The steps at which a run of ``last`` steps is measured, ascending."""
        ends = np.linspace(0, last, self.windows + 1).round().astype(np.int64)[1:]
        inside = np.clip(ends[:, None] - np.arange(self.length, -1, -1), 0, last)  # (windows, length + 1)
        return np.unique(np.concatenate([super().steps(last), inside.ravel()]))


def condition(label: str, p: int, alpha: float, d: int, steps: int, f: str = "n + m", **model: Any) -> tuple:
    """A transformer of width d on a share alpha of the table of f without a hole, as ``every`` takes it."""
    return label, HoledTask(p, f, alpha), PairTransformer(p, d, **model), steps


def every(seeds: int, conditions: Iterable[tuple[str, Any, Any, int]]) -> tuple[Run, ...]:
    """Runs of conditions (label, task, model, steps), all of one seed before those of the next."""
    conditions = list(conditions)
    return tuple(
        Run(task, model, OPTIMIZER, steps, seed, "cross_entropy", label=label)
        for seed in range(seeds)
        for label, task, model, steps in conditions
    )


def scaled(sizes: Iterable[int], p: int) -> tuple[int, ...]:
    """Sizes of holes and offsets, given for p = 97, at another modulus."""
    return tuple(dict.fromkeys(round(size * p / 97) for size in sizes))
