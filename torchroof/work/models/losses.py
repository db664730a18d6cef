"""Losses of classes and sequences: margins over classes, and connectionist temporal classification."""

from __future__ import annotations

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, shaped
from torchroof.work.registry import Formula, Model

_ALPHA = 11
"""Per step and extended label: three differences, three exps, two sums, a log, two more sums."""
_BETA = _ALPHA + 6
"""The same backwards, and six to collect the product with alpha per class."""
_CLASS = 6
"""Per step and class: two exps, a sum, two differences, a product."""


def _multi_margin(call: OpCall) -> Work:
    """(self, target, p, margin, weight, reduction)."""
    x, target, weight = call.tensor(0), call.tensor(1), call.optional_tensor(4)
    each = 3 + (call.number(2, 1) != 1) + (weight is not None)
    result = x.dense(target.shape if call.integer(5, 1) == 0 else ())
    return Work.of(each * x.numel, [x, target, weight], [result])


def _multi_margin_backward(call: OpCall) -> Work:
    """(grad, self, target, p, margin, weight, reduction)."""
    gradient, x, target, weight = call.tensor(0), call.tensor(1), call.tensor(2), call.optional_tensor(5)
    each = 3 + (call.number(3) != 1) + (weight is not None)
    return Work.of(each * x.numel, [gradient, x, target, weight], [x.dense()])


def _multilabel_margin(call: OpCall) -> Work:
    """(self, target, reduction): every class against those of the target that come before a -1."""
    x, target = call.tensor(0), call.tensor(1)
    result = x.dense(x.shape[:-1] if call.integer(2, 1) == 0 else ())
    return Work.of(None, [x, target], [result, x.dense()])


def _multilabel_margin_backward(call: OpCall) -> Work:
    """(grad, self, target, reduction, is target)."""
    gradient, x, target, mask = (call.tensor(i) for i in (0, 1, 2, 4))
    return Work.of(None, [gradient, x, target, mask], [x.dense()])


def _lengths(call: OpCall, at: int, x: TensorSpec) -> list[tuple[int, int]]:
    """Steps and labels of each sequence. They are values of a tensor in another overload, and then not known."""
    if any(isinstance(call.operands[i], TensorSpec) for i in (at, at + 1) if i < len(call.operands)):
        raise Unknown(f"the lengths given to {call.name} are values, which a trace does not record")
    steps, labels = call.integers(at), call.integers(at + 1)
    agree(call, len(steps) == len(labels) == x.shape[1] and min(*steps, *labels, 0) >= 0, "lengths of the sequences")
    return list(zip(steps, labels, strict=True))


def _cells(lengths: list[tuple[int, int]]) -> int:
    """Steps times labels with a blank around each."""
    return sum(steps * (2 * labels + 1) for steps, labels in lengths)


def _ctc(call: OpCall) -> Work:
    """(log probabilities: steps × sequences × classes, targets, lengths of input, of target, …)."""
    x = shaped(call, 0, 3)
    lengths = _lengths(call, 2, x)
    picked = sum(steps * min(labels + 1, x.shape[2]) for steps, labels in lengths)
    targets = call.tensor(1).dense((sum(labels for _, labels in lengths),))
    longest = max((labels for _, labels in lengths), default=0)
    alpha = x.dense((x.shape[1], x.shape[0], 2 * longest + 1))
    reads = [x.dense((min(picked, x.stored_elements),)), targets]
    return Work.of(_ALPHA * _cells(lengths), reads, [x.dense((x.shape[1],)), alpha])


def _ctc_backward(call: OpCall) -> Work:
    """(grad, log probabilities, targets, lengths of input, of target, losses, alpha, …)."""
    x = shaped(call, 1, 3)
    lengths = _lengths(call, 3, x)
    classes = sum(steps for steps, _ in lengths) * x.shape[2]
    targets = call.tensor(2).dense((sum(labels for _, labels in lengths),))
    reads = [call.tensor(0), x, targets, call.tensor(5), call.tensor(6)]
    return Work.of(_BETA * _cells(lengths) + _CLASS * classes, reads, [x.dense()])


def _ctc_both(call: OpCall) -> Work:
    """A vendor's op computes the gradient along with the loss."""
    x = shaped(call, 0, 3)
    lengths = _lengths(call, 2, x)
    classes = sum(steps for steps, _ in lengths) * x.shape[2]
    targets = TensorSpec((sum(labels for _, labels in lengths),), DTYPES["int32"])
    flops = (_ALPHA + _BETA) * _cells(lengths) + _CLASS * classes
    return Work.of(flops, [x, targets], [x.dense((x.shape[1],)), x.dense()])


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "loss", formula, words)


_MARGIN = "per element: difference, sum, and a sum over classes; 1 more where it is squared, 1 with class weights"
_CTC_BACK = (
    f"{_BETA} FLOPs per step and extended label (the same sum backwards {_ALPHA}, collected per class 6), {_CLASS} "
    "per step and class (two exps, sum, two differences, product)"
)
MODELS: tuple[Model, ...] = (
    _model("multi_margin_loss", _multi_margin, f"3 {_MARGIN}. Reads input, target and weights, writes the loss."),
    _model(
        "multi_margin_loss_backward",
        _multi_margin_backward,
        f"3 {_MARGIN}. Reads gradient, input, target and weights, writes a gradient.",
    ),
    _model(
        "multilabel_margin_loss_forward",
        _multilabel_margin,
        "FLOPs unknown: how many labels a target has is a value. Reads input and target; writes the loss, and which "
        "classes are targets.",
    ),
    _model(
        "multilabel_margin_loss_backward",
        _multilabel_margin_backward,
        "FLOPs unknown: how many labels a target has is a value. Reads gradient, input, target and which classes are "
        "targets, writes a gradient.",
    ),
    _model(
        "_ctc_loss",
        _ctc,
        f"{_ALPHA} FLOPs per step and extended label, of 2·labels + 1 a sequence (log of a sum of three exps, plus a "
        "log probability); unknown where lengths are tensors. Reads in each step at most labels + 1 classes, and the "
        "targets; writes the losses and the table of sums.",
    ),
    _model(
        "_ctc_loss_backward",
        _ctc_backward,
        f"{_CTC_BACK}. Reads gradient, log probabilities, targets, losses and the table; writes a gradient.",
    ),
    *(
        _model(
            op,
            _ctc_both,
            f"Loss and gradient in one: {_ALPHA} and {_CTC_BACK}. Reads log probabilities and targets, writes losses "
            "and a gradient.",
        )
        for op in ("_cudnn_ctc_loss", "miopen_ctc_loss")
    ),
)
