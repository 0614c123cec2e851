"""What is timed: the trainings of the book's papers at their own sizes, each beside its textbook twin."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from benchmarks import clock
from grokbook.chapters.resnet.tasks import ShapeSum
from grokbook.models.decoder import Decoder
from grokbook.models.mlp import TwoLayerMLP
from grokbook.models.pair_transformer import PairTransformer
from grokbook.models.resnet import ResNet18
from grokbook.models.slot_mlp import SlotMLP
from grokbook.models.toy import AdditionDecoder
from grokbook.optim import Adam, AdamW, Group
from grokbook.tasks import AdditionTask, ModularTask
from grokbook.train import products, records, workers
from grokbook.train.experiment import Run
from grokbook.train.state import State
from tests import textbook_decoder, textbook_mlp, textbook_resnet, textbook_toy, textbook_transformer
from tests.stacks import Pictures

Step = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    Attributes:
        name: what a reader calls it.
        run: the recipe of one member, with the steps of the paper's figure.
        members: how many of them our step trains side by side; times are per member.
        plain: builds the textbook net.
        ratio: (floor, aim) of how many times as fast as the plain step ours is to be, by kind of processor.
    """

    name: str
    run: Run
    members: int
    plain: Callable[[Run], nn.Module]
    ratio: dict[str, tuple[float, float]]

    @property
    def steps(self) -> int:
        """Of a whole training."""
        return self.run.steps


def _drawn(run: Run) -> dict[str, torch.Tensor]:
    return dict(run.model.init(torch.Generator().manual_seed(run.seed)))


class SlotNet(nn.Module):
    """Embeddings of four symbols, concatenated, and two hidden layers."""

    def __init__(self, model: SlotMLP) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(model.tokens, model.d_model) for _ in range(model.slots))
        first, second = nn.Linear(model.slots * model.d_model, model.width), nn.Linear(model.width, model.width)
        self.layers = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(model.width, model.classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, slots) -> (B, classes)
        return self.layers(torch.cat([table(x[:, slot]) for slot, table in enumerate(self.embeddings)], -1))


SHARE = 0.45, 0.60  # (floor, aim) of the best rate of products, for every workload
# Where floors and aims of the ratio were set, and GFLOP/s of one core there: a Zen 5, and a Xeon with AMX.
SET_AT = {"AMD": 219, "Intel": 166}
NO_SLOWER = 1.0, 1.5  # what holds where nothing was promised
ADAMW = AdamW(1e-3, 1.0, (0.9, 0.98))
WORKLOADS = (
    Workload(
        "one-layer transformer, p = 97, fraction 0.3",
        Run(ModularTask(97, "n + m", 0.3), PairTransformer(97), ADAMW, 15_000, 0, "cross_entropy"),
        1,
        lambda run: textbook_transformer.PairTransformer(*dataclasses.astuple(run.model)[:6]),
        {"AMD": (8.5, 11.0), "Intel": (5.7, 7.0)},
    ),
    Workload(
        "toy model, p = 10, 45 of 55 samples",
        Run(AdditionTask(10, 45), AdditionDecoder(10), AdamW(1e-3, 0.0, groups=(Group("W_E", 1e-3, 0.0),)), 10_000, 0),
        16,
        lambda run: textbook_toy.PlainNet(run.model, _drawn(run)),
        {"AMD": (4.5, 7.0), "Intel": (5.2, 7.0)},
    ),
    Workload(
        "quadratic MLP, p = 97, width 500, fraction 0.5",
        Run(ModularTask(97), TwoLayerMLP(97, 500, "standard"), AdamW(1e-2, 5.0), 25_000, 0),
        1,
        lambda run: textbook_mlp.PlainMLP(run.model, _drawn(run)),
        {"AMD": (4.2, 5.5), "Intel": (2.8, 3.5)},
    ),
    Workload(
        "two-layer transformer, x op y =, batch 512",
        Run(ModularTask(97, "n - m"), Decoder(97), ADAMW, 100_000, 0, "cross_entropy", 512),
        1,
        lambda run: textbook_decoder.Decoder(*dataclasses.astuple(run.model)[:4]),
        {"AMD": (3.7, 5.0), "Intel": (2.5, 3.5)},
    ),
    Workload(
        "ResNet-18, width 1/4, 64 pixels, batch 200",
        Run(Pictures((3, 64, 64), 121, 800), ResNet18(121, 0.25, 3, 64), Adam(1e-3), 50_000, 0, "cross_entropy", 200),
        4,
        lambda run: textbook_resnet.ResNet18(121, (16, 32, 64, 128)),
        {"AMD": NO_SLOWER, "Intel": NO_SLOWER},
    ),
    Workload(
        "slot perceptron, eleven symbols, batch 200",
        Run(ShapeSum(), SlotMLP(11, ShapeSum().classes), Adam(1e-3, 1e-4), 47_500, 0, "cross_entropy", 200),
        4,
        lambda run: SlotNet(run.model),
        {"AMD": NO_SLOWER, "Intel": NO_SLOWER},
    ),
)


def our_state(workload: Workload, members: int | None = None, device: str = "cpu") -> State:
    """The engine's state for so many members of a workload."""
    runs = [dataclasses.replace(workload.run, seed=seed) for seed in range(members or workload.members)]
    return State.start(runs, torch.device(device), torch.float32)


def kind_of_processor() -> str:
    """Whose floors count here."""
    return "AMD" if "AMD" in records.processor() else "Intel"


def our_step(state: State) -> Step:
    """A step as a worker takes it, with products by the library that it chooses."""
    return clock.by(products.choose(state.gradients, "cpu"), state.update)


def some_steps(number: int, seconds: float) -> tuple[int, float]:
    """How many steps of a workload one process makes, and the processor seconds they took."""
    workers.settle(1)
    step = our_step(our_state(WORKLOADS[number]))
    step()
    count, began, spent = 0, time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        step()
        count += 1
    return count, time.process_time() - spent


def plain_step(workload: Workload) -> Step:
    """A textbook step: the net of `torch.nn`, the loss of `torch.nn.functional`, the optimizer of `torch.optim`."""
    run = workload.run
    net = workload.plain(run)
    make = getattr(torch.optim, type(run.optimizer).__name__)
    optimizer = make(net.parameters(), run.optimizer.lr, weight_decay=run.optimizer.weight_decay)
    rows = np.flatnonzero(run.task.in_train(run.seed))
    table, labels = run.task.table()
    inputs = torch.from_numpy((run.task.samples if hasattr(run.task, "samples") else table)[rows])
    answers = torch.from_numpy(labels[rows])
    targets = run.task.targets(run.seed) if getattr(run.task, "target_size", 0) else None
    wanted = nn.functional.one_hot(answers, int(labels.max()) + 1).float() if targets is None else None
    if targets is not None:
        wanted = torch.from_numpy(targets).float()[answers]
    if isinstance(run.model, TwoLayerMLP):  # its inputs are one-hot, made once
        inputs = nn.functional.one_hot(inputs + torch.tensor([0, run.model.p]), 2 * run.model.p).sum(1).float()
        net = OneHotMLP(net)  # type: ignore[assignment, arg-type]
    order = torch.randperm(len(rows))
    begin = 0

    def step() -> None:
        nonlocal begin
        x, y, t = inputs, answers, wanted
        if run.batch_size:
            batch = order[begin : begin + run.batch_size]
            begin = (begin + run.batch_size) % (len(rows) - run.batch_size)
            x, y, t = inputs[batch], answers[batch], wanted[batch]  # type: ignore[index]
        optimizer.zero_grad()
        outputs = net(x)
        by_class = run.loss == "cross_entropy"
        loss = nn.functional.cross_entropy(outputs, y) if by_class else nn.functional.mse_loss(outputs, t)
        loss.backward()
        optimizer.step()

    return step


class OneHotMLP(nn.Module):
    """The textbook MLP on inputs that are one-hot already."""

    def __init__(self, net: textbook_mlp.PlainMLP) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 2p) -> (B, p)
        return self.net.model.factor * torch.square(x @ self.net.W_in.T) @ self.net.W_out.T
