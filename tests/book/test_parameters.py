"""Strict parameters: what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grokbook.book import build as book
from grokbook.book import parameters
from grokbook.book.parameters import BadInput, Parameter, declared_in

CELL = """
p: int = 97             # modulus
rate: float = 1e-3      # step size
name: str = "addition"
quick: bool = False
fractions: list[float] = [0.3, 0.5]
limit: int | None = None  # none: no limit
"""


def test_declared_parameters_have_name_type_default_and_comment():
    known = declared_in(CELL)
    assert list(known) == ["p", "rate", "name", "quick", "fractions", "limit"]
    assert known["p"] == Parameter("p", "int", 97, "modulus")
    assert known["limit"].comment == "none: no limit"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("p", "59", 59),
        ("p", "07", 7),
        ("rate", "1e-4", 1e-4),
        ("rate", 2, 2.0),
        ("name", "59", "59"),
        ("quick", "true", True),
        ("fractions", "[0.1,0.2]", [0.1, 0.2]),
        ("fractions", "0.1,0.2", [0.1, 0.2]),
        ("limit", "none", None),
        ("limit", "4", 4),
    ],
)
def test_text_is_read_as_the_declared_type(name, text, value):
    converted = declared_in(CELL)[name].convert(text)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p", "5.9"), ("p", "59.0"), ("p", 59.0), ("p", "many"), ("p", True), ("p", ""),
        ("rate", "fast"), ("rate", "nan"), ("rate", "inf"), ("rate", True),
        ("name", 5), ("quick", "1"), ("quick", "yes"),
        ("fractions", "0.1,many"), ("fractions", 0.1), ("limit", "4.5"),
    ],
)  # fmt: skip
def test_another_type_is_refused_with_name_value_type_and_meaning(name, value):
    parameter = declared_in(CELL)[name]
    with pytest.raises(BadInput) as refused:
        parameter.convert(value)
    message = str(refused.value)
    assert f"parameter {name} = {value!r}" in message
    assert parameter.type in message
    assert parameter.comment in message
    assert "\n" not in message


@pytest.mark.parametrize("source", ["p = 97", "p: int", "p: int = f(3)", "import os", "p: int = 'x'", "p: complex = 1"])
def test_a_parameters_cell_that_declares_badly_is_refused(source):
    with pytest.raises((ValueError, SyntaxError)):
        declared_in(source)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(
        BadInput,
        match=r'gromov has no parameter "widht" \(given as widht=10\) \(did you mean "width"\?\); it',
    ):
        parameters.convert_all("gromov", declared_in("p: int = 97\nwidth: int = 500\n"), {"widht": "10"})


def test_the_same_parameter_twice_is_refused():
    with pytest.raises(BadInput, match="p is given twice: 5 and 7"):
        parameters.parse_assignments(["p=5", "p=7"])


@pytest.mark.parametrize("text", ["p", "=5", "p 5", "2p=5"])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(BadInput, match="name=value"):
        parameters.parse_assignments([text])


def test_an_unknown_device_is_refused_with_the_allowed_ones():
    with pytest.raises(BadInput, match=r'device = \'cudda\' \(did you mean "cuda"\?\); allowed: auto, cpu, cuda'):
        parameters.check_device("cudda")


def test_cuda_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BadInput, match="no CUDA device here; allowed: auto, cpu"):
        parameters.check_device("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert parameters.check_device("cuda") == "cuda"


def test_the_chapters_own_check_refuses_before_anything_runs(tmp_path, monkeypatch):
    def check(values):
        assert values == {"p": 1, "rate": 0.5}  # what was given, with the defaults of the rest
        raise ValueError("p = 1: a modulus of at least 2 is needed")

    monkeypatch.setattr(parameters, "chapter_check", lambda chapter: check)
    path = tmp_path / "small.ipynb"
    cell = {"metadata": {"tags": ["parameters"]}, "source": ["p: int = 7\n", "rate: float = 0.5\n"]}
    path.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(BadInput, match="small: p = 1: a modulus of at least 2 is needed"):
        parameters.resolve(path, {"p": "1"})


def test_a_file_that_is_no_notebook_is_named(tmp_path):
    path = tmp_path / "broken.ipynb"
    path.write_text("{")
    with pytest.raises(BadInput, match=r"broken\.ipynb"):
        parameters.declared(path)


@pytest.mark.parametrize("chapter", [one for one in book.chapters() if one not in book.SUMMARIES])
@pytest.mark.parametrize("scale", book.SCALES)
def test_every_chapters_own_settings_pass_its_own_checks(chapter, scale, root: Path):
    known = parameters.declared(root / "book" / f"{chapter}.ipynb")
    assert known, "a chapter declares its parameters"
    assert all(parameter.comment for parameter in known.values()), "each with its meaning"
    values = book.plan(chapter, {}, book.Settings(scale=scale, root=root))
    assert set(values) <= set(known)
    assert (scale == "quick") == bool(values)


def test_gromov_declares_the_promised_parameters(root: Path):
    known = parameters.declared(root / "book" / "gromov.ipynb")
    assert {"p", "width", "train_fraction", "seeds", "device"} <= set(known)


@pytest.mark.parametrize(
    "given",
    [{"p": "1"}, {"train_fraction": "0"}, {"train_fraction": "1.0"}, {"seeds": "0"}, {"device": "tpu"}],
)
def test_gromov_refuses_values_out_of_range(given, root: Path):
    ((name, value),) = given.items()
    with pytest.raises(BadInput, match=rf"{name}.*{value}"):
        book.plan("gromov", given, book.Settings(root=root))
