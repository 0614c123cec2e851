"""Four questions to every measure, on every family: is it first, does it cry wolf, does it foretell, does it know?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.across import CHAPTER, Settings
from grokbook.chapters.across import measures as measures  # all families and measures
from grokbook.chapters.across.transformer import HOLED
from grokbook.chapters.across.watched import WATCHED
from grokbook.chapters.across.zoo import FAMILIES
from grokbook.chapters.gu.theory import covered_fraction
from grokbook.chapters.liu.theory import grokking_rate
from grokbook.claims import Part, at_least, at_most
from grokbook.curves import at, first, last, median, ranks, spearman
from grokbook.measures.common import Array
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Run
from grokbook.words import percent

section = Section("answers")

LEVEL = 0.9  # share of answers that are right from which on a set counts as learnt
DRAWS = 200  # of the bootstrap
SHUFFLES = 4_000  # of the times, for what luck gains
GAIN = 0.2  # of rank correlation, which the first criterion asked of the best measure
BASELINES = ("train loss", "weight norm")
RIVALS = ("IPR", "strongest frequencies", "effective dimension", "weight norm", "gradient norm", "sharpness",
          "local complexity")  # of MED, in other papers and on Gu's network  # fmt: skip

# What is compared: the measures, and the two losses as reference and baseline.
CURVES = {"test loss": "test_loss", "train loss": "train_loss", **{name: one.log for name, one in WATCHED.items()}}
SHARES = {name for name, one in WATCHED.items() if one.share}


def short(value: float) -> str:
    """Two decimals without a leading zero: −.43, and 1 for what is whole."""
    if not np.isfinite(value):
        return "–" if np.isnan(value) else "∞"
    word = f"{round(value, 2) + 0:.2f}".removesuffix(".00").replace("-", "−") if abs(value) < 10 else f"{value:.0f}"
    return word.replace("0.", ".") if abs(value) < 1 else word


def curve(record: xr.Dataset, name: str) -> Array:
    """(run, step) a measure on the scale on which it is judged: shares as they are, all others by their logarithm."""
    values = record[CURVES[name]].values.astype(float)
    return values if name in SHARES else np.log(np.maximum(values, 1e-12))


class Times:
    """When the runs of a family learnt their training set and the rest: (run,), infinity for never.

    Attributes:
        fitted, done: the first measured steps with ``LEVEL`` of the training rows and of the others right.
        grok, never: which runs got there, and which learnt their training set only.
        random: which of these had a random table.
    """

    def __init__(self, record: xr.Dataset) -> None:
        self.fitted, self.done = (first(record, f"{split}_accuracy", LEVEL) for split in ("train", "test"))
        self.grok = np.isfinite(self.fitted) & np.isfinite(self.done)
        self.never = np.isfinite(self.fitted) & ~self.grok
        self.random = self.never & (record.label.values == "random table")


def judged(record: xr.Dataset) -> xr.Dataset:
    """The networks that questions are asked of: those with a hole answer all but the hole, and are on neither side."""
    return record.isel(run=np.flatnonzero(record.label.values != HOLED))


def half_way(record: xr.Dataset, values: Array, times: Times, *, since: Array | float = 0.0) -> Array:
    """(run,) when a curve has gone half of the family's way; infinity if never.

    The way is what it goes from a step (run,), the first one, to the last, in the median over the networks that
    generalise. One definition for all measures and for the loss; networks that never generalise are its null.
    """
    begin = np.broadcast_to(np.asarray(since, float), len(values))
    start = at(record, values, begin)
    way = float(np.median((last(record, values) - start)[times.grok])) if times.grok.any() else np.nan
    if np.isnan(way):
        return np.full(len(values), np.nan)
    gone = (values - start[:, None]) * np.sign(way) >= abs(way) / 2
    gone &= record.step.values >= begin[:, None]
    return np.where(gone.any(1) & (way != 0), record.step.values[gone.argmax(1)].astype(float), np.inf)


def follows(record: xr.Dataset, values: Array, times: Times) -> Array:
    """(run,) rank correlation of a curve with the test loss from where the training set is learnt; nan without that."""
    loss, steps = record.test_loss.values, record.step.values
    pairs = [[one[steps >= start] for one in two] for *two, start in zip(values, loss, times.fitted, strict=True)]
    return np.array([spearman(*pair) for pair in pairs])


def cut(record: xr.Dataset, share: float) -> xr.Dataset:
    """A record as if training had been stopped at a share of its steps."""
    return record.isel(step=np.flatnonzero(record.step.values <= share * record.step.values[-1]))


def half(record: xr.Dataset, name: str) -> float:
    """The step at which a measure is half of its way, over the steps to generalise; median over networks that do."""
    times = Times(record)
    return float(median((half_way(record, curve(record, name), times) / times.done)[times.grok]))


def gone(record: xr.Dataset, name: str) -> float:
    """The share of its own way that a measure has gone when the rest is learnt; median over networks that do."""
    values, times = curve(record, name), Times(record)
    way = (at(record, values, times.done) - values[:, 0]) / (last(record, values) - values[:, 0])
    return float(median(way[times.grok]))


def back(values: Array, times: Times) -> float:
    """How far a measure turns back, as a share of its own way; median over networks that generalise."""
    some = values[times.grok]
    some = some[:, np.isfinite(some).all(0)]
    if not some.size:
        return float("nan")
    way = some[:, -1:] - some[:, :1]
    forth = some * np.sign(way)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(median((np.maximum.accumulate(forth, 1) - forth).max(1) / np.abs(way[:, 0])))


def ends(record: xr.Dataset, name: str) -> float:
    """How surely a threshold on last values tells networks that have generalised from those that never do."""
    end, times = last(record, curve(record, name)), Times(record)
    return separation(end[times.never], end[times.grok])


def still_waiting(record: xr.Dataset) -> tuple[float, float]:
    """Of networks that will generalise, but have not at twice the time to learn the training set: the share of the
    rest that they answer then, in the median, and the rank correlation of the two times."""
    times = Times(record)
    some = times.grok & (times.done > 2 * times.fitted)
    answered = at(record, record.test_accuracy.values, 2 * times.fitted)
    return float(median(answered[some])), correlation(times.fitted[some], times.done[some])[0]


def within_settings(record: xr.Dataset) -> float:
    """How often the test loss ranks the times to come as well if it is dealt anew among the seeds of each setting."""
    times, draw = Times(record), np.random.default_rng(0)
    some = np.flatnonzero(times.grok & (times.done > 2 * times.fitted))
    values, label = at(record, record.test_loss.values, 2 * times.fitted)[some], record.label.values[some]
    order = np.argsort(label, kind="stable")
    places = np.unique(label[order], return_inverse=True)[1]
    dealt = [values[order][np.lexsort((draw.random(len(some)), places))] for _ in range(SHUFFLES)]
    ranks = np.array([spearman(one, times.done[some][order]) for one in (values[order], *dealt)])
    return float((ranks >= ranks[0] - 1e-9).mean())


def correlation(x: Array, y: Array) -> list[float]:
    """Spearman's, with the 5th and 95th percentile of a bootstrap over runs."""
    known = np.isfinite(x)
    x, y = x[known], np.minimum(y[known], 1e12)  # never is last
    if len(x) <= 3:
        return [spearman(x, y), np.nan, np.nan]
    drawn = np.stack([x, y])[:, np.random.default_rng(0).integers(0, len(x), (DRAWS, len(x)))]
    one, other = drawn[..., None], drawn[..., None, :]
    ranks = (one > other).sum(-1) + (one == other).sum(-1) / 2  # of all draws at once, equal values sharing theirs
    ranks -= ranks.mean(-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # a draw of one network only has no correlation
        again = ranks.prod(0).sum(-1) / np.sqrt((ranks**2).sum(-1).prod(0))
    again = again[np.isfinite(again)]
    return [spearman(x, y), *(np.percentile(again, (5, 95)) if len(again) else (np.nan, np.nan))]


def separation(before: Array, after: Array) -> float:
    """How surely one threshold tells two groups apart: the area under the ROC curve, .5 to 1; nan without either."""
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if not len(before) or not len(after):
        return float("nan")
    wins = (after[:, None] > before).mean() + (after[:, None] == before).mean() / 2
    return float(max(wins, 1 - wins))


def _gain(size: Mapping[str, Array]) -> Array:
    """|Rank correlation| of the best measure less that of the better baseline; each may have several draws."""
    others = [value for name, value in size.items() if name not in ("test loss", *BASELINES)]
    return np.nanmax(others, axis=0, initial=0.0) - np.max([size[name] for name in BASELINES], axis=0)


def chance(record: xr.Dataset, *, perfect: bool = False) -> Array:
    """(1 + SHUFFLES,) what the best measure gains: first as it is, then with the times to come dealt anew.

    The times of a setting stay together and go to another one, to any of its seeds. One setting with fewer networks
    than the others shifts the times by as many. A measure that is not known of all networks that wait is left out.
    Perfect: with one more measure, which knows the times to come.
    """
    times = Times(record)
    waiting = np.flatnonzero(times.done > 2 * times.fitted)
    if len(waiting) <= 3:
        return np.full(1 + SHUFFLES, np.nan)
    setting = np.unique(record.label.values[waiting], return_inverse=True)[1]
    order = np.argsort(setting, kind="stable")
    waiting, setting = waiting[order], setting[order]

    def scaled(values: Array) -> Array:
        centred = ranks(values[waiting]) - (len(waiting) + 1) / 2
        size = np.linalg.norm(centred)
        return centred / size if size and np.isfinite(values[waiting]).all() else np.full(len(waiting), np.nan)

    draw = np.random.default_rng(0)
    places = np.tile(np.arange(setting.max() + 1), (SHUFFLES, 1))
    drawn = draw.permuted(places, axis=1)[:, setting] + draw.random((SHUFFLES, len(waiting)))
    known = scaled(np.minimum(times.done, 1e12))  # never is last
    dealt = known[np.vstack([np.arange(len(waiting)), drawn.argsort(1)])]
    found = {name: scaled(at(record, curve(record, name), 2 * times.fitted)) for name in CURVES}
    found |= {"perfect": known} if perfect else {}
    return _gain({name: np.abs(dealt @ one) for name, one in found.items()})


def answers(record: xr.Dataset) -> xr.Dataset:
    """The four questions to each measure, from the trainings of one family.

    ``half`` (measure,): the step at which it is half of its way, over the steps to generalise; median over networks
    that do. ``lead`` (measure,): by how much that is before the test loss's, in the median. ``wolf`` (measure,): share
    of the networks that never generalise that go as far; ``wolf_random`` of those with a random table. ``lead_after``
    and its like are the same for the way from where the training set is learnt on. ``back`` (measure,): how far it
    turns back. ``follows`` (measure,): its rank correlation with the test loss once the training set is learnt, median
    over networks that generalise, ``close`` that of its size; ``follows_never`` over those that do not. ``later``
    (measure, value): rank correlation, with its interval, of the value after twice the time to learn the training set
    with the time to generalise, over networks that have not by then; ``rank`` (measure,) among those of them that will,
    ``which`` (measure,) how surely a threshold tells these from the others. ``knows`` (measure,): the same for networks
    that have generalised, at their end, and those that have not, at their end or when they learnt their training set.
    ``chance`` (draw,): what luck gains (see ``chance``).
    ``groks`` and ``never`` are how many of each there are, ``waiting`` how many of the first are still to come.
    """
    times = Times(record)
    waiting = times.done > 2 * times.fitted
    counts = {"groks": times.grok, "never": times.never, "waiting": waiting & times.grok}
    begins = {"": np.zeros(len(times.fitted)), "_after": times.fitted}
    references = {key: half_way(record, curve(record, "test loss"), times, since=t) for key, t in begins.items()}
    found: dict[str, list[object]] = defaultdict(list)
    for name in CURVES:
        values = curve(record, name)
        for key, begin in begins.items():
            moved = half_way(record, values, times, since=begin)
            with np.errstate(invalid="ignore"):
                lead = ((references[key] - moved) / times.done)[times.grok & np.isfinite(references[key])]
            lead = np.maximum(lead, -1.0)  # a measure that never moves comes last
            known = len(lead) and not np.isnan(moved).all()
            found[f"half{key}"].append(median(moved[times.grok] / times.done[times.grok]))
            found[f"lead{key}"].append(median(lead))
            for kind, some in ((f"wolf{key}", times.never), (f"wolf_random{key}", times.random)):
                found[kind].append(np.isfinite(moved[some]).mean() if known and some.any() else np.nan)
        beside = follows(record, values, times)
        found["follows"].append(median(beside[times.grok]))
        found["close"].append(median(np.abs(beside[times.grok])))
        found["follows_never"].append(median(beside[times.never]))
        found["back"].append(back(values, times))
        later = at(record, values, 2 * times.fitted)
        found["later"].append(correlation(np.where(waiting, later, np.nan), times.done))
        found["rank"].append(correlation(np.where(counts["waiting"], later, np.nan), times.done)[0])
        found["which"].append(separation(later[times.never], later[counts["waiting"]]))
        end, fit = last(record, values), at(record, values, times.fitted)
        found["knows"].append(separation(np.concatenate([fit, end[times.never]]), end[times.grok]))
    arrays = {key: np.array(rows, float) for key, rows in found.items()}
    return xr.Dataset(
        {key: (("measure", "value")[: rows.ndim], rows) for key, rows in arrays.items()}
        | {"chance": ("draw", chance(record))},
        {"measure": list(CURVES), "value": ["best", "low", "high"]},
        {key: int(some.sum()) for key, some in counts.items()},
    )


def predictors(runs: Sequence[Run]) -> dict[str, Array]:
    """What is known of each run before it is trained, (run,) each; nan where it has no meaning.

    The share of the table that is shown (over a critical share it would rank alike), Gu's coverage at a distance of 1
    (theorem 3.12), and Liu's grokking rate (below eq. 9).
    """
    found = np.full((3, len(runs)), np.nan)
    for place, run in enumerate(runs):
        mask = run.task.in_train(run.seed)
        side = round(len(mask) ** 0.5)
        found[0, place] = mask.mean()
        if side**2 == len(mask) and run.task.table()[0].shape[1] == 2:
            found[1, place] = covered_fraction(mask.reshape(side, side), 2)
        if isinstance(run.task, AdditionTask):
            found[2, place] = grokking_rate(run.task.train_pairs(run.seed), run.task.p)
    return dict(zip(("share shown", "coverage", "grokking rate"), found, strict=True))


def _study(family: str) -> Callable[..., xr.Dataset]:
    """The study of a family: its answers, and how data alone rank the times to come."""

    def study(s: Settings, **records: xr.Dataset) -> xr.Dataset:
        record = judged(records[family])
        found, done = answers(record), Times(record).done
        runs = [run for run in CHAPTER.experiments[family](s).runs if run.label != HOLED]
        known = predictors(runs) if len(runs) == len(done) else {}
        ranks = [correlation(values, done) for values in known.values()]
        return found.assign_coords(predictor=list(known)).assign(data=(("predictor", "value"), ranks))

    study.__name__ = f"{family}_answers"
    given = [Parameter(name, Parameter.KEYWORD_ONLY) for name in ("s", family)]
    study.__signature__ = Signature(given)  # type: ignore[attr-defined]
    return section.study(study)


for _family in FAMILIES:
    _study(_family)
ALL = tuple(f"{family}_answers" for family in FAMILIES)


def of(study: xr.Dataset, key: str, name: str) -> float:
    """One number of a measure: what a study has, without its interval."""
    return float(study[key].sel(measure=name).isel(value=0, missing_dims="ignore"))


def _each(key: str, name: str) -> Callable[..., list[float]]:
    """The same number in every family that has a place for the measure."""
    return lambda *studies: [x for x in (of(one, key, name) for one in studies) if np.isfinite(x)]


def reliable(*studies: xr.Dataset) -> int:
    """How many measures lead the test loss in every family that has a place for them, three at least, and are quiet."""
    good = 0
    for name in WATCHED:
        pairs = [(of(one, "lead", name), of(one, "wolf", name)) for one in studies]
        known = [pair for pair in pairs if np.isfinite(pair[0])]
        good += len(known) >= 3 and all(ahead >= 0.05 and not cries > 0.1 for ahead, cries in known)
    return good


def luck(study: xr.Dataset, least: float | None = None) -> float:
    """How often shuffled times give the best measure such a gain: the one it has, itself counted, or ``least``."""
    gains = study.chance.values
    if np.isnan(gains[0]):
        return float("nan")
    return float((gains >= gains[0] - 1e-9).mean() if least is None else (gains[1:] >= least).mean())


def by_luck(*studies: xr.Dataset) -> float:
    """How often shuffled times alone gain ``GAIN`` in at least three families."""
    odds = np.ones(1)  # of 0, 1, 2 and so on
    for share in (luck(one, GAIN) for one in studies):
        odds = np.convolve(odds, [1 - share, share])
    return float(odds[3:].sum())


def closeness(study: xr.Dataset) -> dict[str, float]:
    """How closely each measure follows the test loss, in whichever sense, where networks generalise; or nan."""
    return {name: of(study, "close", name) for name in WATCHED}


def clock(study: xr.Dataset) -> float:
    """What a threshold on the step itself tells, of networks that have generalised and others (see ``answers``)."""
    return (study.groks + 1.5 * study.never) / max(study.groks + 2 * study.never, 1)


def coin(study: xr.Dataset) -> float:
    """What a threshold on random numbers tells of as many networks, on average (see ``clock``)."""
    draw = np.random.default_rng(0)
    before, after = study.groks + 2 * study.never, study.groks
    return float(np.mean([separation(draw.random(before), draw.random(after)) for _ in range(DRAWS * 5)]))


def knows(name: str) -> Part:
    """Whether a threshold on it does."""
    return Part(
        "a threshold tells generalised networks from others", partial(of, key="knows", name=name), at_least(0.9)
    )


def _wolf(study: xr.Dataset, name: str, after: str = "") -> float:
    """Share of the networks that never generalise that go as far as the others; nan where these go nowhere either."""
    return of(study, f"wolf{after}", name) if np.isfinite(of(study, f"half{after}", name)) else float("nan")


def own(id: str, family: str, name: str, paper: str, said: str) -> None:
    """A paper's own measure on its own network."""

    def parts(after: str = "", since: str = "step 0") -> tuple[Part, ...]:
        before = f"half of its way since {since} before the test loss's, over t_test"
        wolf = f"networks that never generalise and go as far since {since}, where the others do"
        return (
            knows(name),
            Part(before, partial(of, key=f"lead{after}", name=name), at_least(0)),
            Part(wolf, partial(_wolf, name=name, after=after), at_most(0.1), percent),
        )

    section.claim(
        id,
        paper,
        f"On {FAMILIES[family].title} {name} is half-way before the logarithm of the test loss, only where networks "
        "generalise, and tells these from others.",
        *parts(),
        on=f"{family}_answers",
        paper=said,
        whose="ours",
        earlier=parts("_after", "t_train") if id == "own-rqi" else (),
    )


own("own-rqi", "toy", "RQI", "Liu et al. (2022)", "generalisation coincides with structure, which the RQI measures")
own("own-ipr", "mlp", "IPR", "Gromov (2023)", "the IPR grows with the formation of periodic weights")

section.claim(
    "own-med",
    "Gu et al. (2025)",
    f"On {FAMILIES['transformer'].title} MED follows the test loss once the training set is learnt, more closely where "
    "networks generalise, and tells these from others.",
    knows("MED"),
    Part("its rank correlation with the test loss since t_train, where networks generalise",
         partial(of, key="follows", name="MED"), at_least(0.5)),
    Part("the same, less that where they never do",
         lambda d: of(d, "follows", "MED") - of(d, "follows_never", "MED"), at_least(0.1)),
    on="transformer_answers",
    paper="MED follows the test loss and tells how far training is",
    whose="ours",
)  # fmt: skip
section.claim(
    "med-beyond",
    "Gu et al. (2025), with its control",
    "On its own network MED says more than the same distance between permuted residues.",
    Part(
        "what a threshold tells, less that of permuted MED",
        lambda d: of(d, "knows", "MED") - of(d, "knows", "MED, permuted"),
        at_least(0.05),
    ),
    on="transformer_answers",
    whose="ours",
)
section.claim(
    "med-closest",
    "Gu et al. (2025), abstract",
    f"On {FAMILIES['transformer'].title} MED follows the test loss more closely than any other paper's measure, where "
    "networks generalise.",
    Part("|rank correlation| with the test loss since t_train, of MED less the best of all others",
         lambda d: closeness(d)["MED"] - max(closeness(d)[name] for name in RIVALS), at_least(0.05)),
    on="transformer_answers",
    paper="MED “could trace the changes in test loss more accurately” than earlier progress measures",
    whose="ours",
)  # fmt: skip
section.claim(
    "ahead",
    "across the papers",
    "Some measure is half-way before the logarithm of the test loss in every family that has a place for it, and cries "
    "wolf in none.",
    Part("such measures, by their way since step 0", reliable, at_least(1)),
    on=ALL,
    whose="ours",
)
section.claim(
    "loss-quiet",
    "across the papers",
    "The test loss itself seldom cries wolf.",
    Part("networks that never generalise and whose test loss goes as far since step 0", _each("wolf", "test loss"),
         at_most(0.1), percent, every=True),
    on=ALL,
    whose="ours",
)  # fmt: skip
section.claim(
    "foretells",
    "across the papers",
    "Once the training set is learnt, the best measure ranks the times to come better than train loss and weight norm.",
    Part("families in which shuffling the settings gives its gain in at most 5 % of the draws",
         lambda *studies: sum(luck(one) <= 0.05 for one in studies), at_least(3)),
    on=ALL,
    forecast="fewer than three: the best of a dozen measures gains something by chance, and still not that much",
    note="On the perceptron and the toy, with few settings that wait, no measure could pass",
    whose="ours",
)  # fmt: skip
section.claim(
    "norm-knows",
    "across the papers",
    "The weight norm tells networks that have generalised from others, in every family.",
    Part("what a threshold tells", _each("knows", "weight norm"), at_least(0.9), every=True),
    on=ALL,
    forecast="not so: without decay the norm only grows",
    whose="ours",
)
section.claim(
    "norm-wolf",
    "across the papers",
    "In most families the weight norm cries wolf: it moves whether there is something to understand or not.",
    Part("random tables whose norm goes as far since step 0, median over families",
         lambda *d: float(median(_each("wolf_random", "weight norm")(*d))), at_least(0.5), percent),
    on=ALL,
    whose="ours",
)  # fmt: skip
section.claim(
    "sharp",
    "across the papers",
    "Sharpness, here one step of Keskar's maximiser and so a lower bound, tells networks that have generalised from "
    "others, in every family.",
    Part("what a threshold tells", _each("knows", "sharpness"), at_least(0.9), every=True),
    on=ALL,
    whose="ours",
)
