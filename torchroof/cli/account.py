"""The accounting of one op as `torchroof explain` tells it: work, placement, tiles, and the way from the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchroof.device.roof import Ceiling, Roof
from torchroof.roofline.place import Placement, pipe_of, ridge
from torchroof.tensors import DType, OpCall
from torchroof.units import UNKNOWN, digits, duration, quantity
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES
from torchroof.work.tiling import Gemm, Tiling

Step = tuple[str, str, str]
"""What, how much, and how it came about."""


@dataclass(frozen=True, slots=True)
class FromHost:
    """What it costs to fetch the operands from the host and to bring the result back, and to start the kernel."""

    bytes_copied: int
    link_bytes_per_s: float
    launch_ns: float | None

    @property
    def copy_ns(self) -> float:
        return self.bytes_copied / self.link_bytes_per_s * 1e9


@dataclass(frozen=True, slots=True)
class Account:
    """One op's work and, where a device was named, its placement."""

    op: str
    call: OpCall
    dtype: DType
    family: str | None
    work: Work
    words: str
    source: str
    roof: Roof | None
    placement: Placement
    gemm: Gemm | None = None
    tilings: tuple[Tiling, ...] = ()
    host: FromHost | None = None

    @property
    def macs(self) -> int | None:
        """Multiply-adds of a product or convolution; None for other ops."""
        if self.family not in MATRIX_FAMILIES or self.work.flops is None or self.dtype.kind == "complex":
            return None
        return self.work.flops // 2

    @property
    def ridge_point(self) -> float | None:
        compute, bandwidth = self.placement.compute, self.placement.bandwidth
        return ridge(compute, bandwidth) if compute and bandwidth else None

    @property
    def total_ns(self) -> float | None:
        """Copy, launch and floor, one after the other; None where the host was not asked about or no floor is known."""
        if self.host is None or self.placement.floor_ns is None:
            return None
        return self.host.copy_ns + (self.host.launch_ns or 0.0) + self.placement.floor_ns

    def as_json(self) -> dict[str, Any]:
        gemm, host = self.gemm, self.host
        return {
            "op": self.op,
            "dtype": self.dtype.name,
            "device": self.roof.name if self.roof else None,
            "macs": self.macs,
            "flops": self.work.flops,
            "bytes": self.work.bytes_moved,
            "bytes_read": self.work.bytes_read,
            "bytes_written": self.work.bytes_written,
            "intensity": self.work.intensity,
            "ridge_point": self.ridge_point,
            "memory_ns": self.placement.memory_ns,
            "compute_ns": self.placement.compute_ns,
            "floor_ns": self.placement.floor_ns,
            "side": self.placement.side,
            "gemm": None if gemm is None else {"m": gemm.m, "n": gemm.n, "k": gemm.k, "groups": gemm.groups},
            "tiles": [{"tile": t.tile, "bytes": t.bytes_moved, "intensity": t.intensity} for t in self.tilings],
            "copy_ns": None if host is None else host.copy_ns,
            "launch_ns": None if host is None else host.launch_ns,
            "total_ns": self.total_ns,
        }


def steps_of(account: Account) -> list[Step]:
    """Every step of the accounting, in order."""
    return [*_work(account), *_tiles(account), *_roof(account), *_host(account)]


def conclusion(account: Account) -> str:
    if account.roof is None:
        return "Name a device with --device to see how long this takes at least."
    placed = account.placement
    if placed.side is None:
        return f"No floor: {placed.reason}."
    said = f"{placed.side.capitalize()} side: at least {duration(placed.floor_ns)} on {account.roof.name}"
    if account.total_ns is not None and account.host is not None:
        share = digits(100 * account.host.copy_ns / account.total_ns, 2)
        said += f"; {duration(account.total_ns)} with the way from the host and back, of which copying is {share} %"
    return f"{said}." if placed.reason is None else f"{said} ({placed.reason})."


def _work(account: Account) -> list[Step]:
    work = account.work
    steps = []
    if account.gemm is not None and account.family == "convolution":
        gemm = account.gemm
        times = f", {gemm.groups} times" if gemm.groups > 1 else ""
        size = f"{gemm.m:,} x {gemm.n:,} x {gemm.k:,}{times}"
        steps.append(("as a product", size, "M = samples x places, N = outputs, K = inputs x kernel, of each group"))
    if account.macs is not None:
        steps.append(("multiply-adds", _whole(account.macs), "MACs"))
    multiply_add = "2 per multiply-add" if account.macs is not None else account.words
    steps.append(("FLOPs", _whole(work.flops), multiply_add))
    if work.flops_full != work.flops:
        steps.append(("FLOPs in full", _whole(work.flops_full), "with all that a mask hides"))
    steps += [
        ("bytes read", _whole(work.bytes_read), "each distinct element once"),
        ("bytes written", _whole(work.bytes_written), "the result, once"),
        ("bytes", _whole(work.bytes_moved), quantity(work.bytes_moved, "B") + " read and written"),
    ]
    if work.bytes_upper != work.bytes_moved:
        steps.append(("bytes at most", _whole(work.bytes_upper), "when everything is streamed"))
    return [*steps, ("intensity", _ratio(work.intensity), "FLOPs per byte")]


def _tiles(account: Account) -> list[Step]:
    steps = []
    for tiling in account.tilings:
        name = "untiled" if tiling.tile == 1 else f"tiles of {tiling.tile}"
        how = (
            f"FLOPs per byte; {quantity(tiling.bytes_moved, 'B')} of the factors, each number used {tiling.tile} times"
        )
        if tiling.tile == 1:
            how = f"FLOPs per byte; {quantity(tiling.bytes_moved, 'B')}: two numbers are read for each multiply-add"
        steps.append((name, _ratio(tiling.intensity), how))
    if steps:
        steps.append(("ideal", _ratio(account.work.intensity), "FLOPs per byte; every number moves once"))
    return steps


def _roof(account: Account) -> list[Step]:
    if account.roof is None:
        return []
    placed = account.placement
    compute, bandwidth = placed.compute, placed.bandwidth
    steps = [("device", account.roof.name, f"{pipe_of(account.family)} work in {account.dtype}")]
    if compute:
        rate = f"{quantity(compute.value, compute.unit)}"
        steps.append(("compute", rate, f"{compute.precision} {compute.pipe}, {_origin(compute)}"))
    if bandwidth:
        steps.append(("bandwidth", quantity(bandwidth.value, "B/s"), f"{bandwidth.level}, {_origin(bandwidth)}"))
    return [
        *steps,
        ("ridge point", _ratio(account.ridge_point, 3), "FLOPs per byte: compute ÷ bandwidth"),
        ("moving data", duration(placed.memory_ns), "bytes ÷ bandwidth"),
        ("computing", duration(placed.compute_ns), "FLOPs ÷ compute"),
        ("floor", duration(placed.floor_ns), "the larger of the two"),
    ]


def _host(account: Account) -> list[Step]:
    if account.host is None:
        return []
    link = quantity(account.host.link_bytes_per_s, "B/s")
    copied = quantity(account.host.bytes_copied, "B")
    return [
        ("copying", duration(account.host.copy_ns), f"{copied} there and back ÷ {link}, the link to the host"),
        ("launching", duration(account.host.launch_ns), "the least time of a kernel"),
        ("in all", duration(account.total_ns), "copying, launching and the floor, one after the other"),
    ]


def _origin(ceiling: Ceiling) -> str:
    sure = f", confidence {ceiling.confidence}" if ceiling.confidence else ""
    return f"{ceiling.origin}{sure}"


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _ratio(value: float | None, significant: int = 4) -> str:
    return UNKNOWN if value is None else digits(value, significant)
