"""The doctor's checks: what they say of recordings and rates with known faults."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from torchroof.cli import main
from torchroof.device import cache
from torchroof.device.cache import Cached
from torchroof.device.roof import Ceiling, Roof
from torchroof.measure import checks, quiet
from torchroof.measure.checks import FAULT, LEFT_OUT, OK, OPS, Check
from torchroof.measure.conditions import cache_key

DRAM = Ceiling(kind="bandwidth", level="dram", value=1e11, unit="byte/s", origin="measured", source="test")


def trace(ops: int = OPS, shaped: int = OPS, kernels: int = OPS, linked: int = OPS) -> list[dict[str, Any]]:
    """A device's recording of products, with as many of each kind of event."""
    events = []
    for i in range(ops):
        args = {"Input Dims": [[64, 64], [64, 64]]} if i < shaped else {}
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "args": args})
    for i in range(kernels):
        events.append({"ph": "X", "cat": "kernel", "name": "gemm", "args": {"correlation": i}})
        if i < linked:
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": i}})
    return events


def outcomes(found: Any) -> dict[str, str]:
    return {check.name: check.outcome for check in found}


@pytest.mark.parametrize(
    ("flaw", "named"),
    [
        ({}, None),
        ({"ops": 19}, "ops recorded"),
        ({"shaped": 0}, "ops with shapes"),
        ({"kernels": 0, "linked": 0}, "kernels recorded"),
        ({"linked": 3}, "kernels with their launch"),
    ],
)
def test_a_recording_with_a_flaw_is_told(flaw: dict[str, int], named: str | None) -> None:
    found = outcomes(checks.judge_events(trace(**flaw), on_device=True))
    assert {name for name, outcome in found.items() if outcome == FAULT} >= ({named} if named else set())
    assert (FAULT in found.values()) == (named is not None)


def test_a_cpus_recording_has_no_kernels_to_miss() -> None:
    found = outcomes(checks.judge_events(trace(kernels=0), on_device=False))
    assert found == {"ops recorded": OK, "ops with shapes": OK}


def test_the_profiler_of_this_torch(cpu: torch.device) -> None:
    assert set(outcomes(checks.profiler(cpu)).values()) == {OK}


@pytest.mark.parametrize(
    ("share", "origin", "outcome"),
    [
        (0.49, "measured", FAULT),
        (0.51, "measured", OK),
        (1.14, "measured", OK),
        (1.16, "measured", FAULT),
        (0.41, "datasheet", OK),
        (0.39, "datasheet", FAULT),
    ],
)
def test_a_rate_beside_its_ceiling(share: float, origin: str, outcome: str) -> None:
    check = checks.judge_rate("copy", share * 1e11, replace(DRAM, origin=origin), "B/s")
    assert check.outcome == outcome and bool(check.advice) == (outcome == FAULT)
    assert "100 GB/s" in check.expected


def test_calibration_beside_datasheet() -> None:
    peak = replace(DRAM, kind="compute", level=None, precision="bfloat16", pipe="matrix", unit="FLOP/s", value=300.0)
    printed = [replace(c, origin="datasheet", value=v) for c, v in ((DRAM, 3e11), (peak, 400.0))]
    found = outcomes(checks.beside_datasheet(Roof("card", (DRAM, peak, *printed))))
    # A third of the datasheet's bandwidth, three quarters of its peak.
    assert found == {"calibration of dram": FAULT, "calibration of bfloat16 matrix": OK}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINETO_LOG_LEVEL", "9")
    monkeypatch.setattr(quiet, "busy_reason", lambda _: "a test runs")
    monkeypatch.setattr(checks, "MOST_OVERHEAD_S", 1.0)


@pytest.mark.usefixtures("quick")
def test_a_machine_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--device", "cpu", "--format", "json"]) == 0
    found = {c["name"]: c for c in json.loads(capsys.readouterr().out)}
    assert found["FLOPs of a small net"]["found"] == "516,096"  # 2·32·(48·64 + 64·10) + 2·32·(48·64 + 2·64·10)
    assert found["product and copy"]["outcome"] == LEFT_OUT and "a test runs" in found["product and copy"]["found"]
    assert found["calibration"]["advice"] == "run `torchroof calibrate`"


@pytest.mark.usefixtures("quick")
def test_a_fault_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(checks, "private_names", lambda: iter([Check("seeded", FAULT, "a", "b", "mend it")]))
    assert main(["doctor", "--device", "cpu"]) == 1
    out = capsys.readouterr().out
    assert "FAULT seeded: b  (expected: a)" in out and "mend it" in out and "1 of " in out


def test_ceilings_far_off_are_found(monkeypatch: pytest.MonkeyPatch, cpu: torch.device) -> None:
    """A kept bandwidth of 1 EB/s: no machine copies half as quickly."""
    monkeypatch.setattr(checks, "main_memory_copy", lambda *_, **__: 1e10)
    key = cache_key(cpu)
    cache.store(Cached(key, cache.cpu_name(), "cpu", "here", (replace(DRAM, value=1e18),)))
    kept = cache.load(key)
    assert kept is not None
    (check,) = checks.against_ceilings(cpu, Roof("here", kept.ceilings), None)
    assert check.name == "copy beyond the caches" and check.outcome == FAULT
