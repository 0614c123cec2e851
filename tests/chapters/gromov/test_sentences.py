"""Sentences with numbers, and the list of errors: written from records alone."""

from __future__ import annotations

import numpy as np
import pytest

from grokbook.chapters.gromov import errata, theory
from grokbook.chapters.gromov.sentences import SENTENCES

from .conftest import WIDTH, P


@pytest.mark.parametrize("name", SENTENCES)
def test_every_sentence_is_written_from_the_records_it_names(name, tiny_records):
    sentence = SENTENCES[name]
    text = sentence.write({need: tiny_records[need] for need in sentence.needs})
    assert text.endswith(".") and any(character.isdigit() for character in text) and "nan" not in text


def test_the_solution_is_smaller_than_the_initial_weights_in_the_printed_scaling_only():
    sizes = {name: errata.solution_size(97, 500, name) for name in ("mean_field", "input_mean_field", "standard")}
    assert sizes == {
        "mean_field": pytest.approx(0.707, abs=5e-4),
        "input_mean_field": pytest.approx(5.16, abs=5e-3),
        "standard": pytest.approx(2.24, abs=5e-3),
    }


def test_half_of_the_sum_is_not_the_delta_function():
    assert errata.half_sum(97, 500, 0) == 250
    assert 2 / 500 * errata.half_sum(97, 500, 0) == pytest.approx(1.0)


def test_the_delta_function_is_exact_only_if_p_divides_the_width():
    assert errata.delta_remainder(97, 97 * 5) < 1e-12
    assert errata.delta_remainder(97, 500) > 0.01


def test_the_corrected_expansions_hold_and_the_printed_ones_do_not():
    for corrected, printed in (errata.expansion_errors(), errata.complex_errors()):
        assert corrected < 1e-9 and printed > 0.1


def test_eq_11_as_printed_has_the_line_in_n_minus_m_plus_q_five_times_too_strong():
    """A half as it should be, and twice a whole in place of the waves in q."""
    p, width = 23, 40
    phases = theory.draw_phases(width, generator=0)
    turns = 2 * np.pi / p * np.outer(np.arange(p), np.arange(1, width + 1))
    phi1, phi2, phi3 = phases

    def wave(weight, residue, phase):
        return weight * 2 / width * np.cos(turns + phase).sum(-1)[residue % p]

    n, m, q = np.ogrid[:p, :p, :p]
    printed = sum(
        wave(weight, a * n + b * m + c * q, phase)
        for weight, (a, b, c), phase in (
            (1 / 4, (2, 0, -1), 2 * phi1 - phi3),
            (1 / 4, (2, 0, 1), 2 * phi1 + phi3),
            (1 / 4, (0, 2, -1), 2 * phi1 - phi3),
            (1 / 4, (0, 2, 1), 2 * phi1 + phi3),
            (1 / 2, (1, 1, -1), phi1 + phi2 - phi3),
            (1 / 2, (1, 1, 1), phi1 + phi2 + phi3),
            (1 / 2, (1, -1, -1), phi1 - phi2 - phi3),
            (1 / 2, (1, -1, 1), phi1 - phi2 + phi3),
            (1, (1, -1, 1), phi1 - phi2 + phi3),
            (1, (1, -1, 1), phi1 - phi2 + phi3),
        )
    )
    network = theory.network(*theory.cosine_weights(p, width, phases=phases))
    assert errata.expansion_errors(p, width)[1] == pytest.approx(np.abs(network - printed).max())


def test_squares_of_a_composite_modulus_differ_in_their_number_of_roots():
    assert errata.square_roots(7) == (pytest.approx(4 / 7), 1, 2)
    assert errata.square_roots(96) == (pytest.approx(14 / 96), 4, 16)


def test_the_list_of_errors_says_where_and_gives_numbers(tiny_records):
    markup = errata.table(tiny_records, P, WIDTH).markup
    assert markup.count('scope="row"') == 13
    assert "Eq. 11" in markup and "App. D" in markup and "nan" not in markup


def test_the_list_leaves_out_what_it_has_no_record_for():
    assert errata.table({}, P, WIDTH).markup.count('scope="row"') < 12


def test_the_initial_error_is_in_units_of_one_over_p(tiny_records):
    record = tiny_records["learning_curves"]
    assert errata.initial_error(record) == pytest.approx(P * np.median(record.test_loss.values[:, 0]))
