"""The effective theory's dynamics: the flow of embeddings, and the representation of classes of appendix I."""

import itertools

import numpy as np
import pytest

from grokbook import measures
from grokbook.chapters.liu import theory
from grokbook.optim import SGD, Adam
from tests.chapters.liu.test_theory import STAGES, TRAIN_58, slow_parallelograms

# The first embeddings of the paper's default run (seed 58), p = 10.
E_58 = np.array(
    [
        [-0.032972157, -0.144132614, 0.008714139, -0.311094701, 0.491448283],
        [-0.099920928, -0.140752614, -0.44361949, -0.12903446, 0.154184401],
    ]
).reshape(10, 1)
START = measures.standardised(E_58)  # sum of squares 9
PLANE = np.random.default_rng(1).standard_normal((10, 2))


def conserved(R):
    """Eq. 6: the sum of embeddings (..., p, d) and that of their squares."""
    return R.sum(-2), np.square(R).sum((-2, -1))


def squared_gaps(R, pairs):
    """The sum over P0(D) of eq. 5, and how many parallelograms it has."""
    rows = slow_parallelograms(pairs)
    return sum(np.sum((R[i] + R[j] - R[m] - R[n]) ** 2) for i, j, m, n in rows), len(rows)


@pytest.mark.parametrize("averaging", ["sum", "mean"])
def test_the_flow_is_down_the_gradient_of_the_effective_loss(averaging):
    """By central differences, at the start and later on, with a Z0 that is not that of the start."""
    h = 1e-6
    for R in (PLANE[:6] + 0.3, theory.flow(PLANE[:6] + 0.3, STAGES["c"], [0.4])[0]):
        gradient = np.zeros_like(R)
        for where in np.ndindex(R.shape):
            losses = []
            for sign in (1, -1):
                moved = R.copy()
                moved[where] += sign * 1e-5
                total, count = squared_gaps(moved, STAGES["c"])
                losses.append(total / (moved**2).sum() / (count if averaging == "mean" else 1))
            gradient[where] = (losses[0] - losses[1]) / 2e-5
        velocity = (theory.flow(R, STAGES["c"], [h], averaging=averaging)[0] - R) / h
        np.testing.assert_allclose(velocity, -gradient, atol=1e-4 * np.abs(gradient).max())


def test_the_flow_of_two_times_is_that_of_their_sum():
    first, second = (
        theory.flow(R, TRAIN_58, [0.7])[0] for R in (PLANE + 1, theory.flow(PLANE + 1, TRAIN_58, [0.5])[0])
    )
    later = theory.flow(PLANE + 1, TRAIN_58, [0, 0.7, 1.2])
    np.testing.assert_allclose(later, [PLANE + 1, first, second], atol=1e-9)


def test_the_two_conserved_quantities():
    """Z0 always; the sum of the embeddings only from zero, and in eq. 9 always, at the expense of Z0."""
    times = np.linspace(0, 5, 6)
    centred = PLANE - PLANE.mean(0)
    shifted = centred + np.array([1.0, 0.0])
    for R in (centred, shifted):
        C, Z0 = conserved(theory.flow(R, TRAIN_58, times))
        np.testing.assert_allclose(Z0, np.square(R).sum(), rtol=1e-8)
        assert (np.abs(C).max() < 1e-9) == (R is centred)
    rise = np.diff(conserved(theory.flow(shifted, TRAIN_58, [0, 1e-6]))[0], axis=0)[0] / 1e-6
    l0, _ = squared_gaps(shifted, TRAIN_58)
    np.testing.assert_allclose(rise, 2 * l0 / np.square(shifted).sum() ** 2 * np.array([10, 0]), rtol=1e-4, atol=1e-9)
    C, Z0 = conserved(theory.flow(shifted, TRAIN_58, times, renormalise=False))
    np.testing.assert_allclose(C, np.tile([10.0, 0.0], (6, 1)), atol=1e-9)
    assert (np.diff(Z0) < 0).all() and Z0[-1] < 0.8 * Z0[0]
    k = np.arange(10) - 4.5
    touched = shifted.mean(0) ** 2 * 10 + (k @ shifted) ** 2 / (k @ k)  # translation and line survive
    late = theory.flow(shifted, TRAIN_58, [1e4], renormalise=False)
    assert conserved(late)[1][0] == pytest.approx(touched.sum())


def test_the_default_run_follows_the_published_flow():
    n_h = 1 / (1e-3 * float(theory.grokking_rate(TRAIN_58, 10, Z0=9)))
    times = np.array([0, 3, 4, 5, 7]) * n_h * 1e-3
    R = theory.flow(START, TRAIN_58, times)
    r2 = theory.line_fit(R)
    rho = np.sqrt(1 / r2 - 1)
    assert rho[0] == pytest.approx(25, abs=0.5)
    np.testing.assert_allclose(r2[1:4], [0.65, 0.93, 0.99], atol=0.006)
    assert r2[-1] >= 0.999
    assert (rho[1:] <= rho[0] * np.exp([-3, -4, -5, -7])).all()
    assert np.argsort(R[-1, :, 0]).tolist() == list(range(10))[::-1]
    np.testing.assert_allclose(conserved(R)[1], 9, rtol=1e-8)


def test_the_distance_from_the_line_falls_at_the_grokking_rate():
    rate = float(theory.grokking_rate(TRAIN_58, 10, Z0=9))
    times = np.array([12, 14]) / rate
    rho = np.sqrt(1 / theory.line_fit(theory.flow(START, TRAIN_58, times)) - 1)
    assert np.log(rho[0] / rho[1]) / (times[1] - times[0]) == pytest.approx(rate, rel=1e-3)


def test_line_fit_is_the_r2_of_least_squares():
    for R in (PLANE, START, 3 - 2.0 * np.arange(5)[:, None] * [1, 2]):
        k = np.stack([np.ones(len(R)), np.arange(len(R))], -1)
        rest = np.square(R - k @ np.linalg.lstsq(k, R, rcond=None)[0]).sum()
        assert theory.line_fit(R) == pytest.approx(1 - rest / np.square(R - R.mean(0)).sum())


# --- appendix I ---------------------------------------------------------------------------------------------

FEATURES = np.random.default_rng(0).normal(0.3, 1.0, (30, 2))
LABELS = np.random.default_rng(1).integers(3, 7, 30)


def class_loss(features):
    """l of eq. 32 and Z, by couples."""
    couples = [(x, y) for x, y in itertools.combinations(range(30), 2) if LABELS[x] == LABELS[y]]
    return sum(np.sum((features[x] - features[y]) ** 2) for x, y in couples), np.sum(features**2)


@pytest.mark.parametrize("scale_invariant", [True, False])
def test_class_gradient_is_that_of_differences(scale_invariant):
    gradient = theory.class_gradient(FEATURES, LABELS, scale_invariant=scale_invariant)
    for where in [(0, 0), (7, 1), (29, 0)]:
        step = np.zeros_like(FEATURES)
        step[where] = 1e-5
        (l, Z), (below, Z_below) = (class_loss(FEATURES + sign * step) for sign in (1, -1))
        change = l / Z - below / Z_below if scale_invariant else l - below
        assert gradient[where] == pytest.approx(change / 2e-5, rel=1e-5)


def test_descent_on_the_class_loss_keeps_the_size_only_with_the_division_by_it():
    size = np.square(FEATURES).sum()
    states = {way: theory.class_descent(FEATURES, LABELS, 500, SGD(2e-3), scale_invariant=way) for way in (True, False)}
    assert np.square(states[True][-1]).sum() == pytest.approx(size, rel=1e-2)
    assert np.square(states[False][-1]).sum() < 0.5 * size
    means = [[FEATURES[c == LABELS].mean(0), states[False][-1][c == LABELS].mean(0)] for c in np.unique(LABELS)]
    np.testing.assert_allclose(*np.moveaxis(means, 1, 0), atol=1e-12)  # no collapse of free features


def test_adam_on_the_class_loss_is_the_textbook_rule():
    states = theory.class_descent(FEATURES, LABELS, 2, Adam(0.01))
    m = v = 0.0
    f = FEATURES
    for t in (1, 2):
        g = theory.class_gradient(f, LABELS)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        f = f - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(states[t], f, rtol=1e-12)
