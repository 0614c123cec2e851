"""The page's times and comparisons on made-up networks, and that noise passes none of its criteria."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gu.theory import by_sum, shown_waves
from grokbook.chapters.waits import CHAPTER, dealt, decays, doses, norms, waits

HOME = CHAPTER.settings()


def world(fit, done, family="Gu's transformer", strict=1.05):
    """Networks with times (setting, seed)."""
    settings, seeds = np.shape(fit)
    columns = {
        "family": np.full(settings * seeds, family),
        "setting": np.repeat([f"{family} {i}" for i in range(settings)], seeds),
        "task": np.full(settings * seeds, "sums"),
        "seed": np.tile(np.arange(seeds), settings),
        "t_train": np.ravel(fit),
        "t_test": np.ravel(done),
        "strict": np.ravel(done) * strict,
        "fit_grid": np.ones(settings * seeds),
        "grid": np.ones(settings * seeds),
    }
    return xr.Dataset({name: ("network", values) for name, values in columns.items()})


def noise(seed, settings=12, seeds=4):
    """Three families in whose settings every time is drawn alike, whatever the setting and the other time."""
    draw = np.random.default_rng(seed)
    times = [10 ** draw.normal(centre, 0.1, (3, settings, seeds)) for centre in (2, 3.5)]
    families = list(waits.FAMILIES.values())[:3]
    return xr.concat([world(*some, one) for *some, one in zip(*times, families, strict=True)], "network")


def test_a_time_is_the_first_at_which_a_level_was_seen():
    run = lambda *values: ("run", np.array(values, float))  # noqa: E731
    curve = [[0.0, 0.5, np.nan, 0.91, 0.8]] * 3
    columns = {"test_accuracy": (("run", "step"), curve), "steps": run(40, 100, 100), "stopped_at": run(40, 40, 40)}
    record = xr.Dataset(columns | {"diverged_at": run(np.nan, np.nan, 40)}, {"step": [0, 10, 20, 30, 40]})
    record.attrs["recipe"] = "{}"
    np.testing.assert_array_equal(waits.crossings(record, "test_accuracy", 0.9), [[30] * 3, [20] * 3])
    never = waits.crossings(record, "test_accuracy", 0.95)[0]
    np.testing.assert_array_equal(never, [np.inf, np.nan, np.inf])  # to its end; left; diverged
    watched = record.assign(reached_test_accuracy=run(25, 35, np.nan))
    watched.attrs["recipe"] = '{"watch": {"every": 5, "thresholds": [["test_accuracy", 0.95]]}}'
    np.testing.assert_array_equal(waits.crossings(watched, "test_accuracy", 0.95)[0], [25, 35, np.inf])


def test_definitions_agree_as_much_as_they_do():
    fit, done = np.full((1, 60), 100.0), np.full((1, 60), 2000.0)
    done[0, :30] = 300
    study = waits.definitions(world(fit, done), HOME)
    assert study.agree.item() == 1 and study.share.values.tolist() == [[0.5, 0.5]]
    done[0, :30] = 700  # seven times, and 600 steps
    study = waits.definitions(world(fit, done), HOME)
    assert study.agree.item() == 0.5 and study.share.values.tolist() == [[0.5, 1]]


def test_seeds_are_compared_within_their_setting():
    fit = np.array([[10.0, 20, 40], [100, 100, 100]])
    study = waits.seeds(world(fit, np.array([[100.0, 200, 400], [1000, 3000, 2000]])))
    assert study.agree.values.tolist() == [3, 0] and study.pairs.values.tolist() == [3, 0]
    np.testing.assert_allclose(study.apart, [np.log(2), np.log(2)])
    np.testing.assert_allclose(study.scatter[0], np.log(2))
    np.testing.assert_allclose(study.fit_scatter[1], np.log(100 / 99) / np.sqrt(3))  # all within one look
    np.testing.assert_allclose(study.wait, np.log([10, 20]))
    np.testing.assert_allclose(study.times[0].values[:3], [0.5, 1, 2])
    with pytest.raises(ValueError, match="no setting"):
        waits.seeds(world(fit, np.full((2, 3), np.inf)))


def test_the_widest_scatter_is_that_of_the_worst_ends():
    draw = np.random.default_rng(0)
    for _ in range(20):
        high, looks = draw.normal(size=5), draw.uniform(0, 2, 5)
        ends = ([one, one - look] for one, look in zip(high, looks, strict=True))
        assert waits.widest(high, looks) == pytest.approx(max(np.std(one, ddof=1) for one in product(*ends)))


def test_what_a_seed_has_everywhere_drops_out_of_pairs():
    draw = np.random.default_rng(0)
    own, rest = draw.normal(size=(1, 20)), draw.normal(size=(300, 20))
    whole, left = waits.paired(waits.seeds(world(np.full((300, 20), 10.0), 1e6 * np.exp(0.3 * own + 0.1 * rest))))
    assert left == pytest.approx(0.1, rel=0.05) and whole == pytest.approx(
        np.hypot(0.3 * own.std(ddof=1), 0.1), rel=0.05
    )


def test_the_factor_that_can_be_told_falls_with_the_root_of_the_seeds():
    assert np.log(waits.factor(0.3, 1)) == pytest.approx(2 * np.log(waits.factor(0.3, 4)))
    study = waits.seeds(noise(0))
    assert waits.scatter(study) == pytest.approx(0.1 * np.log(10), rel=0.1)
    low, high = np.percentile(waits.again(study), [5, 95])
    assert low < waits.scatter(study) < high


def test_no_criterion_passes_on_noise():
    passed = dict.fromkeys(("fit-foretells", "lottery", "longer-wider"), 0)
    for seed in range(20):
        networks = noise(seed)
        there = {"networks": networks, "seeds": waits.seeds(networks)}
        for id in passed:
            passed[id] += CHAPTER.claims[id].judge(there).outcome in ("reproduced", "partly")
    assert not any(passed.values()), passed


def decayed(law, seed=0, scatter=0.2):
    """Networks of three families that AdamW trains at two learning rates and four decays, by a law of their waits."""
    draw, worlds = np.random.default_rng(seed), []
    for family, strongest in (("Power's decoder", 1.0), ("Gromov's perceptron", 5.0), ("Liu's MNIST", 0.1)):
        for rate, decay in product((1e-3, 3e-3), strongest * np.array([0.1, 0.3, 1])):
            wait = law(decay, rate) * np.exp(draw.normal(0, scatter, (1, 3)))
            one = world(np.full((1, 3), 100.0), 100 + wait, family)
            recipe = {"optimizer": {"type": "AdamW", "lr": rate, "weight_decay": decay, "groups": []}, "of": family}
            worlds.append(one.assign(setting=("network", np.full(3, json.dumps(recipe)))))
    return decays.decays(xr.concat(worlds[:-1], "network"), worlds[-1])


def test_a_power_of_the_decay_is_found_line_by_line():
    found = decays.powers(decayed(lambda decay, rate: 30 / rate * decay**-0.7, scatter=0))
    np.testing.assert_allclose(found.power, -0.7)
    np.testing.assert_allclose(found.off, 0, atol=1e-6)
    assert found.networks.values.tolist() == [18] * 3 and found.lines.values.tolist() == [2] * 3
    assert (found.late > found.power).all()  # what is learnt by heart first takes no less time
    draw = np.random.default_rng(0)
    x, line = np.tile([0.1, 0.3, 1, 3], 5), np.repeat(range(5), 4)
    tries = [decays.power(x, x**-0.5 * np.exp(line + draw.normal(0, 0.3, 20)), line) for _ in range(400)]
    within = np.mean([abs(found + 0.5) <= off for found, off in tries])
    assert within == pytest.approx(0.95, abs=0.03)


def test_waits_that_do_not_go_as_one_over_the_decay_do_not_pass():
    laws = {
        "inverse": lambda decay, rate: 1 / (rate * decay),
        "none": lambda decay, rate: 5000,
        "root": lambda decay, rate: 1 / (rate * decay) ** 0.5,
        "square": lambda decay, rate: 1 / (rate * decay) ** 2,
        "exponential": lambda decay, rate: 5000 * np.exp(-decay),
    }
    outcomes = {name: set() for name in laws}
    for (name, law), seed in product(laws.items(), range(10)):
        found = decays.powers(decayed(law, seed))
        outcomes[name].add(CHAPTER.claims["inverse-decay"].judge({"powers": found}).outcome)
    assert outcomes.pop("inverse") == {"reproduced"}
    assert all(one == {"not reproduced"} for one in outcomes.values()), outcomes


def falling(why, seed=0, floor=5.0, scatter=0.01):
    """Networks of two families, six settings of three seeds on two training sets, whose norm falls at rates of its own.

    Why "clock": they understand at a norm; "luck": at random times; "rule": so, and the norm falls as they do.
    """
    draw, rows, steps = np.random.default_rng(seed), [], norms.STEPS
    for family, line, part, number in product(("Gu's transformer", "Liu's MNIST"), range(3), range(2), range(3)):
        late, rate = (np.exp(draw.normal(sign * (8 - 0.5 * part), 0.3)) for sign in (1, -1))
        norm = floor + 30 * (1 / (1 + (steps / late) ** 4) if why == "rule" else np.exp(-rate * steps))
        if why == "clock":
            late = np.interp(-20 * np.exp(draw.normal(0, scatter)), -norm, steps)
        recipe = {"of": f"{family} {line}", "optimizer": {"type": "AdamW", "lr": 1, "weight_decay": 1, "groups": []}}
        setting = json.dumps(recipe | {"part": part})
        rows.append((family, setting, json.dumps(recipe), number, 1.0, 100.0, late, 10.0, norm))
    *columns, curves = zip(*rows, strict=True)
    names = ("family", "setting", "line", "seed", "decay", "t_train", "t_test", "grid")
    data = {name: ("network", np.array(one)) for name, one in zip(names, columns, strict=True)}
    return xr.Dataset(data | {"norm": (("network", "step"), np.array(curves))}, {"step": steps})


def norm_verdict(*made, **how):
    verdict = CHAPTER.claims["norm-clock"].judge({"at_norm": norms.at_norm(falling(*made, **how))})
    return [one.holds for one in verdict.findings], verdict.outcome


def test_networks_that_understand_at_a_norm_are_told_from_those_whose_norm_just_falls():
    for seed in range(20):
        assert norm_verdict("clock", seed) == ([True] * 3, "reproduced")
        assert norm_verdict("luck", seed) == ([False] * 3, "not reproduced")
        # A norm that hardly changes is alike at any time.
        assert norm_verdict("luck", seed, floor=3000) == ([True, False, True], "not reproduced")
        # One that falls because of the rule cannot be told from a clock, so that the second part alone shows nothing.
        assert norm_verdict("rule", seed) == ([True] * 3, "reproduced")


def test_a_norm_is_read_at_its_own_time_and_at_another():
    made = falling("clock", scatter=0).isel(network=slice(0, 3))
    np.testing.assert_allclose(norms.then(made), np.log(20), atol=0.01)
    table = norms.read(made, made.t_test.values)
    pairs = [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)]
    others = np.mean([np.var([table[i, order[i]] for i in range(3)], ddof=1) for order in pairs])
    assert norms.swapped(made) == pytest.approx(others)
    ended = made.assign(norm=made.norm.where(made.step <= 1.02 * made.t_test))  # none was trained until the last
    assert np.isfinite(norms.at_norm(made).swapped).all() and np.isnan(norms.at_norm(ended).swapped).all()


def test_the_deal_and_the_weights_share_the_variance():
    rows = np.arange(5.0)[:, None] + np.zeros(5)
    assert dealt.shares(rows) == (1, 0) and dealt.shares(rows.T) == (0, 1)
    np.testing.assert_allclose(dealt.shares(rows + rows.T), 0.5)
    draw = np.random.default_rng(0)
    luck = [dealt.shares(draw.normal(size=(5, 5)))[0] for _ in range(500)]
    assert np.mean(luck) == pytest.approx(1 / 6, abs=0.02) and np.mean(np.array(luck) >= 0.5) < 0.02
    mixed = [draw.normal(0, 1, (5, 1)) + draw.normal(0, 1, (1, 5)) + draw.normal(0, 2, (5, 5)) for _ in range(2000)]
    pooled = np.mean([[m.mean(1).var(), m.mean(0).var(), m.var()] for m in mixed], axis=0)
    np.testing.assert_allclose(dealt.components(*pooled[:2] / pooled[2], 5), [1 / 6, 1 / 6, 2 / 3], atol=0.02)


def test_the_most_that_a_set_may_make_is_not_less_than_it_does_make_in_all_but_one_of_forty_tables():
    draw, half = np.random.default_rng(0), np.sqrt(0.5)
    tables = half * draw.normal(size=(2000, 5, 1)) + half * draw.normal(size=(2000, 5, 5))
    found = np.array([dealt.shares(one) for one in tables])
    most = np.array([dealt.ceiling(*one, 5) for one in found])
    assert np.mean(most >= 0.5) == pytest.approx(0.975, abs=0.01)
    assert np.mean(found[:, 0] >= 0.5) == pytest.approx(0.5, abs=0.05)  # as a note of the claim says
    assert dealt.ceiling(1.0, 0.0, 5) == 1 and dealt.ceiling(0.0, 0.5, 5) == 0 and np.isnan(dealt.ceiling(0.0, 1.0, 5))


def test_weights_that_decay_alone_wears_down_wait_as_long_as_that_takes():
    steps, setting = np.geomspace(1, 1e5, 500), json.dumps({"optimizer": {"lr": 1e-3}})
    decay, slower = np.array([0.1, 0.3, 0.0]), np.array([1, 0.5, 1])
    columns = {"family": ["one"] * 3, "setting": [setting] * 3, "decay": decay, "t_train": [100.0] * 3}
    columns["t_test"] = np.full(3, 5_000.0)
    data = {name: ("network", one) for name, one in columns.items()}
    norm = np.exp(-1e-3 * (slower * decay)[:, None] * steps)
    made = xr.Dataset(data | {"norm": (("network", "step"), norm)}, {"step": steps})
    np.testing.assert_allclose(norms.worn(made, "one"), [1, 2], rtol=1e-3)


def test_a_dealt_task_has_one_training_set_for_all_seeds():
    runs = CHAPTER.experiments["transformer_dealt"](CHAPTER.settings(seeds=2)).runs
    sets = [run.task.in_train(run.seed) for run in runs]
    assert [run.seed for run in runs] == [0, 1, 0, 1]
    assert (sets[0] == sets[1]).all() and (sets[2] == sets[3]).all() and (sets[0] != sets[2]).any()
    assert (sets[2] == runs[0].task.task.in_train(1)).all()


def test_nudges_scatter_as_much_as_they_do():
    def record(values):
        runs = {"label": [f"{i}" for i in range(5) for _ in range(5)], "seed": [*range(5)] * 5}
        columns = {name: ("run", one) for name, one in runs.items()}
        seen = np.where(np.arange(1, 501) >= np.ravel(values)[:, None], 1.0, 0.0)
        return xr.Dataset(columns | {"test_accuracy": (("run", "step"), seen)}, {"step": np.arange(1, 501)})

    pairs = np.exp(np.random.default_rng(0).normal(4, 0.3, (5, 5)))
    assert dealt.chaos(record(np.full((5, 5), 100.0) * np.arange(1, 6) / 2), record(pairs)) == pytest.approx(
        0, abs=1e-6
    )  # seeds alone differ
    assert dealt.chaos(record(pairs), record(pairs)) == pytest.approx(1, abs=0.25)


def dealt_waves(draw, of_set, of_weights, waves=29):
    """A record of five training sets by five first weights, whose log powers are sums of parts of both and of luck."""
    parts = draw.normal(size=(2, 5, 1, waves))
    power = of_set * parts[0] + of_weights * parts[1].swapaxes(0, 1) + draw.normal(size=(5, 5, waves))
    waves = np.exp([np.broadcast_to(parts[1].swapaxes(0, 1), power.shape), power])  # before training, and at the end
    kept = {"waves": waves / waves.sum(-1, keepdims=True), "shown": np.exp(np.broadcast_to(parts[0], waves.shape))}
    runs = {"label": ("run", np.repeat(range(5), 5)), "seed": ("run", np.tile(range(5), 5))}
    by_run = {name: one.reshape(2, 25, -1).swapaxes(0, 1) for name, one in kept.items()}
    return xr.Dataset({name: (("run", "snapshot", "wave"), one) for name, one in by_run.items()} | runs)


def test_what_decides_of_waves_is_found_and_noise_decides_nothing():
    def judged(of_set, of_weights):
        record = dealt_waves(draw, of_set, of_weights)
        return dealt.shares(np.log(dealt.by_deal(record, "waves", 1))), np.divide(*dealt.favoured(record, 1).T)

    draw = np.random.default_rng(0)
    (by_set, by_weights), (shown, start, both) = judged(2, 0)
    assert by_set > 0.7 and by_weights < 0.1 and shown > both > 1.5 > start
    (by_set, by_weights), (shown, start, both) = judged(0, 2)
    assert by_set < 0.1 and by_weights > 0.7 and start > both > 1.5 > shown
    luck = [judged(0, 0) for _ in range(200)]
    assert np.mean([part[0] - part[1] >= 0.1 for part, _ in luck]) < 0.02
    assert np.mean([times >= 1.5 for _, times in luck]) < 0.02


def test_a_blurred_set_keeps_a_share_of_its_stretches_and_shows_every_sum_as_often():
    whole = doses.CircledTask(59, "n + m", 0.4, 8).in_train(3).reshape(59, 59)
    shown = []
    for kept in (0, 0.5, 0.8, 1):
        task = doses.BlurredTask(59, "n + m", 0.4, 8, kept)
        mask = task.in_train(3).reshape(59, 59)
        np.testing.assert_array_equal(by_sum(mask).sum(1), by_sum(whole).sum(1))
        assert kept <= (mask & whole).sum() / whole.sum() < kept + 0.45 * (1 - kept) + 0.01
        assert (mask == task.in_train(3).reshape(59, 59)).all() and mask.sum() == task.train_size
        power = shown_waves(mask)
        shown.append(np.sort(power)[-8:].sum() / power.sum())
    assert (mask == whole).all() and shown == sorted(shown) and shown[0] < 0.36 and shown[-1] > 0.55
    with pytest.raises(ValueError, match=r"kept must be from 0 to 1, got kept=1\.5"):
        doses.BlurredTask(59, "n + m", 0.4, 8, 1.5)


def test_full_circles_show_as_many_waves_as_there_are_circles_and_more_if_sums_differ_by_a_pair():
    assert doses.on_purpose(59, 0.4069, 1, 0).sum() == 1 and doses.on_purpose(59, 0.4069, 8, 0).sum() == 8  # all 24
    waves = doses.on_purpose(59, 0.4, 8, 0)  # 23 or 24
    shown = shown_waves(doses.CircledTask(59, "n + m", 0.4, 8).in_train(0).reshape(59, 59))
    assert 8 < waves.sum() <= 16 and shown[waves].sum() / shown.sum() > 0.8


def test_networks_that_do_not_heed_their_sets_meet_no_claim_on_doses():
    draw, kept = np.random.default_rng(0), np.repeat([0, 0.5, 0.6, 0.7, 0.8, 0.9, 1], 5)
    for _ in range(20):
        waves, shown = (draw.dirichlet(np.full(29, size), 35) for size in (1, 60))
        shown[:, :8] *= 1 + 2 * kept[:, None] ** 2
        times = np.exp(draw.normal(7.5, 0.3, 35))
        seen = np.where(np.arange(0, 8000, 10) >= times[:, None], 1.0, 0.0)
        columns = {"kept": ("run", kept), "circles": ("run", np.full(35, 8)), "label": ("run", ["a"] * 35)}
        columns |= {"p": ("run", np.full(35, 59)), "train_fraction": ("run", np.full(35, 0.4))}
        columns["seed"] = "run", np.tile(range(5), 7)
        kept_back = {"waves": waves, "shown": shown / shown.sum(-1, keepdims=True)}
        data = {name: (("run", "snapshot", "wave"), one[:, None]) for name, one in kept_back.items()}
        record = xr.Dataset(
            data | {"test_accuracy": (("run", "step"), seen)} | columns, {"step": np.arange(0, 8000, 10)}
        )
        for id in ("doses-taken", "doses-sooner", "doses-half"):
            assert (
                CHAPTER.claims[id].judge({"doses": record, "transformer_dealt": record}).outcome == "not reproduced"
            ), id
