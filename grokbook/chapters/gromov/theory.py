"""The analytic solution of modular arithmetic, Gromov (2023), section 3 and appendices A and B.

Equation numbers are the paper's; where a printed equation is wrong the docstring says what was corrected.
Weights keep their letters: ``W_in`` (width, 2p) is the paper's W^(1), ``W_out`` (p, width) its W^(2). A table
over all pairs has the axes (n, m) and, where it holds outputs, the answer q last. A function on Z_p (``f1``,
``f2``, ``F``) is a callable of one integer or the sequence of its p values; results are reduced mod p. Random
draws come from ``generator``: a numpy Generator, a seed, or None for fresh entropy.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.measures import IPR_DEFINITIONS, first_layer_ipr

T = TypeVar("T")
Function = Callable[[int], int] | Sequence[int]
Inverse = Callable[[int], Iterable[int] | int] | Sequence[Iterable[int] | int]
Activation = Callable[[NDArray], NDArray]
Seed = np.random.Generator | int | None

BLOCK = 1 << 18  # hidden values held at once: 2 MB, so that they stay in the cache however wide the network


# --- the weights --------------------------------------------------------------------------------------------


def draw_phases(
    width: int, *, constrained: bool = True, noise: float = 0.0, generator: Seed = None
) -> NDArray[np.float64]:
    """Random phases of each neuron, uniform on [-pi, pi), the third bound by phi1 + phi2 = phi3 (eq. 12).

    Args:
        width: number of neurons.
        constrained: False draws the third phase independently too, which breaks eq. 12.
        noise: standard deviation in radians of a normal error added to the third phase.

    Returns:
        (3, width), in radians.
    """
    width, generator = checks.integer("width", width, 1), checks.generator(generator)
    phi1, phi2, free = generator.uniform(-np.pi, np.pi, (3, width))
    phi3 = phi1 + phi2 if constrained else free
    return np.stack([phi1, phi2, phi3 + noise * generator.standard_normal(width)])


def cosine_weights(
    p: int,
    width: int,
    *,
    f1: Function | None = None,
    f2: Function | None = None,
    inverse: Inverse | None = None,
    phases: ArrayLike | None = None,
    frequencies: ArrayLike | None = None,
    generator: Seed = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights that solve F(f1(n) + f2(m)) mod p with a quadratic activation; by default n + m.

    Eqs. 6-7 for n + m, eq. 18 for ``f1`` and ``f2``, eq. 19 for ``inverse``; p need not be prime. Eq. 19 asks
    for an invertible F. This is not needed: a row of ``W_out`` may hold the sum of the cosines of all roots
    of its answer.

    Args:
        p: modulus, at least 2.
        width: number of hidden neurons, at least 1.
        f1, f2: functions of the operands; None is the identity.
        inverse: the roots s with F(s) = q of every answer q, an integer or any number of them: one is eq. 19,
            several are added up, none leaves the row zero. None is the identity. `modular_roots` makes it
            from F.
        phases: (3, width) phases in radians; None draws them with `draw_phases`, obeying eq. 12.
        frequencies: (width,) integer frequency of each neuron; None is the paper's k = 1 .. width, which
            wraps mod p.

    Returns:
        ``W_in`` (width, 2p) and ``W_out`` (p, width).
    """
    p, width = checks.integer("p", p, 2), checks.integer("width", width, 1)
    phi1, phi2, phi3 = _phases(phases, width, generator)[:, :, None]  # (width, 1) each
    k = _frequencies(frequencies, width)[:, None]  # (width, 1)

    def wave(values: NDArray[np.int64], phase: NDArray[np.float64]) -> NDArray[np.float64]:
        # k * values is reduced before it is turned into an angle, so that wide networks lose no digits
        return np.cos(2 * np.pi / p * (k * values % p) + phase)

    W_in = np.concatenate([wave(_table("f1", f1, p), phi1), wave(_table("f2", f2, p), phi2)], axis=1)
    W_out = wave(np.arange(p), phi3).T  # cos(-2 pi k q / p - phi3), and the cosine is even
    if inverse is not None:
        W_out = np.stack([W_out[roots].sum(0) for roots in _roots(inverse, p)])
    return W_in, W_out


def modular_roots(F: Function, p: int, branches: str = "all") -> list[tuple[int, ...]]:
    """For each q of Z_p the s with F(s) = q mod p, in increasing order: the ``inverse`` of `cosine_weights`.

    Args:
        branches: "all" of them, or only "one", the smallest. Answers that F never gives have none either way.

    Raises:
        ValueError: branches is neither "all" nor "one".
    """
    p = checks.integer("p", p, 2)
    if branches not in ("one", "all"):
        raise ValueError(f'branches must be "one" or "all", got {branches!r}')
    values = _table("F", F, p)
    roots = [tuple(np.flatnonzero(values == q).tolist()) for q in range(p)]
    return roots if branches == "all" else [found[:1] for found in roots]


def answers(
    p: int, *, f1: Function | None = None, f2: Function | None = None, F: Function | None = None
) -> NDArray[np.int64]:
    """The table of the task, eqs. 17 and 19: (p, p) with entry (n, m) being F(f1(n) + f2(m)) mod p."""
    p = checks.integer("p", p, 2)
    total = (_table("f1", f1, p)[:, None] + _table("f2", f2, p)) % p
    return total if F is None else _table("F", F, p)[total]


def complex_weights(
    p: int,
    width: int,
    *,
    phases: ArrayLike | None = None,
    frequencies: ArrayLike | None = None,
    generator: Seed = None,
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Complex weights that solve n + m (appendix A, eqs. 20-21 with the phases of eq. 26); see
    `complex_network`.

    Returns:
        ``W_in`` (width, 2p) and ``W_out`` (p, width), complex.
    """
    p, width = checks.integer("p", p, 2), checks.integer("width", width, 1)
    phi1, phi2, phi3 = _phases(phases, width, generator)[:, :, None]
    angle = 2 * np.pi / p * (_frequencies(frequencies, width)[:, None] * np.arange(p) % p)  # (width, p)
    W_in = np.concatenate([np.exp(1j * (angle + phi1)), np.exp(1j * (angle + phi2))], axis=1)
    return W_in, np.exp(-1j * (angle + phi3)).T


def discrete_logarithms(p: int) -> NDArray[np.int64]:
    """Exponents e with g**e = n mod p, for the smallest primitive root g of a prime p.

    Returns:
        (p,), from 0 to p - 2; the entry of n = 0 is -1, since it has none.

    Raises:
        ValueError: p is no prime.
    """
    p = checks.integer("p", p, 2)
    for g in range(1, p):
        powers = [1]
        while len(powers) < p and powers[-1] * g % p not in (0, 1):
            powers.append(powers[-1] * g % p)
        if len(powers) == p - 1:
            logarithms = np.full(p, -1)
            logarithms[powers] = np.arange(p - 1)
            return logarithms
    raise ValueError(f"p must be a prime for every non-zero number to have a discrete logarithm, got p={p}")


def product_weights(
    p: int, width: int, *, detect_zero: bool = False, generator: Seed = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights that solve n * m mod a prime p through discrete logarithms.

    Section 2 says that such a solution exists and appendix D that none is known. It is eqs. 6-7 with base p -
    1: on non-zero numbers log(n m) = log n + log m mod p - 1. Zero has no logarithm, so its columns and its
    row are zero and pairs with a zero are left to chance.

    Args:
        detect_zero: add one neuron that is 1 when an operand is zero, whose readout gives the answer 0
            exactly 1 there.

    Returns:
        ``W_in`` (width, 2p) and ``W_out`` (p, width), with ``width + 1`` neurons if ``detect_zero``.
    """
    width, logarithms = checks.integer("width", width, 1), discrete_logarithms(p)
    phi1, phi2, phi3 = draw_phases(width, generator=generator)[:, :, None]
    angle = 2 * np.pi / (p - 1) * (np.arange(1, width + 1)[:, None] * logarithms % (p - 1))  # (width, p)
    known = logarithms >= 0
    W_in = np.concatenate([np.where(known, np.cos(angle + phi), 0.0) for phi in (phi1, phi2)], axis=1)
    W_out = np.where(known, np.cos(angle + phi3), 0.0).T
    if detect_zero:
        is_zero = np.tile(~known, 2)[None].astype(float)
        W_in = np.concatenate([W_in, is_zero])
        zero_out = (width + 1) / 2 * ~known[:, None]  # undoes the 2 / width of eq. 2
        W_out = np.concatenate([W_out, zero_out], axis=1)
    return W_in, W_out


# --- the network --------------------------------------------------------------------------------------------


def erf(x: NDArray) -> NDArray:
    """The error function to 1e-14: four Taylor terms about the nearest multiple of 1/256."""
    nodes, values, slopes = _erf_nodes(x.dtype.str)
    x = np.clip(x, -6.0, 6.0)  # erf(6) is 1 - 2e-17
    index = np.rint((x + 6.0) * 256).astype(np.int32)
    x0 = nodes[index]
    d = x - x0
    series = 1 + d * (-x0 + d * ((2 * x0 * x0 - 1) / 3 + d * x0 * (0.5 - x0 * x0 / 3)))
    return values[index] + slopes[index] * d * series


@cache
def _erf_nodes(dtype: str) -> tuple[NDArray, NDArray, NDArray]:
    nodes = np.arange(-6 * 256, 6 * 256 + 1) / 256
    values = np.array([math.erf(x) for x in nodes])
    slopes = 2 / np.sqrt(np.pi) * np.exp(-nodes * nodes)
    return nodes.astype(dtype), values.astype(dtype), slopes.astype(dtype)


def _sigmoid(x: NDArray) -> NDArray:
    return 0.5 + 0.5 * np.tanh(0.5 * x)  # does not overflow


#: Activations of figure 5 and a few more; `has_even_part` says which can work.
ACTIVATIONS: Mapping[str, Activation] = {
    "quadratic": lambda x: x * x,
    "quartic": lambda x: (x * x) ** 2,
    "cubic": lambda x: x * x * x,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "relu_squared": lambda x: np.maximum(x, 0) ** 2,
    "gelu": lambda x: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
    "silu": lambda x: x * _sigmoid(x),
    "exp": np.exp,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
}


def network(
    W_in: ArrayLike,
    W_out: ArrayLike,
    activation: str | Activation = "quadratic",
    *,
    factor: float | None = None,
    input_scale: float = 1.0,
) -> NDArray:
    """Outputs of the two-layer network for every pair, eqs. 1, 2 and 4.

    Args:
        W_in: (width, 2p) first-layer weights, real or complex.
        W_out: (p, width) readout weights.
        activation: a key of `ACTIVATIONS` or a function of an array.
        factor: factor of the output; None is the paper's 2 / width.
        input_scale: factor of the preactivations; 1 / sqrt(2p) is that of the paper's first public version.

    Returns:
        (p, p, p) output for the pair (n, m) and the answer q, in the precision of the weights.
    """
    W_in, W_out, factor = _network(W_in, W_out, factor)
    p = len(W_out)
    pairs = np.arange(p * p)
    blocks = [outputs for _, outputs in _outputs(W_in, W_out, activation, factor, input_scale, pairs)]
    return np.concatenate(blocks).reshape(p, p, p)


def complex_network(W_in: ArrayLike, W_out: ArrayLike) -> NDArray[np.complex128]:
    """Outputs of the complex network of appendix A, (p, p, p), scaled so that the right answer tends to 1.

    Eqs. 23-25 miss a factor 2 in the phases of their first two terms: squaring gives 2 phi1 and 2 phi2. With
    angles a and b of the two operands the square is 4 cos((a - b) / 2)**2 exp(i (a + b)). Under eq. 26 every
    neuron thus adds a wave in n + m - q with a weight that is never negative, so that the real part is
    largest at the right answer whatever the width and the phases: no interference is needed.
    """
    return network(W_in, W_out, factor=1 / (2 * np.shape(W_in)[0]))


def accuracy(
    W_in: ArrayLike,
    W_out: ArrayLike,
    labels: ArrayLike | None = None,
    activation: str | Activation = "quadratic",
    *,
    input_scale: float = 1.0,
    pairs: ArrayLike | None = None,
) -> float:
    """The fraction of pairs whose largest output (its real part) is at the right answer.

    Args:
        W_in, W_out, activation, input_scale: as in `network`; the output factor does not matter.
        labels: (p, p) or (p * p,) right answers; None is n + m mod p.
        pairs: indices n * p + m of the pairs to look at; None is the whole table.
    """
    W_in, W_out, factor = _network(W_in, W_out, None)
    labels = _labels(labels, len(W_out))
    pairs = np.arange(labels.size) if pairs is None else np.asarray(pairs)
    right = 0
    for block, outputs in _outputs(W_in, W_out, activation, factor, input_scale, pairs):
        right += int((outputs.real.argmax(-1) == labels[block]).sum())
    return right / len(pairs)


def table_accuracy(outputs: ArrayLike, labels: ArrayLike | None = None) -> float:
    """`accuracy` of outputs (p, p, p) that are at hand already, for example after `centred`."""
    outputs = np.asarray(outputs)
    p = outputs.shape[-1]
    return float((outputs.real.argmax(-1).ravel() == _labels(labels, p)).mean())


def table_mse(outputs: ArrayLike, labels: ArrayLike | None = None) -> float:
    """Mean squared error of outputs (p, p, p) over pairs and answers; 1 / p for zero outputs."""
    outputs = np.asarray(outputs)
    p = outputs.shape[-1]
    flat = outputs.reshape(-1, p)
    return float((np.square(np.abs(flat)).sum() - 2 * right_outputs(outputs, labels).real.sum()) / flat.size + 1 / p)


def right_outputs(outputs: ArrayLike, labels: ArrayLike | None = None) -> NDArray:
    """(p, p) the output at the right answer of every pair."""
    outputs = np.asarray(outputs)
    p = outputs.shape[-1]
    return np.take_along_axis(outputs.reshape(-1, p), _labels(labels, p)[:, None], 1).reshape(p, p)


def centred(outputs: ArrayLike) -> NDArray:
    """Outputs (p, p, p) without each answer's mean over the table.

    For the analytic solution that mean is the last term of eq. 11, which does not depend on the input and
    carries half of the noise.
    """
    outputs = np.asarray(outputs)
    return outputs - outputs.mean((0, 1))


def offset_profile(outputs: ArrayLike) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of outputs (p, p, p) by distance from the right answer of n + m.

    Returns:
        two (p,), entry r over the p * p outputs with q - n - m = r mod p; eq. 16 says the mean is 1 at r = 0,
        else 0.
    """
    outputs = np.asarray(outputs)
    p = outputs.shape[-1]
    n, m, r = np.ogrid[:p, :p, :p]
    by_offset = outputs[n, m, (n + m + r) % p].reshape(-1, p)
    return by_offset.mean(0), by_offset.std(0)


def _outputs(
    W_in: NDArray,
    W_out: NDArray,
    activation: str | Activation,
    factor: float,
    input_scale: float,
    pairs: NDArray,
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield (pairs, outputs (pair, p)) in blocks: a one-hot pair picks two columns, so eq. 1 is their sum."""
    phi = _activation(activation)
    p, width = W_out.shape
    first, second = input_scale * W_in[:, :p].T, input_scale * W_in[:, p:].T  # (p, width)
    readout = factor * W_out.T  # (width, p)
    size = max(1, BLOCK // width)
    for start in range(0, len(pairs), size):
        block = pairs[start : start + size]
        n, m = divmod(block, p)
        yield block, phi(first[n] + second[m]) @ readout  # (pair, p)


# --- why it works -------------------------------------------------------------------------------------------


#: The waves of eq. 11, name -> weight and coefficients (a, b, c) of a wave in a n + b m + c q, whose phase is
#: a phi1 + b phi2 + c phi3. Only "n + m - q" has none left under eq. 12.
WAVES: Mapping[str, tuple[float, tuple[int, int, int]]] = {
    "2n - q": (1 / 4, (2, 0, -1)),
    "2n + q": (1 / 4, (2, 0, 1)),
    "2m - q": (1 / 4, (0, 2, -1)),
    "2m + q": (1 / 4, (0, 2, 1)),
    "n + m - q": (1 / 2, (1, 1, -1)),
    "n + m + q": (1 / 2, (1, 1, 1)),
    "n - m - q": (1 / 2, (1, -1, -1)),
    "n - m + q": (1 / 2, (1, -1, 1)),
    "q": (1.0, (0, 0, 1)),
}


def wave_families(p: int, phases: ArrayLike, frequencies: ArrayLike | None = None) -> dict[str, NDArray[np.float64]]:
    """The waves that a quadratic network with the weights of eqs. 6-7 adds up to, eq. 11 with its factor 2 /
    width.

    Corrected: the printed second line has phi1 where m needs phi2, and the tail repeats the n - m + q line
    where the waves of the constant 1 in eq. 10 belong, named "q" here. Eight families move with the input,
    that one does not.

    Args:
        p: modulus.
        phases: (3, width) phases of the neurons.
        frequencies: (width,) as in `cosine_weights`.

    Returns:
        name of `WAVES` -> (p, p, p) contribution to the output for (n, m) and q; they add up to `network`.
    """
    p, phases = checks.integer("p", p, 2), np.asarray(phases, float)
    width = phases.shape[-1]
    phases, k = _phases(phases, width, None), _frequencies(frequencies, width)
    turns = 2 * np.pi / p * (np.arange(p)[:, None] * k % p)  # (p, width)
    n, m, q = np.ogrid[:p, :p, :p]
    families = {}
    for name, (weight, (a, b, c)) in WAVES.items():
        sums = 2 * weight / width * np.cos(turns + np.array([a, b, c]) @ phases).sum(-1)  # (p,) by residue
        residue = (a * n + b * m + c * q) % p
        families[name] = np.broadcast_to(sums[residue], (p, p, p))
    return families


def noise_shares() -> dict[str, float]:
    """Share of the noise variance 4 / width of an output that each destructive family of `WAVES` holds.

    A wave with a random phase has variance 1/2, so a family has 2 weight**2 / width.
    """
    return {name: weight**2 / 2 for name, (weight, _) in WAVES.items() if name != "n + m - q"}


def expected_mse(p: int, width: int) -> float:
    """Mean squared error of the analytic solution of n + m, averaged over phases.

    The destructive waves leave a variance 4 / width at every output. The constructive sum of eq. 13 is the
    delta function only if p divides the width; what it misses adds 1 / (2 width) - 1 / p below half of p and
    little above. Last, waves in 2n - q and 2m - q share their random phase, which counts for frequencies 0
    and p / 2. For odd p and width < p / 2 every draw of the phases has exactly this error.
    """
    p, width = checks.integer("p", p, 2), checks.integer("width", width, 1)
    copies = _copies(p, width)
    standing = int(copies[0] + (copies[p // 2] if p % 2 == 0 else 0))  # neurons with 2k = 0 mod p
    return 4 / width + _constructive_power(copies) - 1 / p + standing / (4 * width**2)


def expected_line_shares(p: int, width: int) -> dict[str, float]:
    """`grokbook.measures.line_shares` of an output h_q(n, m) of the analytic solution, figure 2.

    For odd p, as ratios of powers averaged over phases. The sum line holds the delta function and the waves
    in n + m + q; neurons of frequency 0 are constant and left out.
    """
    p, width = checks.integer("p", p, 2), checks.integer("width", width, 1)
    copies, shares = _copies(p, width), noise_shares()
    noise = 4 * (width - copies[0]) / width**2
    lines = {
        "n + m": _constructive_power(copies) - (copies[0] / width) ** 2 + shares["n + m + q"] * noise,
        "n - m": (shares["n - m - q"] + shares["n - m + q"]) * noise,
        "2n": (shares["2n - q"] + shares["2n + q"]) * noise,
        "2m": (shares["2m - q"] + shares["2m + q"]) * noise,
    }
    total = sum(lines.values())
    return {name: float(line / total) for name, line in lines.items()} | {"rest": 0.0}


def _copies(p: int, width: int) -> NDArray[np.int64]:
    """(p,) how many of the frequencies 1 .. width fall on each residue."""
    return np.bincount(np.arange(1, width + 1) % p, minlength=p)


def _constructive_power(copies: NDArray[np.int64]) -> float:
    """Mean square over s of sum_k cos(2 pi k s / p) / width, the sum of eq. 16; 1 / p for a delta."""
    partners = copies[-np.arange(len(copies)) % len(copies)]  # k and -k are the same wave
    return float((copies * (copies + partners)).sum() / (2 * copies.sum() ** 2))


def signal_to_noise(width: int, phase_noise: float = 0.0) -> float:
    """The right output over the standard deviation of the others: sqrt(width) / 2, free of p.

    Normal errors of the phases with standard deviation ``phase_noise`` (radians) shrink it by
    exp(-phase_noise**2 / 2).
    """
    return math.sqrt(checks.integer("width", width, 1)) / 2 * math.exp(-(phase_noise**2) / 2)


def has_even_part(activation: str | Activation) -> bool:
    """Whether phi(x) + phi(-x) varies with x.

    The wave in n + m - q comes from that part alone, so an activation without it never works.
    """
    x = np.linspace(0, 2, 65)
    phi = _activation(activation)
    return bool(np.ptp(phi(x) + phi(-x)) > 1e-9)


# --- studies: arrays for the figures ------------------------------------------------------------------------


def accuracy_against_width(
    p: int,
    widths: Sequence[int],
    seeds: Sequence[int],
    *,
    f1: Function | None = None,
    f2: Function | None = None,
    F: Function | None = None,
    activations: Sequence[str] = ("quadratic",),
    input_scale: float = 1.0,
    pairs: int | None = None,
) -> xr.DataArray:
    """Accuracy of the analytic weights over widths and seeds, for n + m figures 4b and 5.

    The same weights serve every activation. They are rounded to single precision, which is twice as fast and
    moves an accuracy by a few near ties at most.

    Args:
        f1, f2, F: the task F(f1(n) + f2(m)), with all roots in the readout.
        activations: keys of `ACTIVATIONS`.
        input_scale: as in `network`.
        pairs: how many pairs, drawn at random for each seed, to look at; None is the whole table. A shift of
            n only shifts the random phases, so a sample estimates the accuracy without bias.

    Returns:
        DataArray (activation, width, seed), fractions.
    """
    labels = answers(p, f1=f1, f2=f2, F=F)
    inverse = None if F is None else modular_roots(F, p)
    values = np.empty((len(activations), len(widths), len(seeds)))
    for i, width in enumerate(widths):
        for j, seed in enumerate(seeds):
            generator = np.random.default_rng(seed)
            weights = cosine_weights(p, width, f1=f1, f2=f2, inverse=inverse, generator=generator)
            W_in, W_out = (layer.astype(np.float32) for layer in weights)
            whole = pairs is None or pairs >= p * p
            sample = None if whole else generator.choice(p * p, pairs, replace=False)
            for a, phi in enumerate(activations):
                values[a, i, j] = accuracy(W_in, W_out, labels, phi, input_scale=input_scale, pairs=sample)
    coords = {"activation": list(activations), "width": list(widths), "seed": list(seeds)}
    return xr.DataArray(values, coords, ("activation", "width", "seed"), name="accuracy")


#: What to do with answers that F never gives, and how many roots to use: the readouts of `branch_study`.
READOUTS = (
    "one root, else zero",
    "one root, else random phases",
    "one root, else the answer itself",
    "all roots",
)


def branch_study(F: Function, p: int, widths: Sequence[int], seeds: Sequence[int]) -> xr.Dataset:
    """The analytic solution of F(n + m) for an F that is not invertible, figure 7, with four readouts.

    Eq. 19 with one root per answer can be right only on pairs whose n + m is that root. The paper does not
    say what rows of answers without a root hold; summing over all roots makes the question idle.

    Returns:
        Dataset with ``accuracy`` (readout, width, seed), the readouts being `READOUTS`, and ``served``, the
        share of Z_p that F reaches: the accuracy due to one root each.
    """
    all_roots, one_root = modular_roots(F, p), modular_roots(F, p, "one")
    missing = np.array([not roots for roots in all_roots])
    labels = answers(p, F=F)
    values = np.empty((len(READOUTS), len(widths), len(seeds)))
    for i, width in enumerate(widths):
        for j, seed in enumerate(seeds):
            generator = np.random.default_rng(seed)
            phases = draw_phases(width, generator=generator)
            other = generator.uniform(-np.pi, np.pi, (p, width))
            W_in, zero_rows = cosine_weights(p, width, inverse=one_root, phases=phases)
            or_itself = [roots or (q,) for q, roots in enumerate(one_root)]
            itself = cosine_weights(p, width, inverse=or_itself, phases=phases)[1]
            every = cosine_weights(p, width, inverse=all_roots, phases=phases)[1]
            random_rows = np.where(missing[:, None], np.cos(other), zero_rows)
            for r, W_out in enumerate((zero_rows, random_rows, itself, every)):
                values[r, i, j] = accuracy(W_in, W_out, labels)
    coords = {"readout": list(READOUTS), "width": list(widths), "seed": list(seeds)}
    study = xr.Dataset({"accuracy": (("readout", "width", "seed"), values)}, coords)
    return study.assign(served=float((~missing).mean()))


def complex_study(p: int, widths: Sequence[int], seeds: Sequence[int]) -> xr.DataArray:
    """Accuracy of the complex network of appendix A: DataArray (width, seed)."""
    values = [
        [table_accuracy(complex_network(*complex_weights(p, width, generator=seed))) for seed in seeds]
        for width in widths
    ]
    return xr.DataArray(values, {"width": list(widths), "seed": list(seeds)}, ("width", "seed"), name="accuracy")


def product_study(p: int, widths: Sequence[int], seeds: Sequence[int]) -> xr.Dataset:
    """The logarithmic solution of n * m mod a prime p, beside figure 9.

    Returns:
        Dataset with dims (width, seed): ``accuracy_nonzero`` on pairs without a zero, ``accuracy`` on all
        pairs, and ``accuracy_detecting`` on all pairs with the neuron that detects a zero.
    """
    n, m = np.ogrid[:p, :p]
    labels, nonzero = n * m % p, np.flatnonzero(n * m)
    values = np.empty((3, len(widths), len(seeds)))
    for i, width in enumerate(widths):
        for j, seed in enumerate(seeds):
            weights = product_weights(p, width, generator=seed)
            detecting = product_weights(p, width, detect_zero=True, generator=seed)
            values[:, i, j] = (
                accuracy(*weights, labels, pairs=nonzero),
                accuracy(*weights, labels),
                accuracy(*detecting, labels),
            )
    names = ("accuracy_nonzero", "accuracy", "accuracy_detecting")
    variables = {name: (("width", "seed"), array) for name, array in zip(names, values, strict=True)}
    return xr.Dataset(variables, {"width": list(widths), "seed": list(seeds)})


def ipr_study(p: int, width: int, seeds: Sequence[int]) -> xr.DataArray:
    """What each reading of eq. 28 gives for the same weights.

    Returns:
        DataArray (definition, weights, seed) of the mean inverse participation ratio of the first layer, with
        the definitions of `grokbook.measures.IPR_DEFINITIONS` and the weights "analytic" and "gaussian".
    """
    values = np.empty((len(IPR_DEFINITIONS), 2, len(seeds)))
    for j, seed in enumerate(seeds):
        generator = np.random.default_rng(seed)
        layers = cosine_weights(p, width, generator=generator)[0], generator.standard_normal((width, 2 * p))
        for i, definition in enumerate(IPR_DEFINITIONS):
            values[i, :, j] = [first_layer_ipr(W_in, definition) for W_in in layers]
    coords = {"definition": list(IPR_DEFINITIONS), "weights": ["analytic", "gaussian"], "seed": list(seeds)}
    return xr.DataArray(values, coords, ("definition", "weights", "seed"), name="ipr")


def random_features_study(
    p: int, widths: Sequence[int], seeds: Sequence[int], *, train_fraction: float = 0.5, ridge: float = 1e-6
) -> xr.Dataset:
    """`random_features` over (width, seed): Dataset of ``train_accuracy`` and ``test_accuracy``."""
    values = np.empty((2, len(widths), len(seeds)))
    for i, width in enumerate(widths):
        for j, seed in enumerate(seeds):
            values[:, i, j] = random_features(p, width, train_fraction=train_fraction, ridge=ridge, generator=seed)
    dims = ("width", "seed")
    variables = {"train_accuracy": (dims, values[0]), "test_accuracy": (dims, values[1])}
    return xr.Dataset(variables, {"width": list(widths), "seed": list(seeds)})


def random_features(
    p: int,
    width: int,
    *,
    train_fraction: float = 0.5,
    ridge: float = 1e-6,
    labels: ArrayLike | None = None,
    activation: str | Activation = "quadratic",
    generator: Seed = None,
) -> tuple[float, float]:
    """Train the readout alone: frozen normal first-layer weights and the exact ridge solution for ``W_out``.

    Such a network learns no features; section 5.1 says, without an experiment, that it does not grok.

    Args:
        train_fraction: share of the pairs, drawn at random, that the readout is fitted to.
        ridge: penalty on the squared weights, in units where the Gram matrix is Z Z^T / width.
        labels: (p, p) right answers; None is n + m mod p.

    Returns:
        train and test accuracy.

    Raises:
        ValueError: a train_fraction not between 0 and 1, or a ridge not above 0.
    """
    p, width, generator = checks.integer("p", p, 2), checks.integer("width", width, 1), checks.generator(generator)
    if not 0 < train_fraction < 1:
        raise ValueError(f"train_fraction must be between 0 and 1, got {train_fraction}")
    if not ridge > 0:
        raise ValueError(f"ridge must be above 0, got {ridge}")
    labels = _labels(labels, p)
    order = generator.permutation(p * p)
    cut = min(max(1, round(train_fraction * p * p)), p * p - 1)  # neither part is empty
    train, test = order[:cut], order[cut:]
    W_in = generator.standard_normal((width, 2 * p))
    n, m = divmod(train, p)
    Z = _activation(activation)(W_in.T[n] + W_in.T[p + m])  # (pair, width)
    targets = np.eye(p)[labels[train]]
    if width <= cut:
        readout = np.linalg.solve(Z.T @ Z / width + ridge * np.eye(width), Z.T @ targets)
    else:  # the same solution through the smaller matrix, one row per training pair
        readout = Z.T @ np.linalg.solve(Z @ Z.T / width + ridge * np.eye(cut), targets)
    return (
        accuracy(W_in, readout.T, labels, activation, pairs=train),
        accuracy(W_in, readout.T, labels, activation, pairs=test),
    )


# --- checks of what was passed ------------------------------------------------------------------------------


def _phases(phases: ArrayLike | None, width: int, generator: Seed) -> NDArray[np.float64]:
    if phases is None:
        return draw_phases(width, generator=generator)
    phases = np.asarray(phases, float)
    if phases.shape != (3, width):
        raise ValueError(f"phases must have shape (3, width) = (3, {width}), got {phases.shape}")
    return phases


def _frequencies(frequencies: ArrayLike | None, width: int) -> NDArray[np.int64]:
    k = np.arange(1, width + 1) if frequencies is None else np.asarray(frequencies)
    if k.shape != (width,) or k.dtype.kind not in "iu":
        raise ValueError(f"frequencies must be {width} integers, one a neuron, got {k.dtype} of shape {k.shape}")
    return k.astype(np.int64)


def _table(name: str, f: Function | None, p: int) -> NDArray[np.int64]:
    """(p,) values of a function on Z_p; Python integers, so that powers do not overflow."""
    if f is None:
        return np.arange(p)
    return np.array([_residue(name, n, value, p) for n, value in enumerate(_values(name, f, p))])


def _roots(inverse: Inverse, p: int) -> list[NDArray[np.int64]]:
    """The roots of every answer, an array for each."""
    found = []
    for q, roots in enumerate(_values("inverse", inverse, p)):
        several = roots if isinstance(roots, Iterable) else (roots,)
        found.append(np.array([_residue("inverse", q, root, p) for root in several], np.int64))
    return found


def _values(name: str, f: Callable[[int], T] | Sequence[T], p: int) -> list[T]:
    if callable(f):
        return [f(n) for n in range(p)]
    if len(f) != p:
        raise ValueError(f"{name} must be a function of one integer or its {p} values, got {len(f)} values")
    return list(f)


def _residue(name: str, n: int, value: int, p: int) -> int:
    try:
        return operator.index(value) % p
    except TypeError:
        raise ValueError(f"{name} must give integers, got {name}({n}) = {value!r}") from None


def _network(W_in: ArrayLike, W_out: ArrayLike, factor: float | None) -> tuple[NDArray, NDArray, float]:
    W_in, W_out = np.asarray(W_in), np.asarray(W_out)
    if W_out.ndim != 2 or W_in.shape != (W_out.shape[1], 2 * W_out.shape[0]):
        raise ValueError(
            f"W_in must be (width, 2p) and W_out (p, width), got W_in {W_in.shape} and W_out {W_out.shape}"
        )
    return W_in, W_out, 2 / W_out.shape[1] if factor is None else factor


def _activation(activation: str | Activation) -> Activation:
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    return ACTIVATIONS[activation]


def _labels(labels: ArrayLike | None, p: int) -> NDArray[np.int64]:
    """(p * p,) right answers, row n * p + m."""
    table = answers(p) if labels is None else np.asarray(labels)
    if table.size != p * p:
        raise ValueError(f"labels must hold one answer for each of the {p * p} pairs, got shape {table.shape}")
    return table.ravel()
