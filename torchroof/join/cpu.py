"""Kernels of a CPU run: the ops themselves.

On each thread: every outermost modelled op with its whole wall time; every unmodelled op without children,
whole; of an unmodelled op with children its self time. Ops that only pass work on, views, allocations,
autograd wrappers, scopes and annotations are never kernels: their self time is host time.
"""

from __future__ import annotations

import numpy as np

from torchroof.join.kernels import Kernels, Reason
from torchroof.join.lineage import NameKind, Nest
from torchroof.join.steps import Steps
from torchroof.trace.table import NONE, Int32, Int64

CPU_DEVICE = 0
"""The one CPU device; threads are its streams."""


def join_cpu_kernels(nest: Nest, steps: Steps) -> Kernels:
    """The kernels of a CPU run. On one thread their segments never overlap."""
    op, segment_kernel, segment_start, segment_end = _segments(nest)
    ns = np.zeros(len(op), dtype=np.int64)
    np.add.at(ns, segment_kernel, segment_end - segment_start)
    start = nest.start_ns[op]
    step = steps.counted_at(start)
    return Kernels(
        name=nest.name[op],
        device=np.full(len(op), CPU_DEVICE, dtype=np.int32),
        stream=nest.thread[op].astype(np.int64),
        start_ns=start,
        ns=ns,
        launch_ns=start,
        launch_thread=nest.thread[op],
        anchor=op,
        op=op,
        claimed=(nest.claim[op] != NONE).astype(np.int8),
        reason=np.where(step == NONE, Reason.OUTSIDE_STEPS, Reason.NONE).astype(np.int8),
        step=step,
        span=np.full(len(op), NONE, dtype=np.int32),
        blocks=np.full(len(op), NONE, dtype=np.int64),
        collective=np.zeros(len(op), dtype=np.int8),
        segment_kernel=segment_kernel,
        segment_start_ns=segment_start,
        segment_end_ns=segment_end,
    )


def _segments(nest: Nest) -> tuple[Int32, Int32, Int64, Int64]:
    """Kernels (their spans), and segments of them: (kernel, start, end)."""
    size = len(nest)
    ids = np.arange(size, dtype=np.int32)
    whole = nest.claim == ids
    free_standing = (nest.name_kind == NameKind.UNMODELLED) & (nest.claim == NONE)
    has_children = np.zeros(size, dtype=bool)
    has_children[nest.parent[nest.parent != NONE]] = True
    partial = free_standing & has_children
    chosen = np.flatnonzero(whole | free_standing).astype(np.int32)
    kernel_of = np.full(size, NONE, dtype=np.int32)
    kernel_of[chosen] = np.arange(len(chosen))
    owners: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    reach: dict[int, int] = {}
    children = _children_of(nest, np.flatnonzero(partial))
    for span in chosen.tolist():
        thread, kernel = int(nest.thread[span]), int(kernel_of[span])
        # Rounding can make a child stick out of its parent into what follows it.
        at = max(int(nest.start_ns[span]), reach.get(thread, 0) if not partial[span] else int(nest.start_ns[span]))
        end = int(nest.end_ns[span])
        for child in children.get(span, ()):
            begin = int(nest.start_ns[child])
            if begin > at:
                owners.append(kernel)
                starts.append(at)
                ends.append(min(begin, end))
            at = max(at, int(nest.end_ns[child]))
        if end > at or span not in children:
            owners.append(kernel)
            starts.append(min(at, end))
            ends.append(end)
        if not partial[span]:
            reach[thread] = max(reach.get(thread, 0), end)
    return (
        chosen,
        np.array(owners, dtype=np.int32),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
    )


def _children_of(nest: Nest, parents: np.ndarray) -> dict[int, list[int]]:
    wanted = np.zeros(len(nest) + 1, dtype=bool)
    wanted[parents] = True
    children: dict[int, list[int]] = {}
    for child in np.flatnonzero(wanted[nest.parent]).tolist():
        children.setdefault(int(nest.parent[child]), []).append(child)
    return children
