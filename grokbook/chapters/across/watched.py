"""The measures that are compared. A new one is a function here: it is then logged, and appears in table and figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapters.across.zoo import Family, family_of
from grokbook.lazy import torch
from grokbook.measures.common import Array
from grokbook.train.monitor import MEASURES, Measured, Numbers, host

EPSILON = 1e-3  # half the side of the box of sharpness, over |w| + 1: Keskar et al. (2016)
COUPLES = 4_000  # parallelograms looked at, of at most some hundred thousand
ROWS, CORNERS, RADIUS = 256, 8, 0.05  # of local complexity; the radius over the size of a symbol's vector


@dataclass(frozen=True)
class Watched:
    """A measure: its name, whose it is, and a function of a family and of members at one step that gives (M,).

    A function returns nan where its measure has no meaning for a family. A ``share`` lies between 0 and 1; all others
    are positive and judged by their logarithm.
    """

    name: str
    source: str
    function: Callable[[Family, Measured], Array]
    share: bool = False

    @property
    def log(self) -> str:
        """What it is called in records."""
        return f"across_{self.function.__name__}"


WATCHED: dict[str, Watched] = {}


def watch(
    name: str, source: str, *, share: bool = False
) -> Callable[[Callable[[Family, Measured], Array]], Callable[..., Array]]:
    """Enter a measure."""

    def enter(function: Callable[[Family, Measured], Array]) -> Callable[..., Array]:
        one = WATCHED[name] = Watched(name, source, function, share)

        def logged(now: Measured) -> Numbers:
            return {one.log: function(family_of(now.model), now)}

        MEASURES[one.log] = logged
        return function

    return enter


def _nowhere(now: Measured) -> Array:
    return np.full(len(now.in_train), np.nan)


def _symbols(family: Family, now: Measured) -> Array:
    return np.asarray(family.symbols(now), float)


@watch("MED", "Gu et al. (2025)")
def med(family: Family, now: Measured) -> Array:
    """How far neighbours lie apart."""
    return measures.main_embedding_difference(_symbols(family, now), cyclic=family.cyclic).mean(1)


@watch("MED, permuted", "its control")
def med_permuted(family: Family, now: Measured) -> Array:
    """MED after a random relabelling: what it owes to the size of vectors."""
    return measures.permuted_embedding_difference(_symbols(family, now)).mean(1)


@watch("MED over norm", "its control")
def med_over_norm(family: Family, now: Measured) -> Array:
    """MED in units of the vectors' size."""
    symbols = _symbols(family, now)
    distance = measures.main_embedding_difference(symbols, cyclic=family.cyclic)
    return (distance / np.maximum(measures.embedding_norm(symbols), 1e-30)).mean(1)


@watch("RQI", "Liu et al. (2022)", share=True)
def rqi(family: Family, now: Measured) -> Array:
    """The share of parallelograms that close, as vectors."""
    return _closed(_symbols(family, now), family.cyclic)


@watch("RQI, mod p", "Liu et al. (2022), generalised", share=True)
def rqi_axis(family: Family, now: Measured) -> Array:
    """The share of parallelograms whose two sums lie on one axis, which a ring can close."""
    symbols = _symbols(family, now)
    return _closed(symbols, True, axis=True) if family.cyclic and symbols.shape[-1] > 1 else _nowhere(now)


def score_of_rings(rings: int, *, axis: bool = True) -> float:
    """RQI, mod p, of 59 symbols that lie evenly on so many circles at once, each of another frequency; or the RQI."""
    angles = 2 * np.pi * np.outer(np.arange(59), 3 + 4 * np.arange(rings)) / 59
    return float(_closed(np.concatenate([np.cos(angles), np.sin(angles)], 1)[None], True, axis=axis))


@cache
def _couples(p: int, cyclic: bool) -> NDArray[np.int64]:
    """Operands (couple, 4) i, j, m, n of some parallelograms i + j = m + n, always the same."""
    sums = measures.sums_of(p, modular=cyclic)
    chosen = sums.couples
    if len(chosen) > COUPLES:
        chosen = chosen[np.random.default_rng(0).permutation(len(chosen))[:COUPLES]]
    return sums.pairs[chosen].reshape(len(chosen), 4)


def _closed(symbols: Array, cyclic: bool, *, axis: bool = False) -> Array:
    i, j, m, n = _couples(symbols.shape[-2], cyclic).T
    scaled = measures.standardised(symbols)
    one, other = scaled[..., i, :] + scaled[..., j, :], scaled[..., m, :] + scaled[..., n, :]
    if axis:
        lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
        cosine = (one * other).sum(-1) / np.maximum(lengths, 1e-30)
        gaps = np.sqrt(np.maximum(0, 1 - cosine**2))
    else:
        gaps = np.sqrt(np.square(one - other).mean(-1))
    return (gaps <= 0.1).mean((-2, -1))


@watch("IPR", "Gromov (2023)", share=True)
def ipr(family: Family, now: Measured) -> Array:
    """How few frequencies each direction of the symbols' vectors has."""
    if not family.cyclic:
        return _nowhere(now)
    waves = measures.fourier_power(np.swapaxes(_symbols(family, now), -1, -2))
    return measures.inverse_participation_ratio(waves).mean((-2, -1))


@watch("strongest frequencies", "Gromov (2023), over all directions", share=True)
def concentration(family: Family, now: Measured) -> Array:
    """The share of the power of all directions together that the five strongest frequencies hold."""
    if not family.cyclic:
        return _nowhere(now)
    power = measures.wave_power(_symbols(family, now))
    return (np.sort(power, -1)[..., -5:].sum(-1) / np.maximum(power.sum(-1), 1e-30)).mean(1)


@watch("effective dimension", "Liu et al. (2022)")
def effective_dimension(family: Family, now: Measured) -> Array:
    """How many principal components the symbols fill."""
    symbols = _symbols(family, now)
    return measures.effective_dimension(symbols).mean(1) if symbols.shape[-1] > 1 else _nowhere(now)


def _norm(values: Mapping[str, Array]) -> Array:
    squares = [np.square(value.reshape(len(value), -1), dtype=np.float64).sum(1) for value in values.values()]
    return np.sqrt(np.sum(squares, axis=0))


@watch("weight norm", "Liu et al. (2023)")
def weight_norm(family: Family, now: Measured) -> Array:
    """The norm of all params."""
    return _norm(now.params)


@watch("norm of the symbols", "Liu et al. (2023), by layer")
def symbol_norm(family: Family, now: Measured) -> Array:
    """The norm of the first layer."""
    return measures.embedding_norm(_symbols(family, now)).mean(1)


@watch("norm of the readout", "Liu et al. (2023), by layer")
def readout_norm(family: Family, now: Measured) -> Array:
    """The norm of the last layer."""
    return _norm({"": now.params[family.readout]})


@watch("gradient norm", "Power et al. (2022), a common log")
def gradient_norm(family: Family, now: Measured) -> Array:
    """The norm of the training loss's gradient, over the next batch."""
    return _norm(host(now.gradients()))


@watch("sharpness", "Power et al. (2022), after Keskar et al. (2016)")
def sharpness(family: Family, now: Measured) -> Array:
    """By how many per cent the training loss grows in the corner of Keskar's box that its gradient points to.

    One step of the maximiser that Power's Fig. 7 has ten of: a lower bound, which fits into every evaluation.
    """
    slope = host(now.gradients())
    corner = {
        name: value + EPSILON * (np.abs(value) + 1) * np.sign(slope.get(name, 0.0)).astype(value.dtype)
        for name, value in now.params.items()
    }
    before, after = now.losses(now.params), now.losses(corner)
    return 100 * np.maximum(after - before, 0) / (1 + before)


@watch("local complexity", "Humayun et al. (2024)", share=True)
def local_complexity(family: Family, now: Measured) -> Array:
    """The share of ReLUs that change side within a small ball around a row's symbols, on average over rows."""
    if not family.relus:
        return _nowhere(now)
    draw = np.random.default_rng(0)
    inputs = now.tasks[0].table()[0]
    rows = now.tensor(inputs[draw.permutation(len(inputs))[:ROWS]])
    table = now.params["W_E"]
    size = np.sqrt(np.square(table).mean(tuple(range(1, table.ndim)), keepdims=True))
    signs = []
    for _ in range(CORNERS):
        moved = table + (RADIUS * size * draw.normal(size=table.shape[1:])).astype(table.dtype)
        with torch.no_grad():
            inside = now.weights | {"W_E": now.tensor(moved)}
            active = now.model.activations(inside, rows.expand(len(table), *rows.shape))
        signs.append(active.cpu().numpy() > 0)
    stacked = np.stack(signs)
    return (stacked.any(0) & ~stacked.all(0)).mean((1, 2))
