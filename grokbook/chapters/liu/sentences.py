"""Sentences of the chapter that carry numbers: each is computed from records, so that none is ever typed in."""

from __future__ import annotations

import numpy as np

from grokbook.chapters.liu import studies, theory
from grokbook.chapters.liu.experiments import FAST_EMBEDDINGS, LARGE
from grokbook.chapters.liu.phases import PHASES
from grokbook.claims import Records, Sentence, number, percent
from grokbook.measures import median
from grokbook.records import select


def unique(records: Records) -> str:
    """Beside Fig. 4a: where the transition is, and what an ideal model can do there."""
    study = records["ideal"]
    share = study["size"].values / study.attrs["samples"]
    line = (study.nullity == 2).mean("draw").values
    at = studies.crossing(share, line)
    ideal = float(np.interp(at, share, study.ideal_accuracy.mean("draw").values))
    return (
        f"Half of the {study.sizes['draw']:,} random training sets leave the line as the only solution at r = "
        f"{number(at)}, "
        f"which is {number(at * study.attrs['samples'])} of {study.attrs['samples']} samples. An ideal model answers "
        f"{percent(ideal)} of all samples there."
    )


def transition(records: Records) -> str:
    """Beside the transition for several p."""
    study = records["transition"]
    slope = np.polyfit(np.log(study.p), np.log(study.fraction), 1)[0]
    samples = study.fraction * study.samples / study.p
    return (
        f"From p = {int(study.p[0])} to {int(study.p[-1])} the critical share falls from "
        f"{number(float(study.fraction[0]))} to "
        f"{number(float(study.fraction[-1]))}, as a power of {number(float(slope))}; in samples per symbol it rises "
        f"from "
        f"{number(float(samples[0]))} to {number(float(samples[-1]))}."
    )


def accuracy(records: Records) -> str:
    """Beside Fig. 3."""
    found = studies.outcomes(records["fractions"])
    apart = np.abs(found.accuracy - found.predicted).values
    return (
        f"Over {found.sizes['run']} networks the two differ by {number(float(apart.mean()))} in the mean and by "
        f"{number(float(apart.max()))} at most; their correlation is "
        f"{number(float(np.corrcoef(found.accuracy, found.predicted)[0, 1]))}."
    )


def ideal(records: Records) -> str:
    """Beside Fig. 10: how often networks fall short."""
    found = studies.outcomes(records["fractions"])
    short = (found.rqi < found.ideal_rqi - 0.05).values
    whole = (found.ideal_rqi == 1).values
    reached = float((found.rqi.values[whole] == 1).mean()) if whole.any() else float("nan")
    return (
        f"{percent(float(short.mean()))} of the networks have a smaller index than an ideal model would have. Of "
        f"those whose "
        f"training set implies the whole line, {percent(reached)} find it."
    )


def times(records: Records) -> str:
    """Beside Figs 4b and 5b."""
    found = studies.structure(records["structure_times"])
    own = found.isel(run=np.flatnonzero(found.label.values == FAST_EMBEDDINGS))
    r, there = own.fraction.values, np.isfinite(own.steps.values)
    shares = np.unique(r)
    at = studies.crossing(shares, np.array([there[r == one].mean() for one in shares]))
    words = (
        f"With the faster embeddings half of the networks find the line at r = {number(at)}"
        if np.isfinite(at)
        else "Success of the networks with the faster embeddings never passes a half from below"
    )
    if there.sum() < 3:
        return f"{words}; {int(there.sum())} networks got there."
    agreement = theory.rate_agreement(own.steps.values, own["sum"].values)
    low, high = agreement.spearman_interval
    return (
        f"{words}. Over the {agreement.runs} runs that got there the rank correlation of their steps with 1/λ₃ is "
        f"{number(agreement.spearman)} ({number(low)} to {number(high)}), and the steps grow as its power "
        f"{number(agreement.slope)} where the theory says 1."
    )


def trajectory(records: Records) -> str:
    """Beside Fig. 4c and d."""
    path = studies.trajectory(records["trajectory"])
    run = records["trajectory"].isel(run=0)
    rho = theory.line_fit(path.network[0][:, None]).rho
    reached = float(run.reached_rqi)
    when = f"at step {number(reached)}" if np.isfinite(reached) else "not within the run"
    return (
        f"Here nₕ = {number(path.n_h)} steps. At the start the part that is no line is {number(float(rho))} times as "
        f"large as "
        f"the linear one, so the flow needs nₕ log(10 ρ) = {number(float(path.n_h * np.log(10 * rho)))} steps to "
        f"bring it to a "
        f"tenth, more than 3 nₕ = {number(3 * path.n_h)}. The network's index passes 0.95 {when}."
    )


def phases(records: Records) -> str:
    """Beside Fig. 6: how many cells of each phase, and how many as published."""
    rows = []
    for name, title in studies.PANEL_TITLES.items():
        found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
        counts = studies.counts(found.map(budget=budget)[0])
        shown = " / ".join(str(counts[phase]) for phase in PHASES[:4])
        same = studies.agreement(found, studies.PANELS[name][0], budget=budget).phases.mean()
        cut = f" (both cut at {number(budget)} steps)" if budget < studies.PUBLISHED_BUDGET else ""
        rows.append(f"({title[0]}) {shown}, {percent(float(same))} as published{cut}")
    return "Cells of comprehension / grokking / memorisation / confusion: " + "; ".join(rows) + "."


def splits(records: Records) -> str:
    """Beside the majority diagrams."""
    rows = []
    for name, title in studies.PANEL_TITLES.items():
        own = f"{name}_splits"
        share = studies.panel_diagram(records, own).map(budget=studies.budget_of(records[own]))[1]
        rows.append(f"({title[0]}) {percent(float((share == 1).mean()))}")
    phases = studies.panel_diagram(records, "phases_group_splits").map(
        budget=studies.budget_of(records["phases_group_splits"])
    )[0]
    return (
        "Cells in which all splits agree: " + ", ".join(rows) + f". In (d) the majority generalises in "
        f"{int((phases <= 1).sum())} of {phases.size} cells."
    )


def images(records: Records) -> str:
    """Beside the norms: the product that is nearly the same for all decays."""
    record = select(records["image_curves"], label=LARGE)
    rows = []
    for decay in np.unique(record.weight_decay.values):
        own = select(record, weight_decay=float(decay))
        step = median(own.reached_test_accuracy.values)
        rows.append(f"{number(step * decay * float(own.lr[0]))} at decay {decay:g} (step {number(step)})")
    return f"The time to 60 % of the test images, times decay, times learning rate is {', '.join(rows)}."


def dimensions(records: Records) -> str:
    """Beside the networks with more dimensions than they need."""
    record = records["dimensions"]
    free = record.isel(run=np.flatnonzero(record.weight_decay.values == record.weight_decay.values.min()))
    test, rqi = studies.last(free, "test_accuracy"), studies.last(free, "rqi")
    rows = []
    for d in np.unique(free.dimension.values):
        here = free.dimension.values == d
        rows.append(f"{number(median(test[here]))} and {number(median(rqi[here]))} at d = {int(d)}")
    return f"Without decay held-out accuracy and index are {', '.join(rows)} (medians)."


SENTENCES = {
    "unique": Sentence(unique, ("ideal",)),
    "transition": Sentence(transition, ("transition",)),
    "accuracy": Sentence(accuracy, ("fractions",)),
    "ideal": Sentence(ideal, ("fractions",)),
    "times": Sentence(times, ("structure_times",)),
    "trajectory": Sentence(trajectory, ("trajectory",)),
    "phases": Sentence(phases, tuple(studies.PANEL_TITLES)),
    "splits": Sentence(splits, tuple(f"{name}_splits" for name in studies.PANEL_TITLES)),
    "dimensions": Sentence(dimensions, ("dimensions",)),
    "images": Sentence(images, ("image_curves",)),
}
