"""Steps as a GPU would take them: recorded and replayed without Python, counted, and failing, all on the CPU."""

import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest
import torch

import grokbook.models
from benchmarks.workloads import WORKLOADS, our_state
from grokbook.train import capture, engine, monitor
from grokbook.train import state as train_state
from grokbook.train.data import Batches
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.state import State
from tests import emulated
from tests.stacks import STACKS, runs_of


def test_a_full_memory_is_no_lost_device():
    assert capture.lost(RuntimeError("CUDA error: an illegal memory access was encountered"))
    assert not capture.lost(RuntimeError("CUDA error: out of memory"))
    assert not capture.lost(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))


each_stack = pytest.mark.parametrize("name", STACKS)


def started(name, members=2, dtype=torch.float64, device="cpu"):
    return State.start(runs_of(name, members), torch.device(device), dtype)


def on_a_gpu(monkeypatch, graph_of=emulated.graph_of):
    """Captures are asked for, and emulated; returns the steps that were."""
    captured = []

    def recorded(step):
        captured.append(step)
        return graph_of(step)

    monkeypatch.setattr(train_state, "wants_graph", lambda state: not state.eager)
    monkeypatch.setattr(capture, "graph_of", recorded)
    return captured


def eager(name, steps=12):
    state = started(name)
    state.count = torch.ones((), dtype=torch.float64)
    for _ in range(steps):
        state.count.fill_(state.step + 1)
        state._advance()
        state.step += 1
    return state.params


def models():
    found = set()
    for module in pkgutil.iter_modules(grokbook.models.__path__):
        content = vars(importlib.import_module(f"grokbook.models.{module.name}"))
        found |= {value for value in content.values() if isinstance(value, type) and hasattr(value, "init")}
    return found


def test_every_model_of_the_book_is_among_the_stacks():
    assert {type(model) for _, model, *_ in STACKS.values()} == models()


@each_stack
def test_replayed_steps_are_the_steps_to_the_last_bit_over_the_edge_of_an_epoch(name, monkeypatch):
    plain, captured = eager(name), on_a_gpu(monkeypatch)
    state = started(name)
    for _ in range(12):
        state.update()
    assert 1 <= len(captured) <= 2  # one for each size that a batch has
    for key, value in plain.items():
        assert torch.equal(state.params[key], value), key


@each_stack
def test_a_step_on_a_gpu_waits_for_nothing_and_copies_nothing_from_the_host(name):
    state = started(name, dtype=torch.float32, device="meta")
    state.count = torch.ones((), dtype=torch.float64, device="meta")
    state.update()  # what never changes is made at the first step, ahead of a capture, and an epoch is drawn
    with emulated.Log() as log:
        state.update()
    assert log.kernels


@pytest.mark.parametrize("number, most", [(0, 180), (1, 60), (2, 60), (3, 390)], ids=["Gu", "toy", "Gromov", "Power"])
def test_a_step_of_each_papers_training_launches_few_kernels(number, most):
    state = our_state(WORKLOADS[number], 16, "meta")
    state.count = torch.ones((), dtype=torch.float64, device="meta")
    state._advance()
    with emulated.Log() as log:
        state._advance()
    assert len(log.kernels) <= most


def test_the_batches_of_an_epoch_are_drawn_at_once(monkeypatch):
    drawn, real = [], Batches._draw
    monkeypatch.setattr(Batches, "_draw", lambda self, ahead: drawn.append(ahead) or real(self, ahead))
    state = started("toy, minibatches")  # 12 rows in batches of 5: two whole ones, and one of two
    for _ in range(6):
        state.update()
    assert drawn == [3, 3]


def test_parameters_leave_the_device_only_for_measures_that_ask_for_them(monkeypatch):
    state, left, real = started("toy"), [], monitor.host
    monkeypatch.setattr(monitor, "host", lambda params: left.extend(params) or real(params))
    numbers = state.measure(("weight_norm", "total_norm", "gradient_norm"))
    assert np.isfinite(numbers["total_norm"]).all() and not set(left) & set(state.params)
    assert state.measured().params["W_E"].shape == state.params["W_E"].shape
    assert set(left) & set(state.params) == {"W_E"}


def test_what_the_host_has_a_part_in_is_found():
    step = torch.zeros(3, device="meta")
    for bad in (lambda: step + torch.ones(3).to("meta"), lambda: step.copy_(torch.ones(3)), step.sum().item):
        with emulated.Log(), pytest.raises(RuntimeError, match=r"host|waits"):
            bad()


def test_members_leave_and_a_training_is_resumed_under_capture_as_without(tmp_path, monkeypatch):
    runs = runs_of("decoder", 5, 100)
    whole = Experiment("test/one", runs, Schedule(log=5, every=10))
    threshold = float(engine.train(whole).train_accuracy.sel(step=50).median())
    whole = dataclasses.replace(whole, stop=Stop("train_accuracy", threshold), precision="double")
    plain = engine.train(whole)
    assert len(set(plain.stopped_at.values.tolist())) > 1
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(engine, "wants_graph", lambda state: not state.eager)
    record = engine.train(whole)
    for name in ("train_loss", "test_accuracy", "stopped_at"):
        np.testing.assert_allclose(record[name], plain[name], rtol=1e-7)
    half = engine.Training.start(whole, torch.device("cpu"), torch.float64)
    for _ in range(7):
        half.state.update()
    half.save(tmp_path / "part", 0.0)
    again = engine.Training.load(tmp_path / "part", whole, torch.device("cpu"), torch.float64)
    for _ in range(7):
        half.state.update()
        again.state.update()
    assert all(torch.equal(value, again.state.params[key]) for key, value in half.state.params.items())


def test_a_stack_is_captured_anew_when_a_quarter_has_left_and_not_for_every_member(monkeypatch):
    whole = Experiment("test/many", runs_of("toy", 12, 40), Schedule(log=2, every=1))
    half = float(engine.train(whole).train_loss.sel(step=20).median())
    left = dataclasses.replace(whole, stop=Stop("train_loss", half), precision="double")  # at once, or later
    plain, captured = engine.train(left), on_a_gpu(monkeypatch)
    monkeypatch.setattr(engine, "wants_graph", lambda state: not state.eager)
    record = engine.train(left)
    np.testing.assert_array_equal(record.stopped_at, plain.stopped_at)
    np.testing.assert_allclose(record.train_loss, plain.train_loss, rtol=1e-7)
    assert len(captured) < len(set(plain.stopped_at.values.tolist()))


@pytest.mark.parametrize("at", [0, 3], ids=["while warming up", "while capturing"])
def test_a_capture_that_fails_is_said_once_and_the_training_goes_on_step_by_step(monkeypatch, capsys, at):
    def fails(step):
        for _ in range(at):
            step()
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    plain, captured = eager("decoder, all variants"), on_a_gpu(monkeypatch, fails)
    state = started("decoder, all variants")
    for _ in range(12):
        state.update()
    said = capsys.readouterr().err
    assert len(captured) == 1 and said.count("\n") == 1 and "cannot be captured as a graph (operation not" in said
    for key, value in plain.items():
        assert torch.equal(state.params[key], value) and not state.params[key].requires_grad


def test_a_step_that_waits_for_the_device_cannot_be_captured_and_is_taken_all_the_same(monkeypatch, capsys):
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(State, "_advance", lambda self, real=State._advance: (real(self), self.count.item()))
    engine.train(Experiment("test/one", runs_of("toy", steps=5)))
    assert "not permitted when stream is capturing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: an illegal memory access")]
)
def test_too_little_memory_and_a_lost_device_are_no_failed_capture(monkeypatch, error):
    def fails(step):
        step()
        raise error

    on_a_gpu(monkeypatch, fails)
    state = started("toy")
    before = {name: value.clone() for name, value in state.params.items()}
    with pytest.raises(type(error), match="CUDA"):
        state.update()
    assert all(torch.equal(value, before[name]) for name, value in state.params.items())
