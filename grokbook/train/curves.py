"""What was measured of a stack so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.train.experiment import Watch
from grokbook.train.monitor import MEASURES, Measured
from grokbook.train.state import State


@dataclass
class Curves:
    """What was measured: ``values`` name -> (M, evaluations) and ``kept`` name -> {(member, snapshot): array}."""

    steps: NDArray[np.int64]
    members: int
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    kept: dict[str, dict[tuple[int, int], NDArray[Any]]] = field(default_factory=dict)
    kept_at: dict[tuple[int, int], int] = field(default_factory=dict)
    stopped_at: dict[int, int] = field(default_factory=dict)
    diverged: dict[int, int] = field(default_factory=dict)
    reached: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.due = frozenset(self.steps.tolist())

    def write(self, state: State, numbers: dict[str, NDArray[np.float64]], positions: Sequence[int]) -> None:
        """Note ``numbers`` (each (M,)) of the members at some positions, at the state's step."""
        column = int(np.searchsorted(self.steps, state.step))
        for name, value in numbers.items():
            table = self.values.setdefault(name, np.full((self.members, len(self.steps)), np.nan))
            table[np.array(state.members)[positions], column] = value[positions]

    def watch(self, state: State, numbers: dict[str, NDArray[np.float64]], watch: Watch) -> NDArray[np.bool_]:
        """Note who has reached which threshold by now; who has reached all, (M,)."""
        for name, threshold in watch.thresholds:
            table = self.reached.setdefault(name, np.full(self.members, np.nan))
            first = np.isnan(table[state.members]) & (numbers[name] >= threshold)
            table[np.array(state.members)[first]] = state.step
        times = np.stack([self.reached[name][state.members] for name, _ in watch.thresholds])
        return np.asarray(np.isfinite(times).all(0))

    def snapshot(self, state: State, positions: Sequence[int], number: int, keep: Sequence[str]) -> None:
        """Keep arrays of some members as snapshot ``number``."""
        measured = state.measured()
        for name in keep:
            values = kept_values(name, measured)
            for i in positions:
                self.kept.setdefault(name, {})[state.members[i], number] = np.array(values[i])  # the host may share it
        for i in positions:
            self.kept_at[state.members[i], number] = state.step


def kept_values(name: str, measured: Measured) -> NDArray[Any]:
    """The array called ``name`` in ``Experiment.keep``, (M, ...)."""
    if name in measured.params:
        return measured.params[name]
    if name in MEASURES:
        (values,) = MEASURES[name](measured).values()
        return values
    found = re.fullmatch(r"(output|activation|preactivation)\[(\d+)\]", name)
    if not found:
        allowed = f"a parameter ({', '.join(measured.params)}), output[q], activation[i], preactivation[i] or a measure"
        raise ValueError(f"keep = {name!r}: {allowed}")
    table = getattr(measured, found[1] + "s")()[..., int(found[2])]  # (M, rows)
    side = round(table.shape[-1] ** 0.5)
    return table.reshape(len(table), side, side)
