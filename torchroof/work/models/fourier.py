"""Fourier transforms: 5·N·log2 N FLOPs for N complex numbers, half of that where one side is real."""

from __future__ import annotations

from math import log2, prod

from torchroof.tensors import DTYPES, OpCall, TensorSpec, Unknown
from torchroof.work.algebra import Work
from torchroof.work.registry import Formula, Model, OnComplex
from torchroof.work.shapes import axis, replaced


def _dims(call: OpCall, shape: tuple[int, ...]) -> tuple[int, ...]:
    dims = tuple(axis(dim, len(shape)) for dim in call.integers(1))
    if not dims or len(set(dims)) < len(dims) or not shape:
        raise Unknown(f"axes of {call.name}")
    return dims


def _flops(shape: tuple[int, ...], dims: tuple[int, ...], each: float) -> int:
    """``each`` · N · log2 N for every transform over these axes, rounded."""
    points = prod(shape[d] for d in dims)
    return round(each * prod(shape) * log2(points)) if points > 0 else 0


def _complex(x: TensorSpec) -> TensorSpec:
    """As many complex numbers, of twice the width."""
    if x.dtype is None:
        return x.dense()
    found = DTYPES.get(f"complex{2 * x.dtype.bits}")
    if found is None or x.dtype.kind != "float" or x.dtype.name == "bfloat16":
        raise Unknown(f"a transform of {x.dtype}")
    return x.dense(dtype=found)


def _real_to_complex(call: OpCall) -> Work:
    x = call.tensor(0)
    dims = _dims(call, x.shape)
    shape = replaced(x.shape, dims[-1], x.shape[dims[-1]] // 2 + 1) if call.flag(3) else x.shape
    return Work.of(_flops(x.shape, dims, 2.5), [x], [_complex(x).dense(shape)])


def _complex_to_real(call: OpCall) -> Work:
    x, last = call.tensor(0), call.integer(3)
    dims = _dims(call, x.shape)
    if last < 0 or x.dtype is None or x.dtype.kind != "complex":
        raise Unknown(f"{call.name} of {x} to {last}")
    result = TensorSpec(replaced(x.shape, dims[-1], last), DTYPES[f"float{x.dtype.bits // 2}"])
    return Work.of(_flops(result.shape, dims, 2.5), [x], [result])


def _complex_to_complex(call: OpCall) -> Work:
    x = call.tensor(0)
    return Work.of(_flops(x.shape, _dims(call, x.shape), 5), [x], [x.dense()])


_WORDS = "{} FLOPs for each transform of N points, the usual count whatever the algorithm; reads self, writes {}."


def _model(op: str, formula: Formula, words: str) -> Model:
    return Model(f"aten::{op}", "fourier", formula, words, on_complex=OnComplex.COUNTED)


_ONE_SIDE = "complex numbers, along the last axis n/2 + 1 of them when one side is asked for"
MODELS: tuple[Model, ...] = (
    _model("_fft_c2c", _complex_to_complex, _WORDS.format("5·N·log2 N", "as much")),
    _model("_fft_r2c", _real_to_complex, _WORDS.format("2.5·N·log2 N", _ONE_SIDE)),
    _model("_fft_c2r", _complex_to_real, _WORDS.format("2.5·N·log2 N", "real numbers")),
)
