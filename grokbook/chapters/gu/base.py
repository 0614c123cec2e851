"""Section 6.1's baseline: modular addition from a random 30 % of its table."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.gu import Settings
from grokbook.chapters.gu.reading import reached, t_fit
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.chapters.gu.training import TRACKED, WindowedSchedule, condition, every
from grokbook.claims import Part, at_least, at_most, between
from grokbook.curves import last
from grokbook.measures.common import Array
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Share, Steps
from grokbook.train.experiment import Experiment, Schedule
from grokbook.words import percent, times

section = Section("base")


@section.experiment(smaller=[{"seeds": 1}])
def base(s: Settings) -> Experiment:
    """Section 6.1's random baseline, and p = 97 of Fig. 5: every 10 steps, and ten windows of single steps."""
    task, model = HoledTask(s.p, "n + m", s.train_fraction), PairTransformer(s.p, s.d_model)
    return Experiment(
        "gu/base",
        every(s.seeds, [(f"p = {s.p}", task, model, s.steps)]),
        WindowedSchedule(log=60, every=10),
        (*TRACKED, "accuracy_by_place"),
        snapshots=tuple(dict.fromkeys(round(s.steps * i / 30) for i in range(31))),
        keep=("W_E",),
    )


@section.experiment()
def without_decay(s: Settings) -> Experiment:
    """The abstract's first insight: the first network of the baseline, without weight decay."""
    full = base(s)
    run = dataclasses.replace(full.runs[0], optimizer=dataclasses.replace(full.runs[0].optimizer, weight_decay=0.0))
    return dataclasses.replace(full, name="gu/without_decay", runs=(run,))


@section.experiment(smaller=[{"seeds": 1}], quick={"share": 0.4, "steps": 200})
def too_few(s: Settings, *, share: Share = 0.2, steps: Steps = 25_000) -> Experiment:
    """The abstract's "not a sufficient condition": under weight decay as well, on too few pairs to generalise from."""
    runs = every(s.seeds, [condition(f"p = {s.p}", s.p, share, s.d_model, steps)])
    return Experiment("gu/too_few", runs, Schedule(log=60, every=100), TRACKED, snapshots=(0, -1), keep=("W_E",))


def plane(record: xr.Dataset, run: int) -> tuple[Array, int]:
    """The two principal axes of a run's final embedding, (d, 2), and the strongest frequency on them."""
    p = int(record.p.values[run])
    final = record.W_E.values[run, -1, :p].astype(float)
    axes = np.linalg.svd(final - final.mean(0), full_matrices=False)[2][:2].T
    return axes, int(measures.ring_share(final @ axes).frequency)


def unevenness(record: xr.Dataset, snapshot: int) -> dict[str, Array]:
    """How unevenly the residues' embeddings lie at a snapshot, each (run,), 0 where they are perfectly even.

    ``pairs`` and ``nearest``: the spread (sd / mean) of all distances, and of each residue's to the nearest other.
    ``circle``: by how many degrees (circular sd) they miss equal places on the circle of their strongest frequency.
    """
    p = int(record.p.values[0])
    tokens = record.W_E.values[:, snapshot, :p].astype(float)  # (run, p, d)
    apart = np.linalg.norm(tokens[:, :, None] - tokens[:, None], axis=-1)  # (run, p, p)
    pairs, nearest = apart[:, *np.triu_indices(p, 1)], (apart + np.diag(np.full(p, np.inf))).min(-1)
    back = np.exp(-2j * np.pi * measures.ring_share(tokens).frequency[:, None] * np.arange(p) / p)  # (run, p)
    wave = back[:, None] @ tokens  # (run, 1, d)
    missed = np.angle((tokens @ wave.conj().swapaxes(1, 2))[..., 0] * back)
    spread = {name: one.std(1) / one.mean(1) for name, one in {"pairs": pairs, "nearest": nearest}.items()}
    return spread | {"circle": np.degrees(measures.circular_sd(missed))}


UNEVEN = {"nearest": "spread of nearest distances", "circle": "angles missed"}  # on circles all distances differ


section.claim(
    "base",
    "Sec. 6.1",
    "With a random 30 % of the pairs the rest is understood around step 5,000, and all at the end.",
    Part("t_0.5", lambda record: reached(record, 0.5), between(2500, 9000)),
    Part("test accuracy at the end", lambda record: last(record, "test_accuracy"), at_least(0.99), percent),
    Part("t_fit", t_fit, at_most(500)),
    on="base",
    paper="“begins to rise steadily around epoch 5000”, read as half; 100 % at the end",
    forecast="t_0.5 of 4,400 and 5,900 (two earlier runs)",
)  # fmt: skip
section.claim("uniform", "Abstract", "Under weight decay the tokens come to lie more evenly than at the start.",
    *(Part(f"{words}, end / start", lambda r, n=name: unevenness(r, -1)[n] / unevenness(r, 0)[n], at_most(0.8), times)
      for name, words in UNEVEN.items()),
    on="base")  # fmt: skip
section.claim("uniform-decay", "Abstract", "It is weight decay that makes the tokens lie more evenly.",
    *(Part(f"{words} at the end, without decay / with it",
           lambda bare, full, n=name: unevenness(bare, -1)[n] / unevenness(full, -1)[n][:1], at_least(1.25), times)
      for name, words in UNEVEN.items()),
    on=("without_decay", "base"), forecast="of the circle alone, since without decay nothing groks")  # fmt: skip
section.claim("uniform-alone", "Abstract",
    "Under weight decay tokens come to lie evenly also on too few random pairs to understand.",
    Part("test accuracy at the end, shown too little", lambda few, _: last(few, "test_accuracy"), at_most(0.1), percent,
         every=True, premise=True),
    Part("angles missed at the end, shown too little / enough",
         lambda few, full: np.median(unevenness(few, -1)["circle"]) / np.median(unevenness(full, -1)["circle"]),
         at_most(2), times),
    on=("too_few", "base"), paper="“merely leads to token uniformity, which is not a sufficient condition”",
    note="Networks on even sets are the paper's case: a circle, and no rule",
    forecast="not even: the circle comes with the rule")  # fmt: skip
