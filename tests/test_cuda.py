"""What only a GPU can show; skipped where there is none. The CPU side of the same code is in test_engine.py."""

import numpy as np
import pytest
import torch

from grokbook.curves import first_step
from grokbook.models.decoder import Decoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask, ModularTask
from grokbook.train import engine
from grokbook.train import state as train_state
from grokbook.train.experiment import Experiment, Run, Schedule

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine")]

ADAMW = AdamW(1e-3, 1.0, (0.9, 0.98))
TOY = AdamW(1e-3, groups=(Group("W_E", 1e-3, 0.0),))
RUNS = {
    "quadratic MLP": Run(ModularTask(23), TwoLayerMLP(23, 64, "standard"), AdamW(0.01, 1.0), 50, 0),
    "minibatches": Run(ModularTask(23), TwoLayerMLP(23, 64, "standard", "gelu"), ADAMW, 50, 0, "cross_entropy", 64),
    "pair transformer": Run(ModularTask(23), PairTransformer(23, 32), ADAMW, 50, 0, "cross_entropy"),
    "decoder": Run(ModularTask(23, "n - m"), Decoder(23, 32), ADAMW, 50, 0, "cross_entropy", 128),
    "toy": Run(AdditionTask(10, 45), AdditionDecoder(10), TOY, 50, 0),
}
each_model = pytest.mark.parametrize("name", RUNS)


def whole(name, seeds=3, **changes):
    from dataclasses import replace

    runs = tuple(replace(RUNS[name], seed=seed, **changes) for seed in range(seeds))
    return Experiment("test/cuda", runs, Schedule(log=10))


def state(name, device):
    return engine.Training.start(whole(name), torch.device(device), torch.float32).state


@each_model
def test_a_seed_starts_as_the_same_network_on_both_to_the_last_bit(name):
    here, there = state(name, "cpu").params, state(name, "cuda").params
    assert all(torch.equal(value, there[key].cpu()) for key, value in here.items())


@each_model
def test_fifty_steps_stay_close_to_the_cpu(name):
    here, there = engine.train(whole(name), device="cpu"), engine.train(whole(name), device="cuda")
    np.testing.assert_allclose(there.train_loss, here.train_loss, rtol=2e-3)
    np.testing.assert_allclose(there.test_loss, here.test_loss, rtol=2e-3)


@each_model
def test_a_graph_replays_what_eager_steps_do(name, monkeypatch):
    graph = state(name, "cuda")
    for _ in range(20):
        graph.update()
    monkeypatch.setattr(train_state, "capture", lambda step, tables: step)
    eager = state(name, "cuda")
    for _ in range(20):
        eager.update()
    for key, value in eager.params.items():
        torch.testing.assert_close(graph.params[key], value, rtol=1e-4, atol=1e-5)


def test_members_grok_when_they_do_on_the_cpu():
    run = Run(ModularTask(23, "n + m", 0.7), TwoLayerMLP(23, 128, "standard"), AdamW(0.01, 5.0), 1500, 0)
    from dataclasses import replace

    grok = Experiment("test/grok", tuple(replace(run, seed=seed) for seed in range(8)), Schedule(log=150))
    times = {}
    for device in ("cpu", "cuda"):
        record = engine.train(grok, device=device)
        times[device] = first_step(record.test_accuracy, record.step, 0.99)
    assert np.isfinite(times["cpu"]).all() and np.isfinite(times["cuda"]).all()
    assert times["cpu"].min() / 1.25 <= np.median(times["cuda"]) <= times["cpu"].max() * 1.25


def test_no_step_between_evaluations_waits_for_the_host():
    one = state("decoder", "cuda")
    one.update()
    torch.cuda.set_sync_debug_mode("error")
    try:
        one.update()
    finally:
        torch.cuda.set_sync_debug_mode("default")
