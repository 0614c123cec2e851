"""What is read off weights after training: noise has none of it, and weights made by hand have it as known."""

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gromov import found, periodicity, theory

P = 31


def record(W_in, W_out):
    """One run that ended with these weights."""
    layers = {"W_in": (("run", "snapshot", "hidden", "input"), W_in[None, None])}
    layers["W_out"] = (("run", "snapshot", "output", "hidden"), W_out[None, None])
    return xr.Dataset(layers, {"p": ("run", [P])})


def test_noise_has_no_unit_of_a_frequency_and_weights_by_hand_have_copies_of_each():
    generator = np.random.default_rng(0)
    noise = record(generator.standard_normal((300, 2 * P)), generator.standard_normal((P, 300)))
    by_hand = record(*theory.cosine_weights(P, 300, generator=0))
    study = found.phases(noise, by_hand)
    assert study.rarest.values.tolist() == [[0], [19]]  # 300 units of every residue k, and p - k is the same wave as k


def test_the_power_of_a_square_wave_lies_at_odd_multiples_of_its_frequency_and_that_of_noise_everywhere():
    angles = 2 * np.pi / P * 7 * np.arange(2 * P) + np.array([[0.3], [1.0]])
    waves = record(np.cos(angles) - 0.2 * np.cos(3 * angles), np.zeros((P, 2)))
    assert periodicity.harmonics(waves, 3) == pytest.approx(1) and periodicity.harmonics(waves, 2, 5) < 1e-9
    noise = record(np.random.default_rng(0).standard_normal((2000, 2 * P)), np.zeros((P, 2000)))
    assert periodicity.harmonics(noise, 3, 5) == pytest.approx(2 / 15, rel=0.1)
