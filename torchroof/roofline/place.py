"""Where a piece of work lies under a roof: the least time it can take, and which limit says so."""

from __future__ import annotations

from dataclasses import dataclass

from torchroof.device.roof import Ceiling, Roof
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The point of one op, in nanoseconds; None is unknown and ``reason`` says why.

    ``floor_ns`` is the larger of ``memory_ns`` and ``compute_ns``. Where only the bytes or only the FLOPs
    are known it is the part that is known, a lower bound, and ``reason`` says so. ``side`` is ``compute``
    or ``memory``. ``compute`` and ``bandwidth`` are the two ceilings in question.
    """

    memory_ns: float | None = None
    compute_ns: float | None = None
    floor_ns: float | None = None
    side: str | None = None
    compute: Ceiling | None = None
    bandwidth: Ceiling | None = None
    reason: str | None = None

    @property
    def ceiling(self) -> Ceiling | None:
        """The ceiling that judges: the one of the side on which the point lies."""
        if self.side is None:
            return None
        return self.compute if self.side == "compute" else self.bandwidth

    @property
    def level(self) -> str | None:
        """The memory level whose bandwidth applies."""
        return self.bandwidth.level if self.bandwidth else None


def pipe_of(family: str | None) -> str:
    """``matrix`` for products, convolutions, attention and recurrent layers, ``vector`` for all other work."""
    return "matrix" if family in MATRIX_FAMILIES else "vector"


def traffic(work: Work, op: str) -> str:
    """The pattern of an op's memory traffic: ``read``, ``update`` (it writes what it read) or ``copy``.

    torch's names tell: an op that ends in an underscore writes its first operand, and all of them but copies
    read it before.
    """
    if work.bytes_read is None or work.bytes_written is None:
        return "copy"
    if work.bytes_written <= HARDLY_WRITTEN * work.bytes_read:
        return "read"
    name = op.rpartition("::")[2].partition(".")[0]
    in_place = name.endswith("_") and not name.endswith("copy_") and work.bytes_written <= work.bytes_read
    return "update" if in_place else "copy"


HARDLY_WRITTEN = 1 / 16
"""An op that writes at most this part of what it reads is judged as one that reads only."""


def place(
    work: Work,
    family: str | None,
    precision: str | None,
    roof: Roof | None,
    *,
    pattern: str = "copy",
    reach_bytes: int | None = None,
    pipe: str | None = None,
) -> Placement:
    """The placement of one call's work. Work without FLOPs is a normal point, judged by bandwidth.

    ``reach_bytes`` is how many bytes were touched since the op's tensors were, its own included: a memory
    level that holds so many serves it. None: its tensors come from main memory. ``pipe`` is the one that computes,
    where it is known to be another than the family's.
    """
    pipe = pipe or pipe_of(family)
    if roof is None:
        return Placement(reason="there is no roof to judge it by")
    if family == "communication":
        return Placement(reason="a collective waits for other devices: no roof of its own judges it")
    moved, flops = work.bytes_moved, work.flops
    bandwidth = roof.bandwidth(reach_bytes, pattern)
    compute = roof.compute(precision, pipe) if precision else None
    memory_ns = None if moved is None or bandwidth is None else moved / bandwidth.value * 1e9
    if flops == 0:
        compute_ns: float | None = 0.0
    else:
        compute_ns = None if flops is None or compute is None else flops / compute.value * 1e9
    floor_ns, side, reason = _floor(work, memory_ns, compute_ns)
    if floor_ns is None and flops:
        reason = reason or _without_compute(precision, pipe, roof)
    return Placement(
        memory_ns=memory_ns,
        compute_ns=compute_ns,
        floor_ns=floor_ns,
        side=side,
        compute=compute,
        bandwidth=bandwidth,
        reason=reason,
    )


def _floor(
    work: Work, memory_ns: float | None, compute_ns: float | None
) -> tuple[float | None, str | None, str | None]:
    """Floor, side and reason. A part whose *ceiling* is missing leaves no floor: it could be the larger."""
    moved, flops = work.bytes_moved, work.flops
    if flops is None and moved is None:
        return None, None, "neither FLOPs nor bytes are known"
    if moved is not None and memory_ns is None:
        return None, None, "the roof has no memory bandwidth"
    if flops is None:
        return memory_ns, "memory", "FLOPs are unknown: a lower bound from the bytes"
    if compute_ns is None:
        return None, None, None
    if memory_ns is None:
        if not flops:
            return None, None, "there are no FLOPs and the bytes are unknown"
        return compute_ns, "compute", "bytes are unknown: a lower bound from the FLOPs"
    return max(memory_ns, compute_ns), "compute" if compute_ns > memory_ns else "memory", None


def _without_compute(precision: str | None, pipe: str, roof: Roof) -> str:
    if precision is None:
        return "the precision is unknown, so no compute ceiling applies"
    return f"{roof.name} has no {precision} {pipe} ceiling"


def attainable(intensity: float, compute: Ceiling, bandwidth: Ceiling) -> float:
    """The roof over an intensity (FLOPs per byte), in FLOP/s."""
    return min(compute.value, intensity * bandwidth.value)


def ridge(compute: Ceiling, bandwidth: Ceiling) -> float:
    """The intensity (FLOPs per byte) at which the slope meets the flat."""
    return compute.value / bandwidth.value
