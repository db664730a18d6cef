"""A trace as columns: what the reader makes of a file, and all that later rooms know of it.

Times are integer nanoseconds on the file's own clock. Names are interned: ``names[i]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.tensors import OpCall

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]

NONE = -1
"""Absent, in every integer column."""


class HostKind(IntEnum):
    OP = 0
    """A dispatched op, an autograd node, or anything else of category cpu_op that is not a scope of ours."""
    SCOPE = 1
    """A layer call entered by our hooks; its name is the layer's path, without our prefix."""
    MODULE = 2
    """An ``nn.Module: X_k`` event of the Python tracer."""
    ANNOTATION = 3
    """A range of the user's or torch's: record_function, ProfilerStep, Optimizer.step, a DataLoader's next."""
    LAUNCH = 4
    """A runtime or driver call."""


class DeviceKind(IntEnum):
    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


@dataclass(frozen=True, slots=True)
class HostSpans:
    """What host threads did. Sorted by thread, start, longer first; never by place in the file."""

    start_ns: Int64
    end_ns: Int64
    thread: Int32
    """Index into ``TraceTable.threads``."""
    kind: Int8
    name: Int32
    signature: Int32
    """Index into ``TraceTable.signatures``; NONE where no operands were recorded."""
    sequence: Int64
    """Autograd sequence number."""
    forward_thread: Int64
    """``Fwd thread id``: greater than 0 on backward nodes only. It is no thread of this table."""
    correlation: Int64
    """Interned join key to device spans (runtime and driver calls only)."""
    module_id: Int64
    """``Python module id`` of MODULE spans."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class DeviceSpans:
    """What devices did: kernels, copies, memsets. Sorted by start; never by place in the file."""

    start_ns: Int64
    end_ns: Int64
    kind: Int8
    name: Int32
    device: Int32
    """The device's index as the file gives it."""
    stream: Int64
    correlation: Int64
    bytes: Int64
    blocks: Int64
    """Thread blocks launched (the product of the grid)."""
    threads: Int64
    registers: Int64
    shared_memory: Int64
    """Threads of each block, registers of each thread, and bytes of each block's shared memory."""
    collective: Int32
    """What a communication kernel does, as its args say (``allreduce``): an index into ``TraceTable.names``."""
    group: Int32
    """The process group that it does it in, likewise."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Flows:
    """Forward to backward arrows: where each starts (the forward op) and ends (the backward node)."""

    from_thread: Int32
    from_ns: Int64
    to_thread: Int32
    to_ns: Int64


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader of the report should know. ``kind`` is a short stable key."""

    kind: str
    text: str
    count: int | None = None


@dataclass(frozen=True)
class TraceTable:
    """One trace file."""

    names: tuple[str, ...]
    threads: tuple[str, ...]
    """``pid/tid`` as the file has them, without the words "thread" and "stream"."""
    signatures: tuple[OpCall, ...]
    host: HostSpans
    device: DeviceSpans
    flows: Flows
    metadata: Mapping[str, Any]
    """Every top-level key of the file except the events."""
    notes: tuple[Note, ...] = ()
    source: str = ""
    """The file's name, for messages."""
    cut: str | None = None
    """Where the file ends before its trace does: that, as the text of an error."""
    events: int = 0
    """Events in the file, of every kind."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    thread_ids: tuple[str, ...] = ()
    """The ``tid`` of each of ``threads`` as text, without the process: what a capture knows of it."""
