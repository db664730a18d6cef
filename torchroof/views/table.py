"""The page for a terminal: the headline, the lines by what could be won, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from torchroof import units
from torchroof.report.lenses import Lines
from torchroof.report.model import ReportData
from torchroof.report.picture import Picture
from torchroof.report.summary import Headline
from torchroof.views import chart, palette
from torchroof.views import headline as top
from torchroof.views.columns import GAP, Drawn, columns, fitting
from torchroof.views.text import clean, shorten

NARROWEST, WIDEST = 40, 240
"""Widths between which the page follows the console."""
_LEAST_LABEL = (18, 28, 0.27)
_COMFORTABLE_LABEL = (18, 44, 0.34)
"""What the labels keep when columns want room: a part of the width, between two numbers of cells."""
_LABEL_IN_WORDS = 44
"""Cells of a label in a sentence of the foot."""
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
        yield from top.draw(self.headline, any(d.ceilings for d in self.data.devices), width, ascii_only)
        yield Text("")
        if self.picture is not None:
            yield from chart.draw(self.picture, width, ascii_only)
            yield Text("")
        if self.lines.lines or self.lines.rest:
            yield from draw(self.lines, width, ascii_only)
        else:
            yield Text("The file has no kernel to list.")
        yield from _foot(self.data, self.lines, self.headline.notes, ascii_only)


def draw(lines: Lines, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    """The table alone: its title, headings, lines and sums."""
    sums = tuple(line for line in (lines.rest, lines.total) if line)
    everything = (*lines.lines, *sums)
    margin = 2 if any(line.flagged for line in lines.lines) else 0
    labels = [clean(line.label, ascii_only) for line in everything]
    longest = max(Text(label).cell_len for label in labels)
    keep = (_kept(longest, width, _LEAST_LABEL), _kept(longest, width, _COMFORTABLE_LABEL))
    drawn = [Drawn.of(column, lines.lines, sums, ascii_only) for column in columns(lines)]
    kept = fitting(drawn, width - margin, keep, width)
    taken = sum(d.width + len(GAP) for d in kept)
    label_width = min(longest, width - margin - taken)
    rule = Text(clean("─", ascii_only) * (margin + label_width + taken), palette.QUIET)

    yield _title(lines, ascii_only)
    yield _heading([d.column.heading for d in kept], kept, margin + label_width)
    yield _heading([d.column.unit for d in kept], kept, margin + label_width)
    yield rule
    for index, line in enumerate(everything):
        if index == len(lines.lines):
            yield rule
        mark = palette.MARK if line.flagged else ""
        text = Text(no_wrap=True, overflow="crop").append(clean(mark, ascii_only).ljust(margin), palette.FLAG)
        style = "bold" if line.flagged or line is lines.total else ""
        label = Text(clean(shorten(labels[index], label_width), ascii_only), style)
        text.append(_pad(label, label_width, left=True))
        yield _with_cells(text, [(d, d.cells[index]) for d in kept], ascii_only)


def _kept(longest: int, width: int, bounds: tuple[int, int, float]) -> int:
    low, high, part = bounds
    return min(longest, max(low, min(high, int(width * part))))


def _title(lines: Lines, ascii_only: bool) -> Text:
    order, told = _ORDER.get(lines.sort, lines.sort), ""
    if lines.sort == "headroom" and lines.total.headroom_ns is None:
        order = "time, their headroom unknown"
    text = Text().append(f"{_PLURAL.get(lines.by, lines.by)} by {order}", palette.HEADING)
    if lines.total.headroom_ns is not None:
        won, step = lines.total.headroom_ns / lines.steps, lines.step_ns / lines.steps
        told = f" · {units.duration(won)} of {units.duration(step)} could be won back"
    scope = ", whole file per counted step" if lines.by == "kernel" else ", per step"
    matching = f", matching {lines.filter!r}" if lines.filter is not None else ""
    return text.append(clean(matching + scope + told, ascii_only))


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


def _foot(data: ReportData, lines: Lines, notes: tuple[str, ...], ascii_only: bool) -> Iterator[RenderableType]:
    yield Text("")
    grid = top.fields()
    grid.add_row("left over", Text(clean("; ".join(_left_over(data, lines)), ascii_only)))
    for why in dict.fromkeys(line.why for line in lines.lines if line.flagged and line.why):
        labels = [
            shorten(clean(line.label), _LABEL_IN_WORDS) for line in lines.lines if line.flagged and line.why == why
        ]
        grid.add_row("why", Text(clean(f"{palette.MARK} {why}: {', '.join(labels)}", ascii_only)))
    for legend in _legends(lines):
        grid.add_row("marks", Text(clean(legend, ascii_only)))
    for note in notes:
        grid.add_row("note", Text(clean(note, ascii_only)))
    yield grid


def _left_over(data: ReportData, lines: Lines) -> Iterator[str]:
    """What no model or no layer answers for, always told."""
    total = lines.total
    unknown = total.kernel_ns - total.bytes_known_ns
    share = units.percent(unknown / total.kernel_ns if total.kernel_ns else None)
    told = f"{units.duration(unknown / lines.steps)} per step ({share} of kernel time)" if unknown else "no kernel"
    yield f"{told} without known work"
    if not data.unattributed:
        yield "no kernel without an owner"
    for entry in data.unattributed:
        kernels = f"{entry.kernels} kernel{'' if entry.kernels == 1 else 's'}"
        yield f"{entry.reason}: {kernels}, {units.duration(entry.kernel_ns)} in the file"


def _legends(lines: Lines) -> Iterator[str]:
    if any(line.partial for line in lines.lines):
        yield "~ part of the line's time has no model; rates cover the rest"
    if any(line.efficiency is not None and line.efficiency > 1 for line in lines.lines):
        yield "! over 100%: suspect the ceiling or the work model, not the hardware"
