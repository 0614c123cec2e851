"""The transformer and the MLP of Gu et al. against their textbook twins, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.pair_transformer import PairTransformer, toeplitz
from tests import textbook_transformer as textbook
from tests.models.test_transformer import SAMPLES, P, assert_same, tokens
from tests.stacks import side_by_side

D = 12

Model = PairTransformer | EmbeddedMLP
MODELS: list[Model] = [
    *(
        PairTransformer(P, D, layers, heads, offset, positions)
        for layers in (1, 3)
        for heads, offset, positions in ((4, 0, True), (1, 0, False), (2, 3, True), (4, 7, False))
    ),
    PairTransformer(P, D, start="toeplitz"),
    EmbeddedMLP(P, D, 17),
]
ids = [
    f"{m.layers} layers-{m.heads} heads-offset {m.offset}-{m.positions}-{m.start}"
    if isinstance(m, PairTransformer)
    else "MLP"
    for m in MODELS
]
each_model = pytest.mark.parametrize("model", MODELS, ids=ids)


def ensemble(model: Model, members: int) -> dict[str, Tensor]:
    """Members of different seeds, in float64, with biases and an attention that is far from uniform."""
    params = side_by_side(model, members)
    params["W_E"] *= 3
    noise = torch.Generator().manual_seed(3)
    for name, value in params.items():
        if name.startswith("b"):
            value += torch.randn(value.shape, generator=noise).double() / 3
    return {name: value.requires_grad_() for name, value in params.items()}


def twin_names(model: Model, values: dict[str, Tensor], member: int) -> dict[str, Tensor]:
    """One member's parameters or gradients under the names, and in the shapes, of the textbook net."""
    one = {name: value[member].detach() for name, value in values.items()}
    if isinstance(model, EmbeddedMLP):
        names = {"embed.weight": one["W_E"]}
        for place, name in ((0, "1"), (2, "2"), (4, "U")):
            names |= {f"layers.{place}.weight": one[f"W_{name}"].T, f"layers.{place}.bias": one[f"b_{name}"]}
        return names
    names = {"embed.weight": one["W_E"], "unembed.weight": one["W_U"].T}
    if model.positions:
        names["positions"] = one["W_pos"]
    for layer in range(model.layers):
        names |= {f"attention.{layer}.{name}": one[name][layer] for name in ("W_Q", "W_K", "W_V", "W_O")}
        for place, name in ((0, "in"), (2, "out")):
            names[f"mlp.{layer}.{place}.weight"] = one[f"W_{name}"][layer].T
            names[f"mlp.{layer}.{place}.bias"] = one[f"b_{name}"][layer]
    return names


def twin(model: Model, params: dict[str, Tensor], member: int) -> nn.Module:
    """The textbook net with the weights of one member."""
    net: nn.Module
    if isinstance(model, EmbeddedMLP):
        net = textbook.EmbeddedMLP(model.p, model.d_model, model.width)
    else:
        net = textbook.PairTransformer(model.p, model.d_model, model.layers, model.heads, model.offset, model.positions)
    net.load_state_dict({k: v.clone() for k, v in twin_names(model, params, member).items()}, assign=True)
    return net.requires_grad_()


@each_model
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_and_gradients_equal_the_textbook(model: Model, members: int) -> None:
    params, inputs = ensemble(model, members), tokens(members)
    weights = torch.randn(members, SAMPLES, P, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    outputs = model(params, inputs)
    found = torch.autograd.grad((outputs * weights).sum(), [*params.values()])
    for member in range(members):
        net = twin(model, params, member)
        expected = net(inputs[member])
        assert expected.std() > 0.05  # else agreement would mean little
        assert_same(outputs[member], expected)
        (expected * weights[member]).sum().backward()
        gradients = twin_names(model, dict(zip(params, found, strict=True)), member)
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            assert_same(gradients[name], parameter.grad)


@pytest.mark.parametrize("samples", [SAMPLES, 513, 1100])
@pytest.mark.parametrize("model", [m for m in MODELS if getattr(m, "has_own_gradients", False)], ids=repr)
def test_hand_derived_gradients_of_the_cross_entropy_equal_the_textbook(model: PairTransformer, samples: int) -> None:
    params = ensemble(model, 2)
    draw = torch.Generator().manual_seed(7)
    inputs = torch.randint(P, (2, samples, 2), generator=draw)
    labels = torch.randint(P, (2, samples), generator=draw)
    weights = torch.rand(2, samples, generator=draw, dtype=torch.float64)
    found = model.cross_entropy_gradients(params, inputs, labels, weights)
    assert all(not value.requires_grad for value in params.values())  # as the engine hands them in and wants them back
    for member in range(2):
        net = twin(model, params, member)
        losses = nn.functional.cross_entropy(net(inputs[member]), labels[member], reduction="none")
        (losses * weights[member]).sum().backward()
        gradients = twin_names(model, found, member)
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            assert_same(gradients[name], parameter.grad)


@pytest.mark.parametrize("layers", [1, 2])
def test_evaluation_by_slices_gives_the_outputs_of_one_piece(layers: int) -> None:
    model = PairTransformer(P, D, layers)
    params, inputs = ensemble(model, 2), torch.randint(P, (2, 1100, 2))
    whole = model(params, inputs)
    with torch.no_grad():
        assert_same(model(params, inputs), whole)


def test_without_offset_and_positions_one_layer_cannot_tell_the_operands_apart() -> None:
    """So such a net cannot learn x - y; with either of the two it can tell."""
    table = torch.cartesian_prod(torch.arange(P), torch.arange(P))[None]
    for offset, positions, symmetric in ((0, False, True), (0, True, False), (P, False, False)):
        model = PairTransformer(P, D, offset=offset, positions=positions)
        outputs = model(ensemble(model, 1), table).view(P, P, P)
        assert torch.allclose(outputs, outputs.transpose(0, 1), atol=1e-5) == symmetric


@pytest.mark.parametrize("offset", [0, 1, P - 1, P])
def test_the_vocabulary_has_room_for_both_operands_and_a_cls_of_its_own(offset: int) -> None:
    model = PairTransformer(P, D, offset=offset)
    assert model.vocabulary == offset + P + 1
    params = ensemble(model, 1)
    table = torch.cartesian_prod(torch.arange(P), torch.arange(P))[None]
    used = torch.autograd.grad(model(params, table).square().sum(), params["W_E"])[0][0].abs().sum(1) > 0
    assert used.all()  # offset is at most p, so that no token between the blocks is without use
    cls = ensemble(model, 1)
    with torch.no_grad():
        cls["W_E"][:, -1] += 1
    assert (model(cls, table) != model(params, table)).any(-1).all()  # "cls" is in every sequence


def test_init_has_the_stated_sizes() -> None:
    for name, value in PairTransformer(97, layers=2).init(torch.Generator().manual_seed(0)).items():
        assert name[0] != "b" or not value.any()
        if name.startswith("W") and name != "W_pos":
            assert value.std().item() == pytest.approx(128**-0.5, rel=0.03)
    assert sum(value.numel() for value in PairTransformer(97).init(torch.Generator()).values()) == (
        98 * 128 + 3 * 128 + 4 * 128**2 + 2 * 4 * 128**2 + 4 * 128 + 128 + 128 * 97
    )


def test_the_linear_layers_of_the_mlp_start_as_those_of_torch_do() -> None:
    params = EmbeddedMLP(97).init(torch.Generator().manual_seed(0))
    assert params["W_E"].std().item() == pytest.approx(128**-0.5, rel=0.03)
    for name, fan_in in (("1", 384), ("2", 512), ("U", 512)):
        for value in (params[f"W_{name}"], params[f"b_{name}"]):
            assert fan_in**-0.5 * 0.97 < value.abs().max().item() <= fan_in**-0.5
            assert value.mean().abs().item() < 0.2 * fan_in**-0.5


def test_a_toeplitz_start_is_toeplitz_and_its_control_has_its_means_and_norms() -> None:
    drawn = {start: PairTransformer(97, start=start).init(torch.Generator().manual_seed(4)) for start in
             ("gaussian", "toeplitz", "matched")}  # fmt: skip
    structured, control = drawn["toeplitz"]["W_E"], drawn["matched"]["W_E"]
    v = structured[0] * 128**0.5
    assert v.min() >= 0 and v.max() < 1 and v.std() > 0.2
    for i, j in ((0, 5), (5, 0), (31, 7), (97, 127)):
        assert structured[i, j] == structured[0, abs(i - j)]
    assert structured.norm(dim=1).square().mean().sqrt().item() == pytest.approx(3**-0.5, rel=0.1)
    torch.testing.assert_close(control.mean(1), structured.mean(1))
    torch.testing.assert_close(control.norm(dim=1), structured.norm(dim=1))
    random = drawn["gaussian"]["W_E"]
    for token in (0, 50):
        assert np.corrcoef(control[token], random[token])[0, 1] == pytest.approx(1)
    for name in drawn["gaussian"].keys() - {"W_E"}:
        assert torch.equal(drawn["gaussian"][name], drawn["toeplitz"][name])
        assert torch.equal(drawn["gaussian"][name], drawn["matched"][name])


def test_toeplitz_of_three_numbers_is_known_by_hand() -> None:
    a, b, c = 1.0, 2.0, 3.0
    assert toeplitz(torch.tensor([a, b, c])).tolist() == [[a, b, c], [b, a, b], [c, b, a]]
