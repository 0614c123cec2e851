"""The toy models and the image net of Liu et al. (2022) as one would write them first: oracles of exactness tests."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from grokbook.models.dense import DenseNet
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from tests.textbook_mlp import batch_rows


class PlainNet(nn.Module):
    """One member: embeddings looked up by index, added or multiplied, and decoded by a stack of nn.Linear."""

    def __init__(self, model, params):
        super().__init__()
        self.model = model
        sizes = model.sizes
        layers = []
        for number, (inputs, outputs) in enumerate(pairwise(sizes)):
            linear = nn.Linear(inputs, outputs, dtype=params["W_0"].dtype)
            linear.weight.data.copy_(params[f"W_{number}"])
            linear.bias.data.copy_(params[f"b_{number}"])
            layers += [linear, {"tanh": nn.Tanh, "relu": nn.ReLU}[model.activation]()]
        self.decoder = nn.Sequential(*layers[:-1])
        if "W_E" in params:
            self.W_E = nn.Parameter(params["W_E"].clone())

    def forward(self, x):
        """``x`` is (B, 2) indices, or (B, features) for a net without embeddings."""
        match self.model:
            case DenseNet():
                return self.decoder(x)
            case AdditionDecoder():
                return self.decoder(self.model.input_scale * (self.W_E[x[:, 0]] + self.W_E[x[:, 1]]))
            case ProductDecoder():
                products = [(self.W_E[a] @ self.W_E[b]).reshape(-1) for a, b in x.tolist()]
                return self.decoder(torch.stack(products))

    def named(self):
        """Parameters by the names that the package uses."""
        found = {"W_E": self.W_E} if hasattr(self, "W_E") else {}
        for number, linear in enumerate(one for one in self.decoder if isinstance(one, nn.Linear)):
            found |= {f"W_{number}": linear.weight, f"b_{number}": linear.bias}
        return found

    def penalty(self):
        """What the training loss has besides the misfit."""
        return self.model.shrinkage * self.W_E.abs().mean() if isinstance(self.model, ProductDecoder) else 0.0


def plain_loss(net, x, labels, targets, loss):
    """Mean over the samples of one member; ``targets`` (labels, outputs) or None."""
    outputs = net(x)
    if loss == "cross_entropy":
        return nn.functional.cross_entropy(outputs, labels)
    wanted = nn.functional.one_hot(labels, outputs.shape[-1]).to(outputs.dtype) if targets is None else targets[labels]
    return nn.functional.mse_loss(outputs, wanted)


def plain_training(run, steps, dtype=torch.float64):
    """The trained parameters of one run, by one torch.optim for the embeddings and one for the decoder."""
    params = {name: value.to(dtype) for name, value in run.model.init(torch.Generator().manual_seed(run.seed)).items()}
    net = PlainNet(run.model, params)
    group = run.optimizer.groups[0]
    embeddings = [net.W_E]
    rest = [value for name, value in net.named().items() if name != "W_E"]
    kind = torch.optim.AdamW
    optimizers = [
        kind(embeddings, lr=group.lr, weight_decay=group.weight_decay, eps=run.optimizer.eps),
        kind(rest, lr=run.optimizer.lr, weight_decay=run.optimizer.weight_decay, eps=run.optimizer.eps),
    ]
    samples, labels = torch.tensor(run.task.samples), torch.tensor(run.task.table()[1])
    targets = run.task.targets(run.seed)
    targets = None if targets is None else torch.from_numpy(targets).to(dtype)
    rows = np.flatnonzero(run.task.in_train(run.seed))
    for step in range(steps):
        batch = rows if run.batch_size is None else rows[batch_rows(run, step)]
        for optimizer in optimizers:
            optimizer.zero_grad()
        (plain_loss(net, samples[batch], labels[batch], targets, run.loss) + net.penalty()).backward()
        for optimizer in optimizers:
            optimizer.step()
    return {name: value.detach() for name, value in net.named().items()}
