"""Two arms of a comparison, a few networks each: by which factor one is later, and how sure the seeds make that."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grokbook.curves import median


class Factor(NamedTuple):
    """By which factor the times of one arm are later than those of another."""

    low: float  #: lower end of the interval over seeds; nan where they are too few for one
    middle: float  #: ratio of the medians
    high: float


def factor(late: ArrayLike, early: ArrayLike) -> Factor:
    """The ratio of two arms' times, with the interval that the order of the seeds allows, 90 %.

    The interval is that of Hodges and Lehmann: the factors with which the rank test of Mann and Whitney would find
    nothing, at 5 % on each side. Fewer than three networks an arm exclude no factor: its ends are nan.

    Args:
        late, early: (n,) and (m,) times above 0; infinity is "never". Two that never come count as equally late.
    """
    a, b = np.asarray(late, float), np.asarray(early, float)
    n, m = len(a), len(b)
    with np.errstate(invalid="ignore"):
        ratios = np.sort(np.nan_to_num((a[:, None] / b).ravel(), nan=1.0, posinf=np.inf))
        middle = float(np.nan_to_num(median(a) / median(b), nan=1.0, posinf=np.inf))
    least = n * (n - 1) // 2  # pairs won, over all orders of n + m networks that differ in nothing
    won = np.array([sum(places) - least for places in combinations(range(n + m), n)])
    cut = sum(np.mean(won <= k) <= 0.05 for k in range(n * m))
    if not cut:
        return Factor(np.nan, middle, np.nan)
    return Factor(float(ratios[cut - 1]), middle, float(ratios[n * m - cut]))
