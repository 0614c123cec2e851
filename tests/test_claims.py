"""Claims: verdicts, the words for them, and the table that shows them."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from grokbook.claims import SIZES
from grokbook.firstform.claims import Claim, Verdict, number, outcome, percent, plain_table, spread, table, tally


def accuracy_claim(**changes) -> Claim:
    def check(records):
        values = records["curves"].accuracy.values
        return Verdict(
            outcome(bool((values >= 0.9).all())),
            f"accuracy {number(float(np.median(values)))}",
            **spread(values),
            of="accuracy",
        )

    fields = {
        "id": "a",
        "figure": "Fig. 1",
        "statement": "It learns.",
        "paper": "100 %",
        "criterion": "accuracy ≥ 0.9",
        "needs": ("curves",),
        "check": check,
    }
    return Claim(**{**fields, **changes})


def record(*values: float, **attrs) -> xr.Dataset:
    return xr.Dataset({"accuracy": ("run", list(values))}, attrs=attrs)


def test_a_claim_is_judged_by_its_check():
    assert accuracy_claim().judge({"curves": record(0.95, 0.99)}).outcome == "reproduced"
    assert accuracy_claim().judge({"curves": record(0.95, 0.5)}).outcome == "not reproduced"


def test_a_claim_without_its_record_is_not_tested_and_says_what_would_train_it():
    verdict = accuracy_claim().judge({}, train=lambda name: f"grokbook train x/{name}")
    assert verdict.outcome == "not tested"
    assert "grokbook train x/curves" in verdict.note


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("accuracy", "outcome"), [(1.0, "reproduced"), (0.5, "not reproduced")])
def test_a_failure_on_a_smaller_record_is_undecided_and_a_success_stands(size, accuracy, outcome):
    verdict = accuracy_claim().judge({"curves": record(accuracy, size=size)})
    undecided = size == "smaller" and outcome == "not reproduced"
    assert (verdict.outcome, verdict.size) == ("undecided" if undecided else outcome, size)


def test_one_smaller_record_leaves_the_whole_claim_undecided_and_what_was_not_tested_so():
    needs, of = ("curves", "other"), {"curves": record(0.5, size="full"), "other": record(1.0, size="smaller")}
    assert accuracy_claim(needs=needs).judge(of).outcome == "undecided"
    untested = accuracy_claim(needs=needs, check=lambda records: Verdict("not tested"))
    assert untested.judge(of).outcome == "not tested"


def test_an_unknown_outcome_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="reproduced, partly, not reproduced, undecided, not tested"):
        Verdict("fine")


@pytest.mark.parametrize(
    ("parts", "word"),
    [((True, True), "reproduced"), ((True, False), "partly"), ((False, False), "not reproduced")],
)
def test_the_outcome_of_the_parts_of_a_criterion(parts, word):
    assert outcome(*parts) == word


def test_spread_leaves_out_what_was_never_reached():
    assert spread([3.0, np.nan, 1.0, 2.0]) == {"n": 3, "median": 2.0, "low": 1.0, "high": 3.0}
    assert spread([np.nan]) == {"n": 0}


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


def test_the_table_puts_the_papers_value_beside_ours():
    claim = accuracy_claim()
    verdict = claim.judge({"curves": record(0.95, 0.97, 0.99)})
    (row,) = re.findall(r"<tbody><tr.*?</tr>", table([claim], {"a": verdict}, "Claims")._repr_html_())
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
    assert cells[0] == "Fig. 1"
    assert cells[2] == "100 %"
    assert "accuracy 0.970" in cells[3] and "n = 3; accuracy: median 0.970, range 0.950 to 0.990" in cells[3]
    assert 'class="verdict reproduced"' in cells[4]


def test_the_table_is_accessible():
    markup = table([accuracy_claim()], {"a": Verdict("not tested")}, "Claims about x")._repr_html_()
    assert "<caption>Claims about x</caption>" in markup
    assert markup.count('scope="col"') == 5 and markup.count('scope="row"') == 1
    assert 'role="region"' in markup and 'tabindex="0"' in markup and 'aria-label="Claims about x"' in markup


def test_the_table_escapes_what_it_shows():
    claim = accuracy_claim(statement="a < b & c")
    markup = table([claim], {"a": Verdict("partly", "<script>")}, 'a "caption"')._repr_html_()
    assert "a &lt; b &amp; c" in markup and "&lt;script&gt;" in markup
    assert 'aria-label="a &quot;caption&quot;"' in markup


def test_the_size_of_its_records_stands_beside_a_verdict():
    markup = table([accuracy_claim()], {"a": Verdict("partly", size="fewer seeds")}, "Claims")._repr_html_()
    assert '<span class="verdict size">fewer seeds</span>' in markup


def test_a_plain_table_names_rows_and_columns():
    markup = plain_table(("Name", "Value"), [("x", "1")], "Things")._repr_html_()
    assert '<th scope="col">Value</th>' in markup and '<th scope="row">x</th><td data-label="Value">1</td>' in markup
    assert "cards" not in markup
    assert "cards" in plain_table(("Name", "<b>Value</b>"), [("x", "1")], "Things", cards=True).markup


def test_the_tally_counts_each_outcome():
    assert tally(["partly", "reproduced", "partly"]) == "1 reproduced, 2 partly"


def test_a_changed_criterion_is_marked_and_shown_with_the_verdict_by_the_earlier_one():
    before = {"date": "2026-11-01", "criterion": "≥ 0.8", "record": "none", "verdict": "reproduced"}
    late = before | {"date": "2026-11-02", "record": "full", "verdict": "partly", "why": "too easy", "forced": False}
    entry = {"versions": [before, late], "counted": "reproduced", "counted_how": "0.85"}
    verdicts = {"a": Verdict("partly")}
    shown = table([accuracy_claim()], verdicts, "Claims", {"a": entry}).markup
    assert '<span class="verdict size">criterion changed</span>' in shown
    assert "Changed 2026-11-02, after the record: too easy." in shown
    assert "By the earlier one, which counts: reproduced (0.85)." in shown
    smaller = table(
        [accuracy_claim()], {"a": Verdict("undecided", size="smaller")}, "Claims", {"a": entry | {"counted": "partly"}}
    )
    assert "By the earlier one, which counts: undecided (0.85)." in smaller.markup
    assert "changed" not in table([accuracy_claim()], verdicts, "Claims").markup
