"""Traces made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchroof.trace.reader import read
from torchroof.trace.table import TraceTable

ReadEvents = Callable[..., TraceTable]


@pytest.fixture
def read_events(tmp_path: Path) -> ReadEvents:
    """Reads a trace of the events given; other top-level keys by keyword."""

    def read_made(*events: Any, **top: Any) -> TraceTable:
        path = tmp_path / "made.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events), **top}))
        return read(path)

    return read_made


@pytest.fixture
def read_text(tmp_path: Path) -> ReadEvents:
    """Reads a file of exactly this text, bytes or str."""

    def read_made(text: str | bytes, **options: Any) -> TraceTable:
        path = tmp_path / "made.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path, **options)

    return read_made
