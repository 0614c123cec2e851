"""Tables of stacked members on their device, and losses and answers over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import torch
from grokbook.train.experiment import Run

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Data:
    """The tables of M members on their device: all rows to measure on, the training rows to step on.

    ``inputs`` (M, rows, ...) and ``labels`` (M, rows) with ``in_train`` (M, rows); ``train_inputs`` (M, n, ...),
    ``train_labels`` (M, n) and ``weights`` (M, n), which sum to one and are zero where a shorter set is padded.
    ``targets`` (M, labels, outputs) is what each label's outputs are to be, None for one-hot vectors;
    ``train_targets`` (M, n, outputs) is that for the training rows.
    """

    inputs: Tensor
    labels: Tensor
    in_train: Tensor
    train_inputs: Tensor
    train_labels: Tensor
    weights: Tensor
    targets: Tensor | None
    train_targets: Tensor | None

    @classmethod
    def of(cls, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> Data:
        """Stack the tables and splits of ``runs``."""
        tables = {run.task: run.task.table() for run in runs}
        masks = [run.task.in_train(run.seed) for run in runs]
        longest = max(int(mask.sum()) for mask in masks)
        inputs, labels, weights = [], [], []
        for run, mask in zip(runs, masks, strict=True):
            x, y = (part[mask] for part in tables[run.task])
            padding = longest - len(y)
            inputs.append(np.concatenate([x, np.zeros((padding, *x.shape[1:]), x.dtype)]))
            labels.append(np.concatenate([y, np.zeros(padding, y.dtype)]))
            weights.append(np.concatenate([np.full(len(y), 1 / len(y)), np.zeros(padding)]))

        def on_device(arrays: list[NDArray[Any]]) -> Tensor:
            stacked = torch.from_numpy(np.stack(arrays)).to(device)
            return stacked.to(dtype) if stacked.is_floating_point() else stacked

        of_labels: list[Any] = [getattr(run.task, "targets", _one_hot)(run.seed) for run in runs]
        targets = None if of_labels[0] is None else on_device(of_labels)
        train_labels = on_device(labels)

        return cls(
            on_device([tables[run.task][0] for run in runs]),
            on_device([tables[run.task][1] for run in runs]),
            on_device(masks),
            on_device(inputs),
            train_labels,
            on_device(weights),
            targets,
            None if targets is None else targets_of(train_labels, targets),
        )

    def keep(self, members: Sequence[int]) -> Data:
        """The same for some of the members."""
        index = list(members)

        def kept(value: Any) -> Any:
            return None if value is None else value[index]

        return Data(*(kept(getattr(self, name)) for name in self.__dataclass_fields__))


def _one_hot(seed: int) -> None:
    """Targets of a task that has none of its own."""


def sample_losses(outputs: Tensor, labels: Tensor, loss: str, targets: Tensor | None = None) -> Tensor:
    """The loss of each sample, (M, B), from ``outputs`` (M, B, classes) and ``labels`` (M, B).

    With ``targets`` (M, labels, outputs) the mean squared error is against those, else against one-hot vectors.
    """
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs.transpose(1, 2), labels, reduction="none")
    wanted = None if targets is None else targets_of(labels, targets)
    return _errors(outputs, labels, wanted).square().mean(-1)


def targets_of(labels: Tensor, targets: Tensor) -> Tensor:
    """What the outputs of samples with ``labels`` (M, B) are to be, (M, B, outputs)."""
    return targets.gather(1, labels[..., None].expand(-1, -1, targets.shape[-1]))


def output_gradients(outputs: Tensor, labels: Tensor, weights: Tensor, loss: str, wanted: Tensor | None) -> Tensor:
    """The gradient of each member's weighted mean of ``sample_losses`` with respect to the outputs, by hand.

    ``wanted`` (M, B, outputs) is what the outputs are to be, None for one-hot vectors.
    """
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
