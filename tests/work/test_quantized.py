"""Weights in few bits and with half of them left out: real packed tensors, and worked examples."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from schema_calls import call_of, spec  # noqa: E402

from torchroof.tensors import DTYPES, OpCall, TensorSpec  # noqa: E402
from torchroof.work.standard import STANDARD  # noqa: E402

aten = torch.ops.aten
X = torch.randn(4, 64, dtype=torch.bfloat16)


def tensor(*shape: int, dtype: str = "bfloat16") -> TensorSpec:
    return TensorSpec(shape, DTYPES[dtype])


def price(name: str, *operands: object):
    call = OpCall(name, operands)
    priced = STANDARD.price(call)
    assert priced.reason is None, priced.reason
    return priced.work, STANDARD.precision(call)


def test_eight_bits_as_torch_packs_them() -> None:
    """4 x 64 by 32 x 64 bytes and 32 scales: 2·4·32·64 FLOPs; 512 + 2,048 + 64 read, 4·32·2 written."""
    weight, scales = torch.zeros(32, 64, dtype=torch.int8), torch.rand(32, dtype=torch.bfloat16)
    result = aten._weight_int8pack_mm(X, weight, scales)
    work = STANDARD.price(call_of(aten._weight_int8pack_mm.default, X, *map(cpu_spec, (weight, scales)))).work
    assert (work.flops, work.bytes_read, work.bytes_written) == (16_384, 512 + 2_048 + 64, result.nbytes)


def cpu_spec(t: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(t.shape), DTYPES[str(t.dtype).removeprefix("torch.")], t.stride())


def test_four_bits_as_torch_packs_them() -> None:
    """Two numbers a byte: 32 x 64 of them in 1,024 bytes, scales and zeros for each group of 32 along the features."""
    packed = aten._convert_weight_to_int4pack_for_cpu(torch.ones(32, 64, dtype=torch.int32), 1)
    scales = torch.rand(2, 32, 2, dtype=torch.bfloat16)
    result = aten._weight_int4pack_mm_for_cpu(X, packed, 32, scales)
    work = STANDARD.price(
        OpCall("aten::_weight_int4pack_mm_for_cpu", (spec(X), cpu_spec(packed), 32, spec(scales)))
    ).work
    assert packed.nbytes == 32 * 64 // 2
    assert (work.flops, work.bytes_read) == (16_384, X.nbytes + packed.nbytes + scales.nbytes)
    assert work.bytes_written == result.nbytes


EXAMPLES = {
    # The layout of a GPU: 1,024 x 4,096 numbers as int32 of (n/8, k/(16·8), 32, 4).
    "aten::_weight_int4pack_mm": (
        (tensor(16, 4096), tensor(128, 32, 32, 4, dtype="int32"), 32, tensor(128, 1024, 2)),
        2 * 16 * 1024 * 4096,
        2 * 16 * 4096 + 1024 * 4096 // 2 + 2 * 128 * 1024 * 2,
        2 * 16 * 1024,
        "bfloat16",
    ),
    "bitsandbytes::gemv_4bit": (
        (
            tensor(1, 64),
            tensor(1024, 1, dtype="uint8"),
            (32, 64),
            tensor(32, dtype="float32"),
            tensor(16, dtype="float32"),
            64,
        ),
        2 * 32 * 64,
        128 + 1024 + 4 * 32 + 4 * 16,
        64,
        "bfloat16",
    ),
    "bitsandbytes::int8_linear_matmul": (
        (tensor(3, 8, dtype="int8"), tensor(5, 8, dtype="int8")),
        2 * 3 * 5 * 8,
        24 + 40,
        4 * 15,
        "int8",
    ),
    "bitsandbytes::dequantize_4bit": (
        (tensor(1024, 1, dtype="uint8"), tensor(32, dtype="float32"), 64, "nf4", (32, 64), 15),
        2048,
        1024 + 128,
        2 * 2048,
        "uint8",
    ),
    "_C::awq_gemm": (
        (
            tensor(4, 64, dtype="float16"),
            tensor(64, 4, dtype="int32"),
            tensor(1, 32, dtype="float16"),
            tensor(1, 4, dtype="int32"),
            8,
        ),
        2 * 4 * 32 * 64,
        512 + 1024 + 64 + 16,
        2 * 4 * 32,
        "float16",
    ),
    "_C::gptq_gemm": (
        (
            tensor(4, 64, dtype="float16"),
            tensor(8, 32, dtype="int32"),
            tensor(1, 4, dtype="int32"),
            tensor(1, 32, dtype="float16"),
            None,
            True,
            4,
        ),
        2 * 4 * 32 * 64,
        512 + 1024 + 16 + 64,
        2 * 4 * 32,
        "float16",
    ),
    "_C::marlin_gemm": (
        (
            tensor(4, 64, dtype="float16"),
            None,
            tensor(4, 64, dtype="int32"),
            None,
            tensor(1, 32, dtype="float16"),
            None,
            None,
            None,
            None,
            None,
            tensor(16, dtype="int32"),
            7,
            4,
            32,
            64,
            True,
            False,
            True,
            False,
        ),
        2 * 4 * 32 * 64,
        512 + 1024 + 64 + 64,
        2 * 4 * 32,
        "float16",
    ),
    "_C::cutlass_scaled_mm": (
        (
            tensor(4, 32),
            tensor(4, 64, dtype="float8_e4m3fn"),
            tensor(64, 32, dtype="float8_e4m3fn"),
            tensor(4, 1, dtype="float32"),
            tensor(1, 32, dtype="float32"),
            None,
        ),
        2 * 4 * 32 * 64,
        256 + 2048 + 16 + 128,
        2 * 4 * 32,
        "float8_e4m3fn",
    ),
    # 2:4: of 16 x 64 weights half are kept, with two bits a kept one for its place (16 x 64 / 2 · 2 / 8 bytes).
    "aten::_sparse_semi_structured_linear": (
        (tensor(4, 64), tensor(16, 32), tensor(16, 4, dtype="int16"), None, None, None),
        4 * 16 * 64,
        512 + 1024 + 128,
        2 * 4 * 16,
        "bfloat16",
    ),
    "aten::_sparse_semi_structured_mm": (
        (tensor(16, 32), tensor(16, 4, dtype="int16"), tensor(64, 8), None),
        16 * 8 * 64,
        1024 + 128 + 1024,
        256,
        "bfloat16",
    ),
    "aten::_sparse_semi_structured_addmm": (
        (tensor(16, 8), tensor(16, 32), tensor(16, 4, dtype="int16"), tensor(64, 8), 1, 0, None),
        16 * 8 * 64,
        1024 + 128 + 1024,
        256,
        "bfloat16",
    ),
    # Of 16 elements 9 in 16 bits: 16 x 64 elements in 576.
    "aten::_cslt_sparse_mm": (
        (tensor(576), tensor(64, 8), None, None, None),
        16 * 8 * 64,
        1152 + 1024,
        256,
        "bfloat16",
    ),
    # float8 with a scale a row: the scales do not make it a float32 product.
    "aten::_scaled_mm": (
        (
            tensor(4, 64, dtype="float8_e4m3fn"),
            tensor(64, 32, dtype="float8_e4m3fn"),
            tensor(4, 1, dtype="float32"),
            tensor(1, 32, dtype="float32"),
            None,
            None,
            15,
            False,
        ),
        2 * 4 * 32 * 64,
        256 + 2048 + 16 + 128,
        256,
        "float8_e4m3fn",
    ),
    "aten::_scaled_mm_v2": (
        (
            tensor(4, 64, dtype="float8_e4m3fn"),
            tensor(64, 32, dtype="float8_e4m3fn"),
            (tensor(4, 1, dtype="float32"),),
            (0,),
            (0,),
            (tensor(1, 32, dtype="float32"),),
            (0,),
            (0,),
            None,
            15,
        ),
        2 * 4 * 32 * 64,
        256 + 2048 + 16 + 128,
        256,
        "float8_e4m3fn",
    ),
    "aten::quantize_per_tensor": ((tensor(4, 8, dtype="float32"), 0.1, 0, 12), 64, 128, 32, "float32"),
    "aten::dequantize": ((tensor(4, 8, dtype="qint8"),), 64, 32, 128, "qint8"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name: str) -> None:
    operands, flops, read, written, precision = EXAMPLES[name]
    work, computed_in = price(name, *operands)
    assert (work.flops, work.bytes_read, work.bytes_written, computed_in) == (flops, read, written, precision)


def test_half_of_the_multiply_adds_of_a_sparse_product_run() -> None:
    work, _ = price("aten::_sparse_semi_structured_mm", *EXAMPLES["aten::_sparse_semi_structured_mm"][0])
    dense, _ = price("aten::mm", tensor(16, 64), tensor(64, 8))
    assert work.flops_full == dense.flops == 2 * work.flops


def test_a_weight_that_is_packed_away_is_unknown_and_named() -> None:
    priced = STANDARD.price(OpCall("quantized::linear", (tensor(3, 8, dtype="quint8"), None, 0.1, 0)))
    assert priced.work.flops is None and "packed away" in (priced.reason or "")


def test_a_model_of_70_billion_parameters() -> None:
    """280, 140, 70 and 35 GB at 32, 16, 8 and 4 bits."""
    sizes = [
        TensorSpec((70_000_000_000,), DTYPES[name]).stored_bytes for name in ("float32", "bfloat16", "int8", "int4")
    ]
    assert sizes == [280 * 10**9, 140 * 10**9, 70 * 10**9, 35 * 10**9]
