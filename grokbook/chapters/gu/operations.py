"""Other operations, Figs 12 to 19: what MED does there, and what of the rule the symmetries leave to find."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings, reading
from grokbook.chapters.gu.training import QUADRATIC, TRACKED, condition, every
from grokbook.claims import REACHED, Part, at_least, at_most
from grokbook.curves import median
from grokbook.measures.common import Array
from grokbook.settings import Share, Steps, Width
from grokbook.train.experiment import Experiment, Schedule, Stop
from grokbook.train.records import conditions, select
from grokbook.words import percent, times

section = Section("operations")

FIGURES: dict[str, tuple[str, int, float]] = {  # figure of the paper -> f, width and training share
    "fig12": ("n - m", 128, 0.3),
    "fig13": ("n*m", 128, 0.3),
    "fig14": ("n**2 + m**2", 256, 0.2),
    "fig15": ("n**3 + m**3", 128, 0.2),
    "fig16": (QUADRATIC, 128, 0.3),
    "fig17": (QUADRATIC, 256, 0.3),
    "fig18": (QUADRATIC, 256, 0.4),
    "fig19": ("n**3 + n*m + m**3", 256, 0.5),
}


@section.experiment(
    smaller=[{"seeds": 1}, {"p": 43, "width": 64, "share": 0.7, "seeds": 1, "steps": 10_000}],
    quick={"p": 31, "width": 32, "share": 0.7, "steps": 40},
)
def operations(s: Settings, *, width: Width = 0, share: Share = 0.0, steps: Steps = 20_000) -> Experiment:
    """Figs 12 to 19: other operations, each at its figure's width and share unless these are given for all."""
    conditions = (
        condition(figure, s.p, share or alpha, width or d, steps, f) for figure, (f, d, alpha) in FIGURES.items()
    )
    runs, measured = every(s.few, conditions), (*TRACKED, "accuracy_by_place")
    return Experiment("gu/operations", runs, Schedule(log=60, every=20), measured)


@section.experiment(smaller=[{"seeds": 1}], quick={"steps": 40})
def subtraction(s: Settings, *, steps: Steps = 60_000) -> Experiment:
    """Fig. 12 for longer: the figure's training of subtraction, until it has grokked."""
    f, width, alpha = FIGURES["fig12"]
    runs = every(s.seeds, [condition("fig12", s.p, alpha, width, steps, f)])
    return Experiment("gu/subtraction", runs, Schedule(log=60, every=25), TRACKED, stop=Stop(evaluations=40))


def trainings(record: xr.Dataset) -> dict[str, xr.Dataset]:
    """The distinct trainings behind figures, by the figures that each stands for: "16 to 18" where they share one."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for figure, runs in conditions(record):
        recipe = tuple(runs[name].values[0].item() for name in ("f", "p", "d_model", "train_fraction", "steps"))
        groups.setdefault(recipe, []).append(figure)
    named = {" to ".join(dict.fromkeys((one[0][3:], one[-1][3:]))): one[0] for one in groups.values()}
    return {name: select(record, label=figure) for name, figure in named.items()}


def beyond(record: xr.Dataset) -> Array:
    """(run,) of the test pairs that no symmetry carries into the training set, the least share answered at the end.

    A network that knows the symmetries and nothing else answers their share S, and has 0 here however large S is;
    nan where S leaves fewer than ten pairs. It is a lower bound: all that S answers is taken as right.
    """
    share = reading.symmetry_share(record, whole=True)
    pairs = np.array([(~reading.mask_of(record, run)).sum() for run in range(record.sizes["run"])])
    return np.where((1 - share) * pairs >= 10, (reading.settled(record, "test_accuracy") - share) / (1 - share), np.nan)


def levels(record: xr.Dataset) -> list[float]:
    """Test accuracy of knowing all symmetries of a function and, where the mirror is one of them, of that one alone."""
    known = (True, False) if reading.MIRROR in reading.KEPT[str(record.f.values[0])] else (True,)
    return [float(median(reading.symmetry_share(record, whole=whole))) for whole in known]


def past_mirrors(record: xr.Dataset) -> Array:
    """(run,) by how much the best accuracy exceeds the share of test pairs whose mirror was trained."""
    return reading.best(record) - reading.symmetry_share(record)


def medians(record: xr.Dataset, measure: Callable[[xr.Dataset], Array]) -> Array:
    """The median seed of every distinct training that memorises; one nan if none does."""
    judged = [runs for runs in trainings(record).values() if np.isfinite(median(reading.t_fit(runs)))]
    return np.array([float(median(measure(runs))) for runs in judged] or [np.nan])


section.claim("fig12-19-med", "Figs 12 to 19",
    "MED tracks the test loss for other operations, too, and more closely than its controls.",
    Part("Spearman(MED, test loss) after t_fit, least over operations",
         lambda r: medians(r, reading.correlation).min(), at_least(0.8)),
    Part("share of 100-step increments with the sign of the test loss's, least",
         lambda r: medians(r, reading.agreement).min(), at_least(0.75)),
    Part("lead of Spearman's over the best of permuted MED, R and W, least",
         lambda r: medians(r, reading.lead).min(), at_least(0.05)),
    on="operations", note="The lead over controls is ours to ask")  # fmt: skip


def delay(record: xr.Dataset) -> float:
    """How many times t_fit the median t_0.9 is; nan where it is never."""
    most, fit = (float(median(times)) for times in (reading.reached(record, 0.9), reading.t_fit(record)))
    return most / fit if np.isfinite(most) else np.nan


RISES = "accuracy still rises", lambda r: reading.still_rising(r).any()
section.claim("fig12-groks", "Earlier Fig. 11", "Subtraction groks.",
    Part("t_0.9", lambda r: median(reading.reached(r, 0.9)), REACHED, open=RISES),
    Part("t_0.9 / t_fit", delay, at_least(5), times, open=RISES),
    on="subtraction")  # fmt: skip

section.claim("fig13-15", "Figs 13 to 15",
    "Products and sums of powers generalise, beyond what their symmetries answer.",
    *(
        Part(f"right, at least, where no symmetry of {f} helps", lambda r, name=name: beyond(select(r, label=name)),
             at_least(0.5), percent)
        for name, f in (("fig13", "xy"), ("fig14", "x² + y²"), ("fig15", "x³ + y³"))
    ),
    on="operations", whose="ours")  # fmt: skip

FORM = ("fig16", "fig17", "fig18")
section.claim("fig16-18", "Figs 16 to 18", "x² + xy + y² is answered where its mirror was trained, and no further.",
    Part("best accuracy − share of trained mirrors, largest",
         lambda r: medians(select(r, f=QUADRATIC), past_mirrors).max(), at_most(0.1)),
    Part("accuracy on pairs with a trained mirror, at the end, least",
         lambda r: medians(select(r, f=QUADRATIC), partial(reading.settled, name="accuracy_mirrored")).min(),
         at_least(0.9), percent),
    on="operations", whose="ours")  # fmt: skip
