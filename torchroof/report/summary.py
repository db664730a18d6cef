"""The headline of a report: what a reader should know before any row."""

from __future__ import annotations

import time
from collections.abc import Iterable
from statistics import median
from typing import Any

import msgspec

from torchroof import units
from torchroof.device.catalog import find, is_called
from torchroof.errors import OptionError
from torchroof.report.ceilings import judging, mfu_peak, told
from torchroof.report.lenses import OUTSIDE_STEPS, lines
from torchroof.report.line import PARTIAL, Line
from torchroof.report.model import CAUSES, IDLE_CAUSES, ReportData
from torchroof.report.naming import layers_named
from torchroof.report.suspicions import LOW_ROOF, low_roof
from torchroof.roofline.verdict import BOUND_EFFICIENCY, FAR_EFFICIENCY, words

UNEVEN = 1.5
"""Steps that differ by more than this factor are told."""
SHOWN = 0.001
"""Copies of a kind that take less of the step are not told."""
_ENOUGH_STEPS = 5
"""From so many steps on their median says something."""


class Share(msgspec.Struct, frozen=True):
    """A named part of step time: nanoseconds per step (mean) and fraction of step time (0 to 1)."""

    name: str
    ns: float
    fraction: float


class Moved(msgspec.Struct, frozen=True):
    """Copies of one kind (``Memcpy HtoD (Pageable -> Device)``), per step."""

    kind: str
    ns: float
    bytes: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """Figures are means per step and device; fractions are 0 to 1; None is unknown."""

    device: str
    steps: int
    step_ns: float
    causes: tuple[Share, ...]
    """Causes of step time with any, largest first."""
    step_efficiency: float | None
    kernel_efficiency: float | None = None
    """The same of the time in which kernels with a floor ran, the table's efficiency of all lines."""
    step_efficiency_is_least: bool = False
    """Part of the kernel time has no floor, so the whole could only be more."""
    mfu: float | None
    mfu_is_least: bool = False
    """Part of the kernel time has no known FLOPs."""
    mfu_of: str | None
    """What MFU is taken of: ``float16 matrix 989 TFLOP/s (datasheet)``."""
    with_owner: float | None
    """Fraction of the counted kernel time with a layer, or known to be the optimizer's."""
    with_flops: float | None
    with_bytes: float | None
    without_work_ns: float = 0.0
    """Kernel time per step whose bytes are unknown; ``with_bytes`` is the rest of it."""
    without_work: float = 0.0
    left_over: tuple[Share, ...] = ()
    """That time by op, and by reason where there is none, largest first; fractions of kernel time."""
    steps_ns: tuple[int, ...] = ()
    """The counted steps' intervals on the host, in order."""
    uneven: float | None = None
    """The longest counted step over the shortest, where that is much; else None."""
    median_ns: float | None = None
    """Of the counted steps' intervals, where there are enough for it to say something."""
    slowdown: float | None = None
    """The median counted step over the median of the steps that were not recorded; None without any."""
    slowdown_steps: int = 0
    """How many were not recorded."""
    scopes_ns: float | None = None
    """An estimate of what the layer scopes cost a counted step, on the host."""
    cast: float = 0.0
    layout: float = 0.0
    """Fractions of the counted kernel time that casts, and that copies into another order in memory."""
    copies: tuple[Moved, ...] = ()
    """Kinds of copies that take a part of the step that shows, longest first."""
    backward_passes: int = 0
    optimizer_steps: int = 0
    """In the counted steps together."""
    matrix_flops: float | None
    """Share of all FLOPs done by matmul, convolution and attention."""
    matrix_time: float | None
    """Share of kernel time taken by them."""
    ceilings: tuple[str, ...]
    """The ceilings that judged a row, as short texts: those of one origin in one."""
    roof_set_aside: bool = False
    """The roof is known, but too low to judge by."""
    verdict: str
    """One sentence in words: where the step's time goes."""
    worst: str | None
    """One sentence on the worst layer: how much, why, what it means. None when no layer is flagged."""
    notes: tuple[str, ...]
    worst_label: str | None = None
    """The label that ``worst`` begins with."""


def headline(data: ReportData, now: float | None = None, *, candidates: Iterable[Line] | None = None) -> Headline:
    """The headline. ``now`` (Unix seconds) is what ages of measured ceilings are told against.

    ``candidates`` are the lines of which the worst is named, where a reader sees others than those of the table.
    """
    totals = data.totals
    parts = max(1, data.steps) * max(1, len(data.devices))
    kernel_ns = counted_kernel_ns(data)
    causes = _causes(data, parts)
    by_name = sum(r.kernel_ns for r in data.rows if r.path is None and r.phase == "optimizer")
    by = "layer" if any(row.path is not None for row in data.rows) else "op"
    low = low_roof(data)
    worst = _worst(lines(data, by=by, fold=True).lines if candidates is None else candidates)
    steps_ns = tuple(step.ns for step in data.per_step if step.counted)
    return Headline(
        device=_device(data),
        steps=data.steps,
        step_ns=totals.step_ns / parts,
        causes=causes,
        step_efficiency=totals.step_efficiency,
        kernel_efficiency=_fraction(totals.floor_ns, totals.floor_known_ns),
        step_efficiency_is_least=totals.floor_known_ns < PARTIAL * kernel_ns,
        mfu=totals.mfu,
        mfu_is_least=totals.flops_known_ns < PARTIAL * kernel_ns,
        mfu_of=None if totals.mfu is None else mfu_peak(data),
        with_owner=_fraction(totals.layered_ns + by_name, kernel_ns),
        with_flops=_fraction(totals.flops_known_ns, kernel_ns),
        with_bytes=_fraction(totals.bytes_known_ns, kernel_ns),
        without_work_ns=(kernel_ns - totals.bytes_known_ns) / parts,
        without_work=_fraction(kernel_ns - totals.bytes_known_ns, kernel_ns) or 0.0,
        left_over=_left_over(data, parts, kernel_ns),
        steps_ns=steps_ns,
        uneven=_uneven(steps_ns),
        median_ns=median(steps_ns) if len(steps_ns) >= _ENOUGH_STEPS else None,
        **_overhead(data, steps_ns),
        cast=_fraction(sum(r.cast_ns for r in data.rows), kernel_ns) or 0.0,
        layout=_fraction(sum(r.layout_ns for r in data.rows), kernel_ns) or 0.0,
        copies=_copies(data, parts),
        backward_passes=totals.backward_passes,
        optimizer_steps=totals.optimizer_steps,
        matrix_flops=_fraction(totals.matrix_flops, totals.flops),
        matrix_time=_fraction(totals.matrix_ns, kernel_ns) if totals.flops is not None else None,
        roof_set_aside=low is not None,
        ceilings=told(judging(data), time.time() if now is None else now),
        verdict=low or _verdict(data, causes) + _doubt(data),
        worst=_sentence(data, worst) if worst else None,
        worst_label=worst.label if worst else None,
        notes=tuple(n.text for n in data.notes if n.kind != LOW_ROOF),
    )


def _overhead(data: ReportData, steps_ns: tuple[int, ...]) -> dict[str, Any]:
    overhead = data.totals.overhead or {}
    bare_ns, scopes_ns = overhead.get("unrecorded_step_ns"), overhead.get("hook_ns_estimate")
    recorded = len(data.per_step)
    return {
        "slowdown": median(steps_ns) / bare_ns if bare_ns and steps_ns else None,
        "slowdown_steps": overhead.get("unrecorded_steps") or 0,
        "scopes_ns": scopes_ns / recorded if scopes_ns and recorded else None,
    }


def _uneven(steps_ns: tuple[int, ...]) -> float | None:
    shortest, longest = min(steps_ns, default=0), max(steps_ns, default=0)
    return longest / shortest if shortest and longest > UNEVEN * shortest else None


def counted_kernel_ns(data: ReportData) -> int:
    """The kernel time that everything said of kernel time is a share of: all but what ran outside counted steps."""
    return sum(r.kernel_ns for r in data.rows) + sum(
        u.kernel_ns for u in data.unattributed if u.reason != OUTSIDE_STEPS
    )


def _left_over(data: ReportData, parts: int, kernel_ns: int) -> tuple[Share, ...]:
    """Kernel time without known bytes, by op and by reason."""
    found: dict[str, int] = {}
    for row in data.rows:
        name = row.op or "no op"
        found[name] = found.get(name, 0) + row.kernel_ns - row.bytes_known_ns
    for entry in data.unattributed:
        if entry.reason != OUTSIDE_STEPS:
            found[entry.reason] = found.get(entry.reason, 0) + entry.kernel_ns
    shares = [Share(name, ns / parts, ns / kernel_ns) for name, ns in found.items() if ns > 0]
    return tuple(sorted(shares, key=lambda s: -s.ns))


def _copies(data: ReportData, parts: int) -> tuple[Moved, ...]:
    found: dict[str, Moved] = {}
    for copy in data.copies:
        before = found.get(copy.kind, Moved(copy.kind, 0.0, 0.0))
        size = None if before.bytes is None or copy.bytes is None else before.bytes + copy.bytes / parts
        found[copy.kind] = Moved(copy.kind, before.ns + copy.ns / parts, size)
    shown = [kind for kind in found.values() if kind.ns * parts >= SHOWN * data.totals.step_ns]
    return tuple(sorted(shown, key=lambda kind: -kind.ns))


def _fraction(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _causes(data: ReportData, parts: int) -> tuple[Share, ...]:
    step_ns = data.totals.step_ns
    found = [(name, data.totals.causes.get(name, 0)) for name in CAUSES]
    shares = [Share(name, ns / parts, ns / step_ns) for name, ns in found if ns and step_ns]
    return tuple(sorted(shares, key=lambda s: -s.ns))


def _device(data: ReportData) -> str:
    """The devices by name, and whose roof judges them where that is another's."""
    names: dict[str, int] = {}
    for device in data.devices:
        name = device.name or "unknown device"
        if device.matched is not None and not (device.name and is_called(device.name, device.matched)):
            name += f", judged by the roof of {find(device.matched).name}"
        names[name] = names.get(name, 0) + 1
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in names.items()) or "no device activity"


_SIDE_WORDS = {
    "compute": "arithmetic",
    "memory": "memory bandwidth",
    "cache": "a cache's bandwidth",
}
_CAUSE_WORDS = {
    "latency": "goes into kernels too short or too small to fill the device: fewer, larger ones would help",
    "unmodelled": "goes into kernels whose work is not modelled",
    "unplaced": "goes into kernels that have no roof to be judged by",
    "communication": "goes into exposed communication",
    "copy": "goes into exposed copies",
    "unattributed": "goes into kernels that no op or layer owns",
    "data": "is spent waiting for the data loader",
    "sync": "is spent waiting in synchronising calls",
    "host": "is spent waiting for the host: Python and dispatch are slower than the kernels",
}
_HALF = 0.5
"""The part of a step from which on it is said to be bound by a cause."""


def _verdict(data: ReportData, causes: tuple[Share, ...]) -> str:
    if data.totals.kernel_ns is None:
        return "The device's activity is not in the file, so nothing can be said of kernel time."
    if not causes:
        return "No kernel ran in the counted steps."
    first = causes[0]
    share = units.percent(first.fraction)
    said = _CAUSE_WORDS.get(first.name) or _side_words(data, first.name)
    if first.fraction < _HALF:
        said = f"The largest part of the step, {share}, {said}."
    elif first.name in IDLE_CAUSES:
        said = f"This step is {first.name}-bound: {share} of it {said}."
    else:
        said = f"{share} of the step {said}."
    said += _mostly(data, first.name)
    if first.name in IDLE_CAUSES:
        busy = sum(s.fraction for s in causes if s.name not in IDLE_CAUSES)
        said += f" The device is busy {units.percent(busy)} of the time."
    return said


_NAMED_BY_OP = ("communication", "unmodelled", "latency")


def _mostly(data: ReportData, cause: str) -> str:
    """The op that most of a cause's time goes into, where there is one and no layer tells as much."""
    if cause not in _NAMED_BY_OP:
        return ""
    time: dict[str | None, int] = {}
    for row in data.rows:
        if row.bound == cause:
            time[row.op] = time.get(row.op, 0) + row.busy_ns
    op = max(time, key=lambda name: time[name], default=None)
    part = _fraction(time.get(op), sum(time.values()))
    if op is None or part is None or part < _HALF:
        return ""
    return f" {units.percent(part)} of that is {op.removeprefix('aten::')}."


def _doubt(data: ReportData) -> str:
    """That the ceilings are not to be relied on, where they judged; to be read before any efficiency."""
    if not any(judge.ceiling.confidence == "low" for judge in judging(data)):
        return ""
    return " Other work ran while ceilings were measured: they may be too low, and efficiencies too high."


def _side_words(data: ReportData, bound: str) -> str:
    """What kernels on a side of the roof make of it: the limit is named as theirs only where they come near it."""
    rows = [row for row in data.rows if row.bound == bound]
    reached = _fraction(sum(row.floor_ns or 0 for row in rows), sum(row.floor_known_ns for row in rows))
    limit = _SIDE_WORDS[bound]
    if reached is None or reached > 1:
        return f"goes into kernels on the {bound} side of the roof"
    share = units.percent(reached)
    if reached >= BOUND_EFFICIENCY:
        return f"goes into kernels that {limit} limits: they reach {share} of what it allows"
    far = "far " if reached < FAR_EFFICIENCY else ""
    return f"goes into kernels {far}under their roof: they reach {share} of what {limit} allows"


def _worst(candidates: Iterable[Line]) -> Line | None:
    """The flagged line with the most headroom."""
    flagged = [line for line in candidates if line.flagged]
    return max(flagged, key=lambda line: line.headroom_least_ns, default=None)


def _sentence(data: ReportData, line: Line) -> str:
    """What a line could give back, and why."""
    parts = max(1, data.steps) * max(1, len(data.devices))
    won, share = units.duration(line.headroom_least_ns / parts), _fraction(line.headroom_least_ns, data.totals.step_ns)
    kind = f" ({line.type})" if line.type and line.path is not None and not line.label.startswith("(") else ""
    up_to, more = ("", " or more") if line.headroom_is_least else ("up to ", "")
    said = f"{line.label}{kind} could give back {up_to}{won} of each step{more} ({units.percent(share)}"
    return f"{said}{_in_one(data, line)}): {_phrase(line)}."


def _in_one(data: ReportData, line: Line) -> str:
    """That most of what several equal layers could give back is in one of them."""
    if line.members < 2 or line.path is None or not line.headroom_least_ns:
        return ""
    try:
        members = set(layers_named(data, line.path)[1])
    except OptionError:  # a pattern with gaps may be that of other layers, too
        return ""
    found: dict[str, int] = {}
    for row in data.rows:
        if row.path in members:
            found[row.path] = found.get(row.path, 0) + (row.host_ns if row.headroom_ns is None else row.headroom_ns)
    first = max(found, key=lambda path: found[path], default="")
    part = found.get(first, 0) / line.headroom_least_ns
    return f", {units.percent(part)} of that in {first} alone" if _HALF <= part <= 1 else ""


def _phrase(line: Line) -> str:
    return line.why or words(line.bound, line.efficiency, host_ns=line.host_ns, busy_ns=line.busy_ns)
