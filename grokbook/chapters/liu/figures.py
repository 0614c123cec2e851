"""Every figure of the Liu chapter: pure functions from records and studies to matplotlib figures.

``FIGURES`` names them: id -> what draws it and which records it needs. Ids beginning with ``fig`` and a number are the
paper's; the others go beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

from grokbook import measures, plotting
from grokbook.chapters.liu import studies, theory
from grokbook.chapters.liu.experiments import DEFAULT_RATES, FAST_EMBEDDINGS, LARGE, USUAL
from grokbook.chapters.liu.measures import map_points
from grokbook.chapters.liu.theory.phases import PHASES
from grokbook.measures import median, or_never
from grokbook.plotting import BLUE, BROWN, FAINT, GREEN, GREY, INK, ORANGE, PINK, PURPLE, RED, SKY, styled
from grokbook.train.records import conditions, select

Records = Mapping[str, xr.Dataset]

TRAIN, TEST = BLUE, ORANGE
THEORY, NETWORK = INK, BLUE
STEPS = "optimizer steps"
FRACTION = "share of the table trained on"
PHASE_COLORS = ("#3aa58a", "#f0a93b", "#b9c3dc", "#4d4d5a", "#f3d7e8")
SYMBOLS = "viridis"


def _symbol_colors(p: int) -> Any:
    return matplotlib.colormaps[SYMBOLS](np.linspace(0.02, 0.95, p))


def _numbered(ax: Axes, points: Any, *, size: float = 9, pad: float = 0.16) -> None:
    """Points (p, 2) as small discs with their numbers, colours in the order of the symbols."""
    points = np.asarray(points, float)
    for k, (at, color) in enumerate(zip(points, _symbol_colors(len(points)), strict=True)):
        ax.plot(*at, "o", ms=size + 4, color=color, mec="white", mew=1.0, zorder=4)
        shade = "white" if sum(color[:3]) < 1.9 else INK
        ax.annotate(str(k), at, ha="center", va="center", fontsize=size - 1.5, color=shade, zorder=5)
    ax.margins(pad)


def _bare(ax: Axes, title: str = "") -> Axes:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title)
    return ax


def _fraction_of_table(ax: Axes) -> None:
    ax.set_xlabel(FRACTION)
    ax.set_xlim(0, 1.02)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def _jitter(count: int, width: float) -> Any:
    return np.linspace(-width, width, count) if count > 1 else np.zeros(1)


# ---------------------------------------------------------------------------------------------------- parallelograms


@styled
def deduction(records: Records) -> Figure:
    """Fig. 16: two parallelograms with a common side give a third; with matrices it takes three relations."""
    study = records["deduction"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.5, gridspec_kw={"width_ratios": [1.6, 1]})
    a, b = np.array([0.0, 0.0]), np.array([0.35, 1.0])
    one, other = np.array([1.3, 0.25]), np.array([1.25, -0.35])
    at = {"a": a, "b": b, "c": a + one, "d": b + one, "e": a + one + other, "f": b + one + other}
    for names, color in (("acdb", SKY), ("cefd", ORANGE)):
        left.add_patch(Polygon([at[k] for k in names], closed=True, fc=color, alpha=0.28, ec=color, lw=1.4))
    left.add_patch(Polygon([at[k] for k in "aefb"], closed=True, fill=False, ec=INK, ls="--", lw=1.5, zorder=3))
    for name, place in at.items():
        left.plot(*place, "o", ms=15, color="white", mec=INK, mew=1.2, zorder=4)
        left.annotate(name, place, ha="center", va="center", fontsize=10, zorder=5)
    left.set_xlim(-0.3, 3.2)
    left.set_ylim(-0.45, 1.6)
    _bare(left, "a  vectors: two imply a third")
    for x, (name, color) in enumerate((("two", RED), ("three", GREEN))):
        values = np.maximum(study[name].values, 1e-16)
        spot = x + 0.22 * np.linspace(-1, 1, len(values))
        right.plot(spot, values, "o", ms=2.5, alpha=0.35, mew=0, color=color)
    right.set_yscale("log")
    right.set_ylim(1e-17, 1e3)
    right.set_xticks([0, 1], ["two\nrelations", "three\nrelations"])
    right.set_xlim(-0.6, 1.6)
    right.set_xlabel("given")
    right.set_ylabel("gap of the next one")
    right.set_title("b  matrices")
    return figure


def draw_training_set(ax: Axes, pairs: Any, p: int, *, seed: int = 1, fresh: Any = ()) -> Axes:
    """An ideal representation in the plane for a training set, its own parallelograms filled, implied ones outlined."""
    pairs = np.asarray(pairs).reshape(-1, 2)
    points = theory.ideal_representation(pairs, p, 2, generator=seed)
    held = {tuple(sorted(pair)) for pair in pairs.tolist()}
    everything, implied = theory.parallelograms(p), theory.implied_parallelograms(pairs, p)
    for (i, j, m, n), yes in zip(everything.tolist(), implied, strict=True):
        if not yes:
            continue
        own = (i, j) in held and (m, n) in held
        corners = points[[i, m, j, n]]
        color = BLUE if own else ORANGE
        ax.add_patch(Polygon(corners, closed=True, fc=color, alpha=0.16 if own else 0.05, ec="none", zorder=1))
        ax.add_patch(
            Polygon(
                corners, closed=True, fill=False, ec=color, lw=1.6 if own else 0.9, ls="-" if own else "--", zorder=2
            )
        )
    _numbered(ax, points)
    ax.set_aspect("equal", "datalim")
    return ax


@styled
def curriculum(records: Records) -> Figure:
    """Fig. 9: what two, then four, then seven samples of p = 6 imply."""
    figure, (axes,) = plotting.panels(1, 3, height=2.6)
    for ax, pairs, letter in zip(axes, studies.STAGES, "abc", strict=True):
        draw_training_set(ax, pairs, 6, seed=FIRST)
        own, all_ = len(theory.parallelograms_of(pairs, 6)), int(theory.implied_parallelograms(pairs, 6).sum())
        _bare(ax, f"{letter}  {len(pairs)} samples")
        ax.set_xlabel(f"{own} seen, {all_} of 13 follow\n{int(theory.nullity(pairs, 6))} free directions", fontsize=9)
    return figure


@styled
def hierarchy(records: Records) -> Figure:
    """Fig. 11: the subsets of the three equations among four symbols."""
    levels = theory.hierarchy(4)
    names = ("A1", "A2", "A3")
    figure, ((ax,),) = plotting.panels(1, 1, height=3.1)
    place = {}
    for i, one in enumerate(levels.sets):
        row = [k for k, other in enumerate(levels.sets) if len(other) == len(one)]
        place[i] = np.array([row.index(i) - (len(row) - 1) / 2, float(len(one))])
    for parent, child in levels.arrows:
        ax.annotate(
            "",
            place[child] + [0, 0.26],
            xytext=place[parent] - [0, 0.26],
            arrowprops={"arrowstyle": "-|>", "color": FAINT, "lw": 1.1},
        )
    for i, one in enumerate(levels.sets):
        closed = levels.closure[i]
        color = GREEN if len(closed) == 3 else SKY if one else GREY
        text = ", ".join(names[k] for k in one) or "none"
        ax.annotate(
            f"{text}\n{levels.freedom[i]} free",
            place[i],
            ha="center",
            va="center",
            fontsize=9.5,
            bbox={"boxstyle": "round,pad=0.35", "fc": color, "ec": "none", "alpha": 0.35},
        )
    ax.set_xlim(-1.7, 1.7)
    ax.set_ylim(-0.5, 3.5)
    equations = "A1: E0 + E2 = 2 E1\nA2: E0 + E3 = E1 + E2\nA3: E1 + E3 = 2 E2"
    ax.annotate(equations, (0.0, 1.0), xycoords="axes fraction", ha="left", va="top", fontsize=9, linespacing=1.5)
    ax.annotate("green: all three hold", (1.0, 1.0), xycoords="axes fraction", ha="right", va="top", fontsize=9)
    _bare(ax)
    return figure


# ------------------------------------------------------------------------------------------ what training sets imply


@styled
def unique(records: Records) -> Figure:
    """Fig. 4 (a): how often a random training set leaves the line as the only solution."""
    study = records["ideal"]
    share = study["size"].values / study.attrs["samples"]
    line = (study.nullity == 2).mean("draw").values
    figure, ((ax,),) = plotting.panels(1, 1, height=2.7)
    ax.plot(share, line, "o-", color=THEORY, ms=3, mew=0, lw=1.4, label="line is the only solution")
    ax.plot(share, study.ideal_accuracy.mean("draw"), color=GREEN, lw=1.5, label="mean ideal accuracy")
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1, ls=":", label="memorisation")
    at = studies.crossing(share, line)
    plotting.mark(ax, at, f"{at:.2f}", height=0.15)
    plotting.fraction_axis(ax, "probability, accuracy")
    _fraction_of_table(ax)
    plotting.legend(ax, loc="upper left")
    return figure


@styled
def rate(records: Records) -> Figure:
    """Fig. 5 (a): the grokking rate over random training sets, in two readings of the average."""
    study = records["ideal"]
    share = study["size"].values / study.attrs["samples"]
    count = np.maximum(study.parallelograms.values, 1)
    figure, axes = plotting.panels(1, 2, height=2.5)
    for ax, values, title in (
        (axes[0, 0], study.rate.values, "a  summed over P₀(D)"),
        (axes[0, 1], study.rate.values / count, "b  averaged over P₀(D)"),
    ):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        ax.fill_between(share, low, high, color=BLUE, alpha=0.18, lw=0)
        ax.plot(share, middle, color=BLUE, lw=1.8, label="median")
        ax.plot(share, values.mean(1), color=ORANGE, lw=1.4, ls="--", label="mean")
        ax.set_title(title)
        ax.set_ylabel("third eigenvalue")
        ax.set_ylim(0)
        _fraction_of_table(ax)
    plotting.legend(axes[0, 0], loc="upper left")
    return figure


@styled
def transition(records: Records) -> Figure:
    """Beyond: the critical share against the number of symbols, and the curves laid over each other."""
    study = records["transition"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.7)
    ps = study.p.values
    left.errorbar(
        ps, study.fraction, yerr=study.width / 2, fmt="o", color=THEORY, ms=4.5, capsize=2.5, lw=1.2, label="theory"
    )
    slope, offset = np.polyfit(np.log(ps), np.log(study.fraction), 1)
    grid = np.geomspace(ps[0], ps[-1], 50)
    left.plot(grid, np.exp(offset) * grid**slope, color=FAINT, ls="--", lw=1.3, label=f"$p^{{{slope:.2f}}}$")
    left.plot(grid, 2 / (grid + 1), color=GREEN, ls=":", lw=1.5, label="p samples, the least")
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xticks([4, 10, 20, 50], ["4", "10", "20", "50"])
    left.set_yticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    left.minorticks_off()
    left.set_xlabel("symbols p")
    left.set_ylabel("critical share")
    left.set_title("a  the transition moves")
    left.set_ylim(bottom=0.012)  # room for the legend below the lines
    plotting.legend(left, loc="lower left")
    colors = _symbol_colors(len(ps))
    for color, p in zip(colors, ps, strict=True):
        sizes = np.sort(study.critical_size.sel(p=p).values)
        x = (sizes - median(sizes)) / p
        right.plot(x, np.arange(1, len(sizes) + 1) / len(sizes), color=color, lw=1.4)
    plotting.fraction_axis(right, "probability of a line")
    right.set_xlabel("(samples − median) / p")
    right.set_title("b  the curves collapse")
    right.set_xlim(-1.0, 1.5)
    handles = [Line2D([], [], color=colors[i], label=f"p = {ps[i]}") for i in (0, len(ps) // 2, len(ps) - 1)]
    plotting.legend(right, handles=handles, loc="lower right")
    return figure


@styled
def ideal_and_real(records: Records) -> Figure:
    """Fig. 10: index and accuracy of trained networks against those of an ideal one."""
    found, study = studies.outcomes(records["fractions"]), records["ideal"]
    share = study["size"].values / study.attrs["samples"]
    figure, axes = plotting.panels(2, 3, height=2.35)
    for row, letters, (real, ideal, name, color) in zip(
        axes,
        ("abc", "def"),
        (("rqi", "ideal_rqi", "RQI", PURPLE), ("accuracy", "ideal_accuracy", "accuracy", BLUE)),
        strict=True,
    ):
        row[0].plot(found.fraction, found[real], "o", ms=3.5, alpha=0.55, mew=0, color=color)
        row[0].set_title(f"{letters[0]}  real {name}")
        row[1].plot(found.fraction, found[ideal], "o", ms=3.5, alpha=0.55, mew=0, color=color)
        row[1].plot(share, study[ideal].mean("draw"), color=INK, lw=1.3)
        row[1].set_title(f"{letters[1]}  ideal {name}")
        for ax in row[:2]:
            plotting.fraction_axis(ax, name)
            _fraction_of_table(ax)
            ax.set_xlabel("share trained on")
        row[1].set_ylabel("")
        low = found.fraction.values < 0.45
        for own, marker, label in ((low, "^", "r < 0.45"), (~low, "o", "r ≥ 0.45")):
            row[2].plot(
                found[ideal].values[own],
                found[real].values[own],
                marker,
                ms=3.8,
                alpha=0.6,
                mew=0,
                color=color,
                label=label,
            )
        row[2].plot([0, 1], [0, 1], color=FAINT, lw=1, ls=":")
        plotting.fraction_axis(row[2], "real")
        row[2].set_xlim(-0.03, 1.04)
        row[2].set_xlabel("ideal")
        row[2].set_title(f"{letters[2]}  real, ideal")
    axes[0, 0].plot(found.fraction, found.rqi_strict, "x", ms=3.2, alpha=0.6, color=INK)
    marks = [
        Line2D([], [], color=PURPLE, marker="o", ms=3.8, ls="", label="δ = 0.1"),
        Line2D([], [], color=INK, marker="x", ms=3.8, ls="", label="δ = 0.01"),
        Line2D([], [], color=FAINT, marker="^", ms=3.8, ls="", label="r < 0.45"),
        Line2D([], [], color=FAINT, marker="o", ms=3.8, ls="", label="r ≥ 0.45"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=4, frameon=False, handletextpad=0.1)
    return figure


@styled
def accuracy(records: Records) -> Figure:
    """Fig. 3: accuracy on all samples and the accuracy that the embeddings allow."""
    found = studies.outcomes(records["fractions"])
    figure, (axes,) = plotting.panels(1, 3, height=2.4)
    for ax, name, title in ((axes[0], "accuracy", "a  accuracy"), (axes[1], "predicted", "b  predicted")):
        ax.plot(found.fraction, found[name], "o", ms=3.8, alpha=0.55, mew=0, color=BLUE)
        ax.plot([0, 1], [0, 1], color=RED, lw=1.2, label="memorised")
        plotting.fraction_axis(ax, "")
        _fraction_of_table(ax)
        ax.set_xlabel("share trained on")
        ax.set_title(title)
    plotting.legend(axes[0], loc="lower right")
    axes[2].plot(found.predicted, found.accuracy, "o", ms=3.8, alpha=0.55, mew=0, color=BLUE)
    axes[2].plot([0, 1], [0, 1], color=FAINT, lw=1, ls=":")
    plotting.fraction_axis(axes[2], "accuracy")
    axes[2].set_xlim(-0.03, 1.04)
    axes[2].set_xlabel("predicted")
    axes[2].set_title("c  both")
    return figure


SERIES = {FAST_EMBEDDINGS: BLUE, DEFAULT_RATES: ORANGE}


@styled
def structure_times(records: Records) -> Figure:
    """Fig. 4 (b): steps until the representation is there, and how many runs get there."""
    record = records["structure_times"]
    found, budget = studies.structure(record), studies.budget_of(record)
    figure, ((steps,), (success,)) = plotting.panels(
        2, 1, height=2.2, sharex=True, gridspec_kw={"height_ratios": [1.6, 1]}
    )
    for shift, (label, color) in zip((-0.004, 0.004), SERIES.items(), strict=True):
        own = found.isel(run=np.flatnonzero(found.label.values == label))
        reached = np.isfinite(own.steps.values)
        steps.plot(own.fraction[reached] + shift, own.steps[reached], "o", ms=3.2, alpha=0.5, mew=0, color=color)
        steps.plot(
            own.fraction[~reached] + shift,
            np.full((~reached).sum(), budget * 1.12),
            "x",
            ms=3.5,
            alpha=0.5,
            color=color,
        )
        sizes, groups = studies.by_size(own, "steps")
        share = np.array([own.fraction.values[own["size"].values == size][0] for size in sizes])
        middle = np.array([median(group) for group in groups])
        steps.plot(share, middle, "-", color=color, lw=1.8, label=label)
        success.plot(share, [np.isfinite(group).mean() for group in groups], "o-", ms=3.5, mew=0, color=color, lw=1.5)
    steps.set_yscale("log")
    steps.set_ylabel("steps to RQI > 0.95")
    plotting.plain_numbers(steps.yaxis)
    plotting.legend(steps, loc="lower left")
    if "ideal" in records:
        study = records["ideal"]
        share = study["size"].values / study.attrs["samples"]
        success.plot(share, (study.nullity == 2).mean("draw"), color=INK, lw=1.3, ls="--", label="theory")
        plotting.legend(success, loc="upper left")
    plotting.fraction_axis(success, "share there")
    _fraction_of_table(success)
    return figure


@styled
def theory_and_network_times(records: Records) -> Figure:
    """Fig. 5 (b): the predicted steps beside those of networks."""
    found = studies.structure(records["structure_times"])
    figure, ((left, right),) = plotting.panels(1, 2, height=2.6)
    own = found.isel(run=np.flatnonzero(found.label.values == FAST_EMBEDDINGS))
    sizes, network = studies.by_size(own, "steps")
    share = np.array([own.fraction.values[own["size"].values == size][0] for size in sizes])
    left.plot(own.fraction, own.steps, "o", ms=3, alpha=0.45, mew=0, color=NETWORK)
    left.plot(share, [median(group) for group in network], color=NETWORK, lw=1.8, label="network")
    predicted = [median(group) for group in studies.by_size(own, "predicted")[1]]
    left.plot(share, predicted, color=INK, lw=1.8, ls="--", label="theory, sum")
    with np.errstate(divide="ignore"):
        averaged = np.where(own["mean"] > 0, 1 / (1e-3 * own["mean"].values), np.nan)
    middle = [median(averaged[own["size"].values == size]) for size in sizes]
    left.plot(share, middle, color=FAINT, lw=1.5, ls=":", label="theory, mean")
    left.set_yscale("log")
    left.set_ylabel("steps to RQI > 0.95")
    left.set_ylim(bottom=left.get_ylim()[0] / 30)  # room for the legend
    plotting.plain_numbers(left.yaxis)
    _fraction_of_table(left)
    left.set_title("a  against data")
    plotting.legend(left, loc="lower left", ncols=1)
    for label, color in SERIES.items():
        one = found.isel(run=np.flatnonzero(found.label.values == label))
        right.plot(one.predicted, one.steps, "o", ms=3.2, alpha=0.5, mew=0, color=color, label=label)
    known = found.predicted.values[np.isfinite(found.predicted.values)]
    if len(known):
        ends = np.array([known.min(), known.max()])
        right.plot(ends, ends, color=FAINT, lw=1, ls=":")
    right.set_xscale("log")
    right.set_yscale("log")
    for axis in (right.xaxis, right.yaxis):
        plotting.plain_numbers(axis)
    right.set_xlabel("predicted steps, 1 / (λ₃η)")
    right.set_ylabel("network")
    right.set_title("b  run by run")
    plotting.legend(right, loc="upper left")
    return figure


@styled
def trajectories(records: Records) -> Figure:
    """Fig. 4 (c) and (d): ten embeddings under the effective flow and in a network."""
    path = studies.trajectory(records["trajectory"])
    figure, (axes,) = plotting.panels(1, 2, height=2.7, sharey=True)
    colors = _symbol_colors(path.network.shape[1])
    for ax, values, title in ((axes[0], path.flow, "a  effective theory"), (axes[1], path.network, "b  network")):
        for k, color in enumerate(colors):
            ax.plot(path.steps, values[:, k], color=color, lw=1.6)
            ax.annotate(
                str(k),
                (path.steps[-1], values[-1, k]),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        plotting.mark(ax, 3 * path.n_h, "3 $n_h$", height=0.06)
        ax.set_xlabel(STEPS)
        ax.set_title(title)
        plotting.plain_numbers(ax.xaxis)
    axes[0].set_ylabel("standardised embedding")
    return figure


def trajectory_frame(record: xr.Dataset, frame: int) -> Figure:
    """One moment of Fig. 4 (d): embeddings on their axis, samples of equal sum joined."""
    run = record.isel(run=0)
    values = measures.standardised(run.W_E.values[frame].astype(float))[:, 0]

    @styled
    def draw() -> Figure:
        figure, ((line, sums),) = plotting.panels(1, 2, height=2.6, gridspec_kw={"width_ratios": [1, 1.3]})
        p = len(values)
        line.plot([0, p - 1], [values[0], values[-1]], color=FAINT, lw=0.8, ls=":")
        _numbered(line, np.stack([np.arange(p), values], -1), size=8)
        line.set_xlabel("symbol")
        line.set_ylabel("standardised embedding")
        line.set_ylim(-2.6, 2.6)
        line.set_xticks([])
        pairs = measures.sums_of(p).pairs
        total = pairs.sum(-1)
        seen = studies.task_of(run).in_train(int(run.seed))
        colors = _symbol_colors(2 * p - 1)
        for own, marker, size in ((seen, "o", 4.0), (~seen, "D", 4.6)):
            sums.scatter(
                values[pairs[own]].sum(-1),
                total[own],
                s=size**2,
                marker=marker,
                c=colors[total[own]],
                edgecolors="none" if marker == "o" else INK,
                linewidths=0.8,
            )
        sums.set_xlabel("$E_i + E_j$")
        sums.set_ylabel("i + j")
        sums.set_xlim(-5.2, 5.2)
        return figure

    return draw()


@styled
def conservation(records: Records) -> Figure:
    """Appendix F: sum and size under the exact flow and under eq. 9."""
    study = records["conservation"]
    figure, (axes,) = plotting.panels(1, 2, height=2.4)
    for ax, name, title in ((axes[0], "C", "a  sum C"), (axes[1], "Z0", "b  size Z₀")):
        for start, style in (("centred", "-"), ("shifted", "--")):
            for way, color in (("exact", BLUE), ("eq. 9", ORANGE)):
                values = study[name].sel(start=start, flow=way)
                ax.plot(study.time[1:], values[1:], style, color=color, lw=1.7)
        ax.set_xscale("log")
        plotting.plain_numbers(ax.xaxis)
        ax.set_xlabel("time")
        ax.set_title(title)
        ax.set_ylim(min(0, ax.get_ylim()[0]))
    handles = [
        Line2D([], [], color=BLUE, label="exact flow"),
        Line2D([], [], color=ORANGE, label="eq. 9"),
        Line2D([], [], color=INK, label="centred start"),
        Line2D([], [], color=INK, ls="--", label="shifted start"),
    ]
    plotting.legend(axes[0], handles=handles, loc="upper left", bbox_to_anchor=(0, 0.64))
    return figure


@styled
def attraction(records: Records) -> Figure:
    """Appendix L: two samples with one label attract each other as long as the decoder has not learnt its answer."""
    study = records["attraction"]
    figure, (axes,) = plotting.panels(1, 2, height=2.5)
    for rate, color in zip(study.rate.values, (BLUE, SKY, ORANGE, RED), strict=True):
        for ax, name in zip(axes, ("separation", "error"), strict=True):
            values = study[name].sel(rate=rate)
            ax.plot(study.time, values.T, color=color, lw=0.6, alpha=0.35)
            ax.plot(study.time, values.median("draw"), color=color, lw=2, label=f"{rate:g}")
    axes[0].plot(study.time, study.limit, color=INK, ls="--", lw=1.3)
    axes[0].set_ylabel("distance / distance at start")
    axes[0].set_ylim(0, 1.05)
    axes[0].set_title("a  distance of two samples")
    axes[1].set_ylabel("squared error")
    axes[1].set_yscale("log")
    axes[1].set_ylim(1e-4, 1e4)
    axes[1].set_title("b  error of the decoder")
    for ax in axes:
        ax.set_xlabel("time")
    plotting.legend(axes[1], title="decoder's rate", loc="upper right", title_fontsize=9, ncols=2)
    return figure


@styled
def spectra(records: Records) -> Figure:
    """Beyond: what the effective loss says about addition and about addition modulo p."""
    study = records["spectra"]
    figure, ((ax,),) = plotting.panels(1, 1, height=2.4)
    for task, color, marker in zip(study.task.values, (BLUE, ORANGE), "os", strict=True):
        ax.plot(
            1 + study.index.values if "index" in study.coords else 1 + np.arange(study.sizes["index"]),
            study.rate.sel(task=task),
            marker,
            color=color,
            ms=6,
            mew=0,
            label=str(task),
        )
    ax.set_xlabel("eigenvalue, in increasing order")
    ax.set_ylabel("eigenvalue of $A^\\top A$")
    ax.set_ylim(-3)
    plotting.legend(ax, loc="lower right")
    return figure


# ---------------------------------------------------------------------------------------------------- the toy model


@styled
def planes(records: Records) -> Figure:
    """Fig. 2: embeddings in the plane over what the decoder makes of any two symbols with that middle."""
    record = records["planes"]
    titles = {
        "a": "addition, memorised",
        "b": "addition, generalised",
        "c": "mod p, worst of {}",
        "d": "mod p, best of {}",
    }
    figure, axes = plotting.panels(2, 2, height=2.85)
    for ax, (label, own) in zip(axes.ravel(), conditions(record), strict=True):
        scores = studies.last(own, "test_accuracy")
        best = studies.best_ring(own)[0] if label == "d" else int(np.argmax(scores))
        chosen = int(np.argmin(scores)) if label in "ac" else best
        run = own.isel(run=chosen, snapshot=-1)
        embedding = run.W_E.values.astype(float)
        points = map_points(embedding)
        extent = (points[0, 0], points[-1, 0], points[0, 1], points[-1, 1])
        answers = run.decoder_map.values
        ax.imshow(
            answers,
            origin="lower",
            extent=extent,
            cmap=matplotlib.colormaps["Spectral"],
            alpha=0.75,
            vmin=0,
            vmax=np.nanmax(answers),
            interpolation="nearest",
        )
        _numbered(ax, embedding, size=8)
        ax.set_xlim(extent[:2])
        ax.set_ylim(extent[2:])
        _bare(ax, f"{label}  {titles[label].format(len(scores))}")
        words = f"held-out accuracy {scores[chosen]:.2f}"
        if label == "b":
            pairs = studies.mirrors(own)
            if np.isfinite(pairs.right[chosen]):
                of = (pairs.held - pairs.mirrored)[chosen]
                words = f"held-out {scores[chosen]:.2f}; without mirror {pairs.right[chosen]:.0f} of {of}"
        ax.set_xlabel(words, fontsize=9)
    return figure


@styled
def four_symbols(records: Records) -> Figure:
    """Fig. 12: which equations hold after training with a fast and with a slow decoder."""
    record = records["four_symbols"]
    figure, (axes,) = plotting.panels(1, 2, height=2.5, sharey=True)
    for ax, (label, own) in zip(axes, conditions(record), strict=True):
        held = studies.formed(own)
        names = ["".join(str(k + 1) for k in np.flatnonzero(row)) or "–" for row in held]
        order = ["–", "1", "2", "3", "12", "13", "23", "123"]
        count = [names.count(one) for one in order]
        shown = ["none", "A1", "A2", "A3", "A1 A2", "A1 A3", "A2 A3", "all"]
        colors = [GREY, SKY, SKY, SKY, RED, RED, RED, GREEN]
        ax.bar(range(len(order)), count, color=colors)
        for x, value in enumerate(count):
            ax.annotate(str(value), (x, value), xytext=(0, 1), textcoords="offset points", ha="center", fontsize=9)
        ax.set_xticks(range(len(order)), shown, rotation=45, ha="right", rotation_mode="anchor", fontsize=8.5)
        ax.grid(axis="x", visible=False)
        ax.set_title(label, fontsize=9)
    axes[0].set_ylabel("networks")
    figure.supxlabel("equations that hold", fontsize=10.5)
    return figure


# ---------------------------------------------------------------------------------------------------- phase diagrams


def _log_ticks(values: Any) -> tuple[list[float], list[str]]:
    """Positions (in cells) and labels of the powers of ten among cell values evenly spaced in the logarithm."""
    values = np.asarray(values, float)
    if len(values) == 1:
        return [0.0], [_power(values[0])]
    at = np.log10(values)
    whole = np.arange(np.ceil(at[0] - 1e-9), np.floor(at[-1] + 1e-9) + 1)
    if not len(whole):
        return [0.0, len(values) - 1.0], [f"{v:.2g}" for v in values[[0, -1]]]
    return np.interp(whole, at, np.arange(len(at))).tolist(), [_power(10.0**w) for w in whole]


def _power(value: float) -> str:
    exponent = round(float(np.log10(value)))
    return f"$10^{{{exponent}}}$" if np.isclose(value, 10.0**exponent) else f"{value:.2g}"


def phase_panel(
    ax: Axes,
    x: Any,
    y: Any,
    phases: Any,
    *,
    share: Any = None,
    log_y: bool = False,
    down: bool = False,
    labels: tuple[str, str] = ("decoder learning rate", "weight decay"),
) -> Axes:
    """A map of phases, one cell a setting; a white dot grows with the share of seeds that disagree.

    Args:
        x, y: settings of the columns (evenly spaced logarithms) and of the rows.
        phases: (y, x) indices into ``PHASES``.
        share: (y, x) share of the seeds in the phase shown.
        log_y: rows are evenly spaced logarithms too.
        down: the first row is the top one, as in the paper's figures with a weight decay.
    """
    phases = np.asarray(phases)
    ax.imshow(
        phases,
        origin="upper" if down else "lower",
        cmap=ListedColormap(PHASE_COLORS),
        vmin=-0.5,
        vmax=4.5,
        aspect="auto",
    )
    hatched = np.argwhere(phases == 4)
    for row, column in hatched:
        ax.add_patch(
            Polygon(
                [
                    (column - 0.5, row - 0.5),
                    (column + 0.5, row - 0.5),
                    (column + 0.5, row + 0.5),
                    (column - 0.5, row + 0.5),
                ],
                closed=True,
                fill=False,
                hatch="////",
                ec=PINK,
                lw=0,
            )
        )
    if share is not None:
        rows, columns = np.nonzero(np.asarray(share) < 1)
        size = 60 * (1 - np.asarray(share)[rows, columns])
        ax.scatter(columns, rows, s=size, color="white", alpha=0.85, lw=0, zorder=3)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=2)
    ax.set_xticks(*_log_ticks(x))
    if log_y:
        ax.set_yticks(*_log_ticks(y))
    else:
        chosen = plotting.some(range(len(y)), 6)
        ax.set_yticks(chosen, [f"{y[i]:g}" for i in chosen])
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    return ax


def _length(record: xr.Dataset) -> str:
    """How long never is: the longest run."""
    return f"{plotting.short(studies.budget_of(record))} steps"


def phase_legend(figure: Figure, found: Sequence[Any]) -> None:
    """One legend above the panels, of the phases that occur anywhere."""
    present = sorted({int(code) for one in found for code in np.unique(one)})
    handles = [Patch(fc=PHASE_COLORS[code], label=PHASES[code]) for code in present]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), 4 if figure.get_figwidth() > 5 else 2),
        fontsize=9,
        frameon=False,
        handlelength=1.1,
        columnspacing=1.2,
    )


def _panel_style(name: str) -> dict[str, Any]:
    rates = name.startswith("phases_rates")
    axis = "embedding learning rate" if rates else "weight decay"
    return {"log_y": rates, "down": not rates, "labels": ("decoder learning rate", axis)}


@styled
def phase_diagrams(records: Records) -> Figure:
    """Fig. 6: the four diagrams, ours on the left and the authors' released step counts on the right."""
    figure, axes = plotting.panels(4, 2, height=2.25)
    shown = []
    for row, name in zip(axes, studies.PANEL_TITLES, strict=True):
        both = []
        if name in records:
            both.append((row[0], studies.panel_diagram(records, name), studies.budget_of(records[name])))
        else:
            plotting.blank(row[0], "not trained yet")
        if name not in records or studies.of_published_table(records[name]):
            both.append((row[1], studies.published(studies.PANELS[name][0]), studies.PUBLISHED_BUDGET))
        else:
            plotting.blank(row[1], f"published for\n{studies.PUBLISHED_TABLE}")
        for ax, one, budget in both:
            phases = one.map(budget=budget)[0]
            phase_panel(ax, one.x, one.y, phases, **_panel_style(name))
            shown.append(phases)
        row[0].set_title(studies.PANEL_TITLES[name])
        row[1].set_title(f"published, {plotting.short(studies.PUBLISHED_BUDGET)} steps", color=FAINT)
        if name in records:
            row[0].set_title(f"{studies.PANEL_TITLES[name]}, {_length(records[name])}", fontsize=9.5)
        row[1].set_ylabel("")
    for row in axes[:-1]:
        for ax in row:
            ax.set_xlabel("")
    phase_legend(figure, shown)
    return figure


@styled
def phase_steps(records: Records) -> Figure:
    """Fig. 6 in another view: steps until the held-out answers are known."""
    figure, axes = plotting.panels(2, 2, height=2.5)
    image = None
    for ax, name in zip(axes.ravel(), studies.PANEL_TITLES, strict=True):
        ax.set_title(studies.PANEL_TITLES[name])
        if name not in records:
            plotting.blank(ax, "not trained yet")
            continue
        found = studies.panel_diagram(records, name)
        style = _panel_style(name)
        steps = np.median(found.t_val, axis=-1)
        image = ax.imshow(
            steps, origin="upper" if style["down"] else "lower", aspect="auto", cmap="viridis_r", norm=LogNorm(300, 1e5)
        )
        ax.set_facecolor("#ececf1")
        ax.grid(False)
        ax.tick_params(length=2)
        ax.set_xticks(*_log_ticks(found.x))
        if style["log_y"]:
            ax.set_yticks(*_log_ticks(found.y))
        else:
            chosen = plotting.some(range(len(found.y)), 6)
            ax.set_yticks(chosen, [f"{found.y[i]:g}" for i in chosen])
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_ylabel(style["labels"][1])
    for ax in axes[1]:
        ax.set_xlabel("decoder learning rate")
    assert image is not None
    bar = figure.colorbar(image, ax=axes, location="right", shrink=0.6, aspect=30, pad=0.02)
    bar.set_label("steps to 90 % of held-out answers")
    bar.outline.set_visible(False)
    return figure


@styled
def phase_splits(records: Records) -> Figure:
    """Fig. 6 over several splits: the majority phase, a dot where seeds disagree."""
    figure, axes = plotting.panels(2, 2, height=2.5)
    shown = []
    for ax, name in zip(axes.ravel(), studies.PANEL_TITLES, strict=True):
        own = f"{name}_splits"
        ax.set_title(studies.PANEL_TITLES[name])
        if own not in records:
            plotting.blank(ax, "not trained yet")
            continue
        ax.set_title(f"{studies.PANEL_TITLES[name]}, {_length(records[own])}", fontsize=9)
        found, budget = studies.panel_diagram(records, own), studies.budget_of(records[own])
        phases, share = found.map(budget=budget)
        phase_panel(ax, found.x, found.y, phases, share=share, **_panel_style(name))
        shown.append(phases)
    for ax in axes[0]:
        ax.set_xlabel("")
    phase_legend(figure, shown)
    return figure


def cell_frame(records: Records, name: str, row: int, column: int) -> Figure:
    """A phase diagram with one cell marked, and the curves of that cell."""
    record = records[name]
    found, budget = studies.panel_diagram(records, name), studies.budget_of(record)
    x_name, y_name = "lr", studies.PANELS[name][1]

    @styled
    def draw() -> Figure:
        figure, ((where, ax),) = plotting.panels(1, 2, height=2.7)
        phases = found.map(budget=budget)[0]
        phase_panel(where, found.x, found.y, phases, **_panel_style(name))
        where.plot(column, row, "s", ms=10, mfc="none", mec=INK, mew=2)
        where.set_title(studies.PANEL_TITLES[name], fontsize=9)
        phase_legend(figure, [phases])
        run = select(record, **{x_name: float(found.x[column]), y_name: float(found.y[row])}).isel(run=0)
        known = run.step.values <= float(run.stopped_at)
        for split, color in (("train", TRAIN), ("test", TEST)):
            values = run[f"{split}_accuracy"].values
            some = known & np.isfinite(values)
            x, y = run.step.values[some], values[some]
            reached = float(run[f"reached_{split}_accuracy"])
            if np.isfinite(reached) and (not len(x) or reached > x[-1]):
                x, y = np.append(x, reached), np.append(y, 0.9)
            ax.plot(np.maximum(x, 1), y, color=color, lw=1.8, label="training" if split == "train" else "held out")
            if np.isfinite(reached):
                ax.plot(reached, 0.9, "o", ms=5, color=color)
        ax.set_xscale("log")
        ax.set_xlim(1, 1.3 * budget)
        plotting.plain_numbers(ax.xaxis)
        ax.set_xlabel(STEPS)
        plotting.fraction_axis(ax)
        ax.set_title(PHASES[int(phases[row, column])])
        plotting.legend(ax, loc="upper left")
        return figure

    return draw()


def _knob(records: Records, name: str, setting: str, label: str) -> Figure:
    record = records[name]
    if setting == "batch_size":
        record = record.assign_coords(batch_size=("run", studies.batch_sizes(record)))
    figure, (axes,) = plotting.panels(1, 2, height=2.6)
    shown = []
    for ax, (kind, own) in zip(axes, conditions(record), strict=True):
        found, budget = studies.diagram(own, "lr", setting), studies.budget_of(record)
        phases, share = found.map(budget=budget)
        phase_panel(ax, found.x, found.y, phases, share=share, down=True, labels=("decoder learning rate", label))
        ax.set_yticks(range(len(found.y)), [f"{value:g}" for value in found.y])
        ax.set_title(f"{kind}, {_length(record)}")
        shown.append(phases)
    axes[1].set_ylabel("")
    phase_legend(figure, shown)
    return figure


def phases_batch(records: Records) -> Figure:
    """Fig. 13: decoder learning rate against batch size."""
    return styled(_knob)(records, "phases_batch", "batch_size", "batch size")


def phases_scale(records: Records) -> Figure:
    """Fig. 14: decoder learning rate against the initial size of the embeddings."""
    return styled(_knob)(records, "phases_scale", "init_scale", "initial size")


def phases_decay(records: Records) -> Figure:
    """Fig. 15: decoder learning rate against the embeddings' weight decay."""
    return styled(_knob)(records, "phases_decay", "W_E_weight_decay", "embedding decay")


# ------------------------------------------------------------------------------------------------------------------ S3


@styled
def group_hexagon(records: Records) -> Figure:
    """Fig. 17: six matrices on their principal components."""
    record = records["group_fractions"]
    chosen, _ = studies.best_of_thirty(record)
    embedding = record.W_E.isel(run=chosen, snapshot=-1).values.astype(float).reshape(6, -1)
    found = studies.hexagon(embedding)
    scores, share = studies.principal(embedding)
    others = [k for k in range(4) if k not in found.plane]
    names = ["123", "132", "213", "231", "312", "321"]
    even = [0, 3, 4]
    figure, (axes,) = plotting.panels(1, 3, height=2.5)
    for ax, plane, title in (
        (axes[0], found.plane, "a  the hexagon" if found.misfit <= 1 else "a  the nearest plane"),
        (axes[1], tuple(others), "b  the other two"),
    ):
        points = scores[:, list(plane)]
        close = 0.2 * np.ptp(points)
        for k, name in enumerate(names):
            color = BLUE if k in even else ORANGE
            ax.plot(*points[k], "o", ms=6, color=color, mew=0)
            across, up = (points - points[k]).T
            beside = abs(across) < close
            # Above its point, unless it would hit another there and none below.
            above = not (beside & (up > 0) & (up < 1.5 * close)).any() or (beside & (up < 0) & (up > -close)).any()
            side = {"xytext": (0, 6), "va": "bottom"} if above else {"xytext": (0, -6), "va": "top"}
            ax.annotate(name, points[k], textcoords="offset points", ha="center", fontsize=8.5, **side)
        ax.set_aspect("equal", "datalim")
        ax.margins(0.25)
        ax.set_xlabel(f"component {plane[0] + 1}")
        ax.set_ylabel(f"component {plane[1] + 1}")
        ax.set_xticklabels([])
        ax.set_yticklabels([])
        ax.set_title(title)
    axes[2].bar(range(1, len(share) + 1), share, color=GREY)
    axes[2].set_xticks(range(1, len(share) + 1))
    axes[2].set_xlabel("component")
    axes[2].set_ylabel("share of variance")
    axes[2].set_title("c  variance")
    return figure


@styled
def group_fractions(records: Records) -> Figure:
    """Fig. 18: index, steps, accuracy and predicted accuracy for S3, and one accuracy against the other."""
    found, budget = studies.group_outcomes(records["group_fractions"]), studies.budget_of(records["group_fractions"])
    figure, axes = plotting.panels(2, 3, height=2.3)
    (structure, when, _), (real, predicted, both) = axes
    sizes, steps = studies.by_size(found, "steps")
    share = sizes / 36
    for ax, name, label in (
        (structure, "rqi", "RQI"),
        (real, "accuracy", "accuracy"),
        (predicted, "predicted", "predicted accuracy"),
    ):
        ax.plot(found.fraction, found[name], "o", ms=3.6, alpha=0.5, mew=0, color=BLUE)
        ax.plot(share, [group.max() for group in studies.by_size(found, name)[1]], color=ORANGE, lw=1.6)
        plotting.fraction_axis(ax, label)
    reached = np.isfinite(found.steps.values)
    when.plot(found.fraction[reached], found.steps[reached], "o", ms=3.6, alpha=0.6, mew=0, color=BLUE)
    when.plot(found.fraction[~reached], np.full((~reached).sum(), 1.12 * budget), "x", ms=3.5, alpha=0.5, color=RED)
    when.plot(share, [or_never(group).min() for group in steps], color=ORANGE, lw=1.6)
    when.set_yscale("log")
    plotting.plain_numbers(when.yaxis)
    when.set_ylabel("steps to RQI > 0.95")
    for ax in (structure, when, real, predicted):
        _fraction_of_table(ax)
        ax.set_xlabel("share trained on")
    both.plot(found.predicted, found.accuracy, "o", ms=3.6, alpha=0.5, mew=0, color=BLUE)
    both.plot([0, 1], [0, 1], color=FAINT, lw=1, ls=":")
    plotting.fraction_axis(both, "accuracy")
    both.set_xlim(-0.03, 1.04)
    both.set_xlabel("predicted")
    titles = ("a  structure", "b  when", "c  accuracy", "d  predicted", "e  both")
    for ax, title in zip((structure, when, real, predicted, both), titles, strict=True):
        ax.set_title(title)
    marks = [
        Line2D([], [], color=BLUE, marker="o", ms=3.6, ls="", label="a network"),
        Line2D([], [], color=RED, marker="x", ms=3.6, ls="", label="never"),
        Line2D([], [], color=ORANGE, lw=1.6, label="best seed"),
    ]
    axes[0, 2].set_axis_off()
    plotting.legend(axes[0, 2], handles=marks, loc="center")
    return figure


# ------------------------------------------------------------------------------------------------------- transformers


@styled
def ring(records: Records) -> Figure:
    """Fig. 1: embeddings of a transformer before training, after memorising, after generalising."""
    record = next(own for _, own in conditions(records["ring"]))
    shares = [studies.best_plane(one.astype(float)).share for one in record.W_E.isel(snapshot=-1).values]
    run = record.isel(run=int(np.argmax(shares)))
    frames = run.sizes["snapshot"]  # 3, or 2 if the run is too short for one between
    figure, (axes,) = plotting.panels(1, frames, height=2.3)
    p = run.sizes["symbol"]
    final = studies.best_plane(run.W_E.isel(snapshot=-1).values.astype(float))
    order = np.argsort(np.arange(p) * final.frequency % p)
    colors = _symbol_colors(p)
    for ax, frame in zip(axes, range(frames), strict=True):
        embedding = run.W_E.isel(snapshot=frame).values.astype(float)
        plane = studies.best_plane(embedding)
        step = float(run.snapshot_step[frame])
        if frame == frames - 1:
            ax.plot(*plane.points[np.append(order, order[0])].T, color=FAINT, lw=0.5, alpha=0.3, zorder=1)
        ax.scatter(*plane.points.T, c=colors, s=16, lw=0, zorder=3)
        for k in range(p) if p < 30 else range(0, p, 4):
            ax.annotate(str(k), plane.points[k], xytext=(3, 2), textcoords="offset points", fontsize=6.5)
        ax.set_aspect("equal", "datalim")
        _bare(ax, f"step {plotting.short(step)}")
        near = int(np.nanargmin(np.abs(run.step.values - step)))
        ax.set_xlabel(
            f"train {float(run.train_accuracy[near]):.2f}, test {float(run.test_accuracy[near]):.2f}", fontsize=9
        )
    return figure


@styled
def effective_dimension(records: Records) -> Figure:
    """Fig. 7, left: how many dimensions the embeddings fill while a transformer learns."""
    record = records["ring"]
    groups = list(conditions(record))
    figure, (axes,) = plotting.panels(1, len(groups), height=2.5, sharey=True)
    for ax, (label, own) in zip(axes, groups, strict=True):
        plotting.curves(ax, own.step[1:], own.effective_dimension[:, 1:], color=PURPLE)
        for name, color, side in (("train", TRAIN, "left"), ("test", TEST, "right")):
            plotting.mark(ax, median(own[f"reached_{name}_accuracy"]), name, color=color, side=side, height=0.12)
        ax.set_xscale("log")
        plotting.plain_numbers(ax.xaxis)
        ax.set_xlabel(STEPS)
        ax.set_title(label, fontsize=9.5)
    axes[0].set_ylabel("effective dimension")
    return figure


@styled
def dropout_times(records: Records) -> Figure:
    """Fig. 7, centre: dropout against the wait."""
    record = records["dropout_times"]
    rates = np.unique(record.dropout.values)
    figure, ((ax,),) = plotting.panels(1, 1, height=2.6)
    budget = studies.budget_of(record)
    t_train, t_test = (record[f"reached_{name}_accuracy"].values for name in ("train", "test"))
    for name, color, values in (("train", TRAIN, t_train), ("test", TEST, t_test), ("delay", "0.55", t_test - t_train)):
        table = [values[record.dropout.values == rate] for rate in rates]
        ax.plot(rates, [median(one) for one in table], "o-", color=color, ms=4, mew=0, label=name)
        for rate, one in zip(rates, table, strict=True):
            known = np.isfinite(one)
            ax.plot(np.full(known.sum(), rate), one[known], "o", color=color, ms=2.8, alpha=0.5, mew=0)
            if name != "delay":
                never = np.full((~known).sum(), 1.1 * budget)
                ax.plot(np.full(len(never), rate), never, "x", color=color, ms=4, alpha=0.7)
    ax.set_yscale("log")
    plotting.plain_numbers(ax.yaxis)
    ax.set_xlabel("dropout")
    ax.set_ylabel("steps to 99 %")
    plotting.legend(ax)
    return figure


@styled
def phases_transformer(records: Records) -> Figure:
    """Fig. 7, right: phases of the transformer."""
    record = records["phases_transformer"]
    found = studies.diagram(record, "lr", "weight_decay")
    phases, share = found.map(budget=studies.budget_of(record))
    figure, ((ax,),) = plotting.panels(1, 1, height=3.1, width=4.2)
    phase_panel(ax, found.x, found.y, phases, share=share, down=True)
    chosen = plotting.some(range(len(found.y)), 7)
    ax.set_yticks(chosen, [f"{found.y[i]:.2g}" for i in chosen])
    chosen = plotting.some(range(len(found.x)), 4)
    ax.set_xticks(chosen, [f"{found.x[i]:.1e}".replace("e-0", "e−") for i in chosen])
    ax.set_title(f"p = {int(record.p.values[0])}, {_length(record)}")
    phase_legend(figure, [phases])
    return figure


@styled
def initial_structure(records: Records) -> Figure:
    """Fig. 21: final embeddings on their plane, initial ones on their own and on the final plane."""
    record = next(own for _, own in conditions(records["ring"]))
    final, initial = (record.W_E.isel(snapshot=at).values.astype(float) for at in (-1, 0))
    shares = [studies.best_plane(one).share for one in final]
    i = int(np.argmax(shares))
    plane = studies.best_plane(final[i])
    moved, share = studies.on_final_plane(initial[i], final[i])
    own = studies.best_plane(initial[i])
    figure, (axes,) = plotting.panels(1, 3, height=2.4)
    colors = _symbol_colors(len(moved))
    for ax, points, title, value in (
        (axes[0], plane.points, "a  final", plane.share),
        (axes[1], own.points, "b  initial, own plane", own.share),
        (axes[2], moved, "c  initial, final plane", share),
    ):
        ax.scatter(*points.T, c=colors, s=16, lw=0)
        for k in range(len(points)) if len(points) < 30 else range(0, len(points), 4):
            ax.annotate(str(k), points[k], xytext=(3, 2), textcoords="offset points", fontsize=6.5)
        ax.set_aspect("equal", "datalim")
        _bare(ax, title)
        ax.title.set_fontsize(9.5)
        ax.set_xlabel(f"ring share {value:.2f}", fontsize=9)
    return figure


@styled
def few_components(records: Records) -> Figure:
    """Fig. 22: accuracy with embeddings rebuilt from a few principal components."""
    study = records["component_accuracy"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.6)
    step = np.maximum(study.snapshot_step.values, 1)
    styles = {"actual": "--", "own": ":", "final": "-"}
    for way, style in styles.items():
        for split, color in (("train", TRAIN), ("test", TEST)):
            values = study.accuracy.sel(way=way, split=split).mean("run")
            left.plot(step, values, style, color=color, lw=1.6)
    left.set_xscale("log")
    plotting.plain_numbers(left.xaxis)
    left.set_xlabel(STEPS)
    plotting.fraction_axis(left)
    left.set_title(f"a  {study.attrs['shown']} components")
    handles = [Line2D([], [], color=INK, ls=style, label=way) for way, style in styles.items()]
    handles += [Line2D([], [], color=color, label=name) for name, color in (("train", TRAIN), ("test", TEST))]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8.5, frameon=False)
    plotting.dots(right, study.component.values, study.at_end.values, color=TEST)
    plotting.fraction_axis(right, "test accuracy at the end")
    right.set_xlabel("final components kept")
    right.set_title("b  how many it takes")
    return figure


# ------------------------------------------------------------------------------------------------------------- images

DECAY_COLORS = (BLUE, PURPLE, BROWN)


def _images(record: xr.Dataset) -> str:
    """Which images a record is made from."""
    return {"digits": "8 × 8 digits", "mnist": "MNIST"}[str(record.source.values[0])]


@styled
def image_curves(records: Records) -> Figure:
    """Fig. 8, left: learning curves of images for large and for usual initial weights."""
    record = records["image_curves"]
    figure, (axes,) = plotting.panels(1, 2, height=2.6, sharey=True)
    big, usual = select(record, label=LARGE), select(record, label=USUAL)
    decay = float(np.unique(big.weight_decay.values)[0])
    for ax, own, title in (
        (axes[0], select(big, weight_decay=decay), f"a  {_images(record)}, weights × 8"),
        (axes[1], usual, "b  weights × 1"),
    ):
        for split, color in (("train", TRAIN), ("test", TEST)):
            plotting.curves(ax, own.step[1:], own[f"{split}_accuracy"][:, 1:], color=color, label=split)
        ax.set_xscale("log")
        plotting.plain_numbers(ax.xaxis)
        plotting.fraction_axis(ax)
        ax.set_xlabel(STEPS)
        ax.set_title(title)
    axes[1].set_ylabel("")
    plotting.legend(axes[0], loc="upper left")
    return figure


@styled
def image_norms(records: Records) -> Figure:
    """Beyond: generalisation of images waits for the weights to decay."""
    record = select(records["image_curves"], label=LARGE)
    figure, (axes,) = plotting.panels(1, 2, height=2.5, sharey=True)
    for color, decay in zip(DECAY_COLORS, np.unique(record.weight_decay.values), strict=False):
        own = select(record, weight_decay=float(decay))
        norm, test = studies.total_norm(own), own.test_accuracy.values
        plotting.curves(axes[0], own.step[1:], test[:, 1:], color=color, label=f"decay {decay:g}", thin=False)
        for x, y in zip(norm, test, strict=True):
            axes[1].plot(x, y, color=color, lw=1.2, alpha=0.8)
    axes[0].set_xscale("log")
    plotting.plain_numbers(axes[0].xaxis)
    axes[0].set_xlabel(STEPS)
    plotting.fraction_axis(axes[0], "test accuracy")
    axes[1].set_xlabel("norm of all weights")
    axes[1].invert_xaxis()
    axes[0].set_title(f"a  {_images(record)}, in time")
    axes[1].set_title("b  against the norm")
    plotting.legend(axes[0], loc="upper left")
    return figure


@styled
def image_phases(records: Records) -> Figure:
    """Fig. 8, right: phases on images."""
    record = records["image_phases"]
    found = studies.diagram(record, "W_2_lr", "weight_decay")
    phases, share = found.map(budget=studies.budget_of(record), gap=studies.image_gap(record))
    figure, ((ax,),) = plotting.panels(1, 1, height=3.0, width=4.4)
    phase_panel(
        ax,
        found.x,
        found.y,
        phases,
        share=share,
        log_y=True,
        down=True,
        labels=("last layer's learning rate", "weight decay"),
    )
    ax.set_title(f"{_images(record)}, {_length(record)}")
    phase_legend(figure, [phases])
    return figure


@styled
def class_features(records: Records) -> Figure:
    """Fig. 19: features of images under the effective loss."""
    study = records["class_features"]
    figure, (axes,) = plotting.panels(1, 4, height=2.0, gridspec_kw={"width_ratios": [1, 1, 1, 1.25]})
    colors = matplotlib.colormaps["tab10"](np.arange(10))
    for ax, frame in zip(axes, range(3), strict=False):
        points = study.features.isel(frame=frame).values
        means = np.array([points[study.label.values == digit].mean(0) for digit in range(10)])
        for digit in range(10):
            own = study.label.values == digit
            ax.scatter(*points[own].T, s=4, color=colors[digit], lw=0, alpha=0.7)
            if frame == 2:
                apart = means[digit] - np.delete(means, digit, 0)  # a label goes away from the nearest other class
                away = apart[np.linalg.norm(apart, axis=-1).argmin()]
                ax.annotate(
                    str(digit),
                    means[digit],
                    xytext=tuple(6 * away / np.linalg.norm(away)),
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                )
        _bare(ax, f"step {int(study.frame[frame])}")
    ax = axes[3]
    for way, color in zip(study.way.values, (BLUE, ORANGE, GREEN), strict=True):
        ax.plot(study.step, study.Z.sel(way=way) / study.Z.sel(way=way)[0], color=color, lw=1.5, label=str(way))
    ax.set_xlabel("step")
    ax.set_title("Z / Z at start")
    ax.set_ylim(0.5, 1.3)
    plotting.legend(ax, loc="lower left", fontsize=7.5)
    return figure


@styled
def image_sizes(records: Records) -> Figure:
    """Fig. 20: time to generalise against the number of images."""
    record = records["image_sizes"]
    figure, ((ax,),) = plotting.panels(1, 1, height=2.6)
    for threshold, color in ((0.6, BLUE), (0.8, ORANGE)):
        steps = measures.first_step(record.test_accuracy.values, record.step.values, threshold)
        sizes = np.unique(record.train_size.values)
        table = np.array([steps[record.train_size.values == size] for size in sizes]).T
        plotting.dots(ax, sizes, table, color=color, label=f"{threshold:.0%} of test images")
        never = sizes[~np.isfinite(table).any(0)]
        ax.plot(never, np.full(len(never), 1.05 * studies.budget_of(record)), "x", color=color, ms=5)
    ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)
    ax.set_ylim(0)
    plotting.plain_numbers(ax.yaxis)
    ax.set_title(_images(record))
    ax.set_xlabel("training images")
    ax.set_ylabel(STEPS)
    plotting.legend(ax, loc="lower left")
    return figure


# ------------------------------------------------------------------------------------------------------------- beyond


@styled
def critical_sizes(records: Records) -> Figure:
    """Beyond: the share of the table that networks need, beside the theory's."""
    record, study = records["critical_sizes"], records["transition"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.6)
    moduli = np.unique(record.p.values)
    for color, p in zip(_symbol_colors(len(moduli)), moduli, strict=True):
        own = select(record, p=int(p))
        share = own.train_size.values / (p * (p + 1) / 2)
        at = np.unique(share)
        left.plot(
            at,
            [np.isfinite(own.reached_rqi.values[share == one]).mean() for one in at],
            "o-",
            ms=3.5,
            mew=0,
            color=color,
            lw=1.4,
            label=f"p = {p}",
        )
    plotting.fraction_axis(left, "share of networks on a line")
    _fraction_of_table(left)
    plotting.legend(left, loc="upper left", fontsize=8.5)
    left.set_title("a  networks")
    found = studies.smallest_share(record)
    for p, values in found.items():
        right.plot(np.full(len(values), p), values, "o", ms=3.2, alpha=0.55, mew=0, color=BLUE)
    right.plot(list(found), [median(values) for values in found.values()], color=BLUE, lw=1.6, label="networks")
    right.plot(study.p, study.fraction, "--", color=INK, lw=1.5, label="theory")
    right.set_xlim(0, 1.1 * max(moduli))
    right.set_ylim(0, 1.05)
    right.set_xlabel("symbols p")
    right.set_ylabel("smallest share")
    right.set_title("b  what it takes")
    plotting.legend(right, loc="upper right")
    return figure


@styled
def dimensions(records: Records) -> Figure:
    """Beyond: the index and accuracy in more dimensions."""
    record, study = records["dimensions"], records["useless_dimensions"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.5)
    for (label, own), style in zip(conditions(record), ("-", ":"), strict=True):
        values = np.unique(own.dimension.values)
        for name, color, data in (
            ("accuracy", ORANGE, studies.last(own, "test_accuracy")),
            ("RQI", PURPLE, studies.last(own, "rqi")),
        ):
            table = np.array([data[own.dimension.values == d] for d in values]).T
            plotting.dots(left, values, table, color=color, label=f"{name}, {label}", style=style)
    plotting.fraction_axis(left, "at the end")
    left.set_xlabel("dimensions of an embedding")
    left.set_title("a  networks")
    plotting.legend(left, loc="upper right", fontsize=8.5)
    for name, color, label in (
        ("rqi_mean", PURPLE, "line + noise, RQI"),
        ("rqi_readout", GREEN, "after a linear readout"),
        ("rqi_random_readout", GREY, "no line, readout"),
    ):
        right.plot(study.dimension, study[name].mean("draw"), "o-", ms=4, mew=0, color=color, label=label)
    plotting.fraction_axis(right, "")
    right.set_xlabel("dimensions, one of them a line")
    right.set_title("b  by construction")
    plotting.legend(right, loc="center right", fontsize=8.5)
    return figure


# -------------------------------------------------------------------------------------------------------------- explore


FIRST = 28  # the draw of the planar representations of Fig. 9, chosen so that no points lie on top of each other


@styled
def training_set_frame(size: int) -> Figure:
    """The first samples of Fig. 9's order: the table of sums as far as it is known, and a representation that obeys "
    "it."""
    p, pairs = 6, np.array(studies.STAGES[-1][:size])
    figure, ((table, plane),) = plotting.panels(1, 2, height=2.7)
    grid = np.full((p, p), np.nan)
    for i, j in pairs:
        grid[i, j] = grid[j, i] = i + j
    table.imshow(grid, cmap="Spectral", vmin=0, vmax=2 * p - 2, alpha=0.75)
    for i, j in {*map(tuple, pairs.tolist()), *((j, i) for i, j in pairs.tolist())}:
        table.annotate(str(i + j), (j, i), ha="center", va="center", fontsize=9)
    table.set_xticks(range(p))
    table.set_yticks(range(p))
    table.tick_params(length=0)
    table.grid(False)
    table.set_title(f"training set D{size}")
    draw_training_set(plane, pairs, p, seed=FIRST)
    _bare(plane, f"{int(theory.nullity(pairs, p))} free directions")
    return figure


def training_set_alt(size: int) -> str:
    """What a frame of `training_set_frame` shows, in words."""
    p, pairs = 6, studies.STAGES[-1][:size]
    own, follow = len(theory.parallelograms_of(pairs, p)), int(theory.implied_parallelograms(pairs, p).sum())
    return (
        f"{size} samples of {p} symbols close {own} parallelograms, {follow} of {len(theory.parallelograms(p))} "
        f"follow; "
        f"the points have {int(theory.nullity(pairs, p))} free directions."
    )


def trajectory_alt(record: xr.Dataset, frame: int) -> str:
    """What a frame of `trajectory_frame` shows, in words."""
    embedding = record.W_E.values[0, frame].astype(float)
    fit = float(theory.line_fit(embedding).r2)
    index = float(measures.representation_quality_index(embedding))
    return f"A line explains {fit:.0%} of the variance of the embeddings; the index is {index:.2f}."


def chosen_cells(found: studies.Diagram, most: int = 24) -> list[tuple[int, int]]:
    """Rows and columns of at most so many cells, spread over a diagram, in reading order."""
    columns = plotting.some(range(len(found.x)), 6)
    rows = plotting.some(range(len(found.y)), max(1, most // len(columns)))
    return [(row, column) for row in rows for column in columns]


def cell_alt(records: Records, name: str, row: int, column: int) -> str:
    """What `cell_frame` shows, in words."""
    found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
    phase = PHASES[int(found.map(budget=budget)[0][row, column])]
    reached = found.t_train[row, column, 0], found.t_val[row, column, 0]
    times = [f"{t:,.0f}" if np.isfinite(t) else "never" for t in reached]
    return f"A cell of {phase}: training samples at step {times[0]}, held-out ones at step {times[1]}."


DIAGRAMS = tuple(studies.PANEL_TITLES)
FIGURES: dict[str, plotting.Drawn] = {
    "fig1": plotting.Drawn(ring, ("ring",), "1"),
    "fig2": plotting.Drawn(planes, ("planes",), "2"),
    "fig3": plotting.Drawn(accuracy, ("fractions",), "3"),
    "fig4a": plotting.Drawn(unique, ("ideal",), "4a"),
    "fig4b": plotting.Drawn(structure_times, ("structure_times", "ideal"), "4b"),
    "fig4cd": plotting.Drawn(trajectories, ("trajectory",), "4cd"),
    "fig5a": plotting.Drawn(rate, ("ideal",), "5a"),
    "fig5b": plotting.Drawn(theory_and_network_times, ("structure_times",), "5b"),
    "fig6": plotting.Drawn(phase_diagrams, DIAGRAMS, "6", some=True),
    "fig6_steps": plotting.Drawn(phase_steps, DIAGRAMS, some=True),
    "fig6_splits": plotting.Drawn(phase_splits, tuple(f"{name}_splits" for name in DIAGRAMS), some=True),
    "fig7a": plotting.Drawn(effective_dimension, ("ring",), "7a"),
    "fig7b": plotting.Drawn(dropout_times, ("dropout_times",), "7b"),
    "fig7c": plotting.Drawn(phases_transformer, ("phases_transformer",), "7c"),
    "fig8a": plotting.Drawn(image_curves, ("image_curves",), "8a"),
    "fig8b": plotting.Drawn(image_phases, ("image_phases",), "8b"),
    "fig9": plotting.Drawn(curriculum, (), "9"),
    "fig10": plotting.Drawn(ideal_and_real, ("fractions", "ideal"), "10"),
    "fig11": plotting.Drawn(hierarchy, (), "11"),
    "fig12": plotting.Drawn(four_symbols, ("four_symbols",), "12"),
    "fig13": plotting.Drawn(phases_batch, ("phases_batch",), "13"),
    "fig14": plotting.Drawn(phases_scale, ("phases_scale",), "14"),
    "fig15": plotting.Drawn(phases_decay, ("phases_decay",), "15"),
    "fig16": plotting.Drawn(deduction, ("deduction",), "16"),
    "fig17": plotting.Drawn(group_hexagon, ("group_fractions",), "17"),
    "fig18": plotting.Drawn(group_fractions, ("group_fractions",), "18"),
    "fig19": plotting.Drawn(class_features, ("class_features",), "19"),
    "fig20": plotting.Drawn(image_sizes, ("image_sizes",), "20"),
    "fig21": plotting.Drawn(initial_structure, ("ring",), "21"),
    "fig22": plotting.Drawn(few_components, ("component_accuracy",), "22"),
    "transition": plotting.Drawn(transition, ("transition",)),
    "conservation": plotting.Drawn(conservation, ("conservation",)),
    "attraction": plotting.Drawn(attraction, ("attraction",)),
    "spectra": plotting.Drawn(spectra, ("spectra",)),
    "image_norms": plotting.Drawn(image_norms, ("image_curves",)),
    "critical_sizes": plotting.Drawn(critical_sizes, ("critical_sizes", "transition")),
    "dimensions": plotting.Drawn(dimensions, ("dimensions", "useless_dimensions")),
}
