import numpy as np
import pytest

from grokbook.tasks import ModularTask, modular_function


def test_table_lists_every_pair_once_with_its_answer():
    pairs, labels = ModularTask(5, "n + m").table()
    assert len({tuple(pair) for pair in pairs.tolist()}) == 25
    assert labels.tolist() == [(n + m) % 5 for n, m in pairs.tolist()]


@pytest.mark.parametrize(
    "expression, plain",
    [
        ("n*m", lambda n, m: n * m),
        ("(n + m)**2", lambda n, m: (n + m) ** 2),
        ("n**3 + n*m**2 + m", lambda n, m: n**3 + n * m**2 + m),
        ("3*n - 5*m + 7", lambda n, m: 3 * n - 5 * m + 7),
        ("-n**2", lambda n, m: -(n**2)),
        ("n**0", lambda n, m: 1),
    ],
)
@pytest.mark.parametrize("p", [2, 7, 12])
def test_modular_function_agrees_with_plain_integers(expression, plain, p):
    expected = [[plain(n, m) % p for m in range(p)] for n in range(p)]
    assert modular_function(expression, p).tolist() == expected


def test_modular_function_does_not_overflow_at_a_large_modulus():
    assert modular_function("n**64", 9973)[9972, 0] == pow(9972, 64, 9973)


@pytest.mark.parametrize(
    "expression", ["x + 1", "n / m", "n**m", "__import__('os')", "n +", "n if m else 1", "1.5*n", "True"]
)
def test_modular_function_refuses_what_is_no_polynomial(expression):
    with pytest.raises(ValueError, match="understood"):
        modular_function(expression, 7)


@pytest.mark.parametrize("expression", ["+".join(["n"] * 5000), 5, None])
def test_modular_function_refuses_what_cannot_be_read_in_one_line(expression):
    with pytest.raises(ValueError, match=r"^f = ") as refused:
        modular_function(expression, 7)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_split_has_the_asked_size_and_depends_on_the_seed_alone():
    task = ModularTask(11, "n + m", 0.4)
    assert task.in_train(3).sum() == task.train_size == round(0.4 * 121)
    assert (task.in_train(3) == ModularTask(11, "n*m", 0.4).in_train(3)).all()
    assert (task.in_train(3) != task.in_train(4)).any()


def test_a_larger_fraction_keeps_the_pairs_of_a_smaller_one():
    small, large = (ModularTask(11, "n + m", alpha).in_train(0) for alpha in (0.3, 0.6))
    assert np.all(large[small])


@pytest.mark.parametrize(
    "values, word",
    [({"p": 1}, "p = 1"), ({"train_fraction": 0.0}, "train_fraction"), ({"train_fraction": 1.0}, "train_fraction")],
)
def test_values_out_of_range_are_named(values, word):
    with pytest.raises(ValueError, match=word):
        ModularTask(**{"p": 5, **values})


def test_a_fraction_that_leaves_nothing_to_train_on_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        ModularTask(3, "n + m", 0.01)
