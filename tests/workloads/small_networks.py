"""The demo's networks at sizes that a test can afford, and one profiled step of any network."""

from __future__ import annotations

from collections.abc import Callable

import torch

import torchroof
from torchroof.report.model import ReportData
from torchroof.workloads.networks import build, sizes
from torchroof.workloads.training import Workload

SMALL: dict[str, dict[str, int]] = {
    "lesson": {"image": 16},
    "resnet": {"image": 32, "width": 8, "classes": 10},
    "transformer": {"vocabulary": 64, "context": 16, "width": 32, "heads": 4, "layers": 2},
    "mlp": {"features": 24, "hidden": 32, "classes": 10},
    "lstm": {"vocabulary": 64, "context": 5, "width": 16, "hidden": 24},
    "unet": {"image": 16, "width": 8, "levels": 2},
}
"""What differs from configs/workloads.toml. The counts in docs/flops-against-torch.md are at these sizes."""


def small(name: str) -> Workload:
    """A network with batches of 2, after one step, so that optimizer states exist."""
    workload = build(name, sizes(name, batch_size=2, **SMALL[name]))
    workload.step()
    return workload


def profiled(model: torch.nn.Module, step: Callable[[], object]) -> ReportData:
    with torchroof.profile(model, measure=False) as prof:
        step()
    assert prof.notes == ()
    return prof.report.data
