"""How the networks of this chapter are trained: what the paper leaves open, chosen once."""

from __future__ import annotations

from functools import partial
from typing import Any

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD, Adam, AdamW, Optimizer
from grokbook.train.experiment import Run

BETAS = (0.9, 0.98)
adamw = partial(AdamW, 0.01, betas=BETAS)  # of a weight decay
ADAM, ADAMW = Adam(0.01, betas=BETAS), adamw(5.0)


def seeded(n: int, task: Any, model: Any, how: Optimizer, steps: int, label: str, loss: str = "mse") -> tuple[Run, ...]:
    """One condition: a run for each of n seeds."""
    return tuple(Run(task, model, how, steps, seed, loss, label=label) for seed in range(n))


def gradient_descent(
    lr: float, p: int, width: int, scaling: str = "input_mean_field", *, momentum: float = 0.0, decay: float = 0.0
) -> SGD:
    """GD at a learning rate given for p = 97 and width 500.

    The useful rate grows like p**3 width where the output carries 1 / (2 p width), and like p width where it carries
    2 / width. ``decay`` is the share of every weight that a step takes away.
    """
    power = 3 if scaling == "input_mean_field" else 1
    scaled = lr * (p / 97) ** power * (width / 500)
    return SGD(scaled, momentum=momentum, weight_decay=decay / scaled)


def ways_to_train(p: int, width: int) -> dict[str, tuple[TwoLayerMLP, SGD | Adam | AdamW]]:
    """The optimizers of Fig. 4a by name, each with the scaling in which it is run."""
    plain, standard = TwoLayerMLP(p, width, "input_mean_field"), TwoLayerMLP(p, width, "standard")
    return {
        "GD": (plain, gradient_descent(1e6, p, width)),
        "GD + momentum": (plain, gradient_descent(1e6, p, width, momentum=0.9)),
        "GD + decay": (plain, gradient_descent(1e6, p, width, decay=1e-4)),
        "GD + momentum + decay": (plain, gradient_descent(1e6, p, width, momentum=0.9, decay=1e-4)),
        "Adam": (standard, ADAM),
        "AdamW": (standard, ADAMW),
    }
