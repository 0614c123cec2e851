"""Every figure of the Gu chapter: pure functions from records and studies to matplotlib figures.

``FIGURES`` names them: id -> what draws it, which records it needs, and the paper's figure. Bands go from the lowest to
the highest seed, thick lines are medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from grokbook import plotting
from grokbook.chapters.gu import studies, theory
from grokbook.chapters.gu.studies import own_steps, regular_steps
from grokbook.measures import embedding_blocks, median, never_median
from grokbook.plotting import BLUE, BROWN, FAINT, GREEN, GREY, INK, ORANGE, PINK, PURPLE, RED, SKY, styled
from grokbook.train.records import conditions, select

Records = Mapping[str, xr.Dataset]

TRAIN, TEST, MED, NORM = BLUE, ORANGE, GREEN, PURPLE
UNSEEN, SEEN = "#dcdce2", BLUE  # test and training pairs of a mask
SERIES = (BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY)
STEPS = "optimizer steps"


def _steps_axis(ax: Axes, *, log: bool = True) -> None:
    ax.set_xlabel(STEPS)
    if log:
        ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)


def _from_first(record: xr.Dataset) -> xr.Dataset:
    """Without step 0, which a logarithmic axis cannot show, and thinned out where steps lie close together."""
    record = own_steps(record)
    steps = record.step.values
    apart = np.concatenate([[True], np.diff(np.floor(np.log(np.maximum(steps[1:], 1)) * 60)) > 0])
    keep = np.flatnonzero(apart | (np.arange(1, len(steps)) == len(steps) - 1)) + 1
    return record.isel(step=keep)


def _curve(ax: Axes, record: xr.Dataset, name: str, **style: Any) -> Axes:
    shown = _from_first(record)
    return plotting.curves(ax, shown.step, _held(shown, name), **style)


def _held(record: xr.Dataset, name: str) -> xr.DataArray:
    """Curves (run, step) that stay where they were once their run has left, until the last one leaves.

    Without it a median falls when the fastest leave, for it is then that of the slow ones.
    """
    values, steps, left = record[name].values.copy(), record.step.values, record.stopped_at.values
    for curve, end in zip(values, left, strict=True):
        seen = curve[(steps <= end) & np.isfinite(curve)]
        if len(seen):
            curve[(steps > end) & (steps <= left.max())] = seen[-1]
    return record[name].copy(data=values)


def _loss_axis(ax: Axes) -> None:
    """Powers of ten, a few of them: a train loss falls by many orders of magnitude."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(numticks=5))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _accuracies(ax: Axes, record: xr.Dataset) -> Axes:
    for split, color in (("train", TRAIN), ("test", TEST)):
        _curve(ax, record, f"{split}_accuracy", color=color, label=split)
    return plotting.fraction_axis(ax)


# ----------------------------------------------------------------------------------------------------------- drawings


def _box(ax: Axes, x: float, y: float, width: float, height: float, text: str, color: str = "white") -> None:
    ax.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", fc=color, ec="#55555e", lw=1.0)
    )
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def _arrow(ax: Axes, a: tuple[float, float], b: tuple[float, float], color: str = "#55555e") -> None:
    ax.add_patch(FancyArrowPatch(a, b, arrowstyle="-|>", mutation_scale=9, lw=1.0, color=color, shrinkA=1, shrinkB=1))


@styled
def task(records: Records) -> Figure:
    """Earlier Fig. 2: the tokens and the network."""
    figure, ((tokens,), (net,)) = plotting.panels(2, 1, height=2.0, gridspec_kw={"height_ratios": (1, 1.45)})
    for ax in (tokens, net):
        ax.set_axis_off()
    p = 8
    for row, (offset, text) in enumerate(((0, "k = 0: all shared"), (5, "0 < k < p: some"), (p, "k = p: none"))):
        y = 2 * (2 - row)
        tokens.text(-0.4, y + 0.5, text, ha="right", va="center", fontsize=9)
        for token in range(offset + p + 1):
            first, second = token < p, offset <= token < offset + p
            shared = "#9b8fc9" if first and second else BLUE if first else ORANGE
            color = INK if token == offset + p else shared
            tokens.add_patch(Rectangle((token, y), 0.9, 1.0, color=color, lw=0))
            if token == offset + p:
                tokens.text(token + 0.45, y + 0.5, "cls", ha="center", va="center", color="white", fontsize=8)
    handles = [Rectangle((0, 0), 1, 1, color=color) for color in (BLUE, ORANGE, "#9b8fc9")]
    tokens.legend(handles, ["i", "j + k", "both"], loc="upper right", ncols=1, handlelength=1.0, borderaxespad=0)
    tokens.set_xlim(-5.2, 2 * p + 1.3)
    tokens.set_ylim(-0.3, 5.2)
    tokens.set_title("a  the vocabulary")

    net.set_title("b  the network")
    for height, name, fill in ((3.0, "i", "#cfe3f1"), (1.75, "j + k", "#f8dcc0"), (0.5, "cls", "#d9d9df")):
        _box(net, 0, height, 1.0, 0.8, name, fill)
        _arrow(net, (1.0, height + 0.4), (1.5, height + 0.4))
        _box(net, 1.5, height, 1.75, 0.8, "embedding", "white")
        if height > 0.5:
            _arrow(net, (3.25, height + 0.4), (4.1, 0.95 + 0.12 * height))
    _arrow(net, (3.25, 0.9), (4.1, 0.9))
    for x, width, text in (
        (4.1, 1.7, "attention,\n4 heads"),
        (6.2, 1.5, "ReLU MLP,\n4d units"),
        (8.1, 1.6, "unembed,\nat cls"),
    ):
        _box(net, x, 0.45, width, 0.9, text)
    _arrow(net, (5.8, 0.9), (6.2, 0.9))
    _arrow(net, (7.7, 0.9), (8.1, 0.9))
    _arrow(net, (9.7, 0.9), (10.1, 0.9))
    net.text(10.2, 0.9, "f(i, j)", va="center", fontsize=10)
    net.set_xlim(-0.2, 11.3)
    net.set_ylim(0.2, 4.0)
    return figure


@styled
def concept(records: Records) -> Figure:
    """Fig. 1: the paper's picture of grokking, redrawn."""
    draw = np.random.default_rng(3)
    figure, ((before, after, grid),) = plotting.panels(1, 3, height=2.2)
    p = 17
    angles = 2 * np.pi * np.arange(p) / p
    circle = np.stack([np.cos(angles), np.sin(angles)], -1)
    for ax, points, title in (
        (before, draw.standard_normal((p, 2)) * 0.75, "memorised"),
        (after, circle + 0.03 * draw.standard_normal((p, 2)), "after decay: uniform"),
    ):
        ring = np.concatenate([points, points[:1]])
        ax.plot(*ring.T, color=FAINT, lw=0.9)
        ax.scatter(*points.T, c=np.arange(p), cmap="twilight", s=26, zorder=3)
        ax.set_title(title)
        ax.set_aspect("equal")
    side = 13
    trained = draw.uniform(size=(side, side)) < 0.24
    centre = (6, 6)
    trained[centre] = True
    trained[np.abs(np.arange(side)[:, None] - 6) + np.abs(np.arange(side) - 6) == 1] = False
    grid.scatter(*np.argwhere(~trained).T, s=14, color=UNSEEN, lw=0)
    grid.scatter(*np.argwhere(trained).T, s=22, color=SEEN, lw=0)
    grid.plot([6, 9, 6, 3, 6], [3, 6, 9, 6, 3], color=ORANGE, lw=1.6)
    grid.scatter(*centre, s=48, color=ORANGE, zorder=4)
    grid.set_title("reach of a training pair")
    grid.set_aspect("equal")
    for ax in (before, after, grid):
        ax.set_xticks([])
        ax.set_yticks([])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
    return figure


def _mask(ax: Axes, trained: np.ndarray, title: str = "") -> None:
    """A training set on the grid: training pairs blue, the others grey."""
    from matplotlib.colors import ListedColormap

    ax.imshow(trained, origin="lower", cmap=ListedColormap([UNSEEN, SEEN]), vmin=0, vmax=1)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xticks([0, len(trained) - 1])
    ax.set_yticks([0, len(trained) - 1])
    ax.tick_params(length=2)
    ax.set_xlabel("j", labelpad=-6)
    ax.set_ylabel("i", labelpad=-2, rotation=0)
    ax.set_title(title)


@styled
def masks(records: Records) -> Figure:
    """Fig. 3: a random training set, one with a square and one with a strip left out."""
    study = records["masks"]
    figure, (axes,) = plotting.panels(1, 3, height=2.15)
    for ax, name in zip(axes, study.hole.values, strict=True):
        _mask(ax, study.trained.sel(hole=name).values, str(name))
    return figure


# --------------------------------------------------------------------------------------------------------- trainings


@styled
def base(records: Records) -> Figure:
    """Section 6.1's baseline: accuracy, loss, MED with its permuted control, norms."""
    record = records["base"]
    figure, ((accuracy, loss), (med, norms)) = plotting.panels(2, 2, height=2.4, sharex=True)
    _accuracies(accuracy, record)
    accuracy.set_title("a  accuracy")
    plotting.legend(accuracy, loc="center left")
    for split, color in (("train", TRAIN), ("test", TEST)):
        _curve(loss, record, f"{split}_loss", color=color, label=split)
    _loss_axis(loss)
    loss.set_title("b  cross-entropy")
    loss.set_ylabel("nats")
    _curve(med, record, "med_M1", color=MED, label="MED (M1)")
    _curve(med, record, "med_permuted", color=GREY, label="residues permuted", thin=False, width=1.3)
    plotting.level(med, float(record.med_M1.values[:, 0].mean()), "start", x=0.02, above=False)
    med.set_title("c  MED")
    med.set_ylabel("mean distance")
    med.set_ylim(0)
    plotting.legend(med, loc="lower left")
    for name, color, label in (("total_norm", NORM, "all weights W"), ("embedding_norm", BROWN, "embedding R")):
        shown = _from_first(record)
        relative = shown[name].values / record[name].values[:, :1]
        plotting.curves(norms, shown.step, relative, color=color, label=label)
    norms.set_title("d  norms")
    norms.set_ylabel("norm / initial norm")
    norms.set_ylim(0)
    plotting.legend(norms, loc="lower left")
    for ax in (accuracy, loss, med, norms):
        late = never_median(studies.reached(record, 0.5))
        plotting.mark(ax, median(studies.fitted(record)), "fit" if ax is accuracy else "", height=0.65)
        plotting.mark(ax, late, "half" if ax is accuracy else "", side="left", height=0.65)
    for ax in (med, norms):
        _steps_axis(ax)
    return figure


@styled
def primes(records: Records) -> Figure:
    """Fig. 5: loss, MED and accuracy for several primes."""
    found = studies.by_prime(records)
    figure, axes = plotting.panels(len(found), 3, height=1.75 if len(found) > 1 else 2.2, sharex="row")
    for row, (p, record) in zip(axes, found.items(), strict=True):
        loss, med, accuracy = row
        for split, color in (("train", TRAIN), ("test", TEST)):
            _curve(loss, record, f"{split}_loss", color=color)
            _curve(accuracy, record, f"{split}_accuracy", color=color, label=split)
        _curve(med, record, "med_M2", color=MED)
        plotting.level(med, float(record.med_M2.values[:, 0].mean()), color=FAINT)
        _loss_axis(loss)
        loss.set_ylabel(f"p = {p}")
        med.set_ylim(0)
        plotting.fraction_axis(accuracy, "")
        for ax in row:
            ax.set_xscale("log")
            plotting.plain_numbers(ax.xaxis)
            plotting.mark(ax, never_median(studies.reached(record, 0.5)), "")
    for ax, title in zip(axes[0], ("loss (nats)", "MED, summed (M2)", "accuracy"), strict=True):
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel(STEPS)
    figure.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure


def _rows(study: xr.Dataset, kind: str) -> xr.Dataset:
    return study.isel(row=np.flatnonzero(study.kind.values == kind)).sortby("size")


@styled
def holes(records: Records) -> Figure:
    """Table 1 as a figure: the ceiling against the size of the hole, and what is right inside and outside it."""
    study = records["table_1"]
    figure, axes = plotting.panels(2, 2, height=2.5, sharex="col", sharey="row")
    for (top, bottom), kind, size in zip(axes.T, ("square", "strip"), "kt", strict=True):
        rows = _rows(study, kind)
        x = rows["size"].values
        plotting.dots(top, x, rows.U.values.T, color=ORANGE, style="none")
        middle = [median(row) for row in rows.U.values]  # a line that stops where a row has no U
        top.plot(x, middle, "o-", color=ORANGE, ms=4.5, mew=0, lw=1.5, label="trained (U)", zorder=3)
        top.plot(x, rows.paper_U, "D", color=INK, ms=4.5, mfc="white", label="paper", zorder=4)
        for name, style, label in (
            ("coverage", "--", f"coverage within {studies.reach(study.attrs['p'])}"),
            ("mirror", ":", "mirrors only"),
        ):
            top.plot(x, rows[name].mean("seed"), style, color=FAINT if name == "coverage" else PURPLE, label=label)
        top.set_title(f"{kind}")
        for name, color, label, marker in (
            ("outside", BLUE, "outside", "o"),
            ("inside_mirrored", GREEN, "inside, mirror trained", "^"),
            ("inside_unmirrored", RED, "inside, no mirror", "v"),
        ):
            if np.isfinite(rows[name].values).any():
                plotting.dots(bottom, x, rows[name].values.T, color=color, label=label, marker=marker)
        bottom.set_xlabel(f"size {size} of the hole")
        bottom.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for ax in (top, bottom):
            plotting.fraction_axis(ax, "test accuracy" if kind == "square" else "")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1.0)
    names = {name: handle for ax in axes[1] for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(names.values(), names.keys(), loc="outside lower center", ncols=3, columnspacing=1.0)
    return figure


@styled
def hole_curves(records: Records) -> Figure:
    """The trainings behind Table 1."""
    record = records["holes"]
    figure, (axes) = plotting.panels(1, 2, height=2.7, sharey=True)
    for ax, kind, size in zip(axes[0], ("square", "strip"), "kt", strict=True):
        sizes = sorted({int(s) for s in record["size"].values[record.hole.values == kind]})
        for i, one in enumerate(sizes):
            color = _shade(i, len(sizes))
            _curve(
                ax,
                select(record, label=f"{kind} {one}"),
                "test_accuracy",
                color=color,
                label=f"{size} = {one}",
                thin=False,
            )
        plotting.fraction_axis(ax, "test accuracy" if kind == "square" else "")
        ax.set_title(kind)
        _steps_axis(ax)
        if sizes:
            plotting.legend(ax, loc="upper left", handlelength=1.0, fontsize=8.5)
    return figure


def _shade(i: int, count: int) -> Any:
    import matplotlib

    return matplotlib.colormaps["viridis"](0.05 + 0.85 * i / max(1, count - 1))


@styled
def hole_maps(records: Records) -> Figure:
    """What a network with a hole gets right: training set, answers, and answers against distance."""
    record = records["holes"]
    shown = [_middle(record, kind) for kind in ("square", "strip") if kind in record.hole.values]
    figure, axes = plotting.panels(len(shown), 3, height=2.1, gridspec_kw={"width_ratios": (1, 1, 1.15)})
    for (mask, right, against), run in zip(axes, shown, strict=True):
        trained, hole = studies.mask_of(record, run), studies.hole_of(record, run)
        correct = record.correct.values[run, -1]
        _mask(mask, trained, str(record.label.values[run]))
        image = np.where(trained, np.nan, correct)
        right.set_facecolor("#c8dcea")
        plotting.heatmap(right, image, cmap="RdYlGn", limit=(-0.15, 1.15), labels=("j", "i"), title="test pairs right")
        right.set_xlabel("j", labelpad=-6)
        right.set_ylabel("")
        right.set_yticks([])
        p = len(trained)
        labels = studies.modular_function(str(record.f.values[run]), p)
        distance = theory.same_class_distance(trained, labels)
        for region, color, name in ((hole, RED, "in the hole"), (~hole, BLUE, "outside")):
            reach = np.unique(distance[region & ~trained])
            reach = reach[np.isfinite(reach)]
            counts = [int(((distance == d) & region & ~trained).sum()) for d in reach]
            share = [float(correct[(distance == d) & region & ~trained].mean()) for d in reach]
            enough = [i for i, count in enumerate(counts) if count >= 8]
            against.plot(reach[enough], np.array(share)[enough], "o-", ms=3, lw=1.2, color=color, label=name)
        plotting.fraction_axis(against, "")
        against.set_title("share right")
        against.set_xlabel("distance to its class")
        plotting.legend(against, loc="best", fontsize=8.5)
    return figure


def _middle(record: xr.Dataset, kind: str) -> int:
    """A run of the first seed with a hole of middle size, among those that memorise if any do."""
    runs = np.flatnonzero((record.hole.values == kind) & (record.seed.values == record.seed.values.min()))
    fitted = runs[np.isfinite(studies.fitted(record)[runs])]
    runs = fitted if len(fitted) else runs
    return int(runs[np.argsort(record["size"].values[runs])[len(runs) // 2]])


@styled
def fractions(records: Records) -> Figure:
    """Fig. 4: x^2 + xy + y^2 at growing training fractions, and where the right answers are."""
    record = records["fractions"]
    f = str(record.f.values[0])
    groups = list(conditions(record))
    figure = Figure(figsize=(plotting.WIDTH, 5.0), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    curves, share, place = (
        figure.add_subplot(grid[0, :]),
        figure.add_subplot(grid[1, 0]),
        figure.add_subplot(grid[1, 1]),
    )
    alphas = np.array([float(runs.train_fraction.values[0]) for _, runs in groups])
    for i, (label, runs) in enumerate(groups):
        _curve(curves, runs, "test_accuracy", color=_shade(i, len(groups)), label=label)
    plotting.fraction_axis(curves, "test accuracy")
    curves.set_title("a  " + studies.pretty(f))
    _steps_axis(curves)
    plotting.legend(curves, loc="upper left", ncols=2)
    tops = [studies.best(runs) for _, runs in groups]
    table = _by_seed(groups, tops)
    plotting.dots(share, alphas, table, color=ORANGE, label="best accuracy A")
    plotting.dots(share, alphas, table * (1 - alphas), color=BLUE, label="A (1 − α)", marker="s")
    known = np.array([median(studies.own_share(runs)) for _, runs in groups])
    share.plot(alphas, known, ":", color=PURPLE, lw=2, label="mirrors only")
    share.plot(alphas, known * (1 - alphas), ":", color=PURPLE, lw=2)
    plotting.fraction_axis(share, "")
    share.set_title("b  ceiling")
    share.set_xlabel("training fraction α")
    share.set_ylim(top=1.45)  # room for the legend
    plotting.legend(share, loc="upper left", fontsize=8.5)
    for name, color, label in (("mirrored", GREEN, "mirror trained"), ("unmirrored", RED, "mirror not trained")):
        late = [studies.settled(runs, f"accuracy_{name}") for _, runs in groups]
        plotting.dots(place, alphas, _by_seed(groups, late), color=color, label=label)
    plotting.fraction_axis(place, "")
    place.set_title("c  by test pair")
    place.set_xlabel("training fraction α")
    plotting.legend(place, loc="center left", fontsize=8.5)
    return figure


def _by_seed(groups: Sequence[tuple[str, xr.Dataset]], values: Sequence[np.ndarray]) -> np.ndarray:
    """(seed, condition) from one (run,) a condition; a seed that a condition lacks is nan."""
    seeds = sorted({int(seed) for _, runs in groups for seed in runs.seed.values})
    table = np.full((len(seeds), len(groups)), np.nan)
    for column, ((_, runs), of) in enumerate(zip(groups, values, strict=True)):
        for seed, value in zip(runs.seed.values, of, strict=True):
            table[seeds.index(int(seed)), column] = value
    return table


@styled
def dnn(records: Records) -> Figure:
    """Section 6.1's network with two hidden layers."""
    figure, (axes,) = plotting.panels(1, 2, height=2.5, sharey=True)
    for ax, (f, record) in zip(axes, conditions(records["dnn"]), strict=True):
        alphas = np.unique(record.train_fraction.values)
        for i, alpha in enumerate(alphas):
            runs = select(record, train_fraction=float(alpha))
            _curve(ax, runs, "test_accuracy", color=_shade(i, len(alphas)), label=f"α = {alpha:g}")
        plotting.fraction_axis(ax, "test accuracy" if ax is axes[0] else "")
        ax.set_title(studies.pretty(f))
        _steps_axis(ax)
    plotting.legend(axes[0], loc="upper left")
    return figure


@styled
def _two_rows(records: Records, name: str, measure: str, label: str) -> Figure:
    """Test accuracy above and a measure below, a colour a condition."""
    record = records[name]
    figure, ((accuracy,), (below,)) = plotting.panels(2, 1, height=2.3, sharex=True)
    for (condition, runs), color in zip(conditions(record), cycle(SERIES), strict=False):
        _curve(accuracy, runs, "test_accuracy", color=color, label=condition)
        _curve(below, runs, measure, color=color)
    plotting.fraction_axis(accuracy, "test accuracy")
    below.set_ylabel(label)
    below.set_ylim(0)
    _steps_axis(below)
    figure.legend(*accuracy.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


overlap = partial(_two_rows, name="overlap", measure="med_M1", label="MED (M1)")
layers = partial(_two_rows, name="layers", measure="med_M1", label="MED (M1)")
width_ceiling = partial(_two_rows, name="width_ceiling", measure="med_M3", label="MED, summed (M3)")
width_boundary = partial(_two_rows, name="width_boundary", measure="med_M1", label="MED (M1)")


@styled
def widths(records: Records) -> Figure:
    """Fig. 9: width speeds grokking up, or not."""
    figure, (axes,) = plotting.panels(1, 2, height=2.6, sharey=True)
    for ax, name in zip(axes, ("width_apart", "width_shared"), strict=True):
        record = records[name]
        for (label, runs), color in zip(conditions(record), cycle(SERIES), strict=False):
            _curve(ax, runs, "test_accuracy", color=color, label=label)
        plotting.fraction_axis(ax, "test accuracy" if ax is axes[0] else "")
        ax.set_title(f"p = {int(record.p.values[0])}, k = {int(record.offset.values[0])}")
        if share := studies.on_plateau(record):
            plotting.level(ax, share, "mirrors alone", color=PURPLE, x=0.02)
        _steps_axis(ax)
        plotting.legend(ax, loc="upper left")
    return figure


@styled
def toeplitz(records: Records) -> Figure:
    """Fig. 20: structured, random, and matched starts at three fractions."""
    record = records["toeplitz"]
    alphas = sorted({float(alpha) for alpha in record.train_fraction.values}, reverse=True)
    figure, axes = plotting.panels(2, len(alphas), height=2.1, sharex="col", sharey="row")
    names = {
        "gaussian": ("random", BLUE),
        "toeplitz": ("Toeplitz", ORANGE),
        "matched": ("random, same mean and norm", GREEN),
    }
    for (accuracy, med), alpha in zip(axes.T, alphas, strict=True):
        for start, (label, color) in names.items():
            runs = select(select(record, train_fraction=alpha), start=start)
            if runs.sizes["run"]:
                _curve(accuracy, runs, "test_accuracy", color=color, label=label)
                _curve(med, runs, "med_M1", color=color)
        accuracy.set_title(f"α = {alpha:g}")
        plotting.fraction_axis(accuracy, "test accuracy" if alpha == alphas[0] else "")
        med.set_ylim(0)
        _steps_axis(med)
    axes[1, 0].set_ylabel("MED (M1)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


@styled
def operations(records: Records) -> Figure:
    """Figs 12 to 19: other operations; accuracy, and MED on the right-hand axis."""
    groups = list(conditions(records["operations"]))
    columns = 2
    figure, axes = plotting.panels(-(-len(groups) // columns), columns, height=1.85, sharey=True)
    twins = []
    for ax, (label, record) in zip(axes.ravel(), groups, strict=False):
        f, alpha, d = str(record.f.values[0]), float(record.train_fraction.values[0]), int(record.d_model.values[0])
        _accuracies(ax, record)
        ax.set_ylabel("")
        every, mirrors = median(studies.own_share(record, None)), median(studies.own_share(record))
        plotting.level(ax, every, color=PURPLE)
        if studies.KEPT.get(f, ("mirror",))[0] == "mirror":
            ax.axhline(mirrors, color=PURPLE, ls=":", lw=1.4, zorder=1.5)
        twin = ax.twinx()
        twin.grid(False)
        twin.spines["right"].set_visible(True)
        _curve(twin, record, "med_M1", color=MED)
        twin.set_ylim(0)
        twin.tick_params(axis="y", labelcolor=MED, labelsize=8.5)
        twins.append(twin)
        ax.set_xscale("log")
        plotting.plain_numbers(ax.xaxis)
        number = label.removeprefix("fig")
        ax.set_title(f"{number}: {studies.pretty(f)}, d = {d}, α = {alpha:g}", fontsize=9.5)
    for ax in axes[-1]:
        ax.set_xlabel(STEPS)
    for ax in axes.ravel()[len(groups) :]:
        ax.set_axis_off()
    lines = [
        Line2D([], [], color=TRAIN), Line2D([], [], color=TEST), Line2D([], [], color=MED),
        Line2D([], [], color=PURPLE, ls="--"), Line2D([], [], color=PURPLE, ls=":"),
    ]  # fmt: skip
    names = ["train", "test", "MED (right)", "listed symmetries", "mirrors only"]
    figure.legend(lines, names, loc="outside upper center", ncols=5, columnspacing=1.0)
    return figure


@styled
def positions(records: Records) -> Figure:
    """Earlier Figs 19 to 21: with and without a positional table."""
    record = records["positions"]
    sizes = np.unique(record.d_model.values)
    figure, axes = plotting.panels(2, len(sizes), height=2.0, sharex="col", sharey="row")
    for (accuracy, med), d in zip(axes.T, sizes, strict=True):
        for label, color in (("with", BLUE), ("without", ORANGE)):
            runs = select(select(record, d_model=d), label=label)
            _curve(accuracy, runs, "test_accuracy", color=color, label=f"{label} positions")
            _curve(med, runs, "med_M1", color=color)
        accuracy.set_title(f"d = {d}")
        plotting.fraction_axis(accuracy, "test accuracy" if d == sizes[0] else "")
        med.set_ylim(0)
        _steps_axis(med)
    axes[1, 0].set_ylabel("MED (M1)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


@styled
def seeds_apart(records: Records) -> Figure:
    """Earlier Fig. 22: one setting, many seeds."""
    record = records["seeds_apart"]
    figure, (axes,) = plotting.panels(1, 2, height=2.5, sharey=True)
    for ax, (label, runs) in zip(axes, conditions(record), strict=True):
        shown = _from_first(runs)
        for i, values in enumerate(shown.test_accuracy.values):
            ax.plot(shown.step, values, color=_shade(i, runs.sizes["run"]), lw=1.3)
        plotting.fraction_axis(ax, "test accuracy" if ax is axes[0] else "")
        ax.set_title("weights and split differ" if label == "own split" else "one split, weights differ")
        if share := studies.on_plateau(runs):
            plotting.level(ax, share, "mirrors alone", color=PURPLE, x=0.02)
        _steps_axis(ax)
    return figure


@styled
def diameters(records: Records) -> Figure:
    """Earlier appendix F: Fourier power of two disjoint vocabularies, and their sizes and distances."""
    record = records["diameters"]
    p, offset = int(record.p.values[0]), int(record.offset.values[0])
    figure, ((power, sizes),) = plotting.panels(1, 2, height=2.6)
    half = (p - 1) // 2
    for name, block, color in zip(("A: i", "B: j + k"), range(2), (BLUE, ORANGE), strict=True):
        for snapshot, style in ((0, ":"), (-1, "-")):
            embedding = embedding_blocks(record.W_E.values[0, snapshot], p, offset)[block]
            shares = theory.embedding_power(embedding)[1 : half + 1]
            power.plot(np.arange(1, half + 1), shares / shares.sum(), style, color=color, lw=1.2,
                       label=name if snapshot else None)  # fmt: skip
    power.set_xlabel("frequency")
    power.set_ylabel("share of power")
    power.set_title("a  trained; dotted: start")
    found = studies.two_vocabularies(record)
    names = {
        "diameter_a": "A",
        "diameter_b": "B",
        "union": "union",
        "set_distance": "A to B",
        "neighbour": "neighbours",
    }
    for row, name in enumerate(names):
        for snapshot, color, size in ((0, FAINT, 6), (-1, BLUE, 7)):
            sizes.plot(float(found[name][snapshot]), row, "o", color=color, ms=size,
                       label=("start", "trained")[snapshot] if not row else None)  # fmt: skip
    sizes.set_yticks(range(len(names)), names.values())
    sizes.invert_yaxis()
    sizes.set_xlim(0)
    sizes.set_xlabel("distance")
    sizes.set_title("b  diameters and distances")
    figure.legend(loc="outside upper center", ncols=4)
    return figure


@styled
def spectrum(records: Records) -> Figure:
    """Fourier power of the trained embedding, and MED's mean square as a sum over it."""
    record = records["base"]
    p = int(record.p.values[0])
    figure, ((power, single),) = plotting.panels(1, 2, height=2.5)
    frequency = np.arange(1, (p - 1) // 2 + 1)
    for run in range(record.sizes["run"]):
        for snapshot, color, width in ((0, FAINT, 0.8), (-1, SERIES[run % len(SERIES)], 1.4)):
            embedding = record.W_E.values[run, snapshot, :p]
            found = theory.embedding_power(embedding)[1 : len(frequency) + 1] * 2
            label = f"seed {int(record.seed.values[run])}" if snapshot else "start" if not run else None
            power.plot(frequency, found / found.sum(), color=color, lw=width, label=label)
    power.set_xlabel("frequency f")
    power.set_ylabel("share of power")
    power.set_title("a  trained embeddings")
    figure.legend(*power.get_legend_handles_labels(), loc="outside upper left", ncols=5)
    study = records["circles"]
    single.plot(study.frequency, study.one, color=BLUE, label="one circle")
    plotting.level(single, study.attrs["random"], "random vectors", x=0.02, above=False)
    low, high = np.quantile(study.five.values, [0.05, 0.95])
    single.axhspan(low, high, color=GREEN, alpha=0.15, lw=0, label="five circles, 90 %")
    trained = record.med_M1.values / record.embedding_norm.values
    for run in range(record.sizes["run"]):
        known = trained[run][np.isfinite(trained[run])]
        single.axhline(known[-1], color=SERIES[run % len(SERIES)], lw=1.1, ls=":")
    single.set_ylim(0, 2.1)
    single.set_xlabel("frequency f of the circle")
    single.set_ylabel("MED / R")
    single.set_title("b  what MED would be")
    plotting.legend(single, loc="lower right", fontsize=8.5)
    return figure


FAMILIES = {  # experiment -> what its dots are called
    "base": "addition", "primes": "addition", "largest_prime": "addition", "seeds_apart": "addition",
    "holes": "holes", "holes_by_text": "holes", "fractions": "other functions", "operations": "other functions",
    "overlap": "offsets", "diameters": "offsets",
    "toeplitz": "starts", "layers": "depth", "width_apart": "width", "width_shared": "width", "width_ceiling": "width",
    "width_boundary": "width", "positions": "positions", "dnn": "MLP",
}  # fmt: skip


@styled
def special(records: Records) -> Figure:
    """Is MED special? Its rank correlation and its sign agreement with the test loss beside every control's."""
    study = records["special"]
    names = [name for name in studies.TRACKERS if name in study.measure.values]
    figure, (axes,) = plotting.panels(1, 2, height=0.55 + 0.42 * len(names), sharey=True)
    families = [FAMILIES.get(str(name), str(name)) for name in study.experiment.values]
    kinds = list(dict.fromkeys(families))
    full = study.as_paper.values
    draw = np.random.default_rng(0)
    for ax, kind, title in (
        (axes[0], "correlation", "rank correlation"),
        (axes[1], "agreement", "same sign, 100 steps"),
    ):
        for row, name in enumerate(names):
            values = study[kind].sel(measure=name).values
            jitter = draw.uniform(-0.27, 0.27, len(values))
            for family, color in zip(kinds, (*SERIES, SKY), strict=False):
                here = np.array(families) == family
                for group, fill in ((full, color), (~full, "none")):
                    both = here & group
                    ax.plot(values[both], row + jitter[both], "o", ms=3.4, mew=0.8, mfc=fill, alpha=0.75, color=color)
                if row == 0 and kind == "correlation":
                    ax.plot([], [], "o", ms=4, color=color, label=family)
            for group, style in ((full, "-"), (~full, ":")):
                if np.isfinite(values[group]).any():
                    bar = [median(values[group])] * 2, [row - 0.38, row + 0.38]
                    ax.plot(*bar, style, color=INK, lw=2.2, zorder=4, solid_capstyle="butt")
        ax.set_title(title)
        ax.axvline(0 if kind == "correlation" else 0.5, color=FAINT, lw=1)
        ax.set_xlim(-1.04 if kind == "correlation" else -0.04, 1.04)
    axes[0].set_yticks(range(len(names)), [studies.TRACKERS[name] for name in names])
    axes[0].invert_yaxis()
    axes[0].set_xlabel("Spearman, with test loss")
    axes[1].set_xlabel("share of increments")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, handletextpad=0.1)
    kinds_of_run = (
        Line2D([], [], color=INK, marker="o", ms=4, lw=2.2),
        Line2D([], [], color=INK, marker="o", ms=4, mfc="none", lw=2.2, ls=":"),
    )
    words = ["the paper's sizes, median", "other sizes (stand-ins), median"]
    figure.legend(kinds_of_run, words, loc="outside lower center", ncols=2, handlelength=2.4)
    return figure


# ------------------------------------------------------------------------------------------------------------ theory


@styled
def coverage(records: Records) -> Figure:
    """Theorem 3.12: how many points stay uncovered, exactly, and where the printed bound lies."""
    study = records["coverage"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.8, gridspec_kw={"width_ratios": (1.25, 1)})
    for i, k in enumerate(study.k.values):
        color = SERIES[i]
        one = study.uncovered.sel(k=k)
        left.plot(study.fraction, one.sel(surface="grid"), color=color, label=f"k = {k}")
        left.plot(study.fraction, one.sel(surface="torus"), "--", color=color, lw=1.1)
        bound = float(study.bound.sel(k=k))
        if bound < 1:
            left.plot(bound, 1, "D", color=color, ms=6, mec="white", zorder=4)
    left.set_yscale("log")
    left.set_ylim(1e-3, study.attrs["p"] ** 2)
    left.set_xlim(0, 1)
    left.axhline(1, color=INK, lw=0.8)
    left.set_xlabel("training fraction α")
    left.set_ylabel("expected uncovered pairs")
    left.set_title("a  exact; ◆ printed bound")
    plotting.legend(left, loc="upper right", fontsize=8.5)
    right.plot(study.k, study.bound, "D-", color=INK, ms=5, label="printed bound")
    for surface, style in (("grid", "-"), ("torus", "--")):
        right.plot(
            study.k,
            study.threshold.sel(surface=surface),
            style,
            marker="o",
            ms=4,
            color=BLUE,
            label=f"one left, {surface}",
        )
    for name, color, marker, chance in (("half", GREEN, "s", 50), ("most", ORANGE, "^", 95)):
        values = study[name].sel(surface="grid")
        right.plot(study.k, values, "-", marker=marker, ms=4, color=color, label=f"all, {chance} %, grid")
    right.axhline(1, color=FAINT, lw=1)
    right.set_ylim(0, 2)
    right.set_xticks(study.k)
    right.set_xlabel("diamond size k")
    right.set_title("b  fraction needed")
    plotting.legend(right, loc="upper right", fontsize=8.5)
    return figure


@styled
def same_class(records: Records) -> Figure:
    """Theorem 3.10: the distance that would explain each row of Table 1, and how badly one for all rows does."""
    study = records["same_class"]
    figure, ((rows, error),) = plotting.panels(1, 2, height=2.9, gridspec_kw={"width_ratios": (1.15, 1)})
    labels = study.row.values.tolist()
    colors = [BLUE if kind == "square" else ORANGE for kind in study.kind.values]
    places = np.arange(len(labels))
    rows.barh(places, study.matching.median("seed"), color=colors, height=0.65)
    for row in places:
        rows.plot(study.matching.values[row], np.full(study.sizes["seed"], row), "|", color=INK, ms=7)
    rows.set_yticks(places, [label.replace("square", "k =").replace("strip", "t =") for label in labels])
    rows.invert_yaxis()
    rows.set_xlabel("D that gives the paper's U")
    rows.set_title("a  one theorem, many D")
    mean = study.coverage.mean("seed").sel(surface="torus")
    for kinds, color, label in (
        (("square",), BLUE, "squares"),
        (("strip",), ORANGE, "strips"),
        (("square", "strip"), INK, "all rows"),
    ):
        chosen = np.isin(study.kind.values, kinds)
        values = theory.coverage_errors(mean.values[chosen], study.U.values[chosen])
        error.plot(study.D, 100 * values, color=color, label=label)
    error.set_xlim(0, 60)
    error.set_ylim(0)
    error.set_xlabel("one D for all")
    error.set_ylabel("error (points, rms)")
    error.set_title("b  misfit to Table 1")
    plotting.legend(error, loc="upper right")
    return figure


def _cube(ax: Any) -> None:
    """The unit cube and the surface x w u = 1 around its corner."""
    ax.set_box_aspect((1, 1, 1), zoom=1.05)
    for a in (0, 1):
        for b in (0, 1):
            ax.plot([0, 1], [a, a], [b, b], color="#b9b9c2", lw=0.8)
            ax.plot([a, a], [0, 1], [b, b], color="#b9b9c2", lw=0.8)
            ax.plot([a, a], [b, b], [0, 1], color="#b9b9c2", lw=0.8)
    x, w = np.meshgrid(np.linspace(0.62, 1.45, 34), np.linspace(0.62, 1.45, 34))
    u = 1 / (x * w)
    u[(u > 1.45) | (u < 0.62)] = np.nan
    ax.plot_surface(x, w, u, color=SKY, alpha=0.35, lw=0, antialiased=True, shade=False)
    ax.scatter([1], [1], [1], color=RED, s=22, depthshade=False)
    ax.set_xlim(0, 1.45)
    ax.set_ylim(0, 1.45)
    ax.set_zlim(0, 1.45)
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "w"), (ax.zaxis, "")):
        axis.set_ticks([0, 0.5, 1])
        axis.set_label_text(name)
        axis.labelpad = -7
        axis.set_pane_color((1, 1, 1, 0))
    ax.text(1.45, 1.45, 1.52, "u", ha="center")
    ax.tick_params(pad=-3, labelsize=8)
    ax.view_init(elev=18, azim=-52)
    ax.grid(False)


FLOW_STARTS = np.stack(np.meshgrid(*[np.linspace(0.1, 0.9, 5)] * 3, indexing="ij"), -1).reshape(-1, 3)


@styled
def flow(records: Records) -> Figure:
    """Fig. 8: the flow from a grid of starts, and how far from (1, 1, 1) trajectories end."""
    study = records["flow"]
    figure = Figure(figsize=(plotting.WIDTH, 3.5), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.5, 1))
    cube = figure.add_subplot(grid[0], projection="3d")
    _cube(cube)
    paths = theory.flow_path(FLOW_STARTS, np.linspace(0, 40, 81))
    distance = np.linalg.norm(paths[-1] - 1, axis=1)
    import matplotlib

    scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, distance.max()), "viridis_r")
    cube.computed_zorder = False  # else lines hide the point that they should meet in
    for i in range(len(FLOW_STARTS)):
        cube.plot(*paths[:, i].T, color=scale.to_rgba(distance[i]), lw=0.8, alpha=0.85)
    cube.scatter([1], [1], [1], color=RED, ec="white", lw=0.8, s=42, depthshade=False, zorder=10)
    bar = figure.colorbar(scale, ax=cube, location="bottom", shrink=0.75, aspect=28, pad=0.02)
    bar.set_label("distance of the end from (1, 1, 1)")
    cube.set_title("a  trajectories")
    histogram = figure.add_subplot(grid[1])
    histogram.hist(study.distance.values, bins=30, color=BLUE, lw=0)
    histogram.axvline(float(study.distance.mean()), color=INK, ls="--", lw=1.1)
    histogram.set_xlabel("distance from (1, 1, 1)")
    histogram.set_ylabel(f"of {study.sizes['start_']} random starts")
    histogram.set_title("b  where they end")
    return figure


@styled
def flow_frame(time: float) -> Figure:
    """One frame of the slider over the flow's time: the same starts, moved on so far."""
    figure = Figure(figsize=(4.2, 3.7), layout="constrained")
    ax = figure.add_subplot(projection="3d")
    _cube(ax)
    times = np.linspace(0, time, 30) if time else np.array([0.0])
    paths = theory.flow_path(FLOW_STARTS, times)
    outside = (paths[-1] > 1 + 1e-9).any(1)
    for i in range(len(FLOW_STARTS)):
        ax.plot(*paths[:, i].T, color=ORANGE if outside[i] else BLUE, lw=0.6, alpha=0.5)
    for chosen, color in ((~outside, BLUE), (outside, ORANGE)):
        ax.scatter(*paths[-1][chosen].T, color=color, s=9, depthshade=False, lw=0)
    return figure


def flow_outside(time: float) -> int:
    """How many of the starts have left the cube by then."""
    end = theory.flow_path(FLOW_STARTS, [time])[-1] if time else FLOW_STARTS
    return int((end > 1 + 1e-9).any(1).sum())


@styled
def separability(records: Records) -> Figure:
    """Definition 5.1: which kind of separability implies which."""
    study = records["separability"]
    figure, ((bars, example),) = plotting.panels(1, 2, height=2.3)
    names, counts = study.case.values.tolist(), study.counts.values
    bars.barh(range(len(names)), counts, color=[GREEN, BLUE, RED, GREY], height=0.65)
    for row, count in enumerate(counts):
        bars.text(count + 4, row, f"{count}", va="center", fontsize=9)
    bars.set_yticks(range(len(names)), names)
    bars.invert_yaxis()
    bars.set_xlim(0, counts.max() * 1.2)
    bars.set_xlabel(f"of {study.attrs['trials']} random pairs of sets")
    bars.set_title("a  before and after projecting")
    square = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [1, 0]])
    for points, color in zip(square, (BLUE, ORANGE), strict=True):
        example.plot(*points.T, "o-", color=color, ms=9, lw=1.5)
    example.set_xlim(-0.35, 1.35)
    example.set_ylim(-0.25, 1.25)
    example.set_aspect("equal")
    example.set_xlabel("x")
    example.set_ylabel("y")
    example.set_title("b  disjoint, hulls are not")
    return figure


# ----------------------------------------------------------------------------------------------------- explore panels


@styled
def hole_frame(
    p: int, kind: str, size: int, train_fraction: float, predicted: xr.Dataset, record: xr.Dataset | None
) -> Figure:
    """One frame of the slider over the hole: the training set, and what is predicted and trained at each size."""
    figure, ((mask, right),) = plotting.panels(1, 2, height=2.8, width=5.4, gridspec_kw={"width_ratios": (1, 1.2)})
    trained = theory.draw_training_mask(p, train_fraction, holed=theory.hole(kind, p, size), generator=0)
    _mask(mask, trained, f"{kind} {size}")
    of = predicted.sel(kind=kind)
    right.plot(of["size"], of.coverage, "--", color=FAINT, label=f"coverage within {studies.reach(p)}")
    right.plot(of["size"], of.mirror, ":", color=PURPLE, lw=2, label="mirrors only")
    if record is not None:
        rows = _rows(record, kind)
        scale = p / record.attrs["p"]
        right.plot(
            rows["size"] * scale,
            [median(row) for row in rows.U.values],
            "o",
            color=ORANGE,
            ms=5,
            label=f"trained, p = {record.attrs['p']}",
        )
    right.axvline(size, color=INK, lw=1.1)
    plotting.fraction_axis(right, "test accuracy")
    right.set_xlabel("size of the hole")
    handles = right.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, fontsize=8.5, columnspacing=1.2)
    return figure


def hole_alt(predicted: xr.Dataset, kind: str, size: int) -> str:
    """What the frame of a hole shows, in words."""
    at = predicted.sel(kind=kind, size=size)
    return (
        f"A training set without a {kind} of size {size}; of the test pairs {float(at.coverage):.0%} have a "
        "training pair "
        f"of their class nearby, and mirrors alone would answer {float(at.mirror):.0%}."
    )


def hole_predictions(p: int, train_fraction: float, sizes: Sequence[int], f: str = "n + m") -> xr.Dataset:
    """Coverage within ``studies.reach`` and mirrors alone, for both kinds of hole over their size; one draw."""
    labels = studies.modular_function(f, p)
    values = np.zeros((2, 2, len(sizes)))
    for a, kind in enumerate(theory.HOLES):
        for b, size in enumerate(sizes):
            hole = theory.hole(kind, p, size)
            mask = theory.draw_training_mask(p, train_fraction, holed=hole, generator=0)
            values[0, a, b] = float(theory.same_class_coverage(mask, labels, studies.reach(p)))
            values[1, a, b] = float(theory.mirror_accuracy(mask, hole))
    return xr.Dataset(
        {"coverage": (("kind", "size"), values[0]), "mirror": (("kind", "size"), values[1])},
        {"kind": list(theory.HOLES), "size": list(sizes)},
    )


def middle_run(record: xr.Dataset) -> int:
    """The run that knows half of its test set at the median time, the earlier of two."""
    times = np.nan_to_num(studies.reached(record, 0.5), nan=np.inf)
    return int(np.argsort(times, kind="stable")[(len(times) - 1) // 2])


def embedding_plane(record: xr.Dataset, run: int = 0) -> tuple[np.ndarray, int]:
    """The plane of a run's final embedding: (d, 2) its two principal axes, and the strongest frequency on it."""
    p = int(record.p.values[run])
    final = record.W_E.values[run, -1, :p].astype(float)
    _, _, axes = np.linalg.svd(final - final.mean(0), full_matrices=False)
    power = theory.embedding_power(final @ axes[:2].T)[1 : (p - 1) // 2 + 1]
    return axes[:2].T, int(power.argmax()) + 1


@styled
def embedding_frame(record: xr.Dataset, snapshot: int, run: int = 0) -> Figure:
    """One frame of the slider over training time: the embedding on its final plane, and where MED and loss stand."""
    p = int(record.p.values[run])
    axes, frequency = embedding_plane(record, run)
    figure, ((plane, curves),) = plotting.panels(1, 2, height=2.6, width=5.6, gridspec_kw={"width_ratios": (1, 1.2)})
    points = record.W_E.values[run, snapshot, :p].astype(float) @ axes
    plane.scatter(*points.T, c=np.arange(p) * frequency % p, cmap="twilight", s=16, lw=0)
    everywhere = np.abs(record.W_E.values[run, :, :p].astype(float) @ axes).max() * 1.05
    plane.set_xlim(-everywhere, everywhere)
    plane.set_ylim(-everywhere, everywhere)
    plane.set_aspect("equal")
    plane.set_xlabel("axis 1")
    plane.set_ylabel("axis 2")
    plane.set_title(f"colour: {frequency} i mod {p}", fontsize=9.5)
    even = regular_steps(record)
    for name, color, label in (
        ("test_loss", TEST, "test loss"),
        ("med_M1", MED, "MED"),
        ("test_accuracy", SKY, "test accuracy"),
    ):
        values = even[name].values[run]
        curves.plot(even.step, values / np.nanmax(values), color=color, lw=1.4, label=label)
    curves.axvline(float(record.snapshot_step.values[run, snapshot]), color=INK, lw=1.2)
    curves.set_ylim(0, 1.32)
    curves.set_yticks([0, 0.5, 1])
    curves.set_ylabel("share of the largest")
    plotting.legend(curves, loc="upper right", fontsize=8.5, ncols=2)
    _steps_axis(curves, log=False)
    return figure


def embedding_alt(record: xr.Dataset, snapshot: int, run: int = 0) -> str:
    """What the frame of a training step shows, in words."""
    step = float(record.snapshot_step.values[run, snapshot])
    now = int(np.searchsorted(record.step.values, step))
    med, accuracy = (float(record[name].values[run, now]) for name in ("med_M1", "test_accuracy"))
    return f"Embeddings of all residues on a plane at step {step:,.0f}; MED is {med:.2f}, test accuracy {accuracy:.0%}."


# ---------------------------------------------------------------------------------------------------------- register


# what is drawn, from what, and the figures or tables of the 2025 paper or, after "earlier", of the version before it
FIGURES: dict[str, plotting.Drawn] = {
    "concept": plotting.Drawn(concept, (), "1"),
    "task": plotting.Drawn(task, (), "earlier 2"),
    "base": plotting.Drawn(base, ("base",), "6.1"),
    "fig3": plotting.Drawn(masks, ("masks",), "3"),
    "table1": plotting.Drawn(holes, ("table_1",), "Table 1"),
    "hole_curves": plotting.Drawn(hole_curves, ("holes",), "Table 1"),
    "hole_maps": plotting.Drawn(hole_maps, ("holes",)),
    "same_class": plotting.Drawn(same_class, ("same_class",)),
    "fig4": plotting.Drawn(fractions, ("fractions",), "4"),
    "dnn": plotting.Drawn(dnn, ("dnn",)),
    "fig5": plotting.Drawn(primes, ("base",), "5"),
    "special": plotting.Drawn(special, ("special",)),
    "spectrum": plotting.Drawn(spectrum, ("base", "circles")),
    "overlap": plotting.Drawn(overlap, ("overlap",), "earlier 3"),
    "fig20": plotting.Drawn(toeplitz, ("toeplitz",), "20"),
    "fig2": plotting.Drawn(layers, ("layers",), "2"),
    "fig9": plotting.Drawn(widths, ("width_apart", "width_shared"), "9"),
    "fig10": plotting.Drawn(width_ceiling, ("width_ceiling",), "10"),
    "fig11": plotting.Drawn(width_boundary, ("width_boundary",), "11"),
    "fig12to19": plotting.Drawn(operations, ("operations",), "12 to 19"),
    "positions": plotting.Drawn(positions, ("positions",), "earlier 19 to 21"),
    "seeds_apart": plotting.Drawn(seeds_apart, ("seeds_apart",), "earlier 22"),
    "diameters": plotting.Drawn(diameters, ("diameters",), "earlier appendix F"),
    "coverage": plotting.Drawn(coverage, ("coverage",)),
    "fig8": plotting.Drawn(flow, ("flow",), "8"),
    "separability": plotting.Drawn(separability, ("separability",)),
}
