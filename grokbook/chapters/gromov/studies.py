"""Numbers that the figures and the claims share: read off records, or computed from the analytic weights.

A study is a dataset made without training. It stands beside the records under its own name, so that a figure or a
claim asks for either in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapters.gromov import theory
from grokbook.measures import median as median
from grokbook.models.mlp import SCALINGS
from grokbook.models.transformer import AttentionOnly
from grokbook.train.experiment import Experiment
from grokbook.train.records import conditions as conditions
from grokbook.train.records import select

THRESHOLD = 0.99  # accuracy at which a run counts as having learnt; the paper does not say
Array = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------- from records


def own_steps(record: xr.Dataset) -> xr.Dataset:
    """Without the steps at which none of these runs was measured: conditions of one record may differ in them."""
    return record.isel(step=np.flatnonzero(np.isfinite(record.train_loss.values).any(0)))


def times(record: xr.Dataset) -> tuple[Array, Array]:
    """t_train and t_test, each (run,): the first measured step with accuracy ``THRESHOLD``; nan if never."""
    steps = record.step.values
    return (
        measures.first_step(record.train_accuracy.values, steps, THRESHOLD),
        measures.first_step(record.test_accuracy.values, steps, THRESHOLD),
    )


def at(record: xr.Dataset, name: str, steps: Array) -> Array:
    """(run,) the value of a curve at each run's own step (the last one measured up to it); nan where that is nan."""
    values, measured = record[name].values, record.step.values
    found = np.full(len(steps), np.nan)
    for run, step in enumerate(steps):
        known = np.isfinite(values[run]) & (measured <= step)
        if np.isfinite(step) and known.any():
            found[run] = values[run, known][-1]
    return found


def last(record: xr.Dataset, name: str) -> Array:
    """(run,) the last measured value of a curve; nan where there is none."""
    return measures.last_value(record[name].values)


def loss_peak(record: xr.Dataset) -> tuple[Array, Array]:
    """(run,) step and value of the largest test loss after a tenth of t_train."""
    steps = record.step.values
    t_train, _ = times(record)
    where, peak = np.full((2, record.sizes["run"]), np.nan)
    for run, loss in enumerate(record.test_loss.values):
        inside = (steps >= 0.1 * t_train[run]) & np.isfinite(loss)
        if inside.any():
            best = np.argmax(np.where(inside, loss, -np.inf))
            where[run], peak[run] = steps[best], loss[best]
    return where, peak


def gradient_norm(record: xr.Dataset) -> Array:
    """(run, step) norm of the gradient, both layers together."""
    return np.hypot(record.gradient_norm_W_in.values, record.gradient_norm_W_out.values)


def highest_at(values: Array, steps: NDArray) -> Array:
    """(run,) the step at which each row of (run, step) is largest; nan for a run that was never measured."""
    known = np.isfinite(values)
    found = steps[np.where(known, values, -np.inf).argmax(1)].astype(float)
    return np.where(known.any(1), found, np.nan)


def relative_norms(record: xr.Dataset, layer: str) -> Array:
    """(run, step) norm of a layer's weights in units of its initial norm."""
    norms = record[f"weight_norm_{layer}"].values
    return norms / norms[:, :1]


def sweep(record: xr.Dataset, over: str, values: Callable[[xr.Dataset], Array]) -> tuple[Array, Array]:
    """A quantity of every run against a swept setting.

    Args:
        record: the runs of one condition.
        over: name of the swept coordinate, e.g. ``"width"``.
        values: record -> (run,).

    Returns:
        (n,) the settings in increasing order and (seed, n) the values, nan where a seed has no such run.
    """
    settings, seeds = np.unique(record[over].values), np.unique(record.seed.values)
    table = np.full((len(seeds), len(settings)), np.nan)
    table[np.searchsorted(seeds, record.seed.values), np.searchsorted(settings, record[over].values)] = values(record)
    return settings, table


def weights(record: xr.Dataset, run: int = 0, snapshot: int = -1) -> tuple[Array, Array]:
    """``W_in`` (width, 2p) and ``W_out`` (p, width) of a run at one of its snapshots."""
    return (
        record.W_in.isel(run=run, snapshot=snapshot).values.astype(float),
        record.W_out.isel(run=run, snapshot=snapshot).values.astype(float),
    )


def outputs(record: xr.Dataset, run: int = 0, snapshot: int = -1) -> NDArray:
    """(p, p, p) what the network of a snapshot answers to every pair, answer last."""
    W_in, W_out = weights(record, run, snapshot)
    p, width = W_out.shape
    factor = SCALINGS[str(record.scaling.values[run])](p, width)[0]
    return theory.network(W_in.astype(np.float32), W_out.astype(np.float32), factor=factor)


def hidden_map(row: Array) -> Array:
    """(p, p) preactivation, for every pair, of the hidden unit whose row of ``W_in`` this is, (2p,)."""
    p = len(row) // 2
    return row[:p, None] + row[None, p:]


def fourier_image(values: Array) -> Array:
    """(p, p) modulus of the two-dimensional transform, mean left out, zero frequency in the middle."""
    return np.fft.fftshift(np.abs(np.fft.fft2(values - values.mean())))


def line_shares(records: Mapping[str, xr.Dataset]) -> xr.Dataset | None:
    """``share`` (condition, line, seed) of an output map's power on each Fourier line, median over answers.

    From the records ``learning_curves`` and ``adamw_curves`` and the study ``lines``; None if one of them is missing.
    """
    if not all(name in records for name in ("learning_curves", "adamw_curves", "lines")):
        return None
    parts = []
    for condition, name, snapshot in (
        ("initial", "learning_curves", 0),
        ("GD", "learning_curves", -1),
        ("AdamW", "adamw_curves", -1),
    ):
        record = records[name]
        rows = []
        for run in range(record.sizes["run"]):
            maps = np.moveaxis(outputs(record, run, snapshot), -1, 0)
            rows.append([float(np.median(share)) for share in measures.line_shares(maps).values()])
        coords = {"line": records["lines"].line.values, "seed": range(len(rows))}
        parts.append(xr.DataArray(np.array(rows).T, coords, ("line", "seed")).expand_dims(condition=[condition]))
    parts.append(records["lines"].share.expand_dims(condition=["analytic"]))
    return xr.concat(parts, "condition", join="outer").to_dataset(name="share")


def layer_phases(record: xr.Dataset, run: int) -> measures.PhaseResiduals:
    """Phases and residuals of every neuron at the end of a run."""
    return measures.phase_residuals(*weights(record, run))


def top_share(W_in: Array) -> float:
    """Median over units and operands of the share of power that the strongest wave holds."""
    p = W_in.shape[1] // 2
    return float(np.median(measures.single_frequency_share(W_in.reshape(len(W_in), 2, p))))


# --------------------------------------------------------------------------------------------- without any training

REFERENCE_WIDTHS = (20, 40, 60, 75, 97, 120, 150, 200, 500, 1000)
EVEN = ("quartic", "quadratic", "relu_squared", "abs", "gelu", "relu", "silu", "exp", "softplus")
ODD = ("tanh", "sigmoid", "cubic")
SAMPLE = 400  # pairs looked at where the whole table would take minutes; a sample estimates the accuracy without bias


def analytic_outputs(p: int, phases: Array) -> Array:
    """(p, p, p) outputs of the analytic network, from the waves of eq. 11: much quicker than its hidden layer."""
    return np.sum(list(theory.wave_families(p, phases).values()), axis=0)


def analytic(p: int, widths: Sequence[int], seeds: int) -> xr.Dataset:
    """The analytic solution of n + m over (width, seed), on the whole table.

    ``accuracy``; ``accuracy_centred``, with each output's mean over the table taken away; ``mse``; ``peak``, the mean
    output at the right answer; and ``expected_mse`` (width).
    """
    names = ("accuracy", "accuracy_centred", "mse", "peak")
    values = np.empty((len(names), len(widths), seeds))
    for i, width in enumerate(widths):
        for seed in range(seeds):
            made = analytic_outputs(p, theory.draw_phases(int(width), generator=seed))
            values[:, i, seed] = (
                theory.table_accuracy(made),
                theory.table_accuracy(theory.centred(made)),
                theory.table_mse(made),
                theory.right_outputs(made).mean(),
            )
    variables = {name: (("width", "seed"), table) for name, table in zip(names, values, strict=True)}
    coords = {"width": [int(width) for width in widths], "seed": range(seeds)}
    study = xr.Dataset(variables, coords, {"modulus": p})
    return study.assign(expected_mse=("width", [theory.expected_mse(p, int(width)) for width in widths]))


def _analytic(p: int, width: int, seeds: int) -> xr.Dataset:
    return analytic(p, REFERENCE_WIDTHS, seeds)


def _lines(p: int, width: int, seeds: int) -> xr.Dataset:
    """Where the power of an analytic output map lies: share (line, seed), median over answers."""
    rows = []
    for seed in range(seeds):
        maps = np.moveaxis(analytic_outputs(p, theory.draw_phases(width, generator=seed)), -1, 0)
        rows.append([float(np.median(share)) for share in measures.line_shares(maps).values()])
    names = ["n + m", "n - m", "2n", "2m", "rest"]
    return xr.Dataset({"share": (("line", "seed"), np.array(rows).T)}, {"line": names, "seed": range(seeds)})


def _profile(p: int, width: int, seeds: int) -> xr.Dataset:
    """The output by distance from the right answer: ``mean`` and ``sd`` (width, offset) of one draw of the phases."""
    widths = (50, 200, 1000)
    found = [theory.offset_profile(analytic_outputs(p, theory.draw_phases(one, generator=0))) for one in widths]
    offsets = (np.arange(p) + p // 2) % p - p // 2  # -p/2 .. p/2
    order = np.argsort(offsets)
    table = np.array(found)[:, :, order]  # (width, mean and sd, offset)
    variables = {"mean": (("width", "offset"), table[:, 0]), "sd": (("width", "offset"), table[:, 1])}
    return xr.Dataset(variables, {"width": list(widths), "offset": offsets[order]})


def _sampled(p: int, widths: Sequence[int], seeds: int, names: Sequence[str], scale: float = 1.0) -> xr.DataArray:
    return theory.accuracy_against_width(
        p, widths, range(min(seeds, 3)), activations=names, input_scale=scale, pairs=SAMPLE
    )


def _activations(p: int, width: int, seeds: int) -> xr.Dataset:
    """Widths double; only softplus needs the last two."""
    common = _sampled(p, (50, 100, 200, 400, 800, 1600), seeds, EVEN)
    wide = _sampled(p, (3200, 6400), seeds, ("softplus",))
    return xr.concat([common, wide], "width", join="outer").reindex(activation=list(EVEN)).to_dataset()


def _odd_activations(p: int, width: int, seeds: int) -> xr.Dataset:
    """Near chance a small sample is too noisy: the whole table, and more pairs of the widest network."""
    draws = range(min(seeds, 3))
    common = theory.accuracy_against_width(p, (100, 1000), draws, activations=ODD)
    wide = theory.accuracy_against_width(p, (12800,), draws, activations=ODD, pairs=1500)
    return xr.concat([common, wide], "width").to_dataset()


def _scaled_gelu(p: int, width: int, seeds: int) -> xr.Dataset:
    """GELU and ReLU with preactivations divided by sqrt(2p), as in the first public version of the paper."""
    scale = float(1 / np.sqrt(2 * p))
    both = _sampled(p, (200, 400, 800, 1600, 3200), seeds, ("gelu", "relu"), scale)
    wide = _sampled(p, (6400, 12800, 25600), seeds, ("gelu",), scale)
    return xr.concat([both, wide], "width", join="outer").to_dataset()


def _power(exponent: int) -> Callable[[int], int]:
    return lambda s: s**exponent


def _branches(p: int, width: int, seeds: int) -> xr.Dataset:
    """(n + m) to the powers 2, 3 and 4, which have several roots or none."""
    plans: tuple[tuple[int, tuple[int, ...], int], ...] = ((2, (100, 200, 500), 3), (3, (500,), 2), (4, (500,), 2))
    parts = [
        theory.branch_study(_power(exponent), p, widths, range(min(seeds, most))).expand_dims(exponent=[exponent])
        for exponent, widths, most in plans
    ]
    return xr.concat(parts, "exponent", join="outer")


def _squares(p: int, width: int, seeds: int) -> xr.Dataset:
    square = _power(2)
    return theory.accuracy_against_width(p, (100, 200, 500), range(min(seeds, 3)), f1=square, f2=square).to_dataset()


def _linear(p: int, width: int, seeds: int) -> xr.Dataset:
    """3n + 5m + 7."""
    first, second = [3 * n + 7 for n in range(p)], [5 * m for m in range(p)]
    return theory.accuracy_against_width(p, (500,), range(min(seeds, 3)), f1=first, f2=second).to_dataset()


def composite_neighbours(p: int) -> list[int]:
    """Those of p - 1, p + 1 and p + 3 that are no primes; none for p = 4."""
    return [q for q in (p - 1, p + 1, p + 3) if q >= 4 and not is_prime(q)]


def _composite(p: int, width: int, seeds: int) -> xr.Dataset:
    """Addition modulo neighbours of p that are no primes."""
    parts = [analytic(q, (200,), seeds)[["accuracy"]].expand_dims(modulus=[q]) for q in composite_neighbours(p)]
    return xr.concat(parts, "modulus")


def _phase_noise(p: int, width: int, seeds: int) -> xr.Dataset:
    """What errors in eq. 12 cost at width 500: ``accuracy`` and ``peak`` (noise, seed); inf is an independent phase."""
    noises = (0.0, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, np.inf)
    values = np.empty((2, len(noises), min(seeds, 3)))
    for i, noise in enumerate(noises):
        for seed in range(values.shape[2]):
            free = bool(np.isinf(noise))
            phases = theory.draw_phases(500, constrained=not free, noise=0.0 if free else noise, generator=seed)
            made = analytic_outputs(p, phases)
            values[:, i, seed] = theory.table_accuracy(made), theory.right_outputs(made).mean()
    dims = ("noise", "seed")
    return xr.Dataset(
        {"accuracy": (dims, values[0]), "peak": (dims, values[1])},
        {"noise": list(noises), "seed": range(values.shape[2])},
    )


def _complex(p: int, width: int, seeds: int) -> xr.Dataset:
    return theory.complex_study(p, (10, 20, 30, 50, 100), range(min(seeds, 3))).to_dataset()


def _product(p: int, width: int, seeds: int) -> xr.Dataset:
    return theory.product_study(p, (50, 100, 200, 500), range(min(seeds, 3)))


def _ipr(p: int, width: int, seeds: int) -> xr.Dataset:
    return theory.ipr_study(p, width, range(seeds)).to_dataset()


def _frozen(p: int, width: int, seeds: int) -> xr.Dataset:
    """At p = 53 at most: the ridge solution inverts a matrix with a side of half of p squared."""
    modulus = min(p, 53)
    study = theory.random_features_study(modulus, (500, 3000), range(min(seeds, 3)), train_fraction=0.5)
    return study.assign_attrs(modulus=modulus)


STUDIES: Mapping[str, Callable[[int, int, int], xr.Dataset]] = {
    "analytic": _analytic,
    "profile": _profile,
    "lines": _lines,
    "activations": _activations,
    "odd_activations": _odd_activations,
    "scaled_gelu": _scaled_gelu,
    "branches": _branches,
    "squares": _squares,
    "linear": _linear,
    "composite": _composite,
    "phase_noise": _phase_noise,
    "complex": _complex,
    "product": _product,
    "ipr": _ipr,
    "frozen": _frozen,
}


def petaflop(experiment: Experiment) -> float:
    """What a training costs if no run stops early: six operations per sample, step and weight met in a product."""

    def products(model: Any) -> int:
        if hasattr(model, "width"):
            return int(model.width * model.p)  # the one-hot first layer is a look-up
        # The first layer's queries, keys and values are made once per residue, not per pair.
        d = model.d_model
        layers = 5 * (model.layers - 1) if isinstance(model, AttentionOnly) else 8
        return int(layers * d * d + d * model.p)

    return sum(6e-15 * run.steps * run.task.train_size * products(run.model) for run in experiment.runs)


def is_prime(p: int) -> bool:
    """Whether p has no divisor but 1 and itself."""
    return p > 1 and all(p % d for d in range(2, int(p**0.5) + 1))


def study(name: str, p: int, width: int, seeds: int) -> xr.Dataset | None:
    """One study at these settings; None where it has no meaning (logarithms need a prime)."""
    if (name == "product" and not is_prime(p)) or (name == "composite" and not composite_neighbours(p)):
        return None
    return STUDIES[name](p, width, seeds).assign_attrs(p=p)


# ------------------------------------------------------------- numbers that figures and claims share


# How an activation of ``theory.ACTIVATIONS`` is written.
NAMES = {
    "quadratic": "x²",
    "quartic": "x⁴",
    "cubic": "x³",
    "abs": "|x|",
    "relu": "ReLU",
    "relu_squared": "ReLU²",
    "gelu": "GELU",
    "silu": "SiLU",
    "exp": "exp",
    "softplus": "softplus",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}


def test_times(record: xr.Dataset) -> np.ndarray:
    """(run,) t_test."""
    return times(record)[1]


def final_test_accuracy(record: xr.Dataset) -> np.ndarray:
    """(run,) test accuracy at the end."""
    return last(record, "test_accuracy")


def best(record: xr.Dataset, split: str) -> np.ndarray:
    """(run,) the highest accuracy on a split: early stopping, at a step of each split's own.

    A network that never generalises can be best on the test set before it has learnt anything.
    """
    return np.nanmax(record[f"{split}_accuracy"].values, axis=1)


def fraction_records(records: Mapping[str, xr.Dataset]) -> list[tuple[int, xr.Dataset]]:
    """(modulus, its AdamW runs over train fractions), smallest first; the chapter's own modulus is Fig. 4a's."""
    found = {int(p): select(records["critical_fraction"], p=p) for p in np.unique(records["critical_fraction"].p)}
    if "data_fraction" in records:
        own = select(records["data_fraction"], label="AdamW")
        if own.sizes["run"]:
            found[int(own.p.values[0])] = own
    return sorted(found.items())


def smallest_fraction(record: xr.Dataset) -> np.ndarray:
    """(seed,) the smallest train fraction from which on upwards every run of a seed grokked; nan if none."""
    x, table = sweep(record, "train_fraction", test_times)
    found = np.full(len(table), np.nan)
    for seed, row in enumerate(np.isfinite(table)):
        unbroken = np.cumprod(row[::-1])[::-1].astype(bool)
        if unbroken.any():
            found[seed] = x[unbroken.argmax()]
    return found


def pretty(f: str) -> str:
    """An expression as it is written by hand: "n**2 + m**2" -> "n² + m²"."""
    text = f.replace("**2", "²").replace("**3", "³").replace("**4", "⁴").replace("n*m", "nm")
    return text.replace("*", "").replace(" ", "\u2009")
