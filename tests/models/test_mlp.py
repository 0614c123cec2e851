import pytest
import torch

from grokbook.models.mlp import ROWS, SCALINGS, TwoLayerMLP
from grokbook.streams import Stream, keys
from tests.stacks import side_by_side
from tests.textbook_mlp import PlainMLP, plain_loss

KEYS = torch.from_numpy(keys([0], "dropout"))
MODELS = [
    *(TwoLayerMLP(7, 12, scaling) for scaling in SCALINGS),
    *(TwoLayerMLP(7, 12, "mean_field", activation) for activation in ("relu", "gelu", "abs")),
    TwoLayerMLP(7, 12, "mean_field", batch_norm=True),
]


def pairs_of(members, rows, p, seed=0):
    return torch.randint(p, (members, rows, 2), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("members", [1, 3])
def test_outputs_and_gradients_agree_with_the_textbook_model(model, members):
    params, pairs = side_by_side(model, members), pairs_of(members, 30, model.p)
    labels = pairs.sum(-1) % model.p
    leaves = {name: value.clone().requires_grad_() for name, value in params.items()}
    outputs = model(leaves, pairs)
    losses = [plain_loss(outputs[i], labels[i], "mse") for i in range(members)]
    gradients = dict(zip(leaves, torch.autograd.grad(sum(losses), list(leaves.values())), strict=True))
    for i in range(members):
        net = PlainMLP(model, {name: value[i] for name, value in params.items()})
        theirs = net(pairs[i])
        torch.testing.assert_close(outputs[i], theirs, rtol=1e-12, atol=1e-12)
        plain_loss(theirs, labels[i], "mse").backward()
        for name in leaves:
            torch.testing.assert_close(gradients[name][i], getattr(net, name).grad, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_hand_derived_gradients_agree_with_autograd_over_several_chunks_and_paddings(scaling):
    model, rows = TwoLayerMLP(7, 12, scaling), 2 * ROWS + 37
    params, pairs = side_by_side(model, 2), pairs_of(2, rows, 7)
    labels = pairs.prod(-1) % 7
    weights = torch.zeros(2, rows, dtype=torch.float64)
    for i, size in enumerate((rows, rows - 100)):  # the second member's last hundred rows are padding
        weights[i, :size] = 1 / size
    ours = model.mse_gradients(params, pairs, labels, weights)
    for i, size in enumerate((rows, rows - 100)):
        net = PlainMLP(model, {name: value[i] for name, value in params.items()})
        plain_loss(net(pairs[i, :size]), labels[i, :size], "mse").backward()
        for name in params:
            torch.testing.assert_close(ours[name][i], getattr(net, name).grad, rtol=1e-11, atol=1e-12)


def test_initial_spread_is_that_of_the_scaling():
    for scaling, of in SCALINGS.items():
        params = TwoLayerMLP(53, 256, scaling).init(torch.Generator().manual_seed(0))
        std = of(53, 256)[1]
        assert params["W_in"].shape == (256, 106) and params["W_out"].shape == (53, 256)
        for value in params.values():
            assert float(value.std()) == pytest.approx(std, rel=0.03)


def test_dropout_silences_its_share_and_keeps_the_mean():
    model = TwoLayerMLP(5, 4000, "standard", dropout=0.25)
    params = side_by_side(model, 1)
    params["W_out"] = torch.ones_like(params["W_out"])
    pairs = pairs_of(1, 50, 5)
    quiet = model(params, pairs)
    noisy = model(params, pairs, noise=Stream(KEYS, 1))
    assert not torch.equal(quiet, noisy)
    torch.testing.assert_close(noisy.mean(), quiet.mean(), rtol=0.02, atol=0)
