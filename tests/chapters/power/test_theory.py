"""Theory of the Power chapter against slow, independent versions and limits known by hand."""

import itertools

import numpy as np
import pytest
import torch

from grokbook.chapters.power.theory.blanks import groups, puzzle, tables
from grokbook.chapters.power.theory.cosets import coset_contrast, coset_partitions
from grokbook.chapters.power.theory.operations import MODULAR, OF_GROUPS, operation, partner_share, partners, train_size
from grokbook.chapters.power.theory.sharpness import random_basis, released_sharpness, sharpness
from grokbook.chapters.power.theory.times import fit_times
from grokbook.measures.groups import characters, parity, representation_shares

PLAIN = {
    "x+y": lambda x, y, p: x + y,
    "x-y": lambda x, y, p: x - y,
    "x/y": lambda x, y, p: next(z for z in range(p) if z * y % p == x),
    "x/y if y odd, else x-y": lambda x, y, p: PLAIN["x/y" if y % 2 else "x-y"](x, y, p),
    "x^2+y^2": lambda x, y, p: x * x + y * y,
    "x^2+xy+y^2": lambda x, y, p: x * x + x * y + y * y,
    "x^2+xy+y^2+x": lambda x, y, p: x * x + x * y + y * y + x,
    "x^3+xy": lambda x, y, p: x * x * x + x * y,
    "x^3+xy^2+y": lambda x, y, p: x * x * x + x * y * y + y,
    "x*y": lambda x, y, p: x * y,
}
S5 = list(itertools.permutations(range(5)))


@pytest.mark.parametrize("name", MODULAR)
def test_a_modular_table_agrees_with_plain_integers(name):
    p = 7
    expected = [
        ([x, y], PLAIN[name](x, y, p) % p) for x in range(p) for y in range(p) if not (name == "x/y" and y == 0)
    ]
    inputs, labels = operation(name, p)
    assert list(zip(inputs.tolist(), labels.tolist(), strict=True)) == expected


def _then(*maps):
    """Permutations one after the other, the first given first."""
    return tuple(_apply(maps, i) for i in range(5))


def _apply(maps, i):
    for one in maps:
        i = one[i]
    return i


def _back(permutation):
    return tuple(permutation.index(i) for i in range(5))


@pytest.mark.parametrize("name", OF_GROUPS)
def test_products_of_permutations_apply_the_left_one_first(name):
    inputs, labels = operation(name)
    assert inputs.shape == (14_400, 2) and inputs[121].tolist() == [1, 1]
    for row in range(0, 14_400, 97):
        x, y = (S5[k] for k in inputs[row])
        chain = {"x.y": [x, y], "x.y.x^-1": [x, y, _back(x)], "x.y.x": [x, y, x]}[name]
        assert S5[labels[row]] == _then(*chain)


def test_division_modulo_97_is_subtraction_modulo_96_under_a_primitive_root():
    power = np.array([pow(5, k, 97) for k in range(96)])
    logarithm = np.argsort(power)  # of 1 .. 96
    (x, y), quotient = operation("x/y")[0].T, operation("x/y")[1]
    kept = x > 0
    difference = (logarithm[x[kept] - 1] - logarithm[y[kept] - 1]) % 96
    assert (logarithm[quotient[kept] - 1] == difference).all()


@pytest.mark.parametrize(
    "name, p, word", [("x/y", 91, "prime"), ("x/y if y odd, else x-y", 4, "prime"), ("x+y", 1, "p")]
)
def test_a_modulus_that_an_operation_cannot_have_is_refused(name, p, word):
    with pytest.raises(ValueError, match=word):
        operation(name, p)


@pytest.mark.parametrize("name, size", [("x^2+y^2", 8), ("x^2+xy+y^2", 12), ("x*y", 4), ("x^3+xy^2+y", 1)])
def test_symmetries_are_the_whole_number_ones_of_the_form(name, size):
    table = partners(name, 13, group="all")
    labels = operation(name, 13)[1]
    assert (table >= 0).sum(1).max() == size - 1
    for row, others in enumerate(table):
        others = others[others >= 0].tolist()
        assert row not in others and len(set(others)) == len(others)
        assert all(labels[other] == labels[row] for other in others)


@pytest.mark.parametrize(
    "name, group", [("x+y", "mirror"), ("x^2+y^2", "all"), ("x-y", "mirror"), ("x^2+xy+y^2", "all")]
)
def test_partner_share_is_the_mean_over_splits(name, group):
    table = partners(name, 11, group=group)
    rows, generator, shares = len(table), np.random.default_rng(0), []
    trained_rows = train_size(name, rows, 0.2)
    for _ in range(400):
        trained = np.zeros(rows + 1, bool)  # the last for "no partner"
        trained[generator.permutation(rows)[:trained_rows]] = True
        shares.append(trained[table][~trained[:-1]].any(1).mean())
    assert partner_share(name, 11, 0.2, group=group) == pytest.approx(np.mean(shares), abs=0.006)


def test_the_mirror_of_a_commutative_operation_is_trained_on_as_often_as_any_row():
    assert partner_share("x+y", 97, 0.5) == pytest.approx(96 / 97 * round(0.5 * 9409) / 9408)
    assert partner_share("x-y", 97, 0.5) == 0


@pytest.mark.parametrize("fraction", [0, 1, 1e-6, 1 - 1e-6, float("nan")])
def test_a_fraction_that_leaves_no_pairs_is_refused(fraction):
    with pytest.raises(ValueError, match="at least one row"):
        partner_share("x+y", 7, fraction)


# --- sharpness ----------------------------------------------------------------------------------------------


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_sharpness_of_a_bowl_is_reached_in_a_corner():
    curvature = vector(1, 2, 3)
    found = sharpness(lambda w: 0.5 * (curvature * w * w).sum(), vector(0, 0, 0), 1e-3, generator=0)
    assert found == pytest.approx(100 * 0.5e-6 * 6)


def test_sharpness_of_a_slope_counts_each_weight_by_its_size():
    slope, x = vector(1, -2, 0.5), vector(1, 2, 0)
    found = sharpness(lambda w: 5 + slope @ w, x, 1e-3, generator=0)
    assert found == pytest.approx(100 * 1e-3 * (1 * 2 + 2 * 3 + 0.5 * 1) / (1 + 5 + float(slope @ x)))


def test_sharpness_at_a_summit_is_zero_and_between_summits_is_found_inside_the_box():
    assert sharpness(lambda w: 1 - (w**2).sum(), vector(0, 0), 0.1, generator=0) == 0
    top = vector(0.03, -0.02)
    found = sharpness(lambda w: 1 - ((w - top) ** 2).sum(), vector(0, 0), 0.1, generator=0)
    assert found == pytest.approx(100 * 0.0013 / (1 + 1 - 0.0013), rel=1e-6)


def test_sharpness_agrees_with_a_search_of_the_whole_box():
    def loss(w):
        return torch.sin(30 * w[0]) + torch.cos(20 * w[1] + w[0]) + 3

    x = vector(0.2, -0.4)
    sides = [torch.linspace(-0.05, 0.05, 401, dtype=torch.float64) * (abs(v) + 1) + v for v in x]
    largest = loss(torch.meshgrid(*sides, indexing="ij")).max()
    expected = float(100 * (largest - loss(x)) / (1 + loss(x)))
    assert sharpness(loss, x, 0.05, generator=1) == pytest.approx(expected, rel=1e-3)


def test_sharpness_in_a_subspace_moves_along_its_columns_alone():
    basis = np.array([[3.0], [4.0], [0.0]]) / 5
    x = vector(3, 4, 7)  # 5 along the column
    found = sharpness(lambda w: 1 + w[0] + 100 * (w[2] - 7), x, 1e-2, basis=basis, generator=0)
    assert found == pytest.approx(100 * (1e-2 * 6 * 0.6) / (1 + 4))


def test_the_released_routine_returns_a_decrease():
    arguments = {"x": vector(0), "epsilon": 1e-2, "generator": 0}
    assert released_sharpness(lambda w: 0.5 + w[0], **arguments) == pytest.approx(100 * 1e-2 / 0.5)
    assert released_sharpness(lambda w: 0.5 + w[0] ** 2, **arguments) == 0  # at a minimum it sees nothing
    assert sharpness(lambda w: 0.5 + w[0] ** 2, **arguments) == pytest.approx(100 * 1e-4 / 1.5)


def test_sharpness_takes_the_same_start_from_the_same_generator():
    one, again, other = (
        sharpness(lambda w: torch.sin(30 * w).sum(), torch.ones(3), 0.5, generator=seed, iterations=1)
        for seed in (3, 3, 4)
    )
    assert one == again != other


def test_a_random_basis_has_columns_of_unit_length():
    assert np.linalg.norm(random_basis(50, 3, np.random.default_rng(0)), axis=0) == pytest.approx(1)


# --- cosets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "shape"), [("paper", (12, 12, 10)), ("point", (10, 10, 12))])
def test_each_way_is_a_partition_into_cosets_of_one_parity(name, shape):
    ways = coset_partitions(name)
    assert ways.shape == shape and len({tuple(map(tuple, way)) for way in ways.tolist()}) == len(ways)
    for way in ways:
        assert sorted(way.ravel().tolist()) == list(range(120))
        assert all(len(set(parity()[block])) == 1 for block in way)
    subgroup = next(block for block in ways[0] if 0 in block)
    left = {frozenset(S5.index(_then(S5[h], S5[x])) for h in subgroup) for x in range(120)}
    right = {frozenset(S5.index(_then(S5[x], S5[h])) for h in subgroup) for x in range(120)}
    found = [{frozenset(block) for block in way} for way in ways.tolist()]
    assert left in found and right in found
    if name == "point":
        assert any(len({S5[g][0] for g in way[0]}) == 1 for way in ways)


def test_ratio_agrees_with_a_double_loop():
    rows = np.random.default_rng(0).normal(size=(120, 6))
    found = coset_contrast(rows, draws=1)
    of = np.empty(120, int)
    for block, members in enumerate(coset_partitions()[found.partition]):
        of[members] = block
    within, between = [], []
    for a, b in itertools.combinations(range(120), 2):
        distance = 1 - rows[a] @ rows[b] / np.linalg.norm(rows[a]) / np.linalg.norm(rows[b])
        (within if of[a] == of[b] else between).append(distance)
    assert found.ratio == pytest.approx(np.mean(within) / np.mean(between))


def test_rows_that_know_the_sign_alone_are_no_evidence():
    generator = np.random.default_rng(1)
    rows = np.where(parity()[:, None] == 1, 1.0, -1.0) * 2 + generator.normal(size=(120, 40))
    found = coset_contrast(rows)
    assert abs(found.deviations) < 3 and found.p_value > 0.01


def test_rows_of_a_sign_without_noise_are_no_evidence():
    rows = np.where(parity()[:, None] == 1, 1.0, -1.0) * np.ones(3)
    assert coset_contrast(rows, draws=20).deviations == 0


def test_characters_are_orthonormal_and_the_first_is_the_trace_of_permutation_matrices_less_one():
    table = np.array(list(characters().values()))
    np.testing.assert_allclose(table @ table.T / 120, np.eye(7), atol=1e-12)
    assert [np.trace(np.eye(5)[list(a)]) - 1 for a in S5] == characters()["4"].tolist()


def test_rows_made_of_permutation_matrices_are_one_representation_whose_cosets_lie_apart():
    matrices = np.eye(5)[[list(a) for a in S5]].reshape(120, 25)
    rows = (matrices - matrices.mean(0)) @ np.random.default_rng(0).normal(size=(25, 64))
    signed = rows * (1 - 2 * parity())[:, None]
    names = list(characters())
    for made, name in ((rows, "4"), (signed, "4, sign"), (parity()[:, None] + np.zeros(3), "1, sign")):
        assert dict(zip(names, representation_shares(made).round(9), strict=True))[name] == 1
    assert coset_contrast(rows, draws=50).deviations < -5  # a group that moves all points leaves no vector in place
    assert (
        coset_contrast(signed, "point", draws=50).deviations > 5
    )  # one that leaves a point in place leaves its vector
    exact = (matrices - matrices.mean(0)) * (1 - 2 * parity())[:, None]  # cosines are the character over four
    assert coset_contrast(exact, "point", draws=1).ratio == pytest.approx((9 / 11) / (37 / 36))
    assert coset_contrast(exact, draws=1).ratio == pytest.approx(10 / 9)
    shares = representation_shares(np.random.default_rng(1).normal(size=(120, 4000)))
    np.testing.assert_allclose(shares, [n * n / 119 for n in (0, 1, 4, 4, 5, 5, 6)], atol=0.01)
    assert np.isnan(representation_shares(np.ones((6, 2)))).all()


def test_rows_that_depend_on_the_coset_are_found():
    way = coset_partitions()[7]
    rows = np.random.default_rng(2).normal(size=(120, 12))
    for block, members in enumerate(way):
        rows[members] += 2 * np.eye(12)[block]
    found = coset_contrast(rows)
    assert found.partition == 7 and found.deviations > 5 and found.p_value < 0.002


def test_random_rows_pass_as_often_as_the_level_says():
    found = [coset_contrast(np.random.default_rng(k).normal(size=(120, 20)), draws=99).p_value for k in range(60)]
    assert np.mean(np.array(found) <= 0.05) <= 0.15


@pytest.mark.parametrize("rows", [np.ones((24, 3)), np.zeros((120, 3)), np.full((120, 3), np.nan)])
def test_coset_contrast_refuses_other_rows(rows):
    with pytest.raises(ValueError, match="rows"):
        coset_contrast(rows)


# --- times --------------------------------------------------------------------------------------------------

SHARES = np.array([0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8])
LAWS = {
    "power law": ({"a": 50.0, "b": 4.0}, 50 * SHARES**-4.0),
    "exponential": ({"a": 9e5, "b": 12.0}, 9e5 * np.exp(-12 * SHARES)),
    "divergence": ({"a": 300.0, "b": 1.5, "c": 0.25}, 300 * (SHARES - 0.25) ** -1.5),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_law_without_noise_is_found_again_and_fits_best(law):
    truth, times = LAWS[law]
    fits = fit_times(SHARES, times)
    for name, value in truth.items():
        assert fits[law].parameters[name].value == pytest.approx(value, rel=0.02)
    assert fits[law].error == min(fit.error for fit in fits.values()) < 0.02
    assert fits[law].curve(SHARES) == pytest.approx(times, rel=0.02)


@pytest.mark.parametrize("law", LAWS)
def test_intervals_cover_the_truth_as_often_as_they_say(law):
    truth, times = LAWS[law]
    generator, last = np.random.default_rng(0), list(truth)[-1]
    covered = []
    for _ in range(60):
        found = fit_times(np.tile(SHARES, 2), np.tile(times, 2) * np.exp(0.1 * generator.normal(size=14)))
        interval = found[law].parameters[last]
        covered.append(interval.low <= truth[last] <= interval.high)
    assert 0.85 <= np.mean(covered) <= 1


def test_times_that_never_came_are_left_out():
    _, times = LAWS["power law"]
    with_never = fit_times([0.2, 0.25, *SHARES], [np.inf, np.nan, *times])
    assert with_never["power law"].parameters == fit_times(SHARES, times)["power law"].parameters


@pytest.mark.parametrize("fractions, times", [([0.5] * 9, [1.0] * 9), ([0.1, 0.2], [1, 2])])
def test_fit_times_refuses_points_that_decide_nothing(fractions, times):
    with pytest.raises(ValueError, match="fractions"):
        fit_times(fractions, times)


# --- the puzzle ---------------------------------------------------------------------------------------------


def test_blanks_of_the_puzzle_are_determined():
    table, shown = puzzle(seed=1)
    assert 0.25 < (~shown).mean() < 0.35
    (only,) = tables()[(tables() == table)[:, shown].all(1)]
    assert (only == table).all()
    assert (table != table.T).any()  # not commutative: a mirror does not fill a blank


def test_all_group_tables_on_eight_symbols_are_searched():
    """8! / |Aut| of each group, with 4, 8, 8, 24 and 168 automorphisms."""
    assert len(tables()) == 40320 // 4 + 2 * (40320 // 8) + 40320 // 24 + 40320 // 168
    for product in groups().values():
        assert all(product[product[a, b], c] == product[a, product[b, c]] for a, b, c in np.ndindex(8, 8, 8))
        assert all(sorted(line) == list(range(8)) for line in (*product.tolist(), *product.T.tolist()))
