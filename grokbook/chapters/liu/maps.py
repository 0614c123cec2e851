"""Maps of phases: when a run counts as what (table 1), diagrams over two settings, and the published ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.claims import Bound, Part
from grokbook.measures.common import Array
from grokbook.words import number

Codes = NDArray[np.int64]

#: In the order of their codes. The last two are not in the table: held-out samples without the training set, which
#: happens at the edge of a budget and on small images, and runs of one cell that have no majority.
PHASES = ("comprehension", "grokking", "memorisation", "confusion", "held out only", "no majority")
COMPREHENSION, GROKKING, MEMORISATION, CONFUSION, HELD_OUT_ONLY, NO_MAJORITY = range(6)

GAP = 1_000  # optimizer steps between training and validation from which on it is called grokking
GRID = 10  # optimizer steps between two looks at the accuracies
PUBLISHED_BUDGET = 1e5  # steps, of the diagrams of Fig. 6


def phase_of(t_train: ArrayLike, t_val: ArrayLike, *, budget: float = np.inf, gap: float = GAP) -> Codes:
    """The phase, table 1, as an index into `PHASES`, from the steps to training and validation accuracy (nan: never).

    Later than ``budget`` counts as never, and a wait of ``gap`` or more as grokking.
    """
    t_train, t_val = np.broadcast_arrays(np.asarray(t_train, float), np.asarray(t_val, float))
    trained, validated, late = t_train <= budget, t_val <= budget, t_val - t_train >= gap
    return np.select([trained & validated & ~late, trained & validated, trained, ~validated], [0, 1, 2, 3], 4)


def majority(phases: ArrayLike) -> tuple[Codes, Array]:
    """The phase of more than half along the last axis, else "no majority", and the share of the most frequent one."""
    shares = np.stack([(np.asarray(phases) == code).mean(-1) for code in range(len(PHASES))])
    return np.where(shares.max(0) > 0.5, shares.argmax(0), NO_MAJORITY), shares.max(0)


def phase_name(code: float) -> str:
    """A phase's name from its code."""
    return PHASES[int(code)]


@dataclass(frozen=True)
class Diagram:
    """Steps of a phase diagram."""

    x: Array  #: settings of the columns
    y: Array  #: and of the rows
    t_train: Array  #: (y, x, seed) steps to the training threshold, nan if never
    t_val: Array  #: and to the validation threshold
    budget: float  #: later counts as never
    gap: float = GAP  #: from which on a wait is grokking

    @property
    def each(self) -> Codes:
        """(y, x, seed) the phase of every run."""
        return phase_of(self.t_train, self.t_val, budget=self.budget, gap=self.gap)

    @property
    def phases(self) -> Codes:
        """(y, x) the phase that most runs of a cell are in."""
        return majority(self.each)[0]

    @property
    def generalises(self) -> NDArray[np.bool_]:
        """(y, x) whether most runs of a cell comprehend or most grok."""
        return self.phases <= GROKKING

    @property
    def occurring(self) -> int:
        """How many of the four phases occur."""
        return len({*self.phases.ravel()} & set(range(4)))


def _of_runs(x: Array, y: Array, seed: Array, t_train: Array, t_val: Array, *, budget: float) -> Diagram:
    """A phase diagram from what is known of every run, (run,) each."""
    (xs, column), (ys, row), (seeds, place) = (np.unique(one, return_inverse=True) for one in (x, y, seed))
    times = np.full((2, len(ys), len(xs), len(seeds)), np.nan)
    times[:, row, column, place] = t_train, t_val
    return Diagram(xs, ys, times[0], times[1], budget)


def diagram(record: xr.Dataset, y: str = "", x: str = "lr") -> Diagram:
    """A phase diagram over two settings of a record's recipe; by itself y is the rate of embeddings or the decay."""
    if not y:
        y = "W_E_lr" if "W_E_lr" in record.coords and np.ptp(record.W_E_lr.values) else "weight_decay"
    names = (x, y, "seed", "reached_train_accuracy", "reached_test_accuracy")
    return _of_runs(*(record[name].values.astype(float) for name in names), budget=float(record.steps.values.max()))


def part(
    words: str, measure: Callable[[Diagram], Any], bound: Bound, show: Callable[[float], str] = number, **how: Any
) -> Part:
    """A part of a claim about the diagram of one record."""
    return Part(words, lambda record: measure(diagram(record)), bound, show, **how)


def contacts(phases: Codes, axis: int) -> int:
    """How often cells of comprehension and of memorisation are neighbours along an axis."""
    rows = np.moveaxis(phases, axis, 0)
    return steps_up(rows, COMPREHENSION, MEMORISATION) + steps_up(rows, MEMORISATION, COMPREHENSION)


def beside_memorisation(phases: Codes) -> Array:
    """(2,) shares of the cells of grokking and of comprehension that touch a cell of memorisation; nan without such."""
    there = np.pad(phases == MEMORISATION, 1)
    near = there[:-2, 1:-1] | there[2:, 1:-1] | there[1:-1, :-2] | there[1:-1, 2:]
    return np.array([near[phases == code].mean() for code in (GROKKING, COMPREHENSION)])


def steps_up(phases: Codes, one: int, other: int) -> int:
    """How often the next row has the second phase where a row has the first."""
    return int(((phases[:-1] == one) & (phases[1:] == other)).sum())


@cache
def published(panel: str) -> Diagram:
    """The step counts that the authors released for one panel of Fig. 6, with one run a cell.

    ``panel`` is "rates", "regression", "classification" or "group". Theirs count from 0 and look after the update, so
    that one is added. Source: github.com/ejmichaud/grokking-squared, folder ``phase_diagram_plot``.
    """
    path = Path(__file__).parent / "published_steps.csv"
    rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf8")
    rows = rows[rows["panel"] == panel]
    # An empty field reads as -1.
    t_train, t_val = (np.where(rows[name] < 0, np.nan, rows[name] + 1.0) for name in ("t_train", "t_val"))
    return _of_runs(rows["decoder_lr"], rows["other"], np.zeros(len(rows)), t_train, t_val, budget=PUBLISHED_BUDGET)


def published_at(ours: Diagram, panel: str) -> Diagram:
    """The published diagram at the cells and with the budget of ours."""
    theirs = published(panel)
    rows = [int(np.argmin(np.abs(np.log1p(1e6 * theirs.y) - np.log1p(1e6 * one)))) for one in ours.y]
    columns = [int(np.argmin(np.abs(np.log(theirs.x / one)))) for one in ours.x]
    cells = np.ix_(rows, columns)
    return Diagram(ours.x, ours.y, theirs.t_train[cells], theirs.t_val[cells], ours.budget)


def same_phase(ours: Diagram, panel: str) -> NDArray[np.bool_]:
    """(y, x) whether the phase is the published one, where our wait is known to ``GRID`` steps only."""
    theirs = published_at(ours, panel).each[..., 0]
    ways = [replace(ours, gap=ours.gap + shift).each[..., 0] for shift in (-GRID, 0, GRID)]
    return np.any([one == theirs for one in ways], axis=0)


def same_times(ours: Diagram, panel: str) -> Array:
    """(y, x) 1 where both times are the published ones, 0 where not, nan where the published run never generalises.

    They may differ by 1 %, and by a step of the grid on which ours are looked at.
    """
    theirs = published_at(ours, panel)
    both = ((ours.t_train, theirs.t_train), (ours.t_val, theirs.t_val))
    agree = [np.abs(mine[..., :1] - other) <= np.maximum(0.01 * other, GRID) for mine, other in both]
    return np.where(theirs.each <= GROKKING, np.all(agree, axis=0), np.nan)[..., 0]


def outlying(found: Diagram, panel: str) -> NDArray[np.bool_]:
    """(y, x) the published cells at the rate 1e-5 that do not fit their neighbours: every third decay."""
    third = {"regression": (2, 5, 8), "classification": (4, 10, 16)}.get(panel, ())
    return np.isin(found.y, third)[:, None] & (found.x < 1.01e-5)
