"""Claims as data: what a part measures, which bound it meets, and the verdict that follows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

from grokbook.claims import REACHED, Claim, Part, at_least, at_most, between, exactly, lesser, near
from grokbook.words import percent


def record(values, size="full"):
    return xr.Dataset({"accuracy": ("run", np.asarray(values, float))}, attrs={"size": size})


def claim(*bounds, **changes):
    parts = tuple(Part("accuracy", lambda curves: curves.accuracy.values, bound, percent) for bound in bounds)
    return Claim("a", "Fig. 1", "It learns.", parts, **changes)


@pytest.mark.parametrize(
    "bounds, outcome",
    [([at_least(0.9)], "reproduced"), ([at_least(0.9), at_most(0.5)], "partly"), ([at_most(0.5)], "not reproduced")],
)
def test_all_some_or_no_part_decides(bounds, outcome):
    assert claim(*bounds).judge({"curves": record([0.95, 0.99])}).outcome == outcome


def test_a_premise_alone_shows_nothing_of_a_claim():
    parts = claim(at_least(0.9), at_most(0.5)).parts
    premise = dataclasses.replace(parts[0], premise=True)
    assert premise.criterion == "accuracy: at least 90 % (a premise)"
    for first, outcome in ((parts[0], "partly"), (premise, "not reproduced")):
        assert (
            Claim("a", "Fig. 1", "It learns.", (first, parts[1])).judge({"curves": record([0.95])}).outcome == outcome
        )


def test_the_median_decides_unless_every_run_must():
    some = {"curves": record([0.1, 0.95, 0.99])}
    each = Part("accuracy", lambda curves: curves.accuracy.values, at_least(0.9), every=True)
    assert claim(at_least(0.9)).judge(some).outcome == "reproduced"
    assert Claim("a", "Fig. 1", "All learn.", (each,)).judge(some).outcome == "not reproduced"


def test_a_failure_on_a_smaller_record_is_undecided_and_a_success_counts():
    small = {"curves": record([0.3], "smaller")}
    assert claim(at_least(0.9)).judge(small).outcome == "undecided"
    assert claim(at_most(0.5)).judge(small).outcome == "reproduced"
    assert claim(at_least(0.9)).judge({"curves": record([0.3], "fewer seeds")}).outcome == "not reproduced"


def test_a_part_that_fails_at_full_size_decides_beside_one_that_fails_on_a_smaller_record():
    parts = tuple(Part(name, lambda one: one.accuracy.values, at_least(0.9), on=(name,)) for name in ("small", "full"))
    both = {"small": record([0.3], "smaller"), "full": record([0.3])}
    assert Claim("a", "Fig. 1", "Both learn.", parts).judge(both).outcome == "not reproduced"


@pytest.mark.parametrize(("last", "outcome"), [(0.3, "undecided"), (0.1, "not reproduced"), (0.95, "reproduced")])
def test_a_failure_on_a_training_that_is_too_short_to_tell_is_undecided(last, outcome):
    rises = "accuracy still rises", lambda curves: curves.accuracy.values[-1] > curves.accuracy.values[0]
    part = Part("accuracy", lambda curves: curves.accuracy.values[-1], at_least(0.9), percent, open=rises)
    assert Claim("a", "Fig. 1", "It learns.", (part,)).judge({"curves": record([0.1, last])}).outcome == outcome
    assert part.criterion == "accuracy: at least 90 %; a failure is open where accuracy still rises"


def test_never_is_larger_than_any_bound_and_what_was_not_measured_meets_none():
    never, unknown = {"curves": record([np.inf, np.inf, 3.0])}, {"curves": record([np.nan])}
    assert claim(at_most(1e9)).judge(never).outcome == "not reproduced"
    assert claim(REACHED).judge(never).outcome == "not reproduced"
    for bound in (at_least(-1e9), at_most(1e9), REACHED):
        assert claim(bound).judge(unknown).outcome == "not reproduced"


def test_without_its_record_nothing_is_tested():
    assert claim(at_least(0.9)).judge({}).outcome == "not tested"


def test_the_criterion_is_read_off_the_bound():
    criteria = [part.criterion for part in claim(at_least(0.9), between(0.1, 0.5), near(0.5, 0.1)).parts]
    assert criteria == ["accuracy: at least 90 %", "accuracy: between 10 % and 50 %", "accuracy: 50 % ± 10 %"]
    assert Part("networks", len, exactly(5)).criterion == "networks: exactly 5"


@pytest.mark.parametrize(("now", "then"), [(0.9, 0.99), (0.99, 0.9)])
def test_a_change_after_the_record_may_lower_a_verdict_and_never_raise_it(now, then):
    changed = claim(at_least(now), earlier=claim(at_least(then)).parts)
    curves = {"curves": record([0.95])}
    today, before = changed.judge(curves), changed.judge(curves, before=True)
    assert {today.outcome, before.outcome} == {"reproduced", "not reproduced"}
    assert lesser(today, before).outcome == "not reproduced"


def test_a_claim_without_a_part_and_an_unknown_owner_are_refused():
    with pytest.raises(ValueError, match="at least one part"):
        Claim("a", "Fig. 1", "It learns.", ())
    with pytest.raises(ValueError, match="'paper', 'ours', got 'theirs'"):
        claim(at_least(0.9), whose="theirs")


def test_a_line_tells_the_range_where_every_run_must_meet_the_bound():
    runs = {"curves": record([0.5, 0.89, 0.99])}
    each = Part("accuracy", lambda curves: curves.accuracy.values, at_least(0.9), percent, every=True)
    assert Claim("a", "Fig. 1", "All learn.", (each,)).judge(runs).line == "accuracy: 89 % (50 % to 99 %, n = 3)"
    assert claim(at_least(0.9)).judge(runs).line == "accuracy: 89 %"
    assert dataclasses.replace(claim(at_least(0.9)).judge(runs), told="by the first").line == "by the first"
