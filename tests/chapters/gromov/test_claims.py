"""The chapter's claims: all of them are there, each judges every record, and criteria decide where they say."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gromov import claims, experiments, studies
from grokbook.chapters.gromov.claims import BY_ID, CLAIMS
from grokbook.firstform.claims import OUTCOMES

from .conftest import WIDTH, P

WANTED = [
    "fig1a",
    "fig1b",
    "fig1b-onset",
    "fig1c",
    "fig1d",
    "fig2",
    "fig3",
    "fig4a-i",
    "fig4a-ii",
    "fig4a-iii",
    "fig4a-iv",
    "fig4b",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "fig11",
    "fig12",
    "fig13",
    "fig10-first",
    "fig10-second",
    "fig10-data",
    "claim-1",
    "claim-1b",
    "claim-2",
    "composite",
    "redundant",
    "optim",
    "optim-sooner",
    "ntk",
    "alphac",
    "complex",
]


def curves(train, test, *, steps=None, **more) -> xr.Dataset:
    """A record of learning curves, one row a seed."""
    train, test = np.atleast_2d(train), np.atleast_2d(test)
    variables = {"train_accuracy": train, "test_accuracy": test, **{k: np.atleast_2d(v) for k, v in more.items()}}
    steps = np.arange(train.shape[1]) * 100 if steps is None else steps
    return xr.Dataset(
        {name: (("run", "step"), values) for name, values in variables.items()},
        {"step": steps, "seed": ("run", np.arange(len(train))), "p": ("run", np.full(len(train), 97))},
    )


def test_claims_have_names_of_their_own_and_every_check_is_there():
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert set(WANTED) <= set(ids)


def test_claims_read_records_that_exist():
    known = set(experiments.EXPERIMENTS) | set(studies.STUDIES) | {"analytic_widths", "line_shares"}
    for claim in CLAIMS:
        assert set(claim.needs) <= known, claim.id
        assert claim.statement and claim.criterion and claim.paper


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at this size medians over runs that never learn are empty
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_judges_what_it_asks_for(claim, tiny_records):
    verdict = claim.judge({name: tiny_records[name] for name in claim.needs})
    assert verdict.outcome in OUTCOMES
    assert verdict.ours or verdict.outcome == "not tested"


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ([0.0, 0.02, 0.02, 1.0, 1.0], "reproduced"),  # delay 3 / 2
        ([0.0, 0.02, 0.5, 1.0, 1.0], "partly"),  # knows too much at t_train
        ([0.0, 0.02, 0.02, 0.02, 0.5], "partly"),  # never groks, but is ignorant at t_train
    ],
)
def test_late_generalisation_needs_a_delay_and_ignorance(test, word):
    record = curves([0.0, 0.5, 1.0, 1.0, 1.0], test)
    assert BY_ID["fig1c"].judge({"learning_curves": record}).outcome == word


def test_the_delay_is_reported_with_its_seeds():
    train = [[0.0, 1.0, 1.0, 1.0]] * 3
    test = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    verdict = BY_ID["fig1c"].judge({"learning_curves": curves(train, test)})
    assert (verdict.n, verdict.median, verdict.low, verdict.high) == (3, 2.0, 2.0, 3.0)


@pytest.mark.parametrize(("peak_step", "word"), [(3, "reproduced"), (1, "partly")])
def test_the_test_loss_must_peak_right_before_the_onset(peak_step, word):
    loss = np.full(6, 0.0100)
    loss[peak_step] = 0.0110
    record = curves(
        [0.0, 0.2, 0.5, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.01, 1.0, 1.0],
        test_loss=loss,
        train_loss=np.linspace(0.01, 0.001, 6),
    )
    assert BY_ID["fig1a"].judge({"learning_curves": record}).outcome == word


def test_a_test_loss_that_is_largest_after_the_onset_does_not_peak_before_it():
    record = curves(
        [0.0, 0.2, 0.5, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.01, 1.0, 1.0],
        test_loss=[0.01, 0.01, 0.01, 0.011, 0.01, 0.012],
        train_loss=np.linspace(0.01, 0.001, 6),
    )
    assert BY_ID["fig1a"].judge({"learning_curves": record}).outcome == "partly"


@pytest.mark.parametrize(
    ("train_at", "test_at", "word"),
    [
        (1, 9, "reproduced"),  # delay 9
        (3, 9, "not reproduced"),  # delay 3
        (1, None, "reproduced"),  # never within a run of 9 t_train
        (3, None, "not tested"),  # never, but the run is only 3 t_train long
        (None, None, "not tested"),
    ],
)
def test_a_run_that_never_groks_has_a_delay_of_at_least_its_length(train_at, test_at, word):
    steps = np.arange(10)
    train, test = ((steps >= (99 if when is None else when)).astype(float) for when in (train_at, test_at))
    assert BY_ID["fig1c-printed"].judge({"printed_scaling_plain": curves(train, test)}).outcome == word


def test_a_run_without_a_gradient_to_speak_of_does_not_stop_the_verdict():
    """One of three runs diverges in the first 5 % of its steps."""
    steps = np.arange(100)
    gradient = np.tile(np.exp(-(((steps - 50) / 20) ** 2)), (3, 1))
    gradient[2, 2:] = np.nan
    loss = 0.01 + gradient / 100
    record = curves(
        np.tile(steps >= 40, (3, 1)).astype(float),
        np.tile(steps >= 60, (3, 1)).astype(float),
        test_loss=loss,
        gradient_norm_W_in=gradient,
        gradient_norm_W_out=gradient,
    )
    verdict = BY_ID["fig1d"].judge({"learning_curves": record})
    assert (verdict.outcome, verdict.n) == ("reproduced", 2)


def sweep(runs) -> xr.Dataset:
    """A record of runs (label, p, train fraction, seed, step of grokking or None)."""
    steps = np.array([0, 100, 600, 1000, 2000, 20_000])
    accuracy = np.array([(steps >= (np.inf if when is None else when)).astype(float) for *_, when in runs])
    labels, p, alpha, seeds, _ = zip(*runs, strict=True)
    return curves(accuracy, accuracy, steps=steps).assign_coords(
        label=("run", list(labels)),
        p=("run", list(p)),
        train_fraction=("run", list(alpha)),
        seed=("run", list(seeds)),
        width=("run", [500] * len(seeds)),
    )


@pytest.mark.parametrize(
    ("alpha", "plain", "momentum", "word"),
    [
        (0.5, [600, 600, 600], [100, 100, 100], "reproduced"),
        (0.5, [600, 600, 600], [None, None, 100], "not reproduced"),  # momentum alone does not get there
        (0.5, [None, None, 600], [100, 100, 100], "not reproduced"),  # the one that groks is no median
        (0.5, [None, None, None], [None, None, None], "not reproduced"),
        (0.4, [600, 600, 600], [100, 100, 100], "not tested"),
    ],
)
def test_momentum_saves_time_at_half_of_the_data_and_runs_that_never_grok_count(alpha, plain, momentum, word):
    runs = [("GD", 97, alpha, seed, when) for seed, when in enumerate(plain)]
    runs += [("GD + momentum", 97, alpha, seed, when) for seed, when in enumerate(momentum)]
    assert BY_ID["fig4a-iii"].judge({"data_fraction": sweep(runs)}).outcome == word


def test_two_fractions_have_no_rank_correlation():
    def runs(*alphas):
        return sweep([("GD", 97, alpha, 0, when) for alpha, when in zip(alphas, (2000, 600, 100), strict=False)])

    assert BY_ID["fig4a-i"].judge({"data_fraction": runs(0.3, 0.5)}).outcome == "not tested"
    assert BY_ID["fig4a-i"].judge({"data_fraction": runs(0.3, 0.5, 0.7)}).outcome == "reproduced"


def test_the_critical_share_of_a_modulus_counts_seeds_that_never_grok():
    def smallest(p, *alphas):
        """Each seed groks from its share on; None never does."""
        return [
            ("AdamW", p, alpha, seed, 100 if least is not None and alpha >= least else None)
            for alpha in (0.2, 0.4, 0.6)
            for seed, least in enumerate(alphas)
        ]

    def judge(*runs, own=97, scale="full"):
        record = sweep(smallest(own, 0.2, 0.2)).assign_attrs(scale=scale)
        return BY_ID["alphac"].judge(
            {"critical_fraction": sweep([run for some in runs for run in some]), "data_fraction": record}
        )

    falling = judge(smallest(23, 0.6, 0.6, 0.6), smallest(47, 0.4, 0.4, 0.4))
    assert (falling.outcome, falling.n, falling.note) == ("reproduced", 2, "")
    assert judge(smallest(23, 0.6, 0.6, 0.6), smallest(47, 0.4, None, None)).outcome == "not reproduced"
    assert judge(smallest(97, 0.6)).outcome == "not tested"  # one modulus, of both records
    assert "p = 97 is missing: p = 53" in judge(smallest(23, 0.6), smallest(47, 0.4), own=53, scale="reduced").note


def test_frozen_features_must_fit_and_fail_in_the_same_network():
    def judge(train, test):
        arrays = {"train_accuracy": (("width", "seed"), train), "test_accuracy": (("width", "seed"), test)}
        study = xr.Dataset(arrays, {"width": [500, 3000], "seed": [0, 1]}, {"modulus": 53})
        return BY_ID["ntk"].judge({"frozen": study}).outcome

    chance = [[0.01, 0.01], [0.01, 0.01]]
    assert judge([[0.5, 0.5], [1.0, 1.0]], chance) == "reproduced"
    assert judge([[0.5, 0.5], [1.0, 1.0]], [[0.5, 0.5], [0.01, 0.01]]) == "reproduced"  # the narrow ones do not fit
    assert judge([[0.5, 0.5], [1.0, 1.0]], [[0.01, 0.01], [0.01, 0.5]]) == "partly"
    assert judge([[0.5, 0.5], [1.0, 0.5]], chance) == "partly"
    assert judge([[0.5, 0.5], [0.5, 0.5]], chance) == "not reproduced"


def test_the_width_of_gelu_is_not_judged_without_that_of_relu():
    widths = [100, 200, 400, 800, 1600]

    def study(gelu, relu):
        rows = [[[1.0 if width >= least else 0.5] for width in widths] for least in (gelu, relu)]
        return xr.Dataset(
            {"accuracy": (("activation", "width", "seed"), rows)},
            {"activation": ["gelu", "relu"], "width": widths, "seed": [0]},
        )

    def judge(plain, scaled):
        return BY_ID["fig5-gelu"].judge({"activations": study(*plain), "scaled_gelu": study(*scaled)}).outcome

    assert judge((200, 200), (1600, 200)) == "partly"
    assert judge((200, 200), (200, 200)) == "not reproduced"
    assert judge((1600, 200), (1600, 200)) == "reproduced"
    assert judge((np.inf, np.inf), (np.inf, np.inf)) == "not tested"


def test_one_readout_that_works_shows_that_inverses_are_not_needed():
    def judge(squares, cubes, fourth):
        study = xr.Dataset(
            {
                "accuracy": (
                    ("exponent", "readout", "width", "seed"),
                    [[[[value]], [[0.5]]] for value in (squares, cubes, fourth)],
                ),
                "served": ("exponent", [0.5, 1.0, 0.25]),
            },
            {"exponent": [2, 3, 4], "readout": ["all roots", "one root, else zero"], "width": [500], "seed": [0]},
        )
        return BY_ID["fig7-roots"].judge({"branches": study}).outcome

    assert judge(1.0, 1.0, 1.0) == "not reproduced"
    assert judge(1.0, 1.0, 0.5) == "not reproduced"
    assert judge(0.5, 1.0, 0.5) == "reproduced"  # a power with an inverse says nothing


def test_one_head_is_judged_only_where_it_was_trained(tiny_records):
    heads = tiny_records["attention_heads"]
    more = heads.isel(run=np.flatnonzero(heads.heads.values > 1))
    assert BY_ID["fig13"].judge({"attention_heads": more}).outcome == "not tested"
    assert BY_ID["fig13"].judge({"attention_heads": heads}).outcome != "not tested"


def test_independent_phases_break_the_solution():
    def study(value):
        return xr.Dataset({"accuracy": (("noise", "seed"), [[value]])}, {"noise": [np.inf], "seed": [0]})

    assert BY_ID["claim-1b"].judge({"phase_noise": study(0.012)}).outcome == "reproduced"
    assert BY_ID["claim-1b"].judge({"phase_noise": study(0.5)}).outcome == "not reproduced"


def test_the_analytic_solution_at_the_papers_modulus():
    """Dossier values: these four need no training and take a second."""
    found = {name: studies.study(name, 97, 500, 2) for name in ("linear", "complex", "squares")}
    assert BY_ID["claim-2"].judge(found).outcome == "reproduced"
    for one in ("linear", "squares"):
        worse = found | {one: found[one] * 0.9}
        assert BY_ID["claim-2"].judge(worse).outcome == "not reproduced"
    assert BY_ID["complex"].judge(found).outcome == "reproduced"
    assert float(found["squares"].accuracy.sel(width=500).min()) >= 0.999


def test_momentum_that_only_saves_time_does_not_save_data():
    """GD and GD with momentum stop at the same fraction once steps are counted alike."""

    def record(momentum_reaches_at_smallest):
        rows = []
        for label, momentum in (
            ("GD", 0.0),
            ("GD + momentum", 0.9),
            ("GD + decay", 0.0),
            ("Adam", 0.0),
            ("AdamW", 0.0),
        ):
            for alpha in (0.3, 0.5):
                when = 1000 if alpha == 0.5 else np.inf
                if label == "GD + momentum":
                    when = momentum_reaches_at_smallest if alpha == 0.3 else 100
                rows.append((label, momentum, alpha, when))
        steps = np.array([0, 100, 150, 1000, 2000])
        accuracy = np.array([(steps >= when).astype(float) for *_, when in rows])
        return curves(accuracy, accuracy, steps=steps).assign_coords(
            seed=("run", np.zeros(len(rows), int)),
            label=("run", [r[0] for r in rows]),
            momentum=("run", [r[1] for r in rows]),
            train_fraction=("run", [r[2] for r in rows]),
            steps=("run", np.full(len(rows), 2000)),
        )

    assert BY_ID["fig4a-iv"].judge({"data_fraction": record(1000)}).outcome == "not reproduced"
    assert BY_ID["fig4a-iv"].judge({"data_fraction": record(150)}).outcome == "reproduced"


def test_enough_width_is_the_first_at_which_the_mean_suffices():
    widths = np.array([8, 16, 32])
    assert claims._enough(widths, np.array([[0.5, 1.0, 1.0], [0.5, 0.96, 1.0]])) == 32
    assert claims._enough(widths, np.array([[0.5, np.nan, 0.995]])) == 32
    assert np.isnan(claims._enough(widths, np.array([[0.5, 0.6, 0.7]])))


def test_spearman_ranks_and_shares_ties():
    assert claims.spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([9.0, 5.0, 5.0, 1.0])) == pytest.approx(-0.9486833)
    assert np.isnan(claims.spearman(np.array([1.0, 2.0]), np.array([2.0, 1.0])))


def test_a_study_without_meaning_leaves_its_claim_untested():
    assert studies.study("product", 8, WIDTH, 1) is None
    assert studies.study("product", P, WIDTH, 1) is not None
    assert studies.study("composite", 4, WIDTH, 1) is None  # 3, 5 and 7 are primes
    assert BY_ID["composite"].judge({}).outcome == "not tested"


def test_bands_of_one_p_do_not_judge_another():
    study = studies.analytic(23, claims.BANDS, 10)
    verdict = BY_ID["claim-1"].judge({"analytic": study})
    assert verdict.outcome == "reproduced" and "inside" not in verdict.ours
    falling = study.assign(accuracy=study.accuracy.where(study.width != 500, 0.9))
    assert BY_ID["claim-1"].judge({"analytic": falling}).outcome == "partly"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_phases_of_a_single_unit_are_judged():
    from .conftest import trained

    known = {
        "learning_curves": experiments.learning_curves(P, 1, seeds=2, steps=4),
        "adamw_curves": experiments.adamw_curves(P, 1, seeds=2, steps=4),
        "phase_controls": experiments.phase_controls(P, 1, seeds=2, steps=4),
    }
    own = {name: trained(experiment) for name, experiment in known.items()}
    for id in ("fig3", "fig3-cause"):
        verdict = BY_ID[id].judge({name: own[name] for name in BY_ID[id].needs})
        assert verdict.outcome in OUTCOMES and "nan" not in verdict.ours


@pytest.mark.parametrize(("norms", "word"), [([1, 1, 1.1, 2], "reproduced"), ([1, 1.5, 1.6, 2], "not reproduced")])
def test_norms_that_grow_before_the_onset_do_not_start_there(norms, word):
    both = {f"weight_norm_{layer}": np.array(norms, float) for layer in ("W_in", "W_out")}
    record = curves([0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.1, 1.0], **both)
    assert BY_ID["fig1b-onset"].judge({"learning_curves": record}).outcome == word


@pytest.mark.parametrize(
    ("fast", "word"),
    [
        (np.r_[np.linspace(0.1, 0.2, 6), np.linspace(0.3, 1.0, 15)], "reproduced"),
        (np.r_[np.linspace(0.1, 0.2, 6), 0.2 + 0.8 * np.linspace(0, 1, 15) ** 2], "partly"),  # bends upwards
        (np.r_[np.linspace(0.1, 0.2, 6), np.full(6, 0.4), np.full(9, 1.0)], "not reproduced"),  # a step is no line
    ],
)
def test_growth_that_bends_is_linear_in_part_only(fast, word):
    accuracy = (np.arange(21) >= 5).astype(float)
    record = curves(accuracy, accuracy, ipr=fast)
    assert BY_ID["fig6-linear"].judge({"adamw_curves": record}).outcome == word


def test_ways_of_training_are_compared_with_the_same_without():
    def judge(**times):
        steps = np.arange(0, 1001, 10)
        rows = [(steps >= when).astype(float) for when in times.values()]
        record = curves(rows, rows, steps=steps).assign_coords(label=("run", list(times)))
        return BY_ID["optim-sooner"].judge({"regularisers": record}).outcome

    plain = {"GD": 800, "GD + momentum": 200}
    assert judge(**plain, **{"GD + decay": 400, "AdamW": 50, "GD + momentum + batch norm": 100}) == "reproduced"
    assert judge(**plain, **{"GD + decay": 800, "AdamW": 50}) == "partly"
    assert judge(**plain, **{"GD + decay": 790, "GD + momentum + batch norm": 300}) == "not reproduced"
    assert judge(**plain) == "not tested"
