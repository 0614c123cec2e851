"""Timing on a machine that others use too: processor seconds on one core, alternating rounds, the best of them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import torch

from grokbook.train import products

Step = Callable[[], object]

# Kernels by what they do, as parts of PyTorch's names; whatever is left copies, adds, looks up, or is calling.
KINDS = {
    "products": ("mm", "conv"),
    "optimizer": ("fused_adam",),
    "functions": ("tanh", "sigmoid", "relu", "clamp", "threshold", "softmax", "norm"),
}
SIDES = (512, 1024, 2048)  # of the square products whose best rate is called the peak


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Stay on one core while it lasts, where the system lets us: its cache is then ours."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def by(library: str, step: Step) -> Step:
    """A step whose products are by this library."""

    def stepped() -> object:
        with products.using(library):
            return step()

    return stepped


def libraries() -> list[str]:
    """Those at hand that multiply in full float32."""
    return [products.DEFAULT, *([products.ONEDNN] if products.has_onednn() else [])]


def squares() -> dict[str, Step]:
    """Square products by every library in full float32, the yardstick of what the machine can do."""
    pairs = {side: (torch.randn(side, side), torch.randn(side, side), torch.empty(side, side)) for side in SIDES}
    steps = {side: partial(torch.mm, a, b, out=out) for side, (a, b, out) in pairs.items()}
    return {f"product {side} {one}": by(one, steps[side]) for side in SIDES for one in libraries()}


def cpu_seconds(step: Step, least: float = 0.15) -> float:
    """Processor seconds of one call, over as many calls as take some time: waiting for others is not counted."""
    calls, began = 0, time.process_time()
    while (spent := time.process_time() - began) < least:
        step()
        calls += 1
    return spent / calls


def alternate(steps: Mapping[str, Step], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each step in each of some rounds in which all take turns, so that all meet the same weather."""
    for step in steps.values():
        step()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            taken[name].append(cpu_seconds(step))
    return {name: np.array(seconds) for name, seconds in taken.items()}


def shares(step: Step, calls: int = 20) -> dict[str, float]:
    """Shares of a step's processor time in each of ``KINDS`` of kernel, as PyTorch's profiler sees it."""
    from torch.profiler import ProfilerActivity, profile

    step()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(calls):
            step()
    spent = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
    return {
        kind: sum(time for name, time in spent.items() if any(part in name for part in parts)) / sum(spent.values())
        for kind, parts in KINDS.items()
    }


def peak(taken: Mapping[str, np.ndarray]) -> float:
    """FLOP/s of the best of the square products, by whatever library."""
    return max(2 * int(name.split()[1]) ** 3 / seconds.min() for name, seconds in taken.items() if "product" in name)
