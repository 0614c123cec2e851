"""The chapter's figures: every one is drawn, and shows the numbers of its records."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from grokbook.chapters.gromov import experiments, figures, studies

from .conftest import SEEDS, TINY, WIDTH, P

DERIVED = {"analytic_widths", "line_shares"}


def lines_by_label(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize("id", figures.FIGURES)
def test_every_figure_is_drawn_from_the_records_it_names_and_no_others(id, tiny_records):
    drawn = figures.FIGURES[id]
    figure = drawn.draw({name: tiny_records[name] for name in drawn.needs})
    assert isinstance(figure, Figure)
    for ax in figure.axes:
        assert ax.get_images() or (ax.get_xlabel() or ax.get_shared_x_axes().get_siblings(ax)), "an axis has no name"


def test_every_figure_of_the_paper_is_there():
    paper = {drawn.paper for drawn in figures.FIGURES.values()} - {""}
    assert paper == {"1", "2", "3", "4a", "4b", *map(str, range(5, 14))}


def test_figures_name_experiments_and_studies_that_exist():
    known = set(experiments.EXPERIMENTS) | set(studies.STUDIES) | DERIVED
    assert {name for drawn in figures.FIGURES.values() for name in drawn.needs} <= known
    assert set(TINY) == set(experiments.EXPERIMENTS)


def test_dynamics_shows_all_seeds_and_their_median(tiny_records):
    record = tiny_records["learning_curves"]
    loss, norms, accuracy, gradients = figures.dynamics(tiny_records).axes
    assert set(lines_by_label(accuracy)) == {"train", "test"}
    assert lines_by_label(accuracy)["test"].get_ydata() == pytest.approx(np.median(record.test_accuracy.values, axis=0))
    thin = [line for line in accuracy.get_lines() if line.get_linewidth() < 1]
    assert len(thin) == 2 * SEEDS
    assert lines_by_label(norms)["first layer"].get_ydata()[0] == pytest.approx(1.0)
    assert gradients.get_xlabel() == accuracy.get_xlabel() == "optimizer steps"
    assert loss.get_yscale() == "log"


def test_maps_shows_the_networks_own_output(tiny_records):
    figure = figures.maps(tiny_records)
    trained = np.asarray(figure.axes[1].get_images()[0].get_array())
    assert trained == pytest.approx(studies.outputs(tiny_records["learning_curves"], 0, -1)[..., 6 % P])
    initial = np.asarray(figure.axes[0].get_images()[0].get_array())
    assert initial == pytest.approx(studies.outputs(tiny_records["learning_curves"], 0, 0)[..., 6 % P])


def test_trained_and_analytic_accuracy_share_an_axis(tiny_records):
    (ax,) = figures.width_scaling(tiny_records).axes
    shown = lines_by_label(ax)
    assert set(shown) == {
        "GD (test set)",
        "AdamW (test set)",
        "analytic (whole table)",
        "analytic, mean output removed",
    }
    assert shown["analytic (whole table)"].get_ydata() == pytest.approx(
        np.median(tiny_records["analytic_widths"].accuracy.values, axis=1)
    )


def test_runs_that_never_grok_are_crosses_from_the_longest_run_upwards(tiny_records):
    record = tiny_records["data_fraction"].copy(deep=True)
    record["test_accuracy"][:] = 0.0
    (ax,) = figures.data_fraction({"data_fraction": record}).axes
    crosses = [line for line in ax.get_lines() if line.get_marker() == "x"]
    assert len(crosses) == 6
    assert all(len(set(line.get_ydata())) == 1 and len(line.get_xdata()) == 3 for line in crosses)
    rows = [float(line.get_ydata()[0]) for line in crosses]
    assert rows[0] == 12 and rows == sorted(set(rows))  # none hides another


def test_lines_shows_the_expected_share_beside_the_measured_one(tiny_records):
    (ax,) = figures.lines(tiny_records).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["initial", "GD", "AdamW", "analytic"]
    assert "expected" in lines_by_label(ax)


def test_the_smallest_fraction_is_the_end_of_an_unbroken_row():
    def run(alpha, seed, groks):
        return alpha, seed, groks

    runs = [run(0.2, 0, True), run(0.4, 0, False), run(0.6, 0, True), run(0.8, 0, True)]
    accuracy = np.array([[0.0, 1.0 if groks else 0.5] for _, _, groks in runs])
    record = xr.Dataset(
        {"train_accuracy": (("run", "step"), accuracy), "test_accuracy": (("run", "step"), accuracy)},
        {"step": [0, 10], "train_fraction": ("run", [r[0] for r in runs]), "seed": ("run", [r[1] for r in runs])},
    )
    assert studies.smallest_fraction(record).tolist() == [0.6]


def test_every_modulus_is_drawn_in_a_colour_of_its_own(tiny_records):
    own = tiny_records["critical_fraction"]
    many = xr.concat([own.assign_coords(p=("run", np.full(own.sizes["run"], p))) for p in (3, 5, 11, 13)], "run")
    figure = figures.critical_fraction({"critical_fraction": many})
    shown = lines_by_label(figure.axes[0])
    assert list(shown) == [f"p = {p}, N = {WIDTH}" for p in (3, 5, 11, 13)]
    assert len({line.get_color() for line in shown.values()}) == 4


def test_the_best_training_accuracy_is_not_that_of_an_untrained_network():
    accuracy = {"train_accuracy": [[0.01, 0.2, 0.3, 0.25]], "test_accuracy": [[0.02, 0.01, 0.01, 0.01]]}
    record = xr.Dataset({name: (("run", "step"), values) for name, values in accuracy.items()})
    assert studies.best(record, "train") == [0.3] and studies.best(record, "test") == [0.02]


def test_frames_say_what_they_show(tiny_records):
    record = tiny_records["formation"]
    assert figures.formation_label(record, 0).startswith("step 0: test accuracy")
    assert "of the output's power lies on the diagonal line" in figures.formation_alt(record, 1)
    assert len(figures.formation_frame(record, 2).axes) == 4
    assert "accuracy 100.0%" in figures.delta_alt(P, 400)


@pytest.mark.parametrize(("f", "text"), [("n**2 + m**2 + n*m", "n²\u2009+\u2009m²\u2009+\u2009nm"), ("n*m", "nm")])
def test_functions_are_written_as_by_hand(f, text):
    assert studies.pretty(f) == text


def test_regularisers_are_drawn_where_no_network_gets_there(tiny_records):
    record = tiny_records["regularisers"].copy(deep=True)
    for split in ("train", "test"):
        record[f"{split}_accuracy"][:] = 0.0
        if f"reached_{split}_accuracy" in record:
            record[f"reached_{split}_accuracy"][:] = np.nan
    figure = figures.regularisers({"regularisers": record})
    figure.canvas.draw()
    assert figure.axes[0].get_xlim()[0] > 0
