"""Steps as a GPU would take them: recorded and replayed without Python, counted, and failing, all on the CPU."""

import dataclasses
import importlib
import pkgutil
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

import grokbook.models
from benchmarks.workloads import WORKLOADS, our_state
from grokbook.models.decoder import Decoder
from grokbook.models.dense import DenseNet
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.encoder import PairEncoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.resnet import ResNet18
from grokbook.models.slot_mlp import SlotMLP
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.models.transformer import AttentionOnly, Transformer
from grokbook.optim import SGD, Adam, AdamW, Group, WarmAdamW
from grokbook.tasks import AdditionTask, GroupTask, ModularTask
from grokbook.train import capture, engine
from grokbook.train import state as train_state
from grokbook.train.experiment import Experiment, Run, Schedule, Stop
from grokbook.train.state import State
from tests import emulated


@dataclass(frozen=True)
class Pictures:
    """Noise with labels."""

    shape: tuple[int, ...]
    classes: int = 3
    rows: int = 22
    train_size: ClassVar[int] = 14
    version: ClassVar[int] = 1

    def table(self):
        generator = np.random.default_rng(0)
        pixels = generator.normal(size=(self.rows, *self.shape)).astype(np.float32)
        return pixels, generator.integers(self.classes, size=self.rows)

    def in_train(self, seed):
        return np.random.default_rng(seed).permutation(self.rows) < self.train_size


@dataclass(frozen=True)
class Slots(Pictures):
    def table(self):
        generator = np.random.default_rng(0)
        return generator.integers(5, size=(self.rows, 4)), generator.integers(self.classes, size=self.rows)


T, ADD = ModularTask(11, "n + m", 0.6), AdditionTask(6, 12, 5)
ADAMW = AdamW(0.01, 1.0, (0.9, 0.98))
GROUPED = AdamW(0.01, groups=(Group("W_E", 0.02, 0.0),))
POWER = WarmAdamW(0.01, 0.7, decay_to_start=True, update_noise=0.1, weight_noise=0.02)
HINGE = TwoLayerMLP(11, 24, "standard", "relu", dropout=0.2, masks="counted")
# name -> task, model, optimizer, loss, batch size
STACKS = {
    "quadratic MLP": (T, TwoLayerMLP(11, 24, "standard"), SGD(0.5), "mse", None),
    "quadratic MLP, momentum and decay": (T, TwoLayerMLP(11, 24, "standard"), SGD(0.2, 0.9, 0.01), "mse", None),
    "MLP, dropout by counter": (T, HINGE, Adam(0.01, 0.1), "cross_entropy", 16),
    "MLP, batch norm": (T, TwoLayerMLP(11, 24, "standard", batch_norm=True), ADAMW, "mse", None),
    "pair transformer": (T, PairTransformer(11, 16, heads=2), ADAMW, "cross_entropy", None),
    "pair transformer, two layers": (T, PairTransformer(11, 16, layers=2, heads=2), ADAMW, "cross_entropy", 20),
    "embedded MLP": (T, EmbeddedMLP(11, 8, 12), ADAMW, "cross_entropy", None),
    "decoder": (T, Decoder(11, 16), WarmAdamW(0.01, 1.0), "cross_entropy", 20),
    "decoder, all variants": (T, Decoder(11, 16, dropout=0.1), POWER, "cross_entropy", 20),
    "transformer": (T, Transformer(11, 16, 2), ADAMW, "cross_entropy", None),
    "attention": (T, AttentionOnly(11, 16, 2, 2), Adam(0.01), "cross_entropy", None),
    "encoder": (T, PairEncoder(11, 16, 2, 8, 0.1, masks="counted"), ADAMW, "cross_entropy", 20),
    "toy": (ADD, AdditionDecoder(6, hidden=(7, 9), outputs=5), GROUPED, "mse", None),
    "toy, minibatches": (ADD, AdditionDecoder(6, hidden=(7, 9), outputs=5), GROUPED, "mse", 5),
    "toy of a group": (GroupTask("S3", 20, 4), ProductDecoder(6, 3, (7, 9), 4), GROUPED, "mse", None),
    "images": (Pictures((30,)), DenseNet((30, 8, 3), init_scale=8.0), ADAMW, "mse", 6),
    "slots": (Slots((4,)), SlotMLP(5, 3, 4, 6, 16), ADAMW, "cross_entropy", 6),
    "ResNet-18": (Pictures((1, 8, 8)), ResNet18(3, 1 / 16, 1, 8), ADAMW, "cross_entropy", 6),
}
each_stack = pytest.mark.parametrize("name", STACKS)


def runs_of(name, members=2, steps=25):
    task, model, optimizer, loss, batch = STACKS[name]
    last = {"last_batch": "short"} if batch else {}
    return tuple(Run(task, model, optimizer, steps, seed, loss, batch, **last) for seed in range(members))


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
        if state.runs[0].batch_size:
            state._draw()
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
    state._advance()  # what never changes is made at the first step, ahead of a capture
    with emulated.Log() as log:
        state._advance()
    assert log.kernels


@pytest.mark.parametrize("number, most", [(0, 180), (1, 60), (2, 60), (3, 390)], ids=["Gu", "toy", "Gromov", "Power"])
def test_a_step_of_each_papers_training_launches_few_kernels(number, most):
    state = our_state(WORKLOADS[number], 16, "meta")
    state.count = torch.ones((), dtype=torch.float64, device="meta")
    state._advance()
    with emulated.Log() as log:
        state._advance()
    assert len(log.kernels) <= most


def test_what_the_host_has_a_part_in_is_found():
    step = torch.zeros(3, device="meta")
    for bad in (lambda: step + torch.ones(3).to("meta"), lambda: step.copy_(torch.ones(3)), step.sum().item):
        with emulated.Log(), pytest.raises(RuntimeError, match=r"host|waits"):
            bad()


def test_members_leave_and_a_training_is_resumed_under_capture_as_without(tmp_path, monkeypatch):
    runs = runs_of("decoder", 5, 100)
    whole = Experiment("test/one", runs, Schedule(log=5, every=10))
    threshold = float(engine.train(whole).train_accuracy.sel(step=50).median())
    whole = dataclasses.replace(whole, stop=Stop("train_accuracy", threshold))
    plain = engine.train(whole, dtype="float64")
    assert len(set(plain.stopped_at.values.tolist())) > 1
    on_a_gpu(monkeypatch)
    record = engine.train(whole, dtype="float64")
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
