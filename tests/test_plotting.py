"""The house style: what panels draw, and files that are the same bytes each time."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from grokbook import plotting


@pytest.fixture
def ax():
    """An empty panel."""
    return plotting.panels()[1][0][0]


def test_curves_draw_every_seed_thin_and_their_median_thick(ax):
    values = np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 5.0], [2.0, 8.0, 1.0]])
    plotting.curves(ax, [0, 10, 20], values, color="#000000", label="loss")
    *seeds, median = ax.get_lines()
    assert [line.get_ydata().tolist() for line in seeds] == values.tolist()
    assert median.get_ydata().tolist() == [2.0, 4.0, 5.0]
    assert median.get_label() == "loss"
    assert median.get_linewidth() > seeds[0].get_linewidth()


def test_the_band_of_curves_spans_lowest_to_highest(ax):
    plotting.curves(ax, [0, 1], [[1.0, 2.0], [5.0, 3.0]], color="#000000")
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1.0, 5.0)


def test_curves_of_one_seed_are_one_line_without_a_band(ax):
    plotting.curves(ax, [0, 1], [[1.0, 2.0]], color="#000000")
    assert len(ax.get_lines()) == 1 and not ax.collections


def test_curves_pass_over_steps_at_which_nothing_was_measured(ax):
    plotting.curves(ax, [0, 1, 2], [[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]], color="#000000")
    first, second, median = ax.get_lines()
    assert first.get_xdata().tolist() == [0, 2]
    assert second.get_xdata().tolist() == [0]
    assert median.get_xydata().tolist() == [[0, 1.5], [2, 3.0]]


def test_dots_join_medians_and_leave_settings_without_a_value_out(ax):
    plotting.dots(ax, [0.2, 0.4, 0.6], [[np.nan, 5.0, 1.0], [np.nan, 7.0, 3.0]], color="#000000", label="GD")
    assert ax.get_lines()[-1].get_xydata().tolist() == [[0.4, 6.0], [0.6, 2.0]]


def test_heatmap_shows_the_first_axis_upwards_around_zero(ax):
    values = np.array([[-1.0, 0.0], [0.5, 0.25]])
    image = plotting.heatmap(ax, values, centre=True)
    low, high = image.get_clim()
    assert low == -high and high == pytest.approx(1.0, rel=0.01)
    assert image.get_array().tolist() == values.tolist()
    assert image.origin == "lower"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("m", "n")


@pytest.mark.parametrize(
    ("value", "text"), [(2e6, "2M"), (25000, "25k"), (1500, "1.5k"), (20, "20"), (0.02, "0.02"), (1e-5, "$10^{-5}$")]
)
def test_short_numbers(value, text):
    assert plotting.short(value) == text


def test_a_logarithmic_axis_is_labelled_with_plain_numbers_also_where_it_is_short():
    figure, ((ax,),) = plotting.panels()
    ax.plot([1, 2], [30, 300])
    ax.set_yscale("log")
    plotting.plain_numbers(ax.yaxis)
    figure.canvas.draw()
    low, high = ax.get_ylim()
    shown = [
        label.get_text()
        for tick, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
        if low <= tick <= high
    ]
    assert {"50", "100", "200"} <= set(shown)


@pytest.mark.parametrize("scale, nowhere", [("linear", float("nan")), ("log", 0.0)])
def test_marks_at_steps_that_have_no_place_on_the_axis_are_not_drawn(ax, scale, nowhere):
    ax.set_xscale(scale)
    plotting.mark(ax, nowhere, "test")
    assert not ax.get_lines() and not ax.texts
    plotting.mark(ax, 3.0, "test")
    assert ax.get_lines()[0].get_xdata() == [3.0, 3.0] and ax.texts[0].get_text() == "test"


def test_saving_twice_writes_the_same_bytes(tmp_path, handed):
    def draw():
        figure, ((ax,),) = plotting.panels()
        ax.plot([0, 1], [1, 2], label="x")
        ax.legend()
        return figure

    contents = []
    for name in ("one", "two"):
        handed(figures=str(tmp_path / name))
        plotting.save(draw(), "gromov", "fig1")
        paths = sorted((tmp_path / name / "gromov").iterdir())
        contents.append([path.read_bytes() for path in paths])
        assert [path.name for path in paths] == ["fig1.png", "fig1.svg"]
    assert contents[0] == contents[1]
    png, svg = contents[0]
    assert png.startswith(b"\x89PNG") and b"Matplotlib" not in png[:200]
    assert svg.startswith(b"<?xml") and b"<dc:date>" not in svg


def test_a_lean_svg_is_the_same_picture_to_a_tenth_of_a_point():
    path = b'<path d="M 1.234567 -2.5 \nL 30.999999 41.2345" id="m1.234567" transform="scale(0.015625)"/>'
    found = plotting.lean(b"<g>\n  <!-- p -->\n  " + path + b"\n</g>")
    assert found == b'<g>\n<path d="m1.23-2.5 29.77 43.7" id="m1.234567" transform="scale(0.015625)"/>\n</g>'


def test_points_of_a_lean_path_are_where_they_were():
    points = np.random.default_rng(0).uniform(-5, 400, (300, 2))
    written = " ".join(f"{'ML'[i % 50 > 0]} {x} {y}" + " z" * (i % 50 == 49) for i, (x, y) in enumerate(points))
    (found,) = re.findall(r' d="([^"]*)"', plotting.lean(f'<path d="{written}"/>'.encode()).decode())
    here, places = np.zeros(2), []
    for ring in found.split("z")[:-1]:
        moves = np.array(re.findall(r"-?(?:\d+\.?\d*|\.\d+)", ring), float).reshape(-1, 2)
        places.append(here + moves.cumsum(0))
        here = places[-1][0]  # a closed ring ends where it began
    np.testing.assert_allclose(np.concatenate(places), points, atol=0.0501)


def test_a_picture_inside_a_lean_svg_is_the_same_to_the_pixel():
    def written(pixels):
        picture = io.BytesIO()
        Image.fromarray(pixels).save(picture, format="png")
        return base64.b64encode(picture.getvalue())

    some = np.random.default_rng(0)
    colors = some.integers(0, 256, (256, 4), dtype=np.uint8)  # see-through ones too
    few, many = colors[some.integers(0, 256, (40, 50))], some.integers(0, 256, (40, 50, 4), dtype=np.uint8)
    for pixels, smaller in ((few, True), (many, False)):
        svg = plotting.lean(b'<image href="data:image/png;base64,' + written(pixels) + b'"/>')
        found = svg.split(b"base64,")[1].split(b'"')[0]
        np.testing.assert_array_equal(
            np.asarray(Image.open(io.BytesIO(base64.b64decode(found))).convert("RGBA")), pixels
        )
        assert (len(found) < len(written(pixels))) == smaller


def test_letters_come_from_the_font_that_matplotlib_brings(tmp_path):
    """Also where the machine has another edition of it, which matplotlib may have found first."""
    code = (
        "import shutil, sys; from matplotlib.font_manager import FontProperties, findfont, fontManager;"
        "other = shutil.copy(findfont('DejaVu Sans'), sys.argv[1]); fontManager.addfont(other);"
        "fontManager.ttflist.insert(0, fontManager.ttflist.pop());"
        "assert findfont('DejaVu Sans') == other;"
        "import grokbook.plotting; found = findfont(FontProperties('DejaVu Sans'), rebuild_if_missing=False);"
        "sys.exit(found == other)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "DejaVuSans.ttf")]
    done = subprocess.run(command, cwd=plotting.ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_figure_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch, handed):
    handed(figures=str(tmp_path))
    figure, _ = plotting.panels()
    (tmp_path / "gromov" / "fig1.png").mkdir(parents=True)
    with pytest.raises(OSError):
        plotting.save(figure, "gromov", "fig1")
    assert [path.name for path in (tmp_path / "gromov").iterdir()] == ["fig1.png"]


def test_without_a_folder_figures_go_to_the_checkout(handed):
    handed(figures="")
    assert plotting.folder("gromov") == plotting.ROOT / "figures" / "gromov"


def test_some_keeps_first_and_last():
    assert plotting.some(range(22), 4) == [0, 7, 14, 21]
    assert plotting.some([1, 2], 4) == [1, 2]
