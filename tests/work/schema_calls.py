"""Calls as a trace would record them, made from real tensors and torch's own schemas."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchroof.tensors import OpCall, TensorSpec, dtype_named
from torchroof.work.registry import Model

CODES = {
    torch.uint8: 0,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bfloat16: 15,
}


def spec(tensor: torch.Tensor) -> TensorSpec:
    dtype = dtype_named(str(tensor.dtype))
    assert dtype is not None
    return TensorSpec(tuple(tensor.shape), dtype, tuple(tensor.stride()))


def operand(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return spec(value)
    if isinstance(value, list | tuple):
        return tuple(operand(item) for item in value)
    return CODES[value] if isinstance(value, torch.dtype) else value


def call_of(overload: Any, *args: Any, **kwargs: Any) -> OpCall:
    """The operands in the schema's order, defaults filled in."""
    values = []
    for index, argument in enumerate(overload._schema.arguments):
        if index < len(args):
            value = args[index]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        else:
            value = argument.default_value if argument.has_default_value() else None
        values.append(operand(value))
    return OpCall(overload._schema.name, tuple(values))


def bytes_of(tensors: Any) -> int:
    """Bytes of the distinct elements in everything that an op returned."""
    if isinstance(tensors, torch.Tensor):
        size = spec(tensors).stored_bytes
        assert size is not None
        return size
    return sum(map(bytes_of, tensors)) if isinstance(tensors, list | tuple) else 0


class Recorder(TorchDispatchMode):
    """Collects every op that reaches a kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[OpCall] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(call_of(func, *args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))


def models(tables: Iterable[Model]) -> dict[str, Model]:
    return {model.op.removeprefix("aten::"): model for model in tables}


def dense_spec(shape: tuple[int, ...], name: str = "float32") -> TensorSpec:
    dtype = dtype_named(name)
    assert dtype is not None
    return TensorSpec(shape, dtype)


def numel(shape: Iterable[int]) -> int:
    return math.prod(shape)
