"""What holds for the notebook of every chapter that trains: it shows all there is, at the settings of the records."""

from __future__ import annotations

import ast
import importlib
import json

import pytest

from grokbook.book.parameters import declared
from grokbook.firstform.catalogue import at_paper_settings

TRAINING = ("liu",)


def sources(root, chapter):
    cells = json.loads((root / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells]


def part(chapter, name):
    return importlib.import_module(f"grokbook.chapters.{chapter}.{name}")


@pytest.mark.parametrize("chapter", TRAINING)
def test_the_notebook_shows_every_figure_claim_and_sentence(root, chapter):
    source = "\n".join(sources(root, chapter))
    claims = part(chapter, "claims").CLAIMS
    shown = [f'page.figure("{id}")' for id in part(chapter, "figures").FIGURES]
    shown += [f'page.say("{id}")' for id in part(chapter, "sentences").SENTENCES]
    shown += [f'"{claim.id}"' for claim in claims]
    assert [one for one in shown if one not in source] == []
    assert len({claim.id for claim in claims}) == len(claims)


@pytest.mark.parametrize("chapter", TRAINING)
def test_defaults_of_the_notebook_are_the_settings_of_the_records(root, chapter):
    known = declared(root / "book" / f"{chapter}.ipynb")
    scope = {name: parameter.default for name, parameter in known.items()}
    part(chapter, "parameters").check(scope)
    experiments = part(chapter, "experiments")
    scope["E"] = experiments
    for source in sources(root, chapter):
        if "experiments = {" in source or "check(" in source:  # the cells as they stand, up to the page
            lines = [line for line in source.split("page = Page(")[0].splitlines() if not line.startswith("%")]
            made = [node for node in ast.parse("\n".join(lines)).body if isinstance(node, ast.Assign)]
            exec(compile(ast.Module(made, []), chapter, "exec"), scope)
    assert at_paper_settings(experiments, scope["experiments"]) == set(experiments.EXPERIMENTS)
