"""The first network to look at: Conv2d, ReLU, MaxPool2d, Flatten, Linear on square images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from torchroof.workloads.training import Workload, images, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    """The pool halves ``image``, which is therefore even."""

    image: int
    channels: int
    filters: int
    kernel: int
    classes: int
    batch_size: int
    steps: int
    learning_rate: float


class Lesson(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch, classes) from images of shape (batch, channels, image, image)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.conv = nn.Conv2d(s.channels, s.filters, s.kernel, padding=s.kernel // 2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(s.filters * (s.image // 2) ** 2, s.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(self.flatten(self.pool(self.relu(self.conv(images)))))
        return scores


def build(s: Sizes, device: str) -> Workload:
    model = Lesson(s).to(device)
    return training(
        model,
        torch.optim.Adam(model.parameters(), lr=s.learning_rate),
        images(s.batch_size, s.channels, s.image, device),
        labels(s.classes, (s.batch_size,), device),
    )
