"""One device of the catalogue: its figures as they are stored, checked, and as a roof."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torchroof.device.roof import Ceiling, Roof
from torchroof.errors import CeilingsError

LAUNCH_S = 1.5e-6
"""Least time of a kernel on a GPU where none was measured."""

PRECISIONS = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "float4", "int8", "int4")
"""Torch's names, plus ``tf32``, ``float8`` and ``float4``, which stand for several of them or for none."""

CONFIDENCES = ("high", "medium", "low")

_RANGES: dict[str, tuple[float, float]] = {
    "multiprocessors": (1, 2_000),
    "dies": (2, 8),
    "boost_hz": (1e8, 1e10),
    "memory_bytes": (2**30, 2**42),
    "memory_bandwidth_bytes_per_s": (1e10, 1e14),
    "l2_bytes": (2**18, 2**32),
    "sparsity": (1, 2),
}
"""What a device of any make can have; a figure outside is a slip of the unit."""
_FLOPS_PER_S = (1e10, 1e17)
_TEXTS = ("name", "vendor", "architecture", "source", "confidence", "caution", "variant_of")
_LISTS = ("patterns", "aliases", "multiprocessors_reported")
_RATES = ("matrix_flops_per_s", "vector_flops_per_s")
_REQUIRED = (
    "name",
    "patterns",
    "vendor",
    "architecture",
    "memory_bandwidth_bytes_per_s",
    "source",
    "confidence",
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A device. Rates are dense; ``sparsity`` is what 2:4 sparsity multiplies them by.

    ``patterns`` are regular expressions on the name that a driver reports. An entry with ``variant_of``
    has no name of its own: it is told apart from that entry by units and memory. ``multiprocessors`` are
    SMs, compute units, Xe-cores, GPU cores or matrix engines; ``multiprocessors_reported`` lists other
    counts under which drivers report the same hardware. ``dies`` is into how many equal parts the card can be
    divided, each of which a driver then reports under the card's name. ``origin`` is ``derived`` for a part of a card.
    """

    key: str
    name: str
    patterns: tuple[str, ...]
    vendor: str
    architecture: str
    memory_bandwidth_bytes_per_s: float
    source: str
    confidence: str
    aliases: tuple[str, ...] = ()
    variant_of: str | None = None
    caution: str | None = None
    multiprocessors: int | None = None
    multiprocessors_reported: tuple[int, ...] = ()
    dies: int | None = None
    boost_hz: float | None = None
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    sparsity: float = 1
    matrix_flops_per_s: Mapping[str, float]
    vector_flops_per_s: Mapping[str, float]
    origin: str = "datasheet"

    @cached_property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability as CUDA and HIP report it (gfx90a is 9.0), None where there is none."""
        if found := re.match(r"sm_(\d+)(\d)\b", self.architecture):
            return int(found[1]), int(found[2])
        if found := re.match(r"gfx(\d+)([0-9a-f])[0-9a-f]\b", self.architecture):
            return int(found[1]), int(found[2], 16)
        return None

    @cached_property
    def warp(self) -> int | None:
        """Threads of a warp or wavefront; it tells a Hopper (9.0, 32) from a CDNA2 (9.0, 64)."""
        if self.capability is None:
            return None
        return 64 if self.architecture.startswith("gfx9") else 32

    def ceilings(self) -> Iterator[Ceiling]:
        """Compute and bandwidth ceilings as the datasheet has them."""
        for pipe, rates in (("matrix", self.matrix_flops_per_s), ("vector", self.vector_flops_per_s)):
            for precision, value in rates.items():
                yield self._ceiling("compute", value, "FLOP/s", precision=precision, pipe=pipe)
        yield self._ceiling("bandwidth", self.memory_bandwidth_bytes_per_s, "byte/s", level="dram")

    def _ceiling(self, kind: str, value: float, unit: str, **more: Any) -> Ceiling:
        return Ceiling(
            kind=kind,
            value=float(value),
            unit=unit,
            origin=self.origin,
            source=self.source,
            confidence=self.confidence,
            **more,
        )

    def roof(self, *, launch: bool = True) -> Roof:
        """The roof over this device; ``launch`` adds the usual least time of a kernel."""
        ceilings = tuple(self.ceilings())
        if launch:
            typical = "typical; not measured on this device"
            ceilings += (
                Ceiling(kind="launch", value=LAUNCH_S, unit="s", origin="given", source=typical, confidence="low"),
            )
        return Roof(self.name, ceilings, self.key, last_cache_bytes=self.l2_bytes)

    def units(self) -> tuple[int, ...]:
        """Every multiprocessor count under which a driver may report this device."""
        own = () if self.multiprocessors is None else (self.multiprocessors,)
        return own + self.multiprocessors_reported


def parse_entry(key: str, table: Mapping[str, Any], where: str) -> Entry:
    """An entry from a TOML table. Raises CeilingsError naming ``where`` (the file), device, key and value."""
    place = f"{where}: [{key}]"
    for name in _REQUIRED:
        if name not in table:
            raise CeilingsError(f"{place} lacks the key {name}")
    for name, value in table.items():
        _check(place, name, value)
    if not any(table.get(name) for name in _RATES):
        raise CeilingsError(f"{place} has no rate; give matrix_flops_per_s or vector_flops_per_s")
    return entry_of(key, table)


def entry_of(key: str, table: Mapping[str, Any]) -> Entry:
    """An entry from a table that was checked before."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    for name in _RATES:
        values.setdefault(name, {})
    return Entry(key=key, **values)


def _check(place: str, name: str, value: Any) -> None:
    if name in _RANGES:
        _check_number(place, name, value, *_RANGES[name])
    elif name in _RATES:
        if not isinstance(value, dict):
            raise CeilingsError(f"{place} {name} = {value!r} is not a table of rates by precision")
        for precision, rate in value.items():
            if precision not in PRECISIONS:
                raise CeilingsError(f"{place} {name} has the unknown precision {precision!r}")
            _check_number(place, f"{name}.{precision}", rate, *_FLOPS_PER_S)
    elif name in _TEXTS:
        if not isinstance(value, str) or not value.strip():
            raise CeilingsError(f"{place} {name} = {value!r} is not a text")
        if name == "confidence" and value not in CONFIDENCES:
            raise CeilingsError(f"{place} confidence = {value!r} is none of {', '.join(CONFIDENCES)}")
    elif name in _LISTS:
        _check_list(place, name, value)
    else:
        raise CeilingsError(f"{place} has the unknown key {name!r}")


def _check_list(place: str, name: str, value: Any) -> None:
    if not isinstance(value, list):
        raise CeilingsError(f"{place} {name} = {value!r} is not a list")
    for item in value:
        if name == "multiprocessors_reported":
            _check_number(place, name, item, *_RANGES["multiprocessors"])
        elif not isinstance(item, str) or not item:
            raise CeilingsError(f"{place} {name} holds {item!r}, which is not a text")
        elif name == "patterns":
            try:
                re.compile(item)
            except re.error as why:
                raise CeilingsError(f"{place} patterns holds {item!r}: {why}") from None


def _check_number(place: str, name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise CeilingsError(f"{place} {name} = {value!r} is outside {least:g} to {most:g}")
