"""Rings, and what weights answer with other embeddings."""

import numpy as np
import pytest
import torch
import xarray as xr

from grokbook.chapters.liu import measures, transformers
from grokbook.models.encoder import PairEncoder


def test_a_ring_is_found_and_followed_back():
    angle = 2 * np.pi * 3 * np.arange(11) / 11
    generator = np.random.default_rng(0)
    ring = np.stack([np.cos(angle), np.sin(angle)], -1) @ generator.normal(size=(2, 7)) * 5
    plane = transformers.best_plane(ring + generator.normal(size=(11, 7)) * 0.1)
    assert plane.frequency == 3 and plane.share > 0.95
    assert transformers.onto(0.3 * ring, plane)[1] > 0.95
    assert transformers.onto(generator.normal(size=(11, 7)), plane)[1] < 0.6


def test_waves_are_counted_and_noise_has_none():
    angle, generator = 2 * np.pi * np.arange(59) / 59, np.random.default_rng(0)
    noise = generator.normal(size=(59, 256))
    assert transformers.waves(noise).size == 0
    planes = np.linalg.qr(generator.normal(size=(256, 4)))[0].T.reshape(2, 2, 256)
    rings = [
        20 * np.stack([np.cos(k * angle), np.sin(k * angle)], -1) @ plane
        for k, plane in zip((3, 7), planes, strict=True)
    ]
    assert transformers.waves(sum(rings)) == pytest.approx([0.5, 0.5])
    assert transformers.waves(noise + sum(rings)).size == 2


def test_all_components_rebuild_the_embeddings():
    embedding = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_allclose(measures.projected(embedding, embedding, 4), embedding, atol=1e-12)
    assert np.linalg.matrix_rank(measures.projected(embedding, embedding, 2) - embedding.mean(0)) == 2


def test_answers_with_the_own_embeddings_are_the_network_s():
    model = PairEncoder(5, 8, 2, 6)
    params = {name: value.double() for name, value in model.init(torch.Generator().manual_seed(0)).items()}
    pairs = np.stack(np.divmod(np.arange(25), 5), -1)
    theirs = model({name: value[None] for name, value in params.items()}, torch.from_numpy(pairs)[None])[0].argmax(-1)
    plain = {name: value.numpy() for name, value in params.items()}
    found = measures.answers(model, plain, (plain["W_E"], np.roll(plain["W_E"], 1, 0)), pairs)
    assert found[0].tolist() == theirs.tolist() and found[1].tolist() != theirs.tolist()


def test_the_window_of_generalising_ends_with_the_run_if_it_never_does():
    study = xr.Dataset(
        {
            "accuracy": (("run", "snapshot"), [[0.0, 0.2, 0.4, 1.0], [0.0, 0.2, 0.4, 1.0]]),
            "snapshot_step": ("snapshot", [0.0, 10.0, 20.0, 30.0]),
            "t_train": ("run", [10.0, 10.0]),
            "t_test": ("run", [20.0, np.nan]),
        }
    )
    assert transformers.while_generalising(study).values == pytest.approx([0.3, (0.2 + 0.4 + 1) / 3])


def test_final_components_must_be_ahead_before_the_test_set_is_known():
    (claim,) = (one for one in transformers.section.claims if one.id == "fig22")
    accuracy = np.zeros((2, 4, 1, 3))  # (run, snapshot, part, way)
    accuracy[:, 1:, 0] = [[0.1, 0.0, 0.2], [0.8, 0.1, 0.4], [1.0, 1.0, 1.0]]
    study = xr.Dataset(
        {
            "accuracy": (("run", "snapshot", "part", "way"), accuracy),
            "at_end": (("run", "component"), np.ones((2, 1))),
            "snapshot_step": ("snapshot", [0.0, 10.0, 20.0, 30.0]),
            "t_test": ("run", [25.0, 15.0]),
        },
        {"part": ["test"], "way": ["actual", "own", "final"], "component": [10]},
    )
    assert transformers.before_known(study).sel(way="final").values == pytest.approx([0.4, 0.2])
    assert claim.judge({"component_accuracy": study}).outcome == "reproduced"
    never = study.assign(t_test=("run", [25.0, np.nan]))  # one learns nothing
    behind = study.assign(accuracy=study.accuracy.isel(way=[0, 2, 1]).assign_coords(way=study.way))
    for other in (never, behind):
        assert claim.judge({"component_accuracy": other}).outcome == "partly"


def test_dropout_is_held_against_all_steps_where_nothing_generalises_without():
    (claim,) = (one for one in transformers.section.claims if one.id == "fig7b")
    cases = (600.0, 3, "reproduced"), (600.0, 1, "partly"), (2_800.0, 3, "partly"), (np.nan, 3, "not reproduced")
    for with_dropout, seeds, outcome in cases:
        record = xr.Dataset(
            {
                "reached_train_accuracy": ("run", np.repeat([40.0, 60.0], seeds)),
                "reached_test_accuracy": ("run", np.repeat([np.nan, with_dropout], seeds)),
            },
            {"dropout": ("run", np.repeat([0.0, 0.4], seeds)), "seed": ("run", [*range(seeds)] * 2)},
        ).assign_coords(steps=("run", np.full(2 * seeds, 3_000)))
        assert claim.judge({"dropout_times": record}).outcome == outcome, (with_dropout, seeds)


def test_networks_that_never_generalise_do_not_meet_fig_7a():
    (claim,) = (one for one in transformers.section.claims if one.id == "fig7a")
    curve = np.array([[10.0, 11.0, 5.0]])
    record = xr.Dataset(
        {"effective_dimension": (("run", "step"), curve), "reached_test_accuracy": ("run", [20.0])},
        {"step": [0.0, 10.0, 30.0]},
    )
    assert claim.judge({"ring": record}).outcome == "partly"  # at t_test it is at 8.
    assert claim.judge({"ring": record.assign(reached_test_accuracy=("run", [12.0]))}).outcome == "reproduced"
    never = record.assign(reached_test_accuracy=("run", [np.nan]))
    assert claim.judge({"ring": never}).outcome != "reproduced"


def test_a_ring_that_knows_nothing_of_the_start_does_not_meet_fig_21_and_one_that_was_there_does():
    (claim,) = (one for one in transformers.section.claims if one.id == "fig21")
    generator = np.random.default_rng(0)
    rings = []
    for _ in range(2):
        start, angle = generator.normal(size=(59, 256)), 2 * np.pi * 5 * np.arange(59) / 59
        wave, axes = np.stack([np.cos(angle), np.sin(angle)], -1), np.linalg.qr(generator.normal(size=(256, 2)))[0]
        rings.append([(start, start + 4.5 * wave @ axes.T), (start, 0.3 * start + 0.1 * wave @ wave.T @ start)])
    outcomes = []
    for pair in zip(*rings, strict=True):
        record = xr.Dataset({"W_E": (("run", "snapshot", "symbol", "feature"), np.array(pair))})
        study = transformers.section.studies["rings"](record)
        outcomes.append([claim.judge({"rings": study}, before=before).outcome for before in (False, True)])
    assert outcomes == [["partly", "reproduced"], ["reproduced", "reproduced"]]
