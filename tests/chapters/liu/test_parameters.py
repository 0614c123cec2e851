"""Values with which the chapter cannot run are refused in one line."""

from __future__ import annotations

import pytest

from grokbook.chapters.liu.parameters import check


def test_the_papers_settings_are_allowed():
    check(p=10, train_size=45, seeds=10, split_seeds=3, steps=100_000, sizes=[5, 54])
    check(budget=0.5, device="cpu", mnist_dir="")


@pytest.mark.parametrize(
    "given, words",
    [
        ({"p": 4}, "p = 4: a whole number from 5 to 30"),
        ({"p": 31}, "p = 31"),
        ({"p": 10, "train_size": 0}, "train_size = 0: a whole number from 1 to 54"),
        ({"p": 10, "train_size": 55}, "train_size = 55"),
        ({"p": 10, "train_size": 5}, "determine every held-out answer"),
        ({"seeds": 0}, "seeds = 0"),
        ({"toy_steps": -1}, "toy_steps = -1"),
        ({"coarseness": 0}, "coarseness = 0"),
        ({"sizes": []}, r"sizes = \[\]"),
        ({"sizes": [55]}, "sizes = 55"),
        ({"group_sizes": [36]}, "group_sizes = 36"),
        ({"moduli": [3]}, "moduli = 3"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"d_model": 1}, "d_model = 1: a whole number of at least 2"),
        ({"budget": -1}, "budget = -1"),
        ({"device": "tpu"}, "allowed: auto, cpu, cuda"),
        ({"mnist_dir": "/nowhere"}, "no such folder"),
    ],
)
def test_others_are_refused_in_one_line(given, words):
    with pytest.raises(ValueError, match=words) as caught:
        check(given)
    assert "\n" not in str(caught.value)
