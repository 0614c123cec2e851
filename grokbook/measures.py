"""What one measures on learning curves and on weights: plain functions of numpy arrays.

Everything is computed in double precision and vectorised over leading axes, so that a record's ``(run,
snapshot, ...)`` needs no loop. The Fourier transforms use ``exp(-2 pi i k n / p)``; powers are one-sided, ``k
= 0 .. p // 2``.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks

__all__ = [
    "IPR_DEFINITIONS",
    "MED_FORMS",
    "PhaseResiduals",
    "Ring",
    "Sums",
    "circular_mean",
    "circular_sd",
    "effective_dimension",
    "embedding_blocks",
    "embedding_norm",
    "first_layer_ipr",
    "first_step",
    "fourier_power",
    "frequency_family_share",
    "group_parallelogram_gaps",
    "group_representation_quality_index",
    "inverse_participation_ratio",
    "line_shares",
    "main_embedding_difference",
    "med_controls",
    "median",
    "modular_representation_quality_index",
    "parallelogram_gaps",
    "permuted_embedding_difference",
    "phase_residuals",
    "published_med",
    "ranks",
    "representation_quality_index",
    "resultant_length",
    "ring_share",
    "single_frequency_share",
    "standardised",
    "sums_of",
    "weight_norm",
]

Array = NDArray[np.float64]


# --- learning curves ----------------------------------------------------------------------------------------


def first_step(values: ArrayLike, steps: ArrayLike, threshold: float) -> Array:
    """When a curve first reaches a threshold.

    Args:
        values: (..., step) a measured quantity, for example an accuracy; nan counts as not reached.
        steps: (step,) the optimizer steps at which it was measured.
        threshold: the value to reach.

    Returns:
        (...), the first evaluated step with ``values >= threshold``; nan if there is none.

    Raises:
        ValueError: not one value per step.
    """
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    if steps.ndim != 1 or values.shape[-1:] != steps.shape:
        raise ValueError(f"values must have one entry per step, got values {values.shape} and steps {steps.shape}")
    if not len(steps):
        return np.full(values.shape[:-1], np.nan)
    reached = values >= threshold  # (..., step)
    return np.where(reached.any(-1), steps[reached.argmax(-1)], np.nan)


def last_value(values: ArrayLike) -> Array:
    """(...), the last finite value of a curve (..., step); nan if there is none."""
    values = np.asarray(values, float)
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    where = values.shape[-1] - 1 - np.isfinite(values)[..., ::-1].argmax(-1)
    return np.take_along_axis(np.where(np.isfinite(values), values, np.nan), where[..., None], -1)[..., 0]


def median(values: ArrayLike) -> float:
    """The median of the finite values; nan if there is none."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return float(np.median(known)) if len(known) else float("nan")


def ranks(values: ArrayLike) -> Array:
    """Ranks from 1 of a row of numbers, (n,); equal ones share their mean."""
    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]


def or_never(times: ArrayLike) -> Array:
    """Times with infinity for never, so that medians and comparisons count runs that did not get there."""
    times = np.asarray(times, float)
    return np.where(np.isfinite(times), times, np.inf)


def never_median(times: ArrayLike) -> float:
    """The median with runs that never got there counted as infinitely late."""
    return float(np.median(or_never(times)))


def weight_norm(weights: ArrayLike) -> Array:
    """The Frobenius norm of each weight matrix: (..., out, in) -> (...)."""
    return np.sqrt(np.square(np.asarray(weights, float)).sum((-2, -1)))


# --- periodicity of weights ---------------------------------------------------------------------------------


def fourier_power(weights: ArrayLike) -> Array:
    """The one-sided Fourier power of each row: (..., p) -> (..., p // 2 + 1)."""
    return np.square(np.abs(np.fft.rfft(np.asarray(weights, float), axis=-1)))


def inverse_participation_ratio(power: ArrayLike) -> Array:
    """How concentrated a spectrum is: sum(power**2) / sum(power)**2.

    Args:
        power: (..., n) non-negative Fourier power of one neuron per row.

    Returns:
        (...), between 1/n (flat) and 1 (a single frequency); nan where the power is all zero.

    Reference: Gromov (2023), eq. 28 with r = 2.
    """
    power = np.asarray(power, float)
    return _ratio(np.square(power).sum(-1), np.square(power.sum(-1)))


def single_frequency_share(weights: ArrayLike) -> Array:
    """The share of a row's power that its strongest wave holds: (..., p) -> (...).

    The mean of the row counts in the total but is no wave, so a constant row has share 0; a row of zeros has
    nan.
    """
    power = fourier_power(weights)
    return _ratio(power[..., 1:].max(-1), power.sum(-1))


def _one_sided(rows: Array) -> Array:
    return fourier_power(rows)


def _two_sided(rows: Array) -> Array:
    return np.square(np.abs(np.fft.fft(rows, axis=-1)))


def _real_basis(rows: Array) -> Array:
    """Power along the orthonormal cosines and sines, which keep apart what a complex modulus adds up."""
    wave, n = np.fft.rfft(rows, axis=-1), rows.shape[-1]
    weight = np.full(wave.shape[-1], 2.0)  # a frequency and its negative
    weight[0] = 1.0
    if n % 2 == 0:
        weight[-1] = 1.0
    return np.concatenate([weight * wave.real**2, weight * wave.imag**2], axis=-1) / n


#: Readings of eq. 28: name -> (transform each half of length p? else the row of length 2p, the power).
IPR_DEFINITIONS = {
    "one-sided, per half": (True, _one_sided),
    "two-sided, per half": (True, _two_sided),
    "real basis, per half": (True, _real_basis),
    "one-sided, whole row": (False, _one_sided),
    "two-sided, whole row": (False, _two_sided),
}


def first_layer_ipr(W_in: ArrayLike, definition: str = "one-sided, per half") -> Array:
    """The inverse participation ratio of a first layer, averaged over its neurons.

    Gromov (2023), eqs. 28-29 with r = 2, leaves the transform open; `IPR_DEFINITIONS` are its readings, which
    give different numbers for the same weights. The default transforms the two halves (first and second
    operand) apart, keeps the frequencies 0 to p // 2 with zero among them, and averages over both halves: a
    neuron made of one wave per half then has exactly 1, and Gaussian weights about 2 / (p // 2 + 1), which is
    0.040 at p = 97.

    Args:
        W_in: (..., width, 2p) first-layer weights.
        definition: a key of `IPR_DEFINITIONS`.

    Returns:
        (...), between 0 and 1; nan where a neuron is all zero.

    Raises:
        ValueError: there is no such definition.
    """
    if definition not in IPR_DEFINITIONS:
        raise ValueError(f"definition must be one of {', '.join(map(repr, IPR_DEFINITIONS))}, got {definition!r}")
    per_half, power = IPR_DEFINITIONS[definition]
    rows = _halves(W_in) if per_half else np.asarray(W_in, float)[..., None, :]  # (..., width, 2 or 1, n)
    return inverse_participation_ratio(power(rows)).mean((-2, -1))


class PhaseResiduals(NamedTuple):
    """Phases of the waves in each neuron's weights, in radians, and how far they miss eq. 12."""

    phi1: Array  #: (..., width) phase in the first operand
    phi2: Array  #: (..., width) phase in the second operand
    phi3: Array  #: (..., width) phase in the answer
    residual: Array  #: (..., width) phi1 + phi2 - phi3, wrapped to (-pi, pi]
    frequency: NDArray[np.int64]  #: (..., width) the neuron's frequency, 0 where it has no wave (phases are nan there)


def phase_residuals(W_in: ArrayLike, W_out: ArrayLike) -> PhaseResiduals:
    """How well each neuron obeys phi1 + phi2 = phi3, Gromov (2023), eq. 12 and figure 3.

    A neuron's frequency is where the normalised powers of its three rows, added up, are largest; its phases
    are the arguments of the Fourier coefficients there. With the signs of eqs. 6-7 all three enter alike.
    Frequency zero and, for even p, p / 2 are left out: their coefficients are real and have no phase.

    Args:
        W_in: (..., width, 2p) first-layer weights.
        W_out: (..., p, width) readout weights.

    Raises:
        ValueError: the shapes do not belong together.
    """
    halves, out = (
        _halves(W_in),
        np.swapaxes(np.asarray(W_out, float), -1, -2),
    )  # (..., width, 2, p), (..., width, p)
    p = halves.shape[-1]
    if out.shape != (*halves.shape[:-2], p):
        raise ValueError(
            f"W_out must have shape (..., p, width) to match W_in (..., width, 2p), "
            f"got W_out {np.shape(W_out)} and W_in {np.shape(W_in)}"
        )
    rows = np.concatenate([halves, out[..., None, :]], axis=-2)  # (..., width, 3, p)
    waves = np.fft.rfft(rows, axis=-1)
    power = np.square(np.abs(waves))
    candidates = slice(1, (p + 1) // 2)
    if p < 3:  # no frequency between 0 and p / 2
        nothing = np.full(halves.shape[:-2], np.nan)
        return PhaseResiduals(nothing, nothing, nothing, nothing, np.zeros(nothing.shape, np.int64))

    share = _ratio(power, power.sum(-1, keepdims=True))[..., candidates].sum(-2)  # (..., width, frequency)
    share = np.nan_to_num(share)
    frequency = share.argmax(-1) + 1  # (..., width)
    phases = np.angle(np.take_along_axis(waves, frequency[..., None, None], -1))[..., 0]  # (..., width, 3)
    no_wave = share.max(-1) < 1e-12  # only rounding is left
    phases = np.where(no_wave[..., None], np.nan, phases)
    phi1, phi2, phi3 = np.moveaxis(phases, -1, 0)
    residual = np.angle(np.exp(1j * (phi1 + phi2 - phi3)))
    return PhaseResiduals(phi1, phi2, phi3, residual, np.where(no_wave, 0, frequency))


# --- angles -------------------------------------------------------------------------------------------------


def resultant_length(angles: ArrayLike) -> Array:
    """Length of the mean unit vector of (..., n) angles in radians, from 0 to 1; nan is left out."""
    return np.abs(_mean_vector(angles))


def circular_mean(angles: ArrayLike) -> Array:
    """Direction of the mean unit vector of (..., n) angles, in radians in (-pi, pi]; nan is left out."""
    return np.angle(_mean_vector(angles))


def circular_sd(angles: ArrayLike) -> Array:
    """Circular standard deviation sqrt(-2 ln R) of (..., n) angles, in radians; nan is left out.

    For a narrow distribution it is the ordinary standard deviation.
    """
    length = np.minimum(resultant_length(angles), 1.0)  # rounding may leave 1 + 1e-16
    with np.errstate(divide="ignore"):
        return np.sqrt(-2 * np.log(length)) + 0.0  # + 0.0 turns -0 into 0


def _mean_vector(angles: ArrayLike) -> NDArray[np.complex128]:
    angles = np.asarray(angles, float)
    known = ~np.isnan(angles)
    vectors = np.where(known, np.exp(1j * np.where(known, angles, 0.0)), 0.0)
    return _ratio(vectors.sum(-1), known.sum(-1))


# --- maps over the table of all pairs -----------------------------------------------------------------------


def line_shares(maps: ArrayLike) -> dict[str, Array]:
    """Which of the waves of eq. 11 a map over (n, m) is made of, Gromov (2023), figure 2.

    A wave in n + m lives on the diagonal a = b of the two-dimensional Fourier image, a wave in n - m on a =
    -b, one in 2n on b = 0 and one in 2m on a = 0. For even p a wave in 2n has even frequencies only, so odd
    ones count as rest; and at a = b = p / 2 waves in n + m and n - m are the same function: each line gets
    half of that cell.

    Args:
        maps: (..., p, p) one value per pair, first axis n.

    Returns:
        name -> (...) share of the power without its mean; the names are "n + m", "n - m", "2n", "2m" and
        "rest", the shares add up to 1 (nan for a constant map).

    Raises:
        ValueError: the last two axes differ.
    """
    maps = np.asarray(maps, float)
    p = maps.shape[-1]
    if maps.ndim < 2 or maps.shape[-2] != p:
        raise ValueError(f"maps must have shape (..., p, p), got {maps.shape}")
    power = np.square(np.abs(np.fft.fft2(maps - maps.mean((-2, -1), keepdims=True))))
    power[..., 0, 0] = 0.0
    a = np.arange(p)
    total = power.sum((-2, -1))
    shared = power[..., p // 2, p // 2] / 2 if p % 2 == 0 else np.zeros(maps.shape[:-2])
    wave = slice(None, None, 1 if p % 2 else 2)  # frequencies that a wave in 2n can have; the zero one holds no power
    lines = {
        "n + m": power[..., a, a].sum(-1) - shared,
        "n - m": power[..., a, -a].sum(-1) - shared,
        "2n": power[..., wave, 0].sum(-1),
        "2m": power[..., 0, wave].sum(-1),
    }
    shares = {name: _ratio(line, total) for name, line in lines.items()}
    return shares | {"rest": 1.0 - np.sum(list(shares.values()), axis=0)}


def frequency_family_share(maps: ArrayLike, harmonics: int = 1) -> Array:
    """The share of a map's power held by one frequency in n and m together: (..., p, p) -> (...).

    The family of frequency k is every (a, b) other than (0, 0) with a and b among 0, +-k, ..., +-harmonics k;
    the share is that of the strongest family, with the mean of the map left out (nan for a constant map).

    Raises:
        ValueError: the last two axes differ.
    """
    maps = np.asarray(maps, float)
    p = maps.shape[-1]
    if maps.ndim < 2 or maps.shape[-2] != p:
        raise ValueError(f"maps must have shape (..., p, p), got {maps.shape}")
    power = np.square(np.abs(np.fft.fft2(maps - maps.mean((-2, -1), keepdims=True))))
    power[..., 0, 0] = 0.0
    families = []
    for k in range(1, p // 2 + 1):
        members = sorted({multiple * k % p for multiple in range(-harmonics, harmonics + 1)})
        families.append(power[..., members, :][..., members].sum((-2, -1)))
    return _ratio(np.max(families, axis=0), power.sum((-2, -1)))


# --- the structure of embeddings ----------------------------------------------------------------------------


class Sums(NamedTuple):
    """The samples of an operation, and the couples of samples that have the same answer."""

    pairs: NDArray[np.int64]  #: (sample, 2) operands
    couples: NDArray[np.int64]  #: (parallelogram, 2) indices a < b into the samples, equal answers


def sums_of(p: int, *, modular: bool = False) -> Sums:
    """All samples i <= j of addition on 0 .. p - 1 and the permissible parallelograms among them.

    A parallelogram is an unordered couple of two different unordered pairs with one sum, so (i, j, i, j) is none
    but the degenerate i + n = 2 j is one. Sums are integers, or residues mod p with ``modular``.
    """
    pairs, couples = _addition(int(p), bool(modular))
    return Sums(pairs.copy(), couples.copy())  # the cached ones are shared


@cache
def _addition(p: int, modular: bool) -> Sums:
    pairs = np.stack(np.triu_indices(p), axis=-1)
    answers = pairs.sum(-1) % p if modular else pairs.sum(-1)
    return Sums(pairs, _couples(answers))


def _couples(answers: NDArray[np.int64]) -> NDArray[np.int64]:
    classes = (np.flatnonzero(answers == answer) for answer in np.unique(answers))
    blocks = [members[np.stack(np.triu_indices(len(members), 1), axis=-1)] for members in classes]
    couples = np.concatenate(blocks)
    return couples[np.lexsort(couples.T[::-1])]


def standardised(embedding: ArrayLike, ddof: int = 1) -> Array:
    """Each dimension of (..., p, d) embeddings with mean zero and standard deviation one over the p symbols.

    ``ddof=1`` divides the variance by p - 1, ``ddof=0`` by p: the sum of squares of a dimension is then p - 1 or p.
    The text of Liu et al. (2022), section 3.2, prints a variance where this standard deviation is meant. A
    dimension without spread becomes zero.
    """
    embedding = np.asarray(embedding, float)
    centred = embedding - embedding.mean(-2, keepdims=True)
    spread = centred.std(-2, ddof=ddof, keepdims=True)
    flat = spread <= 1e-14 * np.abs(embedding).max(-2, keepdims=True)  # only rounding is left
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


#: How the differences of d components become one gap: the Euclidean norm, or that divided by the root of d.
REDUCTIONS = ("mean", "sum")

#: How two sums are compared in the modular form: as vectors, or as axes through the origin.
METRICS = ("vector", "axis")

BLOCK = 1 << 20  # differences held at once: 8 MB


def parallelogram_gaps(
    embedding: ArrayLike,
    *,
    normalise: bool = True,
    reduce: str = "mean",
    modular: bool = False,
    metric: str = "vector",
) -> Array:
    """How far each permissible parallelogram is from closing: |E_i + E_j - E_m - E_n|.

    Args:
        embedding: (..., p, d) one vector per symbol.
        normalise, reduce: as in `representation_quality_index`.
        modular, metric: as in `modular_representation_quality_index`.

    Returns:
        (..., parallelogram), in the order of ``sums_of(p, modular=modular).couples``.
    """
    embedding = _embedding(embedding, "(..., p, d)", 2)
    checks.one_of("reduce", reduce, REDUCTIONS)
    checks.one_of("metric", metric, METRICS)
    pairs, couples = _addition(embedding.shape[-2], bool(modular))
    embedding = standardised(embedding) if normalise else embedding
    sums = embedding[..., pairs[:, 0], :] + embedding[..., pairs[:, 1], :]  # (..., sample, d)
    if metric == "axis":
        length = np.linalg.norm(sums, axis=-1, keepdims=True)
        sums = np.where(length <= 1e-9 * length.max(-2, keepdims=True), 0.0, sums)  # rounding has no direction
    return _gaps(sums, couples, reduce, metric)


def representation_quality_index(
    embedding: ArrayLike, delta: float = 0.1, *, normalise: bool = True, reduce: str = "mean"
) -> Array:
    """The share of the permissible parallelograms that close within delta, for addition without modulus.

    The defaults are those of the authors' code: dimensions standardised with the sample standard deviation, and
    the mean square over dimensions at most 0.01. Equation 2 as printed is ``reduce="sum"`` without ``normalise``.

    Args:
        embedding: (..., p, d) one vector per symbol.
        delta: the largest gap of a parallelogram, a length (not squared); 0 asks for equality but for rounding.
        normalise: standardise every dimension first, see `standardised`.
        reduce: "mean" takes the root mean square over dimensions, "sum" the Euclidean norm.

    Returns:
        (...), from 0 to 1: a line E_k = a + k b has 1. nan where an embedding is not finite.

    Reference: Liu et al. (2022), eqs. 1-3.
    """
    gaps = parallelogram_gaps(embedding, normalise=normalise, reduce=reduce)
    return _share_within(gaps, delta)


def modular_representation_quality_index(
    embedding: ArrayLike,
    delta: float = 0.1,
    *,
    normalise: bool = True,
    reduce: str = "mean",
    metric: str = "vector",
) -> Array:
    """The representation quality index with sums taken mod p.

    With vectors the index of Z_p cannot be 1 unless all embeddings coincide: a closed set of modular parallelograms
    is a homomorphism from Z_p to the vectors. A circle makes sums of one residue lie on one axis through the
    origin, at different distances, which a decoder with slices for classes reads. ``metric="axis"`` therefore
    takes the sine of the angle between the two lines as the gap; a sum of zero lies on every axis. In one dimension
    there is only one axis and the index says nothing.

    Args:
        embedding: (..., p, d); other arguments as in `representation_quality_index`.
        metric: one of `METRICS`; ``reduce`` is idle for "axis".

    Returns:
        (...), from 0 to 1; with axes, a circle (of any winding number prime to p) has 1.

    Reference: the generalisation that Liu et al. (2022), section 3.2 (limitations), ask for.
    """
    gaps = parallelogram_gaps(embedding, normalise=normalise, reduce=reduce, modular=True, metric=metric)
    return _share_within(gaps, delta)


def group_parallelogram_gaps(
    embedding: ArrayLike, table: ArrayLike, *, normalise: bool = True, reduce: str = "mean"
) -> Array:
    """How far each couple of products with one answer is from agreeing: ||E_a E_b - E_c E_d||.

    Returns:
        (..., parallelogram): couples of ordered pairs, row a * n + b, in lexicographic order.

    Raises:
        ValueError: the table is not one of the matrices' indices.
    """
    embedding = _embedding(embedding, "(..., element, k, k)", 3)
    table = np.asarray(table)
    n, k = embedding.shape[-3], embedding.shape[-1]
    if embedding.shape[-2] != k or table.shape != (n, n):
        raise ValueError(f"embedding must be (..., n, k, k) and table (n, n), got {embedding.shape} and {table.shape}")
    checks.one_of("reduce", reduce, REDUCTIONS)
    if normalise:
        size = np.sqrt(np.square(embedding).mean((-3, -2, -1), keepdims=True))
        embedding = embedding / np.where(size > 0, size, 1.0)
    products = embedding[..., :, None, :, :] @ embedding[..., None, :, :, :]  # (..., n, n, k, k)
    products = products.reshape(*embedding.shape[:-3], n * n, k * k)
    return _gaps(products, _couples(table.ravel()), reduce, "vector")


def group_representation_quality_index(
    embedding: ArrayLike,
    table: ArrayLike,
    delta: float = 0.5**0.5,
    *,
    normalise: bool = True,
    reduce: str = "mean",
) -> Array:
    """The share of couples of equal products a b = c d for which E_a E_b and E_c E_d agree within delta.

    Args:
        embedding: (..., element, k, k) one matrix per group element.
        table: (element, element) the index of each product.
        delta: the largest gap, a length; the default is the authors' bound 0.5 on the mean squared difference. The
            paper bounds the squared Frobenius norm instead: ``reduce="sum"`` and the root of its delta.
        normalise: divide all matrices by their common root mean square.

    Returns:
        (...), from 0 to 1: a representation of the group has 1. nan where an embedding is not finite.

    Reference: Liu et al. (2022), appendix H.
    """
    gaps = group_parallelogram_gaps(embedding, table, normalise=normalise, reduce=reduce)
    return _share_within(gaps, delta)


def effective_dimension(embedding: ArrayLike) -> Array:
    """How many principal components embeddings fill: the exponential of the entropy of their variance shares.

    Args:
        embedding: (..., p, d).

    Returns:
        (...), between 1 and min(p - 1, d); nan where all symbols coincide.

    Reference: Liu et al. (2022), section 4.2 and figure 7, left.
    """
    embedding = _embedding(embedding, "(..., p, d)", 2)
    centred = embedding - embedding.mean(-2, keepdims=True)
    known = np.isfinite(centred).all((-2, -1))
    variance = np.square(np.linalg.svd(np.where(known[..., None, None], centred, 0.0), compute_uv=False))
    share = _ratio(variance, variance.sum(-1, keepdims=True))
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(-1)
    return np.where(known, np.exp(entropy), np.nan)


class Ring(NamedTuple):
    """How much of a plane of embeddings is one wave around a circle."""

    share: Array  #: (...) share of the variance, from 0 to 1
    frequency: NDArray[np.int64]  #: (...) the winding number 1 .. (p - 1) // 2 that has it


def ring_share(plane: ArrayLike, frequency: int | None = None) -> Ring:
    """The share of the variance of p points that cosine and sine of 2 pi f k / p explain, at the best f.

    Args:
        plane: (..., p, d) coordinates of the symbols in order, usually d = 2 principal components.
        frequency: look at this winding number only.

    Returns:
        The share and its winding number: a circle traversed evenly has 1, a random plane 2 / (p - 1) on average at a
        given f. nan where all points coincide.

    Raises:
        ValueError: no such frequency at this p.
    """
    plane = _embedding(plane, "(..., p, d)", 2)
    p = plane.shape[-2]
    power = np.square(np.abs(np.fft.rfft(plane - plane.mean(-2, keepdims=True), axis=-2))).sum(-1)
    power = power[..., 1 : (p + 1) // 2] * 2 / p  # a frequency and its negative; (..., f)
    total = np.square(plane - plane.mean(-2, keepdims=True)).sum((-2, -1))
    if frequency is None:
        best = power.argmax(-1)
    elif 1 <= frequency <= power.shape[-1]:
        best = np.full(power.shape[:-1], frequency - 1)
    else:
        raise ValueError(f"frequency must be from 1 to {power.shape[-1]} for p = {p}, got {frequency}")
    share = np.take_along_axis(power, best[..., None], -1)[..., 0]
    return Ring(_ratio(share, total), best + 1)


def _gaps(sums: Array, couples: NDArray[np.int64], reduce: str, metric: str) -> Array:
    """(..., sample, d) -> (..., couple), a block of couples and of leading axes at a time; rounding counts as zero."""
    lead, d = sums.shape[:-2], sums.shape[-1]
    flat = sums.reshape(-1, *sums.shape[-2:])
    gaps = np.empty((len(flat), len(couples)))
    wide = max(1, min(len(couples), BLOCK // max(d, 1)))
    tall = max(1, BLOCK // (wide * max(d, 1)))
    for top in range(0, len(flat), tall):
        rows = flat[top : top + tall]
        for left in range(0, len(couples), wide):
            a, b = couples[left : left + wide].T
            block = _axis_gap if metric == "axis" else _vector_gap
            gaps[top : top + tall, left : left + wide] = block(rows[:, a], rows[:, b])
    rounding = 1e-12 * (np.abs(flat).max((-2, -1)) if metric == "vector" else np.ones(len(flat)))
    gaps[gaps <= np.where(np.isfinite(rounding), rounding, 0.0)[:, None]] = 0.0
    if metric == "vector" and reduce == "mean":
        gaps /= np.sqrt(max(d, 1))
    return gaps.reshape(*lead, len(couples))


def _vector_gap(one: Array, other: Array) -> Array:
    return np.linalg.norm(one - other, axis=-1)


def _axis_gap(one: Array, other: Array) -> Array:
    """The sine of the angle between two lines; zero where a vector is zero."""
    one, other = (vector / np.linalg.norm(vector, axis=-1, keepdims=True).clip(1e-300) for vector in (one, other))
    sine = np.linalg.norm(one - (one * other).sum(-1, keepdims=True) * other, axis=-1)
    return np.where(other.any(-1), sine, 0.0)


def _share_within(gaps: Array, delta: float) -> Array:
    """(..., parallelogram) gaps -> (...)."""
    if not delta >= 0:
        raise ValueError(f"delta must be at least 0, got {delta}")
    if not gaps.shape[-1]:
        raise ValueError("there is no parallelogram among so few symbols: p must be at least 3")
    return np.where(np.isfinite(gaps).all(-1), (gaps <= delta).mean(-1), np.nan)


def _embedding(embedding: ArrayLike, shape: str, least: int) -> Array:
    embedding = np.asarray(embedding, float)
    if embedding.ndim < least:
        raise ValueError(f"embedding must have shape {shape}, got {embedding.shape}")
    return embedding


def _halves(W_in: ArrayLike) -> Array:
    """(..., width, 2p) -> (..., width, 2, p): the weights of the first and of the second operand."""
    W_in = np.asarray(W_in, float)
    if W_in.ndim < 2 or W_in.shape[-1] % 2:
        raise ValueError(f"W_in must have shape (..., width, 2p), got {W_in.shape}")
    return W_in.reshape(*W_in.shape[:-1], 2, W_in.shape[-1] // 2)


def _ratio(numerator, denominator):
    """numerator / denominator, nan where the denominator is zero, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)


# --- distances between embeddings of consecutive numbers ----------------------------------------------------


def main_embedding_difference(
    embedding: ArrayLike, *, cyclic: bool = True, reduction: str = "mean", step: int = 1
) -> Array:
    """MED: how far the embeddings of consecutive numbers lie apart, Gu et al. (2025), definition 4.2.

    The defaults are the definition; `MED_FORMS` are the other things that were published under the name. The
    measure changes when the residues are relabelled by i -> a i, which leaves addition the same task: the MED
    of the relabelled embedding is the one with ``step=a``.

    Args:
        embedding: (..., p, d) one row a residue, in order; word embeddings, without a positional table.
        cyclic: count the differences that wrap from p - 1 to 0.
        reduction: "mean" or "sum" over the differences, "none" keeps them.
        step: compare i with i + step, not a multiple of p.

    Returns:
        (...), or with "none" (..., p) differences if cyclic, else (..., p - step).

    Raises:
        ValueError: fewer than two rows, a step without a difference, or an unknown reduction.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2 or embedding.shape[-2] < 2:
        raise ValueError(f"embedding must have shape (..., p, d) with p of at least 2, got {embedding.shape}")
    p = embedding.shape[-2]
    if not isinstance(step, int | np.integer) or step % p == 0 or not (cyclic or 0 < step < p):
        wanted = "a whole number, no multiple of p" if cyclic else "a whole number from 1 to p - 1 without the wrap"
        raise ValueError(f"step must be {wanted}, got step={step} with p={p}")
    reductions = {"mean": lambda d: d.mean(-1), "sum": lambda d: d.sum(-1), "none": lambda d: d}
    if reduction not in reductions:
        raise ValueError(f"reduction must be one of {', '.join(map(repr, reductions))}, got {reduction!r}")
    ahead = np.roll(embedding, -step, axis=-2)
    differences = np.sqrt(np.square(ahead - embedding).sum(-1))  # (..., p)
    return reductions[reduction](differences if cyclic else differences[..., : p - step])


def _cyclic_mean(block: Array) -> Array:
    return main_embedding_difference(block)


def _open_sum(block: Array) -> Array:
    return main_embedding_difference(block, cyclic=False, reduction="sum")


def _short_mean(block: Array) -> Array:
    """The slice of the released scripts: neither token p - 1 nor the wrap, p - 2 differences."""
    return main_embedding_difference(block[..., :-1, :], cyclic=False)


#: What was published as MED, from the embeddings (..., p, d) of the first and of the second operand. With
#: shared tokens both are the same block, which M3, M5 and M6 then count twice.
MED_FORMS = {
    "M1": lambda a, b: (_cyclic_mean(a) + _cyclic_mean(b)) / 2,  # 2025, definition 4.2
    "M2": lambda a, b: a.shape[-2] * (_cyclic_mean(a) + _cyclic_mean(b)) / 2,  # 2025, figure 5
    "M3": lambda a, b: _open_sum(a) + _open_sum(b),  # earlier version, eq. 12
    "M4": lambda a, b: (_short_mean(a) + _short_mean(b)) / 2,  # script base.py
    "M5": lambda a, b: (a.shape[-2] - 1) * (_short_mean(a) + _short_mean(b)),  # script rec.py
    "M6": lambda a, b: _short_mean(a) + _short_mean(b),  # script str.py
}


def published_med(first: ArrayLike, second: ArrayLike | None = None, *, form: str = "M1") -> Array:
    """MED in one of its six published forms.

    Args:
        first: (..., p, d) embedding of the first operand, p of at least 3.
        second: the same for the second operand; None if the operands share their tokens.
        form: a key of `MED_FORMS`.

    Returns:
        (...). For Gaussian entries of variance 1/d every single difference is close to sqrt(2).

    Raises:
        ValueError: fewer than three rows, blocks of two shapes, or an unknown form.
    """
    if form not in MED_FORMS:
        raise ValueError(f"form must be one of {', '.join(MED_FORMS)}, got {form!r}")
    first = np.asarray(first, float)
    second = first if second is None else np.asarray(second, float)
    if first.shape != second.shape:
        raise ValueError(f"second must have the shape of first, {first.shape}, got {second.shape}")
    if first.ndim < 2 or first.shape[-2] < 3:
        raise ValueError(f"first must have shape (..., p, d) with p of at least 3, got {first.shape}")
    return MED_FORMS[form](first, second)


def embedding_blocks(table: ArrayLike, p: int, offset: int = 0) -> tuple[Array, Array]:
    """The operands' parts of a vocabulary: rows 0 to p - 1 and rows offset to offset + p - 1.

    Args:
        table: (..., vocabulary, d) all embeddings; the last row, of the token "cls", belongs to no operand.
        p: modulus.
        offset: token of the second operand's 0, the k of the earlier version's figure 3; 0 shares all tokens.

    Returns:
        two arrays (..., p, d).

    Raises:
        ValueError: offset + p exceeds the vocabulary.
    """
    table = np.asarray(table, float)
    if table.ndim < 2:
        raise ValueError(f"table must have shape (..., vocabulary, d), got {table.shape}")
    if p < 2 or offset < 0 or offset + p > table.shape[-2]:
        raise ValueError(
            f"offset + p must fit the vocabulary of {table.shape[-2]} tokens, got offset={offset} and p={p}"
        )
    return table[..., :p, :], table[..., offset : offset + p, :]


def embedding_norm(embedding: ArrayLike) -> Array:
    """R, the root mean square length of the embeddings: (..., p, d) -> (...)."""
    return np.sqrt(np.square(np.asarray(embedding, float)).sum(-1).mean(-1))


def permuted_embedding_difference(embedding: ArrayLike, *, seed: int = 0) -> Array:
    """MED after one fixed random relabelling of the residues: (..., p, d) -> (...).

    Whatever it shares with MED is due to the size of the embeddings, not to the order of the numbers. The
    seed fixes the permutation, the same one for every leading index.

    Raises:
        ValueError: not of two dimensions or more.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    order = np.random.default_rng(seed).permutation(embedding.shape[-2])
    return main_embedding_difference(embedding[..., order, :])


def med_controls(embedding: ArrayLike, *, seed: int = 0) -> dict[str, Array]:
    """What MED must beat to say more than that weights shrink.

    Args:
        embedding: (..., p, d).
        seed: of the permutation of "med_permuted".

    Returns:
        name -> (...): "embedding_norm" (R), "med_over_norm" (M1 over R, nan where the embedding is zero) and
        "med_permuted".
    """
    norm = embedding_norm(embedding)
    return {
        "embedding_norm": norm,
        "med_over_norm": _ratio(main_embedding_difference(embedding), norm),
        "med_permuted": permuted_embedding_difference(embedding, seed=seed),
    }
