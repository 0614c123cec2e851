"""Fig. 5: the same weights under other activations, and trainings with these, which find their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.chapters.gromov import measures as measures  # which trainings log
from grokbook.chapters.gromov.training import ADAMW, adamw, seeded
from grokbook.claims import REACHED, Part, at_least, at_most, below, between
from grokbook.curves import last, median, t_test
from grokbook.measures.common import Array
from grokbook.models.mlp import TwoLayerMLP
from grokbook.settings import Share, Steps
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.records import select
from grokbook.words import percent

section = Section("activations")

NAMES = {
    "quartic": "x⁴", "quadratic": "x²", "relu_squared": "ReLU²", "abs": "|x|", "gelu": "GELU", "relu": "ReLU",
    "silu": "SiLU", "exp": "exp", "softplus": "softplus", "tanh": "tanh", "sigmoid": "sigmoid", "cubic": "x³",
}  # fmt: skip
ODD = ("tanh", "sigmoid", "cubic")
TRAINED = ("quadratic", "relu", "gelu", "abs", "tanh")
EVEN = ("relu", "gelu", "abs")  # with an even part that is no constant, as the square
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


@section.experiment(quick={"steps": 200})
def trained_activations(s: Settings, *, train_fraction: Share = 0.5, steps: Steps = 1_000) -> Experiment:
    """Section 2: ``adamw_curves`` with other activations in place of the square; the odd one with less decay as well.

    A pilot at p = 31 chose that decay, under which tanh learns its training set; a run ends after it has generalised.
    """
    task = ModularTask(s.p, "n + m", train_fraction)
    runs = [
        run
        for name in TRAINED
        for run in seeded(s.few, task, TwoLayerMLP(s.p, s.width, "standard", name), ADAMW, steps, NAMES[name])
    ]
    for name in ("quadratic", "tanh"):
        model = TwoLayerMLP(s.p, s.width, "standard", name)
        runs += seeded(s.few, task, model, adamw(1.0), 3 * steps, f"{NAMES[name]}, decay 1")
    schedule, stop = Schedule(log=60, every=10), Stop(threshold=0.999, evaluations=30)
    logged, kept = ("weight_norm", "ipr"), ("constant_share", "three_waves")
    return Experiment("gromov/trained_activations", tuple(runs), schedule, logged, stop, (0, -1), kept)


def of(record: xr.Dataset, name: str, decay: str = "") -> xr.Dataset:
    """The networks of one activation, with the chapter's decay or, by ``", decay 1"``, with that."""
    return select(record, label=NAMES[name] + decay)


def slower(record: xr.Dataset) -> list[float]:
    """Of each activation with an even part: the median t_test over that of the square."""
    return [float(median(t_test(of(record, name))) / median(t_test(of(record, "quadratic")))) for name in EVEN]


def constant(record: xr.Dataset, name: str) -> Array:
    """(run,) with a decay of 1, the median over units of ``constant_share`` at the end."""
    return np.median(of(record, name, ", decay 1").constant_share.values[:, -1], axis=-1)


def three_waves(record: xr.Dataset, snapshot: int = -1) -> Array:
    """(run,) with tanh and a decay of 1, the accuracy of products of three waves alone."""
    return of(record, "tanh", ", decay 1").three_waves.values[:, snapshot, 0]


def elsewhere(record: xr.Dataset) -> Array:
    """(run,) the same with GELU, whose odd part is h/2 and mixes nothing."""
    return of(record, "gelu").three_waves.values[:, -1, 0]


@section.study
def odd_by_hand(s: Settings) -> xr.Dataset:
    """Accuracy (activation, width, seed) of ``theory.three_wave_weights`` on a sample of pairs, under odd and even."""
    signs = {"cubic": 1, "tanh": -1, "quadratic": 1}  # of the third derivative, where there is one

    def each(width: int, seed: int) -> dict[str, float]:
        W_in, W_out = theory.three_wave_weights(s.p, width, generator=seed)
        sample = np.random.default_rng(seed).permutation(s.p**2)[: 2 * SAMPLE]
        return {name: theory.accuracy(W_in, sign * W_out, None, name, pairs=sample) for name, sign in signs.items()}

    found = theory.over(each, width=(250, 500, 1000, 2000, 4000), seed=range(s.few))
    return found.to_dataarray("activation", "accuracy").to_dataset()


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

section.claim(
    "trained-activations",
    "Sec. 2",
    "Training is only mildly sensitive to the activation.",
    Part("t_test with ReLU, GELU and |x| / with x², medians", slower, between(1 / 3, 3), every=True),
    Part("their test accuracy at the end", lambda d: [last(of(d, name), "test_accuracy").min() for name in EVEN],
         at_least(0.99), percent, every=True),
    on="trained_activations",
    paper="“only mildly sensitive to the choice of activation function”",
)  # fmt: skip

section.claim(
    "trained-odd",
    "beyond Fig. 5",
    "Where the weights by hand cannot work, with tanh, training finds others: units whose constant stands for a bias.",
    Part("t_test with tanh, decay 1", lambda d: t_test(of(d, "tanh", ", decay 1")), REACHED, every=True),
    Part("power that is constant in a unit, tanh less x², medians",
         lambda d: float(median(constant(d, "tanh")) - median(constant(d, "quadratic"))), at_least(0.05), percent),
    on="trained_activations",
    forecast="so: with a constant b the odd activation φ(h + b) has an even part",
    whose="ours",
)  # fmt: skip

section.claim(
    "odd-waves",
    "beyond Fig. 5",
    "With tanh the sums can be read off products of three waves, two of one operand with one of the other.",
    Part("accuracy over the table with these products alone", three_waves, at_least(0.9),
         percent, every=True),
    Part("that of the initial weights", partial(three_waves, snapshot=0), at_most(0.05), percent, every=True),
    on="trained_activations",
    forecast="99 %, as in the first of the networks, which had been taken apart before",
    note="They can, four in five, in GELU networks, too, where such products do no work",
    whose="ours",
)  # fmt: skip

section.claim(
    "odd-by-hand",
    "beyond Fig. 5",
    "With three waves a unit, weights can be written down for odd activations, too; the square then does nothing.",
    Part("best mean accuracy of x³ and tanh", lambda d: d.accuracy.mean("seed").max("width").values[:2], at_least(0.99),
         percent, every=True),
    Part("that of x²", lambda d: d.accuracy.mean("seed").max("width").values[2], at_most(0.05), percent),
    on="odd_by_hand",
    whose="ours",
)  # fmt: skip
