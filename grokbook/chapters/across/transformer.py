"""The one-layer transformer of Gu et al. (2025) on modular addition."""

from __future__ import annotations

from grokbook.chapter import Section
from grokbook.chapters.across import Settings
from grokbook.chapters.across.zoo import Family, Shuffled, enter, experiment
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.models.pair_transformer import PairTransformer
from grokbook.optim import WarmAdamW
from grokbook.settings import Steps
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment

section = Section("transformer")
FAMILY = enter(
    Family(
        "transformer",
        "Gu's transformer",
        PairTransformer,
        lambda now: now.params["W_E"][:, None, : now.model.p],
        True,
        "W_U",
        relus=True,
    )
)
HOLED = "a hole"
HOLE = 0.4  # side of the square that is never trained on, as a share of p


@section.experiment(quick={"steps": 6})
def transformer(s: Settings, *, steps: Steps = 8_000) -> Experiment:
    """Random training sets of two sizes and too small a one, one with a hole, no decay, and a random table."""
    decayed, plain = (WarmAdamW(1e-3, decay, (0.9, 0.98)) for decay in (1.0, 0.0))
    half = ModularTask(s.small_p, "n + m", 0.5)
    conditions = (
        ("50 %", half, decayed),
        ("40 %", ModularTask(s.small_p, "n + m", 0.4), decayed),
        (HOLED, HoledTask(s.small_p, "n + m", 0.5, "square", round(HOLE * s.small_p)), decayed),
        ("20 %", ModularTask(s.small_p, "n + m", 0.2), decayed),
        ("without decay", half, plain),
        ("random table", Shuffled(half), decayed),
    )
    complete = ((label, task, PairTransformer(s.small_p), how) for label, task, how in conditions)
    return experiment(FAMILY, complete, s.seeds, steps)
