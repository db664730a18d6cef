"""The training loops that the cost of profiling is measured on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from torchroof.workloads import networks

Loop = tuple[nn.Module, Callable[[], object]]
"""A model and one step of its training."""


def tiny() -> Loop:
    """The worst case: 120 modules with next to no work, and AdamW."""
    model = nn.Sequential(*(part for _ in range(60) for part in (nn.Linear(16, 16), nn.ReLU())))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randn(4, 16)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return model, step


def resnet() -> Loop:
    """The demo's ResNet-18 with a batch of 32."""
    workload = networks.build("resnet", networks.sizes("resnet", batch_size=32))
    return workload.model, workload.step


def transformer() -> Loop:
    """The demo's transformer with a batch of 8."""
    workload = networks.build("transformer", networks.sizes("transformer", batch_size=8))
    return workload.model, workload.step


LOOPS: dict[str, Callable[[], Loop]] = {"tiny": tiny, "resnet": resnet, "transformer": transformer}
