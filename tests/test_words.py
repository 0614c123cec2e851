"""How numbers are written."""

from __future__ import annotations

import numpy as np
import pytest

from grokbook.words import number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01071, "0.0107"),
        (1.234, "1.23"),
        (12345.6, "12,346"),
        (0.0, "0"),
        (0.000430, "4.30e−4"),
        (-2.44e-9, "−2.44e−9"),
        (-2.5, "−2.50"),
        (np.nan, "–"),
        (None, "–"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_shares_are_percentages_and_what_is_unknown_a_dash():
    assert (percent(0.5051), percent(0.00396), percent(1.0)) == ("50.5 %", "0.396 %", "100 %")
    assert percent(float("nan")) == percent(None) == "–"
