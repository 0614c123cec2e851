from grokbook.chapters.liu.pictures import ImageTask
from grokbook.models.dense import DenseNet
from grokbook.optim import SGD
from grokbook.train import planning
from grokbook.train.experiment import Run
from tests.test_runner import tiny


def run(seed=0, steps=10, width=8):
    return tiny(steps=steps, seeds=seed + 1, width=width).runs[seed]


def test_the_counted_operations_are_those_of_the_formula():
    """Forward, and twice as much backward but for the first layer, which looks up and adds: 3 products of 2 n N p."""
    one = run()
    assert planning.count_now(one) == 3 * 2 * one.task.train_size * 8 * 7


def test_what_a_perceptron_says_of_itself_is_what_is_counted():
    one = Run(ImageTask(30), DenseNet((64, 20, 30, 10)), SGD(0.1), 1, 0)
    assert planning.flops(one) == planning.count_now(one)


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
