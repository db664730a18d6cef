"""Sizes of sliding windows, for convolution and pooling."""

from __future__ import annotations

from math import gcd

from torchroof.tensors import OpCall, Unknown


def per_axis(call: OpCall, index: int, axes: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """One integer an axis; a list of one counts for every axis."""
    values = call.integers(index, default)
    if len(values) == 1:
        return values * axes
    if len(values) != axes:
        raise Unknown(f"operand {index} of {call.name} has {len(values)} numbers for {axes} axes")
    return values


def convolved(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Positions of a window along one axis."""
    return _positions(size + 2 * padding - dilation * (kernel - 1) - 1, stride)


def transposed(size: int, kernel: int, stride: int, padding: int, dilation: int, extra: int) -> int:
    """Length of one axis after a transposed convolution; ``extra`` is the output padding."""
    length = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1
    if length < 0:
        raise Unknown("the window is larger than the padded input")
    return length


def pooled(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """Positions of a pooling window along one axis; the last window starts inside input or left padding."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    positions = _positions(span + (stride - 1 if ceil else 0), stride)
    if ceil and (positions - 1) * stride >= size + padding:
        positions -= 1
    return positions


def adaptive_elements(size: int, out: int) -> int:
    """Elements in all windows of one axis: window i is floor(i·size/out) to ceil((i+1)·size/out).

    The starts add up to F = ((size - 1)(out - 1) + gcd - 1) / 2, the ends to size·out - F.
    """
    return size + out - gcd(size, out)


def _positions(span: int, stride: int) -> int:
    if stride < 1:
        raise Unknown("a stride has to be positive")
    if span < 0:
        raise Unknown("the window is larger than the padded input")
    return span // stride + 1
