"""What a training costs, in floating point operations, and how long a machine would take.

Nothing here is timed. The rate of a machine is given, measured by ``python -m benchmarks`` or assumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from typing import Any

from grokbook import chapters
from grokbook.lazy import torch
from grokbook.train import products
from grokbook.train.contract import optional
from grokbook.train.experiment import Experiment, Run, describe
from grokbook.train.records import ROOT
from grokbook.train.state import State

COUNTS = ROOT / "benchmarks" / "flops.json"


@dataclass(frozen=True)
class Machine:
    """One worker."""

    rate: float  #: floating point operations a second that its matrix products sustain in training
    step_seconds: float = 0.0  #: the least that a step takes, however small: the time to launch it
    block: int | None = 1  #: members it trains side by side; None is all of a shape

    def seconds(self, shard: Experiment) -> float:
        """How long it takes to train a shard, if no member leaves early."""
        return max(work(shard) / self.rate, max(run.steps for run in shard.runs) * self.step_seconds)


def work(experiment: Experiment, held: Container[int] = ()) -> float:
    """Floating point operations of its runs, but for those at some places, if none leaves early; no evaluations."""
    return float(sum(run.steps * flops(run) for i, run in enumerate(experiment.runs) if i not in held))


def flops(run: Run) -> int:
    """Floating point operations of the matrix products of one step of one member: stated, counted before, or now."""
    if of_step := stated(run):
        return of_step
    known, name = counted(), shape(run)
    if name not in known:
        known[name] = count_now(run)
    return known[name]


def stated(run: Run) -> int | None:
    """The same as the model states it, None where it does not."""
    of_sample = optional(run.model, "flops_per_sample")
    return of_sample and of_sample * run.samples


def shape(run: Run) -> str:
    """A name for what the cost of a step depends on: not the seed, nor any rate."""
    return _shape(run.task, run.model, run.loss, run.batch_size)


@cache
def _shape(task: Any, model: Any, *others: Any) -> str:
    return hashlib.sha256(repr((describe(task), describe(model), *others)).encode()).hexdigest()[:16]


@cache
def counted() -> dict[str, int]:
    """What ``python -m benchmarks flops`` has counted, by shape."""
    return dict(json.loads(COUNTS.read_text())) if COUNTS.exists() else {}


def count_now(run: Run) -> int:
    """Count a step's operations by taking one."""
    return products.products_of(State.start([run], torch.device("cpu"), torch.float32).gradients)[1]


def experiments() -> dict[str, Experiment]:
    """Every experiment of the book at the settings of its figure, by name."""
    return {name: entry.make() for name, entry in chapters.experiments().items()}
