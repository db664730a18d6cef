"""A small U-Net: down by pooling, up by transposed convolution, each level joined with its copy from the way down."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from torchroof.workloads.training import Workload, images, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    """``width`` is the top level's channels; each level below doubles them and halves the image, which 2**levels
    divides. ``groups`` divides ``width``."""

    image: int
    channels: int
    width: int
    levels: int
    groups: int
    classes: int
    batch_size: int
    steps: int
    learning_rate: float


class Pair(nn.Sequential):  # type: ignore[misc]
    """Two 3x3 convolutions, each normalised and rectified."""

    def __init__(self, before: int, after: int, groups: int) -> None:
        super().__init__()
        for number, channels in enumerate((before, after), 1):
            self.add_module(f"conv{number}", nn.Conv2d(channels, after, 3, padding=1, bias=False))
            self.add_module(f"norm{number}", nn.GroupNorm(groups, after))
            self.add_module(f"act{number}", nn.ReLU(inplace=True))


class UNet(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch, classes, image, image) from images of shape (batch, channels, image, image)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        widths = [s.width << level for level in range(s.levels + 1)]
        self.down = nn.ModuleList(Pair(a, b, s.groups) for a, b in pairwise([s.channels, *widths[:-1]]))
        self.pool = nn.MaxPool2d(2)
        self.bottom = Pair(widths[-2], widths[-1], s.groups)
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(Pair(2 * w, w, s.groups) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(s.width, s.classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        copies = []
        for pair in self.down:
            copies.append(pair(x))
            x = self.pool(copies[-1])
        x = self.bottom(x)
        for widen, pair in zip(self.widen, self.up, strict=True):
            x = pair(torch.cat((copies.pop(), widen(x)), dim=1))
        scores: torch.Tensor = self.head(x)
        return scores


def build(s: Sizes, device: str) -> Workload:
    model = UNet(s).to(device)
    return training(
        model,
        torch.optim.AdamW(model.parameters(), lr=s.learning_rate),
        images(s.batch_size, s.channels, s.image, device),
        labels(s.classes, (s.batch_size, s.image, s.image), device),
    )
