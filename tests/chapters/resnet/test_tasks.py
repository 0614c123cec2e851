"""The task, as symbols and as pictures, and the measures of its answers, against slow independent versions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from grokbook.chapters.resnet import measures, pictures, tasks

SMALL = tasks.ShapeSum((0, 3, 4), 20)


def test_table_holds_every_picture_once_with_its_sum() -> None:
    places, labels = SMALL.table()
    assert [tuple(row) for row in places.tolist()] == list(itertools.product(range(3), repeat=4))
    assert labels.tolist() == [sum((0, 3, 4)[k] for k in row) for row in places.tolist()]
    assert SMALL.classes == 17 and tasks.ShapeSum().classes == 49


def test_a_seed_trains_on_the_stated_number_of_pictures() -> None:
    masks = [tasks.ShapeSum().in_train(seed) for seed in (0, 0, 1)]
    assert masks[0].sum() == 3660 and (masks[0] == masks[1]).all() and (masks[0] != masks[2]).any()
    assert tasks.steps_per_epoch(3660) == 19 and tasks.steps_per_epoch(600) == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_split_by_combinations_shows_all_orders_of_some_and_none_of_others(seed: int) -> None:
    task = tasks.ShapeSum(tasks.dictionary(7), 600, "combinations")
    mask = task.in_train(seed)
    known, others = (set(map(tuple, np.sort(task.table()[0][one]).tolist())) for one in (mask, ~mask))
    assert mask.sum() == 600 and not known & others and len(known | others) == 210


@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_is_given_the_picture_of_the_symbols(channels: int) -> None:
    task = tasks.PictureSum(SMALL.symbols, 20, size=32, channels=channels)
    places = torch.from_numpy(task.table()[0])[None].expand(2, -1, -1)[:, ::7]
    grey = pictures.picture(places.numpy(), pictures.patches(SMALL.symbols, 32))
    mean, deviation = ((np.mean(one),) if channels == 1 else one for one in (pictures.MEAN, pictures.DEVIATION))
    images = np.stack([(grey - m) / d for m, d in zip(mean, deviation, strict=True)], 2)
    np.testing.assert_allclose(task.compose(places).numpy(), images, atol=1e-5)


def test_errors_equal_a_loop_over_pictures() -> None:
    generator = np.random.default_rng(3)
    places, labels = SMALL.table()
    given = labels + generator.integers(-2, 3, size=(2, 81))
    in_train = np.stack([SMALL.in_train(seed) for seed in (0, 1)])
    found = measures.errors(SMALL, given, in_train)
    for member in range(2):
        answer = {tuple(row): int(given[member, k]) for k, row in enumerate(places.tolist())}
        label = {tuple(row): int(labels[k]) for k, row in enumerate(places.tolist())}
        trained = {tuple(row) for row, mine in zip(places.tolist(), in_train[member], strict=True) if mine}
        test = [one for one in answer if one not in trained]
        multisets = {tuple(sorted(one)) for one in trained}
        seen = [one for one in test if tuple(sorted(one)) in multisets]
        unseen = [one for one in test if tuple(sorted(one)) not in multisets]
        expected = {
            "within_one": np.mean([abs(answer[one] - label[one]) <= 1 for one in test]),
            "signed_error": np.mean([answer[one] - label[one] for one in test]),
            "accuracy_seen": np.mean([answer[one] == label[one] for one in seen]),
            "accuracy_unseen": np.mean([answer[one] == label[one] for one in unseen]),
            "swap_alike": np.mean([answer[a, b, d, c] == answer[a, b, c, d] for a, b, c, d in test if c != d]),
            "swap_odd": np.mean([answer[b, a, c, d] == answer[a, b, c, d] for a, b, c, d in test if a != b]),
        }
        for name, value in expected.items():
            assert found[name][member] == pytest.approx(value, abs=1e-12), name


def test_what_misleads_equals_a_loop_over_pictures() -> None:
    places, labels = SMALL.table()
    given = labels + np.random.default_rng(3).integers(-1, 2, 81)
    trained = SMALL.in_train(0)
    off = (places[:, None] != places).sum(-1)
    rows = [[k for k in np.flatnonzero(trained) if off[picture, k] == 1] for picture in range(81)]
    wrong = [given[k] in labels[rows[k]] for k in range(81) if not trained[k] and given[k] != labels[k]]
    right: list[list[bool]] = [[], [], []]
    for k in np.flatnonzero(~trained):
        right[min(2, sum(abs(labels[rows[k]] - labels[k]) == 1))].append(given[k] == labels[k])
    found = measures.misled(SMALL, given, ~trained, trained, most=2)
    np.testing.assert_allclose(found, [np.mean(wrong), *map(np.mean, right)])
    assert (labels[measures.one_away(SMALL)] != labels[:, None]).all()


def test_accuracy_of_no_picture_is_missing() -> None:
    task = tasks.ShapeSum((0, 3), 15)
    found = measures.errors(task, task.table()[1][None], task.in_train(0)[None])
    assert np.isnan([found["accuracy_seen"], found["accuracy_unseen"]]).any()


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: tasks.ShapeSum((0, 2)), "symbol 2"),
        (lambda: tasks.ShapeSum((0, 3, 3)), "different"),
        (lambda: tasks.ShapeSum((0, 3), 16), "train_size = 16: between 1 and 15 of the 16"),
        (lambda: tasks.ShapeSum((0, 3), 3, "combinations").in_train(0), "train_size = 3: so many are not the orders"),
        (lambda: tasks.ShapeSum(split="by_hand"), "split must be one of 'combinations', got 'by_hand'"),
        (lambda: tasks.PictureSum(size=16), "too few pixels"),
        (lambda: tasks.PictureSum(drawing="by_hand"), "'by_hand'"),
    ],
)
def test_impossible_settings_are_refused(make, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()
