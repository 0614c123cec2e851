"""What is read off a table of outputs (p, p, p) that is at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.gromov.theory.weights import answers


def table_accuracy(outputs: NDArray, labels: ArrayLike | None = None) -> float:
    """The fraction of pairs whose largest output (its real part) is at the right answer (p, p); None is n + m."""
    right = answers(outputs.shape[-1]) if labels is None else np.asarray(labels)
    return float((outputs.real.argmax(-1) == right).mean())


def table_mse(outputs: NDArray) -> float:
    """Mean squared error on n + m over pairs and answers; 1 / p for zero outputs."""
    squares, right = np.square(np.abs(outputs)).sum(), right_outputs(outputs).real.sum()
    return float((squares - 2 * right) / outputs.size + 1 / outputs.shape[-1])


def right_outputs(outputs: NDArray) -> NDArray:
    """(p, p) the output at the right answer of every pair, n + m."""
    return np.take_along_axis(outputs, answers(outputs.shape[-1])[..., None], -1)[..., 0]


def centred(outputs: NDArray) -> NDArray:
    """Outputs without each answer's mean: the last term of eq. 11, half of the analytic solution's noise."""
    return outputs - outputs.mean((0, 1))


def offset_profile(outputs: NDArray) -> tuple[NDArray, NDArray]:
    """(p,) mean and standard deviation of the outputs with q - n - m = r mod p; eq. 16: 1 at r = 0, else 0."""
    p = outputs.shape[-1]
    n, m, r = np.ogrid[:p, :p, :p]
    by_offset = outputs[n, m, (n + m + r) % p].reshape(-1, p)
    return by_offset.mean(0), by_offset.std(0)
