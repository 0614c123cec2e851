"""ResNet-18 of `grokbook.models.resnet` as a textbook writes it: one member, torch's own layers and names."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, fan_in: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(fan_in, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or fan_in != out:
            self.downsample = nn.Sequential(nn.Conv2d(fan_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000, widths: tuple[int, ...] = (64, 128, 256, 512), channels: int = 3) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0])
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2, self.layer3, self.layer4 = (
            nn.Sequential(Block(before, out, stride), Block(out, out, 1))
            for before, out, stride in zip((widths[0], *widths), widths, (1, 2, 2, 2), strict=False)
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[3], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def load(net: ResNet18, params: dict[str, Tensor], member: int) -> ResNet18:
    """Give the net what one member of an ensemble carries."""
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                value.copy_(params[name][member])
    return net
