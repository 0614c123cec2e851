"""Fig. 5: the same weights under other activations. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.claims import REACHED, Part, at_least, below

section = Section("activations")

NAMES = {
    "quartic": "x⁴", "quadratic": "x²", "relu_squared": "ReLU²", "abs": "|x|", "gelu": "GELU", "relu": "ReLU",
    "silu": "SiLU", "exp": "exp", "softplus": "softplus", "tanh": "tanh", "sigmoid": "sigmoid", "cubic": "x³",
}  # fmt: skip
ODD = ("tanh", "sigmoid", "cubic")
SAMPLE = 400  # pairs looked at beyond width 800, where the whole table would take minutes


def _sampled(s: Settings, widths: Sequence[int], names: Sequence[str], scale: float = 1.0, pairs: int | None = SAMPLE):
    return theory.accuracy_against_width(s.p, widths, range(s.few), activations=names, input_scale=scale, pairs=pairs)


@section.study
def activations(s: Settings) -> xr.Dataset:
    """Accuracy (activation, width, seed): the whole table up to width 800, a sample of pairs beyond."""
    even = [name for name in NAMES if name not in ODD]
    whole = _sampled(s, (50, 100, 200, 400, 800), even, pairs=None)
    more, most = _sampled(s, (1600,), even), _sampled(s, (3200, 6400), ("softplus",))
    return xr.concat([whole, more, most], "width", join="outer").reindex(activation=even).to_dataset()


@section.study
def odd_activations(s: Settings) -> xr.Dataset:
    """Near chance a small sample is too noisy: the whole table, and more pairs of the widest network."""
    common, wide = _sampled(s, (100, 1000), ODD, pairs=None), _sampled(s, (12800,), ODD, pairs=1500)
    return xr.concat([common, wide], "width").to_dataset()


@section.study
def scaled_gelu(s: Settings) -> xr.Dataset:
    """GELU and ReLU with preactivations divided by sqrt(2p), as in the first public version of the paper."""
    scale = float(1 / np.sqrt(2 * s.p))
    both = _sampled(s, (200, 400, 800, 1600, 3200), ("gelu", "relu"), scale)
    return xr.concat([both, _sampled(s, (6400, 12800, 25600), ("gelu",), scale)], "width", join="outer").to_dataset()


def enough(study: xr.Dataset, name: str) -> float:
    """The smallest width from which on upwards the mean accuracy is at least 99.9 %; infinity if none."""
    return theory.enough(study.sel(activation=name), level=0.999)


def later(study: xr.Dataset) -> float:
    """The width that GELU needs over the one that ReLU needs."""
    return enough(study, "gelu") / enough(study, "relu")


section.claim(
    "fig5",
    "Fig. 5",
    "The weights also work with other activations; ReLU needs more width than the square.",
    Part("width for 99.9 %, of each", lambda d: [enough(d, name) for name in d.activation.values], REACHED, every=True),
    Part("width for 99.9 %, square / ReLU", lambda d: enough(d, "quadratic") / enough(d, "relu"), below(1)),
    on="activations",
    forecast="100 (x⁴), 200 (x², |x|), 400 (ReLU², GELU), 800 (ReLU, SiLU, exp), 6,400 (softplus)",
)

section.claim(
    "fig5-odd",
    "beyond Fig. 5",
    "Odd activations work too.",
    Part("best mean accuracy of tanh, sigmoid and x³", lambda d: float(d.accuracy.mean("seed").max()), at_least(0.99)),
    on="odd_activations",
    forecast="chance, since the sum wave needs an even part",
    whose="ours",
)

section.claim(
    "fig5-gelu",
    "Fig. 5",
    "GELU reaches 100 % only at very large width.",
    Part("width for 99.9 %, GELU / ReLU", later, at_least(8), on=("activations",)),
    Part("the same with preactivations divided by √(2p)", later, at_least(8), on=("scaled_gelu",)),
    forecast="400 units with weights of amplitude 1; 12,800 to 25,600 if divided",
)
