"""The line of progress: what it counts and weighs, and where it is shown."""

import dataclasses
import json
import os
import time

import pytest

from grokbook.train import progress
from grokbook.train.experiment import Stop, Watch
from tests.test_runner import tiny


def beating(folder, shards, **ends):
    whole = dataclasses.replace(tiny("test/line", steps=100), **ends)
    blocks = [whole.select([i]) for i in range(3)]
    for shard, beat in zip(blocks, shards, strict=True):
        if beat == "done":
            progress.part_of(shard, folder).write_text("")
        elif beat:
            progress.part_of(shard, folder).with_suffix(".progress").write_text(json.dumps(beat))
    return whole, blocks, folder


def test_the_line_of_progress_counts_members_steps_and_what_is_left(tmp_path):
    beat = {"step": 40, "rate": 20.0, "members": 1, "train_accuracy": 1.0, "test_accuracy": 0.25}
    line = progress.line(*beating(tmp_path, ["done", beat, None]))
    # 60 steps of one member and 100 of another at 20 steps a second
    assert line == "test/line: 1 of 3 members done, 20 steps/s, 8 s left, accuracy 1.00 train, 0.25 test"
    for ends in ({"stop": Stop()}, {"watch": Watch((("test_accuracy", 0.9),))}):
        assert "at most 8 s left" in progress.line(*beating(tmp_path, ["done", beat, None], **ends))


def test_the_time_left_weighs_the_steps_of_smaller_members(tmp_path):
    wide, narrow = (tiny("test/line", steps=100, width=width).select([0]) for width in (40, 20))
    progress.part_of(wide, tmp_path).with_suffix(".progress").write_text('{"step": 40, "rate": 20, "members": 1}')
    whole = dataclasses.replace(wide, runs=wide.runs + narrow.runs)
    # 60 wide steps and 100 that cost half as much, at 20 wide steps a second
    half = narrow.runs[0].model.floats_per_sample / wide.runs[0].model.floats_per_sample
    seconds = (60 + 100 * half) / 20
    assert f", {seconds:.0f} s left" in progress.line(whole, [wide, narrow], tmp_path)


def test_a_step_costs_what_its_batch_does():
    whole = tiny()
    batched = dataclasses.replace(whole, runs=tuple(dataclasses.replace(run, batch_size=8) for run in whole.runs))
    assert whole.runs[0].samples == whole.runs[0].task.train_size == 24 and batched.runs[0].samples == 8
    assert progress.cost_of(whole) == 3 * progress.cost_of(batched)


def test_a_shard_nobody_is_at_any_more_has_no_rate(tmp_path):
    training = beating(tmp_path, [{"step": 40, "rate": 20.0, "members": 1}, None, None])
    old = next(tmp_path.glob("*.progress"))
    os.utime(old, (0, 0))
    assert progress.line(*training) == "test/line: 0 of 3 members done"


@pytest.mark.parametrize("where", ["log", "page"])
def test_where_there_is_no_terminal_a_line_a_minute_goes_to_the_log_and_none_to_a_page(
    where, tmp_path, monkeypatch, capsys, handed
):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    told = tmp_path / "progress.txt"
    if where == "page":
        handed(progress=str(told))
    with progress.shown(*beating(tmp_path, ["done", None, None])):
        time.sleep(0.3)
    shown = capsys.readouterr()
    assert not shown.out and "\r" not in shown.err
    assert ("1 of 3 members done" in shown.err) == (where == "log")
    assert told.exists() == (where == "page")
