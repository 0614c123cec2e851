"""How the networks of this chapter are trained, and how their training sets come back from a record.

Learning rates and weight decays come in two groups, one for the embeddings ``W_E`` and one for the decoder. Where
the paper gives no setting, the one of the authors' public code is taken, or ours, as the page says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook.chapters.liu import Settings
from grokbook.chapters.liu.theory import ideal_accuracy
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import AdamW, Group, Optimizer
from grokbook.settings import several, whole
from grokbook.tasks import AdditionTask
from grokbook.train.experiment import Experiment, Run, Watch

THRESHOLD = 0.9  # of an accuracy, table 1
Sizes = Annotated[tuple[int, ...], several(whole(1, 54))]  # of training sets, of the 55 samples of p = 10
BATCH = 45  # of 55 samples; larger training sets are seen in random batches of so many in the authors' code
STRUCTURED = 0.95  # of the representation quality index, figs 4 (b), 5 (b) and 18 (b)
BOTH_REACHED = Watch((("train_accuracy", THRESHOLD), ("test_accuracy", THRESHOLD)))


def two_groups(
    decoder: float = 1e-4, decay: float = 0.0, embedding: float = 1e-3, embedding_decay: float = 0.0, eps: float = 1e-8
) -> AdamW:
    """AdamW with a learning rate and weight decay for the decoder and others for the embeddings."""
    return AdamW(decoder, decay, eps=eps, groups=(Group("W_E", embedding, embedding_decay),))


def toy_run(
    task: AdditionTask, optimizer: Optimizer, steps: int, seed: int, label: str = "", batch: int | None = None,
    **model: Any,
) -> Run:  # fmt: skip
    """The toy model on an addition task: regression where the task has targets, else classification."""
    decoder = AdditionDecoder(task.p, outputs=task.target_size or task.labels, **model)
    return Run(task, decoder, optimizer, steps, seed, "mse" if task.target_size else "cross_entropy", batch, label)


def sizes_of(p: int, sizes: Sequence[int]) -> list[int]:
    """Training set sizes given for p = 10, at the same share of all samples of another p."""
    samples = p * (p + 1) // 2
    return sorted({min(max(round(size / 55 * samples), 1), samples - 1) for size in sizes})


def of_sizes(
    s: Settings, name: str, sizes: Sequence[int], steps: int, optimizers: Mapping[str, AdamW], *, batched: bool = False,
    **options: Any,
) -> Experiment:  # fmt: skip
    """Networks for training sets of several sizes, by label; ``batched``: those above 45 samples, in batches of 45."""
    batch = sizes_of(s.p, (BATCH,))[0] if batched else None
    runs = [
        toy_run(AdditionTask(s.p, size), optimizer, steps, seed, label, batch)
        for label, optimizer in optimizers.items()
        for size in sizes_of(s.p, sizes)
        if batch is None or size > batch
        for seed in range(s.seeds)
    ]
    return Experiment(f"liu/{name}", tuple(runs), measures=("rqi",), keep=("W_E",), **options)


def as_authors(whole: xr.Dataset, batched: xr.Dataset, read: Callable[[xr.Dataset], xr.Dataset]) -> xr.Dataset:
    """What is read off networks trained as in the authors' code: training sets above 45 samples in batches."""
    small = np.flatnonzero(whole.train_size.values < batched.train_size.values.min())
    return xr.concat([read(whole.isel(run=small)), read(batched)], "run")


@lru_cache(maxsize=32)
def solvable_seeds(p: int, train_size: int, number: int, target_size: int = 30) -> tuple[int, ...]:
    """The first seeds whose training set determines every held-out answer: an ideal model has validation accuracy 1.

    Sums with a single sample cannot be inferred, so a random set often leaves even the line with errors. Choosing
    needs the training sets alone, no training. ``target_size`` is the task's: targets are drawn before the set.
    ``ValueError`` where there are not so many among a thousand seeds.
    """
    task = AdditionTask(p, train_size, target_size)
    solvable = (seed for seed in range(1_000) if ideal_accuracy(task.train_pairs(seed), p, held_out=True) == 1)
    found = tuple(islice(solvable, number))
    if len(found) < number:
        raise ValueError(
            f"train_size = {train_size} of p = {p}: {len(found)} of 1000 random training sets determine every held-out "
            f"answer, {number} are needed; larger training sets do so more often"
        )
    return found


def task_of(run: xr.Dataset) -> AdditionTask:
    """The addition task of one run of a record."""
    p, train_size, target_size = (int(run[name]) for name in ("p", "train_size", "target_size"))
    return AdditionTask(p, train_size, target_size, bool(run.modular), bool(run.ordered), recipe=run.recipe.item())


def train_sets(record: xr.Dataset) -> Iterator[NDArray[np.int64]]:
    """The training set (n, 2) of every run whose set was drawn from its seed."""
    for i in range(record.sizes["run"]):
        run = record.isel(run=i)
        yield task_of(run).train_pairs(int(run.seed))
