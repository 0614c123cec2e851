"""What stands in where an experiment has no record: the largest that has one, at the papers' settings alone."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest

from grokbook.firstform.catalogue import at_paper_settings, stand_ins
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train import planning, runner
from grokbook.train.experiment import Experiment, Run

CATALOGUES = [import_module(f"grokbook.chapters.{name}.experiments") for name in ("liu",)]


@pytest.fixture(params=CATALOGUES, ids=lambda module: module.__name__.split(".")[-2])
def catalogue(request):
    return request.param


@pytest.fixture
def paper(catalogue):
    """All experiments of a chapter at the paper's settings."""
    return {name: make() for name, make in catalogue.EXPERIMENTS.items()}


def test_what_stands_in_is_marked_and_is_another_experiment(catalogue, paper):
    assert at_paper_settings(catalogue, paper) == set(paper)
    found = stand_ins(catalogue, paper)
    assert set(found) == set(catalogue.REDUCED)
    for name, smaller in found.items():
        assert smaller.scale == "reduced" and smaller.hash != paper[name].hash and smaller.name == paper[name].name


def test_the_largest_comes_first_and_is_smaller_than_the_paper(catalogue, paper):
    for name, candidates in catalogue.REDUCED.items():
        costs = [cost(one) for one in (paper[name], *(make() for make in candidates))]
        assert costs == sorted(costs, reverse=True) and len(set(costs)) == len(costs), name


def test_the_largest_with_a_record_stands_in_and_else_the_smallest(monkeypatch):
    chapter = SimpleNamespace(
        EXPERIMENTS={"curves": curves},
        REDUCED={"curves": tuple(lambda steps=steps: curves(steps) for steps in (9, 6, 3))},
    )
    trained = set()
    monkeypatch.setattr(
        runner,
        "status",
        lambda one, whole: runner.Status("present" if one.runs[0].steps in trained else "missing"),
    )
    for also, chosen in ((set(), 3), ({6}, 6), ({9}, 9)):
        trained |= also
        assert stand_ins(chapter, {"curves": curves()})["curves"].runs[0].steps == chosen
    assert stand_ins(chapter, {"curves": curves(50)}) == {}


def curves(steps: int = 100) -> Experiment:
    return Experiment("test/curves", (Run(ModularTask(5), TwoLayerMLP(5, 4), SGD(1.0), steps, seed=0, loss="mse"),))


def cost(experiment: Experiment) -> int:
    return sum(run.steps * planning.flops(run) for run in experiment.runs)
