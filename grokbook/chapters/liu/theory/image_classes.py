"""The effective loss of image classes, Liu et al. (2022), appendix I."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.liu.theory.relations import Array


def class_loss(features: ArrayLike, labels: ArrayLike) -> tuple[float, float]:
    """l and Z of eq. 32: squared distances over couples of one class, and squared features (n, d), both summed.

    No couples are listed: those of a class add up to its size times its scatter.
    """
    f, labels, means, sizes = _classes(features, labels)
    return float((sizes[labels] * np.square(f - means[labels]).sum(-1)).sum()), float(np.square(f).sum())


def class_gradient(features: ArrayLike, labels: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """The gradient of l / Z, or of l alone: (n, d).

    Equation 33 prints the opposite sign for df/dt; that Z is conserved does not depend on it.
    """
    f, labels, means, sizes = _classes(features, labels)
    pull = 2 * sizes[labels][:, None] * (f - means[labels])
    if not scale_invariant:
        return pull
    l, Z = class_loss(f, labels)
    return (pull - 2 * l / Z * f) / Z


def class_descent(
    features: ArrayLike, labels: ArrayLike, steps: int, *, learning_rate: float = 1e-3, adam: bool = True,
    scale_invariant: bool = True,
) -> Array:  # fmt: skip
    """The features at every step of Adam (figure 19; betas 0.9, 0.999, eps 1e-8) or gradient descent on eq. 32.

    Returns:
        (steps + 1, n, d).
    """
    f = _classes(features, labels)[0]
    states = np.empty((steps + 1, *f.shape))
    states[0], first, second = f, np.zeros_like(f), np.zeros_like(f)
    for step in range(1, steps + 1):
        gradient = class_gradient(states[step - 1], labels, scale_invariant=scale_invariant)
        if adam:
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            gradient = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        states[step] = states[step - 1] - learning_rate * gradient
    return states


def scatter_ratio(features: ArrayLike, labels: ArrayLike) -> float:
    """The scatter of features (n, d) within classes over that of the class means around the mean of all, W / B."""
    f, labels, means, _ = _classes(features, labels)
    within, between = np.square(f - means[labels]).sum(), np.square(means[labels] - f.mean(0)).sum()
    return float(within / between) if between > 0 else math.inf


def _classes(features: ArrayLike, labels: ArrayLike) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]:
    """Features (n, d), labels as 0, 1, ... (n,), class means (class, d) and class sizes (class,)."""
    f, labels = np.asarray(features, float), np.asarray(labels)
    _, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.zeros((len(sizes), f.shape[1]))
    np.add.at(means, labels, f)
    return f, labels, means / sizes[:, None], sizes
