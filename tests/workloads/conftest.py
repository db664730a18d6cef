"""What the tests of the networks share: no recording touches the user's cache or writes to stderr."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch._inductor  # torch's profiler brings it in at its first start, and it adds a warning filter


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KINETO_LOG_LEVEL", "9")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks as small as these gain nothing by threads, and on a busy machine threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
