import dataclasses
import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train import monitor, records, runner, verify, workers
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.workers import TrainingFailed
from tests.forked import context, told
from tests.waiting import eventually


def tiny(name="test/tiny", steps=6, seeds=3, width=8, scale="full"):
    task, model = ModularTask(7, "n + m", 0.5), TwoLayerMLP(7, width)
    return Experiment(
        name, tuple(Run(task, model, SGD(0.1), steps, s) for s in range(seeds)), Schedule(log=3), scale=scale
    )


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch, handed):
    handed(cache=str(tmp_path / "cache"), device="cpu")
    monkeypatch.setattr(records, "ROOT", tmp_path / "root")


def test_obtain_trains_once_and_then_reads_unless_all_is_asked_for_afresh(handed, tmp_path):
    handed(log=str(tmp_path / "log"))
    first, second = runner.obtain(tiny()), runner.obtain(tiny())
    np.testing.assert_array_equal(first.train_loss, second.train_loss)
    handed(fresh=True)
    runner.obtain(tiny())
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["source"] for line in log] == ["trained", "cached", "trained"]


def test_status_tells_present_stale_damaged_and_missing():
    experiment, path = tiny(), records.stored_path(tiny())
    assert runner.status(experiment).state == "missing"
    records.save(runner.train(tiny(width=9)), path)
    stale = runner.status(experiment)
    assert stale.state == "stale" and "runs[0].model.width: 8 here, 9 there" in stale.why
    path.write_bytes(b"broken")
    assert runner.status(experiment).state == "damaged"
    record = runner.train(experiment)
    assert runner.status(experiment).state == runner.status(experiment, whole=False).state == "present"
    record.train_loss[0, 0] += 1.0
    # as whoever alters a number, and not its checksum
    record.to_netcdf(records.cached_path(experiment), engine="h5netcdf")
    assert runner.status(experiment).state == "damaged"
    assert runner.status(experiment, whole=False).state == "present", "the heading alone does not tell"


def test_a_damaged_stored_record_is_reported_and_left_as_it_is(capsys):
    path = records.stored_path(tiny())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"broken")
    runner.obtain(tiny())
    assert str(path) in capsys.readouterr().err and path.read_bytes() == b"broken"
    beside = runner.status(tiny())
    assert beside.state == "present" and str(path) in beside.why and beside.path == records.cached_path(tiny())


def test_a_folder_takes_a_whole_record_that_is_elsewhere_and_loses_none_of_something_else(tmp_path):
    made = runner.train(tiny())
    assert runner.train(tiny(), out=tmp_path).attrs["started_at"] == made.attrs["started_at"]
    with pytest.raises(TrainingFailed, match=r"tiny.nc would be replaced \(runs\[0\].steps: 7 here, 6 there\)"):
        runner.train(tiny(steps=7), out=tmp_path)
    assert runner.train(tiny(steps=7), out=tmp_path, anew=True).steps.values[0] == 7


def test_a_folder_in_a_records_place_counts_as_missing_and_is_named(capsys):
    path = records.stored_path(tiny())
    path.mkdir(parents=True)
    assert runner.obtain(tiny()) is not None and path.is_dir()
    assert f"{path}: it is no regular file; it counts as missing" in capsys.readouterr().err


def test_a_refused_training_leaves_nothing_behind(tmp_path):
    with pytest.raises(TrainingFailed, match="no CUDA"):
        runner.train(tiny(), out=tmp_path, device="cuda")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": "2"}, {"block": -2}])
def test_numbers_of_workers_and_members_are_whole_and_positive(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be an integer of at least 1"):
        runner.train(tiny(), **wrong)


def test_what_is_no_experiment_is_told_from_one():
    with pytest.raises(TypeError, match="an Experiment is needed, as entry"):
        runner.obtain("test/tiny")


def test_blocks_and_threads_do_not_change_the_numbers():
    alone = runner.train(tiny(), workers=1, block=1)
    for settings in ({"workers": 1, "block": 3}, {"executor": ThreadPoolExecutor(2), "block": 2}):
        again = runner.train(tiny(), **settings)
        np.testing.assert_allclose(again.train_loss, alone.train_loss, rtol=1e-6)
        assert again.seed.values.tolist() == [0, 1, 2]


@pytest.fixture
def started(monkeypatch):
    """How many processes were asked for, each time; threads stand in for them."""
    counts = []

    class Threads(ThreadPoolExecutor):
        def __init__(self, count, gpus=None):
            counts.append(count)
            super().__init__(1)

    monkeypatch.setattr(runner, "Processes", Threads)
    return counts


def test_what_trains_sooner_than_a_process_starts_is_trained_here(started, monkeypatch):
    monkeypatch.setattr(runner, "plan", lambda experiment, device, workers: ("cpu", 1, 2))
    runner.train(tiny("test/small"))
    assert started == []
    monkeypatch.setattr(runner, "WORTH_A_PROCESS", 1.0)
    runner.train(tiny("test/large"))
    assert started == [2]


def test_stacks_are_cut_so_that_no_core_is_idle_and_gone_on_with_in_the_size_in_which_they_were_begun(
    started, monkeypatch, tmp_path
):
    sizes, cores = [], [2]
    monkeypatch.setattr(runner, "plan", lambda experiment, device, workers: ("cpu", 12, cores[0]))
    monkeypatch.setattr(runner, "WORTH_A_PROCESS", 1.0)

    def stopped(experiment, places, *_):
        sizes.append(sorted(map(len, places)))
        raise KeyboardInterrupt

    def sizes_of(name, **how):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(runner, "_train", stopped)
            runner.train(tiny(name, seeds=5), out=tmp_path, **how)
        return sizes[-1]

    assert sizes_of("test/one") == [2, 3]
    cores[0] = 5
    assert sizes_of("test/one") == [2, 3] and sizes_of("test/one", workers=1) == [2, 3]
    assert sizes_of("test/two") == [1] * 5 and sizes_of("test/one", block=5) == [5]
    assert sizes_of("test/three", workers=1) == [5]


def test_trainings_of_one_build_that_take_all_cores_wait_for_each_other(tmp_path, handed, started):
    """Chapters are executed side by side; two trainings at once would share cores, or a GPU's memory."""
    lock = tmp_path / "turn"
    lock.touch()
    handed(turn=str(lock))
    with open(lock) as other, ThreadPoolExecutor(1) as pool:
        fcntl.flock(other, fcntl.LOCK_EX)
        small = runner.train(tiny("test/small"), workers=1)  # one core: needs no turn
        waiting = pool.submit(runner.train, tiny("test/large"), workers=2, block=1)
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        fcntl.flock(other, fcntl.LOCK_UN)
        np.testing.assert_allclose(waiting.result().train_loss, small.train_loss, rtol=1e-6)
    assert started == [2]


def poisoned(*poisons):
    """A shard, then those that are poison to whatever process trains them, then another."""
    runs = list(tiny(seeds=2 + len(poisons)).runs)
    for i, poison in enumerate(poisons, start=1):
        runs[i] = dataclasses.replace(runs[i], model=poison(7, 8))
    return dataclasses.replace(tiny("test/poison"), runs=tuple(runs))


@dataclasses.dataclass(frozen=True)
class Failing(TwoLayerMLP):
    """Its gradient cannot be had."""

    def mse_gradients(self, *_):
        raise RuntimeError("out of luck")


@dataclasses.dataclass(frozen=True)
class Deadly(TwoLayerMLP):
    """Its gradient takes the process down, as running out of memory does."""

    def mse_gradients(self, *_):
        os.kill(os.getpid(), 9)


@pytest.mark.parametrize("poisons", [(Failing,), (Failing, Deadly)], ids=["here", "in processes"])
def test_a_poison_shard_fails_alone_and_is_named_with_its_traceback_in_a_file(poisons, monkeypatch, forked):
    monkeypatch.setattr(workers, "TRIES", 2)
    whole, sound = poisoned(*poisons), runner.train(tiny(seeds=2 + len(poisons)), workers=1, block=1)
    with pytest.raises(TrainingFailed) as failed:
        runner.train(whole, workers=len(poisons), block=1)
    told, last = str(failed.value), len(poisons) + 1
    assert f"{len(poisons)} of {len(whole.runs)} runs did not finish" in told
    assert "run 1: RuntimeError: out of luck" in told
    assert Deadly not in poisons or re.search("run 2: .*its process died 2 times", told)
    (report,) = (records.cache_folder() / "test/poison").glob("*/*.error")
    assert f"traceback: {report}" in told and "in mse_gradients" in report.read_text()
    parts = {runner.part_of(whole.select([i]), report.parent): i for i in (0, last)}
    for part, i in parts.items():
        np.testing.assert_allclose(records.load(part).train_loss[0], sound.train_loss[i], rtol=1e-6)
    # The same command trains what is missing, and nothing else.
    trained = []
    monkeypatch.setattr(runner, "train_shard", lambda *job: trained.append(job))
    with pytest.raises(TrainingFailed):
        runner.train(whole, workers=1, block=1)
    assert len(trained) == len(poisons) and set(parts) == set(report.parent.glob("part-*.nc"))


def test_what_counts_is_the_folder_and_not_the_futures():
    class Forgetful(ThreadPoolExecutor):
        """Does the work, and loses the news of it."""

        def submit(self, function, *arguments):
            future = super().submit(function, *arguments)
            wait([future])
            lost = Future()
            lost.cancel()
            lost.set_running_or_notify_cancel()
            return lost

    with Forgetful(1) as executor:
        assert runner.train(tiny(), executor=executor, block=1).sizes["run"] == 3

    class Idle(ThreadPoolExecutor):
        """Says it did."""

        def submit(self, function, *arguments):
            return super().submit(len, arguments)

    with Idle(1) as executor, pytest.raises(TrainingFailed, match="do its workers share that folder"):
        runner.train(tiny(steps=7), executor=executor, block=1)


def test_a_stop_that_reached_a_worker_first_is_told_without_its_traceback(tmp_path):
    future, stopped = Future(), KeyboardInterrupt("stopped")
    stopped.__cause__ = RuntimeError("a traceback, as of another process")
    future.set_exception(stopped)
    with pytest.raises(KeyboardInterrupt, match="stopped") as told:
        runner._why_not(tiny(), tmp_path, future)
    assert told.value.__cause__ is None and told.value.__suppress_context__


def test_a_worker_of_another_version_is_told_apart(tmp_path):
    with pytest.raises(ValueError, match="another version of grokbook"):
        runner.train_shard(tiny(), str(tmp_path / "part-0123456789abcdef.nc"), "cpu")


def test_nothing_is_left_behind_beside_the_record():
    runner.train(tiny())
    assert [path.suffix for path in (records.cache_folder() / "test" / "tiny").iterdir()] == [".nc"]


@pytest.mark.parametrize("device", ["tpu", "cuda:0"])
def test_an_unknown_device_is_refused_with_what_is_allowed(device):
    with pytest.raises(ValueError, match="'auto', 'cpu', 'cuda'"):
        runner.choose_device(device)


def test_cuda_is_refused_where_there_is_none():
    import torch

    if torch.cuda.is_available():
        assert runner.choose_device("cuda") == "cuda"
    else:
        with pytest.raises(ValueError, match="no CUDA GPU"):
            runner.choose_device("cuda")


def test_block_size_follows_the_size_of_the_activations(monkeypatch):
    import torch

    free = [80 * 2**30]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free[0], 80 * 2**30))
    assert runner.block_size(tiny(), "cuda") > 100_000  # all of any experiment
    assert runner.block_size(tiny(), "cuda", 2) == pytest.approx(runner.block_size(tiny(), "cuda") / 2, abs=1)
    free[0] = 0
    assert runner.block_size(tiny(), "cuda") == 1
    assert runner.block_size(tiny(width=4), "cpu") == runner.LARGEST_BLOCK
    large = Experiment("test/large", (Run(ModularTask(97), TwoLayerMLP(97, 500), SGD(0.1), 1, 0),))
    assert runner.block_size(large, "cpu") == 1


def test_a_snapshot_may_be_one_that_only_some_runs_reach():
    first, *others = tiny().runs
    runs = (dataclasses.replace(first, steps=3), *others)
    record = runner.train(dataclasses.replace(tiny(), runs=runs, snapshots=(4,), keep=("W_in",)), workers=1)
    assert np.isnan(record.W_in.values[0]).all() and np.isfinite(record.W_in.values[1:]).all()


def long():
    return tiny("test/long", steps=600, seeds=2, width=16)


def test_no_number_changes_under_attack(tmp_path):
    from tests import faults  # imports PyTorch, and scripts import this module

    log = tmp_path / "log"
    process = context().Process(target=told, args=(log, faults.main, ["--seconds", "4"]))
    process.start()
    process.join()
    assert process.exitcode == 0 and log.read_text().count(" 0 numbers changed") == 5, log.read_text()


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from grokbook.train import engine, records, runner
from tests.test_runner import long
disk = Path(sys.argv[1])
blocker = disk / "blocker"
with open(blocker, "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError as error:
        print("full:", error.strerror)
engine.CHECKPOINT_SECONDS = records.FULL_DISK_SECONDS = 0.1
records.time.sleep = lambda seconds: blocker.unlink(missing_ok=True)  # space comes while the training waits for it
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


SCRIPT = """
from grokbook import chapters
from grokbook.train import runner, workers
if __name__ == "__main__":
    from tests.test_runner import tiny
    with workers.Processes(1) as executor:
        runner.train(tiny(), executor=executor)
        runner.train(tiny("test/orphan", steps=2_000_000, seeds=1), executor=executor)
"""


@pytest.mark.parametrize("moment", ["still importing", "training"])
def test_workers_of_a_script_that_imports_chapters_train_and_end_when_it_is_gone(tmp_path, moment):
    """They import it, and xarray with it, before they are made workers of."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen([sys.executable, script], env=known, cwd=tmp_path)
    beats = records.cache_folder() / "test/orphan"

    def children():
        asked = ["ps", "-o", "pid=", "--ppid", str(process.pid)]
        return subprocess.run(asked, capture_output=True, text=True).stdout.split()

    def is_there():
        assert process.poll() is None
        # The worker, and multiprocessing's process that cleans up after it.
        return len(children()) >= 2 and (moment != "training" or list(beats.glob("*/*.progress")))

    eventually(is_there, moment, every=0.1)
    assert records.cached_path(tiny()).exists() == (moment == "training")
    orphans = children()
    process.kill()
    process.wait()
    # 5 seconds on a machine that has nothing else to do
    eventually(lambda: not any(os.path.exists(f"/proc/{child}") for child in orphans), "orphans to end", 30)


def test_a_training_that_ends_leaves_alone_what_another_has_begun_in_the_same_folder(tmp_path):
    """A stand-in has the name and some stacks of the full experiment; the first to finish once swept both away."""
    experiment = tiny()
    folder = tmp_path / ".parts" / experiment.name
    begun = folder / "0123" / runner.part_of(experiment, folder).with_suffix(".checkpoint").name
    begun.parent.mkdir(parents=True)
    begun.write_bytes(b"an hour's work")
    runner.train(experiment, out=str(tmp_path), workers=1)
    assert begun.exists() and not (folder / experiment.hash).exists()
    begun.unlink()
    begun.parent.rmdir()
    runner.train(experiment, out=tmp_path, workers=1)
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {experiment.name.split("/")[0]}


def test_a_damaged_cached_record_is_trained_again_in_its_place(capsys):
    path = records.cached_path(tiny())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"broken")
    runner.obtain(tiny())
    assert f"{path}: not a readable" in capsys.readouterr().err and runner.status(tiny()).state == "present"


def test_an_interrupted_training_leaves_a_checkpoint_of_the_step_it_was_at(tmp_path, once_training):
    parts = tmp_path / ".parts/test/tiny" / tiny(steps=10_000_000).hash
    once_training(parts, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        runner.train(tiny(steps=10_000_000), workers=1, out=tmp_path)
    assert list(parts.glob("*.checkpoint")) and not workers.STOP.is_set()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM])
def test_a_signal_is_heeded_to_the_end_of_the_outermost_and_no_longer(sent, capfd):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for what a shell runs in the background
    try:
        with workers.heeding():
            with workers.heeding(signal.SIGALRM):
                os.kill(os.getpid(), sent)
                os.kill(os.getpid(), sent)
            assert workers.STOP.is_set()
        assert not workers.STOP.is_set() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert capfd.readouterr().err == "grokbook: stopping; what is under way is written down first\n"
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_may_interrupt_the_handler_of_another():
    with workers.STOP._cond:
        assert workers.STOP._cond.acquire(blocking=False), "set twice, it would hang"
        workers.STOP._cond.release()


def test_a_terminal_that_is_closed_ends_no_training_of_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with workers.heeding():
            os.kill(os.getpid(), signal.SIGHUP)
            assert not workers.STOP.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_who_comes_second_waits_and_takes_the_record_of_the_first(capsys, monkeypatch):
    """Two processes with one command: the second may not find the parts of the first gone."""
    began, trained = threading.Event(), []
    real = runner.train_shard

    def slow(shard, path, device, modules):
        trained.append(shard.hash)
        began.set()
        time.sleep(0.3)
        return real(shard, path, device, modules)

    monkeypatch.setattr(runner, "train_shard", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(runner.train, tiny(), workers=1, block=1)
        began.wait(10)
        second = pool.submit(runner.train, tiny(), workers=1, block=1)
        np.testing.assert_array_equal(first.result(30).train_loss, second.result(30).train_loss)
        assert [first.result().taken, second.result().taken] == [0, 3]
    assert len(trained) == 3 and "another process trains test/tiny" in capsys.readouterr().err


def test_every_worker_has_a_gpu_of_its_own_and_none_that_is_not_there(monkeypatch, forked):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    slow = "sleep 0.5; echo $CUDA_VISIBLE_DEVICES"  # enough that every worker gets one call
    with workers.Processes(3, 2) as pool:
        seen = [pool.submit(subprocess.getoutput, slow) for _ in range(3)]
        assert sorted(one.result(60) for one in seen) == ["0", "0", "1"]


def test_the_default_precision_of_whoever_asks_changes_no_number():
    import torch

    plain = runner.train(tiny(), workers=1)
    threads = torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    try:
        again = runner.train(tiny(), workers=1)
        assert torch.get_default_dtype() == torch.float64 and torch.get_num_threads() == 2
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(again.train_loss, plain.train_loss)


def test_a_new_label_reaches_records_that_were_made_under_an_old_one():
    def labelled(label):
        return dataclasses.replace(tiny(), runs=tuple(dataclasses.replace(run, label=label) for run in tiny().runs))

    runner.train(labelled("old"))
    assert labelled("new").hash == labelled("old").hash
    assert records.select(runner.obtain(labelled("new")), label="new").sizes["run"] == 3


def test_a_script_without_a_guard_ends_and_says_what_it_lacks(tmp_path):
    """Its workers import it and ask for the same training, which its parent holds."""
    lines = "from grokbook.train import runner, workers", "from tests.test_runner import tiny"
    script = tmp_path / "unguarded.py"
    script.write_text("\n".join([*lines, "runner.train(tiny(), executor=workers.Processes(1))"]))
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, script], env=known, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.count("a script that trains needs its calls under if __name__") == 1
    assert "the same command tries again" not in done.stderr


def test_weights_that_memory_does_not_hold_are_refused_before_they_are_made():
    from grokbook.models.decoder import Decoder

    small = dataclasses.replace(tiny(), runs=(dataclasses.replace(tiny().runs[0], model=Decoder(7, 20_000, 2, 4)),))
    with pytest.raises(ValueError, match="side by side: about"):
        runner.check_memory(small, 1, 64 * 2**30)
    runner.check_memory(tiny(), 1, 2**30)
    whole = dataclasses.replace(tiny(), keep=("output[0]",), snapshots=(-1,))
    runner.check_memory(whole, 1, 2**30)
    with pytest.raises(ValueError, match=r"output\[0\] of all 49"):
        runner.check_memory(whole, 1, 2**10)
    for model in (TwoLayerMLP(7, 10**10), Decoder(7, 10**9, 2, 4)):  # and one that PyTorch cannot count
        runs = (dataclasses.replace(tiny().runs[0], model=model),)
        with pytest.raises(TrainingFailed, match=r"^test/tiny: 1 member side by side: about"):
            runner.train(dataclasses.replace(tiny(), runs=runs), workers=1)


def test_a_run_is_taken_from_another_record_where_the_first_that_has_it_is_damaged(tmp_path):
    one = dataclasses.replace(tiny(), scale="reduced")
    runner.train(one, out=tmp_path)
    path = records.stored_path(one, tmp_path)
    with h5py.File(path, "a") as file:
        file["train_loss"][0, 0] += 1
    runner.train(tiny(seeds=3))
    assert runner.train(tiny(seeds=4), out=tmp_path, workers=1).attrs["taken"] == 3


def test_runs_of_other_records_are_taken_over_and_only_the_others_trained(monkeypatch, tmp_path):
    whole, seeds, train_shard = runner.train(tiny()), [], runner.train_shard

    def train(shard, *where):
        seeds.extend(run.seed for run in shard.runs)
        train_shard(shard, *where)

    monkeypatch.setattr(runner, "train_shard", train)
    more = runner.train(tiny(seeds=5), workers=1)
    assert seeds == [3, 4] and more.attrs["taken"] == 3 and more.seed.values.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(more.train_loss[:3], whole.train_loss)
    assert verify.verify(tiny(seeds=5), workers=1).passed and seeds == [3, 4, 0, 1, 2, 3, 4], "nothing is taken there"
    six = tiny(seeds=6)
    broken = dataclasses.replace(six, runs=(*six.runs[:5], dataclasses.replace(six.runs[5], model=Failing(7, 8))))
    with pytest.raises(TrainingFailed, match="run 5: RuntimeError: out of luck"):
        runner.train(broken, workers=1, block=1)
    seeds.clear()
    fewer = runner.train(tiny().select([2, 0]), out=tmp_path / "out")
    assert not seeds and fewer.seed.values.tolist() == [2, 0] and not (tmp_path / "out/.parts").exists()
    np.testing.assert_array_equal(fewer.train_loss, whole.train_loss[[2, 0]])
    runner.train(tiny(seeds=4, steps=9), workers=1)
    assert seeds == [0, 1, 2, 3], "with other steps it is another run"
    seeds.clear()
    runner.train(tiny(seeds=4), workers=1, anew=True)
    assert seeds == [0, 1, 2, 3]


def test_a_run_is_taken_over_without_what_its_record_had_filled_up():
    kept = dataclasses.replace(tiny(seeds=1), snapshots=(-1,), keep=("W_in",))
    wide = dataclasses.replace(kept.runs[0], model=TwoLayerMLP(7, 12))
    both = runner.train(dataclasses.replace(kept, runs=(*kept.runs, wide)))
    taken, anew = runner.train(kept), runner.train(kept, anew=True)
    assert both.W_in.shape == (2, 1, 12, 14) and taken.attrs["taken"] == 1
    np.testing.assert_array_equal(taken.W_in, anew.W_in)


def test_a_stopped_training_keeps_its_stacks_whatever_other_records_hold_meanwhile(monkeypatch, tmp_path):
    lefts = []

    def stopped(experiment, places, *how):
        lefts.append(sorted(i for place in places for i in place))
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(runner, "_train", stopped)
            runner.train(tiny(), out=tmp_path)
        runner.train(tiny(seeds=1))
    assert lefts == [[0, 1, 2]] * 2, "for lack of the first its stack would be another, and begin anew"
    assert runner.train(tiny(), out=tmp_path).attrs["taken"] == 0 and not (tmp_path / ".parts").exists()


@pytest.mark.parametrize("content", ["5", "[", "null"])
def test_a_list_of_what_is_left_that_is_none_is_ignored(content, tmp_path):
    runner.train(tiny(seeds=1))
    begun = tmp_path / ".parts/test/tiny" / tiny().hash / "left.json"
    begun.parent.mkdir(parents=True)
    begun.write_text(content)
    assert runner.train(tiny(), out=tmp_path).attrs["taken"] == 1


def test_what_waits_for_space_or_for_another_process_can_be_told_to_end(monkeypatch, tmp_path):
    def full():
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    with pytest.raises(KeyboardInterrupt):
        records.patiently(full, lambda: True)
    monkeypatch.setattr(workers.STOP, "is_set", lambda: True)
    monkeypatch.setattr(workers.STOP, "wait", lambda seconds: True)
    with workers.alone(tmp_path / "lock"), pytest.raises(KeyboardInterrupt):
        workers.alone(tmp_path / "lock", "trains").__enter__()


def test_a_page_that_leaves_the_device_open_trains_on_that_of_the_session(monkeypatch, handed):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [runner.choose_device(one) for one in (None, "auto", "cuda")] == ["cpu", "cpu", "cuda"]
    handed(device="auto")
    assert runner.choose_device("auto") == "cuda"


def test_a_run_that_diverged_is_taken_over_with_all_that_was_measured(capsys):
    def wild(seeds):
        made = tiny("test/wild", seeds=seeds)
        return dataclasses.replace(
            made, runs=tuple(dataclasses.replace(run, optimizer=SGD(1e9), steps=20) for run in made.runs)
        )

    whole = runner.train(wild(2))
    taken = runner.train(wild(3)).isel(run=[0, 1])
    assert np.isfinite(whole.diverged_at).all()
    assert re.search(r"test/wild: 2 of 2 runs diverged, from step \d+\n", capsys.readouterr().err)
    for name in ("train_loss", "train_accuracy", "test_accuracy"):
        np.testing.assert_array_equal(taken[name].sel(step=whole.step), whole[name])


def test_workers_import_the_measures_that_this_process_knows(tmp_path):
    import grokbook.chapters.gromov.measures  # noqa: F401

    asked = dataclasses.replace(tiny("mine/sums", seeds=2), measures=("ipr",))
    assert "ipr" in runner.train(asked, workers=2, block=1, out=tmp_path)


def test_what_is_written_in_a_notebook_is_trained_in_its_process(monkeypatch, capsys):
    class Mine(TwoLayerMLP):
        pass

    monkeypatch.setattr(Mine, "__module__", "__main__")
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    runs = tuple(dataclasses.replace(run, model=Mine(7, 8)) for run in tiny().runs)
    assert runner.train(dataclasses.replace(tiny(), runs=runs), workers=2, block=1).sizes["run"] == 3
    assert "in a notebook" in capsys.readouterr().err
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/here/<stdin>", raising=False)
    assert runner.train(tiny(steps=5), workers=2, block=1).sizes["run"] == 3
    assert "the script is on standard input, which workers cannot import" in capsys.readouterr().err


def test_what_is_written_outside_the_book_is_trained_again_when_its_code_changes(monkeypatch):
    def with_model(body):
        # A method, a comment apart, as two versions of a file have it.
        scope = {"__name__": "mine", "TwoLayerMLP": TwoLayerMLP, "dataclass": dataclasses.dataclass}
        exec(f"@dataclass(frozen=True)\nclass Mine(TwoLayerMLP):\n  @property\n  def factor(self): {body}", scope)
        return dataclasses.replace(
            tiny(), runs=tuple(dataclasses.replace(run, model=scope["Mine"](7, 8)) for run in tiny().runs)
        )

    assert with_model("return 1.0").hash == with_model("return 1.0  # one").hash != with_model("return 2.0").hash
    assert with_model("1\n  gain = 2").hash != with_model("1\n  gain = 3").hash
    assert with_model("1\n  def f(self, k=2): 1").hash != with_model("1\n  def f(self, k=3): 1").hash
    asked = dataclasses.replace(tiny(), measures=("mine",))
    seen = set()

    def named(name):
        return lambda now: {name: now.losses}

    of = [lambda now: {"mine": now.outputs}, named("a"), named("b"), lambda now, k=1: now, lambda now, k=2: now]
    for measure in (*of, partial(of[0]), partial(of[0], more=1)):
        monkeypatch.setitem(monitor.MEASURES, "mine", measure)
        seen.add(asked.hash)
    monkeypatch.setitem(monitor.VERSIONS, "mine", 2)
    assert len(seen) == 6 and asked.recipe["measure_versions"]["mine"].startswith("2, ")
