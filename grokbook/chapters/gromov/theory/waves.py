"""Why it works: the network of eqs. 6-7 as a sum of waves, eq. 11."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: The waves of eq. 11, name -> weight and coefficients (a, b, c) of a wave in a n + b m + c q, whose phase is
#: a phi1 + b phi2 + c phi3. Only "n + m - q" has none left under eq. 12.
WAVES: Mapping[str, tuple[float, tuple[int, int, int]]] = {
    "2n - q": (1 / 4, (2, 0, -1)),
    "2n + q": (1 / 4, (2, 0, 1)),
    "2m - q": (1 / 4, (0, 2, -1)),
    "2m + q": (1 / 4, (0, 2, 1)),
    "n + m - q": (1 / 2, (1, 1, -1)),
    "n + m + q": (1 / 2, (1, 1, 1)),
    "n - m - q": (1 / 2, (1, -1, -1)),
    "n - m + q": (1 / 2, (1, -1, 1)),
    "q": (1.0, (0, 0, 1)),
}


def wave_families(p: int, phases: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """The waves that a quadratic network with the weights of eqs. 6-7 adds up to, eq. 11 with its factor 2 / width.

    Corrected: the printed second line has phi1 where m needs phi2, and the tail repeats the n - m + q line where the
    waves of the constant 1 in eq. 10 belong, named "q" here.

    Args:
        phases: (3, width) phases of the neurons, whose frequencies are 1 .. width.

    Returns:
        name of `WAVES` -> (p, p, p) contribution to the output for (n, m) and q; they add up to `network`.
    """
    phases = np.asarray(phases)
    width = phases.shape[-1]
    turns = 2 * np.pi / p * (np.arange(p)[:, None] * np.arange(1, width + 1) % p)  # (p, width)
    n, m = np.ogrid[:p, :p]
    families = {}
    for name, (weight, (a, b, c)) in WAVES.items():
        sums = 2 * weight / width * np.cos(turns + np.array([a, b, c]) @ phases).sum(-1)  # (p,) by residue
        families[name] = sums[(n + c * m) % p][(a * n + b * m) % p]  # row by row, which is quicker
    return families


def expected_mse(p: int, width: int) -> float:
    """Mean squared error of the analytic solution of n + m, averaged over phases.

    The destructive waves leave a variance 4 / width at every output. The constructive sum of eq. 13 is the delta
    function only if p divides the width. Waves in 2n - q and 2m - q share their random phase, which counts for
    frequencies 0 and p / 2.
    """
    copies = _copies(p, width)
    standing = int(copies[0] + (copies[p // 2] if p % 2 == 0 else 0))  # neurons with 2k = 0 mod p
    return 4 / width + _constructive_power(copies) - 1 / p + standing / (4 * width**2)


def expected_line_shares(p: int, width: int) -> dict[str, float]:
    """`grokbook.measures.line_shares` of an output h_q(n, m) of the analytic solution, figure 2.

    For odd p, as ratios of powers averaged over phases. The sum line holds the delta function and the waves in
    n + m + q; neurons of frequency 0 are constant and left out.
    """
    copies = _copies(p, width)
    noise = 4 * (width - copies[0]) / width**2  # of which a family has half of its squared weight
    shares = {name: weight**2 / 2 for name, (weight, _) in WAVES.items()}
    lines = {
        "n + m": _constructive_power(copies) - (copies[0] / width) ** 2 + shares["n + m + q"] * noise,
        "n - m": (shares["n - m - q"] + shares["n - m + q"]) * noise,
        "2n": (shares["2n - q"] + shares["2n + q"]) * noise,
        "2m": (shares["2m - q"] + shares["2m + q"]) * noise,
    }
    total = sum(lines.values())
    return {name: float(line / total) for name, line in lines.items()} | {"rest": 0.0}


def _copies(p: int, width: int) -> NDArray[np.int64]:
    """(p,) how many of the frequencies 1 .. width fall on each residue."""
    return np.bincount(np.arange(1, width + 1) % p, minlength=p)


def _constructive_power(copies: NDArray[np.int64]) -> float:
    """Mean square over s of sum_k cos(2 pi k s / p) / width, the sum of eq. 16; 1 / p for a delta."""
    partners = copies[-np.arange(len(copies)) % len(copies)]  # k and -k are the same wave
    return float((copies * (copies + partners)).sum() / (2 * copies.sum() ** 2))
