"""A GPU's side of the benchmarks: rates, captures, evaluation and memory; and whether all kinds of stack are right.

`python -m benchmarks gpu` prints and keeps the table, `python -m benchmarks.gpu KIND` checks one kind of stack in a
process of its own (without KIND: their names). `--device cpu` tries either without a GPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.workloads import WORKLOADS
from grokbook.train import planning, products
from grokbook.train.experiment import Run
from grokbook.train.state import State
from tests import emulated
from tests.stacks import STACKS, runs_of

MEMBERS = (1, 16, 128)
HEAD = (
    "workload", "precision", "members", "member steps / s", "share of peak", "capture s", "kernels a step",
    "evaluation ms", "peak GB",
)  # fmt: skip


def table(
    device: str, members: Sequence[int] = MEMBERS, seconds: float = 2.0, only: str = ""
) -> Iterator[dict[str, Any]]:
    """A row for each workload, precision and number of members; what does not fit or fails says so."""
    fastest = "TF32" if device == "cuda" else "bfloat16"
    for workload in (one for one in WORKLOADS if only in one.name):
        for library in (products.DEFAULT, fastest):
            with products.using(library):
                peak = _peak(device)
                for count in members:
                    row = {"workload": workload.name, "precision": library, "members": count}
                    try:
                        yield row | _measured(workload.run, count, device, peak, seconds)
                    except RuntimeError as error:  # too little memory, most of all
                        yield row | {"failed": str(error).splitlines()[0]}


def _measured(run: Run, count: int, device: str, peak: float, seconds: float) -> dict[str, Any]:
    cuda = device == "cuda"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    state = State.start(
        [dataclasses.replace(run, seed=seed) for seed in range(count)], torch.device(device), torch.float32
    )
    capture = _seconds(state.update, 1, device)
    step = _steady(state.update, seconds, device)
    return {
        "member_steps_per_second": count / step,
        "share_of_peak": count * planning.flops(run) / step / peak,
        "capture_seconds": capture - step,
        "kernels": kernels(run),
        "evaluation_ms": 1e3 * _seconds(lambda: state.measure(()), 3, device),
        "peak_gb": torch.cuda.max_memory_allocated() / 2**30 if cuda else None,
    }


def kernels(run: Run) -> int:
    """Kernels of a step, counted without a GPU."""
    state = State.start([run], torch.device("meta"), torch.float32)
    state.count = torch.ones((), dtype=torch.float64, device="meta")
    state._advance()
    with emulated.Log() as log:
        state._advance()
    return len(log.kernels)


def _peak(device: str) -> float:
    side = 8192 if device == "cuda" else 512
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    torch.mm(a, b)  # the first call loads the library
    return 2 * side**3 / _seconds(lambda: torch.mm(a, b), 10, device)


def _seconds(call: Callable[[], object], count: int, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


def _steady(call: Callable[[], object], seconds: float, device: str) -> float:
    """Seconds of a call, over as many as take so long."""
    count = max(3, int(seconds / max(_seconds(call, 3, device), 1e-6)))
    return _seconds(call, count, device)


def line(row: dict[str, Any]) -> str:
    """A row, as the table in Markdown has it."""
    first = (row["workload"], row["precision"], str(row["members"]))
    if "failed" in row:
        return "| " + " | ".join([*first, row["failed"], *[""] * 5]) + " |"
    numbers = (
        f"{row['member_steps_per_second']:,.0f}", f"{row['share_of_peak']:.0%}", f"{row['capture_seconds']:.2f}",
        str(row["kernels"]), f"{row['evaluation_ms']:.1f}",
        "" if row["peak_gb"] is None else f"{row['peak_gb']:.1f}",
    )  # fmt: skip
    return "| " + " | ".join((*first, *numbers)) + " |"


def page(rows: Sequence[dict[str, Any]], machine: str) -> str:
    """The page of `gpu.md`."""
    told = f"On {machine}." if rows else "Not run yet: nothing of this engine has run on a CUDA device so far."
    head = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    text = "# The engine on a GPU\n\n`python -m benchmarks gpu --out benchmarks` writes this page and `gpu.json`. "
    return "\n".join([text + told, "", *head, *map(line, rows)]) + "\n"


def write(folder: Path, device: str, members: Sequence[int] = MEMBERS, seconds: float = 2.0, only: str = "") -> None:
    """Measure, print, and keep what is known so far after every row."""
    machine = torch.cuda.get_device_name() if device == "cuda" else "a CPU, to try it"
    rows = []
    folder.mkdir(parents=True, exist_ok=True)
    for row in table(device, members, seconds, only):
        rows.append(row)
        print(line(row), flush=True)
        (folder / "gpu.json").write_text(json.dumps({"machine": machine, "torch": torch.__version__, "rows": rows}))
        (folder / "gpu.md").write_text(page(rows, machine))


def check(name: str, device: str, steps: int = 20) -> dict[str, Any]:
    """Whether a kind of stack is captured, replays what eager steps do, and agrees with the CPU in float64."""

    def ended(on: str, eager: bool, dtype: torch.dtype) -> State:
        state = State.start(runs_of(name, 3), torch.device(on), dtype)
        state.eager = state.eager or eager
        for _ in range(steps):
            state.update()
        return state

    def apart(one: State, other: State) -> float:
        gaps = [(one.params[key].cpu() - value.cpu()).abs().max() for key, value in other.params.items()]
        return float(torch.stack(gaps).max())

    torch.backends.cudnn.deterministic = True  # or twenty steps of Adam make rounding a step of its rate
    graph, eager = (ended(device, one, torch.float32) for one in (False, True))
    exact = apart(ended(device, False, torch.float64), ended("cpu", True, torch.float64))
    cuda = device == "cuda"
    found = {
        "kind": name,
        "captured": bool(cuda and not graph.eager),
        "graph_against_eager": apart(graph, eager),
        "against_cpu_float64": exact,
        "peak_mb": torch.cuda.max_memory_allocated() / 2**20 if cuda else None,
    }
    return found | {"good": found["captured"] == cuda and found["graph_against_eager"] < 1e-4 and exact < 1e-6}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=list(STACKS), help="a kind of stack (default: print their names)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    given = parser.parse_args()
    if given.kind is None:
        print("\n".join(STACKS))
        return
    found = check(given.kind, given.device)
    print(json.dumps(found), flush=True)
    raise SystemExit(not found["good"])


if __name__ == "__main__":
    main()
