"""Fig. 3: what the rows of the output matrix look like once an operation is understood."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.theory.cosets import coset_contrast
from grokbook.chapters.power.training import ADAM, ADAMW, GRID, run
from grokbook.claims import Part, above, at_least, at_most
from grokbook.curves import best, last
from grokbook.measures import circular_sd, representation_shares, wave_power
from grokbook.settings import Steps
from grokbook.train.experiment import Experiment, Run
from grokbook.words import percent, times

section = Section("rows")
DECAYS = {"decay 1": ADAMW, "no decay": ADAM}


def _runs(s: Settings, operation: str, share: float) -> tuple[Run, ...]:
    ways = ((name, how, seed) for name, how in DECAYS.items() for seed in range(s.seeds))
    return tuple(run(s, operation, share, how, s.steps, seed, name) for name, how, seed in ways)


@section.experiment(smaller=[{"seeds": 1}, {"steps": 8_000}], quick={"steps": 80})
def circle_rows(s: Settings) -> Experiment:
    """Fig. 3, right: x+y from half of its table, with decay 1 and without; the output matrix at the end."""
    runs = _runs(s, "x+y", s.train_fraction)
    return Experiment("power/circle_rows", runs, GRID, ("accuracy_alone",), snapshots=(0, -1), keep=("W_U",))


@section.experiment(smaller=[{"seeds": 1}, {"steps": 8_000}], quick={"steps": 100})
def coset_rows(s: Settings) -> Experiment:
    """Fig. 3, left: products of S5 from 70 % of the table, with decay 1 and without; the output matrix at the end."""
    return Experiment("power/coset_rows", _runs(s, "x.y", 0.7), GRID, snapshots=(0, -1), keep=("W_U",))


@section.experiment(quick={"steps": 80})
def forming_circle(s: Settings) -> Experiment:
    """The first of ``circle_rows`` again, with its output matrix at twenty times on the way: something to scrub."""
    last = min(s.steps, 8_000)
    first = run(s, "x+y", s.train_fraction, ADAMW, last, 0, "decay 1")
    at = tuple(dict.fromkeys(int(last * (k / 19) ** 2) // 10 * 10 for k in range(20)))  # each time once
    return Experiment("power/forming_circle", (first,), GRID, snapshots=at, keep=("W_U",))


@section.experiment(quick={"updates": 100})
def first_products(s: Settings, *, updates: Steps = 8_000) -> Experiment:
    """``coset_rows`` as they were first trained, three seeds for fewer updates: the networks of our question."""
    runs = _runs(dataclasses.replace(s, steps=updates), "x.y", 0.7)
    return Experiment("power/first_products", runs, GRID, snapshots=(0, -1), keep=("W_U",))


@section.experiment(quick={"updates": 100})
def more_products(s: Settings, *, updates: Steps = 8_000) -> Experiment:
    """Three networks like ``first_products`` with decay, after what those showed: a test of it on new seeds."""
    runs = (run(s, "x.y", 0.7, ADAMW, updates, seed, "decay 1") for seed in (3, 4, 5))
    return Experiment("power/more_products", tuple(runs), GRID, snapshots=(0, -1), keep=("W_U",))


@section.experiment(quick={"updates": 120})
def settled_products(s: Settings, *, updates: Steps = 40_000) -> Experiment:
    """``more_products`` five times as long, as one had understood too late to tell: what do they settle on?"""
    at = tuple(dict.fromkeys(updates * part // 40 for part in (1, 2, 4, 6, 8, 12, 16, 24, 32)))
    shorter = more_products(s, updates=updates)
    return dataclasses.replace(shorter, name="power/settled_products", snapshots=(*at, -1))


def wave_powers(W_U: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of each frequency 1 .. (p - 1) / 2 in the rows of an output matrix (..., d, p), without the mean."""
    power = wave_power(W_U.swapaxes(-1, -2))
    return power / power.sum(-1, keepdims=True)


def wave_plane(W_U: NDArray[np.float64], frequency: int) -> NDArray[np.float64]:
    """The rows of one output matrix (d, p), less their mean, along the two directions of a frequency: (p, 2)."""
    p = W_U.shape[-1]
    angle = 2 * np.pi * frequency * np.arange(p) / p
    axes = np.stack([W_U @ np.cos(angle), W_U @ np.sin(angle)])  # (2, d)
    return (axes / np.linalg.norm(axes, axis=1, keepdims=True) @ (W_U - W_U.mean(-1, keepdims=True))).T


def ring(plane: NDArray[np.float64], frequency: int) -> tuple[float, float]:
    """By how many degrees (circular sd) points (p, 2) miss their places on a circle; sd / mean of their radii."""
    missed = np.arctan2(*plane.T[::-1]) - 2 * np.pi * frequency * np.arange(len(plane)) / len(plane)
    radii = np.linalg.norm(plane, axis=1)
    return float(np.degrees(circular_sd(missed))), float(radii.std() / radii.mean())


def regularity(plane: NDArray[np.float64]) -> float:
    """The share of neighbours on a circle (p, 2) that differ by their commonest difference, up to its sign."""
    p, order = len(plane), np.argsort(np.arctan2(*plane.T))
    steps = np.diff(np.append(order, order[0])) % p
    return float(np.bincount(np.minimum(steps, p - steps)).max() / p)


def of_noise(shape: tuple[int, int]) -> tuple[float, float]:
    """Medians of ``ring``'s degrees and of ``regularity`` in the strongest wave of random output matrices (d, p)."""
    found = []
    for W_U in np.random.default_rng(0).standard_normal((100, *shape)):
        frequency = int(wave_powers(W_U).argmax()) + 1
        plane = wave_plane(W_U, frequency)
        found.append((ring(plane, frequency)[0], regularity(plane)))
    missed, in_order = np.median(found, axis=0)
    return float(missed), float(in_order)


@section.study
def circles(circle_rows: xr.Dataset) -> xr.Dataset:
    """For each run: its spectrum, the share of the strongest frequency; in its plane ``ring`` and ``regularity``."""
    matrices = circle_rows.W_U.values[:, -1].astype(float)
    shares = wave_powers(matrices)
    waves = shares.argmax(-1) + 1
    planes = [wave_plane(W_U, int(k)) for W_U, k in zip(matrices, waves, strict=True)]
    missed, radii = zip(*map(ring, planes, waves), strict=True)
    return xr.Dataset(
        {
            "share": ("run", shares.max(-1)),
            "in_order": ("run", [regularity(plane) for plane in planes]),
            "missed": ("run", list(missed)),
            "radii": ("run", list(radii)),
            "best": ("run", best(circle_rows)),
            "spectrum": (("run", "k"), shares),
        },
        {"label": ("run", circle_rows.label.values), "k": np.arange(shares.shape[-1]) + 1},
    )


@section.study
def cosets(coset_rows: xr.Dataset) -> xr.Dataset:
    """``coset_contrast`` of the output rows at the end, (run,), and as ``point_...`` for "point"."""
    if coset_rows.sizes["output"] != 120:
        raise ValueError("cosets are looked for in S5")
    variables = {"best": ("run", best(coset_rows))}
    for subgroup, prefix in (("paper", ""), ("point", "point_")):
        found = [coset_contrast(W_U.T.astype(float), subgroup) for W_U in coset_rows.W_U.values[:, -1]]
        for name in ("ratio", "expected", "deviations", "p_value"):
            variables[prefix + name] = "run", np.array([getattr(one, name) for one in found])
    return xr.Dataset(variables, {"label": ("run", coset_rows.label.values)})


@section.study
def clusters(coset_rows: xr.Dataset, first_products: xr.Dataset, more_products: xr.Dataset) -> xr.Dataset:
    """``coset_contrast`` with the paper's subgroup at the end of each network that understood, (network,)."""
    found, seeds = [], []
    for record in (coset_rows, first_products, more_products):
        for one in np.flatnonzero(best(record) >= 0.99):
            if int(record.seed[one]) not in seeds:  # the first of them begins as that of ``coset_rows`` does
                seeds.append(int(record.seed[one]))
                found.append(coset_contrast(record.W_U.values[one, -1].astype(float).T))
    names = ("deviations", "p_value")
    return xr.Dataset({name: ("network", [getattr(one, name) for one in found]) for name in names}, {"network": seeds})


@section.study
def maps(circle_rows: xr.Dataset, coset_rows: xr.Dataset) -> xr.Dataset:
    """t-SNE of output rows, perplexity 30, (symbol, 2), of the run with decay that knows most at the end (``run``)."""
    from sklearn.manifold import TSNE

    found = {}
    for name, record in (("addition", circle_rows), ("products", coset_rows)):
        one = int(np.where(record.label.values == "decay 1", last(record, "test_accuracy"), 0).argmax())
        rows = record.W_U.values[one, -1].T.astype(float)
        drawn = TSNE(perplexity=min(30, (len(rows) - 1) // 3), init="pca", random_state=0).fit_transform(rows)
        found[name] = ((f"symbol_{name}", "axis"), drawn, {"run": one})
    return xr.Dataset(found)


def representations(record: xr.Dataset) -> NDArray[np.float64]:
    """(run, snapshot, 7) the share of each of ``characters`` in the output rows; nan outside of S5."""
    return np.array([[representation_shares(W_U.T) for W_U in run] for run in record.W_U.values.astype(float)])


def with_decay(study: xr.Dataset, values: str, label: str = "decay 1") -> NDArray[np.float64]:
    """(seed,) a quantity of the runs of one decay."""
    return study[values].values[study.label.values == label]


def clearer(study: xr.Dataset, subgroup: str) -> float:
    """By how many standard deviations the cosets of a subgroup, "" or "point_", stand out more with decay."""
    with_it, without = (with_decay(study, f"{subgroup}deviations", label) for label in DECAYS)
    return float(np.median(with_it) - np.median(without))


def understood(study: xr.Dataset, values: str) -> NDArray[np.float64]:
    """(seed,) the same with decay 1; nan where fewer than 99 % of the held-out rows are right."""
    return np.where(with_decay(study, "best") >= 0.99, with_decay(study, values), np.nan)


STRONG = Part("share of the strongest frequency", lambda d: with_decay(d, "share"), at_least(0.15), percent)
KNOWN = Part("best held-out accuracy", lambda d: with_decay(d, "best"), at_least(0.99), percent)
section.claim(
    "fig3-circle",
    "Fig. 3, right",
    "With weight decay the output rows of addition lie on a circle.",
    STRONG,
    Part("degrees by which rows miss their places on it", lambda d: with_decay(d, "missed"), at_most(15)),
    Part("spread of its radii, sd / mean", lambda d: with_decay(d, "radii"), at_most(0.25)),
    KNOWN,
    on="circles",
    paper="neighbours differ by 8 in the network shown (frequency 12, computed)",
    earlier=(
        STRONG,
        Part("neighbours on it that differ by one number", lambda d: with_decay(d, "in_order"), at_least(0.9), percent),
        KNOWN,
    ),
)

section.claim(
    "fig3-decay",
    "Fig. 3, right",
    "After equally many updates the spectrum is clearer with weight decay than without, understood or not.",
    Part(
        "share of the strongest frequency, decay 1 / none",
        lambda d: float(np.median(with_decay(d, "share")) / np.median(with_decay(d, "share", "no decay"))),
        at_least(2),
        times,
    ),
    on="circles",
    paper="says so of the structure in its pictures",
)

section.claim(
    "fig3-cosets",
    "Fig. 3, left",
    "In the network of the picture and in some others the output rows of S5 cluster by cosets of ⟨(0 3)(1 4), "
    "(1 2)(3 4)⟩ or a conjugate, beyond what parity explains.",
    Part(
        "standard deviations below partitions that keep parity, in the network of the picture",
        lambda cosets: understood(cosets, "deviations"),
        at_least(5),
    ),
    Part("share of those partitions that are as good", lambda cosets: understood(cosets, "p_value"), at_most(0.01)),
    Part(
        "networks that understood and are at least 5 below, with at most 1 % as good",
        lambda clusters: int(((clusters.deviations >= 5) & (clusters.p_value <= 0.01)).sum()),
        at_least(1),
    ),
    paper="one network",
)

section.claim(
    "fig3-cosets-decay",
    "Fig. 3, left",
    "The cosets, too, are clearer with weight decay, after equally many updates.",
    Part("standard deviations with decay less those without, the paper's", lambda d: clearer(d, ""), above(3)),
    Part("the same of the cosets that are there, of a point", lambda d: clearer(d, "point_"), above(3)),
    on="cosets",
)

FRESH = (
    "a network has not had 99 % of the held-out rows right for its last 3,000 updates",
    lambda r: (np.nanmedian(r.test_accuracy.where(r.step > r.steps.max() - 3_000, drop=True), 1) < 0.99).any(),
)
section.claim(
    "one-representation",
    "beside Fig. 3, left",
    "With decay the output rows of S5 are one irreducible representation of the group.",
    Part(
        "share of the largest",
        lambda r: representations(r)[:, -1].max(1),
        at_least(0.9),
        percent,
        every=True,
        open=FRESH,
    ),
    on="settled_products",
    forecast=".96 to .98 (the three networks of Fig. 3)",
    whose="ours",
)
