"""Params that no gradient moves: running statistics of batch normalisation, against ``torch.nn.BatchNorm1d``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from grokbook.optim import SGD, AdamW
from grokbook.tasks import ModularTask
from grokbook.train import engine
from grokbook.train.experiment import Experiment, Run, Schedule
from tests.textbook_mlp import batch_rows, plain_optimizer

P = 7
TASK = ModularTask(P, "n + m", 0.7)  # 34 training rows: two batches of 16 and one of 2
ADAMW, MOMENTUM = AdamW(0.01, 1.0), SGD(0.05, momentum=0.9, weight_decay=0.1)


@dataclass(frozen=True)
class NormedNet:
    """One-hot pairs, batch normalisation with gain, linear readout."""

    version: ClassVar[int] = 1
    batch_norm: ClassVar[bool] = True
    buffers: ClassVar[tuple[str, ...]] = ("mean", "var")

    def init(self, generator):
        W = torch.randn(P, 2 * P, generator=generator)
        return {"gain": torch.ones(2 * P), "mean": torch.zeros(2 * P), "var": torch.ones(2 * P), "W": W}

    def __call__(self, params, inputs, training=False):
        x = torch.nn.functional.one_hot(inputs, P).flatten(2).to(params["W"])  # (M, B, 2P)
        M, B, features = x.shape
        statistics = params["mean"].view(-1), params["var"].view(-1), params["gain"].reshape(-1)
        x = torch.nn.functional.batch_norm(x.transpose(0, 1).reshape(B, -1), *statistics, training=training)
        return x.view(B, M, features).transpose(0, 1) @ params["W"].mT


def experiment(optimizer, steps=30, seeds=2, **changes):
    runs = [
        Run(TASK, NormedNet(), optimizer, steps, seed, "cross_entropy", 16, last_batch="short") for seed in range(seeds)
    ]
    return Experiment("test/buffers", tuple(runs), Schedule(log=4, every=10), **changes)


def textbook(run, steps):
    """The same training by ``torch.nn`` and ``torch.optim``: the net after it, and its layers' names here."""
    start = run.model.init(torch.Generator().manual_seed(run.seed))
    norm, readout = torch.nn.BatchNorm1d(2 * P).double(), torch.nn.Linear(2 * P, P, bias=False).double()
    norm.bias.requires_grad_(False)
    readout.weight.data.copy_(start["W"])
    optimizer = plain_optimizer(run.optimizer, [norm.weight, readout.weight])
    pairs, labels = (torch.from_numpy(part.copy()) for part in TASK.table())
    x = torch.nn.functional.one_hot(pairs, P).flatten(1).double()
    rows = np.flatnonzero(TASK.in_train(run.seed))
    for step in range(steps):
        batch = rows[batch_rows(run, step)]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(readout(norm(x[batch])), labels[batch]).backward()
        optimizer.step()
    named = {"gain": norm.weight, "W": readout.weight, "mean": norm.running_mean, "var": norm.running_var}
    norm.eval()
    return {name: value.detach() for name, value in named.items()}, readout(norm(x)).detach()


@pytest.mark.parametrize("optimizer", [ADAMW, MOMENTUM], ids=str)
def test_running_statistics_and_weights_follow_the_textbook_to_rounding(optimizer):
    whole = experiment(optimizer)
    training = engine.Training.start(whole, torch.device("cpu"), torch.float64)
    for _ in range(30):
        training.state.update()
    assert set(training.state.optimizer.params) == {"gain", "W"}
    outputs = torch.from_numpy(training.state.measured().outputs())
    for i, run in enumerate(whole.runs):
        expected, evaluated = textbook(run, 30)
        for name, value in expected.items():
            torch.testing.assert_close(training.state.params[name][i], value, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(outputs[i], evaluated, rtol=1e-9, atol=1e-10)


def test_measuring_moves_no_statistics_and_counts_none_among_weights():
    state = engine.Training.start(experiment(ADAMW), torch.device("cpu"), torch.float32).state
    state.update()
    before = {name: value.clone() for name, value in state.params.items()}
    numbers = state.measure(["gradient_norm", "weight_norm"])
    assert all(torch.equal(value, before[name]) for name, value in state.params.items())
    assert {"weight_norm_gain", "weight_norm_W"} == {name for name in numbers if name.startswith("weight_norm")}


def test_statistics_survive_a_checkpoint_and_members_that_leave(tmp_path):
    whole = experiment(ADAMW, seeds=3)
    training = engine.Training.start(whole, torch.device("cpu"), torch.float32)
    for _ in range(7):
        training.state.update()
    training.state.keep([0, 2])
    training.save(tmp_path / "part", 0.0)
    again = engine.Training.load(tmp_path / "part", whole, torch.device("cpu"), torch.float32)
    for _ in range(7):
        training.state.update()
        again.state.update()
    assert training.state.params["mean"].shape == (2, 2 * P)
    for name, value in training.state.params.items():
        assert torch.equal(value, again.state.params[name])


def test_a_snapshot_keeps_statistics_by_their_name():
    record = engine.train(experiment(ADAMW, snapshots=(-1,), keep=("var",)))
    assert record["var"].shape == (2, 1, 2 * P) and (record["var"] != 1).all()
