"""Figs 8, 19 and 20: images that grok when their network starts with large weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import recipes
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, maps, theory
from grokbook.chapters.liu.maps import COMPREHENSION, CONFUSION, GAP, GROKKING, MEMORISATION, Diagram, phase_name
from grokbook.chapters.liu.pictures import ImageTask
from grokbook.chapters.liu.training import THRESHOLD
from grokbook.claims import Bound, Part, at_least, at_most, below, exactly
from grokbook.curves import at, first, last, median, sweep
from grokbook.lazy import torch
from grokbook.models import dense
from grokbook.models.dense import DenseNet
from grokbook.optim import SGD, AdamW, Group, stepper
from grokbook.settings import POSITIVE, Seeds, Steps, choice, several, whole
from grokbook.train.experiment import Experiment, Run, Schedule, Watch
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("images")
Least = Annotated[int, whole(0)]  # 0: the steps of the data set
Decays = Annotated[tuple[float, ...], several(POSITIVE)]

REACHED = (("train_accuracy", THRESHOLD), ("test_accuracy", 0.6))  # as in the paper
DECAYS = tuple(np.logspace(-3, 1.5, 10).tolist())
SHORT = {"image_steps": 10_000, "decays": tuple(np.logspace(-2, 1.5, 8).tolist())}
LARGE, USUAL = "initial weights × 8", "initial weights × 1"


class Setting(NamedTuple):
    """What differs between MNIST, whose settings are the paper's or its authors' later code's, and smaller digits."""

    train_size: int
    batch_size: int | None
    steps: dict[float, int]  # by weight decay
    usual_steps: int
    sizes: tuple[int, ...]
    size_decay: float
    size_steps: int
    phase_batch: int
    every: int  # so many steps are looked at


SETTINGS = {
    # The stronger the decay, the fewer steps are waited for.
    "mnist": Setting(1_000, 200, {0.01: 100_000, 0.03: 33_000, 0.1: 10_000}, 10_000,
                     (250, 500, 1_000, 2_000, 4_000), 0.01, 100_000, 200, 100),
    "digits": Setting(200, None, dict.fromkeys((0.1, 0.2, 0.5), 20_000), 20_000,
                      (30, 50, 100, 200, 400, 797), 0.5, 3_000, 100, 25),
}  # fmt: skip
DIGITS = {"source": "digits"}
QUICK = {**DIGITS, "image_steps": 30, "image_seeds": 1}
Source = Annotated[str, choice(*SETTINGS)]


def _run(task: ImageTask, optimizer: AdamW, steps: int, seed: int, batch: int | None, alpha: float = 8.0) -> Run:
    model, label = DenseNet((task.pixels, 200, 200, 10), init_scale=alpha), LARGE if alpha > 1 else USUAL
    return Run(task, model, optimizer, steps, seed, "mse", batch and min(batch, task.train_size), label)


def _curves(name: str, task: ImageTask, seeds: int, *conditions: tuple[float, int, float]) -> Experiment:
    """Curves for each weight decay, number of steps and factor on the initial weights."""
    own = SETTINGS[task.source]
    runs = [
        _run(task, AdamW(1e-3, decay), steps, seed, own.batch_size, alpha)
        for (decay, steps, alpha), seed in product(conditions, range(seeds))
    ]
    watch = Watch(REACHED, own.every, leave=False)
    return Experiment(f"liu/{name}", tuple(runs), Schedule(log=150), ("weight_norm",), watch=watch)


@section.experiment(smaller=[DIGITS], quick=QUICK)
def image_curves(
    s: Settings, *, source: Source = "mnist", image_steps: Least = 0, image_seeds: Seeds = 3
) -> Experiment:
    """Fig. 8, left: large initial weights, for several decays, and usual ones. Steps: 0 for the data set's."""
    own = SETTINGS[source]
    large = [(decay, image_steps or steps, 8.0) for decay, steps in own.steps.items()]
    usual = min(own.steps), image_steps or own.usual_steps, 1.0
    return _curves("image_curves", ImageTask(own.train_size, source, s.mnist_dir), image_seeds, *large, usual)


@section.experiment(smaller=[DIGITS], quick=QUICK)
def image_undecayed(
    s: Settings, *, source: Source = "mnist", image_steps: Least = 0, image_seeds: Seeds = 3
) -> Experiment:
    """Fig. 8, left, without any weight decay. Steps: 0 for the data set's."""
    own = SETTINGS[source]
    steps, task = image_steps or max(own.steps.values()), ImageTask(own.train_size, source, s.mnist_dir)
    return _curves("image_undecayed", task, image_seeds, (0.0, steps, 8.0))


@section.experiment(smaller=[{"image_seeds": 1}, {**SHORT, **DIGITS},
                             {**SHORT, **DIGITS, "image_steps": 2_500, "image_seeds": 1}], quick=QUICK)  # fmt: skip
def image_phases(
    s: Settings,
    *,
    source: Source = "mnist",
    image_steps: Steps = 100_000,
    image_seeds: Seeds = 3,
    decays: Decays = DECAYS,
) -> Experiment:
    """Fig. 8, right: weight decay against the learning rate of the last layer. The paper's ranges are not stated."""
    own, rates = SETTINGS[source], np.logspace(-5, -1, 9).tolist()
    task = ImageTask(own.train_size, source, s.mnist_dir)
    optimizers = [
        AdamW(1e-3, decay, groups=(Group("W_2", rate), Group("b_2", rate)))
        for decay, rate in product(decays[:: s.coarseness], rates[:: s.coarseness])
    ]
    runs = [
        _run(task, optimizer, image_steps, seed, own.phase_batch)
        for optimizer, seed in product(optimizers, range(image_seeds))
    ]
    return Experiment("liu/image_phases", tuple(runs), Schedule(log=30), watch=Watch(REACHED, own.every))


@section.experiment(smaller=[DIGITS], quick=QUICK)
def image_sizes(s: Settings, *, source: Source = "mnist", image_steps: Least = 0, image_seeds: Seeds = 3) -> Experiment:
    """Fig. 20: when images are generalised against how many there are to learn from. Sizes are ours."""
    own = SETTINGS[source]
    runs = [
        _run(ImageTask(size, source, s.mnist_dir), AdamW(1e-3, own.size_decay), image_steps or own.size_steps, seed,
             own.batch_size)
        for size, seed in product(own.sizes, range(image_seeds))
    ]  # fmt: skip
    schedule, watch = Schedule(log=60, every=own.every), Watch(REACHED, own.every, leave=False)
    return Experiment("liu/image_sizes", tuple(runs), schedule, watch=watch)


def name_of(record: xr.Dataset) -> str:
    """What the images are called."""
    return recipes.NAMES[str(record.source.values[0])]


@section.study
def image_waits(image_curves):
    """The runs of Fig. 8, left, with when they are done.

    New are ``t_train`` (nan if never), ``t_test`` (infinity if never), and the test accuracy ``then``, at t_train, and
    at the ``end``, all (run,).
    """
    record, t_train = image_curves, image_curves.reached_train_accuracy
    then, end = at(record, "test_accuracy", t_train.values), last(record, "test_accuracy")
    t_test = record.reached_test_accuracy.fillna(np.inf)
    return record.assign(t_train=t_train, t_test=t_test, then=("run", then), end=("run", end))


def norm_of(record: xr.Dataset) -> NDArray[np.float64]:
    """(run, step) the norm of all weights."""
    layers = [record[name].values.astype(float) for name in record.data_vars if str(name).startswith("weight_norm_")]
    return np.sqrt(np.square(layers).sum(0))


def shrunk(record: xr.Dataset) -> NDArray[np.float64]:
    """(run,) the norm of all weights when the test images are known, as a share of the first."""
    norm = norm_of(record)
    return at(record, norm, record.reached_test_accuracy.values) / norm[:, 0]


def map_of(record: xr.Dataset) -> Diagram:
    """The map of Fig. 8, right: a wait is grokking from a tenth of the budget on, at most the paper's 1,000 steps."""
    found = maps.diagram(record, "weight_decay", "W_2_lr")
    return dataclasses.replace(found, gap=min(GAP, found.budget / 10))


@section.study
def image_times(image_sizes):
    """Steps to 60 % and to 80 % of the test images, (threshold, seed, images), infinity if never."""
    thresholds = [0.6, 0.8]
    reach = [partial(first, curve="test_accuracy", threshold=one) for one in thresholds]
    (sizes, low), (_, high) = (sweep(image_sizes, "train_size", one) for one in reach)
    steps = ("threshold", "seed", "images"), np.array([low, high])
    return xr.Dataset({"steps": steps}, {"threshold": thresholds, "images": sizes})


@section.study
def class_features(s):
    """Fig. 19: random two-dimensional features of images, free to move, while Adam lowers the effective loss of eq. 32.

    ``features`` (frame, image, axis), ``label`` (image); of Adam, of gradient descent, which conserves their size, and
    without the division by Z, all (way, step): ``ratio`` of the scatter within classes to that between, and ``Z``.
    """
    task = ImageTask(1_000, "mnist", s.mnist_dir) if s.mnist_dir else ImageTask(797)
    x, y = (part[:1_000] for part in task.table())
    generator, z = np.random.default_rng(0), x.astype(float)
    for n, out in pairwise((z.shape[1], 200, 200, 2)):
        bound = n**-0.5
        z = np.maximum(z, 0) if n == 200 else z
        z = z @ generator.uniform(-bound, bound, (n, out)) + generator.uniform(-bound, bound, out)
    ways: dict[str, dict[str, Any]] = {
        "Adam": {},
        "gradient descent": {"optimizer": SGD(1e-5)},
        "without 1/Z": {"scale_invariant": False},
    }
    paths = np.array([theory.class_descent(z, y, 100, **changes) for changes in ways.values()])
    same = np.equal.outer(y, y) / (y == y[:, None]).sum(1)[:, None]
    means = same @ paths  # of an image's class, (way, step, image, axis)
    within, between = (np.square(one).sum((2, 3)) for one in (paths - means, means - paths.mean(2, keepdims=True)))
    variables = {
        "ratio": (("way", "step"), within / between),
        "Z": (("way", "step"), np.square(paths).sum((2, 3))),
        "features": (("frame", "image", "axis"), paths[0, [0, 50, 100]]),
        "label": ("image", y),
    }
    return xr.Dataset(variables, {"way": list(ways), "step": np.arange(101), "frame": [0, 50, 100]})


#: What a shared encoder lowers; l does not change where all features move alike, so that Z's origin is free to choose.
LOSSES = ("ℓ", "ℓ / Z", "ℓ / Z about the mean")


@section.study
def encoders(s):
    """Appendix I where images share the encoder that is trained: what becomes of their spread under three losses.

    ``Z`` and ``spread`` (loss, seed, step): the squared features, and the share of that which lies about the mean of
    all; ``right`` (loss, seed): the share of images nearest to their own class's mean at the end; ``features`` (loss,
    image, axis) of the first seed.
    """
    task = ImageTask(1_000, "mnist", s.mnist_dir) if s.mnist_dir else ImageTask(797)
    images, labels = (part[:300] for part in task.table())
    seeds, steps = range(3), 300
    sizes = (images.shape[1], 200, 200, 2)
    starts = [dense.draw_layers(sizes, torch.Generator().manual_seed(seed)) for _ in LOSSES for seed in seeds]
    # Single precision would let Adam carry a machine's own rounding into the second digit of what is claimed.
    stacked = {name: torch.stack([one[name] for one in starts]).double() for name in starts[0]}
    optimizer = stepper([theory.ADAM] * len(starts), stacked)
    x = torch.tensor(images).double().expand(len(starts), -1, -1)
    mean, sizes_of = np.equal.outer(range(10), labels) / np.bincount(labels)[:, None], []
    for step in range(steps + 1):
        passed = dense.forward(optimizer.params, x, 3, "relu")
        f = passed[-1].numpy().reshape(len(LOSSES), len(seeds), len(labels), 2)
        about = f - f.mean(2, keepdims=True)
        sizes_of.append([np.square(one).sum((2, 3)) for one in (f, about)])
        slopes = [theory.class_gradient(f[0], labels, scale_invariant=False),
                  *(theory.class_gradient(one, labels) for one in (f[1], about[2]))]  # fmt: skip
        into = torch.tensor(np.reshape(slopes, passed[-1].shape), dtype=x.dtype)
        optimizer.step(dense.backward(optimizer.params, passed, into, "relu")[0], step + 1)
    nearest = np.linalg.norm(f[..., None, :] - (mean @ f)[..., None, :, :], axis=-1).argmin(-1)
    Z, off = np.moveaxis(np.array(sizes_of), 0, -1)
    variables = {
        "Z": (("loss", "seed", "step"), Z),
        "spread": (("loss", "seed", "step"), off / Z),
        "right": (("loss", "seed"), (nearest == labels).mean(-1)),
        "features": (("loss", "image", "axis"), f[:, 0]),
        "label": ("image", labels),
    }
    return xr.Dataset(variables, {"loss": list(LOSSES), "step": np.arange(steps + 1)})


def _keeps(loss: str) -> tuple[Part, ...]:
    """That images stay apart, and come to lie by class."""
    return (
        Part(f"{loss}: share of Z about the mean of all features, at the end / start",
             lambda study: study.spread.sel(loss=loss)[:, -1] / study.spread.sel(loss=loss)[:, 0], at_least(0.5), times,
             every=True),
        _apart(loss),
    )  # fmt: skip


def _apart(loss: str) -> Part:
    return Part(f"{loss}: images nearest to the mean of their class at the end",
        lambda study: study.right.sel(loss=loss), at_least(0.8), percent, every=True, premise=True)  # fmt: skip


def _size(loss: str, bound: Bound, premise: bool = False) -> Part:
    return Part(f"{loss}: Z at the end / start", lambda study: study.Z.sel(loss=loss)[:, -1]
        / study.Z.sel(loss=loss)[:, 0], bound, times, every=True, premise=premise)  # fmt: skip


section.claim("no-collapse", "App. I",
    "Divided by Z, the loss keeps features from all going to zero, those of an encoder that images share, too.",
    _size(LOSSES[1], at_least(1)), _size(LOSSES[0], below(1), premise=True), _apart(LOSSES[1]),
    on="encoders", paper="“global collapse is avoided provably”, of features that are free")  # fmt: skip
section.claim("no-collapse-shared", "beyond App. I",
    "It also keeps such an encoder from sending all images to one place, in units of Z.",
    *_keeps(LOSSES[1]), on="encoders", whose="ours")  # fmt: skip
section.claim("no-collapse-centred", "beyond App. I",
    "It keeps it from that where Z is taken about the mean of all features.",
    *_keeps(LOSSES[2]), on="encoders", whose="ours")  # fmt: skip


def slowest(study: xr.Dataset) -> xr.Dataset:
    """The runs of Fig. 8, left: large weights, least decay."""
    large = select(study, label=LARGE)
    return select(large, weight_decay=float(large.weight_decay.min()))


def _large(words: str, measure: Callable[[xr.Dataset], Any], bound: Bound) -> Part:
    return Part(f"large weights: {words}", lambda study: measure(slowest(study)), bound)


section.claim(
    "fig8a",
    "Fig. 8, left",
    "MNIST groks when the initial weights are large; our control, usual ones, does not.",
    _large("test accuracy at t_train / at the end", lambda one: one.then / one.end, at_most(0.5)),
    _large("test accuracy at the end", lambda one: one.end, at_least(0.8)),
    _large("t_test / t_train", lambda one: one.t_test / one.t_train, at_least(3)),
    Part("usual weights: t_test / t_train", lambda study: select(study, label=USUAL).t_test
         / select(study, label=USUAL).t_train, at_most(2)),
    on="image_waits",
)  # fmt: skip


def _later(undecayed: xr.Dataset, decayed: xr.Dataset) -> float:
    """How many times as long the test images take without decay as with the least; medians."""
    without, least = (one.reached_test_accuracy.fillna(np.inf) for one in (undecayed, slowest(decayed)))
    return float(median(without) / median(least))


section.claim(
    "undecayed",
    "beside Fig. 8, left",
    "Without any weight decay MNIST groks as well, not much later, and while the weights have hardly shrunk.",
    Part("t_test / t_train", lambda record: record.reached_test_accuracy / record.reached_train_accuracy, at_least(3),
         times, every=True),
    Part("t_test without decay / with the least", _later, at_most(2), times, on=("image_undecayed", "image_curves")),
    Part("norm of the weights then / at the start", shrunk, at_least(0.9), every=True),
    on="image_undecayed",
    forecast="1.5 and 0.95: in the map, seen before, times level off towards small decays",
    whose="ours",
)  # fmt: skip


def _between(study: xr.Dataset) -> int:
    """Cells of grokking that no cell of comprehension exceeds in decay or rate, or that exceed all of them in both."""
    late, clear = (np.argwhere(map_of(study).phases == code) for code in (GROKKING, COMPREHENSION))
    return sum(not any((one < other).any() for other in clear) or bool((one > clear).all()) for one in late)


section.claim(
    "fig8b",
    "Fig. 8, right",
    "MNIST has the phases too: memorisation at low decay and rate, confusion at high.",
    Part("least rate and decay", lambda study: map_of(study).phases[0, 0], exactly(MEMORISATION), phase_name),
    Part("highest rate and decay", lambda study: map_of(study).phases[-1, -1], exactly(CONFUSION), phase_name),
    Part("comprehension and grokking that occur, of two",
         lambda study: len({*map_of(study).phases.ravel().tolist()} & {COMPREHENSION, GROKKING}), exactly(2)),
    Part("cells of grokking beyond all of comprehension", _between, exactly(0)),
    Part("highest decay, least rate", lambda study: map_of(study).phases[-1, 0],
         Bound("not {}", (CONFUSION,), lambda code: code != CONFUSION), phase_name),
    on="image_phases",
)  # fmt: skip


def _steepness(study: xr.Dataset) -> float:
    """How steeply the wait grows at the lower end of sizes, on logarithmic axes, over how steeply above."""
    wait, sizes = median(study.steps[0], axis=0), study.images.values
    few, rest = (np.log(wait[a] / wait[b]) / np.log(sizes[b] / sizes[a]) for a, b in ((0, 1), (1, -1)))
    return float(few / rest)


def _rises(study: xr.Dataset) -> float:
    """The second largest factor by which the median wait grows from one size to the next, or the largest above 1.1."""
    wait = median(study.steps[0], axis=0)
    factors = np.sort(wait[1:] / wait[:-1])[::-1]
    return float(factors[0] if factors[0] > 1.1 else factors[1])


section.claim(
    "fig20",
    "Fig. 20",
    "The time to generalise grows rapidly once there are fewer images than some number.",
    Part("largest growth of t_test with the number of images, one of up to 1.1 left out", _rises, at_most(1)),
    Part("t_test of the fewest images / of the most",
         lambda study: float(median(study.steps[0, :, 0])) / min(float(median(study.steps[0, :, -1])), 1e9),
         at_least(1.8)),
    Part("power of the number that t_test goes with, at the lower end / above", _steepness, at_least(2)),
    on="image_times",
    forecast="2,375 to 1,100 steps from 30 to 797 digits",
)  # fmt: skip
