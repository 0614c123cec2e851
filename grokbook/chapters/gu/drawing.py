"""What the drawing cells of this chapter share: curves of runs that leave early, and the settings of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from grokbook import plotting
from grokbook.curves import own_steps
from grokbook.train.experiment import coordinates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from grokbook.page import Page


def shown(record: xr.Dataset, *, log: bool = True) -> xr.Dataset:
    """What a curve shows: from step 1 on and, on a logarithmic axis, no two steps closer than 1 %.

    A run that has left stays where it was until the last one leaves: a median would fall when the fastest go.
    """
    record = own_steps(record)
    steps = record.step.values
    apart = np.r_[False, True, (np.diff(np.floor(np.log(np.maximum(steps[1:], 1)) * 60)) > 0) | (not log)]
    apart[-1] = True
    record = record.isel(step=np.flatnonzero(apart))
    held = record.isel(step=record.step <= record.stopped_at.max())
    for name, curve in held.data_vars.items():
        if curve.dims == ("run", "step"):
            known = np.maximum.accumulate(np.where(np.isfinite(curve), np.arange(held.sizes["step"]), 0), axis=1)
            held[name] = curve.dims, np.take_along_axis(curve.values, known, 1)
    return held


def curve(ax: Axes, record: xr.Dataset, name: str, *, log: bool = True, **style: Any) -> Axes:
    """A measured curve of every run and their median (``plotting.curves``), as ``shown``."""
    record = shown(record, log=log)
    return plotting.curves(ax, record.step, record[name], **style)


LABELS = {"test_accuracy": "test accuracy", "test_loss": "test loss", "med_M1": "MED", "med_M3": "MED (M3)"}


def column(
    axes: Sequence[Axes], groups: Iterable[tuple[str, xr.Dataset, str]], names: Sequence[str], *, log: bool = True
) -> None:
    """A curve a panel, with a colour a group (label, runs, colour); steps on each axis that is not shared."""
    for label, runs, color in groups:
        for ax, name in zip(axes, names, strict=True):
            curve(ax, runs, name, color=color, label=label, log=log)
    for ax, name in zip(axes, names, strict=True):
        ax.set_ylabel(LABELS[name])
        if name == "test_accuracy":
            plotting.fraction_axis(ax, LABELS[name])
        elif name == "test_loss":
            _few_powers(ax)
        else:
            ax.set_ylim(0, None)
    for ax in axes:
        if ax is axes[-1] or not ax.get_shared_x_axes().joined(ax, axes[-1]):
            plotting.steps_axis(ax, log=log)
            ax.set_xlim(10 if log else 0, None)


def _few_powers(ax: Axes) -> None:
    """A logarithmic vertical axis with two to four ticks, whether it spans a tenth of a decade or ten."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    for subs in ((1,), (1, 3), (1, 2, 5), range(1, 10), np.arange(1, 10, 0.1)):
        ticks = np.sort(np.outer(10.0 ** np.arange(-30, 10), subs).ravel())
        ticks = ticks[(ticks > low) & (ticks < high)]
        if len(ticks) > 1 + (len(subs) == 1):
            break
    ticks = ticks[:: -(-len(ticks) // 4)] if len(ticks) else np.array([np.sqrt(low * high)])
    ax.set_yticks(ticks, [f"{one:.2g}" if one > 0.02 else f"$10^{{{np.log10(one):.0f}}}$" for one in ticks])
    ax.minorticks_off()


def setting(page: Page, name: str, letters: str = "pkdα", whose: str = "paper") -> str:
    """The sizes behind a picture; where its figure is meant to have others, these on a second line.

    They are "planned", not the paper's, where it does not state them all.
    """
    columns = {"p": "p", "k": "offset", "d": "d_model", "α": "train_fraction"}
    here, meant = (
        ", ".join(f"{letter} = {_few(of[columns[letter]])}" for letter in letters)
        for of in (page[name], coordinates(page.experiment(name).runs))
    )
    return here if here == meant else f"here: {here}\n{whose}: {meant}"


def _few(values: ArrayLike) -> str:
    known = np.unique(np.round(np.asarray(values, float), 9)).tolist()
    return ", ".join(f"{one:g}" for one in known) if len(known) < 5 else f"{known[0]:g} to {known[-1]:g}"
