"""Figs 17 and 18: matrices for the six permutations of three things."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.chapters.liu.training import STRUCTURED, two_groups
from grokbook.claims import Bound, Part, at_least, at_most, between, exactly, near
from grokbook.curves import last, spearman_within
from grokbook.measures.common import Array
from grokbook.models.toy import ProductDecoder
from grokbook.settings import Seeds, Steps, several, whole
from grokbook.tasks import GroupTask, group_table
from grokbook.train.experiment import Experiment, Run, Schedule, Watch
from grokbook.words import percent

section = Section("groups")


Sizes = Annotated[tuple[int, ...], several(whole(1, 35))]


@section.experiment(quick={"sizes": (12, 24, 30), "steps": 200, "group_seeds": 2})
def group_fractions(
    s: Settings, *, sizes: Sizes = (12, 15, 18, 21, 24, 27, 30, 33), steps: Steps = 10_000, group_seeds: Seeds = 11
) -> Experiment:
    """Figs 17 and 18: training sets of several sizes, of 36 products. Learning rate and decay are ours."""
    optimizer, model, watch = two_groups(1e-3, 30.0), ProductDecoder(6), Watch((("s3_rqi", STRUCTURED),), leave=False)
    runs = [Run(GroupTask("S3", size), model, optimizer, steps, seed) for size in sizes for seed in range(group_seeds)]
    return Experiment(
        "liu/group_fractions", tuple(runs), Schedule(log=40), ("s3_rqi",), snapshots=(-1,), keep=("W_E",), watch=watch
    )


class Hexagon(NamedTuple):
    """Six points in a plane of principal components."""

    plane: tuple[int, int]  #: which components
    points: Array  #: (6, 2)
    misfit: float  #: how far from a hexagon: the larger of largest gap / 110 degrees and spread of the radius / 0.35


def principal(embedding: Array) -> tuple[Array, Array]:
    """Principal components of (n, d): scores (n, k) and the share of the variance of each (k,)."""
    u, values, _ = np.linalg.svd(embedding - embedding.mean(0), full_matrices=False)
    return u * values, np.square(values) / np.square(values).sum()


def hexagon(embedding: Array) -> Hexagon:
    """The plane among the first four principal components in which six points come nearest to a hexagon."""
    scores, found = principal(embedding)[0], []
    for plane in combinations(range(4), 2):
        points = scores[:, plane]
        angle = np.sort(np.degrees(np.arctan2(points[:, 1], points[:, 0])))
        radius, gap = np.linalg.norm(points, axis=-1), np.diff(angle, append=angle[0] + 360).max()
        found.append(Hexagon(plane, points, max(gap / 110, radius.std() / radius.mean() / 0.35)))
    return min(found, key=lambda one: one.misfit)


@cache
def by_chance() -> Array:
    """(draw,) misfit of the best plane of random normal 6 x 9 matrices, in increasing order."""
    generator = np.random.default_rng(0)
    return np.sort([hexagon(generator.normal(size=(6, 9))).misfit for _ in range(2_000)])


def chance_of(misfit: ArrayLike) -> Array:
    """The share of random matrices that come as near to a hexagon."""
    return np.searchsorted(by_chance(), misfit, side="right") / len(by_chance())


def predicted_accuracy(matrices: Array, known: NDArray[np.bool_], table: NDArray[np.int64]) -> Array:
    """`theory.predicted_accuracy` with products, Fig. 18 (d): matrices (..., g, k, k), known (..., g, g) -> (...)."""
    closed = measures.group_parallelogram_gaps(matrices, table) <= 0.5**0.5
    couples = [(x, y) for x, y in combinations(range(table.size), 2) if table.flat[x] == table.flat[y]]
    return theory.share_reached(known.reshape(*known.shape[:-2], -1), closed, np.array(couples))


@section.study
def group_sets(s: Settings) -> xr.Dataset:
    """Share of the table (size,), and how often a random set of that size implies all products of S₃, ``enough``."""
    table, draw, sizes = group_table("S3"), np.random.default_rng(0), np.arange(12, 28)
    order = np.argsort(draw.random((100, table.size))).reshape(-1, *table.shape)  # of the products in each draw
    enough = [np.mean([(theory.implied_products(one < size, table) >= 0).all() for one in order]) for size in sizes]
    return xr.Dataset({"enough": ("fraction", enough)}, {"fraction": sizes / table.size})


@section.study
def group_outcomes(group_fractions):
    """What every run ended with beside what its matrices allow (Fig. 18), and how much of a hexagon they are (Fig. 17).

    Over run: ``size``, ``fraction``, ``accuracy`` on all samples, ``predicted`` from the matrices (eqs 12, 13) and
    ``implied`` by the training set (App. H.1), ``rqi``, ``steps`` to RQI > 0.95, ``test_accuracy``, ``components`` with
    more than 2 % of the variance, ``misfit`` of the best plane and the ``chance`` of it among random matrices.
    """
    record, table = group_fractions, group_table("S3")
    runs = zip(record.train_size.values.tolist(), record.seed.values.tolist(), strict=True)
    known = np.array([GroupTask("S3", size).in_train(seed).reshape(table.shape) for size, seed in runs])
    embedding = record.W_E.isel(snapshot=-1).values.astype(float)
    flat, seen = embedding.reshape(len(embedding), 6, -1), record.train_size.values / table.size
    misfit = np.array([hexagon(one).misfit for one in flat])
    values = {
        "size": record.train_size.values,
        "fraction": seen,
        "accuracy": seen * last(record, "train_accuracy") + (1 - seen) * last(record, "test_accuracy"),
        "predicted": predicted_accuracy(embedding, known, table),
        "implied": np.array([(theory.implied_products(one, table) >= 0).mean() for one in known]),
        "rqi": measures.group_representation_quality_index(embedding, table),
        "steps": record.reached_s3_rqi.values,
        "test_accuracy": last(record, "test_accuracy"),
        "components": np.array([(principal(one)[1] > 0.02).sum() for one in flat]),
        "misfit": misfit,
        "chance": chance_of(misfit),
    }
    return xr.Dataset({name: ("run", column) for name, column in values.items()})


def index_when_known(record: xr.Dataset) -> Array:
    """(run,) the index at the first look at which nine of ten held-out products are right; nan if they never are."""
    known = record.test_accuracy.values >= 0.9
    return np.where(known.any(1), record.s3_rqi.values[np.arange(len(known)), known.argmax(1)], np.nan)


def perfect(outcomes: xr.Dataset) -> NDArray[np.int64]:
    """Runs that answer all held-out samples and whose index is at least .9."""
    return np.flatnonzero((outcomes.test_accuracy == 1) & (outcomes.rqi >= 0.9))


def best_of_thirty(outcomes: xr.Dataset) -> int:
    """The run of Fig. 17: of those with 30 samples (or the most) the best on held-out ones, then by index, then the
    nearest to a hexagon: several are perfect."""
    size = outcomes["size"].values
    other = size != (30 if 30 in size else size.max())  # these come last
    return int(np.lexsort((outcomes.misfit, -outcomes.rqi, -outcomes.test_accuracy, other))[0])


def _of_chosen(words: str, name: str, bound: Bound) -> Part:
    return Part(words, lambda outcomes: outcomes[name][best_of_thirty(outcomes)], bound)


section.claim(
    "fig17",
    "Fig. 17",
    "The six matrices of S₃ form a hexagon in a plane of principal components.",
    _of_chosen("best network of 30 samples: held-out accuracy", "test_accuracy", exactly(1)),
    _of_chosen("its RQI", "rqi", at_least(0.9)),
    _of_chosen("its components above 2 % of the variance", "components", between(4, 5)),
    Part("random matrices as near to a hexagon as a perfect network's",
         lambda outcomes: outcomes.chance[perfect(outcomes)], at_most(0.05)),
    on="group_outcomes",
)  # fmt: skip


def _best(outcomes: xr.Dataset, name: str, low: float, high: float) -> Array:
    """The best value of a seed at each share of the table between two."""
    shares = [one for one in np.unique(outcomes.fraction) if low <= one <= high]
    return np.array([outcomes[name].values[outcomes.fraction == one].max() for one in shares])


def onset(outcomes: xr.Dataset) -> float:
    """The first share of the table at which some network's index passes .95."""
    return float(outcomes.fraction.where(np.isfinite(outcomes.steps)).min())


section.claim(
    "fig18",
    "Fig. 18",
    "S₃ has its transition near half of the table.",
    Part("best accuracy at r = 0.5", lambda outcomes: _best(outcomes, "accuracy", 0.49, 0.51), at_least(0.95)),
    Part("and at r = 0.33", lambda outcomes: _best(outcomes, "accuracy", 0.32, 0.34), at_most(0.7)),
    Part("best RQI up to r = 0.42", lambda outcomes: _best(outcomes, "rqi", 0, 0.42).max(), at_most(0.3)),
    Part("least of the best RQIs from r = 0.58 on", lambda outcomes: _best(outcomes, "rqi", 0.58, 1).min(),
         at_least(0.8)),
    Part("first r with an RQI above 0.95", onset, between(0.45, 0.7)),
    on="group_outcomes",
    paper="r = 0.5",
)  # fmt: skip


def bound_by_luck(outcomes: xr.Dataset) -> float:
    """How often predictions that are dealt anew among the networks of a size lie above no network's accuracy."""
    order = np.argsort(outcomes["size"].values, kind="stable")
    size, predicted, accuracy = (outcomes[name].values[order] for name in ("size", "predicted", "accuracy"))
    draws = np.random.default_rng(0).random((1_000, len(size)))
    dealt = predicted[np.lexsort((draws, np.broadcast_to(size, draws.shape)))]
    return float((dealt <= accuracy + 1e-9).all(1).mean())


section.claim(
    "fig18-bound",
    "Fig. 18e",
    "What the matrices predict is a lower bound of the accuracy: networks generalise beyond it.",
    Part("networks below it", lambda d: (d.accuracy < d.predicted - 1e-9).sum(), exactly(0)),
    Part("deals of the predictions among networks of a size that none is below", bound_by_luck, at_most(0.05), percent),
    Part("networks that know all products with an RQI below 0.5",
         lambda d: ((d.accuracy == 1) & (d.rqi < 0.5)).sum(), at_least(1)),
    on="group_outcomes",
)  # fmt: skip


def ahead_by_size(outcomes: xr.Dataset) -> Array:
    """(size,) how much of the table networks know beyond what their sets imply, on average."""
    return (outcomes.accuracy - outcomes.implied).groupby(outcomes["size"]).mean().values


section.claim(
    "three-parallelograms",
    "beyond Fig. 18",
    "Which products of S₃ a network gets right follows from the rule of three parallelograms, and so does one half.",
    Part("share of the table at which half of all sets imply the rest",
         lambda sets: theory.crossing(sets.fraction.values, sets.enough.values), between(0.4, 0.6), on=("group_sets",)),
    Part("rank correlation of a network's accuracy with what its set implies, within sizes",
         lambda d: spearman_within(d["size"], d.implied, d.accuracy), at_least(0.5), on=("group_outcomes",)),
    Part("accuracy less what is implied, mean of each size", ahead_by_size, near(0, 0.1), every=True,
         on=("group_outcomes",)),
    paper="r = 0.5; “three parallelograms are needed to deduce a new parallelogram”",
    whose="ours",
)  # fmt: skip
