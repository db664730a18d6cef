"""The demo's networks by name, each from a module of that name, with its sizes from configs/workloads.toml."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from torchroof.resources import read_toml
from torchroof.workloads import lesson, lstm, mlp, resnet, transformer, unet
from torchroof.workloads.training import Sizes, Workload


@dataclass(frozen=True, slots=True)
class _Network:
    sizes: Callable[..., Any]
    build: Callable[[Any, str], Workload]


_NETWORKS = {
    "lesson": _Network(lesson.Sizes, lesson.build),
    "resnet": _Network(resnet.Sizes, resnet.build),
    "transformer": _Network(transformer.Sizes, transformer.build),
    "mlp": _Network(mlp.Sizes, mlp.build),
    "lstm": _Network(lstm.Sizes, lstm.build),
    "unet": _Network(unet.Sizes, unet.build),
}


def sizes(name: str, **other: int | float | None) -> Sizes:
    """The sizes of a network as in the file; those given here that are not None go before."""
    standard = _NETWORKS[name].sizes(**read_toml("workloads.toml")[name])
    changed: Sizes = replace(standard, **{key: value for key, value in other.items() if value is not None})
    return changed


def build(name: str, sizes: Sizes, device: str = "cpu") -> Workload:
    """The network with its optimizer and its batch on a device; the same every time. Seeds torch's generators."""
    torch.manual_seed(0)
    return _NETWORKS[name].build(sizes, device)
