"""Figs 3, 10, 12 and 2: what trained networks make of a training set, beside what it would allow."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapter import Section
from grokbook.chapters.liu import Settings, theory
from grokbook.chapters.liu.training import Sizes, as_authors, of_sizes, toy_run, train_sets, two_groups
from grokbook.claims import Part, at_least, at_most, below, exactly
from grokbook.curves import last, median
from grokbook.measures.common import Array
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW
from grokbook.settings import Seeds, Steps
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Run, Schedule
from grokbook.train.records import select
from grokbook.words import percent

section = Section("networks")

SIZES = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 54)

_fractions = partial(of_sizes, optimizers={"": two_groups()}, schedule=Schedule(log=30), snapshots=(-1,))


@section.experiment(quick={"steps": 200, "sizes": (20, 35, 50)})
def fractions(s: Settings, *, steps: Steps = 5_000, sizes: Sizes = SIZES) -> Experiment:
    """Figs 3 and 10: accuracy and structure after training on more or less of the table, all of it at every step."""
    return _fractions(s, "fractions", sizes, steps)


@section.experiment(quick={"steps": 200})
def fractions_batched(s: Settings, *, steps: Steps = 5_000) -> Experiment:
    """Figs 3 and 10: the training sets above 45 samples in batches of 45, as in the authors' code."""
    return _fractions(s, "fractions_batched", SIZES, steps, batched=True)


FAST_DECODER, SLOW_DECODER = "decoder 1e-2, embeddings 1e-3", "decoder 1e-3, embeddings 1e-2"


@section.experiment(quick={"steps": 200, "seeds": 4})
def four_symbols(s: Settings, *, steps: Steps = 1_500, seeds: Seeds = 20) -> Experiment:
    """Fig. 12: which of the three equations among four symbols a fast and a slow decoder leave standing."""
    task = AdditionTask(4, 6, pairs=((0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2)))
    ways = {FAST_DECODER: two_groups(1e-2, embedding=1e-3), SLOW_DECODER: two_groups(1e-3, embedding=1e-2)}
    runs = [toy_run(task, optimizer, steps, seed, label) for label, optimizer in ways.items() for seed in range(seeds)]
    return Experiment("liu/four_symbols", tuple(runs), Schedule(log=40), snapshots=(-1,), keep=("W_E",))


@section.experiment(quick={"seeds": 2, "shorten": 50})
def planes(s: Settings, *, seeds: Seeds = 8, shorten: Steps = 1) -> Experiment:
    """Fig. 2: embeddings in a plane and what the decoder makes of it, for four settings.

    The network of (a) is as deep as the text says, with an activation after every hidden layer. The settings of (d)
    are ours. There is one symbol more than elsewhere, as in the paper; ``shorten`` divides the numbers of steps.
    """
    p = s.p + 1
    unordered, ordered = p * (p + 1) // 2, p * p
    mean: dict[str, Any] = {"input_scale": 0.5}
    rows: tuple[tuple[str, AdditionTask, dict[str, Any], AdamW, int, str], ...] = (
        ("a", AdditionTask(p, round(0.7 * unordered), 0), {"hidden": (256,) * 7, **mean},
         two_groups(1e-3, 0.0, 2e-4), 401, "mse"),
        ("b", AdditionTask(p, round(0.8 * ordered), 0, ordered=True), {"hidden": (128,) * 2, "normal": 1.0, **mean},
         two_groups(9e-5, 5.0, 1e-3), 20_000, "mse"),
        ("c", AdditionTask(p, round(0.8 * unordered), 0, modular=True), {"hidden": (256,) * 5},
         two_groups(1e-5, 10.0, 1e-3), 10_000, "cross_entropy"),
        ("d", AdditionTask(p, round(0.8 * unordered), 0, modular=True), {"hidden": (128,) * 2},
         two_groups(5e-4, 10.0, 3e-3), 8_000, "cross_entropy"),
    )  # fmt: skip
    runs = []
    for label, task, settings, optimizer, full, loss in rows:
        model = AdditionDecoder(p, 2, outputs=task.labels, activation="relu", **settings)
        steps = max(1, full // shorten)
        runs += [Run(task, model, optimizer, steps, seed, loss, label=label) for seed in range(seeds)]
    return Experiment("liu/planes", tuple(runs), Schedule(log=60), snapshots=(-1,), keep=("W_E", "decoder_map"))


def allowed(record: xr.Dataset) -> xr.Dataset:
    """What every run ended with beside what its embeddings and its training set allow.

    Over run: ``fraction`` of the table trained on, ``accuracy`` on all samples, ``predicted`` from the embeddings (eqs
    12, 13), ``ideal_accuracy`` (eq. 17), ``rqi`` and ``ideal_rqi`` (eq. 16); ``_strict`` is with delta 0.01.
    ``unearned`` is the share of all parallelograms that close and are not implied (eq. 15), ``chance`` that share in
    random embeddings that obey the training set.
    """
    p = int(record.p.values[0])
    embedding = record.W_E.isel(snapshot=-1).values.astype(float)
    held = np.array([theory.which_held(pairs, p) for pairs in train_sets(record)])  # (run, sample)
    seen, implied = held.mean(-1), theory.implied(held, p)  # (run,), (run, parallelogram)
    gaps, random = measures.parallelogram_gaps(embedding), np.random.default_rng(0).normal(size=(1_000, p, 1))
    luck = [measures.parallelogram_gaps(theory.ground_state(one, p, random)) <= 0.01 for one in held]
    columns: dict[str, Any] = {
        "fraction": seen,
        "accuracy": seen * last(record, "train_accuracy") + (1 - seen) * last(record, "test_accuracy"),
        "predicted": theory.predicted_accuracy(embedding, held),
        "predicted_strict": theory.predicted_accuracy(embedding, held, 0.01),
        "ideal_accuracy": theory.share_reached(held, implied, measures.sums_of(p).couples),
        "rqi": measures.representation_quality_index(embedding),
        "rqi_strict": measures.representation_quality_index(embedding, 0.01),
        "ideal_rqi": implied.mean(-1),
        "unearned": ((gaps <= 0.1) & ~implied).mean(-1),
        "unearned_strict": ((gaps <= 0.01) & ~implied).mean(-1),
        "chance_strict": [(one & ~own).mean() for one, own in zip(luck, implied, strict=True)],
    }
    return xr.Dataset({name: ("run", np.asarray(column, float)) for name, column in columns.items()})


@section.study
def outcomes(fractions: xr.Dataset, fractions_batched: xr.Dataset) -> xr.Dataset:
    """`allowed` of the networks trained as the authors' were: sets above the batch size in batches."""
    return as_authors(fractions, fractions_batched, allowed)


#: E0 + E2 = 2 E1, E0 + E3 = E1 + E2 and E1 + E3 = 2 E2
FOUR_EQUATIONS = np.array([[1, -2, 1, 0], [1, -1, -1, 1], [0, 1, -2, 1]])


def formed(record: xr.Dataset, label: str) -> NDArray[np.bool_]:
    """Which of the three equations among four symbols hold at the end to 0.1, (run, 3)."""
    embedding = measures.standardised(select(record, label=label).W_E.isel(snapshot=-1).values.astype(float))[..., 0]
    return np.abs(embedding @ FOUR_EQUATIONS.T) <= 0.1


def at_end(record: xr.Dataset, label: str, split: str) -> Array:
    """(run,) an accuracy at the end of the networks of one panel of Fig. 2."""
    return last(select(record, label=label), f"{split}_accuracy")


def best_ring(record: xr.Dataset) -> tuple[int, Array]:
    """Of the networks of Fig. 2 (d) the best on held-out samples, of equals the best ring; and all ring shares."""
    share = measures.ring_share(select(record, label="d").W_E.isel(snapshot=-1).values.astype(float)).share
    return int(np.lexsort((share, at_end(record, "d", "test")))[-1]), share


def mirrors(record: xr.Dataset) -> xr.Dataset:
    """Held-out ordered pairs of the networks of Fig. 2 (b), whose input is the same either way.

    Over run: ``held`` pairs; how many are ``mirrored``, trained on the other way round; how many of the others are
    ``right``, and the share of them that is ``ideal``. The record keeps accuracies, not answers, but a network that
    knows its whole training set knows all mirrored pairs too; where it does not, ``right`` is nan.
    """
    own, p = select(record, label="b"), int(record.p.values[0])
    sets = np.array(list(train_sets(own)))
    seen, ideal = theory.as_table(sets, p), theory.ideal_accuracy(sets, p, held_out=True)
    held, mirrored = (~seen).sum((1, 2)), (~seen & seen.swapaxes(1, 2)).sum((1, 2))
    right = np.round(last(own, "test_accuracy") * held) - mirrored
    right = np.where(last(own, "train_accuracy") > 1 - 1e-6, right, np.nan)
    columns = {"held": held, "mirrored": mirrored, "right": right, "ideal": ideal}
    return xr.Dataset({name: ("run", column) for name, column in columns.items()})


def _at_45(found: xr.Dataset, name: str) -> float:
    """The mean of a column over the networks of 45 of 55 samples."""
    return float(found[name].values[np.isclose(found.fraction, 45 / 55, atol=0.01)].mean())


def _middle_gain(found: xr.Dataset) -> float:
    """Mean accuracy over memorising at 25 to 35 of 55 samples."""
    middle = (found.fraction > 0.44) & (found.fraction < 0.65)
    return float((found.accuracy - found.fraction).values[middle].mean())


section.claim(
    "fig3",
    "Fig. 3",
    "The accuracy of a network is what its embeddings allow.",
    Part("correlation of accuracy and prediction",
        lambda found: np.corrcoef(found.accuracy, found.predicted)[0, 1], at_least(0.97)),
    Part("mean difference", lambda found: np.abs(found.accuracy - found.predicted).mean(), at_most(0.05)),
    Part("mean accuracy at 45 of 55 samples", partial(_at_45, name="accuracy"), at_least(0.9)),
    Part("mean gain over memorising at 25 to 35 samples", _middle_gain, at_least(0.05)),
    on="outcomes",
    paper="correlation 0.996, mean difference 0.019 (33 networks, released)",
)  # fmt: skip


#: what eqs 16 and 17 bound, and by what
IDEAL = {"rqi": "ideal_rqi", "predicted": "ideal_accuracy"}


def _excess(found: xr.Dataset, name: str, high: bool) -> float:
    """The most by which the index or predicted accuracy exceeds the ideal one, from a share of 0.45 on or below it."""
    above = (found[f"{name}_strict"] - found[IDEAL[name]]).values[(found.fraction.values >= 0.45) == high]
    return round(float(above.max()), 6)


def above_ideal(found: xr.Dataset, name: str) -> NDArray[np.bool_]:
    """(run,) whether an accuracy, predicted or measured, is above the ideal one."""
    return (found[name] > found.ideal_accuracy + 1e-6).values  # measured ones are single-precision


def _bounded(words: str, name: str, most: float, high: bool) -> Part:
    return Part(f"largest {words}", partial(_excess, name=name, high=high), at_most(most))


section.claim(
    "fig10-real",
    "Eqs 16, 17, Fig. 10",
    "Real models stay at or below the ideal ones, but for very rare lucky ones.",
    _bounded("predicted accuracy (δ = 0.01) above the ideal one, from r = 0.45 on", "predicted", 0.02, True),
    _bounded("index (δ = 0.01) above, from r = 0.45 on", "rqi", 0.05, True),
    _bounded("predicted accuracy (δ = 0.01) above, below r = 0.45", "predicted", 0.2, False),
    _bounded("index (δ = 0.01) above, below r = 0.45", "rqi", 0.2, False),
    Part("networks above in predicted accuracy (δ = 0.01)", lambda found: above_ideal(found, "predicted_strict").mean(),
        at_most(0.05), percent),
    Part("mean index (δ = 0.01) at 45 of 55 samples", partial(_at_45, name="rqi_strict"), at_least(0.5)),
    on="outcomes",
    paper="“very rare”",
)  # fmt: skip


def left_open(found: xr.Dataset) -> xr.Dataset:
    """The networks whose training set does not imply every parallelogram."""
    return found.isel(run=np.flatnonzero(found.ideal_rqi < 1))


def not_implied(found: xr.Dataset, strict: str = "_strict") -> float:
    """Of the parallelograms that form where a training set leaves some open, the share that it does not imply."""
    left = left_open(found)
    return float(left[f"unearned{strict}"].sum() / left[f"rqi{strict}"].sum())


def by_chance(found: xr.Dataset) -> float:
    """The same share in random embeddings that obey these sets, which close all that is implied (δ = 0.01)."""
    left = left_open(found)
    return float(left.chance_strict.sum() / (left.chance_strict + left.ideal_rqi).sum())


section.claim("alexander", "Eq. 15, App. E",
    "A parallelogram forms only where the training set implies it, but for very rare luck.",
    Part("parallelograms formed (δ = 0.01) that are not implied, where the set does not imply all", not_implied,
        at_most(0.05), percent),
    on="outcomes", paper="P(R) ⊆ P(D), “very rare” exceptions")  # fmt: skip


section.claim(
    "fig12",
    "Fig. 12",
    "A fast decoder leaves equations broken that a slow one lets the embeddings satisfy.",
    Part("mean number of equations, slow decoder less fast one",
        lambda record: formed(record, SLOW_DECODER).sum(1).mean() - formed(record, FAST_DECODER).sum(1).mean(),
        at_least(1)),
    Part("all three hold, slow decoder",
        lambda record: formed(record, SLOW_DECODER).all(1).mean(), at_least(0.5), percent),
    Part("all three hold, fast decoder",
        lambda record: formed(record, FAST_DECODER).all(1).mean(), at_most(0.25), percent),
    Part("networks with exactly two, which imply the third",
        lambda record: sum((formed(record, one).sum(1) == 2).sum() for one in (FAST_DECODER, SLOW_DECODER)),
        at_most(2)),
    on="four_symbols",
    forecast="0.55 and 2.60 equations; all three in 16 of 20 with the slow decoder",
)  # fmt: skip


def _possible(record: xr.Dataset) -> int:
    """How many of the five sets of equations that can hold do so in some network; two imply the third."""
    held = np.concatenate([formed(record, one) for one in (FAST_DECODER, SLOW_DECODER)])
    return len(np.unique(held[held.sum(1) != 2], axis=0))


section.claim("fig12-all", "Fig. 12, App. E",
    "Between them the two settings give every representation that geometry allows.",
    Part("sets of equations that hold in some network, of the five possible", _possible, exactly(5)),
    on="four_symbols", paper="“actually generates all possible representations”")  # fmt: skip


def _best_new(record: xr.Dataset) -> float:
    """The best share of pairs whose mirror image is held out too, over what an ideal model would know of them."""
    pairs = mirrors(record)
    return float(np.nanmax(pairs.right / np.maximum(pairs.held - pairs.mirrored, 1) / pairs.ideal))


def _of_best(record: xr.Dataset, split: str) -> float:
    """An accuracy at the end of the network that Fig. 2 (d) shows."""
    return float(at_end(record, "d", split)[best_ring(record)[0]])


section.claim(
    "fig2",
    "Fig. 2",
    "Two settings memorise and two generalise, the modular one of these with a ring.",
    Part("(a) training accuracy", lambda record: median(at_end(record, "a", "train")), at_least(0.99)),
    Part("(a) held-out accuracy", lambda record: median(at_end(record, "a", "test")), at_most(0.3)),
    Part("(c) training accuracy", lambda record: median(at_end(record, "c", "train")), at_least(0.99)),
    Part("(c) held-out accuracy", lambda record: median(at_end(record, "c", "test")), at_most(0.3)),
    Part("(b) best held-out accuracy", lambda record: at_end(record, "b", "test").max(), at_least(0.8)),
    Part("(b) best on pairs without a mirror image in training, over an ideal model's", _best_new, at_least(0.8)),
    Part("(d) the best network's training accuracy", lambda record: _of_best(record, "train"), at_least(0.98)),
    Part("(d) its held-out accuracy", lambda record: _of_best(record, "test"), at_least(0.6)),
    Part("(d) its ring share", lambda record: best_ring(record)[1][best_ring(record)[0]], at_least(0.9)),
    Part("(d) smallest ring share", lambda record: best_ring(record)[1].min(), below(0.6)),
    on="planes",
    paper="four networks; how they were chosen is not said",
    forecast="best of 8 in (b) and (d); one in four in (d)",
)
