"""A line of a table: sums over rows, and the rates that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from torchroof.report.model import Layer, Row, Tensor

PARTIAL = 0.99
"""Rates that cover less than this share of a line's kernel time are marked as partial."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a table: sums over rows, and rates recomputed from the sums.

    ``label`` is a path, an op, a phase or a kernel's name; lines for what has none are in parentheses:
    ``(root)``, ``(optimizer)``, ``(no launch record)``. Sums are over the counted steps.
    """

    label: str
    path: str | None = None
    """A layer's path; of a line for several equal layers their pattern, without the ``×12`` of the label."""
    members: int = 1
    """How many layers the line stands for."""
    type: str | None = None
    calls: int | None = None
    kernels: int = 0
    kernel_ns: int = 0
    busy_ns: int = 0
    host_ns: int = 0
    cast_ns: int = 0
    layout_ns: int = 0
    """Parts of ``kernel_ns`` that cast to another type, and that copy into another order in memory."""
    phase_ns: dict[str, int] = {}
    """Kernel time by phase; phases without any are left out."""
    flops: int | None = None
    flops_known_ns: int = 0
    bytes: int | None = None
    bytes_known_ns: int = 0
    floor_ns: int | None = None
    floor_known_ns: int = 0
    headroom_ns: int | None = None
    """Of what has a floor."""
    headroom_least_ns: int = 0
    """The same, and the host time of what has no floor: so much could be won back at least."""
    headroom_most_ns: int = 0
    """The same, and the busy time of what has no floor. Equal to the least where every floor is known."""
    intensity: float | None = None
    achieved_flops_per_s: float | None = None
    achieved_bytes_per_s: float | None = None
    efficiency: float | None = None
    partial: bool = False
    """The rates cover less than 99 % of the line's kernel time."""
    side: str | None = None
    bound: str | None = None
    flagged: bool = False
    why: str | None = None
    inputs: str | None = None
    """Shapes in, as text, for wide tables."""
    outputs: str | None = None
    parameters: str | None = None

    @property
    def headroom_is_least(self) -> bool:
        """Whether more than a rounding's worth of the line has no floor, so that the headroom may be larger."""
        return self.headroom_least_ns < PARTIAL * self.headroom_most_ns


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A grouped report: the lines shown, what `top` and `filter` left out as one line, and the totals of all."""

    by: str
    sort: str
    steps: int
    """Divisor for means per step (steps x devices, at least 1)."""
    step_ns: int
    """What shares of a step are taken of (a sum over the counted steps)."""
    lines: tuple[Line, ...]
    rest: Line | None
    total: Line
    apart: tuple[Line, ...] = ()
    """What lies outside the counted steps, and so is in no mean per step and not in the total."""
    filter: str | None = None
    """The pattern that the lines shown match."""


def line_of(
    label: str, rows: Sequence[Row], layer: Layer | None = None, *, path: str | None = None, members: int = 1
) -> Line:
    """The line of a group of rows; ``layer`` adds what is known of a layer beyond its rows.

    Without it ``calls`` are those of the ops.
    """
    phases: dict[str, int] = {}
    for row in rows:
        phases[row.phase] = phases.get(row.phase, 0) + row.kernel_ns
    types = {r.type for r in rows}
    bounds: dict[str | None, int] = {}
    sides: dict[str | None, int] = {}
    for row in rows:
        weight = row.busy_ns + row.host_ns
        bounds[row.bound] = bounds.get(row.bound, 0) + weight
        sides[row.side] = sides.get(row.side, 0) + weight
    return _line(
        label,
        path=path,
        members=members,
        type=layer.type if layer else types.pop() if len(types) == 1 else None,
        calls=layer.calls if layer else sum(r.calls for r in rows),
        kernels=sum(r.kernels for r in rows),
        kernel_ns=sum(r.kernel_ns for r in rows),
        busy_ns=sum(r.busy_ns for r in rows),
        host_ns=sum(r.host_ns for r in rows),
        cast_ns=sum(r.cast_ns for r in rows),
        layout_ns=sum(r.layout_ns for r in rows),
        phase_ns=phases,
        flops=known_sum(r.flops for r in rows),
        flops_known_ns=sum(r.flops_known_ns for r in rows),
        bytes=known_sum(_moved(r) for r in rows),
        bytes_known_ns=sum(r.bytes_known_ns for r in rows),
        floor_ns=known_sum(r.floor_ns for r in rows),
        floor_known_ns=sum(r.floor_known_ns for r in rows),
        headroom_ns=known_sum(r.headroom_ns for r in rows),
        headroom_least_ns=sum(r.host_ns if r.headroom_ns is None else r.headroom_ns for r in rows),
        headroom_most_ns=sum(r.busy_ns + r.host_ns if r.headroom_ns is None else r.headroom_ns for r in rows),
        side=max(sides, key=lambda s: sides[s]),
        bound=max(bounds, key=lambda b: bounds[b]),
        flagged=layer.flagged if layer else False,
        why=layer.why if layer else None,
        inputs=_shapes(layer.inputs) if layer else None,
        outputs=_shapes(layer.outputs) if layer else None,
        parameters=_shapes(layer.parameters) if layer else None,
    )


def _line(label: str, **sums: Any) -> Line:
    """A line whose rates follow from its sums."""
    flops, moved, floor = sums["flops"], sums["bytes"], sums["floor_ns"]
    covered = min(sums["flops_known_ns"], sums["bytes_known_ns"], sums["floor_known_ns"])
    return Line(
        label=label,
        intensity=flops / moved if flops is not None and moved else None,
        achieved_flops_per_s=_over(flops, sums["flops_known_ns"], 1e9),
        achieved_bytes_per_s=_over(moved, sums["bytes_known_ns"], 1e9),
        efficiency=_over(floor, sums["floor_known_ns"], 1.0),
        partial=floor is not None and covered < PARTIAL * sums["kernel_ns"],
        **sums,
    )


def _over(amount: int | None, ns: int, scale: float) -> float | None:
    return None if amount is None or not ns else amount * scale / ns


def _moved(row: Row) -> int | None:
    if row.bytes_read is None and row.bytes_written is None:
        return None
    return (row.bytes_read or 0) + (row.bytes_written or 0)


def known_sum(values: Iterable[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


_ADDITIVE = (
    "kernels",
    "kernel_ns",
    "busy_ns",
    "host_ns",
    "cast_ns",
    "layout_ns",
    "flops_known_ns",
    "bytes_known_ns",
    "floor_known_ns",
    "headroom_least_ns",
    "headroom_most_ns",
)
_ADDITIVE_IF_KNOWN = ("flops", "bytes", "floor_ns", "headroom_ns")


def sum_of(label: str, found: Sequence[Line]) -> Line:
    """Lines added up; what is unknown in some is the sum of the rest, and null where nothing is known."""
    sums: dict[str, Any] = {name: sum(getattr(line, name) for line in found) for name in _ADDITIVE}
    sums |= {name: known_sum(getattr(line, name) for line in found) for name in _ADDITIVE_IF_KNOWN}
    phases: dict[str, int] = {}
    for line in found:
        for phase, ns in line.phase_ns.items():
            phases[phase] = phases.get(phase, 0) + ns
    return _line(label, phase_ns=phases, **sums)


def _shapes(tensors: tuple[Tensor, ...]) -> str | None:
    """``8x3x224x224 float32, …``; None where no shape is known."""
    return ", ".join(f"{'x'.join(map(str, t.shape)) or 'scalar'} {t.dtype or '?'}" for t in tensors) or None
