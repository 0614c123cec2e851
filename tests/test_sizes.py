"""Sizes of records, and networks counted by recipe."""

from __future__ import annotations

import dataclasses
import json

import pytest
import xarray as xr

from grokbook.sizes import fewer_seeds, networks, size_of
from grokbook.train.experiment import Experiment
from tests.test_runner import tiny


def experiment(seeds: int = 2, steps: int = 4, width: int = 6) -> Experiment:
    return tiny("test/curves", steps, seeds, width)


def record(experiment: Experiment) -> xr.Dataset:
    return xr.Dataset(attrs={"recipe": json.dumps(experiment.recipe)})


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, "full"),
        ({"seeds": 3}, "full"),
        ({"seeds": 1}, "fewer seeds"),
        ({"steps": 3}, "smaller"),
        ({"seeds": 1, "width": 5}, "smaller"),
    ],
)
def test_a_record_has_fewer_seeds_only_where_every_condition_is_that_of_the_full_one(changes, size):
    assert size_of(experiment(), experiment(**changes)) == size


def test_a_network_counts_once_whatever_it_is_called_and_however_long_it_trains():
    one = experiment()
    renamed = tuple(dataclasses.replace(run, label="base") for run in one.runs)
    again = dataclasses.replace(one, name="test/again", runs=(*one.runs, *renamed))
    assert len(networks([record(again)])) == 2
    assert networks([record(one), record(experiment(steps=40))]) == networks([record(one)])
    assert len(networks([record(one), record(experiment(width=5)), record(experiment(seeds=3))])) == 5
    assert len(networks([record(one), record(dataclasses.replace(one, precision="double"))])) == 4


def test_fewer_seeds_leave_every_condition_in():
    both = (*experiment().runs, *(dataclasses.replace(run, steps=7) for run in experiment().runs))
    (fewer,) = fewer_seeds(dataclasses.replace(experiment(), runs=both))
    assert [run.steps for run in fewer.runs] == [both[0].steps, 7] and fewer.scale == "reduced"
    seed = both[0].seed + 10  # a condition may have seeds of its own
    others = tuple(dataclasses.replace(run, steps=7, seed=run.seed + 10) for run in experiment().runs)
    (fewer,) = fewer_seeds(dataclasses.replace(experiment(), runs=(*experiment().runs, *others)))
    assert [(run.steps, run.seed) for run in fewer.runs] == [(both[0].steps, both[0].seed), (7, seed)]
    uneven = dataclasses.replace(experiment(), runs=(both[0], both[3]))  # each seed has a condition of its own
    assert list(fewer_seeds(uneven)) == []
