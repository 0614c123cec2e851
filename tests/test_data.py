"""One table for all members, evaluation in blocks, labels that are trained on and are not the table's."""

import gc
import weakref
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from grokbook.models.decoder import Decoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD, AdamW
from grokbook.tasks import ModularTask
from grokbook.train import engine, state
from grokbook.train.experiment import Experiment, Run, Schedule
from tests.textbook_mlp import plain_loss, plain_training, trained_labels

CPU = torch.device("cpu")
MODEL = TwoLayerMLP(11, 24, "standard", "gelu")


class Held(TorchDispatchMode):
    """Bytes of tensors that are alive at once while this lasts, at most."""

    def __enter__(self):
        self.now = self.most = 0
        self.known = set()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for tensor in tree_iter(found):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if (key := storage._cdata) not in self.known:
                    self.known.add(key)
                    self.now += storage.nbytes()
                    self.most = max(self.most, self.now)
                    weakref.finalize(storage, self._gone, key, storage.nbytes())
        return found

    def _gone(self, key, size):
        self.known.discard(key)
        self.now -= size


def held_by(thing):
    """Bytes of all tensors of a ``Data``, each memory once."""
    parts = [*vars(thing).values(), *(thing.whole or ())]
    memories = {
        part.untyped_storage().data_ptr(): part.untyped_storage().nbytes()
        for part in parts
        if isinstance(part, torch.Tensor)
    }
    return sum(memories.values())


@dataclass(frozen=True)
class Pictures:
    """14,641 pictures of 64 x 64 pixels, from four patches each."""

    train_size: int = 3_660
    version: ClassVar[int] = 1

    def table(self):
        places = np.stack(np.unravel_index(np.arange(11**4), (11,) * 4), -1)
        return places.astype(np.uint8), places.sum(-1)

    def in_train(self, seed):
        mask = np.zeros(11**4, bool)
        mask[np.random.default_rng(seed).permutation(11**4)[: self.train_size]] = True
        return mask

    def compose(self, rows):
        four = (rows[..., None, None].float() / 10).expand(*rows.shape, 32, 32).unflatten(-3, (2, 2))
        return four.transpose(-3, -2).reshape(*rows.shape[:2], 64, 64)


@dataclass(frozen=True)
class Pooled:
    """Means over rows of pixels, and a linear readout."""

    floats_per_sample: ClassVar[int] = 64 * 64
    version: ClassVar[int] = 1

    def init(self, generator):
        return {"W": torch.randn(41, 64, generator=generator)}

    def __call__(self, params, inputs):
        assert inputs.dtype == params["W"].dtype and inputs.shape[2:] == (64, 64)
        return inputs.mean(-1) @ params["W"].mT


def test_pictures_composed_on_the_fly_fit_and_give_what_kept_ones_give(monkeypatch):
    runs = [Run(Pictures(), Pooled(), SGD(0.1), 3, seed, "cross_entropy", 200) for seed in range(4)]
    with Held() as held:
        stack = state.State.start(runs, CPU, torch.float32)
        stack.update()
        numbers = stack.measure(())
    assert held_by(stack.data) < 1e6, "members hold labels and splits, and no pictures"

    assert held.most < 1e9, "4 members of all pictures at once would be 960 MB, before the network sees them"
    pictures = Pictures().compose(torch.from_numpy(Pictures().table()[0])[None])[0]
    for i in (0, 3):
        outputs = pictures.mean(-1) @ stack.params["W"][i].T
        losses = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(Pictures().table()[1]), reduction="none")
        test = ~torch.from_numpy(Pictures().in_train(i))
        assert numbers["test_loss"][i] == pytest.approx(float(losses[test].double().mean()), rel=1e-5)


def test_ten_decoders_evaluate_in_less_than_a_gigabyte():
    runs = [
        Run(ModularTask(97, "n - m"), Decoder(97), AdamW(1e-3), 1, seed, "cross_entropy", 512) for seed in range(10)
    ]
    stack = state.State.start(runs, CPU, torch.float32)
    gc.collect()
    with Held() as held:
        stack._evaluate()

    assert held.most < 1e9


@pytest.mark.parametrize("batch_size", [None, 20])
def test_members_share_one_table_whatever_their_splits(batch_size):
    runs = [Run(ModularTask(11, "n*m", share), MODEL, SGD(0.1), 1, 0, batch_size=batch_size) for share in (0.3, 0.5)]
    stack = state.State.start(runs, CPU, torch.float32)
    data = stack.data
    assert data.table.shape == (121, 2)
    for i, run in enumerate(runs):
        assert data.in_train[i].tolist() == run.task.in_train(0).tolist()
    stack.keep([1])
    assert torch.equal(stack.data.table, data.table) and torch.equal(stack.data.in_train, data.in_train[[1]])


def test_tables_that_differ_cannot_share_a_stack():
    runs = [Run(ModularTask(11), MODEL, SGD(0.1), 1, seed) for seed in (0, 1)]
    object.__setattr__(runs[1], "task", ModularTask(7))  # which a run refuses, as its model is for 11
    with pytest.raises(ValueError, match="share their inputs"):
        state.State.start(runs, CPU, torch.float32)


@pytest.mark.parametrize("normed", [False, True])
def test_evaluation_in_blocks_is_evaluation(monkeypatch, normed):
    model = TwoLayerMLP(11, 24, "standard", "gelu", batch_norm=normed)
    runs = [Run(ModularTask(11, "n + m", 0.6), model, AdamW(0.01), 5, seed) for seed in range(3)]
    stack = state.State.start(runs, CPU, torch.float64)
    whole, maps = stack.measure(()), stack.measured().activations()
    monkeypatch.setitem(state.FLOATS_AT_ONCE, "cpu", 3 * 48 * 7)  # seven rows
    assert stack._at_once() == (121 if normed else 7)  # samples that meet are not parted
    np.testing.assert_allclose(stack.measured().activations(), maps, rtol=1e-12)
    for name, values in stack.measure(()).items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-12, err_msg=name)


@dataclass(frozen=True)
class Noisy(ModularTask):
    """The first ``wrong`` training rows have random labels in training."""

    wrong: int = 0
    split_fields: ClassVar[tuple[str, ...]] = ("train_fraction", "wrong")

    def train_labels(self, seed):
        labels = self.table()[1].copy()
        labels[np.flatnonzero(self.in_train(seed))[: self.wrong]] = np.random.default_rng(seed).integers(
            self.p, size=self.wrong
        )
        return labels


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_noisy_labels_are_trained_on_and_the_test_is_against_the_table(loss, batch_size):
    runs = [Run(Noisy(11, "n + m", 0.6, wrong), MODEL, AdamW(0.01, 1.0), 40, 3, loss, batch_size) for wrong in (0, 30)]
    assert [len(place) for place in Experiment("test/noise", tuple(runs)).shards()] == [2]
    record = engine.train(Experiment("test/noise", tuple(runs), Schedule(log=3), precision="double"))
    for i, run in enumerate(runs):
        pairs, answers = (torch.from_numpy(part.copy()) for part in run.task.table())
        outputs = plain_training(run, torch.float64, run.steps)(pairs).detach()
        trained = torch.from_numpy(run.task.in_train(3))
        for split, labels, where in (("train", trained_labels(run), trained), ("test", answers, ~trained)):
            at_end = {name: float(record[f"{split}_{name}"][i, -1]) for name in ("loss", "accuracy")}
            assert at_end["loss"] == pytest.approx(float(plain_loss(outputs[where], labels[where], loss)), rel=1e-9)
            right = (outputs.argmax(-1) == labels)[where]
            assert at_end["accuracy"] == pytest.approx(float(right.double().mean()))
    assert not np.allclose(record.train_loss[0], record.train_loss[1])


def test_what_measures_call_correct_is_against_the_table():
    runs = [Run(Noisy(11, "n + m", 0.6, wrong), MODEL, AdamW(0.01), 1, 3) for wrong in (0, 30)]
    measured = state.State.start(runs, CPU, torch.float64).measured()
    right = measured.outputs().argmax(-1) == runs[0].task.table()[1]
    assert measured.correct().tolist() == right.tolist()


def test_what_a_model_lacks_is_named():
    runs = (Run(ModularTask(7, "n - m"), Decoder(7, 8), AdamW(1e-3), 1, 0, "cross_entropy"),)
    with pytest.raises(ValueError, match="Decoder has no hidden"):
        engine.train(Experiment("test/lacks", runs, snapshots=(-1,), keep=("preactivation[1]",)))
