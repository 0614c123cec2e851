"""When every network of the book learnt its training set and the rest, and what its seeds differ in."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, zip_longest
from typing import Any

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters import chapters
from grokbook.chapters.waits import Settings
from grokbook.claims import Part, at_least, at_most
from grokbook.curves import first, median, spearman, spearman_within
from grokbook.measures.common import Array, ratio
from grokbook.train import runner
from grokbook.words import percent, times

section = Section("waits")

STRICT = 0.99  # the level that is held against the page's
FAMILIES = {  # the type of a model, with its loss where that tells two apart -> whose networks these are
    "Decoder": "Power's decoder",
    "AdditionDecoder mse": "Liu's toy, regression",
    "AdditionDecoder cross_entropy": "Liu's toy, classes",
    "ProductDecoder": "Liu's toy, groups",
    "PairEncoder": "Liu's transformer",
    "TwoLayerMLP": "Gromov's perceptron",
    "AttentionOnly": "Gromov's attention",
    "Transformer": "Gromov's transformer",
    "PairTransformer": "Gu's transformer",
    "EmbeddedMLP": "Gu's DNN",
    "ResNet18": "ResNet-18",
    "SlotMLP": "ResNet's surrogate",
}
# Tasks without a rule, and of which papers ask for less than the level.
LEFT_OUT = ("Shuffled", "ImageTask")
COMMITTED = {"size": "full"}  # of what is read from all that is committed, whatever the page's parameters
GRID = 0.1  # of a time to generalise: a setting that was measured more coarsely says nothing about its seeds
FEW = 5  # settings: a family with fewer says nothing about seeds; of networks, ten times as many
LUCK = 1.96  # standard errors that a difference has by luck in 5 % of all tries, on both sides
TOLD = LUCK + 0.84  # that it needs to be found beyond luck in 80 %


def records(named: str = "", measures: Collection[str] = ()) -> Iterator[xr.Dataset]:
    """The largest record of every experiment of other pages that has one.

    Of those whose name begins so, and that log one of some measures, if any are named.
    """
    for chapter in (one for name, one in chapters().items() if name != "waits"):
        home = chapter.settings()
        for recipe in (recipe for name, recipe in chapter.experiments.items() if name.startswith(named)):
            full = recipe(home)
            if measures and not set(measures) & set(full.measures):
                continue
            found = (runner.status(one).record for one in (full, *recipe.stand_ins(home)))
            if (record := next((one for one in found if one is not None), None)) is not None:
                yield record


def crossings(record: xr.Dataset, curve: str, level: float) -> tuple[Array, Array]:
    """(run,) the first step at which a curve was seen to have a level, and how long before that one had last looked.

    Infinity for a run that was trained to its end without, nan for one that left before that could be known.
    """
    steps, known = record.step.values, np.isfinite(record[curve].values)
    found = first(record, curve, level)
    looked = np.where(known & (steps < found[:, None]), steps, 0).max(1)
    watch = json.loads(record.attrs["recipe"]).get("watch", {"thresholds": ()})
    if [curve, level] in watch["thresholds"]:  # on a finer grid
        reached = record[f"reached_{curve}"].values
        looked = np.where(np.isfinite(reached), reached - watch["every"], looked)
        found = np.where(np.isfinite(reached), reached, found)
    left = np.isinf(found) & (record.stopped_at.values < record.steps.values) & np.isnan(record.diverged_at.values)
    return np.where(left, np.nan, found), found - looked


def collected(
    families: Mapping[str, str], fitted: float, learnt: float, *, without: Sequence[str] = (), named: str = ""
) -> xr.Dataset:
    """(network,) every network of some families, once, as its longest record has it, but of some types of task.

    ``t_train`` and ``t_test`` at two levels, ``strict`` for t_test at 99 %: infinity for never, nan where training
    was stopped too soon to know; ``fit_grid`` and ``grid``: how long before t_train and t_test one had looked last. A
    ``setting`` is all of a recipe but seed and length, a ``task`` that part of it. ``named``: see ``records``.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for record in records(named):
        recipe = json.loads(record.attrs["recipe"])
        fit, fit_grid = crossings(record, "train_accuracy", fitted)
        done, grid = crossings(record, "test_accuracy", learnt)
        strict, _ = crossings(record, "test_accuracy", STRICT)
        times = np.array([fit, done, strict, fit_grid, grid, record.stopped_at.values]).T
        for run, own in zip(recipe["runs"], times.tolist(), strict=True):
            kind = run["model"]["type"]
            family = families.get(f"{kind} {run['loss']}", families.get(kind))
            if run["task"]["type"] in without or not family:
                continue
            same = run | {"steps": 0, "precision": recipe.get("precision")}
            name, setting, task = (json.dumps(one, sort_keys=True) for one in (same, same | {"seed": 0}, run["task"]))
            if name not in found or own[-1] > found[name][-1]:
                found[name] = family, setting, task, run["seed"], *own
    if not found:
        raise ValueError("there is no record of any training")
    names = ("family", "setting", "task", "seed", "t_train", "t_test", "strict", "fit_grid", "grid", "steps")
    columns = zip(*found.values(), strict=True)
    data = {name: ("network", np.array(one)) for name, one in zip(names, columns, strict=True)}
    return xr.Dataset(data, attrs=COMMITTED)


@section.study
def networks(s: Settings) -> xr.Dataset:
    """(network,) every network of the book but of tasks left out, at the page's level; see ``collected``."""
    return collected(FAMILIES, s.level, s.level, without=LEFT_OUT)


def generalise(networks: xr.Dataset) -> xr.Dataset:
    """Those that learn both sets, and neither before the first step, as some do whose test set is a single pair."""
    both = np.array([networks.t_train.values, networks.t_test.values])
    return networks.isel(network=np.flatnonzero(np.isfinite(both).all(0) & (both > 0).all(0)))


def groks(networks: xr.Dataset, s: Settings) -> dict[str, Array]:
    """(network,) whether each groks, by two definitions."""
    fit, done = networks.t_train.values, networks.t_test.values
    return {f"{s.later:,} steps later": done - fit >= s.later, f"{s.factor:g} times later": done >= s.factor * fit}


@section.study
def definitions(networks: xr.Dataset, s: Settings) -> xr.Dataset:
    """(family, definition) share of the networks that generalise which grok; (family,) share of those of which the two
    definitions say the same."""
    learnt, rows = generalise(networks), {}
    for family in FAMILIES.values():
        judged = groks(learnt.isel(network=np.flatnonzero(learnt.family.values == family)), s)
        steps, times = judged.values()
        if len(steps) >= 10 * FEW:
            rows[family] = [steps.mean(), times.mean()], (steps == times).mean()
    if not rows:
        raise ValueError(f"no family has {10 * FEW} networks that generalise")
    shares, agree = zip(*rows.values(), strict=True)
    data = {"share": (("family", "definition"), np.array(shares)), "agree": ("family", np.array(agree))}
    return xr.Dataset(data, {"family": list(rows), "definition": list(judged)})


def by_setting(networks: xr.Dataset, family: str | None = None) -> Iterator[xr.Dataset]:
    """The seeds of each setting, of all or of one family, where there are three or more."""
    places = defaultdict(list)
    for i, key in enumerate(networks.setting.values):
        places[key].append(i)
    for own in (networks.isel(network=place) for place in places.values() if len(place) >= 3):
        if family in (None, own.family.values[0]):
            yield own


def widest(high: Array, looks: Array) -> float:
    """The largest standard deviation that (seed,) numbers can have of which each lies between high - looks and high."""
    order = np.argsort(high - looks / 2)
    ends = np.array([high, high - looks])[:, order]
    low = np.arange(len(high)) < np.arange(len(high) + 1)[:, None]  # the lower ones down, the others up
    return float(np.where(low, ends[1], ends[0]).std(axis=1, ddof=1).max())


@section.study
def seeds(networks: xr.Dataset) -> xr.Dataset:
    """(setting,) what the seeds of one setting differ in, where there are three or more that all generalise.

    ``scatter``: standard deviation of ln t_test, ``fit_scatter``: the most that that of ln t_train can be between two
    looks; ``apart``: by how much the median pair differs in ln t_test, or what lies between two looks, ``moved``: how
    much later 99 % are reached than the page's level, as a logarithm, in the median, nan if not by all; ``wait``: ln of
    the median delay; ``agree`` of ``pairs``: those that learn both sets in one order, of those that differ in both by a
    look; ``times``: (setting, member) their t_test over the median, in the order of their ``seeds``.
    """
    rows = []
    for own in (one.sortby("seed") for one in by_setting(networks)):
        fit, done = own.t_train.values, own.t_test.values
        look, fit_look = own.grid.values, own.fit_grid.values
        if generalise(own).sizes != own.sizes or np.median(look / done) > GRID:
            continue
        pairs = np.array(list(combinations(range(len(fit)), 2)))
        first_seen, then_seen = (values[pairs] for values in (fit, done))
        apart = [abs(np.diff(some)[:, 0]) >= looks[pairs].max(1) for some, looks in
                 ((first_seen, fit_look), (then_seen, look))]  # fmt: skip
        alike = np.sign(np.diff(first_seen) * np.diff(then_seen))[:, 0] > 0
        row = {
            "family": own.family.values[0],
            "task": own.task.values[0],
            "seeds": ",".join(map(str, own.seed.values)),
            "scatter": np.log(done).std(ddof=1),
            "fit_scatter": widest(np.log(fit), np.log(fit / np.maximum(fit - fit_look, 1))),
            "apart": max(np.median(abs(np.diff(np.log(then_seen)))), np.median(look / done)),
            "moved": np.median(np.log(own.strict.values / done)) if np.isfinite(own.strict.values).all() else np.nan,
            "wait": np.log(np.median(done) / np.median(fit)),
            "agree": (alike & apart[0] & apart[1]).sum(),
            "pairs": (apart[0] & apart[1]).sum(),
            "times": done / np.median(done),
        }
        rows.append(row)
    if not rows:
        raise ValueError("no setting has three seeds that all generalise")
    times = np.array([*zip_longest(*(row.pop("times") for row in rows), fillvalue=np.nan)]).T
    columns = {key: ("setting", np.array([row[key] for row in rows])) for key in rows[0]}
    return xr.Dataset(columns | {"times": (("setting", "member"), times)})


def by_family(seeds: xr.Dataset, of: Callable[[xr.Dataset], float], *, few: int = FEW) -> dict[str, float]:
    """Family -> a number of its settings, of families that have enough of them."""
    groups = {family: np.flatnonzero(seeds.family.values == family) for family in FAMILIES.values()}
    return {family: of(seeds.isel(setting=own)) for family, own in groups.items() if len(own) >= few}


def scatter(seeds: xr.Dataset, of: str = "scatter") -> float:
    """The standard deviation of the logarithm of a time among seeds: settings pooled, each counting once."""
    return float(np.sqrt((seeds[of].values ** 2).mean()))


def paired(seeds: xr.Dataset) -> Array:
    """(2,) the scatter of ln t_test where the same seeds learn one task in several settings, and that of their pairs.

    What a seed has in all of these settings drops out where the same seeds are compared; nan where there are none.
    """
    groups, squares, free = defaultdict(list), np.zeros(2), np.zeros(2)
    keys = zip(seeds.task.values, seeds.seeds.values, strict=True)
    for key, row in zip(keys, np.log(seeds.times.values), strict=True):
        groups[key].append(row[np.isfinite(row)])
    for table in (np.array(rows) for rows in groups.values() if len(rows) > 1):
        table -= table.mean(1, keepdims=True)
        squares += (table**2).sum(), ((table - table.mean(0)) ** 2).sum()
        free += np.array([len(table), len(table) - 1]) * (table.shape[1] - 1)
    return np.asarray(np.sqrt(ratio(squares, free)))


def factor(sigma: float, count: int, errors: float = TOLD) -> float:
    """The ratio of two times that is so many standard errors, for a scatter and so many seeds on each side."""
    return float(np.exp(errors * sigma * np.sqrt(2 / count)))


def again(seeds: xr.Dataset) -> Array:
    """(999,) the scatter of settings that are drawn anew from these."""
    places = np.random.default_rng(0).integers(0, seeds.sizes["setting"], (999, seeds.sizes["setting"]))
    return np.sqrt((seeds.scatter.values[places] ** 2).mean(1))


def agreement(seeds: xr.Dataset) -> dict[str, float]:
    """Family -> the share of its pairs of seeds that learn both sets in one order, where there are enough pairs."""
    pairs = by_family(seeds, lambda own: own.pairs.values.sum())
    agree = by_family(seeds, lambda own: own.agree.values.sum())
    return {family: agree[family] / count for family, count in pairs.items() if count >= 6 * FEW}


def lottery(seeds: xr.Dataset) -> float:
    """How much more, at least, seeds differ in t_test than in t_train."""
    return scatter(seeds) / scatter(seeds, "fit_scatter")


def strictness(seeds: xr.Dataset) -> dict[str, float]:
    """Family -> what the level moves ln t_test by, over what the seed does, in the median setting that reaches both."""
    known = seeds.isel(setting=np.flatnonzero(np.isfinite(seeds.moved.values)))
    return by_family(known, lambda own: float(median(own.moved.values / own.apart.values)))


def widening(seeds: xr.Dataset) -> float:
    """Rank correlation of how long settings wait with how much their seeds differ."""
    return spearman(seeds.wait.values, seeds.scatter.values)


section.claim(
    "one-definition",
    "Liu et al. (2022), App. A",
    "It hardly matters by which definition a network groks: 1,000 steps later, as in Liu's phase diagrams, or five "
    "times later.",
    Part(
        "networks that generalise of which the two say the same, lowest family",
        lambda definitions: definitions.agree.values.min(),
        at_least(0.9),
        percent,
    ),
    whose="ours",
)
section.claim(
    "level-seed",
    "all papers",
    "Whether 90 or 99 % are asked for matters less than the seed.",
    Part(
        "what the level moves ln t_test by, over what two seeds differ by or one look, highest family",
        lambda seeds: max(strictness(seeds).values()),
        at_most(1),
        times,
    ),
    whose="ours",
)
section.claim(
    "fit-foretells",
    "all papers",
    "Of two seeds, the one that learns its training set sooner understands sooner.",
    Part(
        "pairs of seeds in one order, of those that differ in both by a look, mean over families that have thirty",
        lambda seeds: np.mean(list(agreement(seeds).values())),
        at_least(0.65),
        percent,
    ),
    Part("in the lowest family", lambda seeds: min(agreement(seeds).values()), at_least(0.6), percent),
    whose="ours",
)
section.claim(
    "lottery",
    "all papers",
    "Understanding is more of a lottery than learning by heart: seeds differ more in t_test than in t_train.",
    Part(
        "scatter of ln t_test over the most that that of ln t_train can be between looks, median family",
        lambda seeds: np.median(list(by_family(seeds, lottery).values())),
        at_least(1.5),
        times,
    ),
    Part(
        "in the lowest family", lambda seeds: min(by_family(seeds, lottery).values()), at_least(1), times, premise=True
    ),
    whose="ours",
    note="By a hair short of in part. The lowest family is the perceptron, where looks are too far apart to tell",
)
section.claim(
    "longer-wider",
    "all papers",
    "The longer a setting waits, the more its seeds differ.",
    Part(
        "Spearman(delay, scatter of ln t_test), within families",
        lambda seeds: spearman_within(seeds.family.values, seeds.wait.values, seeds.scatter.values),
        at_least(0.3),
    ),
    Part(
        "in the lowest family of ten settings or more",
        lambda seeds: min(by_family(seeds, widening, few=10).values()),
        at_least(0),
        premise=True,
    ),
    whose="ours",
    note="Two settings of three are of Liu's toy, which hardly waits; without them it would hold in part",
)
