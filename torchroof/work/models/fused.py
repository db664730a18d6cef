"""Kernels that a compiler fused. Their operands tell what they move; what they compute, only the graph knows."""

from __future__ import annotations

import re
from math import prod

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Model

_PARTIAL = re.compile(r"index|gather|embedding|slice|select|split|narrow|unbind|scatter|cat|roll|constant_pad")
"""Parts of a kernel's name that name ops which touch parts of an operand."""


def _generated(call: OpCall) -> Work:
    """Pointers first, then the sizes that the kernel runs over. What it writes comes last among the pointers.

    Operands that are updated in place cannot be told from those that are read: the upper bound moves each twice.
    """
    tensors = call.tensors()
    if not tensors:
        raise Unknown(f"the operands of {call.name} are not recorded")
    places = _places(call)
    if places is not None and _PARTIAL.search(call.name):
        tensors = tuple(_at_most(tensor, places) for tensor in tensors)
    return Work.of(None, tensors[:-1], tensors[-1:], streamed=(*tensors, *tensors))


def _places(call: OpCall) -> int | None:
    """Places that the kernel goes through: the sizes at the end of its operands, two where it is a reduction."""
    sizes: list[int] = []
    for value in reversed(call.operands):
        if not isinstance(value, int) or isinstance(value, bool) or len(sizes) == 2:
            break
        sizes.append(value)
    if not sizes or min(sizes) < 0:
        return None
    return prod(sizes) if not call.name.startswith("triton_poi_") else sizes[0]


def _at_most(tensor: TensorSpec, places: int) -> TensorSpec:
    return tensor if tensor.stored_elements <= places else tensor.dense((places,))


MODELS: tuple[Model, ...] = (
    Model(
        "triton_*",
        "fused",
        _generated,
        "FLOPs unknown: they are those of the ops that were fused. Reads every operand and writes the last, each once "
        "(streamed: twice, as when all are updated in place); where an op in it takes parts of its operands, no more "
        "of each than an element for each place that the kernel goes through.",
        "the order of operands in the kernels that torch.compile makes",
    ),
)
