"""From an experiment to its record: looked up where it is stored, trained shard by shard where it is not.

A shard is a stack of members of one shape. It writes its own part into a folder and nothing else, so any executor may
run it: this process, worker processes, or a Dask cluster. What is done is what lies in the folder.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import math
import multiprocessing
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from grokbook import session
from grokbook.checks import integer, one_of
from grokbook.lazy import torch
from grokbook.settings import DEVICES
from grokbook.train import capture, engine, monitor, progress, records, say
from grokbook.train.contract import Model, optional
from grokbook.train.experiment import Experiment, Run
from grokbook.train.progress import cost_of, part_of
from grokbook.train.state import STOPPED
from grokbook.train.workers import STOP, Processes, ThisProcess, TrainingFailed, alone, cluster, cores, heeding, settle

FLOATS_IN_CACHE = 2**18  # activations a stack of members may hold while it still fits a core's cache
LARGEST_BLOCK = 12  # on a CPU; larger stacks gained nothing for the smallest nets, and leave a core idle at the end
SMALL = 10**6  # numbers of a weight that may be made only to be counted
COPIES_IN_STEP = 2.5  # of the activations of a batch, passed forward and backward
COPIES_OF_WEIGHTS = 6  # the weights, their gradient, two moments, and what is drawn and stacked at the start
USED_OF_GPU = 0.5  # of its free memory, by an estimate that may be too small
MISTAKES = ("ValueError", "TypeError", "AttributeError", "LookupError", "IndexError", "KeyError", "ZeroDivisionError",
            "TrainingFailed")  # which come again  # fmt: skip
TOO_LARGE = ("MemoryError", *capture.FULL)  # what an error says that a smaller stack may not
LEFT = "left.json"  # which runs no other record had when a training was begun
WORTH_A_PROCESS = 1e9  # cost, some ten seconds: what trains sooner than a process imports PyTorch is trained here


@dataclass(frozen=True)
class Status:
    """Where the record of an experiment stands: ``"present"``, ``"stale"``, ``"damaged"`` or ``"missing"``."""

    state: str
    path: Path | None = None
    why: str = ""
    scale: str = "full"
    cost: str = ""
    record: xr.Dataset | None = None  # where it is present and was read whole
    outgrown: bool = False  # a stale record of a stand-in where this is one of more steps

    @property
    def lost(self) -> str:
        """What a training into this place would lose, and how that differs; empty if nothing."""
        return f"{self.path} would be replaced ({self.why})" if self.state == "stale" and not self.outgrown else ""


def status(experiment: Experiment, *, whole: bool = True, out: Path | str | None = None) -> Status:
    """Look for the record of an experiment in ``out``, or where that is None as committed or else cached.

    With ``whole`` its numbers are read and checked; else its heading has to do, in a hundredth of the time.
    """
    if not isinstance(experiment, Experiment):
        raise TypeError(f"an Experiment is needed, as entry.make() gives, and not {type(experiment).__name__}")
    found = Status("missing", scale=experiment.scale, cost=f"{experiment.member_steps:,} steps")
    stored = records.stored_path(experiment, Path(out) if out else None)
    for path in (stored,) if out else (stored, records.cached_path(experiment)):
        try:
            record = records.find(experiment, path) if whole else None
            heading = records.belongs(experiment, path) if record is None else record.attrs
            cost = f"{heading['wall_seconds'] / 60:.1f} core min"
            damaged = found.why if found.state == "damaged" else ""  # though another is there
            return Status("present", path, damaged, scale=experiment.scale, cost=cost, record=record)
        except FileNotFoundError:
            continue
        except (LookupError, records.DamagedRecord) as error:
            state = "stale" if isinstance(error, LookupError) else "damaged"
            less = state == "stale" and experiment.scale == "reduced" and _steps(path) < experiment.member_steps
            found = replace(found, state=state, path=path, why=str(error), outgrown=less)
    return found


def _steps(path: Path) -> int:
    """The steps of all runs of a record."""
    return sum(run["steps"] for run in json.loads(records.heading(path)["recipe"])["runs"])


def obtain(experiment: Experiment, *, device: str | None = None) -> xr.Dataset:
    """The record of an experiment: stored, cached, or trained now; ``train(experiment, anew=True)`` trains it again.

    ``device`` is ``"auto"``, ``"cpu"`` or ``"cuda"``; None asks the session, in which all may be trained anew, too.
    """
    fresh = session.current().fresh
    if not fresh and (record := known(experiment)) is not None:
        return record
    began = time.monotonic()
    record = train(experiment, device=device, anew=fresh)
    _log(experiment, "trained", began)
    return record


def known(experiment: Experiment) -> xr.Dataset | None:
    """The record of an experiment where it is stored or cached, noted in the build's log; None if it is not."""
    began = time.monotonic()
    try:
        place = status(experiment)
    except OSError as error:  # a folder of that name, or no leave to read
        place = Status("damaged", why=f"{error.filename}: {error.strerror}")
    if place.state == "damaged":
        say(f"{place.why}; it counts as missing")
    if place.record is not None:
        _log(experiment, "cached" if place.path == records.cached_path(experiment) else "stored", began)
    return place.record


def _log(experiment: Experiment, source: str, began: float) -> None:
    if path := session.current().log:
        line = {"experiment": experiment.name, "hash": experiment.hash, "source": source, "scale": experiment.scale}
        with open(path, "a") as log:
            log.write(json.dumps({**line, "seconds": round(time.monotonic() - began, 1)}) + "\n")


def choose_device(device: str | None = None) -> str:
    """``"cpu"`` or ``"cuda"``, from the argument or else the session; ``"auto"`` takes a GPU where there is one.

    ``ValueError`` for an unknown device, or CUDA where there is none.
    """
    wanted = session.current().device if device in (None, "auto") else device
    one_of("device", wanted, DEVICES)
    if wanted != "cpu" and torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise ValueError("device = 'cuda': PyTorch finds no CUDA GPU on this machine; cpu and auto are allowed")
    return "cpu"


def block_size(experiment: Experiment, device: str, sharing: int = 1) -> int:
    """Members per stack: on a core, as many as keep their activations in its cache; on a GPU, all its memory holds.

    That is an estimate, for each of the processes ``sharing`` a GPU: stacks that are too large after all are halved.
    """
    if device == "cuda":
        free = USED_OF_GPU * torch.cuda.mem_get_info()[0] / sharing
        return max(1, int(free / max(map(bytes_of, experiment.runs))))
    of_step = max(run.samples * optional(run.model, "floats_per_sample") for run in experiment.runs)
    least = max(optional(run.model, "side_by_side") for run in experiment.runs)
    return int(np.clip(FLOATS_IN_CACHE // of_step, least, LARGEST_BLOCK))


def check_memory(experiment: Experiment, block: int, there: int) -> None:
    """Refuse with a ValueError, before anything is allocated, what is estimated not to fit into so many bytes."""
    whole = [one for one in experiment.keep if re.match(r"(output|activation|preactivation)\[", one)]
    for place in experiment.shards(block):
        run = experiment.runs[place[0]]
        rows = max(run.samples, len(run.task.table()[0]) if whole else 0)
        if (need := len(place) * max(bytes_of(run), rows * optional(run.model, "floats_per_sample") * 4)) > there:
            told = f"{len(place)} member{'s' * (len(place) > 1)} side by side: about {need / 2**30:.1f} GB are needed"
            asked = f"{whole[0]} of all {rows}" if rows > run.samples else f"a batch of {run.samples}"
            raise ValueError(
                f"{told} for {asked}, and there are {there / 2**30:.1f}; a smaller network or smaller inputs would fit"
            )


def bytes_of(run: Run) -> float:
    """Memory that a member takes in a step, about: within a factor of four either way."""
    activations = run.samples * optional(run.model, "floats_per_sample")
    return 4 * (COPIES_IN_STEP * activations + COPIES_OF_WEIGHTS * _weights(run.model))


@functools.cache
def _weights(model: Model) -> int:
    """Of one member, counted without making large ones; arithmetic without memory imports 800 modules, for a second."""

    class Small(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
            makes = function in (torch.randn, torch.rand, torch.empty, torch.zeros, torch.ones)
            if makes and math.prod(args[0] if isinstance(args[0], tuple | list) else args) > SMALL:
                options = {**(options or {}), "device": "meta"}
            return function(*args, **(options or {}))

    try:
        with Small():
            return sum(value.numel() for value in model.init(torch.Generator()).values())
    except Exception as error:
        if "overflow" in str(error):
            return 2**62  # more than PyTorch can count
        return sum(value.numel() for value in model.init(torch.Generator()).values())


def plan(experiment: Experiment, device: str | None, workers: int | None = None) -> tuple[str, int, int]:
    """Device, members per stack, and workers, for where this runs; ValueError if it lacks a device, memory or data."""
    device = choose_device(device)
    experiment.runs[0].task.table()  # which may be read from a folder
    if device == "cpu":
        block = block_size(experiment, device)
        check_memory(experiment, block, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        return device, block, cores()
    gpus = torch.cuda.device_count()
    block = block_size(experiment, device, -(-(workers or gpus) // gpus))
    return device, min(block, -(-len(experiment.runs) // gpus)), gpus


def train(
    experiment: Experiment,
    *,
    device: str | None = None,
    out: Path | str | None = None,
    workers: int | None = None,
    block: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    anew: bool = False,
) -> xr.Dataset:
    """Train what of an experiment is not trained yet, and save its record.

    Every shard writes its own part; one that is there already is not trained again, so the same command continues
    after a kill. Nor are runs that another record has (see ``records.held``).

    Args:
        device: see ``choose_device``; with a scheduler, what its workers find.
        out: a folder for the record, ``<out>/<chapter>/<experiment>.nc``, which all workers of a scheduler have to
            share; None is the local cache.
        workers: processes, one thread each; None is one per core or per GPU.
        block: members per stack; None asks ``plan``.
        executor: any ``concurrent.futures`` executor to run shards instead of local processes.
        scheduler: address of a Dask scheduler whose workers run the shards; None asks the session.
        anew: take nothing from other records.

    Raises:
        TrainingFailed: a shard did not finish, and is named, the others' parts being kept; no scheduler answers; or the
            record in ``out`` of something else would be replaced.
        ModuleNotFoundError: what records are written with is missing.
        OSError: the record cannot be written.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker, which imports its caller's script
        raise SystemExit(Processes.UNGUARDED)
    for name, given in (("workers", workers), ("block", block)):
        if given is not None:
            integer(name, given, 1)
    import h5py  # noqa: F401 (which records are written with: better missed before the training)

    out = Path(out) if out else None
    if out and not anew and (lost := status(experiment, whole=False, out=out).lost):
        raise TrainingFailed(f"{lost}; move it away, or name another folder")
    # Its own: a stand-in has stacks of the full experiment, and the first to finish would sweep them away.
    folder = (out / ".parts" if out else records.cache_folder()).resolve() / experiment.name / experiment.hash
    path = records.stored_path(experiment, out) if out else records.cached_path(experiment)
    lock = folder.with_suffix(".lock") if out else records.cache_folder() / "locks" / experiment.hash
    with alone(lock, f"trains {experiment.name}") as another_did:
        if another_did and _is_there(experiment, path):
            return records.load(path).assign_attrs(taken=len(experiment.runs))
        held, begun = {} if anew else records.held(experiment, out), folder / LEFT
        with contextlib.suppress(OSError, TypeError, ValueError):  # what a stopped one had left: its stacks are of it
            own = json.loads(begun.read_text())
            held = {i: one for i, one in held.items() if i not in own}
        if held:
            say(f"{experiment.name}: {len(held)} of its {len(experiment.runs)} runs are in other records")
        parts, places = list(held.values()), [[i] for i in held]
        if left := [i for i in range(len(experiment.runs)) if i not in held]:
            try:
                trained = _stacks(experiment, left, folder, device, workers, block, executor, scheduler)
            finally:
                if out and not folder.exists():  # refused: nothing is begun
                    _tidy(lock)
            parts += [records.find(one, part_of(one, folder)) for one in map(experiment.select, trained)]
            places += trained
        record = records.merge(experiment, parts, places).assign_attrs(block=max(map(len, places)), taken=len(held))
        if len(lost := record.diverged_at.dropna("run").values):
            say(f"{experiment.name}: {len(lost)} of {len(experiment.runs)} runs diverged, from step {lost.min():.0f}")
        records.patiently(lambda: records.save(record, path), STOP.is_set)
        shutil.rmtree(folder, ignore_errors=True)
        if out:
            _tidy(lock)
    return records.load(path)


def _tidy(lock: Path) -> None:
    """Leave nothing of a training beside the records; who waits for its lock finds the record."""
    lock.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty: another training is under way there
        for place in lock.parents[:3]:
            place.rmdir()


def _stacks(
    experiment: Experiment,
    left: list[int],
    folder: Path,
    device: str | None,
    workers: int | None,
    block: int | None,
    executor: Executor | None,
    scheduler: str | None,
) -> list[list[int]]:
    """Have the runs that are left trained as stacks, whoever does it; the stacks, as places (see ``train``)."""
    asked, scheduler, wanted = "", scheduler or session.current().scheduler, experiment.select(left)
    with contextlib.ExitStack() as stack:
        try:
            monitor.of_chapter(experiment.name)
            for name in (*experiment.measures, *filter(None, [experiment.summary])):
                monitor.known(name)
            if scheduler and executor is None:
                executor, asked = stack.enter_context(cluster(scheduler)), f"asked of a worker of {scheduler}, "
                # This machine may have no GPU, or be another kind of machine altogether.
                device, chosen, here = executor.submit(plan, wanted, device, workers).result()
            else:
                device, chosen, here = plan(wanted, device, workers)
        except ValueError as error:
            raise TrainingFailed(f"{experiment.name}: {asked}{error}") from None
        small = workers is None and device == "cpu" and cost_of(wanted) < WORTH_A_PROCESS
        alone_here = _of_no_file(wanted) if executor is None and device == "cpu" else ""
        if executor is None and device == "cpu":  # in the size in which they were begun; else so that no core is idle
            begun = min((int(path.suffix[1:]) for path in folder.glob("block.*")), default=LARGEST_BLOCK + 1)
            shared = -(-len(left) // (1 if small or alone_here else workers or here))
            chosen = begun if begun <= LARGEST_BLOCK else min(chosen, shared)
        places = list(wanted.shards(size := block or chosen))
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # on a full disk
            (folder / LEFT).write_text(json.dumps(left))
        _say_what_is_left(wanted, places, folder, size)
        if executor is None:
            if alone_here:
                say(f"{experiment.name}: {alone_here}, which workers cannot import; one core")
            count = 1 if small or alone_here else min(workers or here, len(places))
            # Chapters of one build are executed side by side.
            if (count > 1 or device == "cuda") and (turn := session.current().turn):
                stack.enter_context(alone(Path(turn), "trains with all cores, or on the GPU"))
            # oneDNN rounds, where products may be rounded, only in a process that has not kept it from that.
            # And a process of its own is what can be replaced when a GPU is lost to it.
            own = not alone_here and (count > 1 or experiment.precision == "fast" or device == "cuda")
            gpus = here if device == "cuda" else None
            executor = stack.enter_context(Processes(count, gpus) if own else ThisProcess())
        return _train(experiment, [[left[i] for i in place] for place in places], folder, device, executor)


def _train(
    experiment: Experiment, places: list[list[int]], folder: Path, device: str, executor: Executor
) -> list[list[int]]:
    """Train the stacks that have no part in the folder; all stacks, in halves those that memory did not hold."""
    places = sorted(places, key=lambda place: -cost_of(experiment.select(place)))  # the last to finish is a short one
    shards = [experiment.select(place) for place in places]
    with progress.shown(experiment, shards, folder), heeding():
        outcomes = run_shards(executor, shards, folder, device)
    failed = [(place, why) for place, why in zip(places, outcomes, strict=True) if why]
    if large := [place for place, why in failed if len(place) > 1 and any(one in why for one in TOO_LARGE)]:
        halves = [half.tolist() for place in large for half in np.array_split(place, 2)]
        places = [*(place for place in places if place not in large), *halves]
        say(f"{experiment.name} took too much memory; its stacks are halved to {max(map(len, places))}")
        return _train(experiment, places, folder, device, executor)
    if failed:
        alike = {why: sorted(i for place, other in failed if other == why for i in place) for _, why in failed}
        lines = [f"run{'s' * (len(place) > 1)} {', '.join(map(str, place))}: {why}" for why, place in alike.items()]
        told = "\n  ".join([*lines[:10], *([f"and {len(lines) - 10} more"] if len(lines) > 10 else [])])
        kept = ["the others are kept"] * (len(failed) < len(shards))
        again = ["the same command tries again"] * (not all(why.startswith(MISTAKES) for why in alike))
        total = f"{sum(map(len, alike.values()))} of {sum(map(len, places))} runs did not finish"
        raise TrainingFailed(f"{experiment.name}: {'; '.join([total, *kept, *again])}\n  {told}")
    return places


def _say_what_is_left(experiment: Experiment, places: Iterable[list[int]], folder: Path, size: int) -> None:
    """A stack is known by all its members: what was begun in stacks of another size is gone on with in that size."""
    own = {part_of(experiment.select(place), folder).stem for place in places}
    others = {path.stem for kind in ("nc", "checkpoint") for path in folder.glob(f"part-*.{kind}")} - own
    before = {path.suffix[1:] for path in folder.glob("block.*")} - {str(size)}  # sizes that were tried
    if others:
        say(
            f"{experiment.name}: {folder} holds stacks of another size, as another device takes; "
            f"--block {' or '.join(sorted(before, key=int)) or 'N'} goes on with them, this training begins anew"
        )
    with contextlib.suppress(OSError):  # on a full disk
        (folder / f"block.{size}").touch()


def run_shards(executor: Executor, shards: Sequence[Experiment], folder: Path, device: str) -> list[str]:
    """Have an executor train shards; for each why its part is not in the folder in the end, empty where it is."""
    todo = [shard for shard in shards if not _is_there(shard, part_of(shard, folder))]
    futures = {
        shard.hash: executor.submit(train_shard, shard, str(part_of(shard, folder)), device, modules_of(shard))
        for shard in todo
    }
    client = getattr(executor, "_client", None)  # Dask's, which may leave undone what it asks its scheduler for
    try:
        while wait(futures.values(), timeout=1.0).not_done and not (client and client.status == "closed"):
            if STOP.is_set():
                raise KeyboardInterrupt(STOPPED)
    except BaseException:
        if isinstance(executor, Processes):
            executor.terminate()
        raise
    return [_why_not(shard, folder, futures[shard.hash]) if shard in todo else "" for shard in shards]


def _why_not(shard: Experiment, folder: Path, future: Future[None]) -> str:
    part = part_of(shard, folder)
    # A worker may have finished a shard whose future was lost with the scheduler, and the other way round.
    if _is_there(shard, part, whole=False):  # its numbers are read next
        return ""
    try:
        future.result(timeout=0)
        why = f"it ended, but {folder} holds no record of it: do its workers share that folder?"
    except (CancelledError, TimeoutError):
        why = "the scheduler was lost"
    except KeyboardInterrupt as error:  # its worker was told to end as well: whose traceback says no more
        raise error.with_traceback(None) from None
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
    report = part.with_suffix(".error")
    return why + (f"\n    traceback: {report}" if report.exists() else "")


def _of_no_file(experiment: Experiment) -> str:
    """What is on standard input, or written in a notebook or at a prompt, where there is no file to import."""
    if file := getattr(sys.modules["__main__"], "__file__", ""):
        return "" if os.path.exists(file) else "the script is on standard input"
    parts = (part for run in experiment.runs for part in (run.task, run.model, run.optimizer))
    mine = "__main__" in {*modules_of(experiment), *(type(part).__module__ for part in parts)}
    return "part of it is written in a notebook" if mine else ""


def modules_of(experiment: Experiment) -> tuple[str, ...]:
    """The modules that its measures come from, which a worker imports."""
    return tuple({monitor.WHERE[name]: 0 for name in experiment.asked if name in monitor.WHERE})


def train_shard(shard: Experiment, path: str, device: str, modules: Sequence[str] = ()) -> None:
    """Train one stack of members and save its part at ``path``: what workers run, here or elsewhere."""
    for module in modules:
        importlib.import_module(module)
    part = Path(path)
    checkpoint, heartbeat, report = (part.with_suffix(f".{kind}") for kind in ("checkpoint", "progress", "error"))
    if shard.hash not in part.name:  # the recipe means something else here
        raise ValueError("this worker has another version of grokbook than whoever asked")
    if _is_there(shard, part):
        return
    records.commit()  # of the code that trains, not of a later one
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
        record = engine.train(shard, device=device, checkpoint=checkpoint, report=beat, stop=STOP.is_set)
        records.patiently(lambda: records.save(records.bare(record), part), STOP.is_set)
    except Exception as error:
        with contextlib.suppress(OSError):
            report.write_text(traceback.format_exc())
        # Bare of its traceback, which would hold the tensors of the stack: one shortage of memory would make the next.
        error.__cause__ = error.__context__ = None
        raise error.with_traceback(None) from None
    finally:
        torch.set_num_threads(threads)
    for leftover in (checkpoint, heartbeat, report):
        leftover.unlink(missing_ok=True)


def _is_there(experiment: Experiment, path: Path, *, whole: bool = True) -> bool:
    with contextlib.suppress(FileNotFoundError, LookupError, records.DamagedRecord):
        (records.find if whole else records.belongs)(experiment, path)
        return True
    return False
