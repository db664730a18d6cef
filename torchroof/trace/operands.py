"""The operands of an op out of the four lists that ``record_shapes`` writes."""

from __future__ import annotations

from math import prod
from typing import Any

import msgspec

from torchroof.tensors import DType, OpCall, Operand, Scalar, TensorSpec, dtype_named

_BEYOND = 2**63
"""More elements than a tensor can have."""

Lists = tuple[bytes, bytes, bytes, bytes]
"""Dims, types, strides and concrete values as JSON text; empty where the file has no such key."""

_VALUES = frozenset(
    {"Scalar", "Int", "Double", "Bool", "String", "None", "Device"}
    | {"ScalarList", "IntList", "DoubleList", "BoolList"}
)
"""Type names of operands that are no tensors."""

_WORDS: dict[str, Scalar | None] = {"True": True, "False": False, "None": None}


def op_call(name: str, lists: Lists) -> OpCall:
    """The call that the lists describe. Lists of unequal length count up to the longest."""
    dims, types, strides, concrete = (_entries(text) for text in lists)
    count = max(map(len, (dims, types, strides, concrete)))
    operands = tuple(
        _operand(_at(types, i, ""), _at(dims, i, []), _at(strides, i, None), _at(concrete, i, "")) for i in range(count)
    )
    return OpCall(name, operands, scalars_known=bool(lists[3]) or not count)


def _entries(text: bytes) -> list[Any]:
    if not text:
        return []
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):  # text that was passed over: what it says is not known
        return []
    return value if isinstance(value, list) else []


def _at(entries: list[Any], index: int, absent: Any) -> Any:
    return entries[index] if index < len(entries) else absent


def _operand(type_name: Any, dims: Any, strides: Any, concrete: Any) -> Operand:
    """One operand. ``[]`` is a scalar tensor only under an element type; elsewhere it says nothing."""
    name = type_name if isinstance(type_name, str) else ""
    dtype = dtype_named(name)
    if isinstance(dims, list) and dims and all(isinstance(d, list) for d in dims):
        each = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
        return tuple(
            _tensor(shape, dtype, s) for d, s in zip(dims, each, strict=True) if (shape := _sizes(d)) is not None
        )
    shape = _sizes(dims)
    if shape is not None and (dtype is not None or (shape and name not in _VALUES)):
        return _tensor(shape, dtype, strides)
    return value_of(concrete) if isinstance(concrete, str) else _plain(concrete)


def _sizes(dims: Any) -> tuple[int, ...] | None:
    if isinstance(dims, list) and all(isinstance(n, int) and 0 <= n < _BEYOND for n in dims) and prod(dims) < _BEYOND:
        return tuple(dims)
    return None


def _tensor(shape: tuple[int, ...], dtype: DType | None, strides: Any) -> TensorSpec:
    """Files that have strides have them for every tensor that is stored by strides: where the list is empty, it is
    not. None where the file has none at all."""
    if not shape or not isinstance(strides, list):
        return TensorSpec(shape, dtype)
    if len(strides) != len(shape) or not all(isinstance(n, int) for n in strides):
        return TensorSpec(shape, dtype, strided=False)
    return TensorSpec(shape, dtype, tuple(strides))


def _plain(value: Any) -> Operand:
    """A value that the file holds as JSON itself instead of as text."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list) and all(isinstance(v, bool | int | float) for v in value):
        return tuple(value)
    return None


def value_of(text: str) -> Operand:
    """A concrete value: "True", "2", "1e-05", "inf", "[2, 2]". Other text stays text, none is None."""
    text = text.strip()
    if not text:
        return None
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        parts = [_scalar(part.strip()) for part in inner.split(",")] if inner else []
        numbers = tuple(part for part in parts if isinstance(part, bool | int | float))
        return numbers if len(numbers) == len(parts) else text
    return _scalar(text)


def _scalar(text: str) -> Scalar | str | None:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
