"""A measure that comes to give other numbers needs a new version, else older records would pass for its own.

``python -m tests.guard.test_measures`` writes the numbers down anew; first raise the version where it is registered.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from grokbook.chapters.gu.tasks import CircledTask, HoledTask
from grokbook.models.encoder import PairEncoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.models.transformer import Transformer
from grokbook.optim import SGD
from grokbook.tasks import AdditionTask, GroupTask, ModularTask
from grokbook.train import engine, monitor
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.state import State

PATH = Path(__file__).parent / "measures.json"
CASES = {
    "gromov": [
        (
            Run(ModularTask(11), TwoLayerMLP(11, 24, "standard"), SGD(0.5), 3, 0),
            ("ipr", "phases", "accuracy_by_image", "constant_share", "three_waves"),
        ),
        (Run(ModularTask(11), Transformer(11, 8), SGD(0.5), 3, 0), ("embedding_ipr", "activation_share")),
    ],
    "gu": [
        (
            Run(HoledTask(11, hole="square", size=3), PairTransformer(11, 8), SGD(0.5), 3, 0, "cross_entropy"),
            (
                "med",
                "accuracy_by_place",
                "correct",
                "wrong_answers",
                "spacing_power",
                "frequencies",
                "weight_norm",
                "gradient_norm",
                "total_norm",
            ),
        ),
        (Run(CircledTask(11, "n + m", 0.5, 2), PairTransformer(11, 8), SGD(0.5), 3, 0), ("shown_power",)),
    ],
    "waits": [(Run(ModularTask(11), PairTransformer(11, 8), SGD(0.5), 3, 0), ("waves", "shown"))],
    "liu": [
        (
            Run(AdditionTask(10, 45), AdditionDecoder(10, 2), SGD(0.01), 3, 0),
            ("rqi", "effective_dimension", "decoder_map"),
        ),
        (Run(GroupTask("S3", 30), ProductDecoder(6), SGD(0.01), 3, 0), ("s3_rqi",)),
        (Run(ModularTask(16, "n + m", 0.6), PairEncoder(16, 12, 1, 8), SGD(0.01), 3, 0), ("component_accuracy",)),
    ],
}


SUMMARIES = {"component_accuracy"}


def record(runs):
    """What a summary is made of: all weights, at both ends."""
    kept = tuple(runs[0].model.init(torch.Generator()))
    return engine.train(Experiment("test/all", tuple(runs), Schedule(log=2), snapshots=(0, runs[0].steps), keep=kept))


def found(chapter):
    """Measure -> its version and, of each number it logs, mean and mean square over members and places."""
    monitor.of_chapter(f"{chapter}/any")
    rows, cpu = {}, torch.device("cpu")
    for run, names in CASES[chapter]:
        runs = [dataclasses.replace(run, seed=seed) for seed in (0, 1)]
        state = State.start(runs, cpu, torch.float64)
        state.update()
        for name in names:
            numbers = monitor.numbers([name], record(runs) if name in SUMMARIES else state.measured())
            numbers = {key: value[1] if name in SUMMARIES else value for key, value in numbers.items()}
            moments = {key: [float(np.nanmean(x)), float(np.nanmean(np.square(x)))] for key, x in numbers.items()}
            rows[name] = {"version": monitor.VERSIONS.get(name, 1), "moments": moments}
    return rows


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("chapter", CASES)
def test_every_measure_gives_the_numbers_of_its_version(chapter):
    expected = json.loads(PATH.read_text())[chapter]
    ours = found(chapter)
    assert ours.keys() == expected.keys()
    for name, row in ours.items():
        assert row["version"] == expected[name]["version"], f"{name}: write its numbers down anew"
        assert row["moments"].keys() == expected[name]["moments"].keys(), name
        for key, moments in row["moments"].items():
            assert moments == pytest.approx(expected[name]["moments"][key], rel=1e-6, abs=1e-9, nan_ok=True), key


@pytest.mark.parametrize("chapter", CASES)
def test_every_measure_of_a_chapter_is_held(chapter):
    monitor.of_chapter(f"{chapter}/any")
    home = f"grokbook.chapters.{chapter}.measures"
    names = {name for name, function in monitor.MEASURES.items() if function.__module__ == home}
    assert names and names <= {name for _, held in CASES[chapter] for name in held}


def test_a_raised_version_is_part_of_the_recipes_that_ask_for_it_and_of_no_other(monkeypatch):
    run = CASES["liu"][0][0]
    plain, asking = Experiment("liu/one", (run,)), Experiment("liu/one", (run,), measures=("rqi",))
    before = plain.recipe, asking.recipe
    assert "measure_versions" not in asking.recipe
    monkeypatch.setitem(monitor.VERSIONS, "rqi", 2)
    assert plain.recipe == before[0]
    assert asking.recipe == {**before[1], "measure_versions": {"rqi": 2}}


if __name__ == "__main__":
    PATH.write_text(json.dumps({chapter: found(chapter) for chapter in CASES}, indent=1, sort_keys=True) + "\n")
