"""The roofline as a picture: one geometry that every drawing of it shares.

Coordinates are log10 of FLOPs per byte to the right and log10 of FLOP/s upwards. Work without FLOPs has intensity 0,
which no log axis has: it lies in a strip of its own, placed by what it reaches of the memory's bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, log10

from torchroof import units
from torchroof.device.roof import Ceiling, Roof
from torchroof.errors import OptionError
from torchroof.report.line import Line, Lines
from torchroof.report.model import Device, ReportData
from torchroof.report.suspicions import low_roof
from torchroof.roofline.place import pipe_of
from torchroof.work.plugins import installed

RANKED = 9
"""Points that are numbered and named: as many as there are digits."""
BY = ("layer", "op", "phase")
_PAD = 0.25
"""Decades kept free around what is drawn."""
_HEADROOM = 0.05
"""Part of the height kept free above all else, for words."""
_LEAST_DECADES = 3.0
_MOST_TICKS = 8
_EMPTY = ((-2.0, 3.0), (9.0, 15.0))
"""Decades of both axes where there is nothing to draw."""


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``low`` to ``high`` in the picture's coordinates; the title names quantity and unit."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    title: str

    def fraction(self, at: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (at - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingLine:
    """A ceiling as a straight line from (x0, y0) to (x1, y1).

    ``kind`` is ``compute`` (level) or ``bandwidth`` (one decade up per decade to the right). ``name`` is a precision
    and pipe or a memory level; ``value`` is in FLOP/s or byte/s, ``rate`` the same as text.
    """

    kind: str
    name: str
    value: float
    rate: str
    origin: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def measured(self) -> bool:
        return self.origin == "measured"

    @property
    def label(self) -> str:
        return f"{self.name} {self.rate}, {self.origin}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line of the report. ``x`` is None for a point in the strip, whose ``y`` is along the strip's own axis.

    ``attainable_flops_per_s`` is what its floor allows (FLOPs ÷ floor), so a mixture of precisions is judged as one.
    ``share`` is kernel time over step time, ``phases`` the parts of its kernel time, largest first. ``rank`` numbers
    the points to look at first from 1; None for the rest.
    """

    label: str
    x: float | None
    y: float
    intensity: float
    flops_per_s: float
    bytes_per_s: float | None
    attainable_flops_per_s: float | None
    efficiency: float | None
    share: float
    bound: str | None
    phases: Mapping[str, float] = field(default_factory=dict)
    flagged: bool = False
    partial: bool = False
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Points are ordered from the largest share of time to the smallest, so that small ones are drawn on top."""

    title: str
    device: str
    x: Axis
    y: Axis
    strip: Axis | None
    """The axis of the points without FLOPs; None where there are none."""
    ceilings: tuple[CeilingLine, ...]
    points: tuple[Point, ...]
    unplaced: int
    """Lines with kernel time that have no place: work or efficiency unknown."""
    unplaced_share: float
    """Their kernel time over step time."""
    notes: tuple[str, ...]

    @property
    def ranked(self) -> tuple[Point, ...]:
        """The numbered points in their order."""
        return tuple(sorted((p for p in self.points if p.rank is not None), key=lambda p: p.rank or 0))


def picture(data: ReportData, lines: Lines) -> Picture:
    """The roofline of a report: a point per line of ``lines``, which should be all of them (no ``top``).

    Raises OptionError for lines by kernel, which have no work of their own.
    """
    if lines.by not in BY:
        raise OptionError(f"a {lines.by} has no FLOPs of its own to draw; choose a roofline by {', '.join(BY)}")
    device, others = _device(data)
    drawn = _chosen(data, device) if device else ()
    found = [point for line in lines.lines if (point := _point(line, lines, bool(drawn))) is not None]
    without = [line for line in lines.lines if line.kernel_ns and _point(line, lines, bool(drawn)) is None]
    points = _ranked(found)
    x, y = _axes(points, drawn)
    unplaced_ns = sum(line.kernel_ns for line in without)
    share = unplaced_ns / lines.step_ns if lines.step_ns else 0.0
    return Picture(
        title=f"Roofline by {lines.by}",
        device=(device.name if device else None) or "unknown device",
        x=x,
        y=y,
        strip=_strip([p.y for p in points if p.x is None], bool(drawn)),
        ceilings=_lines(drawn, x, y),
        points=points,
        unplaced=len(without),
        unplaced_share=share,
        notes=(*_notes(drawn, others, points, len(without), share), *_left_out(lines)),
    )


def roofs(data: ReportData) -> list[tuple[str, float, str, str]]:
    """The ceilings that the picture draws: kind, value in FLOP/s or byte/s, origin and name; the highest first."""
    device, _ = _device(data)
    drawn = _chosen(data, device) if device else ()
    return [
        (kind, *line) for kind in ("compute", "bandwidth") for line in _merged([c for c in drawn if c.kind == kind])
    ]


def _device(data: ReportData) -> tuple[Device | None, int]:
    """The device that computed longest, and how many others have other ceilings."""
    time: dict[int, int] = {}
    for row in data.rows:
        time[row.device] = time.get(row.device, 0) + row.kernel_ns
    if not data.devices:
        return None, 0
    first = max(data.devices, key=lambda d: time.get(d.index, 0))
    return first, sum(d.ceilings != first.ceilings for d in data.devices)


def _chosen(data: ReportData, device: Device) -> tuple[Ceiling, ...]:
    """The ceilings that concern the report: what its rows are judged by, or would be at another intensity.

    A ceiling that gave way to a better one for the same thing (a datasheet's to a measured one) is kept beside it.
    """
    if low_roof(data) is not None:
        return ()
    roof = Roof(device.name or "", device.ceilings)
    kept = {c for c in (roof.bandwidth(),) if c is not None}
    mine = [row for row in data.rows if row.device == device.index]
    kept |= {device.ceilings[at] for at in {row.ceiling for row in mine} if at is not None}
    registry = installed().registry
    for precision, op, pipe in {(row.precision, row.op, row.pipe) for row in mine if row.flops}:
        if precision and (over := roof.compute(precision, pipe or pipe_of(registry.family(op) if op else None))):
            kept.add(over)
    alike = {_what(c) for c in kept if c.kind in ("compute", "bandwidth")}
    best: dict[object, Ceiling] = {}
    for c in device.ceilings:
        key = (_what(c), c.origin)
        known = best.get(key)
        if _what(c) in alike and c.value > 0 and (known is None or (c in kept, c.value) > (known in kept, known.value)):
            best[key] = c
    return tuple(c for c in device.ceilings if c in best.values())


def _what(ceiling: Ceiling) -> tuple[str | None, ...]:
    """What a ceiling limits; of several patterns of traffic one line is drawn, the highest that judged."""
    return ceiling.kind, ceiling.precision, ceiling.pipe, ceiling.level


def _point(line: Line, lines: Lines, roof: bool) -> Point | None:
    """The point of a line; None without kernel time, or where it cannot be placed."""
    rate, moved = line.achieved_flops_per_s, line.achieved_bytes_per_s
    if not line.kernel_ns or rate is None or line.flops is None:
        return None
    if line.flops:
        if line.intensity is None or line.intensity <= 0 or rate <= 0:
            return None
        x, y, intensity = log10(line.intensity), log10(rate), line.intensity
    else:
        height = line.efficiency if roof else log10(moved) if moved else None
        if height is None:
            return None
        x, y, intensity = None, height, 0.0
    return Point(
        label=line.label,
        x=x,
        y=y,
        intensity=intensity,
        flops_per_s=rate,
        bytes_per_s=moved,
        attainable_flops_per_s=rate / line.efficiency if line.efficiency else None,
        efficiency=line.efficiency,
        share=line.kernel_ns / lines.step_ns if lines.step_ns else 0.0,
        bound=line.bound,
        phases={
            phase: ns / line.kernel_ns for phase, ns in sorted(line.phase_ns.items(), key=lambda item: -item[1]) if ns
        },
        flagged=line.flagged,
        partial=line.partial,
    )


def _ranked(found: Sequence[Point]) -> tuple[Point, ...]:
    """The flagged points, then the others in the report's order, numbered; sorted for drawing."""
    order = sorted(range(len(found)), key=lambda i: (not found[i].flagged, i))
    rank = {i: place for place, i in enumerate(order[:RANKED], 1)}
    points = [replace(point, rank=rank.get(i)) for i, point in enumerate(found)]
    return tuple(sorted(points, key=lambda p: -p.share))


def _axes(points: Iterable[Point], drawn: Sequence[Ceiling]) -> tuple[Axis, Axis]:
    placed = [p for p in points if p.x is not None]
    flats = [log10(c.value) for c in drawn if c.kind == "compute"]
    slopes = [log10(c.value) for c in drawn if c.kind == "bandwidth"]
    ridges = [flat - slope for flat in flats for slope in slopes]
    xs = [p.x for p in placed if p.x is not None] + [r + 0.5 for r in ridges] + [r - 1.5 for r in ridges]
    x_low, x_high = _range(xs, _EMPTY[0])
    ys = [p.y for p in placed] + flats
    if not flats:
        ys += [slope + x for slope in slopes for x in (x_low, x_high)]
    elif not placed:
        ys += [slope + x_low for slope in slopes]
    y_low, y_high = _range(ys, _EMPTY[1])
    y_high += _HEADROOM * (y_high - y_low)
    return (
        Axis(x_low, x_high, _ticks(x_low, x_high), "FLOPs per byte"),
        Axis(y_low, y_high, _ticks(y_low, y_high), "FLOP/s"),
    )


def _range(values: Sequence[float], empty: tuple[float, float]) -> tuple[float, float]:
    """The values with room around them, at least so many decades; room that is missing is added below."""
    if not values:
        return empty
    high = max(values) + _PAD
    low = min(min(values) - _PAD, high - _LEAST_DECADES)
    return (floor(low) if low - floor(low) < _PAD else low), high


def _ticks(low: float, high: float) -> tuple[Tick, ...]:
    """Whole decades, each or every so many."""
    every = ceil((high - low) / _MOST_TICKS)
    first = ceil(low / every) * every
    decades = range(first, floor(high) + 1, every)
    return tuple(Tick(float(d), _power(d)) for d in decades)


def _power(decade: int) -> str:
    """``0.01``, ``100k``; ``1e27`` beyond what has a short name."""
    return units.quantity(10.0**decade, "").replace(" ", "") if -3 <= decade <= 20 else f"1e{decade}"


def _strip(heights: Sequence[float], roof: bool) -> Axis | None:
    if not heights:
        return None
    if roof:
        high = max(1.0, *heights) * 1.06
        step = 0.5 if high <= 2 else 10.0 ** ceil(log10(high / 4))
        ticks = tuple(Tick(i * step, units.percent(i * step)) for i in range(int(high / step) + 1))
        return Axis(-0.04 * high, high, ticks, "% of bandwidth")
    low, high = _range(heights, _EMPTY[1])
    return Axis(low, high, _ticks(low, high), "byte/s")


def _lines(drawn: Sequence[Ceiling], x: Axis, y: Axis) -> tuple[CeilingLine, ...]:
    """Every ceiling up to where another ends it, the highest compute ceilings first.

    A compute ceiling begins at its ridge point under the fastest memory level, a memory level ends at its ridge point
    under the highest compute ceiling; both end at the picture's edge.
    """
    flats = _merged([c for c in drawn if c.kind == "compute"])
    slopes = _merged([c for c in drawn if c.kind == "bandwidth"])
    top = max((value for value, _, _ in flats), default=None)
    fastest = max((value for value, _, _ in slopes), default=None)
    found = []
    for value, origin, name in flats:
        at = log10(value)
        start = x.low if fastest is None else max(x.low, at - log10(fastest))
        rate = units.quantity(value, "FLOP/s")
        found.append(
            CeilingLine(
                kind="compute", name=name, value=value, rate=rate, origin=origin, x0=start, y0=at, x1=x.high, y1=at
            )
        )
    for value, origin, name in slopes:
        at = log10(value)
        start = max(x.low, y.low - at)
        end = min(x.high, (y.high if top is None else log10(top)) - at)
        rate = units.quantity(value, "B/s")
        found.append(
            CeilingLine(
                kind="bandwidth",
                name=name,
                value=value,
                rate=rate,
                origin=origin,
                x0=start,
                y0=start + at,
                x1=end,
                y1=end + at,
            )
        )
    return tuple(found)


def _merged(ceilings: Sequence[Ceiling]) -> list[tuple[float, str, str]]:
    """Value, origin and name of each line, highest first; ceilings that coincide share one line."""
    names: dict[tuple[float, str], list[str]] = {}
    for c in ceilings:
        name = c.level or "memory" if c.kind == "bandwidth" else f"{c.precision} {c.pipe}"
        names.setdefault((c.value, c.origin), []).append(name)
    ordered = sorted(names.items(), key=lambda item: (-item[0][0], item[0][1]))
    return [(value, origin, " = ".join(dict.fromkeys(found))) for (value, origin), found in ordered]


def _left_out(lines: Lines) -> Iterable[str]:
    if lines.rest is not None:
        share = lines.rest.kernel_ns / lines.step_ns if lines.step_ns else None
        yield f"left out by the filter: {lines.rest.label.strip('()')} with {units.percent(share)} of step time"


def _notes(
    drawn: Sequence[Ceiling], others: int, points: Sequence[Point], unplaced: int, share: float
) -> Iterable[str]:
    if not points:
        yield "nothing to place: no kernel has known FLOPs and bytes"
    if not drawn:
        yield "there is no roof to judge by, so only the points are drawn"
    if unplaced:
        yield f"not drawn: {unplaced} with {units.percent(share)} of step time, work or efficiency unknown"
    above = sum(p.efficiency is not None and p.efficiency > 1 for p in points)
    if above:
        yield f"above the roof: {above}; suspect the ceiling or the work model, not the hardware"
    if others:
        yield f"the roof is this device's; {others} other device{' has' if others == 1 else 's have'} another"
