"""Fig. 4 (a): what a training set implies about all other sums, without any training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.claims import Part, at_least, at_most, below, between
from grokbook.measures.common import Array
from grokbook.words import percent

section = Section("parallelograms")


@section.study
def ideal(s: Settings) -> xr.Dataset:
    """Figs 4 (a), 5 (a) and 10: what random training sets of every size imply."""
    return of_random_sets(s.p, range(1, s.p * (s.p + 1) // 2 + 1), s.draws)


def of_random_sets(p: int, sizes: Sequence[int], draws: int) -> xr.Dataset:
    """What random training sets imply, (size, draw); ``rate`` is the third eigenvalue of A^T A."""
    couples, rows = measures.sums_of(p).couples, []
    for size in sizes:
        sets = theory.random_training_sets(p, size, draws, generator=np.random.default_rng([0, p, size]))
        held = theory.which_held(sets, p)
        values, implied = theory.rates(held, p), theory.implied(held, p)
        accuracy = theory.share_reached(held, implied, couples)
        rows.append(((values == 0).sum(-1), values[:, 2], implied.mean(-1), accuracy))
    names = ("nullity", "rate", "ideal_rqi", "ideal_accuracy")
    variables = {name: (("size", "draw"), np.stack(columns)) for name, *columns in zip(names, *rows, strict=True)}
    return xr.Dataset(variables, {"size": list(sizes)}, {"p": p, "samples": p * (p + 1) // 2})


@section.study
def published_sizes(ideal: xr.Dataset) -> xr.Dataset:
    """The same, where the published numbers are of these tables."""
    if ideal.attrs["p"] != 10:
        raise ValueError("the reference is for p = 10")
    return ideal


def line(study: xr.Dataset) -> tuple[Array, Array]:
    """Share of the table, and share of random training sets of that size that leave only the line; both (size,)."""
    return study["size"].values / study.attrs["samples"], (study.nullity == 2).mean("draw").values


def half(study: xr.Dataset) -> float:
    """The share of the table at which half of the sets imply the line."""
    return theory.crossing(*line(study))


def _largest_fall(study: xr.Dataset) -> float:
    found, draws = line(study)[1], study.sizes["draw"]
    noise = np.sqrt((found * (1 - found))[:-1] / draws + (found * (1 - found))[1:] / draws)
    return float((-np.diff(found) / np.maximum(noise, 1e-12)).max())


def _from_published(study: xr.Dataset) -> float:
    """Of the share at 22 samples, in standard errors; the released share is 0.427 of 10,000."""
    found = float((study.nullity.sel(size=22) == 2).mean())
    return (found - 0.427) / float(np.sqrt(0.427 * 0.573 / study.sizes["draw"]))


section.claim(
    "fig4a",
    "Fig. 4a",
    "Above about 40 % of the table the line is the only solution for most training sets.",
    Part("share at which half of the sets imply the line", half, between(0.395, 0.425)),
    Part("at 22 samples, less the published 0.427, in standard errors", _from_published, between(-4, 4)),
    Part("largest share of sets up to r = 0.28",
        lambda study: line(study)[1][line(study)[0] <= 0.28].max(), below(0.01), percent),
    Part("smallest share from r = 0.55 on",
        lambda study: line(study)[1][line(study)[0] >= 0.55].min(), at_least(0.97), percent),
    Part("largest fall from one size to the next, in standard errors", _largest_fall, at_most(4)),
    Part("smallest nullity", lambda study: study.nullity.min(), at_least(2)),
    on="published_sizes",
    paper="0.4; 50 % at 22.5 of 55 samples in the released data",
)  # fmt: skip


@section.study
def transition(s: Settings) -> xr.Dataset:
    """The critical share of data for several numbers of symbols p.

    ``fraction`` is the median critical size of random orders over all samples, ``width`` its interquartile range.
    """
    ps, count = sorted({4, 5, 6, 8, 10, 15, 20, 30, 40, 50, s.p}), max(20, s.draws // 5)
    sizes = [theory.critical_sizes(p, count, generator=np.random.default_rng([0, p])) for p in ps]
    shares = np.stack(sizes).T / [p * (p + 1) // 2 for p in ps]
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
    return xr.Dataset({"fraction": ("p", middle), "width": ("p", high - low)}, {"p": ps})


def fall_with_p(study: xr.Dataset) -> float:
    """The power of p with which the critical share falls."""
    return float(np.polyfit(np.log(study.p), np.log(study.fraction), 1)[0])


section.claim(
    "transition",
    "beyond Fig. 4a",
    "The critical share is not 0.4 in general: it falls as the number of symbols grows.",
    Part("largest change from one number of symbols to the next", lambda study: np.diff(study.fraction).max(),
        below(0)),
    Part("slope of its logarithm against that of p", fall_with_p, between(-1, -0.6)),
    on="transition",
    forecast="about as p^−0.8",
    whose="ours",
)  # fmt: skip
