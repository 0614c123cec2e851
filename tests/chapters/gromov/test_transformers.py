"""Attention with more and fewer heads: when a jump counts as one."""

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gromov import transformers

HEADS = [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize(
    ("test", "enough"),
    [
        ([0, 0, 0.1, 0.6, 0.95, 1, 1], 16),
        ([0, 0, 0.1, 0.4, 0.8, 1, 1], 32),
        ([0, 0, 0.1, 0.95, 0.8, 1, 1], np.inf),  # 16 heads fail, and 8, a quarter of 32, do not
        ([0, 0, 0.6, 0.7, 0.95, 1, 1], np.inf),  # four heads, a quarter of 16, do half of it
        ([0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 1], np.inf),  # above 32 nothing counts
        ([1, 1, 1, 1, 1, 1, 1], np.inf),  # no jump
        ([0, 0, 0, 0.95, 1, 1, 0.2], 8),
    ],
)
def test_heads_are_enough_from_a_jump_on_that_a_quarter_of_them_does_not_make(test, enough):
    accuracy = np.repeat(test, 3)[:, None] + [[0.0], [-0.01], [0.3]] * len(test)  # the median of three seeds decides
    record = xr.Dataset(
        {"test_accuracy": (("run", "step"), accuracy)},
        {"heads": ("run", np.repeat(HEADS, 3)), "seed": ("run", [0, 1, 2] * 7), "label": ("run", ["net"] * 21)},
    )
    assert transformers.enough_heads("net", record) == enough
