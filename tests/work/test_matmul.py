from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from schema_calls import bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.models.matmul import MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten
sizes = st.integers(1, 9)


def price(op, *operands):
    return WORK[op](OpCall(f"aten::{op}", operands))


def test_a_product_by_hand():
    # 512×256 by 256×512: 512·512·256 = 67,108,864 multiply-adds, 2 FLOPs each.
    # Bytes: 4·(512·256 + 256·512) read, 4·512·512 written.
    work = price("mm", dense_spec((512, 256)), dense_spec((256, 512)))
    assert work.flops == 134_217_728
    assert (work.bytes_read, work.bytes_written) == (1_048_576, 1_048_576)
    assert work.intensity == 64


def test_a_square_product_and_a_gemv_by_hand():
    work = price("mm", dense_spec((64, 64)), dense_spec((64, 64)))
    assert (work.flops, work.bytes_moved) == (524_288, 49_152)  # 2·64³; 3·64²·4
    gemv = price("mv", dense_spec((1024, 1024)), dense_spec((1024,)))
    assert (gemv.flops, gemv.bytes_moved) == (2_097_152, 4_202_496)  # 4·(1024² + 2·1024)
    narrow = price("mv", dense_spec((1024, 1024), "int8"), dense_spec((1024,), "int8"))
    assert (narrow.flops, narrow.bytes_moved) == (2_097_152, 1_050_624)


def test_self_is_read_unless_beta_is_zero():
    bias, a, b = dense_spec((5,)), dense_spec((3, 4)), dense_spec((4, 5))
    with_bias, without = price("addmm", bias, a, b, 1, 1), price("addmm", bias, a, b, 0, 1)
    assert with_bias.bytes_read == 4 * (5 + 12 + 20)
    assert without.bytes_read == 4 * (12 + 20)
    assert with_bias.flops == without.flops == 2 * 3 * 4 * 5
    untold = WORK["addmm"](OpCall("aten::addmm", (bias, a, b), scalars_known=False))
    assert untold.bytes_read == with_bias.bytes_read


def test_an_expanded_bias_is_read_once():
    full, row = TensorSpec((3, 5), dense_spec(()).dtype, (0, 1)), dense_spec((5,))
    a, b = dense_spec((3, 4)), dense_spec((4, 5))
    assert price("addmm", full, a, b, 1, 1) == price("addmm", row, a, b, 1, 1)


def test_output_types():
    a, b = dense_spec((3, 4), "int8"), dense_spec((4, 5), "int8")
    assert price("_int_mm", a, b).bytes_written == 3 * 5 * 4
    half = dense_spec((3, 4), "float16"), dense_spec((4, 5), "float16")
    assert price("mm", *half).bytes_written == 3 * 5 * 2
    assert price("mm", *half, 6).bytes_written == 3 * 5 * 4  # 6 is float32
    assert price("addmm", dense_spec((5,)), *half, 6, 1, 1).bytes_written == 3 * 5 * 4
    assert price("addmm", dense_spec((5,)), *half, 6, 0, 1).bytes_read == 2 * (12 + 20)
    eight = dense_spec((16, 32), "float8_e4m3fn"), dense_spec((32, 48), "float8_e4m3fn")
    scaled = price("_scaled_mm", *eight, dense_spec(()), dense_spec(()), None, None, 15, True)
    # 16·32 + 32·48 bytes and two float32 scales in, 16·48 bfloat16 out.
    assert (scaled.bytes_read, scaled.bytes_written) == (512 + 1536 + 8, 1536)


def test_complex_multiply_adds_count_8_and_float4_pairs_twice():
    a = dense_spec((3, 4), "complex64"), dense_spec((4, 5), "complex64")
    assert price("mm", *a).flops == 8 * 3 * 4 * 5
    pairs = dense_spec((3, 4), "float4_e2m1fn_x2"), dense_spec((4, 5), "float4_e2m1fn_x2")
    scales = dense_spec((1,)), dense_spec((1,))
    assert price("_scaled_mm", *pairs, *scales, None, None, 15, False).flops == 2 * 3 * 8 * 5


def test_groups_side_by_side_in_one_matrix():
    # 10 rows in 3 groups, each by its own 4×5 matrix: every row is multiplied once.
    work = price("_grouped_mm", dense_spec((10, 4)), dense_spec((3, 4, 5)), dense_spec((3,), "int32"), None, None)
    assert work.flops == 2 * 10 * 4 * 5
    assert work.bytes_read == 4 * (40 + 60) + 3 * 4
    assert work.bytes_written == 4 * 50
    # 4 rows by 10 inner elements in 3 groups: three products whose inner sizes add up to 10.
    inner = price("_grouped_mm", dense_spec((4, 10)), dense_spec((10, 5)), dense_spec((3,), "int32"), None, None)
    assert (inner.flops, inner.bytes_written) == (2 * 4 * 10 * 5, 4 * 3 * 4 * 5)


def test_scaled_groups_read_their_scales_and_write_the_type_asked_for():
    a, b = dense_spec((10, 16), "float8_e4m3fn"), dense_spec((3, 16, 32), "float8_e4m3fn")
    scales = dense_spec((10,)), dense_spec((3, 32))
    ends, bias = dense_spec((3,), "int32"), dense_spec((3, 32), "bfloat16")
    work = price("_scaled_grouped_mm", a, b, *scales, ends, bias, None, 15, False)
    assert work.flops == 2 * 10 * 16 * 32
    assert work.bytes_read == 160 + 1536 + 4 * (10 + 96) + 12 + 2 * 96
    assert work.bytes_written == 2 * 10 * 32


def test_linear_as_onednn_takes_it():
    # 2·3 rows of 4 features by a 5×4 weight.
    x, weight, gradient = dense_spec((2, 3, 4)), dense_spec((5, 4)), dense_spec((2, 3, 5))
    forward = price("mkldnn_linear", x, weight, dense_spec((5,)))
    assert (forward.flops, forward.bytes_read, forward.bytes_written) == (240, 4 * (24 + 20 + 5), 4 * 30)
    to_input = price("mkldnn_linear_backward_input", (2, 3, 4), gradient, weight)
    assert (to_input.flops, to_input.bytes_read, to_input.bytes_written) == (240, 4 * 50, 4 * 24)
    to_weight = price("mkldnn_linear_backward_weights", gradient, x, weight, True)
    assert (to_weight.flops, to_weight.bytes_read, to_weight.bytes_written) == (240, 4 * 54, 4 * 25)


def test_outer_products_have_no_sum():
    a, b = dense_spec((7,)), dense_spec((9,))
    assert price("outer", a, b).flops == 63
    assert price("addr", dense_spec((7, 9)), a, b, 1, 1).flops == 126
    assert price("addr", dense_spec((7, 9)), a, b, 0, 1).bytes_read == 4 * 16


@given(sizes, sizes, sizes, sizes)
def test_a_batch_is_so_many_of_one(batch, m, n, k):
    many = price("bmm", dense_spec((batch, m, k)), dense_spec((batch, k, n)))
    one = price("bmm", dense_spec((1, m, k)), dense_spec((1, k, n)))
    assert (many.flops, many.bytes_moved) == (batch * one.flops, batch * one.bytes_moved)
    single = price("mm", dense_spec((m, k)), dense_spec((k, n)))
    assert one == single
    assert single.flops == sum(2 for _ in range(m) for _ in range(n) for _ in range(k))


@given(sizes, sizes, sizes)
def test_half_the_item_size_halves_bytes_and_keeps_flops(m, n, k):
    wide, narrow = (price("mm", dense_spec((m, k), t), dense_spec((k, n), t)) for t in ("float32", "float16"))
    assert (narrow.flops, 2 * narrow.bytes_moved) == (wide.flops, wide.bytes_moved)


def calls():
    m, v = torch.randn(3, 4), torch.randn(4)
    stack = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    yield aten.mm.default, (m, torch.randn(4, 5))
    yield aten.bmm.default, stack
    yield aten.addmm.default, (torch.randn(5), m, torch.randn(4, 5))
    yield aten.baddbmm.default, (torch.randn(2, 3, 5), *stack)
    yield aten.addbmm.default, (torch.randn(3, 5), *stack)
    yield aten._addmm_activation.default, (torch.randn(5), m, torch.randn(4, 5))
    yield aten.mv.default, (m, v)
    yield aten.addmv.default, (torch.randn(3), m, v)
    yield aten.dot.default, (v, v)
    yield aten.vdot.default, (v, v)
    yield aten.outer.default, (v, torch.randn(6))
    yield aten.ger.default, (v, torch.randn(6))
    yield aten.addr.default, (torch.randn(4, 6), v, torch.randn(6))
    yield aten._int_mm.default, (m.to(torch.int8), torch.ones(4, 8, dtype=torch.int8))


@pytest.mark.parametrize("call", list(calls()), ids=lambda call: str(call[0]))
def test_what_torch_returns_is_what_is_written(call):
    overload, args = call
    work = WORK[overload._schema.name.removeprefix("aten::")](call_of(overload, *args))
    assert work.bytes_written == bytes_of(overload(*args))
    assert work.bytes_read == sum(map(bytes_of, args))


def test_shapes_that_do_not_fit_are_unknown():
    with pytest.raises(Unknown, match="columns"):
        price("mm", dense_spec((3, 4)), dense_spec((5, 6)))
    with pytest.raises(Unknown, match="axes"):
        price("mm", dense_spec((3, 4, 2)), dense_spec((5, 6)))
