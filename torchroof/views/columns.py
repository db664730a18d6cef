"""The columns of the table: what each shows, and which give way first when the screen is narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rich.text import Text

from torchroof import units
from torchroof.report.lenses import Line, Lines
from torchroof.report.model import PHASES
from torchroof.views import palette
from torchroof.views.text import clean

_PHASE_HEADINGS = {
    "forward": "fwd",
    "backward": "bwd",
    "recompute": "recomp",
    "grad_accumulate": "accum",
    "optimizer": "opt",
}
AT_LEAST = "≥"
_TIMES = re.compile(r"(?<=[0-9])x(?=[0-9])")
GAP = "  "
"""Between two columns."""
LAST_FIGURE = 9
"""The last rank that may cost the labels more than a comfortable width."""
_MUCH_WAITING = 0.25
"""Waiting for the host that is more than this part of what could be won is shown before the phases."""
_MAIN_PHASES = ("forward", "backward")
_MINOR_PHASE = 0.001
"""A phase with less than this part of the step, or without another beside it, is shown last of all."""
SHAPES_FROM = 140
"""Console width from which shapes are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``rank`` says how early it is placed: columns of one rank come together or not at all."""

    heading: str
    unit: str = ""
    rank: int
    cell: Callable[[Line], Text]
    left: bool = False
    widest: int = 40
    """Cells that a text column may take; numbers are never cut."""
    least_console: int = 0
    summed: bool = True
    """Whether the rest and the total have a figure here."""


def columns(lines: Lines) -> Iterator[Column]:
    """All columns that could be shown, from left to right."""
    scale = units.TimeScale.of(max(lines.total.kernel_ns, lines.step_ns // 100) / lines.steps)
    waits = lines.total.host_ns > _MUCH_WAITING * lines.total.headroom_most_ns
    yield Column(heading="class", rank=10, cell=_text(lambda x: x.type), left=True, widest=24)
    yield Column(heading="calls", rank=14, cell=_number(lambda x: _count(x.calls, lines.steps)), summed=False)
    yield Column(heading="time", unit=scale.unit, rank=0, cell=_time(scale, lines, lambda x: x.kernel_ns))
    yield Column(heading="% of", unit="step", rank=2, cell=_share(lines, lambda x: x.kernel_ns))
    occurring = [phase for phase in PHASES if phase in lines.total.phase_ns]
    for phase in occurring:
        minor = len(occurring) == 1 or lines.total.phase_ns[phase] < _MINOR_PHASE * lines.step_ns
        yield from _phase(phase, scale, lines, minor=minor)
    yield Column(
        heading="host", unit=scale.unit, rank=5 if waits else 12, cell=_time(scale, lines, lambda x: x.host_ns)
    )
    yield Column(heading="FLOPs", rank=11, cell=_quantity(lines, lambda x: x.flops))
    yield Column(heading="bytes", rank=13, cell=_quantity(lines, lambda x: x.bytes))
    yield Column(heading="FLOPs", unit="/byte", rank=14, cell=_number(lambda x: _digits(x.intensity)))
    yield Column(heading="FLOP/s", rank=8, cell=_rate(lambda x: x.achieved_flops_per_s))
    yield Column(heading="byte/s", rank=8, cell=_rate(lambda x: x.achieved_bytes_per_s))
    yield Column(heading="effic.", rank=3, cell=_efficiency)
    if lines.total.headroom_ns is not None:
        yield Column(heading="headroom", unit=scale.unit, rank=1, cell=_headroom(scale, lines))
    yield Column(heading="bound", rank=4, cell=_bound, left=True, summed=False)
    for heading, rank, get in (
        ("in", 9, lambda x: x.inputs),
        ("out", 15, lambda x: x.outputs),
        ("parameters", 17, lambda x: x.parameters),
    ):
        yield Column(heading=heading, rank=rank, cell=_tensors(get), left=True, widest=22, least_console=SHAPES_FROM)


def _phase(phase: str, scale: units.TimeScale, lines: Lines, *, minor: bool) -> Iterator[Column]:
    heading = _PHASE_HEADINGS.get(phase, phase)

    def get(line: Line) -> int:
        return line.phase_ns.get(phase, 0)

    rank = 18 if minor else 6 if phase in _MAIN_PHASES else 7
    yield Column(heading=heading, unit=scale.unit, rank=rank, cell=_time(scale, lines, get))
    if not minor:
        yield Column(heading=heading, unit="% step", rank=19, cell=_share(lines, get))


def _text(get: Callable[[Line], str | None]) -> Callable[[Line], Text]:
    return lambda line: Text(get(line) or "")


def _tensors(get: Callable[[Line], str | None]) -> Callable[[Line], Text]:
    """Tensors as ``8×128×768 float16``: the first, and how many more there are."""

    def cell(line: Line) -> Text:
        first, *more = (get(line) or "").split(", ")
        return Text(_TIMES.sub("×", first) + (f", +{len(more)}" if more else ""))

    return cell


def _number(get: Callable[[Line], str]) -> Callable[[Line], Text]:
    def cell(line: Line) -> Text:
        text = get(line)
        return Text(text, palette.QUIET if text in (units.UNKNOWN, "0", "0%") else "")

    return cell


def _time(scale: units.TimeScale, lines: Lines, get: Callable[[Line], int | None]) -> Callable[[Line], Text]:
    return _number(lambda line: scale.text(_per_step(get(line), lines.steps)))


def _headroom(scale: units.TimeScale, lines: Lines) -> Callable[[Line], Text]:
    """What could be won back: a time, ``≥12.3`` where part of the line has no floor, ``?`` where all of it has none."""

    def text(line: Line) -> str:
        least = scale.text(_per_step(line.headroom_least_ns, lines.steps))
        if not line.headroom_is_least:
            return least
        return AT_LEAST + least.lstrip("<") if line.headroom_least_ns else units.UNKNOWN

    return _number(text)


def _share(lines: Lines, get: Callable[[Line], int]) -> Callable[[Line], Text]:
    return _number(lambda line: units.share(get(line) / lines.step_ns if lines.step_ns else None))


def _quantity(lines: Lines, get: Callable[[Line], int | None]) -> Callable[[Line], Text]:
    return _number(lambda line: units.quantity(_per_step(get(line), lines.steps), ""))


def _rate(get: Callable[[Line], float | None]) -> Callable[[Line], Text]:
    return _number(lambda line: units.quantity(get(line), ""))


def _efficiency(line: Line) -> Text:
    text = units.percent(line.efficiency)
    if line.efficiency == 0 and line.bytes:
        text = units.percent(units.LEAST)  # a floor of less than half a nanosecond
    if line.efficiency is None:
        return Text(text, palette.QUIET)
    if line.efficiency > 1:
        return Text(text + "!", palette.SUSPECT)
    return Text(("~" if line.partial else "") + text)


def _bound(line: Line) -> Text:
    return Text(line.bound or units.UNKNOWN, palette.cause(line.bound) if line.bound else palette.QUIET)


def _per_step(value: int | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _count(value: int | None, steps: int) -> str:
    return units.UNKNOWN if value is None else units.digits(value / steps)


def _digits(value: float | None) -> str:
    return units.UNKNOWN if value is None else units.digits(value)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A column with its cells made: one per line, then those of the sums."""

    column: Column
    cells: tuple[Text, ...]
    width: int

    @classmethod
    def of(cls, column: Column, shown: tuple[Line, ...], sums: tuple[Line, ...], ascii_only: bool) -> Drawn:
        made = [column.cell(line) for line in shown]
        made += [column.cell(line) if column.summed else Text("") for line in sums]
        cells = tuple(Text(clean(cell.plain, ascii_only), cell.style) for cell in made)
        widest = max((cell.cell_len for cell in cells), default=0)
        if column.left:
            widest = min(widest, column.widest)
        column = replace(column, heading=clean(column.heading, ascii_only), unit=clean(column.unit, ascii_only))
        return cls(column, cells, max(widest, len(column.heading), len(column.unit)))

    @property
    def tells(self) -> bool:
        """Whether any cell says anything: a column of nothing but ``?`` and 0 is not worth its place."""
        return any(cell.plain not in ("", units.UNKNOWN, "0", "0%") for cell in self.cells)


def fitting(drawn: list[Drawn], width: int, labels: tuple[int, int], console_width: int) -> list[Drawn]:
    """The columns that fit beside the labels (a gap before each), the most wanted first.

    ``labels`` are the cells that the labels keep against figures, and against all other columns.
    """
    wanted = [d for d in drawn if d.tells and console_width >= d.column.least_console]
    kept: set[int] = set()
    for rank in sorted({d.column.rank for d in wanted}):
        need = sum(d.width + len(GAP) for d in wanted if d.column.rank == rank)
        if need <= width - (labels[0] if rank <= LAST_FIGURE else labels[1]):
            width -= need
            kept.add(rank)
    return [d for d in wanted if d.column.rank in kept]
