"""Timing on a machine that others use too: processor seconds, alternating rounds, medians."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import torch

Step = Callable[[], object]

SIDES = (512, 1024, 2048)  # of the square products whose best rate is called the peak


def products() -> dict[int, Step]:
    """Square matrix products, the yardstick of what the machine can do."""
    pairs = {side: (torch.randn(side, side), torch.randn(side, side), torch.empty(side, side)) for side in SIDES}
    return {side: lambda pair=pair: torch.mm(pair[0], pair[1], out=pair[2]) for side, pair in pairs.items()}  # type: ignore[misc]


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


def peak(taken: Mapping[str, np.ndarray]) -> float:
    """FLOP/s of the best of the square products."""
    return max(2 * side**3 / float(np.median(taken[f"product {side}"])) for side in SIDES)
