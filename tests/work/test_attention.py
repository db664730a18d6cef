from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from schema_calls import Recorder, bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, Unknown
from torchroof.work.models.attention import _BACKWARD, _FORWARD, MODELS, allowed_pairs

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten


def price(op, *operands):
    return WORK[op](OpCall(f"aten::{op}", operands))


def attention(q, k, v, causal=False, mask=None, dtype="float32"):
    tensors = (dense_spec(shape, dtype) for shape in (q, k, v))
    return price("scaled_dot_product_attention", *tensors, mask, 0.0, causal, None, False)


def test_one_attention_by_hand():
    # 2 batches × 4 heads × 128 queries × 128 keys = 131,072 pairs; per pair 64 + 64 multiply-adds.
    work = attention(*[(2, 4, 128, 64)] * 3)
    assert work.flops == work.flops_full == 131_072 * 2 * 128
    assert (work.bytes_read, work.bytes_written) == (3 * 4 * 65_536, 4 * 65_536)
    # Causal: 128·129/2 = 8256 of 16,384 pairs of each head.
    causal = attention(*[(2, 4, 128, 64)] * 3, causal=True)
    assert (causal.flops, causal.flops_full) == (8 * 8256 * 2 * 128, work.flops)


def test_grouped_query_heads_and_a_wider_value():
    # 8 query heads share 2 key heads: FLOPs by query heads, bytes by what is stored.
    work = attention((1, 8, 5, 16), (1, 2, 7, 16), (1, 2, 7, 32))
    assert work.flops == 8 * 5 * 7 * 2 * (16 + 32)
    assert work.bytes_read == 4 * (8 * 5 * 16 + 2 * 7 * 16 + 2 * 7 * 32)
    assert work.bytes_written == 4 * 8 * 5 * 32


def test_a_mask_is_read_as_it_is_stored():
    shapes = [(2, 4, 5, 8)] * 3
    without, mask = attention(*shapes), dense_spec((5, 5), "bool")
    assert attention(*shapes, mask=mask).bytes_read == without.bytes_read + 25


@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(-9, 9),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 5),
)
def test_pairs_by_brute_force(queries, keys, shift, left, right):
    allowed = sum(
        (left is None or j >= i + shift - left) and (right is None or j <= i + shift + right)
        for i in range(queries)
        for j in range(keys)
    )
    assert allowed_pairs(queries, keys, shift, left, right) == allowed


@given(st.integers(1, 8), st.integers(1, 8))
def test_causal_is_aligned_as_torch_does_it(queries, keys):
    # With values that are one-hot by key, the row of the output is the row of attention weights.
    q, k = torch.zeros(1, 1, queries, 2), torch.zeros(1, 1, keys, 2)
    v = torch.eye(keys)[None, None]
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    work = attention(tuple(q.shape), tuple(k.shape), tuple(v.shape), causal=True)
    assert work.flops == int((out != 0).sum()) * 2 * (2 + keys)


def test_flash_is_causal_from_the_lower_right_corner():
    tensors = dense_spec((1, 1, 2, 8)), dense_spec((1, 1, 6, 8)), dense_spec((1, 1, 6, 8))
    work = price("_scaled_dot_product_flash_attention", *tensors, 0.0, True, False, None)
    assert work.flops == (5 + 6) * 2 * 16  # the first of two queries sees five of six keys
    upper = attention((1, 1, 2, 8), (1, 1, 6, 8), (1, 1, 6, 8), causal=True)
    assert upper.flops == (1 + 2) * 2 * 16
    inside = [dense_spec((1, n, 1, 8)) for n in (2, 6, 6)]
    kernel = price("_flash_attention_forward", *inside, None, None, 2, 6, 0.0, True, False, *[None] * 7)
    assert kernel.flops == work.flops
    window = price("_flash_attention_forward", *inside, None, None, 2, 6, 0.0, True, False, None, 1, 0, *[None] * 4)
    assert window.flops == (2 + 2) * 2 * 16


def test_backward_is_five_products():
    # 3 of width Dqk = 8 (scores again, gradients of query and key), 2 of width Dv = 16.
    shapes = (2, 3, 5, 16), (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 16), (2, 3, 5, 16), (2, 3, 5)
    tensors = [dense_spec(shape) for shape in shapes]
    work = price("_scaled_dot_product_flash_attention_for_cpu_backward", *tensors, 0.0, False, None, None)
    assert work.flops == 6 * 5 * 7 * 2 * (3 * 8 + 2 * 16)
    assert work.bytes_read == 4 * (480 + 240 + 336 + 672 + 480 + 30)
    assert work.bytes_written == 4 * (240 + 336 + 672)


def test_packed_sequences_have_bytes_but_no_flops():
    tensors = [dense_spec((10, 4, 8), "float16")] * 3
    ends = dense_spec((3,), "int32")
    work = price("_flash_attention_forward", *tensors, ends, ends, 6, 6, 0.0, True, False, *[None] * 7)
    assert work.flops is None and work.flops_full is None
    assert work.bytes_read == 3 * 320 * 2


META = {
    "_scaled_dot_product_flash_attention": ((), {}, 2),
    "_scaled_dot_product_efficient_attention": ((None, True), {}, 2),
    "_scaled_dot_product_cudnn_attention": ((None, True), {}, 2),
    "_scaled_dot_product_flash_attention_for_cpu": ((), {}, 2),
}


@pytest.mark.parametrize("op", META)
def test_output_and_log_sum_exp_are_what_torch_returns(op):
    args, kwargs, outputs = META[op]
    shape, dtype = (2, 4, 64, 32), torch.float32 if op.endswith("cpu") else torch.float16
    q = torch.empty(shape, device="meta", dtype=dtype)
    overload = getattr(aten, op).default
    returned = overload(q, q, q, *args, **kwargs)[:outputs]
    assert WORK[op](call_of(overload, q, q, q, *args, **kwargs)).bytes_written == bytes_of(returned)


def test_a_real_call_forward_and_backward():
    q, k, v = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (6, 6, 6))
    with Recorder() as recorder:
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    found = {c.name.removeprefix("aten::"): c for c in recorder.calls if "attention" in c.name}
    forward, back = (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    )
    assert set(found) == {forward, back}
    assert WORK[forward](found[forward]).flops == 6 * 21 * 2 * 16
    assert WORK[back](found[back]).flops == 6 * 21 * 2 * 40


FIELDS = {
    "causal": {"is_causal"},
    "first": {"query"},
    "mask": {"attn_mask", "attn_bias", "bias"},
    "lengths": {"cum_seq_q", "cu_seqlens_q"},
    "lse_flag": {"compute_log_sumexp"},
    "mask_type": {"custom_mask_type"},
}


@pytest.mark.parametrize("op", [*_FORWARD, *_BACKWARD])
def test_operands_are_where_the_schema_has_them(op):
    order = (_FORWARD | _BACKWARD)[op]
    names = [argument.name for argument in getattr(aten, op).default._schema.arguments]
    for field, allowed in FIELDS.items():
        place = getattr(order, field)
        assert place is None or names[place] in allowed
    for field, wanted in (("windows", ["window_size_left", "window_size_right"]), ("saved", ["out", "logsumexp"])):
        if getattr(order, field):
            assert [names[i] for i in getattr(order, field)] == wanted
    assert {names[i] for i in order.used} <= {"seqused_k", "block_table", "seqlen_k"}
    if order.mask_gradient:
        assert names[order.mask_gradient[0]] in {"grad_input_mask", "bias_requires_grad"}
    told = {name for name in names if name in set().union(*FIELDS.values()) and name != "query"}
    assert told == {names[p] for f in FIELDS if (p := getattr(order, f)) is not None and f != "first"} | (
        {"attn_bias"} & told if order.mask is None else set()
    )


def test_an_untold_causal_flag_is_unknown():
    tensors = tuple(dense_spec((1, 2, 3, 4)) for _ in range(3))
    with pytest.raises(Unknown, match="not a known number"):
        WORK["scaled_dot_product_attention"](OpCall("aten::scaled_dot_product_attention", tensors, scalars_known=False))


def test_the_fast_path_between_projection_and_product():
    # 2·5·48 elements get a bias, a third of them, the queries, are scaled.
    work = price("_transform_bias_rescale_qkv", dense_spec((2, 5, 48)), dense_spec((48,)), 4)
    assert (work.flops, work.bytes_read, work.bytes_written) == (480 + 160, 4 * (480 + 48), 4 * 480)
    returned = aten._transform_bias_rescale_qkv(torch.randn(2, 5, 48), torch.randn(48), 4)
    assert work.bytes_written == bytes_of(returned)


def test_packed_sequences_that_are_all_as_long_as_the_longest():
    """3 sequences of 5 queries and 7 keys: as one batch of 3, by shapes alone."""
    q, kv, ends = dense_spec((15, 4, 8), "float16"), dense_spec((21, 4, 8), "float16"), dense_spec((4,), "int32")
    for causal in (False, True):
        packed = price("_flash_attention_forward", q, kv, kv, ends, ends, 5, 7, 0.0, causal, False, *[None] * 7)
        batch = [dense_spec((3, n, 4, 8), "float16") for n in (5, 7, 7)]
        dense = price("_flash_attention_forward", *batch, None, None, 5, 7, 0.0, causal, False, *[None] * 7)
        assert (packed.flops, packed.flops_full) == (dense.flops, dense.flops_full)
        assert packed.bytes_moved == dense.bytes_moved
    assert packed.flops == 2 * 12 * (3 + 4 + 5 + 6 + 7) * 16  # from the lower right corner
    one = dense_spec((2,), "int32")
    alone = price("_flash_attention_forward", q, kv, kv, one, one, 99, 99, 0.0, False, False, *[None] * 7)
    assert alone.flops == 2 * 4 * 15 * 21 * 16  # a single sequence needs no lengths
    uneven = price("_flash_attention_forward", q, kv, kv, ends, ends, 6, 7, 0.0, False, False, *[None] * 7)
    assert uneven.flops is None
    used = price(
        "_flash_attention_forward", q, kv, kv, ends, ends, 5, 7, 0.0, False, False, None, None, None, ends, None, None
    )
    assert used.flops is None


def library(op, *operands):
    by_name = {model.op: model.formula for model in MODELS}
    return by_name[f"flash_attn::{op}"](OpCall(f"flash_attn::{op}", operands))


def test_the_flash_attn_package_counts_as_torchs_own_op():
    q, kv = dense_spec((2, 5, 4, 8), "float16"), dense_spec((2, 7, 2, 8), "float16")
    lse = dense_spec((2, 4, 5))
    for causal, reach in ((True, -1), (False, 2)):
        own = library("_flash_attn_forward", q, kv, kv, 0.0, 0.3, causal, reach, reach, 0.0, None, False)
        window = (None, None) if reach < 0 else (reach, reach)
        other = price(
            "_flash_attention_forward", q, kv, kv, None, None, 5, 7, 0.0, causal, False, None, *window, *[None] * 4
        )
        assert own == other
        back = library(
            *("_flash_attn_backward", q, q, kv, kv, q, lse, q, kv, kv, 0.0, 0.3, causal, reach, reach, 0.0, None, False)
        )
        assert back.flops * 2 == own.flops * 5
    ends = dense_spec((3,), "int32")
    flat, flat_kv = dense_spec((10, 4, 8), "float16"), dense_spec((14, 2, 8), "float16")
    packed = library(
        "_flash_attn_varlen_forward", flat, flat_kv, flat_kv, ends, ends, 5, 7, 0.0, 0.3, True, -1, -1, 0.0, None
    )
    assert packed.flops == library("_flash_attn_forward", q, kv, kv, 0.0, 0.3, True, -1, -1, 0.0, None, False).flops
    grad = library(
        *("_flash_attn_varlen_backward", flat, flat, flat_kv, flat_kv, flat, lse, flat, flat_kv, flat_kv),
        *(ends, ends, 5, 7, 0.0, 0.3, True, -1, -1, 0.0, None, False),
    )
    assert grad.flops * 2 == packed.flops * 5
