"""Pointwise ops: so many FLOPs per element of the result, each operand read once, the result written once.

One FLOP per elementary operation: addition, subtraction, negation, multiplication, division, power, square
root, exponential, logarithm, trigonometric and hyperbolic functions, erf. Comparison, selection, rounding,
absolute value, sign, logic, bits and random numbers count 0, and so do fused constant factors (alpha,
value). Integers count like floats. Complex arithmetic is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchroof.tensors import DTYPES, OpCall, Operand, Scalar, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.pointwise_table import ROWS, Row, on_complex
from torchroof.work.promotion import BOOL, FLOAT32, FLOAT64, result_type
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import broadcast, out_operand, replaced


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The operands that count: all tensors that are read, and what decides the result's type."""

    tensors: tuple[TensorSpec, ...]
    typed: tuple[TensorSpec | Scalar, ...]


def _inputs(call: OpCall, row: Row) -> _Inputs:
    tensors: list[TensorSpec] = []
    typed: list[TensorSpec | Scalar] = []
    for index, sort in enumerate(row.operands):
        value = call.operands[index] if index < len(call.operands) else None
        if sort == ".":
            continue
        if isinstance(value, TensorSpec):
            tensors.append(value)
        elif not _may_lack_a_tensor(call, sort, value):
            raise Unknown(f"operand {index} of {call.name} is not a tensor of known shape")
        if sort.isupper() and isinstance(value, TensorSpec | bool | int | float):
            typed.append(value)
    if not tensors:
        raise Unknown(f"no operand of {call.name} is a tensor of known shape")
    return _Inputs(tuple(tensors), tuple(_as_number(v) if len(typed) > 1 else v for v in typed))


def _may_lack_a_tensor(call: OpCall, sort: str, value: Operand) -> bool:
    if isinstance(value, bool | int | float):
        return sort not in "Tt"
    return value is None and (sort in "Oo" or (sort in "Ee" and not call.scalars_known))


def _as_number(value: TensorSpec | Scalar) -> TensorSpec | Scalar:
    """A Python number is recorded as a zero-dimensional float64 tensor, and must not decide like one."""
    if isinstance(value, TensorSpec) and not value.shape and value.dtype == FLOAT64:
        return 1.0
    return value


def _result(call: OpCall, row: Row, inputs: _Inputs) -> TensorSpec:
    shape = broadcast(t.shape for t in inputs.tensors)
    out = out_operand(call, len(row.operands))
    if out is not None:
        return TensorSpec(shape, out.dtype)
    if row.result == "bool":
        return TensorSpec(shape, BOOL)
    dtype = result_type(inputs.typed)
    if row.result == "float" and dtype is not None and dtype.kind in ("int", "bool"):
        rounding = row.op == "div" and len(call.operands) == 3 and call.operands[2] is not None
        dtype = dtype if rounding else FLOAT32
    if row.result == "real" and dtype is not None and dtype.kind == "complex":
        dtype = DTYPES[f"float{dtype.bits // 2}"]
    return TensorSpec(shape, dtype)


def _functional(row: Row) -> Formula:
    def formula(call: OpCall) -> Work:
        inputs = _inputs(call, row)
        result = _result(call, row, inputs)
        extra = tuple(result.dense(dtype=DTYPES[name] if name else None) for name in row.extra)
        return Work.of(row.flops * result.numel, inputs.tensors, (result, *extra))

    return formula


def _in_place(row: Row) -> Formula:
    def formula(call: OpCall) -> Work:
        inputs, own = _inputs(call, row), call.tensor(0)
        return Work.of(row.flops * own.numel, inputs.tensors, (own,))

    return formula


def _random_fill(call: OpCall) -> Work:
    """Writes self; reads a tensor of parameters where one is given (``bernoulli_(p)``)."""
    own, rest = call.tensor(0), [v for v in call.operands[1:] if isinstance(v, TensorSpec)]
    return Work.of(0, rest, (own,))


def _glu(call: OpCall) -> Work:
    own, dim = call.tensor(0), call.integer(1, -1)
    if not own.shape:
        raise Unknown("glu needs a dimension to halve")
    result = own.dense(replaced(own.shape, dim, own.shape[dim % len(own.shape)] // 2))
    return Work.of(5 * result.numel, (own,), (result,))


def _glu_backward(call: OpCall) -> Work:
    grad, own = call.tensor(0), call.tensor(1)
    return Work.of(9 * grad.numel, (grad, own), (own.dense(),))


def _rrelu(call: OpCall) -> Work:
    """(self, noise, lower, upper, training, …): in training the slopes are drawn and kept as noise."""
    own, noise, training = call.tensor(0), call.tensor(1), call.flag(4, False)
    result = own if call.name.endswith("_") else own.dense()
    return Work.of(own.numel, (own,), (result, noise.dense() if training else None))


def _rrelu_backward(call: OpCall) -> Work:
    """(grad, self, noise, lower, upper, training, self is the result)."""
    grad, factors = call.tensor(0), call.tensor(2 if call.flag(5) else 1)
    return Work.of(grad.numel, (grad, factors), (grad.dense(),))


_RANDOM = (
    *("normal_", "uniform_", "random_", "bernoulli_"),
    *("exponential_", "geometric_", "log_normal_", "cauchy_"),
)


def _models() -> tuple[Model, ...]:
    found = []
    for row in ROWS:
        words = f"{row.words}: {row.flops} per element of the result; reads every operand, writes the result"
        found.append(Model(f"aten::{row.op}", "pointwise", _functional(row), words, on_complex=on_complex(row.op)))
        if row.in_place:
            words = words.replace("writes the result", "writes self")
            formula = _in_place(replace(row, extra=()))
            found.append(Model(f"aten::{row.op}_", "pointwise", formula, words, on_complex=on_complex(row.op)))
    words = "random numbers count 0 FLOPs; writes self"
    found.extend(Model(f"aten::{name}", "pointwise", _random_fill, words) for name in _RANDOM)
    words = "a sigmoid (4) and a product: 5 FLOPs per element of the result; reads self, writes half of it"
    found.append(Model("aten::glu", "pointwise", _glu, words))
    words = "one product, random slopes count 0: 1 per element; reads self, writes the result, in training the slopes"
    found.extend(
        Model(f"aten::{name}", "pointwise", _rrelu, words) for name in ("rrelu_with_noise", "rrelu_with_noise_")
    )
    words = "one product: 1 per element; reads gradient and slopes (evaluation: self), writes the result"
    found.append(Model("aten::rrelu_with_noise_backward", "pointwise", _rrelu_backward, words))
    words = "sigmoid 4, gradient of the first half 1, of the second 4: 9 FLOPs per element of the gradient"
    found.append(Model("aten::glu_backward", "pointwise", _glu_backward, words))
    return tuple(found)


MODELS: tuple[Model, ...] = _models()
