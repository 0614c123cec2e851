"""The quadratic perceptron of Gromov (2023) on modular addition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.across import Settings
from grokbook.chapters.across.zoo import Family, Shuffled, enter, experiment
from grokbook.chapters.gromov.training import BETAS, gradient_descent
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import AdamW
from grokbook.settings import Steps
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment
from grokbook.train.monitor import Measured

section = Section("mlp")
WIDTH = 256
SLOW = AdamW(1e-3, 1.0, BETAS)  # a tenth of the paper's rate: the transition then takes more than a few steps


def _symbols(now: Measured) -> NDArray[Any]:
    """The columns of the first layer: a table for each operand, a direction a hidden unit."""
    W_in = now.params["W_in"]
    return np.moveaxis(W_in.reshape(len(W_in), -1, 2, now.model.p), 1, -1)


FAMILY = enter(Family("mlp", "Gromov's perceptron", TwoLayerMLP, _symbols, True, "W_out"))


@section.experiment(quick={"steps": 6})
def mlp(s: Settings, *, steps: Steps = 3_000) -> Experiment:
    """Addition by gradient descent and by AdamW, from fewer and too few pairs; a polynomial; a random table."""
    mean_field, standard = TwoLayerMLP(s.small_p, WIDTH, "input_mean_field"), TwoLayerMLP(s.small_p, WIDTH, "standard")
    addition = ModularTask(s.small_p, "n + m", 0.5)
    conditions = (
        ("gradient descent", addition, mean_field, gradient_descent(1e6, s.small_p, WIDTH)),
        ("AdamW", addition, standard, SLOW),
        ("AdamW, 35 %", ModularTask(s.small_p, "n + m", 0.35), standard, SLOW),
        ("AdamW, 20 %", ModularTask(s.small_p, "n + m", 0.2), standard, SLOW),
        ("n²+m²+nm", ModularTask(s.small_p, "n**2 + m**2 + n*m", 0.5), standard, SLOW),
        ("random table", Shuffled(addition), standard, SLOW),
    )
    return experiment(FAMILY, conditions, s.seeds, steps, "mse")
