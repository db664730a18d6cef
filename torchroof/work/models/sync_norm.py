"""Batch norm over several devices, in its parts, and the normalised weights of a layer.

As in `norm`: FLOPs are per element, what is done once a channel counts none.
"""

from __future__ import annotations

from torchroof.tensors import OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, statistics_type
from torchroof.work.registry import Formula, Model


def _channels(call: OpCall, x: TensorSpec) -> TensorSpec:
    agree(call, len(x.shape) >= 2, "samples and channels are needed")
    return x.dense((x.shape[1],), statistics_type(x.dtype))


def _statistics(call: OpCall) -> Work:
    x = call.tensor(0)
    saved = _channels(call, x)
    return Work.of(4 * x.numel, [x], [saved, saved])


def _gathered(call: OpCall) -> Work:
    """The input is given for its type and channels alone, and not read."""
    saved = _channels(call, call.tensor(0))
    running = [call.optional_tensor(3), call.optional_tensor(4)]
    counts = call.optional_tensor(7)
    updated = [t.dense() for t in running if t is not None]
    return Work.of(0, [call.tensor(1), call.tensor(2), *running, counts], [saved, saved, *updated])


def _updated(call: OpCall) -> Work:
    x, running = call.tensor(0), [call.optional_tensor(1), call.optional_tensor(2)]
    saved = _channels(call, x)
    return Work.of(4 * x.numel, [x, *running], [saved, saved, *[t.dense() for t in running if t is not None]])


def _elements(call: OpCall) -> Work:
    x, weight, bias = call.tensor(0), call.optional_tensor(1), call.optional_tensor(2)
    each = 2 + (weight is not None) + (bias is not None)
    return Work.of(each * x.numel, [x, weight, bias, call.tensor(3), call.tensor(4)], [x.dense()])


def _reduced_backward(call: OpCall) -> Work:
    gradient, x, weight = call.tensor(0), call.tensor(1), call.optional_tensor(4)
    sums = _channels(call, x)
    to_input, to_weight, to_bias = (call.flag(i) for i in (5, 6, 7))
    parameters = sums if weight is None else weight.dense()
    writes = [sums if to_input else None] * 2 + [parameters if to_weight else None, parameters if to_bias else None]
    if not to_input and not to_weight:
        return Work.of(x.numel * to_bias, [gradient if to_bias else None], writes)
    return Work.of(4 * x.numel, [gradient, x, call.tensor(2), call.tensor(3)], writes)


def _elements_backward(call: OpCall) -> Work:
    gradient, x = call.tensor(0), call.tensor(1)
    rest = [call.tensor(2), call.tensor(3), call.optional_tensor(4), call.tensor(5), call.tensor(6)]
    return Work.of(5 * x.numel, [gradient, x, *rest, call.optional_tensor(7)], [x.dense()])


def _weight_norm(call: OpCall) -> Work:
    v, g = call.tensor(0), call.tensor(1)
    return Work.of(3 * v.numel, [v, g], [v.dense(), g.dense(dtype=statistics_type(g.dtype))])


def _weight_norm_backward(call: OpCall) -> Work:
    gradient, v, g, norms = (call.tensor(i) for i in range(4))
    return Work.of(5 * v.numel, [gradient, v, g, norms], [v.dense(), g.dense()])


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "norm", formula, words)


MODELS: tuple[Model, ...] = (
    _model(
        "batch_norm_stats",
        _statistics,
        "4 FLOPs per element: mean 1, difference, square, add. Reads the input, writes a mean and a reciprocal "
        "deviation a channel.",
    ),
    *(
        _model(
            op,
            _gathered,
            "No FLOPs: only what is done once a channel. Reads the statistics of every device, counts and running "
            "statistics; writes a mean and a reciprocal deviation a channel and the running statistics.",
        )
        for op in ("batch_norm_gather_stats", "batch_norm_gather_stats_with_counts")
    ),
    _model(
        "batch_norm_update_stats",
        _updated,
        "4 FLOPs per element: mean 1, difference, square, add. Reads the input and running statistics, writes them, a "
        "mean and a deviation a channel.",
    ),
    _model(
        "batch_norm_elemt",
        _elements,
        "2 FLOPs per element: centring and normalising; scale and shift 1 each where there is a weight and a bias. "
        "Reads input, weight, bias and statistics, writes the output.",
    ),
    _model(
        "batch_norm_backward_reduce",
        _reduced_backward,
        "4 FLOPs per element: difference, product and two sums; 1 for the bias alone. Reads output gradient, input and "
        "statistics; writes two sums a channel for the input gradient, the gradients of weight and bias.",
    ),
    _model(
        "batch_norm_backward_elemt",
        _elements_backward,
        "5 FLOPs per element: two differences, two products, a sum. Reads output gradient, input, statistics, weight, "
        "both sums and counts; writes the input gradient.",
    ),
    _model(
        "_weight_norm_interface",
        _weight_norm,
        "3 FLOPs per element of the weight: square, sum, product. Reads direction and length; writes the weight, and a "
        "norm for each length.",
    ),
    _model(
        "_weight_norm_interface_backward",
        _weight_norm_backward,
        "5 FLOPs per element of the weight: product and sum, product, difference, product. Reads output gradient, "
        "direction, length and norms; writes the gradients of direction and length.",
    ),
)
