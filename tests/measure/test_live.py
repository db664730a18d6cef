"""What a live run takes along on accelerators, with a stand-in for torch's module of one: no GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchroof.device import cache
from torchroof.device.cache import Cached
from torchroof.device.roof import Ceiling
from torchroof.measure import conditions, live
from torchroof.measure.calibrate import Calibration

CARD = torch.device("cuda", 0)
KNOWN = {"name": "NVIDIA A100-SXM4-40GB", "total_memory": 42_298_834_944, "multi_processor_count": 108}
UNKNOWN = {"name": "NVIDIA GeForce RTX 9990", "total_memory": 32 << 30, "multi_processor_count": 100}
CLOCKS = {"clock_rate": 2_000_000, "memory_clock_rate": 10_000_000, "memory_bus_width": 256}
LIMIT = Ceiling(kind="bandwidth", level="dram", value=1e12, unit="byte/s", origin="measured", source="t")


def stand_in(monkeypatch: pytest.MonkeyPatch, major: int = 8, minor: int = 9, **told: Any) -> None:
    """A card that tells this of itself; whatever would run something on it fails."""
    properties = SimpleNamespace(major=major, minor=minor, warp_size=32, **told)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: properties.name)
    monkeypatch.setattr(conditions, "_electrical", lambda _: {"power_limit_w": 300.0})
    monkeypatch.setattr(live, "live_ceilings", lambda _: Calibration("measured", (LIMIT,)))


def test_a_known_card_is_not_measured_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 8, 0, **KNOWN)
    assert live.before_run(CARD).ceilings == ()
    assert {c.origin for c in live.printed_ceilings(CARD)} == {"datasheet"}


def test_what_was_measured_of_it_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 8, 0, **KNOWN)
    key = conditions.cache_key(CARD)
    assert "NVIDIA A100-SXM4-40GB" in key and "300.0" in key and torch.__version__ in key
    cache.store(Cached(key, KNOWN["name"], "cuda", KNOWN["name"], (LIMIT,)))
    assert live.before_run(CARD).ceilings == (LIMIT,)
    # Under another power limit it is another device.
    monkeypatch.setattr(conditions, "_electrical", lambda _: {"power_limit_w": 200.0})
    assert live.before_run(CARD).ceilings == ()


def test_an_unknown_card_is_derived_from_what_its_driver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 multiprocessors x 2 GHz x 256; 10 GHz x 256 bits / 8 x 2."""
    stand_in(monkeypatch, **UNKNOWN, **CLOCKS)
    found = live.before_run(CARD).ceilings
    (vector,) = [c for c in found if c.precision == "float32"]
    (memory,) = [c for c in found if c.kind == "bandwidth"]
    assert (vector.value, memory.value, memory.origin) == (51.2e12, 640e9, "derived")


def test_an_unknown_card_that_tells_no_clocks_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, **UNKNOWN)
    assert live.before_run(CARD).ceilings == (LIMIT,)


def test_an_amd_card_goes_by_its_gfx_name(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 9, 4, **(UNKNOWN | {"name": "AMD Instinct MI999"}), gcnArchName="gfx942:sramecc+:xnack-")
    assert live.reported(CARD).architecture == "gfx942"
