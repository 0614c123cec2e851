"""Which library multiplies: the fastest at hand that does so in full float32, found by trying.

PyTorch asks MKL for its products, which takes a slow path on some processors; the oneDNN in the same PyTorch does not,
but it is asked only where products may be rounded ("medium"), and rounds where the processor has instructions for it.
So those are taken away from it, by a variable that it reads at its first product, and a training's own products are
compared with float64 before it is believed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from grokbook.lazy import Tensor, torch

Pair = tuple[Tensor, Tensor]

DEFAULT, ONEDNN = "default", "oneDNN"
ROUNDING = {"bfloat16": "medium", "TF32": "high"}  # of oneDNN and of CUDA's library
SETTINGS = {DEFAULT: "highest", ONEDNN: "medium", **ROUNDING}  # what PyTorch calls the precision that asks for each
LARGEST_ERROR = 1e-5  # of a product's largest entry: float32 stays below 2e-6, TF32 and bfloat16 err by 2e-3
WORTH_IT = 1e7  # floating point operations of a step, a tenth of a millisecond: below it calls are what takes time
LEAST_GAIN = 1.1  # that is taken; what is measured varies by a hundredth, and a machine is to choose alike each time
ROWS = 64  # of each product are compared with float64
ROUNDS, SECONDS = 4, 0.01  # a product is timed so often, but no longer


@contextlib.contextmanager
def using(library: str) -> Iterator[None]:
    """Matrix products by this library while it lasts."""
    before, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision(SETTINGS[library])
    torch.backends.cudnn.allow_tf32 = library == "TF32"  # which PyTorch allows convolutions unasked
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = convolutions


@contextlib.contextmanager
def without_subnormals() -> Iterator[None]:
    """On the CPU, numbers below 1e-38 are 0 while it lasts.

    The softmax of a network that is sure of its answers is full of them, and processors, Intel's above all, do sums
    with them by microcode: of Gu's largest prime a step took 7.5 s, and takes 0.9 with the same bits.
    """
    before = float(torch.tensor(1e-39).mul(1)) == 0  # PyTorch has no way to ask
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def choose(step: Callable[[], Any], device: str, precision: str | None = None, before: str = "") -> str:
    """The library for a training.

    Args:
        step: computes what a step does, with its products, and changes nothing.
        device: ``"cpu"`` or ``"cuda"``.
        precision: see ``Experiment.precision``; where nothing rounds, ``"fast"`` is full float32.
        before: the library with which the training began, which is kept where it is there.
    """
    if device == "cuda":
        return "TF32" if precision == "fast" else DEFAULT
    if precision == "fast" and rounds():
        return "bfloat16"
    if before == DEFAULT or not has_onednn():
        return DEFAULT
    pairs, flops = products_of(step)
    if flops < WORTH_IT:
        return DEFAULT
    with using(ONEDNN):
        exact = all(error(a @ b, a, b) < LARGEST_ERROR for (a, b), _ in pairs)
    return ONEDNN if exact and (before == ONEDNN or gain(pairs) > LEAST_GAIN) else DEFAULT


def has_onednn() -> bool:
    """Whether this processor and process have a oneDNN that does not round; nothing is set where there is none."""
    return torch.backends.cpu.get_cpu_capability().startswith("AVX512") and _unrounded()


@cache
def _unrounded() -> bool:
    """Keep oneDNN from rounding, if it has not begun to multiply in this process."""
    name, mine = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE"
    given = os.environ.get(name)
    os.environ[name] = given or mine
    try:
        return not rounds()
    finally:  # read by now; processes that this one starts may be meant to round
        if given is None:
            del os.environ[name]


def rounds() -> bool:
    """Whether oneDNN rounds factors in this process."""
    a, b = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    with using("bfloat16"):
        return error(a @ b, a, b) > LARGEST_ERROR


def error(product: Tensor, a: Tensor, b: Tensor) -> float:
    """The largest error in the first rows of a product of ``a`` and ``b``, as a share of the largest entry there."""
    exact = a[..., :ROWS, :].double() @ b.double()
    return float((product[..., :ROWS, :] - exact).abs().max() / exact.abs().max().clamp(min=1e-300))


def products_of(step: Callable[[], Any]) -> tuple[list[tuple[Pair, int]], int]:
    """A pair of factors of each shape and layout in a step, how often it occurs, and the operations of all."""
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    found: dict[Any, tuple[Pair, int]] = {}

    class Watching(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # there is none here, and asking for it imports it: two seconds

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket in (aten.mm, aten.bmm, aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_):
                a, b = (one.detach() for one in args[-2:])
                pair, count = found.get(key := (a.shape, a.stride(), b.shape, b.stride()), ((a, b), 0))
                found[key] = pair, count + 1
            return func(*args, **(kwargs or {}))

    with Watching():
        step()
    return list(found.values()), sum(2 * count * a.numel() * b.shape[-1] for (a, b), count in found.values())


def gain(pairs: list[tuple[Pair, int]]) -> float:
    """How many times as fast oneDNN is in these products, each done so often."""
    taken = {DEFAULT: 0.0, ONEDNN: 0.0}
    for (a, b), count in pairs:
        multiply = torch.bmm if a.ndim == 3 else torch.mm  # not what would copy factors first
        best = dict.fromkeys(taken, float("inf"))
        began = time.thread_time()
        for _ in range(ROUNDS):
            for library in taken:
                with using(library):
                    before = time.thread_time()
                    multiply(a, b)
                    best[library] = min(best[library], time.thread_time() - before)
            if time.thread_time() - began > SECONDS:
                break
        for library in taken:
            taken[library] += count * best[library]
    return taken[DEFAULT] / taken[ONEDNN]
