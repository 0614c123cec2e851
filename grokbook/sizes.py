"""What stands behind verdicts: how large a record is against the one that is wanted, and how many networks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator

import xarray as xr

from grokbook.train.experiment import Experiment, Run, describe


def size_of(wanted: Experiment, found: Experiment) -> str:
    """``"full"``, with more seeds too, ``"fewer seeds"`` of the same conditions, or ``"smaller"``."""
    if wanted.hash == found.hash:
        return "full"
    without = [{repr(describe(dataclasses.replace(run, seed=0))) for run in one.runs} for one in (wanted, found)]
    if without[0] != without[1]:
        return "smaller"
    return "fewer seeds" if len(found.runs) < len(wanted.runs) else "full"


def fewer_seeds(experiment: Experiment) -> Iterator[Experiment]:
    """The same experiment with fewer and fewer of its seeds, as long as every condition is left."""
    of_condition: dict[Run, list[int]] = {}
    for i, run in enumerate(experiment.runs):
        of_condition.setdefault(dataclasses.replace(run, seed=0), []).append(i)
    for count in range(max(map(len, of_condition.values())) - 1, 0, -1):
        kept = sorted(i for own in of_condition.values() for i in own[:count])
        yield dataclasses.replace(experiment.select(kept), scale="reduced")


def networks(found: Iterable[xr.Dataset]) -> set[str]:
    """The distinct networks behind records, each by a digest of its recipe.

    What stands in two records, or twice in one, is one network, and so is what one record trains for longer; what is
    trained in another precision is not.
    """
    recipes = (json.loads(record.attrs["recipe"]) for record in found)
    apart = (({k: v for k, v in recipe.items() if k == "precision"}, recipe["runs"]) for recipe in recipes)
    runs = (run | {"steps": 0} | precision for precision, own in apart for run in own)
    return {hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:16] for run in runs}
