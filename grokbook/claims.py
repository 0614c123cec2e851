"""Claims as data: a statement, its parts, and the verdict that follows from them.

A part is one measured quantity and the bound that it must meet. The criterion that a page prints, what it says we found
and the verdict are read off the parts, so a threshold stands once. Parts are registered (``grokbook.register``) before
the record exists; a later change is kept there, with why.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from grokbook.checks import one_of
from grokbook.measures.common import unmeasured
from grokbook.words import number

OUTCOMES = ("reproduced", "partly", "not reproduced", "undecided", "not tested")
SIZES = ("full", "fewer seeds", "smaller")  # of a record, against the setting that its figure is meant to have

Records = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Bound:
    """What a number must meet."""

    words: str  #: as a criterion says it; ``{}`` stands where a threshold is written in the part's unit
    thresholds: tuple[float, ...]  #: the numbers for ``words``
    holds: Callable[[float], bool]  #: of a number; infinity is "never", and nan meets no bound

    def say(self, show: Callable[[float], str]) -> str:
        """The bound in a unit, as "at least 99 %"; without one as in code, thirds as "2/3"."""
        plain = [str(Fraction(x).limit_denominator(3)) if x * 3 % 1 == 0 else f"{x:g}" for x in self.thresholds]
        return self.words.format(*(plain if show is number else map(show, self.thresholds)))


def _kind(words: str, holds: Callable[..., bool]) -> Callable[..., Bound]:
    """A kind of bound: thresholds -> bound, from its words and from a function of the number and the thresholds."""
    return lambda *thresholds: Bound(words, thresholds, lambda x: holds(x, *thresholds))


at_least = _kind("at least {}", lambda x, low: x >= low)
at_most = _kind("at most {}", lambda x, high: x <= high)
above = _kind("above {}", lambda x, low: x > low)
below = _kind("below {}", lambda x, high: x < high)
between = _kind("between {} and {}", lambda x, low, high: low <= x <= high)
near = _kind("{} ± {}", lambda x, value, within: abs(x - value) <= within)
exactly = _kind("exactly {}", lambda x, value: x == value)  # for counts
REACHED = Bound("reached", (), lambda x: bool(np.isfinite(x)))  # a time that is not "never"


@dataclass(frozen=True)
class Finding:
    """What a part gave."""

    part: Part
    value: float  #: that decides
    seeds: NDArray[np.float64]  #: (n,) the values it comes from
    holds: bool  #: whether the bound is met
    size: str  #: of the smallest record that it rests on
    decides: bool = True  #: whether it decides where it fails: not on a training that is too small, or too short

    @property
    def ours(self) -> str:
        """The value in the part's unit, with range and n where it stands for several."""
        show, known = self.part.say, self.seeds[~np.isnan(self.seeds)]
        if len(known) < 2:
            return show(self.value)
        low, high = show(float(known.min())), show(float(known.max()))
        return f"{show(self.value)} ({low} to {high}, n = {len(known)})" if low != high else f"{low} (n = {len(known)})"


@dataclass(frozen=True)
class Part:
    """A measured quantity and the bound it must meet."""

    quantity: str  #: what is measured, as a reader says it: "delay t_test / t_train"
    measure: Callable[..., ArrayLike]  #: a function of records and studies; one number, or one a seed
    bound: Bound
    show: Callable[[float], str] = number  #: number -> text in its unit
    every: bool = False  #: whether each seed must meet the bound; else the median decides
    on: tuple[str, ...] = ()  #: names of the records and studies that it gets; empty if its arguments are called so
    #: When a training is too short for a failure to decide: in words, and as a function of what ``measure`` gets.
    open: tuple[str, Callable[..., Any]] | None = None
    premise: bool = False  #: whether a control meets it as well, so that alone it shows nothing of the claim

    def say(self, value: float) -> str:
        """A value in the part's unit."""
        return "nothing to measure" if np.isnan(value) else self.show(value)

    @property
    def criterion(self) -> str:
        """The part in words, as the register holds it."""
        every, premise = ", in every run" if self.every else "", " (a premise)" if self.premise else ""
        return f"{self.quantity}: {self.bound.say(self.show)}{every}{premise}" + (
            f"; a failure is open where {self.open[0]}" if self.open else ""
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the records and studies it reads."""
        arguments = inspect.signature(self.measure).parameters.values()
        return self.on or tuple(one.name for one in arguments if one.default is one.empty)

    def find(self, records: Records) -> Finding:
        """Measure, and hold against the bound; ``KeyError`` where a record is missing."""
        found = [records[name] for name in self.needs]
        with unmeasured():
            seeds = np.atleast_1d(np.asarray(self.measure(*found), float)).ravel()
        known = seeds[~np.isnan(seeds)]
        value = float(np.median(known)) if len(known) else float("nan")
        deciding = seeds if self.every else [value]
        holds = len(deciding) > 0 and all(not np.isnan(x) and self.bound.holds(float(x)) for x in deciding)
        size = smallest(record.attrs.get("size", "full") for record in found)
        return Finding(self, value, seeds, holds, size, size != "smaller" and not (self.open and self.open[1](*found)))


def smallest(sizes: Any) -> str:
    """The least of several sizes."""
    return SIZES[max((SIZES.index(size) for size in sizes), default=0)]


@dataclass(frozen=True)
class Verdict:
    """What the records say about a claim."""

    outcome: str  #: one of ``OUTCOMES``
    findings: tuple[Finding, ...] = ()  #: one a part
    size: str = "full"  #: of the smallest record behind it
    note: str = ""  #: what else a reader must know, as the command that makes a missing record
    told: str = ""  #: what decides, in words, where the parts that counted are no longer there to say it

    @property
    def line(self) -> str:
        """What we found, in a line: the parts that fail, first what was measured, or else the first; two at most."""
        failed = [one for one in self.findings if not one.holds]
        telling = sorted(failed, key=lambda one: np.isnan(one.value)) or list(self.findings)
        found = ((one.part, one.ours if one.part.every else one.part.say(one.value)) for one in telling[:2])
        return self.told or "; ".join(f"{part.quantity}: {value}" for part, value in found)


def lesser(today: Verdict, before: Verdict) -> Verdict:
    """The one that counts, today's if both agree: a change of a criterion after its record never raises a verdict."""
    order = ("reproduced", "partly", "undecided", "not reproduced", "not tested")
    return max(today, before, key=lambda one: order.index(one.outcome))


@dataclass(frozen=True)
class Claim:
    """A statement that records can decide."""

    id: str  #: short name, unique in its chapter
    figure: str  #: the paper's figure or section, as a reader would say it ("Fig. 1a")
    statement: str  #: what is claimed, in our words
    parts: tuple[Part, ...]  #: all must hold for "reproduced", one that is no premise for "partly"
    paper: str = ""  #: what the paper reports, with its place if that is not ``figure``; empty if it gives no number
    forecast: str = ""  #: what we expected before training, and from what
    note: str = ""  #: what a reader must know beside the verdict, as that it is a hair's
    whose: str = "paper"  #: or ``"ours"``, for a question that we put to it
    #: The parts as registered, where they were changed after the record with no error in them; see ``lesser``.
    earlier: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        one_of(f"whose claim {self.id} is", self.whose, ("paper", "ours"))
        if not self.parts:
            raise ValueError(f"{self.id}: a claim needs at least one part")

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of all records and studies that its parts read."""
        return tuple(dict.fromkeys(name for part in (*self.parts, *self.earlier) for name in part.needs))

    def judge(self, records: Records, *, before: bool = False) -> Verdict:
        """The verdict by today's parts, or by the earlier ones, where there are any.

        A part that fails on a training smaller than the paper's, or too short to tell, decides nothing; "not tested"
        where a record is missing.
        """
        parts = (before and self.earlier) or self.parts
        if any(name not in records for part in parts for name in part.needs):
            return Verdict("not tested")
        findings = tuple(part.find(records) for part in parts)
        if not (failed := [one for one in findings if not one.holds]):
            outcome = "reproduced"
        elif not any(one.decides for one in failed):
            outcome = "undecided"
        else:
            outcome = "partly" if any(one.holds and not one.part.premise for one in findings) else "not reproduced"
        return Verdict(outcome, findings, size=smallest(one.size for one in findings))
