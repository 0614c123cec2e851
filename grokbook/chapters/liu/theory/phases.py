"""The four phases of learning, table 1 of Liu et al. (2022), from when accuracies were reached."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: In the order of their codes. The last is not in the table: it happens at the edge of a budget and on small images.
PHASES = ("comprehension", "grokking", "memorisation", "confusion", "validation only")

GAP = 1_000  # optimizer steps between training and validation from which on it is called grokking
THRESHOLD = 0.9


def phase_of(t_train: ArrayLike, t_val: ArrayLike, *, budget: float = np.inf, gap: float = GAP) -> NDArray[np.int64]:
    """The phase, as an index into `PHASES`, from the steps at which training and validation accuracy were reached.

    Args:
        t_train, t_val: steps, nan if never; they broadcast.
        budget: later than this counts as never.
        gap: the least difference that is grokking; validation before training is comprehension.

    Reference: table 1; where a threshold is not stated there, see the errata.
    """
    t_train, t_val = np.broadcast_arrays(np.asarray(t_train, float), np.asarray(t_val, float))
    with np.errstate(invalid="ignore"):
        trained, validated = t_train <= budget, t_val <= budget
        late = t_val - t_train >= gap
    return np.select([trained & validated & ~late, trained & validated, trained, ~validated], [0, 1, 2, 3], 4)


def majority(phases: ArrayLike, axis: int = -1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most frequent phase along an axis, the earlier of two equally frequent ones, and the share that has it."""
    counts = np.stack([(np.asarray(phases) == code).mean(axis) for code in range(len(PHASES))])
    return counts.argmax(0), counts.max(0)
