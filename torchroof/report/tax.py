"""Time that changes only how numbers are stored: casts to another type, and copies into another order in memory."""

from __future__ import annotations

import re
from enum import StrEnum

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.promotion import dtype_operand


class Tax(StrEnum):
    CAST = "cast"
    """To another element type: what autocast does to weights and activations."""
    LAYOUT = "layout"
    """Into another order of the same elements: what ``contiguous`` and channels-last convolutions do."""


_COPIES = frozenset(("aten::copy_", "aten::clone", "aten::_to_copy"))
_MEMORY_FORMAT = {"aten::clone": 1, "aten::_to_copy": 6}
"""Which operand says how the result is to lie in memory."""
_PRESERVE = 1
"""``torch.preserve_format`` as traces write it; 0 is contiguous, 2 and 3 have the channels last."""

_LAYOUT_KERNEL = re.compile(r"nchwToNhwc|nhwcToNchw|batched_transpose|SubTensorOpWithTransform|tensorTransformGeneric")
"""Kernels by which cuDNN and MIOpen turn a convolution's operands round."""


def tax_of_call(call: OpCall) -> Tax | None:
    """What a call of a copying op is; None where it is another op, a plain copy, or its operands do not tell."""
    if call.name not in _COPIES:
        return None
    try:
        if call.name == "aten::copy_":
            target, source = call.tensor(0), call.tensor(1)
        else:
            source = call.tensor(0)
            to = dtype_operand(call, 1, source.dtype) if call.name == "aten::_to_copy" else source.dtype
            target = TensorSpec(source.shape, to, _ordered(call, source))
    except Unknown:
        return None
    if None not in (target.dtype, source.dtype) and target.dtype != source.dtype:
        return Tax.CAST
    same = target.shape == source.shape and target.stored_elements == source.stored_elements
    return Tax.LAYOUT if same and _order(target) != _order(source) else None


def tax_of_kernel(name: str) -> Tax | None:
    """What a kernel's name shows it to be, within an op of another kind."""
    return Tax.LAYOUT if _LAYOUT_KERNEL.search(name) else None


def _ordered(call: OpCall, source: TensorSpec) -> tuple[int, ...] | None:
    """The strides that the asked-for memory format gives; those of the source where it is to be preserved."""
    place = _MEMORY_FORMAT[call.name]
    asked = call.integer(place, _PRESERVE) if place < len(call.operands) else _PRESERVE
    if asked == _PRESERVE:
        return source.strides
    if asked == 0 or len(source.shape) < 4:
        return None
    batch, channels, *space = source.shape
    strides, step = [1], channels
    for size in reversed(space):
        strides.insert(1, step)
        step *= size
    return (channels * source.numel // (batch * channels) if batch * channels else 0, *strides)


def _order(tensor: TensorSpec) -> tuple[int, ...]:
    """The axes longer than one from the slowest to the fastest in memory."""
    axes = [i for i, size in enumerate(tensor.shape) if size > 1]
    strides = tensor.strides
    if strides is None or len(strides) != len(tensor.shape):
        return tuple(axes)
    return tuple(sorted(axes, key=lambda i: -strides[i]))
