"""Reports made by hand, small enough to add up on paper."""

from __future__ import annotations

from typing import Any

from torchroof.device.roof import Ceiling
from torchroof.report.lenses import Line, Lines
from torchroof.report.model import (
    CAUSES,
    Device,
    Kernel,
    Layer,
    Note,
    ReportData,
    Row,
    Step,
    Tensor,
    Totals,
    Unattributed,
)  # fmt: skip
from torchroof.report.summary import Headline, Share

MS = 1_000_000
"""Nanoseconds."""


def line(label: str, busy_ms: float = 0, **more: Any) -> Line:
    """A line whose kernels run one after the other."""
    ns = round(busy_ms * MS)
    return Line(**{"label": label, "path": label, "kernel_ns": ns, "busy_ns": ns, "phase_ns": {"forward": ns}, **more})


def layer(
    label: str, kind: str, forward: float, backward: float, optimizer: float, host: float, gflops: float | None,
    megabytes: float | None, floor: float | None, bound: str, **more: Any,
) -> Line:  # fmt: skip
    """Times in ms, over two steps."""
    phases = {"forward": forward, "backward": backward, "optimizer": optimizer}
    ns = {phase: round(ms * MS) for phase, ms in phases.items() if ms}
    kernel = sum(ns.values())
    flops = None if gflops is None else round(gflops * 1e9)
    size = None if megabytes is None else round(megabytes * 1e6)
    floor_ns = None if floor is None else round(floor * MS)
    headroom = max(0, kernel - (floor_ns or 0)) + round(host * MS)
    return Line(**{
        "label": label, "path": label, "type": kind, "calls": 2, "kernels": 8, "kernel_ns": kernel, "busy_ns": kernel,
        "host_ns": round(host * MS), "phase_ns": ns, "flops": flops,
        "flops_known_ns": kernel if flops is not None else 0,
        "bytes": size, "bytes_known_ns": kernel if size is not None else 0, "floor_ns": floor_ns,
        "headroom_ns": headroom, "headroom_least_ns": headroom, "headroom_most_ns": headroom,
        "intensity": flops / size if flops and size else None,
        "achieved_flops_per_s": flops / kernel * 1e9 if flops is not None and kernel else None,
        "achieved_bytes_per_s": size / kernel * 1e9 if size is not None and kernel else None,
        "efficiency": floor_ns / kernel if floor_ns is not None and kernel else None,
        "side": bound if bound in ("compute", "memory") else None, "bound": bound, **more,
    })  # fmt: skip


LAYERS = (
    layer("bert.encoder.layer.0.attention.self.query", "Linear", 4.2, 8.8, 0, 1.0, 520.0, 96.0, 3.1, "compute",
          flagged=True, why="far under its compute roof",
          inputs="8×128×768 float16", outputs="8×128×768 float16", parameters="768×768, 768"),
    layer("bert.encoder.layer.11.output.LayerNorm", "LayerNorm", 1.5, 2.5, 0, 0.5, 0.4, 48.0, 1.2, "memory",
          flagged=True, why="memory", inputs="8×128×768 float16", outputs="8×128×768 float16", parameters="768, 768"),
    layer("bert.embeddings", "BertEmbeddings", 0.9, 0.6, 0, 2.0, 0.0, 12.0, 0.3, "latency"),
    layer("(optimizer)", "", 0, 0, 3.0, 0.2, 0.9, 21.0, 2.9, "memory", type=None, calls=None),
    layer("bert.pooler.activation", "Tanh", 0.004, 0.006, 0, 0, None, None, None, "unmodelled",
          headroom_ns=None, headroom_least_ns=0, headroom_most_ns=10_000),
)  # fmt: skip


def summed(label: str, parts: tuple[Line, ...], **more: Any) -> Line:
    """The sum of lines, by the same names; rates from the sums."""

    def total(name: str) -> int | None:
        known = [getattr(p, name) for p in parts if getattr(p, name) is not None]
        return sum(known) if known else None

    phases: dict[str, int] = {}
    for p in parts:
        for phase, ns in p.phase_ns.items():
            phases[phase] = phases.get(phase, 0) + ns
    names = ("kernels", "kernel_ns", "busy_ns", "host_ns", "flops", "flops_known_ns", "bytes", "bytes_known_ns",
             "floor_ns", "headroom_ns", "headroom_least_ns", "headroom_most_ns")  # fmt: skip
    sums: dict[str, Any] = {name: total(name) for name in names}
    if sums["floor_ns"] and sums["kernel_ns"]:
        sums["efficiency"] = sums["floor_ns"] / sums["kernel_ns"]
    return Line(**{"label": label, **sums, "phase_ns": phases, **more})


def grouped(parts: tuple[Line, ...] = LAYERS, top: int | None = None, step_ms: float = 40, **more: Any) -> Lines:
    """Lines of two steps."""
    shown, hidden = (parts[:top], parts[top:]) if top else (parts, ())
    return Lines(**{
        "by": "layer", "sort": "headroom", "steps": 2, "step_ns": round(step_ms * MS), "lines": shown,
        "rest": summed(f"({len(hidden)} more)", hidden) if hidden else None, "total": summed("total", parts), **more,
    })  # fmt: skip


def headline(**more: Any) -> Headline:
    return Headline(**{
        "device": "NVIDIA H100 80GB HBM3", "steps": 2, "step_ns": 20.0 * MS,
        "causes": (Share("host", 8.3 * MS, 0.415), Share("compute", 6.5 * MS, 0.325), Share("memory", 3.5 * MS, 0.175),
                   Share("copy", 0.945 * MS, 0.04725), Share("latency", 0.75 * MS, 0.0375),
                   Share("unmodelled", 0.005 * MS, 0.00025)),
        "step_efficiency": 0.1875, "mfu": 0.066, "mfu_of": "float16 matrix 989 TFLOP/s (datasheet)",
        "with_owner": 0.998, "with_flops": 0.93, "with_bytes": 0.934, "without_work": 0.066,
        "without_work_ns": 755_000.0,
        "left_over": (Share("no launch record", 750_000.0, 0.0652), Share("aten::tanh", 5_000.0, 0.0004)),
        "matrix_flops": 0.997, "matrix_time": 0.604,
        "ceilings": ("float16 matrix 989 TFLOP/s, dram 3.35 TB/s (datasheet)", "launch 1.5 µs (given)"),
        "verdict": "Host-bound: for 42% of the step the device waits for Python to launch work.",
        "worst": "bert.encoder.layer.0.attention.self.query: 5.45 ms per step could be won; it runs far under its"
                 " compute roof (24%).",
        "worst_label": "bert.encoder.layer.0.attention.self.query",
        "notes": ("TF32 was off; float32 products ran on the vector pipe.",), **more,
    })  # fmt: skip


def data(**more: Any) -> ReportData:
    """A report whose ledgers hold: rows 20 + unattributed 1.5 ms of kernels; causes sum to the step's 40 ms."""
    causes = dict.fromkeys(CAUSES, 0) | {
        "compute": 13 * MS, "memory": 7 * MS, "latency": round(1.5 * MS), "unmodelled": 10_000, "copy": 1_890_000,
        "host": round(16.6 * MS),
    }  # fmt: skip
    return ReportData(**{
        "environment": {"torch": "2.13.0", "world_size": 1, "tf32": False},
        "devices": (Device(index=0, name="NVIDIA H100 80GB HBM3", matched="h100-sxm", ceilings=CEILINGS),),
        "steps": 2,
        "per_step": (Step(index=0, ns=25 * MS, counted=False), Step(index=1, ns=19 * MS, counted=True),
                     Step(index=2, ns=21 * MS, counted=True)),
        "totals": Totals(
            kernels=45, kernel_ns=23_010_000, busy_ns=23_400_000, span_ns=40 * MS, step_ns=40 * MS, causes=causes,
            host_unowned_ns=0, attributed_ns=21_510_000, layered_ns=18_510_000, flops=521_300_000_000,
            flops_known_ns=21_500_000, bytes=177_000_000, bytes_known_ns=21_500_000, floor_ns=7_500_000,
            step_efficiency=0.1875, mfu=0.066, hfu=0.066,
        ),
        "layers": (Layer(path="bert.encoder.layer.0.attention.self.query", type="Linear", calls=2, flagged=True,
                         why="far under its compute roof", inputs=(Tensor((8, 128, 768), "float16"),)),),
        "rows": (ROW,),
        "kernels": (Kernel(name="sm90_gemm<…>", path="bert.pooler", phase="forward", op="aten::addmm", kernels=2,
                           kernel_ns=4_200_000),),
        "unattributed": (Unattributed(reason="no launch record", kernels=3, kernel_ns=1_500_000, busy_ns=1_500_000,
                                      host_ns=0),),
        "notes": (Note(kind="tf32", text="TF32 was off; float32 products ran on the vector pipe."),),
        **more,
    })  # fmt: skip


CEILINGS = (
    Ceiling(
        kind="compute", precision="float16", pipe="matrix", value=989e12, unit="FLOP/s", origin="datasheet", source="a"
    ),
    Ceiling(kind="bandwidth", level="dram", value=3.35e12, unit="byte/s", origin="datasheet", source="a"),
)
ROW = Row(
    device=0, path="bert.pooler", type="Linear", phase="forward", op="aten::addmm", precision="float16", calls=2,
    kernels=2,
    kernel_ns=4_200_000, busy_ns=4_200_000, host_ns=0, flops=9_663_676_416, flops_full=None, flops_known_ns=4_200_000,
    bytes_read=6_291_456, bytes_written=1_572_864, bytes_upper=None, bytes_known_ns=4_200_000, intensity=1228.8,
    achieved_flops_per_s=2.3e12, achieved_bytes_per_s=1.87e9, attainable_flops_per_s=989e12, floor_ns=9771,
    efficiency=0.0023, headroom_ns=4_190_229, side="compute", bound="compute", ceiling=0, attribution="scope",
    kernel_ns_per_step=(2_100_000, 2_100_000),
)  # fmt: skip
