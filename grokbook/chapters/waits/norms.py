"""Whether networks understand at a norm: the weight norm at t_test, over seeds of a setting and over training sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook.chapter import Section
from grokbook.chapters.waits import Settings
from grokbook.chapters.waits.decays import ALL, KNOWN, PICTURES, line_of
from grokbook.chapters.waits.waits import COMMITTED, FAMILIES, GRID, crossings, records
from grokbook.claims import Part, at_most
from grokbook.measures.common import Array, ratio
from grokbook.words import percent, times

section = Section("norms")

LOGGED = ("total_norm", "weight_norm", "across_weight_norm")  # measures, of which each says the norm of all weights
TASK = ("f", "operation", "p", "source")  # of a task, what is not its training set
SCALED = ("Power's decoder",)  # LayerNorm makes little of the size of weights, as Truong et al. find
STEPS = np.geomspace(1, 1e6, 6_000)  # at which a norm is read between looks
APART = 3  # looks between the first and the last of a setting's seeds, so that their times can be told apart
SEVERAL = 3  # seeds


def norm_of(record: xr.Dataset) -> Array | None:
    """(run, step) the norm of all weights; none where it was not kept."""
    for whole in LOGGED:
        if whole in record:
            return np.asarray(record[whole].values, float)
    layers = [record[name].values.astype(float) for name in record.data_vars if str(name).startswith("weight_norm_")]
    return np.sqrt(np.square(layers).sum(0)) if layers else None


@section.study
def norms(s: Settings) -> xr.Dataset:
    """(network,) those that wait under AdamW and of which records hold the ``norm`` of all weights, (network, step).

    ``decay``, which works on all weights, or is none; ``line``: all of a setting but its training set, with the
    decay; ``share`` of the table that is trained on.
    """
    found: dict[Any, tuple[Any, ...]] = {}
    for record, norm in ((one, norm_of(one)) for one in records(measures=LOGGED)):
        if norm is None:
            continue
        recipe = json.loads(record.attrs["recipe"])
        level = KNOWN if recipe["runs"][0]["model"]["type"] in PICTURES else s.level
        fit, done = crossings(record, "train_accuracy", s.level)[0], crossings(record, "test_accuracy", level)
        numbers = fit, *done, record.stopped_at.values, norm
        for run, t_train, t_test, grid, steps, curve in zip(recipe["runs"], *numbers, strict=True):
            kind, task = run["model"]["type"], run["task"]
            family = FAMILIES.get(kind, PICTURES.get(kind))
            waits = np.isfinite(t_test) and t_test - t_train >= max(grid, 1)
            if waits and family and task["type"] != "Shuffled":
                known = np.isfinite(curve) & (record.step.values > 0)
                seen = record.step.values[known]
                curve = np.exp(np.interp(np.log(STEPS), np.log(seen), np.log(curve[known])))
                curve[STEPS[1] * seen[-1] < STEPS] = np.nan
                same = run | {"steps": 0, "precision": recipe.get("precision")}
                _, way, decay, _ = line_of(setting := json.dumps(same | {"seed": 0}, sort_keys=True))
                line = json.dumps(same | {"seed": 0, "task": {of: task[of] for of in TASK if of in task}})
                share = task.get("train_fraction", np.nan)
                row = family, setting, line, share, run["seed"], decay, t_train, t_test, grid, int(steps), curve
                name = setting, run["seed"]
                if (way == ALL or not decay) and (name not in found or steps > found[name][-2]):
                    found[name] = row
    if not found:
        raise ValueError("no record of networks that wait has the norm of their weights")
    names = ("family", "setting", "line", "share", "seed", "decay", "t_train", "t_test", "grid", "steps")
    *columns, curves = zip(*found.values(), strict=True)
    data = {name: ("network", np.array(one)) for name, one in zip(names, columns, strict=True)}
    return xr.Dataset(data | {"norm": (("network", "step"), np.array(curves))}, {"step": STEPS}, COMMITTED)


def read(norms: xr.Dataset, at: ArrayLike) -> Array:
    """(network, ...) the logarithm of each network's norm at steps (...,) of all, between looks."""
    places, x = np.log(np.asarray(at, float)), np.log(norms.step.values)
    return np.array([np.interp(places, x, one) for one in np.log(norms.norm.values)])


def then(norms: xr.Dataset, of: str = "t_test") -> Array:
    """(network,) the logarithm of each network's norm at its own time."""
    return np.diag(read(norms, norms[of].values))


def worn(norms: xr.Dataset, family: str) -> Array:
    """(network,) the wait over what decay by itself would take from the norm at t_train to that at t_test."""
    own = norms.isel(network=(norms.family.values == family) & (norms.decay.values > 0))
    rate = np.array([json.loads(one)["optimizer"]["lr"] for one in own.setting.values])
    wait = (own.t_test - own.t_train).values
    return np.asarray(ratio(wait * rate * own.decay.values, then(own, "t_train") - then(own)))


def sums(norms: xr.Dataset, family: str, p: int) -> xr.Dataset:
    """The networks of a family that add modulo p."""
    tasks = [json.loads(one)["task"] for one in norms.line.values]
    asked = [task.get("p") == p and task.get("f") == "n + m" for task in tasks]
    return norms.isel(network=np.array(asked) & (norms.family.values == family))


def decayed(norms: xr.Dataset) -> xr.Dataset:
    """Those that the law is about: with some decay, and without a LayerNorm."""
    return norms.isel(network=(norms.decay.values > 0) & ~np.isin(norms.family.values, SCALED))


def groups(norms: xr.Dataset, by: str) -> Iterator[xr.Dataset]:
    """The networks of each setting, or the settings of each line, in turn."""
    for one in np.unique(norms[by].values):
        yield norms.isel({norms[by].dims[0]: norms[by].values == one})


def swapped(own: xr.Dataset) -> float:
    """The variance among a setting's networks if each is read at another's time: the mean of all other orders."""
    table = read(own, own.t_test.values)  # (network, whose time)
    orders = np.array(list(permutations(range(len(table))))[1:])
    return float(table[np.arange(len(table)), orders].var(axis=1, ddof=1).mean())


@section.study
def at_norm(norms: xr.Dataset) -> xr.Dataset:
    """(setting,) the logarithms of the norm at t_test, ``norm``, and of t_test, ``time``: medians of its networks.

    Of three or more that are looked at often, ``own``: variance of that of the norm; ``swapped``: if each is read at
    another's time, nan where times are not three looks apart, or some were not trained until then; ``fell``: the change
    in the wait. ``law``: whether it is about them; ``kin``: of ``line`` all but the decay.
    """
    rows = []
    for own in groups(norms, "setting"):
        late, look, logs = own.t_test.values, own.grid.values, then(own)
        several = len(late) >= SEVERAL and np.median(look / late) <= GRID
        told = several and np.ptp(late) >= APART * look.max()
        row = {
            "setting": own.setting.values[0],
            "family": own.family.values[0],
            "line": own.line.values[0],
            "kin": line_of(own.setting.values[0])[0],
            "decay": own.decay.values[0],
            "law": decayed(own).sizes == own.sizes,
            "norm": np.median(logs),
            "time": np.log(np.median(late)),
            "own": logs.var(ddof=1) if several else np.nan,
            "swapped": swapped(own) if told else np.nan,
            "fell": np.median(logs - then(own, "t_train")),
        }
        rows.append(row)
    return xr.Dataset({name: ("setting", np.array([row[name] for row in rows])) for name in rows[0]})


def by_kind(at_norm: xr.Dataset) -> Iterator[xr.Dataset]:
    """The settings of each family that the law is about and that has two or more with several seeds."""
    some = at_norm.isel(setting=at_norm.law.values & np.isfinite(at_norm.own.values))
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


def apart(norms: xr.Dataset, at_norm: xr.Dataset, by: str) -> tuple[Array, list[str]]:
    """How far logarithms of the norm at t_test lie from their median, of networks or of settings with some decay.

    By "seeds" of a setting, by "training sets" of a line, or by "decays"; and whose networks these are.
    """
    if by == "seeds":
        columns = norms.setting.values, then(norms), norms.family.values, norms.decay.values
    else:
        group = at_norm.line if by == "training sets" else at_norm.kin
        columns = group.values, at_norm.norm.values, at_norm.family.values, at_norm.decay.values
    kinds, values, family, decay = columns
    own = [np.flatnonzero((kinds == one) & (decay > 0)) for one in np.unique(kinds)]
    own = [one for one in own if len(one) > 1]
    return np.concatenate([values[one] - np.median(values[one]) for one in own]), family[np.concatenate(own)].tolist()


def by_set(at_norm: xr.Dataset) -> dict[str, tuple[str, float, float]]:
    """Line -> family, and the largest over the least norm at t_test of settings that differ in their training set
    alone, and the same of t_test; medians over seeds."""
    lines = groups(at_norm.isel(setting=at_norm.law.values), "line")
    return {
        own.line.values[0]: (own.family.values[0], *(float(np.exp(np.ptp(own[of].values))) for of in ("norm", "time")))
        for own in lines
        if own.sizes["setting"] > 1
    }


_ASKED = (
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
        lambda at_norm: max((norm for _, norm, _ in by_set(at_norm).values()), default=np.nan),
        at_most(1.1),
        times,
        premise=True,
    ),
)
section.claim(
    "norm-clock",
    "beside Truong et al. (2026b)",
    "Under weight decay a network understands when its weight norm reaches a value, the same for all seeds and "
    "training sets.",
    *(replace(part, premise=True) for part in _ASKED),  # a norm that falls because a rule comes meets the second, too
    earlier=list(_ASKED),
    paper="1 to 2 % among seeds and learning rates",
    whose="ours",
)
