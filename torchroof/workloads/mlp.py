"""A multilayer perceptron: Linear and GELU in turn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from torchroof.workloads.training import Workload, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    features: int
    hidden: int
    layers: int
    classes: int
    batch_size: int
    steps: int
    learning_rate: float


class MLP(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch, classes) from vectors of shape (batch, features)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        widths = [s.features] + [s.hidden] * s.layers
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.act = nn.GELU()
        self.head = nn.Linear(s.hidden, s.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            x = self.act(layer(x))
        scores: torch.Tensor = self.head(x)
        return scores


def build(s: Sizes, device: str) -> Workload:
    model = MLP(s).to(device)
    return training(
        model,
        torch.optim.AdamW(model.parameters(), lr=s.learning_rate),
        torch.randn(s.batch_size, s.features).to(device),
        labels(s.classes, (s.batch_size,), device),
    )
