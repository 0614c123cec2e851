"""A real Dask cluster on this machine: the scheduler and every worker are processes of their own."""

import functools
import gc
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from grokbook.__main__ import main
from grokbook.train import records, runner, workers
from tests import forked
from tests.test_runner import Deadly, Failing, own_cache, poisoned, tiny  # noqa: F401 (own_cache is a fixture)
from tests.waiting import eventually

distributed = pytest.importorskip("distributed")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Cluster:
    """A scheduler on a port of its own, and workers of one thread each."""

    def __init__(self, folder):
        self.port = free_port()
        self.address, self.folder = f"tcp://127.0.0.1:{self.port}", folder
        self.started, self.workers = [], []

    def start(self, program, *words):
        log, given = self.folder / f"{program}.{len(self.started)}", [*words, "--dashboard-address", "127.0.0.1:0"]
        process = forked.context().Process(target=forked.told, args=(log, forked.dask, program, given, self.folder))
        process.start()
        self.started.append(process)
        return process

    def scheduler(self):
        place = ["--host", "127.0.0.1", "--port", str(self.port)]
        process = self.start("dask_scheduler", *place)

        def answers():
            assert process.is_alive(), "the scheduler ended"
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
            process.join()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    made.scheduler()
    yield made
    made.stop()


def long(steps=1200):
    """Less than half a second of training a shard."""
    return tiny("test/long", steps=steps, seeds=4, width=16)


def command(address, what="long()", **settings):
    """The same as a user's command, in a process of its own."""
    code = (
        "from grokbook.train import runner, workers; from tests.test_cluster import long, tiny\n"
        "workers.CONNECT_SECONDS = 2.0\n"  # so long a client tries to find its scheduler again
        f"print(runner.train({what}, block=1, scheduler={address!r}).sizes['run'])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.getcwd()} | settings
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def files(kind):
    return {path.stem for path in (records.cache_folder() / "test/long").glob(f"*/*.{kind}")}


@functools.cache
def trained_here(whole):
    return runner.train(whole, workers=1, block=1)


def assert_same_as_here(record, whole):
    here = trained_here(whole)
    for name in here.variables:
        np.testing.assert_array_equal(record[name], here[name], err_msg=str(name))


def test_a_cluster_gives_the_same_record_and_its_poison_shard_fails_alone(cluster):
    for _ in range(3):
        cluster.worker()  # a shard that takes its worker down is tried on two of them
    whole = tiny(seeds=5)
    assert_same_as_here(runner.train(whole, block=1, scheduler=cluster.address), whole)

    with pytest.raises(workers.TrainingFailed, match=r"2 of 4 runs") as failed:
        runner.train(poisoned(Failing, Deadly), block=1, scheduler=cluster.address)
    assert re.search(r"run 1: RuntimeError: out of luck(.|\n)*run 2: .*KilledWorker", str(failed.value))
    (report,) = (records.cache_folder() / "test/poison").glob("*/*.error")
    assert "in mse_gradients" in report.read_text() and str(report) in str(failed.value)
    assert len(list(report.parent.glob("part-*.nc"))) == 2


@contextmanager
def asking(cluster):
    """What a thread asks of a cluster: the future of a record."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(runner.train, long(), block=1, scheduler=cluster.address)
        finally:
            cluster.stop()  # else a thread that waits in vain keeps a failing test from ending


def test_a_worker_killed_in_mid_shard_costs_that_shard_only(cluster):
    cluster.worker()
    cluster.worker()
    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(2, timeout=120)  # else one may be done with all before the other is there
    with asking(cluster) as asked:
        eventually(lambda: len(files("progress")) == 2, "both workers to be at it")
        cluster.workers[0].kill()
        parts = files("nc")
        assert_same_as_here(asked.result(300), long())
    assert len(parts) < 4


def test_a_lost_scheduler_is_said_and_the_same_command_finishes_the_rest(cluster):
    cluster.worker()
    asked = command(cluster.address)
    eventually(lambda: len(files("nc")) >= 1 and files("progress"), "a shard to be done and another under way")
    cluster.stop()
    _, errors = asked.communicate(timeout=300)
    assert asked.returncode != 0 and "the scheduler was lost" in errors
    assert errors.count("Traceback") == 1, "that of the script, for it does not catch what failed"
    done = files("nc")
    assert 1 <= len(done) < 4
    ages = {path: path.stat().st_mtime_ns for path in (records.cache_folder() / "test/long").glob("*/part-*.nc")}

    cluster.scheduler()
    cluster.worker()
    with asking(cluster) as again:
        while not again.done():
            for path, age in ages.items():
                with suppress(FileNotFoundError):  # in the end, parts are merged
                    assert path.stat().st_mtime_ns == age, "a shard that was done is trained again"
            time.sleep(0.02)
        assert_same_as_here(again.result(), long())


def test_an_address_where_nothing_answers_is_refused_in_one_line(capsys, monkeypatch, offered):
    offered({"test/tiny": tiny})
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:1", "tls://127.0.0.1:1", "foo"):
        assert main(["train", "test/tiny", "--scheduler", address]) == 1
        gc.collect()
        told = capsys.readouterr().err
        assert told.startswith(f"grokbook: no scheduler at '{address}'") and told.count("\n") == 1


def printed():
    """The blocks of shell lines that the page gives for a cluster: one machine, several, SLURM."""
    page = json.loads((Path(__file__).parents[1] / "book" / "scale.ipynb").read_text())
    (cell,) = (text for one in page["cells"] if (text := "".join(one["source"])).startswith("## A cluster"))
    return re.findall(r"```bash\n(.*?)```", cell, re.S)


@contextmanager
def run(lines, folder):
    """What is started by shell lines, but for pip, make and our own commands; yields port and session."""
    port = free_port()
    script = re.sub(r"(?m)^(pip|grokbook|SCHEDULER=).*\n", "", lines).replace("8786", str(port))
    script = script.replace("$(hostname)", "127.0.0.1") + "wait\n"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "PATH": path}
    with open(folder / "log", "w") as log:
        shell = subprocess.Popen(
            ["bash", "-ec", script], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield port, shell.pid
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def listening(session):
    """Addresses, in hexadecimal, on which the processes of a session listen: (address, port)."""
    sockets = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "stat").read_text().rpartition(")")[2].split()[3] == str(session):
                sockets |= {os.readlink(one) for one in (process / "fd").iterdir()}
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    return {tuple(row[1].split(":")) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


LOOPBACK = "0100007F"


def test_the_lines_for_one_machine_listen_on_this_machine_only(tmp_path):
    with run(printed()[0], tmp_path) as (_, session):
        # two ports of the scheduler, and of each of two workers: one for work, one for its state, one of its nanny
        eventually(lambda: len(listening(session)) >= 8, "all ports to be open", every=0.2)
        assert {address for address, _ in listening(session)} == {LOOPBACK}


def test_the_lines_for_several_machines_let_nobody_in_who_has_no_certificate(tmp_path, monkeypatch):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    with run(printed()[1], tmp_path) as (port, session):
        eventually(lambda: len(listening(session)) >= 2, "the scheduler", every=0.2)
        told = command(f"tls://127.0.0.1:{port}", "tiny()", DASK_CONFIG=str(tmp_path / "tls")).communicate(timeout=300)
        assert told[0].split() == ["3"], told[1]
        assert (tmp_path / "tls").stat().st_mode & 0o077 == 0
        monkeypatch.setattr(workers, "CONNECT_SECONDS", 2.0)
        open_ports = {int(place, 16) for address, place in listening(session) if address != LOOPBACK}
        assert port in open_ports and len(open_ports) >= 3

        def refused(address):
            with pytest.raises(workers.TrainingFailed, match="no scheduler at"), workers.cluster(address):
                pass

        with ThreadPoolExecutor(2 * len(open_ports)) as pool:
            wanted = [f"{scheme}://127.0.0.1:{other}" for scheme in ("tcp", "tls") for other in open_ports]
            assert len(list(pool.map(refused, wanted))) >= 6
