"""What makes the lottery, the training set that was dealt or the first weights? Each set is learnt from each start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu.tasks import CircledTask, HoledTask
from grokbook.chapters.gu.theory import units
from grokbook.chapters.power.tasks import OperationTask
from grokbook.chapters.power.training import ADAMW, GRID, batch
from grokbook.chapters.waits import Settings
from grokbook.claims import Part, at_least
from grokbook.curves import least_t_test
from grokbook.measures.common import Array, ratio
from grokbook.models.decoder import Decoder
from grokbook.models.pair_transformer import PairTransformer
from grokbook.optim import WarmAdamW
from grokbook.settings import Share, Steps, whole
from grokbook.tasks import ModularTask
from grokbook.train.experiment import Experiment, Run, Schedule, Stop
from grokbook.words import percent
from grokbook.words import times as as_times

section = Section("dealt")

HOW = WarmAdamW(1e-3, 1.0, (0.9, 0.98))  # Gu's transformer is trained
NUDGE = 1e-6  # by which share of itself a learning rate differs from the next
LEVEL, STRICT = 0.9, 0.99  # of claims, and at which a training ends, so that the page's may be another
FAMILIES = ("Gu's transformer", "Power's decoder")
SHUFFLES = 2_000  # of the times, for what luck gives
# Of which waves embeddings are made: at first, when the training set is being learnt, when it is, and in the end.
KEPT: dict[str, Any] = {"snapshots": (0, 100, 300, 1_000, -1), "keep": ("waves", "shown")}


@dataclass(frozen=True)
class Dealt:
    """A task whose training set is that of one seed, whichever seed a run has."""

    task: Any  #: which splits by seed
    deal: int  #: the seed of its training set
    version: ClassVar[int] = 1

    @property
    def train_size(self) -> int:
        """How many rows are trained on."""
        return self.task.train_size

    def table(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Inputs (rows, ...) and answers (rows,)."""
        return self.task.table()

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows are trained on, (rows,); the same for every seed."""
        return self.task.in_train(self.deal)


@section.experiment(quick={"steps": 6})
def transformer_dealt(s: Settings, *, share: Share = 0.4, steps: Steps = 15_000) -> Experiment:
    """Gu's transformer on addition: as many first weights as training sets, each with each, on full batches."""
    task = ModularTask(s.small_p, "n + m", share)
    runs = tuple(
        Run(Dealt(task, deal), PairTransformer(s.small_p), HOW, steps, seed, "cross_entropy", label=f"deal {deal}")
        for deal, seed in product(range(s.seeds), repeat=2)
    )
    return Experiment("waits/transformer_dealt", runs, Schedule(log=60, every=10), stop=Stop(threshold=STRICT), **KEPT)


@section.experiment(quick={"steps": 6})
def decoder_dealt(s: Settings, *, share: Share = 0.4, steps: Steps = 15_000) -> Experiment:
    """Power's decoder on addition: as many first weights, and orders of batches, as training sets, each with each."""
    task = OperationTask("x+y", s.p, share)
    return _decoders(s, "dealt", {f"deal {deal}": Dealt(task, deal) for deal in range(s.seeds)}, steps)


@section.experiment(quick={"steps": 6})
def nudged(s: Settings, *, share: Share = 0.4, steps: Steps = 15_000) -> Experiment:
    """Some of the transformers of ``transformer_dealt`` with learning rates that differ in the seventh digit."""
    task = ModularTask(s.small_p, "n + m", share)
    rates = [replace(HOW, lr=HOW.lr * (1 + NUDGE * nudge)) for nudge in range(s.seeds)]
    runs = tuple(
        Run(Dealt(task, seed), PairTransformer(s.small_p), how, steps, seed, "cross_entropy", label=f"nudge {nudge}")
        for nudge, how in enumerate(rates) for seed in range(s.seeds)
    )  # fmt: skip
    return Experiment("waits/nudged", runs, Schedule(log=60, every=10), stop=Stop(threshold=STRICT))


@section.experiment(quick={"steps": 6})
def decoder_circled(
    s: Settings, *, share: Share = 0.4, circles: Annotated[int, whole(1)] = 8, steps: Steps = 15_000
) -> Experiment:
    """Power's decoder on addition, as in ``decoder_dealt``, from sets that show some waves on purpose."""
    task = CircledTask(s.p, "n + m", share, min(circles, len(units(s.p)) // 2))
    return _decoders(s, "circled", {"": task}, steps)


@section.experiment(quick={"steps": 6})
def decoder_stratified(s: Settings, *, share: Share = 0.4, steps: Steps = 15_000) -> Experiment:
    """Beside ``decoder_circled``: sets of which each sum is spread out as evenly, and that show no wave on purpose."""
    return _decoders(s, "stratified", {"": HoledTask(s.p, "n + m", share, split="stratified")}, steps)


def _decoders(s: Settings, how: str, tasks: Mapping[str, Any], steps: int) -> Experiment:
    """Power's decoder on tasks by label, each with all seeds."""
    runs = (
        Run(task, Decoder(s.p), ADAMW, steps, seed, "cross_entropy", batch(task.train_size), label, "short")
        for label, task in tasks.items() for seed in range(s.seeds)
    )  # fmt: skip
    return Experiment(f"waits/decoder_{how}", tuple(runs), GRID, stop=Stop(threshold=STRICT), **KEPT)


def times(record: xr.Dataset, level: float) -> Array:
    """(deal or nudge, seed) the steps at which the rest is learnt; its last step for a network that never does."""
    deals, seeds = (np.unique(record[of].values) for of in ("label", "seed"))
    return least_t_test(record, level).reshape(len(deals), len(seeds))


def shares(values: Array) -> tuple[float, float]:
    """Of the variance of (deal, seed) the shares that rows and columns explain; what is left is of the pair alone.

    Of (deal, seed, wave) that of each wave, pooled.
    """
    rows, columns = (values.mean(axis).var(0).mean() / values.var((0, 1)).mean() for axis in (1, 0))
    return float(rows), float(columns)


def components(rows: float, columns: float, of: int) -> Array:
    """(3,) the parts of rows, of columns and of the pair in the variance, less what luck gives; from `shares`."""
    left = (1 - rows - columns) / (of - 1) ** 2  # a degree of freedom
    parts = np.array([(rows / (of - 1) - left) / of, (columns / (of - 1) - left) / of, left])
    return parts / parts.sum()


def ceiling(own: float, other: float, of: int) -> float:
    """The most that rows' part may be, of theirs and the pair's: the end of a 95 % interval; from `shares`."""
    from scipy.stats import f  # type: ignore[import-untyped]

    luck = (1 - own - other) / (of - 1) * f.ppf(0.025, of - 1, (of - 1) ** 2)
    beyond = max(own - luck, 0.0)
    return float(ratio(beyond, beyond + of * luck))


@section.study
def deals(transformer_dealt: xr.Dataset, decoder_dealt: xr.Dataset, s: Settings) -> xr.Dataset:
    """(family, of) shares of the variance of ln t_test by the deal and by the weights; (family,) what at most 5 % of
    shuffles of the times give by luck."""
    draw, found = np.random.default_rng(0), []
    for record in (transformer_dealt, decoder_dealt):
        values = np.log(times(record, s.level))
        luck = [shares(draw.permuted(values.ravel()).reshape(values.shape))[0] for _ in range(SHUFFLES)]
        found.append([*shares(values), np.percentile(luck, 95)])
    table = np.array(found)
    data = {"share": (("family", "of"), table[:, :2]), "luck": ("family", table[:, 2])}
    return xr.Dataset(data, {"family": list(FAMILIES), "of": ["deal", "weights"]})


@section.study
def choice(transformer_dealt: xr.Dataset, decoder_dealt: xr.Dataset) -> xr.Dataset:
    """``share`` (family, look, of) of the variance of the logarithm of a wave's power by the deal and by the weights.

    Also ``own`` and ``others`` (family, look, by): the mean power of embeddings in the quarter of waves that a network
    is shown most, has most of before training, or that both speak for; and in the quarters of others.
    """
    looks, records = KEPT["snapshots"], (transformer_dealt, decoder_dealt)
    part = [[shares(np.log(by_deal(record, "waves", i))) for i in range(len(looks))] for record in records]
    own, others = np.moveaxis(np.array([[favoured(one, i) for i in range(len(looks))] for one in records]), -1, 0)
    of, axes = ["deal", "weights"], ("family", "look", "by")
    data = {"share": (("family", "look", "of"), part), "own": (axes, own), "others": (axes, others)}
    return xr.Dataset(data, {"family": list(FAMILIES), "look": list(looks), "of": of, "by": [*of, "both"]})


def by_deal(record: xr.Dataset, name: str, snapshot: int) -> Array:
    """(deal, seed, wave) what was kept under that name."""
    deals, seeds = (len(np.unique(record[of].values)) for of in ("label", "seed"))
    return record[name].values[:, snapshot].reshape(deals, seeds, -1)


def told(record: xr.Dataset, waves: int) -> tuple[Array, Array]:
    """(run,) what a training set shows at so many waves, those that it shows most; what embeddings end with there."""
    shown, power = record.shown.values[:, 0], record.waves.values[:, -1]
    most = np.argsort(-shown, axis=-1, kind="stable")[:, :waves]
    of_set, of_network = (np.take_along_axis(one, most, -1).sum(-1) for one in (shown, power))
    return of_set, of_network


def taken(record: xr.Dataset) -> Array:
    """(run,) the power of embeddings, in the end, at the waves that their circles show most, as many as there are."""
    return told(record, int(record.circles.values[0]))[1]


def ranks(record: xr.Dataset) -> NDArray[np.int64]:
    """(by, deal, seed, wave) the waves' places by what speaks for them before training; 0 for most.

    By what the training set shows, by what the first embeddings have, and by the sum of both, standardised logarithms.
    """
    shown, start = (np.log(by_deal(record, name, 0)) for name in ("shown", "waves"))
    scores = [(one - one.mean(-1, keepdims=True)) / one.std(-1, keepdims=True) for one in (shown, start)]
    return np.argsort(np.argsort(-np.stack([*scores, scores[0] + scores[1]]), axis=-1, kind="stable"), axis=-1)


def quarters(record: xr.Dataset) -> NDArray[np.bool_]:
    """(by, deal, seed, wave) the quarter of all waves for which most speaks before training."""
    places = ranks(record)
    return places < max(1, places.shape[-1] // 4)


def favoured(record: xr.Dataset, snapshot: int) -> Array:
    """(by, 2) the mean power at a snapshot in networks' own ``quarters`` and in those of other sets and weights."""
    waves = by_deal(record, "waves", snapshot)
    deal, seed = np.indices(waves.shape[:2]).reshape(2, -1)
    foreign = (deal[:, None] != deal) & (seed[:, None] != seed)
    of_all = waves.reshape(len(deal), -1)
    power = [of_all @ quarter.reshape(of_all.shape).T for quarter in quarters(record)]  # (network, whose quarter)
    return np.array([[np.diag(one).mean(), one[foreign].mean()] for one in power])


def chaos(nudged: xr.Dataset, transformer_dealt: xr.Dataset) -> float:
    """Scatter of ln t_test among nudges of one pair, pooled, over that among all pairs of training set and weights."""
    among, pairs = (np.log(times(one, LEVEL)) for one in (nudged, transformer_dealt))
    return float(np.sqrt(among.var(axis=0, ddof=1).mean()) / pairs.std(ddof=1))


def sooner(slow: xr.Dataset, fast: xr.Dataset) -> float:
    """How many times as long one record's networks take to learn the rest as another's, in the median."""
    return float(np.median(least_t_test(slow, LEVEL)) / np.median(least_t_test(fast, LEVEL)))


def _each(quantity: str, measure: Callable[[xr.Dataset], Any], *how: Any) -> list[Part]:
    """A part for each family, which measures what a study has of it."""
    return [
        Part(f"{quantity}, {family}", lambda study, family=family: measure(study.sel(family=family)), *how)
        for family in FAMILIES
    ]


section.claim(
    "dealt",
    "all papers",
    "What makes the lottery is the training set that was dealt, not the first weights.",
    *_each("of the variance of ln t_test, five training sets by five first weights, what the set explains",
           lambda deals: deals.share.sel(of="deal"), at_least(0.5), percent),
    on="deals",
    whose="ours",
    note="Five by five networks are few: a set that makes half of the variance meets it in one draw of two",
)  # fmt: skip
section.claim(
    "chaos",
    "beside Gu et al. (2025)",
    "A learning rate that differs in its seventh digit makes a transformer's wait another one.",
    Part("scatter of ln t_test among nudges, over that among training sets and weights", chaos, at_least(0.5)),
    whose="ours",
)
section.claim(
    "waves-shown",
    "all papers",
    "A network uses the waves that its random training set happens to show most.",
    *_each(
        "power of the embeddings in the quarter of waves that their training set shows most / in other sets' quarters",
        lambda choice: (choice.own / choice.others).sel(look=-1, by="deal"),
        at_least(1.5),
        as_times,
    ),
    on="choice",
    forecast="2, as of the three trainings of Gu's baseline",
    whose="ours",
)
section.claim(
    "waves-dealt",
    "all papers",
    "What decides of which waves a network's embeddings are made is the training set, more than the first weights.",
    *_each("of the variance of the logarithm of a wave's power, what the set explains beyond the weights",
           lambda choice: choice.share.sel(look=-1, of="deal") - choice.share.sel(look=-1, of="weights"),
           at_least(0.1), percent),
    on="choice",
    whose="ours",
)  # fmt: skip
section.claim(
    "circled-decoder",
    "beside Power et al. (2022)",
    "Power's decoder, too, understands sooner if its training set shows eight waves on purpose.",
    Part(
        "median t_0.9, 25 random trainings / on eight circles",
        sooner,
        at_least(2),
        as_times,
        on=("decoder_dealt", "decoder_circled"),
    ),
    Part(
        "median power of the embeddings at the eight waves shown, of 48, at the end",
        lambda decoder_circled: float(np.median(taken(decoder_circled))),
        at_least(0.5),
        percent,
    ),
    forecast="3, and 80 %, as of Gu's transformer",
    whose="ours",
)
section.claim(
    "control-decoder",
    "beside Power et al. (2022)",
    "It is the eight waves that teach Power's decoder sooner, not that each sum is spread out.",
    Part("median t_0.9, each sum spread out irregularly / on eight circles", sooner, at_least(1.5), as_times),
    on=("decoder_stratified", "decoder_circled"),
    forecast="holds: 2; of Gu's transformer it was 3",
    whose="ours",
)
