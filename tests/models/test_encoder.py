import pytest
import torch

from grokbook.models.encoder import PairEncoder
from grokbook.optim import AdamW, Group
from grokbook.streams import Stream, keys
from grokbook.tasks import ModularTask
from grokbook.train import engine
from grokbook.train.experiment import Experiment, Run, Schedule
from tests.textbook_encoder import PlainEncoder

MODEL, TASK = PairEncoder(7, 12, 2, 10), ModularTask(7, "n + m", 0.6)
KEYS = torch.from_numpy(keys([0], "dropout"))
OPTIMIZER = AdamW(0.003, 1.0, groups=(Group("W_E", 0.01, 0.1),))


def state_of(model=MODEL, seeds=(3, 4), dtype=torch.float64):
    runs = tuple(Run(TASK, model, OPTIMIZER, 20, seed, "cross_entropy") for seed in seeds)
    state = engine.Training.start(Experiment("test/encoder", runs, Schedule(log=2)), torch.device("cpu"), dtype).state
    # Biases and norms start as constants; anything else tells a mistake in them from none.
    generator = torch.Generator().manual_seed(0)
    for value in state.params.values():
        value.add_(0.1 * torch.randn(value.shape, generator=generator, dtype=dtype))
    return state


def test_outputs_and_gradients_agree_with_the_layers_of_torch():
    state = state_of()
    inputs, labels, *_ = state.batch()
    outputs, gradients = MODEL(state.params, inputs), state.gradients()
    for i in range(2):
        net = PlainEncoder(MODEL, {name: value[i] for name, value in state.params.items()})
        theirs = net(inputs[i])
        torch.testing.assert_close(outputs[i], theirs.detach(), rtol=1e-12, atol=1e-12)
        torch.nn.functional.cross_entropy(theirs, labels[i]).backward()
        assert set(net.named()) == set(gradients)
        for name, parameter in net.named().items():
            torch.testing.assert_close(gradients[name][i], parameter.grad, rtol=1e-10, atol=1e-12)


def test_initial_weights_have_the_spread_of_torchs_own():
    model = PairEncoder(31, 64, 1, 48)
    params = model.init(torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    theirs = PlainEncoder(model, params)
    fresh = torch.nn.TransformerEncoderLayer(64, 1, 48, batch_first=True, norm_first=True)
    for name, layer in (("W_QKV", fresh.self_attn.in_proj_weight), ("W_in", fresh.linear1.weight)):
        assert float(params[f"{name}_0"].std()) == pytest.approx(float(layer.detach().std()), rel=0.05)
    assert float(params["W_E"].std()) == pytest.approx(1, rel=0.05)
    assert not params["b_QKV_0"].any() and theirs.named()["g1_0"].eq(1).all()


def test_dropout_keeps_the_mean_and_follows_the_seed():
    model = PairEncoder(7, 12, 1, 10, dropout=0.2)
    state = state_of(model, (1,))
    pairs = state.data.table[None]
    noisy = [model(state.params, pairs, noise=Stream(KEYS, k)) for k in range(400)]
    again = model(state.params, pairs, noise=Stream(KEYS, 0))
    assert torch.equal(noisy[0], again) and not torch.equal(noisy[0], noisy[1])
    # Through one block the average is not exactly the quiet output, but near it.
    quiet, mean = model(state.params, pairs), torch.stack(noisy).mean(0)
    assert float((mean - quiet).abs().max()) < 0.25 * float((noisy[0] - quiet).abs().max())
    assert mean.isfinite().all()
