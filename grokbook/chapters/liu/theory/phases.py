"""The four phases of learning, table 1 of Liu et al. (2022), from when accuracies were reached."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: In the order of their codes. The last two are not in the table: held-out samples without the training set, which
#: happens at the edge of a budget and on small images, and runs of one cell that have no majority.
PHASES = ("comprehension", "grokking", "memorisation", "confusion", "held out only", "no majority")
COMPREHENSION, GROKKING, MEMORISATION, CONFUSION, HELD_OUT_ONLY, NO_MAJORITY = range(6)

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
    """The phase of more than half along an axis, else "no majority", and the share that has the most frequent one."""
    shares = np.stack([(np.asarray(phases) == code).mean(axis) for code in range(len(PHASES))])
    return np.where(shares.max(0) > 0.5, shares.argmax(0), NO_MAJORITY), shares.max(0)
