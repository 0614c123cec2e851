"""Fig. 4 and section 2: how much data, how many neurons, which ways of training and which losses grok."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import curves
from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.chapters.gromov.training import ADAMW, adamw, gradient_descent, seeded, ways_to_train
from grokbook.claims import Part, at_least, at_most, below, between, exactly
from grokbook.curves import last, median, sweep, t_test, t_train
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import Optimizer
from grokbook.settings import Share, Shares, Steps, Widths
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule, Stop
from grokbook.train.records import conditions, select
from grokbook.words import number, percent

section = Section("data")

HALF, QUARTER, TENTH = "half the rate", "a quarter of the rate", "a tenth of the rate"
GENTLE = {HALF: 0.5, QUARTER: 0.25, TENTH: 0.1}  # of the rate of gradient descent in Fig. 4a
SHARES = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)


@section.experiment(
    quick={"gd_limit": 120, "adam_limit": 80},
    smaller=[{"seeds": 1}, {"p": 53, "width": 256, "fractions": SHARES}],
)
def data_fraction(s: Settings, *, gd_limit: Steps = 20_000, adam_limit: Steps = 3_000) -> Experiment:
    """Fig. 4a: when runs grok against how much they see, for six optimizers. A run ends when it has grokked."""
    runs: list[Run] = []
    for label, (model, optimizer) in ways_to_train(s.p, s.width).items():
        limit = adam_limit if "Adam" in label else gd_limit
        for alpha in s.fractions:
            runs += seeded(s.few, ModularTask(s.p, "n + m", alpha), model, optimizer, limit, label)
    return Experiment("gromov/data_fraction", tuple(runs), Schedule(log=100, every=10), stop=Stop())


@section.experiment(quick={"limit": 120})
def gentle_momentum(
    s: Settings, *, shares: Shares = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4), limit: Steps = 20_000
) -> Experiment:
    """Fig. 4a's momentum where data are scarce, at lower rates: at that of gradient descent some networks diverge."""
    runs: list[Run] = []
    model = TwoLayerMLP(s.p, s.width, "input_mean_field")
    for label in (HALF, TENTH):
        how = gradient_descent(GENTLE[label] * 1e6, s.p, s.width, momentum=0.9)
        for alpha in shares:
            runs += seeded(s.few, ModularTask(s.p, "n + m", alpha), model, how, limit, label)
    return Experiment("gromov/gentle_momentum", tuple(runs), Schedule(log=100, every=20), stop=Stop())


@section.experiment(quick={"limit": 120})
def gentle_descent(s: Settings, *, shares: Shares = (0.25, 0.3, 0.35), limit: Steps = 20_000) -> Experiment:
    """Its plain gradient descent there at lower rates, for as long, in effective time, as momentum at a tenth."""
    runs: list[Run] = []
    model = TwoLayerMLP(s.p, s.width, "input_mean_field")
    for label in (HALF, QUARTER):
        how, steps = gradient_descent(GENTLE[label] * 1e6, s.p, s.width), round(limit / GENTLE[label])
        for alpha in shares:
            runs += seeded(s.few, ModularTask(s.p, "n + m", alpha), model, how, steps, label)
    return Experiment("gromov/gentle_descent", tuple(runs), Schedule(log=100, every=20), stop=Stop())


@section.experiment(quick={"gd_limit": 150, "adamw_limit": 80}, smaller=[{"seeds": 2}])
def width_scaling(
    s: Settings, *, train_fraction: Share = 0.5, gd_limit: Steps = 5_000, adamw_limit: Steps = 1_000
) -> Experiment:
    """Fig. 4b: accuracy of trained networks against their width."""
    task, runs = ModularTask(s.p, "n + m", train_fraction), []
    for width in s.widths:
        gd = gradient_descent(1e6, s.p, width)
        for seed in range(s.seeds):
            runs.append(Run(task, TwoLayerMLP(s.p, width, "input_mean_field"), gd, gd_limit, seed, label="GD"))
            runs.append(Run(task, TwoLayerMLP(s.p, width, "standard"), ADAMW, adamw_limit, seed, label="AdamW"))
    return Experiment("gromov/width_scaling", tuple(runs), Schedule(log=40), ("ipr", "phases"))


@section.experiment(quick={"limit": 120}, smaller=[{"seeds": 2}])
def regularisers(s: Settings, *, train_fraction: Share = 0.6, limit: Steps = 20_000) -> Experiment:
    """Section 2's list at one fraction: each way of training on its own. A run ends when it has grokked."""
    task, known, quarter = ModularTask(s.p, "n + m", train_fraction), ways_to_train(s.p, s.width), max(1, limit // 4)
    dropped = TwoLayerMLP(s.p, s.width, "input_mean_field", dropout=0.1)
    normed = TwoLayerMLP(s.p, s.width, "mean_field", batch_norm=True)
    heavy = gradient_descent(1e4, s.p, s.width, "mean_field", momentum=0.9)
    ways: dict[str, tuple[TwoLayerMLP, Optimizer, int]] = {
        **{label: (*known[label], limit) for label in ("GD", "GD + momentum", "GD + decay")},
        "GD + dropout": (dropped, gradient_descent(1e6, s.p, s.width), quarter),
        "GD + momentum + batch norm": (normed, heavy, quarter),
        "AdamW": (*known["AdamW"], quarter),
    }
    runs = (one for label, how in ways.items() for one in seeded(s.seeds, task, *how, label))
    return Experiment("gromov/regularisers", tuple(runs), Schedule(log=100, every=20), stop=Stop())


@section.experiment(quick={"moduli": (13,), "shares": (0.5, 0.8), "limit": 80})
def critical_fraction(
    s: Settings, *, moduli: Widths = (23, 47, 97), shares: Shares = SHARES, limit: Steps = 3_000
) -> Experiment:
    """How little data AdamW needs, against the modulus. A run ends when it has grokked."""
    runs: list[Run] = []
    for p in moduli:
        model = TwoLayerMLP(p, s.width, "standard")
        for alpha in shares:
            runs += seeded(s.seeds, ModularTask(p, "n + m", alpha), model, ADAMW, limit, f"p = {p}")
    return Experiment("gromov/critical_fraction", tuple(runs), Schedule(log=100, every=10), stop=Stop())


@section.experiment(quick={"limit": 80})
def cross_entropy(s: Settings, *, train_fraction: Share = 0.5, limit: Steps = 2_000) -> Experiment:
    """Section 4.1's "insensitive to the loss function": the network of Fig. 6 with cross-entropy, under AdamW."""
    task, model = ModularTask(s.p, "n + m", train_fraction), TwoLayerMLP(s.p, s.width, "standard")
    runs = seeded(s.seeds, task, model, adamw(1.0), limit, "AdamW, cross-entropy", "cross_entropy")
    schedule = Schedule(log=60, every=max(1, limit // 200))
    return Experiment("gromov/cross_entropy", runs, schedule, ("ipr", "phases"))


NAMES = ("GD", "GD + momentum", "GD + decay", "GD + momentum + decay", "Adam", "AdamW")


def times_over_shares(record: xr.Dataset, label: str) -> tuple[NDArray, NDArray]:
    """(n,) shares and (seed, n) t_test of one way of training."""
    return sweep(select(record, label=label), "train_fraction", t_test)


def falling(record: xr.Dataset, label: str) -> float:
    """Rank correlation of median t_test with the share of data, over the shares that grok."""
    x, table = times_over_shares(record, label)
    middle = median(table, axis=0)
    return curves.spearman(x[np.isfinite(middle)], middle[np.isfinite(middle)])


def least_share(record: xr.Dataset, label: str, longest: float = np.inf) -> float:
    """The smallest share from which on upwards the median run groks within ``longest`` steps; infinity if none."""
    x, table = times_over_shares(record, label)
    return curves.smallest(x, np.where(table <= longest, table, np.inf))


def delay_at(record: xr.Dataset, label: str, alpha: float) -> float:
    """Median t_test / t_train at a share of the data; nan if there is none."""
    own = select(record, label=label, train_fraction=alpha)
    return float(median(t_test(own) / t_train(own)))


def leaps(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether train loss is ever more than 1.2 times what it was a look before."""
    known = (row[np.isfinite(row)] for row in record.train_loss.values)
    return np.array([bool((row[1:] > 1.2 * row[:-1]).any()) for row in known])


def knows(record: xr.Dataset, label: str, alpha: float) -> float:
    """Median test accuracy at the end of the networks with a share of the data; nan if there is none."""
    return float(median(last(select(record, label=label, train_fraction=alpha), "test_accuracy")))


def time_at(record: xr.Dataset, label: str, alpha: float) -> float:
    """Median t_test at a share of the data; nan if none is near."""
    x, table = times_over_shares(record, label)
    return float(median(table[:, np.isclose(x, alpha, atol=0.01)]))


def speed_up(record: xr.Dataset) -> float:
    """Median t_test of GD over that with momentum at a share of one half."""
    return time_at(record, "GD", 0.5) / time_at(record, "GD + momentum", 0.5)


def saved_by_momentum(plain: xr.Dataset, heavy: xr.Dataset, *, effective: bool) -> float:
    """By how much momentum lowers the smallest share, each at a lower rate than in Fig. 4a.

    Effective: a step of it counts 1 / (1 - momentum) times, and four times as many of plain descent at a quarter of
    the rate are as long as those of momentum at a tenth; else both have as many steps.
    """
    longest = np.inf if effective else float(heavy.steps.max())
    least = least_share(plain, QUARTER, longest), least_share(heavy, TENTH)
    return round(min(1.0, least[0]) - min(1.0, least[1]), 6)


def rough(plain: xr.Dataset, heavy: xr.Dataset) -> bool:
    """Whether train loss leaps at the smallest share of either, so that its rate says nothing on data."""
    pairs = ((plain, QUARTER), (heavy, TENTH))
    return any(leaps(select(one, label=label, train_fraction=least_share(one, label))).any() for one, label in pairs)


def enough(record: xr.Dataset, label: str) -> float:
    """The smallest width from which on upwards the mean final test accuracy is at least 99 %."""
    x, table = sweep(select(record, label=label), "width", lambda one: last(one, "test_accuracy"))
    return curves.smallest(x, table.mean(0, keepdims=True), lambda mean: mean >= curves.LEARNT)


def slowed(record: xr.Dataset, label: str) -> float:
    """Median t_test at the smallest share that groks over that at 0.6."""
    return time_at(record, label, least_share(record, label)) / time_at(record, label, 0.6)


def sooner(record: xr.Dataset, label: str, plain: str = "GD") -> float:
    """Median t_test over that of a plainer way."""
    return float(median(t_test(select(record, label=label))) / median(t_test(select(record, label=plain))))


def with_decay(record: xr.Dataset) -> float:
    """Median t_test of AdamW with decay over the last look before that of AdamW without."""
    plain = select(record, label="AdamW, no decay")
    looks = np.where(np.isfinite(plain.test_accuracy.values), plain.step.values, -np.inf)
    before = np.where(looks < t_test(plain)[:, None], looks, -np.inf).max(1)
    return float(median(t_test(select(record, label="AdamW, decay 5"))) / median(before))


coarse = partial(sooner, label="AdamW, decay 5", plain="AdamW, no decay")
adaptive = partial(sooner, label="AdamW, no decay, 2/N", plain="GD + momentum, 2/N")


def shrunk(record: xr.Dataset) -> NDArray:
    """(run,) the share of a weight that the decay of gradient descent alone has taken by t_test."""
    one = select(record, label="GD + decay")
    return 1 - (1 - one.lr.values * one.weight_decay.values) ** t_test(one)


def smallest_of_moduli(record: xr.Dataset) -> NDArray:
    """(p,) the smallest share that groks, by ascending modulus."""
    of_modulus = sorted(conditions(record), key=lambda condition: condition[1].p.values[0])
    return np.array([least_share(one, label) for label, one in of_modulus])


def stays(record: xr.Dataset, label: str = "") -> NDArray[np.float64]:
    """(network,) the last test loss over the largest of those that only memorise, of one optimizer or of all.

    Networks that diverged are left out: their largest loss is not that of memorising.
    """
    own = select(record, label=label) if label else record
    only = np.isfinite(curves.t_train(own)) & (curves.best(own) < 0.05) & np.isnan(own.diverged_at.values)
    return (last(own, "test_loss") / np.nanmax(own.test_loss.values, axis=1, initial=0))[only]


section.claim(
    "fig4a-i",
    "Fig. 4a",
    "The time to grok grows as the share of data falls.",
    *(
        Part(f"t_test at the smallest share / at α = 0.6, {label}", partial(slowed, label=label), at_least(1.5))
        for label in NAMES
    ),
    on="data_fraction",
    forecast="rank correlations near −1",
    earlier=[Part(f"rank correlation, {label}", partial(falling, label=label), at_most(-0.9)) for label in NAMES],
)

section.claim(
    "fig4a-ii",
    "Fig. 4a",
    "AdamW needs less data than gradient descent.",
    Part("smallest share that groks, GD less AdamW",
         lambda r: min(1.0, least_share(r, "GD")) - least_share(r, "AdamW") + 1e-9, at_least(0.1)),
    on="data_fraction",
    paper="“appears to be more data-efficient”, other ways to tune not ruled out",
    note="By a hair: two steps of a grid of shares, one network a share",
    forecast="0.4 and 0.2 at p = 53",
)  # fmt: skip

section.claim(
    "fig4a-iii",
    "Fig. 4a",
    "Momentum makes gradient descent grok sooner.",
    Part("t_test of GD / with momentum, at α = 0.5", speed_up, between(3, 12)),
    on="data_fraction",
    forecast="about 6 at p = 53",
)

LESS = "smallest share, GD at a quarter of the rate less momentum at a tenth, at equal"
ROUGH = "train loss leaps at the smallest share of one of them", rough
section.claim(
    "fig4a-iv",
    "Fig. 4a",
    "Momentum lowers the amount of data that is needed.",
    Part(f"{LESS} steps", partial(saved_by_momentum, effective=False), at_least(0.05), open=ROUGH),
    Part(f"{LESS} effective time", partial(saved_by_momentum, effective=True), at_least(0.05), open=ROUGH),
    on=("gentle_descent", "gentle_momentum"),
    forecast="it does not: 30 % for both",
)

section.claim(
    "fig4b",
    "Fig. 4b",
    "Trained networks are perfect at a smaller width than the analytic solution.",
    Part("AdamW's width for 99 % / the analytic one", lambda r, d: enough(r, "AdamW") / theory.enough(d),
         at_most(0.75)),
    Part("GD's / the analytic one", lambda r, d: enough(r, "GD") / theory.enough(d), at_most(1)),
    on=("width_scaling", "analytic_widths"),
    forecast="two thirds of it, at p = 53",
)  # fmt: skip

section.claim(
    "optim",
    "Sec. 2",
    "Regularisation is optional; GD, momentum, decay, dropout, batch norm and AdamW all generalise.",
    Part("ways of training, of six, that generalise at α = 0.6",
         lambda r: sum(bool(np.isfinite(median(t_test(one)))) for _, one in conditions(r)), exactly(6)),
    on="regularisers",
    forecast="all",
)  # fmt: skip

section.claim(
    "optim-sooner",
    "Sec. 2",
    "Regularisation and adaptive optimizers generally make grokking happen after fewer epochs.",
    Part("t_test of AdamW with decay / the last look before t_test without", with_decay, at_most(0.8),
         on=("phase_controls",), open=("the bound lies between two looks", lambda r: coarse(r) <= 0.8)),
    Part("t_test of GD + dropout / GD", partial(sooner, label="GD + dropout"), at_most(0.8), on=("regularisers",)),
    Part("t_test of AdamW without decay / GD + momentum, both at 2/N", adaptive, at_most(0.8), on=("phase_controls",)),
)  # fmt: skip

section.claim(
    "loss",
    "Sec. 4.1",
    "Periodic features are found whatever the loss: cross-entropy groks too.",
    Part("t_test", t_test, at_most(2_000), number),
    Part("mean IPR of the first layer at the end", lambda r: last(r, "ipr"), at_least(0.5)),
    on="cross_entropy",
    forecast="it groks, by the group's own code for a later paper",
)

section.claim(
    "alphac",
    "Sec. 5.2",
    "The critical share of data falls with p.",
    Part("largest rise of the smallest share from one modulus to the next",
         lambda r: np.diff(smallest_of_moduli(r)).max(initial=-np.inf), below(0), percent),
    Part("smallest share at the largest modulus", lambda r: smallest_of_moduli(r)[-1], at_most(0.99), percent),
    on="critical_fraction",
    paper="no data",
    forecast="falling",
)  # fmt: skip

STAYS = (
    Part("test loss at the end over the largest, networks that do not diverge, with under 5 % of the rest right",
         lambda r: stays(r, "GD"), at_least(0.95), every=True),
    Part("such networks of any optimizer that end at 95 % of it or more", lambda r: float((stays(r) >= 0.95).mean()),
         at_least(0.9), percent),
)  # fmt: skip
section.claim(
    "memorising",
    "Sec. 4.1",
    "Where a network only memorises, its test loss stays at its maximum.",
    *STAYS,
    Part("test loss at the end over the largest, with momentum at lower rates", stays, at_least(0.95), every=True,
         on=("gentle_momentum",)),
    on="data_fraction",
    paper="“In the memorizing phase test loss never leaves this local maximum”, whatever the optimizer",
    note="At the rate of Fig. 4a train loss leaps in most of these networks",
    earlier=STAYS,
)  # fmt: skip
