"""Prices: the work of each op call, and where it lies under its device's roof.

Calls with the same op and operands have the same price, so each distinct call is priced once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from torchroof.device.roof import Roof
from torchroof.join.attribute import Attribution
from torchroof.join.columns import pick
from torchroof.report.judging import Flags, Judged, judge
from torchroof.report.operands import Calls, by_call, surpassed
from torchroof.report.tax import Tax, tax_of_call, tax_of_kernel
from torchroof.roofline.place import Placement, place, traffic
from torchroof.tensors import OpCall
from torchroof.trace.dialects import KernelMath, kernel_math
from torchroof.trace.table import NONE, Int32, TraceTable
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES, Priced, Registry


@dataclass(frozen=True, slots=True)
class Price:
    """One distinct call. ``reason`` says why something is unknown, else None."""

    op: str | None
    precision: str | None
    pipe: str | None
    judged: str | None
    """Why this precision and pipe."""
    family: str | None
    flops: int | None
    flops_full: int | None
    bytes_read: int | None
    bytes_written: int | None
    bytes_upper: int | None
    placement: Placement
    reason: str | None
    flops_beside: int = 0
    """Those of ``flops`` that are no multiply-adds of an op that is a product of matrices."""
    tax: Tax | None = None

    @property
    def matrix(self) -> bool:
        return self.family in MATRIX_FAMILIES


class Partial(Enum):
    """Why the operands of a call do not tell the work of its kernels."""

    NO = "they do"
    CUT = "the recording cut the op: its work is that of its other part"
    SAMPLE = "they are those of one sample"


@dataclass(frozen=True, slots=True)
class Prices:
    """``price[k]`` is the index into ``table`` of the call that kernel k belongs to."""

    table: tuple[Price, ...]
    price: Int32
    tax: NDArray[np.str_]
    """Of each kernel: a Tax, or the empty text."""


def price_calls(
    trace: TraceTable, attribution: Attribution, registry: Registry, roofs: Mapping[int, Roof | None]
) -> Prices:
    """Price the call of every kernel that is in a row; the others get the price of no op."""
    kernels = attribution.kernels
    calls = Calls(trace, attribution, registry)
    pricer = _Pricer(registry, calls, roofs, Flags.of(attribution.facts))
    names = pick(attribution.nest.name, kernels.op).tolist()
    shown = by_call(kernels.op, kernels.name, [kernel_math(n) for n in trace.names])
    cut_ops, of_a_sample = attribution.cut_ops, surpassed(trace, attribution, registry)
    price = np.zeros(len(kernels), dtype=np.int32)
    columns = zip(kernels.op.tolist(), names, kernels.device.tolist(), kernels.reason.tolist(), strict=True)
    for k, (op, number, device, reason) in enumerate(columns):
        if reason or op == NONE:
            price[k] = pricer.find(None, NONE, device)
        else:
            call, name = calls.find(op), trace.names[number]
            seen = shown.get(op)
            allowed = None if seen else calls.tf32_flag(op, call)
            partial = Partial.CUT if op in cut_ops else Partial.SAMPLE if op in of_a_sample else Partial.NO
            price[k] = pricer.find(name, call, device, seen, allowed, partial)
    by_name = np.array([tax_of_kernel(n) or "" for n in trace.names], dtype=np.str_)
    of_call = np.array([p.tax or "" for p in pricer.prices], dtype=np.str_)[price]
    return Prices(tuple(pricer.prices), price, np.where(of_call != "", of_call, by_name[kernels.name]))


class _Pricer:
    def __init__(self, registry: Registry, calls: Calls, roofs: Mapping[int, Roof | None], flags: Flags) -> None:
        self._registry, self._calls, self._roofs, self._flags = registry, calls, roofs, flags
        self._known: dict[tuple[object, ...], int] = {}
        self.prices: list[Price] = []

    def find(
        self,
        op: str | None,
        call: int,
        device: int,
        shown: KernelMath | None = None,
        allowed: bool | None = None,
        partial: Partial = Partial.NO,
    ) -> int:
        """The place of a call's price. ``call`` is its place among the calls, NONE for no op.

        ``shown`` is what its kernels' names show of their arithmetic, ``allowed`` its TF32 flag.
        """
        key = (op, call, device, shown, allowed, partial)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.prices)
            known = OpCall("", ()) if call == NONE else self._calls.table[call]
            priced = self._registry.price(known)
            if partial is Partial.CUT:
                priced = replace(priced, work=Work.zero(), reason=None)
            elif partial is Partial.SAMPLE:
                why = f"{op} was recorded with the operands of one sample, as under vmap"
                priced = replace(priced, work=Work.unknown(), reason=why)
            precision, roof = self._registry.precision(known), self._roofs.get(device)
            judged = judge(precision, priced.family, shown, allowed, self._flags, roof)
            self.prices.append(_price(op, known, priced, judged, roof))
        return index


def _price(op: str | None, call: OpCall, priced: Priced, judged: Judged, roof: Roof | None) -> Price:
    pattern = traffic(priced.work, call.name)
    placement = place(priced.work, priced.family, judged.precision, roof, pipe=judged.pipe, pattern=pattern)
    work = priced.work
    reason = priced.reason
    if op is None:
        reason = "launched inside a layer but outside any op"
    elif not call.operands and call.scalars_known and priced.family is not None:
        reason = "the trace has no operand shapes (record_shapes was off)"
    return Price(
        op=op,
        precision=judged.precision,
        pipe=judged.pipe if op is not None else None,
        judged=judged.why if placement.compute is not None and work.flops else None,
        family=priced.family,
        flops=work.flops,
        flops_full=work.flops_full,
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        bytes_upper=work.bytes_upper,
        placement=placement,
        reason=reason or placement.reason,
        flops_beside=work.flops_beside,
        tax=tax_of_call(call),
    )
