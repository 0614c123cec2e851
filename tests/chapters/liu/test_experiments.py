import dataclasses

import numpy as np
import pytest

from grokbook.chapters.liu import theory
from grokbook.chapters.liu.experiments import EXPERIMENTS, REDUCED, sizes_of
from grokbook.chapters.liu.theory import PHASES, majority, phase_of
from grokbook.chapters.liu.training import solvable_seeds
from grokbook.tasks import AdditionTask
from grokbook.train import engine
from grokbook.train.experiment import Schedule

ALL = EXPERIMENTS | {f"{name}, reduced {i}": one for name in REDUCED for i, one in enumerate(REDUCED[name])}


@pytest.mark.parametrize("name", ALL)
def test_every_experiment_steps_and_keeps_what_it_says(name):
    chosen = ALL[name]()
    runs = tuple(dataclasses.replace(run, steps=2) for run in chosen.select(next(chosen.shards(2))).runs)
    record = engine.train(dataclasses.replace(chosen, runs=runs, snapshots=(0, -1), schedule=Schedule(log=2)))
    assert np.isfinite(record.train_loss.isel(step=-1)).all()
    for kept in chosen.keep:
        assert np.isfinite(record[kept].isel(snapshot=-1)).all()
    for watched, _ in chosen.watch.thresholds if chosen.watch else ():
        assert f"reached_{watched}" in record


def test_phases_are_those_of_the_table():
    cases = {
        (500, 1499): "comprehension",
        (500, 1500): "grokking",
        (500, np.nan): "memorisation",
        (np.nan, np.nan): "confusion",
        (np.nan, 500): "validation only",
        (900, 200): "comprehension",
    }
    for (t_train, t_val), name in cases.items():
        assert PHASES[int(phase_of(t_train, t_val))] == name
    assert PHASES[int(phase_of(500, 1500, gap=1001))] == "comprehension"
    assert PHASES[int(phase_of(500, 1500, budget=1499))] == "memorisation"
    assert PHASES[int(phase_of(500, 600, budget=400))] == "confusion"
    assert phase_of([[1, 2]], [[3], [4]]).shape == (2, 2)


def test_the_majority_and_how_many_agree():
    phases, share = majority([[0, 0, 1], [3, 2, 1], [2, 2, 2]])
    assert phases.tolist() == [0, 1, 2]
    np.testing.assert_allclose(share, [2 / 3, 1 / 3, 1])


def test_solvable_seeds_leave_nothing_open_to_an_ideal_model():
    seeds = solvable_seeds(10, 45, 4)
    for seed in range(max(seeds) + 1):
        ideal = theory.ideal_accuracy(AdditionTask(10, 45).train_pairs(seed), 10, held_out=True)
        assert (ideal == 1) == (seed in seeds)
    with pytest.raises(ValueError, match="train_size = 4 of p = 10: 0 of 1000"):
        solvable_seeds(10, 4, 1)


def test_sizes_scale_with_the_table():
    assert sizes_of(10, (5, 45, 54)) == [5, 45, 54]
    assert sizes_of(4, (5, 45, 54)) == [1, 8, 9]


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("fractions", {"sizes": [60, -5]}, "sizes = 60: a whole number from 1 to 54"),
        ("structure_times", {"sizes": [0]}, "sizes = 0"),
        ("phases_rates", {"coarseness": 0}, "coarseness = 0: a whole number of at least 1"),
        ("phases_group", {"coarseness": -1}, "coarseness = -1"),
        ("phases_batch", {"coarseness": 0}, "coarseness = 0"),
        ("image_phases", {"coarseness": 0}, "coarseness = 0"),
        ("critical_sizes", {"moduli": [2]}, "moduli = 2: a whole number of at least 4"),
    ],
)
def test_values_that_name_no_experiment_are_refused(name, given, words):
    with pytest.raises(ValueError, match=words):
        EXPERIMENTS[name](**given)
