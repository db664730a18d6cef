"""Distances between rows: every pair, coordinate by coordinate."""

from __future__ import annotations

from math import inf, prod

from torchroof.tensors import OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.models.operands import agree, shaped
from torchroof.work.registry import Formula, Model
from torchroof.work.shapes import broadcast

_FEW = 25
"""Up to so many rows a side torch takes differences; beyond, order 2 goes through a product, unless told otherwise."""


def _each(order: float) -> tuple[int, int]:
    """FLOPs per pair and coordinate, and per pair."""
    if order == 2:
        return 3, 1  # difference, square, sum; root
    if order in (0, inf):
        return (2, 0) if order == 0 else (1, 0)  # difference (and a count)
    return (2, 0) if order == 1 else (3, 1)  # difference, (power,) sum


def _each_backward(order: float) -> tuple[int, int]:
    """FLOPs per pair and coordinate, and per pair."""
    if order == 0:
        return 0, 0
    return (4, 1) if order not in (1, 2, inf) else (3, 0 if order == 1 else 1)


def _order(call: OpCall, index: int, default: float | None = None) -> float:
    order = call.number(index, default)
    if not order >= 0:
        raise Unknown(f"{order} is no order of a distance")
    return order


def _sides(call: OpCall, at: int) -> tuple[TensorSpec, TensorSpec, tuple[int, ...]]:
    """Both sets of rows, and the shape of their distances."""
    a, b = call.tensor(at), call.tensor(at + 1)
    agree(call, min(len(a.shape), len(b.shape)) >= 2 and a.shape[-1] == b.shape[-1], "coordinates")
    return a, b, (*broadcast((a.shape[:-2], b.shape[:-2])), a.shape[-2], b.shape[-2])


def _cdist(call: OpCall) -> Work:
    a, b, shape = _sides(call, 0)
    order = _order(call, 2)
    mode = call.integer(3, 0)
    by_product = order == 2 and (mode == 1 or (mode == 0 and max(shape[-2:]) > _FEW))
    coordinate, pair = (2, 4) if by_product else _each(order)
    return Work.of(prod(shape) * (coordinate * a.shape[-1] + pair), [a, b], [a.dense(shape)])


def _cdist_backward(call: OpCall) -> Work:
    a, b, shape = _sides(call, 1)
    coordinate, pair = _each_backward(_order(call, 3))
    result = a.dense((*shape[:-1], a.shape[-1]))
    return Work.of(prod(shape) * (coordinate * a.shape[-1] + pair), [call.tensor(0), a, b, call.tensor(4)], [result])


def _pairs(rows: int) -> int:
    return rows * (rows - 1) // 2


def _pdist(call: OpCall) -> Work:
    x = shaped(call, 0, 2)
    coordinate, pair = _each(_order(call, 1, 2.0))
    pairs = _pairs(x.shape[0])
    return Work.of(pairs * (coordinate * x.shape[1] + pair), [x], [x.dense((pairs,))])


def _pdist_backward(call: OpCall) -> Work:
    x = shaped(call, 1, 2)
    order = _order(call, 2)
    coordinate, pair = _each_backward(order)
    flops = _pairs(x.shape[0]) * ((coordinate + (order > 0)) * x.shape[1] + pair)
    return Work.of(flops, [call.tensor(0), x, call.tensor(3)], [x.dense()])


_FORWARD = (
    "per pair and coordinate order 2: 3 FLOPs (difference, square, sum) and a root a pair; order 1: 2; order 0: 2; "
    "infinite order: 1; others as 2"
)
_BACKWARD = (
    "per pair and coordinate 3 FLOPs (difference, product, sum) and a division a pair, but for order 1; order 0: "
    "none; orders other than 1, 2 and infinity 4"
)


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "distance", formula, words)


MODELS: tuple[Model, ...] = (
    _model(
        "_cdist_forward",
        _cdist,
        f"{_FORWARD}; order 2 between more than 25 rows goes through a product: 2 per coordinate and 4 a pair. Reads "
        "both, writes the distances.",
    ),
    _model(
        "_cdist_backward",
        _cdist_backward,
        f"{_BACKWARD}. Reads the gradient, both sets and the distances; writes one set's gradient.",
    ),
    _model("_pdist_forward", _pdist, f"{_FORWARD}. Reads the rows, writes n·(n − 1)/2 distances."),
    _model(
        "_pdist_backward",
        _pdist_backward,
        f"{_BACKWARD}; one more sum per coordinate, for the second of the pair. Reads gradient, rows and distances; "
        "writes the rows' gradient.",
    ),
)
