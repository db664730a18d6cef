"""Lenses: a report's rows grouped and sorted for a table. Pure functions; views only draw what they give."""

from __future__ import annotations

import msgspec

from torchroof.report.model import ReportData

BY = ("layer", "op", "phase", "kernel")
SORT = ("headroom", "time", "flops")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a table: sums over rows, and rates recomputed from the sums.

    ``label`` is a path, an op, a phase or a kernel's name; lines for what has none are in parentheses:
    ``(root)``, ``(optimizer)``, ``(no launch record)``. Sums are over the counted steps.
    """

    label: str
    path: str | None = None
    type: str | None = None
    calls: int | None = None
    kernels: int = 0
    kernel_ns: int = 0
    busy_ns: int = 0
    host_ns: int = 0
    phase_ns: dict[str, int] = {}
    """Kernel time by phase; phases without any are left out."""
    flops: int | None = None
    flops_known_ns: int = 0
    bytes: int | None = None
    bytes_known_ns: int = 0
    floor_ns: int | None = None
    headroom_ns: int | None = None
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


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A grouped report: the lines shown, what `top` left out as one line, and the totals of all."""

    by: str
    sort: str
    steps: int
    """Divisor for means per step (steps x devices, at least 1)."""
    step_ns: int
    """What shares of a step are taken of (a sum over the counted steps)."""
    lines: tuple[Line, ...]
    rest: Line | None
    total: Line


def lines(data: ReportData, by: str = "layer", sort: str = "headroom", top: int | None = None) -> Lines:
    """The report as a table's lines. ``by`` is one of BY, ``sort`` one of SORT (largest first)."""
    raise NotImplementedError
