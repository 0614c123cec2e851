"""Maps of phases: when a run counts as what, diagrams over two settings, the published ones, and how to draw them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.chapters.liu.theory.phases import (
    COMPREHENSION,
    GAP,
    GROKKING,
    MEMORISATION,
    NO_MAJORITY,
    PHASES,
    majority,
    phase_of,
)

if TYPE_CHECKING:  # what draws is imported where it draws: a machine that only trains has no matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

COLORS = ("#3aa58a", "#f0a93b", "#b9c3dc", "#4d4d5a", "#d9a6c8", "#f4f2ec")
GRID = 10  # optimizer steps between two looks at the accuracies
PUBLISHED_BUDGET = 1e5  # steps, of the diagrams of Fig. 6


# -------------------------------------------------------------------------------------------------------- diagrams


@dataclass(frozen=True)
class Diagram:
    """Steps of a phase diagram.

    Args:
        x, y: settings of the columns and rows.
        t_train, t_val: (y, x, seed) steps to both thresholds, nan if never.
        budget: later counts as never.
        gap: from which on a wait is grokking.
    """

    x: Array
    y: Array
    t_train: Array
    t_val: Array
    budget: float = PUBLISHED_BUDGET
    gap: float = GAP

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

    def cut(self, budget: float) -> Diagram:
        """The same with a smaller budget."""
        return replace(self, budget=min(budget, self.budget))

    def counts(self) -> dict[str, int]:
        """Cells in each phase, by name."""
        return {name: int((self.phases == code).sum()) for code, name in enumerate(PHASES)}


def diagram(record: xr.Dataset, y: str, x: str = "lr", *, gap: float = GAP) -> Diagram:
    """A phase diagram over two settings of a record's recipe."""
    xs, ys = (np.unique(record[name].values.astype(float)) for name in (x, y))
    column, row = (np.searchsorted(at, record[name].values.astype(float)) for at, name in ((xs, x), (ys, y)))
    seeds = np.unique(record.seed.values)
    times = np.full((2, len(ys), len(xs), len(seeds)), np.nan)
    place = row, column, np.searchsorted(seeds, record.seed.values)
    for table, name in zip(times, ("train_accuracy", "test_accuracy"), strict=True):
        table[place] = record[f"reached_{name}"].values
    return Diagram(xs, ys, times[0], times[1], float(record.steps.values.max()), gap)


def contacts(phases: Codes, axis: int, one: int = COMPREHENSION, other: int = MEMORISATION) -> int:
    """How often cells of two phases are neighbours along an axis."""
    a, b = np.moveaxis(phases, axis, 0)[:-1], np.moveaxis(phases, axis, 0)[1:]
    return int((((a == one) & (b == other)) | ((a == other) & (b == one))).sum())


def steps_up(phases: Codes, one: int, other: int) -> int:
    """How often the next row has the second phase where a row has the first."""
    return int(((phases[:-1] == one) & (phases[1:] == other)).sum())


# ----------------------------------------------------------------------------------------------- the published ones


@lru_cache(maxsize=1)
def _released() -> NDArray[Any]:
    path = Path(__file__).parent / "published_steps.csv"
    return np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf8")


def published(panel: str) -> Diagram:
    """The step counts that the authors released for one panel of Fig. 6, with one run a cell.

    Args:
        panel: "rates", "regression", "classification" or "group".

    Theirs count from 0 and look after the update, so that one is added.

    Source: github.com/ejmichaud/grokking-squared, folder ``phase_diagram_plot``.
    """
    rows = _released()
    rows = rows[rows["panel"] == panel]
    x, y = np.unique(rows["decoder_lr"]), np.unique(rows["other"])
    times = np.full((2, len(y), len(x), 1), np.nan)
    place = np.searchsorted(y, rows["other"]), np.searchsorted(x, rows["decoder_lr"]), 0
    for table, name in zip(times, ("t_train", "t_val"), strict=True):
        table[place] = np.where(rows[name] < 0, np.nan, rows[name].astype(float) + 1)  # an empty field reads as -1
    return Diagram(x, y, *times)


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
    agree = np.ones(theirs.each.shape, bool)
    with np.errstate(invalid="ignore"):
        for mine, other in ((ours.t_train, theirs.t_train), (ours.t_val, theirs.t_val)):
            agree &= np.abs(mine[..., :1] - other) <= np.maximum(0.01 * other, GRID)
    return np.where(theirs.each <= GROKKING, agree, np.nan)[..., 0]


def outlying(found: Diagram, panel: str) -> NDArray[np.bool_]:
    """(y, x) the published cells at the rate 1e-5 that do not fit their neighbours: every third decay."""
    third = {"regression": (2, 5, 8), "classification": (4, 10, 16)}.get(panel, ())
    return np.isin(found.y, third)[:, None] & (found.x < 1.01e-5)


def roughness(panel: str) -> tuple[float, float]:
    """At the rate 1e-5: published t_train over the mean of its neighbours' in decay, outlying cells and others."""
    found = published(panel)
    t = found.t_train[:, 0, 0]
    ratio, odd = t[1:-1] / np.sqrt(t[:-2] * t[2:]), outlying(found, panel)[1:-1, 0]
    return float(np.nanmedian(ratio[odd])), float(np.nanmedian(ratio[~odd]))


# ------------------------------------------------------------------------------------------------------------ drawing


def draw(
    ax: Axes,
    found: Diagram,
    *,
    down: bool = True,
    log_y: bool = False,
    names: tuple[str, str] = ("decoder learning rate", "weight decay"),
    marked: NDArray[np.bool_] | None = None,
) -> Axes:
    """A map of phases, one cell a setting; a white dot grows with the share of seeds that disagree.

    Args:
        down: the first row is the top one, as in the paper's figures with a weight decay.
        log_y: rows are evenly spaced logarithms, as columns always are.
        names: of the two axes.
        marked: (y, x) cells that get a cross.
    """
    from matplotlib.colors import ListedColormap

    from grokbook import plotting

    codes, share = majority(found.each)
    ax.imshow(codes, origin="upper" if down else "lower", cmap=ListedColormap(COLORS), vmin=-0.5, vmax=5.5,
              aspect="auto")  # fmt: skip
    rows, columns = np.nonzero((share < 1) & (codes != NO_MAJORITY))
    ax.scatter(columns, rows, s=70 * (1 - share[rows, columns]), color="white", alpha=0.85, lw=0, zorder=3)
    if marked is not None:
        rows, columns = np.nonzero(marked)
        ax.plot(columns, rows, "x", color=plotting.RED, ms=7, mew=2, zorder=4)
    return cells(ax, found, log_y=log_y, names=names)


def cells(ax: Axes, found: Diagram, *, log_y: bool, names: tuple[str, str]) -> Axes:
    """Ticks and names of an image with one cell a setting of a diagram."""
    from grokbook import plotting

    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=2)
    ax.set_xticks(*powers(found.x))
    if log_y:
        ax.set_yticks(*powers(found.y))
    else:
        chosen = plotting.some(range(len(found.y)), 6)
        ax.set_yticks(chosen, [f"{found.y[i]:g}" for i in chosen])
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax


def powers(values: ArrayLike) -> tuple[list[float], list[str]]:
    """Positions, in cells, and labels of the powers of ten among values with evenly spaced logarithms."""
    at = np.log10(np.asarray(values, float))
    whole = np.arange(np.ceil(at[0] - 1e-9), np.floor(at[-1] + 1e-9) + 1)
    if len(at) == 1 or not len(whole):
        return list(range(len(at))), [f"{10**one:.2g}" for one in at]
    return np.interp(whole, at, np.arange(len(at))).tolist(), [f"$10^{{{int(one)}}}$" for one in whole]


def legend(figure: Figure, *shown: Diagram, mark: str = "") -> None:
    """One legend above the panels, of the phases that occur in any of them and of what a cross means."""
    from matplotlib.patches import Patch

    from grokbook import plotting

    present = sorted({int(code) for one in shown for code in np.unique(one.phases)})
    handles: list[Any] = [Patch(fc=COLORS[code], ec="#c9c9cf", lw=0.6, label=PHASES[code]) for code in present]
    if mark:
        handles += figure.axes[0].plot([], [], "x", color=plotting.RED, ms=7, mew=2, label=mark)
    figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.1, columnspacing=1.2)
