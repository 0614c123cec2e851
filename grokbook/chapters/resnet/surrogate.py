"""The same sums without pictures: a perceptron that is told the four symbols, and must learn what they are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.resnet import Settings, theory
from grokbook.chapters.resnet.reading import after_fit, delay, during, final, plateau, t_fit, t_test
from grokbook.chapters.resnet.tasks import ShapeSum, dictionary, steps_per_epoch
from grokbook.chapters.resnet.training import Epochs, run
from grokbook.claims import REACHED, Part, at_least, at_most, below, between, near
from grokbook.curves import own_steps, spearman
from grokbook.models.slot_mlp import SlotMLP
from grokbook.settings import Seeds, Widths
from grokbook.train.experiment import Experiment, Schedule
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("surrogate")

SEVEN, ELEVEN = ShapeSum(dictionary(7), 600), ShapeSum()
NINE = ShapeSum(dictionary(9), 1640)
HALF = ShapeSum(dictionary(7), 1200, "combinations")


def _net(task: ShapeSum, width: int = 128, *, shared: bool = False) -> SlotMLP:
    return SlotMLP(len(task.symbols), task.classes, width=width, shared=shared)


def _experiment(name: str, epochs: int, seeds: int, *conditions: tuple[str, ShapeSum, SlotMLP, float]) -> Experiment:
    """Conditions (label, task, network, weight decay), each with all seeds."""
    runs = tuple(
        run(task, net, seed, epochs=epochs, weight_decay=decay, label=label)
        for label, task, net, decay in conditions
        for seed in range(seeds)
    )
    shortest = min(steps_per_epoch(one.task.train_size) for one in runs)
    return Experiment(f"resnet/{name}", runs, Schedule(log=60, every=25 * shortest), ("sums",))


@section.experiment(quick={"epochs": 50, "seeds": 1})
def slots(s: Settings, *, epochs: Epochs = 7000, seeds: Seeds = 3) -> Experiment:
    """Seven symbols, by weight decay."""
    conditions = ((f"decay {decay:g}", SEVEN, _net(SEVEN), decay) for decay in (0.0, 1e-4, 3e-4, 1e-3, 3e-3))
    return _experiment("slots", epochs, seeds, *conditions)


@section.experiment(quick={"epochs": 1, "seeds": 1, "widths": (256,)})
def slots_full(
    s: Settings, *, widths: Widths = (64, 128, 256, 512), epochs: Epochs = 2500, seeds: Seeds = 3
) -> Experiment:
    """Eleven symbols at the paper's sizes of training set, batch and decay, by the width of the hidden layers."""
    return _experiment("slots_full", epochs, seeds, *((f"width {n}", ELEVEN, _net(ELEVEN, n), 1e-4) for n in widths))


@section.experiment(quick={"epochs": 5, "seeds": 1})
def slots_dictionaries(s: Settings, *, epochs: Epochs = 1500, seeds: Seeds = 3) -> Experiment:
    """Nine and eleven symbols at the decay at which seven take long: more symbols are more pictures to learn from."""
    conditions = ((f"{len(one.symbols)} symbols", one, _net(one), 1e-3) for one in (NINE, ELEVEN))
    return _experiment("slots_dictionaries", epochs, seeds, *conditions)


@section.experiment(quick={"epochs": 5, "seeds": 1})
def slots_shared(s: Settings, *, epochs: Epochs = 500, seeds: Seeds = 3) -> Experiment:
    """One embedding for all four cells, added: the order of the symbols is lost from the start."""
    conditions = ((f"{len(one.symbols)} symbols", one, _net(one, shared=True), 1e-3) for one in (SEVEN, ELEVEN))
    return _experiment("slots_shared", epochs, seeds, *conditions)


@section.experiment(quick={"epochs": 50, "seeds": 1})
def slots_combinations(s: Settings, *, epochs: Epochs = 7000, seeds: Seeds = 3) -> Experiment:
    """Seven symbols at the decay that has a late rise, shown half of the pictures, or half or a quarter of the
    combinations of symbols, each in all its orders."""
    tasks = {
        "half, drawn singly": replace(HALF, split=None),
        "half of the combinations": HALF,
        "a quarter of the combinations": replace(HALF, train_size=600),
    }
    conditions = ((name, task, _net(task), 1e-3) for name, task in tasks.items())
    return _experiment("slots_combinations", epochs, seeds, *conditions)


@section.experiment(quick={"epochs": 50, "seeds": 1})
def slots_longer(s: Settings, *, epochs: Epochs = 30_000, seeds: Seeds = 3) -> Experiment:
    """Half of the combinations again, for more than four times as long."""
    return _experiment("slots_longer", epochs, seeds, ("half of the combinations", HALF, _net(HALF), 1e-3))


def of(record: xr.Dataset, label: str) -> xr.Dataset:
    """The runs of one condition, at the steps at which they were measured."""
    return own_steps(select(record, label=label))


def _decayed(record: xr.Dataset) -> xr.Dataset:
    return of(record, "decay 0.001")


def _bold(record: xr.Dataset) -> xr.Dataset:
    return of(record, "width 256")


def _half(record: xr.Dataset) -> xr.Dataset:
    return of(record, "half of the combinations")


def _by_decay(record: xr.Dataset) -> float:
    """Rank correlation over runs with decay of decay and the time to a test accuracy of a half, never being last."""
    some = record.weight_decay.values > 0
    times = np.minimum(t_test(record, 0.5)[some], 1e9)
    return spearman(record.weight_decay.values[some], times) if np.ptp(times) else float("nan")


def _off_memory(record: xr.Dataset, task: ShapeSum) -> np.ndarray:
    """(run,) test accuracy at epoch 200 less what a memory of all permutations gives."""
    memory = theory.orbit_share(len(task.symbols), "all permutations", task.train_size)
    return during(of(record, f"{len(task.symbols)} symbols"), "test_accuracy", 190, 210) - memory


section.claim(
    "slots-late",
    "beyond Fig. 7",
    "With decay 1e-3 a perceptron on seven symbols fits, is off by one more often than right, and understands late.",
    Part("epochs to fit", lambda r: t_fit(_decayed(r)), at_most(150)),
    Part("test accuracy in the 200 epochs after", lambda r: after_fit(_decayed(r)), at_most(0.25)),
    Part("epochs to a test accuracy of 0.9", lambda r: t_test(_decayed(r)), at_most(3400)),
    Part("that time / time to fit", lambda r: delay(_decayed(r)), at_least(10), times),
    Part("test accuracy at the end", lambda r: final(_decayed(r)), at_least(0.93), percent),
    Part("within one, less accuracy, on the plateau",
         lambda r: plateau(_decayed(r), "within_one") - plateau(_decayed(r)), at_least(0.35)),
    on="slots",
    forecast="fitted at 60 to 75, 0.9 at 2,275 to 2,700 (three earlier runs)",
    whose="ours",
)  # fmt: skip

section.claim(
    "slots-decay",
    "beyond Fig. 7",
    "Without weight decay the plateau does not end; with more of it, the rise comes earlier.",
    Part("epochs to fit without it", lambda r: t_fit(of(r, "decay 0")), at_most(200)),
    Part("highest test accuracy without it",
         lambda r: during(of(r, "decay 0"), "test_accuracy", 0, np.inf, 1), below(0.2)),
    Part("rank correlation of decay with the time to 0.5", _by_decay, at_most(-0.8)),
    on="slots",
    forecast="0.12 without; 3,200 at 1e-4, 1,350 to 1,800 at 1e-3",
    whose="ours",
)  # fmt: skip

section.claim(
    "slots-full",
    "beyond Fig. 7",
    "With the paper's data, batch and decay, and no picture, a perceptron of 256 units waits and understands late.",
    Part("epochs to fit", lambda r: t_fit(_bold(r)), at_most(120)),
    Part("test accuracy over epochs 100 to 200", lambda r: during(_bold(r), "test_accuracy", 100, 200),
         between(0.2, 0.4)),
    Part("epochs to a test accuracy of 0.9", lambda r: t_test(_bold(r)), at_most(2000)),
    Part("that time / time to fit", lambda r: delay(_bold(r)), at_least(10), times),
    Part("test accuracy at the end", lambda r: final(_bold(r)), at_least(0.99), percent),
    on="slots_full",
    forecast="fitted at 50, 0.26 to 0.30, 0.92 at 1,225 (one earlier run)",
    whose="ours",
)  # fmt: skip

section.claim(
    "slots-combinations",
    "beyond Fig. 7",
    "Shown half of the combinations of seven symbols, a perceptron comes to understand the others, late.",
    Part("test accuracy in the 200 epochs after the fit", lambda r: after_fit(_half(r)), at_most(0.5),
         every=True, premise=True),
    Part("epochs to a test accuracy of 0.9", lambda r: t_test(_half(r)), REACHED, every=True),
    on="slots_combinations",
    forecast="0.9 at epochs 500 to 3,000, sooner than from a quarter of the pictures drawn singly",
    whose="ours",
)  # fmt: skip

section.claim(
    "slots-longer",
    "beyond Fig. 7",
    "In 30,000 epochs a perceptron comes to understand the combinations that it was shown in no order.",
    Part("epochs to a test accuracy of 0.9", t_test, REACHED, every=True),
    on="slots_longer",
    forecast="0.9 at epochs 8,000 to 25,000: after 7,000 these networks had 0.50 to 0.81 right, and rising",
    whose="ours",
)

section.claim(
    "slots-shared",
    "beyond Fig. 7",
    "Where the order of the cells is lost from the start, accuracy is at once what a memory of all permutations gives.",
    Part("accuracy at epoch 200, less that of the memory, 7 symbols", lambda r: _off_memory(r, SEVEN), near(0, 0.04)),
    Part("accuracy at epoch 200, less that of the memory, 11 symbols", lambda r: _off_memory(r, ELEVEN),
         near(0, 0.015)),
    on="slots_shared",
    forecast="0.93 against 0.9327",
    whose="ours",
)  # fmt: skip
