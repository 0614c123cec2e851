"""Frames: what a slider holds, and what it refuses."""

from __future__ import annotations

import re

import pytest

from grokbook import plotting
from grokbook.book import widgets
from grokbook.book.widgets import choose, frames, live


def picture(height=1.0):
    figure, ((ax,),) = plotting.panels(height=1.0, width=2.0)
    ax.plot([0, height])
    return figure


def test_every_frame_is_an_image_with_its_own_alternative_text_and_one_is_shown():
    shown = frames([picture(), picture(2)], labels=["a", "b"], alts=['the "first"', "the <second>"], description="step")
    images = re.findall("<img .*?>", shown.markup)
    assert 'alt="the &quot;first&quot;"' in images[0] and 'alt="the &lt;second&gt;"' in images[1]
    assert [" hidden" in image for image in images] == [False, True]


def test_slider_reaches_every_frame_and_no_further_and_both_controls_have_a_name():
    markup = frames([picture()] * 3, labels="abc", alts="abc", description="step", start=1).markup
    assert 'min="0" max="2" value="1"' in markup and "<label>step <input" in markup
    assert 'aria-label="play"' in markup and "<output>b</output>" in markup


def test_frames_are_drawn_the_same_each_time_and_the_last_one_stands_for_all():
    one, other = (frames([picture(), picture(2)], labels="ab", alts="ab", description="x") for _ in range(2))
    assert one.markup == other.markup and one.poster == plotting.palette(plotting.drawn(picture(2), dpi=160), 64)
    assert list(one.figures) == ["a", "b"]


def test_frames_are_held_to_the_lint_of_figures():
    shown = frames([picture()], labels=["step 3"], alts=["a line"], description="training")
    assert 'training step 3: the x axis of "a panel" has no name' in shown.problems
    assert choose({"one": shown}, description="family").problems == [f"one, {each}" for each in shown.problems]


def test_quick_scale_draws_some_frames_among_them_the_shown_and_the_last(monkeypatch):
    monkeypatch.setenv("GROKBOOK", '{"scale": "quick"}')
    shown = frames([picture()] * 14, labels="abcdefghijklmn", alts="a" * 14, description="step", start=4)
    assert list(shown.figures) == list("adegjmn") and "<output>e</output>" in shown.markup


def test_a_list_shows_its_first_frames_and_keeps_the_numbers_of_all():
    sets = [frames([picture()], labels=[name], alts=[name], description="step") for name in "ab"]
    shown = choose({"one": sets[0], "two": sets[1]}, description="family")
    assert re.findall("<div( hidden)?><div class", shown.markup) == ["", " hidden"]
    assert list(shown.figures) == ["one, a", "two, b"] and shown.poster == sets[0].poster


@pytest.mark.parametrize(
    ("count", "labels", "alts", "words"),
    [
        (1, ["a", "b"], ["a"], "1 pictures, 2 labels and 1 alts"),
        (0, [], [], "0 pictures"),
        (1, ["a"], [" "], "alternative text"),
        (1, ["a"], ["a"], "draw fewer"),
    ],
)
def test_incomplete_or_heavy_frames_are_refused(count, labels, alts, words, monkeypatch):
    monkeypatch.setattr(widgets, "BUDGET", 100)
    with pytest.raises(ValueError, match=words):
        frames([picture()] * count, labels=labels, alts=alts, description="x")


def test_live_sliders_call_their_drawing_anew_and_are_left_out_of_a_built_book(monkeypatch):
    drawn = []
    panel = live(lambda units, draw: drawn.append((units, draw)), units=(20, 40), draw=range(3))
    panel.children[0].value = 40
    panel.update()
    assert drawn[-1] == (40, 0)
    monkeypatch.setenv("GROKBOOK", '{"figures": "somewhere"}')
    assert live(print, units=(20, 40)) is None
