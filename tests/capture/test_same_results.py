"""Profiling changes no result: loss, gradients and random state are the same bits with it on and off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torchroof


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 8))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.block, x.requires_grad_(), use_reentrant=self.reentrant)


NETS: dict[str, Callable[[], tuple[nn.Module, tuple[int, ...]]]] = {
    "conv": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten()),
        (2, 3, 8, 8),
    ),
    "dropout": lambda: (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 4)), (4, 8)),
    "checkpoint, reentrant": lambda: (Checkpointed(True), (4, 8)),
    "checkpoint, not reentrant": lambda: (Checkpointed(False), (4, 8)),
    "transformer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8)),
}


def _train(name: str, profiled: bool, measure: bool = False) -> list[Any]:
    torch.manual_seed(1)
    model, shape = NETS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    seen: list[Any] = []
    block: Any = torchroof.profile(model, measure=measure) if profiled else nullcontext()
    with block as prof:
        for _ in range(5):
            loss = model(torch.randn(shape)).square().mean()
            loss.backward()
            seen += [loss.detach().clone(), *(p.grad.clone() for p in model.parameters())]
            optimizer.step()
            optimizer.zero_grad()
            if profiled:
                prof.step()
    return [*seen, *(p.detach().clone() for p in model.parameters()), torch.get_rng_state()]


@pytest.mark.parametrize("name", NETS)
def test_the_same_bits_with_and_without(name: str) -> None:
    plain, profiled = _train(name, False), _train(name, True)
    assert len(plain) == len(profiled)
    assert all(torch.equal(a, b) for a, b in zip(plain, profiled, strict=True))


def test_the_same_bits_when_ceilings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchroof.measure import calibrate

    monkeypatch.setattr(calibrate, "LIVE", replace(calibrate.LIVE, total_s=0.2, main_memory=16 << 20))
    plain, profiled = _train("dropout", False), _train("dropout", True, measure=True)
    assert all(torch.equal(a, b) for a, b in zip(plain, profiled, strict=True))


def test_the_comparison_sees_one_bit() -> None:
    """A witness for the tests above: one more draw of random numbers is noticed."""
    plain = _train("dropout", False)
    torch.rand(1)
    assert not torch.equal(plain[-1], torch.get_rng_state())
