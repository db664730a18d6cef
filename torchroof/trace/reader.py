"""Reads a Kineto trace file into a `TraceTable`.

Chunks of the file's text become typed events, the events become columns and are dropped; the columns are
joined and sorted at the end. Only columns and one chunk are in memory at a time.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.trace.columns import Columns
from torchroof.trace.container import CHUNK_BYTES, Container, blocks, opened
from torchroof.trace.events import EventDecoder
from torchroof.trace.table import (
    NONE,
    DeviceKind,
    DeviceSpans,
    Flows,
    HostKind,
    HostSpans,
    Int64,
    Note,
    TraceTable,
)
from torchroof.trace.times import TextNeeded


def read(path: str | os.PathLike[str], *, chunk_bytes: int = CHUNK_BYTES) -> TraceTable:
    """The trace in a ``.json`` or ``.json.gz`` file (told apart by its first two bytes, not by its name).

    ``chunk_bytes`` of JSON are decoded at a time. Raises TraceError, or one of its kinds, with one line that
    says what is wrong with the file.
    """
    began = perf_counter()
    source = Path(os.fsdecode(path)).name or str(path)
    with opened(path) as file:
        container = Container(blocks(file, source), source, chunk_bytes)
        columns, odd = _columns(container)
    decoded = perf_counter()
    return _table(columns, container, odd, source, decoded - began)


def _columns(container: Container) -> tuple[Columns, int]:
    """All columns, and how many events had a field of an odd type."""
    columns, decoder, odd = Columns(), EventDecoder(), 0
    for text, events in container.events(decoder.decode):
        try:
            columns.append(events)
        except TextNeeded:
            decoder.keep_decimals()
            columns.append(decoder.decode(text))
        odd += decoder.odd
    return columns, odd


def _table(columns: Columns, container: Container, odd: int, source: str, seconds: float) -> TraceTable:
    began = perf_counter()
    notes = [*_reading_notes(columns, container, odd)]
    host_key, device_key = _join_keys(columns, notes)
    host = _host(columns, host_key)
    device = _device(columns, device_key)
    flows = _flows(columns, notes)
    notes += _content_notes(host, device)
    pairs = columns.threads.keys_by_number
    return TraceTable(
        names=tuple(columns.names),
        threads=tuple(f"{pid}/{tid}" for pid, tid in pairs),
        signatures=tuple(columns.signatures),
        host=host,
        device=device,
        flows=flows,
        metadata=container.metadata,
        notes=tuple(notes),
        source=source,
        events=columns.events,
        seconds={"decode": seconds, "sort": perf_counter() - began},
        thread_ids=tuple(tid for _, tid in pairs),
    )


def _host(columns: Columns, correlation: Int64) -> HostSpans:
    column = columns.host
    start, end, thread = (column[name].whole() for name in ("start_ns", "end_ns", "thread"))
    order = np.lexsort((-end, start, thread))
    rest = ("kind", "name", "signature", "sequence", "forward_thread", "module_id")
    return HostSpans(
        start_ns=start[order],
        end_ns=end[order],
        thread=thread[order],
        correlation=correlation[order],
        **{name: column[name].whole(order) for name in rest},
    )


def _device(columns: Columns, correlation: Int64) -> DeviceSpans:
    column = columns.device
    start = column["start_ns"].whole()
    order = np.argsort(start, kind="stable")
    rest = ("end_ns", "kind", "name", "device", "stream", "bytes", "blocks")
    return DeviceSpans(
        start_ns=start[order],
        correlation=correlation[order],
        **{name: column[name].whole(order) for name in rest},
    )


def _join_keys(columns: Columns, notes: list[Note]) -> tuple[Int64, Int64]:
    """What ties launches to device spans: the correlation; External id in a file without any."""
    host, device = columns.host["correlation"].whole(), columns.device["correlation"].whole()
    zero = columns.correlations.get(0, NONE)
    if not len(device) or (host >= 0).any() or (device >= 0).any():
        return _without_shared_zero(host, device, columns.device["kind"].whole(), zero, notes)
    host, device = columns.host["external_id"].whole(), columns.device["external_id"].whole()
    zero = columns.external_ids.get(0, NONE)
    shared = np.isin(device, host) & (device >= 0) & (device != zero)
    if shared.any():
        text = "no correlation in the file: device spans are joined to launches by External id"
        notes.append(Note("joined_by_external_id", text, int(shared.sum())))
    return np.where(host == zero, NONE, host), np.where(device == zero, NONE, device)


def _without_shared_zero(
    host: Int64, device: Int64, kind: NDArray[np.int8], zero: int, notes: list[Note]
) -> tuple[Int64, Int64]:
    """Correlation 0 on several kernels says that the writer had none."""
    count = int(((device == zero) & (kind == DeviceKind.KERNEL)).sum()) if zero != NONE else 0
    if count < 2:
        return host, device
    text = "kernels carry correlation 0 and cannot be joined to a launch"
    notes.append(Note("zero_correlation", text, count))
    return np.where(host == zero, NONE, host), np.where(device == zero, NONE, device)


def _flows(columns: Columns, notes: list[Note]) -> Flows:
    """Starts and ends paired by id, in file order where an id comes again; the rest is dropped."""
    starts: defaultdict[Any, deque[tuple[int, int]]] = defaultdict(deque)
    for key, thread, ns in columns.flow_ends["s"]:
        starts[str(key)].append((thread, ns))
    pairs = [
        (*starts[str(key)].popleft(), thread, ns) for key, thread, ns in columns.flow_ends["f"] if starts.get(str(key))
    ]
    unmatched = sum(map(len, columns.flow_ends.values())) - 2 * len(pairs)
    if unmatched:
        notes.append(Note("unmatched_flows", "forward-backward arrows have one end only", unmatched))
    from_thread, from_ns, to_thread, to_ns = np.array(pairs, dtype=np.int64).reshape(-1, 4).T
    return Flows(from_thread.astype(np.int32), from_ns.copy(), to_thread.astype(np.int32), to_ns.copy())


def _reading_notes(columns: Columns, container: Container, odd: int) -> list[Note]:
    """What had to be overlooked in the file's text."""
    faults = columns.faults
    found = (
        ("byte_order_mark", "the file starts with a byte-order mark", int(container.byte_order_mark)),
        ("odd_events", "events have a field of an unexpected type", odd),
        ("missing_start", "events without a readable start were left out", faults.without_start),
        ("missing_duration", "events have no readable duration; it counts as 0", faults.without_duration),
        ("negative_duration", "events have a negative duration; it counts as 0", faults.negative),
    )
    return [Note(kind, text, count) for kind, text, count in found if count]


def _content_notes(host: HostSpans, device: DeviceSpans) -> list[Note]:
    launches = int((host.kind == HostKind.LAUNCH).sum())
    if launches and not (device.kind == DeviceKind.KERNEL).any():
        text = "the host called the device's runtime, but the file holds no kernel"
        return [Note("no_kernels", text, launches)]
    return []
