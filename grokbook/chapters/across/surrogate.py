"""The surrogate of the four-shape sum of Gu et al. (2025): a perceptron on the places of the symbols, no pictures."""

from __future__ import annotations

from grokbook.chapter import Section
from grokbook.chapters.across import Settings
from grokbook.chapters.across.zoo import Family, Shuffled, enter, experiment
from grokbook.chapters.resnet.tasks import BATCH, ShapeSum, dictionary
from grokbook.models.slot_mlp import SlotMLP
from grokbook.optim import Adam
from grokbook.settings import Steps
from grokbook.train.experiment import Experiment

section = Section("surrogate")
FAMILY = enter(
    Family(
        "surrogate",
        "ResNet's surrogate",
        SlotMLP,
        lambda now: now.params["W_E"][:, :, 1:],  # the blank is worth 0, the others 3, 4, 5 and so on
        False,
        "W_U",
        relus=True,
    )
)


@section.experiment(quick={"steps": 6})
def surrogate(s: Settings, *, steps: Steps = 12_000) -> Experiment:
    """Two decays and none, a quarter and a tenth of the pictures instead of 40 %, and a random table."""
    symbols = dictionary(s.symbols)
    rows = s.symbols**4
    task = ShapeSum(symbols, 2 * rows // 5)
    conditions = (
        ("decay 1e-3", task, 1e-3),
        ("decay 3e-4", task, 3e-4),
        ("25 % of the pictures", ShapeSum(symbols, rows // 4), 1e-3),
        ("no decay", task, 0.0),
        ("10 % of the pictures", ShapeSum(symbols, rows // 10), 1e-3),
        ("random table", Shuffled(task), 1e-3),
    )
    model = SlotMLP(s.symbols, ShapeSum(symbols, 1).classes)
    complete = ((label, one, model, Adam(1e-3, decay)) for label, one, decay in conditions)
    return experiment(FAMILY, complete, s.seeds, steps, batch=lambda size: min(BATCH, size))
