"""The training loop: members of one shape, stacked, stepped together, measured on a schedule, checkpointed.

``train`` is the whole of it. It knows tasks, models, optimizers and measures by their interfaces and no chapter.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.lazy import torch
from grokbook.train import products, records, say
from grokbook.train.contract import optional
from grokbook.train.experiment import CURVES, Experiment, Watch
from grokbook.train.monitor import MEASURES, arrays_of, kept, known, of_chapter
from grokbook.train.state import STOPPED, State, wants_graph

CHECKPOINT_SECONDS = 50.0
REPORT_SECONDS = 1.0
# Of a training, in a checkpoint.
SAVED = ("values", "kept", "stopped_at", "diverged", "reached", "streak", "evaluated", "resumed", "places")


@dataclass
class Training:
    """One stack of M runs on its way: the state, what was measured, and where it stands."""

    experiment: Experiment
    state: State
    columns: dict[int, int]  # step of the schedule -> its place in a curve
    places: list[dict[str, str]]  # device, machine and libraries of each process that took part
    streak: NDArray[np.int64]  # (M,) evaluations in a row at which the stop criterion held
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # curves (M, evaluations)
    kept: dict[str, dict[tuple[int, int], NDArray[Any]]] = field(default_factory=dict)  # by member and snapshot
    stopped_at: dict[int, int] = field(default_factory=dict)
    diverged: dict[int, int] = field(default_factory=dict)
    reached: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # (M,) what is watched
    evaluated: int = -1  # the last step that was measured
    seconds: float = 0.0  # spent before this process took over
    resumed: list[str] = field(default_factory=list)  # steps at which a process took over, and what changed

    @classmethod
    def start(cls, experiment: Experiment, device: torch.device, dtype: torch.dtype, library: str = "") -> Training:
        """At step 0; ``library`` is that of its products so far, if there were any."""
        of_chapter(experiment.name)
        if experiment.summary:
            known(experiment.summary)  # asked for at the end
        runs = experiment.runs
        columns = {step: column for column, step in enumerate(experiment.schedule.steps(runs[0].steps).tolist())}
        state = State.start(runs, device, dtype)
        library = products.choose(state.gradients, device.type, experiment.precision, library)
        now = state.measured()
        most = {re.sub(r"\[\d+", "", one): one for one in sorted(experiment.keep, key=lambda one: (len(one), one))}
        for name in set(most.values()) - MEASURES.keys():
            kept(name, now)  # better missed before the training
        return cls(experiment, state, columns, [_place(device, library)], np.zeros(len(runs), np.int64))

    def evaluate(self) -> dict[str, float]:
        """What is due before the next step: measures, snapshots, leaving. Mean losses and accuracies, if measured."""
        state, experiment, step, watch = self.state, self.experiment, self.state.step, self.experiment.watch
        watch = watch if watch and step % watch.every == 0 else None
        if step == self.evaluated or not (watch or step in experiment.snapshots or step in self.columns):
            return {}
        everyone, self.evaluated = self.training(), step
        if step in experiment.snapshots:
            self._keep(step, everyone)
        done = np.full(len(state.members), step == experiment.runs[0].steps)
        if step in self.columns:
            numbers = state.measure(experiment.measures)
            done |= self._noted(numbers, everyone)
        elif watch:
            more = not {name for name, _ in watch.thresholds} <= {"train_accuracy", "test_accuracy"}
            numbers = state.measure(experiment.measures if more else (), losses=more)
        else:
            return {}
        if watch:
            done |= self._arrived(numbers, watch, everyone) & watch.leave
        if leaving := [i for i in everyone if done[i]]:
            if -1 in experiment.snapshots:
                self._keep(-1, leaving)
            self.stopped_at.update({state.members[i]: step for i in leaving})
            # A stack of another size is captured anew, which takes as long as many steps: not for every member.
            if not wants_graph(state) or 4 * len(self.training()) <= 3 * len(state.members):
                self.drop()
        return {name: float(np.mean(numbers[name][everyone])) for name in CURVES if name in numbers}

    def training(self) -> list[int]:
        """Positions of the members that have not left; others may still take steps."""
        return [i for i, member in enumerate(self.state.members) if member not in self.stopped_at]

    def drop(self) -> None:
        """Go on without the members that have left, unless all have."""
        if 0 < len(staying := self.training()) < len(self.state.members):
            self.state.keep(staying)

    def _noted(self, numbers: dict[str, NDArray[np.float64]], everyone: list[int]) -> NDArray[np.bool_]:
        """Note ``numbers`` (each (M,)); who met the stop criterion or has a loss that is no longer finite, (M,)."""
        here, column = np.array(self.state.members), self.columns[self.state.step]
        for name, value in numbers.items():
            curves = self.values.setdefault(name, np.full((len(self.experiment.runs), len(self.columns)), np.nan))
            curves[here[everyone], column] = value[everyone]
        lost = ~np.isfinite(numbers["train_loss"])
        self.diverged.update({self.state.members[i]: self.state.step for i in everyone if lost[i]})
        if (stop := self.experiment.stop) is None:
            return lost
        self.streak[here] = np.where(_taken(numbers, stop.measure) >= stop.threshold, self.streak[here] + 1, 0)
        return lost | (self.streak[here] >= stop.evaluations)

    def _arrived(self, numbers: dict[str, NDArray[np.float64]], watch: Watch, everyone: list[int]) -> NDArray[np.bool_]:
        """Note who of ``everyone`` has reached which threshold by now; who has reached all, (M,)."""
        here, arrived = np.array(self.state.members), np.ones(len(self.state.members), bool)
        for name, threshold in watch.thresholds:
            table = self.reached.setdefault(name, np.full(len(self.experiment.runs), np.nan))
            now = here[everyone][_taken(numbers, name)[everyone] >= threshold]
            table[now[np.isnan(table[now])]] = self.state.step
            arrived &= np.isfinite(table[here])
        return arrived

    def _keep(self, snapshot: int, positions: list[int]) -> None:
        measured, number = self.state.measured(), self.experiment.snapshots.index(snapshot)
        for name in self.experiment.keep:
            values = kept(name, measured)
            for i in positions:  # copied: the host may share them
                self.kept.setdefault(name, {})[self.state.members[i], number] = np.array(values[i])

    def save(self, path: Path, seconds: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Write all that is needed to go on, whole or not at all; on a full disk again and again, until ``stop``."""
        from torch.utils._pytree import tree_map_only

        self.drop()
        state = self.state
        content: dict[str, Any] = {
            "hash": self.experiment.hash,
            **{name: getattr(state, name) for name in ("step", "members", "params")},
            "slots": state.optimizer.slots,
            **{name: getattr(self, name) for name in SAVED},
            "seconds": self.seconds + seconds,
        }
        content = tree_map_only(torch.Tensor, torch.Tensor.cpu, content)
        content = tree_map_only(np.ndarray, torch.from_numpy, content)
        buffer = io.BytesIO()
        torch.save(content, buffer)
        packed = hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()
        records.patiently(lambda: records.write_whole(path, packed), stop)

    @classmethod
    def load(cls, path: Path, experiment: Experiment, device: torch.device, dtype: torch.dtype) -> Training | None:
        """From the checkpoint of this very experiment; None if there is none."""
        from torch.utils._pytree import tree_map, tree_map_only

        if not path.exists():
            return None
        packed = path.read_bytes()
        if hashlib.sha256(packed[32:]).digest() != packed[:32]:  # PyTorch's own reader does not notice a flipped bit
            say(f"{path} is damaged; what it held is trained anew")
            return None
        found = torch.load(io.BytesIO(packed[32:]), weights_only=True)
        if found["hash"] != experiment.hash:
            return None
        training = cls.start(experiment, device, dtype, found["places"][-1]["products"])
        state = training.state
        state.keep(found["members"])
        state.step = found["step"]
        tree_map(torch.Tensor.copy_, [state.params, state.optimizer.slots], [found["params"], found["slots"]])
        found = tree_map_only(torch.Tensor, torch.Tensor.numpy, found)
        before, here = found["places"][-1], training.places[0]
        for name in (*SAVED, "seconds"):
            setattr(training, name, found[name])
        training.places.append(here)
        changes = [f"{before[key]} -> {here[key]}" for key in here if before[key] != here[key]]
        if changes:
            say(f"{experiment.name} goes on from step {state.step} elsewhere ({'; '.join(changes)}): not bit for bit")
        training.resumed.append(" ".join([str(state.step), *(f"({change})" for change in changes)]))
        return training


def _taken(numbers: dict[str, NDArray[np.float64]], name: str) -> NDArray[np.float64]:
    """A curve that is waited for, (M,); ``ValueError`` where nothing takes it."""
    if name not in numbers:
        raise ValueError(f"{name!r} is waited for and never taken; taken are {', '.join(numbers)}")
    return numbers[name]


def _place(device: torch.device, library: str) -> dict[str, str]:
    """What decides rounding: the same four, the same bits."""
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else records.processor()
    return {"device": device.type, "machine": machine, "torch": str(torch.__version__), "products": library}


def train(
    experiment: Experiment,
    *,
    device: str = "cpu",
    checkpoint: Path | None = None,
    report: Callable[[int, dict[str, float]], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> xr.Dataset:
    """Train the runs of one stack side by side and return what was measured.

    The record (see ``grokbook.train.records``) has dimensions ``run``, ``step`` and, where asked for, ``snapshot``. A
    member whose loss is no longer finite leaves, and the record says at which step; the others go on.

    Args:
        experiment: runs of equal shape (see ``Experiment.shards``).
        device: ``"cpu"`` or ``"cuda"``.
        checkpoint: a file to resume from and to write about every minute; whoever stores the record deletes it.
        report: called about once a second with the step and the latest mean losses and accuracies, and how many
            ``members`` are still in training.
        stop: asked between steps, and between blocks of an evaluation, where there is a checkpoint: once it is so, that
            is written and KeyboardInterrupt raised.
    """
    where = torch.device(device), torch.float64 if experiment.precision == "double" else torch.float32
    started, saved, reported = time.time(), time.monotonic(), 0.0
    found = Training.load(checkpoint, experiment, *where) if checkpoint else None
    training = found or Training.start(experiment, *where)
    training.state.stop = stop if checkpoint else training.state.stop

    numbers: dict[str, float] = {}
    library = training.places[-1]["products"]
    if experiment.precision == "fast" and library not in products.ROUNDING:
        say(f"{experiment.name}: nothing here rounds its products, so that they are in full float32 (and no faster)")
    with products.using(library), products.without_subnormals():
        while True:
            streak = training.streak.copy()
            try:
                numbers = training.evaluate() or numbers
            except KeyboardInterrupt:  # whoever goes on looks again
                training.evaluated, training.streak = -1, streak
                if checkpoint:
                    training.save(checkpoint, time.time() - started, stop)
                raise
            if len(training.stopped_at) == len(experiment.runs):
                break
            now = time.monotonic()
            if report and now - reported >= REPORT_SECONDS:
                report(training.state.step, {**numbers, "members": len(training.training())})
                reported = now
            if checkpoint and (now - saved >= CHECKPOINT_SECONDS or stop()):
                training.save(checkpoint, time.time() - started, stop)
                saved = now
                if stop():
                    raise KeyboardInterrupt(STOPPED)
            training.state.update()

    record = _record(training, training.seconds + time.time() - started, started)
    if experiment.summary:  # in place of the snapshots that it is of
        record = record.drop_vars(arrays_of(record)).assign(known(experiment.summary)(record))
    return record


def _record(training: Training, seconds: float, started: float) -> xr.Dataset:
    """The labelled outcome."""
    experiment, runs = training.experiment, range(len(training.experiment.runs))
    variables: dict[str, Any] = {name: (("run", "step"), table) for name, table in training.values.items()}
    variables["stopped_at"] = ("run", [training.stopped_at[i] for i in runs])
    variables |= {f"reached_{name}": ("run", times) for name, times in training.reached.items()}
    variables["diverged_at"] = ("run", [float(training.diverged.get(i, np.nan)) for i in runs])
    count = len(experiment.snapshots)
    for name, places in training.kept.items():
        shape = next(iter(places.values())).shape
        table = np.full((len(runs), count, *shape), np.nan, np.float32)
        for (member, number), value in places.items():
            table[member, number] = value
        numbered = [f"{name}_{axis}" for axis in range(len(shape))]
        axes = ["n", "m"] if "[" in name else optional(experiment.runs[0].model, "axes").get(name, numbered)
        variables[name] = (("run", "snapshot", *axes), table)
    if count:
        ends = np.array([training.stopped_at[i] for i in runs], float)[:, None]
        taken = np.where(np.array(experiment.snapshots) < 0, ends, experiment.snapshots)
        variables["snapshot_step"] = (("run", "snapshot"), np.where(taken <= ends, taken, np.nan))
    provenance = {
        **{key: ", ".join(dict.fromkeys(place[key] for place in training.places)) for key in training.places[0]},
        "wall_seconds": seconds,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "resumed_at": f"[{', '.join(training.resumed)}]",
    }
    return records.assemble(experiment, np.array([*training.columns]), variables, provenance)
