"""Who runs shards: this process, local processes, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from pathlib import Path
from typing import IO, Any

from grokbook.lazy import torch
from grokbook.train import say
from grokbook.train.capture import lost

TRIES = 3  # for a shard whose process dies (Dask's own default is the same)
CONNECT_SECONDS = 10.0  # to a scheduler
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT = 2**25  # bytes of a freed array that the process keeps; glibc takes no more


class Signalled(threading.Event):
    """An event that handlers of signals may set: where one interrupts another, or a wait, the plain one hangs."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = threading.Condition()  # of a lock that can be taken twice


STOP = Signalled()  # set, trainings of this process write a checkpoint after the step they are at, and end


class TrainingFailed(Exception):
    """Some shards of an experiment did not finish; what did is kept. The message says which, and why."""


def cores() -> int:
    """Cores that this process may use; where the system does not say which, all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

    UNGUARDED = 79  # how a worker ends that is asked to train while it imports its caller's script

    def __init__(self, count: int, gpus: int | None = None) -> None:
        # Threads of it, and processes that they start, until these ignore it: Ctrl-C is for whoever asked.
        super().__init__(count, "", signal.pthread_sigmask, (signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP}))
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy in the processes: see ``settle``
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # inherited: it outlasts a closed terminal
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.gpus = gpus or count
        self.pools: dict[int, ProcessPoolExecutor] = {}  # by number, which says whose GPU is whose
        self.free = list(range(count))
        self.ending = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        return super().submit(self._in_process, function, *arguments, **options)

    def _in_process(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        number, told = self.free.pop(0), ""
        try:
            for _ in range(TRIES):
                if number not in self.pools:
                    context = multiprocessing.get_context("spawn")
                    self.pools[number] = ProcessPoolExecutor(1, context, begin_worker, (number % self.gpus,))
                try:
                    return self.pools[number].submit(function, *arguments, **options).result()
                except RuntimeError as error:
                    if lost(error):
                        told = f", last of {error}".splitlines()[0]
                    elif not isinstance(error, BrokenProcessPool):
                        raise
                pool = self.pools.pop(number)
                ended = list(pool._processes.values())
                pool.shutdown()  # the next process goes on from the checkpoint
                if any(process.exitcode == self.UNGUARDED for process in ended):
                    raise TrainingFailed("a script that trains needs its calls under if __name__ == '__main__':")
                if self.ending:
                    break
            raise ChildProcessError(f"its process died {TRIES} times{told}")
        finally:
            self.free.append(number)

    def terminate(self) -> None:
        """Have the processes write a checkpoint and end."""
        self.ending = True
        super().shutdown(wait=False, cancel_futures=True)
        for pool in list(self.pools.values()):
            for process in list(pool._processes.values()):
                process.terminate()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        for pool in self.pools.values():
            pool.shutdown(wait)


def begin_worker(number: int) -> None:
    """Keep to one GPU, and end with whoever asked: the same command then continues from the checkpoint."""
    for one in (signal.SIGINT, signal.SIGHUP):  # which reach all of a terminal; whoever asked then asks to stop
        signal.signal(one, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    visible = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[number % len(visible)] if visible else str(number)
    end_with_parent()


def end_with_parent() -> None:
    """End this process when the one that started it is gone, however and however early that came about."""
    parent = multiprocessing.parent_process()
    assert parent, "only a process that multiprocessing started can tell"

    def watch() -> None:
        parent.join()  # on a pipe that it holds open: its number, asked for here, may already be another's
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def settle(threads: int) -> None:
    """Make this process one that trains.

    Workers share the cores by number, never by threads: two threads on a busy machine are slower than one. And glibc
    would hand each step's activations back to the kernel, only to fault them in again: a tenth of a transformer's step.
    """
    torch.set_num_threads(threads)
    if keep := getattr(ctypes.CDLL(None), "mallopt", None):
        keep(M_MMAP_THRESHOLD, LARGEST_KEPT)
        keep(M_TRIM_THRESHOLD, 16 * LARGEST_KEPT)


def ends() -> list[signal.Signals]:
    """How else Ctrl-C is said: by a batch system, and by a terminal that is closed, except to ``nohup``."""
    return [signal.SIGTERM, *[signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) != signal.SIG_IGN)]


@contextlib.contextmanager
def heeding(*more: signal.Signals) -> Iterator[None]:
    """While it lasts, Ctrl-C, its likes and ``more`` end trainings with a checkpoint, not in the midst of a step."""
    heard = {signal.SIGINT, *ends(), *more} if threading.current_thread() is threading.main_thread() else ()
    before = {one: signal.signal(one, _stop) for one in heard}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if before and _stop not in before.values():  # nobody else heeds them
            STOP.clear()


def _stop(*_: object) -> None:
    if not (STOP.is_set() or multiprocessing.parent_process()):  # ``print`` might interrupt itself
        with contextlib.suppress(OSError):
            os.write(2, b"\n" * os.isatty(2) + b"grokbook: stopping; what is under way is written down first\n")
    STOP.set()


@contextlib.contextmanager
def until(minutes: float | None) -> Iterator[None]:
    """While it lasts, and at most so long, trainings go on; a signal to end stops them as well."""
    with heeding(signal.SIGALRM):
        signal.setitimer(signal.ITIMER_REAL, 60 * (minutes or 0))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def alone(path: Path, at_work: str = "") -> Iterator[bool]:
    """No two processes are in here with one file, which stays; whether another was, and had to be waited for.

    Without a word on what the other is at, it is not waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        another = False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            another = True
            if at_work:
                say(f"another process {at_work}; waiting for it")
                _wait_for(lock)
        except OSError:  # a file system without locks
            pass
        yield another


def _wait_for(lock: IO[str]) -> None:
    """Wait for a lock; KeyboardInterrupt where trainings are to end meanwhile."""
    while not STOP.wait(0.2):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    raise KeyboardInterrupt


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler as an executor; TrainingFailed if nothing answers at this address."""
    from distributed import Client

    class Quiet(Client):
        """One that could not connect waits, when it is deleted, for seconds, and then prints a traceback."""

        def __del__(self) -> None:
            pass

    for name in ("distributed", "distributed.client", "tornado.application"):  # whose tracebacks we say in a line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Quiet(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # the middle two: encryption is wanted, or lacks
        raise TrainingFailed(f"no scheduler at {address!r} (one is given as tls://host:8786): {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            say(f"the scheduler at {address} has no workers yet; waiting for some")
        yield client.get_executor(pure=False)
