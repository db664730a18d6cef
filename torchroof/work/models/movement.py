"""Movement: copies, casts, fills, joins, gathers and scatters. Bytes and, but for sums, no FLOPs."""

from __future__ import annotations

from math import ceil, isfinite, prod

from torchroof.tensors import DType, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import operand
from torchroof.work.models.resampling import MODELS as RESAMPLING
from torchroof.work.promotion import FLOAT32, INT64, dtype_operand, result_type
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import axis, broadcast, out_operand, replaced


def _copy_into(call: OpCall) -> Work:
    return Work.of(0, (call.tensor(1),), (call.tensor(0),))


def _copied(call: OpCall) -> Work:
    source = call.tensor(0)
    return Work.of(0, (source,), (source.dense(),))


def _cast(call: OpCall) -> Work:
    source = call.tensor(0)
    return Work.of(0, (source,), (TensorSpec(source.shape, dtype_operand(call, 1, source.dtype)),))


def _fill(call: OpCall) -> Work:
    """Writes self; a value given as a tensor is read."""
    return Work.of(0, (call.optional_tensor(1),), (call.tensor(0),))


def _joined(call: OpCall) -> Work:
    """``cat`` and ``stack``. Traces rarely tell the element types in a list: then the bytes are unknown."""
    tensors = call.tensor_list(0)
    dtype = result_type(t if t.shape else t.dense((1,)) for t in tensors)
    return Work.of(0, tensors, (TensorSpec((sum(t.numel for t in tensors),), dtype),))


def _gathered(source: TensorSpec, count: int) -> TensorSpec:
    """What a gather of so many elements reads at least: no more than is stored."""
    return source.dense((min(count, source.stored_elements),))


def _index(call: OpCall) -> Work:
    """``index(self, indices, out)``: where indices do not tell the result, ``out`` does; else it is unknown."""
    source, out = call.tensor(0), out_operand(call, 2)
    indices = _index_tensors(call)
    plain = bool(indices) and all(i.dtype is not None and i.dtype.kind == "int" for i in indices)
    if out is not None and out.numel:
        shape = out.shape
    elif plain and len(indices) <= len(source.shape):
        shape = broadcast(i.shape for i in indices) + source.shape[len(indices) :]
    else:
        raise Unknown(f"the result of {call.name} depends on values or on indices that are not recorded")
    return Work.of(0, (*indices, _gathered(source, prod(shape))), (source.dense(shape),))


def _index_tensors(call: OpCall) -> tuple[TensorSpec, ...]:
    """The index tensors, none where a trace does not record them."""
    given = operand(call, 1)
    return tuple(t for t in given if isinstance(t, TensorSpec)) if isinstance(given, tuple) else ()


def _index_put(call: OpCall) -> Work:
    """(self, indices, values, accumulate). Autograd adds whole gradients up; other values may broadcast."""
    own, values, adds = call.tensor(0), call.tensor(2), call.flag(3, False)
    indices = _index_tensors(call)
    if not adds and not indices:
        raise Unknown(f"how many elements {call.name} writes depends on indices that are not recorded")
    touched = _gathered(own, values.numel)
    return Work.of(values.numel * adds, (values, *indices, touched if adds else None), (touched,))


def _gather(call: OpCall) -> Work:
    source, index = call.tensor(0), call.tensor(2)
    return Work.of(0, (index, _gathered(source, index.numel)), (source.dense(index.shape),))


def _scatter(*, adds: bool, in_place: bool) -> Formula:
    """(self, dim, index, src or value): the elements named are written, and read where added to."""

    def formula(call: OpCall) -> Work:
        own, index, source = call.tensor(0), call.tensor(2), call.optional_tensor(3)
        touched = _gathered(own, index.numel)
        read = _gathered(source, index.numel) if source else None
        if in_place:
            return Work.of(index.numel * adds, (index, read, touched if adds else None), (touched,))
        return Work.of(index.numel * adds, (own, index, read), (own.dense(),))

    return formula


def _index_rows(*, adds: bool, in_place: bool) -> Formula:
    """(self, dim, index, source or value): whole slices of self are written, and read where added to."""

    def formula(call: OpCall) -> Work:
        own, dim, index, source = call.tensor(0), call.integer(1), call.tensor(2), call.optional_tensor(3)
        rows = own.dense(replaced(own.shape, dim, index.numel) if own.shape else ())
        touched, flops = _gathered(own, rows.numel), rows.numel * adds
        if in_place:
            return Work.of(flops, (index, source, touched if adds else None), (touched,))
        return Work.of(flops, (own, index, source), (own.dense(),))

    return formula


def _one_element(call: OpCall) -> Work:
    return Work.of(0, (call.tensor(0).dense((1,)),))


def _triangle_in_place(call: OpCall) -> Work:
    return Work.of(0, (), (call.tensor(0),))


def _made(call: OpCall, count: int, inputs: int, default: DType | None) -> Work:
    out = out_operand(call, 1)
    dtype = out.dtype if out is not None else dtype_operand(call, inputs, default)
    return Work.of(0, (), (TensorSpec((max(0, count),), dtype),))


def _arange(call: OpCall) -> Work:
    """(end), (start, end) or (start, end, step), then an out tensor or dtype, layout, device, pin_memory."""
    given = len(call.operands) - (1 if out_operand(call, 1) is not None else 4)
    if not 1 <= given <= 3:
        raise Unknown(f"{call.name} with {len(call.operands)} operands")
    numbers = [call.number(i) for i in range(given)]
    start, end = (0, numbers[0]) if given == 1 else numbers[:2]
    step = numbers[2] if given == 3 else 1
    if not step or not isfinite(start + end + step):
        raise Unknown(f"{call.name} from {start} to {end} by {step}")
    whole = all(isinstance(n, int) for n in numbers)
    return _made(call, ceil((end - start) / step), given, INT64 if whole else FLOAT32)


def _linspace(call: OpCall) -> Work:
    return _made(call, call.integer(2), 3, FLOAT32)


def _eye(call: OpCall) -> Work:
    given = len(call.operands) - (1 if out_operand(call, 1) is not None else 4)
    if given not in (1, 2):
        raise Unknown(f"{call.name} with {len(call.operands)} operands")
    return _made(call, call.integer(0) * call.integer(given - 1), given, FLOAT32)


def _scalar_tensor(call: OpCall) -> Work:
    return _made(call, 1, 1, FLOAT32)


def _randperm(call: OpCall) -> Work:
    """(n, dtype, …), (n, generator, dtype, …), or with an out tensor: int64 unless told otherwise."""
    return _made(call, call.integer(0), 2 if len(call.operands) == 6 else 1, INT64)


def _diag_embed(call: OpCall) -> Work:
    source = call.tensor(0)
    if not source.shape:
        raise Unknown("diag_embed of a scalar")
    side = source.shape[-1] + abs(call.integer(1, 0))
    return Work.of(0, (source,), (source.dense((*source.shape[:-1], side, side)),))


def _repeat_interleave(call: OpCall) -> Work:
    """(self, repeats, dim, …) with a number of repeats; a tensor of them makes the size depend on values."""
    source, times = call.tensor(0), call.integer(1)
    dim = call.operands[2] if len(call.operands) > 2 else None
    if isinstance(dim, int):
        axis(dim, len(source.shape))
    return Work.of(0, (source,), (source.dense((source.numel * max(0, times),)),))


def _model(name: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{name}", "movement", formula, words)


def _each(names: str, formula: Formula, words: str) -> tuple[Model, ...]:
    return tuple(_model(name, formula, words) for name in names.split())


_PUT = "writes values to self; where they add up, one addition per value, and self is read; reads values and indices"
_FULL = "0 FLOPs; reads self, writes a result of its size"
MODELS: tuple[Model, ...] = (
    *_each("copy_", _copy_into, "0 FLOPs; reads the source, writes self, each in its own type"),
    *_each("_to_copy", _cast, "casts count 0 FLOPs; reads self, writes the new type"),
    *_each("clone _pin_memory roll flip tril triu", _copied, _FULL),
    *_each("pixel_shuffle pixel_unshuffle channel_shuffle", _copied, _FULL),
    *_each("tril_ triu_", _triangle_in_place, "0 FLOPs; writes self"),
    *_each("fill_ zero_", _fill, "0 FLOPs; writes self"),
    *_each("cat _cat stack", _joined, "0 FLOPs; reads every tensor, writes them joined"),
    *_each("index", _index, "0 FLOPs; reads indices and as much of self as is taken, writes that"),
    *_each("index_put_ _index_put_impl_", _index_put, _PUT),
    *_each("gather", _gather, "0 FLOPs; reads indices and one element for each, writes them"),
    *_each("scatter_", _scatter(adds=False, in_place=True), "0 FLOPs; writes one element per index"),
    *_each("scatter", _scatter(adds=False, in_place=False), "0 FLOPs; reads self, writes a changed copy"),
    *_each("scatter_add_ scatter_reduce_", _scatter(adds=True, in_place=True), "one addition per index"),
    *_each("scatter_add scatter_reduce", _scatter(adds=True, in_place=False), "one addition per index"),
    *_each("index_add_", _index_rows(adds=True, in_place=True), "one addition per source element"),
    *_each("index_add", _index_rows(adds=True, in_place=False), "one addition per source element"),
    *_each("index_copy_ index_fill_", _index_rows(adds=False, in_place=True), "0 FLOPs; writes the slices"),
    *_each("index_copy index_fill", _index_rows(adds=False, in_place=False), "0 FLOPs; writes a copy"),
    *RESAMPLING,
    *_each("_local_scalar_dense", _one_element, "0 FLOPs; reads one element"),
    *_each("arange", _arange, "0 FLOPs; writes the numbers"),
    *_each("linspace", _linspace, "0 FLOPs; writes the numbers"),
    *_each("eye", _eye, "0 FLOPs; writes the matrix"),
    *_each("scalar_tensor", _scalar_tensor, "0 FLOPs; writes one element"),
    *_each("randperm", _randperm, "random numbers count 0 FLOPs; writes them"),
    *_each("diag_embed", _diag_embed, "0 FLOPs; reads self, writes it between zeros"),
    *_each("repeat_interleave", _repeat_interleave, "0 FLOPs; reads self, writes it repeated"),
)
