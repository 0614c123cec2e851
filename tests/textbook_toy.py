"""The toy models and the image net of Liu et al. (2022) as one would write them first: oracles of exactness tests."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from grokbook.models.dense import DenseNet
from grokbook.models.toy import AdditionDecoder, ProductDecoder
from tests.textbook_mlp import plain_loss, plain_optimizer, train_plainly


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


def plain_training(run, steps):
    """The trained parameters of one run, in float64; the embeddings have a rate and a decay of their own."""
    params = {name: value.double() for name, value in run.model.init(torch.Generator().manual_seed(run.seed)).items()}
    net = PlainNet(run.model, params)
    (group,) = run.optimizer.groups
    rest = [value for name, value in net.named().items() if name != "W_E"]
    own = {"params": [net.W_E], "lr": group.lr, "weight_decay": group.weight_decay}
    targets = run.task.targets(run.seed)
    targets = None if targets is None else torch.from_numpy(targets).double()

    def loss(outputs, labels, kind):
        return plain_loss(outputs, labels, kind, targets) + net.penalty()

    optimizer = plain_optimizer(run.optimizer, [own, {"params": rest}])
    train_plainly(net, run, torch.tensor(run.task.samples), steps, optimizer, loss)
    return {name: value.detach() for name, value in net.named().items()}
