"""Convolutions in one, two and three dimensions, forward and backward.

Every weight takes part in one multiply-add per output position (transposed: per input position) and sample.
A weight tensor holds channels ÷ groups, so that FLOPs = 2 · samples · positions · elements of the weight,
for the product itself and for each of its two gradients, whatever the groups.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.matmul import multiply_adds
from torchroof.work.models.operands import agree
from torchroof.work.models.windows import convolved, per_axis, transposed
from torchroof.work.registry import Formula, Model


class _Order(NamedTuple):
    """Where an op has its operands; input is 0 and weight 1 everywhere. None: the op has no such operand."""

    stride: int
    padding: int
    dilation: int | None = None
    bias: int | None = None
    transposed: int | bool = False
    """The operand that tells it, or what the op is by its name."""
    output_padding: int | None = None
    groups: int | None = None
    added: int | None = None
    """A tensor of the output's shape that is added in the same pass."""


def _is_transposed(call: OpCall, order: _Order) -> bool:
    if isinstance(order.transposed, bool):
        return order.transposed
    return call.flag(order.transposed)


def _output(call: OpCall, order: _Order, x: TensorSpec, weight: TensorSpec, backwards: bool) -> TensorSpec:
    """The result, of the input's type. ``backwards``: a transposed convolution."""
    kernel = weight.shape[2:]
    axes = len(kernel)
    agree(call, axes >= 1 and len(x.shape) in (axes + 1, axes + 2), "axes of input and weight")
    channels, sizes = x.shape[-axes - 1], x.shape[-axes:]
    groups = 1
    if order.groups is not None:
        groups = call.integer(order.groups)
    elif not backwards and weight.shape[1] > 0:
        groups = channels // weight.shape[1]
    strides, paddings = per_axis(call, order.stride, axes, (1,)), per_axis(call, order.padding, axes, (0,))
    dilations = (1,) * axes if order.dilation is None else per_axis(call, order.dilation, axes, (1,))
    steps = list(zip(sizes, kernel, strides, paddings, dilations, strict=True))
    agree(call, channels == (weight.shape[0] if backwards else weight.shape[1] * groups), "channels")
    if backwards:
        extra = (0,) * axes
        if order.output_padding is not None:
            extra = per_axis(call, order.output_padding, axes, (0,))
        out = [transposed(*step, more) for step, more in zip(steps, extra, strict=True)]
        made = weight.shape[1] * groups
    else:
        out = [convolved(*step) for step in steps]
        made = weight.shape[0]
    return x.dense((*x.shape[: -axes - 1], made, *out))


def _positions(x: TensorSpec, axes: int) -> int:
    """Samples times spatial positions."""
    return prod(x.shape[: -axes - 1]) * prod(x.shape[-axes:])


def _forward(order: _Order) -> Formula:
    def work(call: OpCall) -> Work:
        x, weight = call.tensor(0), call.tensor(1)
        backwards = _is_transposed(call, order)
        agree(call, len(weight.shape) >= 3, "a weight with channels and a kernel is needed")
        out = _output(call, order, x, weight, backwards)
        positions = _positions(x if backwards else out, len(weight.shape) - 2)
        bias = None if order.bias is None else call.optional_tensor(order.bias)
        added = None if order.added is None else call.tensor(order.added)
        return Work.of(multiply_adds(positions * weight.numel, x), [x, weight, bias, added], [out])

    return work


def _backward(transposed_at: int | None, mask_at: int) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x, weight = call.tensor(0), call.tensor(1), call.tensor(2)
        axes = len(weight.shape) - 2
        agree(call, axes >= 1 and len(x.shape) in (axes + 1, axes + 2), "axes of input and weight")
        agree(call, len(gradient.shape) == len(x.shape), "axes of gradient and input")
        mask = call.flags(mask_at)
        agree(call, len(mask) == 3, "three gradients are asked for or not")
        backwards = transposed_at is not None and call.flag(transposed_at)
        product = multiply_adds(_positions(x if backwards else gradient, axes) * weight.numel, gradient)
        to_input, to_weight, to_bias = mask
        reads = [gradient if any(mask) else None, x if to_weight else None, weight if to_input else None]
        bias = gradient.dense((gradient.shape[-axes - 1],)) if to_bias else None
        writes = [x.dense() if to_input else None, weight.dense() if to_weight else None, bias]
        return Work.of(product * (to_input + to_weight), reads, writes)

    return work


_WORDS = (
    "2 FLOPs per sample, output position (transposed: input position) and element of the weight, padding "
    "counted in full; bias and activation count none. Reads input, weight and bias, writes the output."
)
_ADD_WORDS = _WORDS + " Reads the added tensor too."
_BACKWARD_WORDS = (
    "As many FLOPs as the forward for each of input and weight gradient that is asked for, the bias "
    "gradient counts none. Reads the output gradient, the weight for the input gradient, the input for the "
    "weight gradient; writes the gradients asked for."
)

_WHOLE = _Order(stride=3, padding=4, dilation=5, bias=2, transposed=6, output_padding=7, groups=8)
_VENDOR = _Order(stride=4, padding=3, dilation=5, bias=2, groups=6)
_FUSED = _Order(stride=3, padding=4, dilation=5, bias=2, groups=6)
_FUSED_ADD = _Order(stride=5, padding=6, dilation=7, bias=4, groups=8, added=2)
_KERNEL_SIZE = _Order(stride=4, padding=5, bias=3)
_DILATED = _Order(stride=4, padding=5, dilation=6, bias=3)
_SLOW_TRANSPOSE = _Order(stride=4, padding=5, dilation=7, bias=3, transposed=True, output_padding=6)

_ORDERS: dict[str, _Order] = {
    "convolution": _WHOLE,
    "_convolution": _WHOLE,
    "convolution_overrideable": _WHOLE,
    "cudnn_convolution": _Order(stride=3, padding=2, dilation=4, groups=5),
    "cudnn_convolution_transpose": _Order(stride=4, padding=2, dilation=5, transposed=True, output_padding=3, groups=6),
    "cudnn_convolution_relu": _FUSED,
    "cudnn_convolution_add_relu": _FUSED_ADD,
    "miopen_convolution": _VENDOR,
    "miopen_depthwise_convolution": _VENDOR,
    "miopen_convolution_transpose": _Order(
        stride=5, padding=3, dilation=6, bias=2, transposed=True, output_padding=4, groups=7
    ),
    "miopen_convolution_relu": _FUSED,
    "miopen_convolution_add_relu": _FUSED_ADD,
    "mkldnn_convolution": _VENDOR,
    "thnn_conv2d": _KERNEL_SIZE,
    "_slow_conv2d_forward": _KERNEL_SIZE,
    "slow_conv3d": _KERNEL_SIZE,
    "slow_conv3d_forward": _KERNEL_SIZE,
    "slow_conv_dilated2d": _DILATED,
    "slow_conv_dilated3d": _DILATED,
    "slow_conv_transpose2d": _SLOW_TRANSPOSE,
    "slow_conv_transpose3d": _SLOW_TRANSPOSE,
    "_conv_depthwise2d": _DILATED,
    "conv_depthwise3d": _DILATED,
}

MODELS: tuple[Model, ...] = (
    *(
        Model(f"aten::{op}", "convolution", _forward(order), _WORDS if order.added is None else _ADD_WORDS)
        for op, order in _ORDERS.items()
    ),
    Model("aten::convolution_backward", "convolution", _backward(7, 10), _BACKWARD_WORDS),
    Model("aten::convolution_backward_overrideable", "convolution", _backward(6, 9), _BACKWARD_WORDS),
    Model("aten::_slow_conv2d_backward", "convolution", _backward(None, 6), _BACKWARD_WORDS),
)
