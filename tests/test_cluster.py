"""A real Dask cluster on this machine: the scheduler and every worker are processes of their own."""

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from grokbook import chapters
from grokbook.__main__ import main
from grokbook.train import records, runner, workers
from tests.test_runner import Deadly, Failing, own_cache, poisoned, tiny  # noqa: F401 (own_cache is a fixture)

pytest.importorskip("distributed")


def eventually(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


class Cluster:
    """A scheduler on a port of its own, and workers of one thread each."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self.folder = f"tcp://127.0.0.1:{self.port}", folder
        self.started, self.workers = [], []

    def start(self, program, *words):
        command = [sys.executable, "-m", "distributed.cli." + program, *words, "--no-dashboard"]
        environment = os.environ | {"PYTHONPATH": os.getcwd(), "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}
        with open(self.folder / f"{program}.{len(self.started)}", "w") as log:
            process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def scheduler(self):
        place = ["--host", "127.0.0.1", "--port", str(self.port)]
        process = self.start("dask_scheduler", *place)

        def answers():
            assert process.poll() is None, "the scheduler ended"
            with socket.socket() as knock:
                return knock.connect_ex(("127.0.0.1", self.port)) == 0

        eventually(answers, "the scheduler")
        return process

    def worker(self):
        settings = ["--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory", str(self.folder)]
        self.workers.append(self.start("dask_worker", self.address, *settings))
        return self.workers[-1]

    def stop(self):
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    made.scheduler()
    yield made
    made.stop()


def long(members=4):
    """Some seconds of training a shard."""
    return tiny("test/long", steps=6000, seeds=members, width=16)


def command(address):
    """The same as a user's command, in a process of its own."""
    code = (
        "from grokbook.train import engine, runner; from tests.test_cluster import long\n"
        f"print(runner.train(long(), block=1, scheduler={address!r}).sizes['run'])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def files(kind):
    return {path.stem for path in (records.cache_folder() / "test/long").glob(f"*.{kind}")}


def assert_same_as_here(record, whole):
    records.cached_path(whole).unlink()
    here = runner.train(whole, workers=1, block=1)
    for name in here.variables:
        np.testing.assert_array_equal(record[name], here[name], err_msg=str(name))


def test_a_cluster_gives_the_same_record_and_its_poison_shard_fails_alone(cluster):
    cluster.worker()
    cluster.worker()
    whole = tiny(seeds=5)
    assert_same_as_here(runner.train(whole, block=1, scheduler=cluster.address), whole)

    for poison, told in ((Failing, "RuntimeError: out of luck"), (Deadly, "KilledWorker")):
        for _ in range(3):
            cluster.worker()  # a shard that takes its worker down is tried on three of them
        with pytest.raises(workers.TrainingFailed, match=r"1 of 3 shards") as failed:
            runner.train(poisoned(poison), block=1, scheduler=cluster.address)
        assert "run 1: " in str(failed.value) and told in str(failed.value)
        folder = records.cache_folder() / "test/poison"
        assert len(list(folder.glob("part-*.nc"))) == 2
        if poison is Failing:
            (report,) = folder.glob("*.error")
            assert "in mse_gradients" in report.read_text() and str(report) in str(failed.value)
        for file in folder.iterdir():
            file.unlink()


def test_a_worker_killed_in_mid_shard_costs_that_shard_only(cluster):
    cluster.worker()
    cluster.worker()
    asked = command(cluster.address)
    eventually(lambda: len(files("progress")) == 2, "both workers to be at it")
    cluster.workers[0].send_signal(signal.SIGKILL)
    parts = files("nc")
    told, errors = asked.communicate(timeout=300)
    assert told.split() == ["4"], errors
    assert len(parts) < 4
    assert_same_as_here(records.load(records.cached_path(long())), long())


def test_a_lost_scheduler_is_said_and_the_same_command_finishes_the_rest(cluster):
    cluster.worker()
    asked = command(cluster.address)
    eventually(lambda: len(files("nc")) >= 1 and files("progress"), "a shard to be done and another under way")
    for process in cluster.started:
        process.kill()
        process.wait()
    _, errors = asked.communicate(timeout=300)
    assert asked.returncode != 0 and "the scheduler was lost" in errors
    done = files("nc")
    assert 1 <= len(done) < 4
    ages = {path: path.stat().st_mtime_ns for path in (records.cache_folder() / "test/long").glob("part-*.nc")}

    cluster.scheduler()
    cluster.worker()
    again = command(cluster.address)
    while again.poll() is None:
        for path, age in ages.items():
            assert not path.exists() or path.stat().st_mtime_ns == age, "a shard that was done is trained again"
        time.sleep(0.05)
    assert again.communicate()[0].split() == ["4"]
    assert_same_as_here(records.load(records.cached_path(long())), long())


def test_an_address_where_nothing_answers_is_refused_in_one_line(capsys, monkeypatch):
    import grokbook.__main__ as commands

    monkeypatch.setattr(commands, "experiments", lambda prefix=None: {"test/tiny": chapters.entry("test/tiny", tiny)})
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.5)
    assert main(["train", "test/tiny", "--scheduler", "tcp://127.0.0.1:1"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("grokbook: no scheduler at 'tcp://127.0.0.1:1'") and told.count("\n") == 1
