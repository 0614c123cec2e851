"""The training side of the chapter: the split with a hole, whole trainings against plain torch, what is logged."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from grokbook import measures
from grokbook.chapters.gu import theory
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import WindowedSchedule
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.optim import AdamW, WarmAdamW, stepper
from grokbook.train import engine, monitor
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.state import State
from tests.models.test_pair_models import twin, twin_names
from tests.textbook_mlp import train_plainly

P = 11
BASE = WarmAdamW(1e-2, 1.0, (0.9, 0.98))
monitor.of_chapter("gu/test")
MEASURED = ("med", "total_norm", "accuracy_by_place")


def experiment(*runs: Run, **options) -> Experiment:
    return Experiment("gu/test", runs, options.pop("schedule", Schedule(log=4)), MEASURED, **options)


# --- the split ----------------------------------------------------------------------------------------------


def test_masks_are_those_of_the_theory_and_a_split_seed_fixes_them():
    task = HoledTask(23, "n + m", 0.4, "square", 9)
    expected = theory.draw_training_mask(23, 0.4, holed=theory.hole("square", 23, 9), generator=5)
    np.testing.assert_array_equal(task.in_train(5).reshape(23, 23), expected)
    assert task.train_size == expected.sum()
    fixed = dataclasses.replace(task, split_seed=5)
    for seed in (0, 5):
        np.testing.assert_array_equal(fixed.in_train(seed), task.in_train(5))


@pytest.mark.parametrize(
    "arguments, message",
    [({"size": 96}, "size must be an integer from 0 to 95, got size=96"), ({"split": "paper"}, "split must be one of"),
     ({"train_fraction": 1.0}, "train_fraction = 1.0"), ({"p": 1}, "p = 1")],
)  # fmt: skip
def test_impossible_splits_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        HoledTask(**{"p": 97, "hole": "square"} | arguments)


# --- whole trainings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [PairTransformer(P, 8), PairTransformer(P, 8, layers=2, offset=4), PairTransformer(P, 8, positions=False),
     EmbeddedMLP(P, 8, 16)],
    ids=repr,
)  # fmt: skip
def test_a_training_with_warm_up_follows_plain_torch(model):
    run = Run(HoledTask(P, "n + m", 0.5), model, BASE, 25, 1, "cross_entropy")
    state = State.start([run], torch.device("cpu"), torch.float64)
    start = {name: value.clone() for name, value in state.params.items()}
    net = twin(model, start, 0)
    train_plainly(net, run, torch.from_numpy(run.task.table()[0]), 25)
    for step in range(25):
        state.update()
        if step == 0:  # the first update has a learning rate of zero
            assert all(torch.equal(value, start[name]) for name, value in state.params.items())
    ours = twin_names(model, state.params, 0)
    for name, parameter in net.named_parameters():
        # Adam divides by the square root of what may nearly vanish, which magnifies rounding.
        torch.testing.assert_close(ours[name], parameter.detach(), rtol=0, atol=1e-9)
    assert (ours["embed.weight"] - start["W_E"][0]).abs().max() > 0.05


@pytest.mark.parametrize(
    "warmup, count, share", [(10, 1, 0), (10, 2, 0.1), (10, 11, 1), (10, 99, 1), (1, 1, 0), (1, 2, 1), (0, 1, 1)]
)
def test_both_forms_of_the_update_warm_up(warmup, count, share):
    params = {"W": torch.ones(1, 2, 2, dtype=torch.float64)}
    gradient = {"W": torch.full((1, 2, 2), 0.5, dtype=torch.float64)}
    for number in (count, torch.tensor(float(count), dtype=torch.float64)):  # on the host, and as a graph has it
        one, two = (stepper([made], params) for made in (WarmAdamW(0.1, 0.3, warmup=warmup), AdamW(0.1 * share, 0.3)))
        for each in (one, two):
            each.step(gradient, number)
        torch.testing.assert_close(one.params["W"], two.params["W"], rtol=1e-13, atol=0)


# --- what is logged -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 3, P])
def test_med_and_its_controls_are_those_of_the_embedding(offset):
    run = Run(HoledTask(P, "n + m", 0.5), PairTransformer(P, 8, offset=offset), BASE, 30, 0, "cross_entropy")
    record = engine.train(experiment(run, snapshots=(-1,), keep=("W_E", "W_U"))).isel(run=0, step=-1, snapshot=0)
    blocks = measures.embedding_blocks(record.W_E.values, P, offset)
    for form in ("M1", "M2", "M3", "M4", "M5", "M6"):
        assert float(record[f"med_{form}"]) == pytest.approx(float(theory.MED_FORMS[form](*blocks)), rel=1e-6)
    norms = [measures.embedding_norm(block) for block in blocks]
    over_norm = [measures.main_embedding_difference(block) / norm for block, norm in zip(blocks, norms, strict=True)]
    permuted = [measures.permuted_embedding_difference(block) for block in blocks]
    controls = {"embedding_norm": norms, "med_over_norm": over_norm, "med_permuted": permuted}
    for name, of_blocks in controls.items():
        assert float(record[name]) == pytest.approx(np.mean(of_blocks), rel=1e-6)
    step = np.mean([measures.main_embedding_difference(block, step=5) for block in blocks])
    assert float(record.med_step_5) == pytest.approx(step, rel=1e-6)


def test_the_total_norm_is_that_of_all_numbers_together():
    run = Run(HoledTask(P, "n + m", 0.5), EmbeddedMLP(P, 8, 16), BASE, 5, 0, "cross_entropy")
    state = State.start([run], torch.device("cpu"), torch.float64)
    flat = torch.cat([value[0].flatten() for value in state.params.values()])
    assert state.measure(["total_norm"])["total_norm"][0] == pytest.approx(flat.norm().item(), rel=1e-12)


@pytest.mark.parametrize("hole, size", [("none", 0), ("square", 6), ("strip", 4)])
def test_accuracies_by_place_count_test_pairs_one_by_one(hole, size):
    task = HoledTask(P, "n + m", 0.3, hole, size)
    run = Run(task, PairTransformer(P, 16), BASE, 150, 2, "cross_entropy")
    record = engine.train(experiment(run, snapshots=(-1,), keep=("correct",))).isel(run=0, step=-1, snapshot=0)
    correct, trained = record.correct.values, task.in_train(2).reshape(P, P)
    counts: dict[str, list[int]] = {}
    for i in range(P):
        for j in range(P):
            if trained[i, j]:
                continue
            inside = (hole == "square" and i <= size and j <= size) or (hole == "strip" and i <= size)
            mirrored = bool(trained[j, i])
            right = int(correct[i, j])
            for name, holds in (
                ("inside", inside), ("outside", not inside), ("mirrored", mirrored), ("unmirrored", not mirrored),
                ("inside_mirrored", inside and mirrored), ("inside_unmirrored", inside and not mirrored),
            ):  # fmt: skip
                if holds:
                    counts.setdefault(name, []).append(right)
    assert 0.02 < np.mean(correct[~trained]) < 0.98
    for name in ("inside", "outside", "mirrored", "unmirrored", "inside_mirrored", "inside_unmirrored"):
        expected = np.mean(counts[name]) if name in counts else np.nan
        assert float(record[f"accuracy_{name}"]) == pytest.approx(expected, rel=1e-6, nan_ok=True)
    assert float(record.test_accuracy) == pytest.approx(correct[~trained].mean(), rel=1e-6)


def test_holes_of_all_sizes_train_as_one_stack_and_each_is_measured_in_its_own():
    model = PairTransformer(P, 16)
    tasks = [HoledTask(P, "n + m", 0.4, hole, size) for hole, size in (("square", 5), ("strip", 7), ("none", 0))]
    runs = experiment(*(Run(task, model, BASE, 6, seed=2) for task in tasks))
    whole = dataclasses.replace(runs, precision="double")
    assert list(whole.shards()) == [[0, 1, 2]]
    together = engine.train(whole)
    for i in range(len(tasks)):
        alone = engine.train(whole.select([i]))
        for name in alone.data_vars:
            np.testing.assert_allclose(together[name].values[i], alone[name].values[0], rtol=1e-8, err_msg=str(name))


def test_relabelled_residues_are_the_same_training_with_another_med():
    """i -> a i on operands and answers leaves addition as it is: an exact symmetry that MED does not have."""
    a, inverse = 3, pow(3, -1, P)
    base = Run(HoledTask(P, "n + m", 0.5), PairTransformer(P, 8), BASE, 40, 0, "cross_entropy")
    one, other = (State.start([base], torch.device("cpu"), torch.float64) for _ in range(2))
    order = torch.arange(P) * inverse % P  # the token t now stands for the residue t / a
    with torch.no_grad():
        other.params["W_E"][:, :P] = other.params["W_E"][:, order]
        other.params["W_U"].copy_(other.params["W_U"][..., order])
    other.data.whole.inputs.mul_(a).remainder_(P)
    other.data.whole.labels.mul_(a).remainder_(P)
    other.data.in_train.copy_(other.data.in_train.view(1, P, P)[:, order][..., order].reshape(1, -1))
    for state in (one, other):
        for _ in range(40):
            state.update()
    before, after = (state.measure(["med"]) for state in (one, other))
    for name in ("train_loss", "test_loss", "test_accuracy", "embedding_norm"):
        assert after[name] == pytest.approx(before[name], rel=1e-9)
    embedding = one.params["W_E"][0, :P].detach().numpy()
    expected = measures.main_embedding_difference(embedding, step=inverse)
    assert after["med_M1"][0] == pytest.approx(float(expected), rel=1e-9)
    assert abs(after["med_M1"][0] / before["med_M1"][0] - 1) > 0.005


def test_windows_hold_consecutive_steps():
    schedule = WindowedSchedule(log=0, every=50, windows=4, length=20)
    steps = schedule.steps(1000)
    assert {0, 50, 950, 1000} <= set(steps.tolist())
    assert [end for end in range(20, 1001) if np.isin(np.arange(end - 20, end + 1), steps).all()] == [
        250,
        500,
        750,
        1000,
    ]
    assert WindowedSchedule(log=0, windows=2, length=20).steps(7).tolist() == list(range(8))
