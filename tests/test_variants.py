"""The variants of Power et al. (2022), A.1.2, beside plain loops around ``torch.optim``."""

import dataclasses

import pytest
import torch

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import AdamW, Group, WarmAdamW, stepper
from grokbook.streams import Stream, keys
from grokbook.tasks import ModularTask
from grokbook.train import engine
from grokbook.train.experiment import Experiment, Run, Schedule
from tests.textbook_mlp import PlainMLP

SIZES = {"W": (5, 3), "b": (4,)}
SEEDS = (3, 8)


def start():
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(len(SEEDS), *size, generator=generator, dtype=torch.float64) for name, size in SIZES.items()
    }


def noise(seed, purpose, count, shape):
    """The numbers of one member; parameters lie side by side, each from a multiple of 16 on."""
    drawn = Stream(torch.from_numpy(keys([seed], purpose)), count).normal((32,), torch.zeros(1, dtype=torch.float64))
    begin = 16 * list(SIZES.values()).index(shape)
    return drawn[0, begin : begin + torch.Size(shape).numel()].view(shape)


RECIPES = {
    "decay to the start": AdamW(0.01, 0.7, decay_to_start=True),
    "update noise": AdamW(0.01, 0.7, update_noise=0.5),
    "both, warming up, in groups": WarmAdamW(
        0.01, 0.7, groups=(Group("b", 0.03, 0.2),), warmup=4, decay_to_start=True, update_noise=0.5
    ),
}


@pytest.mark.parametrize("on_device", [False, True], ids=["fused", "written out"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_an_update_is_that_of_a_plain_loop(recipe, on_device):
    first = start()
    ours = stepper([recipe] * 2, first, SEEDS)
    plain = [{name: torch.nn.Parameter(first[name][member].clone()) for name in SIZES} for member in range(2)]
    adam = [torch.optim.Adam(one.values(), 1.0, (0.9, 0.999), 1e-8) for one in plain]
    for count in range(1, 9):
        gradients = {name: torch.randn(2, *size, dtype=torch.float64) for name, size in SIZES.items()}
        ours.step(gradients, torch.tensor(count, dtype=torch.float64) if on_device else count)
        for member, of in enumerate(plain):
            before = {name: value.detach().clone() for name, value in of.items()}
            for name, value in of.items():
                value.grad = gradients[name][member].clone()
            adam[member].step()  # of learning rate 1: what it adds is the direction
            for name, value in of.items():
                of_b = name == "b" and recipe.groups
                lr, decay = (0.03, 0.2) if of_b else (0.01, 0.7)
                lr *= min((count - 1) / 4, 1) if isinstance(recipe, WarmAdamW) else 1
                direction = value.detach() - before[name]
                if recipe.update_noise:
                    direction -= recipe.update_noise * noise(SEEDS[member], "update_noise", count, SIZES[name])
                goal = first[name][member] if recipe.decay_to_start else 0.0
                value.data = before[name] + lr * decay * (goal - before[name]) + lr * direction
    for name in SIZES:
        for member in range(2):
            torch.testing.assert_close(ours.params[name][member], plain[member][name].detach(), rtol=1e-9, atol=1e-9)


TASK, MODEL = ModularTask(11, "n + m", 0.6), TwoLayerMLP(11, 24, "standard")
VARIANT = AdamW(0.01, 0.7, decay_to_start=True, update_noise=0.1, weight_noise=0.02)


@pytest.mark.parametrize("activation", ["quadratic", "gelu"], ids=["hand", "autograd"])
def test_the_gradient_is_taken_at_weights_with_noise_and_the_weights_themselves_are_updated(activation):
    run = Run(TASK, dataclasses.replace(MODEL, activation=activation), AdamW(0.01, weight_noise=0.05), 20, 5)
    state = engine.Training.start(Experiment("test/one", (run,)), torch.device("cpu"), torch.float64).state
    drawn = {name: value[0].clone() for name, value in state.params.items()}
    net = PlainMLP(run.model, drawn)
    optimizer = torch.optim.AdamW(net.parameters(), 0.01, weight_decay=0.01)
    rows = TASK.in_train(run.seed)
    pairs, labels = (torch.from_numpy(part[rows]) for part in TASK.table())
    wanted = torch.nn.functional.one_hot(labels, 11).double()
    for count in range(1, 21):
        state.update()
        table = torch.zeros(1, dtype=torch.float64)
        drawn = Stream(torch.from_numpy(keys([5], "weight_noise")), count).normal((800,), table)[0]
        clean = [value.detach().clone() for value in (net.W_in, net.W_out)]
        for value, begin in ((net.W_in, 0), (net.W_out, 528)):
            value.data += 0.05 * drawn[begin : begin + value.numel()].view_as(value)
        optimizer.zero_grad()
        (net(pairs) - wanted).square().mean().backward()
        for value, before in zip((net.W_in, net.W_out), clean, strict=True):
            value.data = before
        optimizer.step()
    for name in ("W_in", "W_out"):
        torch.testing.assert_close(state.params[name][0], getattr(net, name).detach(), rtol=1e-8, atol=1e-10)


def whole(recipe, seeds=(0, 1, 2)):
    runs = tuple(Run(TASK, MODEL, recipe, 30, seed) for seed in seeds)
    return Experiment("test/one", runs, Schedule(log=5), snapshots=(-1,), keep=("W_in",))


def test_noise_is_a_members_own_wherever_it_stands_and_after_a_checkpoint(tmp_path):
    together = engine.train(whole(VARIANT))
    assert torch.equal(*(torch.from_numpy(engine.train(whole(VARIANT, s)).W_in.values[-1]) for s in ((0, 1), (2, 1))))
    training = engine.Training.start(whole(VARIANT), torch.device("cpu"), torch.float32)
    for _ in range(11):
        training.state.update()
    training.save(tmp_path / "part", 0.0)
    resumed = engine.train(whole(VARIANT), checkpoint=tmp_path / "part")
    assert torch.equal(torch.from_numpy(resumed.W_in.values), torch.from_numpy(together.W_in.values))


def test_settings_that_are_not_set_are_no_part_of_a_recipe_and_set_ones_make_a_stack_of_their_own():
    assert not {"decay_to_start", "update_noise", "weight_noise"} & set(
        whole(AdamW(0.1)).recipe["runs"][0]["optimizer"]
    )
    assert whole(VARIANT).recipe["runs"][0]["optimizer"]["weight_noise"] == 0.02
    assert (
        "weight_noise" in engine.train(whole(VARIANT)).coords
        and "weight_noise" not in engine.train(whole(AdamW(0.1))).coords
    )
    mixed = dataclasses.replace(whole(VARIANT), runs=(*whole(VARIANT).runs, *whole(AdamW(0.1)).runs))
    assert list(mixed.shards()) == [[0, 1, 2], [3, 4, 5]]
