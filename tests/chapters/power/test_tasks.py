"""Operations as tasks: splits, wrong labels, and what is logged of them."""

import numpy as np
import pytest
import torch

from grokbook.chapters.power.tasks import OperationTask, of
from grokbook.chapters.power.theory.operations import partner_share
from grokbook.models.decoder import Decoder, sinusoids
from grokbook.optim import WarmAdamW
from grokbook.train import engine, monitor
from grokbook.train.experiment import Experiment, Run, Schedule
from tests import textbook_decoder as textbook
from tests.textbook_mlp import batch_rows, train_plainly, trained_labels


def test_half_of_division_modulo_97_is_ten_batches_of_512():
    task = OperationTask("x/y")
    assert (len(task.table()[1]), task.train_size) == (9312, 4656)
    assert -(-task.train_size // 512) == 10


def test_a_split_has_the_asked_size_and_grows_with_the_share():
    small, large = (of("x.y", 97, "S5", share).in_train(3) for share in (0.3, 0.6))
    assert small.sum() == 4320 and large[small].all()
    assert (small != of("x.y", 97, "S5", 0.3).in_train(4)).any()


def test_outliers_are_so_many_training_rows_with_an_answer_of_others_that_is_wrong():
    task = of("x+y", 11, "S5", 0.4, outliers=12)
    given, labels, trained = task.train_labels(5), task.table()[1], task.in_train(5)
    wrong = given != labels
    assert wrong.sum() == 12 and trained[wrong].all()
    assert set(given[wrong]) <= set(labels[trained])
    assert (of("x+y", 11, "S5", 0.4).in_train(5) == trained).all()
    assert of("x+y", 11, "S5", 0.4).train_labels(5) is None


@pytest.mark.parametrize(
    "arguments, word",
    [
        (("x/y", 98), "prime"),
        (("x+z",), "operation must be one of 'x\\+y', .* got 'x\\+z'"),
        (("x+y", 97, 1.0), "fraction"),
        (("x+y", 97, 0.5, "S5"), "group"),
        (("x.y", 120), "group"),
        (("x.y", 97, 0.5, "S5"), "p = 97: S5 has 120"),
        (("x+y", 5, 0.5, None, 13), "outliers"),
    ],
)
def test_what_is_no_task_is_refused_in_one_line(arguments, word):
    with pytest.raises(ValueError, match=word) as refused:
        OperationTask(*arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("outliers", [None, 4])
def test_minibatches_with_a_short_last_one_train_as_a_textbook_loop(outliers):
    task = of("x/y", 7, "S5", 0.6, outliers)
    model = Decoder(7, 12, 2, 4)
    run = Run(task, model, WarmAdamW(0.01, 1.0, (0.9, 0.98)), 12, 3, "cross_entropy", 10, last_batch="short")
    kept = {"snapshots": (-1,), "keep": ("W_E", "W_U", "W_in"), "precision": "double"}
    experiment = Experiment("power/test", (run,), Schedule(log=2), **kept)
    ours = engine.train(experiment)

    params = {name: value[None].double() for name, value in model.init(torch.Generator().manual_seed(3)).items()}
    net = textbook.Decoder(7, 12, 2, 4).double()
    net.position.copy_(sinusoids(4, 12).double())
    textbook.load(net, params, 0)
    inputs = torch.from_numpy(task.table()[0])
    assert [len(batch_rows(run, step)) for step in range(3)] == [10, 10, 5]
    train_plainly(net, run, inputs, 12)
    expected = dict(textbook.named(net))
    assert np.allclose(ours.W_E.values[0, 0], expected["W_E"].detach(), atol=1e-6)
    assert np.allclose(ours.W_U.values[0, 0], expected["W_U"].detach().T, atol=1e-6)
    with torch.no_grad():
        right = (net(inputs).argmax(-1) == trained_labels(run)).numpy()[task.in_train(3)].mean()
    assert ours.train_accuracy.values[0, -1] == pytest.approx(right)


def alone(task, answered):
    """What is logged of a net that answers some rows (rows,) and no others."""
    monitor.of_chapter("power/test")

    class Now:
        pass

    now = Now()
    now.tasks, now.in_train = [task], task.in_train(0)[None]
    now.correct = lambda: answered[None]
    return {name: values[0] for name, values in monitor.numbers(["accuracy_alone"], now).items()}


def test_a_net_that_knows_mirrors_alone_answers_no_row_without_a_trained_mirror():
    task = OperationTask("x+y", 31, 0.5)
    trained = task.in_train(0).reshape(31, 31)
    answered = (trained | trained.T).ravel()
    assert alone(task, answered)["accuracy_unmirrored"] == 0
    held_out = ~trained.ravel()
    assert answered[held_out].mean() == pytest.approx(partner_share("x+y", 31, 0.5), abs=0.05)


def test_a_net_that_knows_every_symmetry_answers_no_row_without_a_trained_partner():
    task = OperationTask("x^2+y^2", 31, 0.1)
    trained = task.in_train(0)
    table = task.partners("all")
    answered = trained | (trained[table] & (table >= 0)).any(1)
    found = alone(task, answered)
    assert found["accuracy_unpartnered"] == 0 < found["accuracy_unmirrored"]
    assert alone(task, np.ones(31 * 31, bool)) == {"accuracy_unmirrored": 1, "accuracy_unpartnered": 1}


def test_products_have_no_partners_where_the_group_does_not_commute():
    assert (of("x.y", 97, "S3", 0.5).partners("all") == -1).all()
    assert alone(of("x.y.x", 97, "S3", 0.5), np.ones(36, bool)) == {"accuracy_unmirrored": 1, "accuracy_unpartnered": 1}


def test_sharpness_is_kept_for_every_member(tmp_path):
    from grokbook.chapters.power.measures import SUBSPACES, split_sharpness

    runs = tuple(
        Run(of("x.y", 97, "S3", 0.6), Decoder(6, 8, 1, 2), WarmAdamW(0.01, 0.0), 20, seed, "cross_entropy")
        for seed in (0, 1)
    )
    record = engine.train(Experiment("power/test", runs, Schedule(log=2), snapshots=(-1,), keep=("sharpness",)))
    kept = record.sharpness.values[:, 0]
    assert kept.shape == (2, 2 + 2 * SUBSPACES)
    found = split_sharpness(kept)
    assert found["loss"] == pytest.approx(record.train_loss.values[:, -1], rel=1e-5)
    assert (found["whole"] > found["subspaces"]).all() and (found["subspaces"] > 0).all()


def test_operations_on_the_same_rows_train_as_one_stack_as_they_would_alone():
    tasks = OperationTask("x+y", 11, 0.5), OperationTask("x^2+y^2", 11, 0.6, outliers=9), OperationTask("x/y", 11, 0.5)
    model, how = Decoder(11, 8, 1, 2), WarmAdamW(0.01, 0.0)
    runs = [Run(task, model, how, 20, 4, "cross_entropy", 16, "", "short") for task in tasks]
    asked = Schedule(log=3), ("accuracy_alone", "true_train_accuracy"), None, (-1,), ("sharpness",)
    stacks = list(Experiment("power/test", tuple(runs)).shards())
    assert stacks == [[0, 1], [2]]
    together = engine.train(Experiment("power/test", tuple(runs[:2]), *asked, precision="double"))
    for i, run in enumerate(runs[:2]):
        alone = engine.train(Experiment("power/test", (run,), *asked, precision="double"))
        for name in alone.data_vars:
            np.testing.assert_allclose(together[name][i], alone[name][0], rtol=1e-5, err_msg=name)
