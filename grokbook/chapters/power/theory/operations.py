"""The binary operations of Power et al. (2022), appendix A.1.1, as tables; and which rows answer for one another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grokbook import checks
from grokbook.tasks import group_table

Integers = NDArray[np.int64]


def _divided(x: Integers, y: Integers, p: int) -> Integers:
    """x / y for y that has an inverse; 0 counts as its own."""
    return x * np.array([pow(k, -1, p) if k else 0 for k in range(p)])[y]


# A further operation is one more line: a function of x, y and the modulus, or of x, y, the product and the inverse.
MODULAR: dict[str, Callable[[Integers, Integers, int], Integers]] = {
    "x+y": lambda x, y, p: x + y,
    "x-y": lambda x, y, p: x - y,
    "x/y": _divided,
    "x/y if y odd, else x-y": lambda x, y, p: np.where(y % 2 == 1, _divided(x, y, p), x - y),
    "x^2+y^2": lambda x, y, p: x**2 + y**2,
    "x^2+xy+y^2": lambda x, y, p: x**2 + x * y + y**2,
    "x^2+xy+y^2+x": lambda x, y, p: x**2 + x * y + y**2 + x,
    "x^3+xy": lambda x, y, p: x**3 + x * y,
    "x^3+xy^2+y": lambda x, y, p: x**3 + x * y**2 + y,
    "x*y": lambda x, y, p: x * y,
}
OF_GROUPS: dict[str, Callable[[Integers, Integers, Integers, Integers], Integers]] = {
    "x.y": lambda x, y, product, inverse: product[x, y],
    "x.y.x^-1": lambda x, y, product, inverse: product[product[x, y], inverse[x]],
    "x.y.x": lambda x, y, product, inverse: product[product[x, y], x],
}
DIVISIONS = ("x/y", "x/y if y odd, else x-y")  # these need a prime modulus


def operation(name: str, p: int = 97, *, group: str = "S5") -> tuple[Integers, Integers]:
    """The whole table of an operation, rows in the order of x, then of y.

    Division has no row with y = 0. In the rule with two cases, y is even or odd as a number from 0 to p - 1. Of two
    permutations x.y the left one acts first, as in the authors' code; x(y(i)) is the transpose.

    Args:
        name: a key of `MODULAR`, which look at the modulus ``p``, or of `OF_GROUPS`, which look at ``group``: a name
            that `grokbook.tasks.group_table` knows, and that numbers the elements.

    Returns:
        inputs (rows, 2) and labels (rows,), both int64.

    Raises:
        ValueError: an unknown operation, a modulus below 2 or not prime where there is a division.
    """
    checks.one_of("operation", name, (*MODULAR, *OF_GROUPS))
    if name in OF_GROUPS:
        product, inverse = group_table(group).T, inverses(group_table(group))
        x, y = np.divmod(np.arange(len(product) ** 2), len(product))
        return np.stack([x, y], -1), OF_GROUPS[name](x, y, product, inverse)
    p = checks.integer("p", p, 2)
    if name in DIVISIONS and any(p % divisor == 0 for divisor in range(2, int(p**0.5) + 1)):
        raise ValueError(f"p = {p}: {name} divides, which needs a prime modulus")
    x, y = np.divmod(np.arange(p * p), p)
    rows = y > 0 if name == "x/y" else slice(None)
    return np.stack([x, y], -1)[rows], (MODULAR[name](x, y, p) % p)[rows]


def train_size(name: str, rows: int, fraction: float) -> int:
    """How many of a table's rows a share of it is; ValueError where none would be left to train on or to test."""
    if not 0 < fraction < 1 or not 0 < round(fraction * rows) < rows:
        why = "a share is needed that leaves at least one row to train on and one to test"
        raise ValueError(f"fraction = {fraction} of the {rows} rows of {name}: {why}")
    return round(fraction * rows)


def partners(name: str, p: int = 97, *, group: Literal["mirror", "all"] = "mirror", of: str = "S5") -> Integers:
    """For every row the others that a plain symmetry of the operation gives the same answer: (rows, k), -1 for none.

    Args:
        name, p: as in `operation`, whose ``group`` is ``of`` here.
        group: "mirror" is (y, x) alone, and only for an operation that commutes. "all" are the maps to
            (a x + b y, c x + d y) with a, b, c, d from -1, 0, 1 that are one to one and keep every answer: 8 with the
            identity for x^2+y^2, 12 for x^2+xy+y^2. For products of a group it is the mirror.
    """
    checks.one_of("group", group, ("mirror", "all"))
    inputs, labels = operation(name, p, group=of)
    side = int(inputs.max()) + 1
    where = np.full((side, side), -1)
    where[tuple(inputs.T)] = np.arange(len(inputs))
    matrices: list[tuple[int, ...]] = [(0, 1, 1, 0)]
    if group == "all" and name in MODULAR:
        matrices = [m for m in itertools.product((-1, 0, 1), repeat=4) if (m[0] * m[3] - m[1] * m[2]) % side]
    found = []
    for matrix in matrices:
        image = where[tuple(np.reshape(matrix, (2, 2)) @ inputs.T % side)]  # (rows,)
        if (image >= 0).all() and (labels[image] == labels).all():
            found.append(np.where(image == np.arange(len(inputs)), -1, image))
    table = np.sort(np.stack([*found, np.full(len(inputs), -1)], -1), -1)  # no row has itself or another twice
    table[:, 1:][table[:, 1:] == table[:, :-1]] = -1
    return np.sort(table, -1)[:, ::-1]


def partner_share(name: str, p: int, fraction: float, *, group: Literal["mirror", "all"] = "mirror") -> float:
    """The share of held-out rows of which a partner is trained on, expected over splits: where a plateau is symmetry.

    A network that has learnt the symmetry and nothing else answers these rows and no others. From 0 (no symmetry) to 1;
    for the mirror of a commutative operation (1 - 1 / p) n / (N - 1), where n of N = p**2 rows are trained on. Raises
    what `operation` and `train_size` do.
    """
    table = partners(name, p, group=group)
    rows, trained = len(table), train_size(name, len(table), fraction)
    counts = np.bincount((table >= 0).sum(1))
    # none of k partners among the trained ones of the other rows - 1, drawn without replacement
    missed = [np.prod([max(0, rows - 1 - trained - i) / (rows - 1 - i) for i in range(k)]) for k in range(len(counts))]
    return float(1 - counts @ missed / rows)


def inverses(product: Integers) -> Integers:
    """The inverse of each element, (n,), from a group's table (n, n)."""
    neutral = (product == np.arange(len(product))).all(1).argmax()
    return (product == neutral).argmax(1)
