"""The effective loss of image classes, Liu et al. (2022), appendix I."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.chapters.liu.theory.flows import checked_times
from grokbook.chapters.liu.theory.relations import Array


class ClassLoss(NamedTuple):
    """The effective loss of features with class labels, eq. 32."""

    l: float  #: the sum of squared distances over couples of the same class
    Z: float  #: the sum of squared features
    l_eff: float  #: l / Z


def class_loss(features: ArrayLike, labels: ArrayLike) -> ClassLoss:
    """Eq. 32 without listing couples: those of a class add up to its size times its scatter.

    Args:
        features: (n, d).
        labels: (n,) integers.

    Raises:
        ValueError: all features are zero.
    """
    f, labels, means, sizes = _classes(features, labels)
    l = float((sizes[labels] * np.square(f - means[labels]).sum(-1)).sum())
    Z = float(np.square(f).sum())
    if not Z > 0:
        raise ValueError("the effective loss is l / Z, and these features are all zero")
    return ClassLoss(l, Z, l / Z)


def class_gradient(features: ArrayLike, labels: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """The gradient of l / Z, or of l alone: (n, d).

    Equation 33 prints the opposite sign for df/dt; that Z is conserved does not depend on it.
    """
    f, labels, means, sizes = _classes(features, labels)
    pull = 2 * sizes[labels][:, None] * (f - means[labels])
    if not scale_invariant:
        return pull
    loss = class_loss(f, labels)
    return (pull - 2 * loss.l_eff * f) / loss.Z


def class_flow(features: ArrayLike, labels: ArrayLike, times: ArrayLike, *, scale_invariant: bool = True) -> Array:
    """Gradient flow of eq. 32 in closed form: (t, n, d).

    The deviation from the mean of a class of n_c images decays at the rate 2 n_c / Z, the class means stay, and all is
    rescaled to the size at the start. Without the 1 / Z the rate is 2 n_c and nothing is rescaled: Z falls to that of
    the class means, which for free features is above zero; the collapse to nothing needs a shared encoder.
    """
    f, labels, means, sizes = _classes(features, labels)
    Z = class_loss(f, labels).Z
    rate = 2.0 * sizes[labels] / (Z if scale_invariant else 1.0)
    kept = np.exp(-rate * checked_times(times)[:, None])[..., None]  # (t, n, 1)
    moved = means[labels] + kept * (f - means[labels])
    if not scale_invariant:
        return moved
    return moved * np.sqrt(Z / np.square(moved).sum((-2, -1)))[:, None, None]


def class_descent(
    features: ArrayLike,
    labels: ArrayLike,
    steps: int,
    *,
    learning_rate: float = 1e-3,
    optimizer: str = "adam",
    scale_invariant: bool = True,
) -> Array:
    """The features at every step of Adam (figure 19; betas 0.9, 0.999, eps 1e-8) or gradient descent ("sgd") on eq. 32.

    Returns:
        (steps + 1, n, d).
    """
    checks.one_of("optimizer", optimizer, ("adam", "sgd"))
    f = _classes(features, labels)[0]
    states = np.empty((checks.integer("steps", steps, 0) + 1, *f.shape))
    states[0], first, second = f, np.zeros_like(f), np.zeros_like(f)
    for step in range(1, steps + 1):
        gradient = class_gradient(states[step - 1], labels, scale_invariant=scale_invariant)
        if optimizer == "adam":
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
    if f.ndim != 2 or labels.shape != f.shape[:1] or not len(f):
        raise ValueError(f"features must be (n, d) and labels (n,), got {f.shape} and {labels.shape}")
    _, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.zeros((len(sizes), f.shape[1]))
    np.add.at(means, labels, f)
    return f, labels, means / sizes[:, None], sizes
