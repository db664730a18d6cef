"""The ceilings of a report in words: which judged, what MFU is taken of, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from torchroof import units
from torchroof.device.roof import Ceiling, Roof
from torchroof.report.model import ReportData
from torchroof.report.totals import peak_of
from torchroof.work.registry import MATRIX_FAMILIES
from torchroof.work.standard import STANDARD


def judging(data: ReportData) -> list[Ceiling]:
    """The ceilings that judged a row, those that judged most kernel time first."""
    by_index = {d.index: d.ceilings for d in data.devices}
    return _by_weight(
        (by_index[row.device][row.ceiling], row.kernel_ns) for row in data.rows if row.ceiling is not None
    )


def mfu_peak(data: ReportData) -> str:
    """What MFU is taken of: ``float16 matrix 989 TFLOP/s (datasheet)``; the peak of most FLOPs where it is several."""
    roofs = {d.index: Roof(d.name or "", d.ceilings) for d in data.devices}
    found = []
    for row in data.rows:
        family = STANDARD.family(row.op) if row.op else None
        if family in MATRIX_FAMILIES and row.flops and row.device in roofs:
            peak = peak_of(roofs[row.device], row.precision, family)
            found += [(peak, row.flops)] if peak else []
    peaks = _by_weight(found)
    if not peaks:
        return "peak"
    others = f" and {len(peaks) - 1} other" if len(peaks) > 1 else ""
    return f"{ceiling_value(peaks[0])}{others} ({peaks[0].origin})"


def told(ceilings: Iterable[Ceiling], now: float) -> tuple[str, ...]:
    """The ceilings as short texts, those of one origin and age in one: ``l3 47 GB/s, l2 150 GB/s (datasheet)``.

    ``now`` is in Unix seconds.
    """
    groups: dict[str, list[str]] = {}
    for ceiling in ceilings:
        groups.setdefault(_origin(ceiling, now), []).append(ceiling_value(ceiling))
    return tuple(f"{', '.join(values)} ({origin})" for origin, values in groups.items())


def ceiling_text(ceiling: Ceiling, now: float) -> str:
    """``float32 vector 322 GFLOP/s, measured 3 min ago``."""
    return f"{ceiling_value(ceiling)}, {_origin(ceiling, now)}"


def ceiling_value(ceiling: Ceiling) -> str:
    """``float32 vector 322 GFLOP/s``."""
    what = f"{ceiling.precision} {ceiling.pipe}" if ceiling.kind == "compute" else ceiling.level or ceiling.kind
    unit = {"FLOP/s": "FLOP/s", "byte/s": "B/s"}.get(ceiling.unit, ceiling.unit)
    return f"{what} {units.quantity(ceiling.value, unit)}"


def _by_weight(weighed: Iterable[tuple[Ceiling, int]]) -> list[Ceiling]:
    sums: dict[Ceiling, int] = {}
    for ceiling, weight in weighed:
        sums[ceiling] = sums.get(ceiling, 0) + weight
    return sorted(sums, key=lambda c: -sums[c])


def _origin(ceiling: Ceiling, now: float) -> str:
    return f"{ceiling.origin} {_age(ceiling.measured_at, now)}" if ceiling.measured_at else ceiling.origin


def _age(measured_at: str, now: float) -> str:
    try:
        return units.age(max(0.0, now - datetime.fromisoformat(measured_at).timestamp()))
    except ValueError:
        return f"at {measured_at}"
