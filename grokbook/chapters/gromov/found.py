"""Figs 2 and 3: what training finds, beside what was written down: lines in Fourier space, and phases that add up."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.chapters.gromov.training import ADAMW, BETAS, adamw, gradient_descent, seeded
from grokbook.claims import Part, above, at_least, at_most, below, between
from grokbook.curves import last
from grokbook.models.mlp import SCALINGS, TwoLayerMLP
from grokbook.optim import AdamW, Optimizer
from grokbook.settings import Rate, Share, whole
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Schedule
from grokbook.train.records import select
from grokbook.words import degrees, percent

section = Section("found")


@section.experiment(quick={"lr": 1e6})
def formation(s: Settings, *, lr: Rate = 1e5, frames: Annotated[int, whole(1, 1000)] = 22) -> Experiment:
    """The slider of Fig. 2 over time: seed 0 of ``learning_curves`` again, looked at more often."""
    task, model = ModularTask(s.p, "n + m", s.train_fraction), TwoLayerMLP(s.p, s.width, "input_mean_field")
    return Experiment(
        "gromov/formation",
        seeded(1, task, model, gradient_descent(lr, s.p, s.width), s.gd_steps, "GD"),
        Schedule(log=0, every=max(1, s.gd_steps // 100)),
        ("ipr",),
        snapshots=tuple(round(s.gd_steps * i / max(1, frames - 1)) for i in range(frames)),
        keep=(f"output[{6 % s.p}]", f"preactivation[{30 % s.width}]"),
    )


@section.experiment()
def adamw_curves(s: Settings, *, train_fraction: Share = 0.5) -> Experiment:
    """Figs 3 and 6: modular addition under AdamW."""
    task, model = ModularTask(s.p, "n + m", train_fraction), TwoLayerMLP(s.p, s.width, "standard")
    return Experiment(
        "gromov/adamw_curves",
        seeded(s.seeds, task, model, ADAMW, s.adamw_steps, "AdamW"),
        Schedule(log=60, every=4),
        ("weight_norm", "gradient_norm", "ipr", "phases"),
        snapshots=(0, -1),
        keep=("W_in", "W_out"),
    )


@section.experiment()
def phase_controls(s: Settings, *, train_fraction: Share = 0.5) -> Experiment:
    """Is it AdamW that sharpens the phases of Fig. 3? The same with weight decay off, and in the printed scaling."""
    task = ModularTask(s.p, "n + m", train_fraction)
    standard, printed = (TwoLayerMLP(s.p, s.width, scaling) for scaling in ("standard", "mean_field"))
    ways: dict[str, tuple[TwoLayerMLP, Optimizer]] = {
        "AdamW, decay 5": (standard, ADAMW),
        "AdamW, no decay": (standard, adamw(0.0)),
        "AdamW, no decay, 2/N": (printed, AdamW(0.05, 0.0, BETAS)),
        "GD + momentum, 2/N": (printed, gradient_descent(2000, s.p, s.width, "mean_field", momentum=0.9)),
    }
    runs = tuple(one for label, how in ways.items() for one in seeded(s.seeds, task, *how, s.adamw_steps, label))
    schedule = Schedule(log=40, every=max(1, s.adamw_steps // 50))
    return Experiment("gromov/phase_controls", runs, schedule, ("phases", "ipr"))


def weights(record: xr.Dataset, run: int = 0, snapshot: int = -1) -> tuple[NDArray, NDArray]:
    """``W_in`` (width, 2p) and ``W_out`` (p, width) of a run at one of its snapshots."""
    one = record.isel(run=run, snapshot=snapshot)
    return one.W_in.values.astype(float), one.W_out.values.astype(float)


def outputs(record: xr.Dataset, run: int = 0, snapshot: int = -1) -> NDArray:
    """(p, p, p) what the network of a snapshot answers to every pair, answer last."""
    W_in, W_out = weights(record, run, snapshot)
    p, width = W_out.shape
    factor = SCALINGS[str(record.scaling.values[run])](p, width)[0]
    return theory.network(W_in.astype(np.float32), W_out.astype(np.float32), factor=factor)


@section.study
def line_shares(learning_curves: xr.Dataset, adamw_curves: xr.Dataset, analytic_lines: xr.Dataset) -> xr.Dataset:
    """``share`` (condition, line, seed) of an output map's power on each Fourier line, median over answers."""
    looked_at = {"initial": (learning_curves, 0), "GD": (learning_curves, -1), "AdamW": (adamw_curves, -1)}
    parts = {
        name: theory.lines_of(outputs(record, run, snapshot) for run in range(record.sizes["run"]))
        for name, (record, snapshot) in looked_at.items()
    }
    parts["analytic"] = analytic_lines
    numbered = [one.assign_coords(seed=range(one.sizes["seed"])) for one in parts.values()]
    return xr.concat(numbered, "condition", join="outer").assign_coords(condition=list(parts))


def in_one_wave(end: xr.Dataset) -> NDArray:
    """(run, unit) share of power that the strongest wave of an operand's weights holds, the smaller of the two."""
    return measures.single_frequency_share(measures.halves(end.W_in)).min(-1)


@section.study
def phases(learning_curves: xr.Dataset, adamw_curves: xr.Dataset) -> xr.Dataset:
    """``residual``, ``phi1``, ``phi2`` of neurons at the end in degrees, and ``rarest``.

    That is how many units share the rarest of the (p - 1)/2 frequencies, of those units that have half of the power of
    both operands' weights in one wave: noise has a strongest frequency too.
    """
    parts = []
    for name, record in (("GD", learning_curves), ("AdamW", adamw_curves)):
        end = record.isel(snapshot=-1)
        found = measures.phase_residuals(end.W_in, end.W_out)
        angles = {one: (("run", "unit"), np.degrees(getattr(found, one))) for one in ("residual", "phi1", "phi2")}
        waves, many = np.where(in_one_wave(end) >= 0.5, found.frequency, 0), (int(record.p[0]) - 1) // 2
        rarest = [np.bincount(row, minlength=many + 1)[1 : many + 1].min() for row in waves]
        parts.append(xr.Dataset({**angles, "rarest": ("run", rarest)}).expand_dims(optimizer=[name]))
    return xr.concat(parts, "optimizer", join="outer")


def on_sum(study: xr.Dataset, condition: str) -> NDArray:
    """(seed,) share of power on the line of n + m."""
    return study.share.sel(condition=condition, line="n + m").values


def weak_lines(study: xr.Dataset, condition: str) -> NDArray:
    """(seed,) share of power on the lines of n - m, 2n and 2m together."""
    share = study.share.sel(condition=condition)
    return (1 - share.sel(line="n + m") - share.sel(line="rest")).values


def strongest_wave(record: xr.Dataset) -> NDArray:
    """(run,) median over units and operands of the share of power that the strongest wave of a row holds."""
    return np.median(measures.single_frequency_share(measures.halves(record.W_in[:, -1])), axis=(1, 2))


def sd(study: xr.Dataset, optimizer: str) -> NDArray:
    """(run,) circular standard deviation of the phase sum, degrees."""
    return np.degrees(measures.circular_sd(np.radians(study.residual.sel(optimizer=optimizer))))


def bias(study: xr.Dataset) -> NDArray:
    """(optimizer, run) size of the circular mean of the phase sum, degrees."""
    return np.abs(np.degrees(measures.circular_mean(np.radians(study.residual))))


def uneven(study: xr.Dataset) -> NDArray:
    """(phase, optimizer, run) resultant length of one phase alone, 0 where it is uniform."""
    return np.array([measures.resultant_length(np.radians(study[name])) for name in ("phi1", "phi2")])


def sd_of(record: xr.Dataset, label: str) -> NDArray:
    """(run,) the same standard deviation at the end of a record's runs of one condition."""
    return np.degrees(last(select(record, label=label), "residual_sd"))


def least_sd(record: xr.Dataset, label: str) -> NDArray:
    """(run,) the smallest that it ever is."""
    return np.degrees(np.nanmin(select(record, label=label).residual_sd.values, axis=1))


section.claim(
    "fig2",
    "Fig. 2",
    "After training an output's Fourier image is one line, that of n + m; the analytic one has weak lines as well.",
    Part("power on n + m, initially", partial(on_sum, condition="initial"), below(0.05), percent),
    Part("after gradient descent", partial(on_sum, condition="GD"), above(0.85), percent),
    Part("after AdamW", partial(on_sum, condition="AdamW"), above(0.9), percent),
    Part("analytic", partial(on_sum, condition="analytic"), between(0.72, 0.86), percent),
    Part("share of the analytic rest on 2n, 2m and n − m",
         lambda d: weak_lines(d, "analytic") / (1 - on_sum(d, "analytic")), above(0.95), percent),
    Part("strongest wave of a hidden unit", strongest_wave, above(0.5), percent, on=("learning_curves",)),
    on="line_shares",
    forecast="0.9, 95.4, 97.6 and 79.0 % on n + m",
)  # fmt: skip

COPIES = "units at the rarest frequency, of those with half their power in one wave"
section.claim(
    "fig3",
    "Fig. 3",
    "Phases obey φ₁ + φ₂ = φ₃, more sharply under AdamW than under GD, and are random otherwise.",
    Part("sd of φ₁ + φ₂ − φ₃ under GD", partial(sd, optimizer="GD"), at_most(20), degrees),
    Part("under AdamW", partial(sd, optimizer="AdamW"), at_most(6), degrees),
    Part("their ratio", lambda d: np.nanmedian(sd(d, "GD")) / np.nanmedian(sd(d, "AdamW")), at_least(2)),
    Part("size of the mean", bias, at_most(3), degrees),
    Part("resultant length of φ₁ and of φ₂", uneven, below(0.15)),
    Part(COPIES, lambda d: d.rarest, at_least(1), every=True),
    on="phases",
    forecast="10 to 11° and 1.9°, all frequencies",
)

section.claim(
    "redundant",
    "Sec. 3.1",
    "A wide network has each frequency several times.",
    Part(COPIES, lambda d: d.rarest, at_least(2), every=True),
    on="phases",
    forecast="all frequencies where N ≥ 2p",
)

SHARPER = Part(
    "sd of GD with momentum / of AdamW without decay",
    lambda r: np.median(sd_of(r, "GD + momentum, 2/N")) / np.median(sd_of(r, "AdamW, no decay, 2/N")),
    at_least(2),
)
section.claim(
    "fig3-cause",
    "beyond Fig. 3",
    "AdamW as such makes the peak sharper, as the caption can be read.",
    Part("smallest sd of GD with momentum / of AdamW without decay",
         lambda r: np.median(least_sd(r, "GD + momentum, 2/N")) / np.median(least_sd(r, "AdamW, no decay, 2/N")),
         at_least(2)),
    on="phase_controls",
    forecast="19° against 34°, at the end: it does not",
    whose="ours",
    earlier=[SHARPER],
)  # fmt: skip
