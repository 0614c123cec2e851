"""Theorems 3.10 and 3.12: how near a training pair must be, and how much a training set covers."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu import theory
from grokbook.claims import Part, at_least, at_most
from grokbook.tasks import modular_function

section = Section("coverage")
DIAMONDS = (2, 3, 4, 5, 6)


@section.study
def same_class(s):
    """Theorem 3.10 for the rows of Table 1: ``coverage`` (row, seed, D) on the torus, for three draws.

    Also ``matching`` (row, seed), the D that would give the paper's U, and U along row.
    """
    printed = [row._replace(size=round(row.size * s.p / 97)) for row in theory.TABLE_1]
    labels, distances = modular_function("n + m", s.p), np.arange(2, s.p + 1, 2)
    shape = len(printed), 3
    matching, coverage = np.empty(shape), np.empty((*shape, len(distances)))
    for place in np.ndindex(shape):
        row = printed[place[0]]
        hole = theory.hole(row.kind, s.p, row.size)
        mask = theory.draw_training_mask(s.p, s.train_fraction, holed=hole, generator=place[1])
        coverage[place] = theory.same_class_coverage(mask, labels, distances)
        matching[place] = theory.matching_distance(mask, labels, row.highest)
    along = {"kind": ("row", [row.kind for row in printed]), "U": ("row", [row.highest for row in printed])}
    names = [f"{'k' if row.kind == 'square' else 't'} = {row.size}" for row in printed]
    variables = {"coverage": (("row", "seed", "D"), coverage), "matching": (("row", "seed"), matching)}
    return xr.Dataset(variables, {"row": names, "D": distances, **along})


def misfit(study: xr.Dataset, kinds: str | tuple[str, ...] = theory.HOLES) -> NDArray[np.float64]:
    """(D,) how far, in points and root mean square over rows, coverage within one D is from the paper's U."""
    chosen = study.isel(row=np.flatnonzero(np.isin(study.kind.values, np.atleast_1d(kinds))))
    return 100 * np.sqrt(np.square(chosen.coverage.mean("seed") - chosen.U).mean("row").values)


@section.study
def coverage(s):
    """Theorem 3.12 for k = 2 to 6: the printed bound beside what happens on the grid and on the torus.

    ``bound`` (k); ``uncovered`` (k, surface, fraction), expected, exactly; ``half`` and ``most`` (k), where 200 random
    training sets on the grid cover everything with probability 0.5 and 0.95; ``under`` (k), with which they do so below
    the bound.
    """
    fractions = np.linspace(0.02, 0.98, 97)
    sizes = [int(alpha * s.p**2) for alpha in fractions]
    full = [theory.coverage_times(s.p, k, 200, generator=0).max((-2, -1)) / s.p**2 for k in DIAMONDS]
    uncovered = [[theory.expected_uncovered(s.p, k, sizes, torus=torus) for torus in (False, True)] for k in DIAMONDS]
    bounds = [theory.coverage_bound(s.p, k) for k in DIAMONDS]
    return xr.Dataset(
        {
            "bound": ("k", bounds),
            "under": ("k", [(of < bound).mean() for of, bound in zip(full, bounds, strict=True)]),
            "uncovered": (("k", "surface", "fraction"), uncovered),
            "half": ("k", np.quantile(full, 0.5, axis=1)),
            "most": ("k", np.quantile(full, 0.95, axis=1)),
        },
        {"k": list(DIAMONDS), "surface": ["grid", "torus"], "fraction": fractions},
    )


section.claim(
    "th310",
    "Th. 3.10",
    "One distance D, within which a training pair of the class must lie, gives the ceilings of Table 1.",
    Part("error of the best single D over all rows, points", lambda same_class: misfit(same_class).min(), at_most(5)),
    forecast="15 points", whose="ours",
)  # fmt: skip
section.claim(
    "th312", "Th. 3.12",
    "To cover every test pair with a probability close to 1, diamonds of size k need at least the fraction 2 ln p / C.",
    *(
        Part(f"k = {k}: fraction that covers all in 95 % of the draws / bound",
            lambda coverage, k=k: coverage.most.sel(k=k) / coverage.bound.sel(k=k), at_least(1))
        for k in DIAMONDS
    ),
    paper="a lower bound",
    forecast="of half of the draws: violated for k up to 4, where the estimate draws with replacement",
)  # fmt: skip
