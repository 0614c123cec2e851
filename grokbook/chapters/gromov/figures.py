"""Every figure of the Gromov chapter: pure functions from records and studies to matplotlib figures.

``FIGURES`` names them: id -> what draws it and which records it needs. Ids beginning with ``fig`` and a number are the
paper's; the others go beyond it. Bands go from the lowest to the highest seed, thick lines are medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from grokbook import measures, plotting
from grokbook.chapters.gromov import studies, theory
from grokbook.plotting import BLUE, BROWN, FAINT, GREEN, GREY, INK, ORANGE, PINK, PURPLE, RED, SKY, styled

Records = Mapping[str, xr.Dataset]

TRAIN, TEST = BLUE, ORANGE
IN, OUT = GREEN, PURPLE
ANALYTIC = INK
OPTIMIZERS = {
    "GD": BLUE,
    "GD + momentum": ORANGE,
    "GD + decay": GREEN,
    "GD + momentum + decay": PURPLE,
    "GD + dropout": BROWN,
    "GD + momentum + batch norm": GREY,
    "Adam": SKY,
    "AdamW": RED,
}
STEPS = "optimizer steps"


def _steps_axis(ax: Axes, *, log: bool = False) -> None:
    ax.set_xlabel(STEPS)
    if log:
        ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)


def _accuracy(ax: Axes, record: xr.Dataset) -> Axes:
    for split, color in (("train", TRAIN), ("test", TEST)):
        plotting.curves(ax, record.step, record[f"{split}_accuracy"], color=color, label=split)
    return plotting.fraction_axis(ax)


def _losses(ax: Axes, record: xr.Dataset) -> Axes:
    for split, color in (("train", TRAIN), ("test", TEST)):
        plotting.curves(ax, record.step, record[f"{split}_loss"], color=color, label=split)
    ax.set_yscale("log")
    ax.set_ylabel("mean squared error")
    plotting.plain_numbers(ax.yaxis)
    return ax


def _onset(ax: Axes, record: xr.Dataset, *, words: bool = True) -> None:
    """Dotted lines where the median run fits its training set and where it generalises."""
    t_train, t_test = map(studies.median, studies.times(record))
    plotting.mark(ax, t_train, "train" if words else "", side="left", height=0.3)
    plotting.mark(ax, t_test, "test" if words else "", height=0.3)


# ------------------------------------------------------------------------------------------------------------- dynamics


@styled
def dynamics(records: Records) -> Figure:
    """Fig. 1: loss, weight norms, accuracy and gradient norms under gradient descent."""
    record = records["learning_curves"]
    p = int(record.p.values[0])
    figure, ((loss, norms), (accuracy, gradients)) = plotting.panels(2, 2, height=2.5, sharex=True)
    _losses(loss, record)
    plotting.level(loss, 1 / p, "1/p: all outputs zero")
    loss.set_ylim(None, 2.2 * max(1 / p, float(np.nanmax(record.test_loss))))
    loss.set_title("a  loss")
    plotting.legend(loss, loc="lower left")
    for layer, color, name in (("W_in", IN, "first layer"), ("W_out", OUT, "readout")):
        relative, gradient = studies.relative_norms(record, layer), record[f"gradient_norm_{layer}"] * 1e6
        for ax, values in ((norms, relative), (gradients, gradient)):  # the relative norms coincide
            plotting.curves(ax, record.step, values, color=color, label=name, dashed=layer == "W_out")
    norms.set_title("b  weight norms")
    norms.set_ylabel("norm / initial norm")
    norms.set_ylim(0)
    plotting.legend(norms, loc="lower right")
    _accuracy(accuracy, record)
    accuracy.set_title("c  accuracy")
    plotting.legend(accuracy, loc="center right")
    gradients.set_title("d  gradient norms")
    gradients.set_ylabel("gradient norm × 10⁶")
    gradients.set_ylim(0)
    for ax in (norms, accuracy, gradients, loss):
        _onset(ax, record, words=ax is accuracy)
    for ax in (accuracy, gradients):
        _steps_axis(ax)
    return figure


@styled
def scalings(records: Records) -> Figure:
    """Fig. 1c and 1b again under three conditions: how long the delay is depends on the output's scale."""
    conditions = (
        ("learning_curves", "1/(2pN), GD", SKY),
        ("printed_scaling", "2/N, GD + momentum", BROWN),
        ("printed_scaling_plain", "2/N, GD", PURPLE),
    )
    figure, ((accuracy,), (norm,)) = plotting.panels(2, 1, height=2.5, sharex=True)
    moduli = {name: int(records[name].p.values[0]) for name, _, _ in conditions}
    for name, label, color in conditions:
        record = records[name]
        if len(set(moduli.values())) > 1:
            label += f", p = {moduli[name]}"
        unit = studies.median(studies.times(record)[0])
        unit = unit if np.isfinite(unit) else float(record.step[-1])
        steps = record.step.values[1:] / unit
        plotting.curves(accuracy, steps, record.test_accuracy.values[:, 1:], color=color, label=label)
        plotting.curves(
            accuracy, steps, record.train_accuracy.values[:, 1:], color=color, dashed=True, thin=False, width=1.1
        )
        norms = studies.relative_norms(record, "W_in")[:, 1:]
        plotting.curves(norm, steps, norms, color=color, label=label)
    plotting.fraction_axis(accuracy)
    accuracy.set_xscale("log")
    accuracy.set_xlim(0.05, None)
    plotting.plain_numbers(accuracy.xaxis)
    figure.legend(*accuracy.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    styles = [Line2D([], [], color=INK, lw=1.8), Line2D([], [], color=INK, lw=1.1, ls="--")]
    accuracy.legend(styles, ["test", "train"], loc="upper left", borderaxespad=0.3)
    norm.set_ylabel("first layer's norm\n/ initial norm")
    norm.set_yscale("log")
    plotting.plain_numbers(norm.yaxis)
    plotting.level(norm, 1 / np.sqrt(2), "analytic weights under 2/N", above=False)
    norm.set_xlabel("optimizer steps / median t_train")
    return figure


@styled
def maps(records: Records) -> Figure:
    """Fig. 2: an output, its Fourier image and a hidden unit, at initialisation, trained and analytic."""
    record = records["learning_curves"]
    p, width = int(record.p.values[0]), int(record.width.values[0])
    q, unit = 6 % p, 30 % width
    start, end = studies.weights(record, 0, 0), studies.weights(record, 0, -1)
    phases = theory.draw_phases(width, generator=0)
    W_in, _ = theory.cosine_weights(p, width, phases=phases)
    twin = (int(measures.phase_residuals(*end).frequency[unit]) - 1) % width  # the analytic unit of the same frequency
    columns = (
        ("initial", studies.outputs(record, 0, 0)[..., q], start[0][unit]),
        ("gradient descent", studies.outputs(record, 0, -1)[..., q], end[0][unit]),
        ("analytic", studies.analytic_outputs(p, phases)[..., q], W_in[twin]),
    )
    figure, axes = plotting.panels(3, 3, height=2.05)
    half = p // 2
    for column, (title, output, row) in enumerate(columns):
        top, middle, bottom = axes[:, column]
        plotting.heatmap(top, output, title=title, centre=column == 0)
        image = studies.fourier_image(output)
        plotting.heatmap(middle, image, cmap="magma", limit=(0, float(np.quantile(image, 0.9999))), labels=("b", "a"))
        middle.set_xticks([0, half, p - 1], [f"−{half}", "0", f"{p - 1 - half}"])
        middle.set_yticks([0, half, p - 1], [f"−{half}", "0", f"{p - 1 - half}"])
        plotting.heatmap(bottom, studies.hidden_map(row), centre=True)
        if column:
            for ax in (top, middle, bottom):
                ax.set_ylabel("")
    for ax, name in zip(axes[:, 0], (f"output {q}\nn", "Fourier image\na", "hidden unit\nn"), strict=True):
        ax.set_ylabel(name)
    return figure


LINES = (("n + m", BLUE), ("n - m", ORANGE), ("2n", GREEN), ("2m", RED), ("rest", "#c9c9d1"))


@styled
def lines(records: Records) -> Figure:
    """Fig. 2 as numbers: the share of an output map's power on each line of its Fourier image."""
    share = records["line_shares"].share
    figure, ((ax,),) = plotting.panels(1, 1, height=2.6)
    names = share.condition.values.tolist()
    for row, name in enumerate(names):
        left = 0.0
        for line, color in LINES:
            values = share.sel(condition=name, line=line).values
            median = float(np.nanmedian(values))
            ax.barh(
                row, median, left=left, color=color, height=0.62, label=line.replace("-", "−") if row == 0 else None
            )
            if line == "n + m":
                ax.plot(values, np.full(len(values), row), "|", color=INK, ms=9, mew=0.9)
            left += median
    p, width = int(records["learning_curves"].p.values[0]), int(records["learning_curves"].width.values[0])
    expected = theory.expected_line_shares(p, width)["n + m"]
    ax.plot(expected, len(names) - 1, "D", color="white", mec=INK, ms=6, zorder=4, label="expected")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.grid(False)
    ax.set_xlabel("share of the map's power, median over outputs")
    figure.legend(loc="outside upper center", ncols=6, handlelength=1.0, columnspacing=1.0)
    return figure


@styled
def phases(records: Records) -> Figure:
    """Fig. 3: the phase sum phi1 + phi2 - phi3 of every neuron, and phi1 alone."""
    figure, ((sums, alone),) = plotting.panels(1, 2, height=2.7, gridspec_kw={"width_ratios": (1.6, 1)})
    bins = np.linspace(-60, 60, 81)
    around = np.linspace(-180, 180, 13)
    for name, label, color in (("learning_curves", "GD", BLUE), ("adamw_curves", "AdamW", RED)):
        record = records[name]
        found = [studies.layer_phases(record, run) for run in range(record.sizes["run"])]
        for one in found:
            _histogram(sums, np.degrees(one.residual), bins, color, lw=0.6, alpha=0.5)
            _histogram(alone, np.degrees(one.phi1), around, color, lw=0.6, alpha=0.5)
        everyone = np.degrees(np.concatenate([one.residual for one in found]))
        sd = np.degrees(np.median([measures.circular_sd(one.residual) for one in found]))
        _histogram(sums, everyone, bins, color, label=f"{label}: sd {sd:.1f}°")
        _histogram(alone, np.degrees(np.concatenate([one.phi1 for one in found])), around, color)
    sums.set_yscale("log")
    sums.set_ylim(2e-4, None)
    plotting.plain_numbers(sums.yaxis)
    sums.set_title("φ₁ + φ₂ − φ₃")
    sums.set_ylabel("density per degree")
    sums.set_xlabel("degrees")
    sums.set_xticks([-60, -30, 0, 30, 60])
    figure.legend(*sums.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    alone.set_title("φ₁")
    alone.set_xlabel("degrees")
    alone.set_xticks([-180, 0, 180])
    alone.set_ylim(0, 0.008)
    alone.axhline(1 / 360, color=INK, ls="--", lw=1.1, label="uniform")
    plotting.legend(alone, loc="upper right")
    alone.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return figure


def _histogram(ax: Axes, values: np.ndarray, bins: np.ndarray, color: str, **style: Any) -> None:
    values = values[np.isfinite(values)]
    counts, _ = np.histogram(values, bins)
    ax.stairs(counts / len(values) / np.diff(bins), bins, color=color, **{"lw": 1.6, **style})


@styled
def phase_controls(records: Records) -> Figure:
    """What sharpens the phases of Fig. 3: four ways of training, against time."""
    colors = (RED, SKY, PURPLE, ORANGE)
    figure, ((ax,),) = plotting.panels(1, 1, height=3.0)
    for (label, record), color in zip(studies.conditions(records["phase_controls"]), colors, strict=False):
        record = studies.own_steps(record)
        plotting.curves(
            ax, record.step.values[1:], np.degrees(record.residual_sd.values[:, 1:]), color=color, label=label
        )
    ax.set_yscale("log")
    plotting.plain_numbers(ax.yaxis)
    ax.set_ylabel("sd of φ₁ + φ₂ − φ₃ (degrees)")
    _steps_axis(ax, log=True)
    plotting.legend(ax, loc="lower left")
    return figure


# -------------------------------------------------------------------------------------------------------------- scaling


@styled
def data_fraction(records: Records) -> Figure:
    """Fig. 4a: when runs grok against the share of the data they see."""
    figure, ((ax,),) = plotting.panels(1, 1, height=3.9)
    for place, (label, record) in enumerate(studies.conditions(records["data_fraction"])):
        color = OPTIMIZERS.get(label, INK)
        x, table = studies.sweep(record, "train_fraction", studies.test_times)
        plotting.dots(ax, x, table, color=color, label=label)
        budget = float(record.steps.values.max())
        never = np.isnan(table).sum(0)
        missed = [a for a, count in zip(x, never, strict=True) if count == len(table)]
        if missed:
            above = budget * 1.13**place  # each kind in a row of its own, or the last would hide the others
            ax.plot(missed, np.full(len(missed), above), "x", color=color, ms=5, mew=1.2)
    ax.set_yscale("log")
    plotting.plain_numbers(ax.yaxis)
    ax.set_ylabel("t_test (optimizer steps)")
    ax.set_xlabel("share α of the pairs trained on")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


@styled
def width_scaling(records: Records) -> Figure:
    """Fig. 4b: accuracy against width, trained and analytic."""
    figure, ((ax,),) = plotting.panels(1, 1, height=3.1)
    for label, record in studies.conditions(records["width_scaling"]):
        x, table = studies.sweep(record, "width", studies.final_test_accuracy)
        plotting.dots(ax, x, table, color=OPTIMIZERS[label], label=f"{label} (test set)")
    study = records["analytic_widths"]
    plotting.dots(ax, study.width, study.accuracy.T, color=ANALYTIC, label="analytic (whole table)", marker="s")
    centred = study.accuracy_centred.T
    plotting.dots(ax, study.width, centred, color=FAINT, label="analytic, mean output removed", marker="s", style="--")
    ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)
    ax.set_xticks(plotting.some(list(study.width.values), 6))
    ax.minorticks_off()
    ax.set_xlabel("width N")
    plotting.fraction_axis(ax)
    plotting.legend(ax, loc="lower right")
    return figure


def _activation_lines(ax: Axes, study: xr.DataArray, colors: Sequence[str]) -> None:
    for name, color in zip(study.activation.values.tolist(), colors, strict=False):
        values = study.sel(activation=name)
        plotting.dots(ax, values.width, values.transpose("seed", "width"), color=color, label=studies.NAMES[name])
    ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)
    ax.minorticks_off()
    ax.set_xlabel("width N")


@styled
def activations(records: Records) -> Figure:
    """Fig. 5: the analytic weights under other activations."""
    study = records["activations"].accuracy
    colors = (GREY, INK, PURPLE, GREEN, ORANGE, BLUE, BROWN, PINK, SKY)
    figure, ((ax,),) = plotting.panels(1, 1, height=3.3)
    _activation_lines(ax, study, colors)
    ax.set_xticks([int(width) for width in study.width.values])
    plotting.fraction_axis(ax)
    figure.legend(loc="outside right center")
    return figure


@styled
def activations_beyond(records: Records) -> Figure:
    """What Fig. 5 leaves out: activations that never work, and GELU with smaller preactivations."""
    odd, scaled = records["odd_activations"].accuracy, records["scaled_gelu"].accuracy
    p = int(records["odd_activations"].attrs["p"])
    figure, ((left,), (right,)) = plotting.panels(2, 1, height=2.3)
    _activation_lines(left, odd, (RED, PURPLE, BROWN))
    left.set_title("odd up to a constant")
    left.set_ylabel("accuracy")
    left.set_ylim(0, max(0.05, 1.3 * float(odd.max())))
    left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_xticks([int(width) for width in odd.width.values])
    left.axhline(1 / p, color=INK, ls="--", lw=1.1, label="chance, 1/p")
    plotting.legend(left, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for name, color in (("gelu", ORANGE), ("relu", BLUE)):
        plain = records["activations"].accuracy.sel(activation=name)
        small = scaled.sel(activation=name)
        plotting.dots(right, plain.width, plain.transpose("seed", "width"), color=color, label=studies.NAMES[name])
        plotting.dots(
            right,
            small.width,
            small.transpose("seed", "width"),
            color=color,
            label=f"{studies.NAMES[name]}, x/√(2p)",
            marker="^",
            style="--",
        )
    right.set_xscale("log")
    plotting.plain_numbers(right.xaxis)
    right.set_xticks([100, 1000, 10000])
    right.minorticks_off()
    right.set_xlabel("width N")
    right.set_title("the scale of the preactivations")
    plotting.fraction_axis(right)
    plotting.legend(right, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


# ------------------------------------------------------------------------------------------------------------------ IPR


@styled
def ipr(records: Records) -> Figure:
    """Fig. 6: inverse participation ratio with train and test accuracy, under AdamW."""
    record = records["adamw_curves"]
    t_test = studies.median(studies.times(record)[1])
    figure, ((early, whole),) = plotting.panels(1, 2, height=3.0, sharey=True)
    for ax in (early, whole):
        _accuracy(ax, record)
        plotting.curves(ax, record.step, record.ipr, color=GREEN, label="IPR")
        plotting.level(ax, 1.0, "analytic IPR" if ax is whole else "", above=False)
    plotting.fraction_axis(early, "accuracy, IPR")
    whole.set_ylabel("")
    end = 5 * t_test if np.isfinite(t_test) else float(record.step[-1])
    early.set_xlim(0, min(end, float(record.step[-1])))
    early.set_title("the transition")
    whole.set_title("the whole run")
    _onset(early, record, words=False)
    _steps_axis(early)
    _steps_axis(whole)
    plotting.legend(early, loc="center right")
    return figure


@styled
def ipr_definitions(records: Records) -> Figure:
    """Five readings of eq. 28 for the same weights."""
    study = records["ipr"].ipr
    record = records["adamw_curves"]
    trained = [studies.weights(record, run)[0] for run in range(record.sizes["run"])]
    names = study.definition.values.tolist()
    figure, ((ax,),) = plotting.panels(1, 1, height=2.7)
    for name, color, marker in (("analytic", INK, "s"), ("gaussian", FAINT, "o")):
        for row, definition in enumerate(names):
            values = study.sel(weights=name, definition=definition).values
            label = {"analytic": "analytic weights", "gaussian": "Gaussian weights"}[name]
            ax.plot(
                values,
                np.full(len(values), row),
                marker,
                color=color,
                ms=6,
                ls="none",
                label=label if not row else None,
            )
    for row, definition in enumerate(names):
        values = [float(measures.first_layer_ipr(W_in, definition)) for W_in in trained]
        ax.plot(
            values, np.full(len(values), row), "D", color=RED, ms=5, ls="none", label=None if row else "after AdamW"
        )
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.05)
    ax.set_xlabel("mean IPR of the first layer")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


# ------------------------------------------------------------------------------------------------------ other functions


def first_square(p: int, *, square: bool) -> int | None:
    """The smallest answer of (n + m)^2 above 1 that is a square mod p, or is none."""
    squares = {s * s % p for s in range(p)}
    for q in range(2, p):
        if (q in squares) is square:
            return q
    return None


def _function(records: Records, f: str) -> xr.Dataset:
    return studies.select(records["modular_functions"], f=f)


@styled
def squared_sum(records: Records) -> Figure:
    """Fig. 7: (n + m)^2, trained and analytic, for an answer that is a square and one that is not."""
    record = _function(records, "(n + m)**2")
    p, width = int(record.p.values[0]), int(record.width.values[0])
    yes, no = first_square(p, square=True) or 0, first_square(p, square=False) or 1
    trained = studies.outputs(record)

    def square(s: int) -> int:
        return s * s

    phases = theory.draw_phases(width, generator=0)
    rows = [("AdamW", studies.weights(record)[0], trained)]
    for name, branches in (("one root", "one"), ("all roots", "all")):
        W_in, W_out = theory.cosine_weights(p, width, inverse=theory.modular_roots(square, p, branches), phases=phases)
        rows.append((f"analytic,\n{name}", W_in, theory.network(W_in, W_out)))
    figure, axes = plotting.panels(3, 3, height=2.0)
    for row, (name, W_in, outputs) in enumerate(rows):
        unit, a, b = axes[row]
        plotting.heatmap(
            unit, studies.hidden_map(W_in[30 % width]), centre=True, title="hidden unit" if not row else None
        )
        plotting.heatmap(a, outputs[..., yes], limit=(-0.2, 1), title=f"q = {yes}, a square" if not row else None)
        plotting.heatmap(b, outputs[..., no], limit=(-0.2, 1), title=f"q = {no}, no square" if not row else None)
        unit.set_ylabel(f"{name}\nn")
        for ax in (a, b):
            ax.set_ylabel("")
        if row < 2:
            for ax in axes[row]:
                ax.set_xlabel("")
    return figure


@styled
def roots(records: Records) -> Figure:
    """Readouts of eq. 19 for powers of n + m: one root of each answer, or the sum over all."""
    study = records["branches"]
    colors = {
        "all roots": BLUE,
        "one root, else zero": ORANGE,
        "one root, else random phases": PURPLE,
        "one root, else the answer itself": BROWN,
    }
    figure, ((left, right),) = plotting.panels(1, 2, height=2.7, sharey=True)
    squares = study.sel(exponent=2)
    for name, color in colors.items():
        values = squares.accuracy.sel(readout=name)
        plotting.dots(left, values.width, values.transpose("seed", "width"), color=color, label=name)
    served = float(squares.served)
    left.axhline(served, color=INK, ls="--", lw=1.1, label="share of answers with a root")
    left.set_xscale("log")
    plotting.plain_numbers(left.xaxis)
    left.set_xticks([int(width) for width in study.width.values])
    left.minorticks_off()
    left.set_xlabel("width N")
    left.set_title("(n + m)²")
    plotting.fraction_axis(left)
    width = int(study.width.max())
    exponents = study.exponent.values.tolist()
    for name in ("all roots", "one root, else zero"):
        values = study.accuracy.sel(readout=name, width=width).transpose("seed", "exponent")
        for row in values.values:
            right.plot(exponents, row, "o", color=colors[name], ms=6, alpha=0.75, mew=0)
    right.plot(exponents, study.served.values, "_", color=INK, ms=22, mew=1.2)
    right.set_xticks(exponents, [f"(n + m){'²³⁴'[exponent - 2]}" for exponent in exponents])
    right.set_xlim(min(exponents) - 0.6, max(exponents) + 0.6)
    right.set_title(f"width {width}")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@styled
def sum_of_squares(records: Records) -> Figure:
    """Fig. 8: n^2 + m^2, trained and analytic."""
    record = _function(records, "n**2 + m**2")
    p, width = int(record.p.values[0]), int(record.width.values[0])
    q, unit = 6 % p, 30 % width

    def square(s: int) -> int:
        return s * s

    W_in, W_out = theory.cosine_weights(p, width, f1=square, f2=square, generator=0)
    trained = studies.weights(record)[0][unit]
    squares = np.array([n * n % p for n in range(p)])
    by_square = np.bincount(squares, trained[:p], p) / np.maximum(np.bincount(squares, minlength=p), 1)  # (p,)
    frequency = int(np.abs(np.fft.rfft(by_square)[1:]).argmax()) + 1
    rows = (
        ("AdamW", trained, studies.outputs(record)),
        ("analytic", W_in[(frequency - 1) % width], theory.network(W_in, W_out)),
    )
    order = np.argsort(squares, kind="stable")
    figure, axes = plotting.panels(2, 3, height=2.05)
    for row, (name, layer, outputs) in enumerate(rows):
        hidden = studies.hidden_map(layer)
        first, second, third = axes[row]
        plotting.heatmap(first, hidden, centre=True, title=None if row else "hidden unit", labels=("m", f"{name}\nn"))
        names = ("rank of m²", "rank of n²")
        plotting.heatmap(
            second, hidden[np.ix_(order, order)], centre=True, title=None if row else "the same, by n²", labels=names
        )
        plotting.heatmap(third, outputs[..., q], limit=(-0.2, 1), title=None if row else f"output {q}")
    return figure


@styled
def product(records: Records) -> Figure:
    """Fig. 9: nm, trained, as it is and with both operands in the order of their logarithms."""
    record = _function(records, "n*m")
    p, width = int(record.p.values[0]), int(record.width.values[0])
    q, unit = 6 % p, 30 % width
    hidden, output = studies.hidden_map(studies.weights(record)[0][unit]), studies.outputs(record)[..., q]
    ordered = studies.is_prime(p)
    figure, axes = plotting.panels(2 if ordered else 1, 2, height=2.7, width=5.2)
    plotting.heatmap(axes[0, 0], hidden, centre=True, title="hidden unit")
    plotting.heatmap(axes[0, 1], output, limit=(-0.2, 1), title=f"output {q}")
    if ordered:
        order = np.argsort(theory.discrete_logarithms(p))[1:]  # zero has none
        again = np.ix_(order, order)
        names = ("log m", "log n")
        plotting.heatmap(axes[1, 0], hidden[again], centre=True, labels=names, title="the same, by logarithm")
        plotting.heatmap(axes[1, 1], output[again], limit=(-0.2, 1), labels=names, title="the same, by logarithm")
    return figure


@styled
def product_solution(records: Records) -> Figure:
    """An analytic solution of nm through discrete logarithms."""
    study = records["product"]
    figure, ((ax,),) = plotting.panels(1, 1, height=2.6)
    chosen = (
        ("accuracy_nonzero", "pairs without a zero", BLUE),
        ("accuracy", "all pairs", ORANGE),
        ("accuracy_detecting", "all pairs, with one neuron for zero", GREEN),
    )
    for name, label, color in chosen:
        plotting.dots(ax, study.width, study[name].transpose("seed", "width"), color=color, label=label)
    p = int(study.attrs["p"])
    plotting.level(ax, ((p - 1) / p) ** 2, "share of pairs without a zero")
    ax.set_xscale("log")
    plotting.plain_numbers(ax.xaxis)
    ax.set_xticks([int(width) for width in study.width.values])
    ax.minorticks_off()
    ax.set_xlabel("width N")
    ax.set_ylabel("accuracy")
    plotting.legend(ax, loc="lower right")
    return figure


@styled
def polynomials(records: Records) -> Figure:
    """Fig. 10: learning curves of two functions that are hard, or impossible, to grok."""
    record = records["polynomials"]
    names = list(dict.fromkeys(record.f.values.tolist()))
    figure, axes = plotting.panels(2, 2, height=2.4, sharex=True, sharey="row")
    for column, f in enumerate(names):
        alpha = float(studies.select(record, f=f).train_fraction.values.min())
        one = studies.own_steps(studies.select(record, f=f, train_fraction=alpha))
        shown = one.isel(step=slice(1, None))
        top, bottom = axes[:, column]
        _losses(top, shown)
        _accuracy(bottom, shown)
        top.set_title(f"{studies.pretty(f)},  α = {alpha:g}")
        _steps_axis(bottom, log=True)
        if column:
            top.set_ylabel("")
            bottom.set_ylabel("")
    plotting.legend(axes[1, 1], loc="center right")
    return figure


@styled
def polynomial_variants(records: Records) -> Figure:
    """n^2 + m^2 + nm: does a wider net, no decay or more data reach the paper's accuracy?"""
    first = str(records["polynomials"].f.values[0])
    rows = []
    for name, what in (("polynomials", ""), ("polynomials_wide", ""), ("polynomials_without_decay", ", no decay")):
        if name not in records:
            continue
        record = studies.select(records[name], f=first)
        for alpha in np.unique(record.train_fraction.values):
            one = studies.select(record, train_fraction=float(alpha))
            sizes = f"p = {int(one.p.values[0])}, N = {int(one.width.values[0])}, α = {alpha:g}"
            rows.append((sizes + what, studies.own_steps(one)))
    figure, ((ax,),) = plotting.panels(1, 1, height=3.0)
    for (label, record), color in zip(rows, (RED, GREEN, ORANGE, SKY), strict=False):
        shown = record.isel(step=slice(1, None))
        plotting.curves(ax, shown.step, shown.test_accuracy, color=color, label=label)
    plotting.fraction_axis(ax, "test accuracy")
    _steps_axis(ax, log=True)
    ax.set_title(studies.pretty(first))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


# --------------------------------------------------------------------------------------------------------- transformers


@styled
def transformer_maps(records: Records) -> Figure:
    """Fig. 11: hidden activations of a one-layer transformer's MLP and their Fourier images."""
    record = records["transformer"]
    shown = [str(name) for name in record.data_vars if str(name).startswith("activation[")][:3]
    figure, axes = plotting.panels(2, len(shown), height=2.3)
    for column, name in enumerate(shown):
        values = record[name].isel(run=0, snapshot=-1).values
        p = len(values)
        image = studies.fourier_image(values)
        plotting.heatmap(axes[0, column], values, title=f"unit {name[11:-1]}")
        plotting.heatmap(
            axes[1, column], image, cmap="magma", limit=(0, float(np.quantile(image, 0.9999))), labels=("b", "a")
        )
        half = p // 2
        axes[1, column].set_xticks([0, half, p - 1], [f"−{half}", "0", f"{p - 1 - half}"])
        axes[1, column].set_yticks([0, half, p - 1], [f"−{half}", "0", f"{p - 1 - half}"])
        if column:
            axes[0, column].set_ylabel("")
            axes[1, column].set_ylabel("")
    return figure


@styled
def attention_curves(records: Records) -> Figure:
    """Fig. 12: accuracy and loss of attention-only nets."""
    kinds = list(studies.conditions(records["attention_curves"]))
    figure, axes = plotting.panels(len(kinds), 2, height=2.3)
    for row, (label, record) in enumerate(kinds):
        record = studies.own_steps(record).isel(step=slice(1, None))
        accuracy, loss = axes[row]
        _accuracy(accuracy, record)
        _losses(loss, record)
        accuracy.set_title(label)
        for ax in (accuracy, loss):
            _steps_axis(ax, log=True)
            if row < len(kinds) - 1:
                ax.set_xlabel("")
    plotting.legend(axes[0, 0], loc="center left")
    return figure


@styled
def attention_heads(records: Records) -> Figure:
    """Fig. 13: the highest accuracy of each split against the number of heads."""
    kinds = list(studies.conditions(records["attention_heads"]))
    figure, axes = plotting.panels(1, len(kinds), height=2.6, sharey=True)
    for column, (label, record) in enumerate(kinds):
        ax = axes[0, column]
        for split, color in (("train", TRAIN), ("test", TEST)):
            x, table = studies.sweep(record, "heads", partial(studies.best, split=split))
            plotting.dots(ax, x, table, color=color, label=split)
        ax.set_xscale("log", base=2)
        ax.set_xticks(x, [f"{count:.0f}" for count in x])
        ax.minorticks_off()
        ax.set_xlabel("heads H")
        ax.set_title(label)
        plotting.fraction_axis(ax, "" if column else "highest accuracy")
    plotting.legend(axes[0, 0], loc="lower right")
    return figure


# -------------------------------------------------------------------------------------------------------------- theory


@styled
def interference(records: Records) -> Figure:
    """Why it works: the output against the distance from the right answer, and the error against width."""
    profile, study = records["profile"], records["analytic"]
    figure, ((left, right),) = plotting.panels(1, 2, height=2.9)
    offset = profile.offset.values
    for width, color in zip(profile.width.values.tolist(), (SKY, ORANGE, INK), strict=False):
        mean, sd = (profile[name].sel(width=width).values for name in ("mean", "sd"))
        left.fill_between(offset, mean - sd, mean + sd, color=color, alpha=0.3, lw=0, label=f"N = {width}")
        left.plot(offset, mean, color=color, lw=1.1)
    left.set_xlabel("q − n − m  (mod p)")
    left.set_ylabel("output: mean ± sd over pairs")
    left.set_title("a  towards a delta function")
    plotting.legend(left, loc="upper left", handlelength=0.9, handletextpad=0.4)
    plotting.dots(right, study.width, study.mse.T, color=BLUE, label="analytic network", style="none")
    right.plot(study.width, study.expected_mse, color=INK, lw=1.3, label="expected")
    right.plot(study.width, 4 / study.width, color=INK, lw=1.1, ls="--", label="4/N")
    plotting.level(right, 1 / study.attrs["p"], "1/p: all outputs zero", x=0.01, above=False, color=FAINT)
    right.set_xscale("log")
    right.set_yscale("log")
    for axis in (right.xaxis, right.yaxis):
        plotting.plain_numbers(axis)
    right.set_xlabel("width N")
    right.set_ylabel("mean squared error")
    right.set_title("b  error")
    plotting.legend(right, loc="upper right", handlelength=1.2)
    return figure


@styled
def phase_noise(records: Records) -> Figure:
    """How exactly the phases must fit: the right output and the accuracy against errors in eq. 12."""
    study = records["phase_noise"]
    finite = np.isfinite(study.noise.values)
    noise = study.noise.values[finite]
    figure, ((ax,),) = plotting.panels(1, 1, height=2.7)
    inside = study.isel(noise=np.flatnonzero(finite))
    plotting.dots(ax, noise, inside.accuracy.T, color=ORANGE, label="accuracy")
    plotting.dots(ax, noise, inside.peak.T, color=BLUE, label="right output, mean over pairs", style="none")
    s = np.linspace(0, noise.max(), 200)
    ax.plot(s, np.exp(-(s**2) / 2), color=INK, lw=1.2, ls="--", label="exp(−s²/2)")
    free = study.accuracy.values[~finite].ravel()
    if len(free):
        level = float(np.median(free))
        plotting.level(ax, level, "accuracy with an independent φ₃", color=ORANGE, x=0.01)
    plotting.fraction_axis(ax, "")
    ax.set_xlabel("standard deviation s of the error in φ₃ (radians)")
    plotting.legend(ax, loc="center left", bbox_to_anchor=(0.0, 0.45))
    return figure


@styled
def regularisers(records: Records) -> Figure:
    """When each way of training groks, all at one share of the data."""
    figure, ((ax,),) = plotting.panels(1, 1, height=2.7)
    names = []
    for row, (label, record) in enumerate(studies.conditions(records["regularisers"])):
        names.append(label)
        t_train, t_test = studies.times(record)
        for values, color in ((t_train, TRAIN), (t_test, TEST)):
            ax.plot(values, np.full(len(values), row), "o", color=color, ms=5.5, alpha=0.7, mew=0)
        if np.isnan(t_test).any():
            ax.annotate(
                f"{int(np.isnan(t_test).sum())} of {len(t_test)} did not",
                (1, row),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                fontsize=8.5,
            )
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    if not any(np.isfinite(line.get_xdata()).any() for line in ax.get_lines()):
        ax.set_xlim(1, float(records["regularisers"].steps.max()))
    ax.set_xscale("log")
    _steps_axis(ax, log=True)
    ax.set_xlabel("first step with 99 % accuracy")
    marks = [Line2D([], [], marker="o", ls="none", color=color, ms=5.5) for color in (TRAIN, TEST)]
    ax.legend(marks, ["training set", "test set"], loc="best")
    return figure


@styled
def critical_fraction(records: Records) -> Figure:
    """How little data AdamW needs, for several moduli."""
    figure, ((left, right),) = plotting.panels(1, 2, height=2.7, gridspec_kw={"width_ratios": (1.6, 1)})
    moduli = studies.fraction_records(records)
    colors = [SKY, BLUE, INK]
    if len(moduli) > len(colors):
        colors = [to_hex(colormaps["viridis_r"](x)) for x in np.linspace(0.1, 1, len(moduli))]
    for place, ((p, record), color) in enumerate(zip(moduli, colors, strict=False)):
        x, table = studies.sweep(record, "train_fraction", studies.test_times)
        plotting.dots(left, x, table, color=color, label=f"p = {p}, N = {int(record.width.values[0])}")
        values = studies.smallest_fraction(record)
        right.plot(np.full(len(values), place), values, "o", color=color, ms=5, alpha=0.6, mew=0)
        right.plot(place, studies.median(values), "_", color=color, ms=16, mew=2)
    left.set_yscale("log")
    plotting.plain_numbers(left.yaxis)
    left.set_ylabel("t_test (optimizer steps)")
    left.set_xlabel("share α trained on")
    plotting.legend(left)
    right.set_xlabel("modulus p")
    right.set_ylabel("smallest α that groks")
    right.set_ylim(0, 1)
    right.set_xticks(range(len(moduli)), [str(p) for p, _ in moduli])
    right.margins(x=0.2)
    return figure


# -------------------------------------------------------------------------------------------------------------- frames


@styled
def formation_frame(record: xr.Dataset, snapshot: int) -> Figure:
    """One frame of the slider over time: an output and a hidden unit, with their Fourier images."""
    output, hidden = (
        next(str(name) for name in record.data_vars if str(name).startswith(kind))
        for kind in ("output[", "preactivation[")
    )
    figure, axes = plotting.panels(2, 2, height=2.1, width=4.4)
    for row, (name, title) in enumerate(((output, "output "), (hidden, "hidden unit "))):
        values = record[name].isel(run=0, snapshot=snapshot).values
        largest = np.abs(record[name].isel(run=0).values).max()
        image = studies.fourier_image(values)
        limit = (-0.2, 1.0) if not row else (-largest, largest)
        plotting.heatmap(
            axes[row, 0], values, title=title + name[name.index("[") + 1 : -1], limit=limit, centre=bool(row)
        )
        plotting.heatmap(
            axes[row, 1], image, cmap="magma", title="its Fourier image", limit=(0, image.max()), ticks=False
        )
    return figure


def formation_label(record: xr.Dataset, snapshot: int) -> str:
    """What the slider shows beside itself: step and test accuracy."""
    step = float(record.snapshot_step.values[0, snapshot])
    accuracy = float(studies.at(record, "test_accuracy", np.full(record.sizes["run"], step))[0])
    return f"step {step:,.0f}: test accuracy {accuracy:.0%}"


def formation_alt(record: xr.Dataset, snapshot: int) -> str:
    """What a frame of the slider over time shows, in words and numbers."""
    name = next(str(name) for name in record.data_vars if str(name).startswith("output["))
    share = float(measures.line_shares(record[name].isel(run=0, snapshot=snapshot).values)["n + m"])
    return (
        f"{formation_label(record, snapshot).capitalize()}. An output and a hidden unit as maps over all pairs, beside "
        "their Fourier images; "
        f"{share:.0%} of the output's power lies on the diagonal line of n + m."
    )


def delta_alt(p: int, width: int) -> str:
    """What a frame of the slider over width shows, in words and numbers."""
    outputs = studies.analytic_outputs(p, theory.draw_phases(width, generator=0))
    sd, accuracy = float(theory.offset_profile(outputs)[1][1:].mean()), theory.table_accuracy(outputs)
    return (
        "an output over all pairs and a spike of height one over noise of standard deviation "
        f"{sd:.2f}; accuracy {accuracy:.1%}."
    )


@styled
def delta_frame(p: int, width: int, seed: int = 0) -> Figure:
    """One frame of the slider over width: the analytic output against the distance from the right answer, and a map."""
    outputs = studies.analytic_outputs(p, theory.draw_phases(width, generator=seed))
    mean, sd = theory.offset_profile(outputs)
    offsets = (np.arange(p) + p // 2) % p - p // 2
    order = np.argsort(offsets)
    figure, ((left, right),) = plotting.panels(1, 2, height=2.4, width=5.2, gridspec_kw={"width_ratios": (1, 1.25)})
    plotting.heatmap(left, outputs[..., 6 % p], limit=(-0.3, 1), title=f"output {6 % p}")
    x, y, band = offsets[order], mean[order], sd[order]
    right.fill_between(x, y - band, y + band, color=BLUE, alpha=0.3, lw=0)
    right.plot(x, y, color=BLUE, lw=1.3)
    right.set_ylim(-1.5, 2.5)
    right.set_xlabel("q − n − m (mod p)")
    right.set_title(f"accuracy {theory.table_accuracy(outputs):.1%}")
    return figure


# ------------------------------------------------------------------------------------------------------------ register


FIGURES: dict[str, plotting.Drawn] = {
    "fig1": plotting.Drawn(dynamics, ("learning_curves",), "1"),
    "scalings": plotting.Drawn(scalings, ("learning_curves", "printed_scaling", "printed_scaling_plain")),
    "interference": plotting.Drawn(interference, ("analytic", "profile")),
    "fig2": plotting.Drawn(maps, ("learning_curves",), "2"),
    "lines": plotting.Drawn(lines, ("learning_curves", "line_shares")),
    "fig3": plotting.Drawn(phases, ("learning_curves", "adamw_curves"), "3"),
    "phase_controls": plotting.Drawn(phase_controls, ("phase_controls",)),
    "phase_noise": plotting.Drawn(phase_noise, ("phase_noise",)),
    "fig4a": plotting.Drawn(data_fraction, ("data_fraction",), "4a"),
    "fig4b": plotting.Drawn(width_scaling, ("width_scaling", "analytic_widths"), "4b"),
    "critical_fraction": plotting.Drawn(critical_fraction, ("critical_fraction",)),
    "regularisers": plotting.Drawn(regularisers, ("regularisers",)),
    "fig5": plotting.Drawn(activations, ("activations",), "5"),
    "activations_beyond": plotting.Drawn(activations_beyond, ("activations", "odd_activations", "scaled_gelu")),
    "fig6": plotting.Drawn(ipr, ("adamw_curves",), "6"),
    "ipr_definitions": plotting.Drawn(ipr_definitions, ("ipr", "adamw_curves")),
    "fig7": plotting.Drawn(squared_sum, ("modular_functions",), "7"),
    "roots": plotting.Drawn(roots, ("branches",)),
    "fig8": plotting.Drawn(sum_of_squares, ("modular_functions",), "8"),
    "fig9": plotting.Drawn(product, ("modular_functions",), "9"),
    "product_solution": plotting.Drawn(product_solution, ("product",)),
    "fig10": plotting.Drawn(polynomials, ("polynomials",), "10"),
    "polynomial_variants": plotting.Drawn(polynomial_variants, ("polynomials",)),
    "fig11": plotting.Drawn(transformer_maps, ("transformer",), "11"),
    "fig12": plotting.Drawn(attention_curves, ("attention_curves",), "12"),
    "fig13": plotting.Drawn(attention_heads, ("attention_heads",), "13"),
}
