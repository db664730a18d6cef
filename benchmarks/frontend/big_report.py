"""A made-up report of a big model: by default 1,000 layers, 6,000 rows, 20,000 kernels. Its ledgers hold."""

from __future__ import annotations

import random
from collections.abc import Iterator

from torchroof.device.roof import Ceiling
from torchroof.report.lenses import flag_layers
from torchroof.report.model import CAUSES, Device, Kernel, Layer, ReportData, Row, Step, Tensor, Totals

STEPS = 3
FLOPS_PER_S, BYTES_PER_S = 989e12, 3.35e12
CEILINGS = (
    Ceiling(kind="compute", precision="bfloat16", pipe="matrix", value=FLOPS_PER_S, unit="FLOP/s", origin="datasheet",
            source="made up"),
    Ceiling(kind="compute", precision="float32", pipe="vector", value=66.9e12, unit="FLOP/s", origin="datasheet",
            source="made up"),
    Ceiling(kind="bandwidth", level="dram", value=BYTES_PER_S, unit="byte/s", origin="measured",
            source="made up", measured_at="2026-11-30T12:00:00+00:00"),
)  # fmt: skip
PARTS = (
    ("norm1", "LayerNorm", "aten::native_layer_norm", 0.004),
    ("attention", "Attention", "aten::scaled_dot_product_attention", 0.5),
    ("attention.qkv", "Linear", "aten::addmm", 1.0),
    ("attention.out", "Linear", "aten::addmm", 0.4),
    ("norm2", "LayerNorm", "aten::native_layer_norm", 0.004),
    ("mlp.up", "Linear", "aten::addmm", 1.4),
    ("mlp.act", "GELU", "aten::gelu", 0.004),
    ("mlp.down", "Linear", "aten::addmm", 1.4),
)
"""Within a block: path, class, op, and how much of its floor comes from arithmetic (in ms a step)."""
PHASES = (("forward", 1.0), ("backward", 2.0))


def big_report(layers: int = 1000, kernels: int = 20_000, seed: int = 0) -> ReportData:
    """A transformer with so many layers below its blocks, each block a little different from the next."""
    chance = random.Random(seed)
    made = list(_layers(layers))
    rows = [row for layer in made for row in _rows(layer, chance)]
    rows = [row for row in rows if row.kernel_ns]
    busy, host = sum(r.busy_ns for r in rows), sum(r.host_ns for r in rows)
    causes = dict.fromkeys(CAUSES, 0) | {"host": host}
    for row in rows:
        causes[row.bound or "unplaced"] += row.busy_ns
    flops = sum(r.flops or 0 for r in rows)
    floor = sum(r.floor_ns or 0 for r in rows)
    totals = Totals(
        kernels=kernels * STEPS, kernel_ns=busy, busy_ns=busy, span_ns=busy + host, step_ns=busy + host, causes=causes,
        host_unowned_ns=0, attributed_ns=busy, layered_ns=busy, flops=flops, flops_known_ns=busy,
        bytes=sum((r.bytes_read or 0) + (r.bytes_written or 0) for r in rows), bytes_known_ns=busy, floor_ns=floor,
        floor_known_ns=busy, step_efficiency=floor / (busy + host), mfu=flops / FLOPS_PER_S * 1e9 / (busy + host),
        hfu=flops / FLOPS_PER_S * 1e9 / (busy + host), matrix_flops=flops, matrix_ns=busy,
    )  # fmt: skip
    report = ReportData(
        environment={"torch": "2.13.0"},
        devices=(Device(index=0, name="NVIDIA H100 80GB HBM3", matched="h100-sxm", ceilings=CEILINGS),),
        steps=STEPS,
        per_step=tuple(Step(index=i, ns=(busy + host) // STEPS, counted=i > 0) for i in range(STEPS + 1)),
        totals=totals,
        layers=tuple(made),
        rows=tuple(rows),
        kernels=tuple(_kernels(rows, kernels)),
    )
    return flag_layers(report)


def _layers(count: int) -> Iterator[Layer]:
    shape = (Tensor((8, 2048, 4096), "bfloat16"),)
    yield Layer(path="", type="Transformer", calls=STEPS)
    for at in range(count):
        block, part = divmod(at, len(PARTS))
        if part == 0:
            yield Layer(path=f"blocks.{block}", type="Block", calls=STEPS)
        name, kind, _, _ = PARTS[part]
        yield Layer(path=f"blocks.{block}.{name}", type=kind, calls=STEPS, inputs=shape, outputs=shape)


def _rows(layer: Layer, chance: random.Random) -> Iterator[Row]:
    part = next((p for p in PARTS if layer.path.endswith(f".{p[0]}")), None)
    if part is None:
        return
    _, kind, op, work_ms = part
    for phase, factor in PHASES:
        for suffix, share in (("", 0.8), ("aten::copy_", 0.06), ("aten::add_", 0.14)):
            yield _row(layer.path, kind, phase, suffix or op, STEPS * factor * share * work_ms, chance)


def _row(path: str, kind: str, phase: str, op: str, work_ms: float, chance: random.Random) -> Row:
    """Arithmetic for so many ms of the floor, bytes for a spread of intensities, and a chance efficiency."""
    heavy = op in ("aten::addmm", "aten::scaled_dot_product_attention")
    flops = round(work_ms * FLOPS_PER_S / 1e3) if heavy else round(work_ms * 1e9)
    moved = round(flops / chance.uniform(150, 900)) if heavy else round(4e8 * work_ms * chance.uniform(1, 30))
    floor = max(flops / FLOPS_PER_S, moved / BYTES_PER_S) * 1e9
    efficiency = min(0.93, max(0.04, chance.gauss(0.5, 0.2)))
    ns = max(1000, round(floor / efficiency))
    host = chance.randint(0, 40_000) if chance.random() < 0.2 else 0
    side = "compute" if flops / FLOPS_PER_S > moved / BYTES_PER_S else "memory"
    return Row(
        device=0, path=path, type=kind, phase=phase, op=op, precision="bfloat16", calls=STEPS, kernels=3 * STEPS,
        kernel_ns=ns, busy_ns=ns, host_ns=host, flops=flops, flops_full=None, flops_known_ns=ns, bytes_read=moved // 2,
        bytes_written=moved - moved // 2, bytes_upper=None, bytes_known_ns=ns,
        intensity=flops / moved if moved else None, achieved_flops_per_s=flops * 1e9 / ns,
        achieved_bytes_per_s=moved * 1e9 / ns,
        attainable_flops_per_s=min(FLOPS_PER_S, flops / max(1, moved) * BYTES_PER_S), floor_ns=round(floor),
        floor_known_ns=ns, efficiency=round(floor) / ns, headroom_ns=max(0, ns - round(floor)) + host, side=side,
        bound="latency" if ns < 6000 * STEPS else side, ceiling=0 if side == "compute" else 2,
        attribution="layer scope",
    )  # fmt: skip


def _kernels(rows: list[Row], count: int) -> Iterator[Kernel]:
    """The rows' time in so many kernels, evenly."""
    each, more = divmod(count, len(rows))
    for at, row in enumerate(rows):
        parts = each + (at < more)
        if not parts:
            continue
        share, rest = divmod(row.kernel_ns, parts)
        for number in range(parts):
            name = f"void made_up::{(row.op or '').rpartition(':')[2]}_kernel<{number}, c10::BFloat16, 128>(…)"
            yield Kernel(name=name, path=row.path, phase=row.phase, op=row.op, kernels=STEPS,
                         kernel_ns=share + (rest if number == 0 else 0))  # fmt: skip
