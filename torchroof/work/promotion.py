"""Which element type an op's result has: torch's promotion rule, and torch's numbers for element types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from torchroof.tensors import DTYPES, DType, OpCall, Operand, Scalar, TensorSpec, Unknown, dtype_named

BOOL = DTYPES["bool"]
INT64 = DTYPES["int64"]
FLOAT32 = DTYPES["float32"]
FLOAT64 = DTYPES["float64"]

_SCALAR_TYPES = {
    **dict(enumerate(("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))),
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
    44: "float8_e8m0fnu",
    45: "float4_e2m1fn_x2",
}
"""How traces write a ``dtype`` argument (c10::ScalarType); those missing here have no width of their own."""
_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3, "opaque": 4}
_COMPLEX = {32: "complex32", 64: "complex64", 128: "complex128"}


def scalar_type(value: Operand) -> DType:
    """The element type that a ``dtype`` argument names. Raises Unknown for a number that stands for none."""
    name = _SCALAR_TYPES.get(value) if isinstance(value, int) and not isinstance(value, bool) else None
    found = dtype_named(name if name else value if isinstance(value, str) else "")
    if found is None:
        raise Unknown(f"{value!r} is no element type")
    return found


def dtype_operand(call: OpCall, index: int, default: DType | None) -> DType | None:
    """The ``dtype`` argument at that place; the default where it was not given."""
    value = call.operands[index] if index < len(call.operands) else None
    if isinstance(value, int | str) and not isinstance(value, bool):
        return scalar_type(value)
    if not call.scalars_known and index < len(call.operands):
        raise Unknown(f"the dtype given to {call.name} is not recorded")
    return default


def promoted(a: DType, b: DType) -> DType:
    """The smallest type that holds both, by torch's table. Raises Unknown for pairs without one.

    Of the pairs that torch refuses (integers with float8) some get a type here; no trace has them.
    """
    if a == b:
        return a
    if "opaque" in (a.kind, b.kind):
        raise Unknown(f"{a} and {b} have no common type")
    low, high = sorted((a, b), key=lambda d: _RANK[d.kind])
    if high.kind == "complex":
        return DTYPES[_COMPLEX[2 * max(high.bits // 2, _part_bits(low))]]
    if low.kind != high.kind:
        return high
    if high.kind == "float":
        return _wider_float(a, b)
    return _wider_int(a, b)


def _part_bits(dtype: DType) -> int:
    """Bits of the parts of the complex number asked for; bfloat16 has none of its width."""
    if dtype.kind == "complex":
        return dtype.bits // 2
    return 0 if dtype.kind != "float" else 32 if dtype.name == "bfloat16" else dtype.bits


def _wider_float(a: DType, b: DType) -> DType:
    if min(a.bits, b.bits) < 16:
        raise Unknown(f"{a} and {b} have no common type")
    return FLOAT32 if a.bits == b.bits else max(a, b, key=lambda d: d.bits)


def _wider_int(a: DType, b: DType) -> DType:
    names, wider = (a.name, b.name), max(a, b, key=lambda d: d.bits)
    unsigned = any(name.startswith("u") for name in names)
    if any(name.startswith("q") for name in names) or (unsigned and "uint8" not in names):
        raise Unknown(f"{a} and {b} have no common type")
    if a.bits == b.bits:
        return DTYPES["int16"]  # uint8 with int8
    return wider


def result_type(values: Iterable[TensorSpec | Scalar]) -> DType | None:
    """The type of a result of these operands, as ``torch.result_type``; None where a tensor's is not known.

    Tensors with dimensions decide; zero-dimensional ones, then numbers, count only when they are of a
    higher sort (bool < int < float < complex). Numbers are bool, int64 or float32.
    """
    levels: list[list[DType]] = [[], [], []]
    for value in values:
        if isinstance(value, TensorSpec):
            if value.dtype is None:
                return None
            levels[0 if value.shape else 1].append(value.dtype)
        else:
            levels[2].append({bool: BOOL, int: INT64, float: FLOAT32}[type(value)])
    found = [reduce(promoted, level) for level in levels if level]
    if not found:
        raise Unknown("no operand has an element type")
    return reduce(lambda low, high: _combined(high, low), reversed(found))


def _combined(high: DType, low: DType) -> DType:
    """The type of one level over the level below it."""
    if _RANK[low.kind] <= _RANK[high.kind]:
        return high
    if high.kind == "float":  # a complex number beside a real tensor keeps that tensor's width
        return DTYPES[_COMPLEX[max(32, 2 * high.bits)]] if high.name != "bfloat16" else DTYPES["complex64"]
    return low
