"""Op calls from what a person writes: a short name and shapes, every operand of one element type.

``call_of("linear", [(32, 784), (10, 784)], float32)`` is the `aten::mm` that `torch.nn.Linear` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from torchroof.errors import OperandError, UnknownOp
from torchroof.tensors import DTYPES, DType, OpCall, Operand, TensorSpec

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How a convolution slides, per axis (height, width), and whether attention looks only back."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    causal: bool = False


@dataclass(frozen=True, slots=True)
class Spelling:
    """What a short name takes: between ``least`` and ``most`` shapes, and the call that it stands for."""

    usage: str
    least: int
    most: int
    build: Callable[[Sequence[TensorSpec], Window], OpCall]


def call_of(op: str, shapes: Sequence[Shape], dtype: DType, window: Window | None = None) -> OpCall:
    """The call. Raises UnknownOp for another name, OperandError where the shapes do not fit it."""
    spelling = SPELLINGS.get(op.removeprefix("aten::"))
    if spelling is None:
        raise UnknownOp(f"no op named {op!r} can be explained; known are {', '.join(SPELLINGS)}")
    if not spelling.least <= len(shapes) <= spelling.most:
        raise OperandError(f"{op} takes {spelling.usage}, not {len(shapes)} shape{'s' * (len(shapes) != 1)}")
    short, asked = op.removeprefix("aten::"), window or Window()
    if short != "conv2d" and replace(asked, causal=False) != Window():
        raise OperandError(f"stride, padding, dilation and groups belong to conv2d, not to {op}")
    if short != "attention" and asked.causal:
        raise OperandError(f"--causal belongs to attention, not to {op}")
    return spelling.build([TensorSpec(shape, dtype) for shape in shapes], window or Window())


def _fit(holds: bool, message: str) -> None:
    if not holds:
        raise OperandError(message)


def _axes(tensor: TensorSpec, axes: int, what: str) -> None:
    _fit(len(tensor.shape) == axes, f"{what} must have {axes} axes, {_text(tensor)} has {len(tensor.shape)}")


def _text(tensor: TensorSpec) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _transposed(weight: TensorSpec) -> TensorSpec:
    rows, columns = weight.shape
    return TensorSpec((columns, rows), weight.dtype, (1, columns))


def _mm(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    a, b = tensors
    _axes(a, 2, "the first matrix")
    _axes(b, 2, "the second matrix")
    _inner(a, b)
    return OpCall("aten::mm", (a, b))


def _inner(a: TensorSpec, b: TensorSpec) -> None:
    columns, rows = a.shape[-1], b.shape[-2]
    _fit(
        columns == rows,
        f"{_text(a)} by {_text(b)}: the first has {columns} columns, the second {rows} rows",
    )


def _bmm(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    a, b = tensors
    _axes(a, 3, "the first batch of matrices")
    _axes(b, 3, "the second batch of matrices")
    _fit(a.shape[0] == b.shape[0], f"{_text(a)} by {_text(b)}: batches of {a.shape[0]} and {b.shape[0]}")
    _inner(a, b)
    return OpCall("aten::bmm", (a, b))


def _addmm(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    added, a, b = tensors
    _mm([a, b], window)
    result = (a.shape[0], b.shape[1])
    _fit(_broadcasts(added.shape, result), f"{_text(added)} cannot be added to {_text(a.dense(result))}")
    return OpCall("aten::addmm", (added, a, b, 1, 1))


def _linear(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    x, weight, bias = (*tensors, None)[:3]
    assert x is not None and weight is not None
    _axes(weight, 2, "the weight (outputs x inputs)")
    features = weight.shape[1]
    _fit(
        bool(x.shape) and x.shape[-1] == features,
        f"an input {_text(x)} does not fit a weight {_text(weight)}, which takes {features} features",
    )
    rows = x.dense((prod(x.shape[:-1]), features))
    if bias is None:
        return OpCall("aten::mm", (rows, _transposed(weight)))
    _fit(bias.shape == weight.shape[:1], f"a bias {_text(bias)} does not fit {weight.shape[0]} outputs")
    return OpCall("aten::addmm", (bias, rows, _transposed(weight), 1, 1))


def _gemv(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    matrix, vector = tensors
    _axes(matrix, 2, "the matrix")
    _axes(vector, 1, "the vector")
    columns, length = matrix.shape[1], vector.shape[0]
    _fit(columns == length, f"a matrix of {columns} columns does not fit a vector of {length}")
    return OpCall("aten::mv", (matrix, vector))


def _conv2d(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    x, weight, bias = (*tensors, None)[:3]
    assert x is not None and weight is not None
    _axes(x, 4, "the input (samples x channels x height x width)")
    _axes(weight, 4, "the weight (outputs x channels per group x height x width)")
    outputs, channels = weight.shape[0], weight.shape[1] * window.groups
    _fit(
        x.shape[1] == channels,
        f"the input {_text(x)} has {x.shape[1]} channels, the weight {_text(weight)} takes {channels}"
        f" in {window.groups} group{'s' * (window.groups != 1)}",
    )
    _fit(outputs % window.groups == 0, f"{outputs} outputs do not divide into {window.groups} groups")
    for axis, name in enumerate(("height", "width")):
        room = x.shape[2 + axis] + 2 * window.padding[axis]
        reach = window.dilation[axis] * (weight.shape[2 + axis] - 1) + 1
        _fit(reach <= room, f"the kernel reaches over {reach} in {name}, the padded input has only {room}")
    if bias is not None:
        _fit(bias.shape == (outputs,), f"a bias {_text(bias)} does not fit {outputs} outputs")
    sliding: tuple[Operand, ...] = (window.stride, window.padding, window.dilation)
    return OpCall("aten::convolution", (x, weight, bias, *sliding, False, (0, 0), window.groups))


def _softmax(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    (x,) = tensors
    return OpCall("aten::_softmax", (x, len(x.shape) - 1, False))


def _layer_norm(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    (x,) = tensors
    _fit(bool(x.shape), "layer_norm needs at least one axis")
    scale = x.dense(x.shape[-1:])
    return OpCall("aten::native_layer_norm", (x, x.shape[-1:], scale, scale, 1e-5))


def _attention(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    q, k, v = tensors
    for tensor, name in zip(tensors, ("query", "key", "value"), strict=True):
        _axes(tensor, 4, f"the {name} (batch x heads x tokens x width)")
    _fit(q.shape[3] == k.shape[3], f"a query of width {q.shape[3]} does not fit keys of width {k.shape[3]}")
    _fit(k.shape[:3] == v.shape[:3], f"keys {_text(k)} and values {_text(v)} differ in more than their width")
    _fit(q.shape[0] == k.shape[0], f"batches of {q.shape[0]} and {k.shape[0]}")
    whole = k.shape[1] > 0 and q.shape[1] % k.shape[1] == 0
    _fit(whole, f"{q.shape[1]} query heads do not divide into {k.shape[1]} key heads")
    return OpCall("aten::scaled_dot_product_attention", (q, k, v, None, 0.0, window.causal))


def _embedding(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
    table, indices = tensors
    _axes(table, 2, "the table (rows x width)")
    return OpCall("aten::embedding", (table, indices.dense(dtype=DTYPES["int64"]), -1, False, False))


def _unary(name: str) -> Spelling:
    def build(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
        return OpCall(f"aten::{name}", tuple(tensors))

    return Spelling("one shape", 1, 1, build)


def _binary(name: str) -> Spelling:
    def build(tensors: Sequence[TensorSpec], window: Window) -> OpCall:
        a, b = (*tensors, *tensors)[:2]
        _fit(_meet(a.shape, b.shape), f"{_text(a)} and {_text(b)} do not broadcast")
        return OpCall(f"aten::{name}", (a, b, 1) if name in ("add", "sub") else (a, b))

    return Spelling("one or two shapes", 1, 2, build)


def _meet(a: Shape, b: Shape) -> bool:
    """Whether two shapes broadcast with each other."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _broadcasts(small: Shape, large: Shape) -> bool:
    """Whether the first expands to the second."""
    pairs = zip(reversed(small), reversed(large), strict=False)
    return len(small) <= len(large) and all(m in (1, n) for m, n in pairs)


SPELLINGS: dict[str, Spelling] = {
    "mm": Spelling("two shapes, ROWSxINNER INNERxCOLUMNS", 2, 2, _mm),
    "linear": Spelling("an input, a weight OUTPUTSxINPUTS and perhaps a bias", 2, 3, _linear),
    "conv2d": Spelling("an input NxCxHxW, a weight OUTxCxHxW and perhaps a bias", 2, 3, _conv2d),
    "gemv": Spelling("a matrix ROWSxCOLUMNS and a vector", 2, 2, _gemv),
    "bmm": Spelling("two shapes, BATCHxROWSxINNER BATCHxINNERxCOLUMNS", 2, 2, _bmm),
    "addmm": Spelling("three shapes: what is added, ROWSxINNER INNERxCOLUMNS", 3, 3, _addmm),
    "attention": Spelling("query, key and value, each BATCHxHEADSxTOKENSxWIDTH", 3, 3, _attention),
    "embedding": Spelling("a table ROWSxWIDTH and the shape of the indices", 2, 2, _embedding),
    "softmax": Spelling("one shape", 1, 1, _softmax),
    "layer_norm": Spelling("one shape", 1, 1, _layer_norm),
    "relu": _unary("relu"),
    "gelu": _unary("gelu"),
    "sigmoid": _unary("sigmoid"),
    "tanh": _unary("tanh"),
    "add": _binary("add"),
    "mul": _binary("mul"),
}
"""The names that can be written, and what each takes."""
