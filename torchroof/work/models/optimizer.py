"""Optimizer steps: ops over lists of tensors, and whole steps in one op.

A trace tells the shapes in a list but not its element type: FLOPs are known then, bytes are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.matmul import multiply_adds
from torchroof.work.models.operands import agree, operand, optional_list
from torchroof.work.models.pointwise_table import ROWS, on_complex
from torchroof.work.promotion import dtype_operand
from torchroof.work.registry import Formula, Model, OnComplex

_Tensors = tuple[TensorSpec, ...]
_PER_ELEMENT = {row.op: row.flops for row in ROWS}
"""An op over lists does per element what the op of the same name does."""


def _elements(tensors: Iterable[TensorSpec]) -> int:
    return sum(tensor.numel for tensor in tensors)


def _dense(tensors: Iterable[TensorSpec]) -> list[TensorSpec]:
    return [tensor.dense() for tensor in tensors]


class _Foreach(NamedTuple):
    """One op over lists. ``lists`` is how many of its leading operands may be lists of tensors."""

    op: str
    lists: int
    reads_self: bool = True
    out_of_place: bool = True
    in_place: bool = True


def _operand_lists(call: OpCall, row: _Foreach) -> list[_Tensors]:
    """The lists among the operands; the first tensor operand gives the shapes of the result."""
    found: list[_Tensors] = []
    for index in range(row.lists):
        value = operand(call, index)
        if index == 0 and row.op == "pow" and isinstance(value, int | float):
            continue  # a number to the power of a list
        if index == 0 or _is_list(value):
            found.append(call.tensor_list(index))
    agree(call, bool(found) and len({len(tensors) for tensors in found}) == 1, "lists of different lengths")
    return found


def _is_list(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, TensorSpec) for item in value)


def _foreach(row: _Foreach, in_place: bool) -> Formula:
    flops = _PER_ELEMENT.get(row.op, 0)

    def work(call: OpCall) -> Work:
        lists = _operand_lists(call, row)
        own = lists[0]
        single = [v for v in call.operands if isinstance(v, TensorSpec)]
        read = chain.from_iterable(lists if row.reads_self else lists[1:])
        return Work.of(flops * _elements(own), [*read, *single], own if in_place else _dense(own))

    return work


def _norm(call: OpCall) -> Work:
    own = call.tensor_list(0)
    order = call.number(1, 2)
    flops = 0 if order in (float("inf"), float("-inf")) else 1 if order == 1 else 2
    dtypes = [dtype_operand(call, 2, tensor.dtype) for tensor in own]
    norms = [tensor.dense((), dtype) for tensor, dtype in zip(own, dtypes, strict=True)]
    return Work.of(flops * _elements(own), own, norms)


def _maxima(call: OpCall) -> Work:
    own = call.tensor_list(0)
    return Work.of(0, own, [tensor.dense(()) for tensor in own])


def _products(call: OpCall) -> Work:
    left, right = call.tensor_list(0), call.tensor_list(1)
    agree(call, len(left) == len(right), "lists of different lengths")
    flops, results = 0, []
    for a, b in zip(left, right, strict=True):
        agree(call, len(a.shape) == 2 == len(b.shape) and a.shape[1] == b.shape[0], "columns against rows")
        results.append(a.dense((a.shape[0], b.shape[1])))
        flops += multiply_adds(results[-1].numel * a.shape[1], a)
    return Work.of(flops, [*left, *right], results)


def _fills(call: OpCall) -> Work:
    own = call.tensor_list(0)
    return Work.of(0, [], own)


class _Step(NamedTuple):
    """What a fused step does around its rule: it unscales gradients and reads single tensors."""

    parameters: _Tensors
    gradients: _Tensors
    flops: int
    reads: list[TensorSpec | None]
    writes: list[TensorSpec]


def _step(call: OpCall, rate_at: int, scale_at: int) -> _Step:
    parameters, gradients = call.tensor_list(0), call.tensor_list(1)
    agree(call, len(parameters) == len(gradients), "a gradient for each parameter")
    singles = [call.optional_tensor(i) for i in (rate_at, scale_at, scale_at + 1)]
    unscaled = singles[1] is not None
    return _Step(
        parameters,
        gradients,
        _elements(parameters) if unscaled else 0,
        [*parameters, *gradients, *singles],
        [*parameters, *(gradients if unscaled else ())],
    )


def _adam(decoupled: bool) -> Formula:
    """13 FLOPs an element: first moment 3, second moment 4, root, division and add 3, update 3."""

    def work(call: OpCall) -> Work:
        step = _step(call, 6, 13)
        first, second, steps = call.tensor_list(2), call.tensor_list(3), optional_list(call, 5)
        largest = optional_list(call, 4) if call.flag(11) else ()
        decayed = call.number(9) != 0
        each = 13 + decayed * (1 if decoupled else 2)
        state = [*first, *second, *largest]
        flops = step.flops + each * _elements(step.parameters)
        return Work.of(flops, [*step.reads, *state, *steps], [*step.writes, *state])

    return work


def _sgd(call: OpCall) -> Work:
    step = _step(call, 5, 10)
    momentum, started = call.number(4), call.flag(9)
    each = 2 + 2 * (call.number(3) != 0)
    reads, writes = list(step.reads), list(step.writes)
    if momentum != 0:
        buffers = call.tensor_list(2)
        if not started:
            each += 3 if call.number(6) != 0 else 2
            reads += buffers
        each += 2 * call.flag(7)
        writes += buffers
    return Work.of(step.flops + each * _elements(step.parameters), reads, writes)


def _adagrad(call: OpCall) -> Work:
    step = _step(call, 4, 9)
    sums, steps = call.tensor_list(2), optional_list(call, 3)
    each = 7 + 2 * (call.number(6) != 0)
    flops = step.flops + each * _elements(step.parameters)
    return Work.of(flops, [*step.reads, *sums, *steps], [*step.writes, *sums])


def _unscale(call: OpCall) -> Work:
    own, inverse = call.tensor_list(0), call.tensor(2)
    return Work.of(_elements(own), [*own, inverse], own)


def _update_scale(call: OpCall) -> Work:
    scale, tracker, found = (call.tensor(i) for i in range(3))
    return Work.of(1, [scale, tracker, found], [scale, tracker])


_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg "
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY = "add sub mul div pow clamp_max clamp_min maximum minimum"
_FOREACH = (
    *(_Foreach(op, 1) for op in _UNARY.split()),
    *(_Foreach(op, 2) for op in _BINARY.split()),
    *(_Foreach(op, 3) for op in ("lerp", "addcmul", "addcdiv")),
    _Foreach("copy", 2, reads_self=False),
    _Foreach("clone", 1, in_place=False),
)


def _foreach_models(row: _Foreach) -> Iterable[Model]:
    flops = _PER_ELEMENT.get(row.op, 0)
    words = f"As the op of one tensor: {flops or 'no'} FLOPs per element. Reads {{}}, writes {{}}."
    read = "every list and tensor given" if row.reads_self else "the source list"
    hidden = on_complex(row.op)
    if row.out_of_place:
        yield _model(f"_foreach_{row.op}", _foreach(row, False), words.format(read, "a new list"), hidden)
    if row.in_place:
        yield _model(f"_foreach_{row.op}_", _foreach(row, True), words.format(read, "the first list"), hidden)


def _model(op: str, formula: Formula, words: str, on_complex: OnComplex = OnComplex.UNKNOWN) -> Model:
    return Model(f"aten::{op}", "optimizer", formula, words, on_complex=on_complex)


_UNSCALING = " 1 more where gradients are unscaled, and then they are written too."
_ADAM = (
    "13 FLOPs per element: first moment 3 (difference, product, sum), second moment 4 (square, two products, "
    "sum), denominator 3 (root, division, sum), update 3 (product, division, difference); weight decay {} "
    "where it is not 0." + _UNSCALING + " Reads parameters, gradients, both moments and step counts; writes "
    "parameters and moments; with amsgrad reads and writes the largest second moments."
)
_SGD = (
    "2 FLOPs per element (product, difference); 2 more with weight decay; 2 for momentum, 3 with dampening, "
    "none in the first step; 2 for nesterov." + _UNSCALING + " Reads parameters, gradients and momentum "
    "(not in the first step); writes parameters and momentum."
)
_ADAGRAD = (
    "7 FLOPs per element: sum of squares 2, update 5 (root, sum, product, division, difference); 2 more with "
    "weight decay." + _UNSCALING + " Reads parameters, gradients, sums and step counts; writes parameters "
    "and sums."
)
_NORM = (
    "2 FLOPs per element (a power and a sum), 1 for order 1, none for infinite order. Reads the list, writes "
    "one number a tensor."
)

MODELS: tuple[Model, ...] = (
    *chain.from_iterable(_foreach_models(row) for row in _FOREACH),
    _model("_foreach_zero", _fills, "No FLOPs. Reads nothing, writes a new list."),
    _model("_foreach_zero_", _fills, "No FLOPs. Reads nothing, writes the list."),
    _model("_foreach_norm", _norm, _NORM, OnComplex.HIDDEN),
    _model("_foreach_powsum", _norm, _NORM, OnComplex.HIDDEN),
    _model("_foreach_max", _maxima, "No FLOPs. Reads the list, writes one number a tensor."),
    _model(
        "_foreach_mm",
        _products,
        "2·m·n·k FLOPs a product. Reads both lists, writes a new one.",
        OnComplex.COUNTED,
    ),
    _model("_fused_adam_", _adam(decoupled=False), _ADAM.format("2")),
    _model("_fused_adamw_", _adam(decoupled=True), _ADAM.format("1")),
    _model("_fused_sgd_", _sgd, _SGD),
    _model("_fused_adagrad_", _adagrad, _ADAGRAD),
    _model(
        "_amp_foreach_non_finite_check_and_unscale_",
        _unscale,
        "1 product per element. Reads the list and the inverse scale, writes the list.",
    ),
    _model(
        "_amp_update_scale_",
        _update_scale,
        "1 product. Reads scale, growth count and the flag; writes scale and growth count.",
    ),
)
