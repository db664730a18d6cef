"""Ceilings of a device that is not in the catalogue: units x clock x what its architecture does per clock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchroof.device.roof import Ceiling
from torchroof.resources import read_toml

_SOURCE = "derived from what the driver reports and the rates of {}"
_CONSUMER = re.compile(r"\bGeForce\b", re.IGNORECASE)
_TRANSFERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a driver tells of a device at run time; None or 0 where it does not.

    ``architecture`` is ``sm_89`` or ``gfx942``; clocks are the highest ones.
    """

    name: str
    architecture: str
    multiprocessors: int
    clock_hz: float | None = None
    memory_clock_hz: float | None = None
    memory_bus_bits: int | None = None


def derive(reported: Reported) -> tuple[Ceiling, ...]:
    """Ceilings labelled ``derived``; none for an architecture that is not known, or without clocks."""
    rates = read_toml("architectures.toml").get(reported.architecture)
    if rates is None:
        return ()
    return (*_compute(reported, rates), *_bandwidth(reported, rates))


def _compute(reported: Reported, rates: Mapping[str, Any]) -> Iterator[Ceiling]:
    if not reported.clock_hz or not reported.multiprocessors:
        return
    narrow = rates.get("geforce", {}) if _CONSUMER.search(reported.name) else {}
    for pipe in ("matrix", "vector"):
        per_clock = rates.get(pipe, {}) | (narrow if pipe == "matrix" else {})
        for precision, rate in per_clock.items():
            yield Ceiling(
                kind="compute",
                precision=precision,
                pipe=pipe,
                value=float(reported.multiprocessors * reported.clock_hz * rate),
                unit="FLOP/s",
                origin="derived",
                source=_SOURCE.format(reported.architecture),
                confidence="low",
            )


def _bandwidth(reported: Reported, rates: Mapping[str, Any]) -> Iterator[Ceiling]:
    transfers = rates.get("transfers_per_clock", _TRANSFERS)
    if not reported.memory_clock_hz or not reported.memory_bus_bits or not transfers:
        return
    yield Ceiling(
        kind="bandwidth",
        level="dram",
        value=float(reported.memory_clock_hz * reported.memory_bus_bits / 8 * transfers),
        unit="byte/s",
        origin="derived",
        source=_SOURCE.format(reported.architecture),
        confidence="low",
    )
