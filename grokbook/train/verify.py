"""Are the stored numbers real? Train runs of a record again and compare all their numbers with what is stored."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.curves import first_step, last_value
from grokbook.train import records, runner
from grokbook.train.experiment import Experiment

# What is demanded of a run that was trained again on another machine, device or library version.
START_TOLERANCE = 1e-4  # relative, of losses at step 0: the same data, split and initial weights
STEP_TOLERANCE = 1.25  # factor on the range of the stored seeds' steps of 99 %
ACCURACY_TOLERANCE = 0.05  # added to the range of the stored seeds' last accuracies


@dataclass(frozen=True)
class Comparison:
    """One run trained again beside the stored one."""

    run: int  #: its position in the experiment
    label: str
    seed: int
    difference: float  #: the largest in any curve, time or snapshot; inf where one has a number and the other none
    where: str  #: the curve, time or snapshot in which it is
    stored_step: float  #: when the stored run answered 99 % of the test set
    retrained_step: float  #: when this one did
    why: str  #: what is beyond the tolerances above; empty if nothing is
    same_start: bool  #: whether its losses at step 0 agree
    #: How often one of n + 1 seeds alike is the first or the last of them, 2 / (n + 1); 0 of a condition with one seed.
    chance: float

    @property
    def identical(self) -> bool:
        """Whether every stored number came out again, to the last bit that is stored."""
        return self.difference == 0


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found: a comparison per run, and what differs in machine, versions and products, if anything."""

    comparisons: list[Comparison]
    elsewhere: str

    @property
    def spared(self) -> int:
        """How many runs may be too far elsewhere: as many new seeds would be, and rounding grows until they are new."""
        return int(sum(one.chance for one in self.comparisons) + 1e-9)

    @property
    def passed(self) -> bool:
        """On the same machine, versions and products every bit has to come out again; else, what the tolerances say."""
        if not self.elsewhere:
            return all(one.identical for one in self.comparisons)
        return all(one.same_start for one in self.comparisons) and self._far <= self.spared

    @property
    def _far(self) -> int:
        return sum(bool(one.why) for one in self.comparisons)

    @property
    def verdict(self) -> str:
        """One sentence, with what was demanded."""
        count, same = len(self.comparisons), sum(one.identical for one in self.comparisons)
        word = "verified" if self.passed else "NOT verified"
        if same == count:
            return f"{word}: {count} of {count} runs trained again give every stored number, to the last bit"
        if not self.elsewhere:
            return (
                f"{word}: {count - same} of {count} runs differ, and with the machine, versions and products of the "
                "record every stored number has to come out again, to the last bit"
            )
        good = count - self._far
        all_ = f"all runs but {self.spared}, as many as other seeds might miss it by" if self.spared else "all runs"
        return (
            f"{word}: {good} of {count} runs agree within the seeds' range ({same} to the last bit). The same bits are "
            f"promised only where the record was made ({self.elsewhere}); demanded here: losses at step 0 within "
            f"{START_TOLERANCE:g}, and, of {all_}, steps of 99 % within the stored seeds' range times "
            f"{STEP_TOLERANCE:g} either way and last accuracies within it plus {ACCURACY_TOLERANCE:g} either way"
        )


def verify(
    experiment: Experiment,
    *,
    sample: int | None = None,
    out: Path | None = None,
    device: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Verification:
    """Train runs of a stored record again and compare number by number.

    With the same processor, versions and library of products the numbers agree to the last bit; else rounding differs
    and grows, and what must agree is when runs grok, within the range of the seeds. Whole stacks are trained again, as
    they were for the record, because products of one member and of many need not round alike.

    Args:
        sample: at least how many runs, spread over the record; None is all.
        out: the folder of the record, as ``runner.train`` was given it; None is the committed or the cached one.
        device, workers, scheduler: see ``runner.train``.

    Raises:
        FileNotFoundError: there is no record that is whole and of this recipe.
    """
    place = runner.status(experiment, out=out)
    if place.record is None:
        raise FileNotFoundError(
            f"{experiment.name}: its record is {place.state}; grokbook train {experiment.name} makes one"
        )
    stored = place.record
    device, default, _ = runner.plan(experiment, device)
    # Stacks of a core's size would keep a GPU idle, and its numbers are others anyway.
    block = int(stored.attrs.get("block", default)) if stored.attrs["device"] == device else default
    count = len(experiment.runs)
    wanted = set(np.linspace(0, count - 1, min(sample or count, count)).round().astype(int).tolist())
    chosen = sorted(i for members in experiment.shards(block) if wanted & set(members) for i in members)
    records.cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=records.cache_folder(), prefix="verify-") as folder:
        how: dict[str, Any] = {"device": device, "workers": workers, "scheduler": scheduler}
        again = runner.train(experiment.select(chosen), block=block, out=Path(folder), anew=True, **how)
    versions = ("numpy", "grokbook")
    there, here = (records.place_of(one) | {key: one.attrs[key] for key in versions} for one in (stored, again))
    apart = [f"{key} {there[key]} there, {here[key]} here" for key in there if there[key] != here[key]]
    apart += ["some of its runs are of other records' stacks"] * bool(stored.attrs.get("taken"))
    conditions = [replace(run, seed=0) for run in experiment.runs]
    comparisons = []
    for row, i in enumerate(chosen):
        alike = [j for j, condition in enumerate(conditions) if condition == conditions[i]]
        ours, theirs = (records.unpadded(one.isel(run=[at])).isel(run=0) for one, at in ((again, row), (stored, i)))
        comparisons.append(compare(ours, theirs, stored.isel(run=alike), i))
    return Verification(comparisons, "; ".join(apart))


def compare(ours: xr.Dataset, theirs: xr.Dataset, seeds: xr.Dataset, position: int) -> Comparison:
    """A run trained again beside the stored one and the stored runs of its condition, over all seeds."""
    ours = ours.reindex(step=theirs.step)
    worst, where, why, same_start, seen = 0.0, "", [], True, seeds.sizes["run"]
    for name in sorted({*map(str, ours.data_vars), *map(str, theirs.data_vars)}):
        gap = _gap(ours[name].values, theirs[name].values) if name in ours and name in theirs else np.inf
        if gap > worst:
            worst, where = gap, name
        if name.startswith("reached_") and not _within(float(ours[name]), seeds[name].values, factor=STEP_TOLERANCE):
            why.append(f"{name} at step {float(ours[name]):g}, stored seeds {_range(seeds[name].values)}")
    for split in ("train", "test"):
        ours_0, theirs_0 = (float(one[f"{split}_loss"][0]) for one in (ours, theirs))
        if not np.isclose(ours_0, theirs_0, rtol=START_TOLERANCE, atol=0, equal_nan=True):
            same_start = False
            why.append(f"{split} loss at step 0 is {ours_0:.6g}, stored {theirs_0:.6g}")
        step = float(first_step(ours[f"{split}_accuracy"], ours.step, 0.99))
        steps = first_step(seeds[f"{split}_accuracy"], seeds.step, 0.99)
        if not _within(step, steps, factor=STEP_TOLERANCE):
            why.append(f"99 % of the {split} set at step {step:g}, stored seeds {_range(steps)}")
        end, ends = (np.atleast_1d(last_value(one[f"{split}_accuracy"])) for one in (ours, seeds))
        if not _within(float(end[0]), ends, plus=ACCURACY_TOLERANCE):
            why.append(f"last {split} accuracy {end[0]:.3f}, stored seeds {_range(ends)}")
    before, now = (float(first_step(one.test_accuracy, one.step, 0.99)) for one in (theirs, ours))
    about = position, str(theirs.label.item()), int(theirs.seed), worst, where, before, now, "; ".join(why)
    return Comparison(*about, same_start, 2 / (seen + 1) if seen > 1 else 0.0)


def _gap(new: NDArray[Any], old: NDArray[Any]) -> float:
    """The largest difference of two arrays of numbers; inf where only one has a number, or their shapes differ."""
    if new.shape != old.shape or (np.isnan(new) != np.isnan(old)).any():
        return np.inf
    gaps = np.abs(new.astype(np.float32) - old.astype(np.float32))
    return float(np.nan_to_num(gaps, posinf=np.inf).max(initial=0.0))


def _within(value: float, stored: NDArray[np.float64], factor: float = 1.0, plus: float = 0.0) -> bool:
    """Whether a value lies in the range of the stored ones, widened; nan (never) where one of them is."""
    met = stored[np.isfinite(stored)]
    if np.isnan(value) or not len(met):
        return bool(np.isnan(value) and len(met) < len(stored))
    return bool(met.min() / factor - plus <= value <= met.max() * factor + plus)


def _range(stored: NDArray[np.float64]) -> str:
    low, high = ("never" if np.isnan(end) else f"{end:.4g}" for end in np.sort(stored)[[0, -1]])
    return low if low == high else f"{low} to {high}"
