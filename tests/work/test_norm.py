from __future__ import annotations

import pytest
import torch
from schema_calls import Recorder, bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, Unknown
from torchroof.work.models.norm import MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten


def price(op, *operands):
    return WORK[op](OpCall(f"aten::{op}", operands))


def test_layer_norm_by_hand():
    # 6 rows of 8: mean 1, centring 1, square and add 2, normalising 1, scale 1, shift 1 = 7 per element.
    x, w = dense_spec((2, 3, 8)), dense_spec((8,))
    work = price("native_layer_norm", x, (8,), w, w, 1e-5)
    assert work.flops == 7 * 48
    assert work.bytes_read == 4 * (48 + 8 + 8)
    assert work.bytes_written == 4 * (48 + 6 + 6)
    assert price("native_layer_norm", x, (8,), None, None, 1e-5).flops == 5 * 48


def test_statistics_of_half_precision_are_float32():
    x, w = dense_spec((2, 3, 8), "bfloat16"), dense_spec((8,), "bfloat16")
    assert price("native_layer_norm", x, (8,), w, w, 1e-5).bytes_written == 2 * 48 + 4 * 12


@pytest.mark.parametrize(
    ("mask", "each", "read", "written"),
    [
        # normalised again 2, input gradient 7 + 1 for the weight, weight gradient 2, bias gradient 1
        ((True, True, True), 13, 48 + 48 + 6 + 6 + 8, 48 + 8 + 8),
        ((True, False, False), 10, 48 + 48 + 6 + 6 + 8, 48),
        ((False, True, False), 4, 48 + 48 + 6 + 6, 8),
        ((False, False, True), 1, 48, 8),
        ((False, False, False), 0, 0, 0),
    ],
)
def test_layer_norm_backward_by_hand(mask, each, read, written):
    x, w, s = dense_spec((2, 3, 8)), dense_spec((8,)), dense_spec((2, 3, 1))
    work = price("native_layer_norm_backward", x, x, (8,), s, s, w, w, mask)
    assert (work.flops, work.bytes_read, work.bytes_written) == (each * 48, 4 * read, 4 * written)


def test_rms_norm_by_hand():
    x, w, s = dense_spec((6, 8)), dense_spec((8,)), dense_spec((6, 1))
    work = price("_fused_rms_norm", x, (8,), w, None)
    assert (work.flops, work.bytes_read, work.bytes_written) == (4 * 48, 4 * 56, 4 * 54)
    back = price("_fused_rms_norm_backward", x, x, (8,), s, w, (True, True))
    # x·rstd 1, dy·w 1, sum 2, product and difference 2, scaling 1; weight gradient 2
    assert (back.flops, back.bytes_read, back.bytes_written) == (9 * 48, 4 * (96 + 6 + 8), 4 * 56)


def test_batch_norm_by_hand():
    # 2·3·4·4 = 96 elements, 3 channels; running statistics are read and written, two more are saved.
    x, c = dense_spec((2, 3, 4, 4)), dense_spec((3,))
    training = price("native_batch_norm", x, c, c, c, c, True, 0.1, 1e-5)
    assert (training.flops, training.bytes_read, training.bytes_written) == (7 * 96, 4 * 108, 4 * 108)
    evaluation = price("native_batch_norm", x, c, c, c, c, False, 0.1, 1e-5)
    assert (evaluation.flops, evaluation.bytes_read, evaluation.bytes_written) == (2 * 96, 4 * 108, 4 * 96)
    without = price("_native_batch_norm_legit", x, c, c, True, 0.1, 1e-5)
    assert without.bytes_written == 4 * (96 + 6)


def test_batch_norm_backward_by_hand():
    x, c = dense_spec((2, 3, 4, 4)), dense_spec((3,))
    native = price("native_batch_norm_backward", x, x, c, c, c, c, c, True, 1e-5, (True, True, True))
    assert (native.flops, native.bytes_read, native.bytes_written) == (9 * 96, 4 * (192 + 9), 4 * (96 + 6))
    vendor = price("cudnn_batch_norm_backward", x, x, c, c, c, c, c, 1e-5, dense_spec((0,), "uint8"))
    assert vendor == native
    frozen = price("native_batch_norm_backward", x, x, c, c, c, None, None, False, 1e-5, (True, False, False))
    # Evaluation: gradient times weight over deviation; the input is not needed.
    assert (frozen.flops, frozen.bytes_read, frozen.bytes_written) == (96, 4 * (96 + 6), 4 * 96)


def test_group_norm_by_hand():
    x, c = dense_spec((2, 6, 5)), dense_spec((6,))
    work = price("native_group_norm", x, c, c, 2, 6, 5, 3, 1e-5)
    assert (work.flops, work.bytes_read, work.bytes_written) == (7 * 60, 4 * 72, 4 * (60 + 2 * 6))
    s = dense_spec((2, 3))
    back = price("native_group_norm_backward", x, x, s, s, c, 2, 6, 5, 3, (True, True, True))
    assert (back.flops, back.bytes_read, back.bytes_written) == (9 * 60, 4 * (120 + 12 + 6), 4 * (60 + 12))


def modules():
    yield torch.nn.LayerNorm(6), torch.randn(2, 4, 6)
    yield torch.nn.LayerNorm([4, 6], bias=False), torch.randn(2, 4, 6)
    yield torch.nn.GroupNorm(2, 4), torch.randn(2, 4, 6)
    yield torch.nn.BatchNorm1d(4), torch.randn(2, 4, 6)
    yield torch.nn.BatchNorm2d(4).eval(), torch.randn(2, 4, 6, 5)


@pytest.mark.parametrize("case", list(modules()), ids=lambda case: str(case[0]))
def test_what_torch_returns_is_what_is_written(case):
    module, x = case
    with Recorder() as recorder:
        module(x.requires_grad_()).sum().backward()
    found = [call for call in recorder.calls if call.name.removeprefix("aten::") in WORK]
    assert len(found) == 2
    for call in found:
        work = WORK[call.name.removeprefix("aten::")](call)
        assert work.flops > 0
        if call.name.endswith("backward"):
            assert work.bytes_written == x.nbytes + sum(p.nbytes for p in module.parameters())


def test_saved_statistics_are_those_of_torch():
    x, w = torch.randn(2, 4, 6), torch.randn(6)
    for overload, args in (
        (aten.native_layer_norm.default, (x, [6], w, None, 1e-5)),
        (aten.native_group_norm.default, (x, None, None, 2, 4, 6, 2, 1e-5)),
        (aten._native_batch_norm_legit.no_stats, (x, None, None, True, 0.1, 1e-5)),
        (aten._fused_rms_norm.default, (x, [6], w, 1e-5)),
    ):
        name = overload._schema.name.removeprefix("aten::")
        assert WORK[name](call_of(overload, *args)).bytes_written == bytes_of(overload(*args))


def test_axes_that_do_not_fit_are_unknown():
    with pytest.raises(Unknown, match="normalised axes"):
        price("native_layer_norm", dense_spec((2, 3)), (4,), None, None, 1e-5)
