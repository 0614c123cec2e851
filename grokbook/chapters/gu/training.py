"""How the networks of this chapter are trained: what the papers leave open follows the released scripts, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grokbook.chapters.gu.tasks import HoledTask
from grokbook.models.pair_transformer import PairTransformer
from grokbook.optim import WarmAdamW
from grokbook.train.experiment import Run

OPTIMIZER = WarmAdamW(lr=1e-3, weight_decay=1.0, betas=(0.9, 0.98))
TRACKED = ("med", "total_norm")  # MED in all its forms, and what it must beat
QUADRATIC = "n**2 + n*m + m**2"


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
