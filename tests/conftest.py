"""What every test stands on: one thread, no stored settings of the developer, the repository's root."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy or torch is imported; also much faster on a shared machine
os.environ.setdefault("MPLBACKEND", "agg")
for name in ("GROKBOOK", *(f"GROKBOOK_{name}" for name in ("CACHE", "DEVICE", "FRESH", "SCHEDULER"))):
    os.environ.pop(name, None)
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # a make that runs these tests is not the make they look at
    os.environ.pop(name, None)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that changes fields of the session for the rest of the test."""
    from grokbook import session

    def change(**fields: object) -> None:
        changed = dataclasses.replace(session.current(), **fields)
        for name, value in changed.variable().items():
            monkeypatch.setenv(name, value)

    return change


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict], None]:
    """A function that makes experiments, by name what makes each, those that the command line knows."""
    from grokbook import __main__, chapters

    def offer(made: dict) -> None:
        known = lambda prefix=None: {name: chapters.Entry(name, make) for name, make in made.items()}  # noqa: E731
        monkeypatch.setattr(__main__, "experiments", known)

    return offer


@pytest.fixture
def forked() -> Iterator[None]:
    """Processes that the package starts in this test are forked from one that has imported what they need."""
    from tests import forked

    with forked.instead():
        yield


@pytest.fixture
def once_training() -> Callable[[Path, int], None]:
    """A function that has a signal sent to this process as soon as a training in a folder tells of its progress."""

    def send(parts: Path, signal: int) -> None:
        def wait() -> None:
            while not list(parts.glob("*.progress")):
                time.sleep(0.02)
            os.kill(os.getpid(), signal)

        threading.Thread(target=wait, daemon=True).start()

    return send
