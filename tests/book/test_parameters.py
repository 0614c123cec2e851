"""Strict parameters: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from grokbook import settings
from grokbook.book import build as book
from grokbook.book import parameters
from grokbook.book.parameters import BadInput

KINDS = {"p": int, "rate": float, "name": str, "quick": bool, "fractions": tuple[float, ...]}
KNOWN = {"p": (int, 97), "width": (int, 500), "fractions": (tuple[float, ...], (0.3,))}


def test_declared_are_the_keywords_with_type_and_default():
    def make(s, *, p: Annotated[int, settings.whole(2)] = 97, names: tuple[str, ...] = ()): ...

    assert settings.declared(make) == {"p": (int, 97), "names": (tuple[str, ...], ())}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("p", "59", 59),
        ("p", "07", 7),
        ("rate", "1e-4", 1e-4),
        ("rate", 2, 2.0),
        ("name", "59", "59"),
        ("quick", "true", True),
        ("fractions", "[0.1,0.2]", (0.1, 0.2)),
        ("fractions", "0.1, 0.2", (0.1, 0.2)),
        ("fractions", [1, 0.2], (1.0, 0.2)),
    ],
)
def test_text_is_read_as_the_declared_type(name, text, value):
    converted = settings.read(text, KINDS[name])
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p", "5.9"), ("p", "59.0"), ("p", 59.0), ("p", "many"), ("p", True), ("p", ""),
        ("rate", "fast"), ("rate", "nan"), ("rate", "inf"), ("rate", True),
        ("name", 5), ("quick", "1"), ("quick", "yes"),
        ("fractions", "0.1,many"), ("fractions", 0.1), ("fractions", "[]"), ("fractions", "[0.1"),
    ],
)  # fmt: skip
def test_another_type_is_refused(name, value):
    with pytest.raises(ValueError, match="is not of type"):
        parameters.convert("it", {name: (KINDS[name], None)}, {name: value})


def test_a_refusal_names_value_type_and_an_example_in_one_line():
    with pytest.raises(BadInput) as refused:
        parameters.convert("gromov", KNOWN, {"p": "many"})
    assert str(refused.value) == "gromov: p = 'many' is not of type int; for example p=97"
    with pytest.raises(BadInput, match=r"fractions = '0.1,x' is not of type tuple\[float, \.\.\.\]; .* fractions=0"):
        parameters.convert("gromov", KNOWN, {"fractions": "0.1,x"})


def test_the_same_parameter_twice_is_refused():
    with pytest.raises(BadInput, match="p is given twice: 5 and 7"):
        parameters.parse_assignments(["p=5", "p=7"])


@pytest.mark.parametrize("text", ["p", "=5", "p 5", "2p=5"])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(BadInput, match="name=value"):
        parameters.parse_assignments([text])


def test_cuda_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BadInput, match="no CUDA device here; allowed: auto, cpu"):
        parameters.check_device("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    parameters.check_device("cuda")


def test_a_page_without_settings_takes_no_parameters():
    assert parameters.resolve("gallery", {}) == parameters.resolve("scorecard", {}) == {}
    with pytest.raises(BadInput, match=r'gallery has no parameter "p".* it takes: none'):
        parameters.resolve("gallery", {"p": "5"})


@pytest.mark.parametrize("chapter", [one for one in book.chapters() if one not in book.SUMMARIES])
@pytest.mark.parametrize("scale", book.SCALES)
def test_every_chapters_own_settings_pass_its_own_checks(chapter, scale, root: Path):
    values = book.plan(chapter, {}, book.Settings(scale=scale, root=root))
    assert bool(values) == (scale == "quick" and chapter != "scale")
