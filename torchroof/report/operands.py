"""The call of each op that is charged: what the trace recorded of it, completed by what it shows elsewhere.

Traces leave out lists of indices, element types in lists of tensors and, in older files, numbers. Kernel names,
the ops inside a call, its autograd node and the parameters that a capture knows tell some of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from torchroof.join.attribute import Attribution
from torchroof.join.lineage import NameKind
from torchroof.report.judging import tf32_flag
from torchroof.tensors import DType, OpCall, Operand, TensorSpec, dtype_named
from torchroof.trace.dialects import kernel_dtype
from torchroof.trace.table import NONE, Int32, TraceTable
from torchroof.work.inside import completed, is_completed
from torchroof.work.registry import MATRIX_FAMILIES, Registry

T = TypeVar("T")


class Calls:
    """Calls by the span that is charged. A call that its own record prices in full is not looked at further.

    ``table`` has each distinct call once.
    """

    def __init__(self, trace: TraceTable, attribution: Attribution, registry: Registry) -> None:
        self._trace, self._attribution, self._registry = trace, attribution, registry
        kernels, nest = attribution.kernels, attribution.nest
        self._names: list[int] = nest.name.tolist()
        self._recorded: list[int] = trace.host.signature[nest.span].tolist()
        self._kernel_dtype = by_call(kernels.op, kernels.name, [kernel_dtype(n) for n in trace.names])
        self._parameters = _parameter_dtype(attribution)
        self.table: list[OpCall] = []
        self._place: dict[OpCall, int] = {}
        self._settled: dict[tuple[int, int], int | None] = {}
        self._nodes: dict[int, OpCall] | None = None

    def find(self, op: int) -> int:
        """The place in the table of a span's call. ``op`` is a position in the nest."""
        key = name, signature = self._names[op], self._recorded[op]
        if key not in self._settled:
            call = self._as_recorded(name, signature)
            self._settled[key] = None if call is None else self._add(call)
        place = self._settled[key]
        return self._add(self._completed(op, self._trace.signatures[signature])) if place is None else place

    def tf32_flag(self, op: int, place: int) -> bool | None:
        """Whether a convolution was told that it may use TF32: by its own operand, or that of the op inside."""
        call = self.table[place]
        if self._registry.family(call.name) != "convolution":
            return None
        told = (tf32_flag(each) for each in (call, *self._inner(op)))
        return next((flag for flag in told if flag is not None), None)

    def _add(self, call: OpCall) -> int:
        place = self._place.setdefault(call, len(self.table))
        if place == len(self.table):
            self.table.append(call)
        return place

    def _as_recorded(self, name: int, signature: int) -> OpCall | None:
        """The call where its record suffices or is all that there is; None where more is to be found."""
        if signature == NONE:
            return OpCall(self._trace.names[name], ())
        call = self._trace.signatures[signature]
        lacking = _lacks_dtype(call) or (is_completed(call.name) and self._registry.price(call).reason is not None)
        return None if lacking else call

    def _completed(self, op: int, call: OpCall) -> OpCall:
        inner = tuple(self._inner(op))
        if is_completed(call.name):
            call = completed(call, inner, self._node(op))
        if not _lacks_dtype(call):
            return call
        dtype = self._kernel_dtype.get(op) or _first_dtype(inner)
        if dtype is None and self._registry.family(call.name) == "optimizer":
            dtype = self._parameters
        return with_dtype(call, dtype)

    def _inner(self, op: int) -> Iterator[OpCall]:
        """The calls inside a call that claims them, in order."""
        nest, host = self._attribution.nest, self._trace.host
        for i in range(op + 1, len(nest)):
            if nest.claim[i] != nest.claim[op] or nest.claim[i] == NONE:
                return
            signature = int(host.signature[nest.span[i]])
            if signature != NONE:
                yield self._trace.signatures[signature]

    def _node(self, op: int) -> OpCall | None:
        """The autograd node that a call made, if it ran in the file: its operand is the result's gradient."""
        if self._nodes is None:
            nest, forward = self._attribution.nest, self._attribution.links.forward
            signature = self._trace.host.signature[nest.span]
            known = np.flatnonzero((forward != NONE) & (signature != NONE))
            pairs = zip(forward[known].tolist(), signature[known].tolist(), strict=True)
            self._nodes = {f: self._trace.signatures[s] for f, s in pairs}
        return self._nodes.get(op)


def surpassed(trace: TraceTable, attribution: Attribution, registry: Registry) -> frozenset[int]:
    """Products (positions in the nest) inside which more was multiplied than their operands tell: under vmap an op
    is recorded with the operands of one sample, and what runs inside it with those of all."""
    nest, signatures = attribution.nest, trace.host.signature[attribution.nest.span]
    families = [registry.family(name) in MATRIX_FAMILIES for name in trace.names]
    product = np.array(families, dtype=bool)[nest.name] & (nest.name_kind == NameKind.MODELLED)
    inner = np.flatnonzero(product & (nest.claim != NONE) & (nest.claim != np.arange(len(nest))))
    inner = inner[product[nest.claim[inner]]]
    flops: dict[int, int | None] = {}

    def full(op: int) -> int | None:
        signature = int(signatures[op])
        if signature == NONE:
            return None
        if signature not in flops:
            flops[signature] = registry.price(trace.signatures[signature]).work.flops_full
        return flops[signature]

    done: dict[int, int] = {}
    covered: dict[int, int] = {}
    for op, claim in zip(inner.tolist(), nest.claim[inner].tolist(), strict=True):
        if nest.start_ns[op] >= covered.get(claim, nest.start_ns[op]):  # else inside one that is counted
            covered[claim] = int(nest.end_ns[op])
            done[claim] = done.get(claim, 0) + (full(op) or 0)
    return frozenset(claim for claim, total in done.items() if (own := full(claim)) is not None and total > own)


def by_call(op: Int32, name: Int32, answers: list[T | None]) -> dict[int, T]:
    """What any kernel of a call tells by its name; the first kernel that tells something is believed."""
    telling = np.array([a is not None for a in answers], dtype=bool)
    found: dict[int, T] = {}
    if not telling.any():
        return found
    telling_kernels = np.flatnonzero(telling[name] & (op != NONE))
    for at, number in zip(op[telling_kernels].tolist(), name[telling_kernels].tolist(), strict=True):
        answer = answers[number]
        if answer is not None:
            found.setdefault(at, answer)
    return found


def _parameter_dtype(attribution: Attribution) -> DType | None:
    """The one element type of all parameters, where the capture knows them and they agree."""
    facts = attribution.facts
    types = {t.dtype for layer in facts.layers for t in layer.parameters} if facts else set()
    return dtype_named(types.pop()) if len(types) == 1 else None


def _lacks_dtype(call: OpCall) -> bool:
    return any(t.dtype is None for t in call.tensors())


def _first_dtype(calls: tuple[OpCall, ...]) -> DType | None:
    """The element type of the first tensor with one, such as of the plain ops of a foreach op on a CPU."""
    tensors = (tensor for call in calls for tensor in call.tensors() if tensor.dtype is not None and tensor.shape)
    return next((tensor.dtype for tensor in tensors), None)


def with_dtype(call: OpCall, dtype: DType | None) -> OpCall:
    """The call with an element type for the tensors that have none."""
    if dtype is None:
        return call

    def fill(operand: Operand) -> Operand:
        if isinstance(operand, TensorSpec):
            return operand if operand.dtype else replace(operand, dtype=dtype)
        if isinstance(operand, tuple):
            return tuple(fill(v) if isinstance(v, TensorSpec) else v for v in operand)  # type: ignore[return-value]
        return operand

    return replace(call, operands=tuple(fill(o) for o in call.operands))
