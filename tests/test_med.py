"""The distance between embeddings of consecutive numbers, in all published forms, and its controls."""

import math

import numpy as np
import pytest

from grokbook import measures
from grokbook.chapters.gu import theory
from grokbook.measures import main_embedding_difference


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def random_embedding(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# --- the measure --------------------------------------------------------------------------------------------


def test_med_is_definition_4_2_with_the_wrap_to_zero():
    phi = random_embedding(7, 3)
    slow = sum(distance(phi[(i + 1) % 7], phi[i]) for i in range(7)) / 7
    assert main_embedding_difference(phi) == pytest.approx(slow, rel=1e-14)


def test_med_of_points_on_a_line_is_known_by_hand():
    line = np.array([[0.0], [1.0], [3.0], [6.0]])  # differences 1, 2, 3 and 6 back to zero
    assert main_embedding_difference(line) == 3
    assert main_embedding_difference(line, reduction="sum") == 12
    assert main_embedding_difference(line, cyclic=False) == 2
    assert main_embedding_difference(line, cyclic=False, reduction="sum") == 6
    assert main_embedding_difference(line, step=2, reduction="sum") == 16  # 3, 5, 3 and 5
    assert main_embedding_difference(line, step=2, cyclic=False) == 4
    assert main_embedding_difference(line, step=-1) == 3


def test_med_works_on_every_leading_axis_at_once():
    phi = random_embedding(2, 3, 5, 4)
    for options in ({}, {"cyclic": False}, {"reduction": "sum"}, {"step": 3}):
        together = main_embedding_difference(phi, **options)
        assert together.shape == (2, 3)
        for cell in np.ndindex(2, 3):
            assert together[cell] == pytest.approx(main_embedding_difference(phi[cell], **options), rel=1e-14)


@pytest.mark.parametrize("a", [2, 5, 48])
def test_relabelling_the_residues_turns_med_into_med_with_another_step(a):
    phi = random_embedding(97, 4)
    relabelled = phi[a * np.arange(97) % 97]
    assert main_embedding_difference(relabelled) == pytest.approx(main_embedding_difference(phi, step=a), rel=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(5), {}), r"embedding must have shape \(\.\.\., p, d\).* got \(5,\)"),
        ((np.zeros((1, 5)), {}), r"p of at least 2, got \(1, 5\)"),
        ((np.zeros((5, 2)), {"reduction": "median"}), "reduction must be one of 'mean', 'sum', got 'median'"),
        ((np.zeros((5, 2)), {"step": 10}), "step must be a whole number, no multiple of p, got step=10 with p=5"),
        ((np.zeros((5, 2)), {"step": 0}), "a whole number, no multiple of p, got step=0"),
        ((np.zeros((5, 2)), {"step": 6, "cyclic": False}), "whole number from 1 to p - 1 without the wrap, got step=6"),
        ((np.zeros((5, 2)), {"step": 1.5}), "step must be a whole number"),
        ((np.zeros((5, 2)), {"step": -1, "cyclic": False}), "step must be a whole number from 1 to p - 1"),
    ],
)
def test_med_of_bad_input_is_one_clear_line(arguments, message):
    embedding, options = arguments
    with pytest.raises(ValueError, match=message) as error:
        main_embedding_difference(embedding, **options)
    assert "\n" not in str(error.value)


# --- the six published forms --------------------------------------------------------------------------------


def slow_forms(a, b):
    """The six formulas word for word."""
    p = len(a)
    cyclic = [sum(distance(x[(i + 1) % p], x[i]) for i in range(p)) / p for x in (a, b)]
    open_sum = [sum(distance(x[i + 1], x[i]) for i in range(p - 1)) for x in (a, b)]
    short = [sum(distance(x[i + 1], x[i]) for i in range(p - 2)) / (p - 2) for x in (a, b)]
    return {
        "M1": sum(cyclic) / 2,
        "M2": p * sum(cyclic) / 2,
        "M3": sum(open_sum),
        "M4": sum(short) / 2,
        "M5": (p - 1) * sum(short),
        "M6": sum(short),
    }


@pytest.mark.parametrize("form", list(theory.MED_FORMS))
def test_published_forms_are_their_formulas_for_separate_and_for_shared_tokens(form):
    a, b = random_embedding(2, 7, 3)
    assert theory.MED_FORMS[form](a, b) == pytest.approx(slow_forms(a, b)[form], rel=1e-14)
    assert theory.MED_FORMS[form](a, a) == pytest.approx(slow_forms(a, a)[form], rel=1e-14)
    batch = theory.MED_FORMS[form](random_embedding(2, 4, 7, 3), random_embedding(2, 4, 7, 3, seed=1))
    assert batch.shape == (2, 4)


def test_published_forms_start_where_gaussian_embeddings_of_width_128_put_them():
    starts = {"M1": 1.4115, "M2": 136.9, "M3": 271.0, "M4": 1.4115, "M5": 271.0, "M6": 2.823}
    phi = random_embedding(60, 97, 128) / math.sqrt(128)
    for form, start in starts.items():
        assert theory.MED_FORMS[form](phi, phi).mean() == pytest.approx(start, rel=2e-3)
    few = phi[:, :43]
    assert theory.MED_FORMS["M3"](few, few).mean() == pytest.approx(118.6, rel=2e-3)


def test_embedding_blocks_are_the_rows_of_the_two_operands():
    table = np.arange(2 * 9).reshape(9, 2)
    first, second = measures.embedding_blocks(table, 5, 3)
    np.testing.assert_array_equal(first[:, 0], [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(second[:, 0], [6, 8, 10, 12, 14])
    shared = measures.embedding_blocks(np.zeros((3, 9, 2)), 5)
    assert [block.shape for block in shared] == [(3, 5, 2)] * 2
    measures.embedding_blocks(table, 5, 4)  # fills the vocabulary to the last token
    for offset, p in ((5, 5), (-1, 5), (0, 10), (0, 1)):
        with pytest.raises(ValueError, match=f"vocabulary of 9 tokens, got offset={offset} and p={p}"):
            measures.embedding_blocks(table, p, offset)
    with pytest.raises(ValueError, match=r"must have shape \(\.\.\., vocabulary, d\), got \(9,\)"):
        measures.embedding_blocks(np.zeros(9), 5)


# --- controls -----------------------------------------------------------------------------------------------


def test_embedding_norm_is_the_root_mean_square_length():
    assert measures.embedding_norm([[3.0, 4.0], [0.0, 1.0]]) == pytest.approx(math.sqrt(13))
    assert measures.embedding_norm(random_embedding(2, 3, 5, 4)).shape == (2, 3)


def test_permuted_med_uses_one_permutation_for_all_and_another_for_another_seed():
    phi = random_embedding(3, 11, 2)
    order = np.random.default_rng(4).permutation(11)
    for member in range(3):
        slow = sum(distance(phi[member, order[(i + 1) % 11]], phi[member, order[i]]) for i in range(11)) / 11
        assert measures.permuted_embedding_difference(phi, seed=4)[member] == pytest.approx(slow, rel=1e-13)
    assert not np.allclose(measures.permuted_embedding_difference(phi, seed=5), main_embedding_difference(phi))
    assert (measures.permuted_embedding_difference(phi) == measures.permuted_embedding_difference(phi, seed=0)).all()


def test_permuting_tells_an_ordered_embedding_from_a_random_one():
    angle = 2 * np.pi * np.arange(97) / 97
    circle = np.stack([np.cos(angle), np.sin(angle)], -1)
    assert measures.permuted_embedding_difference(circle) > 15 * main_embedding_difference(circle)
    random = random_embedding(97, 128)
    assert measures.permuted_embedding_difference(random) == pytest.approx(main_embedding_difference(random), rel=0.02)


def test_permuted_med_refuses_a_vector():
    with pytest.raises(ValueError, match=r"embedding must have shape \(\.\.\., p, d\), got \(7,\)"):
        measures.permuted_embedding_difference(np.zeros(7))


# --- the smallest sizes -------------------------------------------------------------------------------------


def test_two_residues_are_enough_for_med_and_three_for_every_published_form():
    assert main_embedding_difference([[0.0], [3.0]]) == 3
    three = np.array([[0.0], [1.0], [3.0]])
    forms = {form: float(of(three, three)) for form, of in theory.MED_FORMS.items()}
    assert forms == {"M1": 2, "M2": 6, "M3": 6, "M4": 1, "M5": 4, "M6": 2}
    assert measures.embedding_blocks([[0.0], [1.0], [2.0]], 2, 1)[1].tolist() == [[1], [2]]
