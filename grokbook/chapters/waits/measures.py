"""What the page's trainings keep: of which waves embeddings are made, and which a training set shows."""

from __future__ import annotations

import numpy as np

from grokbook import measures
from grokbook.chapters.gu.theory import shown_waves
from grokbook.measures.common import ratio
from grokbook.train.monitor import Measured, Numbers, register


def _waves(now: Measured) -> Numbers:
    """(M, p // 2) the power of the embeddings of the residues at each frequency, as shares."""
    power = measures.wave_power(now.params["W_E"][:, : now.model.p])
    return {"waves": ratio(power, power.sum(-1, keepdims=True))}


def _shown(now: Measured) -> Numbers:
    """(M, p // 2) how much of each wave the training set shows, of a table whose answers are sums; as shares."""
    shown = np.stack([shown_waves(one.reshape(now.model.p, -1)) for one in now.in_train])
    return {"shown": shown / shown.sum(-1, keepdims=True)}


register(waves=_waves, shown=_shown)
