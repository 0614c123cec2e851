"""Canonical notebooks: what two runs may differ in is removed, and nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from grokbook.book import build as book
from grokbook.book import notebooks


def executed(id: str, *, seconds: float, cut: int) -> dict:
    """A notebook as papermill leaves it: ids, times and cuts of the printed text are the run's own."""

    text = "one\ntwo\n"
    stream = [{"output_type": "stream", "name": "stdout", "text": part} for part in (text[:cut], text[cut:]) if part]
    warning = {"output_type": "stream", "name": "stderr", "text": f"/tmp/{seconds}/x.py: warning\n"}
    view = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/html": "<p>table</p>", "text/plain": f"<Table at 0x{id}>"},
    }
    cell = {
        "cell_type": "code",
        "id": id,
        "execution_count": 1,
        "metadata": {"tags": ["hide-input"], "papermill": {"duration": seconds}, "execution": {"iopub": seconds}},
        "source": "show()",
        "outputs": [*stream[:1], warning, *stream[1:], view],
    }
    metadata = {
        "papermill": {"input_path": f"/home/{seconds}", "duration": seconds},
        "language_info": {"name": "python", "version": f"3.11.{cut}"},
    }
    return {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


FIRST = executed(f"{1:032x}", seconds=1.5, cut=4)
SECOND = executed(f"{99:032x}", seconds=9.0, cut=5)


def test_two_runs_of_the_same_notebook_are_the_same_bytes(tmp_path: Path):
    assert json.dumps(FIRST, sort_keys=True) != json.dumps(SECOND, sort_keys=True)
    for name, run in (("a", FIRST), ("b", SECOND)):
        notebooks.write(notebooks.canonical(run), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_canonical_twice_is_canonical_once():
    once = notebooks.canonical(FIRST)
    assert notebooks.canonical(once) == once


def test_canonical_keeps_the_source_the_tags_and_the_output():
    cell = notebooks.canonical(FIRST)["cells"][0]
    assert cell["source"] == "show()"
    assert cell["metadata"] == {"tags": ["hide-input"]}
    assert cell["outputs"][0]["text"] == "one\ntwo\n"
    assert len(cell["outputs"]) == 2


def test_no_path_of_the_machine_is_left():
    text = json.dumps(notebooks.canonical(FIRST))
    assert "/home" not in text and "/tmp" not in text


def test_canonical_does_not_change_its_argument():
    before = copy.deepcopy(FIRST)
    notebooks.canonical(FIRST)
    assert before == FIRST


@pytest.mark.parametrize("chapter", book.chapters())
def test_notebooks_are_committed_without_outputs(chapter, root: Path):
    for number, cell in enumerate(notebooks.read(root / "book" / f"{chapter}.ipynb")["cells"], start=1):
        assert not cell.get("outputs"), f"cell {number}"
        assert cell.get("execution_count") is None, f"cell {number}"
        assert not {"papermill", "execution"} & set(cell["metadata"]), f"cell {number}"


def test_a_fact_whose_record_is_missing_reads_as_a_dash():
    known = {"output_type": "display_data", "data": {}, "metadata": {"scrapbook": {"name": "delay"}}}
    prose = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "{glue:text}`delay` or {glue:text}`lost`, {glue:}`badge-x`",
    }
    figure = {"mystnb": {"figure": {"caption": "p = {glue:text}`lost`", "name": "fig-a"}}}
    drawn = {"cell_type": "code", "metadata": figure, "source": "", "outputs": [known], "execution_count": 1}
    made = notebooks.canonical({"metadata": {}, "cells": [prose, drawn]})
    assert made["cells"][0]["source"] == "{glue:text}`delay` or –, –"
    assert made["cells"][1]["metadata"]["mystnb"]["figure"]["caption"] == "p = –"


def test_every_figure_of_the_book_has_a_name_of_its_own(root: Path):
    cells = [
        cell for chapter in book.chapters() for cell in notebooks.read(root / "book" / f"{chapter}.ipynb")["cells"]
    ]
    figures = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "") for cell in cells]
    names = [name for name in figures if name]
    assert sorted(names) == sorted(set(names))
