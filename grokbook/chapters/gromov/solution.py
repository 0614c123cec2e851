"""The weights that solve modular addition, written down: how wide, how exact, for which sums. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.claims import Part, at_least, at_most
from grokbook.words import percent

section = Section("solution")

WIDTHS = (20, 40, 60, 75, 97, 120, 150, 200, 500, 1000)


def outputs(p: int, phases: NDArray) -> NDArray[np.float64]:
    """(p, p, p) outputs of the analytic network, from the waves of eq. 11: much quicker than its hidden layer."""
    made, *others = theory.wave_families(p, phases).values()
    for one in others:
        made += one
    return made


def over_widths(p: int, widths: Sequence[int], seeds: int) -> xr.Dataset:
    """The analytic solution of n + m over (width, seed), on the whole table.

    ``accuracy``, ``accuracy_centred`` without each output's mean, half of the noise, ``mse``, ``expected_mse`` (width).
    """

    def each(width: int, seed: int) -> dict[str, float]:
        made = outputs(p, theory.draw_phases(width, generator=seed))
        exact, centred = (theory.table_accuracy(one) for one in (made, made - made.mean((0, 1))))
        return {"accuracy": exact, "accuracy_centred": centred, "mse": theory.table_mse(made)}

    study = theory.over(each, width=widths, seed=range(seeds))
    return study.assign(expected_mse=("width", [theory.expected_mse(p, width) for width in widths]))


@section.study
def analytic(s: Settings) -> xr.Dataset:
    """Accuracy and error at ten widths."""
    return over_widths(s.p, WIDTHS, s.seeds)


@section.study
def analytic_widths(s: Settings) -> xr.Dataset:
    """The same at the widths of the trained networks of Fig. 4b."""
    return over_widths(s.p, s.widths, s.few)


@section.study
def analytic_lines(s: Settings) -> xr.Dataset:
    """Where the power of an output map lies in its Fourier image: ``share`` (line, seed), median over answers."""
    return theory.lines_of(outputs(s.p, theory.draw_phases(s.width, generator=seed)) for seed in range(s.seeds))


@section.study
def phase_noise(s: Settings) -> xr.Dataset:
    """What errors in eq. 12 cost at width 500: ``accuracy`` and ``peak`` (noise, seed); inf is an independent phase."""

    def each(noise: float, seed: int) -> dict[str, float]:
        made = outputs(s.p, theory.draw_phases(500, noise=noise, generator=seed))
        return {"accuracy": theory.table_accuracy(made), "peak": theory.right_outputs(made).mean()}

    return theory.over(each, noise=(0.0, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, np.inf), seed=range(s.few))


@section.study
def other_sums(s: Settings) -> xr.Dataset:
    """Accuracy (sum, seed) at width 500 for 3n + 5m + 7, which is addition in another order, and for n² + m²."""
    sums = {"3n + 5m + 7": (lambda n: 3 * n + 7, lambda m: 5 * m), "n² + m²": (lambda n: n * n, lambda m: m * m)}

    def each(sum: str, seed: int) -> dict[str, float]:
        f1, f2 = sums[sum]
        made = theory.cosine_weights(s.p, 500, f1=f1, f2=f2, generator=seed)
        return {"accuracy": theory.accuracy(*made, theory.answers(s.p, f1=f1, f2=f2))}

    return theory.over(each, sum=sums, seed=range(s.few))


@section.study
def composite(s: Settings) -> xr.Dataset:
    """Addition modulo those of p - 1, p + 1 and p + 3 that are no primes: ``accuracy`` (modulus, width, seed)."""
    moduli = [q for q in (s.p - 1, s.p + 1, s.p + 3) if q >= 4 and any(q % d == 0 for d in range(2, int(q**0.5) + 1))]
    parts = [over_widths(q, (200,), s.seeds)[["accuracy"]].expand_dims(modulus=[q]) for q in moduli]
    return xr.concat(parts, "modulus")


def setback(study: xr.Dataset) -> float:
    """The most by which the mean accuracy falls from a width to the next."""
    return float(-study.accuracy.mean("seed").diff("width").min())


def error_off(study: xr.Dataset) -> float:
    """The largest deviation of the error from 4/N at widths of at least 100, as a share of it."""
    wide = study.mse.mean("seed").where(study.width >= 100, drop=True)
    return float(np.abs(wide * wide.width / 4 - 1).max())


section.claim(
    "claim-1",
    "Claim I",
    "Cosine weights with φ₁ + φ₂ = φ₃ solve addition; accuracy grows with N and the loss becomes arbitrarily small.",
    Part("largest fall of accuracy from a width to the next", setback, at_most(0.01), percent),
    Part("accuracy at N = 1,000", lambda d: d.accuracy.sel(width=1000).mean(), at_least(0.999), percent),
    Part("largest deviation of the error from 4/N, at N ≥ 100", error_off, at_most(0.1), percent),
    on="analytic",
    forecast="30.1 % at N = 20, 94.7 % at 60, all from 200",
)

section.claim(
    "claim-1b",
    "Sec. 3.1",
    "Without the relation between the phases nothing is solved.",
    Part("accuracy at N = 500 with an independent φ₃", lambda d: d.accuracy.sel(noise=np.inf), at_most(0.02), percent,
         True),
    on="phase_noise",
    forecast="0.5 to 0.9 %",
)  # fmt: skip

section.claim(
    "claim-2",
    "Claim II",
    "Any f₁(n) + f₂(m) is solved in the same way.",
    *(
        Part(f"accuracy for {f} at N = 500", lambda one, f=f: one.accuracy.sel(sum=f), at_least(0.999), percent, True)
        for f in ("3n + 5m + 7", "n² + m²")
    ),
    on="other_sums",
    forecast="all",
)

section.claim(
    "composite",
    "Sec. 2",
    "The modulus need not be a prime.",
    Part("least accuracy at N = 200, composite neighbours of p", lambda d: d.accuracy.mean(("width", "seed")).min(),
         at_least(0.9999), percent),
    on="composite",
    forecast="all, for p = 96, 98, 100",
)  # fmt: skip
