"""Gu et al.'s theory against limits known by hand, slow loops, and enumeration of every training set."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from grokbook.chapters.gu import theory
from grokbook.measures import main_embedding_difference
from grokbook.tasks import modular_function

MIRROR, JOINT_SIGN, SIGN = [[0, 1], [1, 0]], [[-1, 0], [0, -1]], [[-1, 0], [0, 1]]


def addition(p):
    return modular_function("n + m", p)


def random_mask(p, fraction=0.3, seed=0):
    return theory.draw_training_mask(p, fraction, generator=seed)


def manhattan(p, a, b, torus):
    """The distance of two pairs, word for word."""
    steps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return sum(min(step, p - step) if torus else step for step in steps)


def every_training_set(p, size):
    pairs = list(itertools.product(range(p), repeat=2))
    return [set(chosen) for chosen in itertools.combinations(pairs, size)]


def uncovered_points(p, k, trained, torus):
    pairs = itertools.product(range(p), repeat=2)
    return [a for a in pairs if not any(manhattan(p, a, b, torus) < k for b in trained)]


# --- training sets with a hole ------------------------------------------------------------------------------


def test_holes_have_the_sizes_of_table_1():
    sizes = {(row.kind, row.size): int(theory.hole(row.kind, 97, row.size).sum()) for row in theory.TABLE_1}
    assert [sizes["square", k] for k in (30, 35, 40, 45, 50, 55, 60)] == [961, 1296, 1681, 2116, 2601, 3136, 3721]
    assert [sizes["strip", t] for t in (67, 60, 50, 40)] == [6596, 5917, 4947, 3977]


def test_a_hole_is_the_first_rows_and_for_a_square_the_first_columns():
    for i, j in itertools.product(range(7), repeat=2):
        assert theory.hole("square", 7, 2)[i, j] == (i <= 2 and j <= 2)
        assert theory.hole("strip", 7, 2)[i, j] == (i <= 2)


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        ("code", [2822] * 7 + [2813, 2822, 2822, 2822]),
        ("text", [2534, 2433, 2318, 2187, 2042, 1881, 1706, 843, 1047, 1338, 1629]),
    ],
)
def test_training_sets_have_the_sizes_of_each_split_and_avoid_the_hole(split, sizes):
    masks = theory.table_masks(theory.TABLE_1, [0, 1], split=split)
    assert masks.shape == (11, 2, 97, 97)
    np.testing.assert_array_equal(masks.sum((-2, -1)), np.transpose([sizes, sizes]))
    for row, draws in zip(theory.TABLE_1, masks, strict=True):
        assert not (draws & theory.hole(row.kind, 97, row.size)).any()
    assert (masks[:7, 0] != masks[:7, 1]).any((-2, -1)).all()


def test_a_training_set_is_uniform_outside_the_hole_and_named_by_its_seed():
    holed = theory.hole("square", 5, 1)
    generator = np.random.default_rng(0)
    often = np.mean([theory.draw_training_mask(5, 0.4, holed=holed, generator=generator) for _ in range(3000)], axis=0)
    np.testing.assert_allclose(often[~holed], 10 / 21, atol=0.04)
    np.testing.assert_array_equal(random_mask(7, seed=3), random_mask(7, seed=3))
    assert (random_mask(7, seed=3) != random_mask(7, seed=4)).any()


def test_training_size_does_not_lose_a_pair_to_rounding():
    assert theory.training_size(10, 0.29) == 29  # 0.29 * 100 is 28.999999999999996
    assert theory.training_size(97, 0.3) == 2822
    assert theory.training_size(10, 0.5, split="text") == 50
    assert theory.training_size(10, 0.5, 80, split="code") == 20
    assert theory.training_size(10, 0.5, 80, split="text") == 10


# --- theorem 3.12 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "size"), [(1, 1), (2, 5), (3, 13), (4, 25), (5, 41), (6, 61)])
def test_diamond_size_counts_the_points_below_a_distance(k, size):
    assert theory.diamond_size(k) == size
    assert sum(abs(i) + abs(j) < k for i, j in itertools.product(range(-k, k + 1), repeat=2)) == size


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("p", [2, 5, 6])
def test_diamond_counts_are_those_of_a_double_loop(p, torus):
    pairs = list(itertools.product(range(p), repeat=2))
    for k in range(1, 2 * p):
        slow = [sum(manhattan(p, a, b, torus) < k for b in pairs) for a in pairs]
        np.testing.assert_array_equal(theory.diamond_counts(p, k, torus=torus).ravel(), slow)


def test_diamonds_are_whole_on_the_torus_and_cut_in_the_corners_of_the_grid():
    assert (theory.diamond_counts(97, 5, torus=True) == 41).all()
    counts = theory.diamond_counts(97, 5)
    assert counts[0, 0] == counts[96, 0] == counts.min() == 15
    assert counts[48, 48] == counts.max() == 41


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_expected_uncovered_is_the_mean_over_every_training_set(k, torus):
    expected = theory.expected_uncovered(3, k, range(10), torus=torus)
    for m in (0, 1, 2, 4, 9):
        slow = [len(uncovered_points(3, k, trained, torus)) for trained in every_training_set(3, m)]
        assert expected[m] == pytest.approx(np.mean(slow), abs=1e-12)


@pytest.mark.parametrize("torus", [False, True])
def test_expected_covered_fraction_is_the_mean_over_every_training_set(torus):
    sets = every_training_set(3, 3)
    slow = [1 - len(uncovered_points(3, 2, trained, torus)) / 6 for trained in sets]
    assert theory.expected_covered_fraction(3, 2, 3 / 9, torus=torus) == pytest.approx(np.mean(slow), rel=1e-12)
    masks = np.array([[[(i, j) in trained for j in range(3)] for i in range(3)] for trained in sets])
    np.testing.assert_allclose(theory.covered_fraction(masks, 2, torus=torus), slow, rtol=1e-12)


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4, 9, 13])
def test_covered_mask_is_that_of_a_double_loop(k, torus):
    masks = np.array([random_mask(7, 0.05, seed) for seed in range(3)])
    covered = theory.covered_mask(masks, k, torus=torus)
    for mask, found in zip(masks, covered, strict=True):
        trained = list(zip(*np.nonzero(mask), strict=True))
        missing = uncovered_points(7, k, trained, torus)
        assert sorted(map(tuple, np.argwhere(~found))) == sorted(missing)


@pytest.mark.filterwarnings("error")
def test_covered_fraction_is_zero_without_and_nan_with_nothing_but_training_pairs():
    assert theory.covered_fraction(np.zeros((5, 5), bool), 3) == 0
    assert np.isnan(theory.covered_fraction(np.ones((5, 5), bool), 3))


@pytest.mark.parametrize(
    ("k", "bound", "torus", "grid", "covered_torus", "covered_grid"),
    [
        (2, 1.830, 0.8394, 0.8462, 0.75991, 0.75564),
        (3, 0.7038, 0.5050, 0.5295, 0.98619, 0.98410),
        (4, 0.3660, 0.3061, 0.3368, 0.99981, 0.99957),
        (5, 0.2232, 0.1995, 0.2297, 0.999999, 0.99999),
        (6, 0.1500, 0.1389, 0.1663, 1, 1),
    ],
)
def test_full_coverage_comes_before_the_lower_bound_or_after_it(k, bound, torus, grid, covered_torus, covered_grid):
    assert theory.coverage_bound(97, k) == pytest.approx(bound, abs=5e-4)
    on_torus = theory.coverage_threshold(97, k, torus=True)
    on_grid = theory.coverage_threshold(97, k)
    assert on_torus == pytest.approx(torus, abs=2e-4)
    assert on_grid == pytest.approx(grid, abs=2e-4)
    assert on_torus == pytest.approx(1 - 97 ** (-2 / theory.diamond_size(k)), abs=1e-3)
    assert theory.expected_covered_fraction(97, k, 0.3, torus=True) == pytest.approx(covered_torus, abs=2e-5)
    assert theory.expected_covered_fraction(97, k, 0.3) == pytest.approx(covered_grid, abs=2e-5)
    assert (on_grid < theory.coverage_bound(97, k)) == (k <= 4)  # theorem 3.12 calls the bound necessary


def test_the_threshold_is_the_first_size_that_leaves_at_most_one_point():
    for uncovered in (0.0, 1.0, 3.0):
        m = round(theory.coverage_threshold(7, 2, uncovered=uncovered) * 49)
        before, at = theory.expected_uncovered(7, 2, [m - 1, m])
        assert at <= uncovered < before
    assert theory.coverage_threshold(7, 2, uncovered=49) == 0


def test_the_bound_grows_with_p_and_solves_the_proofs_equation():
    assert [round(theory.coverage_bound(p, 4), 3) for p in (47, 97, 379)] == [0.308, 0.366, 0.475]
    m = round(theory.coverage_bound(379, 4) * 379**2)
    assert theory.independent_uncovered(379, 4, m) == pytest.approx(1, abs=2e-3)
    # without replacement fewer are needed: (1 - alpha)^C, not exp(-alpha C)
    assert theory.expected_uncovered(379, 4, m, torus=True) == pytest.approx(0.0144, abs=1e-3)


@pytest.mark.parametrize("torus", [False, True])
def test_coverage_times_say_when_each_point_is_first_covered(torus):
    orders = theory.coverage_times(5, 1, 3, torus=torus, generator=7)  # k = 1: when the point itself is drawn
    times = theory.coverage_times(5, 3, 3, torus=torus, generator=7)
    pairs = list(itertools.product(range(5), repeat=2))
    for order, time in zip(orders, times, strict=True):
        assert sorted(order.ravel()) == list(range(1, 26))
        for a in pairs:
            assert time[a] == min(order[b] for b in pairs if manhattan(5, a, b, torus) < 3)
    assert (orders[0] != orders[1]).any()


@pytest.mark.parametrize("torus", [False, True])
def test_simulation_agrees_with_the_exact_expectation(torus):
    sizes = [0, 100, 300, 961]
    draws = theory.simulate_uncovered(31, 3, sizes, 300, torus=torus, generator=0)
    assert draws.shape == (300, 4)
    exact = theory.expected_uncovered(31, 3, sizes, torus=torus)
    error = draws.std(0) / math.sqrt(300)
    assert (np.abs(draws.mean(0) - exact) <= 4 * error + 1e-9).all()
    assert exact[1] > 100 and 1 < exact[2] < 30  # the middle sizes are neither empty nor full


@pytest.mark.parametrize(
    ("k", "torus", "half", "most"), [(3, True, 0.52, 0.61), (5, True, 0.20, 0.25), (5, False, 0.23, 0.32)]
)
def test_full_coverage_happens_where_simulations_before_found_it(k, torus, half, most):
    found = [theory.full_coverage_fraction(97, k, q, draws=100, torus=torus, generator=0) for q in (0.5, 0.95)]
    np.testing.assert_allclose(found, [half, most], atol=0.03)


def test_full_coverage_fraction_is_a_quantile_of_the_largest_times():
    full = sorted(theory.coverage_times(7, 2, 11, generator=5).max((-2, -1)))
    found = [theory.full_coverage_fraction(7, 2, q, draws=11, generator=5) for q in (0, 0.5, 0.9, 1)]
    np.testing.assert_allclose(found, [full[i] / 49 for i in (0, 5, 9, 10)])


# --- theorem 3.10 -------------------------------------------------------------------------------------------


def slow_same_class_distances(mask, labels, torus):
    p = len(mask)
    pairs = list(itertools.product(range(p), repeat=2))
    near = np.full((p, p), np.inf)
    for a in pairs:
        known = [b for b in pairs if mask[b] and labels[b] == labels[a]]
        near[a] = min((manhattan(p, a, b, torus) for b in known), default=np.inf)
    return near


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("f", ["n + m", "n * m", "n**2 + n*m + m**2"])
def test_same_class_distance_is_that_of_a_double_loop(f, torus):
    masks = np.array([random_mask(7, 0.1, seed) for seed in range(3)])
    labels = modular_function(f, 7)
    found = theory.same_class_distance(masks, labels, torus=torus)
    for mask, distance in zip(masks, found, strict=True):
        np.testing.assert_array_equal(distance, slow_same_class_distances(mask, labels, torus))
    assert np.isinf(found).any() and (found[masks] == 0).all()


@pytest.mark.parametrize("torus", [False, True])
def test_same_class_coverage_counts_test_pairs_within_the_distance(torus):
    masks, labels, D = np.array([random_mask(7, 0.2, seed) for seed in range(4)]), addition(7), [0, 1, 2, 4, 100]
    found = theory.same_class_coverage(masks, labels, D, torus=torus)
    assert found.shape == (4, 5)
    for mask, coverage in zip(masks, found, strict=True):
        near = slow_same_class_distances(mask, labels, torus)[~mask]
        np.testing.assert_allclose(coverage, [np.mean(near <= d) for d in D])
    scalar = theory.same_class_coverage(masks[0], labels, 2, torus=torus)
    assert scalar.shape == () and scalar == found[0, 2]


def test_a_class_without_training_pairs_is_at_no_distance_at_all():
    mask = np.zeros((5, 5), bool)
    mask[0, 1] = True
    assert theory.same_class_coverage(mask, addition(5), np.inf) == 4 / 24


@pytest.mark.filterwarnings("error")
def test_same_class_coverage_of_no_test_pairs_is_nan_and_of_no_training_pairs_zero():
    assert np.isnan(theory.same_class_coverage(np.ones((5, 5), bool), addition(5), 3))
    assert theory.same_class_coverage(np.zeros((5, 5), bool), addition(5), np.inf) == 0


def test_a_random_set_covers_one_minus_its_complement_to_the_distance():
    masks = np.array([random_mask(97, 0.3, seed) for seed in range(3)])
    coverage = theory.same_class_coverage(masks, addition(97), [2, 4, 6, 8, 10]).mean(0)
    np.testing.assert_allclose(coverage, 1 - 0.7 ** np.array([2, 4, 6, 8, 10]), atol=0.01)


def test_on_the_torus_same_sums_are_an_even_distance_apart_and_on_the_grid_they_jump_by_p():
    one = np.zeros((11, 11), bool)
    one[5, 2] = True
    torus = theory.same_class_distance(one, addition(11))
    grid = theory.same_class_distance(one, addition(11), torus=False)
    same = addition(11) == 7
    assert sorted(torus[same]) == sorted(2 * min(s, 11 - s) for s in range(11))
    assert sorted(grid[same]) == [0, 2, 2, 4, 4, 6, 8, 10, 11, 11, 11]
    assert np.isinf(torus[~same]).all()


def test_a_point_of_a_square_hole_leaves_it_after_as_many_steps_as_it_is_deep():
    p, k = 23, 8
    holed = theory.hole("square", p, k)
    distance = theory.same_class_distance(~holed, addition(p))
    for i, j in zip(*np.nonzero(holed), strict=True):
        assert distance[i, j] == 2 * (min(i, j, k - i, k - j) + 1)


def test_matching_distance_inverts_the_coverage():
    mask, labels = random_mask(13, 0.2), addition(13)
    for torus in (True, False):
        occurring = np.unique(theory.same_class_distance(mask, labels, torus=torus)[~mask])
        occurring = occurring[np.isfinite(occurring)]
        coverage = theory.same_class_coverage(mask, labels, occurring, torus=torus)
        for D, share in zip(occurring, coverage, strict=True):
            assert theory.matching_distance(mask, labels, share, torus=torus) == pytest.approx(D)
        half = (coverage[0] + coverage[1]) / 2
        between = theory.matching_distance(mask, labels, half, torus=torus)
        assert between == pytest.approx((occurring[0] + occurring[1]) / 2)
        assert theory.matching_distance(mask, labels, coverage[0] / 2, torus=torus) == pytest.approx(1)
    assert theory.matching_distance(random_mask(7, 0.05), addition(7), 0.9) == math.inf


# --- table 1 ------------------------------------------------------------------------------------------------


def test_the_distance_that_explains_a_row_of_table_1_is_another_for_every_row():
    found = theory.table_matching_distances(theory.TABLE_1, [0, 1, 2])
    before = [27.6, 15.9, 12.8, 12.2, 15.4, 8.7, 10.1, 5.1, 16.1, 38.7, 35.9]
    np.testing.assert_allclose(found.mean(1), before, atol=1.5)
    row = theory.TABLE_1[4]
    mask = theory.draw_training_mask(97, 0.3, holed=theory.hole("square", 97, 50), generator=2)
    assert found[4, 2] == theory.matching_distance(mask, addition(97), row.highest)


def test_on_the_plain_grid_three_rows_need_a_distance_of_nearly_p():
    rows = [theory.TABLE_1[r] for r in (0, 9, 10)]  # k = 30, t = 50, t = 40
    assert (theory.table_matching_distances(rows, [0, 1], torus=False) > 88).all()


def test_one_distance_for_all_rows_fits_no_better_than_no_geometry_at_all():
    labels, highest = addition(97), np.array([row.highest for row in theory.TABLE_1])
    masks = theory.table_masks(theory.TABLE_1, [0, 1, 2])
    D = np.arange(0, 97)
    torus = theory.same_class_coverage(masks, labels, D).mean(1)  # (row, D)
    grid = theory.same_class_coverage(masks, labels, D, torus=False).mean(1)
    square, strip = slice(0, 7), slice(7, 11)
    errors = theory.coverage_errors(torus[square], highest[square])
    assert D[errors.argmin()] == 12 and errors.min() == pytest.approx(0.043, abs=0.01)
    assert theory.coverage_errors(grid[square], highest[square]).min() == pytest.approx(0.044, abs=0.01)
    assert theory.coverage_errors(torus[strip], highest[strip]).min() == pytest.approx(0.20, abs=0.01)
    assert theory.coverage_errors(torus, highest).min() == pytest.approx(0.15, abs=0.01)
    shares = [theory.hole_share(row) for row in theory.TABLE_1[:7]]
    right, error = theory.constant_hole_accuracy(shares, highest[square])
    assert (right, error) == (pytest.approx(0.315, abs=1e-3), pytest.approx(0.0494, abs=1e-4))


def test_coverage_errors_are_root_mean_squares_over_rows():
    errors = theory.coverage_errors([[0.5, 0.1], [0.5, 0.3]], [0.5, 0.9])
    np.testing.assert_allclose(errors, [math.sqrt(0.16 / 2), math.sqrt((0.16 + 0.36) / 2)])


def test_constant_hole_accuracy_is_the_best_of_a_fine_grid():
    shares, accuracy = np.array([0.2, 0.5, 0.9]), np.array([0.95, 0.6, 0.4])
    tried = np.linspace(0, 1, 10_001)
    errors = np.sqrt(np.mean((1 - shares + tried[:, None] * shares - accuracy) ** 2, axis=1))
    right, error = theory.constant_hole_accuracy(shares, accuracy)
    assert right == pytest.approx(tried[errors.argmin()], abs=1e-4)
    assert error == pytest.approx(errors.min(), abs=1e-6)


def test_the_hole_would_need_a_negative_accuracy_with_the_split_of_the_text():
    code = [theory.implied_hole_accuracy(row) for row in theory.TABLE_1]
    before = [0.934, 0.546, 0.393, 0.347, 0.427, 0.204, 0.244, 0.076, 0.257, 0.735, 0.833]
    np.testing.assert_allclose(code, before, atol=6e-4)
    text = [theory.implied_hole_accuracy(row, split="text") for row in theory.TABLE_1]
    assert text[7] == pytest.approx(1 - (1 - 0.0756) * 8566 / 6596) and text[7] < 0
    shares = [theory.hole_share(row) for row in theory.TABLE_1]
    before = [0.146, 0.197, 0.255, 0.321, 0.395, 0.476, 0.565, 1.0, 0.898, 0.751, 0.604]
    np.testing.assert_allclose(shares, before, atol=6e-4)


# --- symmetry -----------------------------------------------------------------------------------------------


def test_mirror_accuracy_counts_test_pairs_whose_mirror_was_trained():
    mask, holed = random_mask(9, 0.4), theory.hole("strip", 9, 3)
    test = [pair for pair in itertools.product(range(9), repeat=2) if not mask[pair]]
    assert theory.mirror_accuracy(mask) == np.mean([mask[j, i] for i, j in test])
    assert theory.mirror_accuracy(mask, holed) == np.mean([mask[j, i] or i > 3 for i, j in test])
    np.testing.assert_array_equal(theory.mirrored(np.array([mask, ~mask])), [mask.T, ~mask.T])
    both = theory.mirror_accuracy(np.array([mask, ~mask]), holed)
    np.testing.assert_array_equal(both, [theory.mirror_accuracy(one, holed) for one in (mask, ~mask)])


def test_no_pair_of_a_square_hole_has_a_trained_mirror():
    holed = theory.hole("square", 31, 12)
    mask = theory.draw_training_mask(31, 0.5, holed=holed, generator=0)
    assert not (theory.mirrored(mask) & holed).any()
    assert theory.mirror_accuracy(mask, holed) == pytest.approx(1 - 169 / (~mask).sum())


def test_mirrored_is_a_copy_of_the_mask():
    mask = random_mask(5)
    found = theory.mirrored(mask)
    found[:] = True
    assert not mask.all()


def test_orbits_are_the_pairs_that_the_moves_connect():
    p, moves = 7, [MIRROR, [[2, 0], [0, 1]]]  # 2 is a cube root of 1 mod 7
    orbit = theory.symmetry_orbits(p, moves)
    for start in itertools.product(range(p), repeat=2):
        reached, new = {start}, [start]
        while new:
            i, j = new.pop()
            for (a, b), (c, d) in moves:
                image = ((a * i + b * j) % p, (c * i + d * j) % p)
                if image not in reached:
                    reached.add(image)
                    new.append(image)
        assert {tuple(pair) for pair in np.argwhere(orbit == orbit[start]).tolist()} == reached


def test_orbits_do_not_change_what_the_task_answers():
    for f, moves in (
        ("n * m", [MIRROR, JOINT_SIGN]),
        ("n**2 + m**2", [MIRROR, SIGN]),
        ("n**3 + m**3", [MIRROR] + [[[w, 0], [0, 1]] for w in theory.roots_of_unity(13, 3)]),
    ):
        labels, orbit = modular_function(f, 13), theory.symmetry_orbits(13, moves)
        assert all(len(set(labels[orbit == number])) == 1 for number in np.unique(orbit))


def test_symmetry_share_counts_test_pairs_in_trained_orbits():
    masks = np.array([random_mask(11, 0.2, seed) for seed in range(2)])
    orbit = theory.symmetry_orbits(11, [MIRROR, SIGN])
    for mask, share in zip(masks, theory.symmetry_share(masks, [MIRROR, SIGN]), strict=True):
        known = set(orbit[mask])
        assert share == np.mean([number in known for number in orbit[~mask]])
    assert theory.symmetry_share(masks[0], [MIRROR]) == theory.mirror_accuracy(masks[0])
    assert theory.symmetry_share(masks[0], []) == 0


def test_expected_symmetry_share_is_the_mean_over_every_training_set():
    sets = every_training_set(3, 3)
    masks = np.array([[[(i, j) in trained for j in range(3)] for i in range(3)] for trained in sets])
    for moves in ([MIRROR], [MIRROR, JOINT_SIGN]):
        slow = theory.symmetry_share(masks, moves).mean()
        assert theory.expected_symmetry_share(3, 3 / 9, moves) == pytest.approx(slow, rel=1e-12)


@pytest.mark.parametrize(
    ("moves", "fraction", "share"),
    [
        ([MIRROR, JOINT_SIGN], 0.3, 0.652),  # x y, and the quadratic form with its joint sign
        ([MIRROR, SIGN], 0.2, 0.779),  # x^2 + y^2
        ([MIRROR, *([[w, 0], [0, 1]] for w in theory.roots_of_unity(97, 3))], 0.2, 0.967),  # x^3 + y^3
        ([MIRROR], 0.5, 0.495),  # x^2 + xy + y^2, figure 4
        ([MIRROR], 0.6, 0.594),
        ([MIRROR], 0.7, 0.693),
    ],
)
def test_memorised_symmetry_alone_answers_as_much_as_simulations_before_found(moves, fraction, share):
    assert theory.expected_symmetry_share(97, fraction, moves) == pytest.approx(share, abs=3e-3)


def test_roots_of_unity_solve_their_equation():
    assert theory.roots_of_unity(97, 3) == (1, 35, 61)
    assert theory.roots_of_unity(47, 3) == (1,)  # cubing is a bijection there
    assert theory.roots_of_unity(8, 2) == (1, 3, 5, 7)


# --- theorems 3.5 and 3.8 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("f", ["n + m", "n * m", "n**2 + m**2"])
def test_class_centroids_are_means_over_the_pairs_of_a_class(f):
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, 7, 3))
    labels, mask = modular_function(f, 7), random_mask(7, 0.6)
    found = theory.class_centroids(first, labels, second=second, mask=mask)
    for r in range(7):
        sums = [
            first[i] + second[j] for i, j in itertools.product(range(7), repeat=2) if mask[i, j] and labels[i, j] == r
        ]
        np.testing.assert_allclose(found[r], np.mean(sums, axis=0) if sums else [np.nan] * 3, rtol=1e-12)
    shared = theory.class_centroids(first, labels)
    np.testing.assert_allclose(shared, theory.class_centroids(first, labels, second=first), rtol=1e-15)


@pytest.mark.filterwarnings("error")
def test_the_centroid_of_an_empty_class_is_nan():
    mask = addition(5) != 3
    assert np.isnan(theory.class_centroids(np.ones((5, 2)), addition(5), mask=mask)).all(1).tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("d", [2, 128])
def test_every_class_of_the_whole_grid_has_one_centroid(d):
    first, second = np.random.default_rng(d).standard_normal((2, 13, d))
    common = first.mean(0) + second.mean(0)
    np.testing.assert_allclose(theory.common_centroid(first, second), common, rtol=1e-14)
    np.testing.assert_allclose(theory.common_centroid(first), 2 * first.mean(0), rtol=1e-14)
    centroids = theory.class_centroids(first, addition(13), second=second)
    np.testing.assert_allclose(centroids, np.tile(common, (13, 1)), atol=1e-12)
    products = theory.class_centroids(first, modular_function("n * m", 13), second=second)
    assert np.abs(products - common).max() > 0.1  # it takes classes that use every residue once


def test_every_ball_of_theorem_3_5_holds_the_common_centroid_whatever_its_centre():
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, 11, 5))
    centres = 3 * generator.standard_normal((11, 5))
    radii = theory.class_radii(first, addition(11), centres, second=second)
    common = theory.common_centroid(first, second)
    assert (np.linalg.norm(common - centres, axis=1) <= radii).all()
    for r in range(11):
        lengths = [np.linalg.norm(first[i] + second[(r - i) % 11] - centres[r]) for i in range(11)]
        assert radii[r] == pytest.approx(max(lengths), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_3_8_bounds_every_step_of_any_embedding_without_a_word_about_weights(seed):
    generator = np.random.default_rng(seed)
    embedding, centres = generator.standard_normal((2, 11, 4))
    radii = theory.class_radii(embedding, addition(11), centres)
    bound = theory.neighbour_bound(centres, radii)
    assert main_embedding_difference(embedding, reduction="none").max() <= bound
    slow = [np.linalg.norm(centres[(r + 1) % 11] - centres[r]) + radii[(r + 1) % 11] + radii[r] for r in range(11)]
    assert bound == pytest.approx(min(slow), rel=1e-13)


def test_the_bound_of_theorem_3_8_is_reached_by_a_line_of_two_tokens():
    embedding = np.array([[0.0], [1.0]])  # sums: class 0 has 0 and 2, class 1 has 1 and 1
    radii = theory.class_radii(embedding, addition(2), [[1.0], [1.0]])
    np.testing.assert_array_equal(radii, [1, 0])
    assert theory.neighbour_bound([[1.0], [1.0]], radii) == 1


def test_the_proof_of_theorem_3_10_bounds_nothing_on_an_antidiagonal():
    embedding = np.random.default_rng(0).standard_normal((11, 6))
    bounds = theory.imitation_bounds(embedding, (3, 4), (6, 1))
    assert (
        bounds.printed
        == 0
        < bounds.actual
        == pytest.approx(np.linalg.norm(embedding[3] + embedding[4] - embedding[6] - embedding[1]))
    )


def test_the_mean_step_is_no_bound_and_the_largest_is():
    line = np.array([[0.0], [0], [0], [0], [5], [0], [0]])  # one token far away: steps 0 but for two of 5
    bounds = theory.imitation_bounds(line, (3, 0), (4, 0))
    assert bounds == (5, pytest.approx(10 / 7), pytest.approx(10 / 7), 5)
    embedding = np.random.default_rng(1).standard_normal((7, 2))
    steps = [np.linalg.norm(embedding[(i + 1) % 7] - embedding[i]) for i in range(7)]
    for a in itertools.product(range(7), repeat=2):
        for b in itertools.product(range(7), repeat=2):
            bounds = theory.imitation_bounds(embedding, a, b)
            assert bounds.actual <= bounds.largest + 1e-12
            assert bounds.largest == pytest.approx(manhattan(7, a, b, False) * max(steps))
            assert bounds.mean == pytest.approx(manhattan(7, a, b, False) * np.mean(steps))
            assert bounds.printed == pytest.approx(abs(a[0] - b[0] + a[1] - b[1]) * np.mean(steps))


# --- lemmas 3.4 and B.1 -------------------------------------------------------------------------------------


def test_norms_obey_lemma_3_4_with_equality_for_rank_one_and_orthogonal_matrices():
    generator = np.random.default_rng(0)
    random = generator.standard_normal((3, 5, 8))
    bounds = theory.norm_bounds(random)
    assert (bounds.operator < bounds.frobenius).all() and (bounds.frobenius < bounds.upper).all()
    vectors = generator.standard_normal((1000, 8, 1))
    stretched = np.linalg.norm(random[0] @ vectors, axis=1) / np.linalg.norm(vectors, axis=1)
    assert 0.7 * bounds.operator[0] < stretched.max() <= bounds.operator[0]
    np.testing.assert_allclose(bounds.frobenius, [math.sqrt(sum(x * x for x in m.ravel())) for m in random])
    np.testing.assert_allclose(bounds.upper, math.sqrt(5) * bounds.operator)
    one = theory.norm_bounds(np.outer(random[0, 0], random[1, 1]))
    assert one.operator == pytest.approx(one.frobenius, rel=1e-12)
    orthogonal = theory.norm_bounds(np.linalg.qr(random[0].T)[0])
    assert orthogonal.frobenius == pytest.approx(orthogonal.upper, rel=1e-12) == pytest.approx(math.sqrt(5))


def distance_of_affine_hull(points, rounds=20_000):
    """By projecting the origin on the hull with plain gradient descent."""
    point, edges = points[0].copy(), points[1:] - points[0]
    rate = 1 / np.linalg.norm(edges, 2) ** 2
    for _ in range(rounds):
        point -= rate * edges.T @ (edges @ point)
    return np.linalg.norm(point)


@pytest.mark.parametrize("p", [5, 6, 7])
def test_the_smallest_map_is_the_inverse_distance_of_the_affine_hull_of_the_sums(p):
    tokens = np.random.default_rng(p).standard_normal((p, 9))
    sums = np.array([tokens[i] + tokens[-i % p] for i in range(p)])
    norm = theory.smallest_operator_norm(tokens, 3.0)
    assert norm == pytest.approx(3 / distance_of_affine_hull(sums), rel=1e-6)
    r = np.array([0.0, 3.0])
    least_squares = np.linalg.lstsq(sums, np.tile(r, (p, 1)), rcond=None)[0].T  # (2, 9)
    np.testing.assert_allclose(least_squares @ sums.T, np.tile(r, (p, 1)).T, atol=1e-10)
    assert np.linalg.norm(least_squares, 2) == pytest.approx(norm, rel=1e-8)
    np.testing.assert_allclose(np.outer(r, theory.smallest_map(tokens)), least_squares, atol=1e-10)
    assert theory.printed_smallest_norm(tokens, 3.0) == 3 / (2 * np.linalg.norm(tokens, axis=1).max())
    assert norm > 1.5 * theory.printed_smallest_norm(tokens, 3.0)


def test_lemma_b_1_is_reached_by_tokens_that_are_all_the_same_and_by_them_alone():
    one = np.random.default_rng(0).standard_normal(9)
    collapsed = np.tile(one, (7, 1))
    assert theory.smallest_operator_norm(collapsed) == pytest.approx(0.5 / np.linalg.norm(one), rel=1e-12)
    assert theory.printed_smallest_norm(collapsed) == pytest.approx(0.5 / np.linalg.norm(one), rel=1e-12)
    for other in (0, 3):  # turning one token away, at the same length, costs
        turned = collapsed.copy()
        turned[other] = np.linalg.norm(one) * np.eye(9)[0]
        assert theory.smallest_operator_norm(turned) > 1.01 * theory.printed_smallest_norm(turned)


def test_spread_tokens_need_far_more_than_lemma_b_1_says():
    generator = np.random.default_rng(0)
    tokens = generator.standard_normal((97, 128))
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    assert theory.printed_smallest_norm(tokens) == pytest.approx(0.5)
    assert 4.5 < theory.smallest_operator_norm(tokens) < 8


def test_there_is_no_map_when_the_sums_surround_the_origin():
    circle = theory.circle_embedding(7, [1])  # the sums are 2 cos(2 pi i / 7) times one vector
    assert theory.smallest_operator_norm(circle) == math.inf
    assert np.isinf(theory.smallest_map(np.random.default_rng(0).standard_normal((13, 4)))).all()


# --- definition 5.1 -----------------------------------------------------------------------------------------


def nearest_by_enumeration(points):
    """The shortest vector of a hull: the best of all simplices whose affine projection is inside."""
    best = min(np.linalg.norm(points, axis=1))
    for size in range(2, points.shape[1] + 2):
        for chosen in itertools.combinations(points, size):
            chosen = np.array(chosen)
            edges = chosen[1:] - chosen[0]
            shares = np.linalg.lstsq(edges.T, -chosen[0], rcond=None)[0]
            if (shares >= 0).all() and shares.sum() <= 1:
                best = min(best, np.linalg.norm(chosen[0] + shares @ edges))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_nearest_point_is_the_best_of_all_simplices(seed):
    generator = np.random.default_rng(seed)
    d = 1 + seed % 3
    points = generator.standard_normal((6, d)) + (seed % 4) * 0.7
    weights = theory.nearest_point(points)
    assert weights.shape == (6,) and (weights >= 0).all() and weights.sum() == pytest.approx(1)
    assert np.linalg.norm(weights @ points) == pytest.approx(nearest_by_enumeration(points), abs=1e-7)


def separated_by_an_axis(A, B):
    """The separating axis theorem for two tetrahedra in general position."""
    faces = [np.cross(q - p, r - p) for T in (A, B) for p, q, r in itertools.combinations(T, 3)]
    edges_a, edges_b = ([q - p for p, q in itertools.combinations(T, 2)] for T in (A, B))
    axes = np.array(faces + [np.cross(a, b) for a in edges_a for b in edges_b])
    a, b = A @ axes.T, B @ axes.T
    return bool(((a.max(0) < b.min(0)) | (b.max(0) < a.min(0))).any())


def test_convex_separability_of_tetrahedra_is_that_of_the_separating_axis_theorem():
    generator = np.random.default_rng(0)
    outcomes = []
    for _ in range(100):
        A, B = generator.standard_normal((2, 4, 3))
        B = B + 0.5
        outcomes.append(theory.convexly_separable(A, B))
        assert outcomes[-1] == separated_by_an_axis(A, B)
    assert 20 < sum(outcomes) < 95


def test_a_hull_gap_proves_itself():
    generator = np.random.default_rng(1)
    for shift in (0.0, 0.5, 4.0):
        A, B = generator.standard_normal((6, 4)), generator.standard_normal((9, 4)) + shift
        gap = theory.hull_gap(A, B)
        direction = gap.nearest_a - gap.nearest_b
        if shift == 4:  # the slab between the nearest points keeps the sets apart, and is as wide as they are
            assert gap.distance == pytest.approx(np.linalg.norm(direction))
            assert (A @ direction).min() - (B @ direction).max() == pytest.approx(gap.distance**2, rel=1e-9)
            assert gap.margin == pytest.approx(gap.distance, rel=1e-9)
        elif shift == 0:  # both hulls hold the same point
            assert gap.distance < 1e-6 and gap.margin < 0


def test_hulls_known_by_hand():
    square, other = [[0.0, 0], [1, 0], [0, 1], [1, 1]], [[3.0, 0.5], [4, 0], [4, 1]]
    gap = theory.hull_gap(square, other)
    assert gap.distance == pytest.approx(2) == pytest.approx(gap.margin)
    np.testing.assert_allclose([gap.nearest_a, gap.nearest_b], [[1, 0.5], [3, 0.5]], atol=1e-9)
    assert not theory.convexly_separable(square, [[1.0, 0.5], [2, 2]])  # touching is having a point in common
    assert not theory.convexly_separable(square, [[0.5, 0.5]])
    assert theory.convexly_separable(square, [[1.001, 0.5]])
    assert theory.convexly_separable(1e-6 * np.array(square), 1e-6 * np.array(other))


def test_the_exclusive_or_is_separable_topologically_only():
    even, odd = [[0.0, 0], [1, 1]], [[0.0, 1], [1, 0]]
    assert theory.topologically_separable(even, odd)
    assert not theory.convexly_separable(even, odd)
    assert not theory.topologically_separable(even, [[0.0, 1], [1, 1]])
    assert theory.topologically_separable([[0.0, 1, 2]], [[0.0, 1, 3], [2, 1, 0]])
    assert not theory.topologically_separable([[0.0, 1, 2], [5, 5, 5]], [[0.0, 1, 2]])


def test_separability_after_a_projection_is_the_stronger_one():
    generator = np.random.default_rng(0)
    before_only = both = 0
    for _ in range(1000):
        A, B = generator.standard_normal((2, 4, 3))
        plane = generator.standard_normal((3, 2))
        if theory.convexly_separable_on(A, B, plane):
            assert theory.convexly_separable(A, B)  # definition 5.1's text has it the other way round
            both += 1
        else:
            before_only += theory.convexly_separable(A, B)
    assert both > 50 and before_only > 50


def test_a_line_between_the_nearest_points_is_a_subspace_that_separates():
    generator = np.random.default_rng(2)
    A, B = generator.standard_normal((5, 3)), generator.standard_normal((5, 3)) + 3
    gap = theory.hull_gap(A, B)
    assert gap.margin > 0
    assert theory.convexly_separable_on(A, B, (gap.nearest_a - gap.nearest_b)[:, None])


def test_projection_is_orthogonal_whatever_spans_the_subspace():
    A, B = [[0.0, 0, 0], [1, 1, 9]], [[0.0, 0, 5], [1, 0, 0]]
    first_two = [[1.0, 1], [0, 1], [0, 0]]
    for separable, space in ((True, np.eye(3)), (False, first_two), (False, np.eye(3)[:, :2])):
        assert theory.convexly_separable_on(A, B, space) == separable


@pytest.mark.parametrize("d", ["circle", 4, 128])
def test_no_two_classes_of_sums_are_convexly_separable(d):
    embedding = theory.circle_embedding(13, [1]) if d == "circle" else np.random.default_rng(0).standard_normal((13, d))
    assert not theory.separable_classes(embedding, addition(13)).any()


def test_separable_classes_are_found_where_there_are_some():
    line = np.array([[0.0], [1.0], [2.0]])
    classes = np.add.outer(range(3), range(3)).clip(0, 3)  # sums 0, 1, 2 and 3 or more
    np.testing.assert_array_equal(theory.separable_classes(line, classes), ~np.eye(4, dtype=bool))
    shifted = theory.separable_classes(line, np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]]), second=10 * line)
    assert not shifted.any()  # the second operand spreads each class over all
    gaps = theory.separable_classes(line, np.array([[0, 0, 0], [2, 2, 2], [2, 2, 2]]), second=line / 10)
    assert gaps.tolist() == [[False, False, True], [False] * 3, [True, False, False]]  # class 1 is empty


# --- the flow in the unit cube ------------------------------------------------------------------------------


def random_states(*shape, seed=0):
    return np.random.default_rng(seed).random((*shape, 3))


def gradient(f, state, h=1e-6):
    return np.array([(f(state + h * e) - f(state - h * e)) / (2 * h) for e in np.eye(3)])


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_the_flow_is_equations_7_to_9_and_runs_down_its_potential(target):
    for state in random_states(5):
        x, w, u = state
        rest = -(x * w * u - target)
        np.testing.assert_allclose(theory.flow(state, target), [rest * w * u, rest * x * u, rest * x * w], rtol=1e-13)
        downhill = -gradient(lambda s: theory.flow_potential(s, target), state)
        np.testing.assert_allclose(theory.flow(state, target), downhill, atol=1e-9)
        slow = np.array([gradient(lambda s, a=axis: theory.flow(s, target)[a], state) for axis in range(3)])
        np.testing.assert_allclose(theory.flow_jacobian(state, target), slow, atol=1e-8)
    assert theory.flow_potential([2.0, 3.0, 0.5], 1) == 2
    assert theory.flow(random_states(4, 5)).shape == (4, 5, 3)
    assert theory.flow_jacobian(random_states(4, 5)).shape == (4, 5, 3, 3)


def test_the_corner_is_stable_but_not_asymptotically():
    np.testing.assert_allclose(np.linalg.eigvalsh(theory.flow_jacobian([1.0, 1, 1])), [-3, 0, 0], atol=1e-12)
    surface = np.array([1.3, 0.7, 1 / (1.3 * 0.7)])  # every point with x w u = 1 is an equilibrium
    np.testing.assert_allclose(theory.flow(surface), 0, atol=1e-15)
    np.testing.assert_array_equal(theory.flow_jacobian([0.0, 0, 0]), np.zeros((3, 3)))
    assert (
        np.linalg.eigvalsh(theory.flow_jacobian([0.5, 0, 0])).max() == 0.5
    )  # the axes are unstable for the right answer
    assert (
        np.linalg.eigvalsh(theory.flow_jacobian([0.5, 0.5, 0], target=0)).max() == 0
    )  # the planes attract for the others


def test_trajectories_are_the_closed_form_on_the_diagonal():
    times = np.array([0, 0.5, 3, 40])
    start = np.array([0.9, 0.9, 0.9])
    path = theory.flow_path(start, times, target=0)
    exact = (0.9**-4 + 4 * times) ** -0.25  # x' = -x^5
    np.testing.assert_allclose(path, np.repeat(exact[:, None], 3, 1), atol=1e-9)


def test_trajectories_end_at_the_limit_and_conserve_the_differences_of_squares():
    start = random_states(30) * 0.9 + 0.1
    for target in (1.0, 0.3):
        path = theory.flow_path(start, [0, 1, 60], target)
        assert path.shape == (3, 30, 3)
        np.testing.assert_array_equal(path[0], start)
        np.testing.assert_allclose(path[-1], theory.flow_limit(start, target), atol=1e-6)
        expected = np.tile(
            np.stack([start[:, 0] ** 2 - start[:, 1] ** 2, start[:, 1] ** 2 - start[:, 2] ** 2], -1), (3, 1, 1)
        )
        np.testing.assert_allclose(theory.flow_invariants(path), expected, atol=1e-8)
        potential = theory.flow_potential(path, target)
        assert (np.diff(potential, axis=0) < 0).all()


def test_limits_known_by_hand():
    np.testing.assert_allclose(theory.flow_limit([0.9, 0.5, 0.2]), [1.2210, 0.9647, 0.8490], atol=5e-5)
    np.testing.assert_allclose(theory.flow_limit([0.1, 0.2, 0.9]), [0.8835, 0.9003, 1.2572], atol=6e-5)
    np.testing.assert_allclose(theory.flow_limit([0.3, 0.3, 0.3]), [1, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(theory.flow_limit([1.5, 1.5, 1.5], 8), [2, 2, 2], rtol=1e-14)
    np.testing.assert_array_equal(theory.flow_limit([0.3, 0, 0]), [0.3, 0, 0])
    np.testing.assert_allclose(theory.flow_limit([0.5, 0.3, 0.3], 0), [0.4, 0, 0], atol=1e-15)
    limit = theory.flow_limit([0.0, 0.3, 0.3])  # one coordinate at 0 starts to move
    np.testing.assert_allclose([limit.prod(), limit[1] ** 2 - limit[0] ** 2], [1, 0.09], rtol=1e-12)
    far = theory.flow_limit([5.0, 4.0, 0.001])
    np.testing.assert_allclose([far.prod(), far[0] ** 2 - far[1] ** 2], [1, 9], rtol=1e-9)


def test_nearly_no_start_in_the_cube_reaches_the_corner():
    limits = theory.flow_limit(random_states(2000))
    np.testing.assert_allclose(limits.prod(-1), 1, rtol=1e-12)
    assert (limits.max(-1) > 1).all()  # outside the cube
    missed = np.linalg.norm(limits - 1, axis=-1)
    assert missed.mean() == pytest.approx(0.187, abs=0.006)
    assert np.median(missed) == pytest.approx(0.189, abs=0.008)
    assert 0.36 < missed.max() < 0.48
    assert (missed < 0.05).mean() == pytest.approx(0.07, abs=0.02)


def test_the_printed_lyapunov_function_falls_in_the_cube_and_rises_beside_it():
    for state in random_states(5, seed=1):
        assert theory.printed_lyapunov(state) == pytest.approx(sum((s - 1) ** 2 for s in state))
        along = gradient(theory.printed_lyapunov, state) @ theory.flow(state)
        assert theory.lyapunov_rate(state) == pytest.approx(along, abs=1e-8)
    assert (theory.lyapunov_rate(random_states(5000)) < 0).all()
    assert theory.lyapunov_rate([1.104, 0.904, 1.004]) == pytest.approx(3.2e-5, abs=1e-6)
    assert theory.lyapunov_rate([0.5, 0.5, 0.5]) == pytest.approx(2 * 0.875 * (0.375 - 0.75))


def test_the_printed_lyapunov_function_rises_on_a_part_of_every_small_sphere():
    assert theory.rising_share(0.1, 100_000, generator=0) == pytest.approx(0.0143, abs=0.002)
    assert theory.rising_share(0.01, 100_000, generator=0) > 0
    assert theory.rising_share(0.1, 50, generator=1) in np.arange(51) / 50


# --- MED beside Fourier power and local complexity ----------------------------------------------------------


@pytest.mark.parametrize("p", [2, 8, 13])
@pytest.mark.parametrize("step", [1, 3])
def test_the_mean_square_step_is_a_sum_over_frequencies(p, step):
    embedding = np.random.default_rng(p).standard_normal((4, p, 5))
    power = theory.embedding_power(embedding)
    assert power.shape == (4, p)
    squares = [np.mean([np.sum((phi[(i + step) % p] - phi[i]) ** 2) for i in range(p)]) for phi in embedding]
    np.testing.assert_allclose(theory.mean_square_difference(power, step), squares, rtol=1e-10)
    np.testing.assert_allclose(power.sum(-1), np.square(embedding).sum((-2, -1)) / p, rtol=1e-12)


def test_a_circle_holds_its_power_at_its_frequency_and_steps_by_a_chord():
    circle = theory.circle_embedding(97, [5], 2.0)
    np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 2)
    np.testing.assert_allclose(circle[1], [2 * math.cos(10 * math.pi / 97), 2 * math.sin(10 * math.pi / 97)])
    power = theory.embedding_power(circle)
    assert sorted(np.flatnonzero(power > 1e-12)) == [5, 92]
    chord = 4 * math.sin(5 * math.pi / 97)
    assert theory.circle_med(97, [5], 2.0) == pytest.approx(chord) == pytest.approx(main_embedding_difference(circle))


def test_med_of_circles_depends_on_which_frequencies_were_picked():
    assert theory.circle_med(97, [1]) == pytest.approx(0.0648, abs=1e-4)
    assert theory.circle_med(97, [48]) == pytest.approx(1.9997, abs=1e-4)
    assert np.mean([theory.circle_med(97, [f]) for f in range(1, 49)]) == pytest.approx(1.286, abs=1e-3)
    several = theory.circle_embedding(97, [3, 20, 41], [1.0, 0.5, 2.0])
    assert several.shape == (97, 6)
    assert theory.circle_med(97, [3, 20, 41], [1.0, 0.5, 2.0]) == pytest.approx(main_embedding_difference(several))
    generator = np.random.default_rng(0)
    picked = [theory.circle_med(97, generator.permutation(np.arange(1, 49))[:5], 0.2**0.5) for _ in range(2000)]
    assert (np.mean(picked), np.std(picked)) == (pytest.approx(1.40, abs=0.02), pytest.approx(0.22, abs=0.02))


def test_relabelling_the_residues_moves_a_circle_to_another_frequency():
    circle = theory.circle_embedding(13, [2])
    np.testing.assert_allclose(circle[3 * np.arange(13) % 13], theory.circle_embedding(13, [6]), atol=1e-12)
    frequencies = theory.embedding_power(circle)
    assert theory.mean_square_difference(frequencies, 3) == pytest.approx(theory.circle_med(13, [6]) ** 2)


def test_initial_difference_is_the_mean_length_of_a_gaussian():
    assert theory.initial_difference(128) == pytest.approx(1.4115, abs=5e-5)
    assert theory.initial_difference(128) == pytest.approx(math.sqrt(2) * (1 - 1 / 512), rel=1e-5)
    assert theory.initial_difference(1) == pytest.approx(2 / math.sqrt(math.pi))  # |N(0, 2)|
    assert theory.initial_difference(2) == pytest.approx(math.sqrt(math.pi / 2))  # Rayleigh


def test_local_complexity_counts_near_hyperplanes_and_ignores_scale():
    generator = np.random.default_rng(0)
    weights, biases, samples = (generator.standard_normal(shape) for shape in ((20, 4), (20,), (7, 4)))
    found = theory.local_complexity(weights, biases, samples, 0.5)
    for n, sample in enumerate(samples):
        distances = [abs(w @ sample + b) / np.linalg.norm(w) for w, b in zip(weights, biases, strict=True)]
        assert found[n] == sum(distance < 0.5 for distance in distances)
    assert 0 < found.sum() < 140
    np.testing.assert_array_equal(theory.local_complexity(-7 * weights, -7 * biases, samples, 0.5), found)
    by_hand = theory.local_complexity([[2.0, 0], [0, 1], [0, 0]], [-2.0, 0, 0], [[1.0, 0.3], [0, 0]], 0.4)
    assert by_hand.tolist() == [2, 1]  # the lines x = 1 and y = 0, and a neuron without a line


# --- the earlier version's theorem 3 and assumption 1 -------------------------------------------------------


def test_a_shift_keeps_the_answer_when_p_divides_it():
    p, labels = 7, addition(7)
    for d1, d2 in itertools.product(range(-8, 9), repeat=2):
        kept = (np.roll(labels, (d1, d2), (0, 1)) == labels).all()
        assert theory.shift_keeps_answer(p, d1, d2) == kept
    assert not theory.shift_keeps_answer(7, 0, 1)  # though 1 divides 7, as printed


def test_the_sum_of_assumption_1_grows_like_a_logarithm():
    sums = [theory.neighbour_weight(p, 0.3) for p in (47, 97, 211, 397)]
    np.testing.assert_allclose(sums, [5.0, 6.4, 7.8, 9.0], atol=0.06)
    slope = (sums[3] - sums[1]) / math.log(397 / 97)
    assert slope == pytest.approx(0.3 * 2 * math.pi, rel=0.01)


def test_neighbour_weight_is_a_sum_over_neighbours_on_the_grid():
    i, j = 1, 5
    near = {(u - i, v - j) for u, v in itertools.product(range(7), repeat=2)} - {(0, 0)}
    everywhere = sum(1 / (a * a + b * b) for a, b in near)
    inside = sum(1 / (a * a + b * b) for a, b in near if a and b)
    assert theory.neighbour_weight(7, 0.4, (i, j), axes=True) == pytest.approx(0.4 * everywhere)
    assert theory.neighbour_weight(7, 0.4, (i, j)) == pytest.approx(0.4 * inside)
    assert theory.neighbour_weight(7, 0.4) == theory.neighbour_weight(7, 0.4, (3, 3))


# --- defaults and the smallest sizes ------------------------------------------------------------------------


def test_coverage_is_on_the_plain_grid_and_same_class_coverage_on_the_torus_unless_asked():
    mask, labels = np.array([random_mask(9, 0.1), random_mask(9, 0.1, 1)]), addition(9)
    for function, arguments, default in (
        (theory.diamond_counts, (9, 3), False),
        (theory.expected_uncovered, (9, 3, [5, 8]), False),
        (theory.expected_covered_fraction, (9, 3, 0.1), False),
        (theory.covered_mask, (mask, 3), False),
        (theory.covered_fraction, (mask, 3), False),
        (theory.coverage_threshold, (9, 3), False),
        (lambda *a, **torus: theory.coverage_times(*a, generator=0, **torus), (9, 3, 4), False),
        (lambda *a, **torus: theory.simulate_uncovered(*a, generator=0, **torus), (9, 3, [5, 8], 4), False),
        (lambda *a, **torus: theory.full_coverage_fraction(*a, generator=0, **torus), (9, 3), False),
        (theory.same_class_distance, (mask, labels), True),
        (theory.same_class_coverage, (mask, labels, [2, 4, 6]), True),
        (theory.matching_distance, (mask[0], labels, 0.5), True),
        (theory.table_matching_distances, (theory.TABLE_1[:1], [0]), True),
    ):
        unasked, asked = function(*arguments), function(*arguments, torus=default)
        np.testing.assert_array_equal(unasked, asked)
        assert np.any(unasked != function(*arguments, torus=not default))


def test_other_defaults_are_the_papers_settings():
    row = theory.TABLE_1[9]
    assert theory.hole_share(row) == theory.hole_share(row, p=97, train_fraction=0.3, split="code")
    assert theory.hole_share(row) != theory.hole_share(row, split="text")
    assert theory.implied_hole_accuracy(row) == 1 - (1 - row.highest) / theory.hole_share(row)
    np.testing.assert_array_equal(
        theory.table_masks([row], [0]), theory.table_masks([row], [0], p=97, train_fraction=0.3, split="code")
    )
    text = theory.table_matching_distances([row], [0], split="text")
    assert text != theory.table_matching_distances([row], [0])
    assert theory.full_coverage_fraction(7, 2, generator=0) == theory.full_coverage_fraction(
        7, 2, 0.5, draws=200, generator=0
    )
    assert theory.coverage_threshold(7, 2) == theory.coverage_threshold(7, 2, uncovered=1)
    tokens = np.random.default_rng(0).standard_normal((5, 8))
    assert theory.smallest_operator_norm(tokens) == theory.smallest_operator_norm(tokens, 1)
    assert theory.printed_smallest_norm(tokens) == theory.printed_smallest_norm(tokens, 1)
    power, state = theory.embedding_power(tokens), random_states(1)[0]
    assert theory.mean_square_difference(power) == theory.mean_square_difference(power, 1)
    for function in (theory.flow, theory.flow_potential, theory.flow_jacobian, theory.flow_limit):
        np.testing.assert_array_equal(function(state), function(state, 1))
    np.testing.assert_array_equal(theory.flow_path(state, [1.0]), theory.flow_path(state, [1.0], 1, step=0.01))
    assert theory.circle_med(7, [2, 3]) == theory.circle_med(7, [2, 3], 1)
    np.testing.assert_array_equal(theory.circle_embedding(7, [2]), theory.circle_embedding(7, [2], 1))


def test_the_smallest_modulus_is_two():
    assert theory.hole("square", 2, 0).tolist() == [[True, False], [False, False]]
    assert theory.training_size(2, 0.5) == 2 and theory.draw_training_mask(2, 0.5, generator=0).sum() == 2
    assert theory.coverage_bound(2, 1) == 2 * math.log(2)
    assert theory.diamond_counts(2, 3).tolist() == [[4, 4], [4, 4]]
    assert theory.covered_mask([[True, False], [False, False]], 2).tolist() == [[True, True], [True, False]]
    assert theory.symmetry_orbits(2, [MIRROR]).tolist() == [[0, 1], [1, 3]]
    assert theory.roots_of_unity(2, 1) == (1,)
    assert theory.circle_med(2, [1]) == 2 and theory.shift_keeps_answer(2, 1, 1)
    assert theory.neighbour_weight(2, 1.0, (0, 0)) == 0.5
    assert theory.class_centroids([[0.0], [1.0]], addition(2)).tolist() == [[1], [1]]


# --- bad input ----------------------------------------------------------------------------------------------


GRID, PLUS, POINTS = np.eye(5, dtype=bool), modular_function("n + m", 5), np.zeros((5, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.hole("square", 7, 6), "size must be an integer from 0 to 5, got size=6"),
        (lambda: theory.hole("strip", 7, 97), "size must be an integer from 0 to 5, got size=97"),
        (lambda: theory.hole("strip", 7, -1), "size must be an integer from 0 to 5, got size=-1"),
        (lambda: theory.hole("strip", 7, 1.5), "size must be an integer from 0 to 5, got size=1.5"),
        (lambda: theory.hole("disk", 7, 2), "kind must be one of 'square', 'strip', got 'disk'"),
        (lambda: theory.hole("strip", 1, 0), "p must be an integer of at least 2, got p=1"),
        (lambda: theory.training_size(7, 1.0), "train_fraction must be between 0 and 1, got 1.0"),
        (lambda: theory.training_size(7, math.nan), "train_fraction must be between 0 and 1, got nan"),
        (lambda: theory.training_size(7, 0.3, 49), "hole_size must be an integer from 0 to 48, got hole_size=49"),
        (lambda: theory.training_size(7, 0.3, split="both"), "split must be one of 'code', 'text', got 'both'"),
        (
            lambda: theory.draw_training_mask(7, 0.3, holed=GRID),
            r"holed must have shape \(p, p\) = \(7, 7\), got \(5, 5\)",
        ),
        (
            lambda: theory.draw_training_mask(7, 0.3, generator="x"),
            "generator must be a numpy Generator, a seed or None",
        ),
        (lambda: theory.coverage_bound(97, 0), "k must be an integer of at least 1, got k=0"),
        (lambda: theory.diamond_counts(7, 14), "k must be an integer from 1 to 13, got k=14"),
        (
            lambda: theory.expected_uncovered(7, 2, [3, 50]),
            "train_size must be an integer from 0 to 49, got train_size=50",
        ),
        (lambda: theory.independent_uncovered(7, 2, -1), "train_size must be an integer from 0 to 49"),
        (lambda: theory.covered_mask(GRID, 10), "k must be an integer from 1 to 9, got k=10"),
        (lambda: theory.covered_fraction(GRID.astype(int), 2), "a mask must be boolean .* got int64 of shape"),
        (
            lambda: theory.covered_fraction(GRID[:3], 2),
            r"a mask must be boolean of shape \(\.\.\., p, p\), got .* \(3, 5\)",
        ),
        (lambda: theory.coverage_threshold(7, 2, uncovered=-1), "uncovered must be at least 0, got -1"),
        (lambda: theory.coverage_times(7, 2, 0), "draws must be an integer of at least 1, got draws=0"),
        (lambda: theory.simulate_uncovered(7, 2, [50], 1), "train_sizes must be an integer from 0 to 49"),
        (lambda: theory.full_coverage_fraction(7, 2, 1.5), "probability must be from 0 to 1, got 1.5"),
        (
            lambda: theory.same_class_distance(GRID, PLUS[:4]),
            r"labels must be integers .* \(5, 5\), got int64 of \(4, 5\)",
        ),
        (lambda: theory.same_class_distance(GRID, PLUS / 2), "labels must be integers .* got float64"),
        (lambda: theory.same_class_coverage(GRID, PLUS, -1), "D must be a distance of at least 0 .* got -1"),
        (lambda: theory.same_class_coverage(GRID, PLUS, [[1]]), "D must be .* in one row"),
        (lambda: theory.matching_distance(GRID, PLUS, 99.04), "accuracy must be from 0 to 1, got 99.04"),
        (
            lambda: theory.matching_distance(np.ones((5, 5), bool), PLUS, 0.5),
            "train_mask must be one .* with a test pair",
        ),
        (lambda: theory.coverage_errors([[0.5]], [0.5, 0.6]), r"coverage must be \(row, n\) and accuracy \(row,\)"),
        (lambda: theory.constant_hole_accuracy([0, 0], [1, 1]), "shares must be .* not all 0"),
        (lambda: theory.mirror_accuracy(GRID, np.zeros((4, 4), bool)), "holed must have shape"),
        (lambda: theory.symmetry_orbits(6, [[[2, 0], [0, 1]]]), "moves must be invertible mod p=6"),
        (lambda: theory.symmetry_orbits(5, [np.eye(3)]), "moves must be 2 x 2 integer matrices"),
        (lambda: theory.class_centroids(np.zeros(5), PLUS), r"an embedding must be \(p, d\)"),
        (lambda: theory.class_centroids(POINTS, PLUS, second=np.zeros((4, 2))), "the second like the first"),
        (lambda: theory.class_centroids(POINTS, PLUS, mask=np.ones((4, 4), bool)), r"a mask .* \(5, 5\), got bool"),
        (lambda: theory.class_radii(POINTS, PLUS, np.zeros((5, 3))), r"centres must be \(class, d\) = \(5, 2\)"),
        (lambda: theory.neighbour_bound(POINTS, np.zeros(4)), r"centres must be \(p, d\) and radii \(p,\)"),
        (lambda: theory.imitation_bounds(POINTS, (0, 5), (0, 0)), "pair and other must be an integer from 0 to 4"),
        (lambda: theory.norm_bounds(np.zeros(3)), r"matrix must have shape \(\.\.\., m, n\), got \(3,\)"),
        (lambda: theory.nearest_point(np.zeros((0, 2))), r"points must be \(n, d\) with at least one point"),
        (lambda: theory.hull_gap(POINTS, np.zeros((5, 3))), "A and B must have the same dimension"),
        (lambda: theory.topologically_separable(POINTS, np.zeros((5, 3))), "A and B must have the same dimension"),
        (lambda: theory.convexly_separable_on(POINTS, POINTS, np.eye(3)), r"subspace must be \(d, s\) with d = 2"),
        (lambda: theory.flow([1.0, 2.0]), r"a state must have shape \(\.\.\., 3\)"),
        (lambda: theory.flow_path([1.0, 1, 1], [2, 1]), "times must be increasing and at least 0"),
        (lambda: theory.flow_path([1.0, 1, 1], [-1]), "times must be increasing and at least 0"),
        (lambda: theory.flow_path([1.0, 1, 1], [1], step=0), "step must be above 0, got 0"),
        (lambda: theory.flow_limit([-0.1, 0.5, 0.5]), "start must not be negative"),
        (lambda: theory.flow_limit([0.1, 0.5, 0.5], -1), "target must be at least 0, got -1"),
        (lambda: theory.rising_share(1.0), "radius must be between 0 and 1, got 1.0"),
        (lambda: theory.embedding_power(np.zeros(5)), r"embedding must have shape \(\.\.\., p, d\), got \(5,\)"),
        (lambda: theory.circle_embedding(7, [0.5]), "frequencies must be integers in one row"),
        (lambda: theory.circle_med(7, [1, 2], [1.0]), "radii must be a number or one for each frequency"),
        (lambda: theory.initial_difference(0), "d must be an integer of at least 1"),
        (lambda: theory.local_complexity(POINTS, np.zeros(4), POINTS, 1), r"biases \(neuron,\) and samples"),
        (lambda: theory.local_complexity(POINTS, np.zeros(5), POINTS, 0), "radius must be above 0, got 0"),
        (lambda: theory.neighbour_weight(7, 0.3, (7, 0)), "pair must be an integer from 0 to 6, got pair=7"),
        (lambda: theory.neighbour_weight(7, 1.3), "train_fraction must be from 0 to 1, got 1.3"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_the_theory_needs_no_torch():
    code = "import sys, grokbook.chapters.gu.theory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
