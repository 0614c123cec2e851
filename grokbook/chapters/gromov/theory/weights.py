"""Weights that solve a task without training, eqs. 6, 7, 12, 18 and 19: functions of sums, and products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.measures.common import Array

Function = Callable[[int], int]
Seed = np.random.Generator | int | None


def draw_phases(width: int, *, noise: float = 0.0, generator: Seed = None) -> Array:
    """(3, width) random phases in radians, uniform on [-pi, pi), the third bound by phi1 + phi2 = phi3 (eq. 12).

    Args:
        noise: standard deviation in radians of a normal error added to the third phase; infinity draws it
            independently, which breaks eq. 12.
    """
    generator = np.random.default_rng(generator)
    phi1, phi2, free = generator.uniform(-np.pi, np.pi, (3, width))
    phi3 = free if np.isinf(noise) else phi1 + phi2 + noise * generator.standard_normal(width)
    return np.stack([phi1, phi2, phi3])


def cosine_weights(
    p: int,
    width: int,
    *,
    f1: Function | None = None,
    f2: Function | None = None,
    inverse: Iterable[Sequence[int]] | None = None,
    phases: ArrayLike | None = None,
    frequencies: ArrayLike | None = None,
    generator: Seed = None,
) -> tuple[Array, Array]:
    """Weights that solve F(f1(n) + f2(m)) mod p with a quadratic activation; by default n + m.

    Eqs. 6-7 for n + m, eq. 18 for ``f1`` and ``f2``, eq. 19 for ``inverse``; p need not be prime.

    Args:
        p, width: modulus, at least 2, and number of hidden neurons, at least 1.
        f1, f2: functions of the operands; None is the identity.
        inverse: the roots s with F(s) = q of every answer q: one is eq. 19, several are added up, none leaves the row
            zero. None is the identity. `modular_roots` makes it from F.
        phases: (3, width) phases in radians; None draws them with `draw_phases`, obeying eq. 12.
        frequencies: (width,) integer frequency of each neuron; None is the paper's k = 1 .. width, which wraps mod p.

    Returns:
        ``W_in`` (width, 2p) and ``W_out`` (p, width).
    """
    phases = draw_phases(width, generator=generator) if phases is None else np.asarray(phases, float)
    k = np.arange(1, width + 1) if frequencies is None else np.asarray(frequencies)
    W_in = np.concatenate([_waves(p, k, _table(f1, p), phases[0]), _waves(p, k, _table(f2, p), phases[1])], axis=1)
    W_out = _waves(p, k, np.arange(p), phases[2]).T  # cos(-2 pi k q / p - phi3), and the cosine is even
    if inverse is not None:
        W_out = np.stack([W_out[list(roots)].sum(0) for roots in inverse])
    return W_in, W_out


def modular_roots(F: Function, p: int) -> list[tuple[int, ...]]:
    """For each q of Z_p the s with F(s) = q mod p, in increasing order: the ``inverse`` of `cosine_weights`."""
    values = _table(F, p)
    return [tuple(np.flatnonzero(values == q).tolist()) for q in range(p)]


def answers(
    p: int, *, f1: Function | None = None, f2: Function | None = None, F: Function | None = None
) -> NDArray[np.int64]:
    """The table of the task, eqs. 17 and 19: (p, p) with entry (n, m) being F(f1(n) + f2(m)) mod p."""
    return _table(F, p)[(_table(f1, p)[:, None] + _table(f2, p)) % p]


def discrete_logarithms(p: int) -> NDArray[np.int64]:
    """(p,) exponents e, from 0 to p - 2, with g**e = n mod p for the smallest primitive root g; -1 for n = 0.

    Raises:
        ValueError: p is no prime.
    """
    for g in range(1, p):
        powers = [pow(g, e, p) for e in range(p - 1)]
        if sorted(powers) == list(range(1, p)):
            return np.append(-1, np.argsort(powers))
    raise ValueError(f"p must be a prime for every non-zero number to have a discrete logarithm, got p={p}")


def product_weights(p: int, width: int, *, detect_zero: bool = False, generator: Seed = None) -> tuple[Array, Array]:
    """Weights that solve n * m mod a prime p: ``W_in`` (width, 2p), ``W_out`` (p, width).

    Eqs. 6-7 with base p - 1, in the order of logarithms. Zero has none, so its columns and its row are zero;
    ``detect_zero`` adds one neuron that is 1 when an operand is zero, whose readout gives the answer 0 exactly 1 there.
    """
    logarithms = discrete_logarithms(p)
    known = logarithms >= 0
    waves, readout = cosine_weights(p - 1, width, generator=generator)
    W_in = np.concatenate([np.where(known, half[:, logarithms], 0.0) for half in np.split(waves, 2, axis=1)], axis=1)
    W_out = np.where(known[:, None], readout[logarithms], 0.0)
    if detect_zero:
        W_in = np.concatenate([W_in, np.tile(~known, 2)[None].astype(float)])
        W_out = np.concatenate([W_out, (width + 1) / 2 * ~known[:, None]], axis=1)  # undoes the 2 / width of eq. 2
    return W_in, W_out


def _table(f: Function | None, p: int) -> NDArray[np.int64]:
    """(p,) a function's values mod p, in Python's own integers, so that powers do not overflow; None: the identity."""
    return np.arange(p) if f is None else np.array([f(n) % p for n in range(p)])


def _waves(p: int, frequencies: NDArray[np.int64], values: NDArray[np.int64], phases: Array) -> Array:
    """(width, n) a wave of each frequency at n values, reduced before they become angles: large ones lose no digits."""
    return np.cos(2 * np.pi / p * (frequencies[:, None] * values % p) + phases[:, None])


def three_wave_weights(p: int, width: int, *, generator: Seed = None) -> tuple[NDArray, NDArray]:
    """Weights for an odd activation, of ours: a unit has two waves in n, whose frequencies add up to that of one in m.

    The cube in the activation makes products of all three, among them the wave of that frequency in n + m, whose phase
    is the sum of the three phases; the readout has it.

    Returns:
        ``W_in`` (width, 2p), and ``W_out`` (p, width), whose sign is right where the third derivative is positive.
    """
    draw, x = np.random.default_rng(generator), np.arange(p)
    one, other = draw.integers(1, p, (2, width))
    phases = draw.uniform(0, 2 * np.pi, (3, width))
    u, v = _waves(p, one, x, phases[0]) + _waves(p, other, x, phases[1]), _waves(p, one + other, x, phases[2])
    return np.concatenate([u, v], axis=1), _waves(p, one + other, x, phases.sum(0)).T
