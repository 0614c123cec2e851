"""The toy model of Liu et al. (2022): sums of sixteen symbols, each a number to be learnt, and a decoder."""

from __future__ import annotations

from grokbook.chapter import Section
from grokbook.chapters.across import Settings
from grokbook.chapters.across.zoo import Family, Shuffled, enter, experiment
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW, Group
from grokbook.settings import Steps
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment

section = Section("toy")
SYMBOLS = 16
FAMILY = enter(Family("toy", "Liu's toy", AdditionDecoder, lambda now: now.params["W_E"][:, None], False, "W_2"))


def _rates(decoder: float, decay: float = 0.0) -> AdamW:
    return AdamW(decoder, decay, groups=(Group("W_E", 1e-3, 0.0),))


@section.experiment(quick={"steps": 6})
def toy(s: Settings, *, steps: Steps = 20_000) -> Experiment:
    """Nearly all sums, fewer, too few; a decoder that is fast, slow or decays; and a random table."""
    task = AdditionTask(SYMBOLS, 115)
    conditions = (
        ("115 of 136 sums", task, _rates(1e-4)),
        ("decay 3", task, _rates(1e-4, 3.0)),
        ("decay 1", task, _rates(1e-4, 1.0)),
        ("fast decoder", task, _rates(3e-3)),
        ("55 of 136 sums", AdditionTask(SYMBOLS, 55), _rates(1e-4)),
        ("random table", Shuffled(task), _rates(1e-4)),
    )
    complete = ((label, task, AdditionDecoder(SYMBOLS), how) for label, task, how in conditions)
    return experiment(FAMILY, complete, s.seeds, steps, "mse")
