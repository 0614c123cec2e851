"""Figs 11 to 13: a one-layer transformer, and attention alone with more and fewer heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings
from grokbook.chapters.gromov.dynamics import above_silence
from grokbook.chapters.gromov.training import adamw, seeded
from grokbook.claims import REACHED, Part, above, at_least, at_most, below, between
from grokbook.curves import at, best, first, median, sweep, t_train
from grokbook.models.transformer import Attention, AttentionOnly, Transformer
from grokbook.settings import Share, Steps, Width
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.records import select
from grokbook.words import percent

section = Section("transformers")

LINEAR, SOFTMAX, DEEP = "linear, 1 layer", "softmax, 1 layer", "softmax, 2 layers"
Nets = dict[str, tuple[int, Attention, float]]
ONE_LAYER = (LINEAR, SOFTMAX)
Measure = Callable[[xr.Dataset], NDArray[np.float64]]
# layers, attention, decay under which one seed was seen to grok
NETS: Nets = {LINEAR: (1, "linear", 0.5), SOFTMAX: (1, "softmax", 1.0), DEEP: (2, "softmax", 2.0)}


@section.experiment(quick={"train_fraction": 0.7, "steps": 20})
def transformer(s: Settings, *, train_fraction: Share = 0.5, steps: Steps = 1_000) -> Experiment:
    """Fig. 11: a one-layer transformer with mean squared error."""
    task, model = ModularTask(s.p, "n + m", train_fraction), Transformer(s.p, s.d_model)
    shown = [s.d_model * i for i in range(4)]  # one unit from each quarter of the MLP
    return Experiment(
        "gromov/transformer",
        seeded(s.seeds, task, model, adamw(1.0), steps, "transformer"),
        Schedule(log=60, every=max(1, steps // 50)),
        ("embedding_ipr",),
        snapshots=(0, -1),
        keep=("activation_share", *(f"activation[{unit}]" for unit in shown)),
    )


def _attention(
    name: str, nets: Nets, s: Settings, heads: Sequence[int], seeds: int, alpha: float, steps: int, points: int = 50
) -> Experiment:
    runs: list[Run] = []
    for net, (layers, attention, decay) in nets.items():
        for count in heads:
            model = AttentionOnly(s.p, s.d_model, count, layers, attention)
            runs += seeded(seeds, ModularTask(s.p, "n + m", alpha), model, adamw(decay), steps, net)
    return Experiment(f"gromov/{name}", tuple(runs), Schedule(log=60, every=max(1, steps // points)))


@section.experiment(quick={"many": 16, "train_fraction": 0.7, "steps": 20})
def attention_curves(s: Settings, *, many: Width = 32, train_fraction: Share = 0.5, steps: Steps = 1_000) -> Experiment:
    """Fig. 12: learning curves of one layer of attention alone, linear and softmax, with enough heads."""
    nets, enough = {name: NETS[name] for name in ONE_LAYER}, math.gcd(many, s.d_model)
    return _attention("attention_curves", nets, s, (enough,), s.seeds, train_fraction, steps, points=100)


@section.experiment(quick={"many": 16, "train_fraction": 0.7, "steps": 20})
def attention_unit_start(
    s: Settings, *, many: Width = 32, train_fraction: Share = 0.5, steps: Steps = 1_000
) -> Experiment:
    """Fig. 12 from embeddings of unit variance, as in the group's later code: does the gap return?"""
    usual = attention_curves(s, many=many, train_fraction=train_fraction, steps=steps)
    runs = tuple(replace(run, model=replace(run.model, embedding_std=1.0)) for run in usual.runs)
    return replace(usual, name="gromov/attention_unit_start", runs=runs)


@section.experiment(quick={"train_fraction": 0.7, "steps": 20})
def attention_heads(s: Settings, *, train_fraction: Share = 0.5, steps: Steps = 2_000) -> Experiment:
    """Fig. 13: nets of attention alone, the same number of parameters split among more or fewer heads."""
    return _attention("attention_heads", NETS, s, s.heads, s.few, train_fraction, steps)


@section.experiment(quick={"train_fraction": 0.7, "steps": 20})
def attention_heads_light(s: Settings, *, train_fraction: Share = 0.5, steps: Steps = 2_000) -> Experiment:
    """Fig. 13 again where its weight decay of 2 hides what heads do: two layers with a decay of 1."""
    nets: Nets = {DEEP: (2, "softmax", 1.0)}
    return _attention("attention_heads_light", nets, s, s.heads, s.few, train_fraction, steps)


@section.experiment(quick={"train_fraction": 0.7, "steps": 20})
def attention_single_head(s: Settings, *, train_fraction: Share = 0.5, steps: Steps = 2_000) -> Experiment:
    """Fig. 13 with one head and no weight decay: which of them keeps it from learning its training set?"""
    nets: Nets = {name: (layers, attention, 0.0) for name, (layers, attention, _) in NETS.items()}
    return _attention("attention_single_head", nets, s, s.heads[:1], s.few, train_fraction, steps)


def activation_share(record: xr.Dataset, snapshot: int = -1) -> NDArray[np.float64]:
    """(run,) median over hidden units of the share of an activation's power in its strongest family of frequencies."""
    return np.nanmedian(record.activation_share.values, axis=-1)[:, snapshot]


def of(net: str, measure: Measure) -> Measure:
    """A measure of the runs of one kind of net."""
    return lambda record: measure(select(record, label=net))


def lag(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) steps between 90 % train and 90 % test accuracy."""
    return first(record, "test_accuracy", 0.9) - first(record, "train_accuracy", 0.9)


def at_fit(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) test accuracy when 99 % of the training set is right."""
    return at(record, "test_accuracy", t_train(record))


def enough_heads(net: str, record: xr.Dataset) -> float:
    """H*: the fewest heads, at most 32, from which on the median best test accuracy is at least .9, if it is at most .5
    for a quarter of them and fewer; infinity if there is no such number.
    """
    heads, test = sweep(select(record, label=net), "heads", best)
    middle = median(test, axis=0)
    for h in heads[heads <= 32]:
        few = heads <= h / 4
        if (middle[(heads >= h) & (heads <= 32)] >= 0.9).all() and few.any() and (middle[few] <= 0.5).all():
            return float(h)
    return float("inf")


def train_with_one(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) highest train accuracy of the runs with one head."""
    return best(select(record, heads=1), "train_accuracy")


section.claim(
    "fig11",
    "Fig. 11",
    "The MLP of a one-layer transformer has periodic activations.",
    Part("best test accuracy", best, at_least(0.99), percent),
    Part("share of a unit's strongest frequency family at the end", activation_share, above(0.5), percent),
    Part("the same at the start", partial(activation_share, snapshot=0), below(0.1), percent),
    on="transformer",
    paper="periodic; embeddings generically develop no structure in Fourier space",
)

UNKNOWN = "test accuracy at t_train (in Fig. 1 all but none)"
section.claim(
    "fig12",
    "Fig. 12",
    "Attention alone groks, with the same signatures as the MLP of Fig. 1.",
    *(
        part
        for net in ONE_LAYER
        for part in (
            Part(f"{net}: best test accuracy", of(net, best), at_least(0.9), percent),
            Part(f"{net}: steps from 90 % train to 90 % test accuracy", of(net, lag), above(0)),
            Part(f"{net}: largest test loss above 1/p by", of(net, above_silence), at_least(0.02), percent),
        )
    ),
    *(Part(f"{net}: {UNKNOWN}", of(net, at_fit), at_most(0.05), percent) for net in ONE_LAYER),
    on="attention_curves",
)

section.claim(
    "unit-start",
    "beside Fig. 12",
    "From embeddings of unit variance attention alone knows as little of the test set at t_train as the MLP of Fig. 1.",
    *(Part(f"{net}: {UNKNOWN}", of(net, at_fit), at_most(0.05), percent) for net in ONE_LAYER),
    on="attention_unit_start",
    forecast="no: 47 and 62 % at t_train in a pilot of one seed each",
    whose="ours",
)

DECAYS = "attention_heads", "attention_heads_light"
section.claim(
    "fig13",
    "Fig. 13",
    "With the number of parameters fixed, attention alone generalises only if it has enough heads.",
    *(
        part
        for net in ONE_LAYER
        for part in (
            Part(f"{net}: heads H* that suffice, a quarter of them failing", partial(enough_heads, net), REACHED),
            Part(f"{net}: highest train accuracy with one head", of(net, train_with_one), below(0.99), percent),
        )
    ),
    Part(f"{DEEP}, decay 2 or 1: heads H* that suffice, a quarter of them failing",
         lambda *both: min(enough_heads(DEEP, one) for one in both), REACHED, on=DECAYS),
    Part(f"{DEEP}, decay 2 and 1: highest train accuracy with one head",
         lambda *both: np.concatenate([train_with_one(select(one, label=DEEP)) for one in both]), below(0.99), percent,
         True, on=DECAYS),
    on="attention_heads",
    paper="a jump of test accuracy in all three nets; few heads fail on the training set too",
)  # fmt: skip

section.claim(
    "one-head",
    "beside Fig. 13",
    "Weight decay is not what keeps a single head from learning its training set: without it, too, it learns a part.",
    *(
        Part(f"{net}: highest train accuracy with one head and no decay", of(net, train_with_one), between(0.05, 0.99),
             percent)
        for net in NETS
    ),
    on="attention_single_head",
    forecast="more than with decay, and not all",
    whose="ours",
)  # fmt: skip
