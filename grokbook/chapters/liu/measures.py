"""What the chapter's trainings log besides losses and accuracies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook import measures
from grokbook.tasks import group_table
from grokbook.train.monitor import Measured, Numbers, register

MAP_SIDE = 80


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


register(
    rqi=lambda now: {"rqi": measures.representation_quality_index(now.params["W_E"])},
    s3_rqi=lambda now: {"s3_rqi": measures.group_representation_quality_index(now.params["W_E"], group_table("S3"))},
    effective_dimension=lambda now: {"effective_dimension": measures.effective_dimension(now.params["W_E"])},
    decoder_map=_decoder_map,  # (M, MAP_SIDE, MAP_SIDE): for ``Experiment.keep`` only
)
