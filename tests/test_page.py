"""What a notebook talks to: records by name, placeholders where one is missing, files only where they are wanted."""

from __future__ import annotations

import dataclasses
import json
import os
from types import SimpleNamespace

import pytest
import xarray as xr

from grokbook import plotting, recipes, register
from grokbook.firstform.claims import Claim, Verdict
from grokbook.firstform.page import Page
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule


def experiment(steps: int = 4, seeds: int = 2) -> Experiment:
    task, model = ModularTask(5, "n + m", 0.5), TwoLayerMLP(5, 6)
    runs = tuple(Run(task, model, SGD(0.1), steps, seed, label="GD") for seed in range(seeds))
    return Experiment("test/curves", runs, Schedule(log=2))


def draw(records):
    figure, ((ax,),) = plotting.panels()
    plotting.curves(ax, records["curves"].step, records["curves"].train_loss, color="#000000")
    return figure


CLAIM = Claim(
    "a", "Fig. 1", "It learns.", "yes", "it does", ("curves",), lambda records: Verdict("reproduced", "it did")
)


@pytest.fixture
def make(tmp_path, handed):
    """A page over one experiment, with a cache of its own."""
    handed(cache=str(tmp_path / "cache"))

    def made(**changes):
        options = {
            "experiments": {"curves": experiment()},
            "studies": {"twice": lambda: xr.Dataset({"x": 2.0}), "nothing": lambda: None},
            "figures": {"fig1": plotting.Drawn(draw, ("curves",))},
            "claims": [CLAIM],
            "sentences": {"hello": SimpleNamespace(write=lambda records: "It was run.", needs=("curves",))},
        }
        return Page("test", **{**options, **changes})

    return made


def test_a_record_is_trained_when_it_is_first_asked_for(make):
    here = make()
    assert here["curves"].sizes["run"] == 2
    assert here.sources["curves"] == "trained here"


def test_a_training_beyond_the_budget_is_not_started(make):
    here = make(cost=lambda experiment: 3.0, budget=2.0)
    assert "curves" not in here
    with pytest.raises(KeyError):
        here["curves"]


def test_a_record_that_is_there_is_used_whatever_it_would_cost(make):
    make()["curves"]
    assert "curves" in make(cost=lambda experiment: 3.0, budget=2.0)


def test_a_smaller_experiment_within_the_budget_stands_in(make):
    small = experiment(steps=2)
    here = make(otherwise={"curves": small}, cost=lambda one: float(one.member_steps), budget=5.0)
    assert here["curves"].attrs["hash"] == small.hash


def test_at_other_settings_a_training_gets_the_seeds_that_the_budget_allows(make):
    whole = experiment()
    here = make(cost=lambda one: float(len(one.runs)), budget=1.0)
    assert here["curves"].seed.values.tolist() == [whole.runs[0].seed]
    assert here["curves"].attrs["size"] == "fewer seeds"
    told = here.ran("curves").text
    assert "fewer seeds" in told and "`budget=2` runs it" in told
    committed = make(cost=lambda one: float(len(one.runs)), budget=1.0, committed=["curves"])
    assert "curves" not in committed  # at the paper's settings it has a command instead


def test_studies_are_computed_and_may_have_no_meaning(make):
    here = make()
    assert float(here["twice"].x) == 2.0 and here["twice"].attrs["size"] == "full"
    assert "nothing" not in here and "unknown" not in here


def test_missing_records_leave_a_placeholder_a_command_and_an_untested_claim(make):
    here = make(cost=lambda experiment: 3.0, budget=2.0, committed=["curves"])
    command = "python -m grokbook train test/curves"
    assert command in here.figure("fig1").axes[0].texts[0].get_text()
    assert command in here.say("hello").text
    assert here.say("hello") is None, "once is enough"
    assert "not tested" in here.claims("a", caption="Claims").markup
    assert "not trained" in here.records_table().markup


def test_a_figure_that_some_of_its_records_suffice_for_is_drawn_from_those(make):
    for some, drawn in ((False, False), (True, True)):
        asked = plotting.Drawn(draw, ("twice", "nothing"), some=some)
        figure = make(figures={"fig1": asked}).figure("fig1")
        assert (len(figure.axes[0].texts) == 0) == drawn
    only = make(figures={"fig1": plotting.Drawn(draw, ("nothing",), some=True)})
    assert only.figure("fig1").axes[0].texts


def test_at_other_settings_the_page_says_which_budget_would_train(make):
    here = make(cost=lambda experiment: 0.3141, budget=0.25)
    for text in (here.figure("fig1").axes[0].texts[0].get_text(), here.ran("curves").text):
        assert "budget=0.32" in text and "grokbook train" not in text
    assert "curves" in make(cost=lambda experiment: 0.3141, budget=0.32)


def test_figures_are_written_only_where_a_folder_is_named(make, tmp_path, monkeypatch, handed):
    here = make()
    monkeypatch.setattr(plotting, "ROOT", tmp_path / "checkout")
    here.figure("fig1")
    assert not (tmp_path / "checkout").exists()
    handed(figures=str(tmp_path / "figures"))
    here.figure("fig1")
    assert sorted(os.listdir(tmp_path / "figures" / "test")) == ["fig1.png", "fig1.svg"]


def test_a_phrase_names_what_differs_between_settings():
    from grokbook.models.encoder import PairEncoder
    from grokbook.models.toy import AdditionDecoder
    from grokbook.optim import AdamW, Group
    from grokbook.tasks import AdditionTask

    optimizer = AdamW(1e-4, 0.0, groups=(Group("W_E", 1e-3, 0.3),))
    run = Run(AdditionTask(5, 9), AdditionDecoder(5, init_scale=3.0), optimizer, 10, 0, "mse", 4)
    told = recipes.settings([run, dataclasses.replace(run, batch_size=None)])
    for part in ("batch 4, 9", "initial scale 3", "embeddings' decay 0.3"):
        assert part in told
    usual = recipes.settings([dataclasses.replace(run, model=AdditionDecoder(5), batch_size=None)])
    assert "batch" not in usual and "scale" not in usual
    encoder = Run(ModularTask(5, "n + m", 0.8), PairEncoder(5, 8, 2, 6), AdamW(1e-3), 10, 0, "cross_entropy")
    assert "blocks 2, hidden units 6" in recipes.settings([encoder])


def test_what_was_run_is_read_off_the_record(make):
    text = make().ran("curves").text
    for part in ("p = 5", "f = n + m", "N = 6", "α = 0.5", "GD (4 steps, lr 0.1", "2 seeds"):
        assert part in text


def test_what_was_run_is_told_once(make):
    here = make()
    here.ran("curves")
    assert here.ran("curves").text == "See above: `curves`."


def test_a_smaller_record_shows_both_settings(make, monkeypatch):
    import dataclasses

    here = make(
        experiments={"curves": experiment(steps=1000)},
        otherwise={"curves": dataclasses.replace(experiment(steps=3), scale="reduced")},
        cost=lambda one: float(one.member_steps),
        budget=10.0,
    )
    text = here.ran("curves").text
    assert '<span class="verdict size">smaller</span>' in text and "3 steps" in text and "1,000 steps" in text
    assert text.count("2 seeds") == 2


def test_the_summary_counts_every_claim_and_misses_none(make):
    here = make()
    with pytest.raises(LookupError, match="a"):
        here.summary()
    here.claims("a", caption="Claims")
    assert "Of 1 claims of the paper: 1 reproduced." in here.summary().text


def test_the_summary_counts_by_the_earlier_criterion_at_the_committed_settings_only(make, monkeypatch):
    before = {"date": "2026-11-01", "criterion": "it did", "record": "none", "verdict": "partly"}
    late = before | {"record": "full", "verdict": "reproduced", "why": "unlucky", "forced": False}
    entry = {"whose": "ours", "versions": [before, late], "counted": "partly", "counted_how": "…"}
    monkeypatch.setattr(register, "load", lambda chapter: {"a": entry})
    for committed, words in ((("curves",), "Of 1 checks of our own: 1 partly."), ((), "1 reproduced.")):
        here = make()
        here.settled = bool(committed)
        here.claims("a", caption="Claims")
        assert words in here.summary().text


def test_verdicts_and_records_are_kept_for_the_scorecard_where_a_folder_is_named(make, tmp_path, monkeypatch, handed):
    handed(figures=str(tmp_path))
    here = make()
    here.claims("a", caption="Claims")
    here.summary()
    kept = json.loads((tmp_path / "test" / "claims.json").read_text())
    (said,) = kept["claims"]
    assert said["id"] == "a" and said["outcome"] == "reproduced" and said["statement"] == CLAIM.statement
    assert (said["size"], said["paper"], said["ours"]) == ("full", "yes", "it did")
    (record,) = kept["records"]
    assert (record["name"], record["size"], len(record["networks"])) == ("curves", "full", 2)


def test_the_records_table_names_source_hash_and_command(make):
    here = make()
    here["curves"]
    markup = here.records_table().markup
    assert here["curves"].attrs["hash"][:8] in markup and "trained here" in markup
    assert "this chapter with its parameters" in markup and "python" not in markup  # not at the settings of a record
    assert "grokbook train test/curves" in make(committed=["curves"]).records_table().markup.replace("<wbr>", "")


def test_values_are_shown_one_by_one_or_as_a_range():
    assert recipes._values([500]) == "500"
    assert recipes._values([0.2, 0.4]) == "0.2, 0.4"
    assert recipes._values([3, 4, 1, 2]) == "1 to 4 (4 values)"


def test_few_values_keep_the_order_of_their_conditions():
    assert recipes._values([6_000, 4_000, 3_000, 6_000]) == "6,000, 4,000, 3,000"


def test_a_record_that_lacks_only_seeds_says_no_more_than_that(make):
    options = {
        "otherwise": {"curves": dataclasses.replace(experiment(seeds=1), scale="reduced")},
        "cost": lambda one: float(len(one.runs)),
        "budget": 1.0,
    }
    make(**options)["curves"]
    here = make(**options, committed=["curves"])
    text = here.ran("curves").text
    assert "1 seed." in text and "The full setting has 2 seeds;" in text and text.count("p = 5") == 1
    assert "train test/<wbr>curves --reduced" in here.records_table().markup
