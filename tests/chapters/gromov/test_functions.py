"""Functions other than addition: what is read off weights comes out as known for weights made by hand."""

import numpy as np
import pytest
import xarray as xr

from grokbook.chapters.gromov import functions, theory
from grokbook.chapters.gromov.measures import in_another_guise
from grokbook.tasks import ModularTask

P = 31


def record(f, W_in, W_out):
    """One run that ended with these weights, of a network whose factor is 1."""
    weights = {"W_in": W_in, "W_out": 2 / len(W_in) * W_out}
    coords = {"f": f, "p": P, "seed": 0, "train_fraction": 0.5, "scaling": "standard"}
    return xr.Dataset(
        {
            name: (("run", "snapshot", f"{name}_row", f"{name}_column"), layer[None, None])
            for name, layer in weights.items()
        },
        {name: ("run", [value]) for name, value in coords.items()},
    )


def test_a_readout_with_one_root_serves_its_pairs_alone_and_the_sum_of_all_roots_every_pair():
    W_in, made = functions.readouts(2, P, 500, 0)
    total = np.add.outer(range(P), range(P)) % P
    labels = total**2 % P
    roots = [one[0] for one in theory.modular_roots(lambda n: n * n, P) if one]
    for name in functions.READOUTS[:3]:
        right = theory.network(W_in, made[name]).argmax(-1) == labels
        if name != "one root, else the answer itself":  # there other answers have waves of their own
            assert right[np.isin(total, roots)].all()
        assert right[~np.isin(total, roots)].mean() < 0.1
    assert theory.accuracy(W_in, made["all roots"], labels) == 1


def test_outputs_of_squares_and_others_come_out_for_weights_made_by_hand():
    W_in, made = functions.readouts(2, P, 2000, 0)
    by_hand = functions.squared_outputs(record(functions.SQUARED, W_in, made["all roots"]))
    assert by_hand.right == pytest.approx(1, abs=0.05) and by_hand.wrong < 0.05 and by_hand.idle == 0
    noisy = functions.squared_outputs(record(functions.SQUARED, W_in, made["one root, else random phases"]))
    assert noisy.right < 0.2  # one of the two lines is not there
    assert noisy.idle > 0.03 and noisy.line == pytest.approx(0.4, abs=0.05)  # as much as on the line of n - m


def test_random_weights_have_next_to_nothing_on_the_line_that_trained_ones_are_asked_for():
    generator = np.random.default_rng(0)
    random = generator.standard_normal((200, 2 * P)), generator.standard_normal((P, 200))
    assert functions.squared_outputs(record(functions.SQUARED, *random)).line < 0.05


def test_columns_of_n_and_minus_n_are_twins_in_a_sum_of_squares_only():
    squared = theory.cosine_weights(P, 300, f1=lambda n: n * n, f2=lambda n: n * n, generator=0)
    assert functions.twins(record(functions.SQUARES, *squared)) == [pytest.approx(1)]
    plain = theory.cosine_weights(P, 300, generator=0)
    assert abs(functions.twins(record(functions.SQUARES, *plain))[0]) < 0.2


def test_accuracy_without_zeros_leaves_out_what_logarithms_cannot_answer():
    weights = theory.product_weights(P, 300, generator=0)
    assert theory.accuracy(*weights, np.outer(range(P), range(P)) % P) < 0.97
    assert functions.without_zeros(record(functions.PRODUCT, *weights)) == [1]


def test_a_guise_is_a_pair_that_the_quadratic_form_does_not_tell_from_this_one():
    trained = np.zeros((P, P), bool)
    trained[3, 5] = trained[0, 0] = True
    found = in_another_guise(trained)
    pairs = list(zip(*np.nonzero(found), strict=True))
    assert pairs == [(0, 0), (5, 3), (P - 5, P - 3), (P - 3, P - 5)]
    assert {(n * n + m * m + n * m) % P for n, m in pairs[1:]} == {(9 + 25 + 15) % P}


def test_what_a_network_misses_is_counted_beside_the_pairs_without_a_guise():
    coords = {"f": functions.HARD, "p": P, "seed": 0, "train_fraction": 0.7}
    curve = xr.Dataset(
        {"test_accuracy": (("run", "step"), [[0.1, 0.75]])}, {name: ("run", [value]) for name, value in coords.items()}
    )
    found = functions.guises(curve)
    assert found.asked == P * P - ModularTask(P, functions.HARD, 0.7).in_train(0).sum()
    assert found.missed == np.rint(found.asked / 4) and found.without == np.rint((1 - found.share) * found.asked)
    assert found.share == pytest.approx(1 - 0.3**3, abs=0.03)
