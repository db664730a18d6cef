"""The likely cause of what is quicker than its roof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchroof.device.roof import Ceiling, Roof
from torchroof.roofline.suspicion import likely_cause

DRAM = Ceiling(kind="bandwidth", level="dram", value=1e12, unit="byte/s", origin="datasheet", source="test")
PEAK = replace(DRAM, kind="compute", level=None, precision="bfloat16", pipe="matrix", value=1e15, unit="FLOP/s")
ROOF = Roof("card", (PEAK, DRAM), last_cache_bytes=50_000_000)
MEASURED = replace(PEAK, origin="measured", confidence="high")


@pytest.mark.parametrize(
    ("efficiency", "ceiling", "roof", "call_bytes", "algorithm", "said"),
    [
        (2.2, PEAK, ROOF, 1000, "Winograd", "use Winograd"),
        (1.3, DRAM, ROOF, 33_000_000, None, "a call moves 33 MB, which fits the device's cache of 50 MB"),
        (1.3, DRAM, ROOF, 60_000_000, None, "the work model counts too much"),
        (1.3, DRAM, replace(ROOF, last_cache_bytes=None), 1000, None, "the work model counts too much"),
        (1.08, PEAK, ROOF, 1000, None, "a higher clock"),
        (1.2, PEAK, ROOF, 1000, None, "the work model counts too much"),
        (1.2, MEASURED, ROOF, 1000, None, "run `torchroof calibrate`"),
        (1.5, MEASURED, ROOF, 1000, None, "the work model counts too much"),
        (1.5, replace(MEASURED, confidence="low"), ROOF, 1000, None, "beside other work"),
        (1.5, replace(PEAK, origin="given"), ROOF, 1000, None, "that was given is too low"),
        (1.5, None, None, None, None, "the work model counts too much"),
    ],
)
def test_likely_causes(
    efficiency: float,
    ceiling: Ceiling | None,
    roof: Roof | None,
    call_bytes: int | None,
    algorithm: str | None,
    said: str,
) -> None:
    cause = likely_cause(efficiency, ceiling, roof, call_bytes, algorithm)
    assert said in cause.words
    assert cause.sound == any(word in cause.words for word in ("Winograd", "fits the device's cache", "clock"))


def test_a_cache_whose_bandwidth_is_known_is_no_excuse() -> None:
    """Then the report has judged by it, and it was quicker still."""
    l2 = replace(DRAM, level="l2", value=5e12, capacity_bytes=50_000_000)
    roof = replace(ROOF, ceilings=(PEAK, l2, DRAM))
    assert "work model" in likely_cause(1.3, DRAM, roof, 33_000_000).words
