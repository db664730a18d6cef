from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from schema_calls import bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall, Unknown
from torchroof.work.models.convolution import _ORDERS, MODELS

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten


def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, transposed=False, extra=0, groups=1):
    lists = [(stride,), (padding,), (dilation,)]
    operands = (dense_spec(x), dense_spec(weight), bias and dense_spec(bias), *lists, transposed, (extra,), groups)
    return WORK["convolution"](OpCall("aten::convolution", operands))


def backward(gradient, x, weight, mask, transposed=False, groups=1):
    lists = ((1,), (0,), (1,), transposed, (0,), groups, mask)
    operands = (dense_spec(gradient), dense_spec(x), dense_spec(weight), (weight[0],), *lists)
    return WORK["convolution_backward"](OpCall("aten::convolution_backward", operands))


def test_the_demo_layer_by_hand():
    # 8 images 3×224×224, 16 filters 3×3, padding 1: 8·224·224 positions, 16·3·9 weights, 2 FLOPs.
    work = convolution((8, 3, 224, 224), (16, 3, 3, 3), (16,), padding=1)
    assert work.flops == 346_816_512
    assert work.bytes_read == 4 * (8 * 3 * 224 * 224 + 432 + 16)
    assert work.bytes_written == 4 * 8 * 16 * 224 * 224


def test_depthwise_weight_gradient_is_not_multiplied_by_the_groups():
    # 64 channels, each with its own 3×3 filter, on 2×14×14: 2·2·14·14·64·9.
    x, weight = (2, 64, 14, 14), (64, 1, 3, 3)
    assert convolution(x, weight, padding=1, groups=64).flops == 451_584
    both = backward(x, x, weight, (True, True, False), groups=64)
    assert both.flops == 903_168
    assert backward(x, x, weight, (False, True, False), groups=64).flops == 451_584
    assert backward(x, x, weight, (True, False, False), groups=64).flops == 451_584


def test_the_mask_decides_what_is_read_and_written():
    gradient, x, weight = (2, 6, 5, 5), (2, 4, 7, 7), (6, 4, 3, 3)
    g, i, w = 4 * 300, 4 * 392, 4 * 216
    cases = {
        (True, True, True): (g + i + w, i + w + 24),
        (True, False, False): (g + w, i),
        (False, True, False): (g + i, w),
        (False, False, True): (g, 24),
        (False, False, False): (0, 0),
    }
    for mask, moved in cases.items():
        work = backward(gradient, x, weight, mask)
        assert (work.bytes_read, work.bytes_written) == moved


def multiply_adds(x, weight, out, stride, padding, dilation, transposed, groups):
    """Walks every product in a direct convolution over the padded input (transposed: over its scattering)."""
    spatial = weight[2:]
    count = 0
    if transposed:  # every input element times the filters of its group
        positions = [range(n) for n in x[2:]]
        for _ in itertools.product(range(x[0]), range(x[1]), *positions):
            count += sum(1 for _ in itertools.product(range(weight[1]), *map(range, spatial)))
        return count
    for _n, o, *at in itertools.product(*map(range, out)):
        group = o // (weight[0] // groups)
        channels = range(group * weight[1], (group + 1) * weight[1])
        for _c, *tap in itertools.product(channels, *map(range, spatial)):
            reach = [a * stride + t * dilation for a, t in zip(at, tap, strict=True)]
            assert all(r < n + 2 * padding for r, n in zip(reach, x[2:], strict=True))
            count += 1
    return count


@settings(max_examples=60)
@given(st.data())
def test_every_product_is_counted_once(data):
    axes = data.draw(st.integers(1, 2))
    groups = data.draw(st.integers(1, 3))
    n, channels, filters = (data.draw(st.integers(1, 2)) for _ in range(3))
    kernel, size = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    stride, padding, dilation = (data.draw(st.integers(low, 2)) for low in (1, 0, 1))
    transposed = data.draw(st.booleans())
    extra = data.draw(st.integers(0, max(stride, dilation) - 1)) if transposed else 0
    x = (n, groups * channels, *(size,) * axes)
    outer = (groups * channels, filters) if transposed else (groups * filters, channels)
    weight = (*outer, *(kernel,) * axes)
    try:
        real = torch.ops.aten.convolution(
            torch.zeros(x),
            torch.zeros(weight),
            None,
            [stride] * axes,
            [padding] * axes,
            [dilation] * axes,
            transposed,
            [extra] * axes,
            groups,
        )
    except RuntimeError:
        assume(False)
    work = convolution(x, weight, None, stride, padding, dilation, transposed, extra, groups)
    assert work.bytes_written == bytes_of(real)
    expected = multiply_adds(x, weight, real.shape, stride, padding, dilation, transposed, groups)
    assert work.flops == 2 * expected
    gradients = backward(tuple(real.shape), x, weight, (True, True, False), transposed, groups)
    assert gradients.flops == 4 * expected


def test_a_batch_is_so_many_of_one_and_one_needs_no_batch_axis():
    weight = dense_spec((4, 3, 3))
    lists = ((2,), (1,), (1,), False, (0,), 1)
    few, one, bare = (
        WORK["convolution"](OpCall("aten::convolution", (dense_spec(x), weight, None, *lists)))
        for x in ((5, 3, 9), (1, 3, 9), (3, 9))
    )
    assert few.flops == 5 * one.flops
    assert bare == one


FIELDS = {
    "stride": {"stride"},
    "padding": {"padding"},
    "dilation": {"dilation"},
    "bias": {"bias"},
    "output_padding": {"output_padding"},
    "groups": {"groups"},
    "transposed": {"transposed"},
    "added": {"z"},
}


@pytest.mark.parametrize("op", sorted(_ORDERS))
def test_operands_are_where_the_schema_has_them(op):
    packet = getattr(aten, op)
    overload = packet.default if "default" in packet.overloads() else getattr(packet, packet.overloads()[0])
    names = [argument.name for argument in overload._schema.arguments]
    used = {names[1]}
    for field, allowed in FIELDS.items():
        place = getattr(_ORDERS[op], field)
        if place is not None and not isinstance(place, bool):
            assert names[place] in allowed
            used.add(names[place])
    tuning = {"benchmark", "deterministic", "allow_tf32", "cudnn_enabled", "kernel_size", "alpha", "out"}
    assert set(names[2:]) <= used | tuning


def test_the_cpu_kernels_by_their_own_names():
    x, bias = torch.randn(2, 4, 8, 8), torch.randn(6)
    weight = torch.randn(6, 4, 3, 3)
    plain = convolution((2, 4, 8, 8), (6, 4, 3, 3), (6,), stride=2, padding=1)
    mkldnn = call_of(aten.mkldnn_convolution.default, x, weight, bias, [1, 1], [2, 2], [1, 1], 1)
    slow = call_of(aten._slow_conv2d_forward.default, x, weight, [3, 3], bias, [2, 2], [1, 1])
    fused = call_of(aten.cudnn_convolution_relu.default, x, weight, bias, [2, 2], [1, 1], [1, 1], 1)
    cudnn = call_of(aten.cudnn_convolution.default, x, weight, [1, 1], [2, 2], [1, 1], 1, False, False, True)
    for call in (mkldnn, slow, fused):
        assert WORK[call.name.removeprefix("aten::")](call) == plain
    without_bias = convolution((2, 4, 8, 8), (6, 4, 3, 3), stride=2, padding=1)
    assert WORK["cudnn_convolution"](cudnn) == without_bias


def test_what_does_not_fit_is_unknown():
    with pytest.raises(Unknown, match="channels"):
        convolution((2, 5, 8, 8), (6, 4, 3, 3))
    with pytest.raises(Unknown, match="larger than the padded input"):
        convolution((2, 4, 2, 2), (6, 4, 3, 3))
    with pytest.raises(Unknown, match="known"):
        WORK["convolution"](
            OpCall("aten::convolution", (dense_spec((1, 1, 3)), dense_spec((1, 1, 2))), scalars_known=False)
        )
