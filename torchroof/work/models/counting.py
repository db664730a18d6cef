"""Searching, counting and drawing: comparisons count 0, what is read and written follows from shapes."""

from __future__ import annotations

from torchroof.tensors import DTYPES, OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.promotion import BOOL, INT64
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import axis, reduced


def _histogram(call: OpCall) -> Work:
    source = call.tensor(0)
    return Work.of(0, [source], [source.dense((max(0, call.integer(1, 100)),))])


def _drawn(call: OpCall) -> Work:
    """``multinomial(weights, n, …)``: n indices for each row of weights."""
    source, count = call.tensor(0), max(0, call.integer(1))
    return Work.of(0, [source], [TensorSpec((*source.shape[:-1], count), INT64)])


def _searched(call: OpCall) -> Work:
    """``searchsorted(sorted, values, out_int32, …)``."""
    bounds, values = call.tensor(0), call.tensor(1)
    narrow = call.flag(2, False)
    return Work.of(
        0, [bounds, values, call.optional_tensor(5)], [values.dense(dtype=DTYPES["int32"] if narrow else INT64)]
    )


def _contained(call: OpCall) -> Work:
    """``isin(elements, tests)``; either may be a number."""
    elements, tests = call.optional_tensor(0), call.optional_tensor(1)
    return Work.of(0, [elements, tests], [TensorSpec(elements.shape if elements else (), BOOL)])


def _compared(call: OpCall) -> Work:
    """``equal``: both are read when they are equal, which is when it takes longest."""
    return Work.of(0, [call.tensor(0), call.tensor(1)])


def _asserted(call: OpCall) -> Work:
    return Work.of(0, [call.tensor(0)])


def _selected(dim_at: int, keep_at: int) -> Formula:
    """A value and its index along an axis; without an axis the value alone."""

    def work(call: OpCall) -> Work:
        source = call.tensor(0)
        if len(call.operands) == 1:
            return Work.of(0, [source], [source.dense(())])
        shape = reduced(source.shape, (call.integer(dim_at, -1),), call.flag(keep_at, False))
        return Work.of(0, [source], [source.dense(shape), TensorSpec(shape, INT64)])

    return work


def _triangle(upper: bool) -> Formula:
    """``tril_indices(rows, columns, offset, …)``: the row and the column of every place in the triangle."""

    def work(call: OpCall) -> Work:
        rows, columns, offset = max(0, call.integer(0)), max(0, call.integer(1)), call.integer(2, 0)
        below = sum(min(max(row + offset + 1, 0), columns) for row in range(rows))
        above = rows * columns - sum(min(max(row + offset, 0), columns) for row in range(rows))
        return Work.of(0, [], [TensorSpec((2, above if upper else below), INT64)])

    return work


def _taken(call: OpCall) -> Work:
    source, index = call.tensor(0), call.tensor(1)
    read = source.dense((min(index.numel, source.stored_elements),))
    return Work.of(0, [index, read], [source.dense(index.shape)])


def _put(call: OpCall) -> Work:
    """``put_(self, index, source, accumulate)``."""
    own, index, source, adds = call.tensor(0), call.tensor(1), call.tensor(2), call.flag(3, False)
    touched = own.dense((min(index.numel, own.stored_elements),))
    return Work.of(index.numel * adds, [index, source, touched if adds else None], [touched])


def _trace(call: OpCall) -> Work:
    source = call.tensor(0)
    length = min(source.shape) if len(source.shape) == 2 else 0
    return Work.of(length, [source.dense((length,))], [source.dense(())])


def _renormed(call: OpCall) -> Work:
    """``renorm(self, p, dim, maxnorm)``: a norm for each slice (2 an element), and a product with its factor."""
    source = call.tensor(0)
    axis(call.integer(2), len(source.shape))
    own = source if call.name.endswith("_") else source.dense()
    return Work.of(3 * source.numel, [source], [own])


def _joined_in_chunks(call: OpCall) -> Work:
    """``_chunk_cat(tensors, dim, chunks)``: gradients laid out for a reduction, padded to whole chunks."""
    tensors = call.tensor_list(0)
    out = next((v for v in call.operands[3:] if isinstance(v, TensorSpec)), None)
    count = out.numel if out is not None and out.numel else sum(t.numel for t in tensors)
    return Work.of(0, tensors, [TensorSpec((count,), out.dtype if out is not None else tensors[0].dtype)])


def _model(op: str, formula: Formula, words: str, family: str = "reduction") -> Model:
    return Model(f"aten::{op}", family, formula, words)


_NONE = "comparisons count 0 FLOPs; "
MODELS: tuple[Model, ...] = (
    _model("histc", _histogram, _NONE + "reads self, writes a number for each bin."),
    _model("multinomial", _drawn, "random numbers count 0 FLOPs; reads the weights, writes int64 indices."),
    _model("searchsorted", _searched, _NONE + "reads the sorted values and those to place, writes indices."),
    _model("isin", _contained, _NONE + "reads both, writes a bool for each element."),
    _model("equal", _compared, _NONE + "reads both."),
    _model("_assert_async", _asserted, "0 FLOPs; reads the condition."),
    _model("kthvalue", _selected(2, 3), _NONE + "reads self, writes values and int64 indices."),
    *(
        _model(op, _selected(1, 2), _NONE + "reads self, writes the value, along an axis int64 indices too.")
        for op in ("median", "nanmedian", "mode")
    ),
    *(
        _model(
            f"{name}_indices",
            _triangle(name == "triu"),
            "0 FLOPs; writes a row and a column for each place.",
            "movement",
        )
        for name in ("tril", "triu")
    ),
    _model("take", _taken, "0 FLOPs; reads indices and one element for each, writes them.", "movement"),
    _model("put_", _put, "one addition per index where values add up; reads indices and values.", "movement"),
    _model("trace", _trace, "one addition for each place on the diagonal; reads it, writes one element."),
    *(
        _model(op, _renormed, "a norm for each slice (2 per element) and a product; reads self, writes it.", "norm")
        for op in ("renorm", "renorm_")
    ),
    _model(
        "_chunk_cat", _joined_in_chunks, "0 FLOPs; reads every tensor, writes them side by side in chunks.", "movement"
    ),
)
