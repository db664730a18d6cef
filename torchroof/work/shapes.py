"""Shapes of results: broadcasting, reduced axes, windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from torchroof.tensors import OpCall, TensorSpec, Unknown


def broadcast(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The common shape. Raises Unknown where there is none: the record cannot be right."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        sizes = []
        for a, b in zip_longest(reversed(result), reversed(shape), fillvalue=1):
            if a != b and 1 not in (a, b):
                raise Unknown(f"shapes {result} and {tuple(shape)} do not broadcast")
            sizes.append(b if a == 1 else a)
        result = tuple(reversed(sizes))
    return result


def axis(dim: int, rank: int) -> int:
    """A non-negative axis; a scalar has one axis for this purpose."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise Unknown(f"axis {dim} is outside a tensor of {rank} dimensions")
    return dim % max(rank, 1)


def reduced(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """A shape with these axes gone, or of length 1; no axes means all of them."""
    axes = {axis(d, len(shape)) for d in dims} if dims else set(range(len(shape)))
    if keepdim:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def replaced(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    """A shape with another size along one axis."""
    at = axis(dim, len(shape))
    return tuple(size if i == at else n for i, n in enumerate(shape))


def sizes(call: OpCall, index: int) -> tuple[int, ...]:
    """An operand that is a shape, or part of one."""
    found = call.integers(index)
    if any(n < 0 for n in found):
        raise Unknown(f"operand {index} of {call.name} is no shape: {found}")
    return found


def out_operand(call: OpCall, inputs: int) -> TensorSpec | None:
    """The ``out`` tensor of an out variant: a tensor beyond the op's own operands."""
    extra = [v for v in call.operands[inputs:] if isinstance(v, TensorSpec)]
    return extra[0] if extra else None
