"""The queue: what comes first, what is refused, and legs that add up to one training."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from concurrent.futures import wait

import numpy as np
import pytest

from grokbook import __main__ as command_line
from grokbook.train import engine, queue, records, runner, workers
from grokbook.train.queue import Entry, Queue
from tests.test_runner import tiny


def experiment(name="test/one", steps=20, seeds=1, scale="full"):
    return tiny(name, steps, seeds, scale=scale)


def entry(name="test/one", priority=1, **sizes):
    one = experiment(name, **sizes)
    return Entry(one, one, "to see", priority)


def names(todo):
    return [one.experiment.name for one in todo.waiting]


def test_every_committed_entry_is_an_experiment_whose_cost_is_known():
    found = queue.entries()
    assert len({one.experiment.hash for one in found}) == len(found) > 20
    for one in found:
        assert one.why and one.priority > 0 and one.minutes("cpu") > one.minutes("cuda") / 60 > 0
        assert not runner.status(one.experiment, whole=False, out=records.ROOT / "results").lost


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"experiment": "gu/bass"}, "bass"),
        ({"experiment": "gu/nope"}, "gu has no such experiment"),
        ({"experiment": 5}, "experiment = 5: str is needed"),
        ({"experiment": "go/base"}, "chapter must be one of"),
        ({"experiment": "gu/base", "parameters": {"pp": 5}}, "takes no pp"),
        ({"experiment": "gu/base", "parameters": {"seeds": 0}}, "seeds = 0: a whole number"),
        ({"experiment": "gu/base", "stand_in": 9}, "stand_in = 9: it has"),
        ({"experiment": "gu/base", "core_minutes": "x"}, "core_minutes = 'x': a number is needed"),
        ({"experiment": "gu/base", "priority": "high"}, "priority = 'high': int is needed"),
        ({"experiment": "gu/base", "why": 5}, "why = 5: str is needed"),
        ({"a": 1}, "experiment, why and priority are needed"),
        ({"experiment": "gu/base", "standin": 0}, "standin"),
    ],
)
def test_an_entry_that_means_nothing_is_refused_in_one_line(given, words, tmp_path, monkeypatch, capsys):
    path = tmp_path / "queue.json"
    path.write_text(json.dumps([{"why": "", "priority": 1} | given]))
    monkeypatch.setattr(queue, "PATH", path)
    assert command_line.main(["queue"]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1 and "entry 0" in told and words in told


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"5", "a list"), (b"null", "a list"), (b'{"a": 1}', "a list"), (b"[1]", "are needed"), (b"\xff", "utf-8")],
)
def test_what_is_no_queue_is_refused_in_one_line(content, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(queue, "PATH", tmp_path / "queue.json")
    queue.PATH.write_bytes(content)
    assert command_line.main(["queue"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("grokbook: queue.json") and words in told and told.count("\n") == 1


def test_first_comes_priority_then_what_is_soonest_done(tmp_path):
    found = [entry("test/later", 2, steps=5), entry("test/long", steps=30), entry("test/short", steps=10)]
    assert names(Queue(found, tmp_path, "cpu")) == ["test/short", "test/long", "test/later"]


def test_what_has_a_record_is_left_out_and_so_is_a_stand_in_for_it(tmp_path):
    full, small = experiment(seeds=2), experiment(scale="reduced")
    found = [Entry(full, full, "", 1), Entry(small, full, "", 2)]
    assert len(Queue(found, tmp_path, "cpu").waiting) == 2
    assert Queue(found[:1], tmp_path, "cpu").run(cores=1) == 1
    assert names(Queue(found, tmp_path, "cpu")) == []


def test_a_gpu_is_not_given_one_seed_of_what_it_is_asked_for_in_full(tmp_path):
    full, small = experiment(seeds=2), experiment(scale="reduced")
    found = [Entry(small, full, "", 1), Entry(full, full, "", 2)]
    assert [one.experiment for one in Queue(found, tmp_path, "cuda").waiting] == [full]
    assert len(Queue(found, tmp_path, "cpu").waiting) == len(Queue(found[:1], tmp_path, "cuda").waiting) + 1


def test_an_estimate_follows_what_the_chapter_took_here(tmp_path):
    one, other = entry(), entry("test/other", 2)
    Queue([one], tmp_path, "cpu").run(cores=1)
    took = records.load(tmp_path / "test/one.nc").attrs["wall_seconds"] / 60
    corrected = other.minutes("cpu") * took / one.minutes("cpu")
    assert Queue([one, other], tmp_path, "cpu").minutes(other, "cpu") == pytest.approx(corrected)


def test_an_estimate_leaves_out_what_another_record_has(tmp_path):
    runner.train(experiment(seeds=2), device="cpu", out=tmp_path)
    more = entry(seeds=3)
    assert Queue([more], tmp_path, "cpu").minutes(more, "cpu") == pytest.approx(more.minutes("cpu") / 3)


@pytest.mark.parametrize("cores", [1, 2])
def test_legs_that_a_signal_ends_add_up_to_one_training(cores, tmp_path, monkeypatch, once_training, forked):
    monkeypatch.setattr(runner, "wait", lambda futures, timeout: wait(futures, timeout / 20))  # heeds a signal sooner
    runs = [experiment(steps=steps).runs[0] for steps in (2_000, 2_001)]  # two stacks
    one = dataclasses.replace(experiment(), runs=tuple(runs))
    todo = [Entry(one, one, "", 1), entry("test/next", 2)]
    parts = tmp_path / ".parts/test/one" / one.hash
    once_training(parts, signal.SIGTERM)
    assert Queue(todo, tmp_path, "cpu").run(cores=cores) == 0
    assert list(parts.glob("*.checkpoint")) and not workers.STOP.is_set()
    assert Queue(todo, tmp_path, "cpu").run(cores=1) == 2
    record = records.load(tmp_path / "test/one.nc")
    assert record.resumed_at.strip("[; ]")
    for i, shard in enumerate((one.select([0]), one.select([1]))):
        whole = engine.train(shard).train_loss.values[0]
        ours = record.train_loss.values[i]
        assert np.array_equal(ours[np.isfinite(ours)], whole.astype(np.float32))


def test_a_leg_writes_into_its_folder_alone(tmp_path, handed):
    (tmp_path / "file").touch()
    handed(cache=str(tmp_path / "file" / "cache"))  # where nobody can write
    assert Queue([entry()], tmp_path / "out", "cpu").run(cores=1) == 1
    assert [one.name for one in tmp_path.glob("out/**/*") if one.is_file()] == ["one.nc"]


def test_what_another_call_is_at_is_left_to_it(tmp_path, capfd):
    todo = [entry(), entry("test/other", 2, steps=10)]
    with workers.alone(tmp_path / ".parts" / f"queue-{todo[0].experiment.hash}"):
        assert Queue(todo, tmp_path, "cpu").run(cores=1) == 1
    assert not (tmp_path / "test/one.nc").exists() and (tmp_path / "test/other.nc").exists()
    assert "1 records finished, 0 failed, 1 left" in capfd.readouterr().err


def test_what_another_call_finished_meanwhile_is_not_trained_again(tmp_path):
    two = [Queue([entry()], tmp_path, "cpu") for _ in range(2)]
    assert [one.run(cores=1) for one in two] == [1, 0]


def test_a_leg_ends_after_its_minutes_and_says_what_is_left(tmp_path, capfd):
    todo = [entry(steps=10_000_000)]
    began = time.monotonic()
    assert Queue(todo, tmp_path, "cpu").run(minutes=1 / 60, cores=1) == 0
    assert time.monotonic() - began < 20
    assert "0 records finished, 0 failed, 1 left; the same command goes on" in capfd.readouterr().err
    assert list((tmp_path / ".parts/test/one").glob("*/*.checkpoint"))


def test_a_record_of_something_else_is_not_replaced_and_a_failure_is_told_in_the_end(tmp_path, capfd):
    runner.train(experiment(steps=5), device="cpu", out=tmp_path)
    before = (tmp_path / "test/one.nc").read_bytes()
    with pytest.raises(workers.TrainingFailed, match="1 records finished, 1 failed, 0 left"):
        Queue([entry(), entry("test/other", 2)], tmp_path, "cpu").run(cores=1)
    assert (tmp_path / "test/one.nc").read_bytes() == before and "would be replaced" in capfd.readouterr().err


def test_a_stand_in_takes_the_place_of_a_shorter_one_and_not_of_a_longer(tmp_path):
    full, path = experiment(steps=20, seeds=3), tmp_path / "test/one-reduced.nc"
    shorter, longer = (experiment(steps=steps, seeds=2, scale="reduced") for steps in (10, 20))
    for one in (shorter, longer):
        assert Queue([Entry(one, full, "", 1)], tmp_path, "cpu").run(cores=1) == 1
    with pytest.raises(workers.TrainingFailed, match="0 records finished, 1 failed"):
        Queue([Entry(shorter, full, "", 1)], tmp_path, "cpu").run(cores=1)
    assert records.find(longer, path).sizes["run"] == 2
