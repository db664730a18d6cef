"""Work: what an op must at least do, as FLOPs and bytes.

A multiply-add is 2 FLOPs. Bytes are *compulsory* traffic: each distinct stored element that is read is
read once, each that is written is written once. ``bytes_upper`` is what moves when every operand is
streamed, where a formula knows it. `docs/counting.md` has the conventions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torchroof.tensors import TensorSpec, Unknown


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and bytes; each may be unknown (None), which no sum turns into a number.

    ``flops`` is the headline (for causal attention: the unmasked part), ``flops_full`` the count without
    masks. ``+`` is associative and commutative with ``Work.zero()`` as its neutral element.
    """

    flops: int | None
    bytes_read: int | None
    bytes_written: int | None
    flops_full: int | None = None
    bytes_upper: int | None = None
    flops_beside: int = 0
    """Those of ``flops`` that are no multiply-adds, in an op whose rest is products of matrices."""

    def __post_init__(self) -> None:
        """Raises Unknown for a negative figure, which a formula gives for operands that no op accepts."""
        figures = (self.flops, self.flops_full, self.bytes_read, self.bytes_written, self.bytes_upper)
        if any(figure is not None and figure < 0 for figure in figures):
            raise Unknown("its operands make a negative figure")
        if self.flops_full is None:
            object.__setattr__(self, "flops_full", self.flops)
        if self.bytes_upper is None:
            object.__setattr__(self, "bytes_upper", self.bytes_moved)

    @staticmethod
    def zero() -> Work:
        return Work(0, 0, 0)

    @staticmethod
    def unknown() -> Work:
        return Work(None, None, None)

    @staticmethod
    def of(
        flops: int | None,
        reads: Iterable[TensorSpec | None] = (),
        writes: Iterable[TensorSpec | None] = (),
        flops_full: int | None = None,
        streamed: Iterable[TensorSpec | None] | None = None,
    ) -> Work:
        """Work of a call that reads and writes these tensors, each distinct element once.

        None among the tensors is an operand that was not given, and moves nothing. ``streamed`` names all
        traffic when operands are read more than once; without it the upper bound is the compulsory one.
        """
        upper = None if streamed is None else _stored(streamed)
        return Work(flops, _stored(reads), _stored(writes), flops_full, upper)

    @property
    def bytes_moved(self) -> int | None:
        """Bytes read plus bytes written."""
        return _plus(self.bytes_read, self.bytes_written)

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte moved; None where either is unknown or nothing moves."""
        moved = self.bytes_moved
        return self.flops / moved if self.flops is not None and moved else None

    def __add__(self, other: Work) -> Work:
        return Work(
            _plus(self.flops, other.flops),
            _plus(self.bytes_read, other.bytes_read),
            _plus(self.bytes_written, other.bytes_written),
            _plus(self.flops_full, other.flops_full),
            _plus(self.bytes_upper, other.bytes_upper),
            self.flops_beside + other.flops_beside,
        )


def _stored(tensors: Iterable[TensorSpec | None]) -> int | None:
    total = 0
    for tensor in tensors:
        if tensor is None:
            continue
        size = tensor.stored_bytes
        if size is None:
            return None
        total += size
    return total
