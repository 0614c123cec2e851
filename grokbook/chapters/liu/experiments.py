"""Everything the Liu chapter trains. Factories with the paper's settings as defaults; each returns an experiment.

Learning rates and weight decays come in two groups, one for the embeddings ``W_E`` and one for the decoder. Where
the paper gives no setting, the one of the authors' public code is taken, or ours, as the page says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grokbook.chapters.liu.phases import THRESHOLD, solvable_seeds
from grokbook.experiment import Experiment, Run, Schedule, Watch
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from grokbook.optim import AdamW, Group
from grokbook.tasks import AdditionTask, GroupTask

EMBEDDING_RATE, DECODER_RATE = 1e-3, 1e-4
STRUCTURED = 0.95  # of the representation quality index, figs 4 (b), 5 (b) and 18 (b)

# The published cross-entropy is averaged over the classes too. Dividing a loss by 19 changes nothing under Adam but
# the size of eps.
CLASS_MEAN_EPS = 1e-8


def two_groups(
    decoder: float = DECODER_RATE,
    decay: float = 0.0,
    embedding: float = EMBEDDING_RATE,
    *,
    embedding_decay: float = 0.0,
    eps: float = 1e-8,
) -> AdamW:
    """AdamW with a learning rate and weight decay for the decoder and others for the embeddings."""
    return AdamW(decoder, decay, eps=eps, groups=(Group("W_E", embedding, embedding_decay),))


def toy_run(task: AdditionTask, optimizer: AdamW, steps: int, seed: int, label: str = "", **settings: Any) -> Run:
    """The toy model on an addition task: regression where the task has targets, else classification."""
    regression = task.target_size > 0
    size = task.target_size if regression else task.labels
    model = AdditionDecoder(task.p, outputs=size, **settings)
    return Run(task, model, optimizer, steps, seed, "mse" if regression else "cross_entropy", label=label)


# --- phase diagrams: figures 6 and 13 to 15 -----------------------------------------------------------------

BOTH_REACHED = Watch((("train_accuracy", THRESHOLD), ("test_accuracy", THRESHOLD)))
PUBLISHED_SEED = {"regression": 58, "classification": 6, "group": 0}
RATES_A = tuple(float(10**e) for e in np.linspace(-5, -2, 13))
RATES = tuple(float(10**e) for e in np.linspace(-5, -2, 16))
DECAYS = {
    "regression": tuple(map(float, range(11))),
    "classification": tuple(map(float, range(0, 21, 2))),
    "group": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0),
}


def _diagram(name: str, runs: Sequence[Run], **changes: Any) -> Experiment:
    """A phase diagram: cells and seeds side by side; a run leaves when both accuracies have been reached."""
    settings: dict[str, Any] = {"schedule": Schedule(log=40), "watch": BOTH_REACHED, "snapshots": (-1,), **changes}
    return Experiment(f"liu/{name}", tuple(runs), keep=("W_E",), **settings)


def _published(p: int, train_size: int, kind: str) -> tuple[AdditionTask, dict[str, Any], float]:
    """Task, further settings of the model, and eps of the published diagrams (b) and (c)."""
    task = AdditionTask(p, train_size, 30 if kind == "regression" else 0, recipe="diagram")
    return task, {"recipe": "diagram"}, 1e-8 if kind == "regression" else CLASS_MEAN_EPS * task.labels


def phases_rates(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (a): embedding against decoder learning rate, on the published split. Every cell a run."""
    task, model, eps = _published(p, train_size, "regression")
    rates = RATES_A[::coarseness]
    runs = [
        toy_run(task, two_groups(decoder, 0.0, embedding, eps=eps), steps, PUBLISHED_SEED["regression"], **model)
        for embedding in rates
        for decoder in rates
    ]
    return _diagram("phases_rates", runs)


def _decay_runs(
    kind: str, p: int, train_size: int, steps: int, coarseness: int, seeds: Sequence[int] | None
) -> list[Run]:
    """Decoder learning rate against decoder weight decay; ``seeds`` None is the published split."""
    if seeds is None:
        task, model, eps = _published(p, train_size, kind)
        seeds = (PUBLISHED_SEED[kind],)
    else:
        task, model = AdditionTask(p, train_size, 30 if kind == "regression" else 0), dict[str, Any]()
        eps = 1e-8 if kind == "regression" else CLASS_MEAN_EPS * task.labels
    return [
        toy_run(task, two_groups(rate, decay, eps=eps), steps, seed, **model)
        for decay in DECAYS[kind][::coarseness]
        for rate in RATES[::coarseness]
        for seed in seeds
    ]


def phases_regression(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (b): decoder learning rate against weight decay, on the published split."""
    return _diagram("phases_regression", _decay_runs("regression", p, train_size, steps, coarseness, None))


def phases_classification(p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (c): the same for classification."""
    return _diagram("phases_classification", _decay_runs("classification", p, train_size, steps, coarseness, None))


def _group_runs(train_size: int, steps: int, coarseness: int, seeds: Sequence[int]) -> list[Run]:
    task = GroupTask("S3", train_size)
    return [
        Run(task, ProductDecoder(task.labels), two_groups(rate, decay), steps, seed)
        for decay in DECAYS["group"][::coarseness]
        for rate in RATES[::coarseness]
        for seed in seeds
    ]


def phases_group(train_size: int = 24, steps: int = 100_000, coarseness: int = 1) -> Experiment:
    """Fig. 6 (d): the same for the permutation group S3, one split."""
    return _diagram("phases_group", _group_runs(train_size, steps, coarseness, (PUBLISHED_SEED["group"],)))


def phases_rates_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (a) over several splits that determine every held-out answer."""
    rates, task = RATES_A[::coarseness], AdditionTask(p, train_size)
    runs = [
        toy_run(task, two_groups(decoder, 0.0, embedding), steps, seed)
        for embedding in rates
        for decoder in rates
        for seed in solvable_seeds(p, train_size, seeds)
    ]
    return _diagram("phases_rates_splits", runs)


def phases_regression_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (b) over several splits that determine every held-out answer."""
    chosen = solvable_seeds(p, train_size, seeds)
    return _diagram("phases_regression_splits", _decay_runs("regression", p, train_size, steps, coarseness, chosen))


def phases_classification_splits(
    p: int = 10, train_size: int = 45, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (c) over several splits that determine every held-out answer."""
    task = AdditionTask(p, train_size, 0)
    chosen = solvable_seeds(p, train_size, seeds, task.target_size)
    return _diagram(
        "phases_classification_splits", _decay_runs("classification", p, train_size, steps, coarseness, chosen)
    )


def phases_group_splits(
    train_size: int = 24, steps: int = 100_000, coarseness: int = 1, seeds: int = 3
) -> Experiment:
    """Fig. 6 (d) over several splits."""
    return _diagram("phases_group_splits", _group_runs(train_size, steps, coarseness, range(1, 1 + seeds)))


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    factory.__name__: factory
    for factory in (
        phases_rates,
        phases_regression,
        phases_classification,
        phases_group,
        phases_rates_splits,
        phases_regression_splits,
        phases_classification_splits,
        phases_group_splits,
    )
}

REDUCED: dict[str, Callable[[], Experiment]] = {}
