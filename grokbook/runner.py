"""From an experiment to its record: looked up where it is stored, trained shard by shard where it is not.

A shard is a stack of members of one shape. It writes its own part into a folder and nothing else, so any executor may
run it: this process, worker processes, or a Dask cluster. What is done is what lies in the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from grokbook import records
from grokbook.experiment import Experiment

FLOATS_IN_CACHE = 2**18  # activations a stack of members may hold while it still fits a core's cache
LARGEST_BLOCK = 12  # on a CPU; larger stacks gained nothing for the smallest nets, and leave a core idle at the end
COPIES_ON_GPU = 8  # of the activations over a whole table, that evaluation and autograd hold at once
WORTH_A_PROCESS = 1e9  # cost, some ten seconds: what trains sooner than a process imports PyTorch is trained here
TRIES = 3  # for a shard whose process dies (Dask's own default is the same)
CONNECT_SECONDS = 10.0  # to a scheduler
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT = 2**25  # bytes of a freed array that the process keeps; glibc takes no more
LINE_SECONDS = 60.0  # between two lines of progress where there is no terminal


class TrainingFailed(Exception):
    """Some shards of an experiment did not finish; what did is kept. The message says which, and why."""


@dataclass(frozen=True)
class Status:
    """Where the record of an experiment stands: ``"present"``, ``"stale"``, ``"damaged"`` or ``"missing"``."""

    state: str
    path: Path | None = None
    why: str = ""
    scale: str = "full"
    cost: str = ""
    record: xr.Dataset | None = None  # where it is present and was read whole


def status(experiment: Experiment, *, whole: bool = True) -> Status:
    """Look for the record of an experiment without training anything.

    Args:
        experiment: whose record it is.
        whole: read it and check its numbers; otherwise its heading has to do, in a hundredth of the time.
    """
    budget, scale = f"{experiment.member_steps:,} steps", experiment.scale
    found = Status("missing", scale=scale, cost=budget)
    for path in (records.stored_path(experiment), records.cached_path(experiment)):
        try:
            record = records.find(experiment, path) if whole else None
            heading = records.belongs(experiment, path) if record is None else record.attrs
            cost = f"{heading['wall_seconds'] / 60:.1f} core min"
            return Status("present", path, scale=scale, cost=cost, record=record)
        except FileNotFoundError:
            continue
        except LookupError as error:
            found = Status("stale", path, str(error), scale, budget)
        except records.DamagedRecord as error:
            found = Status("damaged", path, str(error), scale, budget)
    return found


def obtain(experiment: Experiment, *, otherwise: Experiment | None = None, device: str | None = None) -> xr.Dataset:
    """The record of an experiment: stored, cached, or trained now.

    Args:
        experiment: what is wanted.
        otherwise: a smaller experiment that stands in where ``experiment`` has no record; its record carries
            ``scale = "reduced"``. If neither has a record, the smaller one is trained.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``; None asks GROKBOOK_DEVICE.

    Returns:
        The record. With GROKBOOK_FRESH=1 records stored or trained before are not looked at.
    """
    began = time.monotonic()
    candidates = [experiment] if otherwise is None else [experiment, otherwise]
    damaged: list[Status] = []
    if not fresh():
        for candidate in candidates:
            place = status(candidate)
            if place.record is not None:
                for other in damaged:
                    print(f"grokbook: {other.why}; a smaller experiment stands in for it", file=sys.stderr)
                source = "cached" if place.path == records.cached_path(candidate) else "stored"
                _log(candidate, source, began)
                return place.record
            damaged += [place] if place.state == "damaged" else []
    for other in damaged:
        ours = other.path == records.cached_path(candidates[-1])
        left = "in its place" if ours else "the file is left as it is"
        print(f"grokbook: {other.why}; training it again, {left}", file=sys.stderr)
    record = train(candidates[-1], device=device)
    _log(candidates[-1], "trained", began)
    return record


def fresh() -> bool:
    """Whether stored records are to be ignored."""
    return os.environ.get("GROKBOOK_FRESH", "") not in ("", "0")


def _log(experiment: Experiment, source: str, began: float) -> None:
    if path := os.environ.get("GROKBOOK_LOG"):
        line = {
            "experiment": experiment.name,
            "hash": experiment.hash,
            "source": source,
            "scale": experiment.scale,
            "seconds": round(time.monotonic() - began, 1),
        }
        with open(path, "a") as log:
            log.write(json.dumps(line) + "\n")


def choose_device(device: str | None = None) -> str:
    """``"cpu"`` or ``"cuda"``, from the argument or else GROKBOOK_DEVICE; ``"auto"`` takes a GPU where there is one.

    Raises:
        ValueError: an unknown device, or CUDA where there is none.
    """
    from grokbook.lazy import torch

    wanted = device or os.environ.get("GROKBOOK_DEVICE") or "auto"
    if wanted not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device = {wanted!r}: choose one of auto, cpu, cuda")
    if wanted == "cpu":
        return "cpu"
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise ValueError("device = 'cuda': PyTorch finds no CUDA GPU on this machine; cpu and auto are allowed")
    return "cuda" if available else "cpu"


def block_size(experiment: Experiment, device: str) -> int:
    """Members per stack: on a core, as many as keep their activations in its cache; on a GPU, all its memory holds."""

    def activations(samples: Callable[[Any], int]) -> int:
        return max(samples(run) * getattr(run.model, "floats_per_sample", 1024) for run in experiment.runs)

    if device == "cuda":
        from grokbook.lazy import torch

        memory = torch.cuda.get_device_properties(0).total_memory // 4
        return max(1, memory // (COPIES_ON_GPU * activations(lambda run: len(run.task.table()[1]))))
    of_step = activations(lambda run: run.batch_size or run.task.train_size)
    return int(np.clip(FLOATS_IN_CACHE // of_step, 1, LARGEST_BLOCK))


def cores() -> int:
    """Cores that this process may use; where the system does not say which, all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plan(experiment: Experiment, device: str | None) -> tuple[str, int, int]:
    """Device, members per stack and workers of the machine that this runs on."""
    device = choose_device(device)
    block = block_size(experiment, device)
    if device == "cpu":
        return device, block, cores()
    from grokbook.lazy import torch

    gpus = torch.cuda.device_count()
    return device, min(block, -(-len(experiment.runs) // gpus)), gpus


def train(
    experiment: Experiment,
    *,
    device: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    block: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
) -> xr.Dataset:
    """Train what of an experiment is not trained yet, and save its record.

    Every shard (a stack of members of one shape) writes its own part; a part that is there already is not trained
    again, so the same command continues after a kill.

    Args:
        experiment: what to train.
        device: see ``choose_device``; with a scheduler, what its workers find.
        out: a folder for the record, ``<out>/<chapter>/<experiment>.nc``; None is the local cache. With a scheduler
            it has to be on a file system that all its workers share.
        workers: processes, one thread each; None is one per core or per GPU.
        block: members per stack; None asks ``plan``.
        executor: any ``concurrent.futures`` executor to run shards instead of local processes.
        scheduler: address of a Dask scheduler whose workers run the shards; None asks GROKBOOK_SCHEDULER.

    Raises:
        TrainingFailed: a shard did not finish; the message names it, and the others' parts are kept. Or nothing
            answers at the scheduler's address.
        OSError: the record cannot be written.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker, which imports its caller's script
        raise SystemExit("grokbook: a script that trains needs its calls under if __name__ == '__main__':")
    folder = (out / ".parts" if out else records.cache_folder()).resolve() / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    path = records.stored_path(experiment, out) if out else records.cached_path(experiment)
    with _alone(experiment, folder) as another_did:
        if not (another_did and _is_there(experiment, path)):
            scheduler = scheduler or os.environ.get("GROKBOOK_SCHEDULER") or None
            _train(experiment, folder, path, device, workers, block, executor, scheduler)
    if out:
        with contextlib.suppress(OSError):  # not empty: another training is under way there
            for emptied in (folder, *folder.parents[:2]):
                emptied.rmdir()
    return records.load(path)


def _train(
    experiment: Experiment,
    folder: Path,
    path: Path,
    device: str | None,
    workers: int | None,
    block: int | None,
    executor: Executor | None,
    scheduler: str | None,
) -> None:
    """Train the shards that have no part in the folder, and save the record of all at ``path``."""
    with contextlib.ExitStack() as stack:
        if scheduler and executor is None:
            executor = stack.enter_context(cluster(scheduler))
            # Asked of a worker: this machine may have no GPU, or be another kind of machine altogether.
            try:
                device, chosen, _ = executor.submit(plan, experiment, device).result()
            except ValueError as error:
                raise TrainingFailed(f"{experiment.name}: asked of a worker of {scheduler}, {error}") from None
        else:
            device, chosen, here = plan(experiment, device)
        places = list(experiment.shards(block or chosen))
        places.sort(key=lambda place: -_cost(experiment.select(place)))  # so that the last to finish is a short one
        shards = [experiment.select(place) for place in places]
        todo = [shard for shard in shards if not _is_done(shard, folder)]
        if executor is None:
            small = workers is None and device == "cpu" and sum(map(_cost, todo)) < WORTH_A_PROCESS
            count = 1 if small else min(workers or here, len(todo))
            if count > 1 or device == "cuda":
                stack.enter_context(_turn())
            gpus = here if device == "cuda" else None
            executor = stack.enter_context(Processes(count, gpus) if count > 1 else ThisProcess())
        stack.enter_context(Progress(experiment, shards, folder))
        failures = run_shards(executor, todo, folder, device)
    if failures:
        names = {shard.hash: _runs(place) for shard, place in zip(shards, places, strict=True)}
        lines = [f"{names[shard.hash]}: {why}" for shard, why in failures]
        told = "\n  ".join([*lines[:10], *([f"and {len(lines) - 10} more"] if len(lines) > 10 else [])])
        raise TrainingFailed(
            f"{experiment.name}: {len(failures)} of {len(shards)} shards did not finish; the others are kept, and the "
            f"same command tries again\n  {told}"
        )

    parts = [records.find(shard, _part(shard, folder)) for shard in shards]
    record = records.merge(experiment, parts, places).assign_attrs(block=max(map(len, places)))
    records.patiently(lambda: records.save(record, path))
    for shard in shards:
        for leftover in folder.glob(f"part-{shard.hash}*"):
            leftover.unlink()


@contextlib.contextmanager
def _alone(experiment: Experiment, folder: Path) -> Iterator[bool]:
    """No two processes of one file system train one experiment in one folder; whether another one just did."""
    path = folder / f"{experiment.hash}.lock"
    with open(path, "w") as lock:
        waited = False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                yield False  # a file system without locks
                return
            print(f"grokbook: another process trains {experiment.name} in {folder}; waiting for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        try:
            yield waited
        finally:
            path.unlink(missing_ok=True)


def run_shards(
    executor: Executor, shards: Sequence[Experiment], folder: Path, device: str
) -> list[tuple[Experiment, str]]:
    """Have an executor train shards; those whose part is not in the folder in the end, and why."""
    futures = {executor.submit(train_shard, shard, str(_part(shard, folder)), device): shard for shard in shards}
    try:
        wait(futures)
    except BaseException:
        if isinstance(executor, Processes):
            executor.terminate()
        raise
    failures = []
    for future, shard in futures.items():
        # A worker may have finished a shard whose future was lost with the scheduler, and the other way round.
        if _is_done(shard, folder):
            continue
        try:
            future.result()
            why = f"it ended, but {folder} holds no record of it: do its workers share that folder?"
        except CancelledError:
            why = "the scheduler was lost"
        except Exception as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0]
        report = _part(shard, folder).with_suffix(".error")
        failures.append((shard, why + (f"\n    traceback: {report}" if report.exists() else "")))
    return failures


def train_shard(shard: Experiment, path: str, device: str) -> str:
    """Train one stack of members and save its part at ``path``, which it returns. What workers run, here or elsewhere.

    Raises:
        ValueError: the recipe means something else here: another version of this package asked for it.
    """
    from grokbook import engine
    from grokbook.lazy import torch

    part = Path(path)
    checkpoint, heartbeat, report = (part.with_suffix(f".{kind}") for kind in ("checkpoint", "progress", "error"))
    if shard.hash not in part.name:
        raise ValueError("this worker has another version of grokbook than whoever asked")
    if _is_done(shard, part.parent):
        return path
    threads = torch.get_num_threads()
    settle(1)
    before = time.monotonic(), -1

    def beat(step: int, numbers: dict[str, float]) -> None:
        nonlocal before
        now, (then, last) = time.monotonic(), before
        rate = (step - last) / (now - then) * numbers["members"] if last >= 0 and now > then else 0.0
        before = now, step
        with contextlib.suppress(OSError):  # a line of progress is worth less than the training
            heartbeat.write_text(json.dumps({"step": step, "rate": rate, **numbers}))

    try:
        record = engine.train(shard, device=device, checkpoint=checkpoint, report=beat)
        records.patiently(lambda: records.save(record, part))
    except Exception:
        with contextlib.suppress(OSError):
            report.write_text(traceback.format_exc())
        raise
    finally:
        torch.set_num_threads(threads)
    for leftover in (checkpoint, engine.previous(checkpoint), heartbeat, report):
        leftover.unlink(missing_ok=True)
    return path


class ThisProcess(Executor):
    """Runs what it is given at once, here."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """A future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(ThreadPoolExecutor):
    """Local processes, each in the care of a thread: one that dies takes only its own shard along, which is retried."""

    def __init__(self, count: int, gpus: int | None = None) -> None:
        super().__init__(count)
        self.pools: dict[int, ProcessPoolExecutor] = {}  # of each thread
        self.numbers: dict[int, int] = {}  # and which GPU is its, for all its processes, one after the other
        self.next, self.gpus = itertools.count(), gpus or count
        self.ending = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """As for any executor."""
        return super().submit(self._in_process, function, *arguments, **options)

    def _in_process(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        mine = threading.get_ident()
        if mine not in self.numbers:
            self.numbers[mine] = next(self.next) % self.gpus
        for _ in range(TRIES):
            if mine not in self.pools:
                context = multiprocessing.get_context("spawn")
                self.pools[mine] = ProcessPoolExecutor(1, context, _begin_worker, (self.numbers[mine],))
            try:
                return self.pools[mine].submit(function, *arguments, **options).result()
            except BrokenProcessPool:
                self.pools.pop(mine).shutdown()
                if self.ending:
                    break
        main = sys.modules["__main__"]
        script = "" if main.__spec__ else str(getattr(main, "__file__", ""))  # a module run with -m has a guard
        hint = f" (the calls of {script} belong under if __name__ == '__main__':)" if script.endswith(".py") else ""
        raise ChildProcessError(f"its process died {TRIES} times{hint}")

    def terminate(self) -> None:
        """End the processes where they are; their checkpoints stay."""
        self.ending = True
        super().shutdown(wait=False, cancel_futures=True)
        for pool in list(self.pools.values()):
            for process in list(pool._processes.values()):
                process.terminate()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As for any executor."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for pool in self.pools.values():
            pool.shutdown(wait)


def _begin_worker(number: int) -> None:
    """Keep to one GPU, and end with whoever asked: the same command then continues from the checkpoint."""
    visible = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[number % len(visible)] if visible else str(number)
    end_with_parent()


def end_with_parent() -> None:
    """End this process when the one that started it is gone, however that came about."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def settle(threads: int) -> None:
    """Make this process one that trains.

    Workers share the cores by number, never by threads: two threads on a busy machine are slower than one. And glibc
    would hand each step's activations back to the kernel, only to fault them in again: a tenth of a transformer's step.
    """
    from grokbook.lazy import torch

    torch.set_num_threads(threads)
    if keep := getattr(ctypes.CDLL(None), "mallopt", None):
        keep(M_MMAP_THRESHOLD, LARGEST_KEPT)
        keep(M_TRIM_THRESHOLD, 16 * LARGEST_KEPT)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Chapters of one build are executed side by side: who trains with all cores, or on the GPU, waits for its turn."""
    with open(os.environ.get("GROKBOOK_TURN") or os.devnull) as lock:
        if lock.name != os.devnull:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler as an executor.

    Raises:
        TrainingFailed: nothing answers at this address.
    """
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise TrainingFailed(f"no scheduler at {address!r} (one is given as tcp://host:8786): {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            print(f"grokbook: the scheduler at {address} has no workers yet; waiting for some", file=sys.stderr)
        yield client.get_executor(pure=False)


def _part(shard: Experiment, folder: Path) -> Path:
    return folder / f"part-{shard.hash}.nc"


def _is_done(shard: Experiment, folder: Path) -> bool:
    return _is_there(shard, _part(shard, folder))


def _is_there(experiment: Experiment, path: Path) -> bool:
    try:
        records.find(experiment, path)
    except (FileNotFoundError, LookupError, records.DamagedRecord):
        return False
    return True


def _cost(shard: Experiment) -> float:
    return float(
        sum(run.steps * run.task.train_size * getattr(run.model, "floats_per_sample", 1) for run in shard.runs)
    )


def _runs(place: Sequence[int]) -> str:
    """Positions of runs as ``"runs 3, 4, 7"``."""
    return f"run{'s' if len(place) > 1 else ''} {', '.join(map(str, place))}"


class Progress:
    """Members done, steps per second, time left and live accuracies, on one line, from what the shards write.

    A terminal shows the line as it changes. A log, or whoever builds the book (GROKBOOK_PROGRESS), gets one a minute;
    a notebook's page gets nothing.
    """

    def __init__(self, experiment: Experiment, shards: Sequence[Experiment], folder: Path) -> None:
        self.experiment, self.shards, self.folder = experiment, shards, folder
        # Of a step of one member, for the members of one experiment differ in size.
        self.weights = [_cost(shard) / sum(run.steps for run in shard.runs) for shard in shards]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _watch(self) -> None:
        page = os.environ.get("GROKBOOK_PROGRESS")
        live = not page and sys.stderr is not None and sys.stderr.isatty()
        if not page and not live and "ipykernel" in sys.modules:
            return
        while not self.ended.wait(1.0 if live else LINE_SECONDS):
            if live:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{self.line()[:width]}\x1b[K", end="", file=sys.stderr, flush=True)
            elif page:
                with open(page, "a") as file:
                    file.write(self.line() + "\n")
            else:
                print(self.line(), file=sys.stderr, flush=True)
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """How it stands. The time left is what it takes if no member leaves early."""
        done, left, rate, pace, now = 0, 0.0, 0.0, 0.0, time.time()
        accuracies = []
        for shard, weight in zip(self.shards, self.weights, strict=True):
            members, steps = len(shard.runs), shard.runs[0].steps
            path = _part(shard, self.folder)
            try:
                beat = json.loads(path.with_suffix(".progress").read_text())
                age = now - path.with_suffix(".progress").stat().st_mtime
            except (OSError, ValueError):
                beat, age = {"step": 0, "rate": 0.0, "members": members}, 0.0
            if path.exists():
                done += members
                continue
            done += members - beat["members"]
            left += weight * beat["members"] * (steps - beat["step"])
            if age < LINE_SECONDS:  # else nobody is at it
                rate += beat["rate"]
                pace += weight * beat["rate"]
                if {"train_accuracy", "test_accuracy"} <= beat.keys():
                    accuracies.append((beat["train_accuracy"], beat["test_accuracy"]))
        words = [f"{done} of {len(self.experiment.runs)} members done"]
        if rate:
            watch = self.experiment.watch
            most = "at most " if self.experiment.stop or (watch and watch.leave) else ""
            words += [f"{rate:,.{0 if rate >= 10 else 1}f} steps/s", f"{most}{_duration(left / pace)} left"]
        if accuracies:
            train_accuracy, test_accuracy = np.nanmean(accuracies, 0)
            words.append(f"accuracy {train_accuracy:.2f} train, {test_accuracy:.2f} test")
        return f"{self.experiment.name}: " + ", ".join(words)


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
