"""The queue: what is worth training next, from ``results/queue.json``, and legs of any length that work through it.

An entry names an experiment, or by ``stand_in`` one of those that may stand in for it (its place among them), or
by ``parameters`` a variant; says why it matters; and has a priority, 1 before 2. Minutes are estimated from the
operations of its steps, or given where members leave early, and corrected by what records that this machine made took.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grokbook import chapters
from grokbook.checks import one_of
from grokbook.train import planning, records, runner, say, workers
from grokbook.train.experiment import Experiment

PATH = records.ROOT / "results" / "queue.json"

# Before anything was measured: a core, and a GPU that takes all members of a shape at once. The smallest nets take a
# core 0.3 ms a step, whatever their batch.
MACHINES = {"cpu": planning.Machine(50e9, 3e-4), "cuda": planning.Machine(12e12, 1e-3, None)}
LONGEST = {"cpu": 24 * 60.0, "cuda": float("inf")}  # minutes; what takes longer waits for a GPU
KEYS = {
    "experiment": str, "why": str, "priority": int, "stand_in": int, "parameters": dict, "core_minutes": int | float,
    "gpu_minutes": int | float,
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One training that is worth its time."""

    experiment: Experiment  #: what is trained
    full: Experiment  #: the experiment at its figure's settings, which makes a stand-in idle
    why: str  #: what its record decides
    priority: int  #: 1 comes before 2
    #: Minutes by device, "cpu" (of one core) or "cuda", where members leave early or a GPU is known better.
    given: dict[str, float] = field(default_factory=dict)

    def minutes(self, device: str) -> float:
        """What it takes on one core, or on one GPU, if no member leaves early."""
        return self.given[device] if device in self.given else minutes(self.experiment, device)

    @property
    def chapter(self) -> str:
        return self.experiment.name.partition("/")[0]

    def is_done(self, out: Path) -> bool:
        """Whether its record, or that of the full experiment, is among the committed ones or in a folder."""
        asked = (self.experiment,) if self.experiment.scale == "full" else (self.experiment, self.full)
        places = ((one, folder) for one in asked for folder in (records.ROOT / "results", out))
        return any(runner.status(one, whole=False, out=folder).state == "present" for one, folder in places)


def minutes(experiment: Experiment, device: str) -> float:
    """What an experiment takes on one core, or on one GPU, if no member leaves early, by its operations."""
    machine = MACHINES[device]
    return sum(map(machine.seconds, map(experiment.select, experiment.shards(machine.block)))) / 60


def entries() -> list[Entry]:
    """The committed queue; a ValueError names an entry that nothing can be made of."""
    found = []
    try:
        listed = json.loads(PATH.read_text(encoding="utf-8"))
        if not isinstance(listed, list):
            raise ValueError("a list of entries is needed")
    except ValueError as error:
        raise ValueError(f"{PATH.name}: {error}") from None
    for place, given in enumerate(listed):
        try:
            found.append(_entry(given))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{PATH.name}, entry {place} ({json.dumps(given)[:60]}): {error}") from None
    return found


def _entry(given: dict[str, Any]) -> Entry:
    if not isinstance(given, dict) or not {"experiment", "why", "priority"} <= given.keys():
        raise ValueError("experiment, why and priority are needed")
    for key, value in given.items():
        one_of("its keys", key, [*KEYS])
        if not isinstance(value, KEYS[key]):
            raise ValueError(f"{key} = {value!r}: {getattr(KEYS[key], '__name__', 'a number')} is needed")
    chapter = given["experiment"].partition("/")[0]
    one_of("its chapter", chapter, [*chapters.chapters()])
    known = chapters.experiments(chapter).get(given["experiment"])
    if known is None:
        raise ValueError(f"{chapter} has no such experiment; `grokbook list {chapter}` shows them")
    if (place := given.get("stand_in")) is None:
        experiment = known.make(**given.get("parameters", {}))
    elif place in range(len(smaller := known.stand_ins())):
        experiment = smaller[place]
    else:
        raise ValueError(f"stand_in = {place}: it has {len(smaller)} stand-ins, counted from 0")
    minutes = {device: given[key] for device, key in (("cpu", "core_minutes"), ("cuda", "gpu_minutes")) if key in given}
    return Entry(experiment, known.make(), given["why"], given["priority"], minutes)


class Queue:
    """What of the entries is to be trained on a device, into a folder."""

    def __init__(self, found: Sequence[Entry], out: Path, device: str) -> None:
        self.out, self.device = out, device
        self.left: dict[str, float] = {}  # of an experiment's work, what other records do not have; by hash
        self.took: dict[str, tuple[float, float]] = {}  # minutes that a chapter's records took here, and were to take
        for one in found:
            there = runner.status(one.experiment, whole=False, out=out)
            made = records.heading(there.path) if there.path and there.state == "present" else {}
            if made.get("device") == device and (device == "cuda" or made["machine"] == records.processor()):
                took, estimated = self.took.get(one.chapter, (0.0, 0.0))
                self.took[one.chapter] = took + made["wall_seconds"] / 60, estimated + one.minutes(device)
        # A GPU takes all members side by side: one seed of what is asked for in full saves it nothing.
        full = {one.experiment.hash for one in found} if device == "cuda" else set()
        wanted = [one for one in found if one.experiment.hash == one.full.hash or one.full.hash not in full]
        # Of one priority what is soonest done: a record counts only when it is whole.
        self.waiting = sorted(
            (one for one in wanted if not one.is_done(out)), key=lambda one: (one.priority, self.minutes(one, device))
        )

    def minutes(self, entry: Entry, device: str) -> float:
        """The estimate for what other records do not have of an entry, corrected by what its chapter's took here."""
        took, estimated = self.took.get(entry.chapter, (1.0, 1.0)) if device == self.device else (1.0, 1.0)
        if entry.experiment.hash not in self.left:
            held = records.holders(entry.experiment, self.out)
            self.left[entry.experiment.hash] = planning.work(entry.experiment, held) / planning.work(entry.experiment)
        return entry.minutes(device) * self.left[entry.experiment.hash] * took / estimated

    def rows(self) -> list[tuple[str, ...]]:
        """A table for people."""
        head = ("priority", "experiment", "core min", "GPU min", "why")
        return [head] + [
            (str(one.priority), title(one), *(f"{self.minutes(one, on):,.0f}" for on in ("cpu", "cuda")), one.why)
            for one in self.waiting
        ]

    def run(self, minutes: float | None = None, cores: int | None = None) -> int:
        """Train one entry after the other, but what another call into this folder is at; how many it finished.

        After ``minutes``, or at SIGTERM or Ctrl-C, trainings write a checkpoint and end: the same call goes on.
        TrainingFailed, in the end, where some failed, or would have replaced the record of something else.
        """
        finished, failed = 0, 0
        todo = [one for one in self.waiting if self.minutes(one, self.device) <= LONGEST[self.device]]
        with workers.until(minutes):
            for entry in todo:
                if workers.STOP.is_set():
                    break
                with workers.alone(lock := self.out / ".parts" / f"queue-{entry.experiment.hash}") as taken:
                    if taken or entry.is_done(self.out):
                        continue
                    try:
                        self._train(entry, cores)
                    except KeyboardInterrupt:
                        break
                    except workers.TrainingFailed as error:
                        failed += 1
                        _say(str(error))
                    else:
                        finished += 1
                        lock.unlink(missing_ok=True)  # who comes later finds the record
        left = sum(not one.is_done(self.out) for one in todo) - failed
        told = f"{finished} records finished, {failed} failed, {left} left" + "; the same command goes on" * (left > 0)
        if failed:
            raise workers.TrainingFailed(told)
        _say(told)
        return finished

    def _train(self, entry: Entry, cores: int | None) -> None:
        _say(f"{title(entry)}, about {self.minutes(entry, self.device):,.0f} minutes; {entry.why}")
        record = runner.train(entry.experiment, device=self.device, out=self.out, workers=cores)
        took = record.attrs["wall_seconds"] / 60
        _say(f"{records.stored_path(entry.experiment, self.out)} took {took:.1f} minutes")


def title(entry: Entry) -> str:
    """An entry's name, with what it has fewer of."""
    experiment = entry.experiment
    how = "" if experiment.hash == entry.full.hash else f" ({len(experiment.runs)} of {len(entry.full.runs)} runs)"
    return experiment.name + how


def _say(line: str) -> None:
    say(f"{time.strftime('%H:%M')} {line}")
