"""The decoder of Power et al. (2022) on operations modulo p."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.across import Settings
from grokbook.chapters.across.zoo import Family, Shuffled, enter, experiment
from grokbook.chapters.gromov.theory import discrete_logarithms
from grokbook.chapters.power.tasks import OperationTask
from grokbook.chapters.power.training import ADAM, ADAMW, batch
from grokbook.models.decoder import Decoder
from grokbook.settings import Steps
from grokbook.train.experiment import Experiment
from grokbook.train.monitor import Measured

section = Section("decoder")


def _symbols(now: Measured) -> NDArray[Any]:
    """The vectors of residues; of division, in the order in which it becomes subtraction."""
    p = now.model.p
    rows = now.params["W_E"][:, None, :p]
    divided = getattr(now.tasks[0], "operation", "") == "x/y"
    return rows[..., np.argsort(discrete_logarithms(p))[1:], :] if divided else rows  # zero has no logarithm


FAMILY = enter(Family("decoder", "Power's decoder", Decoder, _symbols, True, "W_U", relus=True))


@section.experiment(quick={"steps": 6})
def decoder(s: Settings, *, steps: Steps = 8_000) -> Experiment:
    """Division and addition with decay and without, from too few rows, a polynomial, and a random table."""
    division, addition = OperationTask("x/y", s.p), OperationTask("x+y", s.p)
    conditions = (
        ("x/y", division, ADAMW),
        ("x+y", addition, ADAMW),
        ("x+y from 40 %", OperationTask("x+y", s.p, 0.4), ADAMW),
        ("x/y without decay", division, ADAM),
        ("x³+xy²+y", OperationTask("x^3+xy^2+y", s.p, 0.7), ADAMW),
        ("random table", Shuffled(addition), ADAMW),
    )
    complete = ((label, task, Decoder(s.p), how) for label, task, how in conditions)
    return experiment(FAMILY, complete, s.seeds, steps, batch=batch)
