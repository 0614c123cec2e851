"""A line that says how far a training is, from what its shards write."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from grokbook import session, words
from grokbook.train.contract import optional
from grokbook.train.experiment import Experiment

LINE_SECONDS = 60.0  # between two lines of progress where there is no terminal


def part_of(shard: Experiment, folder: Path) -> Path:
    return folder / f"part-{shard.hash}.nc"


def cost_of(shard: Experiment) -> float:
    return float(sum(run.steps * run.samples * optional(run.model, "floats_per_sample") for run in shard.runs))


@contextlib.contextmanager
def shown(experiment: Experiment, shards: Sequence[Experiment], folder: Path) -> Iterator[None]:
    """While it lasts, a terminal shows ``line`` as it changes; else a log, or the session's, gets one a minute."""
    page = session.current().progress
    live = not page and sys.stderr is not None and sys.stderr.isatty()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1.0 if live else LINE_SECONDS):
            told = line(experiment, shards, folder)
            if live:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{told[:width]}\x1b[K", end="", file=sys.stderr, flush=True)
            elif page:
                with open(page, "a") as file:
                    file.write(told + "\n")
            else:
                print(told, file=sys.stderr, flush=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def line(experiment: Experiment, shards: Sequence[Experiment], folder: Path) -> str:
    """Members done, steps a second, time left if no member leaves early, and accuracies."""
    done, left, rate, pace, accuracies = 0, 0.0, 0.0, 0.0, []
    for shard in shards:
        members, steps = len(shard.runs), shard.runs[0].steps
        path = part_of(shard, folder)
        if path.exists():
            done += members
            continue
        try:
            beat = json.loads(path.with_suffix(".progress").read_text())
            age = time.time() - path.with_suffix(".progress").stat().st_mtime
        except (OSError, ValueError):
            beat, age = {"step": 0, "rate": 0.0, "members": members}, 0.0
        weight = cost_of(shard) / (members * steps)  # of a step of one member: those of other shards may be larger
        done += members - beat["members"]
        left += weight * beat["members"] * (steps - beat["step"])
        if age < LINE_SECONDS:  # else nobody is at it
            rate += beat["rate"]
            pace += weight * beat["rate"]
            if {"train_accuracy", "test_accuracy"} <= beat.keys():
                accuracies.append((beat["train_accuracy"], beat["test_accuracy"]))
    said = [f"{done} of {sum(len(shard.runs) for shard in shards)} members done"]
    if rate:
        most = "at most " if experiment.stop or (experiment.watch and experiment.watch.leave) else ""
        said += [f"{rate:,.{0 if rate >= 10 else 1}f} steps/s", f"{most}{words.seconds(left / pace)} left"]
    if accuracies:
        train_accuracy, test_accuracy = np.nanmean(accuracies, 0)
        said.append(f"accuracy {train_accuracy:.2f} train, {test_accuracy:.2f} test")
    return f"{experiment.name}: " + ", ".join(said)
