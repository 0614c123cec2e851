"""Figs 4 (b) to (d) and 5: a loss without a decoder, its slowest rate, and when networks get to the line."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.chapters.liu.training import (
    BOTH_REACHED,
    EMBEDDING_RATE,
    STRUCTURED,
    Sizes,
    sizes_of,
    task_of,
    toy_run,
    train_sets,
    two_groups,
)
from grokbook.claims import Part, above, at_least, at_most, below, between, near
from grokbook.curves import spearman
from grokbook.measures import median
from grokbook.settings import Seeds, Steps
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Schedule, Watch
from grokbook.words import percent

section = Section("effective")
Array = NDArray[np.float64]

TIME_SIZES = (15, 18, 20, 22, 25, 28, 30, 33, 36, 39, 42, 45, 48, 50, 52, 54)
BATCH = 45  # as in Fig. 3
FAST, USUAL = "embeddings 1e-2", "embeddings 1e-3"
RATES = {FAST: 1e-2, USUAL: EMBEDDING_RATE}


def _times(s: Settings, name: str, steps: int, sizes: list[int], batch: int | None) -> Experiment:
    """Networks of two learning rates of the embeddings, each until its representation is there."""
    runs = [
        toy_run(AdditionTask(s.p, size), two_groups(embedding=rate), steps, seed, label)
        for label, rate in RATES.items()
        for size in sizes
        for seed in range(s.seeds)
    ]
    return Experiment(
        f"liu/{name}",
        tuple(dataclasses.replace(run, batch_size=batch) for run in runs),
        Schedule(log=20),
        ("rqi",),
        snapshots=(0, -1),
        keep=("W_E",),
        watch=Watch((("rqi", STRUCTURED),)),
    )


@section.experiment(quick={"steps": 1000, "sizes": (25, 40, 54)})
def structure_times(s: Settings, *, steps: Steps = 10_000, sizes: Sizes = TIME_SIZES) -> Experiment:
    """Figs 4 (b) and 5 (b): when the representation is there, with the whole training set at every step."""
    return _times(s, "structure_times", steps, sizes_of(s.p, sizes), None)


@section.experiment(quick={"steps": 1000})
def structure_times_batched(s: Settings, *, steps: Steps = 10_000, sizes: Sizes = (48, 50, 52, 54)) -> Experiment:
    """Figs 4 (b) and 5 (b): the training sets above 45 samples in batches of 45, as in the authors' code."""
    batch = sizes_of(s.p, (BATCH,))[0]
    return _times(s, "structure_times_batched", steps, [n for n in sizes_of(s.p, sizes) if n > batch], batch)


@section.experiment(quick={"steps": 1500})
def trajectory(s: Settings, *, steps: Steps = 2_000, seed: Seeds = 58, frames: Steps = 100) -> Experiment:
    """Fig. 4 (d): the embeddings of one network on their way to a line."""
    return Experiment(
        "liu/trajectory",
        (toy_run(AdditionTask(s.p, s.train_size), two_groups(), steps, seed),),
        Schedule(log=40, every=max(1, steps // 100)),
        ("rqi",),
        snapshots=tuple(dict.fromkeys(round(steps * i / frames) for i in range(frames + 1))),
        keep=("W_E",),
        watch=Watch((*BOTH_REACHED.thresholds, ("rqi", STRUCTURED)), every=1, leave=False),
    )


# ------------------------------------------------------------------------------------------ flow and network, Fig. 4


class Start(NamedTuple):
    """Where one network begins, and how fast the effective theory says that it goes."""

    embedding: Array  #: (p, 1) standardised
    pairs: NDArray[np.int64]  #: (n, 2) the training set
    rate: float  #: the embeddings' learning rate
    n_h: float  #: 1 / (eta lambda_3), with the sum over parallelograms
    n_h_mean: float  #: the same with their mean

    def flow(self, steps: ArrayLike) -> Array:
        """The effective flow from here, standardised: (t, p, 1)."""
        return measures.standardised(theory.flow(self.embedding, self.pairs, self.rate * np.asarray(steps)))

    def fit(self, waits: float) -> float:
        """How well a line fits the flow after so many n_h."""
        return float(theory.line_fit(self.flow([waits * self.n_h])[0]).r2)

    @property
    def waits(self) -> float:
        """How many n_h it takes until what is not on the line is a tenth of what is."""
        return float(np.log(10 * theory.line_fit(self.embedding).rho))


def start_of(record: xr.Dataset) -> Start:
    """The start of the network of ``trajectory``."""
    run = record.isel(run=0)
    pairs, p, rate = task_of(run).train_pairs(int(run.seed)), int(run.p), float(run.W_E_lr)
    embedding = networks_path(record)[0][:, None]
    Z0 = float(theory.conserved(embedding).Z0)
    n_h, mean = (
        float(theory.grokking_steps(pairs, p, learning_rate=rate, Z0=Z0, averaging=way)) for way in ("sum", "mean")
    )
    return Start(embedding, pairs, rate, n_h, mean)


def networks_path(record: xr.Dataset) -> Array:
    """The network's standardised embeddings at the kept steps, (t, p)."""
    return measures.standardised(record.W_E.isel(run=0).values.astype(float))[..., 0]


def last_fit(record: xr.Dataset) -> float:
    """How well a line fits the network's last embeddings."""
    return float(theory.line_fit(networks_path(record)[-1][:, None]).r2)


def in_order(record: xr.Dataset) -> bool:
    """Whether the network's last embeddings stand in the order of the symbols, up or down."""
    steps = np.diff(networks_path(record)[-1])
    return bool((steps > 0).all() or (steps < 0).all())


# -------------------------------------------------------------------------------------- when networks arrive, Fig. 5


def _arrivals(record: xr.Dataset) -> xr.Dataset:
    p = int(record.p.values[0])
    rate = np.array([float(theory.grokking_rate(pairs, p)) for pairs in train_sets(record)])
    with np.errstate(divide="ignore"):
        predicted = 1 / (rate * record.W_E_lr.values)
    columns = {
        "label": record.label.values,
        "size": record.train_size.values,
        "fraction": record.train_size.values / (p * (p + 1) / 2),
        "steps": record.reached_rqi.values,
        "nullity": np.array([int(theory.nullity(pairs, p)) for pairs in train_sets(record)]),
        "predicted": np.where(np.isinf(predicted), np.nan, predicted),
    }
    return xr.Dataset({name: ("run", column) for name, column in columns.items()})


@section.study
def arrivals(structure_times: xr.Dataset, structure_times_batched: xr.Dataset) -> xr.Dataset:
    """What every network needed beside what its training set implies; sets above the batch size in batches.

    Returns:
        Dataset over run: ``label``, ``size``, ``fraction``, ``steps`` to an index above 0.95 (nan: not reached),
        ``nullity``, and ``predicted`` = 1 / (eta lambda_3), with the sum over parallelograms and the network's own
        eta (nan: no line is implied).
    """
    batched = _arrivals(structure_times_batched)
    small = np.flatnonzero(structure_times.train_size.values < float(batched["size"].min()))
    return xr.concat([_arrivals(structure_times.isel(run=small)), batched], "run")


def of(found: xr.Dataset, label: str) -> xr.Dataset:
    """The networks of one learning rate."""
    return found.isel(run=np.flatnonzero(found.label.values == label))


def by_share(found: xr.Dataset, name: str) -> tuple[Array, list[Array]]:
    """The shares that occur, and a variable's values (run,) at each."""
    shares = np.unique(found.fraction.values)
    return shares, [found[name].values[found.fraction.values == one] for one in shares]


def success(found: xr.Dataset) -> tuple[Array, Array]:
    """Share of the table against the share of networks that find the line."""
    shares, steps = by_share(found, "steps")
    return shares, np.array([np.isfinite(one).mean() for one in steps])


def critical_shares(found: xr.Dataset, ideal: xr.Dataset) -> tuple[float, float]:
    """Where half of the networks with fast embeddings find the line, and where half of random sets imply it."""
    implied = theory.crossing(ideal["size"].values / ideal.attrs["samples"], (ideal.nullity == 2).mean("draw").values)
    return theory.crossing(*success(of(found, FAST))), implied


def success_where(found: xr.Dataset, low: float, high: float) -> float:
    """The share of networks with fast embeddings that find the line, between two shares of the table."""
    own = of(found, FAST)
    inside = (own.fraction.values >= low - 1e-9) & (own.fraction.values <= high + 1e-9)
    return float(np.isfinite(own.steps.values[inside]).mean())


def without_a_line(found: xr.Dataset) -> float:
    """The share of networks with fast embeddings that find a line which their training set does not imply."""
    own = of(found, FAST)
    return float(np.isfinite(own.steps.values[own.nullity.values > 2]).mean())


def speed_up(found: xr.Dataset) -> float:
    """Median steps of networks with fast embeddings at r of at least 0.9 over those at 0.5 to 0.65."""
    own = of(found, FAST)
    r, steps = own.fraction.values, own.steps.values
    return median(steps[r >= 0.9]) / median(steps[(r >= 0.5) & (r <= 0.65)])


def over_network(found: xr.Dataset, label: str) -> Array:
    """Predicted over measured median steps at every size from 36 of 55 samples on, (size,)."""
    own = of(found, label)
    own = own.isel(run=np.flatnonzero(own.fraction.values >= 36 / 55 - 1e-9))
    predicted, steps = (by_share(own, name)[1] for name in ("predicted", "steps"))
    return np.array([median(a) / median(b) for a, b in zip(predicted, steps, strict=True)])


def rank_correlation(found: xr.Dataset, label: str) -> float:
    """Spearman's coefficient of predicted and measured steps over the networks that arrive."""
    own = of(found, label)
    known = np.isfinite(own.steps.values) & np.isfinite(own.predicted.values)
    return spearman(own.predicted.values[known], own.steps.values[known])


def rank_correlation_within(found: xr.Dataset, label: str) -> float:
    """The same among networks of one size: ranks are taken within each size and counted from its middle."""
    own = of(found, label)
    known = np.isfinite(own.steps.values) & np.isfinite(own.predicted.values)
    rows = []
    for size in np.unique(own["size"].values[known]):
        here = known & (own["size"].values == size)
        ranks = (measures.ranks(own[name].values[here]) for name in ("predicted", "steps"))
        rows.append([one - one.mean() for one in ranks])
    a, b = (np.concatenate(column) for column in zip(*rows, strict=True))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def slope(found: xr.Dataset, label: str) -> float:
    """Of log steps against log prediction by least squares; the theory says 1."""
    own = of(found, label)
    known = np.isfinite(own.steps.values) & np.isfinite(own.predicted.values)
    return float(np.polyfit(np.log(own.predicted.values[known]), np.log(own.steps.values[known]), 1)[0])


def falls(found: xr.Dataset, label: str) -> float:
    """Median steps at the largest training set over those at 36 of 55 samples."""
    shares, steps = by_share(of(found, label), "steps")
    return median(steps[-1]) / median(steps[int(np.argmin(np.abs(shares - 36 / 55)))])


# --------------------------------------------------------------------------------------------- where it comes from


@section.study
def attraction(s: Settings) -> xr.Dataset:
    """Appendix L: how far apart two samples with one label stay while a linear decoder learns beside them.

    Both are sums of embeddings in the plane, free to move at rate 1; the decoder starts orthogonal, so that A^T A = 1.

    Returns:
        Dataset (rate, draw, time): ``separation`` relative to the start, and ``error`` of the prediction; ``limit``
        (time) is e^{-t}, the adiabatic limit of eq. 40.
    """
    times = np.linspace(0, 6, 61)
    rates = (0.0, 0.1, 1.0, 10.0)
    shape = (len(rates), max(3, min(9, s.draws // 100)), len(times))
    separation, error = np.zeros(shape), np.zeros(shape)
    for k in range(shape[1]):
        generator = np.random.default_rng([7, k])
        A = np.linalg.qr(generator.normal(size=(2, 2)))[0]
        r, label = generator.normal(size=(2, 2)), generator.normal(size=2)
        labels = np.stack([label, label])
        for i, rate in enumerate(rates):
            start = theory.LinearDecoder(A, np.zeros(2), r)
            found = theory.linear_decoder_flow(start, labels, times, decoder_rate=rate, embedding_rate=1.0, step=0.02)
            gap = np.linalg.norm(found.r[:, 0] - found.r[:, 1], axis=-1)
            separation[i, k] = gap / gap[0]
            outputs = np.einsum("toi,tsi->tso", found.A, found.r) + found.b[:, None]
            error[i, k] = np.square(outputs - labels).sum((1, 2))
    dims = ("rate", "draw", "time")
    return xr.Dataset(
        {"separation": (dims, separation), "error": (dims, error), "limit": ("time", np.exp(-times))},
        {"rate": list(rates), "time": times},
    )


def from_limit(study: xr.Dataset, rate: float) -> Array:
    """(draw,) the largest distance from e^{-t} at a rate of the decoder."""
    return np.abs(study.separation - study.limit).max("time").sel(rate=rate).values


# ---------------------------------------------------------------------------------------------------------- claims


def _means(study: xr.Dataset) -> Array:
    """Mean of the raw lambda_3 at 30, 40, 45 and 50 samples."""
    return study.rate.mean("draw").sel(size=[30, 40, 45, 50]).values


def _rises(study: xr.Dataset, averaged: bool) -> Array:
    """(size,) rises of the mean rate from 20 samples on, from one size to the next."""
    rate = study.rate / np.maximum(study.parallelograms, 1) if averaged else study.rate
    return np.diff(rate.mean("draw").sel(size=slice(20, 55)))


section.claim(
    "fig5a",
    "Fig. 5a",
    "The grokking rate is zero below r of about 0.4 and grows above, in either reading of the average.",
    Part("largest median up to 22 of 55 samples",
        lambda study: study.rate.median("draw").sel(size=slice(1, 22)).max(), at_most(0)),
    Part("smallest median from 23 samples on",
        lambda study: study.rate.median("draw").sel(size=slice(23, 55)).min(), above(0)),
    Part("means at 30, 40, 45, 50 samples against 2.37, 8.58, 13.53, 20.2, largest difference",
        lambda study: np.abs(_means(study) / (2.37, 8.58, 13.53, 20.2) - 1).max(), at_most(0.05), percent),
    Part("at the whole table", lambda study: study.rate.mean("draw").sel(size=55), near(30, 1e-9)),
    Part("smallest rise of the mean from one size to the next, sum",
        lambda study: _rises(study, False).min(), above(0)),
    Part("the same, average", lambda study: _rises(study, True).min(), above(0)),
    on="published_sizes",
    forecast="the numbers of the criterion, from an earlier computation of ours",
)  # fmt: skip

section.claim(
    "fig4cd",
    "Fig. 4c, d",
    "The flow and a network agree in kind, and both reach the line in about 3 nₕ steps.",
    Part("flow's fit of a line after 7 n_h", lambda record: start_of(record).fit(7), at_least(0.999)),
    Part("after 3 n_h", lambda record: start_of(record).fit(3), at_least(0.95)),
    Part("network's fit at the end", last_fit, at_least(0.99)),
    Part("network's index at the end",
        lambda record: measures.representation_quality_index(networks_path(record)[-1][:, None]), at_least(1)),
    Part("its step of index 0.95 over 3 n_h",
        lambda record: record.reached_rqi.values / (3 * start_of(record).n_h), between(1 / 3, 3)),
    Part("its symbols in order (1: yes)", in_order, at_least(1)),
    on="trajectory",
    paper="3 nₕ at about step 1,665",
    forecast="n_h 362; index 0.95 at step 801",
)  # fmt: skip

section.claim(
    "attraction",
    "App. L, eqs 40, 41",
    "Samples with one label attract each other linearly when the decoder learns slowly.",
    Part("largest distance from exp(−t), decoder at rest", lambda study: from_limit(study, 0.0).max(), at_most(1e-4)),
    Part("median, at a tenth of the embeddings' rate", lambda study: from_limit(study, 0.1), at_most(0.1)),
    Part("distance left, at ten times their rate",
        lambda study: study.separation.sel(rate=10.0).isel(time=-1).values, above(0.5), percent),
    on="attraction",
)  # fmt: skip

section.claim(
    "fig4b",
    "Fig. 4b",
    "Networks find the line above a critical share of data, sooner the more data there are.",
    Part("networks that find a line which their set does not imply", without_a_line, at_most(0.01), percent),
    Part("networks that find it at r ≥ 0.9", lambda found: success_where(found, 0.9, 1), at_least(0.85), percent),
    Part("at r ≤ 0.33", lambda found: success_where(found, 0, 0.33), at_most(0.05), percent),
    Part("rank correlation of success with r", lambda found: spearman(*success(of(found, FAST))), at_least(0.9)),
    Part("median steps at r ≥ 0.9 over those at 0.5 to 0.65", speed_up, at_most(0.75)),
    on="arrivals",
    paper="about 520 steps at r = 0.5, 160 at 0.98 (read off)",
)

section.claim(
    "fig4b-share",
    "Fig. 4b",
    "Networks need the theory's critical share, about 0.4.",
    Part("share at which half of the networks find the line",
        lambda arrivals, ideal: critical_shares(arrivals, ideal)[0], near(0.4, 0.05)),
    Part("that less the theory's share",
        lambda arrivals, ideal: np.subtract(*critical_shares(arrivals, ideal)), near(0, 0.05)),
    paper="0.4, the median of three seeds",
)  # fmt: skip

section.claim(
    "fig5b",
    "Fig. 5b",
    "The theory's 1/(λ₃η) follows the steps that networks need.",
    Part("rank correlation of predicted and measured steps, η = 1e-3", partial(rank_correlation, label=USUAL),
        at_least(0.45)),
    Part("networks that arrive", lambda found: np.isfinite(of(found, USUAL).steps.values).sum(), at_least(40)),
    Part("median steps at 54 samples over those at 36", partial(falls, label=USUAL), below(1)),
    Part("theory over network at each size from 36 samples on, η = 1e-3 in both", partial(over_network, label=USUAL),
        between(0.3, 4), every=True),
    Part("the same, η = 1e-2 in both", partial(over_network, label=FAST), between(0.3, 4), every=True),
    on="arrivals",
    paper="a factor 2 at most between the curves (read off)",
)  # fmt: skip
