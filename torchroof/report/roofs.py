"""Which roof a device of a trace is judged by, and what a reader should know about the choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchroof.device.catalog import differences, find, match
from torchroof.device.ceilings_file import ceilings_from_json
from torchroof.device.roof import Ceiling, Roof
from torchroof.errors import CeilingsError
from torchroof.trace.metadata import CaptureFacts


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device of the trace: its name as far as known, its roof (None: there is none) and its SM count."""

    index: int
    name: str | None
    roof: Roof | None
    multiprocessors: int | None
    notes: tuple[str, ...] = ()


def choose_roofs(
    metadata: Mapping[str, Any],
    facts: CaptureFacts | None,
    devices: Iterable[int],
    *,
    device: str | None = None,
    ceilings: Sequence[Ceiling] | None = None,
) -> tuple[Chosen, ...]:
    """A roof per device index: the one asked for, else the file's own ceilings, else the catalogue's.

    ``device`` is a name for the catalogue, ``ceilings`` a list that replaces all others. Raises
    UnknownDevice for a name that the catalogue does not have.
    """
    properties = _properties(metadata)
    return tuple(_choose(index, properties, facts, device, ceilings) for index in devices)


def _choose(
    index: int,
    properties: list[Mapping[str, Any]],
    facts: CaptureFacts | None,
    device: str | None,
    ceilings: Sequence[Ceiling] | None,
) -> Chosen:
    own = _own_properties(properties, index)
    name = str(own.get("name") or "") or (facts.device_names.get(str(index)) if facts else None) or None
    units = own.get("numSms")
    multiprocessors = int(units) if isinstance(units, int) and units > 0 else None
    if device is not None:
        entry = find(device)
        roof = entry.roof()
        notes = differences(entry, own) if own else ()
        if ceilings:
            roof = Roof(roof.name, tuple(ceilings) + roof.ceilings, roof.matched)
        return Chosen(index, name or entry.name, roof, multiprocessors, tuple(notes))
    if ceilings:
        return Chosen(index, name, Roof(name or "given ceilings", tuple(ceilings)), multiprocessors)
    carried = _carried(facts, index)
    if carried:
        return Chosen(index, name, Roof(name or f"device {index}", carried), multiprocessors)
    if own:
        found = match(own)
        if found.entry is not None:
            return Chosen(index, name or found.entry.name, found.entry.roof(), multiprocessors, found.notes)
        return Chosen(index, name, None, multiprocessors, (*found.notes, _HOW))
    return Chosen(index, name, None, multiprocessors, (f"the file does not say what device {index} is; {_HOW}",))


_HOW = "give a roof with --device NAME (see `torchroof devices`) or --ceilings FILE"


def _carried(facts: CaptureFacts | None, index: int) -> tuple[Ceiling, ...]:
    """The ceilings that the capture wrote into the file; damaged ones are none."""
    try:
        return ceilings_from_json(facts.ceilings.get(str(index), [])) if facts else ()
    except CeilingsError:
        return ()


def _properties(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = metadata.get("deviceProperties")
    return [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []


def _own_properties(properties: list[Mapping[str, Any]], index: int) -> Mapping[str, Any]:
    """The properties of a device: by its id; a single entry, or entries that agree, stand for any device.

    Files made with one visible device number kernels by the physical index, which no entry has.
    """
    for entry in properties:
        if entry.get("id") == index:
            return entry
    alike = [{k: v for k, v in p.items() if k != "id"} for p in properties]
    return properties[0] if properties and all(p == alike[0] for p in alike) else {}
