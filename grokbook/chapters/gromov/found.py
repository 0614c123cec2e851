"""Figs 2 and 3: what training finds, beside what was written down: lines in Fourier space, and phases that add up."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.gromov import Settings, theory
from grokbook.chapters.gromov.training import ADAMW, BETAS, gradient_descent
from grokbook.claims import Part, above, at_least, at_most, below, between, exactly
from grokbook.curves import last
from grokbook.models.mlp import SCALINGS, TwoLayerMLP
from grokbook.optim import AdamW, Optimizer
from grokbook.settings import Rate, Share, Width
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.records import select
from grokbook.words import degrees, percent

section = Section("found")


@section.experiment(quick={"lr": 1e6})
def formation(s: Settings, *, lr: Rate = 1e5, frames: Width = 22) -> Experiment:
    """The slider of Fig. 2 over time: seed 0 of ``learning_curves`` again, looked at more often."""
    task, model = ModularTask(s.p, "n + m", s.train_fraction), TwoLayerMLP(s.p, s.width, "input_mean_field")
    return Experiment(
        "gromov/formation",
        (Run(task, model, gradient_descent(lr, s.p, s.width), s.gd_steps, 0, label="GD"),),
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
        tuple(Run(task, model, ADAMW, s.adamw_steps, seed, label="AdamW") for seed in range(s.seeds)),
        Schedule(log=60, every=4),
        ("weight_norm", "gradient_norm", "ipr", "phases"),
        snapshots=(0, -1),
        keep=("W_in", "W_out"),
    )


@section.experiment()
def phase_controls(s: Settings, *, train_fraction: Share = 0.5) -> Experiment:
    """Is it AdamW that sharpens the phases of Fig. 3? The same with weight decay off, and in the printed scaling."""
    task = ModularTask(s.p, "n + m", train_fraction)
    conditions: tuple[tuple[str, str, Optimizer], ...] = (
        ("AdamW, decay 5", "standard", ADAMW),
        ("AdamW, no decay", "standard", AdamW(0.01, 0.0, BETAS)),
        ("AdamW, no decay, 2/N", "mean_field", AdamW(0.05, 0.0, BETAS)),
        ("GD + momentum, 2/N", "mean_field", gradient_descent(2000, s.p, s.width, "mean_field", momentum=0.9)),
    )
    return Experiment(
        "gromov/phase_controls",
        tuple(
            Run(task, TwoLayerMLP(s.p, s.width, scaling), optimizer, s.adamw_steps, seed, label=label)
            for label, scaling, optimizer in conditions
            for seed in range(s.seeds)
        ),
        Schedule(log=40, every=max(1, s.adamw_steps // 50)),
        ("phases", "ipr"),
    )


# ------------------------------------------------------------------------------------------------ weights of a record


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


def hidden_map(row: NDArray) -> NDArray:
    """(p, p) preactivation, for every pair, of the hidden unit whose row of ``W_in`` this is, (2p,)."""
    p = len(row) // 2
    return row[:p, None] + row[None, p:]


@section.study
def line_shares(learning_curves: xr.Dataset, adamw_curves: xr.Dataset, analytic_lines: xr.Dataset) -> xr.Dataset:
    """``share`` (condition, line, seed) of an output map's power on each Fourier line, median over answers."""
    parts = []
    for condition, record, snapshot in (
        ("initial", learning_curves, 0),
        ("GD", learning_curves, -1),
        ("AdamW", adamw_curves, -1),
    ):
        rows = [
            [
                float(np.median(one))
                for one in measures.line_shares(np.moveaxis(outputs(record, run, snapshot), -1, 0)).values()
            ]
            for run in range(record.sizes["run"])
        ]
        coords = {"line": analytic_lines.line.values, "seed": range(len(rows))}
        parts.append(xr.DataArray(np.array(rows).T, coords, ("line", "seed")).expand_dims(condition=[condition]))
    parts.append(analytic_lines.share.expand_dims(condition=["analytic"]))
    return xr.concat(parts, "condition", join="outer").to_dataset(name="share")


@section.study
def phases(learning_curves: xr.Dataset, adamw_curves: xr.Dataset) -> xr.Dataset:
    """Every neuron at the end: ``residual``, ``phi1``, ``phi2`` in degrees, ``frequency`` (optimizer, run, unit)."""
    parts = []
    for name, record in (("GD", learning_curves), ("AdamW", adamw_curves)):
        found = [measures.phase_residuals(*weights(record, run)) for run in range(record.sizes["run"])]
        variables = {
            one: (("run", "unit"), np.degrees([getattr(each, one) for each in found]))
            for one in ("residual", "phi1", "phi2")
        }
        variables["frequency"] = (("run", "unit"), np.array([each.frequency for each in found]))
        parts.append(xr.Dataset(variables).expand_dims(optimizer=[name]))
    return xr.concat(parts, "optimizer", join="outer").assign_attrs(p=int(learning_curves.p.values[0]))


# ---------------------------------------------------------------------------------------------------------- claims


def on_sum(study: xr.Dataset, condition: str) -> NDArray:
    """(seed,) share of power on the line of n + m."""
    return study.share.sel(condition=condition, line="n + m").values


def weak_lines(study: xr.Dataset, condition: str) -> NDArray:
    """(seed,) share of power on the lines of n - m, 2n and 2m together."""
    share = study.share.sel(condition=condition)
    return (1 - share.sel(line="n + m") - share.sel(line="rest")).values


def strongest_wave(record: xr.Dataset) -> NDArray:
    """(run,) median over units and operands of the share of power that the strongest wave of a row holds."""
    rows = [weights(record, run)[0] for run in range(record.sizes["run"])]
    return np.array([np.median(measures.single_frequency_share(W.reshape(len(W), 2, -1))) for W in rows])


def sd(study: xr.Dataset, optimizer: str) -> NDArray:
    """(run,) circular standard deviation of the phase sum, degrees."""
    residual = np.radians(study.residual.sel(optimizer=optimizer).dropna("run", how="all").values)
    return np.degrees([measures.circular_sd(one[np.isfinite(one)]) for one in residual])


def _each(study: xr.Dataset, name: str, measure) -> NDArray:
    rows = np.radians(study[name].values.reshape(-1, study.sizes["unit"]))
    return np.array([measure(one[np.isfinite(one)]) for one in rows if np.isfinite(one).any()])


def bias(study: xr.Dataset) -> NDArray:
    """(optimizer and run,) size of the circular mean of the phase sum, degrees."""
    return np.abs(np.degrees(_each(study, "residual", measures.circular_mean)))


def uneven(study: xr.Dataset) -> NDArray:
    """(phase, optimizer and run) flattened: resultant length of one phase alone, 0 where it is uniform."""
    return np.concatenate([_each(study, name, measures.resultant_length) for name in ("phi1", "phi2")])


def missing_frequencies(study: xr.Dataset) -> int:
    """The most of the (p - 1)/2 frequencies that any network lacks."""
    rows = study.frequency.values.reshape(-1, study.sizes["unit"])
    return (study.attrs["p"] - 1) // 2 - min(len(np.unique(row[row > 0])) for row in rows if np.isfinite(row).any())


def sd_of(record: xr.Dataset, label: str) -> NDArray:
    """(run,) the same standard deviation at the end of a record's runs of one condition."""
    return np.degrees(last(select(record, label=label), "residual_sd"))


section.claim(
    "fig2",
    "Fig. 2",
    "After training an output's Fourier image is one line, that of n + m; the analytic one has weak lines as well.",
    Part("power on n + m, initially", partial(on_sum, condition="initial"), below(0.05), percent),
    Part("after gradient descent", partial(on_sum, condition="GD"), above(0.85), percent),
    Part("after AdamW", partial(on_sum, condition="AdamW"), above(0.9), percent),
    Part("analytic", partial(on_sum, condition="analytic"), between(0.72, 0.86), percent),
    Part(
        "share of the analytic rest on 2n, 2m and n − m",
        lambda study: weak_lines(study, "analytic") / (1 - on_sum(study, "analytic")),
        above(0.95),
        percent,
    ),
    Part("strongest wave of a hidden unit", strongest_wave, above(0.5), percent, on=("learning_curves",)),
    on="line_shares",
    forecast="0.9, 95.4, 97.6 and 79.0 % on n + m",
)

section.claim(
    "fig3",
    "Fig. 3",
    "Phases obey φ₁ + φ₂ = φ₃, more sharply under AdamW than under GD, and are random otherwise.",
    Part("sd of φ₁ + φ₂ − φ₃ under GD", partial(sd, optimizer="GD"), at_most(20), degrees),
    Part("under AdamW", partial(sd, optimizer="AdamW"), at_most(6), degrees),
    Part("their ratio", lambda study: np.median(sd(study, "GD")) / np.median(sd(study, "AdamW")), at_least(2)),
    Part("size of the mean", bias, at_most(3), degrees),
    Part("resultant length of φ₁ and of φ₂", uneven, below(0.15)),
    Part("frequencies, of (p − 1)/2, that a network lacks", missing_frequencies, exactly(0)),
    on="phases",
    forecast="10 to 11° and 1.9°, all frequencies",
)

section.claim(
    "fig3-cause",
    "beyond Fig. 3",
    "AdamW as such makes the peak sharper, as the caption can be read.",
    Part(
        "sd of GD with momentum / of AdamW without decay",
        lambda record: (
            np.median(sd_of(record, "GD + momentum, 2/N")) / np.median(sd_of(record, "AdamW, no decay, 2/N"))
        ),
        at_least(2),
    ),
    on="phase_controls",
    forecast="19° against 34°: it does not",
    whose="ours",
)
