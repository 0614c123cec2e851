"""Checks of arguments: what passes, and the one line that the rest gets."""

from __future__ import annotations

import re

import numpy as np
import pytest

from grokbook import checks


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), True + 2])
def test_any_kind_of_integer_passes_as_an_int(value):
    assert checks.integer("p", value, 2) == 3 and type(checks.integer("p", value, 3, 3)) is int


@pytest.mark.parametrize(
    "value, limits, line",
    [
        (1, (2,), "p must be an integer of at least 2, got p=1"),
        (7, (2, 6), "p must be an integer from 2 to 6, got p=7"),
        (2.0, (2,), "p must be an integer of at least 2, got p=2.0"),
        ("2", (0, 3), "p must be an integer from 0 to 3, got p='2'"),
        (None, (0,), "p must be an integer of at least 0, got p=None"),
    ],
)
def test_what_is_no_integer_or_outside_is_refused(value, limits, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        checks.integer("p", value, *limits)


def test_only_a_choice_passes():
    checks.one_of("averaging", "sum", ("sum", "mean"))
    with pytest.raises(ValueError, match=r"^averaging must be one of 'sum', 'mean', got 'median'$"):
        checks.one_of("averaging", "median", ("sum", "mean"))
