"""By which precision and pipe a call is judged, and why.

Operands tell the precision, the family of the op tells the pipe. A float32 product may be computed in TF32, or on
vector units; a kernel's name shows which, else the op's own flag, else the run's. Nothing is guessed: without any of
these a float32 product is judged as float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchroof.device.roof import Roof
from torchroof.roofline.place import pipe_of
from torchroof.tensors import OpCall
from torchroof.trace.dialects import KernelMath
from torchroof.trace.metadata import CaptureFacts
from torchroof.work.registry import MATRIX_FAMILIES

MATRIX, VECTOR = "matrix", "vector"


@dataclass(frozen=True, slots=True)
class Judged:
    """``precision`` is None where no element type is known. ``why`` is for the reader of a row."""

    precision: str | None
    pipe: str
    why: str


@dataclass(frozen=True, slots=True)
class Flags:
    """Whether a run allowed TF32, for products and for convolutions and recurrent layers; None: it does not say."""

    products: bool | None = None
    convolutions: bool | None = None

    def allow(self, family: str) -> bool | None:
        return self.products if family in ("matmul", "attention") else self.convolutions

    @staticmethod
    def of(facts: CaptureFacts | None) -> Flags:
        """What a capture noted of its run."""
        return Flags.from_environment(facts.environment) if facts else Flags()

    @staticmethod
    def from_environment(found: Mapping[str, Any]) -> Flags:
        products, spelled = found.get("allow_tf32_matmul"), found.get("float32_matmul_precision")
        if not isinstance(products, bool):
            products = spelled in ("high", "medium", "tf32") if isinstance(spelled, str) else None
        convolutions = found.get("allow_tf32_cudnn")
        return Flags(products, convolutions if isinstance(convolutions, bool) else None)


_TF32_FLAGS = {
    "aten::_convolution": 12,
    "aten::cudnn_convolution": 8,
    "aten::cudnn_convolution_transpose": 9,
    "aten::cudnn_convolution_relu": None,
}
"""Ops that are told whether they may use TF32, and the operand that tells it."""


def tf32_flag(call: OpCall) -> bool | None:
    """Whether an op was told that it may use TF32; None where it has no such operand, or it is not recorded."""
    at = _TF32_FLAGS.get(call.name)
    value = call.operands[at] if at is not None and at < len(call.operands) else None
    return value if isinstance(value, bool) else None


def judge(
    precision: str | None,
    family: str | None,
    shown: KernelMath | None,
    allowed: bool | None,
    flags: Flags,
    roof: Roof | None,
) -> Judged:
    """The precision and pipe of a call.

    ``precision`` is that of its operands, ``shown`` what its kernels' names show, ``allowed`` its own TF32 flag.
    """
    if family is None or family not in MATRIX_FAMILIES:
        return Judged(precision, pipe_of(family), f"{family or 'unmodelled'} work is done by vector units")
    if shown is not None and shown.pipe == VECTOR:
        return Judged(precision, VECTOR, f"on vector units, not matrix units: the kernel's name has {shown.sign}")
    if precision != "float32":
        more = f"; the kernel's name has {shown.sign}: it adds up in float16" if shown and shown.narrow_sums else ""
        return Judged(precision, MATRIX, f"its operands are {precision or 'of unknown type'}{more}")
    if shown is not None and shown.precision is not None:
        return Judged(shown.precision, MATRIX, f"float32 as {shown.precision}: the kernel's name has {shown.sign}")
    return _by_flag(family, allowed, flags, roof)


def _by_flag(family: str, allowed: bool | None, flags: Flags, roof: Roof | None) -> Judged:
    """A float32 product whose kernel says nothing."""
    if not _has_tf32(roof):
        return Judged("float32", MATRIX, "its operands are float32")
    own, run = allowed, flags.allow(family)
    if own is not None:
        return _allowed(own, "the op's flag")
    if run is not None:
        return _allowed(run, "the run's flag")
    return Judged("float32", MATRIX, "its operands are float32; neither kernel nor flags say that TF32 was used")


def _allowed(allowed: bool, whose: str) -> Judged:
    if allowed:
        return Judged("tf32", MATRIX, f"float32 as tf32: {whose} allows it")
    return Judged("float32", MATRIX, f"its operands are float32, and {whose} forbids TF32")


def _has_tf32(roof: Roof | None) -> bool:
    return roof is not None and any(c.kind == "compute" and c.precision == "tf32" for c in roof.ceilings)
