"""What is wrong, unclear or contradictory in the paper, with a number computed here where one can show it."""

from __future__ import annotations

import html

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapters.gromov import studies, theory
from grokbook.firstform.claims import Records, Table, number, plain_table
from grokbook.models.mlp import SCALINGS


def initial_error(record: xr.Dataset) -> float:
    """Mean squared error at step 0 in units of 1/p, the error of all-zero outputs; median over runs."""
    return float(np.median(record.test_loss.values[:, 0]) * record.p.values[0])


def solution_size(p: int, width: int, scaling: str) -> float:
    """Root mean square of the analytic weights over the initial standard deviation, where both layers share the scale.

    A factor c in front of the readout asks for weights that are (2 / (N c))^(1/3) times those of eqs. 6-7, of rms
    1/sqrt(2).
    """
    factor, deviation = SCALINGS[scaling](p, width)
    return float(np.sqrt(0.5) * (2 / (width * factor)) ** (1 / 3) / deviation)


def half_sum(p: int, width: int, offset: int) -> float:
    """The sum that eq. 16 equates to the delta function: half of the sum over k of cos(2 pi k s / p)."""
    k = np.arange(1, width + 1)
    return float(0.5 * np.cos(2 * np.pi / p * (k * offset % p)).sum())


def delta_remainder(p: int, width: int) -> float:
    """The largest |sum_k cos(2 pi k s / p) / N - delta(s)|, 0 if p divides the width."""
    s, k = np.arange(p), np.arange(1, width + 1)
    sums = np.cos(2 * np.pi / p * (s[:, None] * k % p)).mean(1)
    return float(np.abs(sums - (s == 0)).max())


def expansion_errors(p: int = 23, width: int = 40) -> tuple[float, float]:
    """Largest difference between the network and eq. 11, corrected and as printed, for one draw of phases."""
    phases = theory.draw_phases(width, generator=0)
    families = theory.wave_families(p, phases)
    network = theory.network(*theory.cosine_weights(p, width, phases=phases))
    corrected = np.sum(list(families.values()), axis=0)
    # As printed: phi1 where the lines in 2m need phi2, and in place of the line in q two more in n - m + q, each with
    # a factor of 1 where that family has 1/2.
    swapped = theory.wave_families(p, phases[[0, 0, 2]])
    printed = corrected - families["2m - q"] - families["2m + q"] - families["q"]
    printed = printed + swapped["2m - q"] + swapped["2m + q"] + 4 * families["n - m + q"]
    return float(np.abs(network - corrected).max()), float(np.abs(network - printed).max())


def complex_errors(p: int = 23) -> tuple[float, float]:
    """Largest difference between the squared preactivation of eq. 22 and eq. 23, with phases doubled and as printed."""
    phi1, phi2, k = 0.7, -1.9, 3
    n, m = np.ogrid[:p, :p]
    turn = 2j * np.pi * k / p
    squared = (np.exp(turn * n + 1j * phi1) + np.exp(turn * m + 1j * phi2)) ** 2
    cross = 2 * np.exp(turn * (n + m) + 1j * (phi1 + phi2))

    def difference(times: int) -> float:
        parts: NDArray[np.complex128] = np.exp(turn * 2 * n + times * 1j * phi1) + np.exp(
            turn * 2 * m + times * 1j * phi2
        )
        return float(np.abs(squared - parts - cross).max())

    return difference(2), difference(1)


def square_roots(modulus: int) -> tuple[float, int, int]:
    """The share of residues that are squares, and the least and the largest number of roots that a square has."""
    counts = np.bincount(np.arange(modulus) ** 2 % modulus, minlength=modulus)
    return float((counts > 0).mean()), int(counts[counts > 0].min()), int(counts.max())


def table(records: Records, p: int, width: int) -> Table:
    """The list, with evidence computed from the records and studies at hand."""
    rows: list[tuple[str, str, str]] = []

    def add(where: str, what: str, evidence: str) -> None:
        rows.append((html.escape(where), html.escape(what), html.escape(evidence)))

    seen = [
        f"{label} {number(initial_error(records[name]))}"
        for name, label in (
            ("learning_curves", "1/(2pN)"),
            ("printed_scaling", "2/N"),
            ("adamw_curves", "the group's code"),
        )
        if name in records
    ]
    sizes = {scaling: number(solution_size(p, width, scaling)) for scaling in SCALINGS}
    add(
        "Eq. 2, App. B, Fig. 1",
        "Three output scalings: the text prints 2/N, appendix B 1/(D√N), and the curves of Fig. 1 fit 1/(DN). Under "
        "2/N the solution "
        "is smaller than the initial weights, so that norms can grow at the onset only after they have shrunk.",
        f"initial error × p: {', '.join(seen)}; analytic weights in units of the initial ones: 2/N "
        f"{sizes['mean_field']}, "
        f"1/(2pN) {sizes['input_mean_field']}, the group's code {sizes['standard']}",
    )
    add(
        "Eq. 16",
        "Half of the sum of cosines is equated to the delta function, but eq. 13 makes it N/2 times that. With the "
        "factor 2/N of "
        "eq. 2 it is right.",
        f"half of the sum at the right answer: {number(half_sum(p, width, 0))}; 2/N times that: "
        f"{number(2 / width * half_sum(p, width, 0))}",
    )
    multiple = p * max(1, round(width / p))
    add(
        "Eq. 13",
        "The sum is the delta function only if p divides N.",
        f"largest deviation {number(delta_remainder(p, width))} at N = {width}, {delta_remainder(p, multiple):.0e} at "
        f"N = {multiple}",
    )
    corrected, printed = expansion_errors()
    share = theory.noise_shares()["q"]
    add(
        "Eq. 11",
        "The second line carries φ₁ where m needs φ₂, and the tail repeats the line of n − m + q twice where the waves "
        "in q alone belong.",
        f"largest difference from the network: {printed:.2f} as printed, {corrected:.0e} corrected; the waves in q "
        f"hold {share:.0%} of the noise",
    )
    right, wrong = complex_errors()
    add(
        "Eqs. 23–25",
        "The first two terms need doubled phases.",
        f"largest difference from the square: {wrong:.2f} as printed, {right:.0e} with 2φ₁ and 2φ₂",
    )
    if "ipr" in records:
        study = records["ipr"].ipr.sel(weights="analytic").mean("seed")
        values = ", ".join(f"{name!s} {number(float(study.sel(definition=name)))}" for name in study.definition.values)
        add(
            "Eq. 28",
            "Squares of complex numbers without a modulus, and an index that runs to D although frequencies are 2πk/p.",
            values,
        )
    add(
        "Introduction",
        "Fig. 1b is cited for the accuracy (it is 1c), Fig. 4b for data and weight decay (it is 4a).",
        "read, not computed",
    )
    if "branches" in records:
        study = records["branches"]
        squares = study.sel(exponent=2)
        one = squares.accuracy.sel(readout="one root, else zero", width=500).mean("seed")
        other = squares.accuracy.sel(readout="one root, else the answer itself", width=500).mean("seed")
        share, fewest, most = square_roots(96)
        add(
            "Sec. 3.2, Fig. 7",
            "≈ 50 % (text) and ≈ 51 % (caption) for (n + m)²: the exact main part is the share of residues that are "
            "squares, and rows of "
            "non-squares are not specified. That share is 100 %/b only where all squares have the same number b of "
            "roots, zero aside; moduli that are no primes, which the paper allows, need not be so.",
            f"squares {number(float(squares.served))}; accuracy {number(float(one))} with zero rows, "
            f"{number(float(other))} with rows made from q itself; squares mod 96: {number(share)}, "
            f"with {fewest} to {most} roots each",
        )
    if "product" in records:
        inner = records["product"].accuracy_nonzero.sel(width=500).mean()
        add(
            "Sec. 2, App. D",
            "nm: the analytic solution “involves logarithms” (Sec. 2), against “We do not have an analytic solution” "
            "(App. D).",
            f"with logarithms: accuracy {number(float(inner))} on pairs without a zero",
        )
    gap = None
    if "learning_curves" in records:
        curves = records["learning_curves"]
        gap = studies.median(studies.last(curves, "test_loss") / studies.last(curves, "train_loss"))
    if "polynomials" in records:
        record = records["polynomials"]
        first = studies.select(record, f=str(record.f.values[0]))
        highest = np.nanmax(first.test_accuracy.values, axis=1)  # (run,)
        alphas = first.train_fraction.values
        best = [f"{number(studies.median(highest[alphas == alpha]))} at α = {alpha:g}" for alpha in np.unique(alphas)]
        add(
            "App. D, Fig. 10",
            "n² + m² + nm: never 100 % unless α > 0.95, and ≈ 97 % with no α given beside a figure at 0.73.",
            "best test accuracy " + ", ".join(best),
        )
        add(
            "App. D, Sec. 3.2",
            "The gap between train and test loss in Fig. 10 is contrasted with Fig. 2, which shows no losses; they are "
            "in Fig. 1a. For n² + m² Sec. 3.2 points to appendix C; it is in D.",
            "read, not computed" if gap is None else f"Fig. 1a ends with a ratio of {number(gap)}",
        )
    add(
        "Settings",
        "α is 0.49 in Fig. 1, 0.5 in Fig. 4b, 0.73 and 0.9 in Fig. 10, others are not stated; nor are learning rates, "
        "decay, steps, seeds, most widths, the range "
        "of the random phases, or what “grokking time” means.",
        "chosen here; see the lines below each figure",
    )
    if "analytic" in records:
        study = records["analytic"].mean("seed")
        width_shown = int(study.width.values[1])
        one = study.sel(width=width_shown)
        add(
            "Sec. 4.2",
            "Trained networks are said to beat the analytic ones because they tune phases. Part of the gap is the "
            "constant that eq. 11 leaves "
            "on every output.",
            f"analytic accuracy at N = {width_shown}: {number(float(one.accuracy))}, and "
            f"{number(float(one.accuracy_centred))} without that constant",
        )
    head = ("Where", "What", "Evidence")
    return plain_table(head, rows, "Errors, ambiguities and contradictions", cards=True)
