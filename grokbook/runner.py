"""From an experiment to its record: looked up where it is stored, trained shard by shard where it is not."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from grokbook import records
from grokbook.experiment import Experiment
from grokbook.measures import first_step

FLOATS_IN_CACHE = 2**18  # activations a stack of members may hold while it still fits a core's cache
LARGEST_BLOCK = 16  # on a CPU, stacks beyond this gained nothing for the smallest nets


class TrainingFailed(Exception):
    """Some shards of an experiment did not finish; what did is kept."""


@dataclass(frozen=True)
class Status:
    """Where the record of an experiment stands: ``"present"``, ``"stale"``, ``"damaged"`` or ``"missing"``."""

    state: str
    path: Path | None = None
    why: str = ""
    scale: str = "full"
    cost: str = ""


def status(experiment: Experiment) -> Status:
    """Look for the record of an experiment without training anything."""
    budget, scale = f"{experiment.member_steps:,} steps", experiment.scale
    found = Status("missing", scale=scale, cost=budget)
    for path in (records.stored_path(experiment), records.cached_path(experiment)):
        try:
            record = records.find(experiment, path)
            return Status("present", path, scale=scale, cost=f"{record.attrs['wall_seconds'] / 60:.1f} core min")
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
    if not fresh():
        for candidate in candidates:
            place = status(candidate)
            if place.state == "present" and place.path is not None:
                source = "cached" if place.path == records.cached_path(candidate) else "stored"
                _log(candidate, source, began)
                return records.find(candidate, place.path)
            if place.state == "damaged":
                print(f"grokbook: {place.why}; training it again, the file is left as it is", file=sys.stderr)
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


def block_size(experiment: Experiment, device: str) -> int | None:
    """Members per stack: all of them on a GPU; on a core, as many as keep their activations in its cache."""
    if device == "cuda":
        return None
    largest = max(
        (run.batch_size or run.task.train_size) * getattr(run.model, "floats_per_sample", 1024)
        for run in experiment.runs
    )
    return int(np.clip(FLOATS_IN_CACHE // largest, 1, LARGEST_BLOCK))


def train(
    experiment: Experiment,
    *,
    device: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    block: int | None = None,
    executor: Executor | None = None,
) -> xr.Dataset:
    """Train what of an experiment is not trained yet, and save its record.

    Every shard (a stack of members of one shape) writes its own part; a part that is there already is not trained
    again, so the same command continues after a kill.

    Args:
        experiment: what to train.
        device: see ``choose_device``.
        out: a folder for the record, ``<out>/<chapter>/<experiment>.nc``; None is the local cache.
        workers: processes, one thread each; None is one per core, or one on a GPU.
        block: members per stack; None asks ``block_size``.
        executor: any ``concurrent.futures`` executor to run shards instead of local processes.

    Raises:
        TrainingFailed: a shard did not finish; the message names it, and the others' parts are kept.
        OSError: the record cannot be written.
    """
    device = choose_device(device)
    places = list(experiment.shards(block or block_size(experiment, device)))
    shards = [experiment.select(place) for place in places]
    # Long shards first, so that the last one to finish is a short one.
    shards.sort(key=lambda shard: -_cost(shard))
    places = [[experiment.runs.index(run) for run in shard.runs] for shard in shards]
    folder = (out / ".parts" if out else records.cache_folder()) / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    todo = [shard for shard in shards if not _is_done(shard, folder)]
    progress = Progress(experiment, shards, folder)
    failures: list[str] = []
    if workers is None:
        workers = 1 if device == "cuda" else len(os.sched_getaffinity(0))
    jobs = [(shard, str(folder), device) for shard in todo]
    if executor is None and (workers == 1 or len(jobs) == 1):
        for job in jobs:
            train_shard(*job, tick=progress.show)
    elif jobs:
        context = multiprocessing.get_context("spawn")
        with executor or ProcessPoolExecutor(
            min(workers, len(jobs)), mp_context=context, initializer=_begin_worker
        ) as pool:
            futures = {pool.submit(train_shard, *job): job[0] for job in jobs}
            try:
                for future in progress.watch(futures):
                    if error := future.exception():
                        why = "its process died" if isinstance(error, BrokenProcessPool) else f"{error}"
                        failures.append(f"{futures[future].hash}: {why}")
            except BaseException:
                for process in list((getattr(pool, "_processes", None) or {}).values()):
                    process.terminate()
                raise
    progress.close()
    if failures:
        shown = "; ".join(dict.fromkeys(failures[:3]))
        raise TrainingFailed(f"{experiment.name}: {len(failures)} of {len(shards)} shards did not finish ({shown})")

    parts = [records.find(shard, _part(shard, folder)) for shard in shards]
    record = records.merge(experiment, parts, places)
    path = (
        out / records.stored_path(experiment).relative_to(records.ROOT / "results")
        if out
        else records.cached_path(experiment)
    )
    records.patiently(lambda: records.save(record, path))
    for shard in shards:
        for leftover in folder.glob(f"part-{shard.hash}*"):
            leftover.unlink()
    if out:
        shutil.rmtree(out / ".parts", ignore_errors=True)
    return records.load(path)


def train_shard(shard: Experiment, folder: str, device: str, tick: Any = None) -> str:
    """Train one stack of members and save its part in ``folder``; its path. What a worker, here or elsewhere, runs."""
    from grokbook import engine

    _single_thread()
    path = _part(shard, Path(folder))
    checkpoint, heartbeat = path.with_suffix(".checkpoint"), path.with_suffix(".progress")

    def report(step: int, numbers: dict[str, float]) -> None:
        with contextlib.suppress(OSError):  # a line of progress is worth less than the training
            heartbeat.write_text(json.dumps({"step": step, **numbers}))
        if tick:
            tick()

    record = engine.train(shard, device=device, checkpoint=checkpoint, report=report)
    records.patiently(lambda: records.save(record, path))
    for leftover in (checkpoint, engine.previous(checkpoint), heartbeat):
        leftover.unlink(missing_ok=True)
    return str(path)


@dataclass(frozen=True)
class Comparison:
    """One retrained run against the stored one: the largest difference in any curve, and when each grokked."""

    run: int
    label: str
    seed: int
    difference: float
    curve: str
    stored_step: float
    retrained_step: float

    @property
    def identical(self) -> bool:
        """Whether every stored number came out again, to the last bit that is stored."""
        return self.difference == 0


def verify(
    experiment: Experiment, *, sample: int | None = None, device: str | None = None, workers: int | None = None
) -> list[Comparison]:
    """Train runs of a stored record again and compare curve by curve.

    On the same machine and library versions the numbers agree to the last bit; elsewhere rounding differs and grows,
    and what must agree is when runs grok, within the range of the seeds.

    Args:
        experiment: whose record is to be checked.
        sample: how many runs, spread over the record; None is all.
        device: see ``choose_device``.
        workers: see ``train``.

    Raises:
        FileNotFoundError: there is no record.
        LookupError: the stored record is of another recipe.
        DamagedRecord: the file cannot be trusted.
    """
    place = status(experiment)
    if place.path is None:
        raise FileNotFoundError(
            f"{experiment.name}: there is no record to verify; grokbook train {experiment.name} makes one"
        )
    stored = records.find(experiment, place.path)
    count = len(experiment.runs)
    chosen = (
        range(count) if sample is None else np.unique(np.linspace(0, count - 1, sample).round().astype(int)).tolist()
    )
    with tempfile.TemporaryDirectory() as folder:
        again = train(experiment.select(chosen), device=device, workers=workers, out=Path(folder))
    comparisons = []
    for row, i in enumerate(chosen):
        ours, theirs = again.isel(run=row).reindex(step=stored.step), stored.isel(run=i)
        worst, curve = 0.0, ""
        for name, values in ours.data_vars.items():
            if "step" not in values.dims:
                continue
            gap = np.abs(values.values.astype(np.float32) - theirs[name].values)
            apart = (
                float(np.inf) if (np.isnan(values.values) != np.isnan(theirs[name].values)).any() else np.nanmax(gap)
            )
            if apart > worst:
                worst, curve = float(apart), str(name)
        steps = [float(first_step(one.test_accuracy, one.step, 0.99)) for one in (theirs, ours)]
        label, seed = str(theirs.label.item()), int(theirs.seed)
        comparisons.append(Comparison(i, label, seed, worst, curve, *steps))
    return comparisons


def _begin_worker() -> None:
    """Train in one thread, and end when whoever asked is gone: the same command then continues from the checkpoint."""
    _single_thread()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _single_thread() -> None:
    """Workers share the cores by number, never by threads: two threads on a busy machine are slower than one."""
    from grokbook.lazy import torch

    torch.set_num_threads(1)


def _part(shard: Experiment, folder: Path) -> Path:
    return folder / f"part-{shard.hash}.nc"


def _is_done(shard: Experiment, folder: Path) -> bool:
    try:
        records.find(shard, _part(shard, folder))
    except (FileNotFoundError, LookupError, records.DamagedRecord):
        return False
    return True


def _cost(shard: Experiment) -> float:
    return float(
        sum(run.steps * run.task.train_size * getattr(run.model, "floats_per_sample", 1) for run in shard.runs)
    )


class Progress:
    """One line in a terminal: share done, rate, time left, live accuracies. Silent elsewhere."""

    def __init__(self, experiment: Experiment, shards: Sequence[Experiment], folder: Path) -> None:
        from tqdm import tqdm

        self.shards, self.folder = shards, folder
        self.bar = tqdm(
            total=experiment.member_steps,
            desc=experiment.name,
            unit=" steps",
            unit_scale=True,
            disable=None,
            leave=False,
        )
        self.show()
        self.bar.reset(total=experiment.member_steps - self.bar.n)

    def show(self) -> None:
        """Redraw from what the shards' heartbeats say."""
        if self.bar.disable:
            return
        done, live = 0, {}
        for shard in self.shards:
            if _part(shard, self.folder).exists():
                done += shard.member_steps
                continue
            try:
                live = json.loads(_part(shard, self.folder).with_suffix(".progress").read_text())
                done += live["step"] * len(shard.runs)
            except (OSError, ValueError):
                continue
        self.bar.n = done
        if "test_accuracy" in live:
            self.bar.set_postfix_str(
                f"train {live['train_accuracy']:.2f} test {live['test_accuracy']:.2f}", refresh=False
            )
        self.bar.refresh()

    def watch(self, futures: dict[Any, Experiment]) -> Any:
        """Futures as they finish, with the line kept fresh meanwhile."""
        left = set(futures)
        while left:
            try:
                for future in as_completed(left, timeout=1):
                    left.discard(future)
                    yield future
                    break
            except TimeoutError:
                pass
            self.show()

    def close(self) -> None:
        """Clear the line."""
        self.bar.close()
