"""Moving code must change no recipe: a record is found by its hash."""

import json
import re
from pathlib import Path

import h5py
import pytest

from grokbook import chapters
from grokbook.train import records

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


def test_the_dictionary_tells_of_all_that_records_hold():
    words = re.findall("`([^`]+)`", (records.ROOT / "results" / "README.md").read_text(encoding="utf-8"))
    known = re.compile("|".join(re.sub(r"<\w+>|…|(?<=\\\[)[iq](?=\\\])", r"\\w+", re.escape(word)) for word in words))
    for path in (records.ROOT / "results").glob("*/*.nc"):
        with h5py.File(path) as file:
            beside = {*file.attrs["coordinates"].split(), "step"}
            own = {
                name.removeprefix(records.OTHER)
                for name, one in file.items()
                if b"This" not in one.attrs.get("NAME", b"")
            }
            held = (own - beside) | {*file.attrs} - {"coordinates"} - records.FORMAT
        assert [name for name in held if not known.fullmatch(name)] == [], path
