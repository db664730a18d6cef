"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from torchroof.tensors import DTYPES, OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, known_zero, operand, optional_list, shaped
from torchroof.work.promotion import dtype_operand
from torchroof.work.registry import Formula, Model, OnComplex


def multiply_adds(count: int, like: TensorSpec) -> int:
    """FLOPs of so many multiply-adds: 2 each, 8 for complex numbers (4 products and 4 sums of parts)."""
    return count * (8 if like.dtype is not None and like.dtype.kind == "complex" else 2)


def packed(like: TensorSpec) -> int:
    """Numbers in one stored element: 2 for float4 pairs."""
    return 2 if like.dtype is not None and like.dtype.name == "float4_e2m1fn_x2" else 1


def _product(call: OpCall, left: int, right: int, batched: bool) -> tuple[TensorSpec, TensorSpec, int, TensorSpec]:
    """Both factors, FLOPs and the result of ``(…, m, k) @ (…, k, n)``."""
    rank = 3 if batched else 2
    a, b = shaped(call, left, rank), shaped(call, right, rank)
    agree(call, a.shape[-1] == b.shape[-2], f"{a.shape[-1]} columns against {b.shape[-2]} rows")
    agree(call, a.shape[:-2] == b.shape[:-2], "batches differ")
    result = a.dense((*a.shape[:-1], b.shape[-1]))
    return a, b, multiply_adds(result.numel * a.shape[-1] * packed(a), a), result


def _plain(batched: bool) -> Formula:
    def work(call: OpCall) -> Work:
        a, b, flops, result = _product(call, 0, 1, batched)
        if isinstance(operand(call, 2), bool | int | str):
            result = result.dense(dtype=dtype_operand(call, 2, None))
        return Work.of(flops, [a, b], [result])

    return work


def _accumulating(batched: bool, summed: bool = False) -> Formula:
    """``beta · self + alpha · product``; ``summed`` adds the products of a batch into one matrix."""

    def work(call: OpCall) -> Work:
        a, b, flops, result = _product(call, 1, 2, batched)
        if summed:
            result = result.dense(result.shape[1:])
        # The overload with an output type has it before beta; `out=` appends a tensor instead.
        typed = len(call.operands) == 6 and not isinstance(operand(call, 5), TensorSpec | bool)
        if typed:
            result = result.dense(dtype=dtype_operand(call, 3, result.dtype))
        kept = None if known_zero(call, 4 if typed else 3) else call.tensor(0)
        return Work.of(flops, [kept, a, b], [result])

    return work


def _mv(call: OpCall) -> Work:
    return _matrix_vector(call, 0, None)


def _addmv(call: OpCall) -> Work:
    return _matrix_vector(call, 1, None if known_zero(call, 3) else call.tensor(0))


def _matrix_vector(call: OpCall, at: int, kept: TensorSpec | None) -> Work:
    matrix, vector = shaped(call, at, 2), shaped(call, at + 1, 1)
    agree(call, matrix.shape[1] == vector.shape[0], "columns of the matrix against the vector")
    return Work.of(multiply_adds(matrix.numel, matrix), [kept, matrix, vector], [matrix.dense(matrix.shape[:1])])


def _dot(call: OpCall) -> Work:
    a, b = shaped(call, 0, 1), shaped(call, 1, 1)
    agree(call, a.shape == b.shape, "lengths differ")
    return Work.of(multiply_adds(a.numel, a), [a, b], [a.dense(())])


def _outer(call: OpCall) -> Work:
    a, b = shaped(call, 0, 1), shaped(call, 1, 1)
    result = a.dense((a.shape[0], b.shape[0]))
    return Work.of(_single_products(result), [a, b], [result])


def _addr(call: OpCall) -> Work:
    a, b = shaped(call, 1, 1), shaped(call, 2, 1)
    result = a.dense((a.shape[0], b.shape[0]))
    if known_zero(call, 3):
        return Work.of(_single_products(result), [a, b], [result])
    return Work.of(multiply_adds(result.numel, a), [call.tensor(0), a, b], [result])


def _single_products(result: TensorSpec) -> int:
    """FLOPs of one product an element: 1, 6 for complex numbers."""
    return result.numel * (6 if result.dtype is not None and result.dtype.kind == "complex" else 1)


def _int_mm(call: OpCall) -> Work:
    a, b, flops, result = _product(call, 0, 1, batched=False)
    return Work.of(flops, [a, b], [result.dense(dtype=DTYPES["int32"])])


def _scaled_mm(call: OpCall) -> Work:
    a, b, flops, result = _product(call, 0, 1, batched=False)
    extra = [call.tensor(2), call.tensor(3), call.optional_tensor(4), call.optional_tensor(5)]
    return Work.of(flops, [a, b, *extra], [result.dense(dtype=dtype_operand(call, 6, a.dtype))])


def _scaled_mm_lists(call: OpCall) -> Work:
    a, b, flops, result = _product(call, 0, 1, batched=False)
    scales = (*optional_list(call, 2), *optional_list(call, 5))
    return Work.of(
        flops, [a, b, *scales, call.optional_tensor(8)], [result.dense(dtype=dtype_operand(call, 9, a.dtype))]
    )


def _grouped(offsets: int, out_type: int, others: tuple[int, ...], lists: tuple[int, ...] = ()) -> Formula:
    """Products of groups that lie side by side in one matrix; where one ends is data on the device."""

    def work(call: OpCall) -> Work:
        a, b = call.tensor(0), call.tensor(1)
        ranks = (len(a.shape), len(b.shape))
        agree(call, ranks in {(2, 2), (2, 3), (3, 2), (3, 3)}, "matrices or stacks of matrices are needed")
        agree(call, a.shape[-1] == b.shape[-2], "columns against rows")
        rows, columns = a.shape[-2], b.shape[-1]
        ends = call.optional_tensor(offsets)
        if ranks == (3, 3):
            agree(call, a.shape[0] == b.shape[0], "groups differ")
            shape: tuple[int, ...] = (a.shape[0], rows, columns)
        elif ranks == (2, 2):
            shape = (*call.tensor(offsets).shape, rows, columns)
        else:
            shape = (rows, columns)
        groups = a.shape[0] if ranks == (3, 3) else 1
        flops = multiply_adds(groups * rows * columns * a.shape[-1] * packed(a), a)
        result = a.dense(shape, dtype_operand(call, out_type, a.dtype))
        more = (tensor for index in lists for tensor in optional_list(call, index))
        return Work.of(flops, [a, b, ends, *map(call.optional_tensor, others), *more], [result])

    return work


def _linear(call: OpCall) -> Work:
    """``(…, k)`` by a weight ``(n, k)`` as oneDNN takes it."""
    x, weight = call.tensor(0), shaped(call, 1, 2)
    agree(call, bool(x.shape) and x.shape[-1] == weight.shape[1], "features of the input")
    result = x.dense((*x.shape[:-1], weight.shape[0]))
    flops = multiply_adds(result.numel * weight.shape[1], x)
    return Work.of(flops, [x, weight, call.optional_tensor(2)], [result])


def _linear_backward_input(call: OpCall) -> Work:
    gradient, weight = call.tensor(1), shaped(call, 2, 2)
    agree(call, bool(gradient.shape) and gradient.shape[-1] == weight.shape[0], "features of the gradient")
    result = gradient.dense((*gradient.shape[:-1], weight.shape[1]))
    return Work.of(multiply_adds(gradient.numel * weight.shape[1], gradient), [gradient, weight], [result])


def _linear_backward_weights(call: OpCall) -> Work:
    gradient, x, weight = call.tensor(0), call.tensor(1), shaped(call, 2, 2)
    agree(call, bool(gradient.shape and x.shape), "tensors with features")
    agree(call, prod(gradient.shape[:-1]) == prod(x.shape[:-1]), "rows of gradient and input")
    bias = weight.dense(weight.shape[:1]) if call.flag(3) else None
    flops = multiply_adds(gradient.numel * x.shape[-1], gradient)
    return Work.of(flops, [gradient, x], [weight.dense(), bias])


_ADDS = " It reads self too, unless beta is 0; alpha and beta count no FLOPs."


def _model(op: str, formula: Callable[[OpCall], Work], words: str, precise: tuple[int, ...] = ()) -> Model:
    family = "pointwise" if formula in (_outer, _addr) else "matmul"  # one product an element and no sum
    return Model(f"aten::{op}", family, formula, words, precise=precise, on_complex=OnComplex.COUNTED)


MODELS: tuple[Model, ...] = (
    _model("mm", _plain(False), "2·m·n·k FLOPs; reads both matrices, writes m×n."),
    _model("bmm", _plain(True), "2·b·m·n·k FLOPs; reads both stacks, writes b×m×n."),
    _model("addmm", _accumulating(False), "2·m·n·k FLOPs; reads both matrices, writes m×n." + _ADDS),
    _model("addmm_", _accumulating(False), "2·m·n·k FLOPs; reads both matrices, writes m×n." + _ADDS),
    _model("baddbmm", _accumulating(True), "2·b·m·n·k FLOPs; reads both stacks, writes b×m×n." + _ADDS),
    _model("baddbmm_", _accumulating(True), "2·b·m·n·k FLOPs; reads both stacks, writes b×m×n." + _ADDS),
    _model("addbmm", _accumulating(True, True), "2·b·m·n·k FLOPs; reads both stacks, writes m×n." + _ADDS),
    _model("addbmm_", _accumulating(True, True), "2·b·m·n·k FLOPs; reads both stacks, writes m×n." + _ADDS),
    _model(
        "_addmm_activation",
        _accumulating(False),
        "2·m·n·k FLOPs, the fused activation counts none; reads both matrices, writes m×n." + _ADDS,
    ),
    _model("mv", _mv, "2·m·n FLOPs; reads matrix and vector, writes m."),
    _model("addmv", _addmv, "2·m·n FLOPs; reads matrix and vector, writes m." + _ADDS),
    _model("addmv_", _addmv, "2·m·n FLOPs; reads matrix and vector, writes m." + _ADDS),
    _model("dot", _dot, "2·n FLOPs; reads both vectors, writes one element."),
    _model("vdot", _dot, "2·n FLOPs; reads both vectors, writes one element."),
    _model("outer", _outer, "m·n FLOPs, a product each and no sum; reads both vectors, writes m×n."),
    _model("ger", _outer, "m·n FLOPs, a product each and no sum; reads both vectors, writes m×n."),
    _model("addr", _addr, "2·m·n FLOPs, m·n when beta is 0; reads both vectors, writes m×n." + _ADDS),
    _model("addr_", _addr, "2·m·n FLOPs, m·n when beta is 0; reads both vectors, writes m×n." + _ADDS),
    _model("_int_mm", _int_mm, "2·m·n·k operations; reads both matrices, writes m×n of int32."),
    _model(
        "_scaled_mm",
        _scaled_mm,
        "2·m·n·k FLOPs, scaling counts none, a float4 pair is two of k; reads both matrices, their scales, "
        "and bias and result scale where given; writes m×n of the output type.",
        (0, 1),
    ),
    _model("_scaled_mm_v2", _scaled_mm_lists, "As _scaled_mm, with lists of scales.", (0, 1)),
    _model(
        "_grouped_mm",
        _grouped(2, 4, (3,)),
        "2·m·n·k FLOPs over the whole of the grouped axis (times the groups when both are stacks); reads "
        "both operands, offsets and bias, writes the result. The offsets are taken to cover the axis.",
    ),
    _model(
        "_scaled_grouped_mm",
        _grouped(4, 7, (2, 3, 5, 6)),
        "As _grouped_mm; reads the scales too; writes the output type.",
        (0, 1),
    ),
    _model(
        "_scaled_grouped_mm_v2",
        _grouped(8, 10, (9,), (2, 5)),
        "As _grouped_mm; reads the scales too; writes the output type.",
        (0, 1),
    ),
    _model("mkldnn_linear", _linear, "2·rows·n·k FLOPs; reads input, weight and bias, writes rows×n."),
    _model(
        "mkldnn_linear_backward_input",
        _linear_backward_input,
        "2·rows·n·k FLOPs; reads gradient and weight, writes rows×k.",
    ),
    _model(
        "mkldnn_linear_backward_weights",
        _linear_backward_weights,
        "2·rows·n·k FLOPs, the bias gradient counts none; reads gradient and input, writes n×k and the "
        "bias gradient where there is a bias.",
    ),
)
