"""What weight decay buys: the wait against the decay, in every kind of network that was trained with several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook.chapter import Section
from grokbook.chapters.waits import Settings
from grokbook.chapters.waits.waits import collected
from grokbook.claims import Part, at_least, between
from grokbook.measures.common import Array, unmeasured

section = Section("decays")

PICTURES, KNOWN = {"DenseNet": "Liu's MNIST"}, 0.6  # the networks that learn them, and the share that Liu asks for
ALL, PART = "AdamW", "AdamW, decoder alone"  # what decays, and how; else the name of an optimizer
OF: dict[str, Callable[[Array], Any]] = {"wait": np.median, "least": np.min, "most": np.max}
LEAST = 10  # networks that a power is fitted to


def line_of(setting: str) -> tuple[str, str, float, float]:
    """All of a setting but its decay, how that works, the decay, and its learning rate."""
    recipe = json.loads(setting)
    optimizer = recipe["optimizer"]
    decay, rate = optimizer.pop("weight_decay"), optimizer["lr"]
    freed = any(group["weight_decay"] == 0 for group in optimizer["groups"])
    way = (PART if freed else ALL) if optimizer["type"].endswith("AdamW") else optimizer["type"]
    return json.dumps(recipe, sort_keys=True), way, float(decay), float(rate)


@section.study
def pictures(s: Settings) -> xr.Dataset:
    """(network,) as ``networks``, those that learn pictures of digits."""
    return collected(PICTURES, s.level, KNOWN, named="image")


@section.study
def decays(networks: xr.Dataset, pictures: xr.Dataset) -> xr.Dataset:
    """(network,) those of lines, whose settings differ in weight decay alone: two at least in which all networks wait.

    ``line``, ``way`` of decaying, ``decay``, ``rate`` of learning; ``wait`` t_test - t_train, in settings without any
    decay, too. To wait is to understand, a look or more after the training set is learnt.
    """
    networks = xr.concat([networks, pictures], "network")
    lines, ways, decay, rate = (np.array(one) for one in zip(*map(line_of, networks.setting.values), strict=True))
    done = networks.t_test.values
    with unmeasured():
        wait = np.where(np.isinf(done), np.inf, done - networks.t_train.values)
    columns = {"line": lines, "way": ways, "decay": decay, "rate": rate, "wait": wait}
    own = networks.assign({name: ("network", one) for name, one in columns.items()})
    own = own.isel(network=~np.isnan(wait))
    waits = np.isfinite(own.wait.values) & (own.wait.values >= np.maximum(own.grid.values, 1))
    _, setting = np.unique(own.setting.values, return_inverse=True)
    own = own.isel(network=np.bincount(setting, ~waits)[setting] == 0)
    some = own.isel(network=own.decay.values > 0)
    several = [one for one in np.unique(some.line) if len(np.unique(some.decay[some.line.values == one])) > 1]
    own = own.isel(network=np.isin(own.line, several))
    if not own.sizes["network"]:
        raise ValueError("no networks that wait differ in weight decay alone")
    return own[["family", "line", "way", "decay", "rate", "seed", "t_train", "t_test", "wait"]]


def each_line(decays: xr.Dataset, family: str) -> Iterator[xr.Dataset]:
    """(decay,) a family's lines in turn: the ``wait`` of the median network, of the ``least`` and of the ``most``."""
    own = decays.isel(network=(decays.family.values == family) & (decays.decay.values > 0))
    for line in np.unique(own.line.values):
        some = own.isel(network=own.line.values == line)
        own_decays = np.unique(some.decay.values)
        waits = [some.wait.values[some.decay.values == one] for one in own_decays]
        found = {name: ("decay", np.array([of(one) for one in waits])) for name, of in OF.items()}
        yield xr.Dataset(found, {"decay": own_decays}, {"rate": some.rate.values[0], "recipe": json.loads(line)})


def local(line: xr.Dataset) -> Array:
    """(decay - 1,) the power from each decay to the next."""
    return np.diff(np.log(line.wait.values)) / np.diff(np.log(line.decay.values))


def power(x: ArrayLike, y: ArrayLike, line: ArrayLike) -> tuple[float, float]:
    """The power of x that y goes with, each line with a factor of its own, by least squares of logarithms.

    Also by how much it may be off, at 95 %, if what is left of networks is luck.
    """
    from scipy.stats import t  # type: ignore[import-untyped]

    _, place = np.unique(line, return_inverse=True)
    apart = [np.log(one) - (np.bincount(place, np.log(one)) / np.bincount(place))[place] for one in (x, y)]
    square, free = (apart[0] ** 2).sum(), len(place) - place.max() - 2
    slope = (apart[0] * apart[1]).sum() / square
    error = np.sqrt(((apart[1] - slope * apart[0]) ** 2).sum() / free / square)
    return float(slope), float(t.ppf(0.975, free) * error)


@section.study
def powers(decays: xr.Dataset) -> xr.Dataset:
    """(family,) the ``power`` of the decay that the wait goes with, what it may be ``off``, ``late``: that of t_test.

    Of families of enough ``networks``, all with some decay, on so many ``lines``; ``way``: how their weights decay.
    """
    rows = {}
    some = decays.isel(network=decays.decay.values > 0)
    for kind in dict.fromkeys(zip(some.family.values.tolist(), some.way.values.tolist(), strict=True)):
        own = some.isel(network=(some.family.values == kind[0]) & (some.way.values == kind[1]))
        if (count := own.sizes["network"]) >= LEAST:
            (slope, off), (late, _) = (power(own.decay, own[of], own.line) for of in ("wait", "t_test"))
            rows[kind] = slope, off, late, count, len(np.unique(own.line)), kind[1]
    if not rows:
        raise ValueError(f"no kind of network has {LEAST} that wait and differ in weight decay alone")
    names, columns = ("power", "off", "late", "networks", "lines", "way"), zip(*rows.values(), strict=True)
    found = {name: ("family", np.array(one)) for name, one in zip(names, columns, strict=True)}
    return xr.Dataset(found, {"family": [family for family, _ in rows]})


def plain(powers: xr.Dataset) -> Array:
    """(family,) the powers where AdamW's decay works on all weights."""
    return powers.power.values[powers.way.values == ALL]


section.claim(
    "inverse-decay",
    "beside Truong et al. (2026)",
    "Under AdamW the wait goes as one over the weight decay, by itself.",
    Part(
        "power of the decay that t_test − t_train goes with, all weights decaying, shallowest family",
        lambda powers: plain(powers).max(),
        between(-1.2, -0.8),
    ),
    Part("steepest family", lambda powers: plain(powers).min(), at_least(-1.2), premise=True),
    forecast="fails: by a first, rough look about −1 of Power's decoder, and −0.6 of Liu's MNIST",
    whose="ours",
    note="The logarithm of a ratio of norms that belongs to the law of Truong et al. is not in it",
)
