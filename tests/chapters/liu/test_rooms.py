import dataclasses

import numpy as np
import pytest
import xarray as xr

from grokbook import measures
from grokbook.chapters.liu import CHAPTER, Settings, effective, networks, pictures, theory, training
from grokbook.tasks import AdditionTask
from grokbook.train import engine
from grokbook.train.experiment import Schedule, coordinates
from tests.chapters.liu.test_pictures import write_mnist

MADE = {name: [recipe(Settings()), *recipe.stand_ins(Settings())] for name, recipe in CHAPTER.experiments.items()}


def two_steps(whole):
    """The first member's, with the state before and after."""
    runs = tuple(dataclasses.replace(run, steps=2) for run in whole.select(next(whole.shards(1))).runs)
    return dataclasses.replace(whole, runs=runs, snapshots=(0, -1), schedule=Schedule(log=2))


SHORT = {short.hash: short for made in MADE.values() for short in map(two_steps, made)}


@pytest.fixture(scope="module", autouse=True)
def images(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "HOME", tmp_path_factory.mktemp("mnist"))
        write_mnist(pictures.HOME)
        yield


@pytest.mark.parametrize("chosen", SHORT.values(), ids=lambda one: one.hash[:8])
def test_every_experiment_steps_and_keeps_what_it_says(chosen):
    record = engine.train(chosen)
    assert np.isfinite(record.train_loss.isel(step=-1)).all()
    for kept in ["accuracy_rebuilt"] if chosen.summary else chosen.keep:
        assert np.isfinite(record[kept].isel(snapshot=-1)).all()
    for watched, _ in chosen.watch.thresholds if chosen.watch else ():
        assert f"reached_{watched}" in record


def test_solvable_seeds_leave_nothing_open_to_an_ideal_model():
    seeds = training.solvable_seeds(10, 45, 4)
    for seed in range(max(seeds) + 1):
        ideal = theory.ideal_accuracy(AdditionTask(10, 45).train_pairs(seed), 10, held_out=True)
        assert (ideal == 1) == (seed in seeds)
    with pytest.raises(ValueError, match="train_size = 4 of p = 10: 0 of 1000"):
        training.solvable_seeds(10, 4, 1)


def test_sizes_scale_with_the_table():
    assert training.sizes_of(10, (5, 45, 54)) == [5, 45, 54]
    assert training.sizes_of(4, (5, 45, 54)) == [1, 8, 9]


def test_training_sets_above_the_batch_are_those_seen_in_batches():
    for s in (Settings(), Settings(p=6, train_size=17)):
        for name in ("fractions", "structure_times"):
            whole, batched = (CHAPTER.experiments[one](s) for one in (name, f"{name}_batched"))
            batch = training.sizes_of(s.p, (45,))[0]
            sizes = {run.task.train_size for run in whole.runs if run.task.train_size > batch}
            assert {run.task.train_size for run in batched.runs} == sizes
            assert {run.batch_size for run in batched.runs} == {batch}


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("fractions", {"sizes": (60, 5)}, "sizes = .*from 1 to 54"),
        ("phases_rates", {"coarseness": 0}, "coarseness = 0: a whole number from 1 to 12"),
        ("critical_sizes", {"moduli": (2,)}, "moduli = .*from 4 to 50"),
        ("trajectory", {"train_size": 55}, "train_size = 55: it must be fewer than the 55 samples of p = 10"),
    ],
)
def test_values_that_name_no_experiment_are_refused(name, given, words):
    with pytest.raises(ValueError, match=words):
        CHAPTER.experiments[name](Settings(), **given)


def outcomes(accuracy, predicted):
    """Networks of eleven sizes as `networks.outcomes` tells of them."""
    fraction = np.repeat(np.array(networks.SIZES) / 55, 10)
    ideal = np.where(fraction > 0.41, 1.0, fraction)
    values = {"fraction": fraction, "accuracy": accuracy(fraction), "predicted": predicted(fraction)}
    values |= {"ideal_accuracy": ideal, "rqi": 0 * fraction, "ideal_rqi": ideal}
    return xr.Dataset({name: ("run", value) for name, value in values.items()})


def test_memorising_and_guessing_do_not_meet_the_criteria_of_fig_3():
    generator = np.random.default_rng(0)
    memory = outcomes(lambda r: r, lambda r: r)
    noise = outcomes(lambda r: r, lambda r: r + (1 - r) * generator.random(len(r)))
    better = outcomes(lambda r: np.clip(r + 0.15, 0, 1), lambda r: np.clip(r + 0.15, 0, 1))
    found = [CHAPTER.claims["fig3"].judge({"outcomes": one}).outcome for one in (memory, noise, better)]
    assert found == ["partly", "not reproduced", "reproduced"]


def test_networks_without_structure_do_not_meet_fig_10():
    ideal = outcomes(lambda r: np.where(r > 0.41, 1.0, r), lambda r: r)
    for index, more, outcome in ((0.02, 0, "partly"), (0.7, 0, "reproduced"), (0.7, 0.1, "partly")):
        found = ideal.assign(rqi_strict=index * ideal.ideal_rqi, predicted_strict=ideal.ideal_accuracy + more)
        assert CHAPTER.claims["fig10-real"].judge({"outcomes": found}).outcome == outcome


def test_only_embeddings_that_obey_their_training_set_meet_alexanders_principle():
    runs, generator = CHAPTER.experiments["fractions"](Settings(seeds=2)).runs, np.random.default_rng(0)
    record = xr.Dataset(coords={key: ("run", value) for key, value in coordinates(runs).items()})
    record = record.assign({f"{one}_accuracy": (("run", "step"), np.ones((len(runs), 1))) for one in ("train", "test")})
    random = generator.uniform(-0.5, 0.5, (len(runs), 10, 1))
    held = np.array([theory.which_held(pairs, 10) for pairs in training.train_sets(record)])
    line = np.broadcast_to(np.arange(10.0)[:, None], random.shape)
    (claim,) = (one for one in networks.section.claims if one.id == "alexander")
    ways = (random, "not reproduced"), (line, "not reproduced"), (theory.ground_state(held, 10, random), "reproduced")
    for W_E, outcome in ways:
        found = networks.allowed(record.assign(W_E=(("run", "snapshot", "symbol", "feature"), W_E[:, None])))
        assert claim.judge({"outcomes": found}).outcome == outcome
    assert 0.005 < networks.by_chance(found) < 0.04  # where a training set leaves embeddings free


def test_a_flow_from_random_starts_is_that_from_each():
    starts = np.random.default_rng(0).uniform(-0.5, 0.5, (10, 500))
    (pairs,) = theory.random_training_sets(10, 45, 1, generator=0)
    own = [effective.Start(measures.standardised(one[:, None]), pairs, 1e-3) for one in starts.T[:3]]
    fits = own[0].typical_fits([0, 3])
    np.testing.assert_allclose(fits[:3], [[one.fit(0), one.fit(3)] for one in own])


def test_times_that_do_not_depend_on_the_prediction_have_no_rank_correlation():
    generator, sizes = np.random.default_rng(0), np.repeat(effective.TIME_SIZES, 10)
    rate = np.exp(generator.normal(size=len(sizes)) + sizes / 20)

    def arrivals(steps):
        columns = {"label": np.full(len(sizes), effective.USUAL), "size": sizes, "fraction": sizes / 55}
        columns |= {"steps": steps, "predicted": 1000 / rate}
        return xr.Dataset({name: ("run", column) for name, column in columns.items()})

    following, apart = arrivals(300 / rate**0.5), arrivals(generator.permutation(300 / rate**0.5))
    assert effective.rank_correlation(following, effective.USUAL) == pytest.approx(1)
    assert effective.slope(following, effective.USUAL) == pytest.approx(0.5)
    assert abs(effective.rank_correlation(apart, effective.USUAL)) < 0.2
    by_size = arrivals(10_000 / sizes + generator.random(len(sizes)))  # nearly only the number of samples matters
    assert effective.rank_correlation(by_size, effective.USUAL) > 0.4
    assert abs(effective.rank_correlation_within(by_size, effective.USUAL)) < 0.2
