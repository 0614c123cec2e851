"""A small stack for every model of the book, with every optimizer among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from grokbook.models.decoder import Decoder
from grokbook.models.dense import DenseNet
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.encoder import PairEncoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.resnet import ResNet18
from grokbook.models.slot_mlp import SlotMLP
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.models.transformer import AttentionOnly, Transformer
from grokbook.optim import SGD, Adam, AdamW, Group, WarmAdamW
from grokbook.tasks import AdditionTask, GroupTask, ModularTask
from grokbook.train.experiment import Run


@dataclass(frozen=True)
class Pictures:
    """Noise with labels."""

    shape: tuple[int, ...]
    classes: int = 3
    rows: int = 22
    version: ClassVar[int] = 1

    def table(self):
        generator = np.random.default_rng(0)
        pixels = generator.normal(size=(self.rows, *self.shape)).astype(np.float32)
        return pixels, generator.integers(self.classes, size=self.rows)

    @property
    def train_size(self):
        return 2 * self.rows // 3

    def in_train(self, seed):
        return np.random.default_rng(seed).permutation(self.rows) < self.train_size


@dataclass(frozen=True)
class Slots(Pictures):
    def table(self):
        generator = np.random.default_rng(0)
        return generator.integers(5, size=(self.rows, 4)), generator.integers(self.classes, size=self.rows)


T, ADD = ModularTask(11, "n + m", 0.6), AdditionTask(6, 12, 5)
ADAMW = AdamW(0.01, 1.0, (0.9, 0.98))
GROUPED = AdamW(0.01, groups=(Group("W_E", 0.02, 0.0),))
POWER = WarmAdamW(0.01, 0.7, decay_to_start=True, update_noise=0.1, weight_noise=0.02)
HINGE = TwoLayerMLP(11, 24, "standard", "relu", dropout=0.2)
# name -> task, model, optimizer, loss, batch size
STACKS = {
    "quadratic MLP": (T, TwoLayerMLP(11, 24, "standard"), SGD(0.5), "mse", None),
    "quadratic MLP, momentum and decay": (T, TwoLayerMLP(11, 24, "standard"), SGD(0.2, 0.9, 0.01), "mse", None),
    "MLP, dropout": (T, HINGE, Adam(0.01, 0.1), "cross_entropy", 16),
    "MLP, batch norm": (T, TwoLayerMLP(11, 24, "standard", batch_norm=True), ADAMW, "mse", None),
    "pair transformer": (T, PairTransformer(11, 16, heads=2), ADAMW, "cross_entropy", None),
    "pair transformer, two layers": (T, PairTransformer(11, 16, layers=2, heads=2), ADAMW, "cross_entropy", 20),
    "embedded MLP": (T, EmbeddedMLP(11, 8, 12), ADAMW, "cross_entropy", None),
    "decoder": (T, Decoder(11, 16), WarmAdamW(0.01, 1.0), "cross_entropy", 20),
    "decoder, all variants": (T, Decoder(11, 16, dropout=0.1), POWER, "cross_entropy", 20),
    "transformer": (T, Transformer(11, 16, 2), ADAMW, "cross_entropy", None),
    "attention": (T, AttentionOnly(11, 16, 2, 2), Adam(0.01), "cross_entropy", None),
    "encoder": (T, PairEncoder(11, 16, 2, 8, 0.1), ADAMW, "cross_entropy", 20),
    "toy": (ADD, AdditionDecoder(6, hidden=(7, 9), outputs=5), GROUPED, "mse", None),
    "toy, minibatches": (ADD, AdditionDecoder(6, hidden=(7, 9), outputs=5), GROUPED, "mse", 5),
    "toy of a group": (GroupTask("S3", 20, 4), ProductDecoder(6, 3, (7, 9), 4), GROUPED, "mse", None),
    "images": (Pictures((30,)), DenseNet((30, 8, 3), init_scale=8.0), ADAMW, "mse", 6),
    "slots": (Slots((4,)), SlotMLP(5, 3, 4, 6, 16), ADAMW, "cross_entropy", 6),
    "ResNet-18": (Pictures((1, 8, 8)), ResNet18(3, 1 / 16, 1, 8), ADAMW, "cross_entropy", 6),
}


def runs_of(name, members=2, steps=25):
    task, model, optimizer, loss, batch = STACKS[name]
    last = {"last_batch": "short"} if batch else {}
    return tuple(Run(task, model, optimizer, steps, seed, loss, batch, **last) for seed in range(members))


def side_by_side(model, members):
    """The parameters of members of the seeds from 0 on, as an ensemble has them, in float64."""
    drawn = [model.init(torch.Generator().manual_seed(seed)) for seed in range(members)]
    return {name: torch.stack([one[name] for one in drawn]).double() for name in drawn[0]}
