"""The steps of a trace, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchroof.join.lineage import Nest
from torchroof.trace.metadata import STEP_PREFIX, CaptureFacts
from torchroof.trace.table import NONE, HostKind, Int32, Int64, TraceTable


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order of start. ``marked`` is False where the file has no marks and is one step as a whole."""

    number: tuple[int, ...]
    start_ns: Int64
    end_ns: Int64
    counted: tuple[bool, ...]
    marked: bool

    def at(self, moment_ns: Int64) -> Int32:
        """The step open at each moment (its position, NONE outside all). Ends are outside, but for the last."""
        place = np.searchsorted(self.start_ns, moment_ns, side="right") - 1
        safe = np.maximum(place, 0)
        inside = (place >= 0) & (moment_ns <= self.end_ns[safe])
        return np.where(inside, place, NONE).astype(np.int32)

    def counted_at(self, moment_ns: Int64) -> Int32:
        """As `at`, and NONE for steps that do not count."""
        place = self.at(moment_ns)
        counts = np.array(self.counted, dtype=bool)
        return np.where((place != NONE) & counts[np.maximum(place, 0)], place, NONE).astype(np.int32)

    def runs(self) -> tuple[range, ...]:
        """The counted steps as stretches of positions that follow one another, in number and in the file."""
        found: list[range] = []
        for place in np.flatnonzero(np.array(self.counted, dtype=bool)).tolist():
            follows = found and found[-1].stop == place and self.number[place] == self.number[place - 1] + 1
            if follows:
                found[-1] = range(found[-1].start, place + 1)
            else:
                found.append(range(place, place + 1))
        return tuple(found)


def find_steps(table: TraceTable, nest: Nest, facts: CaptureFacts | None) -> Steps:
    """The marked steps of a file; all complete ones count unless the capture named those that do."""
    marks = _marks(table, nest)
    if not marks:
        low, high = _extent(table)
        return Steps((0,), np.array([low], dtype=np.int64), np.array([high], dtype=np.int64), (True,), False)
    numbers = tuple(number for _, _, number in marks)
    counted = tuple(True for _ in marks)
    if facts and facts.counted_steps is not None:
        chosen = set(facts.counted_steps)
        counted = tuple(number in chosen for number in numbers)
    starts = np.array([start for start, _, _ in marks], dtype=np.int64)
    ends = np.array([end for _, end, _ in marks], dtype=np.int64)
    return Steps(numbers, starts, ends, counted, True)


def _marks(table: TraceTable, nest: Nest) -> list[tuple[int, int, int]]:
    numbers = {i: int(n[len(STEP_PREFIX) :]) for i, n in enumerate(table.names) if _is_mark(n)}
    if not numbers:
        return []
    spans = np.flatnonzero((nest.kind == HostKind.ANNOTATION) & np.isin(nest.name, list(numbers)))
    found = {(int(nest.start_ns[i]), int(nest.end_ns[i]), numbers[int(nest.name[i])]) for i in spans}
    marks: list[tuple[int, int, int]] = []
    for mark in sorted(found):
        # Several threads may mark the same step; a mark inside the one before it is no step of its own.
        if not marks or mark[0] >= marks[-1][1]:
            marks.append(mark)
    return marks


def _is_mark(name: str) -> bool:
    return name.startswith(STEP_PREFIX) and name[len(STEP_PREFIX) :].isdecimal()


def _extent(table: TraceTable) -> tuple[int, int]:
    """From the first to the last thing that a host did; of the devices where no host did anything."""
    for spans in (table.host, table.device):
        if len(spans):
            return int(spans.start_ns.min()), int(spans.end_ns.max())
    return 0, 0
