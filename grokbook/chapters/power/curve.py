"""Figs 1 left and 4: division, learnt by heart at once and understood much later; and what decay does to the delay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.training import ADAM, ADAMW, GRID, even, run
from grokbook.claims import REACHED, Part, at_least, at_most, below, between
from grokbook.curves import at, best, first, last, least_t_test, median, own_steps, peak, t_test, t_train
from grokbook.settings import Steps
from grokbook.train.experiment import Experiment
from grokbook.words import percent, times

section = Section("curve")


@section.experiment(
    smaller=[{"seeds": 1}, {"seeds": 1, "updates": 300_000}, {"seeds": 1, "updates": 30_000}], quick={"updates": 100}
)
def without_decay(s: Settings, *, updates: Steps = 1_000_000) -> Experiment:
    """Figs 1 left and 4: x/y from half of the table under Adam without weight decay."""
    runs = (run(s, "x/y", s.train_fraction, ADAM, updates, seed, "Adam, no decay") for seed in range(s.seeds))
    return Experiment("power/without_decay", tuple(runs), GRID, ("total_norm",))


@section.experiment(smaller=[{"seeds": 1}], quick={"updates": 100})
def in_double(s: Settings, *, updates: Steps = 100_000) -> Experiment:
    """The same in double precision, which can tell a probability from 1 where float32 cannot."""
    runs = (run(s, "x/y", s.train_fraction, ADAM, updates, seed, "in double precision") for seed in range(s.seeds))
    return Experiment("power/in_double", tuple(runs), GRID, ("total_norm",), precision="double")


@section.experiment(smaller=[{"updates": 30_000}], quick={"updates": 100})
def without_epsilon(s: Settings, *, updates: Steps = 100_000) -> Experiment:
    """``in_double`` with an ε of 1e-30 in place of Adam's 1e-8, below which it no longer normalises its steps."""
    one = run(s, "x/y", s.train_fraction, replace(ADAM, eps=1e-30), updates, 0, "in double precision, no ε")
    return Experiment("power/without_epsilon", (one,), GRID, ("total_norm",), precision="double")


@section.experiment(smaller=[{"seeds": 1}], quick={"updates": 100})
def with_decay(s: Settings, *, updates: Steps = 10_000) -> Experiment:
    """The same with AdamW and decay 1, the setting of nearly all other figures, for twice the time that it needs."""
    runs = (run(s, "x/y", s.train_fraction, ADAMW, updates, seed, "AdamW, decay 1") for seed in range(s.seeds))
    return Experiment("power/with_decay", tuple(runs), GRID, ("total_norm",))


@section.experiment(quick={"updates": 100})
def even_decay(s: Settings, *, updates: Steps = 10_000) -> Experiment:
    """``with_decay`` without the short batch of 48 rows that ends its epochs."""
    return even(with_decay(s, updates=updates), "even_decay", label="no short batch")


# ------------------------------------------------------------------------------------- what is read off the curves


def lag(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) t_test / t_train, at least."""
    return least_t_test(record) / t_train(record)


def half_lag(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) the time to half of the held-out rows / t_train; 0 where it does not come."""
    half = first(record, "test_accuracy", 0.5)
    return np.where(np.isfinite(half), half, 0) / t_train(record)


def rise(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) the largest test loss after step 100 over the smallest before that."""
    where, height = peak(record, "test_loss", 100)
    early = np.where(record.step.values <= where[:, None], record.test_loss.values, np.inf)
    return height / np.nanmin(early, axis=1)


def setback(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) by how much test accuracy ever falls below what it was, up to t_test."""
    accuracy = own_steps(record).test_accuracy
    inside = accuracy.step.values <= t_test(record)[:, None]
    values = np.where(inside, accuracy.values, np.nan)
    return np.nanmax(np.fmax.accumulate(values, axis=1) - values, axis=1)


def norm_turns(record: xr.Dataset) -> list[NDArray[np.float64]]:
    """Each (run,), of the largest rise of the norm up to t_test: its start, its end, and test accuracy then."""
    norm = np.where(record.step.values <= t_test(record)[:, None], record.total_norm.values, np.nan)
    lowest = np.fmin.accumulate(norm, axis=1)
    top = np.nanargmax(norm - lowest, axis=1)[:, None]
    return [np.take_along_axis(values, top, 1)[:, 0] for values in (lowest, norm, record.test_accuracy.values)]


def spared(without: xr.Dataset, decayed: xr.Dataset) -> float:
    """How many times as long it takes without decay, at least; medians over seeds."""
    return float(np.median(least_t_test(without)) / np.median(t_test(decayed)))


def over(what: Callable[[xr.Dataset], NDArray[np.float64]], one: xr.Dataset, other: xr.Dataset) -> float:
    """What is read off one record over the same of another; medians over seeds."""
    return float(median(what(one)) / median(what(other)))


def known(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) held-out rows right at update 100,000."""
    return at(record, "test_accuracy", 100_000)


def jumps(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) the highest training loss after update 5,000."""
    return record.train_loss.values[:, record.step.values > 5_000].max(1, initial=0)


section.claim(
    "fig1l-train",
    "Fig. 1, left",
    "The training set is learnt almost perfectly in less than 1,000 updates.",
    Part("first step with 90 % of the training rows right", lambda r: first(r, "train_accuracy", 0.9), at_most(1000)),
    Part("with 99 %", t_train, at_most(2000), every=True),
    on="without_decay",
    paper="fewer than 1,000",
    forecast="500 at 99 % (one run with decay)",
)

section.claim(
    "fig1l-late",
    "Fig. 1, left",
    "Long after that the network still answers hardly any row that it has not seen.",
    Part("held-out rows right at step 100,000", known, at_most(0.1), percent, every=True),
    Part("training rows right then", lambda r: at(r, "train_accuracy", 100_000), at_least(0.99), percent, every=True),
    on="without_decay",
    paper="little progress before 100,000",
)

section.claim(
    "fig1l-grokking",
    "Fig. 1, left",
    "Without any weight decay it generalises in the end, hundreds of times later than it learnt its training set.",
    Part("t_test", t_test, REACHED),
    Part("time to half of the held-out rows (0 where it does not come) / t_train", half_lag, at_least(100), times),
    on="without_decay",
    earlier=[
        Part("t_test", t_test, REACHED),
        Part("t_test (else the last step) / t_train", lag, at_least(100), times),
    ],
    paper="validation is perfect near 1,000,000; the text says that it starts after 1,000 times the steps for training",
    note="t_test asks for 99 %: the network came near that in a million updates, and was still rising",
)

section.claim(
    "fig4",
    "Fig. 4",
    "The loss on held-out rows rises between 100 and 100,000 updates and then descends a second time.",
    Part("largest after step 100 / smallest before it", rise, at_least(2), times),
    Part("step of the largest", lambda r: peak(r, "test_loss", 100)[0], between(1e3, 5e5)),
    Part("last test loss / largest", lambda r: last(r, "test_loss") / peak(r, "test_loss", 100)[1], at_most(0.5)),
    Part("training loss at step 10,000", lambda r: at(r, "train_loss", 10_000), below(0.01)),
    on="without_decay",
)

section.claim(
    "fig4-monotone",
    "Fig. 4",
    "Accuracy on held-out rows rises steadily meanwhile, to 99 %.",
    Part("largest fall below an earlier value, up to t_test", setback, at_most(0.05), percent, every=True),
    Part("best accuracy on held-out rows", best, at_least(0.99), percent),
    on="without_decay",
)

section.claim(
    "decay-control",
    "beside Fig. 1, left",
    "With AdamW and decay 1, as in the other figures, the same rows are understood within 5,000 updates.",
    Part("t_test", t_test, at_most(5000), every=True),
    Part("t_test / t_train", lag, at_least(2), times, every=True),
    on="with_decay",
    forecast="4,000 and a factor of 8 (one run)",
    whose="ours",
)

section.claim(
    "short-batch-wait",
    "beside Fig. 1, left",
    "A short last batch delays learning by heart and not the rule: t_test / t_train more than doubles without it.",
    Part("median t_train with a last batch of 48 rows / without", partial(over, t_train), at_least(1.5), times),
    Part("median t_test with / without", partial(over, t_test), between(0.7, 1.4), times),
    Part("median t_test / t_train, with / without", partial(over, lag), at_most(0.5), times),
    on=("with_decay", "even_decay"),
    forecast="2.3, 0.9 and 0.4, from two networks of a pilot",
    whose="ours",
)

section.claim(
    "decay-spares",
    "beside Fig. 1, left",
    "Without decay it takes at least ten times as long.",
    Part("t_test without decay / with it, at least", spared, at_least(10), times, on=("without_decay", "with_decay")),
    Part("training rows it then knows", lambda r: best(r, "train_accuracy"), at_least(0.99), percent),
    on="without_decay",
    whose="ours",
)

section.claim(
    "collapse",
    "beside Fig. 1, left",
    "Rounding holds the network without decay back: in double precision it knows more by update 100,000.",
    Part("held-out rows right, double / single", partial(over, known), at_least(2), times),
    on=("in_double", "without_decay"),
    forecast="softmax collapse, if that delays it, comes later in double precision (Prieto et al., 2025)",
    whose="ours",
)


section.claim(
    "epsilon",
    "beside Fig. 1, left",
    "It is Adam's ε, not rounding, by which jumps end in double precision: without it they go on.",
    Part("highest training loss after update 5,000 (nats)", jumps, at_least(0.01)),
    Part(
        "training rows right, in the median reading after",
        lambda r: r.train_accuracy[:, r.step > 5_000].median("step"),
        at_least(0.99),
        percent,
    ),
    on="without_epsilon",
    forecast="jumps: larger ε suppresses them (Thilak et al., 2022)",
    whose="ours",
)

section.claim(
    "slingshots",
    "beside Fig. 1, left",
    "The jumps lead towards the rule: where they go on in double precision, more is learnt by update 100,000.",
    Part("held-out rows right, without ε / with it", partial(over, known), at_least(1.5), times),
    on=("without_epsilon", "in_double"),
    forecast="2, as in single precision: without decay, rules come with jumps alone (Thilak et al., 2022)",
    whose="ours",
)
