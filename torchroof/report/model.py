"""The report as data: plain, frozen values that every view shows and that JSON restores whole.

`docs/report-schema.md` documents the same as JSON (schema ``torchroof.report/1``). Unknown is None, never 0.
Times are integer nanoseconds, sizes integer bytes, rates floats per second.
"""

from __future__ import annotations

from typing import Any

import msgspec

from torchroof.device.roof import Ceiling

SCHEMA = "torchroof.report/1"

PHASES = ("forward", "backward", "recompute", "grad_accumulate", "optimizer", "data", "outside")

BUSY_CAUSES = (
    "compute",
    "memory",
    "cache",
    "latency",
    "unmodelled",
    "unplaced",
    "communication",
    "copy",
    "unattributed",
)
IDLE_CAUSES = ("data", "sync", "host")
CAUSES = BUSY_CAUSES + IDLE_CAUSES
"""Every cause of step time; ``totals.causes`` has each of them, and they sum to ``totals.step_ns``."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    name: str | None
    matched: str | None
    """The catalogue's key; None for a device that is not in it."""
    ceilings: tuple[Ceiling, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    ns: int
    counted: bool


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """``kernels`` and ``kernel_ns`` cover the whole file, all else the counted steps."""

    kernels: int | None
    kernel_ns: int | None
    busy_ns: int
    span_ns: int
    step_ns: int
    causes: dict[str, int]
    host_unowned_ns: int
    attributed_ns: int
    layered_ns: int
    flops: int | None
    flops_known_ns: int
    bytes: int | None
    bytes_known_ns: int
    floor_ns: int | None
    floor_known_ns: int = 0
    step_efficiency: float | None
    mfu: float | None
    hfu: float | None
    matrix_flops: int | None = None
    """FLOPs of matrix products, convolutions and attention."""
    matrix_ns: int = 0
    """Kernel time of those."""
    backward_passes: int = 0
    optimizer_steps: int = 0
    """In the counted steps; more passes than steps are micro-steps of gradient accumulation."""
    overhead: dict[str, Any] | None = None


class Tensor(msgspec.Struct, frozen=True):
    shape: tuple[int, ...]
    dtype: str | None


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    type: str | None
    aliases: tuple[str, ...] = ()
    calls: int = 0
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    parameters: tuple[Tensor, ...] = ()
    flagged: bool = False
    why: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One (device, path, phase, op, precision, pipe); path None where no layer is known, op None where no op is."""

    device: int
    path: str | None
    type: str | None
    phase: str
    op: str | None
    precision: str | None
    calls: int
    kernels: int
    kernel_ns: int
    busy_ns: int
    host_ns: int
    flops: int | None
    flops_full: int | None
    flops_known_ns: int
    bytes_read: int | None
    bytes_written: int | None
    bytes_upper: int | None
    bytes_known_ns: int
    intensity: float | None
    achieved_flops_per_s: float | None
    achieved_bytes_per_s: float | None
    attainable_flops_per_s: float | None
    floor_ns: int | None
    floor_known_ns: int = 0
    """Kernel time of the calls that have a floor; ``efficiency`` is taken over it."""
    efficiency: float | None
    headroom_ns: int | None
    side: str | None
    bound: str | None
    ceiling: int | None
    """Index into the device's ceilings."""
    attribution: str
    """Where the link to the layer comes from, or why there is none."""
    unknown: str | None = None
    """Why work or floor is unknown or a lower bound, for the calls that took most of the time."""
    pipe: str | None = None
    """``matrix`` or ``vector``: the units whose ceiling judges its arithmetic."""
    judged: str | None = None
    """Why this precision and pipe, for the calls that took most of the time; None where no FLOPs are judged."""
    cast_ns: int = 0
    """Part of ``kernel_ns`` that casts to another element type."""
    layout_ns: int = 0
    """Part of ``kernel_ns`` that copies into another order in memory."""
    shared: str | None = None
    kernel_ns_per_step: tuple[int, ...] = ()


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    path: str | None
    phase: str | None
    op: str | None
    kernels: int
    kernel_ns: int
    blocks: int | None = None
    """Thread blocks of all those launches together; None where the trace does not tell some of them."""
    resident_blocks: int | None = None
    """Blocks that a multiprocessor holds at a time; None where that is unknown, or not the same for all launches."""
    waves: float | None = None
    """Blocks over those that the device holds at a time, as a mean over the launches."""
    wave_efficiency: float | None = None
    """Blocks over the places in the whole waves that they need (0 to 1), as a mean by time."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    path: str | None
    phase: str | None
    calls: int
    bytes: int | None
    ns: int


class Unattributed(msgspec.Struct, frozen=True, kw_only=True):
    reason: str
    kernels: int
    kernel_ns: int
    busy_ns: int
    host_ns: int


class Note(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    text: str
    count: int | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Reserved: rules that predict gains come later; none is made today."""

    kind: str
    text: str
    evidence: dict[str, Any] = {}


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report as it is stored."""

    schema: str = SCHEMA
    environment: dict[str, Any] = {}
    devices: tuple[Device, ...] = ()
    steps: int = 0
    per_step: tuple[Step, ...] = ()
    totals: Totals
    layers: tuple[Layer, ...] = ()
    rows: tuple[Row, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    unattributed: tuple[Unattributed, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
