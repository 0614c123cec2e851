"""Whole trainings on a device whose tensors do not meet the host's, emulated on the CPU (see ``emulated.gpu``)."""

import numpy as np
import pytest
import torch

from grokbook.train import capture, engine, monitor
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.state import State
from tests import emulated
from tests.guard.test_measures import CASES, SUMMARIES
from tests.stacks import STACKS, runs_of

NORMS = ("weight_norm", "total_norm", "gradient_norm")


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(capture, "graph_of", lambda step: step)  # which test_capture.py is about
    return lambda: emulated.gpu(monkeypatch)


def same(record, plain):
    for name, values in plain.data_vars.items():
        np.testing.assert_allclose(record[name].values, values.values, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", STACKS)
def test_a_training_gives_the_numbers_of_the_cpu(name, gpu):
    experiment = Experiment("test/one", runs_of(name, 2, 2), Schedule(every=2), precision="double", measures=NORMS)
    plain = engine.train(experiment)
    with gpu() as device:
        record = engine.train(experiment, device=str(device))
    same(record, plain)
    assert record.attrs["machine"] == "an emulated GPU"


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("chapter", CASES)
def test_the_measures_of_a_chapter_take_members_that_lie_there(chapter, gpu):
    def found(device):
        state = State.start(runs, device, torch.float64)
        state.update()
        return monitor.numbers(asked, state.measured())

    monitor.of_chapter(f"{chapter}/any")
    for run, names in CASES[chapter]:
        runs, asked = [run], [name for name in names if name not in SUMMARIES]
        plain = found(torch.device("cpu"))
        with gpu() as device:
            there = found(device)
        assert there.keys() == plain.keys()
        for name, value in plain.items():
            np.testing.assert_allclose(there[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


def test_a_training_is_kept_left_and_resumed_there(tmp_path, gpu):
    runs = runs_of("MLP, batch norm", 3, 40)
    asked = {"snapshots": (0, 20, -1), "keep": ("W_in", "output[0]"), "stop": Stop("train_accuracy", 0.5)}
    whole = Experiment("test/one", runs, Schedule(log=40), precision="double", **asked)
    plain, calls, path = engine.train(whole), [], tmp_path / "checkpoint"

    def stop():
        calls.append(1)
        return len(calls) >= 40  # asked in every look, and between steps

    with gpu() as device:
        with pytest.raises(KeyboardInterrupt):
            engine.train(whole, device=str(device), checkpoint=path, stop=stop)
        record = engine.train(whole, device=str(device), checkpoint=path)
    same(record, plain)
    assert len({*plain.stopped_at.values.tolist()}) == 3
    assert record.attrs["resumed_at"] == "[19]"


def test_a_tensor_of_the_host_does_not_meet_one_that_lies_there(gpu):
    with gpu() as device:
        there = torch.zeros(2, 3).to(device)
        for bad in (lambda: there + torch.ones(3), lambda: there[torch.tensor([0])], there.numpy):
            with pytest.raises(RuntimeError):
                bad()
        there[1:].add_(torch.tensor(2.0)).mul_(2)  # a number may
        assert there.cpu().tolist() == [[0] * 3, [4] * 3]
