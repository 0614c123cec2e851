import dataclasses
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import SGD, Adam, AdamW, Group, WarmAdamW, stepper
from grokbook.tasks import AdditionTask, ModularTask
from grokbook.train import engine, monitor, products, runner
from grokbook.train import state as train_state
from grokbook.train.experiment import Experiment, Run, Schedule, Stop, Watch
from tests.textbook_mlp import batch_rows, plain_optimizer, plain_training

TASK, MODEL = ModularTask(11, "n + m", 0.6), TwoLayerMLP(11, 24, "standard")
SMOOTH = TwoLayerMLP(11, 24, "standard", "gelu")  # no hand-derived gradient
DROPPED = TwoLayerMLP(11, 24, "standard", dropout=0.2)
CPU = torch.device("cpu"), torch.float32
OPTIMIZERS = [
    SGD(0.5),
    SGD(0.2, momentum=0.9, weight_decay=0.01),
    Adam(0.01, weight_decay=0.1),
    AdamW(0.01, weight_decay=2.0, betas=(0.9, 0.98)),
]


def experiment(runs, **changes):
    settings = {"schedule": Schedule(log=5, every=10), "snapshots": (-1,), "keep": ("W_in", "W_out"), **changes}
    return Experiment("test/one", tuple(runs), **settings)


def members(optimizer, *, model=MODEL, steps=40, seeds=(0, 1, 2), **changes):
    return [Run(TASK, model, optimizer, steps, seed, **changes) for seed in seeds]


def final_weights(runs, dtype="float64", steps=None):
    training = engine.Training.start(experiment(runs), torch.device("cpu"), getattr(torch, dtype))
    for _ in range(steps or runs[0].steps):
        training.state.update()
    return training.state.params


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("model", [MODEL, SMOOTH], ids=["hand", "autograd"])
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_forty_steps_agree_with_torch_optim_member_by_member(optimizer, model, loss):
    runs = members(optimizer, model=model, loss=loss)
    together = final_weights(runs)
    for i, run in enumerate(runs):
        net = plain_training(run, torch.float64, run.steps)
        alone = final_weights([run])
        for name in together:
            plain = getattr(net, name).detach()
            torch.testing.assert_close(together[name][i], plain, rtol=1e-9, atol=1e-11)
            torch.testing.assert_close(alone[name][0], plain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("recipe", OPTIMIZERS, ids=str)
def test_a_transposed_gradient_is_taken_as_it_is(recipe):
    """The fused kernel of PyTorch reads memory in order and would get this one wrong."""
    start, gradient = torch.randn(1, 6, 3, dtype=torch.float64), torch.randn(1, 3, 6, dtype=torch.float64)
    ours = stepper([recipe], {"W": start.clone()})
    plain = torch.nn.Parameter(start[0].clone())
    theirs = plain_optimizer(recipe, [plain])
    for count in range(1, 6):
        ours.step({"W": gradient.transpose(1, 2)}, count)
        plain.grad = gradient[0].T.clone()
        theirs.step()
    torch.testing.assert_close(ours.params["W"][0], plain.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
def test_parameter_groups_have_their_own_rate_and_decay(kind):
    with pytest.raises(ValueError, match="no parameter begins with 'W_ut'; there are W_in, W_out"):
        final_weights(members(kind(0.1, groups=(Group("W_ut"),))))
    recipe = kind(0.1, weight_decay=0.2, groups=(Group("W_o", lr=0.01, weight_decay=0.0),))
    start = {"W_in": torch.randn(1, 4, 3, dtype=torch.float64), "W_out": torch.randn(1, 3, 4, dtype=torch.float64)}
    ours = stepper([recipe], {name: value.clone() for name, value in start.items()})
    plain = {name: torch.nn.Parameter(value[0].clone()) for name, value in start.items()}
    theirs = plain_optimizer(
        recipe, [{"params": [plain["W_in"]]}, {"params": [plain["W_out"]], "lr": 0.01, "weight_decay": 0.0}]
    )
    for count in range(1, 11):
        gradients = {name: torch.randn_like(value) for name, value in start.items()}
        for name, value in plain.items():
            value.grad = gradients[name][0].clone()
        ours.step(gradients, count)
        theirs.step()
    for name, value in plain.items():
        torch.testing.assert_close(ours.params[name][0], value.detach(), rtol=1e-11, atol=1e-12)


def test_optimizers_of_two_classes_cannot_share_a_stack():
    with pytest.raises(ValueError, match="one class"):
        stepper([SGD(0.1), AdamW(0.1)], {"W": torch.zeros(2, 1)})


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_members_with_several_initial_scales_train_as_one_stack():
    task = AdditionTask(5, 9)
    models = [AdditionDecoder(5, 2, hidden=(8,), init_scale=scale) for scale in (0.1, 1.0, 10.0)]
    whole = Experiment("test/scales", tuple(Run(task, model, AdamW(1e-2), 5, seed=1) for model in models))
    assert list(whole.shards()) == [[0, 1, 2]]
    together = engine.train(whole)
    for i in range(len(models)):
        np.testing.assert_array_equal(together.test_loss[i], engine.train(whole.select([i])).test_loss[0])


def test_curves_are_what_a_plain_evaluation_gives():
    run = members(AdamW(0.01, 1.0), seeds=(3,))[0]
    record = engine.train(experiment([run], measures=("weight_norm", "gradient_norm"), precision="double"))
    net = plain_training(run, torch.float64, 20)
    pairs, labels = (torch.tensor(part) for part in run.task.table())
    mask = torch.from_numpy(run.task.in_train(run.seed))
    outputs, one_hot = net(pairs), torch.nn.functional.one_hot(labels, 11)
    at = record.sel(step=20).isel(run=0)
    for split, rows in (("train", mask), ("test", ~mask)):
        loss = (outputs - one_hot)[rows].square().mean().item()
        assert float(at[f"{split}_loss"]) == pytest.approx(loss, rel=1e-10)
        share = (outputs.argmax(-1) == labels)[rows].double().mean()
        assert float(at[f"{split}_accuracy"]) == pytest.approx(float(share))
    assert float(at.weight_norm_W_in) == pytest.approx(net.W_in.norm().item(), rel=1e-9)
    net_gradient = torch.autograd.grad((net(pairs) - one_hot)[mask].square().mean(), [net.W_in, net.W_out])
    assert float(at.gradient_norm_W_out) == pytest.approx(net_gradient[1].norm().item(), rel=1e-8)


def test_schedule_is_spaced_evenly_in_log_step_and_ends_on_the_last():
    steps = Schedule(log=9, every=None).steps(10_000)
    assert steps[0] == 0 and steps[-1] == 10_000
    ratios = np.diff(np.log(steps[2:]))
    assert ratios.std() < 0.1 * ratios.mean()
    assert set(range(0, 100, 7)) <= set(Schedule(log=3, every=7).steps(99).tolist())


def test_a_member_that_met_the_criterion_leaves_and_the_others_go_on_unchanged():
    runs = members(AdamW(0.01, 1.0, (0.9, 0.98)), seeds=range(4), steps=60)
    full = engine.train(experiment(runs))
    threshold = float(full.train_accuracy.max("step").median())
    stopped = engine.train(experiment(runs, stop=Stop("train_accuracy", threshold)))
    early = stopped.stopped_at.values < 60
    assert early.any() and not early.all(), "the test needs both kinds of members"
    for i in range(4):
        until = stopped.step <= stopped.stopped_at[i]
        np.testing.assert_array_equal(
            stopped.train_loss[i].where(until, drop=True), full.train_loss[i].where(until, drop=True)
        )
        assert stopped.train_loss[i].where(~until, drop=True).isnull().all()
        if not early[i]:
            np.testing.assert_array_equal(stopped.W_in[i], full.W_in[i])


def test_a_criterion_in_a_row_needs_consecutive_evaluations():
    runs = members(AdamW(0.01, 1.0, (0.9, 0.98)), seeds=(0,), steps=60)
    full = engine.train(experiment(runs))
    threshold = float(full.train_accuracy.sel(step=30)[0])
    one, three = (
        int(engine.train(experiment(runs, stop=Stop("train_accuracy", threshold, n))).stopped_at[0]) for n in (1, 3)
    )
    steps = full.step.values.tolist()
    assert steps.index(three) >= steps.index(one) + 2


@pytest.mark.parametrize("model", [MODEL, SMOOTH], ids=["hand", "autograd"])
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_a_member_that_diverges_is_marked_and_spares_the_rest_to_the_last_bit(model, loss):
    def record(lr):
        runs = [*members(SGD(lr), model=model, loss=loss, seeds=(0,)), *members(SGD(0.1), model=model, loss=loss)]
        return engine.train(experiment(runs))

    lost, sane = record(1e30), record(0.2)
    assert math.isfinite(lost.diverged_at[0]) and lost.stopped_at[0] == lost.diverged_at[0]
    assert np.isfinite(lost.train_loss[0].where(lost.step < lost.diverged_at[0], drop=True)).all()
    assert sane.diverged_at.isnull().all() and lost.diverged_at[1:].isnull().all()
    for name in ("train_loss", "test_accuracy", "W_in", "stopped_at"):
        np.testing.assert_array_equal(lost[name][1:], sane[name][1:])


def test_a_member_that_diverges_on_the_very_last_step_is_marked_too():
    record = engine.train(experiment(members(SGD(1e30), seeds=(0,), steps=1), schedule=Schedule(log=1)))
    assert record.step.values.tolist() == [0, 1] and record.diverged_at[0] == record.stopped_at[0] == 1


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    "model, loss",
    [(MODEL, "mse"), (DROPPED, "mse"), (PairTransformer(11, 8), "cross_entropy")],
    ids=["plain", "dropout", "transformer"],
)
@pytest.mark.parametrize("batch", [{}, {"batch_size": 16, "last_batch": "short"}], ids=["whole", "batches"])
def test_a_resumed_training_ends_bitwise_as_an_uninterrupted_one(tmp_path, monkeypatch, model, loss, batch):
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(engine, "REPORT_SECONDS", 0.0)
    runs = members(AdamW(0.01, 1.0), model=model, loss=loss, **batch)
    unstopped = engine.train(experiment(runs)).train_accuracy
    stop = Stop("train_accuracy", float(unstopped.max("step").median()))  # one member leaves while others train
    whole = experiment(runs, snapshots=(0, 20, -1), stop=stop)
    checkpoint = tmp_path / "part.checkpoint"
    for at in (3, 8, 10):

        def kill(step, numbers, at=at):
            if step >= at:
                raise Killed

        with pytest.raises(Killed):
            engine.train(whole, checkpoint=checkpoint, report=kill)
    resumed, plain = engine.train(whole, checkpoint=checkpoint), engine.train(whole)
    assert resumed.attrs["resumed_at"] != "[]"
    for name in plain.data_vars:
        np.testing.assert_array_equal(resumed[name], plain[name], err_msg=str(name))


def test_a_training_is_stopped_between_blocks_of_an_evaluation_and_looks_again(tmp_path, monkeypatch):
    monkeypatch.setitem(train_state.FLOATS_AT_ONCE, "cpu", 1)  # a row at once
    runs = members(AdamW(0.01, 1.0))
    unstopped = engine.train(experiment(runs)).train_accuracy
    stop = Stop("train_accuracy", float(unstopped.max("step").median()), 2)
    whole = experiment(runs, snapshots=(0, 20, -1), stop=stop, keep=("output[1]",))
    plain, checkpoint = engine.train(whole), tmp_path / "part.checkpoint"
    times, resumed, rows = 0, None, len(runs[0].task.table()[0])
    while resumed is None:
        asked = iter(range(10**6))
        times, last = times + 1, rows * (times + 1) + rows // 2  # each time a look farther, and in its middle
        try:
            resumed = engine.train(whole, checkpoint=checkpoint, stop=lambda a=asked, n=last: next(a) >= n)
        except KeyboardInterrupt:
            assert checkpoint.exists()
    assert times >= 5
    for name in plain.data_vars:
        np.testing.assert_array_equal(resumed[name], plain[name], err_msg=str(name))


def a_checkpoint(path):
    """The checkpoint of step 2 of a small training."""
    whole = experiment(members(SGD(0.1)))
    training = engine.Training.start(whole, *CPU)
    for _ in range(2):
        training.state.update()
    training.save(path, 0.0)
    return whole


def flip_a_bit(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:100], lambda content: b"", lambda content: b"x" * 400, flip_a_bit],
    ids=["cut off", "empty", "foreign", "one bit"],
)
def test_a_damaged_checkpoint_is_named_and_not_used(tmp_path, capsys, damage):
    path = tmp_path / "part.checkpoint"
    whole = a_checkpoint(path)
    assert engine.Training.load(path, whole, *CPU).state.step == 2
    path.write_bytes(damage(path.read_bytes()))
    assert engine.Training.load(path, whole, *CPU) is None
    assert f"{path} is damaged" in capsys.readouterr().err


def test_a_checkpoint_a_minute_whenever_evaluations_are(tmp_path, monkeypatch):
    clock, saved = iter(range(10_000)), []
    monkeypatch.setattr(engine.time, "monotonic", lambda: next(clock))  # a second a step
    monkeypatch.setattr(engine.Training, "save", lambda self, *_: saved.append(self.state.step))
    run = members(SGD(0.1), seeds=(0,), steps=400)[0]
    engine.train(experiment([run], schedule=Schedule(log=2)), checkpoint=tmp_path / "part")
    assert len(saved) == 8 and max(np.diff([0, *saved])) <= 60


def test_a_full_disk_pauses_the_training_and_loses_nothing(tmp_path, monkeypatch, capsys):
    whole, path = a_checkpoint(tmp_path / "part.checkpoint"), tmp_path / "part.checkpoint"
    before, tries, real = path.read_bytes(), iter([28, 28, 122]), os.fsync

    def full(file):
        if error := next(tries, None):
            assert path.read_bytes() == before  # what was there stays until there is something to take its place
            raise OSError(error, os.strerror(error))
        real(file)

    monkeypatch.setattr(engine.records.os, "fsync", full)
    monkeypatch.setattr(engine.records, "FULL_DISK_SECONDS", 0.0)
    training = engine.Training.load(path, whole, *CPU)
    training.state.update()
    training.save(path, 0.0)
    said = capsys.readouterr().err
    assert said.count("no space left for") == 1 and str(path) in said and "goes on" in said
    assert engine.Training.load(path, whole, *CPU).state.step == 3


def test_a_checkpoint_of_another_machine_or_library_is_taken_recorded_and_said(tmp_path, monkeypatch, capsys):
    path = tmp_path / "part.checkpoint"
    with monkeypatch.context() as elsewhere:
        place = {"device": "cuda", "machine": "A", "torch": "2.12", "products": "default"}
        elsewhere.setattr(engine, "_place", lambda device, library: place)
        whole = a_checkpoint(path)
    record = engine.train(whole, checkpoint=path)
    said = capsys.readouterr().err
    assert "goes on from step 2 elsewhere (cuda -> cpu; A -> " in said and "2.12 -> " in said
    assert record.attrs["device"] == "cuda, cpu" and record.attrs["torch"] == f"2.12, {torch.__version__}"
    assert record.attrs["resumed_at"].startswith("[2 (cuda -> cpu)")


def test_a_checkpoint_of_another_recipe_is_not_used(tmp_path):
    path = tmp_path / "part.checkpoint"
    engine.Training.start(experiment(members(SGD(0.1))), torch.device("cpu"), torch.float32).save(path, 0.0)
    other = experiment(members(SGD(0.2)))
    assert engine.Training.load(path, other, torch.device("cpu"), torch.float32) is None


def test_snapshots_hold_the_weights_of_their_step():
    runs = members(SGD(0.5), seeds=(0, 1))
    record = engine.train(experiment(runs, snapshots=(0, 10, -1), keep=("W_out", "output[3]", "preactivation[2]")))
    assert record.snapshot_step.values.tolist() == [[0, 10, 40]] * 2
    for column, steps in ((1, 10), (2, 40)):
        weights = final_weights(runs, "float32", steps)
        np.testing.assert_array_equal(record.W_out[:, column], weights["W_out"])
        table = torch.from_numpy(np.stack([TASK.table()[0]] * 2))
        with torch.no_grad():
            outputs = MODEL(weights, table)[..., 3].reshape(2, 11, 11)
        np.testing.assert_allclose(record["output[3]"][:, column], outputs, rtol=1e-6, atol=1e-7)
    assert record["output[3]"].dims == ("run", "snapshot", "n", "m")


@pytest.mark.parametrize(
    ("made", "words"),
    [({"test_accuracy": np.ones(1)}, "test_accuracy, which is there"), ({"mine": 7.0}, r"mine of shape \(\)")],
)
def test_a_measure_gives_one_number_a_member_under_a_name_of_its_own(monkeypatch, made, words):
    monkeypatch.setitem(monitor.MEASURES, "mine", lambda now: made)
    with pytest.raises(ValueError, match=words):
        engine.train(experiment(members(SGD(0.5), seeds=(0,)), measures=("mine",)))


def test_a_network_whose_outputs_have_another_shape_is_told_which(monkeypatch):
    monkeypatch.setattr(TwoLayerMLP, "__call__", lambda self, params, inputs: inputs.double().sum(-1))
    with pytest.raises(ValueError, match=r"TwoLayerMLP gives outputs of shape \(1, \d+\), and \(M, B, classes\)"):
        engine.train(experiment(members(SGD(0.5), seeds=(0,))))


def test_a_summary_stands_in_place_of_what_it_is_made_of(monkeypatch, tmp_path):
    def largest(record):
        return {"largest": (("run", "snapshot"), abs(record.W_out).max(("output", "hidden")).values)}

    monkeypatch.setitem(monitor.MEASURES, "largest", largest)
    whole = experiment(members(SGD(0.5), seeds=(0, 1)), snapshots=(0, -1), keep=("W_out",))
    asking = dataclasses.replace(whole, summary="largest")
    record, plain = runner.train(asking, block=1, workers=1, out=tmp_path), engine.train(whole)
    np.testing.assert_allclose(record.largest, largest(plain)["largest"][1], rtol=1e-6)
    assert {*plain.data_vars} ^ {*record.data_vars} == {"W_out", "largest"}
    assert asking.hash != whole.hash


def test_an_unknown_summary_is_named_before_anything_is_trained():
    asking = dataclasses.replace(experiment(members(SGD(0.1))), summary="nonsense")
    with pytest.raises(ValueError, match="measures = 'nonsense'"):
        engine.Training.start(asking, *CPU)


def test_a_short_last_batch_is_averaged_over_the_samples_it_has():
    run = dataclasses.replace(members(SGD(0.1))[0], batch_size=20, last_batch="short")
    per_epoch = -(-TASK.train_size // 20)
    epochs = [np.concatenate([batch_rows(run, epoch * per_epoch + at) for at in range(per_epoch)]) for epoch in (0, 1)]
    assert all(sorted(rows.tolist()) == list(range(TASK.train_size)) for rows in epochs)
    assert epochs[0].tolist() != epochs[1].tolist()
    state = engine.Training.start(experiment([run]), torch.device("cpu"), torch.float64).state
    state.step = per_epoch - 1
    left = TASK.train_size % 20
    assert state.batch()[2].tolist() == [[1 / left] * left]


@pytest.mark.parametrize("model", [MODEL, SMOOTH], ids=["hand", "autograd"])
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize(
    "batches", [(None,), (16,), (16, "", "short")], ids=["full batch", "whole batches", "short last"]
)
def test_members_may_differ_in_all_but_shape_and_each_keep_their_own_epochs(model, loss, batches):
    runs = [
        Run(ModularTask(11, "n + m", share), model, AdamW(0.005 * (1 + seed), seed), 40, seed, loss, *batches)
        for seed, share in enumerate((0.3, 0.8, 0.5, 0.14))
    ]
    assert [len(place) for place in experiment(runs).shards()] == [4]
    together = final_weights(runs)
    for i, run in enumerate(runs):
        net = plain_training(run, torch.float64, run.steps)
        for name in together:
            torch.testing.assert_close(together[name][i], getattr(net, name).detach(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("change", [{"batch_norm": True}, {"dropout": 0.1}], ids=str)
def test_members_that_share_more_than_a_step_train_with_others_of_their_size_only(change):
    normed = dataclasses.replace(SMOOTH, **change)
    runs = [Run(ModularTask(11, "n + m", share), normed, SGD(0.1), 40, 0, batch_size=16) for share in (0.3, 0.8)]
    assert len(list(experiment(runs).shards())) == 2


def test_a_short_last_batch_needs_batches():
    with pytest.raises(ValueError, match="last_batch = 'short'"):
        Run(TASK, MODEL, SGD(0.1), 1, 0, last_batch="short")
    assert "last_batch" not in experiment(members(SGD(0.1), batch_size=16)).recipe["runs"][0]


def captured(monkeypatch):
    """Everything that a GPU would do, on the CPU: the capture itself is a plain call of the step that is captured."""
    calls = []

    def capture(step, tables):
        calls.append(tables)
        return step

    monkeypatch.setattr(train_state, "wants_graph", lambda state: True)
    monkeypatch.setattr(train_state, "capture", capture)
    return calls


@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, WarmAdamW(0.01, 1.0, (0.9, 0.98), warmup=7)], ids=str)
@pytest.mark.parametrize("batch_size, widths", [(None, 1), (16, 2)])
def test_the_step_that_a_gpu_captures_is_the_step(monkeypatch, optimizer, batch_size, widths):
    runs = members(optimizer, model=SMOOTH, batch_size=batch_size, last_batch="short" if batch_size else None)
    plain = final_weights(runs)
    calls = captured(monkeypatch)
    for name, value in final_weights(runs).items():
        torch.testing.assert_close(value, plain[name], rtol=1e-9, atol=1e-11)
    assert len(calls) == widths


def test_a_step_is_captured_on_a_gpu_alone():
    state = engine.Training.start(experiment(members(SGD(0.1))), *CPU).state
    assert not train_state.wants_graph(state)
    state.data = SimpleNamespace(labels=SimpleNamespace(is_cuda=True))
    assert train_state.wants_graph(state)


def test_masks_of_dropout_are_a_members_own_wherever_it_stands_and_said_in_the_recipe():
    run, other = (members(AdamW(0.01), model=DROPPED, seeds=(seed,))[0] for seed in (3, 4))
    torch.testing.assert_close(final_weights([other, run])["W_in"][1], final_weights([run])["W_in"][0])
    assert experiment([run]).recipe["runs"][0]["model"]["masks"] == "counted"
    assert "masks" not in experiment(members(AdamW(0.01))).recipe["runs"][0]["model"]


def test_fast_products_are_opt_in_part_of_the_recipe_and_over_when_the_training_is(monkeypatch):
    seen = []
    real = train_state.State.update

    def update(self):
        seen.append(torch.get_float32_matmul_precision())
        real(self)

    monkeypatch.setattr(train_state.State, "update", update)
    monkeypatch.setattr(products, "rounds", lambda: True)
    exact, fast = (experiment(members(SGD(0.1), steps=1), precision=precision) for precision in (None, "fast"))
    assert "precision" not in exact.recipe and fast.recipe["precision"] == "fast" and exact.hash != fast.hash
    single, record = engine.train(exact), engine.train(fast)
    assert seen == ["highest", "medium"] and record.attrs["products"] == "bfloat16"
    assert torch.get_float32_matmul_precision() == "highest" and '"precision": "fast"' in record.attrs["recipe"]
    double = engine.train(experiment(members(SGD(0.1), steps=1), precision="double"))
    assert 0 < abs(double.W_in - single.W_in).max() < 1e-6
    with pytest.raises(ValueError, match="precision = 'half'"):
        experiment(members(SGD(0.1)), precision="half")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "my.own/sums"}, "words of letters"),
        ({"stop": Stop("test_acuracy")}, "'test_acuracy' is waited for and never taken"),
        ({"watch": Watch((("test_accuracy", 0.9),), every=0)}, "every=0"),
        ({"watch": Watch((("test_accuracy", 0.9),), leave=1)}, "leave = 1: True or False is needed"),
        ({"measures": "weight_norm"}, "a tuple is needed"),
        ({"runs": members(SGD(0.1))[0]}, "a tuple is needed"),
        ({"schedule": 10}, "schedule = 10: a Schedule"),
        ({"snapshots": ()}, "snapshots say when"),
        ({"snapshots": -1}, "a tuple is needed"),
        ({"snapshots": (10**6,)}, "no run gets there"),
        ({"measures": (np.mean,)}, "a measure's or parameter's name is needed"),
        ({"keep": ("emb/E",)}, "'emb/E': a measure's or parameter's name is needed, without a '/'"),
        ({"scale": "tiny"}, "scale must be one of"),
    ],
)
def test_what_would_fail_late_is_refused_when_it_is_written_down(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(experiment(members(SGD(0.1))), **change)


@dataclasses.dataclass(frozen=True)
class Seeded(ModularTask):
    seed: int = 8


@dataclasses.dataclass(frozen=True)
class Unequal(ModularTask):
    def in_train(self, seed):
        return np.ones(121, bool)


@dataclasses.dataclass(frozen=True)
class Modest(TwoLayerMLP):
    def __call__(self, params, inputs):
        return super().__call__(params, inputs)[..., :-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": Unequal(11)}, "Unequal: in_train of seed 0 has 121 rows, and its train_size is "),
        ({"model": Modest(11, 8)}, r"Modest gives outputs of shape \(1, 121, 10\), and .* = \(1, 121, 11 or more\)"),
    ],
)
def test_tasks_and_models_that_contradict_themselves_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        engine.train(experiment([dataclasses.replace(members(SGD(0.1), steps=1)[0], **change)]))


@dataclasses.dataclass(frozen=True)
class Unseeded(TwoLayerMLP):
    def init(self, generator):
        return super().init(torch.Generator().manual_seed(torch.seed()))


@pytest.mark.parametrize(
    ("change", "model", "words"),
    [
        ({"keep": ("W_1",)}, TwoLayerMLP(11, 8), r"keep = 'W_1': a parameter \(W_in, W_out\)"),
        ({"keep": ("output[3]", "outputs[3]")}, TwoLayerMLP(11, 8), r"keep = 'outputs\[3\]'"),
        ({"keep": ("W_0", "W_1")}, EmbeddedMLP(11, 8, 8), r"keep = 'W_0': a parameter"),
        ({"keep": ("activation[8]", "activation[7]")}, TwoLayerMLP(11, 8), r"'activation\[8\]': there are 8, counted"),
        ({"keep": ()}, Unseeded(11, 8), "model: its init must draw from its generator alone"),
    ],
)
def test_what_would_be_found_after_the_training_is_found_before_its_first_step(change, model, words, monkeypatch):
    monkeypatch.setattr(train_state.State, "update", lambda state: pytest.fail("a step was taken"))
    with pytest.raises(ValueError, match=words):
        engine.train(experiment(members(SGD(0.1), model=model), snapshots=(-1,), **change))


@pytest.mark.parametrize("wrong", [{"evaluations": 0}, {"threshold": float("nan")}])
def test_what_can_never_be_waited_for_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Stop(**wrong)


def test_a_measure_gives_numbers_by_name_and_one_array_where_it_is_kept(monkeypatch):
    monkeypatch.setitem(monitor.MEASURES, "bare", lambda now: np.zeros(len(now.tasks)))
    monkeypatch.setitem(monitor.MEASURES, "two", lambda now: dict.fromkeys("ab", np.zeros((len(now.tasks), 3))))
    with pytest.raises(ValueError, match=r"measures = 'bare': it gives ndarray, and name -> numbers \(M,\) is needed"):
        engine.train(experiment(members(SGD(0.1), steps=1), measures=("bare",)))
    with pytest.raises(ValueError, match=r"keep = 'two': one array \(M, ...\) is kept, and it gives a, b"):
        engine.train(experiment(members(SGD(0.1), steps=1), keep=("two",), snapshots=(-1,)))


@pytest.mark.parametrize("name", ["train_loss", "lr", "seed", "step", "norm/E", "W_in"])
def test_a_measure_whose_number_has_no_place_in_a_record_is_refused_at_the_first_step(monkeypatch, name):
    monkeypatch.setitem(monitor.MEASURES, "own", lambda now: {name: np.zeros(len(now.tasks))})
    with pytest.raises(ValueError, match=f"a measure gives {name}, which .*: it needs another name"):
        engine.train(experiment(members(SGD(0.1), steps=1), measures=("own",)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 2.5}, r"steps = 2\.5: an integer is needed"),
        ({"optimizer": AdamW("1e-2")}, "lr = '1e-2': a finite number"),
        ({"optimizer": AdamW(0.1, betas=(0.9, 1.5))}, r"betas = \(0\.9, 1\.5\)"),
        ({"optimizer": AdamW(0.1, betas=(0.9,))}, r"betas = \(0\.9,\): two in \[0, 1\)"),
        ({"optimizer": SGD(0.1, momentum=1.5)}, r"momentum = 1\.5"),
        ({"optimizer": dataclasses.make_dataclass("Lion", [], bases=(AdamW,), frozen=True)(0.1)}, "not .*Lion"),
        ({"optimizer": torch.optim.AdamW([torch.zeros(1)])}, "WarmAdamW of grokbook.optim is needed"),
        ({"model": torch.nn.Linear(2, 2)}, "Model of grokbook.train.contract: .*Linear"),
        ({"model": TwoLayerMLP(11, 8.0)}, r"width = 8\.0: an integer"),
        ({"model": TwoLayerMLP(11, True)}, "width = True: an integer"),
        ({"model": TwoLayerMLP(11, 8, batch_norm=1)}, "batch_norm = 1: True or False is needed"),
        ({"optimizer": SGD(True)}, "lr = True: a number"),
        ({"model": TwoLayerMLP(5, 8)}, "made for p = 5, and the task has p = "),
        ({"optimizer": SGD(-0.1)}, "is needed"),
        ({"optimizer": SGD(float("nan"))}, "is needed"),
        ({"seed": -1}, "must be an integer"),
        ({"seed": 2**63}, "must be an integer"),
        ({"batch_size": 0}, "batch_size = 0: between 1 and the"),
        ({"task": Seeded(11)}, "a task's or model's seed: a record has a column of that name"),
    ],
)
def test_a_recipe_that_cannot_be_trained_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(members(SGD(0.1))[0], **change)


def test_numbers_of_numpy_are_as_good_as_others():
    def run(whole, real, pair):
        task, model = ModularTask(whole(7), "n + m", real(0.5)), TwoLayerMLP(whole(7), whole(8))
        return Run(task, model, AdamW(real(0.5), betas=pair), whole(3), whole(4), batch_size=whole(5))

    plain, swept = run(int, float, (0.9, 0.98)), run(np.int64, np.float32, [0.9, 0.98])
    assert repr(swept) == repr(plain) and hash(swept) == hash(plain)


def test_lists_are_taken_for_tuples_and_a_schedule_has_whole_numbers():
    listed = Experiment("test/one", members(SGD(0.1)), measures=["weight_norm"])
    assert isinstance(listed.runs, tuple) and listed.hash == dataclasses.replace(listed, measures=("weight_norm",)).hash
    with pytest.raises(ValueError, match="every"):
        Schedule(every=-3)
