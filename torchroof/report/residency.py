"""Which memory served each call: main memory, or a cache that still held its tensors.

A trace has no addresses, so this goes by what can be told. Per device the calls are walked in the order in which
they were launched, with the bytes that each moves:

- the same call of the same layer was made before, and no more was moved since then than a level holds: all of its
  tensors are still there, whichever they are;
- an op's large operands are as big as tensors that were read or written so shortly before: they were *just
  produced*. Two operands of one size are not taken for such (one may be an activation saved long ago), nor are
  weights and optimizer states, which many layers have in equal sizes;
- a call took less time than main memory needs: then a cache served it, and the slowest level judges that holds
  what it moves and is quick enough. Where none is, the excess stays visible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from torchroof.device.roof import Roof
from torchroof.join.attribute import Attribution, Reason
from torchroof.report.pricing import Price, Prices
from torchroof.roofline.place import Placement, place, traffic
from torchroof.trace.table import NONE, Int64, TraceTable
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES

_LARGE = 1 / 16
"""Operands under this part of what a call moves do not decide where it is served from."""
_KEPT_APART = frozenset({"optimizer", "embedding"})
"""Families whose tensors are touched once per step, in equal sizes."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one device, in the order of their first launch."""

    op: Int64
    price: Int64
    layer: Int64
    phase: Int64
    signature: Int64
    ns: Int64


class _Placer:
    """Places prices of one device under its memory levels; each placement is made once."""

    def __init__(self, table: list[Price], roof: Roof) -> None:
        self.table, self.roof = table, roof
        self.capacities = [capacity for capacity, _ in roof.levels()]
        self._made: dict[tuple[int, int | None], Placement] = {}

    def under(self, price: int, reach: int | None) -> Placement:
        """The placement of a price whose tensors were touched so many bytes ago."""
        key = (price, reach)
        if key not in self._made:
            told = self.table[price]
            work = Work(told.flops, told.bytes_read, told.bytes_written)
            pattern = traffic(work, told.op or "")
            self._made[key] = place(
                work, told.family, told.precision, self.roof, pattern=pattern, reach_bytes=reach, pipe=told.pipe
            )
        return self._made[key]


def serve(trace: TraceTable, attribution: Attribution, prices: Prices, roofs: Mapping[int, Roof | None]) -> Prices:
    """The same prices, each call placed under the memory level that served it."""
    table = list(prices.table)
    price = prices.price.copy()
    kernels = attribution.kernels
    for device, roof in roofs.items():
        if roof is None or not roof.levels():
            continue
        placer, placed = _Placer(table, roof), dict[tuple[int, int], int]()
        calls = _calls_of(trace, attribution, prices, device)
        served = np.full(len(attribution.nest), NONE, dtype=np.int64)
        for i, reach in _reaches(trace, calls, placer):
            key = (int(calls.price[i]), reach)
            if key not in placed:
                placed[key] = len(table)
                table.append(replace(table[key[0]], placement=placer.under(*key)))
            served[calls.op[i]] = placed[key]
        mine = np.flatnonzero((kernels.device == device) & (kernels.op != NONE) & (kernels.reason == Reason.NONE))
        mine = mine[served[kernels.op[mine]] != NONE]
        price[mine] = served[kernels.op[mine]]
    return replace(prices, table=tuple(table), price=price)


def _calls_of(trace: TraceTable, attribution: Attribution, prices: Prices, device: int) -> _Calls:
    kernels = attribution.kernels
    mine = np.flatnonzero((kernels.device == device) & (kernels.op != NONE) & (kernels.reason == Reason.NONE))
    order = mine[np.lexsort((kernels.start_ns[mine], kernels.launch_ns[mine]))]
    op, first, number = np.unique(kernels.op[order], return_index=True, return_inverse=True)
    ns = np.zeros(len(op), dtype=np.int64)
    np.add.at(ns, number, kernels.ns[order])
    by_launch = np.argsort(first, kind="stable")
    kernel = order[first][by_launch]
    return _Calls(
        op=op[by_launch].astype(np.int64),
        price=prices.price[kernel].astype(np.int64),
        layer=attribution.layer[kernel].astype(np.int64),
        phase=attribution.phase[kernel].astype(np.int64),
        signature=trace.host.signature[attribution.nest.span[op[by_launch]]].astype(np.int64),
        ns=ns[by_launch],
    )


def _reaches(trace: TraceTable, calls: _Calls, placer: _Placer) -> Iterator[tuple[int, int]]:
    """Positions of calls that a cache served, and the capacity (bytes) of that level."""
    table, capacities = placer.table, placer.capacities
    moved = [_moved(table[p]) for p in calls.price.tolist()]
    # What moves an unknown amount may have emptied every cache.
    before = np.concatenate(([0], np.cumsum([capacities[-1] if m is None else m for m in moved]))).tolist()
    again = _since_the_same(calls, before)
    fresh = _since_produced(trace, calls, table, moved, before)
    for i, (p, size, ns) in enumerate(zip(calls.price.tolist(), moved, calls.ns.tolist(), strict=True)):
        if not size or table[p].placement.side != "memory":
            continue
        reach = min((r for r in (again[i], fresh[i]) if r is not None), default=None)
        level = None if reach is None else next((c for c in capacities if c >= max(reach, size)), None)
        level = _quick_enough(placer, p, level, size, ns)
        if level is not None:
            yield i, level


def _moved(price: Price) -> int | None:
    if price.bytes_read is None or price.bytes_written is None:
        return None
    return price.bytes_read + price.bytes_written


def _since_the_same(calls: _Calls, before: list[int]) -> list[int | None]:
    """Bytes moved since the same call of the same layer began; of a first call those up to its second.

    What precedes the counted steps is like them, so a first call is taken to follow on another one.
    """
    reach: list[int | None] = [None] * len(calls.op)
    last: dict[tuple[int, ...], int] = {}
    columns = zip(calls.price.tolist(), calls.layer.tolist(), calls.phase.tolist(), strict=True)
    for i, key in enumerate(columns):
        earlier = last.get(key)
        if earlier is not None:
            reach[i] = before[i] - before[earlier]
            if reach[earlier] is None:
                reach[earlier] = reach[i]
        last[key] = i
    return reach


def _since_produced(
    trace: TraceTable, calls: _Calls, table: list[Price], moved: list[int | None], before: list[int]
) -> list[int | None]:
    """Bytes moved since tensors as big as a call's large operands were last touched; None where that is not told."""
    reach: list[int | None] = [None] * len(calls.op)
    touched: dict[int, int] = {}
    sizes: dict[int, tuple[int, ...]] = {}
    for i, (p, signature) in enumerate(zip(calls.price.tolist(), calls.signature.tolist(), strict=True)):
        price, size = table[p], moved[i]
        if signature not in sizes:
            sizes[signature] = _operand_sizes(trace, signature)
        operands = sizes[signature]
        large = [s for s in operands if size and s > _LARGE * size]
        one_of_each = len(set(large)) == len(large) > 0
        if size and one_of_each and _may_be_fresh(price, operands, size) and all(s in touched for s in large):
            reach[i] = before[i] - min(before[touched[s]] for s in large)
        for s in (*operands, price.bytes_written or 0):
            touched[s] = i
    return reach


def _operand_sizes(trace: TraceTable, signature: int) -> tuple[int, ...]:
    if signature == NONE:
        return ()
    found = (tensor.stored_bytes for tensor in trace.signatures[signature].tensors())
    return tuple(size for size in found if size)


def _may_be_fresh(price: Price, operands: tuple[int, ...], size: int) -> bool:
    """Whether none of a call's large operands can be a weight or a state."""
    if price.family in _KEPT_APART:
        return False
    return price.family not in MATRIX_FAMILIES or all(s <= _LARGE * size for s in operands[1:])


def _quick_enough(placer: _Placer, price: int, level: int | None, size: int, ns: int) -> int | None:
    """The level, or the next nearer ones that hold the size, until one is as quick as the call was."""
    nearer = [c for c in placer.capacities if c >= size and (level is None or c < level)]
    while nearer and (placer.under(price, level).memory_ns or 0.0) > ns:
        level = nearer.pop()
    return level
