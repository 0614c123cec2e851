"""Everything the Liu chapter trains. Factories with the paper's settings as defaults; each returns an experiment.

Learning rates and weight decays come in two groups, one for the embeddings ``W_E`` and one for the decoder. Where
the paper gives no setting, the one of the authors' public code is taken, or ours, as the page says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from grokbook.book.parameters import several, whole
from grokbook.chapters.liu.theory import THRESHOLD
from grokbook.chapters.liu.training import solvable_seeds
from grokbook.images import ImageTask
from grokbook.models.dense import DenseNet
from grokbook.models.encoder import PairEncoder
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask, GroupTask, ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule, Watch

EMBEDDING_RATE, DECODER_RATE = 1e-3, 1e-4
STRUCTURED = 0.95  # of the representation quality index, figs 4 (b), 5 (b) and 18 (b)

# The published cross-entropy is averaged over the classes too. Dividing a loss by 19 changes nothing under Adam but
# the size of eps.
CLASS_MEAN_EPS = 1e-8


def two_groups(
    decoder: float = DECODER_RATE,
    decay: float = 0.0,
    embedding: float = EMBEDDING_RATE,
    *,
    embedding_decay: float = 0.0,
    eps: float = 1e-8,
) -> AdamW:
    """AdamW with a learning rate and weight decay for the decoder and others for the embeddings."""
    return AdamW(decoder, decay, eps=eps, groups=(Group("W_E", embedding, embedding_decay),))


def toy_run(task: AdditionTask, optimizer: AdamW, steps: int, seed: int, label: str = "", **settings: Any) -> Run:
    """The toy model on an addition task: regression where the task has targets, else classification."""
    regression = task.target_size > 0
    size = task.target_size if regression else task.labels
    model = AdditionDecoder(task.p, outputs=size, **settings)
    return Run(task, model, optimizer, steps, seed, "mse" if regression else "cross_entropy", label=label)


# --- phase diagrams: figures 6 and 13 to 15 -----------------------------------------------------------------

BOTH_REACHED = Watch((("train_accuracy", THRESHOLD), ("test_accuracy", THRESHOLD)))
PUBLISHED_SEED = {"regression": 58, "classification": 6, "group": 0}
RATES_A = tuple(float(10**e) for e in np.linspace(-5, -2, 13))
RATES = tuple(float(10**e) for e in np.linspace(-5, -2, 16))
DECAYS = {
    "regression": tuple(map(float, range(11))),
    "classification": tuple(map(float, range(0, 21, 2))),
    "group": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0),
}


def _every(values: Any, coarseness: int) -> Any:
    """The first value and every ``coarseness``-th after it.

    Raises:
        ValueError: a coarseness that is no whole number of at least 1.
    """
    whole("coarseness", coarseness, 1)
    return values[::coarseness]


def _diagram(name: str, runs: Sequence[Run], **changes: Any) -> Experiment:
    """A phase diagram: cells and seeds side by side; a run leaves when both accuracies have been reached."""
    settings: dict[str, Any] = {"schedule": Schedule(log=40), "watch": BOTH_REACHED, "snapshots": (-1,), **changes}
    return Experiment(f"liu/{name}", tuple(runs), keep=("W_E",), **settings)


def _published(p: int, train_size: int, kind: str) -> tuple[AdditionTask, dict[str, Any], float]:
    """Task, further settings of the model, and eps of the published diagrams (b) and (c)."""
    task = AdditionTask(p, train_size, 30 if kind == "regression" else 0, recipe="diagram")
    return task, {"recipe": "diagram"}, 1e-8 if kind == "regression" else CLASS_MEAN_EPS * task.labels


def phases_rates(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (a): embedding against decoder learning rate, on the published split. Every cell a run."""
    task, model, eps = _published(p, train_size, "regression")
    rates = _every(RATES_A, coarseness)
    runs = [
        toy_run(task, two_groups(decoder, 0.0, embedding, eps=eps), steps, PUBLISHED_SEED["regression"], **model)
        for embedding in rates
        for decoder in rates
    ]
    return _diagram("phases_rates", runs)


def _decay_runs(
    kind: str, p: int, train_size: int, steps: int, coarseness: int, seeds: Sequence[int] | None
) -> list[Run]:
    """Decoder learning rate against decoder weight decay; ``seeds`` None is the published split."""
    if seeds is None:
        task, model, eps = _published(p, train_size, kind)
        seeds = (PUBLISHED_SEED[kind],)
    else:
        task, model = AdditionTask(p, train_size, 30 if kind == "regression" else 0), dict[str, Any]()
        eps = 1e-8 if kind == "regression" else CLASS_MEAN_EPS * task.labels
    return [
        toy_run(task, two_groups(rate, decay, eps=eps), steps, seed, **model)
        for decay in _every(DECAYS[kind], coarseness)
        for rate in _every(RATES, coarseness)
        for seed in seeds
    ]


def phases_regression(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (b): decoder learning rate against weight decay, on the published split."""
    return _diagram("phases_regression", _decay_runs("regression", p, train_size, steps, coarseness, None))


def phases_classification(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (c): the same for classification."""
    return _diagram("phases_classification", _decay_runs("classification", p, train_size, steps, coarseness, None))


def _group_runs(train_size: int, steps: int, coarseness: int, seeds: Sequence[int]) -> list[Run]:
    """As behind the published diagram, whose step counts tell: no shrinkage, and matrices that start ten times larger
    than in the code that was released with it."""
    task = GroupTask("S3", train_size, recipe="diagram")
    model = ProductDecoder(task.labels, init_scale=1.0, shrinkage=0.0, recipe="diagram")
    return [
        Run(task, model, two_groups(rate, decay), steps, seed)
        for decay in _every(DECAYS["group"], coarseness)
        for rate in _every(RATES, coarseness)
        for seed in seeds
    ]


def phases_group(train_size: int = 24, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (d): the same for the permutation group S3, on the published split."""
    return _diagram("phases_group", _group_runs(train_size, steps, coarseness, (PUBLISHED_SEED["group"],)))


def phases_rates_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (a) over several splits that determine every held-out answer."""
    rates, task = _every(RATES_A, coarseness), AdditionTask(p, train_size)
    runs = [
        toy_run(task, two_groups(decoder, 0.0, embedding), steps, seed)
        for embedding in rates
        for decoder in rates
        for seed in solvable_seeds(p, train_size, seeds)
    ]
    return _diagram("phases_rates_splits", runs)


def phases_regression_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (b) over several splits that determine every held-out answer."""
    chosen = solvable_seeds(p, train_size, seeds)
    return _diagram("phases_regression_splits", _decay_runs("regression", p, train_size, steps, coarseness, chosen))


def phases_classification_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (c) over several splits that determine every held-out answer."""
    task = AdditionTask(p, train_size, 0)
    chosen = solvable_seeds(p, train_size, seeds, task.target_size)
    return _diagram(
        "phases_classification_splits", _decay_runs("classification", p, train_size, steps, coarseness, chosen)
    )


def phases_group_splits(train_size: int = 24, steps: int = 100_000, coarseness: int = 1, seeds: int = 3) -> Experiment:
    """Fig. 6 (d) over several splits."""
    return _diagram("phases_group_splits", _group_runs(train_size, steps, coarseness, range(1, 1 + seeds)))


def _knob_diagram(
    name: str, knob: str, values: Sequence[float], p: int, train_size: int, steps: int, coarseness: int, seeds: int
) -> Experiment:
    """Decoder learning rate against one other setting, for regression and classification, over several splits."""
    runs = []
    for kind, target_size in (("regression", 30), ("classification", 0)):
        task = AdditionTask(p, train_size, target_size)
        eps = 1e-8 if target_size else CLASS_MEAN_EPS * task.labels
        for value in values:
            embedding_decay = value if knob == "embedding_decay" else 0.0
            model = {"init_scale": value} if knob == "init_scale" else {}
            for rate in _every(KNOB_RATES, coarseness):
                for seed in solvable_seeds(p, train_size, seeds, target_size):
                    optimizer = two_groups(rate, embedding_decay=embedding_decay, eps=eps)
                    run = toy_run(task, optimizer, steps, seed, kind, **model)
                    if knob == "batch_size" and value < train_size:
                        run = dataclasses.replace(run, batch_size=int(value))
                    runs.append(run)
    return _diagram(name, runs)


KNOB_RATES = tuple(float(10**e) for e in np.linspace(-4, -2, 9))
BATCH_SIZES = (45, 25, 15, 9, 5, 3)
INIT_SCALES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
EMBEDDING_DECAYS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


def phases_batch(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 13: decoder learning rate against batch size. The paper's batch sizes are not stated."""
    return _knob_diagram(
        "phases_batch", "batch_size", _every(BATCH_SIZES, coarseness), p, train_size, steps, coarseness, seeds
    )


def phases_scale(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 14: decoder learning rate against the initial size of the embeddings."""
    return _knob_diagram(
        "phases_scale", "init_scale", _every(INIT_SCALES, coarseness), p, train_size, steps, coarseness, seeds
    )


def phases_decay(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 15: decoder learning rate against the weight decay of the embeddings."""
    return _knob_diagram(
        "phases_decay", "embedding_decay", _every(EMBEDDING_DECAYS, coarseness), p, train_size, steps, coarseness, seeds
    )


# --- the toy model: figures 2 to 5, 10 and 12 ---------------------------------------------------------------

SIZES = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 54)
TIME_SIZES = (15, 18, 20, 22, 25, 28, 30, 33, 36, 39, 42, 45, 48, 50, 52, 54)
FAST_EMBEDDINGS, DEFAULT_RATES = "embeddings 1e-2", "embeddings 1e-3"


def sizes_of(p: int, sizes: Sequence[int]) -> list[int]:
    """Training set sizes given for p = 10, at the same share of all samples of another p.

    Raises:
        ValueError: a size that is not from 1 to 54.
    """
    several("sizes", list(sizes), partial(whole, least=1, most=54))
    samples = p * (p + 1) // 2
    return sorted({min(max(round(size / 55 * samples), 1), samples - 1) for size in sizes})


def fractions(p: int = 10, steps: int = 5_000, seeds: int = 10, sizes: Sequence[int] = SIZES) -> Experiment:
    """Figs 3 and 10: accuracy and structure after training on more or less of the table."""
    return Experiment(
        "liu/fractions",
        tuple(
            toy_run(AdditionTask(p, size), two_groups(), steps, seed)
            for size in sizes_of(p, sizes)
            for seed in range(seeds)
        ),
        Schedule(log=30),
        ("rqi",),
        snapshots=(-1,),
        keep=("W_E",),
    )


def structure_times(p: int = 10, steps: int = 10_000, seeds: int = 10, sizes: Sequence[int] = TIME_SIZES) -> Experiment:
    """Figs 4 (b) and 5 (b): when the representation is there, for two learning rates of the embeddings."""
    conditions = ((FAST_EMBEDDINGS, 1e-2), (DEFAULT_RATES, EMBEDDING_RATE))
    return Experiment(
        "liu/structure_times",
        tuple(
            toy_run(AdditionTask(p, size), two_groups(embedding=rate), steps, seed, label)
            for label, rate in conditions
            for size in sizes_of(p, sizes)
            for seed in range(seeds)
        ),
        Schedule(log=20),
        ("rqi",),
        snapshots=(0, -1),
        keep=("W_E",),
        watch=Watch((("rqi", STRUCTURED),)),
    )


def trajectory(p: int = 10, train_size: int = 45, steps: int = 2_000, seed: int = 58, frames: int = 100) -> Experiment:
    """Fig. 4 (d): the embeddings of one network on their way to a line."""
    return Experiment(
        "liu/trajectory",
        (toy_run(AdditionTask(p, train_size), two_groups(), steps, seed),),
        Schedule(log=40, every=max(1, steps // 100)),
        ("rqi",),
        snapshots=tuple(dict.fromkeys(round(steps * i / frames) for i in range(frames + 1))),
        keep=("W_E",),
        watch=Watch((*BOTH_REACHED.thresholds, ("rqi", STRUCTURED)), every=1, leave=False),
    )


FOUR_SYMBOLS = ((0, 2), (1, 1), (0, 3), (1, 2), (1, 3), (2, 2))
FAST_DECODER, SLOW_DECODER = "decoder 1e-2, embeddings 1e-3", "decoder 1e-3, embeddings 1e-2"


def four_symbols(steps: int = 1_500, seeds: int = 20) -> Experiment:
    """Fig. 12: which of the three equations among four symbols a fast and a slow decoder leave standing."""
    task = AdditionTask.of_pairs(FOUR_SYMBOLS, 4)
    return Experiment(
        "liu/four_symbols",
        tuple(
            toy_run(task, two_groups(decoder, embedding=embedding), steps, seed, label)
            for label, decoder, embedding in ((FAST_DECODER, 1e-2, 1e-3), (SLOW_DECODER, 1e-3, 1e-2))
            for seed in range(seeds)
        ),
        Schedule(log=40),
        snapshots=(-1,),
        keep=("W_E",),
    )


PLANES = ("a", "b", "c", "d")


def planes(p: int = 11, seeds: int = 8, shorten: int = 1) -> Experiment:
    """Fig. 2: embeddings in a plane and what the decoder makes of it, for four settings.

    The network of (a) is as deep as the text says, with an activation after every hidden layer. The settings of (d)
    are ours. ``shorten`` divides the numbers of steps.
    """
    unordered, ordered = p * (p + 1) // 2, p * p
    mean: dict[str, Any] = {"input_scale": 0.5}
    rows: tuple[tuple[str, AdditionTask, dict[str, Any], AdamW, int, str], ...] = (
        (
            "a",
            AdditionTask(p, round(0.7 * unordered), 0),
            {"hidden": (256,) * 7, **mean},
            two_groups(1e-3, 0.0, 2e-4),
            401,
            "mse",
        ),
        (
            "b",
            AdditionTask(p, round(0.8 * ordered), 0, ordered=True),
            {"hidden": (128,) * 2, "normal": 1.0, **mean},
            two_groups(9e-5, 5.0, 1e-3),
            20_000,
            "mse",
        ),
        (
            "c",
            AdditionTask(p, round(0.8 * unordered), 0, modular=True),
            {"hidden": (256,) * 5},
            two_groups(1e-5, 10.0, 1e-3),
            10_000,
            "cross_entropy",
        ),
        (
            "d",
            AdditionTask(p, round(0.8 * unordered), 0, modular=True),
            {"hidden": (128,) * 2},
            two_groups(5e-4, 10.0, 3e-3),
            8_000,
            "cross_entropy",
        ),
    )
    runs = []
    for label, task, settings, optimizer, steps, loss in rows:
        model = AdditionDecoder(p, 2, outputs=task.labels, activation="relu", **settings)
        runs += [Run(task, model, optimizer, max(1, steps // shorten), s, loss, label=label) for s in range(seeds)]
    return Experiment("liu/planes", tuple(runs), Schedule(log=60), snapshots=(-1,), keep=("W_E", "decoder_map"))


# --- beyond the paper ---------------------------------------------------------------------------------------

MODULI = (5, 10, 15, 20, 30)


def critical_sizes(
    moduli: Sequence[int] = MODULI,
    steps: int = 10_000,
    seeds: int = 5,
    shares: Sequence[float] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
) -> Experiment:
    """How much of the table a network needs before it finds the line, against the number of symbols."""
    several("moduli", list(moduli), partial(whole, least=4))  # of fewer symbols no parallelogram is implied
    return Experiment(
        "liu/critical_sizes",
        tuple(
            toy_run(
                AdditionTask(p, min(max(round(share * p * (p + 1) / 2), 1), p * (p + 1) // 2 - 1)),
                two_groups(embedding=1e-2),
                steps,
                seed,
                f"p = {p}",
            )
            for p in moduli
            for share in shares
            for seed in range(seeds)
        ),
        Schedule(log=20),
        ("rqi",),
        snapshots=(-1,),
        keep=(),
        watch=Watch((("rqi", STRUCTURED),), every=20),
    )


def dimensions(
    p: int = 10, train_size: int = 45, steps: int = 20_000, seeds: int = 5, values: Sequence[int] = (1, 2, 3, 4, 8)
) -> Experiment:
    """Appendix D's caveat: in more dimensions a decoder may ignore some, and the index counts them all."""
    return Experiment(
        "liu/dimensions",
        tuple(
            toy_run(AdditionTask(p, train_size), two_groups(decay=decay), steps, seed, f"decay {decay:g}", dimension=d)
            for decay in (0.0, 5.0)
            for d in values
            for seed in solvable_seeds(p, train_size, seeds)
        ),
        Schedule(log=30),
        ("rqi",),
        snapshots=(-1,),
        keep=("rqi",),
    )


# --- S3: figures 17 and 18 ----------------------------------------------------------------------------------


def group_fractions(
    steps: int = 10_000, seeds: int = 11, sizes: Sequence[int] = (12, 15, 18, 21, 24, 27, 30, 33)
) -> Experiment:
    """Figs 17 and 18: matrices for the six permutations of three things. Learning rate and decay are ours."""
    return Experiment(
        "liu/group_fractions",
        tuple(
            Run(GroupTask("S3", size), ProductDecoder(6), two_groups(1e-3, 30.0), steps, seed)
            for size in sizes
            for seed in range(seeds)
        ),
        Schedule(log=40),
        ("s3_rqi",),
        snapshots=(-1,),
        keep=("W_E",),
        watch=Watch((("s3_rqi", STRUCTURED),), leave=False),
    )


# --- images: figures 8 and 20 -------------------------------------------------------------------------------

IMAGES_REACHED = Watch((("train_accuracy", THRESHOLD), ("test_accuracy", 0.6)), every=25, leave=False)


@dataclasses.dataclass(frozen=True)
class ImageSetting:
    """What differs between the bundled digits and MNIST, whose settings are the paper's or its authors' code's."""

    train_size: int
    batch_size: int | None
    steps: int
    decays: tuple[float, ...]
    sizes: tuple[int, ...]
    size_decay: float
    size_steps: int
    phase_batch: int
    phase_steps: int


IMAGE_SETTINGS = {
    "digits": ImageSetting(200, None, 20_000, (0.1, 0.2, 0.5), (30, 50, 100, 200, 400, 797), 0.5, 3_000, 100, 10_000),
    "mnist": ImageSetting(1_000, 200, 100_000, (0.01,), (250, 500, 1000, 2000, 4000), 0.01, 100_000, 200, 100_000),
}
LARGE, USUAL = "initial weights × 8", "initial weights × 1"


def image_task(train_size: int, mnist_dir: str = "") -> ImageTask:
    """The bundled digits, or MNIST where a folder is named."""
    return ImageTask(train_size, "mnist", mnist_dir) if mnist_dir else ImageTask(train_size)


def _image_run(
    task: ImageTask, optimizer: AdamW, steps: int, seed: int, batch_size: int | None, alpha: float = 8.0
) -> Run:
    model = DenseNet((task.pixels, 200, 200, 10), init_scale=alpha)
    label = LARGE if alpha > 1 else USUAL
    return Run(task, model, optimizer, steps, seed, "mse", batch_size and min(batch_size, task.train_size), label)


def image_curves(mnist_dir: str = "", steps: int | None = None, seeds: int = 3) -> Experiment:
    """Fig. 8, left: grokking of images when initial weights are large, and not when they are usual."""
    setting = IMAGE_SETTINGS["mnist" if mnist_dir else "digits"]
    task = image_task(setting.train_size, mnist_dir)
    conditions = [(8.0, decay) for decay in setting.decays] + [(1.0, setting.decays[0])]
    return Experiment(
        "liu/image_curves",
        tuple(
            _image_run(task, AdamW(1e-3, decay), steps or setting.steps, seed, setting.batch_size, alpha)
            for alpha, decay in conditions
            for seed in range(seeds)
        ),
        Schedule(log=150),
        ("weight_norm",),
        watch=IMAGES_REACHED,
    )


def image_phases(
    mnist_dir: str = "", steps: int | None = None, seeds: int = 3, coarseness: int = 1, train_size: int | None = None
) -> Experiment:
    """Fig. 8, right: weight decay against the learning rate of the last layer. The paper's ranges are not stated."""
    setting = IMAGE_SETTINGS["mnist" if mnist_dir else "digits"]
    task = image_task(train_size or setting.train_size, mnist_dir)
    return Experiment(
        "liu/image_phases",
        tuple(
            _image_run(
                task,
                AdamW(1e-3, float(decay), groups=(Group("W_2", float(rate)), Group("b_2", float(rate)))),
                steps or setting.phase_steps,
                seed,
                setting.phase_batch,
            )
            for decay in _every(np.logspace(-2, 1.5, 8), coarseness)
            for rate in _every(np.logspace(-5, -1, 9), coarseness)
            for seed in range(seeds)
        ),
        Schedule(log=30),
        watch=dataclasses.replace(IMAGES_REACHED, leave=True),
    )


def image_sizes(mnist_dir: str = "", steps: int | None = None, seeds: int = 3) -> Experiment:
    """Fig. 20: when images are generalised against how many there are to learn from. Sizes are ours."""
    setting = IMAGE_SETTINGS["mnist" if mnist_dir else "digits"]
    return Experiment(
        "liu/image_sizes",
        tuple(
            _image_run(
                image_task(size, mnist_dir),
                AdamW(1e-3, setting.size_decay),
                steps or setting.size_steps,
                seed,
                setting.batch_size,
            )
            for size in setting.sizes
            for seed in range(seeds)
        ),
        Schedule(log=60, every=25),
        watch=IMAGES_REACHED,
    )


# --- the transformer: figures 1, 7, 21 and 22 ---------------------------------------------------------------

TRANSFORMER_REACHED = Watch((("train_accuracy", 0.99), ("test_accuracy", 0.99)), leave=False)
FREE = "embeddings without decay"
# label, embedding learning rate and decay, decoder learning rate and decay
PAPER_CONDITIONS = ((FREE, 1e-3, 0.0, 2e-4, 1.0),)


def _modular_run(
    task: ModularTask, model: PairEncoder, optimizer: AdamW, steps: int, seed: int, label: str = ""
) -> Run:
    return Run(task, model, optimizer, steps, seed, "cross_entropy", label=label)


def ring(
    p: int = 59,
    d_model: int = 256,
    layers: int = 2,
    hidden: int = 128,
    dropout: float = 0.05,
    steps: int = 20_000,
    seeds: int = 10,
    conditions: Sequence[tuple[str, float, float, float, float]] = PAPER_CONDITIONS,
) -> Experiment:
    """Figs 1, 7 (left) and 21: a transformer's embeddings on their way, and how many dimensions they fill."""
    task, model = ModularTask(p, "n + m", 0.8), PairEncoder(p, d_model, layers, hidden, dropout)
    return Experiment(
        "liu/ring",
        tuple(
            _modular_run(task, model, two_groups(rate, decay, embedding, embedding_decay=less), steps, seed, label)
            for label, embedding, less, rate, decay in conditions
            for seed in range(seeds)
        ),
        Schedule(log=40, every=max(1, steps // 100)),
        ("effective_dimension",),
        snapshots=tuple(dict.fromkeys((0, min(1_000, steps // 2) if steps > 5_000 else steps // 10, -1))),
        keep=("W_E",),
        watch=TRANSFORMER_REACHED,
    )


def components(
    p: int = 59,
    d_model: int = 256,
    layers: int = 2,
    hidden: int = 128,
    steps: int = 20_000,
    seeds: int = 3,
    frames: int = 16,
    condition: tuple[str, float, float, float, float] = PAPER_CONDITIONS[0],
) -> Experiment:
    """Fig. 22: all weights at some steps, to ask afterwards how few components of the embeddings would have done."""
    task, model = ModularTask(p, "n + m", 0.8), PairEncoder(p, d_model, layers, hidden)
    label, embedding, less, rate, decay = condition
    blocks = [f"{name}_{block}" for block in range(layers) for name in PairEncoder.block_names]
    at = sorted({0, *np.geomspace(max(1, steps // 100), steps, frames - 1).round().astype(int).tolist()})
    return Experiment(
        "liu/components",
        tuple(
            _modular_run(task, model, two_groups(rate, decay, embedding, embedding_decay=less), steps, seed, label)
            for seed in range(seeds)
        ),
        Schedule(log=60),
        snapshots=tuple(at),
        keep=("W_E", *blocks, "W_U", "b_U"),
        watch=TRANSFORMER_REACHED,
    )


def dropout_rates(count: int) -> tuple[float, ...]:
    """So many rates from 0 to 0.5."""
    return tuple(np.linspace(0, 0.5, count).tolist())


def dropout_times(
    p: int = 53,
    d_model: int = 256,
    layers: int = 2,
    hidden: int = 256,
    rate: float = 1e-3,
    steps: int = 100_000,
    seeds: int = 3,
    probabilities: Sequence[float] | None = None,
) -> Experiment:
    """Fig. 7, centre: dropout in the decoder shortens the wait."""
    return Experiment(
        "liu/dropout_times",
        tuple(
            Run(
                ModularTask(p, "n + m", 0.8),
                PairEncoder(p, d_model, layers, hidden, probability),
                two_groups(rate, 0.0, rate),
                steps,
                seed,
                "cross_entropy",
            )
            for probability in probabilities or dropout_rates(10)
            for seed in range(1, 1 + seeds)
        ),
        Schedule(log=60),
        watch=dataclasses.replace(TRANSFORMER_REACHED, every=20, leave=True),
    )


TRANSFORMER_RATES = tuple(np.geomspace(1.5e-7, 6e-2, 15).tolist())
TRANSFORMER_DECAYS = tuple(np.exp(np.linspace(-4, 3, 15)).tolist())


def phases_transformer(
    p: int = 53,
    d_model: int = 256,
    layers: int = 2,
    hidden: int = 256,
    steps: int = 100_000,
    seeds: int = 1,
    rates: Sequence[float] = TRANSFORMER_RATES,
    decays: Sequence[float] = TRANSFORMER_DECAYS,
) -> Experiment:
    """Fig. 7, right: decoder learning rate against weight decay; ranges as read off the published image."""
    task, model = ModularTask(p, "n + m", 0.8), PairEncoder(p, d_model, layers, hidden)
    return Experiment(
        "liu/phases_transformer",
        tuple(
            Run(task, model, two_groups(rate, decay), steps, seed, "cross_entropy")
            for decay in decays
            for rate in rates
            for seed in range(1, 1 + seeds)
        ),
        Schedule(log=40),
        watch=dataclasses.replace(BOTH_REACHED, every=20),
    )


# What may stand in where the full experiment has no record, the largest first.
SMALL = {"p": 23, "d_model": 64, "layers": 1, "hidden": 64}
REDUCED: dict[str, tuple[Callable[[], Experiment], ...]] = {
    "phases_rates": (lambda: phases_rates(steps=10_000, coarseness=2),),
    "phases_regression": (lambda: phases_regression(steps=10_000, coarseness=2),),
    "phases_classification": (lambda: phases_classification(steps=10_000, coarseness=2),),
    "phases_group": (lambda: phases_group(steps=10_000, coarseness=2),),
    **{
        factory.__name__: (partial(factory, coarseness=2), partial(factory, steps=10_000, coarseness=2))
        for factory in (
            phases_rates_splits,
            phases_regression_splits,
            phases_classification_splits,
            phases_group_splits,
            phases_batch,
            phases_scale,
            phases_decay,
        )
    },
    "image_phases": (lambda: image_phases(steps=2_500, seeds=1),),
    "ring": (lambda: ring(seeds=2), lambda: ring(steps=6_000, seeds=2)),
    # All weights at 16 steps: 24 MB at the paper's size, and 6,000 steps are too few there.
    "components": (lambda: components(**SMALL, steps=3_000, condition=(FREE, 5e-3, 0.0, 5e-3, 2.0)),),
    "dropout_times": (lambda: dropout_times(steps=3_000, seeds=1, probabilities=dropout_rates(6)),),
    "phases_transformer": (
        lambda: phases_transformer(
            **SMALL,
            steps=6_000,
            rates=np.geomspace(1e-5, 3e-2, 7).tolist(),
            decays=np.geomspace(0.02, 20, 7).tolist(),
        ),
    ),
}

EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    factory.__name__: factory
    for factory in (
        phases_rates,
        phases_regression,
        phases_classification,
        phases_group,
        phases_rates_splits,
        phases_regression_splits,
        phases_classification_splits,
        phases_group_splits,
        phases_batch,
        phases_scale,
        phases_decay,
        fractions,
        structure_times,
        trajectory,
        four_symbols,
        planes,
        critical_sizes,
        dimensions,
        group_fractions,
        image_curves,
        image_phases,
        image_sizes,
        ring,
        components,
        dropout_times,
        phases_transformer,
    )
}
