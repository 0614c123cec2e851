"""Kill a training at random moments until it ends, and compare with one that was left alone.

`python -m tests.faults 60 20` does so to a training of a minute, twenty times.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import AdamW
from grokbook.tasks import ModularTask
from grokbook.train import engine, records, runner
from grokbook.train.experiment import Experiment, Run, Schedule, Stop

MODEL = TwoLayerMLP(13, 32, "standard", "relu")


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


def under_fire(folder: Path, whole: Experiment, kills: int, seconds: float, seed: int) -> None:
    """Train in one process after the other; so many are killed, each after a random time, ``seconds`` on average."""
    draw = random.Random(seed)
    for number in range(kills + 1):
        child = os.fork()
        if child == 0:
            engine.CHECKPOINT_SECONDS = engine.LATEST_CHECKPOINT_SECONDS = seconds / 10
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            train(folder, whole)
            os._exit(0)
        if number < kills:
            time.sleep(draw.expovariate(1 / seconds))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert (number < kills) == os.WIFSIGNALED(status), f"life {number} of the training ended with status {status}"


def main(seconds: float, kills: int) -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    try:
        # How many steps this machine makes in that time, so that the test is as long on a faster one.
        train(folder / "first", experiment(100))
        began = time.monotonic()
        trial = max(1000, round(200 * seconds))
        train(folder / "trial", experiment(trial))
        steps = max(1000, round(trial * seconds / (time.monotonic() - began)))
        # A machine that is less busy later must still be training when the last kill comes.
        under_fire(folder / "killed", experiment(steps), kills, 0.4 * seconds / kills, seed=steps)
        began = time.monotonic()
        plain = train(folder / "plain", experiment(steps))
        took = time.monotonic() - began
        killed = records.load(next((folder / "killed").rglob("*.nc")))
        assert killed.attrs["resumed_at"] != "[]" and plain.attrs["resumed_at"] == "[]"
        early = int((plain.stopped_at < steps).sum())
        assert 0 < early < len(plain.run), "the test needs members that leave and members that stay"
        assert set(plain.data_vars) == set(killed.data_vars)
        for name in plain.variables:
            np.testing.assert_array_equal(killed[name], plain[name], err_msg=str(name))
        print(f"{steps} steps, {took:.1f} s undisturbed, killed {kills} times: the same record, bit for bit")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
