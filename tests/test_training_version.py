"""Guards the versions in the content hash: if one of these numbers moves, raise the version of what moved it.

A version (``ENGINE_VERSION``, or ``version`` of a task, model or optimizer) is part of every recipe, so that records
made by other arithmetic turn stale instead of being taken for ours. Rounding differs between machines; over thirty
steps it stays small.
"""

from functools import partial

import pytest

from grokbook.chapters.gu.tasks import HoledTask
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.models.transformer import AttentionOnly, Transformer
from grokbook.optim import SGD, Adam, AdamW, Group, WarmAdamW
from grokbook.tasks import AdditionTask, GroupTask, ModularTask
from grokbook.train import engine
from grokbook.train.experiment import Experiment, Run, Schedule

MLP, TOY, CE = partial(TwoLayerMLP, 11, 32), {"hidden": (20, 20)}, "cross_entropy"
GROUPS, WARM = AdamW(0.005, 1.0, groups=(Group("W_E", 0.01, 0.1),)), WarmAdamW(0.01, 1.0)
ADD, SQUARES = ModularTask(11, "n + m", 0.6), ModularTask(11, "n**2 + m**2", 0.5)
SUMS, HOLED, PRODUCTS = HoledTask(11, "n + m", 0.5), HoledTask(11, "n + m", 0.5, "square", 4), HoledTask(11, "n*m", 0.5)
DIAGRAM = AdditionDecoder(6, 2, (20, 20), 11, "relu", normal=1.0, recipe="diagram")
# name -> task, model, optimizer, (seed, loss, batch size), and the losses after thirty steps: train, test
REFERENCE = {
    "gd": (ADD, MLP("input_mean_field"), SGD(500.0), (0,), (0.076066548, 0.089372438)),
    "momentum": (ADD, MLP("mean_field"), SGD(2.0, 0.9, 1e-3), (1,), (0.078500914, 0.090438204)),
    "adam": (SQUARES, MLP("standard"), Adam(0.01, 0.1), (2,), (0.090916648, 0.09091326)),
    "adamw, batches": (ADD, MLP("standard", "gelu"), AdamW(0.01, 1.0), (3, CE, 20), (2.2257035, 2.6981998)),
    "dropout": (ADD, MLP("standard", dropout=0.2), AdamW(0.01, 1.0), (4,), (0.044116444, 0.10797467)),
    "batch norm": (ADD, MLP("mean_field", batch_norm=True), SGD(2.0, 0.9), (5,), (0.075053684, 0.18052742)),
    "transformer": (ADD, Transformer(11, 16, 2), AdamW(0.01, 0.5), (6,), (0.072885113, 0.10289529)),
    "softmax attention": (ADD, AttentionOnly(11, 16, 4, 2), AdamW(0.01, 0.5), (7,), (0.07848698, 0.095303759)),
    "linear attention": (ADD, AttentionOnly(11, 16, 4, 1, "linear"), AdamW(0.01, 0.5), (8,), (0.075691168, 0.1009263)),
    "pairs": (HOLED, PairTransformer(11, 16), WARM, (9, CE), (1.2284151, 5.0112247)),
    "pairs, deep": (PRODUCTS, PairTransformer(11, 16, 2, 2, 5, False), WARM, (10, CE), (1.1796398, 5.2563154)),
    "pairs, Toeplitz": (SUMS, PairTransformer(11, 16, start="matched"), WARM, (11, CE), (1.8704974, 4.2578028)),
    "embedded MLP": (SUMS, EmbeddedMLP(11, 16, 24), WARM, (12, CE), (1.7490781, 3.812905)),
    "toy": (AdditionTask(6, 12), AdditionDecoder(6, **TOY), GROUPS, (9,), (0.78483334, 1.0260198)),
    "toy, diagram": (AdditionTask(6, 12, 0, recipe="diagram"), DIAGRAM, GROUPS, (10, CE, 7), (1.6980896, 4.4091845)),
    "toy, group": (GroupTask("S3", 20), ProductDecoder(6, **TOY), GROUPS, (11,), (0.68251736, 0.80449473)),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_thirty_steps_give_the_numbers_of_this_version(name):
    task, model, optimizer, (seed, *how), losses = REFERENCE[name]
    run = Run(task, model, optimizer, 30, seed, *how)
    ends = engine.train(Experiment("test/version", (run,), Schedule(log=2))).isel(run=0, step=-1)
    assert (float(ends.train_loss), float(ends.test_loss)) == pytest.approx(losses, rel=1e-4)
