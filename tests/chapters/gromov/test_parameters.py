"""Ranges of the chapter's parameters."""

from __future__ import annotations

import pytest

from grokbook.chapters.gromov import experiments
from grokbook.chapters.gromov.parameters import check

GOOD = {
    "p": 97,
    "width": 500,
    "train_fraction": 0.49,
    "seeds": 5,
    "gd_steps": 100,
    "fractions": [0.2, 0.5],
    "widths": [8, 16],
    "d_model": 32,
    "heads": [1, 4],
    "budget": 0.0,
    "gd_lr": 1e5,
    "device": "cpu",
}


def test_values_in_range_pass():
    check(GOOD)
    check(**GOOD)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("p", 3, "at least 4"),
        ("p", 9.5, "whole number"),
        ("width", 0, "at least 1"),
        ("seeds", 0, "at least 1"),
        ("gd_steps", 0, "at least 1"),
        ("train_fraction", 0.0, "between 0 and 1"),
        ("train_fraction", 1.0, "between 0 and 1"),
        ("fractions", [], "at least one"),
        ("fractions", [0.5, 1.5], "between 0 and 1"),
        ("fractions", [0.5, 0.2], "increasing order"),
        ("widths", [0], "at least 1"),
        ("widths", [16, 8], "increasing order"),
        ("widths", [8, 8], "none of them twice"),
        ("moduli", [2], "at least 3"),
        ("heads", [5], "divisors of d_model"),
        ("d_model", 6, "multiple of 4"),
        ("budget", -1.0, "at least 0"),
        ("gd_lr", 0.0, "above 0"),
        ("device", "gpu", "auto, cpu, cuda"),
    ],
)
def test_a_value_out_of_range_is_named_with_what_is_allowed(name, value, allowed):
    with pytest.raises(ValueError, match=allowed) as raised:
        check({**GOOD, name: value})
    message = str(raised.value)
    assert message.startswith(f"{name} = ") and "\n" not in message


def test_a_split_without_test_pairs_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        check({"p": 4, "train_fraction": 0.99})


@pytest.mark.parametrize(("fraction", "word"), [(0.01, "0 of 25"), (0.99, "25 of 25")])
def test_a_fraction_of_a_sweep_without_training_or_test_pairs_is_refused(fraction, word):
    with pytest.raises(ValueError, match=word):
        check({"p": 5, "fractions": [fraction]})


def test_the_smallest_modulus_allowed_can_be_split_at_every_fraction():
    check({"moduli": [3]})
    for run in experiments.critical_fraction((3,)).runs:
        assert 0 < run.task.train_size < 9


def test_cuda_is_refused_where_there_is_none(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no CUDA device here"):
        check({"device": "cuda"})
