import math
from functools import partial

import numpy as np
import pytest
import torch

from grokbook.chapters.liu.measures import MAP_SIDE, map_points
from grokbook.models.dense import DenseNet, draw_layers, tanh_
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask, GroupTask
from grokbook.train import data, engine
from grokbook.train.experiment import Experiment, Run, Schedule, Watch
from grokbook.train.monitor import MEASURES
from tests.permutations import permutation_matrices
from tests.textbook_mlp import plain_loss
from tests.textbook_toy import PlainNet, plain_training

ADD = AdditionTask(6, 12, 5)
CASES = {
    "regression": (ADD, AdditionDecoder(6, hidden=(7, 9), outputs=5), "mse"),
    "classification": (AdditionTask(6, 12, 0), AdditionDecoder(6, hidden=(7, 9), outputs=11), "cross_entropy"),
    "deep relu, plane, modular, mean": (
        AdditionTask(6, 20, 0, modular=True, ordered=True),
        AdditionDecoder(6, 2, (8, 8, 8), 6, "relu", 0.5, 0.5, normal=1.0),
        "mse",
    ),
    "published order of draws": (
        AdditionTask(6, 12, 5, recipe="diagram"),
        AdditionDecoder(6, hidden=(7, 9), outputs=5, recipe="diagram"),
        "mse",
    ),
    "group": (GroupTask("S3", 20, 4), ProductDecoder(6, 3, (7, 9), 4), "mse"),
    "group, published order of draws": (
        GroupTask("S3", 20, 4, recipe="diagram"),
        ProductDecoder(6, 3, (7, 9), 4, init_scale=1.0, shrinkage=0.0, recipe="diagram"),
        "mse",
    ),
}
OPTIMIZER = AdamW(0.01, 1.5, eps=1e-7, groups=(Group("W_E", 0.02, 0.25),))


def two_members(case):
    task, model, loss = CASES[case]
    return [Run(task, model, OPTIMIZER, 30, seed, loss) for seed in (3, 4)]


def start(runs, dtype=torch.float64):
    return engine.Training.start(Experiment("test/toy", tuple(runs), Schedule(log=2)), torch.device("cpu"), dtype).state


@pytest.mark.parametrize("case", CASES)
def test_outputs_losses_and_gradients_agree_with_the_textbook_model(case):
    runs = two_members(case)
    state = start(runs)
    inputs, labels, weights, wanted = state.batch()
    outputs = runs[0].model(state.params, inputs)
    losses = (data.sample_losses(outputs, labels, runs[0].loss, wanted) * weights).sum(-1)
    gradients = state.gradients()
    for i, run in enumerate(runs):
        net = PlainNet(run.model, {name: value[i] for name, value in state.params.items()})
        rows = torch.from_numpy(run.task.samples[run.task.in_train(run.seed)])
        torch.testing.assert_close(outputs[i], net(rows).detach(), rtol=1e-12, atol=1e-12)
        targets = None if state.data.targets is None else state.data.targets[i]
        loss = plain_loss(net(rows), labels[i], run.loss, targets)
        torch.testing.assert_close(losses[i], loss.detach(), rtol=1e-12, atol=1e-12)
        (loss + net.penalty()).backward()
        for name, parameter in net.named().items():
            torch.testing.assert_close(gradients[name][i], parameter.grad, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_thirty_steps_agree_with_two_optimizers_of_torch(case):
    runs = two_members(case)
    state = start(runs)
    for _ in range(30):
        state.update()
    for i, run in enumerate(runs):
        for name, value in plain_training(run, 30).items():
            torch.testing.assert_close(state.params[name][i], value, rtol=1e-9, atol=1e-11)


def test_minibatches_agree_with_the_plain_loop():
    run = Run(ADD, CASES["regression"][1], OPTIMIZER, 25, 3, batch_size=5)
    state = start([run])
    for _ in range(25):
        state.update()
    for name, value in plain_training(run, 25).items():
        torch.testing.assert_close(state.params[name][0], value, rtol=1e-9, atol=1e-11)


def test_training_sets_of_different_size_train_side_by_side():
    model = CASES["regression"][1]
    runs = [Run(AdditionTask(6, size, 5), model, OPTIMIZER, 20, 3) for size in (4, 11, 20)]
    assert list(Experiment("test/toy", tuple(runs)).shards()) == [[0, 1, 2]]
    state = start(runs)
    for _ in range(20):
        state.update()
    for i, run in enumerate(runs):
        for name, value in plain_training(run, 20).items():
            torch.testing.assert_close(state.params[name][i], value, rtol=1e-9, atol=1e-11)


def test_the_image_net_is_the_textbook_one_scaled():
    model, plain = DenseNet((5, 8, 8, 3), init_scale=8.0), DenseNet((5, 8, 8, 3))
    one, other = (net.init(torch.Generator().manual_seed(0)) for net in (model, plain))
    params = {name: torch.stack([value, 2 * value]).double() for name, value in one.items()}
    for name, value in one.items():
        torch.testing.assert_close(value, 8 * other[name])
    x = torch.randn(2, 9, 5, dtype=torch.float64)
    labels = torch.randint(3, (2, 9))
    weights = torch.full((2, 9), 1 / 9, dtype=torch.float64)
    of_loss = partial(data.output_gradients, labels=labels, weights=weights, loss="mse", wanted=None)
    gradients = model.gradients(params, x, of_loss)
    for i in range(2):
        net = PlainNet(model, {name: value[i] for name, value in params.items()})
        plain_loss(net(x[i]), labels[i], "mse").backward()
        for name, parameter in net.named().items():
            torch.testing.assert_close(gradients[name][i], parameter.grad, rtol=1e-11, atol=1e-12)


def test_layers_are_drawn_as_torch_draws_them():
    torch.manual_seed(5)
    theirs = [torch.nn.Linear(3, 7), torch.nn.Linear(7, 2)]
    ours = draw_layers((3, 7, 2), torch.Generator().manual_seed(5))
    for number, linear in enumerate(theirs):
        assert torch.equal(ours[f"W_{number}"], linear.weight.data)
        assert torch.equal(ours[f"b_{number}"], linear.bias.data)


def test_the_prediction_is_the_nearest_target():
    generator = torch.Generator().manual_seed(0)
    outputs, targets = (torch.randn(2, n, 4, generator=generator, dtype=torch.float64) for n in (50, 7))
    nearest = torch.cdist(outputs, targets).argmin(-1)
    assert torch.equal(data.predictions(outputs, targets), nearest)
    assert len(set(nearest.flatten().tolist())) == 7


def published(kind):
    """The run behind a published step count."""
    both = (Group("W_E", 1e-3, 0.0),)
    match kind:
        case "trainer":
            return Run(AdditionTask(10, 45), AdditionDecoder(10), AdamW(1e-4, 0.0, groups=both), 2000, 58)
        case "diagram, regression":
            task, model = AdditionTask(10, 45, recipe="diagram"), AdditionDecoder(10, recipe="diagram")
            return Run(task, model, AdamW(1e-4, 0.0, groups=both), 2100, 58)
        case "diagram, classification":
            task = AdditionTask(10, 45, 0, recipe="diagram")
            model = AdditionDecoder(10, outputs=19, recipe="diagram")
            return Run(task, model, AdamW(1e-4, 0.0, eps=19e-8, groups=both), 1350, 6, "cross_entropy")
        case "diagram, group":
            task = GroupTask("S3", 24, recipe="diagram")
            model = ProductDecoder(6, init_scale=1.0, shrinkage=0.0, recipe="diagram")
            return Run(task, model, AdamW(1e-4, 0.0, groups=both), 450, 0)


# Published counts start from 0 and look after the update, so that theirs is one less than the number of updates. In
# the first, validation was looked at before the update.
ANCHORS = {
    "trainer": (1130 + 1, 1530, 800 + 1),
    "diagram, regression": (1650 + 1, 2076 + 1),
    "diagram, classification": (1196 + 1, 1307 + 1),
    "diagram, group": (214 + 1, 401 + 1),
}
HELD_OUT = {"trainer": "02 44 04 46 55 58 59 15 17 24", "diagram, regression": "44 04 07 11 57 16 88 25 33 36"}


@pytest.mark.parametrize("kind", ANCHORS)
def test_published_step_counts_are_met_exactly(kind):
    expected = ANCHORS[kind]  # of both accuracies, and of structure where it is published
    thresholds = (("train_accuracy", 0.9), ("test_accuracy", 0.9), ("rqi", 0.95))[: len(expected)]
    watch, measures = Watch(thresholds, every=1), ("rqi",) if len(expected) == 3 else ()
    record = engine.train(Experiment("test/anchor", (published(kind),), Schedule(log=2), measures, watch=watch))
    assert tuple(float(record[f"reached_{name}"][0]) for name, _ in thresholds) == expected
    if kind == "trainer":
        assert float(record.train_loss[0, 0]) == pytest.approx(0.981266, abs=5e-7)


@pytest.mark.parametrize("kind", HELD_OUT)
def test_published_splits_are_drawn(kind):
    run = published(kind)
    samples = run.task.samples[~run.task.in_train(run.seed)]
    assert sorted(f"{i}{j}" for i, j in samples) == sorted(HELD_OUT[kind].split())


def test_an_explicit_training_set_is_what_is_trained_on():
    task = AdditionTask(4, 2, pairs=((2, 1), (0, 3), (1, 2)))
    assert task.train_pairs(7).tolist() == [[0, 3], [1, 2]]


def test_a_sample_enters_as_counts_and_its_label_is_the_sum():
    inputs, labels = AdditionTask(4, 3).table()
    pairs = AdditionTask(4, 3).samples
    assert len(pairs) == 10 and (pairs[:, 0] <= pairs[:, 1]).all()
    embeddings = np.array([1.0, 20.0, 300.0, 4000.0])
    assert (inputs @ embeddings).tolist() == [embeddings[i] + embeddings[j] for i, j in pairs]
    assert labels.tolist() == [i + j for i, j in pairs.tolist()]
    assert set(AdditionTask(4, 3, modular=True).table()[1].tolist()) == {0, 1, 2, 3}
    assert len(AdditionTask(4, 3, ordered=True).samples) == 16


def test_the_map_holds_what_two_symbols_with_that_middle_are_answered():
    task, model, loss = CASES["deep relu, plane, modular, mean"]
    state = start([Run(task, model, OPTIMIZER, 30, 3, loss)])
    seen = state.measured()
    answers = MEASURES["decoder_map"](seen)["decoder_map"][0]
    points = map_points(seen.params["W_E"])[0].reshape(MAP_SIDE, MAP_SIDE, 2)
    assert answers.shape == (MAP_SIDE, MAP_SIDE)
    assert (points[0, 0] < points[-1, -1]).all() and (points[0, 0, 1] == points[0, -1, 1]).all()
    for row, column in ((0, 0), (40, 13), (79, 79)):
        pair = torch.from_numpy(points[row, column])[None, None]  # both symbols at the point: it is halfway
        h = model.input_scale * 2 * pair
        for layer in range(len(model.sizes) - 1):
            h = h @ state.params[f"W_{layer}"].mT + state.params[f"b_{layer}"][:, None]
            h = h.relu() if layer < len(model.sizes) - 2 else h
        assert int(h.argmax()) == answers[row, column]


def test_what_is_measured_is_read_off_the_embeddings():
    line = torch.arange(6.0)[None, :, None].double() * torch.tensor([1.0, -3.0])[:, None, None]
    state = start(two_members("regression"))
    state.params["W_E"].copy_(line)
    assert MEASURES["rqi"](state.measured())["rqi"].tolist() == [1.0, 1.0]
    group = start(two_members("group"))
    group.params["W_E"].copy_(torch.from_numpy(permutation_matrices(3)))
    assert MEASURES["s3_rqi"](group.measured())["s3_rqi"].tolist() == [1.0, 1.0]


def test_tanh_of_a_number_does_not_depend_on_how_many_there_are():
    line = torch.linspace(-4, 4, 999)
    assert all(torch.equal(tanh_(line[:n].clone()), tanh_(line.clone())[:n]) for n in range(1, 130))


def test_tanh_is_off_by_less_than_2e_7_everywhere():
    near, far = torch.logspace(-30, 30, 200_001), torch.linspace(0, 12, 1_200_001)
    h = torch.cat([near, far, torch.tensor([math.inf])])
    for line in (h, -h):
        assert (tanh_(line.clone()).double() - line.double().tanh()).abs().max() < 2e-7
    assert tanh_(torch.tensor([math.nan])).isnan().all()
