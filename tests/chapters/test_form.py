"""What holds for every chapter whose sections are rooms: notebook, settings, claims and register say the same."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter

import pytest

from grokbook import register
from grokbook.chapters import chapters
from grokbook.settings import Settings, declared
from grokbook.train import records

BOOK = records.ROOT / "book"
ROOMS = {name: chapter for name, chapter in chapters().items() if chapter and (BOOK / f"{name}.ipynb").exists()}


@pytest.fixture(params=ROOMS, scope="module")
def chapter(request):
    return ROOMS[request.param]


@pytest.fixture(scope="module")
def cells(chapter, root):
    cells = json.loads((root / "book" / f"{chapter.name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"]), cell["metadata"]) for cell in cells]


def test_the_parameters_cell_declares_the_settings(chapter, cells):
    (source,) = (source for _, source, metadata in cells if "parameters" in metadata.get("tags", ()))
    namespace = {}
    exec(source, namespace)
    known = namespace["__annotations__"]
    assert list(known) == chapter.settings.names() and len(known) <= 12
    for name, (kind, default) in declared(chapter.settings).items():
        assert namespace[name] == (list(default) if isinstance(default, tuple) else default), name
        assert str(known[name]).startswith("list") == isinstance(default, tuple), (name, kind)
    assert source.count("  # ") == len(known)  # each with its meaning
    assert issubclass(chapter.settings, Settings)


def test_an_experiment_is_called_as_its_function_and_stand_ins_are_others(chapter):
    home = chapter.settings()
    for name, recipe in chapter.experiments.items():
        experiment = recipe(home)
        assert experiment.name == f"{chapter.name}/{name}"
        assert all(one.hash != experiment.hash for one in recipe.stand_ins(home)), name
        assert recipe(chapter.settings(**chapter.quick), **recipe.quick).member_steps < experiment.member_steps


def test_the_notebook_shows_every_claim_once_and_every_record_of_a_figure(chapter, cells):
    code = "\n".join(source for kind, source, _ in cells if kind == "code")
    shown = [name for group in re.findall(r"claims=\(([^)]*)\)|page\.claims\(([^)]*)\)", code) for name in group]
    ids = [id for names in shown for id in re.findall(r'"([^"]+)"', names)]
    assert sorted(ids) == sorted(chapter.claims)
    assert code.count("page.summary()") == 1


def test_every_fact_of_the_prose_is_computed_on_the_page(chapter, cells, root):
    told = "\n".join(source + json.dumps(metadata, ensure_ascii=False) for _, source, metadata in cells)
    code = "\n".join(source for kind, source, _ in cells if kind == "code")
    wanted = set(re.findall(r"\{glue:text\}`([\w-]+)`", told))
    counted = ("claims", "reproduced", "reproduced_full", "partly", "not_reproduced", "undecided", "not_tested")
    summary = {f"{whose}_{word}" for whose in ("paper", "ours") for word in counted}
    summary |= {"networks", "core_hours", "full_records", "all_records", "criteria_changed", "criteria_all"}
    rooms = (root / "grokbook" / "chapters" / chapter.name).glob("*.py")
    code += "\n".join(room.read_text(encoding="utf-8") for room in rooms)
    made = r'\b{0}\s*=|"{0}":|f"{1}_\{{'
    unknown = {name for name in wanted - summary if not re.search(made.format(name, name.split("_")[0]), code)}
    assert not unknown
    assert set(re.findall(r"\{glue:\}`badge-([\w-]+)`", told)) <= set(chapter.claims)


def test_no_two_cells_give_one_name_to_a_fact_or_a_figure(cells):
    names = Counter(one["mystnb"]["figure"]["name"] for _, _, one in cells if "figure" in one.get("mystnb", {}))
    for kind, source, _ in cells:
        if kind == "code":
            calls = (
                one
                for one in ast.walk(ast.parse(source.replace("%matplotlib inline", "")))
                if isinstance(one, ast.Call)
            )
            facts = (one for one in calls if ast.unparse(one.func) == "page.facts")
            names.update({word.arg for one in facts for word in one.keywords if word.arg})
    assert not [name for name, times in names.items() if times > 1]


def test_a_drawing_cell_can_be_read_at_once(cells):
    for kind, source, metadata in cells:
        if kind == "code" and "figure" in metadata.get("mystnb", {}):
            assert len(source.splitlines()) <= 35, source
            assert metadata["mystnb"]["figure"]["caption"] and metadata["mystnb"]["image"]["alt"]


def test_prose_has_at_most_three_numbers_a_sentence(cells):
    for kind, source, _ in cells:
        if kind == "markdown":
            prose = re.sub(r"(?m)^\|.*$", "", source)  # a table may hold more
            for sentence in re.split(r"(?<=[.:;])\s", prose):
                assert len(re.findall(r"\{glue:text\}", sentence)) <= 3, sentence


def test_the_register_holds_todays_parts(chapter):
    entries = register.load(chapter.name)
    for id, claim in chapter.claims.items():
        last = entries[id]["versions"][-1]
        assert last.get("parts") == [part.criterion for part in claim.parts], id
        assert entries[id]["whose"] == claim.whose, id
        assert claim.whose == "ours" or not claim.figure.startswith(("beside", "beyond")), id
    gone = {id for id in entries if id not in chapter.claims}
    assert all("withdrawn" in entries[id] for id in gone), gone
