"""Tests that measure keep their findings in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch._inductor  # torch's profiler brings it in at its first start, and it adds a warning filter


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def cpu() -> torch.device:
    return torch.device("cpu")
