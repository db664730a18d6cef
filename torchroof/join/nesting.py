"""Nesting: which span encloses which on a thread, from times alone.

Spans are sorted by thread, start, longer first. Real traces nest almost always; where two spans overlap
without nesting by more than rounding (`SLACK_NS`), the later one is taken out of the earlier one.
"""

from __future__ import annotations

import numpy as np

from torchroof.join.columns import distinct, pick
from torchroof.trace.table import NONE, Int32, Int64

SLACK_NS = 1000
"""A child may end this much after its parent: files of whole microseconds round each span on its own."""


def nest(start_ns: Int64, end_ns: Int64, thread: Int32) -> Int32:
    """The parent of each span (its position, NONE for roots), for spans in sorted order.

    An end is inside for a span without length: in files of whole microseconds many spans are that.
    """
    parents: list[int] = []
    append = parents.append
    starts, ends, threads = start_ns.tolist(), end_ns.tolist(), thread.tolist()
    stack: list[int] = []
    current = None
    for i, begin in enumerate(starts):
        if threads[i] != current:
            current = threads[i]
            stack = []
        finish = ends[i]
        while stack and (ends[stack[-1]] < begin or (ends[stack[-1]] == begin and finish > begin)):
            stack.pop()
        depth = len(stack) - 1
        while depth >= 0 and ends[stack[depth]] + SLACK_NS < finish:
            depth -= 1
        append(stack[depth] if depth >= 0 else NONE)
        stack.append(i)
    return np.array(parents, dtype=np.int32)


def innermost(start_ns: Int64, end_ns: Int64, thread: Int32, parent: Int32, at_ns: Int64, on_thread: Int32) -> Int32:
    """The innermost span open at a moment on a thread (its position, or NONE), for many moments at once."""
    found = _last_started(start_ns, thread, at_ns, on_thread)
    while (ended := (found != NONE) & (pick(end_ns, found) < at_ns)).any():
        found = np.where(ended, parent[found], found).astype(np.int32)
    return found


def _last_started(start_ns: Int64, thread: Int32, at_ns: Int64, on_thread: Int32) -> Int32:
    found = np.full(len(at_ns), NONE, dtype=np.int32)
    for t in distinct(on_thread):
        first, last = np.searchsorted(thread, [t, t + 1])
        here = on_thread == t
        place = first + np.searchsorted(start_ns[first:last], at_ns[here], side="right") - 1
        found[here] = np.where(place >= first, place, NONE)
    return found
