from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from schema_calls import bytes_of, call_of, dense_spec, models

from torchroof.tensors import OpCall
from torchroof.work.models.pooling import MODELS
from torchroof.work.models.windows import adaptive_elements

WORK = {op: model.formula for op, model in models(MODELS).items()}
aten = torch.ops.aten


def price(overload, *args):
    call = call_of(overload, *args)
    return WORK[call.name.removeprefix("aten::")](call)


def test_the_demo_layer_by_hand():
    # 8×16×224×224 to 8×16×112×112: values of 4 bytes and indices of 8 written, nothing computed.
    operands = (dense_spec((8, 16, 224, 224)), (2, 2), (), (0, 0), (1, 1), False)
    work = WORK["max_pool2d_with_indices"](OpCall("aten::max_pool2d_with_indices", operands))
    out = 8 * 16 * 112 * 112
    assert (work.flops, work.bytes_read, work.bytes_written) == (0, 4 * 4 * out, 12 * out)


def test_max_backward_reads_gradient_and_indices_and_not_the_input():
    x = torch.randn(2, 3, 8, 8)
    out, indices = aten.max_pool2d_with_indices(x, [2, 2])
    work = price(aten.max_pool2d_with_indices_backward.default, out, x, [2, 2], [], [0, 0], [1, 1], False, indices)
    assert (work.flops, work.bytes_read, work.bytes_written) == (96, 96 * 12, 4 * 384)


def test_an_average_counts_its_whole_window():
    # 2·3·4·4 outputs of 2×2 windows: 3 adds and a division each.
    x = torch.randn(2, 3, 8, 8)
    assert price(aten.avg_pool2d.default, x, [2, 2]).flops == 96 * 4
    out = aten.avg_pool2d(x, [2, 2])
    work = price(aten.avg_pool2d_backward.default, out, x, [2, 2], [], [0, 0], False, True, None)
    assert (work.flops, work.bytes_read, work.bytes_written) == (96 * 4, 96 * 4, 384 * 4)


@settings(max_examples=60)
@given(st.data())
def test_output_sizes_are_those_of_torch(data):
    axes = data.draw(st.sampled_from([2, 3]))
    draw = {name: data.draw(st.integers(low, 3)) for name, low in (("kernel", 1), ("stride", 1), ("dilation", 1))}
    padding, ceil = data.draw(st.integers(0, 1)), data.draw(st.booleans())
    size = data.draw(st.integers(2, 9))
    x = torch.randn(2, *(size,) * axes) if data.draw(st.booleans()) else torch.randn(1, 2, *(size,) * axes)
    kernel, stride, dilation = ([value] * axes for value in draw.values())
    stride = [] if data.draw(st.booleans()) else stride
    largest = getattr(aten, f"max_pool{axes}d_with_indices").default
    average = getattr(aten, f"avg_pool{axes}d").default
    try:
        values = largest(x, kernel, stride, [padding], dilation, ceil)
        means = average(x, kernel, stride, [padding], ceil)
    except RuntimeError:
        assume(False)
    assert price(largest, x, kernel, stride, [padding], dilation, ceil).bytes_written == bytes_of(values)
    work = price(average, x, kernel, stride, [padding], ceil)
    assert work.bytes_written == bytes_of(means)
    assert work.flops == means.numel() * draw["kernel"] ** axes


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_adaptive_windows_by_their_gradient(height, width, rows, columns):
    # Each output of a sum over its window: the gradient of ones, times the window's size, counts its members.
    x = torch.ones(1, 2, height, width)
    work = price(aten._adaptive_avg_pool2d.default, x, [rows, columns])
    members = 0
    for i, j in itertools.product(range(rows), range(columns)):
        one = torch.zeros(1, 1, rows, columns)
        one[0, 0, i, j] = 1
        members += int((aten._adaptive_avg_pool2d_backward(one, x[:, :1]) != 0).sum())
    assert work.flops == 2 * members
    out = aten._adaptive_avg_pool2d(x, [rows, columns])
    assert work.bytes_written == bytes_of(out)
    back = price(aten._adaptive_avg_pool2d_backward.default, out, x)
    assert (back.flops, back.bytes_read, back.bytes_written) == (work.flops, bytes_of(out), bytes_of(x))


@pytest.mark.parametrize(
    ("overload", "args"),
    [
        (aten.max_pool1d.default, (torch.randn(2, 3, 9), [2])),
        (aten.adaptive_max_pool2d.default, (torch.randn(2, 3, 9, 7), [4, 3])),
        (aten.adaptive_max_pool3d.default, (torch.randn(2, 3, 9, 7, 5), [4, 3, 2])),
        (aten._adaptive_avg_pool3d.default, (torch.randn(2, 3, 9, 7, 5), [4, 3, 2])),
        (aten.mkldnn_max_pool2d.default, (torch.randn(2, 3, 9, 7), [2], [2])),
    ],
    ids=lambda value: str(value) if callable(value) else "",
)
def test_what_torch_returns_is_what_is_written(overload, args):
    expected = overload(*args) if "mkldnn" not in str(overload) else torch.max_pool2d(*args)
    assert price(overload, *args).bytes_written == bytes_of(expected)


@given(st.integers(0, 60), st.integers(0, 60))
def test_adaptive_windows_by_adding_them_up(size, out):
    windows = sum(-(-(i + 1) * size // out) - i * size // out for i in range(out))
    assert adaptive_elements(size, out) == windows


def test_an_absurd_output_size_costs_no_time():
    call = OpCall("aten::_adaptive_avg_pool2d", (dense_spec((1, 1, 8, 8)), (10**300, 1)))
    assert WORK["_adaptive_avg_pool2d"](call).flops == 10**300 * 8  # 8 + 10^300 - gcd 8; 8 + 1 - 1
