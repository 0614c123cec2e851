"""What the chapter's trainings log besides losses and accuracies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grokbook import measures
from grokbook.measures.common import ratio
from grokbook.train.monitor import Measured, Numbers, register


def _ipr(now: Measured) -> Numbers:
    return {"ipr": measures.first_layer_ipr(now.params["W_in"])}


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
    table = np.moveaxis(now.activations(), -1, 1)
    maps = table.reshape(*table.shape[:2], now.tasks[0].p, now.tasks[0].p)  # (M, hidden, p, p)
    return {"activation_share": np.stack([measures.frequency_family_share(one) for one in maps])}


def _constant_share(now: Measured) -> Numbers:
    """(M, hidden) the share of a preactivation's power over the table that does not depend on the pair.

    A constant in the weights of a unit is a bias, which the network has no other place for; of random weights 1/p.
    """
    halves = measures.halves(now.params["W_in"])  # (M, hidden, 2, p)
    constant = halves.mean(-1).sum(-1) ** 2
    return {"constant_share": constant / (constant + halves.var(-1).sum(-1))}


def _three_waves(now: Measured) -> Numbers:
    """Accuracy (M, 1) over the table with −(u²v + uv²) in place of an activation of u + v, u of n and v of m.

    Of the cube, which is an odd activation's first curvature, these are the terms that n and m have in common.
    """
    found = []
    for halves, W_out, task in zip(measures.halves(now.params["W_in"]), now.params["W_out"], now.tasks, strict=True):
        u, v = halves.T[:, :1], halves.T[:, 1]  # (p, 1, hidden), (p, hidden)
        outputs = -(u * v * (u + v)).reshape(-1, u.shape[-1]) @ W_out.T
        found.append([(outputs.argmax(-1) == task.table()[1]).mean()])
    return {"three_waves": np.array(found)}


def in_another_guise(trained: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pairs (..., p, p) were trained as (m, n), (-n, -m) or (-m, -n), which n² + nm + m² does not tell apart."""
    negative = -np.arange(trained.shape[-1])
    turned = trained[..., negative, :][..., negative]
    return np.swapaxes(trained, -1, -2) | turned | np.swapaxes(turned, -1, -2)


def _accuracy_by_image(now: Measured) -> Numbers:
    """Test accuracy (M,) over pairs that were trained in another guise, and over all others."""
    p = now.model.p
    right, trained = (values.reshape(-1, p, p) for values in (now.correct(), now.in_train))
    imaged = in_another_guise(trained)
    places = {"imaged": imaged & ~trained, "unimaged": ~imaged & ~trained}
    return {f"accuracy_{name}": ratio((right & place).sum((1, 2)), place.sum((1, 2))) for name, place in places.items()}


register(ipr=_ipr, phases=_phases, embedding_ipr=_embedding_ipr, accuracy_by_image=_accuracy_by_image)
# For ``Experiment.keep`` only:
register(activation_share=_activation_share, constant_share=_constant_share, three_waves=_three_waves)
