"""Moving code must change no recipe: a record is found by its hash."""

import json
from pathlib import Path

import pytest

from grokbook import chapters

WRITTEN_DOWN = json.loads((Path(__file__).parent / "recipes.json").read_text())


def recipes(chapter):
    """Name -> hashes of an experiment at the paper's settings and of its stand-ins: where a chapter keeps them."""
    return {
        name: {"full": known.make().hash, "stand_ins": [smaller.hash for smaller in known.stand_ins()]}
        for name, known in chapters.experiments(chapter).items()
    }


@pytest.mark.parametrize("chapter", sorted({name.split("/")[0] for name in WRITTEN_DOWN}))
def test_every_recipe_is_the_one_that_its_record_was_made_by(chapter):
    expected = {name: hashes for name, hashes in WRITTEN_DOWN.items() if name.startswith(f"{chapter}/")}
    found = recipes(chapter)  # what is new may join the list once it has a record
    assert {name: found.get(name) for name in expected} == expected
