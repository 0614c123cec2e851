"""The fast nets against their textbook twins, in double precision and member by member."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from grokbook.models import transformer
from grokbook.models.transformer import AttentionOnly, Transformer
from tests import textbook_transformer as textbook
from tests.stacks import side_by_side

P, D, SAMPLES = 7, 16, 23  # small, and none a multiple of another, so that a swapped axis cannot go unnoticed

MODELS: list[Transformer | AttentionOnly] = [
    Transformer(P, d_model=D, heads=1, mlp_ratio=3),
    Transformer(P, d_model=D, heads=4, mlp_ratio=2, logit_scale=0.7),
    *(
        AttentionOnly(P, d_model=D, heads=heads, layers=layers, attention=attention, logit_scale=scale)  # type: ignore[arg-type]
        for attention in ("softmax", "linear")
        for layers in (1, 3)
        for heads, scale in ((1, None), (4, 0.7), (16, None))
    ),
]
ids = [f"{type(m).__name__}-{getattr(m, 'attention', 'softmax')}-{getattr(m, 'layers', 1)}-{m.heads}" for m in MODELS]
each_model = pytest.mark.parametrize("model", MODELS, ids=ids)


def ensemble(model: Transformer | AttentionOnly, members: int) -> dict[str, Tensor]:
    """Members of different seeds, in float64, embedded so large that attention is far from uniform."""
    params = side_by_side(model, members)
    params["W_E"] *= 3
    return {name: value.requires_grad_() for name, value in params.items()}


def tokens(members: int) -> Tensor:
    return torch.randint(P, (members, SAMPLES, 2), generator=torch.Generator().manual_seed(99))


def twin(model: Transformer | AttentionOnly, params: dict[str, Tensor], member: int) -> nn.Module:
    """The textbook net with the weights of one member."""
    scale = model.logit_scale if model.logit_scale is not None else 1 / model.d_model
    net: nn.Module
    if isinstance(model, Transformer):
        net = textbook.Transformer(model.p, model.d_model, model.heads, model.mlp_ratio, scale)
    else:
        linear = model.attention == "linear"
        net = textbook.AttentionOnly(model.p, model.d_model, model.heads, model.layers, linear, scale)
    weights = {name: value[member].clone() for name, value in twin_names(model, params).items()}
    net.load_state_dict(weights, assign=True)
    return net.requires_grad_()


def twin_names(model: Transformer | AttentionOnly, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Parameters or gradients (M, ...) under the textbook net's names: one entry per layer."""
    names: dict[str, Tensor] = {}
    for name, value in values.items():
        value = value.detach()
        if name not in ("W_Q", "W_K", "W_V", "W_O"):
            names[name] = value
        elif isinstance(model, Transformer):
            names[f"attention.{name}"] = value
        else:
            names |= {f"layers.{layer}.{name}": value[:, layer] for layer in range(model.layers)}
    return names


def assert_same(ours: Tensor, plain: Tensor) -> None:
    """Equal to 1e-12 of the largest entry: sums that nearly cancel keep the rounding of their terms."""
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12 * plain.abs().max().item())


@each_model
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_and_gradients_equal_the_textbook(model: Transformer | AttentionOnly, members: int) -> None:
    params, inputs = ensemble(model, members), tokens(members)
    weights = torch.randn(members, SAMPLES, P, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    outputs = model(params, inputs)
    gradients = twin_names(
        model, dict(zip(params, torch.autograd.grad((outputs * weights).sum(), [*params.values()]), strict=True))
    )

    for member in range(members):
        net = twin(model, params, member)
        expected = net(inputs[member])
        assert expected.std() > 0.05  # else agreement would mean little
        assert_same(outputs[member], expected)
        (expected * weights[member]).sum().backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            assert_same(gradients[name][member], parameter.grad)


def test_activations_are_those_of_the_textbook_over_the_whole_table() -> None:
    model = Transformer(P, d_model=D, heads=4)
    params = ensemble(model, 2)
    pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P)).expand(2, -1, -1)
    table = model.activations(params, pairs).unflatten(1, (P, P))
    assert table.shape == (2, P, P, 4 * D)
    for member in range(2):
        net = twin(model, params, member)
        for n, m in [(0, 0), (2, 5), (6, 1)]:
            net(torch.tensor([[n, m]]))
            assert isinstance(net, textbook.Transformer)
            assert_same(table[member, n, m], net.hidden[0, -1])


@pytest.mark.parametrize("model", [Transformer(97), AttentionOnly(97, layers=2)], ids=lambda m: type(m).__name__)
def test_init_has_the_stated_size(model: Transformer | AttentionOnly) -> None:
    for name, value in model.init(torch.Generator().manual_seed(0)).items():
        fan_in = 128 if name == "W_E" else value.shape[-2]
        if name != "W_pos":
            assert value.std().item() == pytest.approx(fan_in**-0.5, rel=0.03)


def test_embeddings_may_start_larger_and_nothing_else_does() -> None:
    usual, larger = (AttentionOnly(97, embedding_std=std).init(torch.Generator().manual_seed(0)) for std in (None, 1.0))
    for name, value in usual.items():
        factor = 128**0.5 if name in ("W_E", "W_pos") else 1
        torch.testing.assert_close(larger[name], value * factor)


@pytest.mark.parametrize("members", [1, 3])
def test_rows_with_a_backward_pass_of_our_own_are_those_of_an_embedding(members):
    draw = torch.Generator().manual_seed(0)
    table = torch.randn(members, 5, 4, dtype=torch.float64, generator=draw, requires_grad=True)
    index = torch.randint(5, (members, 9), generator=draw)
    weight = torch.randn(members, 9, 4, dtype=torch.float64, generator=draw)
    theirs, ours = transformer.rows_of(table, index), transformer._safe_rows()(table, index)
    assert torch.equal(ours, theirs)
    expected, found = (torch.autograd.grad((rows * weight).sum(), table)[0] for rows in (theirs, ours))
    assert torch.allclose(found, expected, rtol=0, atol=1e-14)
