"""The chapter's figures: every one is drawn, and shows the numbers of its records."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from grokbook.chapters.liu import experiments, figures, studies
from grokbook.chapters.liu.theory.phases import PHASES
from grokbook.models.encoder import PairEncoder

from .conftest import TINY, P, trained

DERIVED = {"component_accuracy"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at this size some medians are over nothing
@pytest.mark.parametrize("id", figures.FIGURES)
def test_every_figure_is_drawn_from_the_records_it_names_and_no_others(id, tiny_records):
    drawn = figures.FIGURES[id]
    figure = drawn.draw({name: tiny_records[name] for name in drawn.needs})
    assert isinstance(figure, Figure) and figure.axes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("id", [id for id, drawn in figures.FIGURES.items() if drawn.some])
def test_phase_figures_leave_a_panel_blank_for_each_diagram_without_a_record(id, tiny_records):
    drawn = figures.FIGURES[id]
    for count in (1, len(drawn.needs)):
        figure = drawn.draw({name: tiny_records[name] for name in drawn.needs[-count:]})
        blank = [ax for ax in figure.axes if any(text.get_text() == "not trained yet" for text in ax.texts)]
        assert len(blank) == len(drawn.needs) - count


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_few_steps_leave_fewer_snapshots_and_the_figures_are_drawn():
    short = {
        "trajectory": trained(experiments.trajectory(P, 18, steps=20)),
        "ring": trained(experiments.ring(7, 8, 1, 8, steps=5, seeds=1)),
    }
    assert short["trajectory"].snapshot_step.values[0].tolist() == [*range(21)]
    assert short["ring"].snapshot_step.values[0].tolist() == [0, 5]
    for drawn in figures.FIGURES.values():
        if drawn.needs and set(drawn.needs) <= set(short):
            assert drawn.draw({name: short[name] for name in drawn.needs}).axes


def test_every_figure_of_the_paper_is_there():
    paper = {drawn.paper for drawn in figures.FIGURES.values()} - {""}
    split = {"4a", "4b", "4cd", "5a", "5b", "7a", "7b", "7c", "8a", "8b"}
    assert paper == split | {str(k) for k in range(1, 23) if k not in (4, 5, 7, 8)}


def test_figures_name_experiments_and_studies_that_exist():
    known = set(experiments.EXPERIMENTS) | set(studies.STUDIES) | DERIVED
    assert {name for drawn in figures.FIGURES.values() for name in drawn.needs} <= known
    assert set(TINY) == set(experiments.EXPERIMENTS)


def test_a_diagram_puts_every_run_in_its_cell(tiny_records):
    record = tiny_records["phases_rates"].copy(deep=True)
    record["reached_train_accuracy"][:] = 1e6 * record.lr.values
    record["reached_test_accuracy"][:] = 1e9 * record.W_E_lr.values
    found = studies.diagram(record, "lr", "W_E_lr")
    assert found.t_train[..., 0] == pytest.approx(np.broadcast_to(1e6 * found.x, found.t_train.shape[:2]))
    assert found.t_val[..., 0] == pytest.approx(np.broadcast_to(1e9 * found.y[:, None], found.t_val.shape[:2]))


def test_the_published_counts_are_those_the_paper_was_drawn_from():
    wanted = {
        "rates": (29, 31, 109, 0),
        "regression": (17, 60, 60, 39),
        "classification": (30, 85, 50, 11),
        "group": (73, 31, 62, 10),
    }
    for panel, numbers in wanted.items():
        found = studies.published(panel)
        counts = studies.counts(found.map(budget=1e5)[0])
        assert tuple(counts[name] for name in PHASES) == (*numbers, 0)
    regression = studies.published("regression")
    column = int(np.argmin(np.abs(regression.x - 1e-4)))
    assert (regression.t_train[0, column, 0], regression.t_val[0, column, 0]) == (1651, 2077)


def test_agreement_is_perfect_with_itself_and_not_with_another():
    theirs = studies.published("regression")
    same = studies.agreement(theirs, "regression", budget=1e5)
    assert same.phases.all() and (same.steps == 0).all() and len(same.steps) == 77
    coarse = studies.Diagram(theirs.x[::3], theirs.y[::2], theirs.t_train[::2, ::3], theirs.t_val[::2, ::3])
    assert studies.agreement(coarse, "regression", budget=1e5).phases.all()
    assert studies.agreement(theirs._replace(t_val=theirs.t_val + 2000), "regression", budget=1e5).phases.mean() < 1


def test_the_phase_map_shows_the_majority(tiny_records):
    found = studies.panel_diagram(tiny_records, "phases_regression_splits")
    budget = studies.budget_of(tiny_records["phases_regression_splits"])
    figure = figures.phase_splits(tiny_records)
    shown = np.asarray(figure.axes[1].get_images()[0].get_array())
    assert shown.tolist() == found.map(budget=budget)[0].tolist()


def test_a_trained_encoder_gives_the_same_in_plain_numpy():
    model = PairEncoder(5, 8, 2, 6)
    params = {name: value.double() for name, value in model.init(torch.Generator().manual_seed(0)).items()}
    pairs = np.stack(np.divmod(np.arange(25), 5), -1)
    theirs = model({name: value[None] for name, value in params.items()}, torch.from_numpy(pairs)[None])[0]
    ours = studies.encoder_outputs({name: value.numpy() for name, value in params.items()}, pairs)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-10, atol=1e-12)


def test_all_components_rebuild_the_embeddings():
    embedding = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_allclose(studies.projected(embedding, embedding, 4), embedding, atol=1e-12)
    assert np.linalg.matrix_rank(studies.projected(embedding, embedding, 2) - embedding.mean(0)) == 2


def test_a_ring_is_found_and_followed_back():
    angle = 2 * np.pi * 3 * np.arange(11) / 11
    generator = np.random.default_rng(0)
    ring = np.stack([np.cos(angle), np.sin(angle)], -1) @ generator.normal(size=(2, 7)) * 5
    noise = generator.normal(size=(11, 7)) * 0.1
    plane = studies.best_plane(ring + noise)
    assert plane.frequency == 3 and plane.share > 0.95
    assert studies.on_final_plane(0.3 * ring, ring + noise)[1] > 0.95
    assert studies.on_final_plane(generator.normal(size=(11, 7)), ring + noise)[1] < 0.6


def test_the_hexagon_of_the_permutation_matrices_is_seen():
    from grokbook.chapters.liu.theory import permutation_matrices

    shape = studies.hexagon(permutation_matrices("S3").reshape(6, -1) @ np.linalg.qr(np.ones((9, 9)) + np.eye(9))[0])
    assert shape.gap < 130


def test_a_hexagon_has_to_meet_both_bounds():
    plane, points = (0, 1), np.zeros((6, 2))
    assert studies.Hexagon(plane, points, 110, 0.35).misfit == 1
    even_angles, both = studies.Hexagon(plane, points, 60, 0.5), studies.Hexagon(plane, points, 100, 0.1)
    assert both.misfit < 1 < even_angles.misfit


def test_among_equally_good_networks_the_best_ring_is_taken():
    import xarray as xr

    angle = 2 * np.pi * np.arange(7) / 7
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    order = np.random.default_rng(0).permutation(7)
    embeddings = np.stack([ring[order], ring, ring[order], ring])[:, None]
    record = xr.Dataset(
        {
            "W_E": (("run", "snapshot", "symbol", "feature"), embeddings),
            "test_accuracy": (("run", "step"), [[0.6], [0.6], [0.6], [0.5]]),
        }
    )
    best, share = studies.best_ring(record)
    assert best == 1 and share[1] == pytest.approx(1) and share[0] < 0.9


def test_borders_are_counted_along_an_axis():
    phases = np.array([[0, 0], [1, 2]])
    assert studies.borders(phases, 0) == {(0, 1): 1, (0, 2): 1}
    assert studies.borders(phases, 1) == {(1, 2): 1}


def test_a_size_that_never_gets_there_has_a_cross(tiny_records):
    record = tiny_records["image_sizes"].copy(deep=True)
    record.test_accuracy[:] = 0.7  # past 60 %, never past 80 %
    (ax,) = figures.image_sizes({"image_sizes": record}).axes
    crosses = [len(line.get_xdata()) for line in ax.lines if line.get_marker() == "x"]
    assert crosses == [0, len(np.unique(record.train_size.values))]


def test_a_crossing_is_interpolated():
    assert studies.crossing([0, 1, 2], [0, 0.25, 0.75]) == pytest.approx(1.5)
    assert np.isnan(studies.crossing([0, 1], [0, 0.1]))


def test_frames_are_drawn(tiny_records):
    assert len(figures.cell_frame(tiny_records, "phases_rates", 0, 1).axes) == 2
    assert len(figures.trajectory_frame(tiny_records["trajectory"], 2).axes) == 2
    assert len(figures.training_set_frame(4).axes) == 2


def test_the_trajectory_starts_where_the_network_starts(tiny_records):
    path = studies.trajectory(tiny_records["trajectory"])
    assert path.network.shape == path.flow.shape == (7, P)
    np.testing.assert_allclose(path.network[0], path.flow[0], atol=1e-9)
