"""Figs 6 and 13 to 15: the four phases, on the published splits cell by cell and on others, and three more knobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, maps
from grokbook.chapters.liu.maps import COMPREHENSION, CONFUSION, GROKKING, MEMORISATION, Diagram, diagram, part
from grokbook.chapters.liu.training import BOTH_REACHED, STRUCTURED, solvable_seeds, toy_run, two_groups
from grokbook.claims import Part, above, at_least, at_most, exactly, near
from grokbook.curves import median
from grokbook.measures import representation_quality_index
from grokbook.measures.common import Array
from grokbook.models.toy import ProductDecoder
from grokbook.tasks import AdditionTask, GroupTask
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.records import conditions
from grokbook.words import percent

section = Section("phases")

PUBLISHED_SEED = {"rates": 58, "regression": 58, "classification": 6, "group": 0}
RATES_A = tuple(float(10**e) for e in np.linspace(-5, -2, 13))
RATES = tuple(float(10**e) for e in np.linspace(-5, -2, 16))
DECAYS = {
    "regression": tuple(map(float, range(11))),
    "classification": tuple(map(float, range(0, 21, 2))),
    "group": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0),
}
#: experiment -> (panel, what is on the y axis)
PANELS = {
    "phases_rates": ("rates", "W_E_lr"),
    "phases_regression": ("regression", "weight_decay"),
    "phases_classification": ("classification", "weight_decay"),
    "phases_group": ("group", "weight_decay"),
}
COARSE: list[dict[str, Any]] = [{"coarseness": 2}, {"steps": 10_000, "coarseness": 2}]


def _enter(name: str, about: str, smaller: Sequence[dict[str, Any]], runs: Callable[[Settings], list[Run]]) -> None:
    """Enter a phase diagram as an experiment: a run leaves when both accuracies have been reached."""

    def make(s: Settings) -> Experiment:
        return Experiment(f"liu/{name}", tuple(runs(s)), Schedule(log=40), snapshots=(-1,), keep=("W_E",),
                          watch=BOTH_REACHED)  # fmt: skip

    make.__name__, make.__doc__ = name, about
    section.experiment(smaller=smaller)(make)


def eps_of(task: AdditionTask) -> float:
    """Adam's eps that stands for the published loss: the cross-entropy of it is averaged over the classes too."""
    return 1e-8 if task.target_size else 1e-8 * task.labels


def _addition_runs(s: Settings, kind: str, splits: bool) -> list[Run]:
    """On the published split, or on several that determine every held-out answer."""
    target_size = 0 if kind == "classification" else 30
    order: Any = {} if splits else {"recipe": "diagram"}  # of random draws, behind the published step counts
    task = AdditionTask(s.p, s.train_size, target_size, **order)
    rows, columns, name = (RATES_A, RATES_A, "embedding") if kind == "rates" else (DECAYS[kind], RATES, "decay")
    cells = product(rows[:: s.coarseness], columns[:: s.coarseness])
    optimizers = [two_groups(rate, eps=eps_of(task), **{name: one}) for one, rate in cells]
    chosen = solvable_seeds(s.p, s.train_size, s.split_seeds, target_size) if splits else (PUBLISHED_SEED[kind],)
    return [toy_run(task, optimizer, s.steps, seed, **order) for optimizer in optimizers for seed in chosen]


def _group_runs(s: Settings, splits: bool) -> list[Run]:
    """As behind the published diagram, whose step counts tell: no shrinkage, and matrices that start ten times larger
    than in the code that was released with it. No algebra chooses the splits: they are the next seeds."""
    task = GroupTask("S3", 24, recipe="diagram")
    model = ProductDecoder(task.labels, init_scale=1.0, shrinkage=0.0, recipe="diagram")
    chosen = range(1, 1 + s.split_seeds) if splits else (PUBLISHED_SEED["group"],)
    cells = product(DECAYS["group"][:: s.coarseness], RATES[:: s.coarseness], chosen)
    return [Run(task, model, two_groups(rate, decay), s.steps, seed) for decay, rate, seed in cells]


for _splits, _where in ((False, "on the published split"), (True, "over several splits")):
    for _letter, (_name, (_kind, _)) in zip("abcd", PANELS.items(), strict=True):
        _runs = _group_runs if _kind == "group" else partial(_addition_runs, kind=_kind)
        _enter(_name + "_splits" * _splits, f"Fig. 6 ({_letter}), {_where}.", COARSE[not _splits :],
               partial(_runs, splits=_splits))  # fmt: skip


def comparable(record: xr.Dataset) -> bool:
    """Whether a diagram is of the table and the number of samples of the published ones."""
    if "p" not in record.coords:
        return bool((record.train_size == 24).all())
    return bool((record.p == 10).all() and (record.train_size == 45).all())


def on_time(record: xr.Dataset, *, outliers: bool = True) -> float:
    """Share of the published generalising cells of Fig. 6 (b) whose two times are ours, with or without those that do
    not fit their neighbours (see ``outlying``); nan for another table."""
    found = diagram(record)
    agree = maps.same_times(found, "regression")
    counted = outliers | ~maps.outlying(found, "regression")
    return float(np.nanmean(agree[counted])) if comparable(record) else np.nan


def boundary(found: Diagram) -> tuple[float, float]:
    """Between what generalises and what does not, in a diagram of the embeddings' rate over the decoder's.

    The share of the decoder rates with a boundary that have it at 1 to 20 times their own rate, and the slope of its
    logarithm; nan for less than two such rates.
    """
    good = found.generalises
    columns = np.flatnonzero(good.any(0) & ~good.all(0))
    if len(columns) < 2:
        return np.nan, np.nan
    rate, edge = found.x[columns], np.array([found.y[good[:, c]].min() for c in columns])
    inside = (edge / rate >= 1 - 1e-9) & (edge / rate <= 20)
    return float(inside.mean()), float(np.polyfit(np.log(rate), np.log(edge), 1)[0])


SWEEPS = tuple(PANELS)[1:]


def touching(*records: xr.Dataset, axis: int) -> Array:
    """(panel,) how often comprehension and memorisation are neighbours along an axis in (b), (c) and (d)."""
    return np.array([maps.contacts(diagram(one).phases, axis) for one in records])


def wider(*records: xr.Dataset) -> Array:
    """(panel,) in (b), (c) and (d), decoder rates that generalise at the best decay over those without decay."""
    rates = (diagram(one).generalises.sum(1) for one in records)
    return np.array([one.max() / one[0] for one in rates])


def later(*records: xr.Dataset) -> NDArray[np.bool_]:
    """(cell,) of the cells there that generalise, as does their rate without decay, whether decay delays it."""
    found = map(diagram, records)
    return np.concatenate([(d.t_val[1:] > d.t_val[0])[d.generalises[1:] & d.generalises[0]] for d in found])


def structured(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether the embeddings of numbers end in a line, with an index of at least 0.95."""
    return representation_quality_index(record.W_E.values[:, -1].astype(float)) >= STRUCTURED


def goldilocks(record: xr.Dataset) -> float:
    """Share of generalising cells with such embeddings, less that of the others; nan without one or the other."""
    found, inside = structured(record), good(record)
    return float(found[inside].mean() - found[~inside].mean())


def upper_slope(found: Diagram) -> float:
    """Where comprehension ends above: the slope of the embeddings' rate against the decoder's, on logarithmic axes.

    Only decoder rates at which it does end count; nan for less than two.
    """
    clear = found.phases == COMPREHENSION
    columns = np.flatnonzero(clear.any(0) & ~clear[-1])
    edge = [found.y[clear[:, c]].max() for c in columns]
    return float(np.polyfit(np.log(found.x[columns]), np.log(edge), 1)[0]) if len(edge) > 1 else np.nan


def late_corner(found: Diagram) -> float:
    """Of the fastest embeddings, steps to generalise with the slowest decoder over the fewest; nan if never."""
    t = found.t_val[-1].min(-1)
    return float(t[0] / np.nanmin(t))


def _cells(kind: str, least: float) -> Part:
    def alike(record: xr.Dataset) -> float:
        return maps.same_phase(diagram(record), kind).mean() if comparable(record) else np.nan

    return Part(f"cells with the published phase, waits known to {maps.GRID} steps", alike, at_least(least), percent)


OCCURRING = part("phases that occur, of four", lambda found: found.occurring, exactly(4))
EDGE = (
    part("decoder rates with a boundary at 1 to 20 times them", lambda found: boundary(found)[0], at_least(0.8),
         percent),
    part("slope of the boundary, on logarithmic axes", lambda found: boundary(found)[1], near(1, 0.25)),
    part("cells that generalise at a third of the decoder's rate or less",
         lambda found: found.generalises[found.y[:, None] / found.x <= 1 / 3].sum(), exactly(0)),
    part("cells in confusion", lambda found: (found.phases == CONFUSION).sum(), exactly(0)),
)  # fmt: skip

section.claim("fig6a", "Fig. 6a",
    "Without decay, embeddings must learn faster than the decoder: below some ratio of the rates nothing generalises.",
    _cells("rates", 0.85), *EDGE, on="phases_rates",
    paper="29 cells of comprehension, 31 of grokking, 109 of memorisation; boundary at 1.8 to 5.6 times")  # fmt: skip

section.claim("fig6a-sides", "Fig. 6a, section 4.1",
    "With an extremely slow decoder even fast embeddings generalise late; comprehension ends at a ratio of the rates.",
    part("fastest embeddings: steps to generalise with the slowest decoder / the fewest", late_corner, at_least(10)),
    part("slope of the upper edge of comprehension, on logarithmic axes", upper_slope, near(1, 0.25)),
    on="phases_rates", paper="“faster, but not too much”; that the border is a ratio of the rates, we add")  # fmt: skip

section.claim("fig6a-splits", "Fig. 6a", "The boundary is the same for other splits.",
    *EDGE, on="phases_rates_splits", whose="ours")  # fmt: skip

section.claim("fig6b", "Fig. 6b", "Regression has the four phases: cell by cell, those that are published.",
    _cells("regression", 0.9), OCCURRING, on="phases_regression",
    paper="17 cells of comprehension, 60 of grokking, 60 of memorisation, 39 of confusion")  # fmt: skip


section.claim("toy-decay", "section 4.2", "Unlike transformers, the toy model does not gain from weight decay.",
    Part("decoder rates that generalise at the best decay / without, in (b), (c), (d)", wider, at_most(1), every=True,
         on=SWEEPS),
    Part("cells that generalise with and without it, later with it", lambda *records: later(*records).mean(),
         above(0.5), percent, on=SWEEPS),
    paper="“contrary to the toy model”")  # fmt: skip

section.claim("goldilocks", "abstract, Fig. 6",
    "Representations are learnt in comprehension and grokking only, not in memorisation and confusion.",
    *(Part(f"({letter}) share of generalising cells that end with RQI ≥ 0.95, less that of the others", goldilocks,
           at_least(0.9), on=(name,)) for letter, name in zip("abc", tuple(PANELS)[:3], strict=True)),
    paper="“only in a ‘Goldilocks zone’”",
    note="Most cells outside with a line have seven or eight of ten held-out sums right; nine are asked")  # fmt: skip


def _up(other: int) -> Callable[[Diagram], int]:
    return lambda found: maps.steps_up(found.phases, COMPREHENSION, other)


section.claim(
    "fig6b-order",
    "Fig. 6b to d, section 4",
    "Grokking is sandwiched between comprehension and memorisation.",
    part("in (b), steps from comprehension to memorisation as decay grows", _up(MEMORISATION), exactly(0)),
    part("and to grokking", _up(GROKKING), above(0)),
    Part("contacts with memorisation along the decay in (b), (c), (d)", partial(touching, axis=0),
         exactly(0), every=True, on=SWEEPS),
    Part("and along the rate", partial(touching, axis=1), exactly(0), every=True, on=SWEEPS),
    on=SWEEPS[0],
)  # fmt: skip

section.claim(
    "fig6b-splits",
    "Fig. 6b",
    "The same four phases for other splits.",
    part("least share of cells in a phase", lambda one: min((one.phases == code).mean() for code in range(4)),
         at_least(0.04), percent),
    part("highest rate without decay", lambda one: one.phases[0, -1], exactly(MEMORISATION), maps.phase_name),
    part("highest rate, highest decay", lambda one: one.phases[-1, -1], exactly(CONFUSION), maps.phase_name),
    part("share of comprehension at rates up to 1e-3",
         lambda one: (one.x[np.nonzero(one.phases == COMPREHENSION)[1]] <= 1.001e-3).mean(), at_least(0.75), percent),
    part("steps from comprehension to memorisation, less a fifth of those to grokking",
         lambda one: _up(MEMORISATION)(one) - 0.2 * _up(GROKKING)(one), at_most(1)),
    on="phases_regression_splits",
    whose="ours",
)  # fmt: skip


def _apart(found: Diagram) -> float:
    late, clear = (found.y[np.nonzero(found.phases == code)[0]] for code in (GROKKING, COMPREHENSION))
    return float(np.median(late) - np.median(clear))


section.claim(
    "fig6c",
    "Fig. 6c",
    "Classification has the same phases, and grokking needs more decay than comprehension.",
    _cells("classification", 0.85),
    part("median decay of grokking above that of comprehension", _apart, at_least(4)),
    OCCURRING,
    on="phases_classification",
    paper="30 cells of comprehension, 85 of grokking, 50 of memorisation, 11 of confusion; of decay only the figure",
)

section.claim(
    "fig6d",
    "Fig. 6d",
    "The permutation group S₃ has the four phases too: other splits.",
    OCCURRING,
    part("cells that generalise at rates of 5e-5 to 2e-4 and decays up to 30",
         lambda one: one.generalises[np.ix_(one.y <= 30, (one.x >= 5e-5) & (one.x <= 2e-4))].mean(), at_least(0.6),
         percent),
    part("cells that generalise at decay 200", lambda one: one.generalises[one.y >= 200].sum(), exactly(0)),
    part("least decay with confusion", lambda one: one.y[(one.phases == CONFUSION).any(1)].min(initial=np.inf),
         at_least(50)),
    on="phases_group_splits",
)  # fmt: skip

section.claim(
    "fig6d-published",
    "Fig. 6d",
    "S₃ on the split of the publication: the same phases, cell by cell.",
    _cells("group", 0.85),
    OCCURRING,
    part("most frequent phase", lambda one: np.bincount(one.phases.ravel()).argmax(), exactly(COMPREHENSION),
         maps.phase_name),
    on="phases_group",
    paper="73 cells of comprehension, 31 of grokking, 62 of memorisation, 10 of confusion",
    note="Initial size, penalty, seed and order of products were found by matching these very counts",
)  # fmt: skip


# Figs 13 to 15: the decoder's rate, in the range that appendix G states, against batch size, initial size and weight
# decay of the embeddings. The paper does not say which values of these it tried.
KNOB_RATES = tuple(float(10**e) for e in np.linspace(-4, -2, 9))
KNOBS = {
    "batch": (45, 25, 15, 9, 5, 3),
    "scale": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "decay": (0.0, 0.1, 0.3, 1.0, 3.0, 10.0),
}


def _knob_runs(s: Settings, name: str) -> list[Run]:
    """The decoder's rate against one other setting, on several splits of two tasks."""
    runs: list[Run] = []
    for kind, target_size in (("regression", 30), ("classification", 0)):
        task = AdditionTask(s.p, s.train_size, target_size)
        seeds = solvable_seeds(s.p, s.train_size, s.split_seeds, target_size)
        for value, rate, seed in product(KNOBS[name][:: s.coarseness], KNOB_RATES[:: s.coarseness], seeds):
            optimizer = two_groups(rate, embedding_decay=value if name == "decay" else 0.0, eps=eps_of(task))
            scale = value if name == "scale" else 1.0
            batch = int(value) if name == "batch" and value < s.train_size else None
            runs.append(toy_run(task, optimizer, s.steps, seed, kind, batch, init_scale=scale))
    return runs


for _figure, _name in enumerate(KNOBS, 13):
    _enter(f"phases_{_name}", f"Fig. {_figure}: decoder learning rate against {_name}.", COARSE,
           partial(_knob_runs, name=_name))  # fmt: skip


def batch_sizes(record: xr.Dataset) -> Array:
    """(run,) samples a step, from the recipe; a full batch is the whole training set."""
    sizes = [run["batch_size"] for run in json.loads(record.attrs["recipe"])["runs"]]
    return np.where([one is None for one in sizes], record.train_size, [one or 0 for one in sizes]).astype(float)


def good(record: xr.Dataset) -> NDArray[np.bool_]:
    """(run,) whether a network generalises."""
    return np.isfinite(record.reached_test_accuracy.values)


def generalising(record: xr.Dataset, label: str, values: Array) -> tuple[Array, Array]:
    """The values of a setting, (run,), that occur with a label, and the share of its networks that generalise."""
    own = record.label.values == label
    at = np.unique(values[own])
    return at, np.array([good(record)[own & (values == one)].mean() for one in at])


def _small(sizes: Array) -> float:
    """The largest batch of at most five, or else the smallest."""
    return float(sizes[sizes <= 5].max(initial=sizes.min()))


def slower(record: xr.Dataset) -> float:
    """Of the regression, median t_train at such a batch over that at the full one, at rates up to 3.2e-4."""
    sizes, t = batch_sizes(record), record.reached_train_accuracy.fillna(np.inf).values
    own = (record.label.values == "regression") & (record.lr.values <= 3.3e-4)
    slow, fast = (float(median(t[own & (sizes == size)])) for size in (_small(sizes), sizes.max()))
    return slow / fast if np.isfinite(fast) else np.nan


def fewer(record: xr.Dataset) -> float:
    """How much smaller the share of the regression that generalises is at a batch of 5 than at the full one."""
    at, share = generalising(record, "regression", batch_sizes(record))
    return float(share[-1] - share[at == _small(at)][0])


def corner(record: xr.Dataset, label: str, code: int) -> NDArray[np.bool_]:
    """(run,) whether runs of a task at rates up to 3.2e-4 are in a phase: those with the smallest batch if it is
    grokking, else those with the full one."""
    sizes, times = batch_sizes(record), (record.reached_train_accuracy, record.reached_test_accuracy)
    size = sizes.min() if code == GROKKING else sizes.max()
    own = (record.label.values == label) & (record.lr.values <= 3.3e-4) & (sizes == size)
    return maps.phase_of(*times)[own] == code


def _corners(label: str) -> tuple[Part, ...]:
    def asked(words: str, code: int) -> Part:
        words = f"{label}, rates up to 3.2e-4: {words}"
        return Part(words, lambda record: corner(record, label, code).mean(), above(0.5), percent)

    return asked("grok at the smallest batch", GROKKING), asked("comprehend at the full one", COMPREHENSION)


section.claim("fig13", "Fig. 13", "At small rates small batches lead to grokking, large ones to comprehension.",
    *_corners("regression"), *_corners("classification"),
    on="phases_batch", paper="“smaller batch size seems harmful”",
    earlier=(
        Part("t_train at batch 5 (or less) / at the full one, rates up to 3.2e-4", slower, at_least(2)),
        Part("generalise at the full batch, less at the small one", fewer, above(0), percent),
    ))  # fmt: skip


def _gain(label: str) -> Part:
    def gain(record: xr.Dataset) -> float:
        own = (np.abs(np.log10(record.lr.values) + 3) < 0.3) & (record.label.values == label)
        small, large = own & (record.init_scale.values <= 0.31), own & (record.init_scale.values >= 2.9)
        return float(good(record)[small].mean() - good(record)[large].mean())

    words = f"{label}, rates near 1e-3: generalise at sizes up to 0.3, less from 3 on"
    return Part(words, gain, at_least(0.6), percent)


section.claim("fig14", "Fig. 14", "Small initial embeddings help generalisation.",
    _gain("regression"), _gain("classification"), on="phases_scale")  # fmt: skip


def of_tasks(record: xr.Dataset) -> list[Diagram]:
    """The diagrams of Fig. 15: regression, classification."""
    return [diagram(own, "W_E_weight_decay") for _, own in conditions(record)]


def changed(record: xr.Dataset, decay: float = 1.0) -> float:
    """Share of cells whose phase differs between no decay of the embeddings and this one or the next larger."""
    rows = [one.phases[0] != one.phases[one.y >= decay - 1e-9][:1] for one in of_tasks(record)]
    return float(np.mean(rows))  # nan where there is no such decay


def two_sided(record: xr.Dataset) -> int:
    """For how many tasks some cells without decay of the embeddings comprehend and others memorise."""
    return sum({COMPREHENSION, MEMORISATION} <= {*one.phases[0].tolist()} for one in of_tasks(record))


section.claim("fig15", "Fig. 15", "Weight decay of the embeddings hardly matters.",
    Part("cells that change from no decay to a decay of 1", changed, at_most(0.3), percent),
    Part("tasks, of two, with comprehension and memorisation without it", two_sided, exactly(2), premise=True),
    Part("cells that change from no decay to the largest",
         lambda record: changed(record, record.W_E_weight_decay.values.max()), at_most(0.3), percent),
    on="phases_decay", paper="“does not affect model performance much”; decays not stated")  # fmt: skip
