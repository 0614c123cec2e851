"""The table of stacked members on their device, minibatches of it, and losses and answers over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Tensor, torch
from grokbook.train.contract import optional
from grokbook.train.experiment import Run


class Batch(NamedTuple):
    """What a step is taken on; the weights are those of each member's mean, zero where a shorter set is filled up."""

    inputs: Tensor  #: (M, B, ...)
    labels: Tensor  #: (M, B)
    weights: Tensor  #: (M, B)
    wanted: Tensor | None  #: (M, B, outputs) what the outputs are to be, None for one-hot vectors


@dataclass
class Data:
    """The inputs of all members on their device, once, and the rows and labels of each."""

    compose: Callable[[Tensor], Tensor] | None  #: makes what the model is given from rows, where a task says so
    dtype: torch.dtype
    table: Tensor  #: (rows, ...), once for all; members hold no copies of it
    answers: Tensor  #: (M, rows) the labels of each member's table
    labels: Tensor  #: (M, rows), in training rows what the member is trained on, elsewhere the table's
    in_train: Tensor  #: (M, rows)
    targets: Tensor | None  #: (M, labels, outputs) what each label's outputs are to be, None for one-hot vectors
    batches: Batches  #: what each step takes, where it does not take the training sets whole
    least: int  #: outputs that a model needs for these labels
    whole: Batch | None = None  #: the training sets, where each step takes them whole; None with minibatches

    @classmethod
    def of(cls, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> Data:
        """The inputs of ``runs``, with the labels, splits and targets of each; a ValueError where inputs differ."""
        tables = {task: task.table() for task in dict.fromkeys(run.task for run in runs)}
        table, _ = tables[runs[0].task]
        if not all(one is table or np.array_equal(one, table) for one, _ in tables.values()):
            raise ValueError("members of a stack share their inputs; Experiment.shards puts together those who can")
        answers = [tables[run.task][1] for run in runs]
        masks = [run.task.in_train(run.seed) for run in runs]
        noisy = [optional(run.task, "train_labels")(run.seed) for run in runs]
        labels = [y if z is None else np.where(mask, z, y) for y, z, mask in zip(answers, noisy, masks, strict=True)]
        of_labels: list[Any] = [optional(run.task, "targets")(run.seed) for run in runs]
        trained = [np.flatnonzero(mask) for mask in masks]
        for run, own in zip(runs, trained, strict=True):
            if len(own) != run.task.train_size:
                told = f"in_train of seed {run.seed} has {len(own)} rows"
                raise ValueError(f"{type(run.task).__name__}: {told}, and its train_size is {run.task.train_size}")

        def on_device(arrays: Any) -> Tensor:
            found = torch.tensor(np.asarray(arrays), device=device)  # a copy: tables are kept and shared
            return found.to(dtype) if found.is_floating_point() else found

        given = on_device(labels)
        true = given if all(one is None for one in noisy) else on_device(answers)
        targets = None if of_labels[0] is None else on_device(of_labels)
        batches = Batches(runs, trained, device, dtype)
        compose = optional(runs[0].task, "compose")
        least = targets.shape[-1] if targets is not None else 1 + int(max(map(np.max, [*answers, *labels])))
        data = cls(compose, dtype, on_device(table), true, given, on_device(masks), targets, batches, least)
        if runs[0].batch_size is None:
            pad = torch.nn.utils.rnn.pad_sequence
            rows = pad([torch.from_numpy(one) for one in trained], batch_first=True)
            weights = pad([torch.full((len(one),), 1 / len(one), dtype=dtype) for one in trained], batch_first=True)
            data.whole = data.batch(rows.to(device), weights.to(device))
        return data

    def given(self, rows: Tensor) -> Tensor:
        """What the model is given for rows of the table (M, B, ...)."""
        return rows if self.compose is None else self.compose(rows).to(self.dtype)

    def batch(self, rows: Tensor, weights: Tensor) -> Batch:
        """Some rows of the table, (M, B) each with its weight."""
        labels = self.labels.gather(1, rows)
        return Batch(self.given(self.table[rows]), labels, weights, self.wanted(labels))

    def wanted(self, labels: Tensor) -> Tensor | None:
        """What the outputs of samples with ``labels`` (M, B) are to be, (M, B, outputs); None is one-hot vectors."""
        if self.targets is None:
            return None
        return self.targets.gather(1, labels[..., None].expand(-1, -1, self.targets.shape[-1]))

    def blocks(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows of the table, at most ``size`` at a time: which, and what the model is given for them."""
        for begin in range(0, len(self.table), size):
            rows = slice(begin, begin + size)
            yield rows, self.given(self.table[rows].expand(len(self.labels), *[-1] * self.table.ndim))


class Batches:
    """Minibatches of M ``runs`` whose training sets, ``trained``, may differ in size: each is at its own epoch.

    The batches of the stack's longest epoch are drawn ahead at once. A batch that is shorter than the widest of its
    step is filled up with rows of weight zero; nothing is filled up where all training sets are equally large.
    """

    def __init__(
        self, runs: Sequence[Run], trained: list[NDArray[np.int64]], device: torch.device, dtype: torch.dtype
    ) -> None:
        self.runs, self.trained, self.device, self.dtype = runs, trained, device, dtype
        self.widths = [_widths(run) for run in runs]
        self.ahead = max(map(len, self.widths))
        self.begin = self.step = -1
        self.drawn: list[tuple[Tensor, Tensor]] = []
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}  # by width: always the same memory, for a graph reads it

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Rows of the table and their weights in a member's mean, each (M, widest batch)."""
        if step // self.ahead * self.ahead != self.begin:
            self.begin = step // self.ahead * self.ahead
            self._draw(self.ahead)
        rows, weights = self.drawn[step - self.begin]
        if rows.shape[1] not in self.taken:
            self.taken[rows.shape[1]] = rows.clone(), weights.clone()
        taken = self.taken[rows.shape[1]]
        if step != self.step:
            taken[0].copy_(rows)
            taken[1].copy_(weights)
            self.step = step
        return taken

    def _draw(self, ahead: int) -> None:
        """The next ``ahead`` batches of everyone."""
        widest, steps = self.runs[0].samples, np.arange(self.begin, self.begin + ahead)
        rows = np.zeros((ahead, len(self.runs), widest), np.int64)
        weights = np.zeros(rows.shape)
        for member, (run, widths) in enumerate(zip(self.runs, self.widths, strict=True)):
            batches, used = len(widths), widths.sum()
            share = np.where(np.arange(widest) < widths[:, None], 1 / widths[:, None], 0)
            epochs = range(steps[0] // batches, steps[-1] // batches + 1)
            orders = np.zeros((len(epochs), batches * widest), np.int64)
            orders[:, :used] = [self.trained[member][epoch_order(run, epoch)[:used]] for epoch in epochs]
            rows[:, member] = orders.reshape(-1, widest)[steps - epochs.start * batches]
            weights[:, member] = share[steps % batches]
        chosen = torch.from_numpy(rows).to(self.device)
        shares = torch.from_numpy(weights).to(self.device, self.dtype)
        width = (weights > 0).any(1).sum(-1).tolist()
        self.drawn = [(chosen[at, :, :wide], shares[at, :, :wide]) for at, wide in enumerate(width)]


def _widths(run: Run) -> NDArray[np.int64]:
    """How many samples each batch of an epoch has."""
    full, rest = divmod(run.task.train_size, run.samples)
    return np.array([run.samples] * full + [rest] * (rest > 0 and run.last_batch == "short"))


def epoch_order(run: Run, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch takes the training rows."""
    return np.random.default_rng([run.seed, 1, epoch]).permutation(run.task.train_size)


def sample_losses(outputs: Tensor, labels: Tensor, loss: str, wanted: Tensor | None = None) -> Tensor:
    """The loss of each sample, (M, B), from ``outputs`` (M, B, classes) and ``labels`` (M, B).

    The mean squared error is against ``wanted`` (M, B, classes), where that is None against one-hot vectors.
    """
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs.transpose(1, 2), labels, reduction="none")
    return _errors(outputs, labels, wanted).square().mean(-1)


def output_gradients(outputs: Tensor, labels: Tensor, weights: Tensor, loss: str, wanted: Tensor | None) -> Tensor:
    """The gradient of each member's weighted mean of ``sample_losses`` with respect to the outputs, by hand."""
    if loss == "cross_entropy":
        return _errors(outputs.softmax(-1), labels, None).mul_(weights[..., None])
    return _errors(outputs, labels, wanted).mul_(2 / outputs.shape[-1] * weights[..., None])


def _errors(outputs: Tensor, labels: Tensor, wanted: Tensor | None) -> Tensor:
    """Outputs less what they are to be, (M, B, outputs)."""
    if wanted is None:
        return outputs.scatter_add(2, labels[..., None], torch.full_like(labels[..., None], -1, dtype=outputs.dtype))
    return outputs - wanted


def predictions(outputs: Tensor, targets: Tensor | None) -> Tensor:
    """The label of the largest output, or of the nearest target: (M, B)."""
    if targets is None:
        return outputs.argmax(-1)
    # |y - t|**2 up to what all labels share
    return torch.baddbmm(targets.square().sum(-1)[:, None], outputs, targets.mT, beta=-0.5).argmax(-1)
