"""What the capture tests share: a cache of their own, and a reader of what a run left in its trace."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor  # torch's profiler brings it in at its first start, and it adds a warning filter

import torchroof
from torchroof.trace.metadata import SCOPE_PREFIX, STEP_PREFIX, CaptureFacts, capture_facts


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@dataclass
class Left:
    """A trace file, read as plain JSON: no reader of ours takes part."""

    raw: dict[str, Any]
    facts: CaptureFacts

    @property
    def events(self) -> list[dict[str, Any]]:
        return [e for e in self.raw["traceEvents"] if e.get("ph") == "X"]

    @property
    def steps(self) -> list[int]:
        """Numbers of the marks, in order of start."""
        marks = [e for e in self.events if e["name"].startswith(STEP_PREFIX)]
        assert all(e["cat"] == "user_annotation" for e in marks)
        return [int(e["name"].removeprefix(STEP_PREFIX)) for e in sorted(marks, key=lambda e: e["ts"])]

    @property
    def scopes(self) -> Counter[str]:
        names = (e["name"] for e in self.events if e["name"].startswith(SCOPE_PREFIX))
        return Counter(n.removeprefix(SCOPE_PREFIX) for n in names)

    @property
    def calls(self) -> Counter[str]:
        """Layer calls by path, of all threads."""
        return Counter(self.facts.layers[i].path for c in self.facts.calls for i in c.layer)

    def paths(self, what: str) -> list[str]:
        """Paths of the calls that are listed as ``recompute`` or ``cut``, in order."""
        return [self.facts.layers[c.layer[i]].path for c in self.facts.calls for i in getattr(c, what)]

    def layer(self, path: str) -> Any:
        return next(x for x in self.facts.layers if x.path == path)


@pytest.fixture
def left(tmp_path: Path) -> Callable[[torchroof.profile], Left]:
    def read(prof: torchroof.profile) -> Left:
        path = tmp_path / "left.json"
        prof.export_trace(path)
        raw = json.loads(path.read_text(encoding="utf-8"))
        facts = capture_facts(raw)
        assert facts is not None
        return Left(raw, facts)

    return read
