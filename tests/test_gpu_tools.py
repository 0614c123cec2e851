"""The scripts for a bare GPU machine, in miniature on the CPU: packed, run leg by leg, and brought back."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grokbook.train import queue

ROOT = Path(__file__).resolve().parent.parent
# What such a machine lacks: importing it is an error there.
LACKING = (
    *("papermill", "nbformat", "nbclient", "jupyter_book", "IPython", "ipykernel", "ipywidgets", "distributed"),
    *("matplotlib", "seaborn", "scipy", "PIL", "h5netcdf"),
)


def sh(*words, cwd, **environment):
    done = subprocess.run(
        ["sh", *map(str, words)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("packed from a checkout")
    folder = tmp_path_factory.mktemp("machine") / "packed"
    sh(ROOT / "tools" / "gpu_pack.sh", folder, "--no-wheels", cwd=ROOT, PYTHON=sys.executable)
    bare = folder.parent / "bare"
    bare.mkdir()
    for name in LACKING:
        (bare / f"{name}.py").write_text(f"raise ImportError('{name} is not on this machine')\n")
    return folder


def leg(packed, which, out, **environment):
    here = {"DEVICE": "cpu", "QUEUES": "2", "PYTHON": sys.executable, "OUT": str(out)}
    here["PYTHONPATH"] = str(packed.parent / "bare")
    sh("tools/gpu.sh", which, 5, cwd=packed, RESERVE="1", OMP_NUM_THREADS="1", **here | environment)
    files = sorted(path.name for path in out.iterdir())
    assert len(files) <= 8 and all(path.stat().st_size < 16 * 2**20 for path in out.iterdir())
    return files, (out / "log.txt").read_text()


def test_the_copy_is_small_and_says_of_what_commit_it_is(packed):
    assert sum(path.stat().st_size for path in packed.rglob("*") if path.is_file()) < 20 * 2**20
    assert (packed / "COMMIT").read_text().strip() and (packed / "results" / "gu" / "base.nc").exists()


def test_the_copys_queue_is_what_has_no_record_here(packed):
    left = [one["experiment"] for one in json.loads((packed / "results" / "queue.json").read_text())]
    todo = queue.Queue(queue.entries(), queue.PATH.parent, "cpu").waiting
    assert left and sorted(left) == sorted(one.experiment.name for one in todo)


def test_the_first_leg_tries_a_training_every_kind_of_stack_and_the_benchmark(packed, tmp_path):
    kinds = packed / "tests" / "stacks.py"
    kinds.write_text(
        kinds.read_text() + '\nSTACKS = {name: STACKS[name] for name in ("toy", "images", "quadratic MLP")}\n'
    )
    files, log = leg(packed, "A", tmp_path / "out", TESTS="", BENCHMARK="--members 1 --seconds 0.01 --only toy")
    assert {"log.txt", "environment.txt", "sweep.jsonl", "gpu.json", "gpu.md"} <= set(files)
    assert "FAILED" not in log and "NOT GOOD" not in log and "ended with 1" not in log, log
    assert "torch " in (tmp_path / "out" / "environment.txt").read_text()
    sweep = [json.loads(line) for line in (tmp_path / "out" / "sweep.jsonl").read_text().splitlines()]
    assert {row["kind"] for row in sweep} == {"toy", "images", "quadratic MLP"} and all(row["good"] for row in sweep)


def test_what_was_trained_comes_back_in_pieces_and_is_gone_on_with(packed, tmp_path):
    small = {"p": 5, "width": 8, "gd_steps": 20, "seeds": 1}
    entry = {"experiment": "gromov/learning_curves", "parameters": small, "why": "tried", "priority": 1}
    (packed / "results" / "queue.json").write_text(json.dumps([entry]))
    python = tmp_path / "python"  # without what only describes the machine, as the first leg did
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] || exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    files, log = leg(packed, "B", tmp_path / "one", VERIFY="", PYTHON=str(python))
    assert "back.tgz.aa" in files and "1 records finished, 0 failed, 0 left" in log, log
    sh("-c", f"cat {tmp_path}/one/back.tgz.* | tar xzf - -C {tmp_path}", cwd=tmp_path)
    assert (tmp_path / "results" / "gromov" / "learning_curves.nc").exists()
    shutil.rmtree(packed / "gpu_work")
    (packed / "back").mkdir()
    shutil.copy(tmp_path / "one" / "back.tgz.aa", packed / "back")
    _, log = leg(packed, "C", tmp_path / "two", PYTHON=str(python))
    assert "going on from back/" in log and "0 records finished, 0 failed, 0 left" in log
    assert (packed / "gpu_work" / "results" / "gromov" / "learning_curves.nc").exists()


@pytest.mark.parametrize("words", [(), ("D",), ("A", "soon")])
def test_wrong_words_are_refused_in_one_line(words):
    done = subprocess.run(["sh", str(ROOT / "tools" / "gpu.sh"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
