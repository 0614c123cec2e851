"""What the plateau depends on: weight decay, the slip of the drawing, and pooling. Explored, with one seed each."""

from __future__ import annotations

from grokbook.chapter import Section
from grokbook.chapters.resnet import Settings
from grokbook.chapters.resnet.network import grey
from grokbook.chapters.resnet.training import Epochs, on_pictures
from grokbook.settings import Seeds
from grokbook.train.experiment import Experiment

section = Section("ablations")


@section.experiment(quick={"epochs": 1})
def decays(s: Settings, *, epochs: Epochs = 1000, seeds: Seeds = 1) -> Experiment:
    """Weight decay 0 and ten times the paper's."""
    conditions = [{**grey(32, 0.125), "label": f"decay {decay:g}", "weight_decay": decay} for decay in (0.0, 1e-3)]
    return on_pictures("decays", s, *conditions, epochs=epochs, seeds=seeds)


@section.experiment(quick={"epochs": 1})
def intended(s: Settings, *, epochs: Epochs = 1000, seeds: Seeds = 1) -> Experiment:
    """The drawing as it was meant: four cells alike."""
    condition = {**grey(32, 0.125), "label": "intended drawing", "drawing": "intended"}
    return on_pictures("intended", s, condition, epochs=epochs, seeds=seeds)


@section.experiment(quick={"epochs": 1})
def flat(s: Settings, *, epochs: Epochs = 1000, seeds: Seeds = 1) -> Experiment:
    """A readout with weights of its own for each place, at 64 pixels: at 32 there is one place, and nothing to pool."""
    condition = {**grey(64, 0.125), "label": "flattened", "head": "flatten"}
    return on_pictures("flat", s, condition, epochs=epochs, seeds=seeds)
