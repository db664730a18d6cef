"""The ceilings of a report in words: which judged, what MFU is taken of, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from torchroof import units
from torchroof.device.roof import Ceiling, Roof
from torchroof.report.model import ReportData
from torchroof.report.totals import peak_of
from torchroof.work.plugins import installed
from torchroof.work.registry import MATRIX_FAMILIES

T = TypeVar("T")


def judging(data: ReportData) -> list[Judge]:
    """The ceilings that judged a row, those that judged most kernel time first."""
    roofs = {d.index: Roof(d.name or "", d.ceilings) for d in data.devices}
    judges = [
        (Judge(roofs[row.device].ceilings[row.ceiling], roofs[row.device]), row.kernel_ns)
        for row in data.rows
        if row.ceiling is not None
    ]
    return _by_weight(judges)


@dataclass(frozen=True, slots=True)
class Judge:
    """A ceiling that judged, and the roof that it belongs to."""

    ceiling: Ceiling
    roof: Roof

    @property
    def beside(self) -> str:
        """How much of the datasheet's peak was measured, where both are known; else nothing."""
        measured, printed = (self.roof.sibling(self.ceiling, origin) for origin in ("measured", "datasheet"))
        if measured is None or printed is None:
            return ""
        if self.ceiling.origin == "measured":
            return f" = {units.percent(self.ceiling.value / printed.value)} of the datasheet's"
        return f", of which {units.percent(measured.value / printed.value)} was measured"


def mfu_peak(data: ReportData) -> str:
    """What MFU is taken of: ``float16 matrix 989 TFLOP/s (datasheet)``; the peak of most FLOPs where it is several."""
    roofs = {d.index: Roof(d.name or "", d.ceilings) for d in data.devices}
    found = []
    for row in data.rows:
        family = installed().registry.family(row.op) if row.op else None
        if family in MATRIX_FAMILIES and row.flops and row.device in roofs:
            peak = peak_of(roofs[row.device], row.precision, family)
            found += [(peak, row.flops)] if peak else []
    peaks = _by_weight(found)
    if not peaks:
        return "peak"
    others = f" and {len(peaks) - 1} other" if len(peaks) > 1 else ""
    return f"{ceiling_value(peaks[0])}{others} ({peaks[0].origin})"


def told(judges: Iterable[Judge], now: float) -> tuple[str, ...]:
    """The ceilings as short texts, those of one origin in one: ``l3 47 GB/s, l2 150 GB/s (measured 3 min ago)``.

    Of several ages the oldest is told. ``now`` is in Unix seconds.
    """
    groups: dict[str, list[Judge]] = {}
    for judge in judges:
        groups.setdefault(judge.ceiling.origin, []).append(judge)
    return tuple(
        f"{', '.join(ceiling_value(j.ceiling) + j.beside for j in same)} ({_origin(_oldest(same), now)})"
        for same in groups.values()
    )


def _oldest(judges: Iterable[Judge]) -> Ceiling:
    return min((j.ceiling for j in judges), key=lambda c: c.measured_at or "")


def ceiling_text(ceiling: Ceiling, now: float) -> str:
    """``float32 vector 322 GFLOP/s, measured 3 min ago``."""
    return f"{ceiling_value(ceiling)}, {_origin(ceiling, now)}"


def ceiling_value(ceiling: Ceiling) -> str:
    """``float32 vector 322 GFLOP/s``."""
    what = f"{ceiling.precision} {ceiling.pipe}" if ceiling.kind == "compute" else ceiling.level or ceiling.kind
    unit = {"FLOP/s": "FLOP/s", "byte/s": "B/s"}.get(ceiling.unit, ceiling.unit)
    if ceiling.pattern is not None:
        what += f" {ceiling.pattern}"
    return f"{what} {units.quantity(ceiling.value, unit)}"


def _by_weight(weighed: Iterable[tuple[T, int]]) -> list[T]:
    sums: dict[T, int] = {}
    for item, weight in weighed:
        sums[item] = sums.get(item, 0) + weight
    return sorted(sums, key=lambda c: -sums[c])


def _origin(ceiling: Ceiling, now: float) -> str:
    return f"{ceiling.origin} {_age(ceiling.measured_at, now)}" if ceiling.measured_at else ceiling.origin


def _age(measured_at: str, now: float) -> str:
    try:
        return units.age(max(0.0, now - datetime.fromisoformat(measured_at).timestamp()))
    except ValueError:
        return f"at {measured_at}"
