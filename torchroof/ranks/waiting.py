"""Collectives divided into waiting for the last rank and moving data: interval arithmetic over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torchroof.ranks.model import Collective
from torchroof.ranks.one import CollectiveKey, Intervals
from torchroof.trace.table import Int64


@dataclass
class Split:
    """Sums per rank (by its place among the ranks) in ns."""

    collective_ns: list[int]
    waiting_ns: list[int]
    moving_ns: list[int]
    waited_for_ns: list[int]
    collectives: list[Collective] = field(default_factory=list)
    unsplit: set[int] = field(default_factory=set)
    """Ranks with communication that could not be divided: their sums are not whole."""
    apart: int = 0
    """Collectives whose kernels have no instant in common, so that the clocks cannot agree."""

    @staticmethod
    def of(ranks: int) -> Split:
        return Split([0] * ranks, [0] * ranks, [0] * ranks, [0] * ranks)


def split(
    ranks: Sequence[int],
    kinds: Sequence[Mapping[CollectiveKey, Intervals]],
    world_size: int | None,
    groups: Mapping[str, int],
) -> Split:
    """Divide the communication of all ranks.

    The k-th kernel of a kind on every rank of its group is one collective. Until the last of them starts, the
    others wait; from then on all move data. That needs all ranks of the group, with as many kernels each.
    """
    sums = Split.of(len(ranks))
    keys = dict.fromkeys(key for kind in kinds for key in kind)
    for key in keys:
        places = [i for i, kind in enumerate(kinds) if key in kind]
        each = [kinds[i][key] for i in places]
        length = [int((e.end_ns - e.start_ns).sum()) for e in each]
        for i, ns in zip(places, length, strict=True):
            sums.collective_ns[i] += ns
        expected = world_size if key[0] is None else groups.get(key[0], world_size)
        reason = _reason([len(e.start_ns) for e in each], expected)
        if reason:
            sums.unsplit.update(places)
        waited = None if reason else _divide(sums, places, each)
        sums.collectives.append(
            Collective(
                name=key[1],
                group=key[0],
                ranks=tuple(ranks[i] for i in places),
                calls=max(len(e.start_ns) for e in each),
                kernel_ns=sum(length),
                waiting_ns=waited,
                moving_ns=None if waited is None else sum(length) - waited,
                unsplit=reason,
            )
        )
    sums.collectives.sort(key=lambda c: (-c.kernel_ns, c.name, c.group or ""))
    return sums


def _reason(counts: list[int], expected: int | None) -> str | None:
    """Why the kernels of one kind cannot be matched, None where they can."""
    if expected is not None and len(counts) < expected:
        return f"{len(counts)} of {expected} ranks are here"
    if len(counts) < 2:
        return "one rank alone has it"
    if len(set(counts)) > 1:
        return f"the ranks have between {min(counts)} and {max(counts)} of it"
    return None


def _divide(sums: Split, places: list[int], each: list[Intervals]) -> int:
    """Adds the parts of every rank; returns all waiting."""
    starts, ends = np.stack([e.start_ns for e in each]), np.stack([e.end_ns for e in each])
    together = starts.max(axis=0) <= ends.min(axis=0)
    waiting = _waiting(starts, ends, together)
    last = np.where(together, starts.argmax(axis=0), (ends - starts).argmin(axis=0))
    sums.apart += int((~together).sum())
    for row, place in enumerate(places):
        sums.waiting_ns[place] += int(waiting[row].sum())
        sums.moving_ns[place] += int((ends[row] - starts[row] - waiting[row]).sum())
        sums.waited_for_ns[place] += int(waiting[:, last == row].sum())
    return int(waiting.sum())


def _waiting(starts: Int64, ends: Int64, together: NDArray[np.bool_]) -> Int64:
    """Per rank and collective the time until the last rank came.

    Where the kernels have no instant in common, the shortest is taken for the one that did not wait.
    """
    length = ends - starts
    waiting: Int64 = np.where(together, starts.max(axis=0) - starts, length - length.min(axis=0))
    return waiting
