"""The chapter's claims: each judges every record, and criteria decide where they say."""

from __future__ import annotations

import numpy as np
import pytest

from grokbook.chapters.liu import claims, experiments, studies
from grokbook.chapters.liu.claims import BY_ID, CLAIMS
from grokbook.claims import OUTCOMES

DERIVED = {"component_accuracy"}


def test_claims_have_names_of_their_own_and_read_records_that_exist():
    assert len(BY_ID) == len(CLAIMS)
    known = set(experiments.EXPERIMENTS) | set(studies.STUDIES) | DERIVED
    for claim in CLAIMS:
        assert set(claim.needs) <= known, claim.id
        assert claim.statement and claim.criterion and claim.paper


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at this size medians over runs that never learn are empty
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_judges_what_it_asks_for(claim, tiny_records):
    verdict = claim.judge({name: tiny_records[name] for name in claim.needs})
    assert verdict.outcome in OUTCOMES
    assert verdict.ours or verdict.outcome == "not tested"
    assert "nan" not in verdict.ours


@pytest.mark.parametrize("id", ["fig9", "fig11", "fig4a-small"])
def test_what_is_counted_by_hand_is_reproduced(id):
    assert BY_ID[id].judge({}).outcome == "reproduced"


def test_the_theory_of_ten_symbols_is_reproduced():
    wanted = ("ideal", "transition", "deduction", "conservation", "attraction")
    records = {name: studies.STUDIES[name](10, 600) for name in wanted}
    records["spectra"] = studies.spectra(11, 0)
    for id in ("fig4a", "fig10-ideal", "transition", "fig16", "conserved", "attraction", "modular"):
        assert BY_ID[id].judge(records).outcome == "reproduced", BY_ID[id].judge(records)
    assert BY_ID["fig5a"].judge(records).outcome in ("reproduced", "partly")  # medians at 22 and 23 need more draws


def published_record(panel: str, name: str, record):
    """The published steps in the shape of our record."""
    theirs = studies.published(panel)
    times = theirs.t_train, theirs.t_val
    x = np.searchsorted(theirs.x, record.lr.values * 0.999)
    y = np.searchsorted(theirs.y, record[studies.PANELS[name][1]].values * 0.999)
    for split, table in zip(("train", "test"), times, strict=True):
        record[f"reached_{split}_accuracy"] = ("run", table[y, x, 0])
    return record


@pytest.mark.parametrize(
    "name, id",
    [("phases_rates", "fig6a"), ("phases_regression", "fig6b"), ("phases_classification", "fig6c")],
)
def test_the_published_diagrams_meet_the_criteria_and_shuffled_ones_do_not(name, id):
    import xarray as xr

    from grokbook.experiment import coordinates

    experiment = experiments.EXPERIMENTS[name]()
    record = xr.Dataset(coords={key: ("run", value) for key, value in coordinates(experiment.runs).items()})
    record = published_record(studies.PANELS[name][0], name, record)
    assert BY_ID[id].judge({name: record}).outcome == "reproduced"
    order = np.random.default_rng(0).permutation(record.sizes["run"])
    for split in ("train", "test"):
        record[f"reached_{split}_accuracy"][:] = record[f"reached_{split}_accuracy"].values[order]
    assert BY_ID[id].judge({name: record}).outcome != "reproduced"


def test_spearman_is_the_textbook_one():
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 4, 3, 5])
    assert claims._rank_correlation(x, y) == pytest.approx(0.8)
    assert claims._rank_correlation(x, -x) == pytest.approx(-1)
    assert np.isnan(claims._rank_correlation(x[:2], y[:2]))
