"""A chapter's rooms: settings and ranges, names that say what is needed, and the example of CONTRIBUTING.md."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

import numpy as np
import pytest
import xarray as xr

from grokbook import chapters, plotting, settings
from grokbook.chapter import Chapter, Section
from grokbook.chapters.gromov import CHAPTER, Settings
from grokbook.claims import Part, at_least
from grokbook.page import NotTrained, petaflop, standing
from grokbook.train import planning, records, runner

HOME = Settings()


def example():
    """The room that CONTRIBUTING.md shows, as a module's namespace."""
    text = (records.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scope: dict = {}
    exec(re.findall(r"```python\n(.*?)```", text, re.S)[0], scope)
    return scope


def test_the_example_trains_computes_and_claims():
    section = example()["section"]
    made = section.experiments["slow_curves"]
    assert len(made(HOME).runs) == 5 and len(made.stand_ins(HOME)[0].runs) == 1
    curves = xr.Dataset(
        {"train_accuracy": (("run", "step"), [[0.0, 1.0, 1.0]]), "test_accuracy": (("run", "step"), [[0.0, 0.0, 1.0]])},
        {"step": [0, 10, 20]},
        {"size": "full"},
    )
    held = {"slow_curves": curves, "slow_delays": section.studies["slow_delays"](curves)}
    (claim,) = section.claims
    assert set(claim.needs) == set(held) and claim.judge(held).outcome == "reproduced"
    held["slow_delays"] = held["slow_delays"] * np.inf
    assert claim.judge(held).outcome == "partly"


def test_two_of_one_name_and_what_nothing_is_called_are_refused():
    here = {name: Section(name) for name in ("one", "two")}
    for section in here.values():
        section.claim("same", "Fig. 1", "It is.", Part("it", lambda nonsense: 1, at_least(1)))
    made = Chapter("test", Settings, (), {})
    made.__dict__["sections"] = here
    with pytest.raises(ValueError, match="test: two has a claim 'same', as a section before it has"):
        made.claims  # noqa: B018
    with pytest.raises(ValueError, match=r"must be one of .*, got 'nonsense'"):
        CHAPTER.needed_by("nonsense")


def test_a_record_that_was_seen_stands_also_where_it_is_stale_or_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert standing(CHAPTER)["fig6"] == "none"
    records.write_whole(tmp_path / "results" / "gromov" / "adamw_curves.nc", b"damaged")
    assert standing(CHAPTER)["fig6"] == "full"


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"p": 2}, "p = 2: a whole number from 5 to 300 is allowed"),
        ({"p": True}, "p = True"),
        ({"heads": [1, 3]}, "heads = 3: a divisor of d_model is needed, which is 128"),
        ({"train_fraction": 1.0}, "strictly between 0 and 1"),
        ({"train_fraction": float("nan")}, "strictly between 0 and 1"),
        ({"fractions": []}, "a list of different values"),
        ({"fractions": [0.5, 0.5]}, "a list of different values"),
        ({"budget": -1.0}, "a number of at least 0"),
        ({"device": "tpu"}, "one of auto, cpu, cuda"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_in_one_line(wrong, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        Settings(**wrong)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"lr": float("nan")}, {"lr": -1.0}, {"nonsense": 1}, {"seeds": 0}])
def test_a_keyword_of_an_experiment_out_of_its_range_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CHAPTER.experiments["learning_curves"](HOME, **wrong)


def test_every_keyword_of_every_experiment_says_its_range():
    for chapter in filter(None, chapters.chapters().values()):
        for declared in (chapter.settings, *(recipe.make for recipe in chapter.experiments.values())):
            annotated = get_type_hints(declared, include_extras=True)
            for name in settings.declared(declared):
                ranges = [one for one in get_args(annotated[name])[1:] if isinstance(one, settings.Range)]
                assert ranges, f"{chapter.name}: {name} of {declared.__name__}"


def test_what_a_study_needs_is_what_its_arguments_are_called():
    assert CHAPTER.needed_by("line_shares") == ["learning_curves", "adamw_curves"]
    assert CHAPTER.needed_by("analytic") == []


def test_at_other_settings_what_costs_too_much_is_not_trained_and_the_page_names_the_budget():
    page = CHAPTER.page({name: getattr(HOME, name) for name in Settings.names()} | {"p": 59, "budget": 0.0})
    with pytest.raises(NotTrained) as missing:
        page["learning_curves"]
    assert missing.value.command.startswith("budget=")
    assert page.judge("fig1a")[1].outcome == "not tested" and "budget=" in page.judge("fig1a")[1].note


def test_at_other_settings_failing_decides_nothing_and_the_page_says_what_was_changed(monkeypatch):
    monkeypatch.setattr(runner, "known", lambda one: xr.Dataset())
    page = CHAPTER.page({"p": 59, "seeds": 9})
    assert page["learning_curves"].attrs["size"] == "smaller"
    assert "p = 59 (book: 97), seeds = 9 (book: 5)" in page._elsewhere()
    assert CHAPTER.page({"seeds": 9})["learning_curves"].attrs["size"] == "full", "more seeds decide as well"
    assert [CHAPTER.page(given)["phase_noise"].attrs["size"] for given in ({}, {"p": 13})] == ["full", "smaller"]


@pytest.mark.parametrize("given", [{}, CHAPTER.quick])
def test_where_we_have_tried_a_page_its_errors_are_errors(given):
    with pytest.raises(ZeroDivisionError), CHAPTER.page(given).cell():
        1 / 0  # noqa: B018


def test_at_a_readers_settings_what_cannot_be_computed_is_told_and_the_page_goes_on(monkeypatch, capsys):
    page, stands = CHAPTER.page({"p": 59}), []
    monkeypatch.setattr(plotting, "picture", lambda figure: stands.append(figure.axes[0].texts[0].get_text()))
    with page.cell():
        np.min([])
    assert "not to be had at these settings: ValueError: zero-size array" in capsys.readouterr().err
    assert stands[0].startswith("Not to be had at these settings\nValueError: zero-size array")
    monkeypatch.setitem(CHAPTER.studies, "analytic", lambda s: [][s.p])
    monkeypatch.setattr(runner, "known", lambda one: 1 / 0)
    for one, name in (("claim-1", "analytic"), ("fig1a", "learning_curves")):
        assert name not in page and page.judge(one)[1].outcome == "not tested"
    assert page.judge("claim-1")[1].note == "at these settings IndexError: list index out of range"


def test_a_misspelt_record_or_claim_is_named_with_the_nearest():
    page = CHAPTER.page({})
    with pytest.raises(KeyError, match="did you mean"):
        page["learning_curve"]
    with pytest.raises(KeyError, match="has no claim"):
        page.claims("fig1aa")


def test_a_record_that_claims_alone_are_read_from_stands_behind_no_figure(capsys):
    page = CHAPTER.page({name: getattr(HOME, name) for name in Settings.names()})
    page["critical_fraction"]
    page.claims("fig1a")
    page["adamw_curves"]
    page.show(plotting.panels()[0], "tried")
    assert page._shown["tried"]["records"] == ["adamw_curves"]


def test_a_budget_is_spent_on_networks_that_no_record_has():
    wanted = CHAPTER.experiments["learning_curves"]
    one, six = (petaflop(wanted(HOME, seeds=seeds)) for seeds in (1, 6))
    assert one == 0 and six == pytest.approx(1e-15 * planning.work(wanted(HOME, seeds=6)) / 6)


def test_a_page_made_again_has_as_many_networks_as_before():
    small = {"p": 7, "width": 8, "gd_steps": 3, "seeds": 3}
    one, three = (petaflop(CHAPTER.experiments["learning_curves"](Settings(**small | {"seeds": n}))) for n in (1, 3))
    found = [CHAPTER.page(small | {"budget": (one + three) / 2})["learning_curves"] for _ in range(2)]
    assert [record.sizes["run"] for record in found] == [found[0].sizes["run"]] * 2 and found[0].sizes["run"] < 6
