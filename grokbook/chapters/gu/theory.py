"""What Gu et al. claim that needs no training, and what is true of it.

Theorem, lemma and definition numbers are those of the 2025 paper unless "earlier version" is said. Where the
paper is wrong, the function computes what is right and its docstring says what was printed. Masks and tables
over all pairs (i, j) are (p, p) arrays with i as rows; ``True`` in a mask is a training pair. An embedding is
(p, d), one row a residue. Distances between pairs are Manhattan, on the plain grid or on the torus, where p -
1 and 0 are neighbours. Random draws come from ``generator``: a numpy Generator, a seed, or None for fresh
entropy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grokbook import checks
from grokbook.measures import main_embedding_difference
from grokbook.tasks import modular_function

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Seed = np.random.Generator | int | None


# --- training sets with a hole, figure 3 --------------------------------------------------------------------

HOLES = ("square", "strip")
SPLITS = ("code", "text")


def hole(kind: str, p: int, size: int) -> Mask:
    """The pairs that table 1 keeps out of training.

    Args:
        kind: "square" for i <= size and j <= size, "strip" for i <= size and any j.
        size: the paper's k or t, from 0 to p - 2, so that something is left outside.

    Returns:
        (p, p), true in the hole.

    Raises:
        ValueError: an unknown kind, or a size that leaves nothing outside.
    """
    p = checks.integer("p", p, 2)
    if kind not in HOLES:
        raise ValueError(f"kind must be one of {', '.join(map(repr, HOLES))}, got {kind!r}")
    size = checks.integer("size", size, 0, p - 2)
    inside = np.arange(p) <= size
    return inside[:, None] & (inside if kind == "square" else np.ones(p, bool))


def draw_training_mask(
    p: int, train_fraction: float, *, holed: ArrayLike | None = None, split: str = "code", generator: Seed = None
) -> Mask:
    """Draw a training set that avoids a hole: (p, p), true where trained.

    Args:
        train_fraction: alpha, above 0 and below 1.
        holed: (p, p) pairs that are never trained, such as a `hole`; None for no hole.
        split: how many to draw. "code", the released scripts: floor(alpha p**2) or all that the hole leaves;
            "text", section 6.1: floor(alpha n) of the n pairs that the hole leaves. Table 1 needs "code", see
            `implied_hole_accuracy`.

    Raises:
        ValueError: a hole of another shape, an unknown split, or a train_fraction not between 0 and 1.
    """
    p = checks.integer("p", p, 2)
    holed = np.zeros((p, p), bool) if holed is None else np.asarray(holed, bool)
    if holed.shape != (p, p):
        raise ValueError(f"holed must have shape (p, p) = ({p}, {p}), got {holed.shape}")
    size = training_size(p, train_fraction, int(holed.sum()), split=split)
    mask = np.zeros(p * p, bool)
    mask[checks.generator(generator).permutation(np.flatnonzero(~holed))[:size]] = True
    return mask.reshape(p, p)


def training_size(p: int, train_fraction: float, hole_size: int = 0, *, split: str = "code") -> int:
    """How many pairs `draw_training_mask` draws when ``hole_size`` of the p**2 are kept out.

    Raises:
        ValueError: a train_fraction not between 0 and 1, or an unknown split.
    """
    p = checks.integer("p", p, 2)
    hole_size = checks.integer("hole_size", hole_size, 0, p * p - 1)
    if not 0 < train_fraction < 1:
        raise ValueError(f"train_fraction must be between 0 and 1, got {train_fraction}")
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(map(repr, SPLITS))}, got {split!r}")
    left = p * p - hole_size
    return min(left, math.floor(train_fraction * (p * p if split == "code" else left) + 1e-9))  # 0.29 * 100 is 29


# --- theorem 3.12: how much of the grid the training set covers ---------------------------------------------


def diamond_size(k: int) -> int:
    """C, the number of points at a distance below k, far from any border: 1 + 4 (1 + ... + (k - 1))."""
    k = checks.integer("k", k, 1)
    return 1 + 2 * k * (k - 1)


def coverage_bound(p: int, k: int) -> float:
    """Theorem 3.12: the training fraction 2 ln(p) / C that full coverage is said to need.

    It is where N (1 - C/N)^m, with N = p**2 points and m independent draws, falls to one expected uncovered
    point, after ln(1 - x) = -x. So it is an estimate of when coverage is likely, not a lower bound: drawn
    without replacement, the diamonds are covered below it for k up to 4 (at k = 2 and p = 97 it is 1.83), and
    on a grid with borders above it for larger k. It grows with p, while larger p are seen to need less.
    """
    return 2 * math.log(checks.integer("p", p, 2)) / diamond_size(k)


def independent_uncovered(p: int, k: int, train_size: int) -> float:
    """The proof's expected number of uncovered points, N (1 - C/N)^m: m draws with replacement, on a torus."""
    p, k, m = _coverage_arguments(p, k, train_size)
    return p * p * max(0.0, 1 - diamond_size(k) / (p * p)) ** m


def diamond_counts(p: int, k: int, *, torus: bool = False) -> Integers:
    """How many points lie at a distance below k of each point, itself included: (p, p).

    On the grid the borders cut the diamond: k (k + 1) / 2 points are left in a corner.
    """
    p, k, _ = _coverage_arguments(p, k)
    apart = _ring(p) if torus else _line(p)  # (p, p) distance of two coordinates
    at = (apart[..., None] == np.arange(k)).sum(1)  # (p, k) coordinates at exactly that distance
    within = at.cumsum(-1)
    return (at @ within[:, ::-1].T).astype(np.int64)  # r away in i leaves k - 1 - r in j


def expected_uncovered(p: int, k: int, train_size: ArrayLike, *, torus: bool = False) -> Array:
    """The exact expected number of points at no distance below k from a training set of m random pairs.

    A diamond of c points stays empty with probability C(N - c, m) / C(N, m), since a training set is drawn
    without replacement; for small diamonds that is (1 - alpha)^c, not the proof's exp(-alpha c).

    Args:
        train_size: (...) m, from 0 to p**2.

    Returns:
        (...), untrained points only, as a trained one covers itself.
    """
    p, k, _ = _coverage_arguments(p, k)
    sizes, points = np.unique(diamond_counts(p, k, torus=torus), return_counts=True)
    train_size = np.asarray(train_size)
    for m in train_size.ravel().tolist():
        checks.integer("train_size", m, 0, p * p)
    return _empty_probability(p * p, train_size, sizes) @ points.astype(float)


def expected_covered_fraction(p: int, k: int, train_fraction: float, *, torus: bool = False) -> float:
    """E[prop] of theorem 3.12: the share of test pairs at a distance below k of a training pair, exactly.

    The training set holds floor(alpha p**2) pairs. The expectation is 1 only when fewer pairs are left out
    than the smallest diamond holds.
    """
    m = training_size(p, train_fraction)
    return 1 - float(expected_uncovered(p, k, m, torus=torus)) / (p * p - m)


def covered_mask(train_mask: ArrayLike, k: int, *, torus: bool = False) -> Mask:
    """Which pairs lie at a distance below k of a training pair: (..., p, p) -> (..., p, p)."""
    train_mask = _mask(train_mask)
    _, k, _ = _coverage_arguments(train_mask.shape[-1], k)
    return _spread(train_mask, np.logical_or, k, torus)


def covered_fraction(train_mask: ArrayLike, k: int, *, torus: bool = False) -> Array:
    """The share of test pairs at a distance below k of a training pair, theorem 3.12's prop.

    Args:
        train_mask: (..., p, p).

    Returns:
        (...), nan where there is no test pair.
    """
    test = ~_mask(train_mask)
    covered = covered_mask(train_mask, k, torus=torus) & test
    return _ratio(covered.sum((-2, -1)), test.sum((-2, -1)))


def coverage_threshold(p: int, k: int, *, torus: bool = False, uncovered: float = 1.0) -> float:
    """The smallest training fraction m / p**2 that leaves at most so many expected points uncovered.

    On the torus it is close to 1 - p**(-2 / C).

    Raises:
        ValueError: uncovered below 0, or a k outside 1 to 2 p - 1.
    """
    p, k, _ = _coverage_arguments(p, k)
    if not uncovered >= 0:
        raise ValueError(f"uncovered must be at least 0, got {uncovered}")
    low, high = -1, p * p  # the expectation falls with m and is zero at the end
    while high - low > 1:
        middle = (low + high) // 2
        if expected_uncovered(p, k, middle, torus=torus) <= uncovered:
            high = middle
        else:
            low = middle
    return high / p**2


def coverage_times(p: int, k: int, draws: int, *, torus: bool = False, generator: Seed = None) -> Integers:
    """When every point gets covered while pairs join the training set in a random order.

    One draw serves all training sizes m: a point is uncovered by the first m pairs if its time exceeds m, and
    the largest time is the size that covers everything.

    Returns:
        (draws, p, p), from 1 to p**2.
    """
    p, k, _ = _coverage_arguments(p, k)
    draws, generator = checks.integer("draws", draws, 1), checks.generator(generator)
    orders = np.tile(np.arange(1, p * p + 1, dtype=np.int64), (draws, 1))
    return _spread(generator.permuted(orders, axis=1).reshape(draws, p, p), np.minimum, k, torus)


def simulate_uncovered(
    p: int, k: int, train_sizes: Sequence[int], draws: int, *, torus: bool = False, generator: Seed = None
) -> Integers:
    """Uncovered points of random training sets, nested in each other: (draws, len(train_sizes))."""
    times = coverage_times(p, k, draws, torus=torus, generator=generator).reshape(draws, -1)
    return np.stack([(times > checks.integer("train_sizes", m, 0, p * p)).sum(-1) for m in train_sizes], axis=-1)


def full_coverage_fraction(
    p: int, k: int, probability: float = 0.5, *, draws: int = 200, torus: bool = False, generator: Seed = None
) -> float:
    """The training fraction at which a random set covers everything with the given probability, simulated.

    Raises:
        ValueError: a probability outside 0 to 1.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be from 0 to 1, got {probability}")
    full = coverage_times(p, k, draws, torus=torus, generator=generator).max((-2, -1))
    return float(np.quantile(full, probability)) / p**2


def _empty_probability(points: int, train_size: NDArray, sizes: Integers) -> Array:
    """C(N - c, m) / C(N, m), that m of N points drawn without replacement miss a set of c: (..., len(sizes))."""
    s = np.arange(sizes.max())
    missed = (points - train_size[..., None] - s) / (points - s)  # the set's next point is no training pair either
    return np.cumprod(np.clip(missed, 0, None), axis=-1)[..., sizes - 1]


def _spread(values: NDArray, combine: np.ufunc, k: int, torus: bool) -> NDArray:
    """Combine each cell with all at a distance below k, one ring of neighbours at a time."""
    for _ in range(k - 1):
        spread = values.copy()
        for cells, source in ((spread, values), (spread.swapaxes(-1, -2), values.swapaxes(-1, -2))):
            combine(cells[..., 1:], source[..., :-1], out=cells[..., 1:])
            combine(cells[..., :-1], source[..., 1:], out=cells[..., :-1])
            if torus:
                combine(cells[..., 0], source[..., -1], out=cells[..., 0])
                combine(cells[..., -1], source[..., 0], out=cells[..., -1])
        values = spread
    return values


def _coverage_arguments(p: int, k: int, train_size: int = 0) -> tuple[int, int, int]:
    p = checks.integer("p", p, 2)
    # at a distance below 2 p - 1 lies the whole grid
    return p, checks.integer("k", k, 1, 2 * p - 1), checks.integer("train_size", train_size, 0, p * p)


# --- theorem 3.10: a training pair of the same class nearby -------------------------------------------------


def same_class_distance(train_mask: ArrayLike, labels: ArrayLike, *, torus: bool = True) -> Array:
    """How far each pair is from the nearest training pair with the same answer.

    Args:
        train_mask: (..., p, p).
        labels: (p, p) answers.

    Returns:
        (..., p, p), 0 for training pairs, inf for a class without any.
    """
    train_mask = _mask(train_mask)
    p = train_mask.shape[-1]
    labels = _labels(labels, p).ravel()
    apart = _ring(p) if torus else _line(p)
    distance = np.full((math.prod(train_mask.shape[:-2]), p * p), np.inf)
    order = np.argsort(labels, kind="stable")
    classes = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    for trained, nearest in zip(train_mask.reshape(-1, p * p), distance, strict=True):
        for members in classes:
            known = members[trained[members]]
            if len(known):
                (i, j), (u, v) = np.divmod(members, p), np.divmod(known, p)
                nearest[members] = (apart[i][:, u] + apart[j][:, v]).min(1)
    return distance.reshape(train_mask.shape)


def same_class_coverage(train_mask: ArrayLike, labels: ArrayLike, D: ArrayLike, *, torus: bool = True) -> Array:
    """The share of test pairs with a training pair of the same answer at a distance of at most D.

    Theorem 3.10 (i) makes this the ceiling of test accuracy, with a strict d < D_1 and an unknown D_1. Its
    proof shows the reverse, that such pairs are answered right, and misses distances, see `imitation_bounds`.
    For x + y the classes are antidiagonals, so that distances on the torus are even: a random set covers
    about 1 - (1 - alpha)^D. The theorem's case (ii) is left out, as the paper calls it rare.

    Args:
        train_mask: (..., p, p).
        labels: (p, p) answers.
        D: scalar or (n,) distances.

    Returns:
        (...) or (..., n), nan where there is no test pair.

    Raises:
        ValueError: a mask or labels that are no squares of one size, or a D below 0.
    """
    D = np.asarray(D, float)
    if D.ndim > 1 or not (D >= 0).all():
        raise ValueError(f"D must be a distance of at least 0 or several in one row, got {D.tolist()}")
    test = ~_mask(train_mask)
    distance = same_class_distance(train_mask, labels, torus=torus)
    reached = test & np.isfinite(distance)
    near = np.stack([(reached & (distance <= one)).sum((-2, -1)) for one in D.ravel()], -1)
    return _ratio(near, test.sum((-2, -1))[..., None]).reshape((*test.shape[:-2], *D.shape))


def matching_distance(train_mask: ArrayLike, labels: ArrayLike, accuracy: float, *, torus: bool = True) -> float:
    """The D at which `same_class_coverage` equals an accuracy, interpolated between the distances that occur.

    Args:
        train_mask: (p, p), with at least one test pair.
        labels: (p, p) answers.
        accuracy: from 0 to 1.

    Returns:
        D, or inf if the coverage never gets there.

    Raises:
        ValueError: an accuracy outside 0 to 1, several masks, or one without a test pair.
    """
    if not 0 <= accuracy <= 1:
        raise ValueError(f"accuracy must be from 0 to 1, got {accuracy}")
    train_mask = _mask(train_mask)
    if train_mask.ndim != 2 or train_mask.all():
        raise ValueError(f"train_mask must be one (p, p) mask with a test pair, got shape {train_mask.shape}")
    distances = same_class_distance(train_mask, labels, torus=torus)[~train_mask]
    D, pairs = np.unique(distances[np.isfinite(distances)], return_counts=True)
    coverage = np.concatenate([[0], pairs.cumsum() / len(distances)])
    if accuracy > coverage[-1] + 1e-12:
        return math.inf
    return float(np.interp(accuracy, coverage, np.concatenate([[0], D])))


# --- table 1 ------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row of table 1, with p = 97, x + y and alpha = 0.3."""

    kind: str  #: of `hole`
    size: int  #: the paper's k or t
    highest: float  #: U-Acc, a fraction
    lowest: float  #: L-Acc, a fraction
    onset: int | None  #: GO-Epoch, in steps; None where the table says that it does not occur


TABLE_1 = (
    Row("square", 30, 0.9904, 0.9127, 1500),
    Row("square", 35, 0.9107, 0.8073, 1500),
    Row("square", 40, 0.8450, 0.8168, 1700),
    Row("square", 45, 0.7903, 0.7607, 1900),
    Row("square", 50, 0.7739, 0.6602, 3400),
    Row("square", 55, 0.6209, 0.5769, 2600),
    Row("square", 60, 0.5731, 0.5518, 2200),
    Row("strip", 67, 0.0756, 0.0358, None),
    Row("strip", 60, 0.3325, 0.1705, 900),
    Row("strip", 50, 0.8010, 0.7361, 1600),
    Row("strip", 40, 0.8989, 0.8480, 1300),
)


def hole_share(row: Row, *, p: int = 97, train_fraction: float = 0.3, split: str = "code") -> float:
    """The share of the test set that lies in the hole of a row of table 1."""
    inside = int(hole(row.kind, p, row.size).sum())
    return inside / (p * p - training_size(p, train_fraction, inside, split=split))


def implied_hole_accuracy(row: Row, *, p: int = 97, train_fraction: float = 0.3, split: str = "code") -> float:
    """The accuracy inside the hole if everything outside it were right and the total were U-Acc.

    With the split that the text describes it is negative for t = 67, so the table was made with the other.
    """
    return 1 - (1 - row.highest) / hole_share(row, p=p, train_fraction=train_fraction, split=split)


def table_masks(
    rows: Sequence[Row], seeds: Sequence[int], *, p: int = 97, train_fraction: float = 0.3, split: str = "code"
) -> Mask:
    """Training sets for rows of table 1: (row, seed, p, p)."""
    draw = [
        [
            draw_training_mask(p, train_fraction, holed=hole(row.kind, p, row.size), split=split, generator=seed)
            for seed in seeds
        ]
        for row in rows
    ]
    return np.array(draw, bool).reshape(len(rows), len(seeds), p, p)


def table_matching_distances(
    rows: Sequence[Row], seeds: Sequence[int], *, p: int = 97, split: str = "code", torus: bool = True
) -> Array:
    """The D of theorem 3.10 that gives each row's U-Acc: (row, seed), inf where none does.

    One theorem with one D would have one number here.
    """
    labels, masks = modular_function("n + m", p), table_masks(rows, seeds, p=p, split=split)
    found = [
        [matching_distance(mask, labels, row.highest, torus=torus) for mask in draws]
        for row, draws in zip(rows, masks, strict=True)
    ]
    return np.array(found, float).reshape(len(rows), len(seeds))


def coverage_errors(coverage: ArrayLike, accuracy: ArrayLike) -> Array:
    """How badly one D for all rows fits them: the root mean square error over rows, for each D.

    Args:
        coverage: (row, n) predicted accuracies for n distances.
        accuracy: (row,) measured.

    Returns:
        (n,) as fractions; the best D is where it is least.

    Raises:
        ValueError: the rows of the two differ.
    """
    coverage, accuracy = np.asarray(coverage, float), np.asarray(accuracy, float)
    if coverage.ndim != 2 or accuracy.shape != coverage.shape[:1]:
        raise ValueError(f"coverage must be (row, n) and accuracy (row,), got {coverage.shape} and {accuracy.shape}")
    return np.sqrt(np.square(coverage - accuracy[:, None]).mean(0))


def constant_hole_accuracy(shares: ArrayLike, accuracy: ArrayLike) -> tuple[float, float]:
    """The rival with no geometry: outside all is right, inside the same share whatever the hole.

    Args:
        shares: (row,) of `hole_share`.
        accuracy: (row,) measured.

    Returns:
        the share right inside that fits best, and the root mean square error over rows.

    Raises:
        ValueError: the rows of the two differ, or no row has a hole.
    """
    shares, accuracy = np.asarray(shares, float), np.asarray(accuracy, float)
    if shares.ndim != 1 or shares.shape != accuracy.shape or not shares.any():
        raise ValueError(f"shares must be (row,) like accuracy and not all 0, got {shares.shape} and {accuracy.shape}")
    right = float(shares @ (accuracy - 1 + shares) / np.square(shares).sum())
    return right, float(np.sqrt(np.square(1 - shares + right * shares - accuracy).mean()))


# --- what memorised symmetry alone would answer -------------------------------------------------------------


def mirrored(train_mask: ArrayLike) -> Mask:
    """The pairs (i, j) with (j, i) in training: (..., p, p) -> (..., p, p)."""
    return np.swapaxes(_mask(train_mask), -1, -2).copy()


def mirror_accuracy(train_mask: ArrayLike, holed: ArrayLike | None = None) -> Array:
    """Test accuracy of knowing just that f(i, j) = f(j, i): the rival explanation of table 1 and figure 4.

    Args:
        train_mask: (..., p, p).
        holed: (p, p) the hole; outside it everything is taken as right. None takes nothing for granted: the
            share of test pairs whose mirror was trained, close to alpha for a random set.

    Returns:
        (...), nan where there is no test pair.

    Raises:
        ValueError: masks that are no squares of one size.
    """
    test, right = ~_mask(train_mask), mirrored(train_mask)
    if holed is not None:
        holed = np.asarray(holed, bool)
        if holed.shape != test.shape[-2:]:
            raise ValueError(f"holed must have shape (p, p) = {test.shape[-2:]}, got {holed.shape}")
        right = right | ~holed
    return _ratio((right & test).sum((-2, -1)), test.sum((-2, -1)))


def symmetry_orbits(p: int, moves: Sequence[ArrayLike]) -> Integers:
    """Which pairs linear symmetries of a task carry into each other.

    Args:
        moves: 2 x 2 integer matrices acting on (i, j) mod p, their determinants prime to p. The mirror is
            [[0, 1], [1, 0]], a joint sign [[-1, 0], [0, -1]], a cube root w of 1 in i [[w, 0], [0, 1]].

    Returns:
        (p, p) a number for each pair, the same throughout an orbit.

    Raises:
        ValueError: a move that is no 2 x 2 matrix of integers, or none that can be undone mod p.
    """
    p = checks.integer("p", p, 2)
    i, j = np.divmod(np.arange(p * p), p)
    orbit, images = np.arange(p * p), []
    for move in moves:
        matrix = np.asarray(move)
        if matrix.shape != (2, 2) or matrix.dtype.kind not in "iu":
            raise ValueError(f"moves must be 2 x 2 integer matrices, got {np.asarray(move).tolist()}")
        (a, b), (c, d) = matrix.tolist()
        if math.gcd(a * d - b * c, p) != 1:
            raise ValueError(f"moves must be invertible mod p={p}, got {matrix.tolist()}")
        images.append((a * i + b * j) % p * p + (c * i + d * j) % p)
    while True:  # the smallest number wins
        before = orbit
        for image in images:
            least = np.minimum(orbit, orbit[image])
            orbit = least.copy()
            orbit[image] = least
        if (orbit == before).all():
            return orbit.reshape(p, p)


def symmetry_share(train_mask: ArrayLike, moves: Sequence[ArrayLike]) -> Array:
    """The share of test pairs that some symmetry carries into the training set: (..., p, p) -> (...).

    A test accuracy no higher than this is no evidence that the rule was found. With the mirror alone it is
    `mirror_accuracy`. nan where there is no test pair.
    """
    train_mask = _mask(train_mask)
    p = train_mask.shape[-1]
    orbit = symmetry_orbits(p, moves).ravel()
    flat = train_mask.reshape(-1, p * p)
    known = np.zeros(flat.shape, bool)
    for seen, trained in zip(known, flat, strict=True):
        seen[orbit[trained]] = True
    reached = known[:, orbit] & ~flat
    return _ratio(reached.sum(-1), (~flat).sum(-1)).reshape(train_mask.shape[:-2])


def expected_symmetry_share(p: int, train_fraction: float, moves: Sequence[ArrayLike]) -> float:
    """What `symmetry_share` is on average over training sets of floor(alpha p**2) random pairs, exactly."""
    m = training_size(p, train_fraction)
    sizes = np.unique(symmetry_orbits(p, moves), return_counts=True)[1]
    return 1 - float(_empty_probability(p * p, np.asarray(m), sizes) @ sizes) / (p * p - m)


def roots_of_unity(p: int, n: int) -> tuple[int, ...]:
    """The solutions of x**n = 1 mod p, in order: symmetries of x**n + y**n."""
    p, n = checks.integer("p", p, 2), checks.integer("n", n, 1)
    return tuple(x for x in range(p) if pow(x, n, p) == 1)


# --- theorems 3.5 and 3.8: sums of embeddings by class ------------------------------------------------------


def class_centroids(
    embedding: ArrayLike, labels: ArrayLike, *, second: ArrayLike | None = None, mask: ArrayLike | None = None
) -> Array:
    """The mean of phi(i) + phi(j) over the pairs of each class.

    For x + y and the whole grid every class uses each i and each j once, so all classes have one centroid,
    `common_centroid`, whatever the embedding. So the balls of theorem 3.5 around its k_r, if they hold their
    class, have that point in common, and no two classes' convex hulls are apart.

    Args:
        embedding: (p, d) of the first operand.
        labels: (p, p) classes, from 0.
        second: (p, d) of the second operand; None if shared.
        mask: (p, p) the pairs to count; None for all.

    Returns:
        (class, d), nan where a class is empty.
    """
    first, second = _two_embeddings(embedding, second)
    p = len(first)
    labels = _labels(labels, p)
    counted = np.ones((p, p), bool) if mask is None else _mask(mask, p)
    i, j = np.nonzero(counted)
    uses = np.zeros((2, int(labels.max()) + 1, p))  # how often a class uses each residue
    np.add.at(uses[0], (labels[i, j], i), 1)
    np.add.at(uses[1], (labels[i, j], j), 1)
    return _ratio(uses[0] @ first + uses[1] @ second, uses[0].sum(-1, keepdims=True))


def common_centroid(embedding: ArrayLike, second: ArrayLike | None = None) -> Array:
    """The point in every ball of theorem 3.5 for x + y on the whole grid: the two mean embeddings' sum, (d,)."""
    first, second = _two_embeddings(embedding, second)
    return first.mean(0) + second.mean(0)


def class_radii(
    embedding: ArrayLike, labels: ArrayLike, centres: ArrayLike, *, second: ArrayLike | None = None
) -> Array:
    """The smallest delta_r with which theorem 3.5's ball around k_r holds its class on the whole grid.

    Args:
        embedding, second: (p, d).
        labels: (p, p) classes, from 0.
        centres: (class, d) the k_r.

    Returns:
        (class,); there always is one, for any embedding and any k_r. 0 for an empty class.

    Raises:
        ValueError: not one centre a class.
    """
    first, second = _two_embeddings(embedding, second)
    labels, centres = _labels(labels, len(first)), np.asarray(centres, float)
    if centres.shape != (labels.max() + 1, first.shape[1]):
        raise ValueError(f"centres must be (class, d) = {(int(labels.max()) + 1, first.shape[1])}, got {centres.shape}")
    radii = np.zeros(len(centres))
    for i, token in enumerate(first):
        lengths = np.sqrt(np.square(token + second - centres[labels[i]]).sum(-1))  # (p,)
        np.maximum.at(radii, labels[i], lengths)
    return radii


def neighbour_bound(centres: ArrayLike, radii: ArrayLike) -> float:
    """What theorem 3.5 gives by the triangle inequality for every |phi(i+1) - phi(i)|, theorem 3.8 for x + y.

    With r = i + j, both phi(i) + phi(j) and phi(i+1) + phi(j) are in known balls, so the step is at most
    |k_{r+1} - k_r| + delta_{r+1} + delta_r; and j is free, so the least over r bounds every step, not just
    their mean. The theorem's own delta is any number above MED: it exists for every embedding, and the weight
    W < E plays no part.

    Args:
        centres: (p, d) the k_r.
        radii: (p,) the delta_r.

    Raises:
        ValueError: not one radius a centre.
    """
    centres, radii = np.asarray(centres, float), np.asarray(radii, float)
    if centres.ndim != 2 or radii.shape != centres.shape[:1]:
        raise ValueError(f"centres must be (p, d) and radii (p,), got {centres.shape} and {radii.shape}")
    steps = np.sqrt(np.square(np.roll(centres, -1, axis=0) - centres).sum(-1))
    return float((steps + np.roll(radii, -1) + radii).min())


class ImitationBounds(NamedTuple):
    """How far two sums phi(i) + phi(j) and phi(i') + phi(j') are apart, and what bounds it."""

    actual: float  #: |phi(i) + phi(j) - phi(i') - phi(j')|
    printed: float  #: |i - i' + j - j'| MED, in the proof: 0 on an antidiagonal, so no bound
    mean: float  #: (|i - i'| + |j - j'|) MED, the distance but the mean step: no bound either
    largest: float  #: (|i - i'| + |j - j'|) times the largest step, which is a bound


def imitation_bounds(embedding: ArrayLike, pair: tuple[int, int], other: tuple[int, int]) -> ImitationBounds:
    """The step from theorem 3.8 to theorem 3.10, in appendix B.5, for two pairs of residues."""
    embedding, _ = _two_embeddings(embedding, None)
    p = len(embedding)
    i, j, u, v = (checks.integer("pair and other", index, 0, p - 1) for index in (*pair, *other))
    steps = main_embedding_difference(embedding, reduction="none")
    distance = abs(i - u) + abs(j - v)
    actual = embedding[i] + embedding[j] - embedding[u] - embedding[v]
    return ImitationBounds(
        actual=float(np.linalg.norm(actual)),
        printed=float(abs(i - u + j - v) * steps.mean()),
        mean=float(distance * steps.mean()),
        largest=float(distance * steps.max()),
    )


# --- lemmas 3.4 and B.1 -------------------------------------------------------------------------------------


class NormBounds(NamedTuple):
    """Lemma 3.4: operator <= frobenius <= upper."""

    operator: Array  #: (...) the largest singular value
    frobenius: Array  #: (...)
    upper: Array  #: (...) sqrt(min(m, n)) times the operator norm


def norm_bounds(matrix: ArrayLike) -> NormBounds:
    """Both sides of lemma 3.4 for (..., m, n) matrices: equal on the left for rank one, right for orthogonal ones.

    Raises:
        ValueError: no matrix.
    """
    matrix = np.asarray(matrix, float)
    if matrix.ndim < 2 or 0 in matrix.shape:
        raise ValueError(f"matrix must have shape (..., m, n), got {matrix.shape}")
    largest = np.linalg.norm(matrix, 2, axis=(-2, -1))
    frobenius = np.linalg.norm(matrix, "fro", axis=(-2, -1))
    return NormBounds(largest, frobenius, math.sqrt(min(matrix.shape[-2:])) * largest)


def smallest_map(tokens: ArrayLike) -> Array:
    """The direction of the smallest linear map that lemma B.1 asks for.

    The map w -> r <w, v> with the shortest v for which all sums x_i + x_{-i} have <w, v> = 1; its operator
    norm is |r| |v|, and no map with l(x_i) + l(x_{-i}) = r has a smaller one.

    Args:
        tokens: (p, d) the x_i.

    Returns:
        (d,), infinite where the sums' affine hull holds the origin, so that there is no map.
    """
    tokens, _ = _two_embeddings(tokens, None)
    p = len(tokens)
    i = np.arange(p // 2 + 1)
    sums = tokens[i] + tokens[-i % p]  # (p // 2 + 1, d)
    v = np.asarray(np.linalg.lstsq(sums, np.ones(len(sums)), rcond=1e-10)[0], float)
    return v if np.allclose(sums @ v, 1, atol=1e-6) else np.full(tokens.shape[1], np.inf)


def smallest_operator_norm(tokens: ArrayLike, length: float = 1.0) -> float:
    """The least norm of a map with l(x_i) + l(x_{-i}) = r for all i: |r| / dist(0, affine hull of the sums).

    Lemma B.1 says |r| / (2M) for tokens of a length of at most M, but lets the tokens be chosen: it is
    reached only when all of them are one vector of length M. The minimiser is collapse, not even spread.

    Args:
        tokens: (p, d) the x_i.
        length: |r|.

    Returns:
        infinite if the affine hull of the sums x_i + x_{-i} holds the origin.
    """
    return length * float(np.linalg.norm(smallest_map(tokens)))


def printed_smallest_norm(tokens: ArrayLike, length: float = 1.0) -> float:
    """Lemma B.1 as printed: |r| / (2M), M the length of the longest token. A lower bound for given tokens."""
    tokens, _ = _two_embeddings(tokens, None)
    return length / (2 * float(np.linalg.norm(tokens, axis=-1).max()))


# --- definition 5.1: separability ---------------------------------------------------------------------------


def nearest_point(points: ArrayLike, *, tolerance: float = 1e-12) -> Array:
    """The point of a convex hull that is nearest to the origin, as weights of the points.

    Wolfe's algorithm (1976): finite, and exact up to rounding.

    Args:
        points: (n, d).
        tolerance: when to stop, relative to the longest point's squared length.

    Returns:
        (n,) weights, at least 0 and adding up to 1.
    """
    points = _points("points", points)
    lengths = np.square(points).sum(-1)
    enough = tolerance * max(float(lengths.max()), np.finfo(float).tiny)
    corral, weights = [int(lengths.argmin())], np.ones(1)
    for _ in range(100 * sum(points.shape)):  # far more than it takes; rounding might cycle
        x = weights @ points[corral]
        heights = points @ x
        best = int(heights.argmin())
        if x @ x - heights[best] <= enough or best in corral:
            break
        corral, weights = [*corral, best], np.append(weights, 0.0)
        while True:
            affine = _nearest_in_affine_hull(points[corral])
            if (affine > 1e-12).all():
                weights = affine
                break
            going = affine <= 1e-12
            room = weights[going] / np.maximum(weights[going] - affine[going], 1e-300)
            step = min(1.0, float(room.min()))
            weights = (1 - step) * weights + step * affine
            gone = int(np.flatnonzero(going)[room.argmin()])  # one leaves even if rounding says none
            weights[gone] = 0.0
            stay = np.flatnonzero(weights > 1e-12)
            corral, weights = [corral[s] for s in stay], weights[stay]
    full = np.zeros(len(points))
    full[corral] = weights / weights.sum()
    return full


def _nearest_in_affine_hull(points: Array) -> Array:
    """Weights, of either sign, of the affine hull's point that is nearest to the origin."""
    edges = points[1:] - points[0]
    shares = np.linalg.lstsq(edges.T, -points[0], rcond=None)[0]
    return np.concatenate([[1 - shares.sum()], shares])


class HullGap(NamedTuple):
    """The gap between two convex hulls, with its own proof."""

    distance: float  #: between the two nearest points
    nearest_a: Array  #: (d,) a point of the first hull
    nearest_b: Array  #: (d,) the point of the second hull that is nearest to it
    margin: float  #: by how much the direction between them keeps all of A from all of B; below 0 if it does not


def hull_gap(A: ArrayLike, B: ArrayLike) -> HullGap:
    """How far apart the convex hulls of two finite sets are.

    Args:
        A: (n, d) points.
        B: (m, d) points.

    Raises:
        ValueError: points of two dimensions.
    """
    A, B = _points("A", A), _points("B", B)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B must have the same dimension, got {A.shape} and {B.shape}")
    differences = (A[:, None] - B).reshape(-1, A.shape[1])  # the hulls meet where this set's hull holds the origin
    weights = nearest_point(differences).reshape(len(A), len(B))
    a, b = weights.sum(1) @ A, weights.sum(0) @ B
    distance = float(np.linalg.norm(a - b))
    margin = float((differences @ (a - b)).min()) / distance if distance else -np.inf
    return HullGap(distance, a, b, margin)


def topologically_separable(A: ArrayLike, B: ArrayLike) -> bool:
    """Definition 5.1 (1): no point in common.

    Raises:
        ValueError: points of two dimensions.
    """
    A, B = _points("A", A), _points("B", B)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B must have the same dimension, got {A.shape} and {B.shape}")
    return not (A[:, None] == B).all(-1).any()


def convexly_separable(A: ArrayLike, B: ArrayLike, *, tolerance: float = 1e-9) -> bool:
    """Definition 5.1 (2): no point of the convex hulls in common.

    Args:
        A: (n, d) points.
        B: (m, d) points.
        tolerance: hulls no further apart than this, relative to the longest difference of two points, touch.
    """
    gap = hull_gap(A, B)
    longest = float(np.linalg.norm(np.asarray(A, float)[:, None] - np.asarray(B, float), axis=-1).max())
    return gap.margin > tolerance * longest


def convexly_separable_on(A: ArrayLike, B: ArrayLike, subspace: ArrayLike) -> bool:
    """Definition 5.1 (3): the projections on a subspace have disjoint convex hulls.

    The paper calls (2) stronger than (3); it is the other way round. Hulls that a projection keeps apart were
    apart, while a projection can push hulls into each other. On *some* subspace means the same as (2): the
    line between the nearest points will do.

    Args:
        A: (n, d) points.
        B: (m, d) points.
        subspace: (d, s) columns that span it.

    Raises:
        ValueError: points or a subspace of two dimensions.
    """
    A, B, subspace = _points("A", A), _points("B", B), np.asarray(subspace, float)
    if subspace.ndim != 2 or not A.shape[1] == B.shape[1] == len(subspace):
        raise ValueError(f"subspace must be (d, s) with d = {A.shape[1]} as A and B, got {subspace.shape}")
    basis = np.linalg.qr(subspace)[0]
    return convexly_separable(A @ basis, B @ basis)


def separable_classes(embedding: ArrayLike, labels: ArrayLike, *, second: ArrayLike | None = None) -> Mask:
    """Which pairs of classes have sums phi(i) + phi(j) with disjoint convex hulls, over the whole grid.

    None for x + y, whatever the embedding, see `class_centroids`.

    Returns:
        (class, class), symmetric.
    """
    first, second = _two_embeddings(embedding, second)
    labels = _labels(labels, len(first))
    sums = first[:, None] + second  # (p, p, d)
    groups = [sums[labels == r] for r in range(int(labels.max()) + 1)]
    apart = np.zeros((len(groups), len(groups)), bool)
    for r, A in enumerate(groups):
        for s, B in enumerate(groups[:r]):
            apart[r, s] = apart[s, r] = bool(len(A) and len(B)) and convexly_separable(A, B)
    return apart


# --- the flow in the unit cube ------------------------------------------------------------------------------
#
# Both versions have it; equations are numbered as in the earlier one: 7-9, 22 and 23 are 11-13, 17 and 18 in the later
# one. States are (..., 3): x, w, u. The target is 1 for the right answer, s = c in eqs. 7-9, and 0 for the others.


def flow(state: ArrayLike, target: float = 1.0) -> Array:
    """The velocity of eqs. 7-9 and 19-21: (target - x w u) times (w u, x u, x w), for (..., 3) states.

    It is the downhill flow of `flow_potential`. Theorem 2 calls its non-trivial attractors stable; see
    `flow_jacobian`.
    """
    x, w, u = _states(state)
    return (target - x * w * u)[..., None] * np.stack([w * u, x * u, x * w], -1)


def flow_potential(state: ArrayLike, target: float = 1.0) -> Array:
    """(target - x w u)**2 / 2, which falls along the flow at the rate |velocity|**2: the true Lyapunov function."""
    x, w, u = _states(state)
    return (target - x * w * u) ** 2 / 2


def flow_invariants(state: ArrayLike) -> Array:
    """x**2 - w**2 and w**2 - u**2, which the flow conserves: (..., 3) -> (..., 2)."""
    x, w, u = _states(state)
    return np.stack([x**2 - w**2, w**2 - u**2], -1)


def flow_jacobian(state: ArrayLike, target: float = 1.0) -> Array:
    """The Jacobian of the flow: (..., 3) -> (..., 3, 3), symmetric.

    At (1, 1, 1) its eigenvalues are -3, 0 and 0: the equilibria are the whole surface x w u = 1, and the
    point is stable but not asymptotically stable. For target 0 the three planes x w u = 0 are equilibria,
    and attract. At the origin and on the axes all of it vanishes, while for target 1 they are unstable.
    """
    x, w, u = _states(state)
    gradient, rest = np.stack([w * u, x * u, x * w], -1), target - x * w * u
    zero = np.zeros_like(x)
    hessian = np.stack([np.stack([zero, u, w], -1), np.stack([u, zero, x], -1), np.stack([w, x, zero], -1)], -2)
    return rest[..., None, None] * hessian - gradient[..., :, None] * gradient[..., None, :]


def flow_path(start: ArrayLike, times: ArrayLike, target: float = 1.0, *, step: float = 0.01) -> Array:
    """Trajectories of the flow by the classical Runge-Kutta method.

    Args:
        start: (..., 3) where they begin at time 0.
        times: (n,) increasing, at least 0.
        step: the longest step of the method; its error in the cube is below 1e-9 with the default.

    Returns:
        (n, ..., 3).

    Raises:
        ValueError: times that decrease or are negative, or a step not above 0.
    """
    state, times = np.stack(_states(start), -1), np.asarray(times, float)
    if times.ndim != 1 or (np.diff(times, prepend=0.0) < 0).any():
        raise ValueError(f"times must be increasing and at least 0, got {times.tolist()}")
    if not step > 0:
        raise ValueError(f"step must be above 0, got {step}")
    path, now = [], 0.0
    for time in times:
        count = math.ceil((time - now) / step - 1e-9)
        h = (time - now) / count if count else 0.0
        for _ in range(count):
            k1 = flow(state, target)
            k2 = flow(state + h / 2 * k1, target)
            k3 = flow(state + h / 2 * k2, target)
            k4 = flow(state + h * k3, target)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
        now = time
    return np.array(path).reshape(len(times), *state.shape)


def flow_limit(start: ArrayLike, target: float = 1.0) -> Array:
    """Where the flow ends, in closed form but for one cubic equation.

    Along a trajectory the squares keep their differences a, so that the smallest square y solves
    product(y + a) = target**2. Starts with x = w = u reach (1, 1, 1); every other limit lies on the surface x w
    u = 1 outside the cube, although figure 8 says that the cube flows to that point.

    Args:
        start: (..., 3), at least 0. With two coordinates at 0 nothing moves.
        target: at least 0.

    Returns:
        (..., 3).

    Raises:
        ValueError: a start or a target below 0.
    """
    state = np.stack(_states(start), -1)
    if not (state >= 0).all():
        raise ValueError("start must not be negative: the closed form is for the octant of the unit cube")
    if not target >= 0:
        raise ValueError(f"target must be at least 0, got {target}")
    squares = state**2
    above = squares - squares.min(-1, keepdims=True)  # (..., 3) at least 0
    y = np.full(state.shape[:-1], float(target) ** (2 / 3))  # at or right of the root of a convex increasing function
    for _ in range(100 if target else 0):
        a, b, c = np.moveaxis(y[..., None] + above, -1, 0)
        y = y - (a * b * c - target**2) / (b * c + a * c + a * b)
    stuck = (state == 0).sum(-1) >= 2
    return np.where(stuck[..., None], state, np.sqrt(y[..., None] + above))


def printed_lyapunov(state: ArrayLike) -> Array:
    """V of eq. 22, the squared distance from (1, 1, 1)."""
    return sum((np.square(axis - 1) for axis in _states(state)), np.zeros(()))


def lyapunov_rate(state: ArrayLike) -> Array:
    """dV/dt of `printed_lyapunov` along the flow to 1: 2 (1 - xwu) (3xwu - wu - xu - xw).

    Eq. 23 drops the 2, and argues with leading minors, which are for quadratic forms. Below 0 in the open
    cube, but above 0 at points arbitrarily near (1, 1, 1) outside it, for instance (1.104, 0.904, 1.004), so
    V is no Lyapunov function there. `flow_potential` is one.
    """
    x, w, u = _states(state)
    product = x * w * u
    return 2 * (1 - product) * (3 * product - w * u - x * u - x * w)


def rising_share(radius: float, points: int = 20_000, *, generator: Seed = None) -> float:
    """The share of a sphere around (1, 1, 1) on which V rises, from random points.

    Raises:
        ValueError: a radius not between 0 and 1.
    """
    if not 0 < radius < 1:
        raise ValueError(f"radius must be between 0 and 1, got {radius}")
    directions = checks.generator(generator).standard_normal((checks.integer("points", points, 1), 3))
    sphere = 1 + radius * directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    return float((lyapunov_rate(sphere) > 0).mean())


# --- MED beside Fourier power and local complexity ----------------------------------------------------------


def embedding_power(embedding: ArrayLike) -> Array:
    """P_f = |phi_hat(f)|**2 at the frequencies f = 0 .. p - 1, the transform divided by p: (..., p, d) -> (..., p).

    Raises:
        ValueError: not of two dimensions or more.
    """
    embedding = np.asarray(embedding, float)
    if embedding.ndim < 2:
        raise ValueError(f"embedding must have shape (..., p, d), got {embedding.shape}")
    return np.square(np.abs(np.fft.fft(embedding, axis=-2) / embedding.shape[-2])).sum(-1)


def mean_square_difference(power: ArrayLike, step: int = 1) -> Array:
    """Parseval: the mean over i of |phi(i + step) - phi(i)|**2 is sum_f P_f 4 sin(pi f step / p)**2.

    So the level of MED depends on which frequencies a network picked, although i -> a i permutes them and
    leaves x + y the same task.

    Args:
        power: (..., p) of `embedding_power`.
    """
    power = np.asarray(power, float)
    p = power.shape[-1]
    return (power * 4 * np.sin(np.pi * np.arange(p) * step / p) ** 2).sum(-1)


def circle_embedding(p: int, frequencies: Sequence[int], radii: ArrayLike = 1.0) -> Array:
    """Residues on circles, one a frequency: (p, 2 len(frequencies)), cosines and sines by turns.

    Args:
        radii: of the circles, a number or one each.
    """
    f, R = _circles(p, frequencies, radii)
    angles = 2 * np.pi * np.outer(np.arange(p), f) / p
    return (R[:, None] * np.stack([np.cos(angles), np.sin(angles)], -1)).reshape(p, -1)


def circle_med(p: int, frequencies: Sequence[int], radii: ArrayLike = 1.0) -> float:
    """MED of `circle_embedding`: sqrt(sum (2 R sin(pi f / p))**2), every step being the same.

    One circle has 2 R sin(pi f / p): at p = 97 from 0.065 R to 2.000 R, beside 1.41 R for random vectors.
    """
    f, R = _circles(p, frequencies, radii)
    return float(np.sqrt(np.square(2 * R * np.sin(np.pi * f / p)).sum()))


def initial_difference(d: int) -> float:
    """E |phi(i + 1) - phi(i)| for independent entries of variance 1/d, close to sqrt(2) (1 - 1 / (4 d))."""
    d = checks.integer("d", d, 1)
    return 2 / math.sqrt(d) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def local_complexity(weights: ArrayLike, biases: ArrayLike, samples: ArrayLike, radius: float) -> Integers:
    """How many ReLU hyperplanes pass each sample at a distance below a radius: |w x + b| < r |w|.

    Unchanged by (weights, biases) -> c (weights, biases), where MED scales with the embeddings.

    Args:
        weights: (neuron, d).
        biases: (neuron,).
        samples: (n, d).

    Returns:
        (n,); a neuron without weights has no hyperplane.

    Raises:
        ValueError: shapes that do not belong together, or a radius not above 0.
    """
    weights, biases, samples = (np.asarray(value, float) for value in (weights, biases, samples))
    if (
        weights.ndim != 2
        or biases.shape != weights.shape[:1]
        or samples.ndim != 2
        or samples.shape[1] != len(weights.T)
    ):
        raise ValueError(
            "weights must be (neuron, d), biases (neuron,) and samples (n, d), "
            f"got {weights.shape}, {biases.shape} and {samples.shape}"
        )
    if not radius > 0:
        raise ValueError(f"radius must be above 0, got {radius}")
    return (np.abs(samples @ weights.T + biases) < radius * np.linalg.norm(weights, axis=-1)).sum(-1)


# --- theorem 3 and assumption 1 of the earlier version ------------------------------------------------------


def shift_keeps_answer(p: int, d1: int, d2: int) -> bool:
    """Earlier version, theorem 3: does (i + d1) + (j + d2) = i + j mod p hold? When p divides d1 + d2.

    Printed the other way round, "d1 + d2 divides p", which for a prime allows +-1 and +-p only.
    """
    return (d1 + d2) % checks.integer("p", p, 2) == 0


def neighbour_weight(
    p: int, train_fraction: float, pair: tuple[int, int] | None = None, *, axes: bool = False
) -> float:
    """Earlier version, assumption 1: the expected sum of 1 / (t1**2 + t2**2) over training neighbours.

    The paper bounds it by multiples of p**2 to explain why a larger p needs fewer steps; it grows like ln p.

    Args:
        pair: (i, j); None is the centre of the grid.
        axes: also count neighbours with t1 = 0 or t2 = 0, which "t1, t2 in Z / {0}" leaves out.

    Raises:
        ValueError: a train_fraction outside 0 to 1.
    """
    p = checks.integer("p", p, 2)
    if not 0 <= train_fraction <= 1:
        raise ValueError(f"train_fraction must be from 0 to 1, got {train_fraction}")
    i, j = (p // 2, p // 2) if pair is None else (checks.integer("pair", index, 0, p - 1) for index in pair)
    t1, t2 = (np.arange(p) - i)[:, None], np.arange(p) - j
    counted = (t1 != 0) | (t2 != 0) if axes else (t1 != 0) & (t2 != 0)
    return train_fraction * float((1 / (t1**2 + t2**2)[counted]).sum())


# --- checks of what was passed ------------------------------------------------------------------------------


def _mask(mask: ArrayLike, p: int | None = None) -> Mask:
    mask = np.asarray(mask)
    square = mask.ndim >= 2 and mask.shape[-1] == mask.shape[-2] >= 2
    if not square or mask.dtype != bool or (p is not None and mask.shape != (p, p)):
        wanted = "(..., p, p)" if p is None else f"(p, p) = ({p}, {p})"
        raise ValueError(f"a mask must be boolean of shape {wanted}, got {mask.dtype} of shape {mask.shape}")
    return mask


def _labels(labels: ArrayLike, p: int) -> Integers:
    labels = np.asarray(labels)
    if labels.shape != (p, p) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"labels must be integers of at least 0 and shape (p, p) = ({p}, {p}), got {labels.dtype} of {labels.shape}"
        )
    return labels.astype(np.int64)


def _two_embeddings(first: ArrayLike, second: ArrayLike | None) -> tuple[Array, Array]:
    first = np.asarray(first, float)
    second = first if second is None else np.asarray(second, float)
    if first.ndim != 2 or len(first) < 2 or first.shape != second.shape:
        raise ValueError(f"an embedding must be (p, d), the second like the first, got {first.shape}, {second.shape}")
    return first, second


def _points(name: str, points: ArrayLike) -> Array:
    points = np.asarray(points, float)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"{name} must be (n, d) with at least one point, got {points.shape}")
    return points


def _states(state: ArrayLike) -> tuple[Array, Array, Array]:
    state = np.asarray(state, float)
    if state.shape[-1:] != (3,):
        raise ValueError(f"a state must have shape (..., 3), its x, w and u, got {state.shape}")
    x, w, u = np.moveaxis(state, -1, 0)
    return x, w, u


def _circles(p: int, frequencies: Sequence[int], radii: ArrayLike) -> tuple[Integers, Array]:
    p, k = checks.integer("p", p, 2), np.asarray(frequencies)
    if k.ndim != 1 or k.dtype.kind not in "iu":
        raise ValueError(f"frequencies must be integers in one row, got {k.dtype} of shape {k.shape}")
    lengths = np.asarray(radii, float)
    if lengths.ndim and lengths.shape != k.shape:
        raise ValueError(f"radii must be a number or one for each frequency, got {lengths.shape}")
    return k.astype(np.int64), np.broadcast_to(lengths, k.shape)


def _line(p: int) -> Integers:
    """(p, p) distances of coordinates on the plain grid."""
    return np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def _ring(p: int) -> Integers:
    """(p, p) distances of coordinates on the torus."""
    return np.minimum(_line(p), p - _line(p))


def _ratio(numerator, denominator):
    """numerator / denominator, nan where the denominator is zero, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)
