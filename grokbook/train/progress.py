"""A line that says how far a training is, from what its shards write."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grokbook import session, words
from grokbook.train.contract import optional
from grokbook.train.experiment import Experiment

LINE_SECONDS = 60.0  # between two lines of progress where there is no terminal


def part_of(shard: Experiment, folder: Path) -> Path:
    return folder / f"part-{shard.hash}.nc"


def cost_of(shard: Experiment) -> float:
    return float(sum(run.steps * run.task.train_size * optional(run.model, "floats_per_sample") for run in shard.runs))


class Progress:
    """Members done, steps per second, time left and live accuracies, on one line, from what the shards write.

    A terminal shows the line as it changes. A log, or the session's ``progress``, gets one a minute;
    a notebook's page gets nothing.
    """

    def __init__(self, experiment: Experiment, shards: Sequence[Experiment], folder: Path) -> None:
        self.experiment, self.shards, self.folder = experiment, shards, folder
        # Of a step of one member, for the members of one experiment differ in size.
        self.weights = [cost_of(shard) / sum(run.steps for run in shard.runs) for shard in shards]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _watch(self) -> None:
        page = session.current().progress
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
            path = part_of(shard, self.folder)
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
        said = [f"{done} of {len(self.experiment.runs)} members done"]
        if rate:
            watch = self.experiment.watch
            most = "at most " if self.experiment.stop or (watch and watch.leave) else ""
            said += [f"{rate:,.{0 if rate >= 10 else 1}f} steps/s", f"{most}{words.seconds(left / pace)} left"]
        if accuracies:
            train_accuracy, test_accuracy = np.nanmean(accuracies, 0)
            said.append(f"accuracy {train_accuracy:.2f} train, {test_accuracy:.2f} test")
        return f"{self.experiment.name}: " + ", ".join(said)
