"""What a chapter commits records of: experiments at the paper's settings, and smaller ones that stand in for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Protocol

from grokbook.train import runner
from grokbook.train.experiment import Experiment


class Catalogue(Protocol):
    """A chapter's module of experiments.

    ``EXPERIMENTS`` has a factory by name whose defaults are the settings of its figure; ``REDUCED``, for some of
    them, what may stand in on the page where that has no record, the largest first: fewer seeds before smaller sizes.
    """

    EXPERIMENTS: dict[str, Callable[..., Experiment]]
    REDUCED: dict[str, tuple[Callable[[], Experiment], ...]]


def reduced(experiment: Experiment) -> Experiment:
    """The same, said to stand in for a larger one."""
    return dataclasses.replace(experiment, scale="reduced")


def at_paper_settings(catalogue: Catalogue, experiments: Mapping[str, Experiment]) -> set[str]:
    """Names of those experiments that are what their figure is committed with."""
    return {name for name, one in experiments.items() if one.hash == catalogue.EXPERIMENTS[name]().hash}


def stand_ins(catalogue: Catalogue, experiments: Mapping[str, Experiment]) -> dict[str, Experiment]:
    """The largest reduced experiment with a record, or else the smallest, for those at the paper's settings.

    At other settings nothing stands in.
    """
    found = {}
    for name in at_paper_settings(catalogue, experiments) & set(catalogue.REDUCED):
        candidates = [reduced(make()) for make in catalogue.REDUCED[name]]
        known = (one for one in candidates if runner.status(one, whole=False).state == "present")
        found[name] = next(known, candidates[-1])
    return found
