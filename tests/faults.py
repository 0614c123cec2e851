"""Attack trainings, records and a cluster until the time is over, and count the numbers that came out wrong.

`python -m tests.faults --seconds 600 --seed 1` tries all; `--only records kill` these. It prints, for each kind, how
many attacks were tried, how many numbers changed, and what else went wrong; its status is 0 if nothing did.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NoReturn

import h5py
import numpy as np
import torch
import xarray as xr

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import AdamW
from grokbook.tasks import ModularTask
from grokbook.train import engine, records, runner, workers
from grokbook.train.experiment import Experiment, Run, Schedule, Stop

MODEL = TwoLayerMLP(13, 32, "standard", "relu")
ITS_OWN = ("wall_seconds", "started_at", "resumed_at", "checksum")  # attributes in which two trainings may differ
TOLD = (records.DamagedRecord, LookupError, FileNotFoundError)  # what a record that was tampered with may raise
LEAST_STEPS = 500  # at which some members have left
CLUSTER_SECONDS = 60.0  # below, a cluster does not even start


@dataclass
class Count:
    """What came of the attacks of one kind."""

    tried: int = 0
    changed: int = 0
    wrong: list[str] = field(default_factory=list)


def experiment(steps: int) -> Experiment:
    """Eight members in two shards, half of which learn fast and leave; with minibatches and snapshots."""
    runs = [
        Run(ModularTask(13, "n + m", 0.5), MODEL, AdamW(lr, 0.5), steps, seed, "cross_entropy", batch)
        for batch in (None, 40)
        for lr in (0.003, 1e-5)
        for seed in range(2)
    ]
    stop = Stop("train_accuracy", 0.999, 2)
    keep = {"snapshots": (0, 100, -1), "keep": ("W_in", "output[3]")}
    return Experiment("test/faults", tuple(runs), Schedule(30, 100), ("weight_norm",), stop, **keep)


def train(folder: Path, whole: Experiment) -> xr.Dataset:
    return runner.train(whole, device="cpu", workers=1, out=folder)


def changed(plain: xr.Dataset, other: xr.Dataset) -> int:
    """How many numbers of two records differ, an attribute being one, and a variable that one lacks."""
    count = len(set(map(str, plain.variables)) ^ set(map(str, other.variables)))
    for name in set(plain.variables) & set(other.variables):
        ours, theirs = plain[name].values, other[name].values
        same = ours.shape == theirs.shape and ((ours == theirs) | ((ours != ours) & (theirs != theirs)))
        count += int(np.size(same) - np.sum(same))
    keys = {*plain.attrs, *other.attrs} - set(ITS_OWN)
    return count + sum(str(plain.attrs.get(key)) != str(other.attrs.get(key)) for key in keys)


# ------------------------------------------------------------------------------------------------- trainings


def life(folder: Path, whole: Experiment, seconds: float, before: Callable[[], object] = lambda: None) -> int:
    """A process that trains; its id. It ends with 0 when the record is there, 3 when it was told to stop."""
    child = os.fork()
    if child == 0:
        engine.CHECKPOINT_SECONDS = seconds
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 1
        try:
            with workers.until(None):
                before()
                train(folder, whole)
                status = 0
        except (KeyboardInterrupt, workers.TrainingFailed, OSError):
            status = 3
        finally:
            os._exit(status)
    return child


def until_it_ends(folder: Path, whole: Experiment, plain: xr.Dataset, count: Count, attack: Callable[[], int]) -> None:
    """Let one process after the other be attacked, the last one not; the record has to be that of one left alone."""
    status = attack()
    count.tried += 1
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) not in (0, 3):
        count.wrong.append(f"a training ended with status {status}")
    if status == 0:
        count.changed += changed(plain, records.load(records.stored_path(whole, folder)))
        shutil.rmtree(folder)


def killing(*signals: signal.Signals) -> Callable[..., None]:
    """Trainings that are sent one of some signals after a random time each."""

    def attack(draw: Random, place: Path, end: float, plain: xr.Dataset, whole: Experiment, count: Count) -> None:
        took = float(plain.attrs["wall_seconds"])

        def once() -> int:
            child = life(place, whole, took / 20)
            time.sleep(draw.expovariate(3 / took))
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, draw.choice(signals))
            return os.waitpid(child, 0)[1]

        while time.monotonic() < end:
            until_it_ends(place, whole, plain, count, once)
        until_it_ends(place, whole, plain, count, lambda: os.waitpid(life(place, whole, 1.0), 0)[1])

    return attack


def disk(draw: Random, place: Path, end: float, plain: xr.Dataset, whole: Experiment, count: Count) -> None:
    """Trainings on a disk that is full now and then, or breaks."""

    def unreliable() -> None:
        records.FULL_DISK_SECONDS = 0.01
        for name in ("fsync", "replace"):
            setattr(records.os, name, failing(getattr(os, name)))

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def fails(*arguments: object) -> object:
            if chance.random() < 0.2:
                raise OSError(
                    number := chance.choice([errno.ENOSPC, errno.ENOSPC, errno.EIO]), os.strerror(number), "x"
                )
            return real(*arguments)

        return fails

    while time.monotonic() < end:
        chance = Random(draw.random())
        child = life(place, whole, float(plain.attrs["wall_seconds"]) / 20, unreliable)
        until_it_ends(place, whole, plain, count, lambda child=child: os.waitpid(child, 0)[1])
    until_it_ends(place, whole, plain, count, lambda: os.waitpid(life(place, whole, 1.0), 0)[1])


# --------------------------------------------------------------------------------------------------- records


def flip(draw: Random, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 10, 1000])):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def cut(draw: Random, path: Path) -> None:
    content = path.read_bytes()
    begin, end = sorted(draw.randrange(len(content)) for _ in range(2))
    path.write_bytes(draw.choice([content[:begin], content[:begin] + content[end:], content + content[begin:end]]))


def edit_attribute(draw: Random, path: Path) -> None:
    with h5py.File(path, "a") as file:
        owner = draw.choice([file, file, file, *(file[name] for name in file)])
        names = [name for name in owner.attrs if name[0].islower()] or ["units"]
        name = draw.choice([*names, "new"])
        if name in owner.attrs and draw.random() < 0.3:
            del owner.attrs[name]
        else:
            owner.attrs[name] = draw.choice(["x", "", 0, 1.0, math.nan, "2", str(owner.attrs.get(name)) + " "])


def edit_number(draw: Random, path: Path) -> None:
    with h5py.File(path, "a") as file:
        names = [name for name in file if isinstance(file[name], h5py.Dataset) and file[name].size]
        name = draw.choice([name for name in names if file[name].dtype.kind in "fi"])
        values = file[name][...]
        values.ravel()[draw.randrange(values.size)] = draw.choice([0, 1, -1, 12345])
        file[name][...] = values


def swap(draw: Random, path: Path) -> None:
    """Another experiment's record, dressed up as this one's."""
    record, whole = records.load(path), experiment(7)
    keep = draw.sample(range(record.sizes["run"]), draw.randrange(1, record.sizes["run"]))
    altered = record.isel(run=keep) if draw.random() < 0.5 else record.assign_coords(lr=record.lr * 2)
    records.save(altered if draw.random() < 0.8 else altered.assign_attrs(hash=whole.hash), path)


def fuzz(draw: Random, place: Path, end: float, plain: xr.Dataset, whole: Experiment, count: Count) -> None:
    """A record that was tampered with is refused, or was not changed by it."""
    place.mkdir(parents=True)
    records.save(plain, place / "whole.nc")
    path, plain = place / "record.nc", records.load(place / "whole.nc")
    while time.monotonic() < end or count.tried < 20:  # on a busy machine too
        count.tried += 1
        how = draw.choice([flip, flip, cut, edit_attribute, edit_number, swap])
        shutil.copy(place / "whole.nc", path)
        how(draw, path)
        child = os.fork()  # the HDF5 library may crash, or never end
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.alarm(20)
            reading(whole, path, plain)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 2:
            count.changed += 1
        elif status:
            count.wrong.append(f"{how.__name__}, attack {count.tried}: its reader ended with status {status}")


def reading(whole: Experiment, path: Path, plain: xr.Dataset) -> NoReturn:
    """End with 0 where a record is refused or is what it was, 2 where another is believed, 1 for another error."""
    status = 1
    try:
        found = records.find(whole, path)
        same = changed(plain, found) == 0 and all(found.attrs[key] == plain.attrs[key] for key in ITS_OWN)
        status = 0 if same else 2
    except TOLD:
        status = 0
    finally:
        os._exit(status)


# --------------------------------------------------------------------------------------------------- cluster


def cluster(draw: Random, place: Path, end: float, plain: xr.Dataset, whole: Experiment, count: Count) -> None:
    """A scheduler, its workers and whoever asked are killed, one after the other."""
    from tests import test_cluster

    place.mkdir(parents=True)
    asked = test_cluster.long(3000)
    alone = runner.train(asked, device="cpu", workers=1, block=1, out=place / "alone")
    end = max(end, time.monotonic() + CLUSTER_SECONDS)
    cache = {"GROKBOOK_CACHE": str(place / "cache"), "GROKBOOK_DEVICE": "cpu"}
    done = place / "cache" / asked.name / f"{asked.hash}.nc"
    while time.monotonic() < end:
        made = test_cluster.Cluster(place)
        try:
            made.scheduler()
            for _ in range(2):
                made.worker()
            caller = test_cluster.command(made.address, "long(3000)", **cache)
            time.sleep(draw.uniform(0, 8))
            count.tried += 1
            draw.choice([caller, *made.started]).kill()
            time.sleep(1)
        finally:
            made.stop()
            caller.kill()
            caller.wait()
        if done.exists():
            count.changed += changed(alone, records.load(done))
            done.unlink()


# ------------------------------------------------------------------------------------------------------- all

ATTACKS = {
    "kill": killing(signal.SIGKILL),
    "signals": killing(signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGKILL),
    "disk": disk,
    "records": fuzz,
    "cluster": cluster,
}


def main(arguments: list[str]) -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seconds", type=float, default=600.0)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--only", nargs="+", choices=ATTACKS, default=[])
    chosen = asked.parse_args(arguments)
    names = chosen.only or [name for name in ATTACKS if name != "cluster" or chosen.seconds > 5 * CLUSTER_SECONDS]
    share, counts = 0.75 * chosen.seconds / len(names), {name: Count() for name in names}
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    try:
        # How many steps this machine makes in that time, so that the attacks are as many on a faster one.
        train(folder / "first", experiment(100))
        began, whole = time.monotonic(), experiment(LEAST_STEPS)
        plain = train(folder / "trial", whole)
        if (steps := round(LEAST_STEPS * share / 8 / (time.monotonic() - began))) > LEAST_STEPS:
            whole = experiment(steps)
            plain = train(folder / "plain", whole)
        assert 0 < int((plain.stopped_at < whole.runs[0].steps).sum()) < 8, "members have to leave, and others to stay"
        for number, (name, count) in enumerate(counts.items()):
            draw = Random(f"{chosen.seed} {name}")
            ATTACKS[name](draw, folder / str(number), time.monotonic() + share, plain, whole, count)
            print(f"{name}: {count.tried} attacks tried, {count.changed} numbers changed", flush=True)
            for line in count.wrong:
                print(f"  {line}", flush=True)
    finally:
        shutil.rmtree(folder)
    tried, wrong = (sum(getattr(one, what) for one in counts.values()) for what in ("tried", "changed"))
    print(f"seed {chosen.seed}: {tried} attacks tried, {wrong} numbers changed")
    return int(wrong > 0 or any(one.wrong for one in counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
