"""Guards the versions in the content hash: if one of these numbers moves, raise the version of what moved it.

A version (``ENGINE_VERSION``, or ``version`` of a task, model or optimizer) is part of every recipe, so that records
made by other arithmetic turn stale instead of being taken for ours. Rounding differs between machines; over thirty
steps it stays small.
"""

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

TWO_GROUPS = AdamW(0.005, 1.0, groups=(Group("W_E", 0.01, 0.1),))
ADD, SQUARES = ModularTask(11, "n + m", 0.6), ModularTask(11, "n**2 + m**2", 0.5)
REFERENCE = {
    "gd": Run(ADD, TwoLayerMLP(11, 32, "input_mean_field"), SGD(500.0), 30, 0),
    "momentum": Run(ADD, TwoLayerMLP(11, 32, "mean_field"), SGD(2.0, 0.9, 1e-3), 30, 1),
    "adam": Run(SQUARES, TwoLayerMLP(11, 32, "standard"), Adam(0.01, 0.1), 30, 2),
    "adamw, batches, cross-entropy": Run(
        ADD, TwoLayerMLP(11, 32, "standard", "gelu"), AdamW(0.01, 1.0), 30, 3, "cross_entropy", 20
    ),
    "dropout": Run(ADD, TwoLayerMLP(11, 32, "standard", dropout=0.2), AdamW(0.01, 1.0), 30, 4),
    "batch norm": Run(ADD, TwoLayerMLP(11, 32, "mean_field", batch_norm=True), SGD(2.0, 0.9), 30, 5),
    "transformer": Run(ADD, Transformer(11, 16, 2), AdamW(0.01, 0.5), 30, 6),
    "softmax attention": Run(ADD, AttentionOnly(11, 16, 4, 2), AdamW(0.01, 0.5), 30, 7),
    "linear attention": Run(ADD, AttentionOnly(11, 16, 4, 1, "linear"), AdamW(0.01, 0.5), 30, 8),
    "pairs": Run(
        HoledTask(11, "n + m", 0.5, "square", 4), PairTransformer(11, 16), WarmAdamW(0.01, 1.0), 30, 9, "cross_entropy"
    ),
    "pairs, deep": Run(
        HoledTask(11, "n*m", 0.5),
        PairTransformer(11, 16, 2, 2, 5, False),
        WarmAdamW(0.01, 1.0),
        30,
        10,
        "cross_entropy",
    ),
    "pairs, Toeplitz": Run(
        HoledTask(11, "n + m", 0.5),
        PairTransformer(11, 16, start="matched"),
        WarmAdamW(0.01, 1.0),
        30,
        11,
        "cross_entropy",
    ),
    "embedded MLP": Run(
        HoledTask(11, "n + m", 0.5), EmbeddedMLP(11, 16, 24), WarmAdamW(0.01, 1.0), 30, 12, "cross_entropy"
    ),
    "toy": Run(AdditionTask(6, 12), AdditionDecoder(6, hidden=(20, 20)), TWO_GROUPS, 30, 9),
    "toy, diagram": Run(
        AdditionTask(6, 12, 0, recipe="diagram"),
        AdditionDecoder(6, 2, (20, 20), 11, "relu", normal=1.0, recipe="diagram"),
        TWO_GROUPS,
        30,
        10,
        "cross_entropy",
        7,
    ),
    "toy, group": Run(GroupTask("S3", 20), ProductDecoder(6, hidden=(20, 20)), TWO_GROUPS, 30, 11),
}
TRAIN_AND_TEST_LOSS = {
    "gd": (0.076066548, 0.089372438),
    "momentum": (0.078500914, 0.090438204),
    "adam": (0.090916648, 0.09091326),
    "adamw, batches, cross-entropy": (2.2257035, 2.6981998),
    "dropout": (0.044116444, 0.10797467),
    "batch norm": (0.075053684, 0.18052742),
    "transformer": (0.072885113, 0.10289529),
    "softmax attention": (0.07848698, 0.095303759),
    "linear attention": (0.075691168, 0.1009263),
    "pairs": (1.2284151, 5.0112247),
    "pairs, deep": (1.1796398, 5.2563154),
    "pairs, Toeplitz": (1.8704974, 4.2578028),
    "embedded MLP": (1.7490781, 3.812905),
    "toy": (0.78483334, 1.0260198),
    "toy, diagram": (1.6980896, 4.4091845),
    "toy, group": (0.68251736, 0.80449473),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_thirty_steps_give_the_numbers_of_this_version(name):
    record = engine.train(Experiment("test/version", (REFERENCE[name],), Schedule(log=2)))
    ends = record.isel(run=0, step=-1)
    assert (float(ends.train_loss), float(ends.test_loss)) == pytest.approx(TRAIN_AND_TEST_LOSS[name], rel=1e-4)
