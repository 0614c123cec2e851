"""The two-layer network on every pair, eqs. 1, 2 and 4, its weights made by hand or trained."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import measures
from grokbook.chapters.gromov.theory.weights import answers, cosine_weights
from grokbook.curves import LEARNT, smallest

Activation = Callable[[NDArray], NDArray]

BLOCK = 1 << 18  # hidden values held at once: 2 MB, so that they stay in the cache however wide the network


def _gelu(x: NDArray) -> NDArray:
    from scipy.special import erf  # type: ignore[import-untyped]

    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


#: Activations of figure 5 and a few more; those whose even part is constant cannot work.
ACTIVATIONS: Mapping[str, Activation] = {
    "quadratic": lambda x: x * x,
    "quartic": lambda x: (x * x) ** 2,
    "cubic": lambda x: x * x * x,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "relu_squared": lambda x: np.maximum(x, 0) ** 2,
    "gelu": _gelu,
    "silu": lambda x: x * (0.5 + 0.5 * np.tanh(0.5 * x)),
    "exp": np.exp,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),  # does not overflow
}


def network(
    W_in: ArrayLike, W_out: ArrayLike, activation: str | Activation = "quadratic", *, factor: float | None = None
) -> NDArray:
    """(p, p, p) outputs of the two-layer network for pairs (n, m) and answers q, eqs. 1, 2 and 4.

    Args:
        W_in, W_out: (width, 2p) and (p, width) weights, whose precision is that of the outputs.
        activation: a key of `ACTIVATIONS` or a function of an array.
        factor: factor of the output; None is the paper's 2 / width.
    """
    p = len(np.asarray(W_out))
    blocks = _outputs(W_in, W_out, activation, np.arange(p * p), factor)
    return np.concatenate([found for _, found in blocks]).reshape(p, p, p)


def accuracy(
    W_in: ArrayLike,
    W_out: ArrayLike,
    labels: ArrayLike | None = None,
    activation: str | Activation = "quadratic",
    *,
    pairs: ArrayLike | None = None,
) -> float:
    """The fraction of pairs whose largest output is at the right answer.

    Args:
        W_in, W_out, activation: as in `network`.
        labels: (p, p) or (p * p,) right answers; None is n + m mod p.
        pairs: indices n * p + m of the pairs to look at; None is the whole table.
    """
    right = np.ravel(answers(len(np.asarray(W_out))) if labels is None else labels)
    pairs = np.arange(right.size) if pairs is None else np.asarray(pairs)
    blocks = _outputs(W_in, W_out, activation, pairs)
    return sum(int((found.argmax(-1) == right[block]).sum()) for block, found in blocks) / len(pairs)


def accuracy_against_width(
    p: int,
    widths: Sequence[int],
    seeds: Sequence[int],
    *,
    activations: Sequence[str] = ("quadratic",),
    input_scale: float = 1.0,
    pairs: int | None = None,
) -> xr.DataArray:
    """(activation, width, seed) accuracy of the analytic weights of n + m.

    Weights are rounded to single precision, which moves a few near ties at most; ``input_scale`` multiplies the
    preactivations; ``pairs`` is how many, drawn at random for each seed, to look at, None for the whole table.
    """

    def each(width: int, seed: int) -> dict[str, float]:
        generator = np.random.default_rng(seed)
        W_in, W_out = cosine_weights(p, width, generator=generator)
        W_in, W_out = (input_scale * W_in).astype(np.float32), W_out.astype(np.float32)
        sample = generator.choice(p * p, pairs, replace=False) if pairs and pairs < p * p else None
        return {phi: accuracy(W_in, W_out, None, phi, pairs=sample) for phi in activations}

    return over(each, width=widths, seed=seeds).to_dataarray("activation", "accuracy")


def over(each: Callable[..., Mapping[str, float]], **axes: Iterable[Any]) -> xr.Dataset:
    """The numbers that ``each`` gives, by name, at every point of a grid; its arguments are called like the axes."""
    coords = {name: list(values) for name, values in axes.items()}
    found = [each(**dict(zip(coords, point, strict=True))) for point in itertools.product(*coords.values())]
    shape = [len(values) for values in coords.values()]
    return xr.Dataset({k: ((*coords,), np.reshape([one[k] for one in found], shape)) for k in found[0]}, coords)


def _outputs(
    W_in: ArrayLike, W_out: ArrayLike, activation: str | Activation, pairs: NDArray, factor: float | None = None
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield (pairs, outputs (pair, p)) in blocks: a one-hot pair picks two columns, so eq. 1 is their sum."""
    W_in, W_out = np.asarray(W_in), np.asarray(W_out)
    if isinstance(activation, str):
        activation = ACTIVATIONS[activation]
    p, width = W_out.shape
    columns = np.ascontiguousarray(W_in.T)  # rows of memory, which are quicker to pick
    readout = (2 / width if factor is None else factor) * W_out.T
    size = max(1, BLOCK // width)
    for start in range(0, len(pairs), size):
        block = pairs[start : start + size]
        yield block, activation(columns[block // p] + columns[p + block % p]) @ readout  # (pair, p)


def table_accuracy(outputs: NDArray) -> float:
    """The fraction of pairs whose largest output is at the right answer, n + m."""
    return float((outputs.argmax(-1) == answers(outputs.shape[-1])).mean())


def table_mse(outputs: NDArray) -> float:
    """Mean squared error on n + m over pairs and answers; 1 / p for zero outputs."""
    squares, right = np.square(outputs).sum(), right_outputs(outputs).sum()
    return float((squares - 2 * right) / outputs.size + 1 / outputs.shape[-1])


def right_outputs(outputs: NDArray) -> NDArray:
    """(p, p) the output at the right answer of every pair, n + m."""
    return np.take_along_axis(outputs, answers(outputs.shape[-1])[..., None], -1)[..., 0]


def lines_of(tables: Iterable[NDArray]) -> xr.Dataset:
    """``share`` (line, seed) of an output map's power on each Fourier line, median over the answers of each table."""
    found = [measures.line_shares(np.moveaxis(table, -1, 0)) for table in tables]
    rows = [[float(np.median(share)) for share in shares.values()] for shares in found]
    return xr.Dataset({"share": (("line", "seed"), np.array(rows).T)}, {"line": list(found[0])})


def enough(study: xr.Dataset, name: str = "accuracy", level: float = LEARNT) -> float:
    """The smallest width from which on upwards the mean accuracy reaches a level; infinity if none."""
    mean = study[name].mean("seed").dropna("width")
    return smallest(mean.width.values, mean.values[None], lambda values: values >= level)
