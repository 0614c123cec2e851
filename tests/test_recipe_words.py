"""What a fold says of the runs behind a figure."""

from __future__ import annotations

import dataclasses

from grokbook import recipes
from grokbook.models.encoder import PairEncoder
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask, ModularTask
from grokbook.train.experiment import Run


def test_a_phrase_names_what_differs_between_settings():
    optimizer = AdamW(1e-4, 0.0, groups=(Group("W_E", 1e-3, 0.3),))
    run = Run(AdditionTask(5, 9), AdditionDecoder(5, init_scale=3.0), optimizer, 10, 0, "mse", 4)
    told = recipes.settings([run, dataclasses.replace(run, batch_size=None)])
    for part in ("batch 4, 9", "initial scale 3", "embeddings' decay 0.3"):
        assert part in told
    usual = recipes.settings([dataclasses.replace(run, model=AdditionDecoder(5), batch_size=None)])
    assert "batch" not in usual and "scale" not in usual
    encoder = Run(ModularTask(5, "n + m", 0.8), PairEncoder(5, 8, 2, 6), AdamW(1e-3), 10, 0, "cross_entropy")
    assert "blocks 2, hidden units 6" in recipes.settings([encoder])
