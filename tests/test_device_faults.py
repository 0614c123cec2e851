"""What may go wrong on a device, and is survived: tried on the CPU by errors that a GPU would raise."""

import sys

import numpy as np
import pytest
import torch

from grokbook.train import engine, records, runner, verify, workers
from grokbook.train.workers import TrainingFailed
from tests import lost
from tests.test_runner import own_cache, tiny  # noqa: F401 (a fixture that every test here uses)


def with_room_for(members, monkeypatch):
    real, tried = engine.train, []

    def train(experiment, **options):
        tried.append(len(experiment.runs))
        if len(experiment.runs) > members:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(experiment, **options)

    monkeypatch.setattr(engine, "train", train)
    return tried


def test_stacks_that_memory_does_not_hold_are_halved_until_it_does(monkeypatch, capsys):
    plain = runner.train(tiny("test/plain", seeds=6), block=2)
    tried = with_room_for(2, monkeypatch)
    record = runner.train(tiny(seeds=6), block=6)
    assert tried == [6, 3, 3, 2, 2, 1, 1] and record.attrs["block"] == 2
    assert "took too much memory; its stacks are halved to 3" in capsys.readouterr().err
    np.testing.assert_allclose(record.train_loss, plain.train_loss, rtol=1e-6)
    assert record.seed.values.tolist() == list(range(6))


def test_a_member_that_memory_does_not_hold_alone_is_said_to_be_so(monkeypatch):
    with_room_for(0, monkeypatch)
    with pytest.raises(TrainingFailed, match=r"runs? 0: OutOfMemoryError: CUDA out of memory"):
        runner.train(tiny(seeds=1))


def test_an_error_that_is_kept_holds_no_tensor_of_its_stack(monkeypatch, tmp_path):
    def train(experiment, **options):
        stack = torch.zeros(10)
        try:
            raise ValueError("first")
        except ValueError:
            raise RuntimeError(f"then {stack.shape}")  # noqa: B904

    monkeypatch.setattr(engine, "train", train)
    shard = tiny()
    with pytest.raises(RuntimeError) as caught:
        runner.train_shard(shard, str(runner.part_of(shard, tmp_path)), "cpu")
    error, frames = caught.value, []
    while error:
        place = error.__traceback__
        while place:
            frames.append(place.tb_frame.f_locals)
            place = place.tb_next
        error = error.__cause__ or error.__context__
    assert not any(isinstance(value, torch.Tensor) for frame in frames for value in frame.values())
    assert "first" in runner.part_of(shard, tmp_path).with_suffix(".error").read_text()  # the whole story is on disk


def test_a_process_that_lost_its_device_is_replaced_by_a_fresh_one(tmp_path, forked):
    with workers.Processes(1) as executor:
        assert executor.submit(lost.once, tmp_path / "lost").result() == "done"
        with pytest.raises(ChildProcessError, match="died 3 times, last of CUDA error: unspecified launch failure"):
            executor.submit(lost.always).result()


def test_a_package_that_records_need_is_missed_before_the_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setattr(engine, "train", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ModuleNotFoundError, match="h5py"):
        runner.train(tiny())


def test_stacks_of_another_size_are_told_of_and_gone_on_with_in_that_size(monkeypatch, capsys):
    with_room_for(2, monkeypatch)
    monkeypatch.setattr(runner, "TOO_LARGE", ("nothing",))
    with pytest.raises(TrainingFailed):
        runner.train(tiny(seeds=5), block=3)  # of three and of two
    with pytest.raises(TrainingFailed):
        monkeypatch.setattr(engine, "train", lambda *_, **__: 1 / 0)
        runner.train(tiny(seeds=5), block=1)
    assert "holds stacks of another size, as another device takes; --block 3 goes on" in capsys.readouterr().err
    tried = []
    monkeypatch.setattr(engine, "train", lambda one, **_: tried.append(len(one.runs)) or 1 / 0)
    with pytest.raises(TrainingFailed):
        runner.train(tiny(seeds=5), block=3)
    assert tried == [3] and "--block" not in capsys.readouterr().err


def test_a_record_of_another_device_is_verified_in_stacks_of_this_ones_size(monkeypatch):
    path, asked = records.cached_path(tiny()), []
    real = runner.train
    monkeypatch.setattr(runner, "train", lambda *one, **rest: asked.append(rest["block"]) or real(*one, **rest))
    record = real(tiny(), block=2)
    for device, block in (("cpu", 2), ("cuda", runner.block_size(tiny(), "cpu"))):
        records.save(record.assign_attrs(device=device), path)
        verify.verify(tiny(), device="cpu")
        assert asked[-1] == block
