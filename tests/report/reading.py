"""Reports of big models, made by hand: rows by path, with times and work that are added up on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchroof.device.roof import Ceiling
from torchroof.report.model import CAUSES, Device, Kernel, Layer, ReportData, Row, Totals

GIVEN: dict[str, Any] = {"origin": "given", "source": "paper"}
CEILINGS = (
    Ceiling(kind="compute", precision="float32", pipe="matrix", value=1e12, unit="FLOP/s", **GIVEN),
    Ceiling(kind="compute", precision="float32", pipe="vector", value=1e12, unit="FLOP/s", **GIVEN),
    Ceiling(kind="bandwidth", level="dram", value=1e11, unit="byte/s", **GIVEN),
    Ceiling(kind="launch", value=1e-6, unit="s", **GIVEN),
)


def row(path: str | None, ns: int, **more: Any) -> Row:
    """A row of one matrix product: a FLOP per ns, 100 bytes read and 20 written, floor half of the time."""
    return Row(**{
        "device": 0, "path": path, "type": "Linear", "phase": "forward", "op": "aten::mm", "precision": "float32",
        "calls": 1, "kernels": 1, "kernel_ns": ns, "busy_ns": ns, "host_ns": 0, "flops": ns, "flops_full": None,
        "flops_known_ns": ns, "bytes_read": 100, "bytes_written": 20, "bytes_upper": 150, "bytes_known_ns": ns,
        "intensity": ns / 120, "achieved_flops_per_s": 1e9, "achieved_bytes_per_s": 120e9 / ns if ns else None,
        "attainable_flops_per_s": 1e12, "floor_ns": ns // 2, "floor_known_ns": ns, "efficiency": 0.5,
        "headroom_ns": ns - ns // 2, "side": "compute", "bound": "compute", "ceiling": 0, "attribution": "layer scope",
        "kernel_ns_per_step": (ns,), **more,
    })  # fmt: skip


def layer(path: str, kind: str | None = "Linear", **more: Any) -> Layer:
    return Layer(**{"path": path, "type": kind, "calls": 1, **more})


def report(rows: Sequence[Row], layers: Iterable[Layer] | None = None, **more: Any) -> ReportData:
    """One step as long as its kernels; a layer for every path unless others are given."""
    ns = sum(r.kernel_ns for r in rows)
    paths = {r.path: r for r in rows if r.path is not None}
    made = [layer(path, r.type) for path, r in paths.items()] if layers is None else layers
    flops = [r.flops for r in rows if r.flops is not None]
    totals = Totals(
        kernels=sum(r.kernels for r in rows), kernel_ns=ns, busy_ns=ns, span_ns=ns, step_ns=ns,
        causes=dict.fromkeys(CAUSES, 0) | {"compute": ns}, host_unowned_ns=0, attributed_ns=ns, layered_ns=ns,
        flops=sum(flops) if flops else None, flops_known_ns=ns, bytes=None, bytes_known_ns=ns, floor_ns=None,
        step_efficiency=None, mfu=None, hfu=None,
    )  # fmt: skip
    return ReportData(**{
        "devices": (Device(index=0, name="Paper 1", matched=None, ceilings=CEILINGS),), "steps": 1, "totals": totals,
        "layers": tuple(made), "rows": tuple(rows),
        "kernels": tuple(
            Kernel(name=f"gemm_{r.phase}", path=r.path, phase=r.phase, op=r.op, kernels=r.kernels,
                   kernel_ns=r.kernel_ns)
            for r in rows
        ), **more,
    })  # fmt: skip


def uneven() -> ReportData:
    """Eight blocks as slow as each other, in some of which ``up`` is slow and in the others ``down``: alone the layers
    make four lines, below their blocks two."""
    times = ((9000, 5000), (5000, 9000))
    rows = [row(f"blocks.{i}.{n}", ns) for i in range(8) for n, ns in zip(("up", "down"), times[i % 2], strict=True)]
    layers = [layer("", "Model"), *(layer(f"blocks.{i}", "Block") for i in range(8))]
    return report([*rows, row("head", 41_000)], [*layers, *(layer(str(r.path), "Linear") for r in rows), layer("head")])
