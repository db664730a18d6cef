"""What the join says of each kernel, whichever kind of run made it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from torchroof.trace.table import Int8, Int32, Int64


class Reason(IntEnum):
    """Why a kernel is in no row. A closed set; NONE means that it is in one."""

    NONE = 0
    NO_LAUNCH = 1
    GRAPH_REPLAY = 2
    OUTSIDE_STEPS = 3
    OUTSIDE_ALL = 4


REASON_TEXTS = {
    Reason.NO_LAUNCH: "no launch record",
    Reason.GRAPH_REPLAY: "graph replay",
    Reason.OUTSIDE_STEPS: "outside counted steps",
    Reason.OUTSIDE_ALL: "launched outside any op and layer",
}


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels in columns. On a GPU each is one device span; on a CPU the wall time of an op, in segments.

    ``anchor`` is the innermost host span at the launch (a position in the nest, NONE where there is none),
    ``op`` the span whose op is charged, ``claimed`` whether that op has a work model. Times in ns.
    """

    name: Int32
    device: Int32
    stream: Int64
    start_ns: Int64
    ns: Int64
    launch_ns: Int64
    """Host time of the launch; the kernel's own start where there is no launch."""
    launch_thread: Int32
    anchor: Int32
    op: Int32
    claimed: Int8
    reason: Int8
    step: Int32
    """The counted step that the launch lies in, NONE outside."""
    span: Int32
    """The position in the table's device spans; NONE on a CPU."""
    blocks: Int64
    collective: Int8
    segment_kernel: Int32
    segment_start_ns: Int64
    segment_end_ns: Int64

    def __len__(self) -> int:
        return len(self.name)
