import dataclasses
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD, AdamW, Group
from grokbook.tasks import ModularTask
from grokbook.train import engine, experiment, records
from grokbook.train.experiment import Experiment, Run, Schedule

RUNS = tuple(Run(ModularTask(7, "n + m", 0.5), TwoLayerMLP(7, 8), SGD(0.1), 6, seed, label="GD") for seed in range(3))
TINY = Experiment("test/tiny", RUNS, Schedule(log=3), ("weight_norm",), snapshots=(0, -1), keep=("W_in",))


@pytest.fixture(scope="module")
def record():
    return engine.train(TINY)


@pytest.fixture
def saved(record, tmp_path):
    records.save(record, tmp_path / "tiny.nc")
    return tmp_path / "tiny.nc"


def test_a_record_explains_itself(record):
    assert record.train_loss.dims == ("run", "step") and record.W_in.dims == ("run", "snapshot", "hidden", "input")
    assert record.seed.values.tolist() == [0, 1, 2] and set(record.optimizer.values) == {"SGD"}
    assert (record.train_fraction == 0.5).all() and (record.width == 8).all()
    told = {name: record[name].attrs for name in ("train_accuracy", "test_accuracy", "stopped_at")}
    assert len({one["long_name"] for one in told.values()}) == 3
    assert [one.get("units") for one in told.values()] == [None, None, "optimizer steps"]
    made = xr.Dataset(
        dict.fromkeys(("weight_norm_W_in", "reached_ipr", "embedding_ipr", "excess_loss"), ("run", [1.0]))
    )
    told = {name: one.attrs for name, one in records.named(made).data_vars.items()}
    assert told["weight_norm_W_in"] == {"long_name": "norm of W_in"}
    assert "of ipr reached" in told["reached_ipr"]["long_name"] and told["reached_ipr"]["units"] == "optimizer steps"
    assert told["embedding_ipr"] == told["excess_loss"] == {}  # a measure's own, of which nothing is known here
    for key in ("hash", "recipe", "torch", "products", "numpy", "machine", "wall_seconds", "started_at", "commit"):
        assert key in record.attrs


def test_a_saved_record_reads_back_as_it_was(record, saved):
    read = records.load(saved)
    for name in record.data_vars:
        tolerance = 2.0 ** -(records.SNAPSHOT_BITS + 1) if name == "W_in" else 1e-7
        np.testing.assert_allclose(read[name], record[name], rtol=tolerance)
    assert read.attrs["hash"] == TINY.hash and read.label.values.tolist() == ["GD"] * 3


def test_a_record_is_read_as_xarray_reads_it(record, tmp_path):
    path = tmp_path / "record.nc"
    clash = {"words": ("side", ["a", "bc"]), "side": ("run", [True, False, True])}  # as Liu's coordinate "dimension"
    records.save(record.assign(clash).set_coords("side"), path)
    read = records.load(path)
    with xr.open_dataset(path, engine="h5netcdf") as asked:
        xr.testing.assert_identical(read, asked.load())
        assert {name: one.dtype for name, one in read.variables.items()} == {
            n: v.dtype for n, v in asked.variables.items()
        }


def test_saving_twice_gives_the_same_bytes(record, tmp_path):
    for name in ("one.nc", "two.nc"):
        records.save(record, tmp_path / name)
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()


def test_find_returns_the_record_of_its_experiment_only(saved):
    assert records.find(TINY, saved).attrs["hash"] == TINY.hash
    other = dataclasses.replace(TINY, runs=(dataclasses.replace(RUNS[0], optimizer=SGD(0.2)), *RUNS[1:]))
    with pytest.raises(LookupError, match=r"runs\[0\]\.optimizer\.lr: 0\.2 here, 0\.1 there"):
        records.find(other, saved)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"runs": RUNS[:2]}, "number of runs: 2 here, 3 there"),
        ({"schedule": Schedule(log=4)}, "schedule.log: 4 here, 3 there"),
        ({"runs": tuple(dataclasses.replace(run, optimizer=AdamW(0.1)) for run in RUNS)}, "optimizer.type"),
    ],
)
def test_a_stale_record_names_the_field_that_differs(saved, change, field):
    with pytest.raises(LookupError, match=re.escape(field)):
        records.belongs(dataclasses.replace(TINY, **change), saved)


def test_hash_is_of_the_recipe_and_not_of_names_or_labels():
    renamed = dataclasses.replace(
        TINY, name="test/other", scale="reduced", runs=tuple(dataclasses.replace(run, label="x") for run in RUNS)
    )
    assert renamed.hash == TINY.hash
    assert dataclasses.replace(TINY, measures=()).hash != TINY.hash


def test_a_rate_that_another_processor_ends_differently_is_the_same_recipe(tmp_path):
    def with_rate(lr):
        return dataclasses.replace(TINY, runs=(dataclasses.replace(RUNS[0], optimizer=SGD(lr)),))

    ours, theirs = with_rate(1e-5), with_rate(float(np.nextafter(1e-5, 0)))
    assert ours.hash == theirs.hash != with_rate(1.0000001e-5).hash
    records.save(engine.train(theirs), tmp_path / "theirs.nc")
    assert records.find(ours, tmp_path / "theirs.nc").lr.values.tolist() == [1e-5]


def test_a_rate_written_as_a_whole_number_is_the_same_recipe():
    def with_rate(lr):
        return experiment._hash.__wrapped__(
            dataclasses.replace(
                TINY, runs=(dataclasses.replace(RUNS[0], optimizer=AdamW(lr, groups=(Group("W", lr),))),)
            )
        )

    assert with_rate(1) == with_rate(1.0) != with_rate(2)


def test_hash_follows_the_versions_of_the_training_code(monkeypatch):
    before = TINY.hash
    monkeypatch.setattr(TwoLayerMLP, "version", 99)
    assert experiment._hash.__wrapped__(TINY) != before  # a process keeps what it found; versions never change in it


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("hello"),
        lambda path: xr.Dataset({"x": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf"),
    ],
    ids=["truncated", "empty", "text", "foreign"],
)
def test_a_damaged_file_is_refused_by_name(saved, damage):
    damage(saved)
    with pytest.raises(records.DamagedRecord, match=r"tiny\.nc"):
        records.load(saved)


def edit(path, **attributes):
    with h5py.File(path, "a") as file:
        for name, value in attributes.items():
            file.attrs[name] = value


@pytest.mark.parametrize(
    "name, value", [("wall_seconds", "abc"), ("recipe", "not json"), ("recipe", "[]"), ("hash", "0123456789abcdef")]
)
def test_attributes_that_are_no_records_are_noticed(saved, name, value):
    edit(saved, **{name: value})
    with pytest.raises(records.DamagedRecord, match=r"tiny\.nc: its attributes are no record's"):
        records.heading(saved)


@pytest.mark.parametrize("name, value", [("machine", "another"), ("wall_seconds", 1.0), ("scale", "full "), ("x", 1)])
def test_an_altered_attribute_is_noticed(saved, name, value):
    edit(saved, **{name: value})
    with pytest.raises(records.DamagedRecord, match="checksum"):
        records.load(saved)


def test_an_altered_unit_is_noticed(saved):
    with h5py.File(saved, "a") as file:
        file["train_loss"].attrs["units"] = "bits"
    with pytest.raises(records.DamagedRecord, match="checksum"):
        records.load(saved)


@pytest.mark.parametrize("change", [{"lr": ("run", [0.2, 0.1, 0.1])}, {"optimizer": ("run", ["Adam"] * 3)}, 2])
def test_runs_that_are_not_those_of_the_recipe_are_noticed(record, tmp_path, change):
    """As a record of another experiment that was given this one's recipe, checksum and all."""
    altered = record.isel(run=slice(change)) if change == 2 else record.assign_coords(change)
    records.save(altered, tmp_path / "tiny.nc")
    with pytest.raises(records.DamagedRecord, match="is not what its recipe says"):
        records.find(TINY, tmp_path / "tiny.nc")


def test_a_record_that_cannot_be_read_is_not_called_damaged(saved, monkeypatch):
    def refuses(*_, **__):
        raise PermissionError(13, "Unable to synchronously open file")

    monkeypatch.setattr(h5py, "File", refuses)
    with pytest.raises(PermissionError, match=r"Permission denied: .*tiny\.nc"):
        records.find(TINY, saved)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "tiny.nc")
    with pytest.raises(OSError, match="no regular file"):
        records.find(TINY, tmp_path / "tiny.nc")


def test_an_altered_number_is_noticed(saved):
    with xr.open_dataset(saved, engine="h5netcdf") as opened:
        altered = opened.load()
    altered.train_loss[0, 0] += 1e-3
    altered.to_netcdf(saved, engine="h5netcdf")
    with pytest.raises(records.DamagedRecord, match="checksum"):
        records.load(saved)


@pytest.mark.parametrize("schema", [1, 3])
def test_a_record_of_another_schema_is_refused(saved, schema):
    edit(saved, schema=schema)
    with pytest.raises(records.DamagedRecord, match="schema"):
        records.load(saved)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(record, saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*tiny\.nc"):
        records.save(record, saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["tiny.nc"]


def test_merged_shards_are_the_whole(record):
    places = [[2], [0, 1]]
    parts = [engine.train(TINY.select(place)) for place in places]
    merged = records.merge(TINY, parts, places)
    assert merged.attrs["hash"] == TINY.hash and merged.seed.values.tolist() == [0, 1, 2]
    for name in record.data_vars:
        np.testing.assert_allclose(merged[name], record[name], rtol=1e-5, atol=1e-7, err_msg=str(name))


def test_what_is_kept_of_networks_of_two_sizes_is_padded_to_the_larger():
    wide = dataclasses.replace(RUNS[1], model=TwoLayerMLP(7, 12))
    mixed = dataclasses.replace(TINY, runs=(RUNS[0], wide))
    parts = [engine.train(mixed.select([i])) for i in (1, 0)]
    merged = records.merge(mixed, parts, [[1], [0]])
    np.testing.assert_array_equal(merged.W_in[1], parts[0].W_in[0])
    np.testing.assert_array_equal(merged.W_in[0, :, :8], parts[1].W_in[0])
    assert merged.W_in.shape == (2, 2, 12, 14) and np.isnan(merged.W_in[0, :, 8:]).all()


def test_merged_shards_of_different_lengths_are_padded_with_missing_values():
    longer = dataclasses.replace(RUNS[1], steps=9)
    mixed = dataclasses.replace(TINY, runs=(RUNS[0], longer))
    merged = records.merge(mixed, [engine.train(mixed.select([i])) for i in (1, 0)], [[1], [0]])
    assert (
        merged.step.values[-1] == 9
        and np.isnan(merged.train_loss[0, -1])
        and merged.stopped_at.values.tolist() == [6, 9]
    )


def test_rounding_keeps_the_stated_digits():
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    values[:3] = [0.0, np.nan, np.inf]
    rounded = records.round_mantissa(values, 11)
    np.testing.assert_allclose(rounded[3:], values[3:], rtol=2.0**-12)
    assert rounded[0] == 0 and np.isnan(rounded[1]) and np.isinf(rounded[2])
    assert (rounded.view(np.uint32)[3:] & 0xFFF == 0).all()


def test_reading_a_record_and_naming_an_experiment_need_no_torch(saved):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from grokbook.train import records, runner\n"
        "from grokbook.chapters import experiments\n"
        "made = experiments('gromov').values()\n"
        "print(len({entry.make().hash for entry in made}) == len(made))\n"
        f"print(records.load(Path({str(saved)!r})).attrs['hash'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", TINY.hash], done.stderr
