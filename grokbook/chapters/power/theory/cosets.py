"""Do the output rows of S5 lie in cosets? Fig. 3, left, of Power et al. (2022), as a number with a null beside it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.power.theory.operations import inverses
from grokbook.measures.common import Array
from grokbook.measures.groups import ELEMENTS, parity
from grokbook.tasks import group_table

SUBGROUPS = {  # by what generates them: where the five points go
    "paper": ([3, 4, 2, 0, 1], [0, 2, 1, 4, 3]),  # <(0,3)(1,4), (1,2)(3,4)>, dihedral, of ten elements
    "point": ([1, 2, 0, 3, 4], [1, 0, 3, 2, 4]),  # the twelve even ones that leave a point in place
}


class CosetContrast(NamedTuple):
    """How much closer rows of one coset are than rows of two, for the best way to take cosets."""

    ratio: float  #: mean cosine distance within cosets over that between them; small where they cluster
    partition: int  #: the way: an index of `coset_partitions`
    expected: float  #: the null's mean ratio: the best of as many, too, with the elements' names exchanged at random
    deviations: float  #: by how many standard deviations of the null the ratio lies below its mean
    p_value: float  #: share of draws, and of the ratio itself, that are as small


def coset_contrast(rows: ArrayLike, subgroup: str = "paper", *, draws: int = 1000) -> CosetContrast:
    """Compare the cosets of a subgroup and its conjugates with partitions of the same sizes.

    The subgroups are even, so each of their cosets is of one parity: a network that knows no more than the sign of a
    permutation has smaller distances within cosets than within partitions drawn freely. The null therefore exchanges
    names among even elements and among odd ones, and takes the best of as many ways as there are.

    Args:
        rows: (120, d) a vector for each element of S5, in lexicographic order, as in ``group_table("S5")``.
        subgroup: one of ``SUBGROUPS``.
        draws: how many times.

    Raises:
        ValueError: rows of another shape, or without a direction.
    """
    rows = np.asarray(rows, float)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    if rows.ndim != 2 or len(rows) != 120 or not (np.isfinite(rows).all() and (length > 0).all()):
        raise ValueError(f"rows must be (120, d), finite and none of them zero, got shape {rows.shape}")
    unit = rows / length
    distance = 1 - unit @ unit.T
    cosets = coset_partitions(subgroup)
    ratios = _ratios(distance, cosets)
    generator = np.random.default_rng(0)
    null = np.empty(draws)
    halves = np.stack([np.flatnonzero(parity() == sign) for sign in (0, 1)])
    for draw in range(draws):
        name = np.arange(120)
        for members in halves:
            name[members] = generator.permutation(members)
        null[draw] = _ratios(distance, name[cosets]).min()
    best, expected, spread = float(ratios.min()), float(null.mean()), float(null.std())
    # where all partitions do the same, as under parity alone, differences are rounding
    deviations = (expected - best) / spread if spread > 1e-9 * abs(expected) else 0.0
    as_small = float((1 + (null <= best + 1e-12).sum()) / (1 + draws))
    return CosetContrast(best, int(ratios.argmin()), expected, deviations, as_small)


def _ratios(distance: Array, partitions: NDArray[np.int64]) -> Array:
    """Mean distance within blocks over that between them, (n,), for partitions (n, blocks, members)."""
    blocks, members = partitions.shape[-2:]
    inside = distance[partitions[..., :, None], partitions[..., None, :]].sum((-3, -2, -1))
    pairs = blocks * members * (members - 1)  # a row has no distance to itself
    between = (distance.sum() - inside) / (blocks * members * (blocks - 1) * members)
    within = np.maximum(inside / pairs, 0)
    return np.divide(within, between, out=np.ones(len(partitions)), where=between > 1e-12)


@lru_cache
def coset_partitions(subgroup: str = "paper") -> NDArray[np.int64]:
    """Partitions of S5 into cosets, (way, coset, member): xH for all conjugates H of a subgroup, then Hx.

    There are six conjugates of the paper's, (12, 12, 10), and five of that of a point, (10, 10, 12).
    """
    product, inverse = group_table("S5"), inverses(group_table("S5"))
    generators = [ELEMENTS.tolist().index(one) for one in SUBGROUPS[subgroup]]
    own = {0}
    while (larger := own | {int(product[a, b]) for a in own for b in generators}) != own:
        own = larger
    conjugates = {tuple(sorted(product[product[x, list(own)], inverse[x]].tolist())) for x in range(120)}
    ways = []
    for table in (product, product.T):
        for members in sorted(conjugates):
            ways.append(sorted({tuple(sorted(table[x, list(members)].tolist())) for x in range(120)}))
    return np.array(ways)
