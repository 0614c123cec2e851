"""How loudly must a training set speak? Some waves are shown on purpose, from not at all to as well as can be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapter import Section
from grokbook.chapters.gu.tasks import CircledTask
from grokbook.chapters.gu.theory import by_sum, units
from grokbook.chapters.waits import Settings
from grokbook.chapters.waits.dealt import HOW, KEPT, LEVEL, STRICT, told
from grokbook.claims import Part, at_least, at_most
from grokbook.curves import least_t_test, median, spearman
from grokbook.measures.common import Array
from grokbook.models.pair_transformer import PairTransformer
from grokbook.settings import Range, Share, Steps, several, whole
from grokbook.train.experiment import Experiment, Run, Schedule, Stop
from grokbook.train.records import select
from grokbook.words import percent, times

section = Section("doses")

FROM_NONE_TO_ALL = Range("a number from 0 to 1", lambda one: 0 <= one <= 1)


@dataclass(frozen=True)
class BlurredTask(CircledTask):
    """A `CircledTask` of whose pairs only a share is kept; in place of the others as many of the same sums are drawn.

    Args:
        kept: that share, from 0, random pairs of each sum, to 1. A seed has the same circles at every share.

    Raises:
        ValueError: what ``CircledTask`` refuses, or a share out of range.
    """

    kept: float = 1.0
    split_fields: ClassVar[tuple[str, ...]] = ("train_fraction", "circles", "kept")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.kept <= 1:
            raise ValueError(f"kept must be from 0 to 1, got kept={self.kept!r}")

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows of the table a seed trains on: (p*p,), ``train_size`` of them true."""
        rows, draw = by_sum(super().in_train(seed).reshape(self.p, self.p)), np.random.default_rng((seed, 1))
        count = rows.sum(1, keepdims=True)
        stays = _places(np.where(rows, draw.random(rows.shape), 2)) < np.round(self.kept * count)
        chosen = _places(np.where(stays, -1, draw.random(rows.shape))) < count
        i, j = np.indices(rows.shape)
        return chosen[(i + j) % self.p, i].ravel()


def _places(values: Array) -> NDArray[np.int64]:
    """Each value's place in its row, 0 for the least."""
    return values.argsort(axis=1).argsort(axis=1)


@section.experiment(quick={"steps": 6, "kept": (0, 0.6, 0.8, 1)})
def doses(
    s: Settings,
    *,
    share: Share = 0.4,
    circles: Annotated[int, whole(1)] = 8,
    kept: Annotated[tuple[float, ...], several(FROM_NONE_TO_ALL)] = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    steps: Steps = 15_000,
) -> Experiment:
    """Gu's transformer as in ``transformer_dealt``, from sets of whose circles more and more is kept."""
    most = min(circles, len(units(s.small_p)) // 2)
    tasks = [BlurredTask(s.small_p, "n + m", share, most, float(one)) for one in kept]
    runs = tuple(
        Run(task, PairTransformer(s.small_p), HOW, steps, seed, "cross_entropy")
        for seed in range(s.seeds) for task in tasks
    )  # fmt: skip
    return Experiment("waits/doses", runs, Schedule(log=60, every=10), stop=Stop(threshold=STRICT), **KEPT)


def on_purpose(p: int, share: float, circles: int, seed: int) -> NDArray[np.bool_]:
    """(p // 2,) which waves a seed's full circles show: of each sum that on which its trained pairs are even.

    These are more than circles where sums have a pair more or less, for on one circle these are even on another wave.
    """
    rows = by_sum(CircledTask(p, "n + m", share, circles).in_train(seed).reshape(p, p))
    return np.isin(np.arange(p // 2), np.abs(np.fft.rfft(rows, axis=1))[:, 1 : p // 2 + 1].argmax(1))


def meant(doses: xr.Dataset) -> NDArray[np.bool_]:
    """(run, p // 2) the waves `on_purpose`, whatever is kept of them."""
    runs = zip(*(doses[name].values.tolist() for name in ("p", "train_fraction", "circles", "seed")), strict=True)
    return np.array([on_purpose(p, share, int(circles), seed) for p, share, circles, seed in runs])


def at_purpose(doses: xr.Dataset, random: xr.Dataset) -> tuple[Array, Array, Array]:
    """(run,) what sets show at the waves meant, and what embeddings end with there; for chance (list of waves, network)
    the same of networks of ``random`` sets."""
    lists = meant(doses)
    shown, has = ((of * lists).sum(-1) for of in (doses.shown.values[:, 0], doses.waves.values[:, -1]))
    return shown, has, np.unique(lists, axis=0) @ random.waves.values[:, -1].T


def more(doses: xr.Dataset, kept: float) -> float:
    """What embeddings end with at the waves that sets show most, less what these show there; the median of seeds."""
    shown, has = told(select(doses, kept=kept), int(doses.circles.values[0]))
    return float(median(has - shown))


def beyond(doses: xr.Dataset, transformer_dealt: xr.Dataset) -> float:
    """What embeddings end with at the waves meant, less what networks of random sets have there: of 60 to 90 % kept,
    the least median of seeds."""
    _, has, luck = at_purpose(doses, transformer_dealt)
    return float(min(median(has[doses.kept.values == one]) for one in _softly(doses)) - median(luck.ravel()))


def _softly(doses: xr.Dataset) -> list[float]:
    return [kept for kept in np.unique(doses.kept.values) if 0.55 < kept < 1]


def wait(doses: xr.Dataset, kept: float) -> float:
    """The median t_0.9 of seeds."""
    return float(median(least_t_test(select(doses, kept=kept), LEVEL)))


_MORE = Part(
    "power of the embeddings at the eight waves shown most less the set's, 60 to 90 % kept, least",
    lambda doses: min(more(doses, kept) for kept in _softly(doses)),
    at_least(0.1),
    percent,
)
section.claim(
    "doses-taken",
    "beside Gu et al. (2025)",
    "A network makes more of the waves that its training set shows on purpose than the set does, and than luck would.",
    dataclasses.replace(_MORE, premise=True),
    Part(
        "power at the waves meant less that in networks of random sets, 60 to 90 % kept, least",
        beyond,
        at_least(0.1),
        percent,
    ),
    earlier=[_MORE],
    forecast="15 %, with 60 % kept, where the set shows no more than luck would",
    whose="ours",
)
section.claim(
    "doses-sooner",
    "beside Gu et al. (2025)",
    "The more a training set shows eight waves, the sooner it is understood.",
    Part(
        "rank correlation of t_0.9 with the share kept, over networks",
        lambda doses: spearman(doses.kept.values, least_t_test(doses, LEVEL)),
        at_most(-0.5),
    ),
    forecast="-0.8",
    whose="ours",
)
section.claim(
    "doses-half",
    "beside Gu et al. (2025)",
    "Four fifths of full circles are enough to halve the wait.",
    Part("median t_0.9, 80 % kept / none", lambda doses: wait(doses, 0.8) / wait(doses, 0.0), at_most(0.5), times),
    forecast="0.5; with all kept 0.35",
    whose="ours",
)
