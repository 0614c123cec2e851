"""How numbers are written."""

from __future__ import annotations

import numpy as np
import pytest

from grokbook.words import html, number, percent, seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01071, "0.0107"),
        (1.234, "1.23"),
        (12345.6, "12,346"),
        (0.0, "0"),
        (0.000430, "4.30·10⁻⁴"),
        (-2.44e-9, "−2.44·10⁻⁹"),
        (-2.5, "−2.50"),
        (3.97e26, "3.97·10²⁶"),
        (np.inf, "not reached"),
        (-np.inf, "−∞"),
        (np.nan, "–"),
        (None, "–"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_shares_are_percentages_and_what_is_unknown_a_dash():
    assert (percent(0.5051), percent(0.00396), percent(1.0)) == ("50.5 %", "0.396 %", "100 %")
    assert (percent(9.99), percent(9.996), percent(-12.34)) == ("999 %", "1,000 %", "−1,234 %")
    assert percent(float("nan")) == percent(None) == "–"


def test_a_duration_has_the_unit_of_its_size():
    told = [seconds(value) for value in (0, 0.34, 0.96, 45, 600, 1e7)]
    assert told == ["0 s", "0.3 s", "1 s", "45 s", "10 min", "2,777.8 h"]


def test_an_index_stands_below_the_line_and_a_percent_sign_beside_its_number():
    shown = html("t_0.5 / t_train < 5 % of gu/holes_by_text")
    assert shown == "t<sub>0.5</sub> / t<sub>train</sub> &lt; 5\u00a0% of gu/holes_by_text"
