"""Ceilings as JSON: a list of objects with the fields of `Ceiling`, the same as a report's ``ceilings``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torchroof.device.roof import PATTERNS, Ceiling
from torchroof.errors import NO_PATH, CeilingsError, reason_of

UNITS = {"compute": "FLOP/s", "bandwidth": "byte/s", "launch": "s", "host": "s"}
"""The unit of each kind of ceiling."""
PIPES = ("matrix", "vector")
ORIGINS = ("datasheet", "measured", "derived", "given")

_FIELDS = tuple(f.name for f in fields(Ceiling))
_LARGEST = 1e30
_REQUIRED = ("kind", "value", "unit")
_TEXTS = ("kind", "precision", "pipe", "level", "unit", "origin", "source", "confidence", "measured_at", "pattern")
_ONLY_FOR = {
    "precision": "compute",
    "pipe": "compute",
    "level": "bandwidth",
    "capacity_bytes": "bandwidth",
    "pattern": "bandwidth",
}


def read_ceilings(path: str | Path) -> tuple[Ceiling, ...]:
    """The ceilings of a JSON file. Raises CeilingsError, in one line that names the file and the item."""
    if not os.fspath(path):
        raise CeilingsError("the name of the ceilings file is empty; name a file")
    try:
        text = Path(path).read_bytes()
    except NO_PATH as why:
        raise CeilingsError(f"cannot read the ceilings file {path}: {reason_of(why)}") from None
    try:
        data = json.loads(text)
    except ValueError as why:
        raise CeilingsError(f"{path} is not JSON: {why}") from None
    except RecursionError:
        raise CeilingsError(f"{path} is nested too deeply for a list of ceilings") from None
    try:
        return ceilings_from_json(data)
    except CeilingsError as why:
        raise CeilingsError(f"{path}: {why}") from None


def given_ceilings(given: object) -> tuple[Ceiling, ...] | None:
    """The ceilings that a caller gave: values, objects of the JSON form, or a JSON file's path. None stays None.

    Raises CeilingsError.
    """
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        return read_ceilings(os.fspath(given))
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise CeilingsError(f"ceilings must be a list of Ceiling or a JSON file's path, not {given!r}")
    return ceilings_from_json([asdict(c) if isinstance(c, Ceiling) else c for c in given])


def ceilings_from_json(data: object) -> tuple[Ceiling, ...]:
    """Ceilings from decoded JSON. ``origin`` is ``given`` and ``source`` ``ceilings file`` where left out."""
    if not isinstance(data, Sequence) or isinstance(data, str | bytes):
        raise CeilingsError("ceilings must be a JSON list of objects with kind, value and unit")
    if not data:
        raise CeilingsError("the list of ceilings is empty")
    return tuple(_ceiling(f"ceiling {position}", item) for position, item in enumerate(data, 1))


def ceilings_to_json(ceilings: Iterable[Ceiling]) -> list[dict[str, Any]]:
    """The JSON form, every field spelled out; `ceilings_from_json` gives equal ceilings back."""
    return [asdict(c) for c in ceilings]


def _ceiling(place: str, item: object) -> Ceiling:
    if not isinstance(item, Mapping):
        raise CeilingsError(f"{place} is not an object")
    for key in item:
        if key not in _FIELDS:
            raise CeilingsError(f"{place} has the unknown key {key!r}; known are {', '.join(_FIELDS)}")
    for key in _REQUIRED:
        if item.get(key) is None:
            raise CeilingsError(f"{place} lacks {key!r}")
    for key in _TEXTS:
        if item.get(key) is not None and not isinstance(item[key], str):
            raise CeilingsError(f"{place} has {key} = {item[key]!r}, which is not a text")
    _check_kind(place, item)
    _check_positive(place, "value", item["value"])
    capacity = item.get("capacity_bytes")
    if capacity is not None:
        _check_positive(place, "capacity_bytes", capacity)
        if not isinstance(capacity, int):
            raise CeilingsError(f"{place} has capacity_bytes = {capacity!r}, which is not a whole number")
    if item.get("pattern") not in (None, *PATTERNS):
        raise CeilingsError(f"{place} has the unknown pattern {item['pattern']!r}; known are {', '.join(PATTERNS)}")
    if item.get("median_value") is not None:
        _check_positive(place, "median_value", item["median_value"])
    if item["kind"] in ("compute", "bandwidth") and item["value"] < 1:
        raise CeilingsError(f"{place} has value = {item['value']!r}; under 1 {item['unit']} is no limit of a device")
    values = {"origin": "given", "source": "ceilings file"} | {k: v for k, v in item.items() if v is not None}
    return Ceiling(**values | {"value": float(item["value"])})


def _check_kind(place: str, item: Mapping[str, Any]) -> None:
    """The unit, and the fields that go with a kind of ceiling."""
    kind, unit = item["kind"], item["unit"]
    if kind not in UNITS:
        raise CeilingsError(f"{place} has the unknown kind {kind!r}; known are {', '.join(UNITS)}")
    if unit != UNITS[kind]:
        raise CeilingsError(f"{place} ({kind}) has the unit {unit!r}; it must be {UNITS[kind]!r}")
    for field, owner in _ONLY_FOR.items():
        if kind != owner and item.get(field) is not None:
            raise CeilingsError(f"{place} ({kind}) has {field}, which only a {owner} ceiling has")
    if kind == "compute" and (not item.get("precision") or item.get("pipe") not in PIPES):
        raise CeilingsError(f"{place} (compute) needs a precision and a pipe, which is matrix or vector")
    if kind == "bandwidth" and not item.get("level"):
        raise CeilingsError(f"{place} (bandwidth) needs a level, for example dram")
    origin = item.get("origin")
    if origin is not None and origin not in ORIGINS:
        raise CeilingsError(f"{place} has the unknown origin {origin!r}; known are {', '.join(ORIGINS)}")


def _check_positive(place: str, key: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= _LARGEST:  # type: ignore[operator]
        shown = "a number beyond all measure" if isinstance(value, int) and value > _LARGEST else repr(value)
        raise CeilingsError(f"{place} has {key} = {shown}, which is not a positive finite number")
