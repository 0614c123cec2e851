"""The numbers of a figure as a table: nothing drawn is missing, and nothing that only guides the eye is in it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from grokbook import drawn, plotting


def read(figures):
    return pd.read_csv(io.BytesIO(drawn.table(figures)), keep_default_na=False, na_values=[""])


def test_seeds_are_named_like_their_median_and_points_without_a_place_are_left_out():
    figure, ((ax,),) = plotting.panels()
    plotting.curves(ax, [1, 2, 3], [[1, 2, np.nan], [3, 4, 5]], color=plotting.BLUE, label="train")
    plotting.level(ax, 2.5, "theory")
    ax.set(xlabel="steps", ylabel="loss")
    lines = read({"": figure}).query("kind == 'line'")
    assert set(lines.series) == {"train"} and set(lines["y axis"]) == {"loss"} and set(lines["x axis"]) == {"steps"}
    assert [list(one.y) for _, one in lines.groupby("number")] == [[1, 2], [3, 4, 5], [2, 3, 5]]


def test_every_cell_of_a_map_stands_where_it_is_drawn():
    figure, ((up, down),) = plotting.panels(1, 2)
    plotting.heatmap(up, [[1, 2, 3], [4, 5, 6]], title="up", limit=(1, 6))
    down.imshow([[1, 2, 3], [4, 5, 6]], origin="upper", extent=(0, 3, 0, 2))
    cells = read({"": figure}).set_index(["panel", "x", "y"]).value
    assert cells["up", 2, 0] == 3 and cells["up", 0, 1] == 4
    assert cells["2", 2.5, 1.5] == 3 and cells["2", 0.5, 0.5] == 4


def test_bars_points_and_steps_are_rows_and_frames_say_which():
    def one(height):
        figure, ((ax,),) = plotting.panels()
        ax.barh([0, 1], [height, 2], label="b")
        ax.scatter([5], [6], c=[7])
        ax.stairs([8], [0, 2])
        return figure

    found = read({"step 1": one(1), "step 2": one(3)}).set_index(["frame", "kind"])
    assert list(found.loc[("step 2", "bar"), "x"]) == [3, 2]
    assert found.loc[[("step 1", "points")], ["x", "y", "value"]].values.tolist() == [[5, 6, 7]]
    assert found.loc[[("step 1", "step")], ["x", "y"]].values.tolist() == [[1, 8]]


def test_what_is_too_large_for_a_table_or_holds_no_numbers_has_none():
    figure, ((ax,),) = plotting.panels()
    assert drawn.table({"": figure}) is None
    ax.plot(np.arange(drawn.MOST + 1))
    assert drawn.table({"": figure}) is None


def test_a_colour_names_a_series_in_its_own_panel_and_only_where_one_series_has_it():
    figure, ((a, b, c),) = plotting.panels(1, 3)
    for ax, label in ((a, "SiLU"), (b, "x³")):
        ax.plot([1, 2], [3, 4], color=plotting.BLUE, label=label)
    for ax in (a, b, c):
        ax.plot([1], [7], color=plotting.BLUE)
        ax.set_ylabel("error" if ax is c else "accuracy")
    c.plot([1, 2], [3, 4], color=plotting.RED, label="one")
    c.plot([1, 2], [3, 5], color=plotting.RED, label="other")
    c.plot([1], [7], color=plotting.RED)
    nameless = read({"": figure}).query("y == 7")
    assert list(nameless.series.fillna("")) == ["SiLU", "x³", "", ""]
