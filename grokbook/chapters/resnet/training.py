"""How everything in this chapter is trained: Adam at a constant rate, decay in the gradient, batches of 200."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from grokbook.chapters.resnet import Settings
from grokbook.chapters.resnet.tasks import BATCH, PictureSum, ShapeSum, dictionary, steps_per_epoch
from grokbook.models.resnet import ResNet18
from grokbook.optim import Adam
from grokbook.settings import whole
from grokbook.train.experiment import Experiment, Run, Schedule

Epochs = Annotated[int, whole(1)]
OUTPUTS = 52  # of the released network, of which 47 are labels
SNAPSHOTS = 16


def run(
    task: ShapeSum, model: Any, seed: int, *, epochs: int, weight_decay: float, label: str, lr: float = 1e-3
) -> Run:
    """One training at the released settings: learning rate .001, cross-entropy, the last batch of an epoch short."""
    optimizer = Adam(lr, weight_decay)
    steps = epochs * steps_per_epoch(task.train_size)
    batch = min(BATCH, task.train_size)
    return Run(task, model, optimizer, steps, seed, "cross_entropy", batch, label, last_batch="short")


def on_pictures(name: str, s: Settings, *conditions: dict[str, Any], epochs: int, seeds: int) -> Experiment:
    """ResNet-18 on pictures, tested on all of them every ten epochs; answers are kept at some times.

    Conditions have a ``label``, sizes of ``PictureSum`` and ``ResNet18``, and may have ``weights``, a file to start
    from, a ``split`` and an ``lr``; drawing and weight decay are the page's, like number of symbols and share trained
    on, unless they say.
    """
    runs = []
    for condition in conditions:
        sizes = {"classes": OUTPUTS, "drawing": s.drawing, "weight_decay": s.weight_decay, "lr": 1e-3, **condition}
        how = {name: sizes.pop(name) for name in ("label", "weight_decay", "lr")}
        weights = sizes.pop("weights", "")
        drawn = {name: sizes[name] for name in ("size", "channels")} | {"drawing": sizes.pop("drawing")}
        task = PictureSum(dictionary(s.symbols), s.train_size, sizes.pop("split", None), **drawn)
        model = ResNet18.pretrained(weights, **sizes) if weights else ResNet18(**sizes)
        runs += [run(task, model, seed, epochs=epochs, **how) for seed in range(seeds)]
    one = steps_per_epoch(s.train_size)
    kept = np.unique(np.geomspace(10, epochs, SNAPSHOTS).round(-1).astype(int))  # at evaluations, and at the end
    return Experiment(
        f"resnet/{name}",
        tuple(runs),
        Schedule(log=40, every=10 * one),
        ("sums", "total_norm"),
        snapshots=(*(int(epoch) * one for epoch in kept if epoch < epochs), -1),
        keep=("answers",),
    )
