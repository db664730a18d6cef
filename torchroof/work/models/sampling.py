"""Values between grid points: sampling at given places, and resizing with antialiasing."""

from __future__ import annotations

from math import ceil, prod

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, shaped
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import sizes

_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
"""Modes of interpolation."""


def _neighbours(call: OpCall, index: int | None, axes: int) -> int:
    """Values that make one result."""
    mode = _BILINEAR if index is None else call.integer(index)
    if mode not in (_BILINEAR, _NEAREST, _BICUBIC):
        raise Unknown(f"operand {index} of {call.name} is no mode of interpolation")
    an_axis = {_BILINEAR: 2, _NEAREST: 1, _BICUBIC: 4}[mode]
    return prod((an_axis,) * axes)


def _places(call: OpCall, image: int, grid: int, axes: int) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Image, grid of places, and the result: an image of the grid's size."""
    x, at = shaped(call, image, axes + 2), shaped(call, grid, axes + 2)
    agree(call, at.shape[-1] == axes and at.shape[0] == x.shape[0], "image and grid")
    return x, at, x.dense((*x.shape[:2], *at.shape[1:-1]))


def _touched(x: TensorSpec, neighbours: int, out: TensorSpec) -> TensorSpec:
    return x.dense((min(x.stored_elements, neighbours * out.numel),))


def _sampled(axes: int, mode_at: int | None) -> Formula:
    def work(call: OpCall) -> Work:
        x, grid, out = _places(call, 0, 1, axes)
        n = _neighbours(call, mode_at, axes)
        flops = (2 * n - 1) * out.numel if n > 1 else 0
        streamed = [x.dense((n * out.numel,)), grid, out]
        return Work.of(flops, [_touched(x, n, out), grid], [out], streamed=streamed)

    return work


def _sampled_backward(axes: int) -> Formula:
    """(grad, image, grid, mode, padding, align corners, [to image, to grid])."""

    def work(call: OpCall) -> Work:
        gradient = call.tensor(0)
        x, grid, out = _places(call, 1, 2, axes)
        agree(call, gradient.shape == out.shape, "gradient and grid")
        n, wanted = _neighbours(call, 3, axes), call.flags(6)
        agree(call, len(wanted) == 2, "two gradients are asked for or not")
        return _gradients(x, grid, gradient, n, axes, wanted)

    return work


def _vendor_backward(call: OpCall) -> Work:
    """(image, grid, grad): bilinear in two dimensions, both gradients."""
    x, grid, _ = _places(call, 0, 1, 2)
    return _gradients(x, grid, call.tensor(2), 4, 2, (True, True))


def _gradients(
    x: TensorSpec, grid: TensorSpec, gradient: TensorSpec, n: int, axes: int, wanted: tuple[bool, ...]
) -> Work:
    to_image, to_grid = wanted
    if not to_image and not to_grid:
        return Work.zero()
    slope = 3 * axes * n if n > 1 else 0
    flops = ((2 * n if n > 1 else 1) * to_image + slope * to_grid) * gradient.numel
    touched = _touched(x, n, gradient)
    reads = [gradient, grid, touched if to_grid and slope else None]
    writes = [x.dense() if to_image else None, grid.dense() if to_grid else None]
    every = gradient.dense((n * gradient.numel,))
    streamed = [gradient, grid, *writes, every if to_grid and slope else None, *([every, every] if to_image else [])]
    return Work.of(flops, reads, writes, streamed=streamed)


def _taps(width: int, source: int, wanted: int) -> int:
    """Neighbours along one axis: the filter's width, stretched where the image shrinks, at most the image."""
    return min(source, max(width, ceil(width * source / wanted))) if wanted > 0 else 0


def _smoothed(width: int) -> Formula:
    """(self, sizes, …, factors)."""

    def work(call: OpCall) -> Work:
        x, wanted = shaped(call, 0, 4), sizes(call, 1)
        agree(call, len(wanted) == 2, "sizes of the result")
        out = x.dense((*x.shape[:2], *wanted))
        taps = prod(_taps(width, n, m) for n, m in zip(x.shape[2:], wanted, strict=True))
        return Work.of(max(0, 2 * taps - 1) * out.numel, [x], [out])

    return work


def _smoothed_backward(width: int) -> Formula:
    """(grad, sizes, sizes of the input, …)."""

    def work(call: OpCall) -> Work:
        gradient, source = shaped(call, 0, 4), sizes(call, 2)
        agree(call, len(source) == 4, "sizes of the input")
        taps = prod(_taps(width, n, m) for n, m in zip(source[2:], gradient.shape[2:], strict=True))
        return Work.of(2 * taps * gradient.numel, [gradient], [gradient.dense(source)])

    return work


_SAMPLED = (
    "2·n − 1 FLOPs per element of the result (a product for each of n neighbours, and their sum; n is 2 an axis, 4 "
    "bicubic, nearest none); places and weights count 0. Reads the grid and at most n values for each element, writes "
    "the result."
)
_SAMPLED_BACK = (
    "Per element of the output gradient and neighbour, for what is asked for: 2 FLOPs for the image, 3 an axis for the "
    "grid (nearest: 1 and none). Reads the output gradient, grid and image; writes the gradients."
)
_SMOOTHED = (
    "2·n − 1 FLOPs per element of the result, n neighbours being the filter's width ({}) an axis, times the factor by "
    "which the image shrinks; weights count 0. Reads self, writes the result."
)
_SMOOTHED_BACK = (
    "2 FLOPs per element of the gradient and neighbour, as many as in the forward. Reads it, writes another."
)


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "movement", formula, words)


MODELS: tuple[Model, ...] = (
    *(_model(f"grid_sampler_{n}d", _sampled(n, 2), _SAMPLED) for n in (2, 3)),
    _model("_grid_sampler_2d_cpu_fallback", _sampled(2, 2), _SAMPLED),
    _model("cudnn_grid_sampler", _sampled(2, None), _SAMPLED),
    *(_model(f"grid_sampler_{n}d_backward", _sampled_backward(n), _SAMPLED_BACK) for n in (2, 3)),
    _model("cudnn_grid_sampler_backward", _vendor_backward, _SAMPLED_BACK),
    *(
        _model(f"_upsample_{name}2d_aa", _smoothed(width), _SMOOTHED.format(width))
        for name, width in (("bilinear", 2), ("bicubic", 4))
    ),
    *(
        _model(f"_upsample_{name}2d_aa_backward", _smoothed_backward(width), _SMOOTHED_BACK)
        for name, width in (("bilinear", 2), ("bicubic", 4))
    ),
)
