"""The demo's network: Conv2d, ReLU, MaxPool2d, Flatten, Linear on square images, with made-up data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchroof.resources import read_toml


@dataclass(frozen=True, slots=True)
class Sizes:
    """As in configs/workloads.toml. The pool halves ``image``, which is therefore even."""

    image: int
    channels: int
    filters: int
    kernel: int
    classes: int
    batch_size: int
    steps: int
    learning_rate: float

    @staticmethod
    def standard() -> Sizes:
        return Sizes(**read_toml("workloads.toml")["lesson"])


class Lesson(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch, classes) from images of shape (batch, channels, image, image)."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        super().__init__()
        s = sizes or Sizes.standard()
        self.conv = nn.Conv2d(s.channels, s.filters, s.kernel, padding=s.kernel // 2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(s.filters * (s.image // 2) ** 2, s.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(self.flatten(self.pool(self.relu(self.conv(images)))))
        return scores


def make_batch(sizes: Sizes, device: str, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Random images and classes on a device, drawn on the CPU from the generator given."""
    shape = (sizes.batch_size, sizes.channels, sizes.image, sizes.image)
    images = torch.randn(shape, generator=generator)
    classes = torch.randint(sizes.classes, (sizes.batch_size,), generator=generator)
    return images.to(device), classes.to(device)


def train_step(
    network: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, classes: torch.Tensor
) -> Any:
    """One step of training by cross entropy; the loss."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(images), classes)
    loss.backward()
    optimizer.step()
    return loss.detach()
