"""What the page across the papers asks of measures: against curves whose answers are known, and against noise."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.across import CHAPTER, answers, watched, zoo
from grokbook.tasks import ModularTask

STEPS = np.arange(0, 1000, 10)
RUNS = 24


def made(measure, *, seed=0):
    """A family of which every other run generalises at step 600 to 800; all learn their training set at 100."""
    draw = np.random.default_rng(seed)
    done = np.where(np.arange(RUNS) % 2, np.inf, 10 * draw.integers(60, 80, RUNS))[:, None]
    curves = {
        "train_accuracy": np.broadcast_to(STEPS >= 100, (RUNS, len(STEPS))).astype(float),
        "test_accuracy": (done <= STEPS).astype(float),
        "train_loss": np.random.default_rng(100 + seed).uniform(0.01, 0.02, (RUNS, len(STEPS))),
        "test_loss": np.where(done <= STEPS, 0.01, 5.0),
    }
    others = {one.log: draw.normal(0.5, 0.01, (RUNS, len(STEPS))) for one in watched.WATCHED.values()}
    others[watched.WATCHED["IPR"].log] = measure(done, draw)
    labels = np.where(np.isfinite(done[:, 0]), "addition", "random table")
    data = {name: (("run", "step"), values) for name, values in (curves | others).items()}
    return xr.Dataset(data, {"step": STEPS.astype(float), "label": ("run", labels)})


def test_a_measure_that_moves_first_and_only_where_it_should_leads_and_is_quiet():
    found = answers.answers(made(lambda done, draw: (done - 150 <= STEPS).astype(float)))
    assert found.attrs == {"groks": 12, "never": 12, "waiting": 12}
    assert 0.15 < answers.of(found, "lead", "IPR") < 0.3
    assert 0.7 < answers.of(found, "half", "IPR") < 0.85 and answers.of(found, "half", "test loss") == 1
    assert answers.of(found, "wolf", "IPR") == answers.of(found, "wolf_random", "IPR") == 0
    assert answers.of(found, "knows", "IPR") == 1
    assert answers.of(found, "lead", "test loss") == 0


def test_a_measure_that_has_moved_before_the_training_set_is_learnt_is_first():
    found = answers.answers(made(lambda done, draw: (np.isfinite(done) & (STEPS >= 50)).astype(float)))
    assert answers.of(found, "lead", "IPR") > 0.8 and answers.of(found, "wolf", "IPR") == 0
    assert answers.of(found, "lead_after", "IPR") == -1  # the way from t_train on misses it


def test_a_measure_follows_the_test_loss_from_where_the_training_set_is_learnt_or_runs_against_it():
    fall = made(lambda done, draw: np.exp(-3.0 * (done <= STEPS)))
    fall["test_loss"][1::2] = draws = np.random.default_rng(3).uniform(4, 5, (RUNS // 2, len(STEPS)))
    name = answers.WATCHED["IPR"].log  # the one that is made; a share, which is not taken by its logarithm
    fall[name][1::2] = draws
    found, noise = answers.answers(fall), answers.answers(made(lambda done, draw: draw.random((RUNS, len(STEPS)))))
    assert answers.of(found, "follows", "IPR") == pytest.approx(1) == answers.of(found, "follows_never", "IPR")
    fall[name][::4] *= -1  # half of those that generalise run against it, each as closely
    against = answers.answers(fall)
    assert answers.of(against, "close", "IPR") == pytest.approx(1) and abs(answers.of(against, "follows", "IPR")) < 0.1
    assert abs(answers.of(noise, "follows", "IPR")) < 0.3
    still = answers.answers(made(lambda done, draw: np.ones((RUNS, len(STEPS)))))
    assert np.isnan(answers.of(still, "follows", "IPR"))  # and meets no bound


def test_a_measure_that_turns_back_is_told():
    peak = answers.answers(made(lambda done, draw: np.exp(3.0 * (STEPS >= 50) - 1.0 * (STEPS >= 500) * (done > 0))))
    rise = answers.answers(made(lambda done, draw: np.broadcast_to(np.exp(3.0 * (STEPS >= 50)), (RUNS, len(STEPS)))))
    assert answers.of(peak, "back", "IPR") > 1 and answers.of(rise, "back", "IPR") == 0


def test_a_measure_that_follows_the_clock_leads_and_cries_wolf():
    found = answers.answers(made(lambda done, draw: np.broadcast_to(STEPS / 1000, (RUNS, len(STEPS)))))
    assert answers.of(found, "lead", "IPR") > 0.1
    assert answers.of(found, "wolf", "IPR") == 1


def test_a_measure_that_knows_the_time_to_come_foretells_it():
    found = answers.answers(made(lambda done, draw: np.broadcast_to(1 / np.minimum(done, 1e4), (RUNS, len(STEPS)))))
    assert answers.of(found, "later", "IPR") == pytest.approx(-1)
    assert float(found.later.sel(measure="IPR", value="high")) < -0.9
    assert answers.of(found, "rank", "IPR") == pytest.approx(-1) and answers.of(found, "which", "IPR") == 1


def test_a_measure_that_knows_only_which_networks_will_generalise_does_not_rank_those_that_will():
    found = answers.answers(made(lambda done, draw: np.isfinite(done) & (STEPS >= 50)))
    assert abs(answers.of(found, "later", "IPR")) > 0.8 and answers.of(found, "which", "IPR") == 1
    assert np.isnan(answers.of(found, "rank", "IPR"))


@cache
def of_noise(seed):
    """What a family answers whose every measure is noise."""
    return answers.answers(made(lambda done, draw: draw.normal(0.5, 0.01, (RUNS, len(STEPS))), seed=seed))


@pytest.mark.parametrize("seed", range(3))
def test_noise_reproduces_no_claim_of_a_paper_and_no_measure_of_it_is_reliable(seed):
    studies = [of_noise(seed + k) for k in range(5)]
    records = dict(zip(answers.ALL, studies, strict=True))
    for id in ("own-rqi", "own-ipr", "own-med", "ahead", "foretells", "norm-knows", "sharp", "med-beyond"):
        assert CHAPTER.claims[id].judge(records).outcome != "reproduced", id
    assert answers.reliable(*studies) == 0


def waiting(measure, *, alike=False, seed=0):
    """Six settings of four networks that generalise later and later, or never; the IPR is a function of the times."""
    draw = np.random.default_rng(seed)
    setting = np.repeat(np.arange(6), 4)
    record = made(lambda done, draw: draw.normal(0.5, 0.01, (RUNS, len(STEPS))), seed=seed)
    done = np.where(setting < 4, 300 + 100 * setting + 10 * np.tile(np.arange(4), 6), np.inf)
    level = draw.normal(size=6)[setting] if alike else draw.normal(size=RUNS)
    record["test_accuracy"] = ("run", "step"), (done[:, None] <= STEPS).astype(float)
    values = np.exp(measure(np.minimum(done, 2000), level))[:, None]
    record[watched.WATCHED["IPR"].log] = ("run", "step"), np.broadcast_to(values, (RUNS, len(STEPS)))
    return record.assign_coords(label=("run", setting.astype(str)))


def test_shuffled_times_seldom_give_the_gain_of_a_measure_that_knows_them():
    found = answers.answers(waiting(lambda done, level: -done / 1000))
    known = {name: np.abs(answers.of(found, "later", name)) for name in answers.CURVES}
    assert answers._gain(known) == pytest.approx(float(found.chance[0]))
    assert answers.luck(found) < 0.02
    two = waiting(lambda done, level: level)
    two = two.isel(run=np.isin(two.label.values, ["0", "1"]))  # with so few settings not even the times are enough
    perfect = [answers.chance(one, perfect=True) for one in (two, waiting(lambda done, level: level))]
    assert [(one >= one[0] - 1e-9).mean() > 0.05 for one in perfect] == [True, False]
    assert answers.luck(found, 0.0) > answers.luck(found, 0.2) > answers.luck(found, 0.6)


def test_a_loss_that_ranks_settings_and_not_their_seeds_does_no_better_than_luck_within_them():
    for measure, low, high in ((lambda done: done, 0, 0.01), (lambda done: done // 100, 0.9, 1)):
        record = waiting(lambda done, level: level)
        done = np.minimum(answers.Times(record).done, 2000)
        record["test_loss"] = ("run", "step"), np.broadcast_to(measure(done)[:, None], (RUNS, len(STEPS)))
        assert low <= answers.within_settings(record) <= high


@pytest.mark.parametrize("alike", [False, True])
def test_the_gain_of_noise_is_as_likely_large_as_small_whether_or_not_seeds_share_it(alike):
    records = [waiting(lambda done, level: level, alike=alike, seed=seed) for seed in range(12)]
    chances = np.array([answers.luck(xr.Dataset({"chance": ("draw", answers.chance(one))})) for one in records])
    assert 0.25 < np.mean(chances) < 0.75 and np.mean(chances <= 0.05) < 0.3


def test_a_random_table_has_the_answers_of_its_task_in_another_order():
    task = ModularTask(11, "n + m", 0.5)
    dealt = zoo.Shuffled(task)
    assert sorted(dealt.table()[1]) == sorted(task.table()[1])
    assert (dealt.table()[1] == task.table()[1]).mean() < 0.2
    assert (dealt.in_train(3) == task.in_train(3)).all()


def test_a_ring_closes_its_parallelograms_as_axes_and_a_line_as_vectors():
    angle = 2 * np.pi * np.arange(31) / 31
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)[None, None]
    line = np.arange(31.0)[None, None, :, None]
    family = SimpleNamespace(symbols=lambda now: now, cyclic=True)
    assert watched.rqi_axis(family, ring) == pytest.approx(1)
    assert watched.rqi(SimpleNamespace(symbols=lambda now: now, cyclic=False), line) == pytest.approx(1)
    noise = np.random.default_rng(0).normal(size=(1, 1, 31, 2))
    assert watched.rqi_axis(family, noise) < 0.2


def test_luck_in_three_families_of_five_and_a_clock():
    study = SimpleNamespace(
        chance=xr.DataArray([1.0, 0.0, 0.5]), groks=9, never=9
    )  # luck gains enough in every other draw
    assert answers.by_luck(*[study] * 5) == pytest.approx(0.5)
    step = np.arange(4.0)  # nine networks that learn their set at 0 and 1, and end at 3 whether they generalise or not
    before = np.concatenate([np.zeros(9), np.ones(9), np.full(9, step[-1])])
    assert answers.clock(study) == pytest.approx(answers.separation(before, np.full(9, step[-1])))
    assert 0.55 < answers.coin(study) < 0.65  # the better of two directions


def test_one_ring_closes_its_parallelograms_and_two_together_do_not():
    assert watched.score_of_rings(1) == 1
    assert watched.score_of_rings(2) < 0.1
    assert watched.score_of_rings(1, axis=False) < 0.1  # as vectors equal sums differ in length
