"""The ceilings that a live run takes along: kept ones, else what the device's kind allows at that moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from torchroof.device import cache
from torchroof.device.catalog import match
from torchroof.device.derive import Reported, derive
from torchroof.device.roof import Ceiling
from torchroof.measure.calibrate import Calibration, live_ceilings, recall
from torchroof.measure.conditions import cache_key, device_name

_SURPASSED = (
    "the ceilings that were measured of this device are not used, for a run surpassed them; "
    "`torchroof calibrate` measures them again"
)


def before_run(device: torch.device) -> Calibration:
    """The ceilings of the device that is going to be judged.

    A CPU's are measured where none are kept. An accelerator's kept ones are taken unless a run surpassed them, but
    nothing is run on one that the catalogue knows; one that it does not know gets ceilings derived from what its
    driver tells, and where that is not enough it is measured.
    """
    if device.type == "cpu":
        return live_ceilings(device)
    kept = cache.load(cache_key(device))
    surpassed = kept is not None and not kept.quiet and kept.doubted > 0
    if kept is not None and not surpassed:
        return recall(kept)
    notes = (_SURPASSED,) if surpassed else ()
    told = driver_properties(device)
    if match(told).entry is not None:
        return Calibration(device_name(device), (), notes)
    derived = derive(reported(device))
    if {"compute", "bandwidth"} <= {c.kind for c in derived}:
        return Calibration(device_name(device), derived, notes)
    return live_ceilings(device)


def printed_ceilings(device: torch.device) -> tuple[Ceiling, ...]:
    """What the datasheet says of compute and bandwidth; nothing for a CPU and for what the catalogue lacks."""
    entry = None if device.type == "cpu" else match(driver_properties(device)).entry
    return () if entry is None else entry.roof(launch=False).ceilings


def kept_ceilings(device: torch.device) -> tuple[Ceiling, ...]:
    """What was measured of the device before, under the conditions of now."""
    kept = cache.load(cache_key(device))
    return () if kept is None else kept.ceilings


def driver_properties(device: torch.device) -> Mapping[str, Any]:
    """What torch tells of an accelerator, under the names that a trace has for it."""
    told = getattr(torch, device.type).get_device_properties(device)
    return {
        "name": told.name,
        "totalGlobalMem": told.total_memory,
        "numSms": getattr(told, "multi_processor_count", None),
        "computeMajor": getattr(told, "major", None),
        "computeMinor": getattr(told, "minor", None),
        "warpSize": getattr(told, "warp_size", None),
    }


def reported(device: torch.device) -> Reported:
    """What torch tells that peaks can be derived from; clocks are in it from torch 2.10 on."""
    told = getattr(torch, device.type).get_device_properties(device)
    gfx = str(getattr(told, "gcnArchName", "") or "").partition(":")[0]
    major, minor = getattr(told, "major", None), getattr(told, "minor", None)

    def hertz(name: str) -> float | None:
        kilohertz = getattr(told, name, None)
        return float(kilohertz) * 1e3 if kilohertz else None

    return Reported(
        name=str(told.name),
        architecture=gfx if gfx.startswith("gfx") else f"sm_{major}{minor}",
        multiprocessors=int(getattr(told, "multi_processor_count", 0) or 0),
        clock_hz=hertz("clock_rate"),
        memory_clock_hz=hertz("memory_clock_rate"),
        memory_bus_bits=getattr(told, "memory_bus_width", None),
    )
