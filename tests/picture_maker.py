"""Reports made by hand whose points can be placed on paper."""

from __future__ import annotations

from typing import Any

from torchroof.device.roof import Ceiling
from torchroof.report.lenses import lines
from torchroof.report.model import CAUSES, Device, ReportData, Row, Totals
from torchroof.report.picture import Picture, picture

MS = 1_000_000
"""Nanoseconds."""
FLOAT16 = Ceiling(
    kind="compute", precision="float16", pipe="matrix", value=1e14, unit="FLOP/s", origin="datasheet", source="s"
)
FLOAT32 = Ceiling(
    kind="compute", precision="float32", pipe="vector", value=1e13, unit="FLOP/s", origin="measured", source="m"
)
DRAM = Ceiling(kind="bandwidth", level="dram", value=1e12, unit="byte/s", origin="measured", source="m")
ROOF = (FLOAT16, FLOAT32, DRAM)


def row(path: str | None, flops: int | None, moved: int | None, ms: float, floor: float | None, **more: Any) -> Row:
    """A row of float16 products; ``ms`` of kernels, ``floor`` in ms."""
    ns, floor_ns = round(ms * MS), None if floor is None else round(floor * MS)
    return Row(**{
        "device": 0, "path": path, "type": "Linear", "phase": "forward", "op": "aten::mm", "precision": "float16",
        "calls": 1, "kernels": 1, "kernel_ns": ns, "busy_ns": ns, "host_ns": 0, "flops": flops, "flops_full": None,
        "flops_known_ns": ns if flops is not None else 0, "bytes_read": moved, "bytes_written": None,
        "bytes_upper": None, "bytes_known_ns": ns if moved is not None else 0, "intensity": None,
        "achieved_flops_per_s": None, "achieved_bytes_per_s": None, "attainable_flops_per_s": None,
        "floor_ns": floor_ns, "floor_known_ns": ns if floor is not None else 0, "efficiency": None,
        "headroom_ns": None if floor_ns is None else max(0, ns - floor_ns), "side": "memory", "bound": "memory",
        "ceiling": None, "attribution": "scope", **more,
    })  # fmt: skip


def report(*rows: Row, ceilings: tuple[Ceiling, ...] = ROOF, step_ms: float = 100, **more: Any) -> ReportData:
    totals = Totals(
        kernels=len(rows), kernel_ns=sum(r.kernel_ns for r in rows), busy_ns=0, span_ns=0,
        step_ns=round(step_ms * MS), causes=dict.fromkeys(CAUSES, 0), host_unowned_ns=0, attributed_ns=0, layered_ns=0,
        flops=None, flops_known_ns=0, bytes=None, bytes_known_ns=0, floor_ns=None, step_efficiency=None, mfu=None,
        hfu=None,
    )  # fmt: skip
    device = Device(index=0, name="A device", matched=None, ceilings=ceilings)
    return ReportData(**{"devices": (device,), "steps": 1, "totals": totals, "rows": rows, **more})


def drawn(*rows: Row, by: str = "layer", **more: Any) -> Picture:
    data = report(*rows, **more)
    return picture(data, lines(data, by=by))


ROWS = (
    # 2e11 FLOPs in 10 ms are 2e13 FLOP/s; over 1e9 bytes, 200 FLOPs per byte. Floor 2 ms: 20 %.
    row("net.fc1", 200_000_000_000, 1_000_000_000, 10, 2, side="compute", bound="compute"),
    # 1e9 FLOPs in 5 ms are 2e11 FLOP/s; over 2e9 bytes, 0.5 FLOPs per byte. Floor 2 ms: 40 %.
    row("net.norm", 1_000_000_000, 2_000_000_000, 5, 2, op="aten::native_layer_norm", precision="float32"),
    # No FLOPs, 1e9 bytes in 4 ms where 1 would do: 25 % of the bandwidth.
    row("net.copy", 0, 1_000_000_000, 4, 1, op="aten::copy_"),
    # Above the roof: 4e9 FLOPs over 1e9 bytes in 0.5 ms where the roof allows 1 ms.
    row("net.odd", 4_000_000_000, 1_000_000_000, 0.5, 1, bound="cache"),
    row("net.custom", None, None, 3, None, op="my::op", precision=None, side=None, bound="unmodelled"),
)
