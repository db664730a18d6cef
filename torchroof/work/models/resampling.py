"""Padding, upsampling and windows: the same values at other places, or sums of them."""

from __future__ import annotations

from math import prod

from torchroof.tensors import OpCall, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import sizes


def _padded(call: OpCall) -> Work:
    """(self, pad): pairs of (before, after) from the last axis on; negative ones cut, and are not read."""
    source, pad = call.tensor(0), call.integers(1)
    if len(pad) % 2 or len(pad) > 2 * len(source.shape):
        raise Unknown(f"padding {pad} does not fit {source}")
    padded, kept = list(source.shape), list(source.shape)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        padded[-1 - i] = max(0, padded[-1 - i] + before + after)
        kept[-1 - i] = max(0, kept[-1 - i] + min(0, before) + min(0, after))
    return Work.of(0, (source.dense((min(prod(kept), source.stored_elements),)),), (source.dense(padded),))


def _padded_backward(call: OpCall) -> Work:
    grad, source = call.tensor(0), call.tensor(1)
    return Work.of(grad.numel, (grad,), (source.dense(dtype=grad.dtype),))


def _factors(call: OpCall, axes: int) -> tuple[float, ...]:
    for value in call.operands[2:]:
        if isinstance(value, tuple):
            found = tuple(f for f in value if isinstance(f, int | float))
            if len(found) == axes:
                return found
    raise Unknown(f"the size of the result of {call.name} is not recorded")


def _upsampled(flops: int) -> Formula:
    """(self, sizes, …, scales): the sizes of the spatial axes, or in another overload factors for them."""

    def formula(call: OpCall) -> Work:
        source = call.tensor(0)
        batch, spatial = source.shape[:2], source.shape[2:]
        given = call.operands[1] if len(call.operands) > 1 else None
        if not isinstance(given, tuple | int):
            wanted = tuple(int(n * f) for n, f in zip(spatial, _factors(call, len(spatial)), strict=True))
        else:
            wanted = sizes(call, 1)
        if len(wanted) != len(spatial):
            raise Unknown(f"{call.name} of {source} to {wanted}")
        result = source.dense((*batch, *wanted))
        return Work.of(flops * result.numel, (source,), (result,))

    return formula


def _upsampled_backward(flops: int) -> Formula:
    """(grad, sizes, sizes of the input): each element of the gradient is shared out."""

    def formula(call: OpCall) -> Work:
        grad = call.tensor(0)
        return Work.of(flops * grad.numel, (grad,), (grad.dense(sizes(call, 2)),))

    return formula


def _pair(call: OpCall, index: int) -> tuple[int, int]:
    values = sizes(call, index)
    if len(values) not in (1, 2):
        raise Unknown(f"operand {index} of {call.name} is not a pair")
    return values[0], values[-1]


def _im2col(call: OpCall) -> Work:
    """(self, kernel, dilation, padding, stride) → (…, C·kh·kw, windows)."""
    source = call.tensor(0)
    if len(source.shape) < 3:
        raise Unknown(f"{call.name} of {source}")
    kernel, dilation, padding, stride = (_pair(call, i) for i in (1, 2, 3, 4))
    windows = 1
    for n, k, d, p, s in zip(source.shape[-2:], kernel, dilation, padding, stride, strict=True):
        windows *= max(0, (n + 2 * p - d * (k - 1) - 1) // max(s, 1) + 1)
    shape = (*source.shape[:-3], source.shape[-3] * prod(kernel), windows)
    return Work.of(0, (source,), (source.dense(shape),))


def _col2im(call: OpCall) -> Work:
    """(self, size, kernel, …): the columns are added up into an image."""
    source, size, kernel = call.tensor(0), _pair(call, 1), _pair(call, 2)
    if len(source.shape) < 2:
        raise Unknown(f"{call.name} of {source}")
    shape = (*source.shape[:-2], source.shape[-2] // max(1, prod(kernel)), *size)
    return Work.of(source.numel, (source,), (source.dense(shape),))


def _unfold_backward(call: OpCall) -> Work:
    """(grad, sizes of the input, …): overlapping windows are added up."""
    grad = call.tensor(0)
    return Work.of(grad.numel, (grad,), (grad.dense(sizes(call, 1)),))


_UPSAMPLE = {
    **{f"{sort}{n}d": 0 for sort in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)},
    "upsample_linear1d": 3,
    "upsample_bilinear2d": 7,
    "upsample_trilinear3d": 15,
    "upsample_bicubic2d": 31,
}
"""FLOPs per element of the result: a product for each neighbour, and their sum; weights count 0."""


def _model(name: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{name}", "movement", formula, words)


def _upsampling() -> tuple[Model, ...]:
    found = []
    for name, flops in _UPSAMPLE.items():
        words = f"{flops} per element of the result (a product per neighbour, and their sum); weights count 0"
        found.append(_model(name, _upsampled(flops), words))
        words = f"{flops + 1} per element of the gradient: a product and an addition per neighbour"
        found.append(_model(f"{name}_backward", _upsampled_backward(flops + 1), words))
    return tuple(found)


def _padding() -> tuple[Model, ...]:
    names = [f"{sort}_pad{n}d" for sort in ("reflection", "replication") for n in (1, 2, 3)]
    words = "one addition per element of the gradient"
    return (
        *(_model(name, _padded, "0 FLOPs; reads, writes more") for name in ("constant_pad_nd", *names)),
        *(_model(f"{name}_backward", _padded_backward, words) for name in names),
    )


MODELS: tuple[Model, ...] = (
    *_padding(),
    *_upsampling(),
    _model("im2col", _im2col, "0 FLOPs; reads self, writes the columns"),
    _model("col2im", _col2im, "one addition per element of the columns"),
    _model("unfold_backward", _unfold_backward, "one addition per element of the gradient"),
)
