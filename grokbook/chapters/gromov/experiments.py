"""What the Gromov chapter trains. Every factory's defaults are the settings its figure is committed with.

The paper states neither learning rates, weight decay, step counts nor seeds, and its three printed forms give three
different output scalings (see ``grokbook.models.mlp``). What it leaves open is chosen here, once, and said on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.transformer import AttentionOnly, Transformer
from grokbook.optim import SGD, Adam, AdamW, Optimizer
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule, Stop

NORMS = ("weight_norm", "gradient_norm")
WEIGHTS = ("W_in", "W_out")
FRACTIONS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
WIDTHS = (8, 12, 18, 27, 40, 60, 91, 136, 205, 307, 512)

BETAS = (0.9, 0.98)
ADAMW = AdamW(lr=0.01, weight_decay=5.0, betas=BETAS)
ADAM = Adam(lr=0.01, betas=BETAS)


def gradient_descent(
    lr: float,
    p: int,
    width: int,
    scaling: str = "input_mean_field",
    *,
    momentum: float = 0.0,
    decay: float = 0.0,
) -> SGD:
    """GD at a learning rate given for p = 97 and width 500.

    The useful rate grows like p**3 width where the output carries 1 / (2 p width), and like p width where it carries
    2 / width. ``decay`` is the share of every weight that a step takes away.
    """
    power = 3 if scaling == "input_mean_field" else 1
    scaled = lr * (p / 97) ** power * (width / 500)
    return SGD(scaled, momentum=momentum, weight_decay=decay / scaled)


def learning_curves(
    p: int = 97, width: int = 500, train_fraction: float = 0.49, seeds: int = 5, steps: int = 25_000, lr: float = 1e5
) -> Experiment:
    """Figs 1, 2 and 3: modular addition under plain gradient descent, in the scaling that the paper's curves fit."""
    task, model = ModularTask(p, "n + m", train_fraction), TwoLayerMLP(p, width, "input_mean_field")
    optimizer = gradient_descent(lr, p, width)
    return Experiment(
        "gromov/learning_curves",
        tuple(Run(task, model, optimizer, steps, seed, label="GD") for seed in range(seeds)),
        Schedule(log=60, every=max(1, steps // 500)),
        (*NORMS, "ipr", "phases"),
        snapshots=(0, -1),
        keep=WEIGHTS,
    )


def formation(
    p: int = 97, width: int = 500, train_fraction: float = 0.49, steps: int = 25_000, lr: float = 1e5, frames: int = 22
) -> Experiment:
    """The slider of Fig. 2 over time: seed 0 of ``learning_curves`` again, looked at more often."""
    whole = learning_curves(p, width, train_fraction, 1, steps, lr)
    return Experiment(
        "gromov/formation",
        whole.runs,
        Schedule(log=0, every=max(1, steps // 100)),
        ("ipr",),
        snapshots=tuple(round(steps * i / (frames - 1)) for i in range(frames)),
        keep=(f"output[{6 % p}]", f"preactivation[{30 % width}]"),
    )


def printed_scaling(
    p: int = 97, width: int = 500, train_fraction: float = 0.49, seeds: int = 5, steps: int = 2_000
) -> Experiment:
    """Fig. 1 again in the scaling printed in the text, 2/N with unit variance; momentum gets there sooner."""
    task, model = ModularTask(p, "n + m", train_fraction), TwoLayerMLP(p, width, "mean_field")
    optimizer = gradient_descent(2000, p, width, "mean_field", momentum=0.9)
    return Experiment(
        "gromov/printed_scaling",
        tuple(Run(task, model, optimizer, steps, seed, label="GD + momentum, 2/N") for seed in range(seeds)),
        Schedule(log=60, every=max(1, steps // 200)),
        (*NORMS, "ipr", "phases"),
    )


def printed_scaling_plain(
    p: int = 97, width: int = 500, train_fraction: float = 0.49, seeds: int = 5, steps: int = 20_000
) -> Experiment:
    """Fig. 1 in the printed scaling under plain GD: the long delay; a run ends when it has grokked."""
    task, model = ModularTask(p, "n + m", train_fraction), TwoLayerMLP(p, width, "mean_field")
    optimizer = gradient_descent(3000, p, width, "mean_field")
    return Experiment(
        "gromov/printed_scaling_plain",
        tuple(Run(task, model, optimizer, steps, seed, label="GD, 2/N") for seed in range(seeds)),
        Schedule(log=60, every=max(1, steps // 200)),
        ("weight_norm",),
        stop=Stop(evaluations=3),
    )


def adamw_curves(
    p: int = 97, width: int = 500, train_fraction: float = 0.5, seeds: int = 5, steps: int = 1_000
) -> Experiment:
    """Figs 3 and 6: modular addition under AdamW."""
    task, model = ModularTask(p, "n + m", train_fraction), TwoLayerMLP(p, width, "standard")
    return Experiment(
        "gromov/adamw_curves",
        tuple(Run(task, model, ADAMW, steps, seed, label="AdamW") for seed in range(seeds)),
        Schedule(log=60, every=4),
        (*NORMS, "ipr", "phases"),
        snapshots=(0, -1),
        keep=WEIGHTS,
    )


def phase_controls(
    p: int = 97, width: int = 500, train_fraction: float = 0.5, seeds: int = 5, steps: int = 1_000
) -> Experiment:
    """Is it AdamW that sharpens the phases of Fig. 3? The same with weight decay off, and in the printed scaling."""
    task = ModularTask(p, "n + m", train_fraction)
    conditions: tuple[tuple[str, str, Optimizer], ...] = (
        ("AdamW, decay 5", "standard", ADAMW),
        ("AdamW, no decay", "standard", AdamW(0.01, 0.0, BETAS)),
        ("AdamW, no decay, 2/N", "mean_field", AdamW(0.05, 0.0, BETAS)),
        ("GD + momentum, 2/N", "mean_field", gradient_descent(2000, p, width, "mean_field", momentum=0.9)),
    )
    return Experiment(
        "gromov/phase_controls",
        tuple(
            Run(task, TwoLayerMLP(p, width, scaling), optimizer, steps, seed, label=label)
            for label, scaling, optimizer in conditions
            for seed in range(seeds)
        ),
        Schedule(log=40, every=max(1, steps // 50)),
        ("phases", "ipr"),
    )


def data_fraction(
    p: int = 97,
    width: int = 500,
    fractions: Sequence[float] = (0.05, 0.1, *FRACTIONS),
    seeds: int = 3,
    gd_steps: int = 20_000,
    adam_steps: int = 3_000,
) -> Experiment:
    """Fig. 4a: when runs grok against how much they see, for six optimizers. A run ends when it has grokked."""
    conditions: tuple[tuple[str, str, Optimizer, int], ...] = (
        ("GD", "input_mean_field", gradient_descent(1e6, p, width), gd_steps),
        ("GD + momentum", "input_mean_field", gradient_descent(1e6, p, width, momentum=0.9), gd_steps),
        ("GD + decay", "input_mean_field", gradient_descent(1e6, p, width, decay=1e-4), gd_steps),
        (
            "GD + momentum + decay",
            "input_mean_field",
            gradient_descent(1e6, p, width, momentum=0.9, decay=1e-4),
            gd_steps,
        ),
        ("Adam", "standard", ADAM, adam_steps),
        ("AdamW", "standard", ADAMW, adam_steps),
    )
    return Experiment(
        "gromov/data_fraction",
        tuple(
            Run(ModularTask(p, "n + m", alpha), TwoLayerMLP(p, width, scaling), optimizer, steps, seed, label=label)
            for label, scaling, optimizer, steps in conditions
            for alpha in fractions
            for seed in range(seeds)
        ),
        Schedule(log=100, every=10),
        stop=Stop(),
    )


def width_scaling(
    p: int = 97,
    widths: Sequence[int] = WIDTHS,
    train_fraction: float = 0.5,
    seeds: int = 5,
    gd_steps: int = 5_000,
    adamw_steps: int = 1_000,
) -> Experiment:
    """Fig. 4b: accuracy of trained networks against their width."""
    task = ModularTask(p, "n + m", train_fraction)
    runs = []
    for width in widths:
        gd = gradient_descent(1e6, p, width)
        for seed in range(seeds):
            runs.append(Run(task, TwoLayerMLP(p, width, "input_mean_field"), gd, gd_steps, seed, label="GD"))
            runs.append(Run(task, TwoLayerMLP(p, width, "standard"), ADAMW, adamw_steps, seed, label="AdamW"))
    return Experiment("gromov/width_scaling", tuple(runs), Schedule(log=40), ("ipr", "phases"))


def modular_functions(
    p: int = 97, width: int = 500, train_fraction: float = 0.5, seeds: int = 5, steps: int = 500
) -> Experiment:
    """Figs 7, 8 and 9: three functions other than addition under AdamW."""
    return Experiment(
        "gromov/modular_functions",
        tuple(
            Run(ModularTask(p, f, train_fraction), TwoLayerMLP(p, width, "standard"), ADAMW, steps, seed, label=f)
            for f in ("(n + m)**2", "n**2 + m**2", "n*m")
            for seed in range(seeds)
        ),
        Schedule(log=60, every=max(1, steps // 50)),
        ("ipr",),
        snapshots=(-1,),
        keep=WEIGHTS,
    )


HARD = ("n**2 + m**2 + n*m", "n**3 + n*m**2 + m")


def polynomials(p: int = 97, width: int = 500, seeds: int = 5, steps: int = 5_000) -> Experiment:
    """Fig. 10: the two functions that are hard or impossible to grok, and the first again with more data."""
    conditions = ((HARD[0], 0.73), (HARD[0], 0.95), (HARD[1], 0.9))
    return Experiment(
        "gromov/polynomials",
        tuple(
            Run(ModularTask(p, f, alpha), TwoLayerMLP(p, width, "standard"), ADAMW, steps, seed, label=f)
            for f, alpha in conditions
            for seed in range(seeds)
        ),
        Schedule(log=60, every=max(1, steps // 100)),
        ("ipr",),
    )


def polynomials_wide(p: int = 97, width: int = 2_000, seeds: int = 3, steps: int = 5_000) -> Experiment:
    """Fig. 10 with four times the width: does that reach the paper's 97 %?"""
    return Experiment(
        "gromov/polynomials_wide",
        tuple(
            Run(ModularTask(p, f, alpha), TwoLayerMLP(p, width, "standard"), ADAMW, steps, seed, label=f)
            for f, alpha in ((HARD[0], 0.73), (HARD[1], 0.9))
            for seed in range(seeds)
        ),
        Schedule(log=60, every=max(1, steps // 100)),
    )


def polynomials_without_decay(p: int = 97, width: int = 500, seeds: int = 3, steps: int = 5_000) -> Experiment:
    """Fig. 10 without weight decay."""
    return Experiment(
        "gromov/polynomials_without_decay",
        tuple(
            Run(ModularTask(p, f, alpha), TwoLayerMLP(p, width, "standard"), ADAM, steps, seed, label=f)
            for f, alpha in ((HARD[0], 0.73), (HARD[1], 0.9))
            for seed in range(seeds)
        ),
        Schedule(log=60, every=max(1, steps // 100)),
    )


def regularisers(
    p: int = 97, width: int = 500, train_fraction: float = 0.6, seeds: int = 5, steps: int = 20_000
) -> Experiment:
    """Section 2's list at one fraction: each way of training on its own. A run ends when it has grokked."""
    task = ModularTask(p, "n + m", train_fraction)
    plain = TwoLayerMLP(p, width, "input_mean_field")
    standard = TwoLayerMLP(p, width, "standard")
    conditions: tuple[tuple[str, TwoLayerMLP, Optimizer, int], ...] = (
        ("GD", plain, gradient_descent(1e6, p, width), steps),
        ("GD + momentum", plain, gradient_descent(1e6, p, width, momentum=0.9), steps),
        ("GD + decay", plain, gradient_descent(1e6, p, width, decay=1e-4), steps),
        (
            "GD + dropout",
            TwoLayerMLP(p, width, "input_mean_field", dropout=0.1),
            gradient_descent(1e6, p, width),
            max(1, steps // 4),
        ),
        (
            "GD + momentum + batch norm",
            TwoLayerMLP(p, width, "mean_field", batch_norm=True),
            gradient_descent(1e4, p, width, "mean_field", momentum=0.9),
            max(1, steps // 4),
        ),
        ("AdamW", standard, ADAMW, max(1, steps // 4)),
    )
    return Experiment(
        "gromov/regularisers",
        tuple(
            Run(task, model, optimizer, budget, seed, label=label)
            for label, model, optimizer, budget in conditions
            for seed in range(seeds)
        ),
        Schedule(log=100, every=20),
        stop=Stop(),
    )


def critical_fraction(
    moduli: Sequence[int] = (23, 47, 97), width: int = 500, seeds: int = 5, steps: int = 3_000
) -> Experiment:
    """How little data AdamW needs, against the modulus. A run ends when it has grokked."""
    return Experiment(
        "gromov/critical_fraction",
        tuple(
            Run(ModularTask(p, "n + m", alpha), TwoLayerMLP(p, width, "standard"), ADAMW, steps, seed, label=f"p = {p}")
            for p in moduli
            for alpha in FRACTIONS
            for seed in range(seeds)
        ),
        Schedule(log=100, every=10),
        stop=Stop(),
    )


def transformer(
    p: int = 97, d_model: int = 128, train_fraction: float = 0.5, seeds: int = 5, steps: int = 1_000
) -> Experiment:
    """Fig. 11: a one-layer transformer with mean squared error."""
    task, model = ModularTask(p, "n + m", train_fraction), Transformer(p, d_model)
    shown = [d_model * i for i in range(4)]  # one unit from each quarter of the MLP
    return Experiment(
        "gromov/transformer",
        tuple(Run(task, model, AdamW(0.01, 1.0, BETAS), steps, seed, label="transformer") for seed in range(seeds)),
        Schedule(log=60, every=max(1, steps // 50)),
        ("embedding_ipr",),
        snapshots=(0, -1),
        keep=("activation_share", *(f"activation[{unit}]" for unit in shown)),
    )


@dataclass(frozen=True)
class Net:
    """A net of attention alone, with the weight decay under which one seed of it was seen to grok."""

    layers: int
    attention: Literal["softmax", "linear"]
    weight_decay: float


NETS = {
    "linear, 1 layer": Net(1, "linear", 0.5),
    "softmax, 1 layer": Net(1, "softmax", 1.0),
    "softmax, 2 layers": Net(2, "softmax", 2.0),
}
HEADS = (1, 2, 4, 8, 16, 32, 64)


def _attention_runs(
    nets: Sequence[str], heads: Sequence[int], p: int, d_model: int, train_fraction: float, seeds: int, steps: int
) -> tuple[Run, ...]:
    task = ModularTask(p, "n + m", train_fraction)
    return tuple(
        Run(
            task,
            AttentionOnly(p, d_model, count, NETS[net].layers, NETS[net].attention),
            AdamW(0.01, NETS[net].weight_decay, BETAS),
            steps,
            seed,
            label=net,
        )
        for net in nets
        for count in heads
        for seed in range(seeds)
    )


def attention_curves(
    p: int = 97,
    d_model: int = 128,
    heads: int = 32,
    train_fraction: float = 0.5,
    seeds: int = 5,
    steps: int = 1_000,
) -> Experiment:
    """Fig. 12: learning curves of one layer of attention alone, linear and softmax, with enough heads."""
    nets = [name for name, net in NETS.items() if net.layers == 1]
    runs = _attention_runs(nets, [heads], p, d_model, train_fraction, seeds, steps)
    return Experiment("gromov/attention_curves", runs, Schedule(log=60, every=max(1, steps // 100)))


def attention_heads(
    p: int = 97,
    d_model: int = 128,
    heads: Sequence[int] = HEADS,
    train_fraction: float = 0.5,
    seeds: int = 3,
    steps: int = 2_000,
) -> Experiment:
    """Fig. 13: nets of attention alone, the same number of parameters split among more or fewer heads."""
    runs = _attention_runs(tuple(NETS), heads, p, d_model, train_fraction, seeds, steps)
    return Experiment("gromov/attention_heads", runs, Schedule(log=60, every=max(1, steps // 50)))


# What may stand in where the full experiment has no record, the largest first.
REDUCED: dict[str, tuple[Callable[[], Experiment], ...]] = {
    "printed_scaling_plain": (lambda: printed_scaling_plain(53, 256),),
    "data_fraction": (lambda: data_fraction(53, 256, FRACTIONS),),
    "width_scaling": (lambda: width_scaling(seeds=2),),
    "polynomials": (lambda: polynomials(seeds=2),),
    "polynomials_wide": (lambda: polynomials_wide(seeds=1), lambda: polynomials_wide(53, 1_000)),
    "polynomials_without_decay": (lambda: polynomials_without_decay(53, 256),),
    "regularisers": (lambda: regularisers(seeds=2),),
}

EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    factory.__name__: factory
    for factory in (
        learning_curves,
        formation,
        printed_scaling,
        printed_scaling_plain,
        adamw_curves,
        phase_controls,
        data_fraction,
        width_scaling,
        modular_functions,
        polynomials,
        polynomials_wide,
        polynomials_without_decay,
        regularisers,
        critical_fraction,
        transformer,
        attention_curves,
        attention_heads,
    )
}
