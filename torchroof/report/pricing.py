"""Prices: the work of each op call, and where it lies under its device's roof.

Calls with the same op and operands have the same price, so each distinct call is priced once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from torchroof.device.roof import Roof
from torchroof.join.attribute import Attribution
from torchroof.report.operands import Calls, by_call
from torchroof.roofline.place import Placement, place, traffic
from torchroof.tensors import OpCall
from torchroof.trace.dialects import matrix_precision
from torchroof.trace.table import NONE, Int32, TraceTable
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES, Registry


@dataclass(frozen=True, slots=True)
class Price:
    """One distinct call. ``reason`` says why something is unknown, else None."""

    op: str | None
    precision: str | None
    family: str | None
    flops: int | None
    flops_full: int | None
    bytes_read: int | None
    bytes_written: int | None
    bytes_upper: int | None
    placement: Placement
    reason: str | None

    @property
    def matrix(self) -> bool:
        return self.family in MATRIX_FAMILIES


@dataclass(frozen=True, slots=True)
class Prices:
    """``price[k]`` is the index into ``table`` of the call that kernel k belongs to."""

    table: tuple[Price, ...]
    price: Int32


def price_calls(
    trace: TraceTable, attribution: Attribution, registry: Registry, roofs: Mapping[int, Roof | None]
) -> Prices:
    """Price the call of every kernel that is in a row; the others get the price of no op."""
    kernels = attribution.kernels
    calls = Calls(trace, attribution, registry)
    pricer = _Pricer(registry, calls, roofs)
    names = trace.host.name[attribution.nest.span]
    precision_hint = by_call(kernels.op, kernels.name, [matrix_precision(n) for n in trace.names])
    cut_ops = attribution.cut_ops
    price = np.zeros(len(kernels), dtype=np.int32)
    columns = zip(kernels.op.tolist(), kernels.device.tolist(), kernels.reason.tolist(), strict=True)
    for k, (op, device, reason) in enumerate(columns):
        if reason or op == NONE:
            price[k] = pricer.find(None, NONE, device, None)
        else:
            price[k] = pricer.find(
                trace.names[names[op]], calls.find(op), device, precision_hint.get(op), cut=op in cut_ops
            )
    return Prices(tuple(pricer.prices), price)


class _Pricer:
    def __init__(self, registry: Registry, calls: Calls, roofs: Mapping[int, Roof | None]) -> None:
        self._registry, self._calls, self._roofs = registry, calls, roofs
        self._known: dict[tuple[object, ...], int] = {}
        self.prices: list[Price] = []

    def find(self, op: str | None, call: int, device: int, precision: str | None, cut: bool = False) -> int:
        """The place of a call's price. ``call`` is its place among the calls, NONE for no op."""
        key = (op, call, device, precision, cut)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.prices)
            known = OpCall("", ()) if call == NONE else self._calls.table[call]
            self.prices.append(self._price(op, known, device, precision, cut))
        return index

    def _price(self, op: str | None, call: OpCall, device: int, matrix: str | None, cut: bool) -> Price:
        priced = self._registry.price(call)
        if cut:
            priced = replace(priced, work=Work.zero(), reason=None)
        precision = self._registry.precision(call)
        if matrix and precision == "float32" and priced.family in MATRIX_FAMILIES:
            precision = matrix
        pattern = traffic(priced.work, call.name)
        placement = place(priced.work, priced.family, precision, self._roofs.get(device), pattern=pattern)
        work = priced.work
        reason = priced.reason
        if op is None:
            reason = "launched inside a layer but outside any op"
        elif not call.operands and call.scalars_known and priced.family is not None:
            reason = "the trace has no operand shapes (record_shapes was off)"
        return Price(
            op=op,
            precision=precision,
            family=priced.family,
            flops=work.flops,
            flops_full=work.flops_full,
            bytes_read=work.bytes_read,
            bytes_written=work.bytes_written,
            bytes_upper=work.bytes_upper,
            placement=placement,
            reason=reason or placement.reason,
        )
