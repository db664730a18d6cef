"""The page for a terminal: the headline, the lines by what could be won, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from torchroof import units
from torchroof.report.lenses import Line, Lines
from torchroof.report.model import ReportData
from torchroof.report.picture import Picture
from torchroof.report.summary import Headline
from torchroof.views import chart, foot, palette
from torchroof.views import headline as top
from torchroof.views.columns import GAP, Drawn, columns, fitting
from torchroof.views.text import clean, shorten

NARROWEST, WIDEST = 40, 240
"""Widths between which the page follows the console."""
_LEAST_LABEL = (18, 28, 0.27)
_COMFORTABLE_LABEL = (18, 44, 0.34)
"""What the labels keep when columns want room: a part of the width, between two numbers of cells."""
_ORDER = {"headroom": "headroom", "time": "kernel time", "flops": "FLOPs"}
_PLURAL = {"layer": "Layers", "op": "Ops", "phase": "Phases", "kernel": "Kernels"}


@dataclass(frozen=True)
class Page:
    """A report as rich draws it, at the width of the console that prints it."""

    data: ReportData
    headline: Headline
    lines: Lines
    picture: Picture | None = None
    """Drawn as a chart between headline and table."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(NARROWEST, min(options.max_width, WIDEST))
        ascii_only = options.ascii_only
        layout = Layout.of(self.lines, width, ascii_only)
        roofed = any(d.ceilings for d in self.data.devices)
        yield from top.draw(self.headline, roofed, width, ascii_only, layout.label_width)
        yield Text("")
        if self.picture is not None:
            yield from chart.draw(self.picture, width, ascii_only)
            yield Text("")
        if self.lines.lines or self.lines.rest:
            yield from layout.draw()
        else:
            yield Text("The file has no kernel to list.")
        yield from foot.draw(self.headline, self.lines, ascii_only, layout.label_width)


def draw(lines: Lines, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    """The table alone: its title, headings, lines and sums."""
    yield from Layout.of(lines, width, ascii_only).draw()


@dataclass(frozen=True)
class Layout:
    """A table with its columns chosen and its cells made. ``label_width`` is what every label is shortened to."""

    lines: Lines
    ascii_only: bool
    kept: list[Drawn]
    margin: int
    label_width: int

    @classmethod
    def of(cls, lines: Lines, width: int, ascii_only: bool) -> Layout:
        sums = tuple(line for line in (lines.rest, lines.total) if line)
        margin = 2 if any(line.flagged for line in lines.lines) else 0
        longest = max(Text(clean(line.label, ascii_only)).cell_len for line in (*lines.lines, *sums))
        keep = (_kept(longest, width, _LEAST_LABEL), _kept(longest, width, _COMFORTABLE_LABEL))
        drawn = [Drawn.of(column, lines.lines, sums, ascii_only) for column in columns(lines)]
        kept = fitting(drawn, width - margin, keep, width)
        taken = sum(d.width + len(GAP) for d in kept)
        return cls(lines, ascii_only, kept, margin, min(longest, width - margin - taken))

    def draw(self) -> Iterator[RenderableType]:
        taken = sum(d.width + len(GAP) for d in self.kept)
        rule = Text(clean("─", self.ascii_only) * (self.margin + self.label_width + taken), palette.QUIET)
        yield _title(self.lines, self.ascii_only)
        for words in ([d.column.heading for d in self.kept], [d.column.unit for d in self.kept]):
            yield _heading(words, self.kept, self.margin + self.label_width)
        yield rule
        sums = tuple(line for line in (self.lines.rest, self.lines.total) if line)
        for index, line in enumerate((*self.lines.lines, *sums)):
            if index == len(self.lines.lines) and index:
                yield rule
            yield self._line(line, index)

    def _line(self, line: Line, index: int) -> Text:
        mark = clean(palette.MARK if line.flagged else "", self.ascii_only)
        text = Text(no_wrap=True, overflow="crop").append(mark.ljust(self.margin), palette.FLAG)
        style = "bold" if line.flagged or line is self.lines.total else ""
        label = shorten(clean(line.label, self.ascii_only), self.label_width)
        text.append(_pad(Text(clean(label, self.ascii_only), style), self.label_width, left=True))
        return _with_cells(text, [(d, d.cells[index]) for d in self.kept], self.ascii_only)


def _kept(longest: int, width: int, bounds: tuple[int, int, float]) -> int:
    low, high, part = bounds
    return min(longest, max(low, min(high, int(width * part))))


def _title(lines: Lines, ascii_only: bool) -> Text:
    order, told = _ORDER.get(lines.sort, lines.sort), ""
    judged = lines.total.headroom_ns is not None
    if lines.sort == "headroom" and not judged:
        order = "kernel time and waiting"
    what = _PLURAL.get(lines.by, lines.by)
    text = Text().append(f"{what} by {order}", palette.HEADING)
    if judged:
        won, step = lines.total.headroom_least_ns / lines.steps, lines.step_ns / lines.steps
        least = "at least " if lines.total.headroom_is_least else ""
        told = f" · {least}{units.duration(won)} of {units.duration(step)} could be won back"
    matching = f", matching {lines.filter!r}" if lines.filter is not None else ""
    if lines.filter is not None and not lines.lines:
        matching, told = f": nothing matches {lines.filter!r}", ""
    return text.append(clean(f"{matching}, per step{told}", ascii_only))


def _heading(words: list[str], kept: list[Drawn], label_width: int) -> Text:
    text = Text(" " * label_width, palette.QUIET, no_wrap=True, overflow="crop")
    for word, d in zip(words, kept, strict=True):
        text.append(GAP + (word.ljust(d.width) if d.column.left else word.rjust(d.width)))
    text.rstrip()
    return text


def _with_cells(text: Text, cells: list[tuple[Drawn, Text]], ascii_only: bool) -> Text:
    for d, cell in cells:
        if cell.cell_len > d.width:
            cell = Text(clean(shorten(cell.plain, d.width), ascii_only), cell.style)
        text.append(GAP).append(_pad(cell, d.width, left=d.column.left))
    text.rstrip()
    return text


def _pad(text: Text, width: int, *, left: bool) -> Text:
    space = " " * (width - text.cell_len)
    padded = Text("" if left else space)
    return padded.append(text).append(space if left else "")
