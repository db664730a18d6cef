"""What an op was given: element types, tensors as shape and layout, and the call itself.

These values are the vocabulary that the trace, the join and the work models share.
They hold no data and need no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd, isfinite, prod

from torchroof.errors import OperandError


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. ``bits`` is the width of one stored element (a complex number counts both parts)."""

    name: str
    bits: int
    kind: str
    """``float``, ``int``, ``bool``, ``complex``, or ``opaque`` where only the width is known."""

    def __str__(self) -> str:
        return self.name


_DTYPES = (
    DType("float64", 64, "float"),
    DType("float32", 32, "float"),
    DType("float16", 16, "float"),
    DType("bfloat16", 16, "float"),
    DType("float8_e4m3fn", 8, "float"),
    DType("float8_e5m2", 8, "float"),
    DType("float8_e4m3fnuz", 8, "float"),
    DType("float8_e5m2fnuz", 8, "float"),
    DType("float8_e8m0fnu", 8, "float"),
    DType("float4_e2m1fn_x2", 8, "float"),
    DType("int64", 64, "int"),
    DType("int32", 32, "int"),
    DType("int16", 16, "int"),
    DType("int8", 8, "int"),
    DType("int4", 4, "int"),
    DType("uint8", 8, "int"),
    DType("uint16", 16, "int"),
    DType("uint32", 32, "int"),
    DType("uint64", 64, "int"),
    DType("bool", 8, "bool"),
    DType("complex32", 32, "complex"),
    DType("complex64", 64, "complex"),
    DType("complex128", 128, "complex"),
    DType("qint8", 8, "int"),
    DType("quint8", 8, "int"),
    DType("qint32", 32, "int"),
)
DTYPES: dict[str, DType] = {d.name: d for d in _DTYPES}
"""Every element type by torch's name for it."""

_SPELLINGS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::Float8_e8m0fnu": "float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "__int64": "int64",
    "int": "int32",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned short int": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "unsigned long int": "uint64",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::qint8": "qint8",
    "c10::quint8": "quint8",
    "c10::qint32": "qint32",
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "float8": "float8_e4m3fn",
}
"""Spellings met in traces (C++ names, GCC, clang and MSVC) and short ones that people type."""


def dtype_named(text: str) -> DType | None:
    """The element type of a C++, torch or short name; None for a name that is no element type."""
    name = text.removeprefix("torch.")
    return DTYPES.get(name) or DTYPES.get(_SPELLINGS.get(name, ""))


def opaque(bits: int) -> DType:
    """A type of which only the width is known."""
    return DType(f"{bits} bits", bits, "opaque")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor as its shape, element type and strides.

    ``strides`` are in elements; None means dense. ``dtype`` is None where the trace does not tell it
    (element types of tensor lists), and then the number of bytes is unknown.
    """

    shape: tuple[int, ...]
    dtype: DType | None
    strides: tuple[int, ...] | None = None
    strided: bool = True
    """False for a sparse or packed layout: what is stored does not follow from the shape."""

    @property
    def numel(self) -> int:
        """Elements by shape; a zero-dimensional tensor has one."""
        return prod(self.shape)

    @property
    def stored_elements(self) -> int:
        """Distinct elements in memory: an axis of stride 0 (an expanded one) stores a single copy.

        Views that overlap (windows, frames) share elements. Axes are laid from the shortest stride on: one that
        steps beyond what the others reach repeats all of it, of any other no more is stored than lies between
        the first element and the last.
        """
        if self.strides is None or len(self.strides) != len(self.shape) or not self.numel:
            return self.numel
        count, reach, step = 1, 0, 0
        for stride, n in sorted((abs(stride), n) for n, stride in zip(self.shape, self.strides, strict=True)):
            if stride == 0 or n == 1:
                continue
            apart = stride > reach
            reach, step = reach + (n - 1) * stride, gcd(step, stride)
            count = count * n if apart else min(count * n, reach // step + 1)
        return count

    @property
    def stored_bytes(self) -> int | None:
        """Bytes of the distinct elements, in whole bytes; None where element type or layout leave them open."""
        if self.dtype is None or not self.strided:
            return None
        return -(-self.stored_elements * self.dtype.bits // 8)

    def dense(self, shape: Sequence[int] | None = None, dtype: DType | None = None) -> TensorSpec:
        """A dense tensor like this one, with another shape or element type where given."""
        return TensorSpec(tuple(self.shape if shape is None else shape), dtype or self.dtype)

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype or 'unknown type'}"


Scalar = bool | int | float
Operand = TensorSpec | tuple[TensorSpec, ...] | Scalar | str | tuple[Scalar, ...] | None
"""A tensor, a list of tensors, a number, a text, a list of numbers, or nothing."""


class Unknown(Exception):
    """Raised inside a work model when an operand that it needs is not known; its text is the reason."""


@dataclass(frozen=True, slots=True)
class OpCall:
    """One call of an op: its full name and its operands in schema order.

    The accessors raise `Unknown` when the operand is not there or is of another sort, so that a formula
    reads as arithmetic and an unknown operand makes the work unknown, never zero.
    ``scalars_known`` is False for traces that recorded shapes but no scalar arguments.
    """

    name: str
    operands: tuple[Operand, ...]
    scalars_known: bool = True

    def _at(self, index: int) -> Operand:
        return self.operands[index] if index < len(self.operands) else None

    def tensor(self, index: int) -> TensorSpec:
        value = self._at(index)
        if not isinstance(value, TensorSpec):
            raise Unknown(f"operand {index} of {self.name} is not a tensor of known shape")
        return value

    def optional_tensor(self, index: int) -> TensorSpec | None:
        value = self._at(index)
        return value if isinstance(value, TensorSpec) else None

    def tensors(self) -> tuple[TensorSpec, ...]:
        """All tensors, those inside lists too, in order."""
        found: list[TensorSpec] = []
        for value in self.operands:
            if isinstance(value, TensorSpec):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(v for v in value if isinstance(v, TensorSpec))
        return tuple(found)

    def tensor_list(self, index: int) -> tuple[TensorSpec, ...]:
        value = self._at(index)
        if isinstance(value, tuple) and value and all(isinstance(v, TensorSpec) for v in value):
            return value  # type: ignore[return-value]
        raise Unknown(f"operand {index} of {self.name} is not a list of tensors of known shape")

    def number(self, index: int, default: float | None = None) -> float:
        value = self._at(index)
        if isinstance(value, bool | int | float):
            return value
        if value is None and default is not None and self.scalars_known:
            return default
        raise Unknown(f"operand {index} of {self.name} is not a known number")

    def integer(self, index: int, default: int | None = None) -> int:
        return self._whole(index, self.number(index, default))

    def _whole(self, index: int, value: Operand) -> int:
        if isinstance(value, bool | int | float) and isfinite(value):
            return int(value)
        raise Unknown(f"operand {index} of {self.name} is not a known integer")

    def flag(self, index: int, default: bool | None = None) -> bool:
        return bool(self.number(index, default))

    def integers(self, index: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A list of integers; a single number counts as a list of one."""
        value = self._at(index)
        if isinstance(value, bool | int):
            return (int(value),)
        if isinstance(value, tuple) and not any(isinstance(v, TensorSpec) for v in value):
            return tuple(self._whole(index, v) for v in value)
        if value is None and default is not None and self.scalars_known:
            return default
        raise Unknown(f"operand {index} of {self.name} is not a known list of integers")

    def flags(self, index: int) -> tuple[bool, ...]:
        return tuple(bool(v) for v in self.integers(index))


class Role(Enum):
    """What an op is to the accounting, by its name alone."""

    MODELLED = "modelled"
    """It does FLOPs or moves bytes, and a formula says how many: it claims all that runs inside it."""
    FALLS_THROUGH = "falls through"
    """It only calls other ops (`linear`, `reshape`): they are counted, it is not."""
    FREE = "free"
    """A view or an allocation: it neither computes nor moves anything."""
    UNMODELLED = "unmodelled"
    """Nothing is known of its work."""


def parse_shape(text: str) -> tuple[int, ...]:
    """``"512x256"`` as (512, 256); ``"scalar"`` as (). Raises OperandError for anything else."""
    if text == "scalar":
        return ()
    try:
        shape = tuple(int(part) for part in text.lower().replace("×", "x").split("x"))
    except ValueError:
        raise OperandError(f"{text!r} is not a shape; write sizes joined by x, for example 512x256") from None
    if any(n < 0 for n in shape):
        raise OperandError(f"{text!r} has a negative size")
    return shape
