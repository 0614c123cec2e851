"""Fig. 2, left: nine ways to train on S5, and from which share each of them generalises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.power import Settings
from grokbook.chapters.power.training import AT_99, GRID, adamw, run
from grokbook.claims import Bound, Part, above, at_least, at_most, below, between
from grokbook.curves import best, median, smallest, sweep, t_train
from grokbook.settings import Shares
from grokbook.train.experiment import Experiment
from grokbook.train.records import select
from grokbook.words import number, percent

section = Section("optimizers")

# The paper's list in its order (A.1.2). Adam is AdamW without decay; what is not said is as in the released code: the
# noise of 3 is added to Adam's normalised update, and its size 1 is from memory; the dropout of 4 is after the MLPs.
VARIANTS: dict[str, dict[str, Any]] = {
    "1 Adam, full batch": {"optimizer": adamw(decay=0), "full_batch": True},
    "2 Adam": {"optimizer": adamw(decay=0)},
    "3 full batch, noisy updates": {"optimizer": adamw(decay=0, update_noise=1.0), "full_batch": True},
    "4 Adam, dropout 0.1": {"optimizer": adamw(decay=0), "dropout": 0.1},
    "5 AdamW, decay 1": {"optimizer": adamw()},
    "6 AdamW, decay to the start": {"optimizer": adamw(decay_to_start=True)},
    "7 Adam, rate 0.0003": {"optimizer": adamw(3e-4, 0)},
    "8 Adam, rate 0.003": {"optimizer": adamw(3e-3, 0)},
    "9 Adam, noisy weights": {"optimizer": adamw(decay=0, weight_noise=0.01)},
}
FULL_BATCH = tuple(name for name, how in VARIANTS.items() if how.get("full_batch"))
SHARES = (0.25, 0.4, 0.55, 0.7, 0.9)


def _experiment(name: str, s: Settings, labels: Sequence[str], fractions: Sequence[float]) -> Experiment:
    runs = (
        run(s, "x.y", share, steps=s.steps, seed=seed, label=label, **VARIANTS[label])
        for label in labels
        for share in fractions
        for seed in range(s.seeds)
    )
    return Experiment(f"power/{name}", tuple(runs), GRID, stop=AT_99)


@section.experiment(
    smaller=[{"seeds": 1, "steps": 10_000, "fractions": (0.4, 0.5, 0.7, 0.9)}],
    quick={"fractions": (0.7,), "steps": 100},
)
def optimizers(s: Settings, *, fractions: Shares = SHARES) -> Experiment:
    """Fig. 2, left: the seven variants that train on minibatches, on S5; a run ends when it has generalised."""
    return _experiment("optimizers", s, [name for name in VARIANTS if name not in FULL_BATCH], fractions)


@section.experiment(
    smaller=[{"seeds": 1, "steps": 1_000, "fractions": (0.4, 0.7, 0.9)}], quick={"fractions": (0.7,), "steps": 100}
)
def full_batches(s: Settings, *, fractions: Shares = SHARES) -> Experiment:
    """The two variants that take the whole training set in each update, ten to twenty-five times the work."""
    return _experiment("full_batches", s, FULL_BATCH, fractions)


@section.study
def best_by_variant(optimizers: xr.Dataset, full_batches: xr.Dataset) -> xr.Dataset:
    """Best held-out accuracy twice, the share each variant needs (1 for more than the largest) and t_train.

    ``best`` (variant, share) is over the steps and the shares that both records have, ``whole`` (variant, any share)
    over all that its own record has.
    """
    steps = int(min(optimizers.step[-1], full_batches.step[-1]))
    shares = np.intersect1d(optimizers.train_fraction, full_batches.train_fraction)
    every = np.union1d(optimizers.train_fraction, full_batches.train_fraction)
    found, whole = [], np.full((len(VARIANTS), len(every)), np.nan)
    for row, name in enumerate(VARIANTS):
        own = select(full_batches if name in FULL_BATCH else optimizers, label=name)
        here, table = sweep(own, "train_fraction", best)
        whole[row, np.searchsorted(every, here)] = median(table, axis=0)
        early = sweep(own.sel(step=slice(0, steps)), "train_fraction", best)[1]
        needed = min(smallest(here, table, lambda value: value >= 0.99), 1.0)
        found.append((median(early[:, np.isin(here, shares)], axis=0), needed, np.max(t_train(own))))
    highest, least, latest = zip(*found, strict=True)
    variables = {"best": (("variant", "share"), np.array(highest)), "needed": ("variant", np.array(least))}
    variables |= {"whole": (("variant", "any"), whole), "t_train": ("variant", np.array(latest))}
    return xr.Dataset(variables, {"variant": list(VARIANTS), "share": shares, "any": every})


def need(study: xr.Dataset, number: int) -> float:
    """The share that the variant of a number in the paper's list needs."""
    return float(study.needed[number - 1])


def better(study: xr.Dataset, one: int, other: int, of: str = "best") -> float:
    """By how much best accuracy (``best`` or ``whole``) is higher with one variant than another, mean over shares."""
    return float((study[of][one - 1] - study[of][other - 1]).mean())


def others(study: xr.Dataset) -> float:
    """The median share that variants without decay need."""
    return float(np.median([need(study, number) for number in (1, 2, 3, 4, 7, 8, 9)]))


def ahead(label: str, one: int, other: int, of: str = "best") -> Part:
    """That one variant of the paper's list is better than another (see ``better``)."""
    return Part(label, partial(better, one=one, other=other, of=of), above(0.02))


_claim = partial(section.claim, on="best_by_variant")
_claim(
    "fig2l-decay", "Fig. 2, left",
    "Weight decay more than halves the share of the table that is needed, compared with most other variants.",
    Part("F(decay 1) / median F without decay", lambda d: need(d, 5) / others(d), below(0.5)),
    paper="more than a factor of 2",
)  # fmt: skip
LESS = Part("F(towards 0) - F(towards the start)", lambda d: need(d, 5) - need(d, 6), below(0))


def start(bound: Bound) -> Part:
    """That decay towards the start needs less of the table than most variants without decay."""
    return Part("F(towards the start) / median F without decay", lambda d: need(d, 6) / others(d), bound)


_claim(
    "fig2l-start", "Fig. 2, left", "Decay towards the initial weights helps too, but less.",
    replace(LESS, premise=True), start(below(1)),
    ahead("best accuracy in all updates less that of Adam, mean over shares", 6, 2, "whole"),
    earlier=(LESS, start(at_most(1)), ahead("best accuracy less that of Adam, mean over shares", 6, 2)),
)  # fmt: skip
NOISE = (ahead("best accuracy, minibatches less full batch", 2, 1), ahead("noisy updates less full batch", 3, 1))
_claim(
    "fig2l-noise", "Fig. 2, left", "Noise helps: minibatches, noisy updates and noisy weights.",
    *NOISE, ahead("noisy weights less Adam, in all updates", 9, 2, "whole"),
    earlier=(*NOISE, ahead("noisy weights less Adam", 9, 2)),
)  # fmt: skip
_claim(
    "fig2l-rate", "Fig. 2, left", "The learning rate has to be right within an order of magnitude.",
    ahead("best accuracy in all updates, rate .001 less .0003", 2, 7, "whole"),
    ahead("rate .001 less .003, in all updates", 2, 8, "whole"),
    earlier=(ahead("best accuracy, rate .001 less .0003", 2, 7), ahead("rate .001 less .003", 2, 8)),
)  # fmt: skip
_claim(
    "fig2l-full", "Fig. 2, left",
    "Even full batches without noise or decay generalise a little from most of the table.",
    Part("best accuracy of variant 1 at the largest share", lambda d: float(d.best[0, -1]), at_least(0.5), percent),
)  # fmt: skip
TIMES = Part("latest t_train of each variant", lambda d: d.t_train.values, between(3e2, 2e4), number, True)
_claim(
    "fig2l-train", "Fig. 2, left",
    "All variants learn their training set, after 1,000 to 10,000 updates.",
    replace(TIMES, bound=between(1e3, 1e4)),
    earlier=(TIMES,),
    paper="1,000 to 10,000, for all methods",
    note="Full batches are sooner by far, which no longer training can undo; one network each",
)  # fmt: skip
