"""The lint of figures: what it refuses, and that a good figure passes."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from grokbook import lint, plotting


@pytest.fixture
def figure():
    with matplotlib.rc_context(plotting.RC):
        made, ((ax,),) = plotting.panels(1, 1, height=2.5)
        ax.plot(np.arange(20), np.arange(20), label="a line")
        ax.set(xlabel="steps", ylabel="loss")
        yield made, ax


def test_a_named_and_legible_figure_passes(figure):
    made, ax = figure
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    assert lint.problems(plotting.drawn(made)) == []


def test_a_name_below_the_whole_figure_serves_its_panels(figure):
    made, ax = figure
    ax.set_xlabel("")
    made.supxlabel("steps", fontsize=plotting.SMALL)
    assert lint.problems(plotting.drawn(made)) == [] and lint.axis_name(made, ax, "x") == "steps"


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda made, ax: ax.set_xlabel(""), "the x axis"),
        (lambda made, ax: ax.text(5, 5, "tiny", fontsize=5), "px high on a phone"),
        (lambda made, ax: ax.set_ylabel("a name far too long for so low a panel"), "is cut off at the edge"),
        (lambda made, ax: [ax.text(5, 5, word) for word in ("one", "two")], "overlap"),
        (lambda made, ax: ax.legend(loc="center"), "legend lies over data"),
        (lambda made, ax: ax.lines[0].remove(), "a panel is empty"),
    ],
)
def test_what_a_reader_would_trip_over_is_told(figure, spoil, words):
    made, ax = figure
    spoil(made, ax)
    assert any(words in problem for problem in lint.problems(plotting.drawn(made)))
