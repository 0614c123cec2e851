"""Criteria on runs of no effect: arms that differ in their seeds alone, symmetries without a rule."""

import json

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gu import CHAPTER, depth, operations, reading
from grokbook.chapters.gu.arms import factor

END = 40_000


def record(arms, p=47, **more):
    """Runs that jump to an accuracy of 1 at given times: label, width and times of each arm."""
    steps = np.arange(0, END + 1, 50)
    runs = [(label, d, time, seed) for label, d, times in arms for seed, time in enumerate(times)]
    label, d, time, seed = zip(*runs, strict=True)
    accuracy = (steps >= np.array(time)[:, None]).astype(float)
    coords = {"label": list(label), "d_model": list(d), "seed": list(seed), "p": [p] * len(runs), **more}
    curves = {"train_loss": accuracy, "train_accuracy": np.ones_like(accuracy), "test_accuracy": accuracy}
    return xr.Dataset(
        {name: (("run", "step"), values) for name, values in curves.items()},
        {"step": steps, **{name: ("run", values) for name, values in coords.items()}},
        {"recipe": json.dumps({"schedule": {"every": 50}})},
    )


def holds(id, data):
    return all(part.find({part.on[0]: data}).holds for part in CHAPTER.claims[id].parts)


def test_the_interval_of_a_factor_holds_one_in_nine_of_ten_nulls_and_needs_three_networks_an_arm():
    draw = np.random.default_rng(0)
    for n in (3, 5):
        pairs = draw.lognormal(9, 0.6, (1000, 2, n))
        held = np.mean([one.low <= 1 <= one.high for one in (factor(a, b) for a, b in pairs)])
        assert 0.88 <= held <= 0.94
    assert np.isnan(factor([1.0, 2], [3.0, 4]).low) and factor([1.0, 2], [3.0, 4]).middle == pytest.approx(3 / 7)


def test_the_interval_of_a_factor_is_known_by_hand_and_never_counts_as_late():
    assert factor([2.0, 4, 8], [1.0, 1, 1]) == (2, 4, 8)
    late = factor([np.inf] * 3, [100.0, 200, 300])
    assert late.low == late.high == np.inf
    assert factor([np.inf] * 3, [np.inf] * 3) == (1, 1, 1)


def test_two_arms_of_one_width_grok_alike_where_the_margin_alone_found_a_difference():
    draw, margin, claimed = np.random.default_rng(1), [], []
    for _ in range(150):
        arms = [(f"d = {d}", d, draw.lognormal(np.log(20_000), 0.5, 5)) for d in (64, 256)]
        data = record(arms)
        margin.append(depth.gain(data) > 1 / 8)
        claimed.append(holds("fig9-right", data))
    assert np.mean(margin) > 0.2 and np.mean(claimed) < 0.08
    assert holds("fig9-right", record([("n", 64, [2.5e4, 3e4, 3.1e4]), ("w", 256, [9e3, 1e4, 1.2e4])]))


def positions(given, without):
    arms = [(label, d, times) for d in (128, 256) for label, times in (("with", given), ("without", without))]
    return record(arms)


def test_few_seeds_show_no_luck_and_neither_does_a_table_that_costs_a_factor_of_two():
    few, many = [600.0, 900, 1500], np.linspace(900, 1100, 8)
    assert not holds("pos20", positions(few, few))
    assert not holds("pos20", positions(2 * many, many))
    assert holds("pos20", positions(many, many))
    assert not holds("pos19", positions(few, few)) and holds("pos19", positions(2 * many, many))


def test_circles_that_do_not_matter_seldom_seem_to_help():
    draw, counts = np.random.default_rng(2), [np.nan, 1, 2, 4, 8, 29]
    on = {"circles": np.repeat(counts, 5), "steps": [END] * 30}
    for sooner, expected in ((1.0, (0.0, 0.06)), (0.3, (0.9, 1.0))):  # with all circles, evenly from two on
        factors = np.interp(np.nan_to_num(np.log(counts)), np.log([2, 29]), [1, sooner])
        arms = [("random" if i == 0 else "circles", 128, f) for i, f in enumerate(factors)]
        times = [[(label, d, draw.lognormal(np.log(3_000 * f), 0.4, 5)) for label, d, f in arms] for _ in range(100)]
        for id in ("circles-sooner", "circles-more"):
            held = np.mean([holds(id, record(one, p=59, **on)) for one in times])
            assert expected[0] <= held <= expected[1], (id, sooner, held)


def test_a_network_that_knows_symmetries_alone_has_nothing_beyond_them():
    p, fields = 97, {"hole": ["none"], "size": [0], "split": ["code"], "train_fraction": [0.2], "f": ["n**3 + m**3"]}
    data = record([("fig15", 128, [0.0])], p=p, **fields)
    share = reading.symmetry_share(data, whole=True)
    assert share > 0.9
    for accuracy, expected in ((share[0], 0), (1.0, 1)):
        data["test_accuracy"][:] = accuracy
        assert operations.beyond(data) == pytest.approx(expected, abs=1e-6)
    data["test_accuracy"][:] = 1 / p
    assert operations.beyond(data) < 0
