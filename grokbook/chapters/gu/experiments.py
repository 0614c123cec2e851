"""What the Gu chapter trains. Every factory's defaults are the settings its figure is committed with.

The papers state one layer, alpha = 0.3 and weight decay 1 unless they say otherwise; widths, seeds, run lengths and
the positional table are left open almost everywhere. What is open follows the released scripts or is chosen here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.theory import TABLE_1
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.pair_transformer import PairTransformer, Start
from grokbook.optim import WarmAdamW
from grokbook.train.experiment import Experiment, Run, Schedule, Stop, WindowedSchedule

OPTIMIZER = WarmAdamW(lr=1e-3, weight_decay=1.0, betas=(0.9, 0.98))
TRACKED = ("med", "total_norm")  # MED in all its forms and what it must beat
QUADRATIC = "n**2 + n*m + m**2"
SQUARES = tuple(row.size for row in TABLE_1 if row.kind == "square")
STRIPS = tuple(row.size for row in TABLE_1 if row.kind == "strip")
STARTS: tuple[Start, ...] = ("gaussian", "toeplitz", "matched")


def _every(seeds: int, conditions: Iterable[tuple[str, Any, Any, int]], split_seed: int | None = None) -> list[Run]:
    """Runs of conditions (label, task, model, steps), all of one seed before those of the next."""
    conditions = list(conditions)
    return [
        Run(task, model, OPTIMIZER, steps, seed, "cross_entropy", label=label)
        for seed in range(seeds)
        for label, task, model, steps in conditions
    ]


def base(
    p: int = 97, d_model: int = 128, train_fraction: float = 0.3, f: str = "n + m", seeds: int = 3, steps: int = 15_000
) -> Experiment:
    """Section 6.1's random baseline, and p = 97 of figure 5: every 10 steps, and ten windows of single steps."""
    task, model = HoledTask(p, f, train_fraction), PairTransformer(p, d_model)
    return Experiment(
        "gu/base",
        tuple(_every(seeds, [(f"p = {p}", task, model, steps)])),
        WindowedSchedule(log=60, every=10),
        (*TRACKED, "accuracy_by_place"),
        snapshots=tuple(dict.fromkeys(round(steps * i / 30) for i in range(31))),
        keep=("W_E",),
    )


def primes(
    moduli: Sequence[int] = (47, 211),
    d_model: int = 128,
    train_fraction: float = 0.3,
    seeds: int = 3,
    steps: Sequence[int] = (30_000, 6_000),
) -> Experiment:
    """Figure 5: loss, MED and accuracy for other primes than 97."""
    return Experiment(
        "gu/primes",
        tuple(
            _every(
                seeds,
                (
                    (f"p = {p}", HoledTask(p, "n + m", train_fraction), PairTransformer(p, d_model), count)
                    for p, count in zip(moduli, steps, strict=True)
                ),
            )
        ),
        WindowedSchedule(log=60, every=10),
        TRACKED,
    )


def largest_prime(
    p: int = 379, d_model: int = 128, train_fraction: float = 0.3, seeds: int = 3, steps: int = 4_000
) -> Experiment:
    """Figure 5: the largest prime, which costs more than all others."""
    return dataclasses.replace(primes((p,), d_model, train_fraction, seeds, (steps,)), name="gu/largest_prime")


def holes(
    p: int = 97,
    d_model: int = 128,
    train_fraction: float = 0.3,
    f: str = "n + m",
    squares: Sequence[int] = SQUARES,
    strips: Sequence[int] = STRIPS,
    split: str = "code",
    seeds: int = 3,
    steps: int = 10_000,
) -> Experiment:
    """Table 1: training sets that leave out a square or a strip, drawn as the released scripts do."""
    rows = [("square", size) for size in squares] + [("strip", size) for size in strips]
    model = PairTransformer(p, d_model)
    return Experiment(
        "gu/holes",
        tuple(
            _every(
                seeds,
                (
                    (f"{kind} {size}", HoledTask(p, f, train_fraction, kind, size, split), model, steps)
                    for kind, size in rows
                ),
            )
        ),
        Schedule(log=60, every=20),
        (*TRACKED, "accuracy_by_place"),
        snapshots=(-1,),
        keep=("correct",),
    )


def holes_by_text(
    p: int = 97,
    d_model: int = 128,
    train_fraction: float = 0.3,
    f: str = "n + m",
    squares: Sequence[int] = SQUARES,
    strips: Sequence[int] = STRIPS,
    seeds: int = 3,
    steps: int = 10_000,
) -> Experiment:
    """Table 1 again with the split that the text describes: the fraction of what the hole leaves."""
    found = holes(p, d_model, train_fraction, f, squares, strips, "text", seeds, steps)
    return dataclasses.replace(found, name="gu/holes_by_text")


def fractions(
    p: int = 97,
    d_model: int = 128,
    f: str = QUADRATIC,
    train_fractions: Sequence[float] = (0.5, 0.6, 0.7, 0.9),
    seeds: int = 3,
    steps: int = 15_000,
) -> Experiment:
    """Figure 4: x^2 + xy + y^2 at growing training fractions; 0.9 is ours."""
    model = PairTransformer(p, d_model)
    return Experiment(
        "gu/fractions",
        tuple(_every(seeds, ((f"α = {alpha}", HoledTask(p, f, alpha), model, steps) for alpha in train_fractions))),
        Schedule(log=60, every=25),
        (*TRACKED, "accuracy_by_place"),
        snapshots=(-1,),
        keep=("correct",),
    )


def dnn(
    p: int = 97,
    d_model: int = 128,
    width: int = 512,
    train_fractions: Sequence[float] = (0.3, 0.5, 0.7),
    seeds: int = 2,
    steps: int = 15_000,
) -> Experiment:
    """Section 6.1's network with two hidden layers, on x^2 + xy + y^2 and on x + y."""
    model = EmbeddedMLP(p, d_model, width)
    return Experiment(
        "gu/dnn",
        tuple(
            _every(
                seeds,
                ((f, HoledTask(p, f, alpha), model, steps) for f in (QUADRATIC, "n + m") for alpha in train_fractions),
            )
        ),
        Schedule(log=60, every=50),
        (*TRACKED, "accuracy_by_place"),
    )


def overlap(
    p: int = 97,
    d_model: int = 128,
    train_fraction: float = 0.3,
    offsets: Sequence[int] = (0, 45, 60, 81),
    seeds: int = 3,
    steps: int = 30_000,
) -> Experiment:
    """Earlier figure 3: operands that share all, some or few of their tokens. A run ends when it has long grokked."""
    task = HoledTask(p, "n + m", train_fraction)
    return Experiment(
        "gu/overlap",
        tuple(_every(seeds, ((f"k = {k}", task, PairTransformer(p, d_model, offset=k), steps) for k in offsets))),
        Schedule(log=60, every=25),
        TRACKED,
        stop=Stop(threshold=0.999, evaluations=40),
    )


def toeplitz(
    p: int = 97,
    d_model: int = 128,
    train_fractions: Sequence[float] = (0.3, 0.25, 0.2),
    seeds: int = 3,
    steps: int = 40_000,
) -> Experiment:
    """Figure 20: a structured start of the embedding, a random one, and a random one of the same means and norms."""
    return Experiment(
        "gu/toeplitz",
        tuple(
            _every(
                seeds,
                (
                    (f"{start}", HoledTask(p, "n + m", alpha), PairTransformer(p, d_model, start=start), steps)
                    for alpha in train_fractions
                    for start in STARTS
                ),
            )
        ),
        Schedule(log=60, every=25),
        TRACKED,
        stop=Stop(evaluations=10),
    )


def layers(
    p: int = 97,
    d_model: int = 512,
    train_fraction: float = 0.3,
    offset: int | None = None,
    depths: Sequence[int] = (1, 2, 3, 4),
    seeds: int = 2,
    steps: int = 10_000,
) -> Experiment:
    """Figure 2: one to four layers, with vocabularies that share nothing unless ``offset`` says otherwise."""
    task, k = HoledTask(p, "n + m", train_fraction), p if offset is None else offset
    return Experiment(
        "gu/layers",
        tuple(
            _every(
                seeds,
                (
                    (
                        f"{depth} layer{'s' if depth > 1 else ''}",
                        task,
                        PairTransformer(p, d_model, depth, offset=k),
                        steps,
                    )
                    for depth in depths
                ),
            )
        ),
        Schedule(log=60, every=20),
        TRACKED,
    )


def _widths(
    name: str, p: int, offset: int, widths: Sequence[int], train_fraction: float, seeds: int, steps: int
) -> Experiment:
    task = HoledTask(p, "n + m", train_fraction)
    return Experiment(
        f"gu/{name}",
        tuple(_every(seeds, ((f"d = {d}", task, PairTransformer(p, d, offset=offset), steps) for d in widths))),
        Schedule(log=100, every=50),
        TRACKED,
    )


def width_apart(
    p: int = 97, offset: int = 85, widths: Sequence[int] = (128, 256), train_fraction: float = 0.3,
    seeds: int = 5, steps: int = 60_000,
) -> Experiment:  # fmt: skip
    """Figure 9, left: width where the operands share few tokens."""
    return _widths("width_apart", p, offset, widths, train_fraction, seeds, steps)


def width_shared(
    p: int = 47, widths: Sequence[int] = (64, 256), train_fraction: float = 0.3, seeds: int = 5, steps: int = 40_000
) -> Experiment:
    """Figure 9, right: width where they share all."""
    return _widths("width_shared", p, 0, widths, train_fraction, seeds, steps)


def width_ceiling(
    p: int = 43,
    widths: Sequence[int] = (128, 256, 512, 1024),
    train_fraction: float = 0.3,
    seeds: int = 3,
    steps: int = 50_000,
) -> Experiment:
    """Figure 10: how far width helps."""
    return _widths("width_ceiling", p, 0, widths, train_fraction, seeds, steps)


def width_boundary(
    p: int = 43,
    widths: Sequence[int] = (256, 512, 1024, 2048),
    train_fraction: float = 0.3,
    seeds: int = 2,
    steps: int = 200_000,
) -> Experiment:
    """Figure 11: width where the operands share nothing and data are scarce."""
    return _widths("width_boundary", p, p, widths, train_fraction, seeds, steps)


# figure of the paper -> f, width and training fraction
OPERATIONS: dict[str, tuple[str, int, float]] = {
    "fig12": ("n - m", 128, 0.3),
    "fig13": ("n*m", 128, 0.3),
    "fig14": ("n**2 + m**2", 256, 0.2),
    "fig15": ("n**3 + m**3", 128, 0.2),
    "fig16": (QUADRATIC, 128, 0.3),
    "fig17": (QUADRATIC, 256, 0.3),
    "fig18": (QUADRATIC, 256, 0.4),
    "fig19": ("n**3 + n*m + m**3", 256, 0.5),
}


def operations(
    p: int = 97, operations: Sequence[str] = tuple(OPERATIONS), d_model: int | None = None,
    train_fraction: float | None = None, seeds: int = 2, steps: int = 20_000,
) -> Experiment:  # fmt: skip
    """Figures 12 to 19: other operations, each at its figure's width and fraction unless one is given for all."""
    chosen = {name: OPERATIONS[name] for name in operations}
    return Experiment(
        "gu/operations",
        tuple(
            _every(
                seeds,
                (
                    (name, HoledTask(p, f, train_fraction or alpha), PairTransformer(p, d_model or d), steps)
                    for name, (f, d, alpha) in chosen.items()
                ),
            )
        ),
        Schedule(log=60, every=20),
        (*TRACKED, "accuracy_by_place"),
    )


def positions(
    p: int = 97,
    widths: Sequence[int] = (128, 256, 512),
    train_fraction: float = 0.3,
    seeds: int = 5,
    steps: Sequence[int] = (40_000, 30_000, 15_000),
) -> Experiment:
    """Earlier figures 19 to 21: with and without a positional table, operands that share no token."""
    task = HoledTask(p, "n + m", train_fraction)
    return Experiment(
        "gu/positions",
        tuple(
            _every(
                seeds,
                (
                    ("with" if table else "without", task, PairTransformer(p, d, offset=p, positions=table), count)
                    for d, count in zip(widths, steps, strict=True)
                    for table in (True, False)
                ),
            )
        ),
        Schedule(log=60, every=50),
        TRACKED,
        stop=Stop(evaluations=20),
    )


def seeds_apart(
    p: int = 47, d_model: int = 128, train_fraction: float = 0.3, seeds: int = 8, fixed: int = 4, steps: int = 30_000
) -> Experiment:
    """Earlier figure 22: how far seeds lie apart, and how far if all have one training set."""
    model, task = PairTransformer(p, d_model), HoledTask(p, "n + m", train_fraction)
    return Experiment(
        "gu/seeds_apart",
        tuple(
            _every(seeds, [("own split", task, model, steps)])
            + _every(fixed, [("one split", dataclasses.replace(task, split_seed=0), model, steps)])
        ),
        Schedule(log=60, every=25),
        TRACKED,
    )


def diameters(p: int = 97, d_model: int = 128, train_fraction: float = 0.3, steps: int = 40_000) -> Experiment:
    """Earlier appendix F: the embeddings of two vocabularies that share nothing."""
    task, model = HoledTask(p, "n + m", train_fraction), PairTransformer(p, d_model, offset=p)
    return Experiment(
        "gu/diameters",
        tuple(_every(1, [(f"k = {p}", task, model, steps)])),
        Schedule(log=60, every=50),
        TRACKED,
        stop=Stop(threshold=0.999, evaluations=20),
        snapshots=(0, -1),
        keep=("W_E",),
    )


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    factory.__name__: factory
    for factory in (
        base,
        holes,
        holes_by_text,
        fractions,
        dnn,
        primes,
        largest_prime,
        overlap,
        toeplitz,
        layers,
        width_apart,
        width_shared,
        width_ceiling,
        width_boundary,
        operations,
        positions,
        seeds_apart,
        diameters,
    )
}


def scaled(sizes: Sequence[int], p: int) -> tuple[int, ...]:
    """Hole sizes given for p = 97 at another modulus."""
    return tuple(round(size * p / 97) for size in sizes)


def _small(factory: Callable[..., Experiment]) -> Experiment:
    """Table 1 at p = 47, its holes as large a part of the grid."""
    sizes = {"squares": scaled(SQUARES, 47), "strips": scaled(STRIPS, 47)}
    return factory(47, 64, 0.5, **sizes, seeds=1, steps=2_500)


# What may stand in where the full experiment has no record, the largest first. Smaller tables need a larger share of
# themselves to be generalised: the fractions are such that some network of the figure is.
REDUCED: dict[str, tuple[Callable[[], Experiment], ...]] = {
    "base": (lambda: base(seeds=1), lambda: base(47, 64, 0.5, steps=3_000)),
    "holes": (lambda: holes(seeds=1), lambda: _small(holes)),
    "holes_by_text": (lambda: holes_by_text(seeds=1), lambda: _small(holes_by_text)),
    "fractions": (lambda: fractions(seeds=1), lambda: fractions(47, 64, seeds=1, steps=3_000)),
    "dnn": (lambda: dnn(47, 64, 128, seeds=1, steps=4_000),),
    "primes": (lambda: primes(seeds=1), lambda: primes((31, 61), 64, 0.5, seeds=1, steps=(3_000, 2_000))),
    "largest_prime": (
        lambda: largest_prime(seeds=1),
        lambda: largest_prime(seeds=1, steps=2_000),
        lambda: largest_prime(97, 64, 0.5, seeds=1, steps=1_000),
    ),
    "overlap": (
        lambda: overlap(seeds=1),
        lambda: overlap(31, 64, 0.8, scaled((0, 45, 60, 81), 31), seeds=3, steps=10_000),
    ),
    "toeplitz": (
        lambda: toeplitz(seeds=1),
        lambda: toeplitz(train_fractions=(0.3, 0.25), seeds=1),
        lambda: toeplitz(31, 64, (0.6, 0.55, 0.5), seeds=2, steps=8_000),
    ),
    "layers": (lambda: layers(31, 64, 0.8, seeds=1, steps=5_000),),
    "width_apart": (lambda: width_apart(31, 27, (32, 128), 0.7, seeds=3, steps=8_000),),
    "width_shared": (
        lambda: width_shared(seeds=1),
        lambda: width_shared(31, (32, 128), 0.5, seeds=2, steps=10_000),
    ),
    "width_ceiling": (lambda: width_ceiling(31, (32, 64, 128, 256), 0.5, seeds=1, steps=10_000),),
    "width_boundary": (lambda: width_boundary(31, (32, 64, 128, 256), 0.7, seeds=1, steps=10_000),),
    "operations": (
        lambda: operations(seeds=1),
        lambda: operations(43, d_model=64, train_fraction=0.7, seeds=1, steps=10_000),
    ),
    "positions": (lambda: positions(31, (64, 128, 256), 0.8, seeds=3, steps=(6_000, 4_000, 3_000)),),
    "seeds_apart": (lambda: seeds_apart(47, 64, 0.5, seeds=4, fixed=4, steps=2_500),),
    "diameters": (lambda: diameters(47, 128, 0.7, steps=10_000),),
}


def cost(experiment: Experiment) -> float:
    """PFLOP of a training, if no run leaves early: six operations a weight and sample, evaluations left out."""
    return 6e-15 * sum(
        run.steps * (run.task.train_size * _products(run.model) + _folding(run.model)) for run in experiment.runs
    )


def _folding(model: PairTransformer | EmbeddedMLP) -> int:
    """Multiplications of one step whatever the samples: of square matrices with each other."""
    return 4 * model.d_model**3 if isinstance(model, PairTransformer) else 0


def _products(model: PairTransformer | EmbeddedMLP) -> int:
    """Multiplications of one sample in one forward pass."""
    if isinstance(model, EmbeddedMLP):
        return model.width * (model.width + model.p)
    d, deeper = model.d_model, model.layers - 1
    return 4 * d * d + 5 * d * model.p + deeper * 2 * 12 * d * d
