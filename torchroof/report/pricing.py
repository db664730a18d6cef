"""Prices: the work of each op call, and where it lies under its device's roof.

Calls with the same op and operands have the same price, so each distinct call is priced once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from torchroof.device.roof import Roof
from torchroof.join.attribute import Attribution
from torchroof.roofline.place import Placement, place
from torchroof.tensors import DType, OpCall, Operand, TensorSpec, dtype_named
from torchroof.trace.dialects import functor_dtype, matrix_precision
from torchroof.trace.table import NONE, Int32, TraceTable
from torchroof.work.algebra import Work
from torchroof.work.registry import MATRIX_FAMILIES, Registry, precision_of

T = TypeVar("T")


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
    kernels, nest = attribution.kernels, attribution.nest
    names, signatures = trace.host.name[nest.span], trace.host.signature[nest.span]
    pricer = _Pricer(trace, registry, roofs, _parameter_dtype(attribution))
    precision_hint = _by_call(kernels.op, kernels.name, [matrix_precision(n) for n in trace.names])
    dtype_hint = _by_call(kernels.op, kernels.name, [functor_dtype(n) for n in trace.names])
    price = np.zeros(len(kernels), dtype=np.int32)
    columns = zip(kernels.op.tolist(), kernels.device.tolist(), kernels.reason.tolist(), strict=True)
    for k, (op, device, reason) in enumerate(columns):
        if reason or op == NONE:
            price[k] = pricer.find(None, NONE, device, None, None)
            continue
        signature = int(signatures[op])
        hint = dtype_hint.get(op)
        if hint is None and pricer.lacks_dtype(signature):
            hint = _child_dtype(trace, attribution, op)
        cut = op in attribution.cut_ops
        price[k] = pricer.find(int(names[op]), signature, device, precision_hint.get(op), hint, cut)
    return Prices(tuple(pricer.prices), price)


class _Pricer:
    def __init__(
        self, trace: TraceTable, registry: Registry, roofs: Mapping[int, Roof | None], default: DType | None
    ) -> None:
        self._trace, self._registry, self._roofs, self._default = trace, registry, roofs, default
        self._known: dict[tuple[object, ...], int] = {}
        self._lacking: dict[int, bool] = {}
        self.prices: list[Price] = []

    def lacks_dtype(self, signature: int) -> bool:
        """Whether the call has tensors whose element type the trace does not tell (lists of tensors)."""
        if signature == NONE:
            return False
        known = self._lacking.get(signature)
        if known is None:
            known = any(t.dtype is None for t in self._trace.signatures[signature].tensors())
            self._lacking[signature] = known
        return known

    def find(
        self,
        name: int | None,
        signature: int,
        device: int,
        precision: str | None,
        dtype: DType | None,
        cut: bool = False,
    ) -> int:
        if not self.lacks_dtype(signature):
            dtype = None
        key = (name, signature, device, precision, dtype, cut)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.prices)
            self.prices.append(self._price(name, signature, device, precision, dtype or self._default, cut))
        return index

    def _price(
        self, name: int | None, signature: int, device: int, matrix: str | None, dtype: DType | None, cut: bool
    ) -> Price:
        op = None if name is None else self._trace.names[name]
        call = OpCall(op or "", ()) if signature == NONE else self._trace.signatures[signature]
        call = _with_dtype(call, dtype)
        priced = self._registry.price(call)
        if cut:
            priced = replace(priced, work=Work.zero(), reason=None)
        precision = precision_of(call)
        if matrix and precision == "float32" and priced.family in MATRIX_FAMILIES:
            precision = matrix
        placement = place(priced.work, priced.family, precision, self._roofs.get(device))
        work = priced.work
        reason = priced.reason
        if op is None:
            reason = "launched inside a layer but outside any op"
        elif signature == NONE and priced.family is not None:
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


def _by_call(op: Int32, name: Int32, answers: list[T | None]) -> dict[int, T]:
    """What any kernel of a call tells by its name; the first kernel that tells something is believed."""
    telling = np.array([a is not None for a in answers], dtype=bool)
    found: dict[int, T] = {}
    if not telling.any():
        return found
    for k in np.flatnonzero(telling[name] & (op != NONE)).tolist():
        answer = answers[int(name[k])]
        if answer is not None:
            found.setdefault(int(op[k]), answer)
    return found


def _parameter_dtype(attribution: Attribution) -> DType | None:
    """The one element type of all parameters, where the capture knows them and they agree."""
    facts = attribution.facts
    types = {t.dtype for layer in facts.layers for t in layer.parameters} if facts else set()
    return dtype_named(types.pop()) if len(types) == 1 else None


def _child_dtype(trace: TraceTable, attribution: Attribution, op: int) -> DType | None:
    """The element type of the first tensor with one inside an op, such as the plain ops of a foreach op on a CPU."""
    nest = attribution.nest
    signatures = trace.host.signature
    for i in range(op + 1, len(nest)):
        if nest.claim[i] != nest.claim[op] or nest.claim[i] == NONE:
            return None
        signature = int(signatures[nest.span[i]])
        tensors = trace.signatures[signature].tensors() if signature != NONE else ()
        for tensor in tensors:
            if tensor.dtype is not None and tensor.shape:
                return tensor.dtype
    return None


def _with_dtype(call: OpCall, dtype: DType | None) -> OpCall:
    if dtype is None or all(t.dtype is not None for t in call.tensors()):
        return call

    def fill(operand: Operand) -> Operand:
        if isinstance(operand, TensorSpec):
            return operand if operand.dtype else replace(operand, dtype=dtype)
        if isinstance(operand, tuple):
            return tuple(fill(v) if isinstance(v, TensorSpec) else v for v in operand)  # type: ignore[return-value]
        return operand

    return replace(call, operands=tuple(fill(o) for o in call.operands))
