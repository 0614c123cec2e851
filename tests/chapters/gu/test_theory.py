"""Gu et al.'s theory against limits known by hand, slow loops, and enumeration of every training set."""

import itertools
import math

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
    for row, size in zip(theory.TABLE_1, sizes, strict=True):
        hole = theory.hole(row.kind, 97, row.size)
        masks = [theory.draw_training_mask(97, 0.3, holed=hole, split=split, generator=seed) for seed in (0, 1)]
        assert [mask.sum() for mask in masks] == [size, size] and not (masks[0] & hole).any()
        assert (masks[0] != masks[1]).any() or size == 2813  # all that is left


def test_an_even_set_shows_every_sum_alike_and_leaves_no_pair_far_from_one_of_its_class():
    masks = [theory.draw_training_mask(97, 0.25, split="even", generator=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(masks[0], masks[1])
    assert masks[0].sum() == theory.training_size(97, 0.25) and (masks[0] != masks[2]).any()
    sums = np.add.outer(np.arange(97), np.arange(97)) % 97
    assert set(np.bincount(sums[masks[0]])) <= {24, 25}
    assert theory.same_class_coverage(masks[0], sums, [4]) == 1
    alike = theory.draw_training_mask(97, 0.25, split="alike", generator=0)
    assert alike.sum() == masks[0].sum() and set(np.bincount(sums[alike])) <= {24, 25}
    assert theory.same_class_coverage(alike, sums, [4]) < 0.9
    stratified = theory.draw_training_mask(97, 0.25, split="stratified", generator=0)
    assert stratified.sum() == alike.sum() and theory.same_class_coverage(stratified, sums, [6]) > 0.99
    with pytest.raises(ValueError, match="knows no hole"):
        theory.draw_training_mask(97, 0.25, split="even", holed=theory.hole("square", 97, 9), generator=0)


def stretches(mask):
    """(p,) into how many unbroken stretches of i the trained pairs of each sum fall, with 0 next to p - 1."""
    rows = theory.by_sum(mask)
    return (rows & ~np.roll(rows, 1, axis=1)).sum(1)


def test_an_even_set_is_one_stretch_of_each_sum_under_other_names():
    for seed in range(3):
        even = theory.draw_training_mask(97, 0.3, split="even", generator=seed)
        other = theory.renamed(even, 29)
        per_sum = theory.by_sum(other).sum(1)
        assert (stretches(other)[per_sum == 29] == 1).all() and (per_sum == 29).sum() == 88
        np.testing.assert_array_equal(stretches(even), theory.by_sum(even).sum(1))
        i, j = np.argwhere(even)[seed]
        assert theory.by_sum(even)[(i + j) % 97, i] and other[29 * i % 97, 29 * j % 97]
    for split in ("code", "alike", "stratified", "multiplied"):
        mask = theory.draw_training_mask(97, 0.3, split=split, generator=0)
        assert min(stretches(theory.renamed(mask, times)).mean() for times in range(1, 49)) > 15, split


def test_a_set_even_on_some_circles_is_one_stretch_under_the_names_of_each_and_of_no_other():
    for circles in (1, 3):
        mask = theory.draw_circled_mask(59, 0.4069, circles, generator=0)
        assert set(theory.by_sum(mask).sum(1)) == {24}
        whole = [stretches(theory.renamed(mask, times)) == 1 for times in range(1, 30)]
        shares = sorted(one.mean() for one in whole)[::-1]
        np.testing.assert_allclose(shares[:circles], 1 / circles, atol=0.02)
        assert shares[circles] < 0.05
        shown = theory.shown_waves(mask)
        most = np.argsort(-shown)[:circles]
        assert min(whole[wave].mean() for wave in most) == pytest.approx(1 / circles, abs=0.02)
        np.testing.assert_allclose(  # under other names other waves are shown, and as much
            np.sort(theory.shown_waves(theory.renamed(mask, 5))), np.sort(shown), atol=1e-9
        )
    assert theory.units(10).tolist() == [1, 3, 7, 9]


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


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("p", [2, 5, 6])
def test_diamond_counts_are_those_of_a_double_loop(p, torus):
    pairs = list(itertools.product(range(p), repeat=2))
    for k in range(1, 2 * p):
        slow = [sum(manhattan(p, a, b, torus) < k for b in pairs) for a in pairs]
        np.testing.assert_array_equal(theory.diamond_counts(p, k, torus=torus).ravel(), slow)


@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_expected_uncovered_is_the_mean_over_every_training_set(k, torus):
    expected = theory.expected_uncovered(3, k, range(10), torus=torus)
    for m in (0, 1, 2, 4, 9):
        slow = [len(uncovered_points(3, k, trained, torus)) for trained in every_training_set(3, m)]
        assert expected[m] == pytest.approx(np.mean(slow), abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_covered_fraction_is_zero_without_and_nan_with_nothing_but_training_pairs():
    assert theory.covered_fraction(np.zeros((5, 5), bool), 3) == 0
    assert np.isnan(theory.covered_fraction(np.ones((5, 5), bool), 3))


def test_coverage_times_say_when_each_point_is_first_covered():
    orders = theory.coverage_times(5, 1, 3, generator=7)  # k = 1: when the point itself is drawn
    times = theory.coverage_times(5, 3, 3, generator=7)
    pairs = list(itertools.product(range(5), repeat=2))
    for order, time in zip(orders, times, strict=True):
        assert sorted(order.ravel()) == list(range(1, 26))
        for a in pairs:
            assert time[a] == min(order[b] for b in pairs if manhattan(5, a, b, False) < 3)
    assert (orders[0] != orders[1]).any()


@pytest.mark.parametrize("k", [1, 2, 4, 9, 13])
def test_covered_fraction_is_that_of_a_double_loop(k):
    masks = np.array([random_mask(7, 0.05, seed) for seed in range(3)])
    for mask, found in zip(masks, theory.covered_fraction(masks, k), strict=True):
        trained = list(zip(*np.nonzero(mask), strict=True))
        assert found == pytest.approx(1 - len(uncovered_points(7, k, trained, False)) / (~mask).sum())


@pytest.mark.parametrize(
    ("k", "bound", "torus", "grid"),
    [
        (2, 1.830, 0.8394, 0.8462),
        (3, 0.7038, 0.5050, 0.5295),
        (4, 0.3660, 0.3061, 0.3368),
        (5, 0.2232, 0.1995, 0.2297),
        (6, 0.1500, 0.1389, 0.1663),
    ],
)
def test_one_point_is_left_before_the_printed_bound_or_after_it(k, bound, torus, grid):
    def threshold(torus):  # the least training fraction that leaves one expected point uncovered
        sizes = np.arange(97 * 97 + 1)
        return sizes[theory.expected_uncovered(97, k, sizes, torus=torus) <= 1][0] / 97**2

    assert theory.coverage_bound(97, k) == pytest.approx(bound, abs=5e-4)
    assert (
        threshold(True)
        == pytest.approx(torus, abs=2e-4)
        == pytest.approx(1 - 97 ** (-2 / (1 + 2 * k * (k - 1))), abs=1e-3)
    )
    assert threshold(False) == pytest.approx(grid, abs=2e-4)
    assert (threshold(False) < theory.coverage_bound(97, k)) == (k <= 4)  # theorem 3.12 calls the bound necessary


def test_the_bound_grows_with_p_and_solves_the_proofs_equation():
    assert [round(theory.coverage_bound(p, 4), 3) for p in (47, 97, 379)] == [0.308, 0.366, 0.475]
    N, m = 379**2, round(theory.coverage_bound(379, 4) * 379**2)
    assert N * (1 - 25 / N) ** m == pytest.approx(1, abs=2e-3)
    # without replacement fewer are needed: (1 - alpha)^C, not exp(-alpha C)
    assert theory.expected_uncovered(379, 4, m, torus=True) == pytest.approx(0.0144, abs=1e-3)


# --- theorem 3.10 -------------------------------------------------------------------------------------------


def slow_same_class_distances(mask, labels, torus):
    p = len(mask)
    pairs = list(itertools.product(range(p), repeat=2))
    near = np.full((p, p), np.inf)
    for a in pairs:
        known = [b for b in pairs if mask[b] and labels[b] == labels[a]]
        near[a] = min((manhattan(p, a, b, torus) for b in known), default=np.inf)
    return near


@pytest.mark.parametrize("f", ["n + m", "n * m", "n**2 + n*m + m**2"])
def test_same_class_distance_is_that_of_a_double_loop(f):
    masks = np.array([random_mask(7, 0.1, seed) for seed in range(3)])
    labels = modular_function(f, 7)
    found = theory.same_class_distance(masks, labels)
    for mask, distance in zip(masks, found, strict=True):
        np.testing.assert_array_equal(distance, slow_same_class_distances(mask, labels, True))
    assert np.isinf(found).any() and (found[masks] == 0).all()


def test_same_class_coverage_counts_test_pairs_within_the_distance():
    masks, labels, D = np.array([random_mask(7, 0.2, seed) for seed in range(4)]), addition(7), [0, 1, 2, 4, 100]
    found = theory.same_class_coverage(masks, labels, D)
    assert found.shape == (4, 5)
    for mask, coverage in zip(masks, found, strict=True):
        near = slow_same_class_distances(mask, labels, True)[~mask]
        np.testing.assert_allclose(coverage, [np.mean(near <= d) for d in D])
    scalar = theory.same_class_coverage(masks[0], labels, 2)
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


def test_on_the_torus_same_sums_are_an_even_distance_apart():
    one = np.zeros((11, 11), bool)
    one[5, 2] = True
    torus = theory.same_class_distance(one, addition(11))
    same = addition(11) == 7
    assert sorted(torus[same]) == sorted(2 * min(s, 11 - s) for s in range(11))
    assert np.isinf(torus[~same]).all()


def test_a_point_of_a_square_hole_leaves_it_after_as_many_steps_as_it_is_deep():
    p, k = 23, 8
    holed = theory.hole("square", p, k)
    distance = theory.same_class_distance(~holed, addition(p))
    for i, j in zip(*np.nonzero(holed), strict=True):
        assert distance[i, j] == 2 * (min(i, j, k - i, k - j) + 1)


def test_matching_distance_inverts_the_coverage():
    mask, labels = random_mask(13, 0.2), addition(13)
    occurring = np.unique(theory.same_class_distance(mask, labels)[~mask])
    occurring = occurring[np.isfinite(occurring)]
    coverage = theory.same_class_coverage(mask, labels, occurring)
    for D, share in zip(occurring, coverage, strict=True):
        assert theory.matching_distance(mask, labels, share) == pytest.approx(D)
    half = (coverage[0] + coverage[1]) / 2
    between = theory.matching_distance(mask, labels, half)
    assert between == pytest.approx((occurring[0] + occurring[1]) / 2)
    assert theory.matching_distance(mask, labels, coverage[0] / 2) == pytest.approx(1)
    assert theory.matching_distance(random_mask(7, 0.05), addition(7), 0.9) == math.inf


# --- table 1 ------------------------------------------------------------------------------------------------


def test_the_distance_that_explains_a_row_of_table_1_is_another_for_every_row():
    before = [27.6, 15.9, 12.8, 12.2, 15.4, 8.7, 10.1, 5.1, 16.1, 38.7, 35.9]
    for row, expected in zip(theory.TABLE_1, before, strict=True):
        hole = theory.hole(row.kind, 97, row.size)
        masks = [theory.draw_training_mask(97, 0.3, holed=hole, generator=seed) for seed in range(3)]
        found = [theory.matching_distance(mask, addition(97), row.highest) for mask in masks]
        assert np.mean(found) == pytest.approx(expected, abs=1.5)


# --- symmetry -----------------------------------------------------------------------------------------------


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
    assert theory.symmetry_share(masks[0], []) == 0


def test_roots_of_unity_solve_their_equation():
    assert theory.roots_of_unity(97, 3) == (1, 35, 61)
    assert theory.roots_of_unity(47, 3) == (1,)  # cubing is a bijection there
    assert theory.roots_of_unity(8, 2) == (1, 3, 5, 7)


@pytest.mark.parametrize(
    ("moves", "fraction", "share"),
    [
        ([MIRROR, JOINT_SIGN], 0.3, 0.652),  # x y, and the quadratic form with its joint sign
        ([MIRROR, SIGN], 0.2, 0.779),  # x^2 + y^2
        ([MIRROR, *([[w, 0], [0, 1]] for w in theory.roots_of_unity(97, 3))], 0.2, 0.967),  # x^3 + y^3
        ([MIRROR], 0.5, 0.495),  # x^2 + xy + y^2, figure 4
        ([MIRROR], 0.7, 0.693),
    ],
)
def test_memorised_symmetry_alone_answers_as_much_as_simulations_before_found(moves, fraction, share):
    masks = np.array([random_mask(97, fraction, seed) for seed in range(3)])
    assert theory.symmetry_share(masks, moves).mean() == pytest.approx(share, abs=0.01)


# --- MED of circles -----------------------------------------------------------------------------------------


def circle(p, frequencies, radii):
    """Residues on circles, one a frequency: (p, 2 n)."""
    angles = 2 * np.pi * np.outer(np.arange(p), frequencies) / p
    return (np.array(radii)[:, None] * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(p, -1)


def test_med_of_circles_depends_on_which_frequencies_were_picked():
    assert theory.circle_med(97, [1]) == pytest.approx(0.0648, abs=1e-4)
    assert theory.circle_med(97, [48]) == pytest.approx(1.9997, abs=1e-4)
    assert np.mean([theory.circle_med(97, [f]) for f in range(1, 49)]) == pytest.approx(1.286, abs=1e-3)
    several = circle(97, [3, 20, 41], [1.0, 0.5, 2.0])
    assert theory.circle_med(97, [3, 20, 41], [1.0, 0.5, 2.0]) == pytest.approx(main_embedding_difference(several))


# --- the smallest sizes ------------------------------------------------------------------------


def test_the_smallest_modulus_is_two():
    assert theory.hole("square", 2, 0).tolist() == [[True, False], [False, False]]
    assert theory.training_size(2, 0.5) == 2 and theory.draw_training_mask(2, 0.5, generator=0).sum() == 2
    assert theory.coverage_bound(2, 1) == 2 * math.log(2)
    assert theory.diamond_counts(2, 3).tolist() == [[4, 4], [4, 4]]
    assert theory.covered_fraction(np.array([[True, False], [False, False]]), 2) == pytest.approx(2 / 3)
    assert theory.symmetry_orbits(2, [MIRROR]).tolist() == [[0, 1], [1, 3]]
    assert theory.roots_of_unity(2, 1) == (1,)
    assert theory.circle_med(2, [1]) == 2


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.hole("square", 7, 6), "size must be an integer from 0 to 5, got size=6"),
        (lambda: theory.hole("strip", 7, 97), "size must be an integer from 0 to 5, got size=97"),
        (lambda: theory.hole("strip", 7, -1), "size must be an integer from 0 to 5, got size=-1"),
        (lambda: theory.hole("strip", 7, 1.5), "size must be an integer from 0 to 5, got size=1.5"),
        (lambda: theory.hole("disk", 7, 2), "kind must be one of 'square', 'strip', got 'disk'"),
        (
            lambda: theory.training_size(7, 0.3, split="both"),
            "split must be one of 'code', 'text', 'even', 'alike', 'stratified', 'multiplied', got 'both'",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
