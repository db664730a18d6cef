"""The roofline laid out on a sheet: lines, areas, marks and words in pixels, for whoever can draw those.

Coordinates go right and down. ``role`` says what a shape is; a drawing gives it colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import pi, sqrt

from rich.cells import cell_len

from torchroof import units
from torchroof.report.picture import Axis, Picture, Point
from torchroof.report.placing import Box
from torchroof.views.text import clean, shorten

WIDTH, HEIGHT = 900, 600
SHAPES = {
    "compute": "circle",
    "memory": "square",
    "cache": "diamond",
    "latency": "triangle",
    "communication": "cross",
    "unmodelled": "ring",
    "unplaced": "ring",
}
"""What tells bounds apart without colour; ``unplaced`` is a point without a bound."""
SMALL, LARGEST = 4.0, 14.0
"""Radii of the marks of no time and of the longest time: areas follow the share of time."""
_ADVANCE = 0.605
"""Width of a character of a monospaced face, in its size."""
_PROPORTIONAL = 0.6
"""Upper estimate of the same in a proportional face."""
_EDGE = 24.0
_TOP, _BOTTOM = 112.0, 524.0
_STRIP = _EDGE + 44
_NARROW, _WIDE = 60.0, 150.0
"""Widths of the strip: of points only, and with names."""
_AXIS = 58.0
"""Room for the ticks' words left of the plot."""


@dataclass(frozen=True, slots=True)
class Stroke:
    role: str
    x0: float
    y0: float
    x1: float
    y1: float
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    role: str
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point's sign; ``radius`` is that of the circle of the same area. ``tip`` is shown under the pointer."""

    role: str
    shape: str
    x: float
    y: float
    radius: float
    flagged: bool = False
    tip: str = ""

    @property
    def reach(self) -> float:
        """Half of what the mark covers, its ring included."""
        return 1.35 * self.radius + 3 if self.flagged else 1.2 * self.radius

    @property
    def box(self) -> Box:
        return Box(self.x - self.reach, self.y - self.reach, self.x + self.reach, self.y + self.reach)


@dataclass(frozen=True, slots=True)
class Words:
    """Text on a baseline at (x, y), turned ``angle`` degrees clockwise. ``width`` is set where it must keep to it."""

    role: str
    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "start"
    angle: float = 0.0
    bold: bool = False
    mono: bool = False
    halo: bool = False
    width: float | None = None

    @property
    def box(self) -> Box:
        """What level words cover."""
        width = self.width or breadth(self.text, self.size, mono=self.mono)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left, self.y - 0.82 * self.size, left + width, self.y + 0.26 * self.size)


Item = Stroke | Area | Mark | Words


@dataclass(frozen=True, slots=True)
class Drawing:
    title: str
    description: str
    items: tuple[Item, ...]
    labels: tuple[Box, ...]
    """What the labels of ceilings and points cover."""
    frame: Box
    """The plot."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where the picture's coordinates lie on the sheet."""

    picture: Picture
    frame: Box
    strip: Box | None

    def x(self, at: float) -> float:
        return self.frame.left + self.picture.x.fraction(at) * (self.frame.right - self.frame.left)

    def y(self, at: float) -> float:
        return self.frame.bottom - self.picture.y.fraction(at) * (self.frame.bottom - self.frame.top)

    def strip_y(self, at: float) -> float:
        axis, strip = self.picture.strip, self.strip
        assert axis is not None and strip is not None, "only points without FLOPs are placed in the strip"
        return strip.bottom - axis.fraction(at) * (strip.bottom - strip.top)


def sheet(picture: Picture) -> Sheet:
    named = any(p.x is None and p.rank is not None for p in picture.points)
    strip = Box(_STRIP, _TOP, _STRIP + (_WIDE if named else _NARROW), _BOTTOM) if picture.strip else None
    left = (strip.right if strip else _EDGE - 8) + _AXIS
    return Sheet(picture, Box(left, _TOP, WIDTH - _EDGE, _BOTTOM), strip)


def breadth(text: str, size: float, *, mono: bool = False) -> float:
    """An estimate of a text's width that is rather too large."""
    return cell_len(text) * size * (_ADVANCE if mono else _PROPORTIONAL)


def radius(share: float, largest: float) -> float:
    return SMALL + (LARGEST - SMALL) * sqrt(share / largest if largest > 0 else 0.0)


def draw(picture: Picture) -> Drawing:
    """The whole sheet, from the back to the front."""
    from torchroof.views.labels import ceiling_labels, point_labels

    place = sheet(picture)
    marks = list(_marks(place))
    ceilings, covered = ceiling_labels(place, marks)
    points, boxes = point_labels(place, marks, covered)
    notes = list(picture.notes)
    if any(isinstance(item, Words) and " +" in item.text for item in points):
        notes.append("+n: so many more points in the same place")
    if unnamed := len(picture.ceilings) - len(ceilings):
        notes.append(f"{unnamed} ceilings without room for their names")
    items: list[Item] = [
        *_grounds(place),
        *_grid(place),
        *_ceilings(place),
        *ceilings,
        *(mark for mark, _ in marks),
        *points,
        *_head(picture),
        *_foot(notes),
    ]
    return Drawing(_title(picture), _description(picture), tuple(items), (*covered, *boxes), place.frame)


def _grounds(place: Sheet) -> Iterator[Item]:
    yield Area("ground", ((0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)))
    for box in filter(None, (place.strip, place.frame)):
        yield Area("panel", _corners(box))
    slopes = [c for c in place.picture.ceilings if c.kind == "bandwidth"]
    flats = [c for c in place.picture.ceilings if c.kind == "compute"]
    if slopes and flats:
        slope, flat = max(slopes, key=lambda c: c.y0 - c.x0), max(flats, key=lambda c: c.y0)
        outline = [(slope.x0, slope.y0), (slope.x1, slope.y1), (flat.x1, flat.y1)]
        corners = [(place.x(x), place.y(y)) for x, y in outline]
        start = [(corners[0][0], place.frame.bottom)]
        yield Area("under", (*start, *corners, (place.frame.right, place.frame.bottom)))


def _corners(box: Box) -> tuple[tuple[float, float], ...]:
    return (box.left, box.top), (box.right, box.top), (box.right, box.bottom), (box.left, box.bottom)


def _grid(place: Sheet) -> Iterator[Item]:
    frame, picture = place.frame, place.picture
    for tick in picture.x.ticks:
        x = place.x(tick.at)
        yield Stroke("grid", x, frame.top, x, frame.bottom)
        yield Words("quiet", x, frame.bottom + 18, tick.text, anchor="middle")
    for tick in picture.y.ticks:
        y = place.y(tick.at)
        yield Stroke("grid", frame.left, y, frame.right, y)
        yield Words("quiet", frame.left - 8, y + 4, tick.text, anchor="end")
    yield Words("ink", frame.right, frame.bottom + 36, picture.x.title, anchor="end")
    yield Words("ink", frame.left - 8, frame.top - 10, picture.y.title, anchor="end")
    if place.strip and picture.strip:
        yield from _strip_grid(place, place.strip, picture.strip)


def _strip_grid(place: Sheet, strip: Box, axis: Axis) -> Iterator[Item]:
    middle = (strip.left + strip.right) / 2
    measured = all(c.measured for c in place.picture.ceilings if c.kind == "bandwidth")
    for tick in axis.ticks:
        y = place.strip_y(tick.at)
        roof = tick.at == 1 and place.picture.ceilings
        yield Stroke("roof" if roof else "grid", strip.left, y, strip.right, y, dashed=bool(roof) and not measured)
        yield Words("quiet", strip.left - 8, y + 4, tick.text, anchor="end")
    yield Words("ink", middle, strip.bottom + 18, "no FLOPs", anchor="middle")
    yield Words("quiet", middle, strip.bottom + 34, axis.title, size=11, anchor="middle")


def _ceilings(place: Sheet) -> Iterator[Item]:
    for c in place.picture.ceilings:
        yield Stroke("roof", place.x(c.x0), place.y(c.y0), place.x(c.x1), place.y(c.y1), dashed=not c.measured)


def _marks(place: Sheet) -> Iterator[tuple[Mark, Point]]:
    """Every point's mark; those in the strip that would cover each other step aside in turn."""
    beside: list[Mark] = []
    largest = max((p.share for p in place.picture.points), default=0.0)
    for point in place.picture.points:
        size = radius(point.share, largest)
        if point.x is not None:
            yield _mark(point, place.x(point.x), place.y(point.y), size), point
        elif place.strip:
            mark = _mark(point, _aside(place, place.strip_y(point.y), size, beside), place.strip_y(point.y), size)
            beside.append(mark)
            yield mark, point


def _aside(place: Sheet, y: float, size: float, beside: Sequence[Mark]) -> float:
    assert place.strip is not None
    middle, room = place.strip.left + _NARROW / 2, _NARROW / 2 - size - 1
    steps = (0.0, -0.5, 0.5, -1.0, 1.0, -0.25, 0.25, -0.75, 0.75)
    tries = [middle + room * step for step in steps]

    def gap(x: float) -> float:
        return min((sqrt((x - m.x) ** 2 + (y - m.y) ** 2) - m.radius - size for m in beside), default=0.0)

    return next((x for x in tries if gap(x) >= 0), max(tries, key=gap))


def _mark(point: Point, x: float, y: float, size: float) -> Mark:
    bound = point.bound if point.bound in SHAPES else "unplaced"
    return Mark(bound or "", SHAPES[bound or "unplaced"], x, y, size, point.flagged, tip(point))


def tip(point: Point) -> str:
    """Everything about a point, one fact a line."""
    efficiency = f"{units.percent(point.efficiency)} of what the roof allows"
    if point.attainable_flops_per_s is not None:
        efficiency += f" ({units.quantity(point.attainable_flops_per_s, 'FLOP/s')})"
    phases = ", ".join(f"{name} {units.percent(part)}" for name, part in point.phases.items())
    moved = units.quantity(point.bytes_per_s, "B/s")
    work = f"{units.digits(point.intensity)} FLOPs per byte, {units.quantity(point.flops_per_s, 'FLOP/s')}, {moved}"
    return "\n".join((
        clean(point.label),
        f"{units.percent(point.share)} of step time" + (f": {phases}" if phases else ""),
        work if point.intensity else f"no FLOPs, {moved}",
        efficiency,
        f"bound: {point.bound or units.UNKNOWN}" + (", part of the time has no model" if point.partial else ""),
    ))  # fmt: skip


def _title(picture: Picture) -> str:
    return f"{picture.title}: {clean(picture.device)}"


def _description(picture: Picture) -> str:
    roofs = "; ".join(clean(c.label) for c in picture.ceilings) or "no roof"
    worst = "; ".join(
        f"{clean(p.label)}: {units.percent(p.efficiency)} of its roof, {units.percent(p.share)} of step time"
        for p in picture.ranked
    )
    return f"{len(picture.points)} points under {roofs}. Largest headroom: {worst or 'none'}."


def _head(picture: Picture) -> Iterator[Item]:
    yield Words("ink", _EDGE, 36, picture.title, size=20, bold=True)
    yield Words("quiet", _EDGE + breadth(picture.title, 20) + 4, 36, shorten(clean(picture.device), 60), size=14)
    x = _EDGE + 6
    y = 66.0
    bounds = {p.bound if p.bound in SHAPES else "unplaced" for p in picture.points}
    for name in (name for name in SHAPES if name in bounds):
        words = "bound unknown" if name == "unplaced" else f"{name} side" if name in ("compute", "memory") else name
        yield Mark(name, SHAPES[name], x, y - 4, 5.5)
        yield Words("ink", x + 12, y, words)
        x += 12 + breadth(words, 12) + 22
    if any(p.flagged for p in picture.points):
        yield Mark("flag", "ring", x, y - 4, 6.5)
        yield Words("ink", x + 12, y, "flagged")
        x += 12 + breadth("flagged", 12) + 22
    for name, dashed in (("measured", False), ("datasheet or given", True)):
        if any(c.measured is not dashed for c in picture.ceilings):
            yield Stroke("roof", x - 6, y - 4, x + 20, y - 4, dashed=dashed)
            yield Words("ink", x + 27, y, name)
            x += 27 + breadth(name, 12) + 20
    yield Words("quiet", WIDTH - _EDGE, y, "area and %: share of step time", anchor="end")


def _foot(notes: Sequence[str]) -> Iterator[Item]:
    """The notes, in two lines where one is too short."""
    lines = [""]
    for note in notes:
        longer = " · ".join(filter(None, (lines[-1], clean(note))))
        if lines[-1] and breadth(longer, 11) > WIDTH - 2 * _EDGE:
            lines.append(clean(note))
        else:
            lines[-1] = longer
    for up, line in enumerate(reversed(lines)):
        yield Words("quiet", _EDGE, HEIGHT - 9 - 14 * up, line, size=11)


_OUTLINES = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.35), (1.2, 0), (0, 1.35), (-1.2, 0)),
    "triangle": ((0, -1.4), (1.35, 1), (-1.35, 1)),
    "cross": (
        (-0.45, -1.3), (0.45, -1.3), (0.45, -0.45), (1.3, -0.45), (1.3, 0.45), (0.45, 0.45),
        (0.45, 1.3), (-0.45, 1.3), (-0.45, 0.45), (-1.3, 0.45), (-1.3, -0.45), (-0.45, -0.45),
    ),
}  # fmt: skip


def outline(mark: Mark) -> tuple[tuple[float, float], ...]:
    """The corners of a mark that is no circle, of about a circle's area."""
    scale = mark.radius * sqrt(pi) / 2
    return tuple((mark.x + scale * x, mark.y + scale * y) for x, y in _OUTLINES[mark.shape])
