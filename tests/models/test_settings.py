"""Sizes and settings that a model, or its task, cannot have: each is named with its value."""

import pytest

from grokbook.models.decoder import Decoder
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.encoder import PairEncoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.resnet import ResNet18
from grokbook.models.slot_mlp import SlotMLP
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.models.transformer import AttentionOnly
from grokbook.tasks import AdditionTask, GroupTask


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: AttentionOnly(1), "p = 1: at least 2"),
        (lambda: AttentionOnly(97, heads=3), "heads must divide d_model = 128, got 3"),
        (lambda: AttentionOnly(97, heads=0), "heads = 0: at least 1"),
        (lambda: AttentionOnly(97, layers=0), "layers = 0: at least 1"),
        (lambda: AttentionOnly(97, attention="cosine"), "attention must be one of .*, got 'cosine'"),
        (lambda: AttentionOnly(97, embedding_std=0.0), "embedding_std must be above 0, got 0.0"),
        (lambda: Decoder(1), "p = 1"),
        (lambda: Decoder(97, heads=3), "heads = 3"),
        (lambda: Decoder(97, d_model=9, heads=3), "even"),
        (lambda: Decoder(97, layers=0), "layers"),
        (lambda: PairEncoder(5, dropout=1.0), "dropout = 1.0"),
        (lambda: PairEncoder(5, layers=0), "layers = 0"),
        (lambda: TwoLayerMLP(5, 0), "width = 0"),
        (lambda: TwoLayerMLP(5, 4, scaling="ntk"), "mean_field"),
        (lambda: TwoLayerMLP(5, 4, activation="sine"), "quadratic"),
        (lambda: TwoLayerMLP(5, 4, dropout=1.0), "dropout"),
        (lambda: EmbeddedMLP(97, width=0), "width = 0: at least 1"),
        (lambda: PairTransformer(1), "p = 1: at least 2"),
        (lambda: PairTransformer(97, heads=3), "heads = 3: a divisor of d_model = 128"),
        (lambda: PairTransformer(97, layers=0), "layers = 0: at least 1"),
        (lambda: PairTransformer(97, offset=98), "offset = 98: from 0 to p = 97"),
        (lambda: PairTransformer(97, offset=-1), "offset = -1: from 0 to p = 97"),
        (lambda: PairTransformer(97, start="circulant"), "one of 'gaussian', 'toeplitz', 'matched', got 'circulant'"),
        (lambda: PairTransformer(97, d_model=64, start="toeplitz"), "d_model = 64: .* needs one for each of 98 tokens"),
        (lambda: ResNet18(width=0.1), "width = 0.1"),
        (lambda: ResNet18(width=0), "width = 0"),
        (lambda: ResNet18(channels=2), "channels = 2"),
        (lambda: ResNet18(size=4), "size = 4"),
        (lambda: ResNet18(1), "classes = 1"),
        (lambda: ResNet18(head="max"), "head must be one of 'pool', 'flatten', got 'max'"),
        (lambda: SlotMLP(1, 9), "tokens = 1"),
        (lambda: SlotMLP(5, 1), "classes = 1"),
        (lambda: SlotMLP(5, 9, slots=0), "slots = 0"),
        (lambda: SlotMLP(5, 9, d_model=0), "d_model = 0"),
        (lambda: SlotMLP(5, 9, width=0), "width = 0"),
        (lambda: AdditionTask(1, 1), "p = 1"),
        (lambda: AdditionTask(4, 0), "train_size = 0: between 1 and 9 of the 10"),
        (lambda: AdditionTask(4, 10), "train_size = 10"),
        (lambda: AdditionTask(4, 5, -1), "target_size = -1"),
        (lambda: AdditionTask(4, 1, pairs=((0, 4),)), r"pairs: \(0, 4\) is outside the table; symbols are 0 to 3"),
        (lambda: AdditionTask(4, 5, pairs=((0, 1),)), "pairs holds 1"),
        (lambda: AdditionTask(4, 5, recipe="other"), "one of 'trainer', 'diagram'"),
        (lambda: GroupTask("D4", 5), "group must be S2 to S5 or Z"),
        (lambda: GroupTask("S3", 36), "train_size = 36: between 1 and 35"),
        (lambda: AdditionDecoder(4, activation="gelu"), "one of 'tanh', 'relu'"),
        (lambda: AdditionDecoder(4, hidden=(0,)), "at least one unit"),
        (lambda: ProductDecoder(6, init_scale=0.0), "init_scale = 0.0"),
    ],
)
def test_what_no_network_can_have_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
