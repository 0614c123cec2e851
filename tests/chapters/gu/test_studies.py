"""What is read off records: times, smoothing, tracking, Table 1; and the studies without training."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from grokbook import measures
from grokbook.chapters.gu import experiments, studies, theory

from .conftest import TINY


def record(every=10, **curves):
    """A record of as many runs as curves have rows, measured on an even grid."""
    runs, count = np.atleast_2d(curves["test_loss"]).shape
    variables = {name: (("run", "step"), np.atleast_2d(np.asarray(values, float))) for name, values in curves.items()}
    variables.setdefault("train_loss", (("run", "step"), np.ones((runs, count))))
    variables.setdefault("train_accuracy", (("run", "step"), np.ones((runs, count))))
    coords = {
        "step": np.arange(count) * every,
        "label": ("run", ["x"] * runs),
        "seed": ("run", np.arange(runs)),
    }
    attrs = {"recipe": json.dumps({"schedule": {"every": every}})}
    return xr.Dataset(variables, coords, attrs)


def test_spearman_is_the_correlation_of_ranks_with_ties_at_their_mean():
    assert measures.ranks([3, 1, 1, 10]).tolist() == [3, 1.5, 1.5, 4]
    assert studies.spearman([1, 2, 3, 4], [1, 8, 27, 64]) == pytest.approx(1)
    assert studies.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # by hand: sum of squared rank differences 4, 1 - 6 * 4 / (4 * 15)
    assert studies.spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    assert np.isnan(studies.spearman([1, 1, 1], [1, 2, 3]))


def test_smoothing_keeps_lines_away_from_the_ends_and_constants_everywhere():
    steps = np.arange(0, 4000, 20)
    assert studies.smooth(np.full(len(steps), 3.0), steps) == pytest.approx(np.full(len(steps), 3.0))
    assert studies.smooth(2.0 * steps, steps)[50:150] == pytest.approx(2.0 * steps[50:150], rel=1e-9)
    spike = np.zeros(len(steps))
    spike[100] = 1
    found = studies.smooth(spike, steps)
    assert found[105] / found[100] == pytest.approx(np.exp(-0.5), rel=1e-6)  # 100 steps away, one standard deviation


def test_tracking_of_a_follower_an_opponent_and_a_stranger():
    steps = np.arange(400)
    loss = np.exp(-steps / 100)
    wave = np.sin(steps / 30)
    found = studies.tracking(
        record(test_loss=loss, follow=loss**2, oppose=1 - loss, wave=wave), ("follow", "oppose", "wave", "absent")
    )
    assert found.correlation.sel(measure="follow").item() == pytest.approx(1)
    assert found.correlation.sel(measure="oppose").item() == pytest.approx(-1)
    assert abs(found.correlation.sel(measure="wave").item()) < 0.4
    assert np.isnan(found.correlation.sel(measure="absent").item())
    assert found.agreement.sel(measure="follow").item() == 1
    assert found.agreement.sel(measure="oppose").item() == 0
    assert 0.3 < found.agreement.sel(measure="wave").item() < 0.7


def test_tracking_looks_only_at_what_comes_after_the_fit():
    loss = np.concatenate([np.linspace(0, 5, 200), np.linspace(5, 1, 200)])
    fit = np.r_[np.zeros(200), np.ones(200)]
    found = studies.tracking(record(test_loss=loss, train_accuracy=fit, other=-np.arange(400)), ("other",))
    assert found.correlation.item() == pytest.approx(1)  # over all steps it would be near zero


def test_single_steps_are_compared_inside_windows_only():
    steps = np.unique(np.r_[np.arange(0, 1000, 50), np.arange(400, 501)])
    flip = (-1.0) ** np.arange(len(steps))
    one = xr.Dataset(
        {
            "test_loss": (("run", "step"), (flip + 2)[None]),
            "same": (("run", "step"), flip[None]),
            "train_loss": (("run", "step"), np.ones((1, len(steps)))),
            "train_accuracy": (("run", "step"), np.ones((1, len(steps)))),
        },
        {"step": steps, "label": ("run", ["x"]), "seed": ("run", [0])},
        {"recipe": json.dumps({"schedule": {"every": 50}})},
    )
    assert studies.tracking(one, ("same",)).agreement_raw.item() == 1


def test_below_start_waits_for_the_fit():
    med = [2, 1, 3, 3, 1.5, 1]
    fit = [0, 0, 1, 1, 1, 1]
    found = studies.below_start(record(test_loss=np.ones(6), train_accuracy=fit, med_M1=med))
    assert found.tolist() == [40]


def test_table_1_reads_ceilings_and_draws_the_same_training_sets(tiny_records):
    holes = tiny_records["holes"].copy(deep=True)
    holes["train_accuracy"][:] = 1.0
    count = holes.sizes["step"]
    holes["test_accuracy"][:] = np.r_[np.linspace(0, 0.8, count - 3), 0.6, 0.6, 0.6]
    study = studies.table_1(holes)
    assert study.row.values.tolist() == ["square 2", "square 3", "strip 2", "strip 3"]
    assert float(study.U.max()) <= 0.8 and (study.L <= study.U).all()
    for run in range(holes.sizes["run"]):
        mask, hole = studies.mask_of(holes, run), studies.hole_of(holes, run)
        assert not (mask & hole).any()
        recipe = experiments.EXPERIMENTS["holes"](**{"p": 7, "d_model": 8, "seeds": 2, **TINY["holes"]}).runs[run]
        np.testing.assert_array_equal(mask.ravel(), recipe.task.in_train(recipe.seed))
    # square 2 at p = 7 is k = 30 of 97
    assert study.paper_U.sel(row="square 2").item() == theory.TABLE_1[0].highest


def test_the_highest_median_of_table_1_does_not_wait_for_the_fit(tiny_records):
    record = tiny_records["holes"].copy(deep=True)
    record["train_accuracy"][:] = 0.0
    record["test_accuracy"][:] = 0.25
    study = studies.table_1(record)
    assert np.isnan(study.U).all() and (study.highest == 0.25).all()


def test_the_onset_of_table_1_is_looked_for_in_the_whole_run(tiny_records):
    record = tiny_records["holes"].copy(deep=True)
    record.attrs["recipe"] = json.dumps({"schedule": {"every": 1}})
    late = np.arange(record.sizes["step"]) >= record.sizes["step"] - 3
    record["train_accuracy"][:] = late  # fits at the end, right long before
    record["test_accuracy"][:] = 0.8
    assert (studies.table_1(record).onset == 0).all()


def test_a_training_set_is_drawn_again_for_any_of_a_records_runs(tiny_records):
    record = tiny_records["seeds_apart"]
    one = record.isel(run=np.flatnonzero(record.label.values == "one split"))
    np.testing.assert_array_equal(studies.mask_of(one, 0), studies.mask_of(one, 1))
    own = record.isel(run=np.flatnonzero(record.label.values == "own split"))
    assert (studies.mask_of(own, 0) != studies.mask_of(own, 1)).any()
    test = ~studies.mask_of(own, 1)
    assert studies.own_share(own)[1] == pytest.approx((~test.T & test).sum() / test.sum())


def test_runs_at_the_papers_sizes_are_told_from_stand_ins(tiny_records):
    record = tiny_records["base"]
    assert not studies.as_paper("base", record).any()
    count = record.sizes["run"]
    full = record.assign_coords(p=("run", [97] * count), d_model=("run", [128] * count))
    assert studies.as_paper("base", full).all()


def test_the_floor_of_a_curve_waits_for_the_fit():
    found = studies.floor(record(test_loss=np.ones(4), train_accuracy=[0, 1, 1, 1], med=[1, 2, 5, 4]), "med")
    assert found.tolist() == [4]  # t_fit itself does not count


def test_symmetry_shares_are_those_of_the_dossier_settings():
    form = "n**2 + n*m + m**2"
    assert studies.symmetry_share(form, 97, 0.5, ["mirror"]) == pytest.approx(0.495, abs=0.001)
    assert studies.symmetry_share(form, 97, 0.7, ["mirror"]) == pytest.approx(0.693, abs=0.001)
    assert studies.symmetry_share("n*m", 97, 0.3) == pytest.approx(0.652, abs=0.01)
    assert studies.symmetry_share("n**2 + m**2", 97, 0.2) == pytest.approx(0.779, abs=0.01)
    assert studies.symmetry_share("n**3 + m**3", 97, 0.2) == pytest.approx(0.967, abs=0.01)
    assert studies.symmetry_share("n**3 + n*m + m**3", 97, 0.5) == pytest.approx(0.496, abs=0.01)
    assert studies.symmetry_share("n - m", 97, 0.3) == pytest.approx(0.297, abs=0.001)


@pytest.mark.parametrize("f", studies.KEPT)
def test_symmetries_keep_the_answers(f):
    p = 13
    table = studies.modular_function(f, p)
    for name in studies.KEPT[f]:
        for move in studies.SYMMETRIES[name](p):
            (a, b), (c, d) = move
            i, j = np.mgrid[:p, :p]
            np.testing.assert_array_equal(table[(a * i + b * j) % p, (c * i + d * j) % p], table)


def test_the_coverage_study_has_the_exact_thresholds():
    study = studies.coverage(97)
    assert study.threshold.sel(surface="torus").values == pytest.approx(
        [0.8394, 0.5050, 0.3061, 0.1995, 0.1389], abs=1e-3
    )
    assert study.threshold.sel(surface="grid").values == pytest.approx(
        [0.8462, 0.5295, 0.3368, 0.2297, 0.1663], abs=1e-3
    )
    assert study.half.sel(surface="torus").values == pytest.approx([0.85, 0.52, 0.31, 0.20, 0.14], abs=0.02)
    assert study.most.sel(surface="grid").values == pytest.approx([0.92, 0.65, 0.45, 0.29, 0.24], abs=0.02)


def test_the_distances_of_table_1():
    study = studies.same_class(97)
    wanted = [27.6, 15.9, 12.8, 12.2, 15.4, 8.7, 10.1, 5.1, 16.1, 38.7, 35.9]
    assert study.matching.median("seed").values == pytest.approx(wanted, abs=1.5)
    torus = study.coverage.mean("seed").sel(surface="torus").values
    squares = study.kind.values == "square"
    errors = 100 * theory.coverage_errors(torus[squares], study.U.values[squares])
    assert study.D.values[errors.argmin()] == 12 and errors.min() == pytest.approx(4.3, abs=1)
    assert 100 * theory.coverage_errors(torus, study.U.values).min() == pytest.approx(15, abs=1)


def test_two_vocabularies_are_measured_one_distance_at_a_time(tiny_records):
    found = studies.two_vocabularies(tiny_records["diameters"]).isel(snapshot=-1)
    table = tiny_records["diameters"].W_E.values[0, -1].astype(float)
    a, b = table[:7], table[7:14]

    def distances(x, y):
        return [np.linalg.norm(one - other) for one in x for other in y]

    assert float(found.diameter_a) == pytest.approx(max(distances(a, a)))
    assert float(found.union) == pytest.approx(max(distances(table[:14], table[:14])))
    assert float(found.set_distance) == pytest.approx(min(distances(a, b)))


def test_special_has_every_run_once(tiny_records):
    study = studies.special(tiny_records)
    assert study.sizes["run"] == sum(tiny_records[name].sizes["run"] for name in studies.TRACKED)
    assert studies.special({}) is None


@pytest.mark.parametrize(
    "f, text",
    [("n**2 + n*m", "x² + xy"), ("n**4 - m**23", "x⁴ − y²³"), ("n ** 10 + m", "x¹⁰ + y"), ("n - m**3", "x − y³")],
)
def test_functions_are_written_with_whole_exponents(f, text):
    assert studies.pretty(f) == text
