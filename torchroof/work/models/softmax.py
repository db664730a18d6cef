"""Softmax and losses. ``reduction`` is 0 for none, 1 for mean, 2 for sum, as torch passes it."""

from __future__ import annotations

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.promotion import FLOAT32, dtype_operand, result_type
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import broadcast


def _softmax(call: OpCall) -> Work:
    """(self, dim, half_to_float): the last makes a float32 result of a half input."""
    source = call.tensor(0)
    widened = bool(call.operands[2]) if len(call.operands) > 2 else False
    return Work.of(4 * source.numel, (source,), (source.dense(dtype=FLOAT32 if widened else None),))


def _softmax_backward(call: OpCall) -> Work:
    """(grad, output, dim, input_dtype)."""
    grad, output = call.tensor(0), call.tensor(1)
    result = TensorSpec(output.shape, dtype_operand(call, 3, grad.dtype))
    return Work.of(4 * output.numel, (grad, output), (result,))


def _masked(call: OpCall) -> Work:
    """(self, mask, dim, kind of mask)."""
    source, mask = call.tensor(0), call.tensor(1)
    return Work.of(4 * source.numel, (source, mask), (source.dense(),))


def _masked_backward(call: OpCall) -> Work:
    """(grad, output, mask, dim)."""
    grad, output, mask = call.tensor(0), call.tensor(1), call.tensor(2)
    return Work.of(4 * output.numel, (grad, output, mask), (output.dense(),))


def _picked(source: TensorSpec, count: int) -> TensorSpec:
    """So many of its elements, at most all of them."""
    return source.dense((min(count, source.stored_elements),))


def _nll_forward(call: OpCall) -> Work:
    """(self, target, weight, reduction, ignore_index) → output, total weight: one element per target."""
    source, target, weight = call.tensor(0), call.tensor(1), call.optional_tensor(2)
    n, kept = target.numel, call.integer(3) == 0
    reads = [_picked(source, n), target, _picked(weight, n) if weight else None]
    writes = [source.dense(target.shape if kept else ()), source.dense(())]
    return Work.of(n * (0 if kept else 1) + (n if weight else 0), reads, writes)


def _nll_backward(call: OpCall) -> Work:
    """(grad, self, target, weight, reduction, ignore_index, total weight): zeros but one per target."""
    grad, source, target, weight = call.tensor(0), call.tensor(1), call.tensor(2), call.optional_tensor(3)
    n = target.numel
    reads = [grad, target, _picked(weight, n) if weight else None, call.optional_tensor(6)]
    return Work.of(n, reads, [source.dense()])


def _loss(flops: int, reduction_at: int, weight_at: int | None = None) -> Formula:
    """A loss of (self, target) with so many FLOPs per element, one more where it is summed."""

    def formula(call: OpCall) -> Work:
        source, target = call.tensor(0), call.tensor(1)
        weight = call.optional_tensor(weight_at) if weight_at is not None else None
        shape = broadcast((source.shape, target.shape))
        full = TensorSpec(shape, result_type((source, target)))
        kept = call.integer(reduction_at, 1) == 0
        each = flops + (0 if kept else 1) + (1 if weight else 0)
        return Work.of(each * full.numel, (source, target, weight), (full if kept else full.dense(()),))

    return formula


def _loss_backward(flops: int, weight_at: int | None = None) -> Formula:
    """(grad, self, target, …): the gradient of self has the shape of both broadcast."""

    def formula(call: OpCall) -> Work:
        grad, source, target = call.tensor(0), call.tensor(1), call.tensor(2)
        weight = call.optional_tensor(weight_at) if weight_at is not None else None
        result = TensorSpec(broadcast((source.shape, target.shape)), source.dtype)
        each = flops + (1 if weight else 0)
        return Work.of(each * result.numel, (grad, source, target, weight), (result,))

    return formula


def _model(name: str, formula: Formula, words: str, family: str = "loss") -> Model:
    return Model(f"aten::{name}", family, formula, words)


_SUMMED = "per element, 1 more where they are summed; reads input and target"
_SOFT = "two products, addition, difference: 4 per element"
_LOG = "addition, exp, product, difference: 4 per element"
_BACK = "per element; reads gradient, input and target, writes a gradient"
MODELS: tuple[Model, ...] = (
    _model("_softmax", _softmax, "difference, exp, addition, division: 4 per element", "softmax"),
    _model("_log_softmax", _softmax, "difference, exp, addition, difference: 4 per element", "softmax"),
    _model("_softmax_backward_data", _softmax_backward, _SOFT, "softmax"),
    _model("_log_softmax_backward_data", _softmax_backward, _LOG, "softmax"),
    _model("_masked_softmax", _masked, "difference, exp, addition, division: 4 per element; reads the mask", "softmax"),
    _model("_masked_softmax_backward", _masked_backward, f"{_SOFT}; reads the mask", "softmax"),
    *(
        _model(name, _nll_forward, "reads one element per target, adds them unless reduction is none")
        for name in ("nll_loss_forward", "nll_loss2d_forward")
    ),
    *(
        _model(name, _nll_backward, "one product per target; writes a gradient of the input's size")
        for name in ("nll_loss_backward", "nll_loss2d_backward")
    ),
    _model("mse_loss", _loss(2, 2), f"difference and square: 2 {_SUMMED}"),
    _model("mse_loss_backward", _loss_backward(3), f"difference and two products: 3 {_BACK}"),
    _model("smooth_l1_loss", _loss(4, 2), f"difference, square, scale, offset: 4 {_SUMMED}"),
    _model("smooth_l1_loss_backward", _loss_backward(3), f"difference and two products: 3 {_BACK}"),
    _model("huber_loss", _loss(4, 2), f"difference, square, scale, offset: 4 {_SUMMED}"),
    _model("huber_loss_backward", _loss_backward(3), f"difference and two products: 3 {_BACK}"),
    _model("soft_margin_loss", _loss(4, 2), f"product, negation, exp, log1p: 4 {_SUMMED}"),
    _model(
        "soft_margin_loss_backward",
        _loss_backward(7),
        f"product, negation, exp, sum, division, two products: 7 {_BACK}",
    ),
    _model("binary_cross_entropy", _loss(8, 3, 2), f"2 logs, 2 differences, 2 products, sum, sign: 8 {_SUMMED}"),
    _model(
        "binary_cross_entropy_backward",
        _loss_backward(5, 3),
        f"two differences, two products, division: 5 {_BACK}",
    ),
)
