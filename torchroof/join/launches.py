"""Kernels of a device: kernel to launch by correlation, launch to op by containment on its own thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from torchroof.join.columns import pick
from torchroof.join.kernels import Kernels, Reason
from torchroof.join.lineage import Nest
from torchroof.join.nesting import innermost
from torchroof.join.steps import Steps
from torchroof.trace.dialects import is_collective, is_graph_launch
from torchroof.trace.table import NONE, DeviceKind, HostKind, Int32, TraceTable

CLOCKS_DIFFER_NS = 1_000_000
"""A device span may seem to start so long before its own launch, where the clocks disagree (0.1 ms has been seen)."""


def launch_of_device_spans(table: TraceTable) -> Int32:
    """For each device span the host span that launched it: the runtime or driver call with its key.

    Of calls inside one another that share a key, the outermost is meant. Where a key comes again, as in a file of
    several windows, it is the last call before the span, else the first of all.
    """
    host, device = table.host, table.device
    calls = np.flatnonzero((host.kind == HostKind.LAUNCH) & (host.correlation != NONE)).astype(np.int32)
    calls = calls[np.lexsort((host.start_ns[calls], host.correlation[calls]))]
    keys = host.correlation[calls]
    place = np.searchsorted(keys, device.correlation)
    found = pick(keys, np.where(place < len(keys), place, NONE)) == device.correlation
    launch = pick(calls, np.where(found & (device.correlation != NONE), place, NONE))
    if (keys[1:] == keys[:-1]).any():
        spans = np.flatnonzero(launch != NONE)
        launch[spans] = _latest(table, _outermost(table, calls), spans, launch[spans])
    return launch


def _outermost(table: TraceTable, calls: Int32) -> Int32:
    """Without the calls that lie in one of their key on their thread. They are in order of key and start."""
    host = table.host
    kept, reach, key = [], dict[int, int](), NONE
    columns = (host.correlation[calls], host.thread[calls], host.end_ns[calls])
    for call, here, thread, end_ns in zip(calls.tolist(), *(c.tolist() for c in columns), strict=True):
        if here != key:
            key, reach = here, {}
        if thread not in reach or end_ns > reach[thread]:
            reach[thread] = end_ns
            kept.append(call)
    return np.array(kept, dtype=np.int32)


def _latest(table: TraceTable, calls: Int32, spans: NDArray[np.int64], first: Int32) -> Int32:
    """For each device span the last call with its key before it; the ``first`` of all where none is."""
    host, device = table.host, table.device
    key = np.concatenate((host.correlation[calls], device.correlation[spans]))
    moment = np.concatenate((host.start_ns[calls] - CLOCKS_DIFFER_NS, device.start_ns[spans]))
    is_span = np.arange(len(key)) >= len(calls)
    order = np.lexsort((is_span, moment, key))
    before = np.maximum.accumulate(np.where(is_span[order], NONE, np.arange(len(order))))
    asked = np.flatnonzero(is_span[order])
    latest = order[before[asked]]
    same = (before[asked] != NONE) & (key[latest] == key[order[asked]])
    found = np.empty(len(spans), dtype=np.int32)
    place = order[asked] - len(calls)
    found[place] = np.where(same, calls[np.where(same, latest, 0)], first[place])
    return found


def anchors_of(table: TraceTable, nest: Nest, launch: Int32) -> Int32:
    """The innermost nest span around each launch (NONE for no launch, or none around it)."""
    known = np.flatnonzero(launch != NONE)
    anchor = np.full(len(launch), NONE, dtype=np.int32)
    spans = launch[known]
    anchor[known] = innermost(
        nest.start_ns, nest.end_ns, nest.thread, nest.parent, table.host.start_ns[spans], table.host.thread[spans]
    )
    return anchor


def join_kernels(table: TraceTable, nest: Nest, steps: Steps, launch: Int32, anchor: Int32) -> Kernels:
    """The kernels of a device run, each with its op and step or the reason why it is in no row.

    ``launch`` and ``anchor`` are per device span, copies included.
    """
    rows = np.flatnonzero(table.device.kind == DeviceKind.KERNEL)
    device, host = table.device, table.host
    launch, anchor = launch[rows], anchor[rows]
    has_launch = launch != NONE
    launch_ns = np.where(has_launch, pick(host.start_ns, launch), device.start_ns[rows])
    claim, op = pick(nest.claim, anchor), pick(nest.op, anchor)
    step = np.where(has_launch, steps.counted_at(launch_ns), NONE)
    reason = np.select(
        [~has_launch, _named(table, pick(host.name, launch), is_graph_launch), step == NONE, _nowhere(nest, anchor)],
        [Reason.NO_LAUNCH, Reason.GRAPH_REPLAY, Reason.OUTSIDE_STEPS, Reason.OUTSIDE_ALL],
        Reason.NONE,
    )
    return Kernels(
        name=device.name[rows],
        device=device.device[rows],
        stream=device.stream[rows],
        start_ns=device.start_ns[rows],
        ns=device.end_ns[rows] - device.start_ns[rows],
        launch_ns=launch_ns,
        launch_thread=pick(host.thread, launch),
        anchor=anchor,
        op=np.where(claim != NONE, claim, op).astype(np.int32),
        claimed=(claim != NONE).astype(np.int8),
        reason=reason.astype(np.int8),
        step=step.astype(np.int32),
        span=rows.astype(np.int32),
        blocks=device.blocks[rows],
        collective=collectives(table)[rows].astype(np.int8),
        segment_kernel=np.arange(len(rows), dtype=np.int32),
        segment_start_ns=device.start_ns[rows],
        segment_end_ns=device.end_ns[rows],
    )


def collectives(table: TraceTable) -> NDArray[np.bool_]:
    """Which device spans are kernels of communication: by their name, or because their args say so."""
    device = table.device
    named = _named(table, device.name, is_collective) | (device.collective != NONE)
    return np.asarray((device.kind == DeviceKind.KERNEL) & named)


def _nowhere(nest: Nest, anchor: Int32) -> NDArray[np.bool_]:
    return np.asarray((pick(nest.op, anchor) == NONE) & (pick(nest.layer, anchor) == NONE))


def _named(table: TraceTable, name: Int32, holds: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Whether a property of names holds, decided once per distinct name."""
    distinct, inverse = np.unique(name, return_inverse=True)
    answers = [i != NONE and bool(holds(table.names[i])) for i in distinct.tolist()]
    return np.array(answers, dtype=bool)[inverse]
