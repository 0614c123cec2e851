"""How fast the loss grows around a minimum: the sharpness of Keskar et al. (2016), and what was released for Fig. 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grokbook.lazy import torch
from grokbook.measures.common import Array


def sharpness(
    loss: Callable[[Any], Any],
    x: Any,
    epsilon: float,
    *,
    basis: ArrayLike | None = None,
    generator: Any,
    iterations: int = 100,
) -> float:
    """100 (max L - L(x)) / (1 + L(x)): by how many per cent the loss can grow in a box around x.

    The box holds x + A z with |z| <= epsilon (|A+ x| + 1), each number by itself; A+ is the pseudoinverse.

    Args:
        loss: of a tensor (n,), as x is one.
        epsilon: size of the box; the papers take 1e-3.
        basis: (n, k) the matrix A, whose columns span the subspace that is searched; None is all of space.
        generator: of numpy, or a seed; draws where in the box the search starts.
        iterations: its steps, at most.

    Returns:
        At least 0, as x itself is in the box.

    Reference: Keskar et al. (2016), metric 2.1, there with one start and ten iterations of a bounded quasi-Newton
    method. Here it is spectral projected gradients (Birgin, Martinez and Raydan 2000).
    """
    box = Box(loss, x, epsilon, basis)
    begin = np.random.default_rng(generator).uniform(-1, 1, len(box.half))
    return 100 * (max(box.centre, box.climb(begin, iterations)) - box.centre) / (1 + box.centre)


def released_sharpness(loss: Callable[[Any], Any], x: Any, epsilon: float, **how: Any) -> float:
    """100 (L(x) - min L) / (1 - L(x)): the sign of the authors' routine, which hands the loss to a minimiser.

    That searches by L-BFGS-B from x itself, on means of minibatches in single precision. Arguments as in `sharpness`.
    """
    return sharpness(lambda point: -loss(point), x, epsilon, **how)


def random_basis(n: int, k: int, generator: np.random.Generator) -> Array:
    """k columns of unit length in n dimensions, (n, k), each in a direction drawn at random."""
    columns = generator.normal(size=(n, k))
    return columns / np.linalg.norm(columns, axis=0)


class Box:
    """A loss in a box around x, on coordinates from -1 to 1."""

    def __init__(self, loss: Callable[[Any], Any], x: Any, epsilon: float, basis: Any) -> None:
        self.loss, self.x = loss, x.detach()
        self.basis = None if basis is None else np.asarray(basis, float)
        inside = np.asarray(self.x.cpu(), float)
        if self.basis is not None:
            inside = np.linalg.lstsq(self.basis, inside, rcond=None)[0]
        self.half = epsilon * (np.abs(inside) + 1)  # (k,)
        self.centre = self.at(np.zeros(len(self.half)))[0]

    def at(self, u: Array) -> tuple[float, Array]:
        """The value at coordinates u (k,), and its slope there."""
        moved = self.half * u if self.basis is None else self.basis @ (self.half * u)
        point = (self.x + torch.as_tensor(moved).to(self.x)).requires_grad_()
        with torch.enable_grad():
            found = self.loss(point)
        gradient = np.asarray(torch.autograd.grad(found, point)[0].cpu(), float)
        return float(found.detach()), self.half * (gradient if self.basis is None else self.basis.T @ gradient)

    def climb(self, u: Array, iterations: int) -> float:
        """The largest value on a way up from u: spectral projected gradients.

        These are the slope, as long as the last curvature says, cut to the box.
        """
        value, slope = self.at(u)
        length = 1e30  # to a corner
        for _ in range(iterations):
            direction = np.clip(u + length * slope, -1, 1) - u
            rise, share = float(slope @ direction), 1.0
            if rise <= 1e-14 * max(abs(value), 1e-300):
                break
            while True:
                step = share * direction
                trial, trial_slope = self.at(u + step)
                if trial >= value + 1e-4 * share * rise or share < 1e-8:
                    break
                share /= 2
            if trial <= value:
                break
            curvature = -float(step @ (trial_slope - slope))  # above 0 where the loss bends down
            length = float(step @ step) / curvature if curvature > 0 else 1e30
            u, value, slope = u + step, trial, trial_slope
        return value
