"""Numbers that figures and claims of the Liu chapter share: read off records, or computed from training sets alone.

A study is a dataset made without training. It stands beside the records under its own name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapters.liu import theory
from grokbook.chapters.liu.experiments import FAST_EMBEDDINGS, image_task
from grokbook.chapters.liu.theory.phases import GAP, PHASES, majority, phase_of
from grokbook.curves import last as last
from grokbook.measures import median
from grokbook.tasks import AdditionTask, GroupTask, group_table
from grokbook.train.experiment import Experiment
from grokbook.train.records import select

Array = NDArray[np.float64]
Records = Mapping[str, xr.Dataset]


# The training sets of Fig. 9 for six symbols, each with the samples of the one before.
STAGES = (
    ((0, 4), (1, 3), (1, 5), (2, 4)),
    ((0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1)),
    ((0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (3, 3)),
)


# ---------------------------------------------------------------------------------------------------- from records


def task_of(run: xr.Dataset) -> AdditionTask:
    """The addition task of one run of a record."""
    row = {name: run[name].item() for name in ("p", "train_size", "target_size", "modular", "ordered", "recipe")}
    return AdditionTask(**{**row, "modular": bool(row["modular"]), "ordered": bool(row["ordered"])})


def train_pairs(record: xr.Dataset) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Position and training set (n, 2) of every run whose set was drawn from its seed."""
    for i in range(record.sizes["run"]):
        run = record.isel(run=i)
        yield i, task_of(run).train_pairs(int(run.seed))


def accuracy_on_all(record: xr.Dataset) -> Array:
    """Accuracy at the end on all samples, trained on or not, (run,)."""
    samples = record.p.values * (record.p.values + 1) / 2
    seen = record.train_size.values / samples
    return seen * last(record, "train_accuracy") + (1 - seen) * last(record, "test_accuracy")


def outcomes(record: xr.Dataset, delta: float = 0.1) -> xr.Dataset:
    """What every run of ``fractions`` ended with beside what its embeddings and its training set allow.

    Returns:
        Dataset over run: ``fraction`` of the table, ``accuracy`` on all samples, ``predicted`` from the embeddings
        (eqs. 12, 13), ``ideal_accuracy`` (eq. 17), ``rqi``, ``rqi_strict`` (delta 0.01) and ``ideal_rqi`` (eq. 16).
    """
    p = int(record.p.values[0])
    embedding = record.W_E.isel(snapshot=-1).values.astype(float)
    columns: dict[str, list[float]] = {"predicted": [], "ideal_accuracy": [], "ideal_rqi": []}
    for i, pairs in train_pairs(record):
        columns["predicted"].append(float(theory.predicted_accuracy(embedding[i], pairs, delta)))
        columns["ideal_accuracy"].append(float(theory.ideal_accuracy(pairs, p)))
        columns["ideal_rqi"].append(float(theory.ideal_rqi(pairs, p)))
    values: dict[str, Any] = {
        "fraction": record.train_size.values / (p * (p + 1) / 2),
        "size": record.train_size.values,
        "accuracy": accuracy_on_all(record),
        "rqi": measures.representation_quality_index(embedding, delta),
        "rqi_strict": measures.representation_quality_index(embedding, 0.01),
        **columns,
    }
    return xr.Dataset({name: ("run", np.asarray(column)) for name, column in values.items()})


def structure(record: xr.Dataset) -> xr.Dataset:
    """What every run of ``structure_times`` needed beside what its training set implies.

    Returns:
        Dataset over run: ``label``, ``size``, ``fraction``, ``steps`` to RQI > 0.95 (nan: not reached), ``nullity``,
        the rates ``sum`` and ``mean`` (lambda_3, eqs. 5 to 9), and ``predicted`` = 1 / (eta lambda_3) with the sum.
    """
    p = int(record.p.values[0])
    sets = [pairs for _, pairs in train_pairs(record)]
    rate = np.array([float(theory.grokking_rate(pairs, p)) for pairs in sets])
    values: dict[str, Any] = {
        "label": record.label.values,
        "size": record.train_size.values,
        "fraction": record.train_size.values / (p * (p + 1) / 2),
        "steps": record.reached_rqi.values,
        "nullity": np.array([int(theory.nullity(pairs, p)) for pairs in sets]),
        "sum": rate,
        "mean": np.array([float(theory.grokking_rate(pairs, p, averaging="mean")) for pairs in sets]),
        "predicted": np.array([float(theory.grokking_steps(pairs, p)) for pairs in sets]),
    }
    return xr.Dataset({name: ("run", np.asarray(column)) for name, column in values.items()})


def by_size(data: xr.Dataset, name: str, size: str = "size") -> tuple[NDArray[np.int64], list[Array]]:
    """The sizes that occur and the values of each."""
    sizes = np.unique(data[size].values)
    return sizes, [data[name].values[data[size].values == one] for one in sizes]


def crossing(x: Array, y: Array, level: float = 0.5) -> float:
    """Where a curve through points first passes a level upwards, by linear interpolation; nan if it never does."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    above = np.flatnonzero((y[1:] >= level) & (y[:-1] < level))
    if not len(above):
        return float("nan")
    i = int(above[0])
    return float(x[i] + (level - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))


def rank_correlation(x: Any, y: Any, group: Any = None) -> float:
    """Spearman's coefficient of the finite couples; nan for fewer than three.

    Args:
        group: what to compare within: ranks are taken in every group apart and counted from its middle.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3:
        return float("nan")
    group = np.zeros(len(x)) if group is None else np.asarray(group)
    rows = []
    for one in np.unique(group[known]):
        own = known & (group == one)
        rows.append([(lambda r: r - r.mean())(measures.ranks(values[own])) for values in (x, y)])
    a, b = (np.concatenate(column) for column in zip(*rows, strict=True))
    return float(a @ b / np.sqrt((a @ a) * (b @ b))) if a.any() and b.any() else float("nan")


def theory_over_network(found: xr.Dataset) -> tuple[Array, Array]:
    """Of one condition of `structure`: shares of the table, and predicted over measured median steps (nan: never)."""
    _, steps = by_size(found, "steps")
    _, predicted = by_size(found, "predicted")
    share = np.array([one[0] for one in by_size(found, "fraction")[1]])
    return share, np.array([median(a) / median(b) for a, b in zip(predicted, steps, strict=True)])


def critical_shares(records: Records) -> tuple[float, float]:
    """Where half of the networks of Fig. 4 (b) with fast embeddings find the line, and half of random sets imply it."""
    record, study = records["structure_times"], records["ideal"]
    own = select(record, label=FAST_EMBEDDINGS)
    sizes, steps = by_size(own, "reached_rqi", "train_size")
    samples = study.attrs["samples"]
    networks = crossing(sizes / samples, np.array([np.isfinite(one).mean() for one in steps]))
    return networks, crossing(study["size"].values / samples, (study.nullity == 2).mean("draw").values)


class Mirrors(NamedTuple):
    """Held-out ordered pairs of the networks of Fig. 2 (b), whose input is the same either way; all are (run,)."""

    held: NDArray[np.int64]
    mirrored: NDArray[np.int64]  #: how many of them are trained on the other way round
    right: Array  #: how many of the others are answered correctly; nan where the training set is not wholly known
    ideal: Array  #: the share of the others that an ideal model would know


def mirrors(record: xr.Dataset) -> Mirrors:
    """How many held-out pairs (i, j) have (j, i) in training, and how many of the others are right.

    The record keeps accuracies, not answers. But a mirrored pair has the input of a trained one, so that a network
    that knows its whole training set knows them all.
    """
    held, mirrored, ideal = [], [], []
    for i in range(record.sizes["run"]):
        run = record.isel(run=i)
        task = task_of(run)
        seen = np.zeros((task.p, task.p), bool)
        pairs = task.train_pairs(int(run.seed))
        seen[tuple(pairs.T)] = True
        held.append(int((~seen).sum()))
        mirrored.append(int((~seen & seen.T).sum()))
        ideal.append(float(theory.ideal_accuracy(np.sort(pairs, -1), task.p, held_out=True)))
    whole = last(record, "train_accuracy") > 1 - 1e-6
    right = np.round(last(record, "test_accuracy") * held) - mirrored
    return Mirrors(np.array(held), np.array(mirrored), np.where(whole, right, np.nan), np.array(ideal))


class Trajectory(NamedTuple):
    """One network's embeddings and the flow that starts where they start, both standardised."""

    steps: Array  #: (t,)
    network: Array  #: (t, p)
    flow: Array  #: (t, p)
    n_h: float  #: 1 / (eta lambda_3), with the sum over parallelograms
    n_h_mean: float  #: the same with their mean


def trajectory(record: xr.Dataset) -> Trajectory:
    """Fig. 4 (c) and (d) from the record of that name."""
    run = record.isel(run=0)
    steps, embedding = run.snapshot_step.values, run.W_E.values.astype(float)  # (t, p, 1)
    network = measures.standardised(embedding)
    pairs, p = task_of(run).train_pairs(int(run.seed)), int(run.p)
    Z0, rate = float(theory.conserved(network[0]).Z0), float(run.W_E_lr)
    flow = theory.flow(network[0], pairs, rate * steps)
    n_h, n_h_mean = (
        float(theory.grokking_steps(pairs, p, learning_rate=rate, Z0=Z0, averaging=way)) for way in ("sum", "mean")
    )
    return Trajectory(steps, network[..., 0], measures.standardised(flow)[..., 0], n_h, n_h_mean)


class Diagram(NamedTuple):
    """Steps of a phase diagram: both arrays are (y, x, seed)."""

    x: Array
    y: Array
    t_train: Array
    t_val: Array

    def phases(self, *, budget: float = np.inf, gap: float = GAP) -> NDArray[np.int64]:
        """The phase of every run, (y, x, seed)."""
        return phase_of(self.t_train, self.t_val, budget=budget, gap=gap)

    def map(self, **settings: float) -> tuple[NDArray[np.int64], Array]:
        """The majority phase of every cell and the share of seeds that have it, both (y, x)."""
        return majority(self.phases(**settings))


def diagram(record: xr.Dataset, x: str, y: str) -> Diagram:
    """The steps of a phase diagram over two settings of the recipe."""
    xs, ys = (np.unique(record[name].values.astype(float)) for name in (x, y))
    column, row = (np.searchsorted(at, record[name].values.astype(float)) for at, name in ((xs, x), (ys, y)))
    seeds = np.unique(record.seed.values)
    times = np.full((2, len(ys), len(xs), len(seeds)), np.nan)
    place = row, column, np.searchsorted(seeds, record.seed.values)
    for table, name in zip(times, ("train_accuracy", "test_accuracy"), strict=True):
        table[place] = record[f"reached_{name}"].values
    return Diagram(xs, ys, *times)


#: experiment -> (panel, what is on the y axis)
PANELS = {
    "phases_rates": ("rates", "W_E_lr"),
    "phases_regression": ("regression", "weight_decay"),
    "phases_classification": ("classification", "weight_decay"),
    "phases_group": ("group", "weight_decay"),
}


PANEL_TITLES = {
    "phases_rates": "a  addition, regression",
    "phases_regression": "b  addition, regression",
    "phases_classification": "c  addition, classification",
    "phases_group": "d  S₃, regression",
}


def panel_diagram(records: Records, name: str) -> Diagram:
    """One panel of Fig. 6, or of the same over several splits."""
    return diagram(records[name], "lr", PANELS[name.removesuffix("_splits")][1])


@lru_cache(maxsize=1)
def _published() -> NDArray[Any]:
    path = Path(__file__).parent / "published_steps.csv"
    return np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf8")


def published(panel: str) -> Diagram:
    """The step counts that the authors released for one panel of Fig. 6, with one run a cell.

    Theirs count from 0 and look after the update, so that one is added.

    Source: github.com/ejmichaud/grokking-squared, folder ``phase_diagram_plot``.
    """
    rows = _published()
    rows = rows[rows["panel"] == panel]
    x, y = np.unique(rows["decoder_lr"]), np.unique(rows["other"])
    times = np.full((2, len(y), len(x), 1), np.nan)
    place = np.searchsorted(y, rows["other"]), np.searchsorted(x, rows["decoder_lr"]), 0
    for table, name in zip(times, ("t_train", "t_val"), strict=True):
        table[place] = np.where(rows[name] < 0, np.nan, rows[name].astype(float) + 1)  # an empty field reads as -1
    return Diagram(x, y, *times)


PUBLISHED_BUDGET = 1e5  # steps, of the diagrams of Fig. 6
PUBLISHED_TABLE = "p = 10 and 45 samples, and 24 of S₃"


def of_published_table(record: xr.Dataset) -> bool:
    """Whether a diagram is of the table and the number of samples of the published ones."""
    if "p" not in record.coords:
        return bool((record.train_size == 24).all())
    return bool((record.p == 10).all() and (record.train_size == 45).all())


class Agreement(NamedTuple):
    """Our diagram against the published one, over the cells that both have."""

    phases: Array  #: (cell,) 1 where the phase is the same, else 0
    steps: Array  #: (cell that generalises in the published one,) the larger relative difference of the two times


def published_at(ours: Diagram, panel: str) -> Diagram:
    """The published diagram at the cells of ours."""
    theirs = published(panel)
    rows = [int(np.argmin(np.abs(np.log1p(1e6 * theirs.y) - np.log1p(1e6 * one)))) for one in ours.y]
    columns = [int(np.argmin(np.abs(np.log(theirs.x / one)))) for one in ours.x]
    return Diagram(ours.x, ours.y, theirs.t_train[np.ix_(rows, columns)], theirs.t_val[np.ix_(rows, columns)])


def agreement(ours: Diagram, panel: str, *, budget: float) -> Agreement:
    """Cell by cell; later than ``budget`` counts as never in both."""
    part = published_at(ours, panel)
    same = part.phases(budget=budget) == ours.phases(budget=budget)[..., :1]
    with np.errstate(invalid="ignore"):
        known = np.isfinite(part.t_val) & (part.t_val <= budget)
        apart = np.maximum(
            np.abs(ours.t_train[..., :1] / part.t_train - 1), np.abs(ours.t_val[..., :1] / part.t_val - 1)
        )
    return Agreement(same.ravel().astype(float), np.where(np.isnan(apart), np.inf, apart)[known])


def borders(phases: NDArray[np.int64], axis: int) -> dict[tuple[int, int], int]:
    """How often two different phases are neighbours along an axis: couple of codes, smaller first -> times."""
    one, other = np.moveaxis(phases, axis, 0)[:-1].ravel(), np.moveaxis(phases, axis, 0)[1:].ravel()
    couples = [(int(min(a, b)), int(max(a, b))) for a, b in zip(one, other, strict=True) if a != b]
    return {couple: couples.count(couple) for couple in sorted(set(couples))}


def budget_of(record: xr.Dataset) -> float:
    """How many steps a run of a phase diagram may take."""
    return float(record.steps.values.max())


def counts(phases: NDArray[np.int64]) -> dict[str, int]:
    """How many cells are in each phase."""
    return {name: int((phases == code).sum()) for code, name in enumerate(PHASES)}


def batch_sizes(record: xr.Dataset) -> Array:
    """Samples a step of every run, (run,), from the recipe; a full batch is the whole training set."""
    sizes = [run["batch_size"] for run in json.loads(record.attrs["recipe"])["runs"]]
    return np.array(
        [full if size is None else size for size, full in zip(sizes, record.train_size.values, strict=True)]
    )


def image_gap(record: xr.Dataset) -> float:
    """The delay that counts as grokking on images: a tenth of the budget, at most the paper's 1,000 steps."""
    return min(GAP, budget_of(record) / 10)


# four symbols, fig. 12: the equations E0 + E2 = 2 E1, E0 + E3 = E1 + E2, E1 + E3 = 2 E2
FOUR_EQUATIONS = np.array([[1, -2, 1, 0], [1, -1, -1, 1], [0, 1, -2, 1]])


def best_ring(record: xr.Dataset) -> tuple[int, Array]:
    """Of the networks of Fig. 2 (d) the best on held-out samples, of equals the best ring; and all ring shares."""
    share = measures.ring_share(record.W_E.isel(snapshot=-1).values.astype(float)).share
    return int(np.lexsort((share, last(record, "test_accuracy")))[-1]), share


def formed(record: xr.Dataset, delta: float = 0.1) -> NDArray[np.bool_]:
    """Which of the three equations among four symbols hold at the end, (run, 3)."""
    embedding = measures.standardised(record.W_E.isel(snapshot=-1).values.astype(float))[..., 0]
    return np.abs(embedding @ FOUR_EQUATIONS.T) <= delta


def group_outcomes(record: xr.Dataset) -> xr.Dataset:
    """What every run of ``group_fractions`` ended with beside what its matrices allow (Fig. 18)."""
    table = group_table("S3")
    embedding = record.W_E.isel(snapshot=-1).values.astype(float)
    predicted = []
    for i in range(record.sizes["run"]):
        task = GroupTask("S3", int(record.train_size[i]))
        pairs = task.samples[task.in_train(int(record.seed[i]))]
        predicted.append(float(theory.group_predicted_accuracy(embedding[i], pairs, table)))
    seen = record.train_size.values / len(table) ** 2
    accuracy = seen * last(record, "train_accuracy") + (1 - seen) * last(record, "test_accuracy")
    values = {
        "size": record.train_size.values,
        "fraction": seen,
        "accuracy": accuracy,
        "predicted": np.array(predicted),
        "rqi": measures.group_representation_quality_index(embedding, table),
        "steps": record.reached_s3_rqi.values,
        "test_accuracy": last(record, "test_accuracy"),
    }
    return xr.Dataset({name: ("run", column) for name, column in values.items()})


class Hexagon(NamedTuple):
    """Six points in a plane of principal components."""

    plane: tuple[int, int]  #: which components
    points: Array  #: (6, 2)
    gap: float  #: the largest angle between neighbours, degrees; 60 for a regular hexagon
    spread: float  #: coefficient of variation of the radius

    @property
    def misfit(self) -> float:
        """How far from what counts as a hexagon, at most 1 for one: gap of 110 degrees, radius within 0.35."""
        return max(self.gap / 110, self.spread / 0.35)


def principal(embedding: Array) -> tuple[Array, Array]:
    """Principal components of (..., n, d): scores (..., n, k) and the share of the variance of each (..., k)."""
    centred = embedding - embedding.mean(-2, keepdims=True)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    return u * s[..., None, :], np.square(s) / np.square(s).sum(-1, keepdims=True)


def hexagon(embedding: Array) -> Hexagon:
    """The plane among the first four principal components in which six points come nearest to a hexagon."""
    scores, _ = principal(embedding)
    best: Hexagon | None = None
    for i in range(4):
        for j in range(i + 1, 4):
            points = scores[:, [i, j]]
            angle = np.sort(np.degrees(np.arctan2(points[:, 1], points[:, 0])))
            gap = float(np.diff(angle, append=angle[0] + 360).max())
            radius = np.linalg.norm(points, axis=-1)
            found = Hexagon((i, j), points, gap, float(radius.std() / radius.mean()))
            if best is None or found.misfit < best.misfit:
                best = found
    assert best is not None
    return best


def best_of_thirty(record: xr.Dataset) -> tuple[int, xr.Dataset]:
    """Position and group outcomes of the run of Fig. 17, of those with 30 samples (or the most).

    The best on held-out samples, then by index, then the one nearest to a hexagon: several are perfect.
    """
    found = group_outcomes(record)
    size = 30 if (found["size"] == 30).any() else int(found["size"].max())
    own = np.flatnonzero(found["size"].values == size)
    embeddings = record.W_E.isel(run=own, snapshot=-1).values.astype(float).reshape(len(own), 6, -1)
    misfit = [hexagon(one).misfit for one in embeddings]
    best = np.lexsort((misfit, -found.rqi.values[own], -found.test_accuracy.values[own]))[0]
    return int(own[best]), found


class Plane(NamedTuple):
    """The plane of two principal components with the largest share of one wave around a circle."""

    components: tuple[int, int]
    points: Array  #: (p, 2)
    share: float
    frequency: int


def best_plane(embedding: Array, most: int = 6) -> Plane:
    """Of the planes among the first components of embeddings (p, d), the one that is most of a ring."""
    scores, _ = principal(embedding)
    best: Plane | None = None
    for i in range(min(most, scores.shape[-1])):
        for j in range(i + 1, min(most, scores.shape[-1])):
            ring = measures.ring_share(scores[:, [i, j]])
            if best is None or float(ring.share) > best.share:
                best = Plane((i, j), scores[:, [i, j]], float(ring.share), int(ring.frequency))
    assert best is not None
    return best


def on_final_plane(initial: Array, final: Array) -> tuple[Array, float]:
    """Initial embeddings (p, d) on the final ones' best plane, (p, 2), and their ring share at its frequency."""
    plane = best_plane(final)
    centred = final - final.mean(0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    points = (initial - initial.mean(0)) @ components[list(plane.components)].T
    return points, float(measures.ring_share(points, plane.frequency).share)


class InitialShares(NamedTuple):
    """Ring shares of Fig. 21, each (run,) but the second."""

    initial: Array  #: of the initial embeddings on the final plane
    chance: Array  #: of unrelated normal ones, 20 a run
    final: Array  #: of the final embeddings


def initial_shares(record: xr.Dataset) -> InitialShares:
    """How much of the final ring the embeddings already held at the start (Fig. 21)."""
    initial, final = (record.W_E.isel(snapshot=at).values.astype(float) for at in (0, -1))
    generator = np.random.default_rng(0)
    own = [on_final_plane(a, b)[1] for a, b in zip(initial, final, strict=True)]
    chance = [on_final_plane(generator.normal(size=b.shape), b)[1] for b in final for _ in range(20)]
    return InitialShares(np.array(own), np.array(chance), np.array([best_plane(one).share for one in final]))


def projected(embedding: Array, onto: Array, count: int) -> Array:
    """Embeddings (p, d) rebuilt from the first ``count`` components of others, around those others' mean."""
    mean = onto.mean(0)
    _, _, components = np.linalg.svd(onto - mean, full_matrices=False)
    kept = components[:count]
    return mean + (embedding - mean) @ kept.T @ kept


def encoder_outputs(params: Mapping[str, Array], pairs: NDArray[np.int64]) -> Array:
    """The pair encoder of one member in plain numpy, for embeddings that it was not trained with: (B, p)."""
    layers = sum(name.startswith("W_QKV_") for name in params)
    x = params["W_E"][pairs]  # (B, 2, d)
    d = x.shape[-1]

    def norm(x: Array, gain: Array, shift: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5) * gain + shift

    for block in range(layers):
        of = {name.removesuffix(f"_{block}"): value for name, value in params.items() if name.endswith(f"_{block}")}
        h = norm(x, of["g1"], of["c1"]) @ of["W_QKV"].T + of["b_QKV"]
        query, key, value = np.split(h, 3, -1)
        scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(d)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + weights @ value @ of["W_O"].T + of["b_O"]
        h = np.maximum(norm(x, of["g2"], of["c2"]) @ of["W_in"].T + of["b_in"], 0)
        x = x + h @ of["W_out"].T + of["b_out"]
    return x.reshape(len(x), -1) @ params["W_U"].T + params["b_U"]


COMPONENTS = (2, 4, 6, 8, 10, 14)


def component_accuracy(records: Records, shown: int = 10) -> xr.Dataset:
    """Fig. 22: accuracy with embeddings rebuilt from few components, through training and at its end.

    Returns:
        Dataset: ``accuracy`` (run, way, split, snapshot) with way "actual", "own" (the first ``shown`` components of
        the moment) and "final" (those of the end); ``at_end`` (run, component) on the test set; ``snapshot_step``.
    """
    from grokbook.tasks import ModularTask

    record = records["components"]
    names = [str(name) for name, values in record.data_vars.items() if "snapshot" in values.dims and values.ndim > 2]
    ways, splits = ("actual", "own", "final"), ("train", "test")
    accuracy = np.full((record.sizes["run"], len(ways), len(splits), record.sizes["snapshot"]), np.nan)
    at_end = np.full((record.sizes["run"], len(COMPONENTS)), np.nan)
    for i in range(record.sizes["run"]):
        run = record.isel(run=i)
        task = ModularTask(int(run.p), "n + m", float(run.train_fraction))
        (pairs, labels), in_train = task.table(), task.in_train(int(run.seed))
        final = run.W_E.isel(snapshot=-1).values.astype(float)

        def right(params: dict[str, Array], embedding: Array, pairs: Any = pairs, labels: Any = labels) -> Any:
            return encoder_outputs({**params, "W_E": embedding}, pairs).argmax(-1) == labels

        for t in range(record.sizes["snapshot"]):
            params = {name: run[name].isel(snapshot=t).values.astype(float) for name in names}
            own = params["W_E"]
            for w, embedding in enumerate((own, projected(own, own, shown), projected(own, final, shown))):
                found = right(params, embedding)
                accuracy[i, w, :, t] = found[in_train].mean(), found[~in_train].mean()
        for k, count in enumerate(COMPONENTS):
            at_end[i, k] = right(params, projected(final, final, count))[~in_train].mean()
    return xr.Dataset(
        {
            "accuracy": (("run", "way", "split", "snapshot"), accuracy),
            "at_end": (("run", "component"), at_end),
            "snapshot_step": record.snapshot_step.isel(run=0, drop=True),
            "t_train": ("run", record.reached_train_accuracy.values),
            "t_test": ("run", record.reached_test_accuracy.values),
        },
        {"way": list(ways), "split": list(splits), "component": list(COMPONENTS)},
        {"shown": shown},
    )


def while_generalising(study: xr.Dataset) -> xr.DataArray:
    """Test accuracy of `component_accuracy` in the mean over the snapshots from t_train to t_test, (run, way)."""
    rows = []
    for i in range(study.sizes["run"]):
        stop = float(study.t_test[i]) if np.isfinite(study.t_test[i]) else np.inf
        window = (study.snapshot_step >= float(study.t_train[i])) & (study.snapshot_step <= stop)
        test = study.accuracy.isel(run=i).sel(split="test")
        rows.append(test.isel(snapshot=np.flatnonzero(window.values)).mean("snapshot"))
    return xr.concat(rows, "run")


def total_norm(record: xr.Dataset) -> Array:
    """The Euclidean norm of all parameters, (run, step)."""
    parts = [values for name, values in record.data_vars.items() if str(name).startswith("weight_norm_")]
    return np.sqrt(sum(np.square(part.values.astype(float)) for part in parts))


def smallest_share(record: xr.Dataset) -> dict[int, Array]:
    """p -> for each seed the smallest share of the table from which on every larger one reached structure."""
    found = {}
    for p in np.unique(record.p.values):
        own = select(record, p=int(p))
        rows = []
        for seed in np.unique(own.seed.values):
            mine = own.isel(run=np.flatnonzero(own.seed.values == seed)).sortby("train_size")
            share = mine.train_size.values / (p * (p + 1) / 2)
            good = np.isfinite(mine.reached_rqi.values)
            unbroken = np.flatnonzero(~good)
            begin = 0 if not len(unbroken) else int(unbroken[-1]) + 1
            rows.append(float(share[begin]) if begin < len(share) else np.nan)
        found[int(p)] = np.array(rows)
    return found


# --------------------------------------------------------------------------------------------------- without training


def ideal(p: int, draws: int) -> xr.Dataset:
    """Figs 4 (a), 5 (a) and 10: what random training sets of every size imply."""
    return theory.ideal_study(p, range(1, p * (p + 1) // 2 + 1), draws)


def transition(p: int, draws: int) -> xr.Dataset:
    """Beyond the paper: the critical share of data for several numbers of symbols."""
    ps = sorted({4, 6, 8, 10, 15, 20, 30, 40, 50, p})
    return theory.transition_study(ps, max(20, draws // 5))


def useless_dimensions(p: int, draws: int) -> xr.Dataset:
    """Appendix D's caveat: what dimensions that nobody reads do to the index."""
    return theory.useless_dimensions_study(p, (1, 2, 3, 4, 6, 8), max(10, draws // 20))


def conservation(p: int, draws: int) -> xr.Dataset:
    """Appendix F: sum and size of embeddings under the exact flow and under eq. 9, centred and shifted at the start.

    Returns:
        Dataset (start, flow, time): ``C`` and ``Z0``; ``start`` is "centred" or "shifted", ``flow`` "exact" or "eq. 9".
    """
    times = np.concatenate([[0.0], np.geomspace(0.01, 50, 60)])
    start = measures.standardised(np.random.default_rng(0).normal(size=(p, 1)))
    start *= np.sqrt(p / theory.conserved(start).Z0)
    pairs = AdditionTask(p, 1).samples
    values: dict[str, list[list[Array]]] = {"C": [], "Z0": []}
    for shift in (0.0, 1.0):
        begin = start + shift
        rows = [theory.flow(begin, pairs, times, averaging="mean", renormalise=exact) for exact in (True, False)]
        kept = [theory.conserved(row) for row in rows]
        values["C"].append([one.C[..., 0] for one in kept])
        values["Z0"].append([one.Z0 for one in kept])
    return xr.Dataset(
        {name: (("start", "flow", "time"), np.array(table)) for name, table in values.items()},
        {"start": ["centred", "shifted"], "flow": ["exact", "eq. 9"], "time": times},
    )


def spectra(p: int, draws: int) -> xr.Dataset:
    """All eigenvalues of A^T A for addition and for addition mod p, all samples trained on."""
    pairs = AdditionTask(p, 1).samples
    table = [theory.rates(pairs, p, modular=modular) for modular in (False, True)]
    return xr.Dataset({"rate": (("task", "index"), np.array(table))}, {"task": ["addition", "addition mod p"]})


def class_features(p: int, draws: int, mnist_dir: str = "") -> xr.Dataset:
    """Fig. 19: random two-dimensional features of images while Adam lowers the effective loss of eq. 32.

    The features come from a random perceptron and are free to move. Beside Adam: gradient descent, which conserves
    their size nearly, and descent on the loss without the division by Z.

    Returns:
        Dataset: ``features`` (frame, image, axis), ``label`` (image); ``ratio``, ``Z`` and ``distance`` (way, step):
        scatter within over between classes, size, and mean distance between class means relative to the start.
    """
    x, y = (part[:1_000] for part in image_task(797, mnist_dir).table())
    generator = np.random.default_rng(0)
    z = x.astype(float)
    sizes = (z.shape[1], 200, 200, 2)
    for layer, (n, out) in enumerate(pairwise(sizes)):
        bound = n**-0.5
        z = z @ generator.uniform(-bound, bound, (n, out)) + generator.uniform(-bound, bound, out)
        z = np.maximum(z, 0) if layer < 2 else z
    ways: dict[str, dict[str, Any]] = {
        "Adam": {},
        "gradient descent": {"optimizer": "sgd", "learning_rate": 1e-5},
        "without 1/Z": {"scale_invariant": False},
    }
    columns: dict[str, list[list[float]]] = {"ratio": [], "Z": [], "distance": []}
    frames: Array | None = None
    for settings in ways.values():
        path = theory.class_descent(z, y, 100, **settings)
        frames = path[[0, 50, 100]] if frames is None else frames
        means = np.array([[step[y == c].mean(0) for c in np.unique(y)] for step in path])
        apart = np.linalg.norm(means[:, :, None] - means[:, None], axis=-1).mean((1, 2))
        columns["ratio"].append([theory.scatter_ratio(step, y) for step in path])
        columns["Z"].append([theory.class_loss(step, y).Z for step in path])
        columns["distance"].append((apart / apart[0]).tolist())
    return xr.Dataset(
        {
            **{name: (("way", "step"), np.array(table)) for name, table in columns.items()},
            "features": (("frame", "image", "axis"), frames),
            "label": ("image", y),
        },
        {"way": list(ways), "step": np.arange(101), "frame": [0, 50, 100]},
        {"source": "mnist" if mnist_dir else "digits"},
    )


def deduction(p: int, draws: int) -> xr.Dataset:
    """Fig. 16, eqs 30 and 31: with matrices, what two relations leave open a third one settles.

    Returns:
        Dataset over draw: ``two`` = ||E_f E_a - E_e E_b|| / ||E_f E_a|| given the two relations of eq. 30, and
        ``three`` = the same of E_a E_h and E_b E_g given eq. 31 too, with random invertible 3 x 3 matrices.
    """
    generator = np.random.default_rng(0)
    b, c, d, f, h = generator.normal(size=(5, max(20, draws // 5), 3, 3))
    a, e = b @ c @ np.linalg.inv(d), f @ c @ np.linalg.inv(d)
    g = np.linalg.inv(f) @ e @ h

    def apart(one: Array, other: Array) -> Array:
        return np.linalg.norm(one - other, axis=(-2, -1)) / np.linalg.norm(one, axis=(-2, -1))

    return xr.Dataset({"two": ("draw", apart(f @ a, e @ b)), "three": ("draw", apart(a @ h, b @ g))})


def attraction(p: int, draws: int) -> xr.Dataset:
    """Appendix L: how far apart two samples with one label stay while a linear decoder learns beside them.

    Both are sums of embeddings in the plane, free to move at rate 1; the decoder starts orthogonal, so that A^T A = 1.

    Returns:
        Dataset (rate, draw, time): ``separation`` relative to the start, and ``error`` of the prediction; ``limit``
        (time) is e^{-t}, the adiabatic limit of eq. 40.
    """
    times = np.linspace(0, 6, 61)
    rates = (0.0, 0.1, 1.0, 10.0)
    shape = (len(rates), max(3, min(9, draws // 100)), len(times))
    separation, error = np.zeros(shape), np.zeros(shape)
    for k in range(shape[1]):
        generator = np.random.default_rng([7, k])
        A = np.linalg.qr(generator.normal(size=(2, 2)))[0]
        r, label = generator.normal(size=(2, 2)), generator.normal(size=2)
        labels = np.stack([label, label])
        for i, rate in enumerate(rates):
            start = theory.LinearDecoder(A, np.zeros(2), r)
            path = theory.linear_decoder_flow(start, labels, times, decoder_rate=rate, embedding_rate=1.0, step=0.02)
            gap = np.linalg.norm(path.r[:, 0] - path.r[:, 1], axis=-1)
            separation[i, k] = gap / gap[0]
            outputs = np.einsum("toi,tsi->tso", path.A, path.r) + path.b[:, None]
            error[i, k] = np.square(outputs - labels).sum((1, 2))
    dims = ("rate", "draw", "time")
    return xr.Dataset(
        {"separation": (dims, separation), "error": (dims, error), "limit": ("time", np.exp(-times))},
        {"rate": list(rates), "time": times},
    )


STUDIES: dict[str, Callable[[int, int], xr.Dataset]] = {
    "ideal": ideal,
    "transition": transition,
    "useless_dimensions": useless_dimensions,
    "conservation": conservation,
    "spectra": spectra,
    "deduction": deduction,
    "attraction": attraction,
    "class_features": class_features,
}


def petaflop(experiment: Experiment) -> float:
    """What a training costs if no run stops early: six operations per sample, step and weight met in a product."""

    def products(model: Any) -> int:
        if hasattr(model, "sizes"):
            return int(sum(a * b for a, b in pairwise(model.sizes)))
        d = model.d_model  # keys and values of two tokens, the rest of one
        return int(model.layers * (4 * d * d + 2 * d * model.hidden) + d * model.p)

    return sum(
        6e-15 * run.steps * (run.batch_size or run.task.train_size) * products(run.model) for run in experiment.runs
    )
