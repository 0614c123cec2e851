"""Figs 16, 9, 11 and 4 (a): what one parallelogram implies about the next, without any training."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.claims import Part, at_least, at_most, below, between
from grokbook.words import percent

section = Section("parallelograms")
Array = NDArray[np.float64]

#: The training sets of Fig. 9 for six symbols, each with the samples of the one before.
STAGES = (
    ((0, 4), (1, 3), (1, 5), (2, 4)),
    ((0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1)),
    ((0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (3, 3)),
)
FIRST = 28  # the draw of the planar representations of Fig. 9, chosen so that no points lie on top of each other


@section.study
def deduction(s: Settings) -> xr.Dataset:
    """Fig. 16, eqs 30 and 31: with matrices, what two relations leave open a third one settles.

    Returns:
        Dataset over draw: ``two`` = ||E_f E_a - E_e E_b|| / ||E_f E_a|| given the two relations of eq. 30, and
        ``three`` = the same of E_a E_h and E_b E_g given eq. 31 too, with random invertible 3 x 3 matrices.
    """
    generator = np.random.default_rng(0)
    b, c, d, f, h = generator.normal(size=(5, max(20, s.draws // 5), 3, 3))
    a, e = b @ c @ np.linalg.inv(d), f @ c @ np.linalg.inv(d)
    g = np.linalg.inv(f) @ e @ h

    def apart(one: Array, other: Array) -> Array:
        return np.linalg.norm(one - other, axis=(-2, -1)) / np.linalg.norm(one, axis=(-2, -1))

    return xr.Dataset({"two": ("draw", apart(f @ a, e @ b)), "three": ("draw", apart(a @ h, b @ g))})


@section.study
def ideal(s: Settings) -> xr.Dataset:
    """Figs 4 (a), 5 (a) and 10: what random training sets of every size imply (`theory.ideal_study`)."""
    return theory.ideal_study(s.p, range(1, s.p * (s.p + 1) // 2 + 1), s.draws)


@section.study
def published_sizes(ideal: xr.Dataset) -> xr.Dataset:
    """The same, where the published numbers are of these tables."""
    if ideal.attrs["p"] != 10:
        raise ValueError("the reference is for p = 10")
    return ideal


def line(study: xr.Dataset) -> tuple[Array, Array]:
    """Share of the table, and share of random training sets of that size that leave the line alone; both (size,)."""
    return study["size"].values / study.attrs["samples"], (study.nullity == 2).mean("draw").values


def half(study: xr.Dataset) -> float:
    """The share of the table at which half of the sets imply the line."""
    return theory.crossing(*line(study))


def _largest_fall(study: xr.Dataset) -> float:
    """From one size to the next, in standard errors."""
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
    paper="50 % at 22.5 of 55 samples, r = 0.41",
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- beyond the paper


@section.study
def transition(s: Settings) -> xr.Dataset:
    """The critical share of data for several numbers of symbols (`theory.transition_study`)."""
    return theory.transition_study(sorted({4, 6, 8, 10, 15, 20, 30, 40, 50, s.p}), max(20, s.draws // 5))


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
