"""Which roof a device of a trace is judged by, and what a reader should know about the choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchroof.device.cache import Cached
from torchroof.device.catalog import Match, differences, find, match
from torchroof.device.ceilings_file import ceilings_from_json
from torchroof.device.occupancy import Multiprocessor
from torchroof.device.roof import PREFERENCES, Ceiling, Roof
from torchroof.errors import CeilingsError, OptionError, UnknownDevice
from torchroof.trace.metadata import CaptureFacts


@dataclass(frozen=True, slots=True)
class Wish:
    """What roof was asked for.

    ``device`` is a name for the catalogue, ``ceilings`` a list that replaces all others. ``local`` are the
    measurements of this machine's devices, newest first, to be used in place of the file's own (None: they
    are not asked for). ``prefer`` is one of PREFERENCES: which of two limits on the same thing judges.
    """

    device: str | None = None
    ceilings: Sequence[Ceiling] | None = None
    local: Sequence[Cached] | None = None
    prefer: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device of the trace: its name as far as known, its roof (None: there is none) and its SM count."""

    index: int
    name: str | None
    roof: Roof | None
    multiprocessors: int | None
    multiprocessor: Multiprocessor | None = None
    """What one of them holds, where the file tells it."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Told:
    """What the file says of one device."""

    index: int
    name: str | None
    properties: Mapping[str, Any]
    carried: tuple[Ceiling, ...]
    on_cpu: bool

    @property
    def multiprocessors(self) -> int | None:
        units = self.properties.get("numSms")
        return int(units) if isinstance(units, int) and 0 < units < _MOST_UNITS else None

    def chosen(self, roof: Roof | None, notes: Iterable[str] = (), name: str | None = None) -> Chosen:
        one = Multiprocessor.of(self.properties)
        return Chosen(self.index, self.name or name, roof, self.multiprocessors, one, tuple(notes))


def choose_roofs(
    metadata: Mapping[str, Any],
    facts: CaptureFacts | None,
    devices: Iterable[int],
    wish: Wish = Wish(),
    *,
    on_cpu: bool = False,
) -> tuple[Chosen, ...]:
    """A roof per device index: the one asked for, else the file's own ceilings together with the catalogue's.

    ``on_cpu`` is whether the run's device is the CPU. Raises UnknownDevice for a name that the catalogue does
    not have and for a device of which nothing was measured here, OptionError where no ceiling is of the
    preferred kind.
    """
    properties = _properties(metadata)
    chosen = tuple(_choose(_told(i, properties, facts, on_cpu), wish) for i in devices)
    return chosen if wish.prefer is None else tuple(_preferring(c, wish.prefer) for c in chosen)


def _told(index: int, properties: list[Mapping[str, Any]], facts: CaptureFacts | None, on_cpu: bool) -> _Told:
    own = {} if on_cpu else _own_properties(properties, index)
    name = str(own.get("name") or "") or (facts.device_names.get(str(index)) if facts else None) or None
    return _Told(index, name, own, _carried(facts, index), on_cpu)


def _choose(told: _Told, wish: Wish) -> Chosen:
    if wish.device is not None:
        return _asked_for(told, wish.device, wish.ceilings)
    if wish.ceilings:
        return told.chosen(Roof(told.name or "given ceilings", tuple(wish.ceilings)))
    known = match(told.properties) if told.properties else Match(None)
    printed = known.entry.roof() if known.entry is not None else None
    if wish.local is not None:
        return _measured_here(told, wish.local, printed)
    if told.carried:
        return told.chosen(_joined(told, told.carried, printed), known.notes if printed else ())
    if printed is not None:
        return told.chosen(printed, known.notes, known.entry.name if known.entry else None)
    if told.properties:
        return told.chosen(None, (*known.notes, _HOW))
    return told.chosen(None, (f"the file does not say what device {told.index} is; {_HOW}",))


_HOW = "give a roof with --device NAME (see `torchroof devices`) or --ceilings FILE"


def _asked_for(told: _Told, device: str, ceilings: Sequence[Ceiling] | None) -> Chosen:
    entry = find(device)
    roof = entry.roof()
    if ceilings:
        roof = replace(roof, ceilings=tuple(ceilings) + roof.ceilings)
    notes = differences(entry, told.properties) if told.properties else ()
    if told.on_cpu:
        notes = (f"the run was on a CPU, and is judged by the roof of {entry.name}",)
    return told.chosen(roof, notes, entry.name)


def _joined(told: _Told, measured: tuple[Ceiling, ...], printed: Roof | None) -> Roof:
    """What was measured, and what the datasheet says beside it."""
    if printed is None:
        return Roof(told.name or f"device {told.index}", measured)
    has_launch = any(c.kind == "launch" for c in measured)
    rest = tuple(c for c in printed.ceilings if not (has_launch and c.kind == "launch"))
    return replace(printed, ceilings=measured + rest)


def _measured_here(told: _Told, local: Sequence[Cached], printed: Roof | None) -> Chosen:
    """By the newest measurement of the same device on this machine; for a CPU run, of this machine's CPU."""
    if told.on_cpu:
        found = next((c for c in local if c.name == told.name), None) or next(
            (c for c in local if c.kind == "cpu"), None
        )
    else:
        found = next((c for c in local if c.kind != "cpu" and c.device == told.name), None)
    if found is None:
        wanted = "the CPU" if told.on_cpu else told.name or f"device {told.index}, which the trace does not name"
        how = "run `torchroof calibrate`" if told.on_cpu else "run `torchroof calibrate` where it is"
        raise UnknownDevice(f"no ceilings of {wanted} have been measured on this machine; {how}, or name its roof")
    notes = []
    if told.name is not None and told.name != found.name:
        notes.append(f"the run was on {told.name}, and is judged by what was measured on {found.name}")
    elif told.name is None:
        notes.append(f"the file does not say what it ran on; it is judged by what was measured on {found.name}")
    if not found.quiet:
        notes.append("those ceilings were measured beside other work and may be too low; run `torchroof calibrate`")
    return told.chosen(_joined(told, found.ceilings, printed), notes, found.name)


def _preferring(chosen: Chosen, prefer: str) -> Chosen:
    """The same roof, judging by what was measured or by the datasheet. Raises OptionError."""
    if prefer not in PREFERENCES:
        raise OptionError(f"roof must be one of {', '.join(PREFERENCES)}, not {prefer!r}")
    roof = chosen.roof
    if roof is None:
        return chosen
    limits = [c for c in roof.ceilings if c.kind in ("compute", "bandwidth")]
    if not any(c.origin == prefer for c in limits):
        name = chosen.name or f"device {chosen.index}"
        if prefer == "measured":
            raise OptionError(
                f"the file has no measured ceilings of {name}; --device local takes those measured on this machine, "
                "and `torchroof calibrate` measures them"
            )
        raise OptionError(f"no datasheet peaks are known of {name}; leave out --roof datasheet, or name a --device")
    printed = {(c.kind, c.precision, c.pipe, c.level) for c in limits if c.origin == prefer}
    kept = tuple(
        c
        for c in roof.ceilings
        if prefer == "measured"
        or c.origin == prefer
        or c.origin == "given"
        or (c.kind, c.precision, c.pipe, c.level) not in printed
    )
    return replace(chosen, roof=replace(roof, ceilings=kept, prefer=prefer))


def _carried(facts: CaptureFacts | None, index: int) -> tuple[Ceiling, ...]:
    """The ceilings that the capture wrote into the file; damaged ones are none."""
    try:
        return ceilings_from_json(facts.ceilings.get(str(index), [])) if facts else ()
    except CeilingsError:
        return ()


_MOST_UNITS = 1_000_000
_FIGURES = ("totalGlobalMem", "numSms", "computeMajor", "computeMinor", "warpSize")


def _properties(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the file lists of its devices; a figure that is no number counts as not listed."""
    listed = metadata.get("deviceProperties")
    found = [p for p in listed if isinstance(p, Mapping)] if isinstance(listed, list) else []
    return [{k: v for k, v in p.items() if k not in _FIGURES or type(v) in (int, float)} for p in found]


def _own_properties(properties: list[Mapping[str, Any]], index: int) -> Mapping[str, Any]:
    """The properties of a device: by its id; a single entry, or entries that agree, stand for any device.

    Files made with one visible device number kernels by the physical index, which no entry has.
    """
    for entry in properties:
        if entry.get("id") == index:
            return entry
    alike = [{k: v for k, v in p.items() if k != "id"} for p in properties]
    return properties[0] if properties and all(p == alike[0] for p in alike) else {}
