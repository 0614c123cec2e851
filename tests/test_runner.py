import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from grokbook import records, runner
from grokbook.experiment import Experiment, Run, Schedule
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask


def tiny(name="test/tiny", steps=6, seeds=3, width=8, scale="full"):
    task, model = ModularTask(7, "n + m", 0.5), TwoLayerMLP(7, width)
    return Experiment(
        name, tuple(Run(task, model, SGD(0.1), steps, s) for s in range(seeds)), Schedule(log=3), scale=scale
    )


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GROKBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GROKBOOK_DEVICE", "cpu")
    monkeypatch.setattr(records, "ROOT", tmp_path / "root")
    for name in ("GROKBOOK_FRESH", "GROKBOOK_LOG"):
        monkeypatch.delenv(name, raising=False)


def test_obtain_trains_once_and_then_reads(monkeypatch, tmp_path):
    monkeypatch.setenv("GROKBOOK_LOG", str(tmp_path / "log"))
    first, second = runner.obtain(tiny()), runner.obtain(tiny())
    np.testing.assert_array_equal(first.train_loss, second.train_loss)
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["source"] for line in log] == ["trained", "cached"]


def test_fresh_trains_again(monkeypatch, tmp_path):
    monkeypatch.setenv("GROKBOOK_LOG", str(tmp_path / "log"))
    runner.obtain(tiny())
    monkeypatch.setenv("GROKBOOK_FRESH", "1")
    runner.obtain(tiny())
    assert [json.loads(line)["source"] for line in (tmp_path / "log").read_text().splitlines()] == ["trained"] * 2


def test_status_tells_present_stale_damaged_and_missing():
    experiment, path = tiny(), records.stored_path(tiny())
    assert runner.status(experiment).state == "missing"
    records.save(runner.train(tiny(width=9)), path)
    stale = runner.status(experiment)
    assert stale.state == "stale" and "runs[0].model.width: 8 here, 9 there" in stale.why
    path.write_bytes(b"broken")
    assert runner.status(experiment).state == "damaged"
    runner.train(experiment)
    assert runner.status(experiment).state == "present"


def test_a_damaged_stored_record_is_reported_and_left_as_it_is(capsys):
    path = records.stored_path(tiny())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"broken")
    runner.obtain(tiny())
    assert str(path) in capsys.readouterr().err and path.read_bytes() == b"broken"


def test_a_smaller_experiment_stands_in_and_says_so():
    full, small = tiny(steps=50), tiny(steps=5, scale="reduced")
    assert runner.obtain(full, otherwise=small).attrs["scale"] == "reduced"
    runner.train(full)
    assert runner.obtain(full, otherwise=small).attrs["scale"] == "full"


def test_blocks_and_processes_do_not_change_the_numbers():
    alone = runner.train(tiny(), workers=1, block=1)
    for settings in (
        {"workers": 2, "block": 1},
        {"workers": 1, "block": 3},
        {"executor": ThreadPoolExecutor(2), "block": 2},
    ):
        again = runner.train(tiny(), **settings)
        np.testing.assert_allclose(again.train_loss, alone.train_loss, rtol=1e-6)
        assert again.seed.values.tolist() == [0, 1, 2]


def test_a_shard_that_fails_is_named_and_the_others_are_kept(monkeypatch):
    whole = tiny()
    real = runner.train_shard

    def failing(shard, folder, device, tick=None):
        if shard.runs[0].seed == 1:
            raise RuntimeError("out of luck")
        return real(shard, folder, device, tick)

    monkeypatch.setattr(runner, "train_shard", failing)
    with pytest.raises(runner.TrainingFailed, match=r"1 of 3 shards.*out of luck"):
        runner.train(whole, executor=ThreadPoolExecutor(1), block=1)
    parts = list((records.cache_folder() / whole.name).glob("part-*.nc"))
    assert len(parts) == 2
    ages = {part: part.stat().st_mtime_ns for part in parts}
    monkeypatch.setattr(runner, "train_shard", real)
    monkeypatch.setattr(runner.Path, "unlink", lambda *_, **__: None)
    runner.train(whole, workers=1, block=1)
    assert all(part.stat().st_mtime_ns == age for part, age in ages.items())


def test_nothing_is_left_behind_beside_the_record():
    runner.train(tiny())
    assert [path.suffix for path in (records.cache_folder() / "test" / "tiny").iterdir()] == [".nc"]


@pytest.mark.parametrize("device", ["tpu", "cuda:0"])
def test_an_unknown_device_is_refused_with_what_is_allowed(device):
    with pytest.raises(ValueError, match="auto, cpu, cuda"):
        runner.choose_device(device)


def test_cuda_is_refused_where_there_is_none():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        assert runner.choose_device("cuda") == "cuda"
    else:
        with pytest.raises(ValueError, match="no CUDA GPU"):
            runner.choose_device("cuda")


def test_block_size_follows_the_size_of_the_activations():
    assert runner.block_size(tiny(), "cuda") is None
    assert runner.block_size(tiny(width=4), "cpu") == runner.LARGEST_BLOCK
    large = Experiment("test/large", (Run(ModularTask(97), TwoLayerMLP(97, 500), SGD(0.1), 1, 0),))
    assert runner.block_size(large, "cpu") == 1


def long():
    return tiny("test/long", steps=6000, seeds=2, width=16)


def test_a_training_killed_twenty_times_at_random_moments_gives_the_same_record_bit_for_bit():
    command = [sys.executable, "-m", "tests.faults", "5", "20"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert done.returncode == 0 and "killed 20 times: the same record" in done.stdout, done.stderr


def test_verify_finds_a_retrained_record_identical_and_an_altered_one_not():
    runner.train(tiny(), workers=1)
    assert [one.identical for one in runner.verify(tiny(), workers=1)] == [True] * 3
    path = records.cached_path(tiny())
    altered = records.load(path)
    altered.test_loss[1, 2] += 0.5
    records.save(altered, path)
    found = runner.verify(tiny(), sample=3, workers=1)
    assert [one.identical for one in found] == [True, False, True]
    assert found[1].curve == "test_loss" and found[1].difference == pytest.approx(0.5, rel=1e-5)


def test_verify_without_a_record_says_how_to_make_one():
    with pytest.raises(FileNotFoundError, match="grokbook train test/tiny"):
        runner.verify(tiny())


ON_A_FULL_DISK = """
import sys, threading
from pathlib import Path
from grokbook import engine, records, runner
from tests.test_runner import long
disk = Path(sys.argv[1])
blocker = disk / "blocker"
with open(blocker, "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError as error:
        print("full:", error.strerror)
engine.CHECKPOINT_SECONDS = engine.LATEST_CHECKPOINT_SECONDS = records.FULL_DISK_SECONDS = 0.1
threading.Timer(2.0, blocker.unlink).start()
print("members:", runner.train(long(), workers=1, out=disk / "out").sizes["run"])
"""


def test_a_training_on_a_disk_that_is_really_full_waits_for_space(tmp_path):
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-ec", 'mount -t tmpfs -o size=1m none "$0"; exec "$@"']
    if subprocess.run([*mount, tmp_path, "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")
    command = [*mount, tmp_path, sys.executable, "-c", ON_A_FULL_DISK, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert done.stdout.split("\n")[:2] == ["full: No space left on device", "members: 2"], done.stderr
    assert "training pauses" in done.stderr and "training goes on" in done.stderr


ORPHAN = """
import sys
from grokbook import engine, runner
from tests.test_runner import tiny
engine.CHECKPOINT_SECONDS = engine.LATEST_CHECKPOINT_SECONDS = 0.05
if __name__ == "__main__":
    runner.train(tiny("test/orphan", steps=2_000_000, seeds=2, width=16), workers=2, block=1)
"""


def test_workers_end_when_whoever_asked_for_them_is_gone(tmp_path):
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    process = subprocess.Popen([sys.executable, script], env={**os.environ, "PYTHONPATH": os.getcwd()})
    beats = records.cache_folder() / "test/orphan"
    deadline = time.monotonic() + 60
    while len(list(beats.glob("*.progress"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    ).stdout.split()
    process.kill()
    process.wait()
    while any(os.path.exists(f"/proc/{child}") for child in children):
        assert time.monotonic() < deadline, "a worker trains on without anyone to hand its record to"
        time.sleep(0.1)
