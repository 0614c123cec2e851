"""Params that no gradient moves: the running statistics of ResNet-18, which tests/chapters/resnet trains plainly."""

import torch

from grokbook.train import engine
from grokbook.train.experiment import Experiment, Schedule
from tests.stacks import runs_of

MEAN, VAR = "layer1.0.bn1.running_mean", "layer1.0.bn1.running_var"


def experiment(seeds=2, **changes):
    return Experiment("test/buffers", runs_of("ResNet-18", seeds), Schedule(log=2), **changes)


def test_measuring_moves_no_statistics_and_counts_none_among_weights():
    state = engine.Training.start(experiment(), torch.device("cpu"), torch.float32).state
    state.update()
    before = {name: value.clone() for name, value in state.params.items()}
    numbers = state.measure(["gradient_norm", "weight_norm"])
    assert all(torch.equal(value, before[name]) for name, value in state.params.items())
    learnt = {name for name in before if "running" not in name}
    assert set(state.optimizer.params) == learnt < before.keys()
    assert {f"weight_norm_{name}" for name in learnt} == {name for name in numbers if name.startswith("weight_norm")}


def test_statistics_survive_a_checkpoint_and_members_that_leave(tmp_path):
    whole = experiment(seeds=3)
    training = engine.Training.start(whole, torch.device("cpu"), torch.float32)
    for _ in range(7):
        training.state.update()
    training.state.keep([0, 2])
    training.save(tmp_path / "part", 0.0)
    again = engine.Training.load(tmp_path / "part", whole, torch.device("cpu"), torch.float32)
    for _ in range(7):
        training.state.update()
        again.state.update()
    assert training.state.params[MEAN].shape == (2, 4)
    for name, value in training.state.params.items():
        assert torch.equal(value, again.state.params[name])


def test_a_snapshot_keeps_statistics_by_their_name():
    record = engine.train(experiment(snapshots=(-1,), keep=(VAR,)))
    assert record[VAR].shape == (2, 1, 4) and (record[VAR] != 1).all()
