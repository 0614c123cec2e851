"""Training sets with a hole, Fig. 3, as the released scripts draw them, and Table 1 as printed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.measures import wave_power
from grokbook.measures.common import Array, ratio

Mask = NDArray[np.bool_]
Seed = np.random.Generator | int
HOLES = ("square", "strip")
#: (p, count, generator) -> (count,) which i of a sum are trained, modulo p
PLACES: dict[str, Callable[[int, int, np.random.Generator], NDArray[np.int64]]] = {
    "even": lambda p, count, draw: np.floor(p * (np.arange(count) + draw.random()) / max(count, 1)).astype(int),
    "alike": lambda p, count, draw: draw.permutation(p)[:count],
    "stratified": lambda p, count, draw: draw.integers(*cells(p, count, draw.random())),
    "multiplied": lambda p, count, draw: PLACES["even"](p, count, draw) * draw.choice(units(p)),
}
SPLITS = ("code", "text", *PLACES)


def hole(kind: str, p: int, size: int) -> Mask:
    """The pairs that table 1 keeps out of training.

    Args:
        kind: "square" for i <= size and j <= size, "strip" for i <= size and any j.
        size: the paper's k or t, from 0 to p - 2, so that something is left outside.
    """
    checks.one_of("kind", kind, HOLES)
    checks.integer("size", size, 0, p - 2)
    inside = np.arange(p) <= size
    return inside[:, None] & (inside if kind == "square" else np.ones(p, bool))


def draw_training_mask(
    p: int, train_fraction: float, *, holed: Mask | None = None, split: str = "code", generator: Seed
) -> Mask:
    """Draw a training set that avoids a hole: (p, p), true where trained.

    Args:
        train_fraction: alpha, above 0 and below 1.
        holed: (p, p) pairs that are never trained, such as a `hole`; None for no hole.
        split: how many to draw. "code", the released scripts: floor(alpha p**2) or all that the hole leaves;
            "text", section 6.1: floor(alpha n) of the n pairs that the hole leaves. "even", ours: as many as "code",
            without a hole, and of every sum modulo p alike, at evenly spaced i from a random one on. "alike": the same
            at random i; "stratified": at a random i of each of as many equal stretches; "multiplied": as "even", all i
            of a sum times one random number, so that they are evenly spaced in names of their own.
    """
    holed = np.zeros((p, p), bool) if holed is None else holed
    size = training_size(p, train_fraction, int(holed.sum()), split=split)
    if split in PLACES:
        if holed.any():
            raise ValueError(f'split = "{split}" draws from a whole table: it knows no hole')
        return _alike(p, size, np.random.default_rng(generator), lambda _, *how: PLACES[split](p, *how))
    mask = np.zeros(p * p, bool)
    mask[np.random.default_rng(generator).permutation(np.flatnonzero(~holed))[:size]] = True
    return mask.reshape(p, p)


def draw_circled_mask(p: int, train_fraction: float, circles: int, *, generator: Seed) -> Mask:
    """Draw an even training set of which some sums are even under one name of the numbers, others under another.

    Args:
        circles: among how many names times n, no two alike but for their sign, the sums are shared out. With one this
            is an even set of `draw_training_mask`, renamed.

    Returns:
        (p, p), true where trained; of each sum alike.
    """
    draw = np.random.default_rng(generator)
    names = draw.permutation(units(p)[: len(units(p)) // 2])[:circles]
    of = names[draw.permutation(p) % len(names)]
    return _alike(p, training_size(p, train_fraction), draw, lambda sum_, *how: PLACES["even"](p, *how) * of[sum_])


def units(p: int) -> NDArray[np.int64]:
    """What numbers modulo p can be multiplied by under other names: those below p without a common divisor."""
    return np.flatnonzero(np.gcd(np.arange(p), p) == 1)


def _alike(p: int, size: int, draw: np.random.Generator, places: Callable[..., NDArray[np.int64]]) -> Mask:
    """As many pairs of each sum modulo p, but for one, at the i that ``places(sum, count, draw)`` gives: (p, p)."""
    mask, more = np.zeros((p, p), bool), draw.permutation(p) < size % p
    for total in range(p):
        i = places(total, size // p + more[total], draw) % p
        mask[i, (total - i) % p] = True
    return mask


def cells(p: int, count: int, start: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the past-the-end i, (count,), of as many stretches as equal as they can be; they go past p."""
    edges = np.floor(p * (np.arange(count + 1) + start) / max(count, 1)).astype(np.int64)
    return edges[:-1], edges[1:]


def renamed(table: NDArray, times: int) -> NDArray:
    """A table of pairs (p, p) once every number i is called ``times`` i: addition stays addition."""
    old = pow(times, -1, len(table)) * np.arange(len(table)) % len(table)  # names
    return table[np.ix_(old, old)]


def by_sum(table: NDArray) -> NDArray:
    """A table of pairs (p, p) with a row a sum modulo p and a column an i."""
    sums, i = np.indices(table.shape)
    return table[i, (sums - i) % len(table)]


def shown_waves(mask: Mask) -> NDArray[np.float64]:
    """How much of each wave a training set (p, p) shows: (p // 2,), the frequencies 1, 2, ...

    It is the power of the mask along each sum, summed over sums: all alike in the mean of random sets.
    """
    return wave_power(by_sum(mask).T)


def power_shown(embedding: ArrayLike, mask: Mask, waves: int) -> Array:
    """Share of the power of embeddings (..., p, d) at so many waves, those that a training set (p, p) shows most."""
    power, most = wave_power(embedding), np.argsort(-shown_waves(mask), kind="stable")[:waves]
    return ratio(power[..., most].sum(-1), power.sum(-1))


def training_size(p: int, train_fraction: float, hole_size: int = 0, *, split: str = "code") -> int:
    """How many pairs `draw_training_mask` draws when ``hole_size`` of the p**2 are kept out."""
    checks.one_of("split", split, SPLITS)
    left = p * p - hole_size
    return min(left, math.floor(train_fraction * (left if split == "text" else p * p) + 1e-9))  # 0.29 * 100 is 29


class Row(NamedTuple):
    """A row of table 1, with p = 97, x + y and alpha = 0.3."""

    kind: str  #: of `hole`
    size: int  #: the paper's k or t
    highest: float  #: U-Acc, a fraction
    lowest: float  #: L-Acc, a fraction
    onset: int | None  #: GO-Epoch, in steps; None where the table says that it does not occur


TABLE_1 = (
    Row("square", 30, 0.9904, 0.9127, 1500),
    Row("square", 35, 0.9107, 0.8073, 1500),
    Row("square", 40, 0.8450, 0.8168, 1700),
    Row("square", 45, 0.7903, 0.7607, 1900),
    Row("square", 50, 0.7739, 0.6602, 3400),
    Row("square", 55, 0.6209, 0.5769, 2600),
    Row("square", 60, 0.5731, 0.5518, 2200),
    Row("strip", 67, 0.0756, 0.0358, None),
    Row("strip", 60, 0.3325, 0.1705, 900),
    Row("strip", 50, 0.8010, 0.7361, 1600),
    Row("strip", 40, 0.8989, 0.8480, 1300),
)
