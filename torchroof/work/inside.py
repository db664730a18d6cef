"""What ran inside an op, and its gradient, tell of operands that a trace leaves out.

A trace does not record lists of indices, nor, in older files, lists of tensors and numbers. The ops that such a
call made on its way were given them: an indexing op reshapes each index and strides its source to the shape that
it takes, a sum views its result. Only what such ops state is believed; where they state nothing the call stays
as it was, and its work unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from torchroof.tensors import DTYPES, OpCall, Operand, TensorSpec
from torchroof.work.models.operands import operand
from torchroof.work.promotion import BOOL, INT64

Inner = Sequence[OpCall]
"""The calls inside an op, in order."""
Rule = Callable[[OpCall, Inner, OpCall | None], OpCall]


def completed(call: OpCall, inner: Inner, node: OpCall | None = None) -> OpCall:
    """The call with what is known besides. ``node`` is the autograd node that it made, if that ran too.

    Where an op's result is told but not what it follows from, the result is appended as an ``out`` operand.
    """
    rule = _RULES.get(call.name)
    return call if rule is None else rule(call, inner, node)


def is_completed(name: str) -> bool:
    """Whether anything can be told of ops of this name."""
    return name in _RULES


def _indexed(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``index(self, indices)``: the indices, and what is taken as the result."""
    source, indices = call.optional_tensor(0), _indices(inner)
    shape = None if source is None else _taken(source, inner)
    if source is None or shape is None:
        return call
    given = indices or operand(call, 1)
    return replace(call, operands=(source, given, TensorSpec(shape, source.dtype)))  # type: ignore[arg-type]


def _index_put(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``index_put_(self, indices, values, accumulate, …)``: the indices, and values as wide as what is written.

    Of the two ways only the one that adds up sorts its indices, and numbers them for that. One value under a mask
    is filled in.
    """
    source, values = call.optional_tensor(0), call.optional_tensor(2)
    filled = [each for each in inner if each.name == "aten::masked_fill_"]
    if filled:
        return filled[0]
    if source is None or values is None:
        return call
    operands = list(call.operands)
    shape = _taken(source, inner)
    if shape is not None:
        operands[1] = _indices(inner) or operands[1]
        operands[2] = _expanded(values, shape)
    sorts = any(each.name == "aten::arange" for each in inner)
    if not call.scalars_known and len(operands) > 3 and sorts:
        operands[3] = True
    return replace(call, operands=tuple(operands))


def _indices(inner: Inner) -> tuple[TensorSpec, ...]:
    """The index tensors: masks as they were given, or what is reshaped to span the result."""
    masks = tuple(t for t in _given(inner, "aten::nonzero") if t.dtype == BOOL)
    return masks or tuple(t for t in _given(inner, "aten::reshape") if t.dtype is not None and t.dtype.kind == "int")


def _given(inner: Inner, name: str) -> Iterator[TensorSpec]:
    """The first tensor of each call of that name."""
    tensors = (each.optional_tensor(0) for each in inner if each.name == name)
    return (tensor for tensor in tensors if tensor is not None)


def _taken(source: TensorSpec, inner: Inner) -> tuple[int, ...] | None:
    """The shape of what is taken: an indexing op strides its source to it, by 0 along what the indices span."""
    found = None
    for each in inner:
        strided = each.optional_tensor(0) if each.name == "aten::as_strided" else None
        shape, strides = _sizes(operand(each, 1)), _sizes(operand(each, 2))
        if strided is not None and _permuted(strided, source) and shape is not None and strides and 0 in strides:
            found = shape
    indices = _indices(inner)
    if found is None and len(source.shape) == 1 and len(indices) == 1 and indices[0].dtype != BOOL:
        found = indices[0].shape
    return found


def _permuted(tensor: TensorSpec, source: TensorSpec) -> bool:
    return tensor.dtype == source.dtype and sorted(tensor.shape) == sorted(source.shape)


def _sizes(value: object) -> tuple[int, ...] | None:
    """A list of sizes; None for anything else."""
    if not isinstance(value, tuple):
        return None
    found = tuple(n for n in value if isinstance(n, int) and n >= 0)
    return found if len(found) == len(value) else None


def _expanded(tensor: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """The tensor broadcast to a shape: axes that it lacks or that have one element get stride 0."""
    missing = len(shape) - len(tensor.shape)
    if missing < 0:
        return tensor
    strides = tensor.strides or (1,) * len(tensor.shape)
    own = (s if n == m else 0 for s, n, m in zip(strides, tensor.shape, shape[missing:], strict=True))
    return TensorSpec(shape, tensor.dtype, (*(0,) * missing, *own))


def _cast(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``_to_copy(self, dtype, …)``: the type of what is copied to."""
    copied = next(_given(inner, "aten::copy_"), None)
    if call.scalars_known or copied is None or copied.dtype is None:
        return call
    return replace(call, operands=(*call.operands[:1], copied.dtype.name, *call.operands[2:]))


def _reduced(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """Reductions: the result, which they view with the reduced axes put back."""
    source = call.optional_tensor(0)
    if call.scalars_known or source is None:
        return call
    for result in _given(inner, "aten::as_strided"):
        if _is_part(result.shape, source.shape):
            return replace(call, operands=(*call.operands, result))
    return call


def _is_part(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether the sizes of one are those of the other with some left out or made 1."""
    rest = iter(large)
    return len(small) < len(large) and all(any(n == m for m in rest) for n in small if n != 1)


def _joined(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``cat`` and ``stack``: the element type, or the whole list as one, from the result.

    The gradient of a result has its shape and type; where the copies are made one by one, each narrows it.
    """
    given = operand(call, 0)
    whole = None if node is None else node.optional_tensor(0)
    if whole is None:
        narrowed = set(_given(inner, "aten::narrow"))
        whole = narrowed.pop() if len(narrowed) == 1 else None
    if whole is None or whole.dtype is None:
        return call
    if isinstance(given, tuple) and given:
        parts: Operand = tuple(replace(t, dtype=t.dtype or whole.dtype) for t in given if isinstance(t, TensorSpec))
    else:
        parts = (whole.dense(),)
    return replace(call, operands=(parts, *call.operands[1:]))


def _found(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``nonzero``: its result gets its size when the number of places is known, an index for each and axis."""
    for each in inner:
        shape = _sizes(operand(each, 1))
        if each.name in ("aten::resize_", "aten::as_strided_") and shape is not None and len(shape) == 2:
            return replace(call, operands=(*call.operands[:1], TensorSpec(shape, INT64)))
    return call


def _communicated(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """Collectives on lists: the library's record of the call, inside it, has the tensors and the kind."""
    told = [each for each in inner if each.tensors() and each.name.startswith(("nccl:", "record_param_comms"))]
    if not told:
        return call
    own = told[-1]
    return replace(call, operands=(own.tensors(), own.name.removeprefix("nccl:")))


def _linear(call: OpCall, inner: Inner, node: OpCall | None) -> OpCall:
    """``quantized::linear…``: the result, which is made with the rows of the input and as many columns as
    outputs; and from it the weight, a byte a number, two in the fp16 forms."""
    x = call.optional_tensor(0)
    for each in inner:
        shape = _sizes(operand(each, 0)) or _sizes(operand(each, 1))
        if each.name in _MADE and x is not None and shape and shape[:-1] == x.shape[:-1]:
            width = DTYPES["float16" if "fp16" in call.name else "int8"]
            weight = TensorSpec((shape[-1], x.shape[-1]), width)
            return replace(call, operands=(x, TensorSpec(shape, x.dtype), weight))
    return call


_PACKED = ("", "_relu", "_dynamic", "_relu_dynamic", "_dynamic_fp16", "_relu_dynamic_fp16", "_leaky_relu", "_tanh")
_MADE = ("aten::_empty_affine_quantized", "aten::empty", "aten::new_empty")
_RULES: dict[str, Rule] = {
    "aten::index": _indexed,
    "aten::index_put_": _index_put,
    "aten::_index_put_impl_": _index_put,
    "aten::_to_copy": _cast,
    "aten::cat": _joined,
    "aten::stack": _joined,
    "aten::nonzero": _found,
    "record_param_comms": _communicated,
    **dict.fromkeys(
        (f"c10d::{op}_" for op in ("allreduce", "allreduce_coalesced", "reduce", "broadcast")), _communicated
    ),
    **dict.fromkeys((f"quantized::linear{op}" for op in _PACKED), _linear),
    **dict.fromkeys((f"aten::{op}" for op in ("sum", "nansum", "mean", "prod", "amax", "amin")), _reduced),
}
