"""Studies that ``studies.py`` asks for; both go when the page's new rooms are whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from grokbook import checks
from grokbook.chapters.gromov.theory.outputs import accuracy, network
from grokbook.chapters.gromov.theory.tables import table_accuracy
from grokbook.chapters.gromov.theory.waves import WAVES
from grokbook.chapters.gromov.theory.weights import (
    answers,
    cosine_weights,
    draw_phases,
    modular_roots,
    phases_of,
    product_weights,
)
from grokbook.measures import IPR_DEFINITIONS, first_layer_ipr

READOUTS = (
    "one root, else zero",
    "one root, else random phases",
    "one root, else the answer itself",
    "all roots",
)


def branch_study(F, p: int, widths: Sequence[int], seeds: Sequence[int]) -> xr.Dataset:
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
        [table_accuracy(network(*complex_weights(p, width, generator=seed))) for seed in seeds] for width in widths
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


def noise_shares() -> dict[str, float]:
    """Share of the noise variance 4 / width of an output that each destructive family of `WAVES` holds.

    A wave with a random phase has variance 1/2, so a family has 2 weight**2 / width.
    """
    return {name: weight**2 / 2 for name, (weight, _) in WAVES.items() if name != "n + m - q"}


def complex_weights(p: int, width: int, *, phases=None, generator=None):
    """Complex weights that solve n + m, eqs. 20-21 with the phases of eq. 26: (width, 2p) and (p, width).

    Eqs. 23-25 miss a factor 2 in the phases of their first two terms. With angles a and b of the operands the square is
    4 cos((a - b) / 2)**2 exp(i (a + b)): every neuron adds a wave in n + m - q with a weight that is never negative, so
    the real part is largest at the right answer whatever the width and the phases. `network` with the factor 1 / (2
    width) gives outputs that tend to 1 there.
    """
    p, width = checks.integer("p", p, 2), checks.integer("width", width, 1)
    phi1, phi2, phi3 = phases_of(phases, width, generator)[:, :, None]
    angle = 2 * np.pi / p * (np.arange(1, width + 1)[:, None] * np.arange(p) % p)  # (width, p)
    W_in = np.concatenate([np.exp(1j * (angle + phi1)), np.exp(1j * (angle + phi2))], axis=1)
    return W_in, np.exp(-1j * (angle + phi3)).T


def random_features(p: int, width: int, *, train_fraction: float = 0.5, ridge: float = 1e-6, generator=None):
    """Train and test accuracy on n + m of a frozen normal first layer with the best readout for it (section 5.1).

    Args:
        train_fraction: share of the pairs, drawn at random, that the readout is fitted to.
        ridge: penalty on the squared weights, in units where the Gram matrix is Z Z^T / width.
    """
    generator = checks.generator(generator)
    train, test = np.split(generator.permutation(p * p), [min(max(1, round(train_fraction * p * p)), p * p - 1)])
    W_in = generator.standard_normal((width, 2 * p))
    Z = (W_in.T[train // p] + W_in.T[p + train % p]) ** 2  # (pair, width)
    targets = np.eye(p)[answers(p).ravel()[train]]
    if width <= len(train):
        readout = np.linalg.solve(Z.T @ Z / width + ridge * np.eye(width), Z.T @ targets)
    else:  # the same solution through the smaller matrix, one row per training pair
        readout = Z.T @ np.linalg.solve(Z @ Z.T / width + ridge * np.eye(len(train)), targets)
    return accuracy(W_in, readout.T, pairs=train), accuracy(W_in, readout.T, pairs=test)
