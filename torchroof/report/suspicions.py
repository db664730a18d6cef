"""Rows that are quicker than their roof allows, as notes: none is clamped, and each has a likely cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchroof import units
from torchroof.device.roof import Ceiling
from torchroof.report.model import Kernel, Note, Row
from torchroof.report.roofs import Chosen
from torchroof.roofline.suspicion import likely_cause
from torchroof.trace.dialects import quick_algorithm

_MOST = 5
"""Suspicions told one by one; the rest are counted."""


def suspicions(rows: Sequence[Row], kernels: Sequence[Kernel], chosen: Mapping[int, Chosen]) -> Iterator[Note]:
    """A note per op, precision and cause, those of the most kernel time first."""
    algorithms = _algorithms(kernels)
    groups: dict[tuple[str | None, str | None, str], list[Row]] = {}
    for row in rows:
        if row.efficiency is not None and row.efficiency > 1:
            cause = _cause(row, chosen[row.device], algorithms.get((row.path, row.phase, row.op)))
            groups.setdefault((row.op, row.precision, cause), []).append(row)
    ordered = sorted(groups.items(), key=lambda group: -sum(r.kernel_ns for r in group[1]))
    for (op, precision, cause), same in ordered[:_MOST]:
        yield Note(kind="suspicion", text=_sentence(op, precision, cause, same), count=len(same))
    if left := ordered[_MOST:]:
        time = units.duration(sum(r.kernel_ns for _, same in left for r in same))
        yield Note(
            kind="suspicion",
            text=f"{len(left)} more ops over 100 % of their roof, {time} of kernel time in all",
            count=sum(len(same) for _, same in left),
        )


def _algorithms(kernels: Sequence[Kernel]) -> dict[tuple[str | None, str | None, str | None], str]:
    found = {}
    for kernel in kernels:
        if (algorithm := quick_algorithm(kernel.name)) is not None:
            found[kernel.path, kernel.phase, kernel.op] = algorithm
    return found


def _cause(row: Row, chosen: Chosen, algorithm: str | None) -> str:
    assert row.efficiency is not None
    ceiling: Ceiling | None = None
    if chosen.roof is not None and row.ceiling is not None:
        ceiling = chosen.roof.ceilings[row.ceiling]
    moved = None if row.bytes_read is None or row.bytes_written is None else row.bytes_read + row.bytes_written
    per_call = None if moved is None or not row.calls else moved // row.calls
    on_compute = algorithm if row.side == "compute" else None
    return likely_cause(row.efficiency, ceiling, chosen.roof, per_call, on_compute)


def _sentence(op: str | None, precision: str | None, cause: str, rows: Sequence[Row]) -> str:
    highest = max(row.efficiency or 0.0 for row in rows)
    layers = len({row.path for row in rows})
    where = f"in {layers} layers, " if layers > 1 else ""
    most = "up to " if len(rows) > 1 else ""
    time = units.duration(sum(row.kernel_ns for row in rows))
    named = (op or "an op").removeprefix("aten::") + (f" ({precision})" if precision else "")
    over = f"{100 * highest:.1f}%" if highest < 1.01 else units.percent(highest)
    return f"{named} reaches {most}{over} of its roof ({where}{time} of kernel time): likely {cause}"
