"""Hexagons against chance, and images."""

import numpy as np
import xarray as xr

from grokbook.chapters.liu import Settings, groups, images
from tests.permutations import permutation_matrices


def test_a_regular_hexagon_is_no_misfit_and_rare_among_random_matrices():
    angle = np.pi / 3 * np.arange(6)
    embedding = np.stack([np.cos(angle), np.sin(angle)], -1) @ np.random.default_rng(0).normal(size=(2, 9))
    shape = groups.hexagon(np.hstack([embedding, np.zeros((6, 3))]) + 1e-9)
    assert shape.plane == (0, 1)
    matrices = permutation_matrices(3).reshape(6, -1)
    assert groups.principal(matrices)[1][:4].round(6).tolist() == [0.25] * 4
    assert groups.chance_of(60 / 110) < 0.01


def test_what_first_counted_as_a_hexagon_most_random_matrices_are():
    assert groups.chance_of(1) > 0.5


def test_the_index_is_read_where_held_out_products_become_known():
    curves = {"test_accuracy": [[0.2, 0.9, 0.8], [0.1, 0.2, 0.3]], "s3_rqi": [[0.0, 0.4, 1.0], [0.0, 0.5, 1.0]]}
    record = xr.Dataset({name: (("run", "step"), np.array(values)) for name, values in curves.items()})
    np.testing.assert_array_equal(groups.index_when_known(record), [0.4, np.nan])


def test_free_features_keep_the_means_of_their_classes():
    study = images.class_features(Settings())
    adam, descent, bare = (study.sel(way=way) for way in ("Adam", "gradient descent", "without 1/Z"))
    assert adam.ratio[-1] < 0.01 * adam.ratio[0]
    assert abs(descent.Z / descent.Z[0] - 1).max() < 1e-3
    assert 0.9 < bare.Z[-1] / bare.Z[0] < 1


def test_the_wait_of_images_is_judged_with_never_as_infinite():
    (claim,) = (one for one in images.section.claims if one.id == "fig20")
    sizes = [30, 100, 300, 900]
    for waits, outcome in (
        ([8_000, 900, 800, 700], "reproduced"),
        ([2_000, 1_500, 1_200, 1_000], "partly"),
        ([np.inf, 900, 800, 700], "reproduced"),
        ([700, 800, 900, 8_000], "not reproduced"),
    ):
        table = np.array(waits, float)[None, None]
        study = xr.Dataset({"steps": (("threshold", "seed", "images"), table)}, {"images": sizes})
        assert claim.judge({"image_times": study}).outcome == outcome, waits


def test_a_lower_bound_is_held_against_bounds_dealt_anew_within_a_size():
    accuracy = np.concatenate([np.linspace(0.1, 0.9, 8), np.linspace(0.2, 1.0, 8)])
    found = xr.Dataset({"accuracy": ("run", accuracy), "size": ("run", np.repeat([12, 18], 8))})
    assert groups.bound_by_luck(found.assign(predicted=0 * found.accuracy)) == 1
    assert groups.bound_by_luck(found.assign(predicted=found.accuracy - 0.05)) < 0.01
    np.testing.assert_allclose(groups.ahead_by_size(found.assign(implied=found.accuracy - found["size"])), [12, 18])
