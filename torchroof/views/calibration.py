"""What was measured of a device, beside its datasheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from torchroof import units
from torchroof.device.roof import Ceiling, Roof
from torchroof.views import palette
from torchroof.views.text import clean

_KINDS = ("compute", "bandwidth", "launch", "host")
_STYLES = {"high": "green", "medium": "yellow", "low": "red"}
_LABELS = {
    "torch": "torch {}",
    "driver": "driver {}",
    "instructions": "{}",
    "clock_mhz": "clock {:.0f} MHz",
    "clock_limit_mhz": "of {:.0f} MHz",
    "power_w": "power {:.0f} W",
    "power_limit_w": "limit {:.0f} W",
    "power_default_w": "(default {:.0f} W)",
    "temperature_c": "{:.0f} °C",
}


@dataclass(frozen=True)
class CalibrationPage:
    """A calibration as rich draws it. ``sweep`` are pairs of working set (bytes) and a copy's bytes per second."""

    device: str
    roof: Roof
    notes: tuple[str, ...]
    conditions: Mapping[str, Any]
    sweep: tuple[tuple[int, float], ...]
    seconds: float
    now: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ascii_only = options.ascii_only
        yield Text().append("torchroof calibrate  ", "bold").append(clean(self.device, ascii_only))
        yield Text(clean(", ".join(_told(self.conditions, self.seconds)), ascii_only), palette.QUIET)
        yield from self._table(ascii_only)
        if self.sweep:
            copies = "  ".join(f"{_size(size)} {rate / 1e9:.3g}" for size, rate in self.sweep)
            yield Text(clean(f"copies in GB/s by working set: {copies}", ascii_only), palette.QUIET)
        for note in self.notes:
            yield Text(clean(f"note: {note}", ascii_only))

    def _table(self, ascii_only: bool) -> Iterator[RenderableType]:
        measured = [c for c in self.roof.ceilings if c.origin == "measured"]
        beside = any(self.roof.sibling(c, "datasheet") for c in measured)
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("ceiling", no_wrap=True)
        table.add_column("on", no_wrap=True)
        table.add_column("best", justify="right", no_wrap=True)
        table.add_column("median", justify="right", no_wrap=True)
        if beside:
            table.add_column("datasheet", justify="right", no_wrap=True)
        table.add_column("sure", no_wrap=True)
        table.add_column("how", overflow="fold")
        for ceiling in sorted(measured, key=lambda c: _KINDS.index(c.kind)):
            cells = [*_names(ceiling), _value(ceiling, ceiling.value), _value(ceiling, ceiling.median_value)]
            if beside:
                cells.append(_share(ceiling, self.roof))
            sure = ceiling.confidence or ""
            cells += [f"[{_STYLES[sure]}]{sure}[/]" if sure in _STYLES else sure, ceiling.source]
            table.add_row(*(clean(cell, ascii_only) for cell in cells))
        yield table


def _told(conditions: Mapping[str, Any], seconds: float) -> Iterator[str]:
    for name, words in _LABELS.items():
        if conditions.get(name) is not None:
            yield words.format(conditions[name])
    if conditions.get("throttled_by"):
        yield f"throttled by {' and '.join(conditions['throttled_by'])}"
    yield f"measured in {seconds:.0f} s"


def _names(ceiling: Ceiling) -> tuple[str, str]:
    if ceiling.kind == "compute":
        return ceiling.precision or "", ceiling.pipe or ""
    if ceiling.kind == "bandwidth":
        capacity = "" if ceiling.capacity_bytes is None else f" ({_size(ceiling.capacity_bytes)})"
        return f"{ceiling.level}{capacity}", ceiling.pattern or ""
    return f"{ceiling.kind} time", ""


def _value(ceiling: Ceiling, value: float | None) -> str:
    if value is None:
        return ""
    if ceiling.unit == "s":
        return units.duration(value * 1e9)
    if ceiling.kind == "bandwidth":
        return units.quantity(value, "B/s")
    return units.quantity(value, "OP/s" if (ceiling.precision or "").startswith("int") else "FLOP/s")


def _share(ceiling: Ceiling, roof: Roof) -> str:
    printed = roof.sibling(ceiling, "datasheet")
    if printed is None or ceiling.unit == "s":
        return ""
    return f"{units.percent(ceiling.value / printed.value)} of {_value(printed, printed.value)}"


def _size(size: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size / 1024:.4g} KiB"
