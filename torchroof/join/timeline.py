"""One device's time, divided without rest: who it was busy for, and what ended each gap.

Pure interval arithmetic in integer nanoseconds; no op, layer or vendor is known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchroof.trace.table import NONE, Int8, Int64

COMPUTE, COPY, COLLECTIVE = 0, 1, 2
"""Classes of work by precedence: an instant belongs to a copy only when nothing computes, to a collective last."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """A set of disjoint intervals, for asking how much of any interval it covers."""

    start_ns: Int64
    end_ns: Int64
    before_ns: Int64
    """Covered time before each interval."""

    @staticmethod
    def of(start_ns: Int64, end_ns: Int64) -> Coverage:
        """The union of intervals in any order."""
        order = np.argsort(start_ns, kind="stable")
        starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order]) if len(order) else end_ns
        if not len(order):
            empty = np.zeros(0, dtype=np.int64)
            return Coverage(empty, empty, empty)
        fresh = np.concatenate(([True], starts[1:] > ends[:-1]))
        first = np.flatnonzero(fresh)
        last = np.concatenate((first[1:] - 1, [len(starts) - 1]))
        begins, finishes = starts[first], ends[last]
        lengths = finishes - begins
        return Coverage(begins, finishes, np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64))

    def until(self, at_ns: Int64) -> Int64:
        """Covered time before each moment."""
        if not len(self.start_ns):
            return np.zeros(len(at_ns), dtype=np.int64)
        place = np.searchsorted(self.start_ns, at_ns, side="right") - 1
        safe = np.maximum(place, 0)
        inside = np.minimum(at_ns, self.end_ns[safe]) - self.start_ns[safe]
        return np.where(place >= 0, self.before_ns[safe] + inside, 0).astype(np.int64)

    def within(self, start_ns: Int64, end_ns: Int64) -> Int64:
        """Covered time inside each interval."""
        return self.until(end_ns) - self.until(start_ns)


@dataclass(frozen=True, slots=True)
class Timeline:
    """``share_ns[i]`` is interval i's own part of the busy time; the shares sum to the union.

    Gaps are the rest of the window; ``gap_ender[k]`` is the interval that ends gap k, NONE at the window's end.
    """

    share_ns: Int64
    gap_start_ns: Int64
    gap_end_ns: Int64
    gap_ender: NDArray[np.int64]


def divide(start_ns: Int64, end_ns: Int64, stream: Int64, work_class: Int8, window: tuple[int, int]) -> Timeline:
    """Divide a window among the intervals that lie in it; what sticks out is cut off.

    An instant belongs to the first-started computing interval running then (ties: the lower stream), to a
    copy and then to a collective only when none computes.
    """
    low, high = window
    starts, ends = np.clip(start_ns, low, high), np.clip(end_ns, low, high)
    share = np.zeros(len(starts), dtype=np.int64)
    above = Coverage.of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    for c in (COMPUTE, COPY, COLLECTIVE):
        members = np.flatnonzero(work_class == c)
        if not len(members):
            continue
        members = members[np.lexsort((stream[members], start_ns[members]))]
        reach = np.maximum.accumulate(ends[members])
        begins = np.maximum(starts[members], np.concatenate(([low], reach[:-1])))
        finishes = np.maximum(ends[members], begins)
        share[members] = finishes - begins - above.within(begins, finishes)
        above = Coverage.of(
            np.concatenate((above.start_ns, starts[members])), np.concatenate((above.end_ns, ends[members]))
        )
    return Timeline(share, *_gaps(above, starts, stream, work_class, start_ns < high, window))


def _gaps(
    busy: Coverage, starts: Int64, stream: Int64, work_class: Int8, counted: NDArray[np.bool_], window: tuple[int, int]
) -> tuple[Int64, Int64, NDArray[np.int64]]:
    low, high = window
    real = busy.end_ns > busy.start_ns
    begins = np.concatenate(([low], busy.end_ns[real]))
    finishes = np.concatenate((busy.start_ns[real], [high]))
    wide = finishes > begins
    begins, finishes = begins[wide], finishes[wide]
    candidates = np.flatnonzero(counted)
    order = candidates[np.lexsort((stream[candidates], work_class[candidates], starts[candidates]))]
    place = np.searchsorted(starts[order], finishes, side="left")
    if len(order):
        ender = np.where(place < len(order), order[np.minimum(place, len(order) - 1)], NONE)
        ender = np.where((ender != NONE) & (starts[np.maximum(ender, 0)] == finishes), ender, NONE)
    else:
        ender = np.full(len(finishes), NONE)
    return begins, finishes, ender.astype(np.int64)
