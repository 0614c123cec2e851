"""The analytic solution against limits known by hand, slow loops, and the values measured before the book."""

import itertools
import math

import numpy as np
import pytest

from grokbook import measures
from grokbook.chapters.gromov import solution, theory
from grokbook.chapters.gromov.theory import outputs as of_networks


def square(n):
    return n * n


def slow_network(W_in, W_out, phi, p, factor):
    """Eqs. 1-2 word for word, one-hot vectors and loops."""
    width = len(W_in)
    outputs = np.zeros((p, p, p), np.result_type(W_in, W_out))
    for n in range(p):
        for m in range(p):
            x = [0.0] * (2 * p)
            x[n] = x[p + m] = 1.0
            z = [phi(sum(W_in[k, j] * x[j] for j in range(2 * p))) for k in range(width)]
            for q in range(p):
                outputs[n, m, q] = factor * sum(W_out[q, k] * z[k] for k in range(width))
    return outputs


# --- weights ------------------------------------------------------------------------------------------------


def test_cosine_weights_are_equations_6_and_7():
    p, width = 7, 9
    phases = theory.draw_phases(width, generator=0)
    W_in, W_out = theory.cosine_weights(p, width, phases=phases)
    assert (W_in.shape, W_out.shape) == ((width, 2 * p), (p, width))
    for k in range(1, width + 1):
        phi1, phi2, phi3 = phases[:, k - 1]
        for n in range(p):
            assert W_in[k - 1, n] == pytest.approx(math.cos(2 * math.pi * k / p * n + phi1), abs=1e-12)
            assert W_in[k - 1, p + n] == pytest.approx(math.cos(2 * math.pi * k / p * n + phi2), abs=1e-12)
            assert W_out[n, k - 1] == pytest.approx(math.cos(-2 * math.pi * k / p * n - phi3), abs=1e-12)


def test_drawn_phases_are_uniform_and_obey_equation_12():
    phi1, phi2, phi3 = theory.draw_phases(100_000, generator=0)
    np.testing.assert_allclose(phi1 + phi2, phi3, atol=1e-15)
    for phi in (phi1, phi2):
        assert -np.pi <= phi.min() < -3.14 and 3.14 < phi.max() < np.pi
        assert measures.resultant_length(phi) < 0.01
    assert abs(np.corrcoef(phi1, phi2)[0, 1]) < 0.01


def test_phase_noise_and_free_phases_break_equation_12_as_asked():
    phases = theory.draw_phases(100_000, noise=0.3, generator=0)
    assert np.std(phases.T @ [1, 1, -1]) == pytest.approx(0.3, rel=0.02)
    free = theory.draw_phases(100_000, noise=np.inf, generator=0)
    assert measures.resultant_length(free.T @ [1, 1, -1]) < 0.01


def test_functions_of_the_operands_permute_columns():
    phases = theory.draw_phases(6, generator=1)
    plain, _ = theory.cosine_weights(11, 6, phases=phases)
    changed, _ = theory.cosine_weights(11, 6, f1=lambda n: n**40 + 3, f2=lambda m: 5, phases=phases)
    np.testing.assert_array_equal(changed[:, :11], plain[:, [(n**40 + 3) % 11 for n in range(11)]])
    np.testing.assert_array_equal(changed[:, 11:], plain[:, [16] * 11])


def test_readout_of_several_roots_is_their_sum_and_of_none_is_zero():
    phases = theory.draw_phases(6, generator=1)
    _, plain = theory.cosine_weights(5, 6, phases=phases)
    _, W_out = theory.cosine_weights(5, 6, inverse=[(3,), (), (1, 4), (2,), (0,)], phases=phases)
    expected = [plain[3], 0 * plain[0], plain[1] + plain[4], plain[2], plain[0]]
    np.testing.assert_allclose(W_out, expected, atol=1e-12)


@pytest.mark.parametrize("p", [2, 12, 97])
def test_modular_roots_are_all_solutions(p):
    roots = theory.modular_roots(square, p)
    assert roots == [tuple(s for s in range(p) if s * s % p == q) for q in range(p)]
    if p == 97:
        assert sum(map(bool, roots)) == 49  # zero and 48 squares


def test_answers_are_the_table_of_the_task():
    table = theory.answers(6, f1=square, f2=lambda m: 5 * m + 1, F=lambda s: s**3 - 1)
    assert all(table[n, m] == ((n * n + 5 * m + 1) ** 3 - 1) % 6 for n in range(6) for m in range(6))
    assert theory.answers(6)[4, 5] == 3


# --- network ------------------------------------------------------------------------------------------------

PHI = {
    "quadratic": lambda h: h**2,
    "quartic": lambda h: h**4,
    "cubic": lambda h: h**3,
    "abs": abs,
    "relu": lambda h: max(h, 0.0),
    "relu_squared": lambda h: max(h, 0.0) ** 2,
    "gelu": lambda h: h * (1 + math.erf(h / math.sqrt(2))) / 2,
    "silu": lambda h: h / (1 + math.exp(-h)),
    "exp": math.exp,
    "softplus": lambda h: math.log(1 + math.exp(h)),
    "tanh": math.tanh,
    "sigmoid": lambda h: 1 / (1 + math.exp(-h)),
}


@pytest.mark.parametrize("activation", theory.ACTIVATIONS)
def test_network_is_the_loop_over_pairs_and_neurons(activation):
    generator = np.random.default_rng(0)
    W_in, W_out = 2 * generator.standard_normal((4, 6)), generator.standard_normal((3, 4))
    outputs = theory.network(W_in, W_out, activation)
    np.testing.assert_allclose(outputs, slow_network(W_in, W_out, PHI[activation], 3, 2 / 4), atol=1e-11)


def test_network_takes_other_factors_and_functions():
    generator = np.random.default_rng(1)
    W_in, W_out = generator.standard_normal((4, 6)), generator.standard_normal((3, 4))
    expected = slow_network(W_in, W_out, math.sin, 3, 0.25)
    outputs = theory.network(W_in, W_out, np.sin, factor=0.25)
    np.testing.assert_allclose(outputs, expected, atol=1e-12)


def test_network_and_accuracy_do_not_depend_on_the_block(monkeypatch):
    weights = theory.cosine_weights(11, 30, generator=0)
    outputs, whole = theory.network(*weights), theory.accuracy(*weights)
    monkeypatch.setattr(of_networks, "BLOCK", 100)
    np.testing.assert_allclose(theory.network(*weights), outputs, atol=1e-13)
    assert 0.5 < theory.accuracy(*weights) == whole < 1


def test_accuracy_is_the_share_of_right_argmaxes_over_the_table_or_over_some_pairs():
    weights = theory.cosine_weights(13, 15, generator=0)
    outputs = theory.network(*weights)
    right = np.array([[outputs[n, m].argmax() == (n + m) % 13 for m in range(13)] for n in range(13)])
    assert 0.2 < right.mean() < 0.9
    assert theory.accuracy(*weights) == theory.table_accuracy(outputs) == right.mean()
    assert theory.accuracy(*weights, theory.answers(13).ravel()) == right.mean()
    assert theory.accuracy(*weights, pairs=[5, 17, 100]) == right.ravel()[[5, 17, 100]].mean()


def test_mean_squared_error_is_over_pairs_and_answers():
    outputs = np.random.default_rng(0).standard_normal((4, 4, 4))
    errors = [(outputs[cell] - (sum(cell[:2]) % 4 == cell[2])) ** 2 for cell in np.ndindex(4, 4, 4)]
    assert theory.table_mse(outputs) == pytest.approx(np.mean(errors), rel=1e-12)
    assert theory.table_mse(np.zeros((97, 97, 97))) == pytest.approx(1 / 97, rel=1e-12)
    assert theory.table_mse(np.eye(4)[theory.answers(4)]) == pytest.approx(0, abs=1e-15)


# --- why it works -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 12, 13])
@pytest.mark.parametrize("noise", [0.0, np.inf])
def test_wave_families_add_up_to_the_network(p, noise):
    phases = theory.draw_phases(40, noise=noise, generator=p)
    families = theory.wave_families(p, phases)
    assert len(families) == 9
    outputs = theory.network(*theory.cosine_weights(p, 40, phases=phases))
    np.testing.assert_allclose(sum(families.values()), outputs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "line"), [(f"{line} {sign} q", line) for line in ("2n", "2m", "n + m", "n - m") for sign in "+-"]
)
def test_each_wave_family_lies_on_its_line_of_the_fourier_image(name, line):
    family = theory.wave_families(11, theory.draw_phases(8, generator=0))[name]
    np.testing.assert_allclose(measures.line_shares(np.moveaxis(family, -1, 0))[line], 1, atol=1e-12)


def test_the_last_family_of_equation_11_does_not_depend_on_the_input():
    constant = theory.wave_families(11, theory.draw_phases(8, generator=0))["q"]
    np.testing.assert_array_equal(constant, np.broadcast_to(constant[0, 0], constant.shape))
    assert constant.std() > 0.1


@pytest.mark.parametrize("width", [13, 39])
def test_constructive_waves_are_a_delta_function_when_p_divides_the_width(width):
    waves = theory.wave_families(13, theory.draw_phases(width, generator=0))["n + m - q"]
    np.testing.assert_allclose(waves, np.eye(13)[theory.answers(13)], atol=1e-12)


def test_each_destructive_family_holds_its_share_of_the_noise():
    families = theory.wave_families(97, theory.draw_phases(40, generator=0))
    for name, (weight, _) in theory.WAVES.items():
        if name != "n + m - q":  # the constant "q" alone has half
            assert np.square(families[name]).mean() == pytest.approx(weight**2 / 2 * 4 / 40, rel=1e-12)


@pytest.mark.parametrize("width", [1, 20, 48])
def test_error_below_half_of_p_is_the_expected_one_for_every_draw(width):
    expected = theory.expected_mse(97, width)
    assert expected == pytest.approx(4 / width + 1 / (2 * width) - 1 / 97, rel=1e-12)
    for seed in range(3):
        outputs = theory.network(*theory.cosine_weights(97, width, generator=seed))
        assert theory.table_mse(outputs) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("p", "width"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 2), (5, 2)])
def test_expected_error_is_the_mean_over_phases_for_any_p(p, width):
    # squared errors have harmonics up to 6 in each phase, so the mean over 7 equally spaced ones is exact
    errors = []
    for angles in itertools.product(2 * np.pi / 7 * np.arange(7), repeat=2 * width):
        phi1, phi2 = np.reshape(angles, (2, width))
        weights = theory.cosine_weights(p, width, phases=[phi1, phi2, phi1 + phi2])
        errors.append(theory.table_mse(theory.network(*weights)))
    assert theory.expected_mse(p, width) == pytest.approx(np.mean(errors), rel=1e-12)


def test_expected_error_tends_to_four_over_the_width():
    for width in (97, 388, 970):
        assert theory.expected_mse(97, width) == pytest.approx(4 / width, rel=0.001)
    # below width 4p predicting zero has the smaller error
    assert theory.expected_mse(97, 380) > 1 / 97 > theory.expected_mse(97, 400)


@pytest.mark.parametrize(("p", "width", "draws"), [(97, 500, 1), (5, 10, 1000), (7, 3, 1000)])
def test_expected_line_shares_are_those_of_the_network(p, width, draws):
    generator = np.random.default_rng(0)
    powers, total = dict.fromkeys(theory.expected_line_shares(p, width), 0.0), 0.0
    for _ in range(draws):
        maps = np.moveaxis(theory.network(*theory.cosine_weights(p, width, generator=generator)), -1, 0)
        total += maps.var((-2, -1)).sum()
        for name, share in measures.line_shares(maps).items():
            powers[name] += (share * maps.var((-2, -1))).sum()
    for name, share in theory.expected_line_shares(p, width).items():
        assert powers[name] / total == pytest.approx(share, abs=0.007)


def test_the_right_output_stands_half_the_root_of_the_width_above_the_noise():
    outputs = theory.network(*theory.cosine_weights(97, 970, generator=0))
    noise = outputs[~np.eye(97, dtype=bool)[theory.answers(97)]].std()
    assert theory.right_outputs(outputs).mean() / noise == pytest.approx(math.sqrt(970) / 2, rel=0.05)


# --- the reference values of the analytic solution, p = 97, five seeds, whole table --------------------------


@pytest.mark.parametrize(
    ("width", "low", "high"), [(20, 0.26, 0.34), (60, 0.93, 0.965), (97, 0.993, 0.999), (200, 0.99999, 1)]
)
def test_accuracy_and_error_of_the_analytic_solution_over_five_seeds(width, low, high):
    tables = [solution.outputs(97, theory.draw_phases(width, generator=seed)) for seed in range(5)]
    errors = np.mean([theory.table_mse(one) for one in tables])
    assert low <= np.mean([theory.table_accuracy(one) for one in tables]) <= high
    assert errors == pytest.approx(4 / width, rel=0.1)
    assert errors == pytest.approx(theory.expected_mse(97, width), rel=0.04)
    assert np.mean([theory.right_outputs(one) for one in tables]) == pytest.approx(1, abs=0.02)


def test_removing_the_constant_term_lifts_a_narrow_network():
    tables = [solution.outputs(97, theory.draw_phases(50, generator=seed)) for seed in range(5)]
    assert np.mean([theory.table_accuracy(one) for one in tables]) == pytest.approx(0.90, abs=0.02)
    assert np.mean([theory.table_accuracy(one - one.mean((0, 1))) for one in tables]) == pytest.approx(0.994, abs=0.004)


@pytest.mark.parametrize("p", [2, 3, 4, 96, 100])
def test_the_smallest_and_composite_moduli_are_solved_as_well(p):
    for seed in range(2):
        assert theory.accuracy(*theory.cosine_weights(p, 200, generator=seed)) >= 0.9999


def test_linear_functions_and_sums_of_squares_are_solved():
    tasks = [{"f1": lambda n: 3 * n, "f2": lambda m: 5 * m + 7}, {"f1": square, "f2": square}]
    for task in tasks:
        labels = theory.answers(97, **task)
        assert theory.accuracy(*theory.cosine_weights(97, 500, generator=0, **task), labels) >= 0.9999
        assert theory.accuracy(*theory.cosine_weights(97, 500, generator=0), labels) < 0.05


def test_an_invertible_function_of_the_sum_is_solved_by_its_inverse():
    roots = theory.modular_roots(lambda s: 2 * s + 1, 97)
    assert roots == [((q - 1) * 49 % 97,) for q in range(97)]  # 2 * 49 = 1 mod 97
    made = theory.cosine_weights(97, 200, inverse=roots, generator=0)
    assert theory.accuracy(*made, theory.answers(97, F=lambda s: 2 * s + 1)) >= 0.9999


def test_phase_errors_shrink_the_peak_by_a_gaussian_factor():
    for noise, low, high in ((0.3, 0.999, 1), (1.0, 0.999, 1), (1.5, 0.7, 0.87)):
        made = [solution.outputs(97, theory.draw_phases(500, noise=noise, generator=seed)) for seed in range(3)]
        peak = np.mean([theory.right_outputs(one) for one in made])
        assert peak == pytest.approx(math.exp(-(noise**2) / 2), abs=0.03)
        assert low <= np.mean([theory.table_accuracy(one) for one in made]) <= high
    free = solution.outputs(97, theory.draw_phases(500, noise=np.inf, generator=0))
    assert theory.table_accuracy(free) < 0.02


# --- products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 3, 5, 97])
def test_discrete_logarithms_turn_products_into_sums(p):
    logarithms = theory.discrete_logarithms(p)
    assert logarithms[0] == -1 and sorted(logarithms[1:]) == list(range(p - 1))
    for n in range(1, p):
        for m in range(1, min(p, 6)):
            assert logarithms[n * m % p] == (logarithms[n] + logarithms[m]) % (p - 1)


def test_product_weights_solve_all_pairs_without_a_zero_and_one_more_neuron_the_rest():
    n, m = np.ogrid[:97, :97]
    labels, without_zero = n * m % 97, np.flatnonzero((n * m).ravel())
    W_in, W_out = theory.product_weights(97, 200, generator=0)
    assert theory.accuracy(W_in, W_out, labels, pairs=without_zero) == 1
    assert theory.accuracy(W_in, W_out, labels) == pytest.approx((96 / 97) ** 2, abs=0.003)
    W_in, W_out = theory.product_weights(97, 200, detect_zero=True, generator=0)
    assert W_in.shape == (201, 194)
    outputs = theory.network(W_in, W_out)
    assert (outputs.argmax(-1) == labels).all()
    np.testing.assert_allclose(outputs[0, 1:, 0], 1, atol=1e-12)


def test_products_over_a_composite_modulus_have_no_logarithms():
    with pytest.raises(ValueError, match=r"p must be a prime .* got p=96"):
        theory.product_weights(96, 10)


# --- other activations --------------------------------------------------------------------------------------


def test_odd_activations_stay_at_chance_and_even_parts_are_recognised():
    x = np.linspace(0, 2, 65)
    odd = [name for name, phi in theory.ACTIVATIONS.items() if np.ptp(phi(x) + phi(-x)) < 1e-9]
    assert odd == ["cubic", "tanh", "sigmoid"]
    accuracy = theory.accuracy_against_width(97, [1600], range(2), activations=odd, pairs=1000)
    assert accuracy.max() < 0.035
    assert theory.accuracy_against_width(97, [200], [0], activations=["quadratic"], pairs=1000) > 0.99


def test_accuracy_of_other_activations_follows_the_reference_values():
    names = ["quadratic", "relu", "gelu", "abs", "silu"]
    reference = [[0.997, 0.608, 0.699, 0.929, 0.488], [1, 0.937, 0.968, 1.0, 0.862]]
    accuracy = theory.accuracy_against_width(97, [100, 200], range(3), activations=names).mean("seed")
    np.testing.assert_allclose(accuracy.transpose("width", "activation"), reference, atol=0.04)


def test_gelu_needs_a_very_large_width_only_when_its_input_is_scaled_down():
    small = 1 / math.sqrt(2 * 97)
    scaled = theory.accuracy_against_width(97, [400], [0], activations=["gelu", "relu"], input_scale=small, pairs=1000)
    plain = theory.accuracy_against_width(97, [400], [0], activations=["gelu", "relu"], pairs=1000)
    assert plain.sel(activation="gelu") > 0.99 and scaled.sel(activation="gelu") < 0.15
    assert scaled.sel(activation="relu") == plain.sel(activation="relu") > 0.98


def test_sampled_accuracy_estimates_that_of_the_table():
    whole = theory.accuracy_against_width(97, [50], range(3)).mean()
    sampled = theory.accuracy_against_width(97, [50], range(3), pairs=2000).mean()
    assert sampled == pytest.approx(float(whole), abs=0.02)


# --- infinite width -----------------------------------------------------------------------------------------


def tangent_kernel(pairs, others):
    """(a, b) 4 + 6 s², s counting the operands that two pairs share: mean product of an output's gradients over c² N.

    With unit normal weights the h of two pairs are normal, of variance 2 and covariance s. The readout's gradients,
    c h², give c² N E[h² h'²] = c² N (4 + 2 s²); those of the first layer, 2 c W_out h on the columns that are picked,
    give 4 c² N s E[h h'] = 4 c² N s², as two pairs pick s columns in common. Two outputs have nothing in common.
    """
    shared = (np.asarray(pairs)[:, None] == np.asarray(others)).sum(-1)
    return 4 + 6.0 * shared**2


def test_the_tangent_kernel_is_the_mean_product_of_a_wide_networks_gradients():
    p, width, pairs = 3, 40_000, list(itertools.product(range(3), repeat=2))
    W_in, W_out = (np.random.default_rng(0).standard_normal(size) for size in ((width, 2 * p), (p, width)))
    gradients = []  # of outputs 0 and 1, (output, pair, weight), word for word; c = 1
    for q in (0, 1):
        one = []
        for n, m in pairs:
            h, of_in, of_out = W_in[:, n] + W_in[:, p + m], np.zeros_like(W_in), np.zeros_like(W_out)
            of_in[:, n] = of_in[:, p + m] = 2 * W_out[q] * h
            of_out[q] = h * h
            one.append(np.concatenate([of_in.ravel(), of_out.ravel()]))
        gradients.append(one)
    same, other = (np.array(gradients[0]) @ np.array(gradients[q]).T / width for q in (0, 1))
    np.testing.assert_allclose(same, tangent_kernel(pairs, pairs), atol=1.5)  # 4, 10 and 28
    np.testing.assert_allclose(other, 0, atol=1.5)


@pytest.mark.parametrize("t", [0.01, 0.3, np.inf])
def test_the_flow_is_that_of_the_whole_kernel(t):
    p, labels = 5, theory.answers(5)
    seen = np.random.default_rng(0).random((p, p)) < 0.6
    pairs, one = np.argwhere(np.ones_like(seen)), np.eye(p)
    rates, modes = np.linalg.eigh(tangent_kernel(pairs[seen.ravel()], pairs[seen.ravel()]))
    dual = modes @ (((1 - np.exp(-rates * t)) / rates)[:, None] * (modes.T @ one[labels[seen]]))
    outputs = tangent_kernel(pairs, pairs[seen.ravel()]) @ dual
    np.testing.assert_allclose(next(theory.kernel_flow(labels, seen, [t])).reshape(-1, p), outputs, atol=1e-12)
