"""Errors of the paper that a number can show: formulas as printed beside what they should be."""

from __future__ import annotations

import numpy as np

from grokbook.chapters.gromov import theory
from grokbook.words import number


def half_sum(p: int, width: int, offset: int = 0) -> float:
    """The sum that eq. 16 equates to the delta function: half of the sum over k of cos(2 pi k s / p)."""
    k = np.arange(1, width + 1)
    return float(0.5 * np.cos(2 * np.pi / p * (k * offset % p)).sum())


def delta_remainder(p: int, width: int) -> float:
    """The largest |sum_k cos(2 pi k s / p) / N - delta(s)|, 0 if p divides the width (eq. 13)."""
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
    """Largest difference between the square of eq. 22 and eq. 23, with phases doubled and as printed."""
    phi1, phi2, k = 0.7, -1.9, 3
    n, m = np.ogrid[:p, :p]
    turn = 2j * np.pi * k / p
    squared = (np.exp(turn * n + 1j * phi1) + np.exp(turn * m + 1j * phi2)) ** 2
    cross = 2 * np.exp(turn * (n + m) + 1j * (phi1 + phi2))

    def difference(times: int) -> float:
        parts = np.exp(2 * turn * n + times * 1j * phi1) + np.exp(2 * turn * m + times * 1j * phi2)
        return float(np.abs(squared - parts - cross).max())

    return difference(2), difference(1)


def facts(p: int, width: int) -> dict[str, str]:
    """What the page's table of slips shows."""
    (right11, wrong11), (right23, wrong23) = expansion_errors(), complex_errors()
    return {
        "eq11_corrected": number(right11),
        "eq11_printed": number(wrong11),
        "eq13_remainder": number(delta_remainder(p, width)),
        "eq16_half": number(half_sum(p, width)),
        "eq23_corrected": number(right23),
        "eq23_printed": number(wrong23),
        "scalings_apart": number(4 * p),
    }
