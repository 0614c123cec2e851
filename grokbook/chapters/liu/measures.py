"""What the chapter's trainings log besides losses and accuracies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.lazy import torch
from grokbook.measures.common import Array
from grokbook.models.encoder import PairEncoder
from grokbook.tasks import ModularTask, group_table
from grokbook.train.monitor import Measured, Numbers, arrays_of, register

MAP_SIDE = 80
COMPONENTS = (2, 4, 6, 8, 10, 14)
SHOWN = 10  # components that Fig. 22 keeps
WAYS = ("actual", "own", "final")  # embeddings as they are, of the first components of the moment, or of the end's
PARTS = ("train", "test", "mirrored", "new")  # of the held-out pairs, those trained on in the other order; the others


def map_points(embedding: NDArray[Any]) -> NDArray[np.float64]:
    """A square of points around embeddings (..., p, 2) with a margin: (..., MAP_SIDE**2, 2), rows of equal height."""
    low, high = embedding.min(-2), embedding.max(-2)
    middle, half = (low + high) / 2, 0.6 * (high - low).max(-1, keepdims=True)
    at = np.linspace(-1, 1, MAP_SIDE)
    square = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    return middle[..., None, :] + half[..., None, :] * square


def _decoder_map(now: Measured) -> Numbers:
    """Which answer a decoder gives to two symbols with each point of a square halfway between them."""
    points = now.tensor(map_points(now.params["W_E"])).to(now.weights["W_E"])
    answers = now.model.halfway(now.weights, points).argmax(-1)
    return {"decoder_map": answers.cpu().numpy().reshape(-1, MAP_SIDE, MAP_SIDE)}


def answers(model: PairEncoder, params: Mapping[str, Array], embeddings: Sequence[Array], pairs: Any) -> Array:
    """What one network would answer to pairs (B, 2) with other embeddings, several of (p, d): (several, B)."""
    count = len(embeddings)
    with torch.no_grad():
        stacked = {name: torch.tensor(value).expand(count, *value.shape) for name, value in params.items()}
        stacked["W_E"] = torch.tensor(np.array(embeddings))
        return model(stacked, torch.tensor(pairs).expand(count, *pairs.shape)).argmax(-1).numpy()


def projected(embedding: Array, others: Array, count: int) -> Array:
    """Embeddings (p, d) rebuilt from the first ``count`` components of others, around those others' mean."""
    mean = others.mean(0)
    kept = np.linalg.svd(others - mean, full_matrices=False)[2][:count]
    return mean + (embedding - mean) @ kept.T @ kept


def parts(task: ModularTask, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Which rows of a table of ordered pairs are of which of the ``PARTS``, (rows,) each."""
    trained = task.in_train(seed)
    mirrored = ~trained & trained.reshape(task.p, task.p).T.ravel()  # pairs are in lexicographic order
    return dict(zip(PARTS, (trained, ~trained, mirrored, ~trained & ~mirrored), strict=True))


def component_accuracy(record: xr.Dataset) -> dict[str, Any]:
    """Accuracy of encoders with embeddings rebuilt from few components, from all weights at some steps (Fig. 22).

    ``accuracy_rebuilt`` (run, snapshot, part, way) from ``SHOWN`` components, on ``PARTS`` and in ``WAYS``;
    ``accuracy_at_end`` (run, component) on the test set, from so many of the last embeddings' ``COMPONENTS``.
    """
    rebuilt, at_end, names = [], [], arrays_of(record)
    for i in range(record.sizes["run"]):
        run = record.isel(run=i)
        model = PairEncoder(int(run.p), int(run.d_model), int(run.layers), int(run.hidden))
        task = ModularTask(model.p, "n + m", float(run.train_fraction))
        (pairs, labels), sets = task.table(), parts(task, int(run.seed))
        weights = [{name: run[name].isel(snapshot=t).values for name in names} for t in range(run.sizes["snapshot"])]
        final, rows = weights[-1]["W_E"], []
        for params in weights:
            own = params["W_E"]
            embeddings = own, projected(own, own, SHOWN), projected(own, final, SHOWN)
            right = answers(model, params, embeddings, pairs) == labels  # (way, pair)
            rows.append([right[:, one].mean(1) for one in sets.values()])
        rebuilt.append(rows)
        fewer = [projected(final, final, count) for count in COMPONENTS]
        at_end.append((answers(model, weights[-1], fewer, pairs) == labels)[:, sets["test"]].mean(1))
    shown = ("run", "snapshot", "part", "way"), np.array(rebuilt, np.float32)
    return {"accuracy_rebuilt": shown, "accuracy_at_end": (("run", "component"), np.array(at_end, np.float32))}


register(
    rqi=lambda now: {"rqi": measures.representation_quality_index(now.params["W_E"])},
    s3_rqi=lambda now: {"s3_rqi": measures.group_representation_quality_index(now.params["W_E"], group_table("S3"))},
    effective_dimension=lambda now: {"effective_dimension": measures.effective_dimension(now.params["W_E"])},
    decoder_map=_decoder_map,  # (M, MAP_SIDE, MAP_SIDE): for ``Experiment.keep`` only
    component_accuracy=component_accuracy,  # for ``Experiment.summary`` only
)
