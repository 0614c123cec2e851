"""Whatever library multiplies does so in full float32, and a training keeps to it."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import AdamW
from grokbook.tasks import ModularTask
from grokbook.train import engine, products, runner
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.verify import verify
from tests.test_runner import own_cache  # noqa: F401 (a fixture that every test here uses)

RUNS = tuple(Run(ModularTask(23), TwoLayerMLP(23, 200, "standard"), AdamW(0.01), 20, seed) for seed in (0, 1))
WHOLE = Experiment("test/products", RUNS, Schedule(log=3), snapshots=(-1,), keep=("W_in",))
needs_choice = pytest.mark.skipif(
    not products.has_onednn(), reason="no second library here that multiplies in full float32"
)


@pytest.mark.parametrize("m, k, n", [(45, 200, 200), (300, 128, 512), (256, 2000, 97)])
@pytest.mark.parametrize("library", [products.DEFAULT, pytest.param(products.ONEDNN, marks=needs_choice)])
def test_a_product_in_float32_passes_and_one_of_rounded_factors_does_not(library, m, k, n):
    a, b = torch.randn(m, k), torch.randn(k, n)
    with products.using(library):
        product = a @ b
    assert products.error(product, a, b) < products.LARGEST_ERROR / 4
    for bits in (8, 11):  # that bfloat16 and TF32 keep
        scale = 2.0**bits
        x, y = (torch.ldexp(torch.round(m * scale) / scale, e) for m, e in map(torch.frexp, (a, b)))
        assert products.error(x @ y, a, b) > 10 * products.LARGEST_ERROR


def test_a_library_that_rounds_or_gains_nothing_is_not_chosen(monkeypatch):
    step = engine.Training.start(WHOLE, torch.device("cpu"), torch.float32).state.gradients
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(products, "_unrounded", lambda: True)
    monkeypatch.setattr(products, "gain", lambda pairs: 2.0)
    monkeypatch.setattr(products, "error", lambda product, a, b: 1e-6)
    assert products.choose(step, "cpu") == "oneDNN"
    monkeypatch.setattr(products, "gain", lambda pairs: 1.0)
    assert products.choose(step, "cpu") == "default"
    assert products.choose(step, "cpu", before="oneDNN") == "oneDNN"
    monkeypatch.setattr(products, "error", lambda product, a, b: 2e-3)
    assert products.choose(step, "cpu", before="oneDNN") == "default"


def test_on_a_gpu_only_fast_products_are_rounded_and_no_step_is_tried():
    chosen = [products.choose(lambda: pytest.fail("a step was taken"), "cuda", asked) for asked in (None, "fast")]
    assert chosen == ["default", "TF32"]


@pytest.mark.parametrize("capability", ["AVX2", "DEFAULT", "NO AVX", "SVE256"])
def test_a_processor_without_a_choice_is_asked_nothing(monkeypatch, capability):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(products, "_unrounded", lambda: pytest.fail("a variable was set"))
    assert products.choose(lambda: pytest.fail("a step was taken"), "cpu") == "default"


@needs_choice
def test_the_kernels_of_a_training_are_full_float32_and_processes_it_starts_may_round():
    code = """
import os, torch
from grokbook.train import products
a, b = torch.randn(2, 300, 300)
assert products.choose(lambda: a @ b, "cpu", before="oneDNN") == "oneDNN"
assert os.environ.get("ONEDNN_MAX_CPU_ISA") is None and torch.get_float32_matmul_precision() == "highest"
"""
    environment = {key: value for key, value in os.environ.items() if key != "ONEDNN_MAX_CPU_ISA"}
    environment["DNNL_VERBOSE"] = "1"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    kernels = {line.split(",")[5] for line in done.stdout.splitlines() if ",primitive,exec,cpu,matmul," in line}
    assert kernels and not {kernel for kernel in kernels if "amx" in kernel or "bf16" in kernel}


@needs_choice
@pytest.mark.parametrize("library, gain", [("oneDNN", 0.5), ("default", 9.0)])
def test_a_training_goes_on_with_the_library_it_began_with_and_ends_with_the_same_bits(
    tmp_path, monkeypatch, library, gain
):
    path = tmp_path / "part.checkpoint"
    monkeypatch.setattr(products, "gain", lambda pairs: 9.0 if library == "oneDNN" else 0.5)
    plain = engine.train(WHOLE)
    training = engine.Training.start(WHOLE, torch.device("cpu"), torch.float32)
    with products.using(library):
        training.evaluate()
    training.save(path, 0.0)
    monkeypatch.setattr(products, "gain", lambda pairs: gain)
    resumed = engine.train(WHOLE, checkpoint=path)
    assert resumed.attrs["products"] == plain.attrs["products"] == library and resumed.attrs["resumed_at"] == "[0]"
    for name in plain.data_vars:
        np.testing.assert_array_equal(resumed[name], plain[name], err_msg=str(name))


@needs_choice
def test_the_last_bit_is_asked_for_only_of_the_same_library(monkeypatch):
    monkeypatch.setattr(products, "gain", lambda pairs: 9.0)
    assert runner.train(WHOLE).attrs["products"] == "oneDNN"
    assert verify(WHOLE).elsewhere == ""
    monkeypatch.setattr(products, "gain", lambda pairs: 0.5)
    found = verify(WHOLE)
    assert found.elsewhere == "products oneDNN there, default here" and found.passed


def test_fast_products_are_trained_in_a_process_of_their_own(monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "Processes", lambda count, gpus: asked.append(count) or runner.ThisProcess())
    runner.train(dataclasses.replace(WHOLE, precision="fast"), workers=1)
    runner.train(WHOLE, workers=1)
    assert asked == [1]


def test_a_step_meets_no_numbers_that_processors_are_slow_with_and_whoever_asked_has_them_back(monkeypatch):
    small, seen = torch.full((9,), 1e-39), []
    evaluate = engine.Training.evaluate
    monkeypatch.setattr(
        engine.Training, "evaluate", lambda self: seen.append(float(small.mul(1).sum())) or evaluate(self)
    )
    engine.train(WHOLE)
    assert set(seen) == {0.0} and small.mul(1).sum() > 0
