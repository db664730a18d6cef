"""Looking up rows of a table, bags of them, and their gradients.

The rows that are looked up are data, their number is not: of n indices into r rows at most min(n, r) rows
are distinct, and so many count as read; the streamed bound reads a row for each index.
"""

from __future__ import annotations

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, shaped
from torchroof.work.registry import Formula, Model

_SUM, _MEAN, _MAX = 0, 1, 2
"""Modes of an embedding bag."""


def _gather(table: TensorSpec, axis: int, indices: TensorSpec, out: TensorSpec) -> Work:
    """Slices of ``table`` along ``axis`` picked by ``indices``."""
    rows = table.shape[axis]
    picked = list(table.shape)
    picked[axis] = min(indices.numel, rows)
    strides = table.strides
    distinct = TensorSpec(tuple(picked), table.dtype, strides)
    return Work.of(0, [distinct, indices], [out], streamed=[out.dense(), indices, out])


def _embedding(call: OpCall) -> Work:
    table, indices = shaped(call, 0, 2), call.tensor(1)
    return _gather(table, 0, indices, table.dense((*indices.shape, table.shape[1])))


def _index_select(call: OpCall) -> Work:
    source, axis, index = call.tensor(0), call.integer(1), call.tensor(2)
    rank = len(source.shape)
    agree(call, -rank <= axis < rank and len(index.shape) <= 1, "the axis, or indices in more than one axis")
    axis %= rank
    out = source.dense((*source.shape[:axis], index.numel, *source.shape[axis + 1 :]))
    return _gather(source, axis, index, out)


def _dense_gradient(
    gradient: TensorSpec, table: TensorSpec, flops: int, reads: list[TensorSpec | None], touched: TensorSpec
) -> Work:
    """A table of zeros to which rows are added. ``touched``: the rows, one per index."""
    streamed = [gradient, *reads, table, touched, touched]
    return Work.of(flops, [gradient, *reads], [table], streamed=streamed)


def _embedding_gradient(call: OpCall) -> Work:
    gradient, indices = call.tensor(0), call.tensor(1)
    agree(call, gradient.shape[:-1] == indices.shape and bool(gradient.shape), "gradient and indices")
    table = gradient.dense((_rows(call, 2), gradient.shape[-1]))
    return _dense_gradient(gradient, table, gradient.numel, [indices], gradient.dense())


def _rows(call: OpCall, index: int) -> int:
    rows = call.integer(index)
    agree(call, rows >= 0, "the number of rows is negative")
    return rows


def _mode(call: OpCall, index: int, default: int | None = None) -> int:
    mode = call.integer(index, default)
    if mode not in (_SUM, _MEAN, _MAX):
        raise Unknown(f"operand {index} of {call.name} is no mode of an embedding bag")
    return mode


def _bag(call: OpCall) -> Work:
    table, indices, offsets = shaped(call, 0, 2), call.tensor(1), shaped(call, 2, 1)
    mode, weights = _mode(call, 4, _SUM), call.optional_tensor(6)
    bags = offsets.shape[0] - call.flag(7, False)
    agree(call, bags >= 0, "no offsets")
    width = table.shape[1]
    added = indices.numel * width
    flops = {_SUM: added * (1 + (weights is not None)), _MEAN: added + bags * width, _MAX: 0}[mode]
    distinct = TensorSpec((min(indices.numel, table.shape[0]), width), table.dtype, table.strides)
    rest = [indices, offsets, weights]
    out = table.dense((bags, width))
    most = indices.dense((bags, width) if mode == _MAX else (bags,))
    writes = [out, indices.dense((indices.numel,)), indices.dense((bags,)), most]
    streamed = [table.dense((indices.numel, width)), *rest, *writes]
    return Work.of(flops, [distinct, *rest], writes, streamed=streamed)


def _bag_gradient(call: OpCall) -> Work:
    gradient, indices, owner = shaped(call, 0, 2), call.tensor(1), call.tensor(2)
    mode, weights = _mode(call, 7), call.optional_tensor(8)
    width = gradient.shape[1]
    table = gradient.dense((_rows(call, 5), width))
    if mode == _MAX:
        return _dense_gradient(gradient, table, gradient.numel, [call.tensor(4)], gradient.dense())
    added = indices.numel * width
    scaled = mode == _MEAN or weights is not None
    sizes = call.optional_tensor(3) if mode == _MEAN else None
    touched = gradient.dense((indices.numel, width))
    return _dense_gradient(gradient, table, added * (1 + scaled), [indices, owner, sizes, weights], touched)


def _weights_gradient(call: OpCall) -> Work:
    """(grad, table, indices, offsets, bag of each index, mode): a dot product for each index."""
    gradient, table, indices, owner = shaped(call, 0, 2), shaped(call, 1, 2), call.tensor(2), call.optional_tensor(4)
    width = table.shape[1]
    agree(call, gradient.shape[1] == width, "columns of gradient and table")
    n = indices.numel
    given = owner is not None and owner.numel > 0
    rest = [indices, owner if given else call.optional_tensor(3)]
    picked = table.dense((min(n, table.shape[0]), width))
    out = table.dense((n,))
    streamed = [gradient.dense((n, width)), gradient, table.dense((n, width)), *rest, out]
    return Work.of(2 * n * width, [gradient, picked, *rest], [out], streamed=streamed)


_PICK = (
    "No FLOPs. Reads the indices and the rows picked, of n indices into r rows min(n, r) (streamed: one an "
    "index); writes the output."
)
_ADD = (
    "1 add per element of the output gradient. Reads it and the indices; writes the whole table's gradient "
    "(streamed: and reads and writes a row again for each index)."
)
_BAG = (
    "Sum: 1 add per index and column, 2 FLOPs with weights per sample; mean: 1 more per element of the "
    "output; max: none. Reads indices, offsets, weights per sample and the rows picked, of n indices into r "
    "rows min(n, r); writes the output, the bag of each index, the size of each bag and its maximum index."
)
_BAG_BACK = (
    "1 add per index and column, 2 FLOPs for a mean or with weights per sample; max: 1 add per element of "
    "the output gradient. Reads the output gradient, indices, their bags, sizes for a mean, weights per "
    "sample (max: the maximum indices instead); writes the whole table's gradient."
)
_TABLE: tuple[tuple[str, Formula, str], ...] = (
    ("embedding", _embedding, _PICK),
    ("index_select", _index_select, _PICK.replace("rows", "slices")),
    ("embedding_dense_backward", _embedding_gradient, _ADD),
    ("_embedding_bag", _bag, _BAG),
    ("_embedding_bag_forward_only", _bag, _BAG),
    ("_embedding_bag_dense_backward", _bag_gradient, _BAG_BACK),
    (
        "_embedding_bag_per_sample_weights_backward",
        _weights_gradient,
        "2 FLOPs per index and column. Reads the output gradient, indices, their bags and the rows picked, of n "
        "indices into r rows min(n, r); writes a gradient for each index.",
    ),
)

MODELS: tuple[Model, ...] = tuple(Model(f"aten::{op}", "embedding", formula, words) for op, formula, words in _TABLE)
