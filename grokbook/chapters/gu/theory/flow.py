"""The flow in the unit cube, Fig. 8: eqs 7-9, 22 and 23 of the earlier version, 11-13, 17 and 18 of the later one.

States are (..., 3): x, w, u, none below 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grokbook.measures.common import Array


def flow(state: ArrayLike) -> Array:
    """The velocity (1 - x w u) (w u, x u, x w), (..., 3).

    It runs down (1 - x w u)**2 / 2 and conserves x**2 - w**2 and w**2 - u**2.
    """
    x, w, u = np.moveaxis(np.asarray(state, float), -1, 0)
    return (1 - x * w * u)[..., None] * np.stack([w * u, x * u, x * w], -1)


def flow_path(start: ArrayLike, times: ArrayLike) -> Array:
    """Where states (..., 3) are at increasing times (n,): (n, ..., 3), by Runge and Kutta, to 1e-9 in the cube."""
    state, path = np.asarray(start, float), []
    for span in np.diff(np.asarray(times, float), prepend=0.0):
        count = int(np.ceil(span / 0.01 - 1e-9))
        h = span / max(count, 1)
        for _ in range(count):
            k1 = flow(state)
            k2 = flow(state + h / 2 * k1)
            k3 = flow(state + h / 2 * k2)
            k4 = flow(state + h * k3)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.array(path)


def flow_limit(start: ArrayLike) -> Array:
    """Where the flow ends, (..., 3), in closed form but for one cubic equation.

    Along a trajectory the squares keep their differences a, so that the smallest square y solves product(y + a) = 1.
    At most one coordinate of a start may be 0.
    """
    squares = np.square(np.asarray(start, float))
    above = squares - squares.min(-1, keepdims=True)
    y = np.ones(squares.shape[:-1])  # at or right of the root of a convex increasing function
    for _ in range(100):
        a, b, c = np.moveaxis(y[..., None] + above, -1, 0)
        y = y - (a * b * c - 1) / (b * c + a * c + a * b)
    return np.sqrt(y[..., None] + above)
