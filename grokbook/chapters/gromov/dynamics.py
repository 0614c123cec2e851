"""Fig. 1: what plain gradient descent does, and how long the delay is in each of the paper's output scalings."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.chapters.gromov.training import gradient_descent, seeded
from grokbook.claims import REACHED, Part, above, at_least, at_most, below, between, near
from grokbook.curves import at, best, first, last, least_t_test, peak, t_test, t_train
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import Optimizer
from grokbook.settings import Rate, Steps
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.words import percent, times

section = Section("dynamics")
NORMS = ("weight_norm", "gradient_norm")
FUNCTIONS = ("n + m", "(n + m)**2", "n**2 + m**2", "n*m", "n**2 + m**2 + n*m")


@section.experiment(quick={"lr": 1e6})
def learning_curves(s: Settings, *, lr: Rate = 1e5) -> Experiment:
    """Figs 1, 2 and 3: modular addition under plain gradient descent, in the scaling that the paper's curves fit."""
    task, model = ModularTask(s.p, "n + m", s.train_fraction), TwoLayerMLP(s.p, s.width, "input_mean_field")
    return Experiment(
        "gromov/learning_curves",
        seeded(s.seeds, task, model, gradient_descent(lr, s.p, s.width), s.gd_steps, "GD"),
        Schedule(log=60, every=max(1, s.gd_steps // 500)),
        (*NORMS, "ipr", "phases"),
        snapshots=(0, -1),
        keep=("W_in", "W_out"),
    )


def _printed(name: str, s: Settings, how: Optimizer, steps: int, label: str, *measured: str, **more: Any) -> Experiment:
    task, model = ModularTask(s.p, "n + m", s.train_fraction), TwoLayerMLP(s.p, s.width, "mean_field")
    runs = seeded(s.seeds, task, model, how, steps, label)
    return Experiment(f"gromov/{name}", runs, Schedule(log=60, every=max(1, steps // 200)), measured, **more)


@section.experiment(quick={"steps": 200})
def printed_scaling(s: Settings, *, steps: Steps = 2_000) -> Experiment:
    """Fig. 1 again in the scaling printed in the text, 2/N with unit variance; momentum gets there sooner."""
    optimizer = gradient_descent(2000, s.p, s.width, "mean_field", momentum=0.9)
    return _printed("printed_scaling", s, optimizer, steps, "GD + momentum, 2/N", *NORMS, "ipr", "phases")


@section.experiment(quick={"steps": 200})
def printed_scaling_plain(s: Settings, *, steps: Steps = 20_000) -> Experiment:
    """Fig. 1 in the printed scaling under plain GD: the long delay; a run ends when it has grokked."""
    optimizer, stop = gradient_descent(3000, s.p, s.width, "mean_field"), Stop(evaluations=3)
    return _printed("printed_scaling_plain", s, optimizer, steps, "GD, 2/N", "weight_norm", stop=stop)


@section.study
def infinite_width(s: Settings) -> xr.Dataset:
    """Sec. 5.1: five functions learnt by the tangent kernel, exactly, as a record whose steps are times; N is infinite.

    Nothing is drawn but the training set: the share of Fig. 1, and of sums nine tenths as well.
    """
    tasks = [ModularTask(s.p, "n + m", 0.9), *(ModularTask(s.p, f, s.train_fraction) for f in FUNCTIONS)]
    times, found = np.append(np.logspace(-5, -2, 11), (0.1, 10)), []
    for task in tasks:
        labels, seen = (x.reshape(s.p, s.p) for x in (task.table()[1], task.in_train(0)))
        right = [outputs.argmax(-1) == labels for outputs in theory.kernel_flow(labels, seen, times)]
        found.append([[one[some].mean() for one in right] for some in (seen, ~seen)])
    names, values = ("train_accuracy", "test_accuracy"), np.swapaxes(found, 0, 1)
    coords = {name: ("run", [getattr(task, name) for task in tasks]) for name in ("f", "train_fraction")}
    curves = {name: (("run", "step"), one) for name, one in zip(names, values, strict=True)}
    return xr.Dataset(curves, {**coords, "step": times})


def relative_norms(record: xr.Dataset, layer: str) -> NDArray[np.float64]:
    """(run, step) norm of a layer's weights in units of its initial norm."""
    norms = record[f"weight_norm_{layer}"].values
    return norms / norms[:, :1]


def loss_peak(record: xr.Dataset) -> tuple[NDArray, NDArray]:
    """(run,) step and value of the largest test loss after a tenth of t_train."""
    return peak(record, "test_loss", 0.1 * t_train(record))


def above_silence(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) by which share the largest test loss exceeds 1/p, the error of a network that says nothing."""
    return loss_peak(record)[1] * record.p.values - 1


def falling_share(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) share of logged intervals up to t_test in which the train loss falls."""
    inside = record.step.values[1:] <= t_test(record)[:, None]
    falls = np.diff(record.train_loss.values) < 0
    return (falls & inside).sum(1) / np.maximum(inside.sum(1), 1)


def grown(record: xr.Dataset, layer: str) -> NDArray[np.float64]:
    """(run,) a layer's norm at t_test in units of the initial one."""
    return at(record, relative_norms(record, layer), t_test(record))


def done_at_onset(record: xr.Dataset, layer: str, *, lowest: bool = False) -> NDArray[np.float64]:
    """(run,) share of a norm's growth up to t_test, from its start or from its lowest value before, that is done when
    5 % of the test set is right."""
    norms, onset = relative_norms(record, layer), first(record, "test_accuracy", 0.05)
    start = np.where(record.step.values <= t_test(record)[:, None], norms, np.inf).min(1) if lowest else 1
    return (at(record, norms, onset) - start) / (grown(record, layer) - start)


def largest_norm(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) the largest norm that either layer ever has, in units of its initial one."""
    return np.nanmax([relative_norms(record, layer) for layer in ("W_in", "W_out")], axis=(0, 2))


def fastest(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) step of the largest gradient, both layers together, after the first 5 % of the run."""
    gradient = np.hypot(record.gradient_norm_W_in.values, record.gradient_norm_W_out.values)
    return peak(record, gradient, 0.05 * float(record.step[-1]))[0]


def rise(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) how long test accuracy takes from 5 % to 95 %, in units of t_test: small is sudden."""
    return (first(record, "test_accuracy", 0.95) - first(record, "test_accuracy", 0.05)) / t_test(record)


section.claim(
    "fig1a",
    "Fig. 1a",
    "Train loss generally decays monotonically; test loss is largest right before test accuracy takes off.",
    Part("share of intervals in which train loss falls", falling_share, at_least(0.95), percent),
    Part("largest test loss above 1/p by", above_silence, at_least(0.02), percent),
    Part("its step / t_train", lambda r: loss_peak(r)[0] / t_train(r), at_least(0.7)),
    Part("its step / t_test", lambda r: loss_peak(r)[0] / t_test(r), at_most(1)),
    Part("test accuracy there", lambda r: at(r, "test_accuracy", loss_peak(r)[0]), at_most(0.1), percent),
    on="learning_curves",
    forecast="peak 4 % above 1/p, accuracy there 0.2 % (one earlier run)",
)

section.claim(
    "fig1b",
    "Fig. 1b",
    "Weight norms grow, but do not explode.",
    Part("first layer's norm at t_test", partial(grown, layer="W_in"), between(3, 6), times),
    Part("readout's norm at t_test", partial(grown, layer="W_out"), between(3, 6), times),
    Part("largest norm of either layer", largest_norm, at_most(8), times, every=True),
    on="learning_curves",
    forecast="×4.5",
)

DONE = "first layer's growth done when 5 % of the test set is right"
section.claim(
    "fig1b-onset",
    "Fig. 1b",
    "Weight norms start growing at the onset of grokking.",
    Part(DONE, partial(done_at_onset, layer="W_in"), at_most(0.2), percent),
    Part("readout's growth done then", partial(done_at_onset, layer="W_out"), at_most(0.2), percent),
    on="learning_curves",
)

section.claim(
    "fig1b-printed",
    "beyond Fig. 1b",
    "In the scaling that the text prints, the first layer's norm falls first and ends below the initial one.",
    Part("lowest norm / norm at the end",
         lambda r: np.nanmin(relative_norms(r, "W_in"), axis=1) / last(r, relative_norms(r, "W_in")), below(1)),
    Part("norm at the end", lambda r: last(r, relative_norms(r, "W_in")), near(0.71, 0.05), times),
    on="printed_scaling",
    forecast="falls to 0.49, ends at 0.71",
    whose="ours",
)  # fmt: skip

LATE = (
    Part("delay t_test / t_train", lambda r: t_test(r) / t_train(r), between(1.1, 2.5)),
    Part("test accuracy at t_train", lambda r: at(r, "test_accuracy", t_train(r)), at_most(0.05), percent),
    Part("t_train", t_train, REACHED, every=True),
    Part("t_test", t_test, REACHED, every=True),
)
section.claim(
    "fig1c",
    "Fig. 1c",
    "Test accuracy rises late and suddenly under plain gradient descent without regularisation.",
    *LATE,
    Part("time from 5 % to 95 % of the test set / t_test", rise, at_most(0.25)),
    on="learning_curves",
    forecast="delay 1.2, accuracy 2.5 % at t_train",
    earlier=LATE,
)

section.claim(
    "fig1c-printed",
    "beyond Fig. 1c",
    "In the printed scaling, 2/N with unit variance, the delay is long.",
    Part("delay under plain gradient descent, at least", lambda r: least_t_test(r) / t_train(r), above(4), times),
    on="printed_scaling_plain",
    forecast="above 4 (seen at p = 53)",
    whose="ours",
)

section.claim(
    "kernel",
    "Sec. 5.1",
    "Infinitely wide networks, in the NTK regime, do not grok.",
    Part("training pairs right in the end", lambda d: last(d, "train_accuracy"), at_least(0.99), percent, every=True),
    Part("other pairs right at any time", best, at_most(0.03), percent, every=True),
    on="infinite_width",
    paper="without an experiment",
)

_TOGETHER = Part(
    "step of the largest gradient / of the largest test loss", lambda r: fastest(r) / loss_peak(r)[0], near(1, 0.15)
)
section.claim(
    "fig1d",
    "Fig. 1d",
    "Training accelerates until the test loss is largest and slows down afterwards.",
    _TOGETHER,
    on="learning_curves",
    forecast="within 4 %, well below the edge of stability",
)

section.claim(
    "onset-printed",
    "beyond Fig. 1b, d",
    "In the printed scaling norms start growing at the onset, and the gradient is largest at the test loss's peak.",
    *(
        Part(f"{words} growth, from its lowest up to t_test, done when 5 % of the test set is right",
             partial(done_at_onset, layer=layer, lowest=True), at_most(0.2), percent)
        for words, layer in (("first layer's", "W_in"), ("readout's", "W_out"))
    ),
    _TOGETHER,
    on="printed_scaling",
    whose="ours",
)  # fmt: skip
