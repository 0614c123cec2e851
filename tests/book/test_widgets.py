"""Frames: what a slider holds, and what it refuses."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from grokbook.book.widgets import BUDGET, frames

PNG = b"\x89PNG"


def test_every_frame_is_an_image_with_its_own_alternative_text():
    box = frames([PNG, PNG + b"2"], labels=["a", "b"], alts=['the "first"', "the <second>"], description="step")
    images = [child.value for child in box.children[1].children]
    assert 'alt="the &quot;first&quot;"' in images[0]
    assert 'alt="the &lt;second&gt;"' in images[1]
    assert images[0] != images[1]


def test_slider_and_play_reach_every_frame_and_no_further():
    box = frames([PNG] * 3, labels="abc", alts="abc", description="step")
    play, slider, _ = box.children[0].children
    assert (slider.min, slider.max, play.min, play.max) == (0, 2, 0, 2)
    assert slider.description == "step"
    ends = {(link.source[0], link.target[0]) for link in box.links}
    assert (play, slider) in ends and (slider, box.children[1]) in ends


def test_figures_are_drawn_the_same_each_time_and_closed():
    def drawn() -> str:
        figure, axes = plt.subplots(figsize=(2, 1))
        axes.plot([1, 2])
        value = frames([figure], labels=["a"], alts=["a line"], description="x").children[1].children[0].value
        assert not plt.fignum_exists(figure.number)
        return value

    assert drawn() == drawn()


@pytest.mark.parametrize(
    ("pictures", "labels", "alts", "words"),
    [
        ([PNG], ["a", "b"], ["a"], "1 pictures, 2 labels and 1 alts"),
        ([], [], [], "0 pictures"),
        ([PNG], ["a"], [" "], "alternative text"),
        ([b"x" * (BUDGET + 1)], ["a"], ["a"], "draw fewer"),
    ],
)
def test_incomplete_or_heavy_frames_are_refused(pictures, labels, alts, words):
    with pytest.raises(ValueError, match=words):
        frames(pictures, labels=labels, alts=alts, description="x")
