"""Figs 17 and 18: matrices for the six permutations of three things."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.chapters.liu.training import STRUCTURED, two_groups
from grokbook.claims import Bound, Part, at_least, at_most, between, exactly
from grokbook.curves import last
from grokbook.models.toy import ProductDecoder
from grokbook.settings import Seeds, Steps, several, whole
from grokbook.tasks import GroupTask, group_table
from grokbook.train.experiment import Experiment, Run, Schedule, Watch

Array = NDArray[np.float64]
section = Section("groups")


@section.experiment(quick={"sizes": (12, 24, 30), "steps": 500, "group_seeds": 2})
def group_fractions(
    s: Settings,
    *,
    sizes: Annotated[tuple[int, ...], several(whole(1, 35))] = (12, 15, 18, 21, 24, 27, 30, 33),
    steps: Steps = 10_000,
    group_seeds: Seeds = 11,
) -> Experiment:
    """Figs 17 and 18: training sets of several sizes, of 36 products. Learning rate and decay are ours."""
    return Experiment(
        "liu/group_fractions",
        tuple(
            Run(GroupTask("S3", size), ProductDecoder(6), two_groups(1e-3, 30.0), steps, seed)
            for size in sizes
            for seed in range(group_seeds)
        ),
        Schedule(log=40),
        ("s3_rqi",),
        snapshots=(-1,),
        keep=("W_E",),
        watch=Watch((("s3_rqi", STRUCTURED),), leave=False),
    )


# ----------------------------------------------------------------------------------------------------------- hexagons


class Hexagon(NamedTuple):
    """Six points in a plane of principal components."""

    plane: tuple[int, int]  #: which components
    points: Array  #: (6, 2)
    gap: float  #: the largest angle between neighbours, degrees; 60 for a regular hexagon
    spread: float  #: coefficient of variation of the radius

    @property
    def misfit(self) -> float:
        """How far from a hexagon: the larger of gap / 110 degrees and spread / 0.35."""
        return max(self.gap / 110, self.spread / 0.35)


def principal(embedding: Array) -> tuple[Array, Array]:
    """Principal components of (n, d): scores (n, k) and the share of the variance of each (k,)."""
    u, values, _ = np.linalg.svd(embedding - embedding.mean(0), full_matrices=False)
    return u * values, np.square(values) / np.square(values).sum()


def hexagon(embedding: Array) -> Hexagon:
    """The plane among the first four principal components in which six points come nearest to a hexagon."""
    scores, _ = principal(embedding)
    found = []
    for i, j in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        points = scores[:, [i, j]]
        angle = np.sort(np.degrees(np.arctan2(points[:, 1], points[:, 0])))
        radius = np.linalg.norm(points, axis=-1)
        gap = float(np.diff(angle, append=angle[0] + 360).max())
        found.append(Hexagon((i, j), points, gap, float(radius.std() / radius.mean())))
    return min(found, key=lambda one: one.misfit)


@lru_cache(maxsize=1)
def by_chance(draws: int = 2_000) -> Array:
    """(draws,) misfit of the best plane of random normal 6 x 9 matrices, in increasing order."""
    generator = np.random.default_rng(0)
    return np.sort([hexagon(generator.normal(size=(6, 9))).misfit for _ in range(draws)])


def chance_of(misfit: float) -> float:
    """The share of random matrices that come as near to a hexagon."""
    return float(np.searchsorted(by_chance(), misfit, side="right") / len(by_chance()))


@section.study
def group_outcomes(group_fractions):
    """What every run ended with beside what its matrices allow (Fig. 18), and how much of a hexagon they are (Fig. 17).

    Returns:
        Dataset over run: ``size``, ``fraction``, ``accuracy`` on all samples, ``predicted`` from the matrices (eqs 12,
        13), ``rqi``, ``steps`` to RQI > 0.95, ``test_accuracy``, ``components`` with more than 2 % of the variance,
        ``misfit`` of the best plane and the ``chance`` of it among random matrices.
    """
    record, table = group_fractions, group_table("S3")
    embedding = record.W_E.isel(snapshot=-1).values.astype(float)
    flat = embedding.reshape(len(embedding), 6, -1)
    predicted = []
    for matrices, size, seed in zip(embedding, record.train_size.values, record.seed.values, strict=True):
        task = GroupTask("S3", int(size))
        pairs = task.samples[task.in_train(int(seed))]
        predicted.append(float(theory.group_predicted_accuracy(matrices, pairs, table)))
    seen = record.train_size.values / len(table) ** 2
    misfit = np.array([hexagon(one).misfit for one in flat])
    values = {
        "size": record.train_size.values,
        "fraction": seen,
        "accuracy": seen * last(record, "train_accuracy") + (1 - seen) * last(record, "test_accuracy"),
        "predicted": np.array(predicted),
        "rqi": measures.group_representation_quality_index(embedding, table),
        "steps": record.reached_s3_rqi.values,
        "test_accuracy": last(record, "test_accuracy"),
        "components": np.array([(principal(one)[1] > 0.02).sum() for one in flat]),
        "misfit": misfit,
        "chance": np.array([chance_of(one) for one in misfit]),
    }
    return xr.Dataset({name: ("run", column) for name, column in values.items()})


def perfect(outcomes: xr.Dataset) -> NDArray[np.int64]:
    """Runs that answer all held-out samples and whose index is at least .9."""
    return np.flatnonzero((outcomes.test_accuracy == 1) & (outcomes.rqi >= 0.9))


def best_of_thirty(outcomes: xr.Dataset) -> int:
    """The run of Fig. 17: of those with 30 samples (or the most) the best on held-out ones, then by index, then the
    nearest to a hexagon: several are perfect."""
    size = 30 if (outcomes["size"] == 30).any() else int(outcomes["size"].max())
    own = np.flatnonzero(outcomes["size"] == size)
    one = outcomes.isel(run=own)
    return int(own[np.lexsort((one.misfit, -one.rqi, -one.test_accuracy))[0]])


# --------------------------------------------------------------------------------------------------------------- claims


def _of_chosen(words: str, name: str, bound: Bound) -> Part:
    return _part(words, lambda outcomes: float(outcomes[name][best_of_thirty(outcomes)]), bound)


def _part(words: str, measure: Callable[[xr.Dataset], Any], bound: Bound) -> Part:
    return Part(words, measure, bound, on=("group_outcomes",))


section.claim(
    "fig17",
    "Fig. 17",
    "The six matrices of S₃ form a hexagon in a plane of principal components.",
    _of_chosen("best network of 30 samples: held-out accuracy", "test_accuracy", exactly(1)),
    _of_chosen("its RQI", "rqi", at_least(0.9)),
    _of_chosen("its components above 2 % of the variance", "components", between(4, 5)),
    _part("random matrices as near to a hexagon as a perfect network's",
          lambda outcomes: outcomes.chance[perfect(outcomes)], at_most(0.05)),
)  # fmt: skip


def _best(outcomes: xr.Dataset, name: str) -> tuple[Array, Array]:
    """Shares of the table and the best value of a seed at each."""
    shares = np.unique(outcomes.fraction)
    return shares, np.array([outcomes[name].values[outcomes.fraction == one].max() for one in shares])


def _at(share: float, outcomes: xr.Dataset) -> float:
    shares, values = _best(outcomes, "accuracy")
    return float(values[np.argmin(np.abs(shares - share))])


def _index(low: bool, outcomes: xr.Dataset) -> float:
    shares, values = _best(outcomes, "rqi")
    return float(values[shares <= 0.42].max() if low else values[shares >= 0.58].min())


def onset(outcomes: xr.Dataset) -> float:
    """The first share of the table at which some network's index passes .95."""
    return float(outcomes.fraction.where(np.isfinite(outcomes.steps)).min())


section.claim(
    "fig18",
    "Fig. 18",
    "S₃ has its transition near half of the table.",
    _part("best accuracy at r = 0.5", partial(_at, 0.5), at_least(0.95)),
    _part("and at r = 0.33", partial(_at, 1 / 3), at_most(0.7)),
    _part("best RQI up to r = 0.42", partial(_index, True), at_most(0.3)),
    _part("least of the best RQIs from r = 0.58 on", partial(_index, False), at_least(0.8)),
    _part("first r with an RQI above 0.95", onset, between(0.45, 0.7)),
    paper="r = 0.5",
)
