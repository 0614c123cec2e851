"""Sentences with numbers, and the list of errors: written from records alone."""

from __future__ import annotations

import numpy as np
import pytest

from grokbook.chapters.liu import errata, sentences, studies, theory
from grokbook.chapters.liu.sentences import SENTENCES

from .conftest import P


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at this size some medians are over nothing
@pytest.mark.parametrize("name", SENTENCES)
def test_every_sentence_is_written_from_the_records_it_names(name, tiny_records):
    sentence = SENTENCES[name]
    text = sentence.write({need: tiny_records[need] for need in sentence.needs})
    assert text.endswith(".") and any(character.isdigit() for character in text) and "nan" not in text


def test_the_list_of_errors_is_made_from_whatever_records_there_are(tiny_records):
    few, all_ = errata.table({}), errata.table(tiny_records)
    assert len(few.markup) < len(all_.markup)
    assert "nan" not in all_.markup


def test_a_small_delta_makes_the_random_index_vanish():
    wide, narrow = errata.random_index(0.1), errata.random_index(0.01)
    assert wide[0] == pytest.approx(0.035, abs=0.004) and wide[1] == pytest.approx(0.94, abs=0.03)
    assert narrow[0] == pytest.approx(0.0035, abs=0.001) and 1 - narrow[1] == pytest.approx(0.78, abs=0.04)


def test_the_sum_and_not_the_mean_fits_the_mark_of_the_figure():
    by_sum, by_mean = errata.hessian_readings()
    assert by_sum == pytest.approx(362, abs=1) and by_mean > 10_000


def test_most_splits_do_not_determine_every_answer():
    good, best = errata.perfect_splits()
    assert good == pytest.approx(0.73, abs=0.07) and best == pytest.approx(0.38, abs=0.07)


def test_six_symbols_need_six_samples():
    assert errata.least_samples() == 6


def test_most_held_out_pairs_have_a_trained_mirror():
    assert errata.mirrored_share() == pytest.approx(0.8, abs=0.05)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("draws", [1, 2, 3])
def test_few_draws_are_told_as_few(draws):
    text = sentences.unique({"ideal": studies.STUDIES["ideal"](10, draws)})
    assert "Half of the 1 " not in text and "misses –" not in text and "nan" not in text


@pytest.mark.parametrize("rho, word", [(1.0, "less"), (5.0, "more")])
def test_more_or_less_than_three_times_is_said_as_it_is(rho, word, tiny_records, monkeypatch):
    found = theory.line_fit(np.zeros((P, 1)) + np.arange(P)[:, None])
    monkeypatch.setattr(theory, "line_fit", lambda embedding: found._replace(rho=np.float64(rho)))
    assert f"a tenth, {word} than 3 n" in sentences.trajectory(tiny_records)
