"""Events into columns, chunk by chunk: nothing of an event outlives its chunk but numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from torchroof.tensors import OpCall
from torchroof.trace import dialects
from torchroof.trace.dialects import COLLECTIVE_PREFIX
from torchroof.trace.events import ABSENT, NO_ARGS, Args, Event
from torchroof.trace.interning import KINDS, ON_DEVICE, Categories, Keys, Names, Threads
from torchroof.trace.operands import Lists, op_call
from torchroof.trace.table import NONE, HostKind, Int64
from torchroof.trace.times import nanoseconds

_NUMBER = re.compile(r"-?\d+$")
_ROW_BYTES = 300
"""What a kept event takes, its share of the join included: 235 were measured on seven million of them."""
_SIGNATURE_BYTES = 1000
_MOST_PRODUCTS = 100_000
_ALL_STREAMS = 2**32 - 1
"""-1 as an unsigned number of 32 bits."""


class Column:
    """A column that grows by arrays."""

    def __init__(self, dtype: type[np.signedinteger[Any]] = np.int64) -> None:
        self._dtype = dtype
        self._parts: list[NDArray[Any]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: Sequence[int] | NDArray[Any]) -> None:
        part = np.asarray(values, dtype=self._dtype)
        self._length += len(part)
        self._parts.append(part)

    def whole(self, order: NDArray[np.intp] | None = None) -> NDArray[Any]:
        column = np.concatenate(self._parts) if self._parts else np.zeros(0, dtype=self._dtype)
        self._parts = [column]
        return column if order is None else column[order]


def integers(values: list[Any]) -> Int64:
    """Values of a JSON field that ought to be integers; NONE where one is none or is beyond 64 bits."""
    try:
        column = np.array(values, dtype=np.int64)
        if column.ndim == 1:
            return column
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_integer(value) for value in values], dtype=np.int64)


def _integer(value: Any) -> int:
    if isinstance(value, str) and (digits := _NUMBER.search(value)):
        value = int(digits.group()[:20])
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else NONE


@dataclass
class TimeFaults:
    """How many events had something wrong with their times."""

    without_start: int = 0
    without_duration: int = 0
    negative: int = 0

    def spans(self, events: list[Event]) -> tuple[Int64, Int64, NDArray[np.bool_] | None]:
        """Starts, ends and which events have a readable start (None: all). May raise `TextNeeded`."""
        start, started = nanoseconds([e.ts for e in events])
        length, measured = nanoseconds([e.dur for e in events])
        if started is not None:
            self.without_start += int((~started).sum())
        if measured is not None:
            self.without_duration += int((~measured).sum())
        negative = length < 0
        if negative.any():
            self.negative += int(negative.sum())
            length = np.where(negative, 0, length)
        return start, start + length, started

    def add(self, more: TimeFaults) -> None:
        self.without_start += more.without_start
        self.without_duration += more.without_duration
        self.negative += more.negative


_HOST = (
    *("start_ns", "end_ns", "thread", "kind", "name", "signature", "sequence"),
    *("forward_thread", "correlation", "module_id", "external_id", "op_id"),
)
_DEVICE = (
    *("start_ns", "end_ns", "kind", "name", "device", "stream", "correlation"),
    *("bytes", "blocks", "threads", "registers", "shared_memory", "external_id", "collective", "group"),
)
_NARROW: dict[str, type[np.signedinteger[Any]]] = {
    **dict.fromkeys(("thread", "name", "signature", "device", "collective", "group"), np.int32),
    "kind": np.int8,
}


class Columns:
    """All columns of a file while it is read."""

    def __init__(self) -> None:
        self.names = Names()
        self.threads = Threads()
        self.faults = TimeFaults()
        self.correlations = Keys()
        self.external_ids = Keys()
        self.signatures: list[OpCall] = []
        self.events = 0
        self.host = {name: Column(_NARROW.get(name, np.int64)) for name in _HOST}
        self.device = {name: Column(_NARROW.get(name, np.int64)) for name in _DEVICE}
        self.flow_ends: dict[str, list[tuple[Any, int, int]]] = {"s": [], "f": []}
        """Per phase: (id, thread, ns), in file order."""
        self.categories = Categories(self.names)
        self._products = _Products({b"": NONE})
        self._signature_numbers: dict[tuple[int, Lists], int] = {}
        self._signature_bytes = 0

    def bytes_needed(self) -> int:
        """A careful estimate of the memory that the events so far take until their report is made."""
        rows = len(self.host["start_ns"]) + len(self.device["start_ns"]) + len(self.flow_ends["s"])
        return rows * _ROW_BYTES + self.names.bytes + self._signature_bytes

    def append(self, events: list[Event]) -> None:
        """A chunk's events. Raises `TextNeeded` before anything is kept."""
        spans = [e for e in events if e.ph == "X"]
        flows = [] if len(spans) == len(events) else _flows(events)
        categories = self.categories
        codes = np.array([categories[e.cat][e.name] for e in spans], dtype=np.int64)
        on_device = (codes & ON_DEVICE) != 0
        faults = TimeFaults()
        host_times = _readable(spans, codes, (codes != NONE) & ~on_device, faults)
        device_times = _readable(spans, codes, (codes != NONE) & on_device, faults)
        flow_ns, flow_read = nanoseconds([e.ts for e in flows])
        self.faults.add(faults)
        self.events += len(events)
        self._append_host(*host_times)
        self._append_device(*device_times)
        if flow_read is not None:
            flows, flow_ns = list(compress(flows, flow_read.tolist())), flow_ns[flow_read]
        for event, thread, ns in zip(flows, self._threads_of(flows), flow_ns.tolist(), strict=True):
            self.flow_ends[event.ph].append((event.id, thread, ns))

    def _append_host(self, events: list[Event], code: NDArray[Any], start: Int64, end: Int64) -> None:
        column = self.host
        args = [e.args or NO_ARGS for e in events]
        kind = code % KINDS
        column["start_ns"].add(start)
        column["end_ns"].add(end)
        column["kind"].add(kind)
        column["name"].add(code // KINDS)
        column["thread"].add(self._threads_of(events))
        count = len(events)
        is_other = kind != HostKind.LAUNCH  # calls of the runtime have none of what follows
        others, mine = np.flatnonzero(is_other), list(compress(args, is_other.tolist()))
        column["sequence"].add(_spread(others, integers([a.sequence for a in mine]), count))
        column["forward_thread"].add(_spread(others, integers([a.forward_thread for a in mine]), count))
        column["op_id"].add(_spread(others, integers(_external_ids(mine)), count))
        modules = np.flatnonzero(kind == HostKind.MODULE)
        column["module_id"].add(_spread(modules, integers([args[i].module_id for i in modules.tolist()]), count))
        signatures = [
            NONE
            if a.types is ABSENT and a.dims is ABSENT and a.old_dims is ABSENT
            else self._signature(int(code[i]), events[i], a)
            for i, a in zip(others.tolist(), mine, strict=True)
        ]
        column["signature"].add(_spread(others, integers(signatures), count))
        launches = np.flatnonzero(kind == HostKind.LAUNCH)
        self._add_keys(column, [args[i] for i in launches.tolist()], launches, count)

    def _threads_of(self, events: list[Event]) -> list[int]:
        threads = self.threads
        try:
            return [threads[e.pid, e.tid] for e in events]
        except TypeError:  # a list or an object for a number: told apart by how it is written
            return [threads[str(e.pid), str(e.tid)] for e in events]

    def _append_device(self, events: list[Event], code: NDArray[Any], start: Int64, end: Int64) -> None:
        column = self.device
        args = [e.args or NO_ARGS for e in events]
        column["start_ns"].add(start)
        column["end_ns"].add(end)
        column["kind"].add(code % KINDS - ON_DEVICE)
        column["name"].add(code // KINDS)
        pairs = list(zip(events, args, strict=True))
        device = integers([e.pid if a.device is None else a.device for e, a in pairs])
        column["device"].add(np.where(np.abs(device) < 2**31, device, NONE))
        stream = integers([e.tid if a.stream is None else a.stream for e, a in pairs])
        column["stream"].add(np.where(stream == _ALL_STREAMS, -1, stream))
        column["bytes"].add(integers([a.bytes for a in args]))
        products = self._products
        column["blocks"].add([products[bytes(a.grid)] for a in args])
        column["threads"].add([products[bytes(a.block)] for a in args])
        column["registers"].add(integers([a.registers for a in args]))
        column["shared_memory"].add(integers([a.shared_memory for a in args]))
        column["collective"].add([NONE if a.collective is None else self._word(a.collective) for a in args])
        column["group"].add([NONE if a.group is None else self._word(a.group) for a in args])
        self._add_keys(column, args, np.arange(len(args)), len(args))

    def _word(self, value: Any) -> int:
        return self.names[str(value)] if isinstance(value, str | int) else NONE

    def _add_keys(self, column: dict[str, Column], args: list[Args], at: NDArray[np.intp], count: int) -> None:
        """The join keys of the events at some places of the chunk; NONE for its others."""
        correlation = np.full(count, NONE, dtype=np.int64)
        correlation[at] = self.correlations.numbers([a.correlation for a in args])
        column["correlation"].add(correlation)
        external_id = np.full(count, NONE, dtype=np.int64)
        if not self.correlations.used:
            external_id[at] = self.external_ids.numbers(_external_ids(args))
        column["external_id"].add(external_id)

    def _signature(self, code: int, event: Event, args: Args) -> int:
        """The number of an op's (or a collective's) operands; each distinct text is parsed once."""
        if code % KINDS != HostKind.OP and not event.name.startswith(COLLECTIVE_PREFIX):
            return NONE
        dims = args.old_dims if args.dims is ABSENT else args.dims
        lists: Lists = (bytes(dims), bytes(args.types), bytes(args.strides), bytes(args.concrete))
        known = self._signature_numbers.get((code, lists))
        if known is None:
            known = self._signature_numbers[code, lists] = len(self.signatures)
            self.signatures.append(op_call(event.name, lists))
            self._signature_bytes += _SIGNATURE_BYTES + 10 * sum(map(len, lists))
        return known


def _spread(at: NDArray[np.intp], values: Int64, count: int) -> Int64:
    """A column with values at some places and NONE at the others."""
    column = np.full(count, NONE, dtype=np.int64)
    column[at] = values
    return column


def _external_ids(args: list[Args]) -> list[Any]:
    return [a.old_external_id if a.external_id is None else a.external_id for a in args]


class _Products(dict[bytes, int]):
    """The products of a grid's or a block's three sizes, by their text; there are few of them.

    Some recorders write zeros for what they do not know.
    """

    def __missing__(self, text: bytes) -> int:
        try:
            sizes = msgspec.json.decode(text, type=list[int | float | str])
            product = prod(map(int, sizes)) if sizes else 0
        except (msgspec.DecodeError, ValueError, OverflowError):
            product = 0
        found = product if 0 < product < 2**63 else NONE
        if len(self) < _MOST_PRODUCTS:
            self[text] = found
        return found


def _flows(events: list[Event]) -> list[Event]:
    """The ends of arrows from forward to backward; most other arrows tie a kernel to its launch."""
    category, names, ends = dialects.FLOW_CATEGORY, dialects.FLOW_NAMES, ("s", "f")
    return [e for e in events if e.ph != "X" and (e.cat == category or e.name in names) and e.ph in ends]


def _readable(
    spans: list[Event], codes: Int64, chosen: NDArray[np.bool_], faults: TimeFaults
) -> tuple[list[Event], Int64, Int64, Int64]:
    """Those chosen that have a start, their codes, starts and ends."""
    events = list(compress(spans, chosen.tolist()))
    code = codes[chosen]
    start, end, started = faults.spans(events)
    if started is None:
        return events, code, start, end
    return list(compress(events, started.tolist())), code[started], start[started], end[started]
