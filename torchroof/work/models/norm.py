"""Normalisations, forward and backward.

FLOPs are per element of the input; what is done once a row, group or channel counts none.
"""

from __future__ import annotations

from typing import NamedTuple

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, statistics_type
from torchroof.work.registry import Formula, Model

_TRAINED = 5
"""Mean 1 add, centring 1 subtraction, variance a square and an add, normalising 1 product."""


def _statistics(x: TensorSpec, *shape: int) -> TensorSpec:
    return x.dense(shape, statistics_type(x.dtype))


def _rows(call: OpCall, x: TensorSpec, shape_at: int) -> tuple[int, ...]:
    """The leading axes, one statistic each; the trailing ones are normalised over."""
    weight = call.optional_tensor(shape_at + 1)
    axes = call.integers(shape_at) if call.scalars_known or weight is None else weight.shape
    count = len(axes)
    agree(call, 1 <= count <= len(x.shape) and x.shape[-count:] == axes, "normalised axes")
    return (*x.shape[:-count], *(1,) * count)


def _wanted(call: OpCall, index: int, count: int) -> tuple[bool, ...]:
    flags = call.flags(index)
    agree(call, len(flags) == count, f"{count} gradients are asked for or not")
    return flags


def _layer_norm(call: OpCall) -> Work:
    x, weight, bias = call.tensor(0), call.optional_tensor(2), call.optional_tensor(3)
    each = _TRAINED + (weight is not None) + (bias is not None)
    saved = _statistics(x, *_rows(call, x, 1))
    return Work.of(each * x.numel, [x, weight, bias], [x.dense(), saved, saved])


def _layer_norm_backward(call: OpCall) -> Work:
    gradient, x, mean, rstd = (call.tensor(i) for i in (0, 1, 3, 4))
    weight, bias = call.optional_tensor(5), call.optional_tensor(6)
    to_input, to_weight, to_bias = _wanted(call, 7, 3)
    normalised = to_input or to_weight
    each = 2 * normalised + to_input * (7 + (weight is not None)) + 2 * to_weight + to_bias
    reads = [gradient if normalised or to_bias else None, weight if to_input else None]
    reads += [x, mean, rstd] if normalised else []
    writes = [
        x.dense() if to_input else None,
        weight.dense() if to_weight and weight is not None else None,
        bias.dense() if to_bias and bias is not None else None,
    ]
    return Work.of(each * x.numel, reads, writes)


def _rms_norm(call: OpCall) -> Work:
    x, weight = call.tensor(0), call.optional_tensor(2)
    saved = _statistics(x, *_rows(call, x, 1))
    return Work.of((3 + (weight is not None)) * x.numel, [x, weight], [x.dense(), saved])


def _rms_norm_backward(call: OpCall) -> Work:
    gradient, x, rstd, weight = call.tensor(0), call.tensor(1), call.tensor(3), call.optional_tensor(4)
    to_input, to_weight = _wanted(call, 5, 2)
    if not to_input and not to_weight:
        return Work.zero()
    each = 1 + to_input * (5 + (weight is not None)) + 2 * to_weight
    reads = [gradient, x, rstd, weight if to_input else None]
    writes = [
        x.dense() if to_input else None,
        weight.dense() if to_weight and weight is not None else None,
    ]
    return Work.of(each * x.numel, reads, writes)


def _channels(call: OpCall, x: TensorSpec) -> TensorSpec:
    """One statistic a channel, the second axis."""
    agree(call, len(x.shape) >= 2, "samples and channels are needed")
    return _statistics(x, x.shape[1])


def _batch_norm(training_at: int | bool) -> Formula:
    """``training_at`` is the operand that tells training from evaluation, or what the op always does."""

    def work(call: OpCall) -> Work:
        x, weight, bias = call.tensor(0), call.optional_tensor(1), call.optional_tensor(2)
        saved = _channels(call, x)
        mean, var = call.optional_tensor(3), call.optional_tensor(4)
        training = training_at if isinstance(training_at, bool) else _training(call, training_at)
        reads = [x, weight, bias, mean, var]
        if not training:
            return Work.of(2 * x.numel, reads, [x.dense()])
        each = _TRAINED + (weight is not None) + (bias is not None)
        updated = [t.dense() for t in (mean, var) if t is not None]
        return Work.of(each * x.numel, reads, [x.dense(), saved, saved, *updated])

    return work


def _training(call: OpCall, index: int) -> bool:
    """The overload without running statistics has its flag two places earlier."""
    without_statistics = call.name == "aten::_native_batch_norm_legit" and len(call.operands) == 6
    return call.flag(index - 2 if without_statistics else index)


class _BatchNormGradient(NamedTuple):
    """Where the backward of a batch norm has its operands; ``None`` for what it does not have."""

    gradient: int
    x: int
    weight: int
    running: int
    saved: int
    training: int | None = None
    mask: int | None = None


def _batch_norm_backward(at: _BatchNormGradient) -> Formula:
    def work(call: OpCall) -> Work:
        gradient, x = call.tensor(at.gradient), call.tensor(at.x)
        weight = call.optional_tensor(at.weight)
        channels = _channels(call, x)
        training = at.training is None or call.flag(at.training)
        mask = (True, True, True) if at.mask is None else _wanted(call, at.mask, 3)
        to_input, to_weight, to_bias = mask
        if not any(mask):
            return Work.zero()
        first = at.saved if training else at.running
        sums = to_weight or (to_input and training)
        reads = [gradient, weight if to_input else None]
        reads += [x, *map(call.optional_tensor, (first, first + 1))] if sums else []
        if to_input and not training and not sums:
            reads.append(call.optional_tensor(first + 1))
        parameters = channels if weight is None else weight.dense()
        writes = [x.dense() if to_input else None, parameters if to_weight else None]
        writes.append(parameters if to_bias else None)
        return Work.of(_gradient_flops(mask, training) * x.numel, reads, writes)

    return work


def _gradient_flops(mask: tuple[bool, ...], training: bool) -> int:
    """Per element. The sums that the input gradient needs are the gradients of weight and bias."""
    to_input, to_weight, to_bias = mask
    if to_input and training:
        return 9
    return 1 * to_input + 4 * to_weight + 1 * to_bias


def _group_norm(call: OpCall) -> Work:
    x, weight, bias = call.tensor(0), call.optional_tensor(1), call.optional_tensor(2)
    saved = _statistics(x, call.integer(3), call.integer(6))
    each = _TRAINED + (weight is not None) + (bias is not None)
    return Work.of(each * x.numel, [x, weight, bias], [x.dense(), saved, saved])


def _group_norm_backward(call: OpCall) -> Work:
    gradient, x, mean, rstd = (call.tensor(i) for i in range(4))
    weight = call.optional_tensor(4)
    mask = _wanted(call, 9, 3)
    to_input, to_weight, to_bias = mask
    if not any(mask):
        return Work.zero()
    reads = [gradient, weight if to_input else None]
    reads += [x, mean, rstd] if to_input or to_weight else []
    parameters = x.dense((call.integer(6),)) if weight is None else weight.dense()
    writes = [x.dense() if to_input else None, parameters if to_weight else None]
    writes.append(parameters if to_bias else None)
    return Work.of(_gradient_flops(mask, training=True) * x.numel, reads, writes)


_AFFINE = "; scale and shift 1 each where there is a weight and a bias"
_FIVE = "5 FLOPs per element: mean 1 add, centring 1, variance a square and an add, normalising 1" + _AFFINE
_LAYER = _FIVE + ". Reads input, weight, bias; writes the output, a mean and a reciprocal deviation a row."
_LAYER_BACK = (
    "Per element, for what is asked for: the normalised value again 2; input gradient 7 (its two sums 3, "
    "their products and differences 4) and 1 for the weight; weight gradient 2; bias gradient 1. Reads the "
    "output gradient, input, statistics, weight; writes the gradients."
)
_RMS = (
    "3 FLOPs per element (a square and an add, normalising 1), 1 more with a weight. Reads input and weight; "
    "writes the output and a reciprocal deviation a row."
)
_RMS_BACK = (
    "Per element, for what is asked for: the normalised value again 1; input gradient 5 (its sum 2, product "
    "and difference 2, scaling 1) and 1 for the weight; weight gradient 2. Reads the output gradient, input, "
    "statistics, weight; writes the gradients."
)
_BATCH = (
    "Training: " + _FIVE + ". Reads input, weight, bias, running statistics; writes the output, a mean and "
    "a reciprocal deviation a channel, the running statistics. Evaluation: 2 FLOPs per element (a product "
    "and an add, folded per channel); reads the same, writes the output."
)
_BATCH_BACK = (
    "Training, with input gradient: 9 FLOPs per element (the normalised value again 2, two sums 3 that are "
    "the gradients of weight and bias as well, input gradient 4). Otherwise input gradient 1, weight "
    "gradient 4, bias gradient 1, for what is asked for. Reads the output gradient, input, weight, and the "
    "saved (training) or running statistics; writes the gradients."
)
_GROUP = _FIVE + ". Reads input, weight, bias; writes the output, a mean and a reciprocal deviation a group."
_GROUP_BACK = (
    "With input gradient: 9 FLOPs per element (the normalised value again 2, two sums 3 that give the "
    "gradients of weight and bias as well, input gradient 4). Otherwise weight gradient 4, bias gradient 1. "
    "Reads the output gradient, input, statistics, weight; writes the gradients."
)
_NATIVE_GRADIENT = _BatchNormGradient(0, 1, 2, running=3, saved=5, training=7, mask=9)
_VENDOR_GRADIENT = _BatchNormGradient(1, 0, 2, running=3, saved=5)

_TABLE: tuple[tuple[str, Formula, str], ...] = (
    ("native_layer_norm", _layer_norm, _LAYER),
    ("native_layer_norm_backward", _layer_norm_backward, _LAYER_BACK),
    ("_fused_rms_norm", _rms_norm, _RMS),
    ("_fused_rms_norm_backward", _rms_norm_backward, _RMS_BACK),
    ("native_batch_norm", _batch_norm(5), _BATCH),
    ("cudnn_batch_norm", _batch_norm(5), _BATCH),
    ("miopen_batch_norm", _batch_norm(5), _BATCH),
    ("_native_batch_norm_legit", _batch_norm(5), _BATCH),
    ("_native_batch_norm_legit_functional", _batch_norm(5), _BATCH),
    ("_native_batch_norm_legit_no_training", _batch_norm(False), _BATCH),
    ("_batch_norm_with_update", _batch_norm(True), _BATCH),
    ("_batch_norm_with_update_functional", _batch_norm(True), _BATCH),
    ("_batch_norm_no_update", _batch_norm(False), _BATCH),
    ("native_batch_norm_backward", _batch_norm_backward(_NATIVE_GRADIENT), _BATCH_BACK),
    ("batch_norm_backward", _batch_norm_backward(_NATIVE_GRADIENT), _BATCH_BACK),
    ("cudnn_batch_norm_backward", _batch_norm_backward(_VENDOR_GRADIENT), _BATCH_BACK),
    ("miopen_batch_norm_backward", _batch_norm_backward(_VENDOR_GRADIENT), _BATCH_BACK),
    ("native_group_norm", _group_norm, _GROUP),
    ("native_group_norm_backward", _group_norm_backward, _GROUP_BACK),
)

MODELS: tuple[Model, ...] = tuple(Model(f"aten::{op}", "norm", formula, words) for op, formula, words in _TABLE)
