"""The fast decoder against its textbook twin, in double precision and member by member."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from grokbook.models.decoder import Decoder, sinusoids
from grokbook.streams import Stream, keys
from grokbook.train import data
from tests import textbook_decoder as textbook
from tests.models.test_transformer import SAMPLES, P, assert_same, tokens
from tests.stacks import side_by_side

D = 12
MODELS = [Decoder(P, D, layers, heads) for layers, heads in ((1, 3), (2, 4), (3, 1))]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.layers} layers, {model.heads} heads")


def ensemble(model: Decoder, members: int) -> dict[str, Tensor]:
    """Members of different seeds, in float64, with large scores and with gains and shifts that matter."""
    params = side_by_side(model, members)
    generator = torch.Generator().manual_seed(7)
    for name, value in params.items():
        if name.startswith(("gain", "shift")):
            value += torch.randn(value.shape, generator=generator, dtype=torch.float64) / 2
    params["W_Q"] *= 3
    return {name: value.requires_grad_() for name, value in params.items()}


def twin(model: Decoder, params: dict[str, Tensor], member: int) -> textbook.Decoder:
    net = textbook.Decoder(model.p, model.d_model, model.layers, model.heads).double()
    net.position.copy_(sinusoids(4, model.d_model).double())  # to the last bit, for the comparison at 1e-12
    return textbook.load(net, params, member)


@each_model
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_and_gradients_equal_the_textbook(model: Decoder, members: int) -> None:
    params, pairs = ensemble(model, members), tokens(members)
    labels = pairs.sum(-1) % P
    outputs = model(params, pairs)
    loss = data.sample_losses(outputs, labels, "cross_entropy").mean(-1).sum()
    gradients = dict(zip(params, torch.autograd.grad(loss, [*params.values()]), strict=True))
    for member in range(members):
        net = twin(model, params, member)
        expected = net(pairs[member])
        assert expected.std() > 0.05  # else agreement would mean little
        assert_same(outputs[member], expected)
        nn.functional.cross_entropy(expected, labels[member]).backward()
        for name, parameter in textbook.named(net):
            assert parameter.grad is not None and parameter.grad.abs().max() > 0
            assert_same(textbook.one(gradients, name, member), parameter.grad)


@each_model
def test_dropout_acts_on_what_the_mlps_add_at_every_position_of_every_sample(model: Decoder) -> None:
    share, seeds = 0.3, (4, 9)
    model = dataclasses.replace(model, dropout=share)
    params, pairs = ensemble(model, len(seeds)), tokens(len(seeds))
    outputs = model(params, pairs, Stream(torch.from_numpy(keys(seeds, "dropout")), 5))
    gradients = dict(zip(params, torch.autograd.grad(outputs.square().sum(), [*params.values()]), strict=True))
    for member, seed in enumerate(seeds):
        stream, kept = Stream(torch.from_numpy(keys([seed], "dropout")), 5), []
        for _ in range(model.layers - 1):
            kept.append(stream.kept((4, SAMPLES, D), share)[0].transpose(0, 1).double() / (1 - share))
        last = torch.ones(SAMPLES, 4, D, dtype=torch.float64)
        last[:, 3] = stream.kept((SAMPLES, D), share)[0].double() / (1 - share)
        net = twin(model, params, member)
        expected = net(pairs[member], [*kept, last])
        assert (expected - net(pairs[member])).std() > 0.05  # dropout matters
        assert_same(outputs[member], expected)
        expected.square().sum().backward()
        for name, parameter in textbook.named(net):
            assert_same(textbook.one(gradients, name, member), parameter.grad)


def test_positions_are_those_of_the_textbook() -> None:
    torch.testing.assert_close(sinusoids(4, D), textbook.Decoder(P, D, 1, 1).position, rtol=1e-6, atol=1e-7)


def test_the_paper_counts_about_four_hundred_thousand_parameters_besides_embedding_and_output() -> None:
    params = Decoder(97).init(torch.Generator())
    assert sum(value.numel() for name, value in params.items() if name not in ("W_E", "W_U")) == 394_240


def test_init_is_that_of_torch() -> None:
    one = Decoder(97).init(torch.Generator().manual_seed(0))
    plain = textbook.Decoder(97, 128, 2, 4)
    for name, parameter in textbook.named(plain):
        ours = textbook.one({key: value[None] for key, value in one.items()}, name, 0)
        assert ours.shape == parameter.shape and ours.dtype == torch.float32
        assert ours.std().item() == pytest.approx(parameter.std().item(), rel=0.03)
