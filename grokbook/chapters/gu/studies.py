"""Numbers that the figures and the claims share: read off records, or computed without training anything.

A study is a dataset made without training. It stands beside the records under its own name, so that a figure or a
claim asks for either in one way. Times are optimizer steps; a curve is read on a record's even grid of steps.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook import measures
from grokbook.chapters.gu import theory
from grokbook.chapters.gu.experiments import EXPERIMENTS
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.curves import last as last
from grokbook.curves import own_steps as own_steps
from grokbook.curves import spearman as spearman
from grokbook.tasks import modular_function
from grokbook.train.records import select

Array = NDArray[np.float64]
Records = Mapping[str, xr.Dataset]

FITTED = 0.999  # train accuracy at which a run has memorised
SMOOTHING = 100  # steps: standard deviation of the Gaussian, and the length of an increment
PLATEAU = 500  # steps a running median spans

# What is compared with the test loss -> what figures call it.
TRACKERS = {
    "med_M1": "MED",
    "med_permuted": "MED, permuted",
    "med_step_2": "MED, relabelled (step 2)",
    "med_step_5": "MED, relabelled (step 5)",
    "embedding_norm": "embedding norm R",
    "med_over_norm": "MED / R",
    "total_norm": "total weight norm W",
}


# ---------------------------------------------------------------------------------------------------- from records


def regular_steps(record: xr.Dataset) -> xr.Dataset:
    """The steps of a record's even grid, without what is measured more often early on or in windows."""
    every = json.loads(record.attrs["recipe"])["schedule"]["every"] or 1
    return own_steps(record.isel(step=np.flatnonzero(record.step.values % every == 0)))


def first(record: xr.Dataset, name: str, threshold: float) -> Array:
    """(run,) the first measured step at which a curve is at least ``threshold``; nan if never."""
    return measures.first_step(record[name].values, record.step.values, threshold)


def fitted(record: xr.Dataset) -> Array:
    """t_fit, (run,): when the training set is learnt."""
    return first(record, "train_accuracy", FITTED)


def reached(record: xr.Dataset, accuracy: float) -> Array:
    """t_q, (run,): when test accuracy first is at least q."""
    return first(record, "test_accuracy", accuracy)


def grokked(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether test accuracy reached 0.9, and not before five times t_fit."""
    return np.nan_to_num(reached(record, 0.9), nan=-1) >= 5 * np.nan_to_num(fitted(record), nan=np.inf)


def smooth(values: ArrayLike, steps: ArrayLike, width: float = SMOOTHING) -> Array:
    """A curve on an even grid of steps, averaged under a Gaussian of ``width`` steps that is cut at both ends.

    Args:
        values: (..., step), finite.
        steps: (step,) at equal distances.
    """
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    distance = steps[1] - steps[0] if len(steps) > 1 else 1.0
    reach = int(np.ceil(4 * width / distance))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * distance / width) ** 2)
    weight = np.convolve(np.ones(len(steps)), kernel, "full")[reach:-reach]
    flat = values.reshape(-1, len(steps))
    summed = np.stack([np.convolve(row, kernel, "full")[reach:-reach] for row in flat])
    return (summed / weight).reshape(values.shape)


def running_median(values: ArrayLike, steps: ArrayLike, width: int = PLATEAU) -> Array:
    """(step,) the median over a window of about ``width`` steps, shorter at both ends."""
    values, steps = np.asarray(values, float), np.asarray(steps, float)
    half = max(1, round(width / (steps[1] - steps[0]) / 2)) if len(steps) > 1 else 1
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def _after_fit(record: xr.Dataset, run: int) -> NDArray[np.int64]:
    """Positions on the step axis, of one run, that are measured after t_fit."""
    late = record.step.values > np.nan_to_num(fitted(record)[run], nan=np.inf)
    return np.flatnonzero(late & np.isfinite(record.test_loss.values[run]))


def tracking(record: xr.Dataset, names: Sequence[str] = tuple(TRACKERS)) -> xr.Dataset:
    """How well quantities follow the test loss once the training set is learnt.

    Returns:
        dimensions (measure, run): ``correlation``, Spearman's, with the test loss; ``agreement``, the share of
        100-step increments of the smoothed curves in which the quantity and the logarithm of the test loss have one
        sign; ``agreement_raw``, the same for single steps inside a record's windows. nan where there is nothing to see.
    """
    even = regular_steps(record)
    shape = (len(names), record.sizes["run"])
    found = {name: np.full(shape, np.nan) for name in ("correlation", "agreement", "agreement_raw")}
    for run in range(record.sizes["run"]):
        late, steps = _after_fit(even, run), even.step.values
        if len(late) < 10:
            continue
        loss = even.test_loss.values[run, late]
        lag = max(1, round(SMOOTHING / (steps[1] - steps[0])))
        fine = _after_fit(record, run)
        pairs = fine[:-1][np.diff(record.step.values[fine]) == 1]  # steps whose next one was measured too
        for row, name in enumerate(names):
            if name not in record:
                continue
            values = even[name].values[run, late]
            found["correlation"][row, run] = spearman(values, loss)
            smoothed = [smooth(one, steps[late]) for one in (values, np.log(loss))]
            found["agreement"][row, run] = _agreement(*(one[lag:] - one[:-lag] for one in smoothed))
            if len(pairs) > 50:
                raw = [record[one].values[run].astype(float) for one in (name, "test_loss")]
                found["agreement_raw"][row, run] = _agreement(*(one[pairs + 1] - one[pairs] for one in raw))
    coords = {"measure": list(names), "label": ("run", record.label.values), "seed": ("run", record.seed.values)}
    return xr.Dataset({name: (("measure", "run"), values) for name, values in found.items()}, coords)


def _agreement(a: Array, b: Array) -> float:
    return float((np.sign(a) == np.sign(b)).mean()) if len(a) else float("nan")


def below_start(record: xr.Dataset, name: str = "med_M1") -> Array:
    """(run,) the first step after t_fit at which a quantity is below its initial value; nan if never."""
    found = np.full(record.sizes["run"], np.nan)
    for run in range(record.sizes["run"]):
        values, late = record[name].values[run], _after_fit(record, run)
        low = late[values[late] < values[0]]
        if len(low):
            found[run] = record.step.values[low[0]]
    return found


def floor(record: xr.Dataset, name: str) -> Array:
    """(run,) the least value of a curve after t_fit; nan if the training set is never learnt."""
    late = [record[name].values[run, _after_fit(record, run)] for run in range(record.sizes["run"])]
    return np.array([values.min() if len(values) else np.nan for values in late], float)


def best(record: xr.Dataset, name: str = "test_accuracy") -> Array:
    """(run,) the largest value of a curve smoothed over 100 steps."""
    even = regular_steps(record)
    found = np.full(record.sizes["run"], np.nan)
    for run, values in enumerate(even[name].values):
        known = np.isfinite(values)
        if known.any():
            found[run] = smooth(values[known], even.step.values[known]).max()
    return found


def settled(record: xr.Dataset, name: str) -> Array:
    """(run,) the median of a curve's last 500 steps."""
    even = regular_steps(record)
    found = np.full(record.sizes["run"], np.nan)
    for run, values in enumerate(even[name].values):
        known = np.flatnonzero(np.isfinite(values))
        if len(known):
            late = known[even.step.values[known] >= even.step.values[known[-1]] - PLATEAU]
            found[run] = np.median(values[late])
    return found


def mask_of(record: xr.Dataset, run: int) -> NDArray[np.bool_]:
    """The training set of a run, (p, p), drawn again from its recipe."""
    names = [field.name for field in dataclasses.fields(HoledTask) if field.name in record.coords]
    fields = {name: record[name].values[run].item() for name in names}
    split_seed = fields.pop("split_seed", np.nan)
    task = HoledTask(**fields, split_seed=int(split_seed) if np.isfinite(split_seed) else None)
    return task.in_train(int(record.seed.values[run])).reshape(task.p, task.p)


def hole_of(record: xr.Dataset, run: int) -> NDArray[np.bool_]:
    """The pairs that a run never trains on by design, (p, p)."""
    kind, p, size = (record[name].values[run] for name in ("hole", "p", "size"))
    return np.zeros((int(p), int(p)), bool) if kind == "none" else theory.hole(str(kind), int(p), int(size))


def paper_row(kind: str, size: int, p: int) -> theory.Row | None:
    """The row of Table 1 that a hole is, or is at another modulus."""
    rows = [row for row in theory.TABLE_1 if row.kind == kind and round(row.size * p / 97) == size]
    return rows[0] if rows else None


def reach(p: int) -> int:
    """The distance with which theorem 3.10 fits the square rows of Table 1 best on the torus: 12, at p = 97."""
    return 2 * round(6 * p / 97)


def table_1(record: xr.Dataset) -> xr.Dataset:
    """Table 1 from a record of holes.

    Returns:
        dimensions (row, seed). ``highest``, the largest running median of test accuracy; ``U``, the largest after
        t_fit, nan for a network that never memorises; ``L``, the least after that; ``onset``, when it first is above
        U / 2 in the whole run; the last 500 steps' ``inside``, ``outside``, ``inside_mirrored`` and
        ``inside_unmirrored``; what rivals predict, ``coverage`` (theorem 3.10 at `reach`) and ``mirror`` (outside all
        right, inside what has a trained mirror). Along row: ``kind``, ``size``, ``share`` (hole / test set),
        ``paper_U``, ``paper_L``, ``paper_onset``.
    """
    even = regular_steps(record)
    labels, seeds = list(dict.fromkeys(record.label.values.tolist())), np.unique(record.seed.values)
    names = ("highest", "U", "L", "onset", "coverage", "mirror")
    places = ("inside", "outside", "inside_mirrored", "inside_unmirrored", "mirrored", "unmirrored")
    found = {name: np.full((len(labels), len(seeds)), np.nan) for name in (*names, *places)}
    kept = ("kind", "size", "share", "paper_U", "paper_L", "paper_onset")
    columns: dict[str, list[object]] = {name: [] for name in kept}
    late = {place: settled(record, f"accuracy_{place}") for place in places}
    t_fit, steps = fitted(even), even.step.values
    for row, label in enumerate(labels):
        for run in np.flatnonzero(record.label.values == label):
            at = row, int(np.searchsorted(seeds, record.seed.values[run]))
            values = even.test_accuracy.values[run]
            known = np.isfinite(values)
            if known.any():
                found["highest"][at] = running_median(values[known], steps[known]).max()
            after = np.flatnonzero(known & (steps >= np.nan_to_num(t_fit[run], nan=np.inf)))
            if len(after) > 1:
                level = running_median(values[after], steps[after])
                top = int(level.argmax())
                found["U"][at], found["L"][at] = level[top], level[top:].min()
                whole = running_median(values[known], steps[known])
                found["onset"][at] = steps[known][np.argmax(whole > level[top] / 2)]
            for place in places:
                found[place][at] = late[place][run]
            mask, hole = mask_of(record, int(run)), hole_of(record, int(run))
            answers = modular_function(str(record.f.values[run]), len(mask))
            found["coverage"][at] = theory.same_class_coverage(mask, answers, reach(len(mask)))
            found["mirror"][at] = theory.mirror_accuracy(mask, hole)
        kind, size, p = str(record.hole.values[run]), int(record["size"].values[run]), len(mask)
        paper = paper_row(kind, size, p)
        columns["kind"].append(kind)
        columns["size"].append(size)
        columns["share"].append(float((hole & ~mask).sum() / (~mask).sum()))
        columns["paper_U"].append(paper.highest if paper else np.nan)
        columns["paper_L"].append(paper.lowest if paper else np.nan)
        columns["paper_onset"].append(paper.onset if paper and paper.onset else np.nan)
    variables = {name: (("row", "seed"), values) for name, values in found.items()}
    coords = {"row": labels, "seed": seeds, **{name: ("row", values) for name, values in columns.items()}}
    return xr.Dataset(variables, coords, {"p": len(mask)})


def rival_errors(study: xr.Dataset) -> dict[str, dict[str, dict[str, float]]]:
    """How far three explanations of Table 1 are from our U and from the paper's: whose -> rule -> rows -> points (rms).

    The distance of coverage was fitted to the paper's squares (see `reach`), the constant share to all rows of its
    own target; mirrors have nothing to fit. nan where no row has a U.
    """
    ours = np.array([measures.median(row) for row in study.U.values])
    found: dict[str, dict[str, dict[str, float]]] = {}
    for whose, target in (("our", ours), ("the paper's", study.paper_U.values)):
        known = np.isfinite(target)
        predicted = {
            f"coverage within {reach(study.attrs['p'])}": study.coverage.median("seed").values,
            "mirrors alone": study.mirror.median("seed").values,
        }
        if known.any():
            right, _ = theory.constant_hole_accuracy(study.share.values[known], target[known])
            predicted[f"{100 * right:.0f} % of every hole"] = 1 - study.share.values * (1 - right)
        found[whose] = {
            name: {
                words: float(100 * np.sqrt(np.mean(np.square(values - target)[chosen]))) if chosen.any() else np.nan
                for words, chosen in (
                    ("squares", known & (study.kind.values == "square")),
                    ("strips", known & (study.kind.values == "strip")),
                    ("all rows", known),
                )
            }
            for name, values in predicted.items()
        }
    return found


def two_vocabularies(record: xr.Dataset) -> xr.Dataset:
    """Earlier appendix F: sizes of the two operands' embeddings at each snapshot of the first run.

    ``diameter_a``, ``diameter_b`` and ``union``, the largest distances; ``set_distance``, the least between the two;
    ``neighbour``, the mean distance of consecutive residues (MED), and ``ratio``, that over the mean diameter.
    """
    p, offset = int(record.p.values[0]), int(record.offset.values[0])
    rows = []
    for table in record.W_E.values[0].astype(float):
        a, b = measures.embedding_blocks(table, p, offset)
        apart = [np.linalg.norm(x[:, None] - y, axis=-1) for x, y in ((a, a), (b, b), (a, b))]
        med = float(measures.published_med(a, b))
        first, second = float(apart[0].max()), float(apart[1].max())
        union = max(first, second, float(apart[2].max()))
        rows.append((first, second, union, float(apart[2].min()), med, 2 * med / (first + second)))
    names = ("diameter_a", "diameter_b", "union", "set_distance", "neighbour", "ratio")
    return xr.Dataset({name: ("snapshot", values) for name, values in zip(names, np.array(rows).T, strict=True)})


SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def pretty(f: str) -> str:
    """A function as the paper writes it: n**2 + n*m as x² + xy."""
    text = re.sub(r"\s*\*\*\s*(\d+)", lambda power: power[1].translate(SUPERSCRIPTS), f)
    return text.replace("*", "").replace("n", "x").replace("m", "y").replace("-", "−")


SYMMETRIES = {  # moves under which each function keeps its answer, as theory.symmetry_orbits reads them
    "mirror": lambda p: [[[0, 1], [1, 0]]],
    "negative mirror": lambda p: [[[0, -1], [-1, 0]]],
    "joint sign": lambda p: [[[-1, 0], [0, -1]]],
    "sign": lambda p: [[[-1, 0], [0, 1]]],
    "cube root": lambda p: [[[w, 0], [0, 1]] for w in theory.roots_of_unity(p, 3)],
}
KEPT = {  # which of them hold for the functions of figures 12 to 19
    "n - m": ("negative mirror",),
    "n*m": ("mirror", "joint sign"),
    "n**2 + m**2": ("mirror", "sign"),
    "n**3 + m**3": ("mirror", "cube root"),
    "n**2 + n*m + m**2": ("mirror", "joint sign"),
    "n**3 + n*m + m**3": ("mirror",),
    "n + m": ("mirror",),
}


def symmetry_share(f: str, p: int, train_fraction: float, names: Sequence[str] | None = None) -> float:
    """The test accuracy of knowing nothing but a function's symmetries and the training set, on average."""
    moves = _moves(f, p, names)
    return theory.expected_symmetry_share(p, train_fraction, moves) if moves else 0.0


def _moves(f: str, p: int, names: Sequence[str] | None) -> list[list[list[int]]]:
    """The moves of a function's symmetries, or of the named ones."""
    return [move for name in (KEPT.get(f, ()) if names is None else names) for move in SYMMETRIES[name](p)]


def own_share(record: xr.Dataset, names: Sequence[str] | None = ("mirror",)) -> Array:
    """(run,) the same for each run's own training set: of the mirror alone, or None for all of its function's."""
    found = np.zeros(record.sizes["run"])
    for run, (f, p) in enumerate(zip(record.f.values.tolist(), record.p.values.tolist(), strict=True)):
        if moves := _moves(f, p, names):
            found[run] = theory.symmetry_share(mask_of(record, run), moves)
    return found


def on_plateau(record: xr.Dataset, accuracy: float = 0.5) -> float:
    """The median share that mirrors alone answer where that comes near an accuracy: a time of passing it says less.

    0.0 where operands have tokens of their own, so that a mirror is another input, or where the share is more than a
    tenth below ``accuracy``.
    """
    share = float(np.median(own_share(record))) if not record.offset.values.any() else 0.0
    return share if share >= accuracy - 0.1 else 0.0


# ----------------------------------------------------------------------------------------------- from several records

TRACKED = (
    "base", "primes", "largest_prime", "overlap", "toeplitz", "holes", "holes_by_text", "fractions", "operations",
    "layers", "width_apart", "width_shared", "width_ceiling", "width_boundary", "positions", "seeds_apart",
    "diameters", "dnn",
)  # fmt: skip


FIGURE_5 = ("base", "primes", "largest_prime")


def by_prime(records: Records) -> dict[int, xr.Dataset]:
    """The runs of figure 5 at hand, by modulus; of two records with one modulus, the first."""
    found: dict[int, xr.Dataset] = {}
    for name in FIGURE_5:
        if name in records:
            for p in np.unique(records[name].p.values):
                found.setdefault(int(p), select(records[name], p=int(p)))
    return dict(sorted(found.items()))


def not_drawn(records: Records) -> dict[str, list[int]]:
    """Records of figure 5 that are at hand and add nothing to it, with their moduli: an earlier one has the same."""
    seen: set[int] = set()
    found = {}
    for name in FIGURE_5:
        if name in records:
            moduli = {int(p) for p in records[name].p.values}
            if moduli <= seen:
                found[name] = sorted(moduli)
            seen |= moduli
    return found


def as_paper(name: str, record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether runs have the function, table, width and fraction of their figure; seeds and steps may differ."""
    full = {
        (run.task.f, run.task.p, run.model.d_model, round(run.task.train_fraction, 9))
        for run in EXPERIMENTS[name]().runs
    }
    columns = (record[field].values.tolist() for field in ("f", "p", "d_model", "train_fraction"))
    return np.array([(f, p, d, round(alpha, 9)) in full for f, p, d, alpha in zip(*columns, strict=True)], bool)


def special(records: Records) -> xr.Dataset | None:
    """`tracking` of every run of the chapter, side by side; None if no record is at hand.

    Dimensions (measure, run), with ``experiment``, ``label``, ``seed``, ``final`` (test accuracy) and ``as_paper``,
    whether table, width and fraction are those of the paper's figure, along run.
    """
    parts = []
    for name in TRACKED:
        if name in records:
            part = tracking(records[name])
            final = last(records[name], "test_accuracy")
            parts.append(
                part.assign_coords(
                    experiment=("run", [name] * part.sizes["run"]),
                    final=("run", final),
                    as_paper=("run", as_paper(name, records[name])),
                )
            )
    if not parts:
        return None
    return xr.concat(parts, "run")


# --------------------------------------------------------------------------------------------- without any training


def masks(p: int, train_fraction: float = 0.3) -> xr.Dataset:
    """Figure 3: a random training set, one without a square and one without a strip, (hole, i, j), as k = t = 40."""
    size = round(40 * p / 97)
    holes = {"random": None, f"square, k = {size}": "square", f"strip, t = {size}": "strip"}
    drawn = [
        theory.draw_training_mask(
            p, train_fraction, holed=None if kind is None else theory.hole(kind, p, size), generator=0
        )
        for kind in holes.values()
    ]
    attrs = {"hole_size": size, "train_fraction": train_fraction}
    return xr.Dataset({"trained": (("hole", "i", "j"), np.array(drawn))}, {"hole": list(holes)}, attrs)


DIAMONDS = (2, 3, 4, 5, 6)


def coverage(p: int, draws: int = 200) -> xr.Dataset:
    """Theorem 3.12 for k = 2 to 6: the printed bound beside what happens, (k, surface) surface torus or grid.

    ``bound`` (k); ``threshold``, where one uncovered point is expected; ``half`` and ``most``, where all is covered
    with probability 0.5 and 0.95 (simulated); ``expected``, E[prop] at alpha = 0.3; ``uncovered`` (k, surface,
    fraction).
    """
    surfaces = ("torus", "grid")
    fractions = np.linspace(0.02, 0.98, 97)
    sizes = [int(alpha * p * p) for alpha in fractions]
    shape = (len(DIAMONDS), 2)
    threshold, half, most, expected = (np.zeros(shape) for _ in range(4))
    uncovered = np.zeros((*shape, len(fractions)))
    for a, k in enumerate(DIAMONDS):
        for b, surface in enumerate(surfaces):
            torus = surface == "torus"
            threshold[a, b] = theory.coverage_threshold(p, k, torus=torus)
            expected[a, b] = theory.expected_covered_fraction(p, k, 0.3, torus=torus)
            uncovered[a, b] = theory.expected_uncovered(p, k, sizes, torus=torus)
            full = theory.coverage_times(p, k, draws, torus=torus, generator=0).max((-2, -1)) / p**2
            half[a, b], most[a, b] = np.quantile(full, [0.5, 0.95])
    return xr.Dataset(
        {
            "bound": ("k", [theory.coverage_bound(p, k) for k in DIAMONDS]),
            "size": ("k", [theory.diamond_size(k) for k in DIAMONDS]),
            "threshold": (("k", "surface"), threshold),
            "half": (("k", "surface"), half),
            "most": (("k", "surface"), most),
            "expected": (("k", "surface"), expected),
            "uncovered": (("k", "surface", "fraction"), uncovered),
        },
        {"k": list(DIAMONDS), "surface": list(surfaces), "fraction": fractions},
        {"p": p, "draws": draws},
    )


def same_class(p: int, train_fraction: float = 0.3, draws: int = 3) -> xr.Dataset:
    """Theorem 3.10 for the rows of Table 1: coverage (row, seed, D, surface) and the D that would give U (row, seed).

    Also ``random`` (D), the coverage of a training set without a hole, and along row ``U`` and ``share``.
    """
    rows = [row._replace(size=round(row.size * p / 97)) for row in theory.TABLE_1]
    labels, distances = modular_function("n + m", p), np.arange(2, p + 1, 2)
    masks = theory.table_masks(rows, range(draws), p=p, train_fraction=train_fraction)
    covered = np.stack(
        [theory.same_class_coverage(masks, labels, distances, torus=torus) for torus in (True, False)], -1
    )  # (row, seed, D, surface)
    matching = np.array(
        [
            [theory.matching_distance(mask, labels, row.highest) for mask in of_row]
            for row, of_row in zip(rows, masks, strict=True)
        ]
    )
    plain = [theory.draw_training_mask(p, train_fraction, generator=seed) for seed in range(draws)]
    return xr.Dataset(
        {
            "coverage": (("row", "seed", "D", "surface"), covered),
            "matching": (("row", "seed"), matching),
            "random": ("D", theory.same_class_coverage(np.array(plain), labels, distances).mean(0)),
        },
        {
            "row": [f"{row.kind} {row.size}" for row in rows],
            "kind": ("row", [row.kind for row in rows]),
            "U": ("row", [row.highest for row in rows]),
            "share": ("row", [theory.hole_share(row, p=p, train_fraction=train_fraction) for row in rows]),
            "D": distances,
            "surface": ["torus", "grid"],
        },
        {"p": p},
    )


def separability(trials: int = 1000, p: int = 13) -> xr.Dataset:
    """Definition 5.1 on random pairs of four points in space, projected on two coordinates; theorem 3.5 at p = 13.

    ``counts`` (case): separable both ways, before the projection only, after it only, neither. ``classes``
    (embedding): how many pairs of classes of x + y have sums with disjoint hulls.
    """
    draw = np.random.default_rng(0)
    counts = dict.fromkeys(("both", "before only", "after only", "neither"), 0)
    for _ in range(trials):
        A, B = draw.standard_normal((2, 4, 3)) + np.array([[[0.0]], [[0.7]]])
        before, after = theory.convexly_separable(A, B), theory.convexly_separable(A[:, :2], B[:, :2])
        counts[("neither", "after only", "before only", "both")[2 * before + after]] += 1
    labels = modular_function("n + m", p)
    embeddings = {
        "a circle": theory.circle_embedding(p, [1]),
        "random (d = 4)": draw.standard_normal((p, 4)),
        "random (d = 128)": draw.standard_normal((p, 128)),
    }
    apart = [int(theory.separable_classes(one, labels).sum()) // 2 for one in embeddings.values()]
    return xr.Dataset(
        {"counts": ("case", list(counts.values())), "classes": ("embedding", apart)},
        {"case": list(counts), "embedding": list(embeddings)},
        {"p": p, "pairs": p * (p - 1) // 2, "trials": trials},
    )


def flow_starts(starts: int = 2000) -> xr.Dataset:
    """Figure 8's flow from random points of the cube: where they end, and what that is held against.

    ``limit`` (start, axis) in closed form, ``distance`` (start) of it from (1, 1, 1), ``gap`` (some) between it and an
    integrated trajectory, ``rising`` (radius) the share of small spheres on which V rises. As attributes:
    ``invariant``, the largest change of a conserved quantity; ``rate``, the largest V' at random points of the cube;
    ``near`` and ``stays``, how far from the point trajectories start, on all sides of it, and how far away they get.
    """
    begin = np.random.default_rng(0).uniform(0, 1, (starts, 3))
    limit = theory.flow_limit(begin)
    some = begin[(begin > 0.15).all(1)][:100]  # near two zeros a trajectory takes for ever to leave
    path = theory.flow_path(some, [1.0, 60.0])
    drift = np.abs(theory.flow_invariants(path) - theory.flow_invariants(some)).max()
    radii = (0.01, 0.03, 0.1, 0.2)
    draw, near = np.random.default_rng(1), 0.01
    sides = draw.standard_normal((200, 3))
    around = 1 + near * sides / np.linalg.norm(sides, axis=1, keepdims=True)
    away = np.linalg.norm(theory.flow_path(around, np.linspace(0, 5, 51)) - 1, axis=-1)
    rate = theory.lyapunov_rate(draw.uniform(0, 1, (20_000, 3))).max()
    return xr.Dataset(
        {
            "start": (("start_", "axis"), begin),
            "limit": (("start_", "axis"), limit),
            "distance": ("start_", np.linalg.norm(limit - 1, axis=1)),
            "gap": ("some", np.abs(path[-1] - theory.flow_limit(some)).max(1)),
            "rising": ("radius", [theory.rising_share(radius, generator=0) for radius in radii]),
        },
        {"radius": list(radii)},
        {"invariant": float(drift), "rate": float(rate), "near": near, "stays": float(away.max())},
    )


def lemmas(seed: int = 0) -> xr.Dataset:
    """Lemmas 3.4 and B.1 on random matrices and tokens.

    ``operator``, ``frobenius``, ``upper`` (matrix); ``exact`` and ``printed`` (tokens), the least norm of a map with
    l(x_i) + l(x_-i) = r, |r| = 1, for given tokens, and the lemma's.
    """
    draw = np.random.default_rng(seed)
    matrices = {
        "random 128 × 512": draw.standard_normal((128, 512)),
        "random 128 × 128": draw.standard_normal((128, 128)),
        "rank one": np.outer(draw.standard_normal(128), draw.standard_normal(97)),
        "orthogonal": np.linalg.qr(draw.standard_normal((128, 128)))[0],
    }
    bounds = [theory.norm_bounds(matrix) for matrix in matrices.values()]

    def unit(p: int, d: int) -> Array:
        rows = draw.standard_normal((p, d))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    direction = unit(1, 128)
    near = direction + 0.3 * unit(97, 128)
    tokens = {
        "random (p = 7, d = 16)": unit(7, 16),
        "random (p = 97, d = 128)": unit(97, 128),
        "near one vector": near / np.linalg.norm(near, axis=1, keepdims=True),
        "all one vector": np.repeat(direction, 97, 0),
    }
    return xr.Dataset(
        {
            **{name: ("matrix", [float(getattr(one, name)) for one in bounds]) for name in bounds[0]._fields},
            "exact": ("tokens", [theory.smallest_operator_norm(one) for one in tokens.values()]),
            "printed": ("tokens", [theory.printed_smallest_norm(one) for one in tokens.values()]),
        },
        {"matrix": list(matrices), "tokens": list(tokens)},
    )


def circles(p: int, draws: int = 200) -> xr.Dataset:
    """MED of embeddings made of circles: one frequency at a time, and five random ones, all of one norm.

    ``one`` (frequency) and ``five`` (draw) are MED / R; ``random`` that of Gaussian vectors, ``parseval`` the largest
    relative error of the identity between MED's mean square and the Fourier power.
    """
    frequencies = np.arange(1, (p - 1) // 2 + 1)
    draw = np.random.default_rng(0)
    five = min(5, len(frequencies))
    chosen = [draw.choice(frequencies, five, replace=False) for _ in range(draws)]
    radii = [np.sqrt(draw.dirichlet(np.ones(five))) for _ in range(draws)]
    worst = 0.0
    for embedding in (draw.standard_normal((p, 128)), theory.circle_embedding(p, [1, 2])):
        steps = measures.main_embedding_difference(embedding, reduction="none")
        predicted = theory.mean_square_difference(theory.embedding_power(embedding))
        worst = max(worst, abs(float(np.square(steps).mean() / predicted) - 1))
    return xr.Dataset(
        {
            "one": ("frequency", [theory.circle_med(p, [int(f)]) for f in frequencies]),
            "five": ("draw", [theory.circle_med(p, f.tolist(), R) for f, R in zip(chosen, radii, strict=True)]),
        },
        {"frequency": frequencies},
        {"p": p, "random": float(theory.initial_difference(128)), "parseval": worst},
    )


def neighbours(train_fraction: float = 0.3) -> xr.Dataset:
    """Earlier version, assumption 1: the weight of training neighbours over the modulus, (p,)."""
    moduli = [47, 97, 211, 397]
    return xr.Dataset({"weight": ("p", [theory.neighbour_weight(p, train_fraction) for p in moduli])}, {"p": moduli})


def centroids(records: Records) -> xr.Dataset | None:
    """Theorem 3.5: how far class centroids of phi(i) + phi(j) are from one common point, relative to that point.

    ``deviation`` (embedding) for the first and last snapshot of the record ``base``; None without it.
    """
    if "base" not in records:
        return None
    record = records["base"]
    p = int(record.p.values[0])
    labels = modular_function("n + m", p)
    found = {}
    for name, snapshot in (("at the start", 0), ("trained", -1)):
        embedding = record.W_E.isel(run=0, snapshot=snapshot).values[:p].astype(float)
        common = theory.common_centroid(embedding)
        deviation = np.linalg.norm(theory.class_centroids(embedding, labels) - common, axis=1).max()
        found[name] = float(deviation / np.linalg.norm(common))
    return xr.Dataset({"deviation": ("embedding", list(found.values()))}, {"embedding": list(found)}, {"p": p})


def study(name: str, p: int, train_fraction: float = 0.3) -> xr.Dataset:
    """The study of that name at the chapter's modulus and training fraction."""
    return STUDIES[name](p, train_fraction)


STUDIES = {
    "masks": masks,
    "coverage": lambda p, alpha: coverage(p),
    "same_class": lambda p, alpha: same_class(p, alpha),
    "separability": lambda p, alpha: separability(),
    "flow": lambda p, alpha: flow_starts(),
    "lemmas": lambda p, alpha: lemmas(),
    "circles": lambda p, alpha: circles(p),
    "neighbours": lambda p, alpha: neighbours(alpha),
}

# Studies of records: name -> records to dataset.
DERIVED = {
    "special": special,
    "centroids": centroids,
    "table_1": lambda records: table_1(records["holes"]) if "holes" in records else None,
    "table_1_text": lambda records: table_1(records["holes_by_text"]) if "holes_by_text" in records else None,
}

# What each of them reads.
MADE_OF = {"special": TRACKED, "centroids": ("base",), "table_1": ("holes",), "table_1_text": ("holes_by_text",)}
