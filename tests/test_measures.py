"""Measures against limits known by hand and against slow independent versions."""

import cmath
import math

import numpy as np
import pytest

from grokbook import curves, measures
from grokbook.chapters.gromov import theory
from grokbook.tasks import group_table


def slow_transform(values):
    """The whole discrete Fourier transform by its definition."""
    p = len(values)
    return [sum(v * cmath.exp(-2j * math.pi * k * n / p) for n, v in enumerate(values)) for k in range(p)]


# --- first_step ---------------------------------------------------------------------------------------------


def test_first_step_compares_in_the_precision_of_the_record():
    assert curves.first_step(np.float32([0.5, 0.9]), [0, 10], 0.9) == 10


def test_first_step_of_a_curve_that_never_arrives_is_nan():
    assert np.isnan(curves.first_step([0.1, 0.98], [0, 10], 0.99))
    assert np.isnan(curves.first_step([np.nan, np.nan], [0, 10], 0.0))
    assert np.isnan(curves.first_step([], [], 0.5))


def test_first_step_works_on_every_leading_axis_at_once():
    generator = np.random.default_rng(0)
    values, steps = generator.random((3, 4, 20)), np.cumsum(generator.integers(1, 9, 20))
    values[0, :, ::3] = np.nan
    found = curves.first_step(values, steps, 0.9)
    for i, j in np.ndindex(3, 4):
        reached = [step for step, value in zip(steps, values[i, j], strict=True) if value >= 0.9]
        np.testing.assert_equal(found[i, j], reached[0] if reached else np.nan)
    assert np.isnan(found).any() and not np.isnan(found).all()


def test_first_step_refuses_curves_of_another_length():
    with pytest.raises(ValueError, match=r"one entry per step, got values \(2, 3\) and steps \(4,\)"):
        curves.first_step(np.zeros((2, 3)), np.arange(4), 0.5)


# --- norms and power ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 7, 8])
def test_fourier_power_is_the_one_sided_square_of_the_transform(p):
    weights = np.random.default_rng(p).standard_normal((2, 3, p))
    power = measures.fourier_power(weights)
    assert power.shape == (2, 3, p // 2 + 1)
    for row in np.ndindex(2, 3):
        slow = [abs(c) ** 2 for c in slow_transform(weights[row])[: p // 2 + 1]]
        np.testing.assert_allclose(power[row], slow, atol=1e-12)


# --- inverse participation ratio ----------------------------------------------------------------------------


def test_ipr_of_a_single_frequency_is_one():
    assert measures.inverse_participation_ratio([0, 0, 7.0, 0]) == 1


@pytest.mark.parametrize("n", [1, 5, 49])
def test_ipr_of_a_flat_spectrum_is_one_over_n(n):
    assert measures.inverse_participation_ratio(np.full(n, 0.3)) == pytest.approx(1 / n, rel=1e-14)


@pytest.mark.filterwarnings("error")
def test_ipr_of_no_power_is_nan_without_a_warning():
    np.testing.assert_equal(measures.inverse_participation_ratio([[0.0, 0.0], [1.0, 1.0]]), [np.nan, 0.5])


def test_first_layer_ipr_is_one_for_waves_and_small_for_noise():
    W_in, _ = theory.cosine_weights(97, 500, generator=0)
    random = np.random.default_rng(0).standard_normal((500, 194))
    assert measures.first_layer_ipr(W_in) == pytest.approx(1, abs=1e-12)
    assert measures.first_layer_ipr(random) == pytest.approx(0.0404, abs=0.0005)


def test_first_layer_ipr_is_the_one_sided_ratio_averaged_over_halves_and_neurons():
    W_in = np.random.default_rng(1).standard_normal((2, 3, 10))
    ipr = measures.first_layer_ipr(W_in)
    for member in range(2):
        ratios = []
        for neuron in range(3):
            for half in (W_in[member, neuron, :5], W_in[member, neuron, 5:]):
                power = [abs(c) ** 2 for c in slow_transform(half)[:3]]
                ratios.append(sum(x * x for x in power) / sum(power) ** 2)
        assert ipr[member] == pytest.approx(np.mean(ratios), rel=1e-12)


def test_first_layer_ipr_refuses_odd_inputs():
    with pytest.raises(ValueError, match=r"W_in must have shape \(..., width, 2p\), got \(3, 5\)"):
        measures.first_layer_ipr(np.zeros((3, 5)))


@pytest.mark.filterwarnings("error")
def test_single_frequency_share_of_a_wave_is_one_of_a_constant_zero_and_of_nothing_nan():
    n = np.arange(12)
    offset_wave = 1 + np.sqrt(2) * np.cos(np.pi * n / 2)  # one-sided powers 144 and 72
    rows = [np.cos(2 * np.pi * 5 * n / 12 + 1), np.ones(12), np.zeros(12), offset_wave]
    np.testing.assert_allclose(measures.single_frequency_share(rows), [1, 0, np.nan, 1 / 3], atol=1e-12)


# --- phases -------------------------------------------------------------------------------------------------


def wrapped(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.parametrize("p", [23, 24])
def test_phase_residuals_recover_frequencies_and_phases_that_went_in(p):
    width = (p - 1) // 2
    phases = theory.draw_phases(width, noise=0.5, generator=3)
    found = measures.phase_residuals(*theory.cosine_weights(p, width, phases=phases))
    np.testing.assert_array_equal(found.frequency, np.arange(1, width + 1))
    for phi, expected in zip((found.phi1, found.phi2, found.phi3), phases, strict=True):
        np.testing.assert_allclose(wrapped(phi - expected), 0, atol=1e-10)
    np.testing.assert_allclose(found.residual, wrapped(phases[0] + phases[1] - phases[2]), atol=1e-10)


def test_phase_residuals_of_wrapped_frequencies_change_sign_but_not_size():
    phases = theory.draw_phases(22, noise=0.3, generator=0)
    found = measures.phase_residuals(*theory.cosine_weights(23, 22, phases=phases))
    residual = wrapped(phases.T @ [1, 1, -1])
    np.testing.assert_allclose(found.residual[:11], residual[:11], atol=1e-10)
    np.testing.assert_allclose(found.residual[11:], -residual[11:], atol=1e-10)  # k = 12 is frequency 11
    np.testing.assert_array_equal(found.frequency, [*range(1, 12), *range(11, 0, -1)])


def test_phase_residuals_do_not_depend_on_the_scale_of_either_layer_or_of_a_member():
    W_in, W_out = theory.cosine_weights(11, 5, generator=0)
    W_in = W_in + 0.1 * np.random.default_rng(0).standard_normal(W_in.shape)
    alone = measures.phase_residuals(W_in, W_out)
    together = measures.phase_residuals(np.stack([W_in, 7 * W_in]), np.stack([0.1 * W_out, W_out]))
    for one, both in zip(alone, together, strict=True):
        np.testing.assert_allclose(both, np.stack([one, one]), atol=1e-9)


def test_phase_residuals_take_the_frequency_that_most_rows_have_however_weak_they_are():
    W_in, W_out = theory.cosine_weights(11, 1, frequencies=[2], generator=0)
    other, _ = theory.cosine_weights(11, 1, frequencies=[3], generator=1)
    W_in[:, :11] = 100 * other[:, :11]
    assert measures.phase_residuals(W_in, W_out).frequency == [2]


@pytest.mark.filterwarnings("error")
def test_phase_residuals_of_a_neuron_without_a_wave_are_nan_at_frequency_zero():
    W_in, W_out = theory.cosine_weights(10, 3, frequencies=[10, 5, 3], generator=0)
    found = measures.phase_residuals(W_in, W_out)
    np.testing.assert_array_equal(found.frequency, [0, 0, 3])
    np.testing.assert_array_equal(np.isnan(found.residual), [True, True, False])
    silent = measures.phase_residuals(np.zeros((4, 4)), np.zeros((2, 4)))  # p = 2: no frequency has a phase
    assert np.isnan(silent.residual).all() and not silent.frequency.any()


def test_phase_residuals_refuse_layers_that_do_not_fit():
    with pytest.raises(ValueError, match=r"W_out must have shape .* got W_out \(5, 4\) and W_in \(3, 10\)"):
        measures.phase_residuals(np.zeros((3, 10)), np.zeros((5, 4)))


def test_circular_statistics_wrap_around():
    angles = np.radians([[170, -170], [10, 30]])
    mean = np.degrees(measures.circular_mean(angles))
    assert abs(mean[0]) == pytest.approx(180) and mean[1] == pytest.approx(20)
    np.testing.assert_allclose(measures.resultant_length(angles), np.cos(np.radians(10)), rtol=1e-12)


def test_circular_sd_of_normal_angles_is_their_standard_deviation():
    angles = np.random.default_rng(0).normal(3.0, [[0.1], [1.0]], (2, 200_000))
    np.testing.assert_allclose(measures.circular_sd(angles), [0.1, 1.0], rtol=0.01)


@pytest.mark.filterwarnings("error")
def test_circular_statistics_at_their_limits_and_with_nan():
    even = 2 * np.pi * np.arange(8) / 8
    assert measures.resultant_length(even) == pytest.approx(0, abs=1e-15)
    assert measures.circular_sd([0.4, 0.4, np.nan]) == pytest.approx(0, abs=1e-7)
    assert measures.circular_mean([0.4, np.nan]) == pytest.approx(0.4)
    assert np.isnan(measures.circular_sd([np.nan, np.nan]))


# --- maps ---------------------------------------------------------------------------------------------------

NAMES = ["n + m", "n - m", "2n", "2m", "rest"]


@pytest.mark.parametrize("p", [5, 6])
def test_line_shares_add_the_cells_of_each_line(p):
    values = np.random.default_rng(p).standard_normal((2, p, p))
    shares = measures.line_shares(values)
    for member in range(2):
        rows = [slow_transform(row) for row in values[member]]
        columns = [slow_transform(column) for column in zip(*rows, strict=True)]  # [b][a]
        expected = dict.fromkeys(NAMES, 0.0)
        for a in range(p):
            for b in range(p):
                power = abs(columns[b][a]) ** 2
                on = []
                if a == b != 0:
                    on.append("n + m")
                if (a + b) % p == 0 and a != 0:
                    on.append("n - m")
                if b == 0 != a and (p % 2 or a % 2 == 0):
                    on.append("2n")
                if a == 0 != b and (p % 2 or b % 2 == 0):
                    on.append("2m")
                if (a, b) != (0, 0):
                    for name in on or ["rest"]:
                        expected[name] += power / len(on or ["rest"])
        total = sum(expected.values())
        for name in NAMES:
            assert shares[name][member] == pytest.approx(expected[name] / total, abs=1e-12)


def test_line_shares_of_the_analytic_solution_are_those_of_figure_2():
    outputs = theory.network(*theory.cosine_weights(97, 500, generator=0))
    shares = measures.line_shares(np.moveaxis(outputs, -1, 0))  # (q, n, m)
    medians = [np.median(shares[name]) for name in NAMES]
    np.testing.assert_allclose(medians, [0.790, 0.143, 0.033, 0.033, 0], atol=0.006)


@pytest.mark.filterwarnings("error")
def test_line_shares_of_a_constant_map_are_nan_and_other_shapes_are_refused():
    assert np.isnan(measures.line_shares(np.ones((4, 4)))["n + m"])
    with pytest.raises(ValueError, match=r"maps must have shape \(..., p, p\), got \(4, 5\)"):
        measures.line_shares(np.ones((4, 5)))


def test_frequency_family_share_finds_the_frequency_that_n_and_m_have_in_common():
    n, m = np.ogrid[:13, :13]
    hidden = np.cos(2 * np.pi * 5 * n / 13 + 1) + np.cos(2 * np.pi * 5 * m / 13)
    mixed = np.cos(2 * np.pi * 5 * n / 13 + 1) + np.cos(2 * np.pi * 4 * m / 13)
    share = measures.frequency_family_share([hidden, hidden * hidden, mixed])
    # the waves in 2n and 2m of the square lie outside, with half the amplitude of those in n + m and n - m
    np.testing.assert_allclose(share, [1, 0.8, 0.5], atol=1e-12)
    noise = np.random.default_rng(0).standard_normal((97, 97))
    assert measures.frequency_family_share(noise) < 0.01


# --- the structure of embeddings ----------------------------------------------------------------------------


def slow_gaps(embedding, normalise):
    """Every parallelogram by four loops, for one embedding (p, d)."""
    p, d = embedding.shape
    if normalise:
        embedding = (embedding - embedding.mean(0)) / embedding.std(0, ddof=1)
    gaps = []
    for i in range(p):
        for j in range(i, p):
            for m in range(i, p):
                for n in range(m, p):
                    if i + j == m + n and (i, j) < (m, n):
                        squares = [
                            (embedding[i, k] + embedding[j, k] - embedding[m, k] - embedding[n, k]) ** 2
                            for k in range(d)
                        ]
                        gaps.append(math.sqrt(sum(squares) / d))
    return gaps


@pytest.mark.parametrize("normalise", [False, True])
def test_gaps_and_rqi_are_those_of_four_loops(normalise):
    embeddings = np.random.default_rng(0).standard_normal((2, 3, 6, 2))
    gaps = measures.parallelogram_gaps(embeddings, normalise=normalise)
    for delta in (1.0, 2.0):
        found = measures.representation_quality_index(embeddings, delta)
        for where in np.ndindex(2, 3):
            np.testing.assert_allclose(gaps[where], slow_gaps(embeddings[where], normalise), atol=1e-12)
            slow = slow_gaps(embeddings[where], True)
            assert found[where] == pytest.approx(np.mean(np.array(slow) <= delta), abs=1e-12)
        assert found.max() > 0 and found.min() < 1


def test_gaps_come_out_the_same_in_small_blocks(monkeypatch):
    embeddings = np.random.default_rng(0).standard_normal((5, 8, 3))
    whole = measures.parallelogram_gaps(embeddings)
    for block in (1, 30, 250):
        monkeypatch.setattr(measures.parallelograms, "BLOCK", block)
        np.testing.assert_array_equal(measures.parallelogram_gaps(embeddings), whole)


def test_a_line_has_rqi_one_at_any_tolerance_and_place():
    k = np.arange(10)[:, None]
    for line in (0.3 + 0.7 * k, 1e6 - 1e-3 * k, np.hstack([0.1 * k, -2.3 * k + 5])):
        assert measures.parallelogram_gaps(line, normalise=False).max() == 0
        assert measures.representation_quality_index(line, 0 if np.abs(line).max() < 100 else 1e-6) == 1


def test_rqi_counts_a_gap_equal_to_delta_and_none_above():
    bent = np.array([[0.0], [0.0], [0.25]])  # the only parallelogram is 0 + 2 = 1 + 1
    (gap,) = measures.parallelogram_gaps(bent)
    assert gap == pytest.approx(math.sqrt(3))  # sample standard deviation 0.25 / sqrt(3)
    assert measures.representation_quality_index(bent, gap) == 1
    assert measures.representation_quality_index(bent, 0.9999 * gap) == 0


@pytest.mark.parametrize(("delta", "mean", "positive"), [(0.1, 0.035, 0.94), (0.01, 0.0035, 0.22)])
def test_rqi_of_a_random_representation_is_zero_only_for_a_small_delta(delta, mean, positive):
    embeddings = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 10, 1))
    found = measures.representation_quality_index(embeddings, delta)
    assert found.mean() == pytest.approx(mean, rel=0.06)
    assert (found > 0).mean() == pytest.approx(positive, abs=0.02)


def test_rqi_of_collapsed_embeddings_is_one_and_of_diverged_ones_nan():
    embeddings = np.stack([np.full((5, 2), 0.1), np.full((5, 2), np.nan), np.full((5, 2), np.inf)])
    embeddings[2, 1:] = 0
    with np.errstate(invalid="ignore"):
        found = measures.representation_quality_index(embeddings)
    np.testing.assert_array_equal(found, [1, np.nan, np.nan])


def test_standardised_has_mean_zero_and_the_deviation_asked_for():
    embedding = np.random.default_rng(0).normal(3, 5, (4, 7, 2))
    for ddof, squares in ((1, 6), (0, 7)):
        found = measures.standardised(embedding, ddof)
        np.testing.assert_allclose(found.mean(-2), 0, atol=1e-12)
        np.testing.assert_allclose(np.square(found).sum(-2), squares)
        np.testing.assert_allclose(measures.standardised(100 + 1e-3 * embedding, ddof), found, atol=1e-8)


S3 = group_table("S3")


def test_gaps_of_products_are_those_of_loops():
    embeddings = 3 * np.random.default_rng(0).standard_normal((4, 6, 3, 3))
    for E, found in zip(embeddings, measures.group_parallelogram_gaps(embeddings, S3), strict=True):
        E = E / math.sqrt((E**2).mean())
        gaps = []
        for x in range(36):
            for y in range(x + 1, 36):
                (a, b), (c, d) = divmod(x, 6), divmod(y, 6)
                if S3[a, b] == S3[c, d]:
                    squares = (E[a] @ E[b] - E[c] @ E[d]) ** 2
                    gaps.append(math.sqrt(squares.mean()))
        assert len(gaps) == 90 and found == pytest.approx(gaps)


def test_group_rqi_of_a_representation_is_one_and_of_random_matrices_nearly_zero():
    sign = np.array([1, -1, -1, 1, 1, -1.0])
    assert measures.group_representation_quality_index(0.2 * sign[:, None, None], S3) == 1  # whatever the scale
    random = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 6, 3, 3))
    assert 0.0003 < measures.group_representation_quality_index(random, S3).mean() < 0.003  # the dossier has 0.001
    assert np.isnan(measures.group_representation_quality_index(random[0] * np.nan, S3))


def test_effective_dimension_is_the_number_of_equal_directions():
    for d in (1, 3):
        corners = np.concatenate([np.eye(d), -np.eye(d)])  # variance 2 / (2 d) along each axis
        assert measures.effective_dimension(7 + 2 * corners) == pytest.approx(d)
    assert measures.effective_dimension(np.arange(6.0)[:, None] * [1, 2]) == pytest.approx(1)
    two_to_one = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) * [math.sqrt(2), 1]
    assert measures.effective_dimension(two_to_one) == pytest.approx(3 / 2 ** (2 / 3))  # shares 2/3 and 1/3
    assert np.isnan(measures.effective_dimension(np.ones((4, 2)))) and np.isnan(
        measures.effective_dimension(np.full((4, 2), np.nan))
    )


@pytest.mark.parametrize(("p", "expected"), [(59, 51.7), (53, 46.9)])
def test_effective_dimension_of_random_embeddings(p, expected):
    found = measures.effective_dimension(np.random.default_rng(0).standard_normal((10, p, 256)))
    assert found.mean() == pytest.approx(expected, abs=0.2)


def test_ring_share_of_a_circle_is_one_at_its_winding_number():
    k = np.arange(11)
    for turns in (1, 4):
        angle = 2 * np.pi * turns * k / 11 + 0.3
        ring = measures.ring_share(5 + np.stack([2 * np.cos(angle), np.sin(angle)], -1))
        assert ring.share == pytest.approx(1) and ring.frequency == turns
        other = measures.ring_share(np.stack([np.cos(angle), np.sin(angle)], -1), frequency=2)
        assert other.share == pytest.approx(0, abs=1e-12) and other.frequency == 2


@pytest.mark.parametrize("p", [8, 9])
def test_ring_share_is_the_r2_of_a_least_squares_fit(p):
    planes = np.random.default_rng(0).standard_normal((3, p, 2))
    ring = measures.ring_share(planes)
    for plane, share, frequency in zip(planes, *ring, strict=True):
        centred = plane - plane.mean(0)
        fits = []
        for f in range(1, (p - 1) // 2 + 1):
            angle = 2 * np.pi * f * np.arange(p) / p
            basis = np.stack([np.cos(angle), np.sin(angle)], -1)
            rest = centred - basis @ np.linalg.lstsq(basis, centred, rcond=None)[0]
            fits.append(1 - (rest**2).sum() / (centred**2).sum())
        assert (share, frequency) == (pytest.approx(max(fits)), np.argmax(fits) + 1)


def test_structure_measures_refuse_what_makes_no_sense():
    embedding = np.zeros((4, 2))
    for call, message in [
        (lambda: measures.representation_quality_index(embedding, -0.1), "delta must be at least 0, got -0.1"),
        (lambda: measures.representation_quality_index(embedding, np.nan), "delta must be at least 0, got nan"),
        (lambda: measures.representation_quality_index(np.zeros(4)), r"shape \(..., p, d\), got \(4,\)"),
        (lambda: measures.representation_quality_index(np.zeros((2, 1))), "p must be at least 3"),
        (lambda: measures.group_representation_quality_index(np.zeros((5, 3, 3)), S3), r"\(5, 3, 3\) and \(6, 6\)"),
        (lambda: measures.ring_share(embedding, 2), "frequency must be from 1 to 1 for p = 4, got 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_the_last_value_of_a_curve_is_its_last_finite_one():
    nan = np.nan
    rows = np.array([[[1.0, 2.0, nan], [nan, nan, nan]], [[nan, 0.0, np.inf], [3.0, nan, 4.0]]])
    np.testing.assert_array_equal(curves.last_value(rows), [[2.0, nan], [0.0, 4.0]])
    assert np.isnan(curves.last_value([])) and curves.last_value([nan, 5.0]) == 5.0
