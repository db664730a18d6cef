"""Reads a Kineto trace file into a `TraceTable`.

Chunks of the file's text become typed events, the events become columns and are dropped; the columns are
joined and sorted at the end. Only columns and one chunk are in memory at a time.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.errors import TraceError, TruncatedTrace
from torchroof.trace import dialects
from torchroof.trace.columns import Columns
from torchroof.trace.container import CHUNK_BYTES, Container
from torchroof.trace.events import EventDecoder
from torchroof.trace.file import MEMORY_LIMIT, blocks, gibibytes, opened
from torchroof.trace.interning import Names
from torchroof.trace.mending import WORDS
from torchroof.trace.table import (
    NONE,
    DeviceKind,
    DeviceSpans,
    Flows,
    HostKind,
    HostSpans,
    Int32,
    Int64,
    Note,
    TraceTable,
)
from torchroof.trace.times import TextNeeded


def read(
    path: str | os.PathLike[str],
    *,
    partial: bool = False,
    memory_limit: int = MEMORY_LIMIT,
    chunk_bytes: int = CHUNK_BYTES,
) -> TraceTable:
    """The trace in a ``.json`` or ``.json.gz`` file (told apart by its first two bytes, not by its name).

    A file that ends early raises TruncatedTrace, or with ``partial`` gives what is whole, with a note of kind
    ``truncated`` (if not even one event is, it raises all the same). ``memory_limit`` bounds, in bytes, the
    columns and what a gzipped file inflates to. ``chunk_bytes`` of JSON are decoded at a time. Raises
    TraceError, or one of its kinds, with one line that says what is wrong with the file.
    """
    began = perf_counter()
    source = Path(os.fsdecode(path)).name or str(path)
    with opened(path) as file:
        container = Container(blocks(file, source, memory_limit), source, chunk_bytes, memory_limit)
        columns, odd = _columns(container, source, memory_limit)
    if container.cut and not (partial and columns.events):
        raise TruncatedTrace(container.cut)
    decoded = perf_counter()
    return _table(columns, container, odd, source, decoded - began)


def _columns(container: Container, source: str, limit: int) -> tuple[Columns, int]:
    """All columns, and how many events had a field of an odd type."""
    columns, decoder, odd = Columns(), EventDecoder(), 0
    for text, events in container.events(decoder.decode):
        while True:
            try:
                columns.append(events)
                break
            except TextNeeded:
                decoder.keep_decimals()
                events = decoder.decode(text)
        odd += decoder.odd
        if columns.bytes_needed() > limit:
            raise TraceError(
                f"{source}: its first {columns.events:,} events need more than {gibibytes(limit)} of memory; "
                "record a shorter window, or raise --memory"
            )
    return columns, odd


def _table(columns: Columns, container: Container, odd: int, source: str, seconds: float) -> TraceTable:
    began = perf_counter()
    notes = [*_reading_notes(columns, container, odd)]
    host_key, device_key = _join_keys(columns, notes)
    pairs = sorted(columns.threads.keys_by_number)
    places = {pair: place for place, pair in enumerate(pairs)}
    thread_places = np.array([places[pair] for pair in columns.threads.keys_by_number], dtype=np.int32)
    host = _host(columns, host_key, thread_places)
    device = _device(columns, device_key)
    flows = _flows(columns, thread_places, notes)
    notes += _content_notes(columns, host, device)
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
        cut=container.cut,
        events=columns.events,
        seconds={"decode": seconds, "sort": perf_counter() - began},
        thread_ids=tuple(tid for _, tid in pairs),
    )


def _host(columns: Columns, correlation: Int64, thread_places: Int32) -> HostSpans:
    column = columns.host
    start, end = column["start_ns"].whole(), column["end_ns"].whole()
    thread = thread_places[column["thread"].whole()]
    ids = [column[name].whole() for name in ("op_id", "kind", "sequence")]  # an op's id is less than its children's
    order = _order([thread, start], [-end, *ids, correlation], column["name"].whole(), columns.names)
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
    ties = [column[name].whole() for name in ("end_ns", "kind", "device", "stream")]
    order = _order([start], [*ties, correlation], column["name"].whole(), columns.names)
    rest = (
        *("end_ns", "kind", "name", "device", "stream", "bytes"),
        *("blocks", "threads", "registers", "shared_memory", "collective", "group"),
    )
    return DeviceSpans(
        start_ns=start[order],
        correlation=correlation[order],
        **{name: column[name].whole(order) for name in rest},
    )


def _order(keys: list[Int64], ties: list[Int64], name: Int32, names: Names) -> NDArray[np.intp]:
    """Rows by their keys, the first of them foremost; where all are equal by what else tells the rows apart, the
    name last, so that no figure hangs on the order of a file's events."""
    order = np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    alike = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        alike &= np.diff(key[order]) == 0
    if not alike.any():
        return order
    group = np.concatenate(([0], np.cumsum(~alike)))
    tied = np.flatnonzero(np.append(alike, False) | np.append(False, alike))
    rows = order[tied]
    spelled = {number: place for place, (_, number) in enumerate(sorted(names.items()))}
    spelling = np.array([spelled[number] for number in name[rows].tolist()])
    order[tied] = rows[np.lexsort((spelling, *(key[rows] for key in ties[::-1]), group[tied]))]
    return order


def _join_keys(columns: Columns, notes: list[Note]) -> tuple[Int64, Int64]:
    """What ties launches to device spans: the correlation; External id in a file without any."""
    host, device = columns.host["correlation"].whole(), columns.device["correlation"].whole()
    if not len(device) or (host >= 0).any() or (device >= 0).any():
        return _without_shared_zero(host, device, columns.device["kind"].whole(), notes)
    host, device = columns.host["external_id"].whole(), columns.device["external_id"].whole()
    shared = np.isin(device, host) & (device != NONE) & (device != 0)
    if shared.any():
        count = int(shared.sum())
        text = f"no correlation in the file: {count:,} device spans are joined to launches by External id"
        notes.append(Note("joined_by_external_id", text, count))
    return np.where(host == 0, NONE, host), np.where(device == 0, NONE, device)


def _without_shared_zero(host: Int64, device: Int64, kind: NDArray[np.int8], notes: list[Note]) -> tuple[Int64, Int64]:
    """Correlation 0 on several kernels says that the writer had none."""
    count = int(((device == 0) & (kind == DeviceKind.KERNEL)).sum())
    if count < 2:
        return host, device
    text = f"{count:,} kernels carry correlation 0 and cannot be joined to a launch"
    notes.append(Note("zero_correlation", text, count))
    return np.where(host == 0, NONE, host), np.where(device == 0, NONE, device)


def _flows(columns: Columns, thread_places: Int32, notes: list[Note]) -> Flows:
    """Starts and ends paired by id, in order of time where an id comes again; the rest is dropped."""
    place = thread_places.tolist()
    by_time = {
        phase: sorted(((key, place[thread], ns) for key, thread, ns in ends), key=itemgetter(2, 1))
        for phase, ends in columns.flow_ends.items()
    }
    starts: defaultdict[Any, deque[tuple[int, int]]] = defaultdict(deque)
    for key, thread, ns in by_time["s"]:
        starts[str(key)].append((thread, ns))
    ends = (end for end in by_time["f"] if starts.get(str(end[0])))
    pairs = sorted((*starts[str(key)].popleft(), thread, ns) for key, thread, ns in ends)
    unmatched = sum(map(len, columns.flow_ends.values())) - 2 * len(pairs)
    if unmatched:
        notes.append(Note("unmatched_flows", f"{unmatched:,} forward-backward arrows have one end only", unmatched))
    from_thread, from_ns, to_thread, to_ns = np.array(pairs, dtype=np.int64).reshape(-1, 4).T
    return Flows(from_thread.astype(np.int32), from_ns.copy(), to_thread.astype(np.int32), to_ns.copy())


def _reading_notes(columns: Columns, container: Container, odd: int) -> list[Note]:
    """What had to be overlooked in the file's text."""
    faults = columns.faults
    found = (
        ("odd_events", "{} events have a field of an unexpected type", odd),
        ("missing_start", "{} events without a readable start were left out", faults.without_start),
        ("missing_duration", "{} events have no readable duration; it counts as 0", faults.without_duration),
        ("negative_duration", "{} events have a negative duration; it counts as 0", faults.negative),
        ("lost_events", "{} events are not JSON and could not be mended: they are left out", container.lost),
    )
    notes = [Note(kind, text.format(f"{count:,}"), count) for kind, text, count in found if count]
    mends = container.mends
    if mends.total():
        what = ", ".join(f"{count:,} {WORDS[kind]}" for kind, count in mends.most_common() if count)
        notes.insert(0, Note("mended", f"the file is not quite JSON, and was read all the same: {what}", mends.total()))
    if container.lists > 1:
        text = f"the file has {container.lists} lists of events, which are read as one"
        notes.insert(0, Note("several_lists", text, container.lists))
    if container.byte_order_mark:
        notes.insert(0, Note("byte_order_mark", "the file starts with a byte-order mark", 1))
    if container.cut:
        text = "the file ends in the middle of the trace: this is a report of its part that is whole"
        notes.insert(0, Note("truncated", text))
    return notes


def _content_notes(columns: Columns, host: HostSpans, device: DeviceSpans) -> list[Note]:
    """What the file lacks, and what of it nobody knows."""
    notes = []
    met = {category.lower() for category in columns.categories if category}
    unknown = sorted(c for c in met if dialects.kind_of(c) is None and c not in dialects.IDLE_CATEGORIES)
    if unknown:
        text = f"events of unknown categories are left out: {', '.join(unknown[:8])}"
        notes.append(Note("unknown_categories", text + (", ..." if len(unknown) > 8 else ""), len(unknown)))
    if (device.kind == DeviceKind.KERNEL).any():
        return notes
    launches = int((host.kind == HostKind.LAUNCH).sum())
    if met & dialects.COUNTER_CATEGORIES:
        text = "the file holds hardware counters of ranges, which a profiler records in place of kernels"
        notes.append(Note("counters_only", text))
    elif launches:
        text = f"the host called the device's runtime {launches:,} times, but the file holds no kernel"
        notes.append(Note("no_kernels", text, launches))
    return notes
