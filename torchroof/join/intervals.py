"""The layer call that an autograd node was made in, by the sequence numbers that the hooks noted around each call."""

from __future__ import annotations

import numpy as np

from torchroof.trace.metadata import CallColumns, CaptureFacts
from torchroof.trace.table import NONE, Int32, TraceTable

_LARGEST_RANGE = 50_000_000


class Intervals:
    """Which layer call a number was given out in: the innermost with before <= number < after, by thread."""

    def __init__(self, table: TraceTable, facts: CaptureFacts | None) -> None:
        self._layers: dict[int, tuple[int, Int32] | None] = {}
        ids = {text: i for i, text in enumerate(table.thread_ids)}
        for columns in facts.calls if facts else ():
            thread = ids.get(str(columns.thread))
            if thread is not None:
                # Two threads of one id, one after the other: their numbers cannot be told apart.
                self._layers[thread] = _painted(columns) if thread not in self._layers else None

    def find(self, thread: int, number: int) -> int | None:
        """The layer (an index), NONE for a number from outside every call, None where that is not known."""
        known = self._layers.get(thread)
        if known is None:
            return None
        low, painted = known
        place = number - low
        return int(painted[place]) if 0 <= place < len(painted) else NONE


def _painted(columns: CallColumns) -> tuple[int, Int32] | None:
    """The first number of the calls, and the layer of each from there; None where one call's numbers lack."""
    before, after = np.array(columns.before), np.array(columns.after)
    if (before < 0).any() or (after < before).any():
        return None
    low, high = int(before.min()), int(after.max())
    if high - low > _LARGEST_RANGE:
        return None
    painted = np.full(high - low, NONE, dtype=np.int32)
    for layer, first, end in zip(columns.layer, before.tolist(), after.tolist(), strict=True):
        painted[first - low : end - low] = layer
    return low, painted
