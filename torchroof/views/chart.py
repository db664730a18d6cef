"""The roofline in the terminal: braille lines under marks and digits, or plain ASCII."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from torchroof import units
from torchroof.report.picture import CeilingLine, Picture, Point
from torchroof.report.placing import Box, choose
from torchroof.views import palette
from torchroof.views.text import clean, shorten

NARROWEST, WIDEST = 60, 200
_MARKS = {
    "compute": ("●", "C"),
    "memory": ("■", "M"),
    "cache": ("◆", "K"),
    "latency": ("▲", "L"),
    "communication": ("✚", "X"),
    "unmodelled": ("○", "o"),
    "unplaced": ("○", "o"),
}
"""What tells bounds apart without colour: in Unicode and in ASCII."""
_BOUND = 13
"""Cells of the longest bound."""
_FIXED = 4 + 2 + 2 + _BOUND
"""Cells of a named point's line besides its label and figures."""
_STRIP = 7
"""Cells of the strip; an odd number."""
_TICKS = 6
"""Cells of the ticks' words left of the plot and of the strip."""
_ROWS = (14, 26, 0.2)
"""Rows of the plot: between two numbers, a part of the width."""
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille character by row and column of its dots."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    style: str = ""


Cells = dict[tuple[int, int], Cell]
"""What stands where, by (row, column) of the plot or strip; the row 0 is at the top."""
Place = tuple[bool, int, int]
"""Whether in the strip, row, column."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The plot's size in cells, and how the picture's coordinates fall into them."""

    picture: Picture
    width: int
    height: int
    ascii_only: bool

    def column(self, at: float) -> int:
        return _cell(self.picture.x.fraction(at), self.width)

    def row(self, at: float) -> int:
        return self.height - 1 - _cell(self.picture.y.fraction(at), self.height)

    def strip_row(self, at: float) -> int:
        assert self.picture.strip is not None
        return self.height - 1 - _cell(self.picture.strip.fraction(at), self.height)


def _cell(fraction: float, count: int) -> int:
    return min(count - 1, max(0, int(fraction * count)))


def draw(picture: Picture, width: int, ascii_only: bool = False) -> Iterator[RenderableType]:
    """The chart, its legend and its numbered points, never wider than ``width`` cells."""
    width = min(width, WIDEST)
    strip = _TICKS + 1 + _STRIP + 1 if picture.strip else 0
    rows = max(_ROWS[0], min(_ROWS[1], int(width * _ROWS[2])))
    canvas = Canvas(picture, max(20, width - strip - _TICKS - 2), rows, ascii_only)
    yield _title(picture, width, ascii_only)
    yield Text(f"{picture.y.title:>{strip + _TICKS}}", palette.QUIET)
    places = _places(canvas)
    owners = _owners(picture, places)
    marks = _marks(owners, False, ascii_only)
    lines = _rulers(canvas)
    unnamed = _name_ceilings(canvas, lines, marks)
    plot, beside = lines | marks, _strip_rulers(canvas) | _marks(owners, True, ascii_only)
    names = _row_names(canvas, [(canvas.row(t.at), t.text) for t in picture.y.ticks])
    if picture.strip:
        beside_names = _row_names(canvas, [(canvas.strip_row(t.at), t.text) for t in picture.strip.ticks])
    wall = "|" if ascii_only else "│"
    for row in range(rows):
        line = Text(no_wrap=True, overflow="crop")
        if picture.strip:
            line.append(f"{beside_names[row]:>{_TICKS}} ", palette.QUIET)
            _append(line, beside, row, _STRIP)
            line.append(" ")
        line.append(f"{names[row]:>{_TICKS}} ", palette.QUIET).append(wall, palette.QUIET)
        _append(line, plot, row, canvas.width)
        line.rstrip()
        yield line
    yield from _x_axis(canvas, strip)
    yield _legend(picture, width, ascii_only)
    for note in (*(f"also drawn: {name}" for name in unnamed), *picture.notes):
        yield Text(clean(note, ascii_only), palette.QUIET)
    yield Text("")
    shown_at = {picture.points[i].rank: owners[place].rank for i, place in places.items()}
    yield from _key(picture, shown_at, width, ascii_only)


def _append(line: Text, cells: Cells, row: int, width: int) -> None:
    found = (cells.get((row, column), Cell(" ")) for column in range(width))
    for style, run in groupby(found, key=lambda cell: cell.style):
        line.append("".join(cell.text for cell in run), style)


def _title(picture: Picture, width: int, ascii_only: bool) -> Text:
    title = Text(no_wrap=True, overflow="ellipsis" if not ascii_only else "crop").append(picture.title, palette.HEADING)
    return title.append(clean(f" · {shorten(clean(picture.device), width - 24)}", ascii_only), palette.QUIET)


def _row_names(canvas: Canvas, ticks: Sequence[tuple[int, str]]) -> list[str]:
    names = [""] * canvas.height
    for row, text in ticks:
        names[row] = text
    return names


def _x_axis(canvas: Canvas, strip: int) -> Iterator[Text]:
    picture, rule = canvas.picture, "-" if canvas.ascii_only else "─"
    corner = "+" if canvas.ascii_only else "└"
    line, words = Text(no_wrap=True, overflow="crop"), [" "] * (canvas.width + 1)
    if strip:
        line.append(" " * (_TICKS + 1) + rule * _STRIP + " ", palette.QUIET)
    line.append(" " * (_TICKS + 1) + corner + rule * canvas.width, palette.QUIET)
    yield line
    reached = -1
    for tick in picture.x.ticks:
        start = max(0, min(canvas.column(tick.at) + 1 - len(tick.text) // 2, canvas.width + 1 - len(tick.text)))
        if start > reached:
            words[start : start + len(tick.text)] = tick.text
            reached = start + len(tick.text)
    line = Text(no_wrap=True, overflow="crop", style=palette.QUIET)
    line.append(f"{'no FLOPs':>{strip - 1}} " if strip else "").append(" " * (_TICKS + 1) + "".join(words))
    yield line
    beside = picture.strip.title.rjust(strip - 1) if picture.strip else ""
    yield Text(beside + picture.x.title.rjust(strip - len(beside) + _TICKS + 2 + canvas.width), palette.QUIET)


def _places(canvas: Canvas) -> dict[int, Place]:
    """The cell of each point, by its index; those of one row of the strip stand side by side."""
    filled: dict[int, int] = {}
    order = [_STRIP // 2 + side * step for step in range(_STRIP // 2 + 1) for side in ((-1, 1) if step else (1,))]
    places: dict[int, Place] = {}
    points = canvas.picture.points
    for i in sorted(range(len(points)), key=lambda i: _importance(points[i])):
        x, y = points[i].x, points[i].y
        if x is not None:
            places[i] = (False, canvas.row(y), canvas.column(x))
            continue
        row = canvas.strip_row(y)
        places[i] = (True, row, order[min(filled.get(row, 0), _STRIP - 1)])
        filled[row] = filled.get(row, 0) + 1
    return places


def _owners(picture: Picture, places: dict[int, Place]) -> dict[Place, Point]:
    """Which point shows where several have one cell: the most important."""
    owners: dict[Place, Point] = {}
    for i, place in places.items():
        other = owners.setdefault(place, picture.points[i])
        if _importance(picture.points[i]) < _importance(other):
            owners[place] = picture.points[i]
    return owners


def _importance(point: Point) -> tuple[float, float]:
    return (point.rank or float("inf"), -point.share)


def _marks(owners: dict[Place, Point], in_strip: bool, ascii_only: bool) -> Cells:
    """Each shown point's number, or the sign of its bound."""
    cells: Cells = {}
    for (strip, row, column), point in owners.items():
        if strip is not in_strip:
            continue
        style = palette.cause(point.bound)
        if point.rank is not None:
            cells[row, column] = Cell(str(point.rank), f"bold {style.replace('dim', '')}".strip())
        else:
            cells[row, column] = Cell(sign(point, ascii_only), style)
    return cells


def _strip_rulers(canvas: Canvas) -> Cells:
    strip = canvas.picture.strip
    cells: Cells = {}
    dot, rule = (".", "-") if canvas.ascii_only else ("·", "─")
    for tick in strip.ticks if strip else ():
        roof = tick.at == 1 and bool(canvas.picture.ceilings)
        for column in range(_STRIP):
            cells[canvas.strip_row(tick.at), column] = Cell(rule if roof else dot, "" if roof else palette.QUIET)
    return cells


def sign(point: Point, ascii_only: bool) -> str:
    return _MARKS[point.bound if point.bound in _MARKS else "unplaced"][ascii_only]


def _rulers(canvas: Canvas) -> Cells:
    """The ceilings as lines: unbroken where measured, else dotted."""
    cells: Cells = {}
    bits: dict[tuple[int, int], int] = {}
    for ceiling in canvas.picture.ceilings:
        for x, y in _steps(canvas, ceiling):
            row, column = canvas.height - 1 - y // 4, x // 2
            if canvas.ascii_only:
                cells[row, column] = Cell("-" if ceiling.kind == "compute" else "/")
            elif ceiling.measured or x % 3 != 2:
                bits[row, column] = bits.get((row, column), 0) | _DOTS[3 - y % 4][x % 2]
    return cells | {spot: Cell(chr(0x2800 + value)) for spot, value in bits.items()}


def _steps(canvas: Canvas, ceiling: CeilingLine) -> Iterator[tuple[int, int]]:
    """The dots of a line, two across and four up in a cell, from the lower left of the plot."""
    across, up = 2 * canvas.width, 4 * canvas.height
    x_axis, y_axis = canvas.picture.x, canvas.picture.y
    x0, y0 = x_axis.fraction(ceiling.x0) * across, y_axis.fraction(ceiling.y0) * up
    x1, y1 = x_axis.fraction(ceiling.x1) * across, y_axis.fraction(ceiling.y1) * up
    count = max(1, int(2 * max(abs(x1 - x0), abs(y1 - y0))))
    for i in range(count + 1):
        x, y = x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count
        yield min(across - 1, max(0, int(x))), min(up - 1, max(0, int(y)))


def _name_ceilings(canvas: Canvas, cells: Cells, marks: Cells) -> list[str]:
    """Writes the ceilings' names into the cells, where they cover no line, mark or other name.

    Gives the names that found no room.
    """
    unnamed = []
    frame = Box(0, 0, canvas.width, canvas.height)
    taken = [Box(c, r, c + 1, r + 1) for r, c in (*cells, *marks)]
    for ceiling in canvas.picture.ceilings:
        full, short = clean(ceiling.label, canvas.ascii_only), clean(f"{ceiling.name} {ceiling.rate}")
        spots = [(row, c, text) for text in (full, short) for row, c in _spots(canvas, ceiling, len(text))]
        boxes = [(Box(c - 1, r, c + len(text) + 1, r + 1),) for r, c, text in spots]
        chosen = choose(boxes, Box(-1, 0, frame.right + 1, frame.bottom), taken)
        if chosen is None:
            unnamed.append(full)
            continue
        row, column, text = spots[chosen]
        taken.append(boxes[chosen][0])
        for i, letter in enumerate(text):
            cells[row, column + i] = Cell(letter, palette.QUIET)
    return unnamed


def _spots(canvas: Canvas, ceiling: CeilingLine, length: int) -> Iterator[tuple[int, int]]:
    """Row and first column of places for a name: a level's over its right end, a slope's beside it."""
    row1, column0, column1 = canvas.row(ceiling.y1), canvas.column(ceiling.x0), canvas.column(ceiling.x1)
    if ceiling.kind == "compute":
        for row in (row1 - 1, row1 + 1):
            yield from ((row, column) for column in range(canvas.width - length, -1, -1))
        yield row1, column0 - length - 2
        return
    row0 = canvas.row(ceiling.y0)
    for part in (0.3, 0.5, 0.2, 0.4, 0.6, 0.1, 0.7, 0.8, 0.0):
        row = round(row0 + part * (row1 - row0))
        column = round(column0 + part * (column1 - column0))
        for away in range(3, 12):
            yield row, column + away
            yield row, column - length - away


def _legend(picture: Picture, width: int, ascii_only: bool) -> Text:
    """Signs of the bounds that occur, and what the lines are; a line ends between two entries only."""
    bounds = {p.bound if p.bound in _MARKS else "unplaced" for p in picture.points}
    entries = [
        Text(f"{_MARKS[name][ascii_only]} {'bound unknown' if name == 'unplaced' else name}", palette.cause(name))
        for name in _MARKS
        if name in bounds
    ]
    if picture.ranked:
        entries.append(Text(f"1{'-' if ascii_only else '–'}{len(picture.ranked)} named below", "bold"))
    if not ascii_only:
        entries += [
            Text(f"{line} {words}", palette.QUIET)
            for line, words, measured in (("⠤⠤⠤", "measured", True), ("⠤⠠⠄", "datasheet or given", False))
            if any(c.measured is measured for c in picture.ceilings)
        ]
    text, reached = Text(), 0
    for entry in entries:
        if reached and reached + 3 + entry.cell_len > width:
            text.append("\n")
            reached = 0
        elif reached:
            text.append("   ")
            reached += 3
        text.append(entry)
        reached += entry.cell_len
    return text


def _key(picture: Picture, shown_at: dict[int | None, int | None], width: int, ascii_only: bool) -> Iterator[Text]:
    """The numbered points: name, bound, share of time, what they reach of their roof, and whose cell they share."""
    if not picture.ranked:
        return
    figures = [("of step", "of roof", ""), *(_figures(p, shown_at.get(p.rank)) for p in picture.ranked)]
    widths = [max(len(row[i]) for row in figures) for i in range(len(figures[0]))]
    room = width - _FIXED - sum(size + 2 for size in widths if size)
    labels = [clean(shorten(clean(p.label, ascii_only), max(12, room)), ascii_only) for p in picture.ranked]
    longest = max(map(cell_len, labels))
    heading = Text(" " * (_FIXED + longest), palette.QUIET, no_wrap=True, overflow="crop")
    yield heading.append("".join(f"  {text:>{size}}" for text, size in zip(figures[0], widths, strict=True) if text))
    for point, label, row in zip(picture.ranked, labels, figures[1:], strict=True):
        style = palette.cause(point.bound)
        mark = clean(palette.MARK, ascii_only) if point.flagged else " "
        line = Text(no_wrap=True, overflow="crop").append(f"{point.rank} ", f"bold {style}").append(mark, palette.FLAG)
        line.append(f" {label}" + " " * (longest - cell_len(label)), "bold" if point.flagged else "")
        line.append(f"  {sign(point, ascii_only)} {point.bound or units.UNKNOWN:<{_BOUND}}", style)
        for text, size in zip(row, widths, strict=True):
            line.append(f"  {text:>{size}}" if size else "")
        line.rstrip()
        yield line


def _figures(point: Point, shown_at: int | None) -> tuple[str, ...]:
    over = "!" if point.efficiency is not None and point.efficiency > 1 else ""
    return (
        units.percent(point.share),
        units.percent(point.efficiency) + over,
        "" if shown_at == point.rank else f"at {shown_at}",
    )
