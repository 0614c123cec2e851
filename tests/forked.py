"""Processes that need not each import PyTorch and what makes pages: forked from one that has, and did nothing else.

What `make` and the command line start imports all of it; for that are the tests that start a script or a command.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest.mock import patch

IMPORTED = (
    *("torch", "grokbook.train.engine", "grokbook.book.build", "tests.test_runner"),
    *("papermill", "jupyter_book.cli.main", "distributed.cli.dask_scheduler", "distributed.cli.dask_worker"),
)


class Process(ForkServerProcess):
    """One with the environment of whoever starts it, as a spawned one has."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.environment = dict(os.environ)

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        gc.freeze()  # what was imported is not to be looked through, and with that copied, again and again
        super().run()


class Context(ForkServerContext):
    Process = Process


def context(_: str = "spawn") -> Context:
    """In place of ``multiprocessing.get_context``."""
    forkserver.set_forkserver_preload(list(IMPORTED))
    with patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1])):
        forkserver.ensure_running()
    return Context()


@contextmanager
def instead() -> Iterator[None]:
    """While it lasts, the package's own processes are such ones."""
    with patch.object(multiprocessing, "get_context", context):
        yield


def told(log: Path, function: Callable[..., int | None], *arguments: object) -> None:
    """Call a function; what it says goes to a file, what it returns is the status of its process."""
    with open(log, "wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.exit(function(*arguments))


def dask(program: str, words: list[str], folder: Path) -> None:
    """What a process does that is to be a scheduler, or a worker, of Dask."""
    import dask.config

    os.chdir(folder)
    dask.config.set({"distributed.scheduler.allowed-failures": 1})  # else a poison shard takes four workers
    dask.config.set({"distributed.worker.profile.enabled": False})
    importlib.import_module(f"distributed.cli.{program}").main(words)
