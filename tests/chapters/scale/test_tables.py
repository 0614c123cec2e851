"""The page's tables against what they are made of."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest

from grokbook.book import build as book
from grokbook.book.parameters import BadInput
from grokbook.chapters.scale import tables
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train import planning
from grokbook.train.experiment import Experiment, Run


def test_every_experiment_has_a_row_and_every_machine_too():
    markup = tables.plan([1, 8], 25.0, 0.1).markup
    for name in planning.experiments():
        assert f"<th scope=row>{name}</th>" in markup.replace("<wbr>", "")
    rows = re.findall(r"<th scope=row>(.*?)</th>", tables.machines([1, 8], 25.0, 0.1).markup)
    assert rows == ["2 cores", "1 GPU", "8 GPUs"]


def test_the_measured_table_has_all_workloads_with_their_floors():
    markup = tables.speed().markup
    assert markup.count("<tr>") == 1 + len(tables.measured()["steps"])
    for row in tables.measured()["steps"]:
        assert row["workload"] in markup and f"({row['ratio_floor']:.1f}×" in markup


def test_a_plain_table_names_rows_and_columns():
    markup = tables.plain_table(("Name", "a < b"), [("x<wbr>y", "1")], "Things").markup
    assert "<th scope=col>a &lt; b</th>" in markup
    assert '<th scope=row>x<wbr>y</th><td data-label="a &lt; b">1</td>' in markup


def test_every_fact_of_the_prose_is_glued(monkeypatch, root):
    glued = {}
    monkeypatch.setattr(tables, "glue", glued.__setitem__)
    tables.facts(25.0, 0.1)
    told = (root / "book" / "scale.ipynb").read_text(encoding="utf-8")
    assert set(re.findall(r"\{glue:text\}`(\w+)`", told)) == glued.keys()


@pytest.mark.parametrize("given", [{"workers": "[0]"}, {"workers": "[]"}, {"gpu_tflops": "0"}, {"launch_ms": "-1"}])
def test_parameters_out_of_range_are_refused(given):
    ((name, _),) = given.items()
    with pytest.raises(BadInput, match=name):
        book.plan("scale", given, book.Settings())


def test_the_page_itself_refuses_them(root):
    (code,) = (text for one in book.notebooks.read(root / "book" / "scale.ipynb")["cells"]
               if "Settings(" in (text := "".join(one["source"])))  # fmt: skip
    with pytest.raises(ValueError, match="gpu_tflops = -1"):
        exec(code, {"workers": [1], "gpu_tflops": -1, "launch_ms": 0.1})


def test_on_cores_an_experiment_takes_as_long_as_its_record_did():
    everything = planning.experiments()
    trained = everything["gromov/adamw_curves"]
    spent = tables._spent(trained)
    assert spent and spent > 1
    assert sum(tables.shard_seconds([trained], tables._core_of(trained), 2)) == pytest.approx(spent)
    untrained = dataclasses.replace(trained, name="gromov/nothing")
    assert tables._spent(untrained) is None and tables._core_of(untrained) == tables._core()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_queue_is_within_four_thirds_of_the_best_plan(workers):
    """Graham's bound for longest-first, against every assignment of six shards."""
    seconds = [7, 6, 5, 4, 3, 2]
    best = min(
        max(sum(one for one, at in zip(seconds, places, strict=True) if at == worker) for worker in range(workers))
        for places in itertools.product(range(workers), repeat=len(seconds))
    )
    assert best <= tables.makespan(seconds, workers) <= (4 / 3 - 1 / (3 * workers)) * best


def test_a_stack_is_cut_so_that_every_worker_has_some_of_it():
    task, model = ModularTask(7, "n + m", 0.5), TwoLayerMLP(7, 8)
    whole = Experiment("test/plan", tuple(Run(task, model, SGD(0.1), 10, seed) for seed in range(6)))
    work = 10 * planning.flops(whole.runs[0])
    machine = planning.Machine(rate=work, step_seconds=0.25, block=None)
    assert tables.shard_seconds([whole], machine, 1) == [6]
    assert tables.shard_seconds([whole], machine, 4) == [2.5, 2.5, 2.5]  # two each: the launches of ten steps
    assert tables.shard_seconds([whole], planning.Machine(work), 4) == [1] * 6
