"""The built site, made once, and small books made of a cell or two."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grokbook.book import build as book

PARAMETERS = "p: int = 7  # modulus\nrate: float = 0.5  # step size\n"


def notebook(*cells: str, parameters: str = PARAMETERS) -> dict:
    """An .ipynb object: a title, a parameters cell, then these code cells."""

    def code(source: str, tags: list[str]) -> dict:
        blank = {"cell_type": "code", "execution_count": None, "outputs": []}
        return {**blank, "id": f"c{abs(hash(source))}", "metadata": {"tags": tags}, "source": source}

    title = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A small chapter"}
    spec = {"kernelspec": {"display_name": "x", "language": "python", "name": "some-editors-own-kernel"}}
    made = [title, code(parameters, ["parameters"]), *(code(source, []) for source in cells)]
    return {"cells": made, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="session")
def write_book(root: Path) -> Callable[..., Path]:
    """A function: a place, code cells -> the place, a repository with that one chapter, `small`."""

    def make(place: Path, *cells: str, parameters: str = PARAMETERS) -> Path:
        (place / "book").mkdir(parents=True, exist_ok=True)
        shutil.copytree(root / "_assets", place / "_assets", dirs_exist_ok=True)
        shutil.copy(root / "_config.yml", place)
        (place / "_toc.yml").write_text("format: jb-book\nroot: book/intro\nchapters:\n- file: book/small\n")
        (place / "book" / "intro.md").write_text("# Small\n\nText.\n")
        (place / "book" / "references.bib").write_text("")
        (place / "book" / "small.ipynb").write_text(json.dumps(notebook(*cells, parameters=parameters)))
        return place

    return make


@pytest.fixture
def small_book(tmp_path: Path, write_book: Callable[..., Path]) -> Callable[..., Path]:
    """The same, in a place of the test's own."""
    return functools.partial(write_book, tmp_path / "repository")


# What readers may wait a minute for at quick scale, to see test accuracy rise, no test looks at.
SHORT = {
    "gromov": {"p": 23, "width": 64, "seeds": 1, "gd_steps": 40, "adamw_steps": 20, "widths": [8, 64], "heads": [1, 4]},
    "gu": {"p": 31, "d_model": 32, "steps": 20, "squares": [25], "strips": [20], "offsets": [0, 20]},
    "liu": {"steps": 24, "transformer_steps": 12, "draws": 50},
    "resnet": {"epochs": 21, "symbols": 6},
}


class Site(NamedTuple):
    html: Path  # the folder that a web server would serve
    stage: Path  # the executed notebooks and what they are rendered with
    build: Path
    cache: Path  # the records that were trained for it
    told: str  # what the build said on stderr


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Site]:
    """The whole book at quick scale, every record trained from nothing, warnings as errors."""
    build = tmp_path_factory.mktemp("build")
    cache = tmp_path_factory.mktemp("cache")
    from grokbook.chapters import chapters

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROKBOOK_CACHE", str(cache))
        patch.chdir(root)
        for chapter, fewer in SHORT.items():
            for name, value in fewer.items():
                patch.setitem(chapters()[chapter].quick, name, value)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            book.make_book(book.Settings(scale="quick", device="cpu", root=root, output=build))
        assert os.environ["GROKBOOK_CACHE"] == str(cache)
    yield Site(build / "html", build / "book" / "stage", build, cache, told.getvalue())
