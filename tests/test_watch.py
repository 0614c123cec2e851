import numpy as np
import pytest
import torch
import xarray as xr

from grokbook.curves import first_step
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask
from grokbook.train import engine
from grokbook.train.experiment import Experiment, Run, Schedule, Watch

OPTIMIZER = AdamW(0.01, 0.0, groups=(Group("W_E", 0.02, 0.0),))
BOTH = (("train_accuracy", 0.6), ("test_accuracy", 0.3))


def experiment(watch, schedule, steps=200, batch_size=None):
    task, model = AdditionTask(6, 15, 5), AdditionDecoder(6, hidden=(16, 16), outputs=5)
    runs = [Run(task, model, OPTIMIZER, steps, seed, "mse", batch_size) for seed in range(4)]
    return Experiment("liu/watch", tuple(runs), schedule, ("rqi",), watch=watch, snapshots=(-1,), keep=("W_E",))


def test_watched_steps_are_the_first_of_the_full_curve():
    record = engine.train(experiment(Watch(BOTH, every=1, leave=False), Schedule(every=1)))
    for name, threshold in BOTH:
        full = first_step(record[name], record.step, threshold)
        np.testing.assert_array_equal(record[f"reached_{name}"], full)
    assert np.isfinite(record.reached_train_accuracy).all()
    coarse = engine.train(experiment(Watch(BOTH, every=7, leave=False), Schedule(log=2)))
    on_grid = record.sel(step=record.step % 7 == 0)
    for name, threshold in BOTH:
        np.testing.assert_array_equal(coarse[f"reached_{name}"], first_step(on_grid[name], on_grid.step, threshold))


def test_a_measure_can_be_watched():
    record = engine.train(experiment(Watch((("rqi", 0.3),), every=1, leave=False), Schedule(every=1)))
    np.testing.assert_array_equal(record.reached_rqi, first_step(record.rqi, record.step, 0.3))
    assert record.reached_rqi.units == "optimizer steps" and "units" not in record.rqi.attrs


def test_a_member_leaves_once_it_has_reached_all_and_the_others_go_on_unchanged():
    stay = engine.train(experiment(Watch(BOTH, every=1, leave=False), Schedule(log=30)))
    leave = engine.train(experiment(Watch(BOTH, every=1), Schedule(log=30)))
    last = np.fmax(stay.reached_train_accuracy, stay.reached_test_accuracy)
    both = np.isfinite(stay.reached_train_accuracy) & np.isfinite(stay.reached_test_accuracy)
    assert int(both.sum()) > 0
    np.testing.assert_array_equal(leave.stopped_at, np.where(both, last, 200))
    for name, _ in BOTH:
        np.testing.assert_array_equal(leave[f"reached_{name}"], stay[f"reached_{name}"])
    seen = leave.step.values <= leave.stopped_at.values[:, None]
    np.testing.assert_array_equal(leave.train_loss.values[seen], stay.train_loss.values[seen])


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_resumed_training_ends_with_the_same_bits(tmp_path, batch_size):
    chosen = experiment(Watch(BOTH, every=3), Schedule(log=9), batch_size=batch_size)
    whole = engine.train(chosen)
    training = engine.Training.start(chosen, torch.device("cpu"), torch.float32)
    middle = min(int(whole.stopped_at.min()) + 5, 150)
    while training.state.step < middle:
        training.evaluate()
        training.state.update()
    training.save(tmp_path / "checkpoint", 0.0)
    resumed = engine.train(chosen, checkpoint=tmp_path / "checkpoint")
    assert resumed.attrs["resumed_at"] == str([middle])
    xr.testing.assert_identical(resumed.drop_attrs(), whole.drop_attrs())
