"""Fig. 2, right: which operations can be understood, from how much of their table, and what symmetry gives away."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.power import Settings, tasks
from grokbook.chapters.power.theory.operations import MODULAR, OF_GROUPS, partner_share
from grokbook.chapters.power.training import ADAMW, AT_99, GRID, run
from grokbook.claims import Part, above, at_least, at_most, between
from grokbook.curves import at, best, median, smallest, sweep, t_test, t_train
from grokbook.settings import Share, Shares, choice, several
from grokbook.train.experiment import Experiment
from grokbook.train.records import select
from grokbook.words import percent

section = Section("operations")

OPERATIONS = (*MODULAR, *OF_GROUPS)
Names = Annotated[tuple[str, ...], several(choice(*OPERATIONS))]
FEW = 100  # rows of whose accuracy nothing is told
COMMUTATIVE = ("x+y", "x*y", "x^2+y^2", "x^2+xy+y^2")
NEVER, MIXED = "x^3+xy^2+y", "x/y if y odd, else x-y"


@section.experiment(
    smaller=[{"seeds": 1, "steps": 10_000}],
    quick={"names": ("x+y", "x-y", NEVER), "fractions": (0.5, 0.8), "steps": 80},
)
def operations(
    s: Settings, *, fractions: Shares = (0.2, 0.35, 0.5, 0.7, 0.95), names: Names = OPERATIONS
) -> Experiment:
    """Fig. 2, right: AdamW on every operation and five shares; a run ends when it has generalised."""
    runs = (
        run(s, name, share, ADAMW, s.steps, seed, name)
        for name in names
        for share in fractions
        for seed in range(s.seeds)
    )
    return Experiment("power/operations", tuple(runs), GRID, ("accuracy_alone",), stop=AT_99)


@section.experiment(smaller=[{"seeds": 1}], quick={"share": 0.8, "steps": 80})
def hardest(s: Settings, *, share: Share = 0.95) -> Experiment:
    """Fig. 2, right, at its largest share: the operation that is never understood, for all updates; and x-y."""
    runs = (run(s, name, share, ADAMW, s.steps, seed, name) for name in (NEVER, "x-y") for seed in range(s.seeds))
    return Experiment("power/hardest", tuple(runs), GRID, stop=AT_99)


# --------------------------------------------------------------------------------- what is read off the record


def highest(record: xr.Dataset, name: str, curve: str = "test_accuracy") -> tuple[NDArray, NDArray]:
    """Shares (n,) and the best accuracy of an operation there, (seed, n); of at least ``FEW`` rows without a mirror."""
    own = select(record, label=name)
    if curve == "accuracy_unmirrored":
        own = own.isel(run=np.flatnonzero(alone(own, "mirror") >= FEW))
    return sweep(own, "train_fraction", lambda one: best(one, curve))


def needed(record: xr.Dataset, name: str, curve: str = "test_accuracy", level: float = 0.99) -> float:
    """The smallest share from which on the median best accuracy is at least a level; infinity if none."""
    return smallest(*highest(record, name, curve), lambda value: value >= level)


def saved(record: xr.Dataset, symmetric: str, other: str, curve: str = "test_accuracy") -> float:
    """How much less of its table a symmetric operation needs than its relative; nan where neither is understood.

    Rows that symmetry leaves alone are few, and a run ends before the last of them is right: 95 % have to do.
    """
    level = 0.99 if curve == "test_accuracy" else 0.95
    pair = needed(record, symmetric, curve, level), needed(record, other)
    return float("nan") if np.isinf(pair[0]) else round(pair[1] - pair[0], 6)


def advantage(record: xr.Dataset, symmetric: str, other: str, curve: str = "test_accuracy") -> float:
    """Best accuracy of a symmetric operation less that of its relative, on average over shares."""
    (shares, one), (all_shares, two) = highest(record, symmetric, curve), highest(record, other)
    two = two[:, np.isin(all_shares, shares)]
    return float(np.nanmean(median(one, axis=0)) - np.nanmean(median(two, axis=0)))


def at_share(record: xr.Dataset, name: str, share: float) -> xr.Dataset:
    """The runs of an operation at the share nearest to one; none where it was not trained."""
    own = select(record, label=name)
    away = np.abs(own.train_fraction.values - share)
    return own.isel(run=np.flatnonzero(away == away.min(initial=np.inf)))


def alone(record: xr.Dataset, which: Literal["mirror", "all"] = "all") -> NDArray[np.float64]:
    """(run,) how many held-out rows have no trained mirror, or no partner: those of the accuracies that say so."""
    counts = []
    groups = record["group"].values if "group" in record else [""] * record.sizes["run"]  # none has one
    names = (record[name].values for name in ("operation", "p", "train_fraction", "seed"))
    for name, p, share, seed, group in zip(*names, groups, strict=True):
        task = tasks.of(str(name), int(p), str(group), float(share))
        counts.append(task.alone(task.in_train(int(seed)), which).sum())
    return np.array(counts, float)


def table(record: xr.Dataset, names: Sequence[str], curve: str) -> tuple[NDArray, NDArray]:
    """Shares (n,) and median best accuracies (operation, n); nan where few rows have no partner, and it is of those."""
    shares, rows = np.array([]), []
    for name in names:
        shares, values = highest(record, name, curve)
        if curve == "accuracy_unpartnered":
            counts = sweep(select(record, label=name), "train_fraction", alone)[1]
            values = np.where(counts < FEW, np.nan, values)
        rows.append(median(values, axis=0))
    return shares, np.array(rows)


def waits(record: xr.Dataset, name: str) -> tuple[NDArray, NDArray]:
    """Shares (n,) and the median t_test / t_train of an operation there, (n,), at least 1; infinity for never."""

    def lag(one: xr.Dataset) -> NDArray[np.float64]:
        late = t_test(one)  # a run may end before its last training rows are learnt
        return np.where(np.isfinite(late), late / np.minimum(t_train(one), late), np.inf)

    shares, values = sweep(select(record, label=name), "train_fraction", lag)
    return shares, median(values, axis=0)


def eased(record: xr.Dataset) -> NDArray[np.float64]:
    """(operation,) its wait at the smallest share that is understood, over that at the largest; nan for under 3."""
    known = [each[np.isfinite(each)] for each in (waits(record, name)[1] for name in OPERATIONS)]
    found = [each[0] / each[-1] for each in known if len(each) > 1]
    return np.array(found if len(found) > 2 else [np.nan])


def by_y_alone(name: str, p: int, group: str) -> float:
    """The share of its table that the best guess from y alone answers."""
    (inputs, labels) = tasks.of(name, p, group, 0.5).table()
    each = (labels[inputs[:, 1] == y] for y in np.unique(inputs[:, 1]))
    return float(sum(np.bincount(answers).max() for answers in each) / len(labels))


def written(name: str) -> str:
    """An operation as an axis writes it: x²+xy+y², x·y·x⁻¹."""
    if name == MIXED:
        return "x/y or x−y"
    for plain, sign in (("^-1", "⁻¹"), ("^2", "²"), ("^3", "³"), (".", "·"), ("-", "−")):
        name = name.replace(plain, sign)
    return name


def plateau(record: xr.Dataset, curve: str) -> NDArray[np.float64]:
    """(commutative operation,) median accuracy when the training set is learnt, at half of the table."""
    each = (at_share(record, name, 0.5) for name in COMMUTATIVE)
    return np.array([float(median(at(own, curve, t_train(own)))) for own in each])


def over_mirrors(record: xr.Dataset) -> NDArray[np.float64]:
    """(commutative operation,) accuracy at t_train over the share of held-out rows whose mirror is trained on."""
    p = int(record.p.values[0])
    return plateau(record, "test_accuracy") / [partner_share(name, p, 0.5) for name in COMMUTATIVE]


PAIRS = (("x+y", "x-y"), ("x*y", "x/y"), ("x^2+y^2", "x^2+xy+y^2+x"), ("x^2+xy+y^2", "x^2+xy+y^2+x"))


def _cheaper(share: str, accuracy: str, **curve: Any) -> list[Part]:
    """That each symmetric operation needs a smaller share than its relative, and gets more rows right."""
    less, more = ([partial(of, symmetric=a, other=b, **curve) for a, b in PAIRS] for of in (saved, advantage))
    return [
        *(Part(share.format(*pair), measure, above(0)) for pair, measure in zip(PAIRS, less, strict=True)),
        *(Part(accuracy.format(*pair), measure, above(0.02)) for pair, measure in zip(PAIRS, more, strict=True)),
    ]


section.claim(
    "fig2r-isomorphic",
    "Fig. 2, right",
    "Subtraction and division need about the same share of their table, as far as a coarse grid of shares can tell.",
    Part("|F(x-y) - F(x/y)|", lambda r: round(abs(needed(r, "x-y") - needed(r, "x/y")), 6), at_most(0.1)),
    on="operations",
)

section.claim(
    "fig2r-symmetric",
    "Fig. 2, right",
    "Operations that commute tend to need less data than their close relatives that do not.",
    *_cheaper("F({1}) - F({0})", "best accuracy of {0} less {1}, mean over shares"),
    on="operations",
)

section.claim(
    "fig2r-unmirrored",
    "beside Fig. 2, right",
    "This holds on rows without a trained mirror too: less data are needed, not only fewer answers.",
    *_cheaper(
        "F({1}) - F({0}), the latter to 95 % of 100 unmirrored rows or more",
        "best accuracy of 100 unmirrored rows or more of {0} less {1}",
        curve="accuracy_unmirrored",
    ),
    on="operations",
    whose="ours",
)

section.claim(
    "fig2r-mirror",
    "beside Fig. 2, right",
    "As soon as its training set is learnt, a commutative operation is answered on mirrors of it, and nowhere else.",
    Part("accuracy at t_train / share of rows with a trained mirror", over_mirrors, between(0.8, 1.2), every=True),
    Part(
        "accuracy at t_train on rows without",
        partial(plateau, curve="accuracy_unmirrored"),
        at_most(0.2),
        percent,
        every=True,
    ),
    on="operations",
    forecast="one plateau of .50 at half of the table",
    whose="ours",
)

section.claim(
    "fig2r-never",
    "Fig. 2, right",
    "x³+xy²+y is never understood, up to 95 % of its table.",
    Part("its best accuracy at 95 %", lambda r: best(at_share(r, NEVER, 0.95)), at_most(0.05), percent, every=True),
    Part("its training accuracy", lambda r: best(at_share(r, NEVER, 0.95), "train_accuracy"), at_least(0.99), percent),
    Part(
        "best accuracy of x-y at 95 % in that time", lambda r: best(at_share(r, "x-y", 0.95)), at_least(0.99), percent
    ),
    on="hardest",
    forecast="at most .047 (p = 31)",
)

section.claim(
    "fig2r-mixed",
    "Fig. 2, right",
    "A rule with two cases, division for odd y and subtraction for even y, is understood.",
    Part(
        "its best accuracy",
        lambda r: float(np.nanmax(median(highest(r, MIXED)[1], axis=0), initial=0.0)),
        at_least(0.9),
        percent,
    ),
    on="operations",
    paper="generalises",
)

section.claim(
    "waits",
    "section 3.1",
    "With more data the rule comes sooner after the training rows, in every operation understood at several shares.",
    Part("operations with a smaller t_test / t_train at the largest share that is understood than at the smallest",
         lambda r: float((eased(r) > 1).mean()), at_least(0.9), percent),
    Part("t_test / t_train at the smallest share over the largest, median", lambda r: median(eased(r)), at_least(2)),
    on="operations",
    paper="typical for all operations; with more data the curves track each other more closely",
)  # fmt: skip
