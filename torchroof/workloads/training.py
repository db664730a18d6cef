"""What every demo network is to the rest: something that trains one step when it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Workload:
    """A network, its optimizer, and a step of training on one batch that stays the same. The step returns the loss."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    step: Callable[[], torch.Tensor]


class Sizes(Protocol):
    """What the sizes of every network have in common; each adds its own."""

    @property
    def batch_size(self) -> int: ...

    @property
    def steps(self) -> int:
        """Steps that a demo counts."""

    @property
    def learning_rate(self) -> float: ...


def training(
    model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor, targets: torch.Tensor
) -> Workload:
    """Training by cross entropy between the model's scores and the targets, whose shapes ``cross_entropy`` accepts:
    scores (batch, classes, …) and integer targets (batch, …)."""

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Workload(model, optimizer, step)


def images(batch: int, channels: int, side: int, device: str) -> torch.Tensor:
    """Noise of shape (batch, channels, side, side), drawn on the CPU: the same on every device."""
    return torch.randn(batch, channels, side, side).to(device)


def labels(classes: int, shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Random class numbers (or tokens) of a shape, drawn on the CPU."""
    return torch.randint(classes, shape).to(device)
