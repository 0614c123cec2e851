"""Tables and facts of the page, from ``benchmarks/`` and from what every experiment says of itself."""

from __future__ import annotations

import dataclasses
import heapq
import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any

import numpy as np

from grokbook import fold, words
from grokbook.fold import Html
from grokbook.page import glue
from grokbook.train import planning, records, runner
from grokbook.train.experiment import Experiment


@cache
def measured() -> dict[str, Any]:
    """What ``python -m benchmarks --out benchmarks`` kept."""
    return dict(json.loads((records.ROOT / "benchmarks" / "benchmarks.json").read_text()))


def speed() -> Html:
    """Each workload's step beside the plain one, with floors and aims."""
    rows = [
        [
            row["workload"],
            _ms(row["plain_ms"]),
            _ms(row["ours_ms"]),
            _against(row["ratio"], row["ratio_floor"], row["ratio_aim"], "{:.1f}×"),
            _against(row["share"], row["share_floor"], row["share_aim"], "{:.0%}"),
            f"{row['bound_ratio']:.1f}×",
            f"{row['evaluation_share']:.1%}",
        ]
        for row in measured()["steps"]
    ]
    head = ("Step", "Plain", "Engine", "Ratio", "Share of peak", "Ratio at the peak", "200 evaluations")
    return plain_table(head, rows, "Time of a step for one network, beside plain PyTorch")


def _ms(value: float) -> str:
    return f"{value:.3g}&nbsp;ms"


def _against(value: float, floor: float, aim: float, form: str) -> str:
    place = "below the floor" if value < floor else "aim met" if value >= aim else "floor met"
    return f"{form.format(value)}<br><small>{place} ({form.format(floor)}, {form.format(aim)})</small>"


def facts(gpu_tflops: float, launch_ms: float) -> None:
    """Glue what the page's prose says of the machine that was measured, and what a plan assumes and consists of."""
    found, everything = measured(), planning.experiments()
    blocks = [row["chosen_against_one"] for row in found["blocks"]]
    below = [row for row in found["steps"] if row["ratio"] < row["ratio_floor"]]
    longest = max(everything.values(), key=lambda one: max(run.steps * planning.flops(run) for run in one.runs))
    work = {name: planning.work(one) for name, one in everything.items()}
    told: dict[str, Any] = {name: found[name] for name in ("machine", "torch")}
    told |= {
        "peak": f"{np.median([row['peak_gflops'] for row in found['steps']]):.0f}",
        "set_at": f"{found['set_at_gflops']:.0f}",
        "workloads": len(found["steps"]),
        "below": len(below),
        "out_of_reach": sum(row["bound_ratio"] < row["ratio_floor"] for row in below),
        "had": f"{np.median([row['cores_had'] for row in found['processes']]):.2f}",
        "blocks": f"{max(blocks):.2f}",
        "total": f"{sum(work.values()) / 1e15:,.0f}",
        "heaviest": max(work, key=work.__getitem__),
        "heavy_share": f"{max(work.values()) / sum(work.values()):.0%}",
        "longest": longest.name,
        "gpu_tflops": f"{gpu_tflops:g}",
        "launch_ms": f"{launch_ms:g}",
    }
    for name, value in told.items():
        glue(name, str(value))


def growth() -> Html:
    """How the time of a step grows with each size."""
    rows = [
        [
            f"{row['model']}, {row['size']}",
            ", ".join(f"{value:g}" for value in row["values"]),
            ", ".join(f"{value:.3g}" for value in row["ms"]),
            f"{row['exponent']:.2f}",
            f"{row['expected']:.2f}",
        ]
        for row in measured()["growth"]
    ]
    head = ("Grows with", "Values", "ms", "Exponent", "Of the operations")
    return plain_table(head, rows, "How the time of a step grows, as a power of each size")


def _core() -> planning.Machine:
    """A core at the median rate of the benchmark's workloads."""
    rates = [row["gflop"] / row["ours_ms"] * 1e12 for row in measured()["steps"]]
    return planning.Machine(float(np.median(rates)))


def _gpu(tflops: float, launch_ms: float) -> planning.Machine:
    return planning.Machine(tflops * 1e12, launch_ms / 1e3, None)


@cache
def _spent(experiment: Experiment) -> float | None:
    """Core seconds that its record says it took."""
    found = runner.status(experiment, whole=False)
    return float(records.heading(found.path)["wall_seconds"]) if found.path and found.state == "present" else None


def _core_of(experiment: Experiment) -> planning.Machine:
    """A core that takes as long for an experiment as its record did, where there is one."""
    spent = _spent(experiment)
    return dataclasses.replace(_core(), rate=planning.work(experiment) / spent) if spent else _core()


def shard_seconds(experiments: Iterable[Experiment], machine: planning.Machine, workers: int) -> list[float]:
    """The times of all shards; a stack of members is cut so that every worker gets some of it."""
    seconds = []
    for experiment in experiments:
        block = machine.block or -(-len(experiment.runs) // workers)
        seconds += [machine.seconds(experiment.select(place)) for place in experiment.shards(block)]
    return seconds


def makespan(seconds: Iterable[float], workers: int) -> float:
    """When the last of some shards is done if each worker takes the longest one left whenever it is free."""
    free = [0.0] * workers
    for one in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def plan(workers: Sequence[int], gpu_tflops: float, launch_ms: float) -> Html:
    """Every experiment: networks, their steps together, operations, core hours as planned and as measured where there
    is a record, and the plan for GPUs."""
    core, gpu = _core(), _gpu(gpu_tflops, launch_ms)
    rows = []
    for name, experiment in planning.experiments().items():
        spent, work = _spent(experiment), planning.work(experiment)
        planned = [makespan(shard_seconds([experiment], gpu, n), n) for n in workers]
        rows.append(
            [
                name.replace("/", "/<wbr>").replace("_", "_<wbr>"),
                f"{len(experiment.runs):,}",
                f"{experiment.member_steps:,}",
                words.number(work / 1e15),
                _time(work / core.rate),
                _time(spent) if spent else "–",
                *map(_time, planned),
            ]
        )
    head = ("Experiment", "Nets", "Steps", "PFLOP", "1 core", "Measured", *map(_gpus, workers))
    return plain_table(head, rows, "What each experiment takes at the paper's settings")


def machines(workers: Sequence[int], gpu_tflops: float, launch_ms: float) -> Html:
    """The whole book, as one queue of shards, on cores and on GPUs."""
    everything, gpu, rows = planning.experiments().values(), _gpu(gpu_tflops, launch_ms), []
    queues = {"2 cores": (2, [time for one in everything for time in shard_seconds([one], _core_of(one), 2)])}
    queues |= {_gpus(n): (n, shard_seconds(everything, gpu, n)) for n in workers}
    for name, (count, seconds) in queues.items():
        whole = makespan(seconds, count)
        busy = sum(seconds) / (whole * count)
        rows.append([name, f"{len(seconds):,}", _time(max(seconds)), _time(whole), f"{busy:.0%}"])
    head = ("Machine", "Shards", "Longest shard", "The whole book", "Busy")
    return plain_table(head, rows, "All experiments of the book in one queue of shards")


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Html:
    """A table in a scrolling box; cells are HTML already, and the first names its row."""
    told, table = escape(caption), fold.table(head, rows, caption, cell=str)
    return Html(f'<div class="verdicts cards" role="region" tabindex="0" aria-label="{told}">{table}</div>')


def _gpus(count: int) -> str:
    return f"{count:,} GPU{'s' if count > 1 else ''}"


def _time(seconds: float) -> str:
    return words.seconds(seconds).replace(" ", "&nbsp;")
