"""What a training can log, by name: the bridge from a stack of members to the measures of ``grokbook.measures``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook import measures
from grokbook.tasks import group_table
from grokbook.train.contract import optional

Numbers = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """M members at one step, on the host. What costs a pass through the network is a function, called when asked.

    ``params`` and ``gradients()`` map names to (M, ...); ``outputs()`` is (M, rows, classes), ``correct()`` (M, rows)
    whether the largest is the answer's, ``activations()`` and ``preactivations()`` are (M, rows, hidden), over all rows
    of the table. ``in_train`` (M, rows) are the rows trained on, ``task`` and ``model`` those of the first member.
    ``halfway(points)`` is what a decoder of sums gives for symbols with ``points`` (M, B, d) halfway between them,
    (M, B, classes).
    """

    params: Numbers
    in_train: NDArray[np.bool_]
    task: Any
    model: Any
    correct: Callable[[], NDArray[np.bool_]]
    gradients: Callable[[], Numbers]
    outputs: Callable[[], NDArray[Any]]
    activations: Callable[[], NDArray[Any]]
    preactivations: Callable[[], NDArray[Any]]
    halfway: Callable[[NDArray[Any]], NDArray[Any]]

    def activation_maps(self) -> NDArray[Any]:
        """Hidden activations as functions of the pair, (M, hidden, p, p)."""
        table = self.activations()
        side = round(table.shape[1] ** 0.5)
        return np.moveaxis(table, -1, 1).reshape(len(table), -1, side, side)


def _norms(prefix: str, values: Numbers) -> Numbers:
    flat = {name: value.reshape(len(value), -1).astype(np.float64) for name, value in values.items()}
    return {f"{prefix}_{name}": np.sqrt(np.square(value).sum(-1)) for name, value in flat.items()}


def _learnt(now: Measured) -> Numbers:
    """The params that gradients move."""
    return {name: value for name, value in now.params.items() if name not in optional(now.model, "buffers")}


def _phases(now: Measured) -> Numbers:
    found = measures.phase_residuals(now.params["W_in"], now.params["W_out"])
    distinct = [len(set(row[row > 0].tolist())) for row in found.frequency]
    return {"residual_sd": measures.circular_sd(found.residual), "distinct_frequencies": np.array(distinct, float)}


def _embedding_ipr(now: Measured) -> Numbers:
    tables = {"embedding_ipr": np.swapaxes(now.params["W_E"], -1, -2), "unembedding_ipr": now.params["W_U"]}
    return {
        name: measures.inverse_participation_ratio(measures.fourier_power(table)).mean(-1)
        for name, table in tables.items()
    }


def _activation_share(now: Measured) -> Numbers:
    """One member at a time: all units of one over the table are large enough."""
    maps = now.activation_maps()  # (M, hidden, p, p)
    return {"activation_share": np.stack([measures.frequency_family_share(one) for one in maps])}


MED_STEPS = (2, 3, 5, 7, 11)


def _med(now: Measured) -> Numbers:
    """MED in its published forms and its controls, on the word embeddings; means over the operands' two blocks."""
    p, offset = now.model.p, now.model.offset
    blocks = measures.embedding_blocks(now.params["W_E"], p, offset)
    both = np.stack(blocks) if offset else blocks[0][None]  # (blocks, M, p, d)
    forms = {f"med_{form}": measures.published_med(*blocks, form=form) for form in measures.MED_FORMS}
    controls = {name: found.mean(0) for name, found in measures.med_controls(both).items()}
    steps = {
        f"med_step_{step}": measures.main_embedding_difference(both, step=step).mean(0)
        for step in MED_STEPS
        if step % p
    }
    return forms | controls | steps


def _total_norm(now: Measured) -> Numbers:
    norms = _norms("weight_norm", _learnt(now)).values()
    return {"total_norm": np.sqrt(sum(np.square(norm) for norm in norms))}


def _accuracy_by_place(now: Measured) -> Numbers:
    """Test accuracy inside and outside the hole, and of pairs whose mirror was trained or not; nan over no pair."""
    p = now.model.p
    correct, trained = (values.reshape(-1, p, p) for values in (now.correct(), now.in_train))
    test, mirrored = ~trained, np.swapaxes(trained, -1, -2)
    inside = getattr(now.task, "never_trained", lambda: np.zeros((p, p), bool))()
    places = {
        "inside": inside & test,
        "outside": ~inside & test,
        "mirrored": mirrored & test,
        "unmirrored": ~mirrored & test,
        "inside_mirrored": inside & mirrored & test,
        "inside_unmirrored": inside & ~mirrored & test,
    }
    counts = {name: place.sum((-2, -1)) for name, place in places.items()}
    return {
        f"accuracy_{name}": np.divide(
            (correct & place).sum((-2, -1)), counts[name], out=np.full(len(correct), np.nan), where=counts[name] > 0
        )
        for name, place in places.items()
    }


def _correct(now: Measured) -> Numbers:
    p = now.model.p
    return {"correct": now.correct().reshape(-1, p, p).astype(np.float32)}


def _rqi(now: Measured) -> Numbers:
    return {"rqi": measures.representation_quality_index(now.params["W_E"])}


def _s3_rqi(now: Measured) -> Numbers:
    return {"s3_rqi": measures.group_representation_quality_index(now.params["W_E"], group_table("S3"))}


def _effective_dimension(now: Measured) -> Numbers:
    return {"effective_dimension": measures.effective_dimension(now.params["W_E"])}


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
    answers = now.halfway(map_points(now.params["W_E"])).argmax(-1)
    return {"decoder_map": answers.reshape(-1, MAP_SIDE, MAP_SIDE)}


# name in an experiment -> the numbers it logs, each (M,)
MEASURES: dict[str, Callable[[Measured], Numbers]] = {
    "weight_norm": lambda now: _norms("weight_norm", _learnt(now)),
    "gradient_norm": lambda now: _norms("gradient_norm", now.gradients()),
    "ipr": lambda now: {"ipr": measures.first_layer_ipr(now.params["W_in"])},
    "phases": _phases,
    "embedding_ipr": _embedding_ipr,
    "med": _med,
    "total_norm": _total_norm,
    "accuracy_by_place": _accuracy_by_place,
    "rqi": _rqi,
    "s3_rqi": _s3_rqi,
    "effective_dimension": _effective_dimension,
    "decoder_map": _decoder_map,  # (M, MAP_SIDE, MAP_SIDE): for ``Experiment.keep`` only
    "activation_share": _activation_share,  # (M, hidden): for ``Experiment.keep`` only
    "correct": _correct,  # (M, p, p): for ``Experiment.keep`` only
}
