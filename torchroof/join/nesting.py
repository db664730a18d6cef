"""Nesting: which span encloses which on a thread, from times alone.

Spans are sorted by thread, start, longer first. Real traces nest almost always; where two spans overlap
without nesting by more than rounding (`SLACK_NS`), the later one is taken out of the earlier one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchroof.join.columns import distinct, pick
from torchroof.trace.table import NONE, Int32, Int64

SLACK_NS = 1000
"""A child may end this much after its parent: files of whole microseconds round each span on its own."""


_ROUNDS = 40
"""So many times all spans look one further at once; what is nested deeper goes on one by one."""


def nest(start_ns: Int64, end_ns: Int64, thread: Int32) -> Int32:
    """The parent of each span (its position, NONE for roots), for spans in sorted order.

    It is the nearest span before it that has not ended and does not end before it: where the one before a span is
    not that, the one that this one may lie in is the next to be asked, for nothing between them can be. An end is
    inside for a span without length: in files of whole microseconds many spans are that.
    """
    count = len(thread)
    parent = np.arange(-1, count - 1, dtype=np.int32)
    parent[np.flatnonzero(np.diff(thread, prepend=NONE))] = NONE
    left = np.arange(count, dtype=np.int32)
    for _ in range(_ROUNDS):
        left = left[parent[left] != NONE]
        at = parent[left]
        begin, finish, end = start_ns[left], end_ns[left], end_ns[at]
        left = left[(end < begin) | ((end == begin) & (finish > begin)) | (end < finish - SLACK_NS)]
        if not len(left):
            return parent
        parent[left] = parent[parent[left]]
    for i in left.tolist():  # each begins where the one before it stands, so that all together climb each chain once
        begin, finish, above = int(start_ns[i]), int(end_ns[i]), i - 1 if parent[i] != NONE else NONE
        while above != NONE and not begin + (finish > begin) <= (end := int(end_ns[above])) >= finish - SLACK_NS:
            above = int(parent[above])
        parent[i] = above
    return parent


def nearest(parent: Int32, chosen: NDArray[np.bool_]) -> Int32:
    """The first of the chosen spans at or around each span (its position, or NONE): steps double, so that as
    many passes are needed as the depth has binary digits."""
    own = np.arange(len(parent), dtype=np.int32)
    found = np.append(np.where(chosen, own, parent), np.int32(NONE))  # the last entry answers for position NONE
    while not np.array_equal(further := found[found], found):
        found = further
    return found[:-1]


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
