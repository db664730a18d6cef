"""The headline of a report: what a reader should know before any row."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime

import msgspec

from torchroof import units
from torchroof.device.roof import Ceiling
from torchroof.report.lenses import Line, lines
from torchroof.report.model import CAUSES, IDLE_CAUSES, ReportData
from torchroof.roofline.verdict import words


class Share(msgspec.Struct, frozen=True):
    """A named part of step time: nanoseconds per step (mean) and fraction of step time (0 to 1)."""

    name: str
    ns: float
    fraction: float


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """Figures are means per step and device; fractions are 0 to 1; None is unknown."""

    device: str
    steps: int
    step_ns: float
    causes: tuple[Share, ...]
    """Causes of step time with any, largest first."""
    step_efficiency: float | None
    mfu: float | None
    mfu_of: str | None
    """What MFU is taken of: ``datasheet peak`` or ``measured peak``."""
    with_owner: float | None
    """Fraction of the counted kernel time with a layer."""
    with_flops: float | None
    with_bytes: float | None
    matrix_flops: float | None
    """Share of all FLOPs done by matmul, convolution and attention."""
    matrix_time: float | None
    """Share of kernel time taken by them."""
    ceilings: tuple[str, ...]
    """One short text per ceiling that judged a row, and where it comes from."""
    verdict: str
    """One sentence in words: where the step's time goes."""
    worst: str | None
    """One sentence on the worst layer: how much, why, what it means. None when no layer is flagged."""
    notes: tuple[str, ...]


def headline(data: ReportData, now: float | None = None) -> Headline:
    """The headline. ``now`` (Unix seconds) is what ages of measured ceilings are told against."""
    totals = data.totals
    parts = max(1, data.steps) * max(1, len(data.devices))
    counted_ns = sum(r.kernel_ns for r in data.rows)
    causes = _causes(data, parts)
    return Headline(
        device=_device(data),
        steps=data.steps,
        step_ns=totals.step_ns / parts,
        causes=causes,
        step_efficiency=totals.step_efficiency,
        mfu=totals.mfu,
        mfu_of=None if totals.mfu is None else _mfu_of(data),
        with_owner=_fraction(totals.layered_ns, counted_ns),
        with_flops=_fraction(totals.flops_known_ns, counted_ns),
        with_bytes=_fraction(totals.bytes_known_ns, counted_ns),
        matrix_flops=_fraction(totals.matrix_flops, totals.flops),
        matrix_time=_fraction(totals.matrix_ns, counted_ns) if totals.flops is not None else None,
        ceilings=tuple(_ceilings(data, time.time() if now is None else now)),
        verdict=_verdict(data, causes),
        worst=_worst(data),
        notes=tuple(n.text for n in data.notes),
    )


def _fraction(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _causes(data: ReportData, parts: int) -> tuple[Share, ...]:
    step_ns = data.totals.step_ns
    found = [(name, data.totals.causes.get(name, 0)) for name in CAUSES]
    shares = [Share(name, ns / parts, ns / step_ns) for name, ns in found if ns and step_ns]
    return tuple(sorted(shares, key=lambda s: -s.ns))


def _device(data: ReportData) -> str:
    names: dict[str, int] = {}
    for device in data.devices:
        name = device.name or "unknown device"
        names[name] = names.get(name, 0) + 1
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in names.items()) or "no device activity"


def _mfu_of(data: ReportData) -> str:
    printed = any(c.kind == "compute" and c.origin == "datasheet" for d in data.devices for c in d.ceilings)
    return "datasheet peak" if printed else "measured peak"


def _ceilings(data: ReportData, now: float) -> Iterable[str]:
    """The ceilings that judged a row, those that judged most time first."""
    weight: dict[Ceiling, int] = {}
    by_index = {d.index: d.ceilings for d in data.devices}
    for row in data.rows:
        if row.ceiling is not None:
            ceiling = by_index[row.device][row.ceiling]
            weight[ceiling] = weight.get(ceiling, 0) + row.kernel_ns
    for ceiling in sorted(weight, key=lambda c: -weight[c]):
        yield ceiling_text(ceiling, now)


def ceiling_text(ceiling: Ceiling, now: float) -> str:
    """``float32 vector 322 GFLOP/s, measured 3 min ago``."""
    what = f"{ceiling.precision} {ceiling.pipe}" if ceiling.kind == "compute" else ceiling.level or ceiling.kind
    unit = {"FLOP/s": "FLOP/s", "byte/s": "B/s"}.get(ceiling.unit, ceiling.unit)
    origin = ceiling.origin
    if ceiling.measured_at:
        origin += f" {_age(ceiling.measured_at, now)}"
    return f"{what} {units.quantity(ceiling.value, unit)}, {origin}"


def _age(measured_at: str, now: float) -> str:
    try:
        return units.age(max(0.0, now - datetime.fromisoformat(measured_at).timestamp()))
    except ValueError:
        return f"at {measured_at}"


_CAUSE_WORDS = {
    "compute": "in kernels near or under the compute roof",
    "memory": "in kernels that move bytes to and from main memory",
    "cache": "in kernels that work out of a cache",
    "latency": "in kernels too short, or of too few blocks, to fill the device: fewer, larger ones would help",
    "unmodelled": "in kernels whose work is not modelled",
    "unplaced": "in kernels that have no roof to be judged by",
    "communication": "in exposed communication",
    "copy": "in exposed copies",
    "unattributed": "in kernels that no op or layer owns",
    "data": "waiting for the data loader",
    "sync": "waiting in synchronising calls",
    "host": "waiting for the host: Python and dispatch are slower than the kernels",
}


def _verdict(data: ReportData, causes: tuple[Share, ...]) -> str:
    if data.totals.kernel_ns is None:
        return "The device's activity is not in the file, so nothing can be said of kernel time."
    if not causes:
        return "No kernel ran in the counted steps."
    first = causes[0]
    name = f"{first.name}-bound" if first.name in ("host", "data", "sync") else first.name
    said = f"{units.percent(first.fraction)} of the step is spent {_CAUSE_WORDS[first.name]}."
    if first.name in IDLE_CAUSES:
        busy = sum(s.fraction for s in causes if s.name not in IDLE_CAUSES)
        return f"This step is {name}: {said} Kernels run {units.percent(busy)} of the time."
    return said[0].upper() + said[1:]


def _worst(data: ReportData) -> str | None:
    """What the flagged layer with the most headroom means."""
    flagged = [line for line in lines(data, by="layer", fold=True).lines if line.flagged]
    if not flagged:
        return None
    line = flagged[0]
    parts = max(1, data.steps) * max(1, len(data.devices))
    won = (line.headroom_ns or 0) / parts
    share = units.percent(_fraction(line.headroom_ns, data.totals.step_ns))
    kind = f" ({line.type})" if line.type else ""
    return f"{line.label}{kind} could give back up to {units.duration(won)} of each step ({share}): {_phrase(line)}."


def _phrase(line: Line) -> str:
    return line.why or words(line.bound, line.efficiency, host_ns=line.host_ns, busy_ns=line.busy_ns)
