"""The ledger of a step: every nanosecond of the counted window, busy or idle, charged to one owner.

The window is one for each run of counted steps that follow one another: between windows nothing was recorded.
Per device: busy time goes to kernels and copies as shares of their union; each gap goes to the data loader,
to a synchronising wait, or to the host, and host time to the kernel that ends the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchroof.join.attribute import Attribution, RunKind
from torchroof.join.columns import distinct, pick
from torchroof.join.lineage import NameKind
from torchroof.join.timeline import COLLECTIVE, COMPUTE, COPY, Coverage, Timeline, divide
from torchroof.trace.dialects import is_synchronising
from torchroof.trace.table import NONE, HostKind, Int32, Int64, TraceTable


@dataclass(frozen=True, slots=True)
class Ledger:
    """Sums over devices in ns. ``busy_ns`` and ``host_ns`` have one entry per kernel."""

    devices: tuple[int, ...]
    busy_ns: Int64
    host_ns: Int64
    step_ns: int
    span_ns: int
    copy_ns: int
    data_ns: int
    sync_ns: int
    host_unowned_ns: int


class _Waits:
    """When each host thread waited: inside a DataLoader's next, or in a synchronising call."""

    def __init__(self, table: TraceTable, attribution: Attribution) -> None:
        nest, host = attribution.nest, table.host
        loading = np.flatnonzero(nest.name_kind == NameKind.DATA)
        names = distinct(host.name)
        waiting = names[[is_synchronising(table.names[i]) for i in names.tolist()]] if len(names) else names
        calls = np.flatnonzero((host.kind == HostKind.LAUNCH) & np.isin(host.name, waiting))
        self._loading = (nest.thread[loading], nest.start_ns[loading], nest.end_ns[loading])
        self._waiting = (host.thread[calls], host.start_ns[calls], host.end_ns[calls])

    def split(self, thread: int, start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64]:
        """Of each interval the time in the loader, and the time waiting outside of it, on one thread."""
        loading = self._on(self._loading, thread)
        waiting = self._on(self._waiting, thread)
        either = Coverage.of(
            np.concatenate((loading.start_ns, waiting.start_ns)), np.concatenate((loading.end_ns, waiting.end_ns))
        )
        data = loading.within(start_ns, end_ns)
        return data, either.within(start_ns, end_ns) - data

    @staticmethod
    def _on(spans: tuple[np.ndarray, Int64, Int64], thread: int) -> Coverage:
        here = spans[0] == thread
        return Coverage.of(spans[1][here], spans[2][here])


@dataclass(frozen=True, slots=True)
class _Intervals:
    """All work of one device: kernel segments, then copies. ``owner`` is the kernel, NONE for copies."""

    start_ns: Int64
    end_ns: Int64
    stream: Int64
    work_class: np.ndarray
    owner: np.ndarray
    thread: np.ndarray


def keep_ledger(table: TraceTable, attribution: Attribution) -> Ledger:
    """Divide the counted window of every device that ran something."""
    kernels = attribution.kernels
    busy = np.zeros(len(kernels), dtype=np.int64)
    host = np.zeros(len(kernels), dtype=np.int64)
    devices = tuple(distinct(np.concatenate((kernels.device, attribution.copies.device))).tolist())
    if attribution.run is RunKind.CPU and not devices:
        devices = (0,)
    sums = dict.fromkeys(("step_ns", "span_ns", "copy_ns", "data_ns", "sync_ns", "host_unowned_ns"), 0)
    waits = _Waits(table, attribution)
    for device in devices:
        work = _intervals(attribution, device)
        owned = work.owner != NONE
        reached = None
        for steps in attribution.steps.runs():
            window = _window(attribution, device, steps, reached)
            reached = window[1]
            line = divide(work.start_ns, work.end_ns, work.stream, work.work_class, window)
            np.add.at(busy, work.owner[owned], line.share_ns[owned])
            sums["copy_ns"] += int(line.share_ns[~owned].sum())
            sums["step_ns"] += window[1] - window[0]
            sums["span_ns"] += _span(attribution, device, steps)
            # Before the first kernel of a file without steps lies the start of the recording: no kernel's doing.
            _charge_gaps(line, work, waits, host, sums, None if attribution.steps.marked else window[0])
    return Ledger(devices=devices, busy_ns=busy, host_ns=host, **sums)


def _intervals(attribution: Attribution, device: int) -> _Intervals:
    kernels, copies = attribution.kernels, attribution.copies
    segments = np.flatnonzero(kernels.device[kernels.segment_kernel] == device)
    owner = kernels.segment_kernel[segments]
    moved = np.flatnonzero(copies.device == device)
    join = np.concatenate
    return _Intervals(
        start_ns=join((kernels.segment_start_ns[segments], copies.start_ns[moved])),
        end_ns=join((kernels.segment_end_ns[segments], copies.end_ns[moved])),
        stream=join((kernels.stream[owner], copies.stream[moved])),
        work_class=join((np.where(kernels.collective[owner], COLLECTIVE, COMPUTE), np.full(len(moved), COPY))).astype(
            np.int8
        ),
        owner=join((owner.astype(np.int64), np.full(len(moved), NONE, dtype=np.int64))),
        thread=join((kernels.launch_thread[owner], copies.launch_thread[moved])),
    )


def _window(attribution: Attribution, device: int, run: range, reached_ns: int | None) -> tuple[int, int]:
    """The time of a device that a run of counted steps takes, behind what the run before it ``reached``."""
    steps, kernels, copies = attribution.steps, attribution.kernels, attribution.copies
    first_ns, last_ns = int(steps.start_ns[run[0]]), int(steps.end_ns[run[-1]])
    here = kernels.device == device
    ends = kernels.start_ns + kernels.ns if attribution.run is RunKind.DEVICE else kernels.start_ns
    mine = here & _in(kernels.step, run)
    low, high = first_ns, last_ns
    if attribution.run is RunKind.DEVICE:
        before = here & (kernels.launch_thread != NONE) & (kernels.launch_ns < first_ns)
        low = max(low, int(ends[before].max(initial=low)))
        earlier = (copies.device == device) & (copies.launch_thread != NONE) & (copies.launch_ns < first_ns)
        low = max(low, int(copies.end_ns[earlier].max(initial=low)))
    if mine.any():
        low = min(low, int(kernels.start_ns[mine].min()))
        high = max(high, int(ends[mine].max()))
    if reached_ns is not None:
        low = max(low, reached_ns)
    return low, max(low, high)


def _in(step: Int32, run: range) -> NDArray[np.bool_]:
    return (step >= run[0]) & (step <= run[-1])


def _span(attribution: Attribution, device: int, run: range) -> int:
    """From the first start to the last end of the kernels of a run of counted steps."""
    kernels = attribution.kernels
    chosen = (kernels.device == device) & _in(kernels.step, run)
    segments = chosen[kernels.segment_kernel]
    if not segments.any():
        return 0
    return int(kernels.segment_end_ns[segments].max() - kernels.segment_start_ns[segments].min())


def _charge_gaps(
    line: Timeline, work: _Intervals, waits: _Waits, host: Int64, sums: dict[str, int], unowned_from_ns: int | None
) -> None:
    """Each gap by what its launching thread did: the thread of the work that ends it, else the busiest one."""
    ender = line.gap_ender
    known = work.thread[work.thread != NONE]
    busiest = int(np.bincount(known).argmax()) if len(known) else NONE
    thread = pick(work.thread, ender)
    thread = np.where(thread == NONE, busiest, thread)
    owner = pick(work.owner, ender)
    for t in distinct(thread).tolist():
        gaps = np.flatnonzero(thread == t)
        start, end = line.gap_start_ns[gaps], line.gap_end_ns[gaps]
        data, sync = waits.split(t, start, end)
        rest = end - start - data - sync
        owned = (owner[gaps] != NONE) & (start != unowned_from_ns)
        np.add.at(host, owner[gaps][owned], rest[owned])
        sums["data_ns"] += int(data.sum())
        sums["sync_ns"] += int(sync.sum())
        sums["host_unowned_ns"] += int(rest[~owned].sum())
