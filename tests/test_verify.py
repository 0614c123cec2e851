import dataclasses

import pytest

from grokbook.__main__ import main
from grokbook.models.mlp import TwoLayerMLP
from grokbook.train import records, runner
from grokbook.train.experiment import Watch
from grokbook.train.verify import verify
from tests.test_runner import own_cache, tiny  # noqa: F401 (a fixture that every test here uses)


def alter(change, experiment=None):
    """Put a changed record where the true one was."""
    path = records.cached_path(experiment or tiny())
    records.save(change(records.load(path)), path)


def made_elsewhere(record):
    return record.assign_attrs(machine="another machine")


def test_a_retrained_record_is_identical_to_the_last_bit():
    runner.train(tiny(), workers=1)
    found = verify(tiny(), workers=1)
    assert found.passed and [one.identical for one in found.comparisons] == [True] * 3
    assert found.verdict == "verified: 3 of 3 runs trained again give every stored number, to the last bit"


def test_one_altered_number_is_found_where_the_same_bits_are_promised():
    runner.train(tiny(), workers=1, block=1)

    def by_half(record):
        record.test_loss[1, 2] += 0.5
        return record

    alter(by_half)
    found = verify(tiny(), sample=3, workers=1)
    assert [one.identical for one in found.comparisons] == [True, False, True] and not found.passed
    assert found.comparisons[1].where == "test_loss"
    assert found.comparisons[1].difference == pytest.approx(0.5, rel=1e-5)
    assert "NOT verified: 1 of 3 runs differ" in found.verdict


def test_a_sample_trains_whole_stacks_again_as_they_were():
    runner.train(tiny(seeds=6), workers=1, block=2)
    found = verify(tiny(seeds=6), sample=1, workers=1)
    assert [one.run for one in found.comparisons] == [0, 1] and found.passed


def test_networks_of_two_sizes_are_compared_without_what_fills_the_record():
    widths = (dataclasses.replace(run, model=TwoLayerMLP(run.model.p, w)) for run in tiny().runs[:1] for w in (8, 12))
    mixed = dataclasses.replace(tiny(), runs=tuple(widths), keep=("W_in",), snapshots=(-1,))
    runner.train(mixed, workers=1)
    assert verify(mixed, sample=1, workers=1).passed


def test_elsewhere_small_differences_pass_and_the_verdict_says_what_was_demanded():
    runner.train(tiny(), workers=1)

    def rounded(record):
        record["train_loss"] = record.train_loss * (1 + 1e-6)
        return made_elsewhere(record)

    alter(rounded)
    found = verify(tiny(), workers=1)
    assert found.passed and not any(one.identical for one in found.comparisons)
    assert "another machine there" in found.verdict and "within 0.0001, and, of all runs but 1," in found.verdict


@pytest.mark.parametrize(
    "name, position, value, told",
    [
        ("train_loss", 0, 9.0, "train loss at step 0"),
        ("test_accuracy", -1, 0.9, "last test accuracy"),
        ("train_accuracy", 1, 1.0, "99 % of the train set at step nan, stored seeds 1"),
    ],
)
def test_elsewhere_what_is_beyond_the_seeds_range_fails_and_is_named(name, position, value, told):
    runner.train(tiny(), workers=1)

    def other(record):
        record[name][:, position] = value
        return made_elsewhere(record)

    alter(other)
    found = verify(tiny(), workers=1)
    assert not found.passed and all(told in one.why for one in found.comparisons)


def test_elsewhere_as_many_runs_may_be_too_far_as_other_seeds_would_be():
    runner.train(tiny(), workers=1)
    alter(made_elsewhere)
    found = verify(tiny(), workers=1)
    late, started = (dataclasses.replace(found.comparisons[0], why="late", same_start=start) for start in (True, False))
    others = found.comparisons[1:]
    assert found.passed and found.spared == 1  # three seeds, each the first or the last of four in half of the cases
    assert dataclasses.replace(found, comparisons=[late, *others]).passed
    for worse in ([late, late, others[0]], [started, *others]):
        assert not dataclasses.replace(found, comparisons=worse).passed


def test_without_a_record_it_says_how_to_make_one():
    with pytest.raises(FileNotFoundError, match="grokbook train test/tiny"):
        verify(tiny())


def test_the_command_prints_a_verdict_and_fails_with_it(offered, capsys):
    offered({"test/tiny": tiny})
    runner.train(tiny(), workers=1)
    assert main(["verify", "test/tiny", "--sample", "1", "--workers", "1"]) == 0
    assert "test/tiny verified: 3 of 3 runs" in capsys.readouterr().out
    alter(lambda record: record.assign(train_loss=record.train_loss + 1))
    with pytest.raises(SystemExit):
        main(["verify", "test/tiny", "--workers", "1"])
    assert "test/tiny NOT verified" in capsys.readouterr().out


def test_the_command_tells_of_what_stands_in_and_verifies_it(monkeypatch, offered, capsys):
    smaller = dataclasses.replace(tiny(), scale="reduced")
    offered({"test/tiny": lambda: tiny(width=11)})
    monkeypatch.setattr("grokbook.__main__.stand_in", lambda entry: smaller)
    assert main(["status"]) == 0 and "missing  full" in capsys.readouterr().out
    runner.train(smaller, workers=1)
    assert main(["status"]) == 0 and "present  reduced" in capsys.readouterr().out
    assert main(["verify", "test/tiny", "--workers", "1"]) == 2 and "--reduced verifies" in capsys.readouterr().err
    assert main(["verify", "test/tiny", "--reduced", "--workers", "1"]) == 0
    assert "test/tiny verified" in capsys.readouterr().out


def test_an_altered_time_or_snapshot_is_found_too():
    watched = dataclasses.replace(
        tiny(), watch=Watch((("train_accuracy", 0.05),), every=2), keep=("W_in",), snapshots=(-1,)
    )
    runner.train(watched, workers=1)
    assert verify(watched, workers=1).passed

    def later(record):
        record.reached_train_accuracy[1] = 5
        return record

    def heavier(record):
        record.W_in[2] += 1
        return record

    for change, where, row in ((later, "reached_train_accuracy", 1), (heavier, "W_in", 2)):
        runner.train(watched, workers=1)
        alter(change, watched)
        found = verify(watched, workers=1)
        assert not found.passed and found.comparisons[row].where == where
