"""Figs 1, 7, 21 and 22: transformers that add modulo a prime, their rings, and two ways of holding the decoder back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import combinations, product
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, maps
from grokbook.chapters.liu.maps import COMPREHENSION, CONFUSION, Diagram, part, phase_name
from grokbook.chapters.liu.measures import COMPONENTS, PARTS, WAYS, parts
from grokbook.chapters.liu.training import BOTH_REACHED, two_groups
from grokbook.claims import Part, above, at_least, at_most, between, exactly
from grokbook.curves import at, last, median, ranks, sweep
from grokbook.measures.common import Array
from grokbook.models.encoder import PairEncoder
from grokbook.settings import NOT_NEGATIVE, POSITIVE, Range, Rate, several, whole
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule, Watch
from grokbook.words import percent

section = Section("transformers")
Positive = Annotated[tuple[float, ...], several(POSITIVE)]

REACHED = Watch((("train_accuracy", 0.99), ("test_accuracy", 0.99)), leave=False)
FREE = "embeddings without decay"
RATES = tuple(np.geomspace(1.5e-7, 6e-2, 15).tolist())  # of Fig. 7, right, as read off the published image
DECAYS = tuple(np.exp(np.linspace(-4, 3, 15)).tolist())
SMALL, TINY = (64, 1, 64), (24, 1, 24)

Decay = Annotated[float, NOT_NEGATIVE]
Modulus = Annotated[int, whole(5)]
# width, blocks, hidden units
Network = Annotated[tuple[int, int, int], Range("three numbers above 0", lambda x: len(x) == 3 and min(x) > 0)]


@section.experiment(smaller=[{"seeds": 2}, {"seeds": 2, "transformer_steps": 6_000}], quick={"network": TINY})
def ring(s: Settings, *, network: Network = (256, 2, 128)) -> Experiment:
    """Figs 1, 7 (left) and 21: a transformer's embeddings on their way, and how many dimensions they fill."""
    steps, optimizer = s.transformer_steps, two_groups(2e-4, 1.0)
    task, model = ModularTask(s.transformer_p, "n + m", 0.8), PairEncoder(s.transformer_p, *network, 0.05)
    runs = [Run(task, model, optimizer, steps, seed, "cross_entropy", label=FREE) for seed in range(s.seeds)]
    early = min(1_000, steps // 2) if steps > 5_000 else steps // 10
    schedule, kept = Schedule(log=40, every=max(1, steps // 100)), tuple(dict.fromkeys((0, early, -1)))
    return Experiment(
        "liu/ring", tuple(runs), schedule, ("effective_dimension",), snapshots=kept, keep=("W_E",), watch=REACHED
    )


@section.experiment(
    smaller=[{"seeds": 2}, {"network": SMALL, "transformer_p": 23, "transformer_steps": 3_000, "embedding": 5e-3,
                            "rate": 5e-3, "decay": 2.0}],
    quick={"network": TINY},
)  # fmt: skip
def components(
    s: Settings, *, network: Network = (256, 2, 128), embedding: Rate = 1e-3, rate: Rate = 2e-4, decay: Decay = 1.0
) -> Experiment:
    """Fig. 22: how few components of the embeddings would have done, asked of all weights at some steps."""
    steps, model = s.transformer_steps, PairEncoder(s.transformer_p, *network, 0.05)
    task, optimizer = ModularTask(s.transformer_p, "n + m", 0.8), two_groups(rate, decay, embedding)
    blocks = [f"{name}_{block}" for block in range(model.layers) for name in PairEncoder.block_names]
    kept = sorted({0, *np.geomspace(max(1, steps // 100), steps, 7).round().astype(int).tolist()})
    runs = [Run(task, model, optimizer, steps, seed, "cross_entropy", label=FREE) for seed in range(min(s.seeds, 3))]
    keep = ("W_E", *blocks, "W_U", "b_U")
    return Experiment(
        "liu/components", tuple(runs), Schedule(log=60), snapshots=tuple(kept), keep=keep, watch=REACHED,
        summary="component_accuracy",
    )  # fmt: skip


@section.experiment(
    smaller=[{"steps": 3_000, "seeds": 1, "dropouts": 6}],
    quick={"modulus": 11, "network": TINY, "dropouts": 2, "steps": 100},
)
def dropout_times(
    s: Settings, *, modulus: Modulus = 53, network: Network = (256, 2, 256), dropouts: Annotated[int, whole(2, 99)] = 10
) -> Experiment:
    """Fig. 7, centre: dropout in the decoder, so many rates from 0 to 0.5, and the wait."""
    task, optimizer = ModularTask(modulus, "n + m", 0.8), two_groups(1e-3, 0.0, 1e-3)
    runs = [
        Run(task, PairEncoder(modulus, *network, one), optimizer, s.steps, seed, "cross_entropy")
        for one, seed in product(np.linspace(0, 0.5, dropouts).tolist(), range(1, 1 + min(s.seeds, 3)))
    ]
    watch = dataclasses.replace(REACHED, every=20, leave=True)
    return Experiment("liu/dropout_times", tuple(runs), Schedule(log=60), watch=watch)


@section.experiment(
    smaller=[{"network": SMALL, "modulus": 23, "steps": 6_000, "rates": tuple(np.geomspace(1e-5, 3e-2, 7).tolist()),
              "decays": tuple(np.geomspace(0.02, 20, 7).tolist())}],
    quick={"modulus": 11, "network": TINY, "steps": 100},
)  # fmt: skip
def phases_transformer(
    s: Settings, *, modulus: Modulus = 53, network: Network = (256, 2, 256), rates: Positive = RATES,
    decays: Positive = DECAYS,
) -> Experiment:  # fmt: skip
    """Fig. 7, right: decoder learning rate against weight decay."""
    task, model = ModularTask(modulus, "n + m", 0.8), PairEncoder(modulus, *network)
    cells = product(decays[:: s.coarseness], rates[:: s.coarseness])
    runs = [Run(task, model, two_groups(rate, decay), s.steps, 1, "cross_entropy") for decay, rate in cells]
    watch = dataclasses.replace(BOTH_REACHED, every=20)
    return Experiment("liu/phases_transformer", tuple(runs), Schedule(log=40), watch=watch)


class Plane(NamedTuple):
    """The plane of two principal components with the largest share of one wave around a circle."""

    axes: Array  #: (2, d)
    points: Array  #: (p, 2)
    share: float
    frequency: int

    @property
    def roughness(self) -> float:
        """How the radius varies, over its mean."""
        radius = np.linalg.norm(self.points, axis=-1)
        return float(radius.std() / radius.mean())


def best_plane(embedding: Array, most: int = 6) -> Plane:
    """Of the planes that two of the first components of embeddings (p, d) span, the one that is most of a ring."""
    centred = embedding - embedding.mean(0)
    basis = np.linalg.svd(centred, full_matrices=False)[2][:most]
    found = []
    for pair in combinations(range(len(basis)), 2):
        points = centred @ basis[list(pair)].T
        wave = measures.ring_share(points)
        found.append(Plane(basis[list(pair)], points, float(wave.share), int(wave.frequency)))
    return max(found, key=lambda one: one.share)


def is_ring(planes: Sequence[Plane]) -> bool:
    """Whether of a network's planes, in the order of training, only the last holds a ring, of a steady radius."""
    *before, end = planes
    return max((one.share for one in before), default=0.0) <= 0.3 and end.share >= 0.8 and end.roughness <= 0.25


def waves(embedding: Array) -> Array:
    """(n,) shares of the variance of embeddings (p, d) in waves round the circle of symbols, largest first.

    Of the (p - 1) / 2 frequencies those that hold at least twice an even share.
    """
    most = (len(embedding) + 1) // 2
    share = np.array([float(measures.ring_share(embedding, k).share) for k in range(1, most)])
    return np.sort(share[share >= 2 / (most - 1)])[::-1]


def onto(embedding: Array, plane: Plane) -> tuple[Array, float]:
    """Embeddings (p, d) on another's plane, (p, 2), and their ring share at its frequency."""
    points = (embedding - embedding.mean(0)) @ plane.axes.T
    return points, float(measures.ring_share(points, plane.frequency).share)


def _ring_like(plane: Plane, generator: np.random.Generator) -> Array:
    """(p, d) a ring of the size and frequency of another's, in a random plane."""
    p, d = len(plane.points), plane.axes.shape[1]
    angle = 2 * np.pi * plane.frequency * np.arange(p) / p
    radius = np.sqrt(plane.share * np.square(plane.points).sum() / p)
    return radius * np.stack([np.cos(angle), np.sin(angle)], -1) @ np.linalg.qr(generator.normal(size=(d, 2)))[0].T


@section.study
def rings(ring):
    """How much of a ring the embeddings are (Fig. 1), and how much of it they were at the start (Fig. 21).

    ``share`` (run, snapshot) in the best plane; ``roughness`` (run), how its last radius varies; whether it `is_ring`
    (run), and whether the plane of the ``first`` two components is (run); ring share on the final plane of the
    ``initial`` embeddings (run) and, by ``chance``, of normal ones (run, draw). ``added`` (run, draw) is that of
    normal ones on the plane of their own sum with a ring in a random plane, as large as the final one.
    ``on_plane`` and ``total`` (run, snapshot) are squared sizes, on the final plane and in all; ``waves`` (run) how
    many stand out at the end.
    """
    generator, other = map(np.random.default_rng, (0, 1))
    names = ("share", "roughness", "is_ring", "first", "initial", "chance", "added", "on_plane", "total", "waves")
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for run in ring.W_E.values.astype(float):
        planes = [best_plane(one) for one in run]
        rows["share"].append([one.share for one in planes])
        rows["roughness"].append(planes[-1].roughness)
        rows["is_ring"].append(is_ring(planes))
        rows["first"].append(is_ring([best_plane(one, 2) for one in run]))
        rows["initial"].append(onto(run[0], planes[-1])[1])
        rows["chance"].append([onto(generator.normal(size=run[0].shape), planes[-1])[1] for _ in range(20)])
        starts = run[0].std() * other.normal(size=(20, *run[0].shape))
        rows["added"].append([onto(one, best_plane(one + _ring_like(planes[-1], other)))[1] for one in starts])
        centred = run - run.mean(1, keepdims=True)
        rows["on_plane"].append(np.square(centred @ planes[-1].axes.T).sum((1, 2)))
        rows["total"].append(np.square(centred).sum((1, 2)))
        rows["waves"].append(len(waves(run[-1])))
    second = {"share": "snapshot", "chance": "draw", "added": "draw", "on_plane": "snapshot", "total": "snapshot"}
    return xr.Dataset({k: (("run", second[k]) if k in second else "run", np.array(v)) for k, v in rows.items()})


@section.study
def component_accuracy(components):
    """Fig. 22: accuracy with embeddings rebuilt from few components; and on which held-out pairs it is had.

    ``accuracy`` (run, snapshot, part, way) and ``at_end`` (run, component) are those of the record, the share of
    held-out pairs that are mirrored is an attribute.
    """
    record, task = components, ModularTask(int(components.p[0]), "n + m", float(components.train_fraction[0]))
    kept = {"accuracy_rebuilt": "accuracy", "accuracy_at_end": "at_end", "reached_train_accuracy": "t_train",
            "reached_test_accuracy": "t_test"}  # fmt: skip
    found = record[[*kept]].rename(kept).assign_coords(way=list(WAYS), part=list(PARTS), component=list(COMPONENTS))
    found["snapshot_step"] = record.snapshot_step.isel(run=0, drop=True)
    sets = [parts(task, int(seed)) for seed in record.seed]
    return found.assign_attrs(mirrored=float(np.mean([one["mirrored"].sum() / one["test"].sum() for one in sets])))


def while_generalising(study: xr.Dataset) -> xr.DataArray:
    """(run, way, part) mean accuracy over the snapshots from t_train to t_test; nan where there is none."""
    inside = (study.snapshot_step >= study.t_train) & (study.snapshot_step <= study.t_test.fillna(np.inf))
    return (study.accuracy * inside).sum("snapshot") / inside.sum("snapshot").where(inside.any("snapshot"))


def _memorises_first(record: xr.Dataset) -> float:
    """Share of networks that know the training set and not the test set at the middle snapshot, and both at the end."""
    then = record.snapshot_step.values[:, 1]
    early = (at(record, "train_accuracy", then) >= 0.99) & (at(record, "test_accuracy", then) <= 0.5)
    return float((early & (last(record, "test_accuracy") >= 0.99)).mean())


section.claim("fig1", "Fig. 1",
    "Embeddings of a transformer become a ring when it generalises, not when it memorises.",
    Part("networks that memorise by step 1,000 and generalise by the end",
         _memorises_first, at_least(0.5), on=("ring",)),
    Part("networks with a ring share ≤ 0.3 till then, ≥ 0.8 at the end, radius ± 25 %",
         lambda study: study.is_ring.mean(), at_least(0.5), on=("rings",)),
)  # fmt: skip


def _at_generalising(record: xr.Dataset) -> float:
    """Mean effective dimension when the test set is known over the mean of the first."""
    curve, t_test = record.effective_dimension.values, record.reached_test_accuracy.values
    then = [np.interp(t, record.step.values, row) for t, row in zip(t_test, curve, strict=True)]
    return float(np.mean(then) / curve[:, 0].mean())


section.claim(
    "fig7a",
    "Fig. 7, left",
    "The effective dimension of the embeddings rises until generalisation and then drops.",
    Part("networks whose largest value comes by 1.05 t_test",  # never true where it is never
         lambda record: (record.effective_dimension.idxmax("step") <= 1.05 * record.reached_test_accuracy).mean(),
         at_least(0.8)),
    Part("networks whose last value is at most 0.7 of the first",
         lambda record: np.mean(last(record, "effective_dimension") <= 0.7 * record.effective_dimension[:, 0]),
         at_least(0.8)),
    Part("mean at t_test / mean of the first", _at_generalising, at_least(0.9)),
    Part("networks whose largest value is at least 1.02 of the first",
         lambda record: (record.effective_dimension.max("step") >= 1.02 * record.effective_dimension[:, 0]).mean(),
         at_least(0.8)),
    on="ring",
    paper="over 100 seeds",
)  # fmt: skip


def waits(record: xr.Dataset, split: str) -> tuple[Array, Array]:
    """Dropout rates (n,) and steps to 99 % of a split (seed, n), infinity if never."""
    return sweep(record, "dropout", lambda one: one[f"reached_{split}_accuracy"].fillna(np.inf).values)


def _medians(record: xr.Dataset) -> tuple[Array, Array]:
    """(dropout rate,) median steps to the training set, and to the test set."""
    return median(waits(record, "train")[1], axis=0), median(waits(record, "test")[1], axis=0)


def _gain(record: xr.Dataset) -> float:
    without, *others = _medians(record)[1]
    return min(others) / min(without, float(record.steps.max())) if np.isfinite(others).any() else np.nan


def _by_luck(record: xr.Dataset) -> float:
    """How often as many networks, drawn from all, generalise as late by the sum of their ranks as those without."""
    rates, table = waits(record, "test")
    late, bare = ranks(np.minimum(table, 1e12).ravel()), np.broadcast_to(rates == 0, table.shape).ravel()
    sums = [sum(drawn) for drawn in combinations(late, int(bare.sum()))]
    return float(np.mean(np.array(sums) >= late[bare].sum() - 1e-9))


def _no_wait(record: xr.Dataset) -> int:
    train, test = _medians(record)
    return int(((test <= 1000) & (test < train + 1000))[1:].sum())


section.claim("fig7b", "Fig. 7, centre", "Dropout brings generalisation forward and removes grokking.",
    Part("least t_test with dropout / without; where that is never, / all steps, an upper bound", _gain,
         at_most(1 / 3)),
    Part("networks drawn from all that are as late as those without dropout", _by_luck, at_most(0.05), percent),
    Part("dropout rates above 0 with t_test up to 1,000 and a delay below 1,000", _no_wait, at_least(1)),
    on="dropout_times")  # fmt: skip


def sooner(found: Diagram) -> NDArray[np.bool_]:
    """(rate,) whether decay grown from its least to about 2 halves the time to generalise, or lets it be reached."""
    t = np.where(np.isnan(found.t_val), np.inf, found.t_val).min(-1)
    high = t[np.argmin(np.abs(np.log(found.y / 2)))]
    return np.isfinite(high) & (high <= t[0] / 2)


def sooner_where_asked(found: Diagram) -> int:
    """At how many of the rates nearest to 1e-4 and 1e-3."""
    return sum(sooner(found)[np.argmin(np.abs(np.log(found.x / at)))] for at in (1e-4, 1e-3))


def closer_by_chance(found: Diagram) -> float:
    """How often cells of grokking touch memorisation more often than those of comprehension, by as much, by chance.

    A share of 1,000 maps in which the cells that generalise are grokking or comprehension at random, as many of each;
    memorisation stays where it is. nan without cells of either.
    """
    generator, codes = np.random.default_rng(0), found.phases
    either = np.isin(codes, (maps.GROKKING, COMPREHENSION))
    leads = [np.subtract(*maps.beside_memorisation(codes))]
    for _ in range(1_000):
        shuffled = codes.copy()
        shuffled[either] = generator.permutation(codes[either])
        leads.append(np.subtract(*maps.beside_memorisation(shuffled)))
    return float(np.mean(np.array(leads[1:]) >= leads[0])) if np.isfinite(leads[0]) else np.nan


section.claim(
    "fig7c",
    "Fig. 7, right",
    "Transformers have the four phases, and weight decay of the decoder speeds generalisation up.",
    part("phases that occur, of four", lambda one: one.occurring, exactly(4)),
    part("decays with comprehension", lambda one: one.y[(one.phases == COMPREHENSION).any(1)], between(0.1, 20),
            every=True),
    part("rates, of 1e-4 and 1e-3, at which a decay of 2 halves t_test or makes it finite", sooner_where_asked,
            exactly(2)),
    part("highest rate and decay", lambda one: one.phases[-1, -1], exactly(CONFUSION), show=phase_name),
    on="phases_transformer",
    paper="comprehension at rates of 1e-3 to 6e-3 with decays of 0.5 to 6 (read off)",
)  # fmt: skip


section.claim("closer", "abstract, Fig. 7, right",
    "On transformers grokking stays closer to memorisation than comprehension does.",
    part("maps with grokking and comprehension exchanged at random in which grokking leads by as much",
            closer_by_chance, at_most(0.05), show=percent),
    on="phases_transformer")  # fmt: skip


def _held(share: float) -> tuple[Part, ...]:
    return (
        Part("ring share of the start on the final plane / that of unrelated embeddings",
             lambda study: float(study.initial.median() / study.chance.median()), at_least(3)),
        Part("ring share at the end", lambda study: study.share[:, -1], at_least(share)),
    )  # fmt: skip


section.claim("fig21", "Fig. 21", "The initial embeddings already hold part of the final structure.",
    *_held(0.8),
    Part("ring share of the start, less the most of 20 starts to which an unrelated ring was added",
         lambda study: study.initial - study.added.max("draw"), above(0)),
    on="rings", earlier=_held(0.6))  # fmt: skip


def before_known(study: xr.Dataset) -> xr.DataArray:
    """(run, way) test accuracy at the last snapshot before t_test; nan where the test set is never known."""
    before = (study.snapshot_step < study.t_test).sum("snapshot")
    return study.accuracy.sel(part="test").isel(snapshot=(before - 1).clip(0)).where(before > 0)


def _final_less_own(study: xr.Dataset) -> xr.DataArray:
    found = before_known(study)
    return found.sel(way="final") - found.sel(way="own")


section.claim("fig22", "Fig. 22",
    "A few components of the final embeddings carry the generalisation, better than as many of the moment.",
    Part("test accuracy at the end with ten components",
         lambda study: study.at_end.sel(component=10), at_least(0.97)),
    Part("last snapshot before t_test: accuracy with ten final components, less that with the ten of the moment",
         _final_less_own, above(0), every=True),
    on="component_accuracy", paper="99 % with “the first few”",
)  # fmt: skip


def _mirrored_less_new(accuracy: xr.DataArray) -> xr.DataArray:
    return accuracy.sel(way="actual", part="mirrored") - accuracy.sel(way="actual", part="new")


section.claim(
    "mirrors",
    "beyond Fig. 7",
    "Held-out pairs are alike for a transformer, whether or not their mirror image is trained on.",
    Part("accuracy on mirrored held-out pairs, less on the others, at the end",
         lambda study: _mirrored_less_new(study.accuracy.isel(snapshot=-1)), at_most(0.05), premise=True),
    Part("accuracy on mirrored held-out pairs, less on the others, between t_train and t_test",
         lambda study: _mirrored_less_new(while_generalising(study)), at_most(0.05)),
    on="component_accuracy",
    whose="ours",
)  # fmt: skip
