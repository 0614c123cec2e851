"""The four phases of learning, table 1 of Liu et al. (2022), from when accuracies were reached."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.liu.theory import ideal_accuracy
from grokbook.firstform.claims import Table, plain_table
from grokbook.tasks import AdditionTask

#: In the order of their codes. The last is not in the table: it happens at the edge of a budget and on small images.
PHASES = ("comprehension", "grokking", "memorisation", "confusion", "validation only")

GAP = 1_000  # optimizer steps between training and validation from which on it is called grokking
THRESHOLD = 0.9


def table() -> Table:
    """Table 1: the phases by when 90 % of the training and of the held-out samples are right."""
    rows = [
        ["comprehension", "reached", "reached", f"below {GAP:,} steps"],
        ["grokking", "reached", "reached", f"{GAP:,} steps or more"],
        ["memorisation", "reached", "never", "–"],
        ["confusion", "never", "never", "–"],
    ]
    head = ("Phase", "Training samples", "Held-out samples", "Delay between them")
    return plain_table(head, rows, "The four phases (the paper's Table 1)", cards=True)


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


@lru_cache(maxsize=32)
def solvable_seeds(p: int, train_size: int, number: int, target_size: int = 30) -> tuple[int, ...]:
    """The first seeds whose training set determines every held-out answer: an ideal model has validation accuracy 1.

    Sums with a single sample cannot be inferred, so a random set often leaves even the line with errors. Choosing
    needs the training sets alone, no training. ``target_size`` is the task's: targets are drawn before the set.

    Raises:
        ValueError: among a thousand seeds there are not so many.
    """
    found: list[int] = []
    for seed in count():
        if len(found) == number:
            return tuple(found)
        if seed == 1_000:
            raise ValueError(
                f"train_size = {train_size} of p = {p}: {len(found)} of {seed} random training sets determine every "
                f"held-out answer, {number} are needed; larger training sets do so more often"
            )
        if ideal_accuracy(AdditionTask(p, train_size, target_size).train_pairs(seed), p, held_out=True) == 1:
            found.append(seed)
    raise AssertionError
