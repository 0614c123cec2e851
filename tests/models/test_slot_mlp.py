"""The slot perceptron against one that concatenates embeddings, as a textbook does, in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from grokbook.models.slot_mlp import SlotMLP
from tests.stacks import side_by_side

MODELS = [SlotMLP(5, 9, 4, 6, 16), SlotMLP(5, 9, 4, 6, 16, shared=True), SlotMLP(3, 4, 2, 3, 8)]


def textbook(model: SlotMLP, params: dict[str, Tensor], member: int, tokens: Tensor) -> Tensor:
    """Outputs (B, classes) of one member."""
    one = {name: value[member] for name, value in params.items()}
    slots = range(model.slots)
    if model.shared:
        x, W_1 = sum(one["W_E"][0][tokens[:, slot]] for slot in slots), one["W_1"][0]
    else:
        x = torch.cat([one["W_E"][slot][tokens[:, slot]] for slot in slots], -1)
        W_1 = one["W_1"].flatten(0, 1)
    x = torch.relu(x @ W_1 + one["b_1"])
    x = torch.relu(x @ one["W_2"] + one["b_2"])
    return x @ one["W_U"] + one["b_U"]


@pytest.mark.parametrize("model", MODELS, ids=["slots", "shared", "small"])
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_and_gradients_equal_the_textbook(model: SlotMLP, members: int) -> None:
    params = side_by_side(model, members)
    params = {name: (value + 0.1 * (value == 0)).requires_grad_() for name, value in params.items()}
    generator = torch.Generator().manual_seed(9)
    tokens = torch.randint(model.tokens, (members, 20, model.slots), generator=generator)
    labels = torch.randint(model.classes, (members, 20), generator=generator)
    outputs = model(params, tokens)
    plain = torch.stack([textbook(model, params, member, tokens[member]) for member in range(members)])
    assert plain.std() > 0.05
    torch.testing.assert_close(outputs, plain, rtol=0, atol=1e-12 * plain.abs().max().item())
    for ours, theirs in zip(
        *(
            torch.autograd.grad(nn.functional.cross_entropy(one.transpose(1, 2), labels), [*params.values()])
            for one in (outputs, plain)
        ),
        strict=True,
    ):
        assert theirs.abs().max() > 0
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_init_has_the_stated_variances() -> None:
    params = SlotMLP(50, 60, width=400).init(torch.Generator().manual_seed(0))
    assert params["W_E"].std().item() == pytest.approx(1, rel=0.03)
    for name, fan_in in (("W_1", 128), ("W_2", 400), ("W_U", 400)):
        assert params[name].std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.03)
    assert not any(params[name].any() for name in ("b_1", "b_2", "b_U"))
