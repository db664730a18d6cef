"""Products with weights in few bits, or with half of them left out.

A packed weight counts the bytes that are stored, whatever its elements stand for. The multiply-adds are those of
the numbers that it unpacks to. A product computes in the type of its activations unless both factors are narrow.
"""

from __future__ import annotations

from math import prod

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.matmul import multiply_adds
from torchroof.work.models.operands import agree, known_zero, shaped
from torchroof.work.promotion import FLOAT32, dtype_operand
from torchroof.work.registry import Formula, Model


def _rows(x: TensorSpec) -> int:
    return prod(x.shape[:-1])


def _product(call: OpCall, x: TensorSpec, outputs: int, reads: list[TensorSpec | None], result: TensorSpec) -> Work:
    """2·rows·outputs·features of x."""
    agree(call, bool(x.shape) and outputs >= 0, "features of the input")
    return Work.of(multiply_adds(_rows(x) * outputs * x.shape[-1], x), [x, *reads], [result])


def _linear(call: OpCall, outputs: int) -> Work:
    """All tensors of the call are read, the result has the input's type."""
    x = call.tensor(0)
    agree(call, bool(x.shape), "features of the input")
    return _product(call, x, outputs, list(call.tensors()[1:]), x.dense((*x.shape[:-1], outputs)))


def _eight_bits(call: OpCall) -> Work:
    x, weight = shaped(call, 0, 2), shaped(call, 1, 2)
    agree(call, x.shape[1] == weight.shape[1], "features of input and weight")
    return _linear(call, weight.shape[0])


def _four_bits(scales_at: int, axis: int) -> Formula:
    """Outputs by the scales, of which each has one a group."""

    def work(call: OpCall) -> Work:
        scales = call.tensor(scales_at)
        agree(call, len(scales.shape) > axis, "axes of the scales")
        return _linear(call, scales.shape[axis])

    return work


def _outputs_named(call: OpCall) -> Work:
    """``_dyn_quant_matmul_4bit(input, packed, block, in_features, out_features)``."""
    agree(call, call.tensor(0).shape[-1:] == (call.integer(3),), "features of the input")
    return _linear(call, call.integer(4))


def _mixed(call: OpCall) -> Work:
    return _linear(call, call.tensor(2).numel)


def _half(call: OpCall, rows: int, columns: int, depth: int, like: TensorSpec, reads: list[TensorSpec | None]) -> Work:
    """Of four neighbours along the depth two are zero: half of the multiply-adds run. ``flops_full`` counts all."""
    dense = multiply_adds(rows * columns * depth, like)
    return Work.of(dense // 2, reads, [like.dense((rows, columns))], dense)


def _sparse_linear(call: OpCall) -> Work:
    """``(input (m, k), weight (n, k/2), meta, bias, activation, out type)``."""
    x, weight, bias = call.tensor(0), shaped(call, 1, 2), call.optional_tensor(3)
    agree(call, bool(x.shape) and x.shape[-1] == 2 * weight.shape[1], "features of input and weight")
    like = x.dense(dtype=dtype_operand(call, 5, x.dtype))
    return _half(call, _rows(x), weight.shape[0], x.shape[-1], like, [x, weight, call.tensor(2), bias])


def _sparse_mm(call: OpCall) -> Work:
    """``(a (m, k/2), meta, b (k, n), out type)``."""
    return _sparse_left(call, 0, 3, None)


def _sparse_addmm(call: OpCall) -> Work:
    """``(added, a (m, k/2), meta, b (k, n), alpha, beta, out type)``."""
    return _sparse_left(call, 1, 6, None if known_zero(call, 5) else call.tensor(0))


def _sparse_left(call: OpCall, at: int, type_at: int, added: TensorSpec | None) -> Work:
    a, meta, b = shaped(call, at, 2), call.tensor(at + 1), shaped(call, at + 2, 2)
    agree(call, 2 * a.shape[1] == b.shape[0], "columns of the sparse matrix against rows")
    like = b.dense(dtype=dtype_operand(call, type_at, b.dtype))
    return _half(call, a.shape[0], b.shape[1], b.shape[0], like, [added, a, meta, b])


def _compressed(call: OpCall) -> Work:
    """``_cslt_sparse_mm(compressed, dense, bias, alpha, out type, …)``: kept values and where they were, in one.

    Of 16 elements the compressed form takes 9, of 8 bits 10.
    """
    packed, b = call.tensor(0), shaped(call, 1, 2)
    if packed.dtype is None or not b.shape[0]:
        raise Unknown(f"the element type of the sparse operand of {call.name} is not recorded")
    taken = 10 if packed.dtype.bits == 8 else 9
    rows = packed.numel * 16 // taken // b.shape[0]
    like = b.dense(dtype=dtype_operand(call, 4, b.dtype))
    return _half(
        call, rows, b.shape[1], b.shape[0], like, [packed, b, call.optional_tensor(2), call.optional_tensor(3)]
    )


def _by_weight(weight_at: int, *, result: str | None = None, type_at: int | None = None) -> Formula:
    """(…, k) by a weight (n, k); the result's type is fixed, told, or the input's."""

    def work(call: OpCall) -> Work:
        x, weight = call.tensor(0), shaped(call, weight_at, 2)
        agree(call, bool(x.shape) and x.shape[-1] == weight.shape[1], "features of input and weight")
        dtype = DTYPES[result] if result else x.dtype
        if type_at is not None:
            dtype = dtype_operand(call, type_at, dtype)
        outputs = weight.shape[0]
        reads = [t for i, t in enumerate(call.operands) if i > 0 and isinstance(t, TensorSpec)]
        return _product(call, x, outputs, list(reads), x.dense((*x.shape[:-1], outputs), dtype))

    return work


def _shape_given(call: OpCall) -> Work:
    """A packed weight whose shape (n, k) is operand 2; its numbers share scales, a block each."""
    shape = call.integers(2)
    agree(call, len(shape) == 2 and call.tensor(0).shape[-1:] == shape[1:], "features of input and weight")
    return _linear(call, shape[0])


def _columns(times: int) -> Formula:
    """A packed weight of n ÷ ``times`` columns: so many numbers lie in one element along the outputs."""

    def work(call: OpCall) -> Work:
        return _linear(call, shaped(call, 1, 2).shape[1] * times)

    return work


def _sizes_given(call: OpCall) -> Work:
    """m, n and k among the operands, in this order: the first three numbers of which m and k fit the input."""
    x = call.tensor(0)
    agree(call, bool(x.shape), "features of the input")
    numbers = [v if isinstance(v, int) and not isinstance(v, bool) else -1 for v in call.operands]
    for m, n, k in zip(numbers, numbers[1:], numbers[2:], strict=False):
        if (m, k) == (_rows(x), x.shape[-1]) and n >= 0:
            return _linear(call, n)
    raise Unknown(f"the sizes of {call.name} are not recorded")


def _into(call: OpCall) -> Work:
    """``(out, a, b, scales of a, scales of b, bias)``."""
    out, a = call.tensor(0), shaped(call, 1, 2)
    agree(call, len(out.shape) == 2 and out.shape[0] == a.shape[0], "rows of input and output")
    flops = multiply_adds(out.numel * a.shape[1], a)
    return Work.of(flops, list(call.tensors()[1:]), [out])


def _packed_away(call: OpCall) -> Work:
    """``quantized::linear…(input, output, weight)``, where what ran inside told the size of the output.

    To a trace the packed weight is no tensor.
    """
    x, out, weight = (call.optional_tensor(i) for i in range(3))
    if x is None or out is None or weight is None or len(weight.shape) != 2:
        raise Unknown(f"the weight of {call.name} is packed away, and the trace does not tell its size")
    return _product(call, x, weight.shape[0], [weight], out.dense())


def _unpacked(shape_at: int | None, type_at: int | None) -> Formula:
    """Numbers out of few bits: a product with the block's scale each."""

    def work(call: OpCall) -> Work:
        packed = call.tensor(0)
        shape = packed.shape if shape_at is None else call.integers(shape_at)
        dtype = FLOAT32 if type_at is None else dtype_operand(call, type_at, packed.dtype)
        result = TensorSpec(tuple(max(0, n) for n in shape), dtype)
        return Work.of(result.numel, list(call.tensors()), [result])

    return work


def _packed(bits: int, block_at: int | None) -> Formula:
    """Numbers into few bits: a product with the block's scale each; the largest of a block is found by comparing."""

    def work(call: OpCall) -> Work:
        x = call.tensor(0)
        blocks = _rows(x) if block_at is None else -(-x.numel // max(1, call.integer(block_at)))
        stored = TensorSpec((-(-x.numel * bits // 8),), DTYPES["uint8"])
        return Work.of(x.numel, list(call.tensors()), [stored, TensorSpec((blocks,), FLOAT32)])

    return work


def _quantized_per(call: OpCall) -> Work:
    """``quantize_per_tensor(self, scale, zero point, type)``: a product and a sum an element, rounding counts 0."""
    x = call.tensor(0)
    at = 3 if call.name.endswith("tensor") else 4
    return Work.of(2 * x.numel, list(call.tensors()), [x.dense(dtype=dtype_operand(call, at, None))])


def _dequantized(call: OpCall) -> Work:
    x = call.tensor(0)
    return Work.of(2 * x.numel, [x], [x.dense(dtype=FLOAT32)])


def _fake(call: OpCall) -> Work:
    """There and back: product, sum, difference, product. Writes the numbers and which were within reach."""
    x = call.tensor(0)
    writes = [x.dense()] + ([x.dense(dtype=DTYPES["bool"])] if "cachemask" in call.name else [])
    return Work.of(4 * x.numel, list(call.tensors()), writes)


def _model(op: str, formula: Formula, words: str, precise: tuple[int, ...] = (0,), family: str = "matmul") -> Model:
    return Model(op, family, formula, words, precise=precise)


_MNK = "2·rows·n·k FLOPs, unpacking counts none; reads input, packed weight and scales as stored, writes rows×n"
_HALF = "2·m·n·k ÷ 2 FLOPs: of four weights two are zero (flops_full: all of them); reads values, their places and the "
MODELS: tuple[Model, ...] = (
    _model("aten::_weight_int8pack_mm", _eight_bits, f"{_MNK}."),
    _model("aten::_weight_int4pack_mm", _four_bits(3, 1), f"{_MNK}; n by the scales."),
    _model("aten::_weight_int4pack_mm_for_cpu", _four_bits(3, 1), f"{_MNK}; n by the scales."),
    _model("aten::_weight_int4pack_mm_with_scales_and_zeros", _four_bits(3, 1), f"{_MNK}; n by the scales."),
    _model("aten::_dyn_quant_matmul_4bit", _outputs_named, f"{_MNK}."),
    _model("aten::_mixed_dtypes_linear", _mixed, f"{_MNK}; n by the scales."),
    _model("aten::_sparse_semi_structured_linear", _sparse_linear, f"{_HALF}input, writes rows×n."),
    _model("aten::_sparse_semi_structured_mm", _sparse_mm, f"{_HALF}dense matrix, writes m×n."),
    _model("aten::_sparse_semi_structured_addmm", _sparse_addmm, f"{_HALF}dense matrix, and self, writes m×n.", (3,)),
    _model("aten::_cslt_sparse_mm", _compressed, f"{_HALF}dense matrix, writes m×n.", (1,)),
    *(
        _model(
            f"quantized::{name}",
            _packed_away,
            "2·rows·n·k FLOPs; reads input and weight, writes rows×n, whose size "
            "what ran inside tells, else unknown: the packed weight is not recorded.",
            (2,),
        )
        for name in (
            "linear",
            "linear_relu",
            "linear_dynamic",
            "linear_relu_dynamic",
            "linear_dynamic_fp16",
            "linear_relu_dynamic_fp16",
            "linear_leaky_relu",
            "linear_tanh",
        )
    ),
    _model("quantized::linear_dynamic_fp16_unpacked_weight", _by_weight(1), f"{_MNK}."),
    _model(
        "mkldnn::_linear_pointwise",
        _by_weight(1),
        "2·rows·n·k FLOPs, what is fused counts none; reads input, weight and bias, writes rows×n.",
    ),
    _model(
        "mkl::_mkl_linear",
        _by_weight(2),
        "2·rows·n·k FLOPs; reads input, both forms of the weight and the bias, writes rows×n.",
    ),
    _model(
        "bitsandbytes::int8_linear_matmul",
        _by_weight(1, result="int32"),
        "2·rows·n·k operations; reads both, writes rows×n of int32.",
    ),
    _model("bitsandbytes::int8_scaled_mm", _by_weight(1, result="float16", type_at=5), f"{_MNK}."),
    _model("bitsandbytes::gemv_4bit", _shape_given, f"{_MNK}; two numbers a byte."),
    _model("bitsandbytes::gemm_4bit", _shape_given, f"{_MNK}; two numbers a byte."),
    _model(
        "bitsandbytes::dequantize_4bit",
        _unpacked(4, 5),
        "one product per number; reads what is packed and the scales, writes the numbers.",
        family="pointwise",
    ),
    _model(
        "bitsandbytes::dequantize_blockwise",
        _unpacked(None, 4),
        "one product per number; reads what is packed and the scales, writes the numbers.",
        family="pointwise",
    ),
    _model(
        "bitsandbytes::quantize_4bit",
        _packed(4, 1),
        "one product per number; reads the numbers, writes half a byte each and a scale a block.",
        family="pointwise",
    ),
    _model(
        "bitsandbytes::quantize_blockwise",
        _packed(8, 2),
        "one product per number; reads the numbers, writes a byte each and a scale a block.",
        family="pointwise",
    ),
    _model(
        "bitsandbytes::int8_vectorwise_quant",
        _packed(8, None),
        "one product per number; reads the numbers, writes a byte each and a scale a row.",
        family="pointwise",
    ),
    _model("_C::awq_gemm", _columns(8), f"{_MNK}; eight numbers in an int32."),
    _model("_C::gptq_gemm", _columns(1), f"{_MNK}."),
    _model("_C::machete_mm", _columns(1), f"{_MNK}."),
    _model("_C::gptq_marlin_gemm", _sizes_given, f"{_MNK}."),
    _model("_C::marlin_gemm", _sizes_given, f"{_MNK}."),
    _model(
        "_C::cutlass_scaled_mm",
        _into,
        "2·m·n·k FLOPs, scaling counts none; reads both and their scales, writes the output.",
        (1, 2),
    ),
    *(
        _model(
            f"aten::quantize_per_{sort}",
            _quantized_per,
            "product and sum: 2 per element, rounding counts 0; reads self, writes the narrow type.",
            family="pointwise",
        )
        for sort in ("tensor", "channel")
    ),
    _model(
        "aten::dequantize",
        _dequantized,
        "difference and product: 2 per element; reads self, writes float32.",
        family="pointwise",
    ),
    *(
        _model(
            f"aten::fake_quantize_per_{sort}_affine{more}",
            _fake,
            "there and back, 4 per element; reads self, writes the result" + (" and a mask." if more else "."),
            family="pointwise",
        )
        for sort in ("tensor", "channel")
        for more in ("", "_cachemask")
    ),
)
