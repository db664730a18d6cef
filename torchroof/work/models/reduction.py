"""Reductions and scans: so many FLOPs per element that is read (n elements count n additions, not n - 1).

Overloads share a name in a trace; the number of operands and their sorts tell them apart. Comparisons and
sorting count 0.
"""

from __future__ import annotations

from collections.abc import Callable

from torchroof.tensors import DTYPES, DType, OpCall, TensorSpec
from torchroof.work.algebra import Work
from torchroof.work.models.pointwise import MODELS as POINTWISE
from torchroof.work.promotion import BOOL, FLOAT32, INT64, dtype_operand
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import axis, out_operand, reduced, replaced, sizes

Typed = Callable[[OpCall, TensorSpec, int], DType | None]
"""The result's type from the call, its input and the place of a ``dtype`` operand (-1: it has none)."""

_POINTWISE = {model.op: model.formula for model in POINTWISE}


def _same(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    return dtype_operand(call, at, source.dtype) if at >= 0 else source.dtype


def _value(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    return source.dtype


def _summed(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    """Sums and products of integers are int64."""
    own = source.dtype
    kept = INT64 if own is not None and own.kind in ("int", "bool") else own
    return dtype_operand(call, at, kept) if at >= 0 else kept


def _real(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    found = _same(call, source, at)
    return DTYPES[f"float{found.bits // 2}"] if found is not None and found.kind == "complex" else found


def _real_value(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    return _real(call, source, -1)


def _floating(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    own = source.dtype
    return FLOAT32 if own is not None and own.kind in ("int", "bool") else own


def _truth(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    return source.dtype if source.dtype == DTYPES["uint8"] else BOOL


def _index(call: OpCall, source: TensorSpec, at: int) -> DType | None:
    return INT64


def _dims(call: OpCall, at: int) -> tuple[int, ...]:
    return call.integers(at, ())


def _told(call: OpCall) -> TensorSpec | None:
    """The result, where a trace without numbers leaves the axes open and what ran inside told it instead."""
    out = None if call.scalars_known else out_operand(call, 1)
    return out.dense() if out is not None and out.numel else None


def _along_some(flops: int, source: TensorSpec, dtype: DType | None, results: int) -> Work:
    """A reduction along axes that were not recorded: of its result one element at least, and at most all places
    along the shortest axis that has more than one."""
    shortest = min((n for n in source.shape if n > 1), default=1)
    longest = TensorSpec((source.numel // shortest,), dtype)
    one = TensorSpec((min(1, source.numel),), dtype)
    return Work.of(flops * source.numel, (source,), (one,) * results, streamed=(source, *(longest,) * results))


def _reduction(flops: int, typed: Typed, *, results: int = 1, dims_at: int = 1, keep_at: int = 2) -> Formula:
    """A reduction whose short overload (no dims) has ``dims_at`` operands and perhaps a dtype after them.

    Its long one is (self, …, dims, …, keepdim, dtype). ``results`` such as (var, mean) share shape and type.
    """

    def formula(call: OpCall) -> Work:
        source, told = call.tensor(0), _told(call)
        if told is not None:
            return Work.of(flops * source.numel, (source,), (told,) * results)
        if not call.scalars_known and len(call.operands) > dims_at:
            return _along_some(flops, source, typed(call, source, -1), results)
        full = len(call.operands) <= keep_at
        shape = () if full else reduced(source.shape, _dims(call, dims_at), call.flag(keep_at, False))
        dtype = typed(call, source, dims_at if full else keep_at + 1)
        out = out_operand(call, keep_at)
        result = TensorSpec(shape, out.dtype if out is not None else dtype)
        return Work.of(flops * source.numel, (source,), (result,) * results)

    return formula


def _norm(call: OpCall) -> Work:
    """``norm(x, p)``, ``norm(x, p, dtype)``, ``norm(x, p, dims, keepdim[, dtype])``: square and add."""
    source, short = call.tensor(0), len(call.operands) <= 3
    shape = () if short else reduced(source.shape, _dims(call, 2), call.flag(3, False))
    result = TensorSpec(shape, _real(call, source, 2 if short else 4))
    return Work.of(2 * source.numel, (source,), (result,))


def _logsumexp(call: OpCall) -> Work:
    source = call.tensor(0)
    shape = reduced(source.shape, _dims(call, 1), call.flag(2, False))
    result = TensorSpec(shape, _floating(call, source, -1))
    return Work.of(3 * source.numel, (source,), (result,))


def _extremum(call: OpCall) -> Work:
    """``max(x)``, ``max(x, dim, keepdim)`` with its indices, and ``max(x, other)``, which is pointwise."""
    source = call.tensor(0)
    if len(call.operands) > 1 and isinstance(call.operands[1], TensorSpec):
        return _POINTWISE["aten::maximum"](call)
    if len(call.operands) == 1:
        return Work.of(0, (source,), (TensorSpec((), source.dtype),))
    shape = reduced(source.shape, (call.integer(1),), call.flag(2, False))
    return Work.of(0, (source,), (TensorSpec(shape, source.dtype), TensorSpec(shape, INT64)))


def _optional_dim(typed: Typed, results: int = 1) -> Formula:
    """``argmax(x, dim, keepdim)``, ``all(x)``, ``all(x, dims, keepdim)``, ``count_nonzero(x, dims)``."""

    def formula(call: OpCall) -> Work:
        source = call.tensor(0)
        told = _told(call)
        if told is not None:
            return Work.of(0, (source,), (told,) * results)
        short = len(call.operands) == 1 or isinstance(call.operands[1], TensorSpec)
        dims = () if short else _dims(call, 1)
        keep = call.flag(2, False) if out_operand(call, 2) is None else False
        result = TensorSpec(reduced(source.shape, dims, keep), typed(call, source, -1))
        return Work.of(0, (source,), (result,) * results)

    return formula


def _scan(flops: int, typed: Typed, *, indices: bool = False) -> Formula:
    """``cumsum(x, dim, dtype)``: the result has the input's shape. In place it writes the input."""

    def formula(call: OpCall) -> Work:
        source = call.tensor(0)
        out = out_operand(call, 2)
        dtype = source.dtype if call.name.endswith("_") else out.dtype if out else typed(call, source, 2)
        result = source.dense(dtype=None)
        results = [TensorSpec(result.shape, dtype)]
        if indices:
            results.append(TensorSpec(result.shape, INT64))
        return Work.of(flops * source.numel, (source,), results)

    return formula


def _topk(call: OpCall) -> Work:
    source, k, dim = call.tensor(0), call.integer(1), call.integer(2, -1)
    shape = replaced(source.shape, axis(dim, len(source.shape)), max(0, k))
    return Work.of(0, (source,), (TensorSpec(shape, source.dtype), TensorSpec(shape, INT64)))


def _sort(call: OpCall) -> Work:
    source = call.tensor(0)
    return Work.of(0, (source,), (source.dense(), TensorSpec(source.shape, INT64)))


def _argsort(call: OpCall) -> Work:
    source = call.tensor(0)
    return Work.of(0, (source,), (TensorSpec(source.shape, INT64),))


def _selecting_backward(call: OpCall) -> Work:
    """The gradient of ``max(x, dim)``: (grad, dim, indices, sizes, keepdim) scatters into zeros."""
    grad, indices = call.tensor(0), call.tensor(2)
    return Work.of(0, (grad, indices), (TensorSpec(sizes(call, 3), grad.dtype),))


def _bucketize(call: OpCall) -> Work:
    source, bounds = call.tensor(0), call.tensor(1)
    wide = not call.flag(2, False)
    result = TensorSpec(source.shape, INT64 if wide else DTYPES["int32"])
    return Work.of(0, (source, bounds), (result,))


def _moment(results: int) -> Formula:
    """``var(x, unbiased)``, ``var(x, dims, correction, keepdim)``: one pass for the mean, one around it."""
    return _reduction(4, _real_value, results=results, keep_at=3)


def _model(name: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{name}", "reduction", formula, words)


_PER = "per element read; reads self, writes the result"
_NONE = "comparisons count 0 FLOPs; reads self, writes the result"
_MOMENT = f"mean 1, difference, square, addition: 4 {_PER}"
_NORM = f"square and addition: 2 {_PER}"
MODELS: tuple[Model, ...] = (
    _model("sum", _reduction(1, _summed), f"one addition {_PER}"),
    _model("nansum", _reduction(1, _summed), f"one addition {_PER}"),
    _model("prod", _reduction(1, _summed), f"one product {_PER}"),
    _model("mean", _reduction(1, _same), f"one addition {_PER}; the division of the result counts 0"),
    *(_model(n, _moment(1), _MOMENT) for n in ("var", "std")),
    *(_model(n, _moment(2), f"{_MOMENT}s") for n in ("var_mean", "std_mean")),
    _model("norm", _norm, _NORM),
    _model("linalg_vector_norm", _reduction(2, _real, dims_at=2, keep_at=3), _NORM),
    _model("logsumexp", _logsumexp, f"difference, exp, addition: 3 FLOPs {_PER}"),
    *(_model(n, _extremum, f"{_NONE}, over a dim also int64 indices") for n in ("max", "min")),
    *(_model(n, _optional_dim(_same), _NONE) for n in ("amax", "amin")),
    _model("aminmax", _optional_dim(_same, results=2), f"{_NONE}s"),
    *(_model(n, _optional_dim(_index), f"{_NONE}, int64") for n in ("argmax", "argmin", "count_nonzero")),
    *(_model(n, _optional_dim(_truth), f"{_NONE}, bool") for n in ("all", "any")),
    *(_model(n, _scan(1, _summed), f"one addition {_PER}") for n in ("cumsum", "cumsum_")),
    *(_model(n, _scan(1, _summed), f"one product {_PER}") for n in ("cumprod", "cumprod_")),
    _model("logcumsumexp", _scan(3, _same), f"difference, exp, addition: 3 FLOPs {_PER}"),
    *(_model(n, _scan(0, _value, indices=True), f"{_NONE} and int64 indices") for n in ("cummax", "cummin")),
    _model("topk", _topk, f"{_NONE}: k values and int64 indices"),
    _model("sort", _sort, f"{_NONE}: values and int64 indices"),
    _model("argsort", _argsort, f"{_NONE}: int64 indices"),
    _model("value_selecting_reduction_backward", _selecting_backward, "0 FLOPs; writes zeros, gradients"),
    _model("bucketize", _bucketize, "comparisons count 0 FLOPs; reads values and bounds, writes indices"),
)
