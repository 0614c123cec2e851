import itertools

import pytest

from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train import planning
from grokbook.train.experiment import Experiment, Run


def run(seed=0, steps=10, width=8, fraction=0.5):
    return Run(ModularTask(7, "n + m", fraction), TwoLayerMLP(7, width), SGD(0.1), steps, seed)


def test_the_counted_operations_are_those_of_the_formula():
    """Forward, and twice as much backward but for the first layer, which looks up and adds: 3 products of 2 n N p."""
    one = run()
    assert planning.count_now(one) == 3 * 2 * one.task.train_size * 8 * 7


def test_a_shape_is_what_the_cost_depends_on():
    assert planning.shape(run()) == planning.shape(run(seed=5, steps=99))
    assert planning.shape(run()) != planning.shape(run(width=9))


def test_committed_counts_are_those_of_the_code():
    """Counting all takes a minute; those that are quick are counted again, for each kind of model."""
    kinds, known = {}, set(planning.counted())
    for experiment in planning.experiments().values():
        for one in experiment.runs:
            if planning.stated(one):
                continue
            assert planning.shape(one) in known, f"{experiment.name}: python -m benchmarks flops --out benchmarks"
            kind = type(one.model).__name__, one.loss
            if kind not in kinds or planning.flops(one) < planning.flops(kinds[kind]):
                kinds[kind] = one
    assert len(kinds) > 4
    for kind, one in kinds.items():
        assert planning.count_now(one) == planning.counted()[planning.shape(one)], kind


def test_the_queue_is_no_shorter_than_its_longest_shard_nor_than_its_work():
    assert planning.makespan([5, 1, 1, 1], 2) == 5 and planning.makespan([1] * 8, 4) == 2
    assert planning.makespan([3, 3, 2, 2, 2], 2) == 7  # longest first; 6 would be possible
    assert planning.makespan([4.0], 1000) == 4


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_queue_is_within_four_thirds_of_the_best_plan(workers):
    """Graham's bound for longest-first, against every assignment of six shards."""
    seconds = [7, 6, 5, 4, 3, 2]
    best = min(
        max(sum(one for one, at in zip(seconds, places, strict=True) if at == worker) for worker in range(workers))
        for places in itertools.product(range(workers), repeat=len(seconds))
    )
    assert best <= planning.makespan(seconds, workers) <= (4 / 3 - 1 / (3 * workers)) * best


def test_a_stack_is_cut_so_that_every_worker_has_some_of_it():
    whole = Experiment("test/plan", tuple(run(seed) for seed in range(6)))
    work = 10 * planning.flops(run())
    machine = planning.Machine("GPU", rate=work, step_seconds=0.25, block=None)
    assert planning.shard_seconds([whole], machine, 1) == [6]
    assert planning.shard_seconds([whole], machine, 4) == [2.5, 2.5, 2.5]  # two each: the launches of ten steps
    assert planning.shard_seconds([whole], planning.Machine("core", work), 4) == [1] * 6
