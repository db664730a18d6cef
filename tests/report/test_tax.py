"""Casts and copies into other layouts: told from plain copies, and counted with the layer that causes them."""

import pytest
import torch
from torch import nn

import torchroof
from torchroof.report.tax import Tax, tax_of_call, tax_of_kernel
from torchroof.tensors import OpCall, TensorSpec, dtype_named

HALF, FLOAT32 = dtype_named("c10::Half"), dtype_named("float")
LAST = TensorSpec((2, 3, 4, 5), FLOAT32, (60, 1, 15, 3))
FIRST = TensorSpec((2, 3, 4, 5), FLOAT32, (60, 20, 5, 1))


@pytest.mark.parametrize(
    ("name", "operands", "tax"),
    [
        ("aten::copy_", (FIRST, FIRST), None),
        ("aten::copy_", (FIRST, LAST), Tax.LAYOUT),
        ("aten::copy_", (TensorSpec((2, 3), HALF), TensorSpec((2, 3), FLOAT32)), Tax.CAST),
        ("aten::copy_", (TensorSpec((8, 3), FLOAT32), TensorSpec((8, 3), FLOAT32, (0, 1))), None),  # expands
        ("aten::copy_", (TensorSpec((1, 3), FLOAT32), TensorSpec((1, 3), FLOAT32, (1, 1))), None),  # one row
        ("aten::_to_copy", (FIRST, 5), Tax.CAST),
        ("aten::_to_copy", (FIRST, 6), None),
        ("aten::clone", (LAST, 0), Tax.LAYOUT),
        ("aten::clone", (LAST, 2), None),
        ("aten::clone", (FIRST, 2), Tax.LAYOUT),
        ("aten::clone", (LAST,), None),
        ("aten::clone", (FIRST, 0), None),
        ("aten::add", (FIRST, LAST), None),
        ("aten::copy_", (), None),
    ],
)
def test_calls(name, operands, tax):
    assert tax_of_call(OpCall(name, operands)) is tax


def test_kernels_that_turn_a_convolution_s_operands_round():
    assert tax_of_kernel("void cudnn::ops::nchwToNhwcKernel<__half, ...>") is Tax.LAYOUT
    assert tax_of_kernel("sm80_xmma_fprop_implicit_gemm_tf32f32") is None


def test_autocast_s_casts_are_their_layer_s():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    with torchroof.profile(model, measure=False) as prof:
        for _ in range(3):
            with torch.autocast("cpu", torch.bfloat16):
                model(torch.randn(8, 64))
            prof.step()
    rows = prof.report.data.rows
    taxed = {(r.path, r.op) for r in rows if r.cast_ns}
    assert taxed == {("0", "aten::_to_copy")}
    assert all(r.cast_ns == r.kernel_ns for r in rows if r.cast_ns) and not any(r.layout_ns for r in rows)
    assert "casts" in str(prof.report.explain("0"))


def test_contiguous_is_a_layout_change():
    x = torch.randn(4, 16, 8, 8).contiguous(memory_format=torch.channels_last)
    with torchroof.profile(measure=False) as prof:
        x.contiguous()
        x.clone()
    (row,) = (r for r in prof.report.data.rows if r.op == "aten::clone")
    assert row.calls == 2 and 0 < row.layout_ns < row.kernel_ns and row.cast_ns == 0
