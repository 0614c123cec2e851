"""The criteria of Fig. 6: what is no growth of the kind that the caption tells does not meet them."""

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gromov import CHAPTER

STEPS = np.arange(0.0, 1000, 2)
NULLS = {
    "a line": STEPS / 1000,
    "noise": np.random.default_rng(0).standard_normal(len(STEPS)),
    **{f"a logistic rise at {middle}": 1 / (1 + np.exp((middle - STEPS) / 10)) for middle in (5, 20, 80, 300)},
}


def outcome(id, ratio):
    """The verdict where 99 % of the training set are right from step 20 on, and of the test set from step 40 on."""
    curves = {"ipr": ratio, "train_accuracy": STEPS >= 20, "test_accuracy": STEPS >= 40}
    record = xr.Dataset({name: (("run", "step"), values[None] * 1.0) for name, values in curves.items()})
    return CHAPTER.claims[id].judge({"adamw_curves": record.assign_coords(step=STEPS)}).outcome


@pytest.mark.parametrize("null", NULLS)
def test_growth_that_turns_fast_at_another_time_or_never_does_not_pass_for_fig_6(null):
    assert outcome("fig6-start", NULLS[null]) == "not reproduced"


def test_growth_that_turns_fast_while_the_network_groks_passes_for_fig_6():
    assert outcome("fig6-start", np.clip(STEPS / 800 + np.maximum(STEPS - 30, 0) / 100, 0, 1)) == "reproduced"


@pytest.mark.parametrize("null", [name for name in NULLS if name != "a line"])
def test_only_a_line_passes_for_linear_growth(null):
    assert outcome("fig6-linear", NULLS[null]) != "reproduced"
    assert outcome("fig6-linear", NULLS["a line"]) == "reproduced"
