"""The benchmark's synthetic yardsticks: joined whole, copy by copy, and of the shapes that the real ones have."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import laws
import pytest

import torchroof

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "analysis"


@pytest.fixture
def yardsticks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    import yardsticks as found

    monkeypatch.setattr(found, "TRACES", tmp_path / "absent")
    monkeypatch.setattr(found, "SOURCES", {kind: (name, 2) for kind, (name, _) in found.SOURCES.items()})
    yield found
    for name in ("yardsticks", "twins"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("kind", "events", "kernels"), [("joins", 68_692, 4350), ("everything", 29_746, 2360)])
def test_a_twin_is_what_the_real_one_is(yardsticks: Any, tmp_path: Path, kind: str, events: int, kernels: int) -> None:
    path = yardsticks.build(kind, tmp_path)
    made = json.loads(path.read_text())["traceEvents"]
    counts = Counter(event["cat"] for event in made)
    assert len(made) == pytest.approx(2 * events, rel=0.01)
    assert counts["kernel"] == pytest.approx(2 * kernels, rel=0.06)
    data = torchroof.analyze(path).data
    laws.check(data)
    assert data.totals.kernels == counts["kernel"] and data.unattributed == ()
    assert data.totals.attributed_ns == data.totals.kernel_ns
    assert {row.phase for row in data.rows} == {"forward", "backward"}
    if kind == "everything":
        assert len(data.layers) > 100 and data.totals.layered_ns == data.totals.kernel_ns
        assert data.totals.flops is not None
