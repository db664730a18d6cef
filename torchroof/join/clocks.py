"""Device spans that seem to start before their launch: clocks that disagree, and starts that the writer lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from torchroof.trace.table import NONE, Int32, Note, TraceTable

_TOO_EARLY_NS = 1_000_000_000
"""No two clocks of a machine are so far apart."""


def with_starts(table: TraceTable, launch: Int32) -> tuple[TraceTable, tuple[Note, ...]]:
    """The table with a start for device spans that lost theirs, and notes on all that start before their launch.

    ``launch`` is the host span of each device span. A start of 0 or less, long before the launch, is what profilers
    write for a start that they do not know: such a span starts with its launch. Where clocks merely disagree times
    stay as they are. The spans keep their places.
    """
    known = np.flatnonzero(launch != NONE)
    device, launched_ns = table.device, table.host.start_ns[launch[known]]
    ahead = launched_ns - device.start_ns[known]
    lost = (device.start_ns[known] <= 0) & (launched_ns > _TOO_EARLY_NS)
    notes = _notes(ahead[~lost], int(lost.sum()))
    if not lost.any():
        return table, notes
    start, end, rows = device.start_ns.copy(), device.end_ns.copy(), known[lost]
    start[rows] = launched_ns[lost]
    end[rows] = start[rows] + (device.end_ns - device.start_ns)[rows]
    return replace(table, device=replace(device, start_ns=start, end_ns=end)), notes


def _notes(ahead_ns: np.ndarray, lost: int) -> tuple[Note, ...]:
    notes = []
    early = int((ahead_ns > 0).sum())
    if early:
        text = (
            f"{early:,} device events start before their own launch, by up to {int(ahead_ns.max()) / 1000:,.1f} µs: "
            "host and device clocks disagree. A time from launch to start is taken for 0 there."
        )
        notes.append(Note("clocks disagree", text, early))
    if lost:
        text = f"{lost:,} device events have lost their start (the file says 0): each is placed at its launch."
        notes.append(Note("lost starts", text, lost))
    return tuple(notes)
