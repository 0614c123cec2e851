"""Fig. 4: more data that does not help, and what a network knows that answers mirrored pairs only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import Settings
from grokbook.chapters.gu.reading import best, settled, symmetry_share
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import QUADRATIC, TRACKED, every
from grokbook.claims import Part, above, at_least, at_most, below
from grokbook.curves import last, median, sweep
from grokbook.measures.common import Array
from grokbook.models.embedded_mlp import EmbeddedMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Width
from grokbook.train.experiment import Experiment, Schedule
from grokbook.train.records import select
from grokbook.words import percent

section = Section("fractions")


@section.experiment(smaller=[{"seeds": 1}], quick={"steps": 40})
def fractions(s: Settings) -> Experiment:
    """Fig. 4: x^2 + xy + y^2 at growing training fractions; 0.9 is ours."""
    model = PairTransformer(s.p, s.d_model)
    return Experiment(
        "gu/fractions",
        every(s.seeds, ((f"α = {a}", HoledTask(s.p, QUADRATIC, a), model, s.steps) for a in s.fractions)),
        Schedule(log=60, every=25),
        (*TRACKED, "accuracy_by_place"),
        snapshots=(-1,),
        keep=("correct",),
    )


@section.experiment(
    smaller=[{"seeds": 1}, {"p": 47, "d_model": 64, "width": 128, "seeds": 1, "steps": 4_000}],
    quick={"width": 64, "steps": 40},
)
def dnn(s: Settings, *, width: Width = 512) -> Experiment:
    """Section 6.1's "2-layer DNN", with the two hidden layers of the released code, on x^2 + xy + y^2 and on x + y."""
    model = EmbeddedMLP(s.p, s.d_model, width)
    return Experiment(
        "gu/dnn",
        every(
            s.few, ((f, HoledTask(s.p, f, a), model, s.steps) for f in (QUADRATIC, "n + m") for a in (0.3, 0.5, 0.7))
        ),
        Schedule(log=60, every=50),
        (*TRACKED, "accuracy_by_place"),
    )


def ceilings(record: xr.Dataset) -> tuple[Array, Array]:
    """(n,) fractions and the median of the best smoothed accuracy A at each."""
    alphas, table = sweep(record, "train_fraction", best)
    return alphas, median(table, axis=0)


def left(record: xr.Dataset) -> float:
    """Largest over smallest A (1 - alpha), over the paper's fractions."""
    alphas, tops = ceilings(record)
    rest = (tops * (1 - alphas))[np.isin(alphas, (0.5, 0.6, 0.7))]
    return float(rest.max() / rest.min())


def largest(record: xr.Dataset) -> xr.Dataset:
    """The runs of the largest fraction."""
    return select(record, train_fraction=float(record.train_fraction.values.max()))


def unexplained(record: xr.Dataset, answered: Callable[[xr.Dataset], Array] = best) -> Array:
    """(run,) at the largest fraction, (A - m) / (1 - m): accuracy left for pairs without a trained mirror.

    m is the share of the run's test pairs whose mirror was trained, all of which are taken as right.
    """
    most = largest(record)
    m = symmetry_share(most)
    return (answered(most) - m) / (1 - m)


def signs(record: xr.Dataset) -> Array:
    """(run,) of the same pairs, the share that a change of both signs carries into the training set."""
    return unexplained(record, partial(symmetry_share, whole=True))


def beyond_mirrors(record: xr.Dataset) -> Array:
    """(run,) what is unexplained, nan for a network that has not learnt its training set and the mirrors."""
    most = largest(record)
    learnt = (last(most, "train_accuracy") >= 0.999) & (settled(most, "accuracy_mirrored") >= 0.9)
    return np.where(learnt, unexplained(most), np.nan)


section.claim(
    "fig4-rise", "Fig. 4", "The ceiling for x² + xy + y² rises with the training fraction.",
    Part("least rise of the best accuracy A from one fraction to the next",
        lambda fractions: np.diff(ceilings(fractions)[1]).min(), above(0), percent),
    paper="rises", forecast="as mirrors do, .50 to .90",
)  # fmt: skip
section.claim(
    "fig4-constant", "Fig. 4",
    "From α = 0.5 to 0.7 A (1 − α), the number of right answers, stays the same.",
    Part("largest / smallest A (1 − α)", lambda fractions: left(fractions), at_most(1.25)),
    paper="about constant", forecast="1.19, if mirrors are all",
)  # fmt: skip
section.claim(
    "fig4-mirror",
    "beyond Fig. 4",
    "What is right are the pairs (i, j) whose mirror (j, i) was trained, and nothing else.",
    Part("accuracy of mirrored test pairs at α = 0.5",
        lambda fractions: settled(select(fractions, train_fraction=0.5), "accuracy_mirrored"), at_least(0.9), percent),
    Part("accuracy of the others",
        lambda fractions: settled(select(fractions, train_fraction=0.5), "accuracy_unmirrored"), at_most(0.3), percent),
    forecast="as in a small run, .83 and .02", whose="ours",
)  # fmt: skip
section.claim(
    "fig4-more", "Fig. 4", "The form x² + xy + y² does not generalise with more data.",
    Part("accuracy left for pairs without a trained mirror at the largest α, of networks that answer 99.9 % of the "
         "training set and 90 % of the mirrored pairs", beyond_mirrors, below(0.5), percent),
    on="fractions",
    paper="never reaches 1",
    forecast="other work has symmetric polynomials generalise from enough data",
)  # fmt: skip


def on_form(f: str, alpha: float, values):
    """Of the network with two hidden layers, (run,) values of the runs of one function and fraction."""
    return lambda record: values(select(record, f=f, train_fraction=alpha))


section.claim(
    "dnn-form",
    "Sec. 6.1",
    "A 2-layer DNN fails on x² + xy + y², while it works on x + y.",
    *(
        part
        for alpha in (0.5, 0.7)
        for part in (
            Part(f"α = {alpha}: best accuracy on the form", on_form(QUADRATIC, alpha, best), at_most(0.05), percent),
            Part(f"α = {alpha}: train accuracy there",
                on_form(QUADRATIC, alpha, partial(last, curve="train_accuracy")), at_least(0.999), percent),
        )
    ),
    Part("α = 0.5: best accuracy on x + y", on_form("n + m", 0.5, best), at_least(0.9), percent),
    on="dnn", paper="around 1 % on the form, at α = 0.5 to 0.7; works on functions of a linear structure",
)  # fmt: skip
