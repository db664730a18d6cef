"""A residual network of the shape of ResNet-18: a 7x7 stem and four stages of basic blocks (He and others, 2015)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from torchroof.workloads.training import Workload, images, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    """``width`` is the first stage's channels; each further stage doubles them and halves the image."""

    image: int
    channels: int
    width: int
    stages: int
    blocks: int
    classes: int
    batch_size: int
    steps: int
    learning_rate: float


class Block(nn.Module):  # type: ignore[misc]
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.act = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if (before, stride) != (after, 1):
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False),
                nn.BatchNorm2d(after),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm2(self.conv2(self.act(self.norm1(self.conv1(x)))))
        out: torch.Tensor = self.act(inner + self.shortcut(x))
        return out


class ResNet(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch, classes) from images of shape (batch, channels, image, image)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(s.channels, s.width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(s.width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        self.stages = nn.Sequential()
        before = s.width
        for stage in range(s.stages):
            after = s.width << stage
            first = Block(before, after, stride=1 if stage == 0 else 2)
            rest = [Block(after, after, stride=1) for _ in range(s.blocks - 1)]
            self.stages.append(nn.Sequential(first, *rest))
            before = after
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, s.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(self.pool(self.stages(self.stem(images))).flatten(1))
        return scores


def build(s: Sizes, device: str) -> Workload:
    model = ResNet(s).to(device)
    return training(
        model,
        torch.optim.SGD(model.parameters(), lr=s.learning_rate, momentum=0.9, weight_decay=1e-4),
        images(s.batch_size, s.channels, s.image, device),
        labels(s.classes, (s.batch_size,), device),
    )
