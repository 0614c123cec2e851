"""Phases, diagrams, and how near they come to the published ones."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.liu import maps, phases, transformers
from grokbook.chapters.liu.maps import NO_MAJORITY, PHASES, majority, phase_of
from grokbook.measures.common import unmeasured
from grokbook.train.experiment import coordinates


def test_phases_are_those_of_the_table():
    cases = {
        (500, 1499): "comprehension",
        (500, 1500): "grokking",
        (500, np.nan): "memorisation",
        (np.nan, np.nan): "confusion",
        (np.nan, 500): "held out only",
        (900, 200): "comprehension",
    }
    for (t_train, t_val), name in cases.items():
        assert PHASES[int(phase_of(t_train, t_val))] == name
    assert PHASES[int(phase_of(500, 1500, gap=1001))] == "comprehension"
    assert PHASES[int(phase_of(500, 1500, budget=1499))] == "memorisation"
    assert PHASES[int(phase_of(500, 600, budget=400))] == "confusion"
    assert phase_of([[1, 2]], [[3], [4]]).shape == (2, 2)


def test_a_cell_without_a_majority_belongs_to_no_phase():
    codes, share = majority([[0, 0, 1], [3, 2, 1], [2, 2, 2], [0, 1, NO_MAJORITY]])
    assert codes.tolist() == [0, NO_MAJORITY, 2, NO_MAJORITY]
    np.testing.assert_allclose(share, [2 / 3, 1 / 3, 1, 1 / 3])


def test_the_published_counts_are_those_the_paper_was_drawn_from():
    wanted = {
        "rates": (29, 31, 109, 0),
        "regression": (17, 60, 60, 39),
        "classification": (30, 85, 50, 11),
        "group": (73, 31, 62, 10),
    }
    for panel, numbers in wanted.items():
        assert np.bincount(maps.published(panel).phases.ravel(), minlength=6).tolist() == [*numbers, 0, 0]
    regression = maps.published("regression")
    column = int(np.argmin(np.abs(regression.x - 1e-4)))
    assert (regression.t_train[0, column, 0], regression.t_val[0, column, 0]) == (1651, 2077)


def test_a_wait_is_known_to_a_step_of_the_grid():
    theirs = maps.published("regression")
    moved = {
        shift: dataclasses.replace(theirs, t_train=theirs.t_train - shift, t_val=theirs.t_val + shift)
        for shift in (0, 5, 2_000)
    }
    assert maps.same_phase(moved[0], "regression").all() and maps.same_phase(moved[5], "regression").all()
    assert maps.same_phase(moved[2_000], "regression").mean() < 1
    times = {shift: maps.same_times(one, "regression") for shift, one in moved.items()}
    assert np.isfinite(times[0]).sum() == 77 == np.nansum(times[0]) == np.nansum(times[5])
    assert np.nansum(times[2_000]) < 77


def test_six_released_counts_stand_out_and_no_others():
    for panel in ("regression", "classification"):
        odd, t = maps.outlying(maps.published(panel), panel)[:, 0], maps.published(panel).t_train[:, 0, 0]
        jump = t[1:-1] / np.sqrt(t[:-2] * t[2:])  # over the mean of its neighbours in decay
        assert odd.sum() == 3 and np.nanmedian(jump[odd[1:-1]]) > 1.3 and np.nanmedian(jump[~odd[1:-1]]) < 1
    assert not maps.outlying(maps.published("group"), "group").any()


def as_published(name):
    """A record with the published steps, without training."""
    experiment = phases.section.experiments[name](phases.Settings())
    record = xr.Dataset(coords={key: ("run", value) for key, value in coordinates(experiment.runs).items()})
    panel, setting = phases.PANELS[name]
    theirs = maps.published(panel)
    x = np.searchsorted(theirs.x, record.lr.values * 0.999)
    y = np.searchsorted(theirs.y, record[setting].values * 0.999)
    for split, table in (("train", theirs.t_train), ("test", theirs.t_val)):
        record[f"reached_{split}_accuracy"] = ("run", table[y, x, 0])
    return record


@pytest.mark.parametrize(
    "name, id",
    [
        ("phases_rates", "fig6a"),
        ("phases_regression", "fig6b"),
        ("phases_classification", "fig6c"),
        ("phases_group", "fig6d-published"),
    ],
)
def test_the_published_diagrams_meet_the_criteria_and_shuffled_ones_do_not(name, id):
    (claim,) = (one for one in phases.section.claims if one.id == id)
    record = as_published(name)
    assert claim.judge({name: record}).outcome == "reproduced"
    order = np.random.default_rng(0).permutation(record.sizes["run"])
    shuffled = record.assign({key: ("run", values.values[order]) for key, values in record.data_vars.items()})
    assert claim.judge({name: shuffled}).outcome != "reproduced"


def test_contacts_are_counted_along_an_axis():
    codes = np.array([[0, 0], [1, 2], [2, 2]])
    assert [maps.contacts(codes, axis) for axis in (0, 1)] == [1, 0]
    assert maps.steps_up(codes, 0, 2) == 1 and maps.steps_up(codes, 2, 0) == 0


def test_cells_beside_memorisation_are_above_below_left_or_right_of_it():
    assert maps.beside_memorisation(np.array([[1, 2], [0, 0], [1, 3]])).tolist() == [0.5, 0.5]


def with_times(name, x, y, codes):
    """A record with such phases, (y, x), and embeddings of ten symbols in line where networks generalise."""
    cells = np.column_stack([one.ravel() for one in np.meshgrid(x, y)]), codes.ravel()
    times = np.array([(500, 900), (500, 2_000), (500, np.nan), (np.nan, np.nan)])[cells[1]]
    return xr.Dataset(
        {"reached_train_accuracy": ("run", times[:, 0]), "reached_test_accuracy": ("run", times[:, 1])},
        {"lr": ("run", cells[0][:, 0]), name: ("run", cells[0][:, 1]), "seed": ("run", np.zeros(len(times))),
         "steps": ("run", np.full(len(times), 1e5))},
    )  # fmt: skip


def test_only_a_map_with_grokking_between_is_closer():
    (claim,) = (one for one in transformers.section.claims if one.id == "closer")
    rates = np.arange(1.0, 8)
    layers = np.repeat([2, 2, 2, 2, 1, 0, 0], 7).reshape(7, 7)
    swapped, shuffled = np.choose(layers, [1, 0, 2]), np.random.default_rng(1).permutation(layers.ravel())
    for codes, outcome in ((layers, "reproduced"), (swapped, "not reproduced"), (shuffled, "not reproduced")):
        record = with_times("weight_decay", rates, rates, codes)
        assert claim.judge({"phases_transformer": record}).outcome == outcome


def test_comprehension_ends_at_a_ratio_or_at_a_rate_of_the_decoder():
    rates = np.array(phases.RATES_A)
    ratio = rates[:, None] / rates
    by_ratio = np.select([ratio < 2, ratio < 20], [2, 0], 1)
    by_rate = np.where(ratio < 2, 2, np.where(rates < 1e-4, 1, 0))
    for codes, slope in ((by_ratio, 1), (by_rate, np.nan)):
        found = maps.diagram(with_times("W_E_lr", rates, rates, codes))
        assert phases.upper_slope(found) == pytest.approx(slope, nan_ok=True)


def test_the_goldilocks_zone_is_where_lines_are_and_nothing_generalising_is_none():
    record, line = as_published("phases_regression"), np.arange(10.0)[:, None]
    noise = np.random.default_rng(0).normal(size=(record.sizes["run"], 10, 1))
    inside = phases.good(record)[:, None, None]
    found = record.assign(W_E=(("run", "snapshot", "symbol", "feature"), np.where(inside, line, noise)[:, None]))
    assert phases.goldilocks(found) == 1
    with unmeasured():
        assert np.isnan(phases.goldilocks(found.assign(reached_test_accuracy=np.nan * record.reached_test_accuracy)))


def test_neither_all_confusion_nor_a_decay_that_helps_meets_fig_15():
    (claim,) = (one for one in phases.section.claims if one.id == "fig15")
    experiment = phases.section.experiments["phases_decay"](phases.Settings())
    record = xr.Dataset(coords={key: ("run", value) for key, value in coordinates(experiment.runs).items()})
    never, slow = np.full(record.sizes["run"], np.nan), record.lr.values < 5e-4
    both_sides = np.ones(len(slow)), np.where(slow, 9, np.nan)
    helped = both_sides[0], np.where(slow | (record.W_E_weight_decay.values == 10), 9, np.nan)  # at the largest decay
    cases = ((never, never), "partly"), (both_sides, "reproduced"), (helped, "partly")
    for (t_train, t_val), outcome in cases:
        found = record.assign(reached_train_accuracy=("run", t_train), reached_test_accuracy=("run", t_val))
        assert claim.judge({"phases_decay": found}).outcome == outcome


def of_batches(**given):
    """The record of Fig. 13 before anything is measured."""
    experiment = phases.section.experiments["phases_batch"](phases.Settings(), **given)
    record = xr.Dataset(coords={key: ("run", value) for key, value in coordinates(experiment.runs).items()})
    return record.assign_attrs(recipe=json.dumps(experiment.recipe))


def test_a_batch_of_none_is_the_whole_training_set():
    sizes = phases.batch_sizes(of_batches(coarseness=4))
    assert set(sizes) == {45, 5} and (sizes == 45).sum() == len(sizes) / 2


def test_fig_13_asks_for_the_phases_of_both_corners_in_both_tasks():
    (claim,) = (one for one in phases.section.claims if one.id == "fig13")
    record, times = of_batches(), np.array([(500, 900), (500, 2_000), (500, np.nan)])

    def outcome(codes):
        steps = zip(("train", "test"), times[codes].T, strict=True)
        found = record.assign({f"reached_{split}_accuracy": ("run", values) for split, values in steps})
        return claim.judge({"phases_batch": found}).outcome

    sizes, slow = phases.batch_sizes(record), record.lr.values < 5e-4
    assert outcome(np.where(slow, np.where(sizes < 10, 1, 0), 2)) == "reproduced"
    assert outcome(np.where(slow, np.where(sizes < 10, 0, 1), 2)) == "not reproduced"
    generator = np.random.default_rng(0)
    by_rate = generator.integers(0, 3, (20, 9))[:, np.unique(record.lr, return_inverse=True)[1]]  # whatever the batch
    draws = *by_rate, *generator.integers(0, 3, (40, len(sizes)))
    assert "reproduced" not in {outcome(codes) for codes in draws}
