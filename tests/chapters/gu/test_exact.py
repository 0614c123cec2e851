"""What algebra decides: theorem 3.5, lemmas 3.4 and B.1, definition 5.1, Fig. 8, assumption 1, the smoothing."""

import itertools
import math

import numpy as np
import pytest

from grokbook import measures
from grokbook.chapters.gu import theory
from grokbook.tasks import modular_function


def addition(p):
    return modular_function("n + m", p)


# --- theorem 3.5 --------------------------------------------------------------------------------------------


def centroids(embedding, labels):
    sums = embedding[:, None] + embedding
    return np.array([sums[labels == r].mean(0) for r in range(labels.max() + 1)])


@pytest.mark.parametrize("d", [2, 128])
def test_every_class_of_a_whole_addition_has_one_centroid_and_those_of_a_product_do_not(d):
    embedding = np.random.default_rng(d).standard_normal((13, d))
    common = 2 * embedding.mean(0)
    np.testing.assert_allclose(centroids(embedding, addition(13)), np.tile(common, (13, 1)), atol=1e-12)
    products = centroids(embedding, modular_function("n * m", 13))
    assert np.abs(products - common).max() > 0.1  # it takes classes that use every residue once


# --- lemmas 3.4 and B.1 -------------------------------------------------------------------------------------


def test_norms_obey_lemma_3_4_with_equality_for_rank_one_and_orthogonal_matrices():
    random = np.random.default_rng(0).standard_normal((5, 8))
    for matrix, left, right in (
        (random, False, False),
        (np.outer(random[0], random[1]), True, False),
        (np.linalg.qr(random.T)[0], False, True),
    ):
        operator, frobenius = np.linalg.norm(matrix, 2), np.linalg.norm(matrix)
        upper = math.sqrt(min(matrix.shape)) * operator
        assert operator <= frobenius * (1 + 1e-12) and frobenius <= upper * (1 + 1e-12)
        assert (operator == pytest.approx(frobenius)) == left and (frobenius == pytest.approx(upper)) == right


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
    norm = theory.smallest_operator_norm(tokens)
    assert norm == pytest.approx(1 / distance_of_affine_hull(sums), rel=1e-6)
    r = np.tile([0.0, 1.0], (p, 1))
    assert norm == pytest.approx(np.linalg.norm(np.linalg.lstsq(sums, r, rcond=None)[0], 2), rel=1e-8)
    assert norm > 1.5 / (2 * np.linalg.norm(tokens, axis=1).max())  # lemma B.1 as printed


def test_lemma_b_1_is_reached_by_tokens_that_are_all_the_same_and_not_by_spread_ones():
    one = np.random.default_rng(0).standard_normal(9)
    collapsed = np.tile(one / np.linalg.norm(one), (7, 1))
    assert theory.smallest_operator_norm(collapsed) == pytest.approx(0.5, rel=1e-12)
    for other in (0, 3):  # turning one token away, at the same length, costs
        turned = collapsed.copy()
        turned[other] = np.eye(9)[0]
        assert theory.smallest_operator_norm(turned) > 1.01 * 0.5
    spread = np.random.default_rng(0).standard_normal((97, 128))
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    assert 4.5 < theory.smallest_operator_norm(spread) < 8
    turns = 2 * np.pi * np.arange(7) / 7
    circle = np.stack([np.cos(turns), np.sin(turns)], 1)  # sums 2 cos(2 pi i / 7), 0
    assert theory.smallest_operator_norm(circle) == math.inf


# --- definition 5.1 -----------------------------------------------------------------------------------------


def test_what_a_direction_separates_after_a_projection_it_separates_before():
    draw, seen = np.random.default_rng(0), 0
    for _ in range(200):
        A, B = draw.standard_normal((2, 4, 3))
        basis = np.linalg.qr(draw.standard_normal((3, 2)))[0]  # of a plane to project on
        for direction in draw.standard_normal((50, 2)):
            if (A @ basis @ direction).max() < (B @ basis @ direction).min():
                seen += 1
                assert (A @ (basis @ direction)).max() < (B @ (basis @ direction)).min()
    assert seen > 100
    assert ([[0.0, 0, 0]] @ np.eye(3)[:, :2] == [[0.0, 0, 1]] @ np.eye(3)[:, :2]).all()  # apart before, one point after


# --- Parseval's identity, eq. (parseval) of the page ---------------------------------------------------------


def test_steps_from_number_to_number_are_those_of_the_frequencies_weighted_by_their_sines():
    phi = np.random.default_rng(0).standard_normal((13, 4))
    steps = np.square(np.roll(phi, -1, 0) - phi).sum(1).mean()
    power = 2 * measures.fourier_power(phi.T).sum(0) / 13**2  # of each frequency and its mirror image
    assert steps == pytest.approx((power * 4 * np.sin(np.pi * np.arange(7) / 13) ** 2).sum(), rel=1e-12)


# --- the flow in the unit cube ------------------------------------------------------------------------------


def random_states(*shape, seed=0):
    return np.random.default_rng(seed).random((*shape, 3))


def gradient(f, state, h=1e-6):
    return np.array([(f(state + h * e) - f(state - h * e)) / (2 * h) for e in np.eye(3)])


def potential(state):
    return (1 - np.prod(state, -1)) ** 2 / 2


def invariants(state):
    return np.diff(np.square(state), axis=-1)


def test_the_flow_is_equations_7_to_9_and_runs_down_its_potential():
    for state in random_states(5):
        x, w, u = state
        rest = 1 - x * w * u
        np.testing.assert_allclose(theory.flow(state), [rest * w * u, rest * x * u, rest * x * w], rtol=1e-13)
        np.testing.assert_allclose(theory.flow(state), -gradient(potential, state), atol=1e-9)


def test_the_corner_is_stable_but_not_asymptotically():
    slopes = np.array([gradient(lambda s, a=axis: theory.flow(s)[a], np.ones(3)) for axis in range(3)])
    np.testing.assert_allclose(np.linalg.eigvalsh(slopes), [-3, 0, 0], atol=1e-9)
    surface = np.array([1.3, 0.7, 1 / (1.3 * 0.7)])  # every point with x w u = 1 is an equilibrium
    np.testing.assert_allclose(theory.flow(surface), 0, atol=1e-15)


def test_on_the_diagonal_a_trajectory_takes_the_time_of_its_integral():
    x = theory.flow_path([0.3, 0.3, 0.3], [0, 0.5, 3])[1:, 0]
    grid = np.linspace(0.3, x, 20_001)  # x' = x**2 (1 - x**3)
    times = np.trapezoid(1 / (grid**2 * (1 - grid**3)), grid, axis=0)
    np.testing.assert_allclose(times, [0.5, 3], rtol=1e-6)


def test_trajectories_end_at_the_limit_and_conserve_the_differences_of_squares():
    start = random_states(30) * 0.9 + 0.1
    path = theory.flow_path(start, [0, 1, 60])
    np.testing.assert_array_equal(path[0], start)
    np.testing.assert_allclose(path[-1], theory.flow_limit(start), atol=1e-6)
    np.testing.assert_allclose(invariants(path), np.tile(invariants(start), (3, 1, 1)), atol=1e-8)
    assert (np.diff(potential(path), axis=0) < 0).all()


def test_limits_known_by_hand():
    np.testing.assert_allclose(theory.flow_limit([0.9, 0.5, 0.2]), [1.2210, 0.9647, 0.8490], atol=5e-5)
    np.testing.assert_allclose(theory.flow_limit([0.3, 0.3, 0.3]), [1, 1, 1], rtol=1e-14)
    far = theory.flow_limit([5.0, 4.0, 0.001])
    np.testing.assert_allclose([far.prod(), far[0] ** 2 - far[1] ** 2], [1, 9], rtol=1e-9)


def test_nearly_no_start_in_the_cube_reaches_the_corner():
    limits = theory.flow_limit(random_states(2000))
    np.testing.assert_allclose(limits.prod(-1), 1, rtol=1e-12)
    assert (limits.max(-1) > 1).all()  # outside the cube
    missed = np.linalg.norm(limits - 1, axis=-1)
    assert np.median(missed) == pytest.approx(0.189, abs=0.008)
    assert (missed < 0.05).mean() == pytest.approx(0.07, abs=0.02)


def test_the_printed_lyapunov_function_falls_in_the_cube_and_rises_as_near_the_corner_as_one_likes():
    def rate(states):  # d/dt of eq. 22's V, the squared distance from (1, 1, 1), along the flow
        return 2 * ((states - 1) * theory.flow(states)).sum(-1)

    assert (rate(random_states(5000)) < 0).all()
    assert rate(np.array([1.104, 0.904, 1.004])) == pytest.approx(3.2e-5, abs=1e-6)
    directions = np.random.default_rng(0).standard_normal((50_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert all((rate(1 + radius * directions) > 0).any() for radius in (0.1, 0.01))


# --- assumption 1, theorem 3 and the smoothing ------------------------------------------------------------------


def test_moving_both_operands_keeps_the_answer_where_p_divides_the_sum_of_the_moves():
    labels = addition(7)
    for d1, d2 in itertools.product(range(-8, 9), repeat=2):
        assert (np.roll(labels, (d1, d2), (0, 1)) == labels).all() == ((d1 + d2) % 7 == 0)  # 1 divides 7, as printed


def test_the_sum_of_assumption_1_is_over_neighbours_and_grows_like_a_logarithm():
    near = [(u - 3, v - 3) for u, v in itertools.product(range(7), repeat=2) if u != 3 and v != 3]
    assert theory.neighbour_weight(7, 0.4) == pytest.approx(0.4 * sum(1 / (a * a + b * b) for a, b in near))
    sums = [theory.neighbour_weight(p, 0.3) for p in (47, 97, 211, 397)]
    np.testing.assert_allclose(sums, [5.0, 6.4, 7.8, 9.0], atol=0.06)
    assert (sums[3] - sums[1]) / math.log(397 / 97) == pytest.approx(0.3 * 2 * math.pi, rel=0.01)


def test_the_published_smoothing_starts_a_jump_early_drags_it_out_and_keeps_what_is_constant():
    jump = theory.published_smoothing(np.arange(8_000) >= 4_000)
    assert np.argmax(jump > 0.01) == pytest.approx(3_510, abs=10)
    assert np.argmax(jump > 0.99) > 5_300
    np.testing.assert_allclose(theory.published_smoothing(np.full(1_500, 3.0)), 3)
    noise = np.random.default_rng(0).standard_normal(1_200)
    np.testing.assert_array_equal(theory.published_smoothing(noise)[:1000], noise[:1000])
