"""Pooling in one, two and three dimensions, forward and backward."""

from __future__ import annotations

from math import prod

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree
from torchroof.work.models.windows import adaptive_elements, per_axis, pooled
from torchroof.work.promotion import INT64
from torchroof.work.registry import Formula, Model


def _spatial(call: OpCall, index: int, axes: int) -> TensorSpec:
    tensor = call.tensor(index)
    agree(call, len(tensor.shape) in (axes + 1, axes + 2), f"channels and {axes} spatial axes are needed")
    return tensor


def _pooled(call: OpCall, x: TensorSpec, axes: int, dilated: bool) -> TensorSpec:
    """The output of a pooling op with operands (input, kernel, stride, padding[, dilation], ceil_mode)."""
    kernel = per_axis(call, 1, axes)
    stride = per_axis(call, 2, axes) if call.integers(2, ()) else kernel
    padding = per_axis(call, 3, axes, (0,))
    dilation = per_axis(call, 4, axes, (1,)) if dilated else (1,) * axes
    ceil = call.flag(5 if dilated else 4, False)
    steps = zip(x.shape[-axes:], kernel, stride, padding, dilation, strict=True)
    return x.dense((*x.shape[:-axes], *(pooled(*step, ceil) for step in steps)))


def _max(axes: int, indices: bool) -> Formula:
    def work(call: OpCall) -> Work:
        x = _spatial(call, 0, axes)
        out = _pooled(call, x, axes, dilated=True)
        return Work.of(0, [x], [out, out.dense(dtype=INT64) if indices else None])

    return work


def _max_backward(axes: int, indices_at: int) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x = _spatial(call, 0, axes), _spatial(call, 1, axes)
        return Work.of(gradient.numel, [gradient, call.tensor(indices_at)], [x.dense()])

    return work


def _max_backward_from_input(axes: int, input_at: int) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x = _spatial(call, 0, axes), _spatial(call, input_at, axes)
        return Work.of(gradient.numel, [gradient, x], [x.dense()])

    return work


def _average(axes: int) -> Formula:
    def work(call: OpCall) -> Work:
        x = _spatial(call, 0, axes)
        out = _pooled(call, x, axes, dilated=False)
        return Work.of(out.numel * prod(per_axis(call, 1, axes)), [x], [out])

    return work


def _average_backward(axes: int) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x = _spatial(call, 0, axes), _spatial(call, 1, axes)
        return Work.of(gradient.numel * prod(per_axis(call, 2, axes)), [gradient], [x.dense()])

    return work


def _window_elements(x: TensorSpec, out: TensorSpec, axes: int) -> int:
    """Elements in all adaptive windows: they are products of intervals, so the axes multiply."""
    pairs = zip(x.shape[-axes:], out.shape[-axes:], strict=True)
    return prod(x.shape[:-axes]) * prod(adaptive_elements(size, cut) for size, cut in pairs)


def _adaptive_output(call: OpCall, x: TensorSpec, axes: int) -> TensorSpec:
    sizes = per_axis(call, 1, axes)
    agree(call, min(sizes) >= 0, "an output size is negative")
    return x.dense((*x.shape[:-axes], *sizes))


def _adaptive_average(axes: int) -> Formula:
    def work(call: OpCall) -> Work:
        x = _spatial(call, 0, axes)
        out = _adaptive_output(call, x, axes)
        return Work.of(_window_elements(x, out, axes), [x], [out])

    return work


def _adaptive_average_backward(axes: int) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x = _spatial(call, 0, axes), _spatial(call, 1, axes)
        return Work.of(_window_elements(x, gradient, axes), [gradient], [x.dense()])

    return work


def _adaptive_max(axes: int) -> Formula:
    def work(call: OpCall) -> Work:
        x = _spatial(call, 0, axes)
        out = _adaptive_output(call, x, axes)
        return Work.of(0, [x], [out, out.dense(dtype=INT64)])

    return work


def _fractional(axes: int) -> Formula:
    """(self, kernel, size of the output, random samples)."""

    def work(call: OpCall) -> Work:
        x, samples = _spatial(call, 0, axes), call.tensor(3)
        sizes = per_axis(call, 2, axes)
        agree(call, min(sizes) >= 0, "an output size is negative")
        out = x.dense((*x.shape[:-axes], *sizes))
        return Work.of(0, [x, samples], [out, out.dense(dtype=INT64)])

    return work


def _unpooled(axes: int) -> Formula:
    """(self, indices, size of the output, …): every value to its place, zeros elsewhere."""

    def work(call: OpCall) -> Work:
        x, indices, sizes = _spatial(call, 0, axes), call.tensor(1), per_axis(call, 2, axes)
        agree(call, min(sizes) >= 0 and indices.shape == x.shape, "an index for each value, and a size")
        return Work.of(0, [x, indices], [x.dense((*x.shape[:-axes], *sizes))])

    return work


_MAX = "No FLOPs: comparisons count none. Reads the input, writes the output"
_MAX_BACK = "1 add per element of the output gradient. Reads it and {}, writes the input gradient."
_AVG = (
    "1 FLOP per element of every window, padding counted in full (one less add than elements, and one "
    "division). Reads the input, writes the output."
)
_AVG_BACK = (
    "1 add per element of every window, padding counted in full. Reads the output gradient, writes the input gradient."
)


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "pooling", formula, words)


MODELS: tuple[Model, ...] = (
    _model("max_pool1d", _max(1, False), _MAX + "."),
    *(_model(f"max_pool{d}d_with_indices", _max(d, True), _MAX + " and int64 indices.") for d in (1, 2, 3)),
    *(
        _model(f"max_pool{d}d_with_indices_backward", _max_backward(d, 7), _MAX_BACK.format("the int64 indices"))
        for d in (2, 3)
    ),
    *(_model(f"mkldnn_max_pool{d}d", _max(d, False), _MAX + ".") for d in (2, 3)),
    *(
        _model(f"mkldnn_max_pool{d}d_backward", _max_backward_from_input(d, 2), _MAX_BACK.format("the input"))
        for d in (2, 3)
    ),
    _model("max_pool2d_backward", _max_backward_from_input(2, 1), _MAX_BACK.format("the input")),
    *(_model(f"avg_pool{d}d", _average(d), _AVG) for d in (2, 3)),
    *(_model(f"avg_pool{d}d_backward", _average_backward(d), _AVG_BACK) for d in (2, 3)),
    *(_model(f"_adaptive_avg_pool{d}d", _adaptive_average(d), _AVG) for d in (2, 3)),
    *(_model(f"_adaptive_avg_pool{d}d_backward", _adaptive_average_backward(d), _AVG_BACK) for d in (2, 3)),
    _model("adaptive_avg_pool3d_backward", _adaptive_average_backward(3), _AVG_BACK),
    _model("mkldnn_adaptive_avg_pool2d", _adaptive_average(2), _AVG),
    _model("mkldnn_adaptive_avg_pool2d_backward", _adaptive_average_backward(2), _AVG_BACK),
    *(_model(f"adaptive_max_pool{d}d", _adaptive_max(d), _MAX + " and int64 indices.") for d in (2, 3)),
    *(
        _model(f"adaptive_max_pool{d}d_backward", _max_backward(d, 2), _MAX_BACK.format("the int64 indices"))
        for d in (2, 3)
    ),
    *(
        _model(
            f"fractional_max_pool{d}d",
            _fractional(d),
            "No FLOPs: comparisons count none. Reads input and random samples, writes the output and int64 indices.",
        )
        for d in (2, 3)
    ),
    *(
        _model(f"fractional_max_pool{d}d_backward", _max_backward(d, 4), _MAX_BACK.format("the int64 indices"))
        for d in (2, 3)
    ),
    *(
        _model(f"max_unpool{d}d", _unpooled(d), "No FLOPs. Reads input and int64 indices, writes the whole output.")
        for d in (2, 3)
    ),
)
