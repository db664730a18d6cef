"""Rows that are quicker than their roof allows, as notes: none is clamped, and each has a likely cause.

Where kernels surpass their roof all together it is no measure of anything: the first note says so, and the report
is made without a roof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchroof import units
from torchroof.device.roof import Ceiling
from torchroof.report.model import Kernel, Note, ReportData, Row
from torchroof.report.roofs import Chosen
from torchroof.roofline.suspicion import Cause, likely_cause
from torchroof.trace.dialects import quick_algorithm

LOW_ROOF = "low roof"
"""The kind of the note that says that a roof was set aside."""
TOO_LOW = 1.05
"""A roof whose kernels reach more than this of it on the whole is no measure of anything."""
GROUP_TOO_LOW, GROUP_LEAST = 1.5, 0.1
"""So much more may the kernels that one kind of limit binds reach of theirs, if they take this part of the time."""
_SIDES = {"memory": "where bytes bind them", "compute": "where arithmetic binds them"}
_MODE = "PythonDispatchMode"
"""How torch records that a mode of Python's answered an op: one that counts FLOPs and runs it, or one that fakes it."""
_MOST = 5
"""Suspicions told one by one; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Suspicions:
    """What the rows say of the roof: ``notes`` for the reader, and how much of it the kernels reach all together
    where that is more than they can (``too_low``, else None)."""

    notes: tuple[Note, ...]
    too_low: Reached | None


@dataclass(frozen=True, slots=True)
class Reached:
    """A fraction of the roof, and by which kernels, in words."""

    fraction: float
    by: str


def suspicions(rows: Sequence[Row], kernels: Sequence[Kernel], chosen: Mapping[int, Chosen]) -> Suspicions:
    """A note per op, precision and cause, those of the most kernel time first."""
    algorithms = _algorithms(kernels)
    groups: dict[tuple[str | None, str | None, Cause], list[Row]] = {}
    accused = []
    """The rows that speak for or against the roof: all but those with another excuse, and those of a given roof."""
    for row in rows:
        cause = None
        if row.efficiency is not None and row.efficiency > 1:
            cause = _cause(row, chosen[row.device], algorithms.get((row.path, row.phase, row.op)))
            groups.setdefault((row.op, row.precision, cause), []).append(row)
        judge = _judge(row, chosen[row.device])
        if (cause is None or not cause.sound) and judge is not None and judge.origin != "given":
            accused.append(row)
    ordered = sorted(groups.items(), key=lambda group: -sum(r.kernel_ns for r in group[1]))
    reached = _too_low(accused)
    return Suspicions(tuple(_notes(ordered, reached is not None)), reached)


def _too_low(rows: Sequence[Row]) -> Reached | None:
    """What kernels reach of their roof where that is more than they can: all together, or those of one side of it."""
    if (fraction := _surpassed(rows, TOO_LOW)) is not None:
        return Reached(fraction, "all together")
    known_ns = sum(row.floor_known_ns for row in rows)
    for side, words in _SIDES.items():
        group = [row for row in rows if row.side == side]
        fraction = _surpassed(group, GROUP_TOO_LOW)
        if fraction is not None and sum(row.floor_known_ns for row in group) >= GROUP_LEAST * known_ns:
            return Reached(fraction, words)
    return None


def _surpassed(rows: Sequence[Row], limit: float) -> float | None:
    """The part of their roof that kernels with a floor reach, if it is over the limit.

    Where less than half of their time is over the roof some formula is at fault, not the roof.
    """
    known_ns = sum(row.floor_known_ns for row in rows)
    over_ns = sum(row.floor_known_ns for row in rows if row.efficiency is not None and row.efficiency > 1)
    reached = sum(row.floor_ns or 0 for row in rows) / known_ns if known_ns else 0.0
    return reached if reached > limit and 2 * over_ns >= known_ns else None


def low_roof_note(reached: Reached, rows: Sequence[Row], chosen: Mapping[int, Chosen]) -> Note:
    """What the first line of a report says whose roof was set aside."""
    if any(row.op == _MODE for row in rows):
        what = "nothing was computed: under FakeTensorMode and its like ops return at once"
    elif any(ceiling.origin == "measured" for row in rows if (ceiling := _judge(row, chosen[row.device])) is not None):
        what = (
            "other work ran while it was measured (run `torchroof calibrate` on the device at a quiet moment), or a "
            "work model counts too much"
        )
    else:
        what = "it is another device's: see --device and --ceilings"
    text = (
        f"The roof is too low to judge by: kernels reach {units.percent(reached.fraction)} of it, {reached.by}. "
        f"Probably {what}. So there is no efficiency, headroom or bound; times, FLOPs and bytes hold."
    )
    return Note(kind=LOW_ROOF, text=text)


def _notes(ordered: Sequence[tuple[tuple[str | None, str | None, Cause], list[Row]]], low: bool) -> Iterator[Note]:
    """``low``: the roof is the cause of them all, but for those that have an excuse."""
    for (op, precision, cause), same in ordered[:_MOST]:
        why = "the roof is too low" if low and not cause.sound else cause.words
        yield Note(kind="suspicion", text=_sentence(op, precision, why, same), count=len(same))
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


def low_roof(data: ReportData) -> str | None:
    """Why the roof of a report was set aside; None where it was not."""
    return next((note.text for note in data.notes if note.kind == LOW_ROOF), None)


def speaks_of_the_device(data: ReportData) -> bool:
    """Whether a roof that was set aside is likely too low, and not surpassed because nothing was computed."""
    return low_roof(data) is not None and not any(row.op == _MODE for row in data.rows)


def _judge(row: Row, chosen: Chosen) -> Ceiling | None:
    return None if chosen.roof is None or row.ceiling is None else chosen.roof.ceilings[row.ceiling]


def _cause(row: Row, chosen: Chosen, algorithm: str | None) -> Cause:
    assert row.efficiency is not None
    ceiling = _judge(row, chosen)
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
