"""Other activations: what is kept of trained units, and weights by hand for an odd one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from grokbook.chapters.gromov import theory
from grokbook.chapters.gromov.measures import _constant_share, _three_waves
from grokbook.tasks import ModularTask

P = 97


def wave(frequency):
    return np.cos(2 * np.pi * frequency * np.arange(P) / P)


def measured(W_in, W_out=None):
    """What a measure is handed of one member: these look at weights and task alone."""
    params = {"W_in": np.asarray(W_in)[None], "W_out": None if W_out is None else W_out[None]}
    return SimpleNamespace(params=params, tasks=[ModularTask(P)])


def test_the_constant_of_a_unit_is_that_of_both_halves_together():
    units = [[*(0.5 + wave(3)), *wave(5)], [*(0.5 + wave(3)), *(wave(5) - 0.5)], [*(1 + wave(3)), *(1 + 0 * wave(5))]]
    assert _constant_share(measured(units))["constant_share"][0] == pytest.approx([0.2, 0, 8 / 9])


def test_three_waves_a_unit_add_under_the_cube_and_not_under_the_square():
    W_in, W_out = theory.three_wave_weights(P, 1_000, generator=0)
    assert theory.accuracy(W_in, W_out, activation="cubic") > 0.99
    assert theory.accuracy(W_in, W_out) < 0.05
    assert _three_waves(measured(W_in, -W_out))["three_waves"][0, 0] > 0.99
