"""Training on pictures in the engine against plain PyTorch: network, batches and optimizer of the textbook."""

from __future__ import annotations

import pytest
import torch

from grokbook.chapters.resnet import Settings
from grokbook.chapters.resnet.training import on_pictures
from grokbook.train import engine
from tests import textbook_resnet as textbook
from tests.textbook_mlp import train_plainly

SETTINGS = Settings(symbols=4, train_fraction=0.95)  # 243 of 256 pictures: a batch of 200 and one of 43
CONDITION = {"label": "", "size": 24, "width": 0.125, "channels": 1}


def plainly(run, steps: int) -> tuple[textbook.ResNet18, torch.Tensor]:
    """The same training with torch's own layers and optimizer, on pictures drawn beforehand, and its outputs."""
    # The engine's own pictures, to the last bit: on their white ground a maximum is shared by many pixels, and rounding
    # would decide which of them is given the gradient.
    images = run.task.compose(torch.from_numpy(run.task.table()[0])[None])[0].double()
    start = {name: value[None] for name, value in run.model.init(torch.Generator().manual_seed(run.seed)).items()}
    net = textbook.load(textbook.ResNet18(run.model.classes, (8, 16, 32, 64), 1).double(), start, 0)
    train_plainly(net, run, images, steps)
    return net, net.eval()(images).detach()


@pytest.mark.parametrize("seeds", [1, 2])
def test_five_steps_and_the_evaluation_after_them_are_those_of_plain_pytorch(seeds: int) -> None:
    experiment = on_pictures("test", SETTINGS, CONDITION, epochs=3, seeds=seeds)
    state = engine.Training.start(experiment, torch.device("cpu"), torch.float64).state
    for _ in range(5):
        state.update()
    outputs = torch.from_numpy(state.measured().outputs())
    for member, run in enumerate(experiment.runs):
        net, expected = plainly(run, 5)
        for name, value in net.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(state.params[name][member], value, rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(outputs[member], expected, rtol=1e-8, atol=1e-8)
