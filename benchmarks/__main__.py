"""`python -m benchmarks` times the engine and prints what it found; `--out DIR` keeps the numbers.

Times are processor seconds of one thread on one core, in rounds in which all that is compared takes turns, and the best
of them: what others do on the machine only adds to them. Ratios and shares below their floor are marked. A plain step
is one of PyTorch as installed; the peak is the best full float32 product of any library at hand.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import clock, gpu
from benchmarks.workloads import (
    SET_AT,
    SHARE,
    WORKLOADS,
    Workload,
    kind_of_processor,
    our_state,
    our_step,
    plain_step,
    some_steps,
)
from grokbook.models.pair_transformer import PairTransformer
from grokbook.tasks import ModularTask
from grokbook.train import planning, products, records, runner, workers
from grokbook.train.experiment import Experiment

EVALUATIONS = 200  # in a run, evenly in the logarithm of the step


def steps(rounds: int) -> Iterator[dict[str, Any]]:
    """A step of ours beside a plain one, with the share of the measured peak and what the rest of the time is."""
    for workload in WORKLOADS:
        state, members = our_state(workload), workload.members
        step = our_step(state)
        compared = {"ours": step, "plain": plain_step(workload), **clock.squares()}
        taken = clock.alternate(compared | {"evaluation": partial(state.measure, ())}, rounds)
        ours, plain, evaluation = (float(taken[name].min()) for name in ("ours", "plain", "evaluation"))
        peak, flops, shares = clock.peak(taken), members * planning.flops(workload.run), clock.shares(step)
        ratio = workload.ratio[kind_of_processor()]
        yield {
            "workload": workload.name,
            "products": products.choose(state.gradients, "cpu"),
            "ours_ms": 1e3 * ours / members,
            "plain_ms": 1e3 * plain,
            "ratio": plain * members / ours,
            "ratio_floor": ratio[0],
            "ratio_aim": ratio[1],
            "gflop": flops / members / 1e9,
            "share": flops / ours / peak,
            "share_floor": SHARE[0],
            "share_aim": SHARE[1],
            "peak_gflops": peak / 1e9,
            "products_ms": 1e3 * flops / members / peak,
            "bound_ratio": plain * members / (flops / peak + ours * (shares["optimizer"] + shares["functions"])),
            "shares": shares,
            "evaluation_share": evaluation / ours * EVALUATIONS / workload.steps,
        }


def blocks(rounds: int) -> Iterator[dict[str, Any]]:
    """Time per member against the members trained side by side, and the block that the runner chooses."""
    for workload in WORKLOADS:
        chosen = runner.block_size(Experiment("benchmark", (workload.run,)), "cpu")
        sizes = sorted({1, 2, 4, 16, chosen} if workload.members > 1 else {1, 2, 4, chosen})
        updates = {str(size): our_step(our_state(workload, size)) for size in sizes}
        taken = clock.alternate(updates, rounds)
        per_member = {size: float(taken[str(size)].min()) / size for size in sizes}
        yield {
            "workload": workload.name,
            "chosen": chosen,
            "ms": {size: 1e3 * value for size, value in per_member.items()},
            "chosen_against_one": per_member[1] / per_member[chosen],
            "chosen_against_best": min(per_member.values()) / per_member[chosen],
        }


def two_processes(seconds: float = 4.0) -> Iterator[dict[str, Any]]:
    """Steps of two processes against one. By processor seconds, too, for where the cores are not free."""
    for number, workload in enumerate(WORKLOADS):
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            list(pool.map(some_steps, [number, number], [0.1, 0.1]))
            ((alone, alone_cpu),) = pool.map(some_steps, [number], [seconds])
            both = list(pool.map(some_steps, [number, number], [seconds, seconds]))
        rate = sum(count / cpu for count, cpu in both) / (alone / alone_cpu)
        yield {
            "workload": workload.name,
            "by_the_clock": sum(count for count, _ in both) / alone,
            "by_processor_seconds": rate,
            "cores_had": sum(cpu for _, cpu in both) / seconds,
        }


def growth(rounds: int) -> Iterator[dict[str, Any]]:
    """Time of a step against one size at a time, with the fitted exponent beside the one that products alone give."""
    mlp, transformer = WORKLOADS[2], WORKLOADS[0]

    def quadratic(p: int = 97, width: int = 500) -> Workload:
        model = dataclasses.replace(mlp.run.model, p=p, width=width)
        return dataclasses.replace(mlp, run=dataclasses.replace(mlp.run, task=ModularTask(p), model=model))

    def pairs(p: int) -> Workload:
        task = ModularTask(p, "n + m", 0.3)
        run = dataclasses.replace(transformer.run, task=task, model=PairTransformer(p))
        return dataclasses.replace(transformer, run=run)

    def updates(workload: Workload, count: int = 1, members: int = 1) -> Callable[[], None]:
        step = our_step(our_state(workload, members))
        return lambda: [step() for _ in range(count)] and None

    sweeps: list[tuple[str, str, Sequence[int], Callable[[int], Callable[[], None]]]] = [
        ("quadratic MLP", "p", (53, 71, 97, 139), lambda p: updates(quadratic(p=p))),
        ("quadratic MLP", "width", (250, 500, 1000, 2000), lambda width: updates(quadratic(width=width))),
        ("quadratic MLP", "members", (1, 2, 4, 8), lambda members: updates(mlp, members=members)),
        ("quadratic MLP", "steps", (1, 2, 4, 8), lambda count: updates(mlp, count)),
        ("one-layer transformer", "p", (47, 67, 97, 139), lambda p: updates(pairs(p))),
        ("toy model", "members", (1, 4, 16, 64), lambda members: updates(WORKLOADS[1], members=members)),
    ]
    for model, size, values, make in sweeps:
        made = {str(value): make(value) for value in values}
        taken = clock.alternate(made, rounds)
        seconds = [float(taken[str(value)].min()) for value in values]
        flops = [products.products_of(step)[1] for step in made.values()]
        fit, expected = (float(np.polyfit(np.log(values), np.log(y), 1)[0]) for y in (seconds, flops))
        yield {
            "model": model,
            "size": size,
            "values": list(values),
            "ms": [1e3 * one for one in seconds],
            "exponent": fit,
            "expected": expected,
        }


def flops() -> dict[str, int]:
    """Operations of a step of every shape in the book, for the page that plans with them; all are counted anew."""
    counted = (run for one in planning.experiments().values() for run in one.runs if not planning.stated(run))
    runs = {planning.shape(run): run for run in counted}
    return {name: planning.count_now(run) for name, run in sorted(runs.items())}


def mark(value: float, floor: float, aim: float) -> str:
    """Where a number stands against its floor and its aim."""
    return "below its floor" if value < floor else "above its floor" if value < aim else "at its aim"


def steps_line(row: dict[str, Any]) -> str:
    """A step's row, told."""
    kinds = ", ".join(f"{kind} ({share:.0%})" for kind, share in row["shares"].items())
    limits = (row["ratio_floor"], row["ratio_aim"]), (row["share_floor"], row["share_aim"])
    return (
        f"  {row['workload']}\n"
        f"    {row['ours_ms']:.3g} ms (products: {row['products']}) against {row['plain_ms']:.3g} ms: "
        f"{row['ratio']:.2f}x, {mark(row['ratio'], *limits[0])} ({limits[0][0]}x, {limits[0][1]}x)\n"
        f"    {row['share']:.0%} of {row['peak_gflops']:.0f} GFLOP/s, "
        f"{mark(row['share'], *limits[1])} ({limits[1][0]:.0%}, {limits[1][1]:.0%})\n"
        f"    limit: {row['gflop']:.3g} GFLOP take {row['products_ms']:.3g} ms at the peak; "
        f"with optimizer and functions as they are, at most {row['bound_ratio']:.1f}x;\n"
        f"    the time goes into {kinds}, and into copies, sums and calls\n"
        f"    {EVALUATIONS} evaluations a run take {row['evaluation_share']:.1%} on top"
    )


def blocks_line(row: dict[str, Any]) -> str:
    """A row of blocks, told."""
    times = ", ".join(f"{size}: {value:.3g} ms" for size, value in row["ms"].items())
    return (
        f"  {row['workload']}\n    {times}\n    {row['chosen']} are chosen: {row['chosen_against_one']:.2f} "
        f"times as fast as singles, {row['chosen_against_best']:.0%} of the best"
    )


def processes_line(row: dict[str, Any]) -> str:
    """A row of two processes, told."""
    return (
        f"  {row['workload']}: {row['by_the_clock']:.2f}x by the clock with {row['cores_had']:.2f} cores to "
        f"themselves, {row['by_processor_seconds']:.2f}x by processor seconds"
    )


def growth_line(row: dict[str, Any]) -> str:
    """A row of growth, told."""
    return (
        f"  {row['model']} against {row['size']} {tuple(row['values'])}: "
        f"exponent {row['exponent']:.2f}, products alone {row['expected']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parts = ("steps", "blocks", "processes", "growth", "gpu", "flops")
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(parts)} (default: all, an hour)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the best counts (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a folder for benchmarks.json, flops.json and gpu.md")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="of the part gpu; cpu tries it out")
    parser.add_argument("--members", type=int, nargs="+", default=gpu.MEMBERS, metavar="N", help="of the part gpu")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each of its rows")
    parser.add_argument("--only", default="", metavar="WORD", help="its workloads with this in their names")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(parts):
        parser.error(f"no part {', '.join(sorted(unknown))}; there is: {', '.join(parts)}")
    wanted = given.parts or parts
    workers.settle(1)  # as in every process that trains
    print(f"{records.processor()}, one thread; torch {torch.__version__}; the best of {given.rounds} rounds\n")
    path = given.out / "benchmarks.json" if given.out else None
    kept = json.loads(path.read_text()) if path and path.exists() else {}
    if set(wanted) - {"flops", "gpu"}:  # counts are nobody's measurement
        if kept.get("machine") != records.processor():  # times of two machines do not belong side by side
            kept = {}
        kept |= {"machine": records.processor(), "torch": str(torch.__version__), "commit": records.commit()}

    def save() -> None:
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(kept, indent=1) + "\n")

    def report(part: str, heading: str, rows: Iterator[dict[str, Any]], line: Callable[[dict[str, Any]], str]) -> None:
        print(heading)
        kept[part] = []
        with clock.one_core() if part in ("steps", "blocks", "growth") else contextlib.nullcontext():
            for row in rows:
                kept[part].append(row)
                print(line(row), flush=True)
                save()

    if "steps" in wanted:
        kept["set_at_gflops"] = SET_AT[kind_of_processor()]
        heading = "A step, per member, against a textbook step of torch.nn and torch.optim, neither evaluating:"
        report("steps", heading, steps(given.rounds), steps_line)
    if "blocks" in wanted:
        heading = "\nBlocks: time per member with so many side by side, and the block that is chosen:"
        report("blocks", heading, blocks(given.rounds), blocks_line)
    if "processes" in wanted:
        report("processes", "\nTwo processes against one:", two_processes(), processes_line)
    if "growth" in wanted:
        heading = "\nHow the time of a step grows, and how the products alone do:"
        report("growth", heading, growth(given.rounds), growth_line)
    if "gpu" in wanted and (torch.cuda.is_available() or given.device == "cpu"):
        print("\n" + " | ".join(gpu.HEAD))
        with tempfile.TemporaryDirectory() as nowhere:
            gpu.write(given.out or Path(nowhere), given.device, given.members, given.seconds, given.only)
    elif "gpu" in wanted:
        print("\nNo CUDA GPU here: nothing is said about one.")
    if "flops" in wanted and given.out:
        counted = flops()
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "flops.json").write_text(json.dumps(counted, indent=0) + "\n")
        print(f"\nCounted the operations of {len(counted)} shapes of step.")


if __name__ == "__main__":
    main()
