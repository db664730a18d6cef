"""The shapes and element types of what a module was called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from torchroof.trace.metadata import ShapeFact, TensorFact

Found = tuple[tuple[tuple[int, ...], torch.dtype], ...]
"""Shape and element type of each tensor, in order; hashable, so that seen ones are told apart quickly."""

_Tensor = torch.Tensor
_DEPTH = 3
_LONGEST = 64


def tensors_in(value: Any, depth: int = _DEPTH) -> Found:
    """The tensors of a value: itself, or those in tuples, lists and mappings, a few levels deep."""
    kind = type(value)
    if kind is tuple and len(value) == 1 and type(value[0]) is _Tensor:  # what most modules are called with
        return ((value[0].shape, value[0].dtype),)
    if kind is _Tensor or isinstance(value, _Tensor):
        return ((value.shape, value.dtype),)
    if value is None or depth == 0:
        return ()
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if not isinstance(value, tuple | list):
        return ()
    if len(value) == 1:
        return tensors_in(value[0], depth - 1)
    found: Found = ()
    for item in value[:_LONGEST]:
        found += tensors_in(item, depth - 1)
    return found


def shape_fact(inputs: Found, outputs: Found) -> ShapeFact:
    return ShapeFact(_facts(inputs), _facts(outputs))


def parameter_facts(module: torch.nn.Module) -> tuple[TensorFact, ...]:
    """The parameters that the module itself holds; one not initialized yet is left out."""
    facts = []
    for parameter in module._parameters.values():
        if parameter is None:
            continue
        try:
            facts.append(_fact(parameter.shape, parameter.dtype))
        except RuntimeError:  # an uninitialized parameter has no shape
            continue
    return tuple(facts)


def _facts(found: Found) -> tuple[TensorFact, ...]:
    """The tensors whose sizes are numbers: a nested one's are not."""
    return tuple(_fact(shape, dtype) for shape, dtype in found if all(isinstance(n, int) for n in shape))


def _fact(shape: tuple[int, ...], dtype: torch.dtype) -> TensorFact:
    return TensorFact(tuple(int(n) for n in shape), str(dtype).removeprefix("torch."))
