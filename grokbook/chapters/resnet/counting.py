"""What different kinds of knowledge would score: memory of permutations, confused symbols, rough sums, neighbours.

Nothing here is trained.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.resnet import Settings, theory
from grokbook.chapters.resnet.tasks import ShapeSum, dictionary

section = Section("counting")

MERGED = {
    "symbols known in pairs": (3, 2),
    "9 to 12 sides look alike": (9, 4),
    "11 and 12 look alike": (11, 2),
}  # from this number of sides on, how many in a row look the same
SIGMAS = (1.0, 1.1, 1.2, 1.3)


@section.study
def memories(s: Settings) -> xr.Dataset:
    """Share of test pictures that a memory of the training set answers, by what it does not tell apart."""
    shares = [theory.orbit_share(s.symbols, group, s.train_size) for group in theory.GROUPS]
    return xr.Dataset({"share": ("group", shares)}, {"group": list(theory.GROUPS)})


@section.study
def rough_sums(s: Settings) -> xr.Dataset:
    """Accuracy of who knows the sum up to a normal error."""
    return xr.Dataset({"exact": ("sigma", list(map(theory.noisy_accuracy, SIGMAS)))}, {"sigma": list(SIGMAS)})


@section.study
def confusions(s: Settings) -> xr.Dataset:
    """The best accuracy of who confuses some symbols and adds without error."""
    symbols = dictionary(s.symbols)
    return xr.Dataset(
        {"accuracy": ("merged", [theory.merged_accuracy(symbols, alike(symbols, *how)) for how in MERGED.values()])},
        {"merged": list(MERGED)},
    )


def alike(symbols: tuple[int, ...], begin: int, count: int) -> list[int]:
    """A class for each symbol: those with at least ``begin`` sides in groups of ``count``, the others on their own."""
    return [side if side < begin else begin + (side - begin) // count * count for side in symbols]


@section.study
def neighbours(s: Settings) -> xr.Dataset:
    """Accuracy of rules that need no network: the most frequent label, the nearest training picture, least squares."""
    task = ShapeSum(dictionary(s.symbols), s.train_size)
    (places, labels), train = task.table(), task.in_train(0)
    values = np.array(task.symbols)[places]
    one_hot = np.eye(len(task.symbols))[places].reshape(len(places), -1)
    fitted = one_hot @ np.linalg.lstsq(one_hot[train], labels[train].astype(float), rcond=None)[0]
    answers = {
        "most frequent label": np.full(len(labels), np.bincount(labels[train]).argmax()),
        "nearest, cell by cell": _nearest(values, labels, train),
        "nearest, cells sorted": _nearest(np.sort(values, -1), labels, train),
        "least squares": np.rint(fitted),
    }
    exact = [float((answer == labels)[~train].mean()) for answer in answers.values()]
    return xr.Dataset({"exact": ("rule", exact)}, {"rule": list(answers)})


def _nearest(values: np.ndarray, labels: np.ndarray, train: np.ndarray) -> np.ndarray:
    """The label of the training picture with the least sum of differences in sides; the first of several."""
    found = np.empty(len(values), labels.dtype)
    known, answer = values[train].astype(np.int16), labels[train]
    for begin in range(0, len(values), 500):
        part = values[begin : begin + 500].astype(np.int16)
        distance = sum(np.abs(part[:, None, cell] - known[None, :, cell]) for cell in range(4))
        found[begin : begin + 500] = answer[distance.argmin(1)]
    return found
