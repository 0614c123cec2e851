"""Whether networks understand at a norm: the weight norm at t_test, over seeds of a setting and over training sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook.chapter import Section
from grokbook.chapters.waits import Settings
from grokbook.chapters.waits.decays import ALL, KNOWN, PICTURES, line_of
from grokbook.chapters.waits.waits import FAMILIES, GRID, LEFT_OUT, crossings, records
from grokbook.claims import Part, at_most
from grokbook.measures.common import Array
from grokbook.words import percent, times

section = Section("norms")

TASK = ("f", "operation", "p", "source")  # of a task, what is not its training set
SCALED = ("Power's decoder",)  # LayerNorm makes little of the size of weights, as Truong et al. find
STEPS = np.geomspace(1, 1e6, 1_000)  # at which a norm is read between looks
APART = 3  # looks between the first and the last of a setting's seeds, so that their times can be told apart
SEVERAL = 3  # seeds


def norm_of(record: xr.Dataset) -> Array | None:
    """(run, step) the norm of all weights; none where it was not kept."""
    for whole in ("total_norm", "across_weight_norm"):
        if whole in record:
            return np.asarray(record[whole].values, float)
    layers = [record[name].values.astype(float) for name in record.data_vars if str(name).startswith("weight_norm_")]
    return np.sqrt(np.square(layers).sum(0)) if layers else None


@section.study
def norms(s: Settings) -> xr.Dataset:
    """(network,) those that wait under AdamW and of which records hold the ``norm`` of all weights, (network, step).

    ``decay``, which works on all weights, or is none; ``line``: all of a setting but its training set, with the decay.
    """
    found: dict[Any, tuple[Any, ...]] = {}
    for record, norm in ((one, norm_of(one)) for one in records()):
        if norm is None:
            continue
        recipe = json.loads(record.attrs["recipe"])
        level = KNOWN if recipe["runs"][0]["model"]["type"] in PICTURES else s.level
        fit, done = crossings(record, "train_accuracy", s.level)[0], crossings(record, "test_accuracy", level)
        numbers = fit, *done, record.stopped_at.values, norm
        for run, t_train, t_test, grid, steps, curve in zip(recipe["runs"], *numbers, strict=True):
            kind, task = run["model"]["type"], run["task"]
            family = FAMILIES.get(kind, PICTURES.get(kind))
            if family and task["type"] not in LEFT_OUT[:1] and max(grid, 1) <= t_test - t_train < np.inf:
                known = np.isfinite(curve) & (record.step.values > 0)
                seen = record.step.values[known]
                curve = np.exp(np.interp(np.log(STEPS), np.log(seen), np.log(curve[known])))
                curve[STEPS[1] * seen[-1] < STEPS] = np.nan
                same = run | {"steps": 0, "precision": recipe.get("precision")}
                _, way, decay, _ = line_of(setting := json.dumps(same | {"seed": 0}, sort_keys=True))
                line = json.dumps(same | {"seed": 0, "task": {of: task[of] for of in TASK if of in task}})
                row = family, setting, line, run["seed"], decay, t_train, t_test, grid, int(steps), curve
                name = setting, run["seed"]
                if (way == ALL or not decay) and (name not in found or steps > found[name][-2]):
                    found[name] = row
    if not found:
        raise ValueError("no record of networks that wait has the norm of their weights")
    names = ("family", "setting", "line", "seed", "decay", "t_train", "t_test", "grid", "steps")
    *columns, curves = zip(*found.values(), strict=True)
    data = {name: ("network", np.array(one)) for name, one in zip(names, columns, strict=True)}
    return xr.Dataset(data | {"norm": (("network", "step"), np.array(curves))}, {"step": STEPS})


def read(norms: xr.Dataset, at: ArrayLike) -> Array:
    """(network, ...) the logarithm of each network's norm at steps (...,) of all, between looks."""
    places, x = np.log(np.asarray(at, float)), np.log(norms.step.values)
    return np.array([np.interp(places, x, one) for one in np.log(norms.norm.values)])


def then(norms: xr.Dataset, of: str = "t_test") -> Array:
    """(network,) the logarithm of each network's norm at its own time."""
    return np.diag(read(norms, norms[of].values))


def decayed(norms: xr.Dataset) -> xr.Dataset:
    """Those that the law is about: with some decay, and without a LayerNorm."""
    return norms.isel(network=(norms.decay.values > 0) & ~np.isin(norms.family.values, SCALED))


def groups(norms: xr.Dataset, by: str) -> Iterator[xr.Dataset]:
    """The networks of each setting, or line, in turn."""
    for one in np.unique(norms[by].values):
        yield norms.isel(network=norms[by].values == one)


def swapped(own: xr.Dataset) -> float:
    """The variance among a setting's networks if each is read at another's time: the mean of all other orders."""
    table = read(own, own.t_test.values)  # (network, whose time)
    count = len(table)
    orders = np.array(list(permutations(range(count)))[1:])
    return float(table[np.arange(count), orders].var(axis=1, ddof=1).mean())


@section.study
def at_norm(norms: xr.Dataset) -> xr.Dataset:
    """(setting,) of three seeds or more that wait, and are looked at often: how much the norm at t_test differs.

    ``own``: variance of its logarithm among seeds; ``swapped``: if each is read at another's time, nan where these are
    not three looks apart, or some were not trained until then; ``fell``: the change of that logarithm in the wait.
    """
    rows = []
    for own in groups(norms, "setting"):
        late, look = own.t_test.values, own.grid.values
        if own.sizes["network"] >= SEVERAL and np.median(look / late) <= GRID:
            other = swapped(own) if np.ptp(late) >= APART * look.max() else np.nan
            changed = np.median(then(own) - then(own, "t_train"))
            law = decayed(own).sizes == own.sizes
            rows.append((own.family.values[0], then(own).var(ddof=1), other, changed, law, len(late)))
    if not rows:
        raise ValueError("no setting has three seeds that wait and whose norm is known")
    names, columns = ("family", "own", "swapped", "fell", "law", "networks"), zip(*rows, strict=True)
    return xr.Dataset({name: ("setting", np.array(one)) for name, one in zip(names, columns, strict=True)})


def by_kind(at_norm: xr.Dataset) -> Iterator[xr.Dataset]:
    """The settings of each family that the law is about and that has two or more of them."""
    some = at_norm.isel(setting=at_norm.law.values)
    for family in np.unique(some.family.values):
        if (own := some.isel(setting=some.family.values == family)).sizes["setting"] > 1:
            yield own


def spread(own: xr.Dataset) -> float:
    """By which share the norm at t_test differs among seeds, settings pooled."""
    return float(np.sqrt(own.own.values.mean()))


def kept(own: xr.Dataset) -> float:
    """What is left of that if each network is read at its own time and not at another's; nan for fewer than two."""
    told = own.isel(setting=np.isfinite(own.swapped.values))
    return float(np.sqrt(told.own.values.sum() / told.swapped.values.sum())) if told.sizes["setting"] > 1 else np.nan


@section.study
def by_set(norms: xr.Dataset) -> xr.Dataset:
    """(line,) the largest over the least ``norm`` at t_test of settings that differ in their training set alone.

    Medians over seeds; ``time`` is the same of t_test, of ``settings`` settings.
    """
    rows = []
    for own in groups(decayed(norms), "line"):
        medians = np.array([[np.median(then(one)), np.log(np.median(one.t_test))] for one in groups(own, "setting")])
        if len(medians) > 1:
            rows.append((own.family.values[0], own.line.values[0], *np.exp(np.ptp(medians, axis=0)), len(medians)))
    if not rows:
        raise ValueError("no networks that wait differ in their training set alone")
    names, columns = ("family", "recipe", "norm", "time", "settings"), zip(*rows, strict=True)
    return xr.Dataset({name: ("line", np.array(one)) for name, one in zip(names, columns, strict=True)})


section.claim(
    "norm-clock",
    "beside Truong et al. (2026b)",
    "Under weight decay a network understands when its weight norm reaches a value, the same for all seeds and "
    "training sets.",
    Part(
        "scatter of the norm at t_test among seeds, settings pooled, highest family",
        lambda at_norm: max(map(spread, by_kind(at_norm)), default=np.nan),
        at_most(0.02),
        percent,
        premise=True,
    ),
    Part(
        "that over its scatter where each is read at another seed's time, highest family",
        lambda at_norm: np.nanmax([kept(one) for one in by_kind(at_norm)] or [np.nan]),
        at_most(0.5),
        times,
    ),
    Part(
        "norm at t_test, the largest over the least of settings that differ in their training set alone, largest",
        lambda by_set: by_set.norm.values.max(),
        at_most(1.1),
        times,
        premise=True,
    ),
    paper="1 to 2 % among seeds and learning rates",
    whose="ours",
)
