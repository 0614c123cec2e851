"""Plain textbook forms of what grokbook writes for speed: the oracles of the exactness tests."""

from __future__ import annotations

import numpy as np
import torch

from grokbook.models.mlp import SCALINGS, TwoLayerMLP
from grokbook.optim import SGD, Adam
from grokbook.train.data import epoch_order


class PlainMLP(torch.nn.Module):
    """The two-layer perceptron over one-hot inputs, as one would write it first."""

    def __init__(self, model: TwoLayerMLP, params: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.model = model
        self.W_in = torch.nn.Parameter(params["W_in"].clone())
        self.W_out = torch.nn.Parameter(params["W_out"].clone())

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        p = self.model.p
        one_hot = torch.nn.functional.one_hot
        x = torch.cat([one_hot(pairs[:, 0], p), one_hot(pairs[:, 1], p)], -1).to(self.W_in.dtype)
        h = x @ self.W_in.T
        if self.model.batch_norm:
            h = torch.nn.functional.batch_norm(h, None, None, training=True, eps=1e-5)
        phi = {"quadratic": torch.square, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "abs": torch.abs}
        return SCALINGS[self.model.scaling](p, self.model.width)[0] * phi[self.model.activation](h) @ self.W_out.T


def plain_loss(outputs: torch.Tensor, labels: torch.Tensor, loss: str, targets=None) -> torch.Tensor:
    """The mean over the samples of one member; ``targets`` are (labels, outputs), one-hot vectors if None."""
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs, labels)
    targets = torch.eye(outputs.shape[-1], dtype=outputs.dtype) if targets is None else targets
    return torch.nn.functional.mse_loss(outputs, targets[labels])


def plain_optimizer(recipe, parameters) -> torch.optim.Optimizer:
    if isinstance(recipe, SGD):
        return torch.optim.SGD(parameters, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    kind = torch.optim.Adam if type(recipe) is Adam else torch.optim.AdamW
    return kind(parameters, lr=recipe.lr, betas=recipe.betas, eps=recipe.eps, weight_decay=recipe.weight_decay)


def batch_rows(run, step: int) -> np.ndarray:
    """The rows of a step: epochs in an order drawn for each, in whole batches, and the rest where the run asks."""
    count = run.task.train_size
    begins = [at for at in range(0, count, run.batch_size) if at + run.batch_size <= count or run.last_batch == "short"]
    epoch, batch = divmod(step, len(begins))
    return epoch_order(run, epoch)[begins[batch] : begins[batch] + run.batch_size]


def trained_labels(run) -> torch.Tensor:
    """The answers (rows,) that a run is trained on, which some tasks have of their own."""
    own = run.task.train_labels(run.seed) if hasattr(run.task, "train_labels") else None
    return torch.tensor(run.task.table()[1] if own is None else own)


def train_plainly(net, run, inputs: torch.Tensor, steps: int, optimizer=None, loss=plain_loss) -> torch.nn.Module:
    """Train a net the plain way: full batch or the engine's own batch order, torch.optim, one member."""
    optimizer = optimizer or plain_optimizer(run.optimizer, net.parameters())
    warmup = getattr(run.optimizer, "warmup", 0)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min(t / warmup, 1) if warmup else 1)
    labels, rows = trained_labels(run), np.flatnonzero(run.task.in_train(run.seed))
    for step in range(steps):
        batch = rows if run.batch_size is None else rows[batch_rows(run, step)]
        optimizer.zero_grad()
        loss(net(inputs[batch]), labels[batch], run.loss).backward()
        optimizer.step()
        rate.step()
    return net


def plain_training(run, dtype: torch.dtype, steps: int) -> PlainMLP:
    """The perceptron of a run, trained."""
    drawn = run.model.init(torch.Generator().manual_seed(run.seed))
    net = PlainMLP(run.model, {name: value.to(dtype) for name, value in drawn.items()})
    return train_plainly(net, run, torch.tensor(run.task.table()[0]), steps)
