"""Beyond the paper: larger tables, and embeddings with more dimensions than they need."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings
from grokbook.chapters.liu.training import STRUCTURED, solvable_seeds, toy_run, two_groups
from grokbook.claims import Part, at_least, below
from grokbook.curves import median
from grokbook.settings import Seeds, Shares, Steps, Widths, several, whole
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Schedule, Watch
from grokbook.train.records import select

section = Section("beyond")
Array = NDArray[np.float64]


@section.experiment(quick={"moduli": (5,), "steps": 250})
def critical_sizes(
    s: Settings,
    *,
    moduli: Annotated[tuple[int, ...], several(whole(4, 50))] = (5, 10, 15, 20, 30),  # fewer imply no parallelogram
    steps: Steps = 10_000,
    seeds: Seeds = 5,
    shares: Shares = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
) -> Experiment:
    """How much of the table a network needs before it finds the line, against the number of symbols."""
    return Experiment(
        "liu/critical_sizes",
        tuple(
            toy_run(
                AdditionTask(p, min(max(round(share * p * (p + 1) / 2), 1), p * (p + 1) // 2 - 1)),
                two_groups(embedding=1e-2),
                steps,
                seed,
                f"p = {p}",
            )
            for p in moduli
            for share in shares
            for seed in range(seeds)
        ),
        Schedule(log=20),
        ("rqi",),
        snapshots=(-1,),
        keep=(),
        watch=Watch((("rqi", STRUCTURED),), every=20),
    )


@section.experiment(quick={"steps": 200})
def dimensions(s: Settings, *, steps: Steps = 20_000, seeds: Seeds = 5, values: Widths = (1, 2, 3, 4, 8)) -> Experiment:
    """Appendix D's caveat: in more dimensions a decoder may ignore some, and the index counts them all."""
    return Experiment(
        "liu/dimensions",
        tuple(
            toy_run(
                AdditionTask(s.p, s.train_size), two_groups(decay=decay), steps, seed, f"decay {decay:g}", dimension=d
            )
            for decay in (0.0, 5.0)
            for d in values
            for seed in solvable_seeds(s.p, s.train_size, seeds)
        ),
        Schedule(log=30),
        ("rqi",),
        snapshots=(-1,),
        keep=("rqi",),
    )


def line_readout(embedding: Array) -> Array:
    """The projection of embeddings (..., p, d) that comes nearest to the symbols' numbers 0 .. p - 1: (..., p, 1).

    What a linear decoder may keep. With d >= p - 1 dimensions every embedding has a perfect line in it, so its
    representation quality index then says nothing.
    """
    centred = embedding - embedding.mean(-2, keepdims=True)
    k = np.arange(embedding.shape[-2]) - (embedding.shape[-2] - 1) / 2
    return centred @ (np.linalg.pinv(centred) @ k[:, None])


@section.study
def useless_dimensions(s: Settings) -> xr.Dataset:
    """A perfect line in one dimension beside random ones that a decoder may ignore, appendix D's caveat.

    Returns:
        Dataset (dimension, draw): the representation quality index of all dimensions (``rqi``), and after
        `line_readout` with the line (``readout``) and without one (``noise``).
    """
    generator, values = np.random.default_rng(0), (1, 2, 3, 4, 6, 8)
    index, rows = measures.representation_quality_index, []
    for d in values:
        noise = generator.standard_normal((max(10, s.draws // 20), s.p, d))
        line = noise.copy()
        line[..., 0] = np.arange(s.p)
        read, fake = (line_readout(measures.standardised(one)) for one in (line, noise))
        rows.append([index(line), index(read), index(fake)])
    found = np.array(rows)
    variables = {name: (("dimension", "draw"), found[:, k]) for k, name in enumerate(("rqi", "readout", "noise"))}
    return xr.Dataset(variables, {"dimension": list(values)})


def smallest_share(record: xr.Dataset) -> dict[int, Array]:
    """p -> for each seed the smallest share of the table from which on every larger one reached the line."""
    found = {}
    for p in np.unique(record.p.values):
        own, rows = select(record, p=int(p)), []
        for seed in np.unique(own.seed.values):
            mine = own.isel(run=np.flatnonzero(own.seed.values == seed)).sortby("train_size")
            good = np.isfinite(mine.reached_rqi.values)
            begin = 0 if good.all() else int(np.flatnonzero(~good)[-1]) + 1
            rows.append(float(mine.train_size[begin] / (p * (p + 1) / 2)) if begin < len(good) else np.inf)
        found[int(p)] = np.array(rows)
    return found


def _median_shares(record: xr.Dataset) -> Array:
    return np.array([float(median(values)) for values in smallest_share(record).values()])


def _above_theory(record: xr.Dataset, study: xr.Dataset) -> float:
    """The least by which networks need more than the theory's share."""
    ps = list(smallest_share(record))
    predicted = np.exp(np.interp(np.log(ps), np.log(study.p.values), np.log(study.fraction.values)))
    return float((_median_shares(record) - predicted).min())


section.claim(
    "critical-trained",
    "beyond Fig. 4b",
    "Networks follow: the share that they need falls with the number of symbols.",
    Part("median smallest share at the largest p less that at the smallest",
        lambda critical_sizes: np.subtract(*_median_shares(critical_sizes)[[-1, 0]]), below(0)),
    Part("least difference to the theory's share",
        lambda critical_sizes, transition: _above_theory(critical_sizes, transition), at_least(-0.05)),
    forecast="the theory's share falls",
    whose="ours",
)  # fmt: skip
