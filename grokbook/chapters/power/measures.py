"""What the chapter's trainings log besides losses and accuracies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapters.power.theory.sharpness import random_basis, released_sharpness, sharpness
from grokbook.lazy import torch
from grokbook.measures.common import ratio
from grokbook.train.monitor import Measured, Numbers, register

EPSILON, DIMENSIONS, SUBSPACES, ITERATIONS = 1e-3, 10, 5, 10  # as released; the subspaces are ours


def _accuracy_alone(now: Measured) -> Numbers:
    """Accuracy (M,) on held-out rows without a trained mirror, and without any trained partner; nan over no row."""
    right, trained = now.correct(), now.in_train
    found = {}
    for name, which in (("accuracy_unmirrored", "mirror"), ("accuracy_unpartnered", "all")):
        alone = np.array([task.alone(own, which) for task, own in zip(now.tasks, trained, strict=True)])
        found[name] = ratio((right & alone).sum(1), alone.sum(1))
    return found


def _true_accuracy(now: Measured) -> Numbers:
    """Share (M,) of the training rows answered as the table says, whatever they were labelled in training."""
    return {"true_train_accuracy": (now.correct() & now.in_train).sum(1) / now.in_train.sum(1)}


def _sharpness(now: Measured) -> Numbers:
    """(M, 2 + 2 * SUBSPACES): the training loss, Keskar's sharpness in all of space, and in each random subspace of ten
    dimensions Keskar's and the released one. In double precision: in a subspace the loss changes by parts in a million.
    """
    names, rows = list(now.weights), []
    for member, (mask, task) in enumerate(zip(now.in_train, now.tasks, strict=True)):
        inputs, labels = map(now.tensor, task.table())
        shapes = [now.weights[name].shape[1:] for name in names]
        x = torch.cat([now.weights[name][member].double().ravel() for name in names])

        def loss(point: Any, shapes: list[Any] = shapes, x_in: Any = inputs[mask][None], y: Any = labels[mask]) -> Any:
            parts = point.split([int(np.prod(shape)) for shape in shapes])
            params = {name: part.view(1, *shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
            return torch.nn.functional.cross_entropy(now.model(params, x_in)[0], y)

        with torch.no_grad():
            row = [float(loss(x))]
        row.append(sharpness(loss, x, EPSILON, generator=0, iterations=ITERATIONS))
        bases = [random_basis(len(x), DIMENSIONS, np.random.default_rng(k)) for k in range(SUBSPACES)]
        for measure in (sharpness, released_sharpness):
            row += [
                measure(loss, x, EPSILON, basis=basis, generator=k, iterations=ITERATIONS)
                for k, basis in enumerate(bases)
            ]
        rows.append(row)
    return {"sharpness": np.array(rows)}


def split_sharpness(kept: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What a snapshot of "sharpness" holds, (..., 2 + 2 * SUBSPACES), by name; medians over subspaces."""
    ours, released = kept[..., 2 : 2 + SUBSPACES], kept[..., 2 + SUBSPACES :]
    medians = {"subspaces": np.median(ours, -1), "released": np.median(released, -1)}
    return {"loss": kept[..., 0], "whole": kept[..., 1], **medians}


# The last for ``Experiment.keep`` only.
register(accuracy_alone=_accuracy_alone, true_train_accuracy=_true_accuracy, sharpness=_sharpness)
