"""Ceilings and the roof they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One limit of a device.

    ``kind`` is ``compute`` (``precision`` and ``pipe`` are set), ``bandwidth`` (``level`` is set),
    ``launch`` (least time of a kernel) or ``host`` (least time of an op on the host). ``value`` is in
    ``unit``: ``FLOP/s``, ``byte/s`` or ``s``. ``origin`` is ``datasheet``, ``measured``, ``derived`` or
    ``given``. ``capacity_bytes`` is the size of a memory level, ``measured_at`` an ISO 8601 time in UTC.
    """

    kind: str
    precision: str | None = None
    pipe: str | None = None
    level: str | None = None
    value: float
    unit: str
    origin: str
    source: str
    confidence: str | None = None
    capacity_bytes: int | None = None
    measured_at: str | None = None


@dataclass(frozen=True)
class Roof:
    """The ceilings of one device; questions about them have one answer, or None where nothing is known.

    Of several ceilings for the same thing a measured one is preferred to a given, derived or datasheet one.
    """

    name: str
    ceilings: tuple[Ceiling, ...]
    matched: str | None = None
    """The catalogue's key, None for a device that is not in it."""

    def compute(self, precision: str, pipe: str) -> Ceiling | None:
        """The compute ceiling (FLOP/s) of a precision on a pipe (``matrix`` or ``vector``).

        A matrix product in a precision without a matrix pipe runs on the vector units, so the vector
        ceiling of the same precision answers. Vector arithmetic in a narrow type is done in float32 by
        torch's kernels, so float32's vector ceiling answers for it.
        """
        precision = RATED_AS.get(precision, precision)
        found = self._best("compute", precision=precision, pipe=pipe)
        if found is None and pipe == "matrix":
            found = self._best("compute", precision=precision, pipe="vector")
        if found is None and pipe == "vector" and precision != "float64":
            found = self._best("compute", precision="float32", pipe="vector")
        return found

    def bandwidth(self, working_set_bytes: int | None = None) -> Ceiling | None:
        """The bandwidth ceiling (byte/s) of the nearest memory level that holds a working set.

        Levels without a capacity, and None for the working set, mean main memory (``dram``).
        """
        best = self._best("bandwidth", level="dram")
        if working_set_bytes is None:
            return best
        holding = [
            c
            for c in self.ceilings
            if c.kind == "bandwidth" and c.capacity_bytes is not None and c.capacity_bytes >= working_set_bytes
        ]
        return min(holding, key=lambda c: c.capacity_bytes or 0) if holding else best

    def launch(self) -> Ceiling | None:
        """The least time of a kernel (s)."""
        return self._best("launch")

    def ridge_point(self, precision: str, pipe: str) -> float | None:
        """FLOPs per byte at which main memory and the compute ceiling meet."""
        compute, memory = self.compute(precision, pipe), self.bandwidth()
        return compute.value / memory.value if compute and memory else None

    def index(self, ceiling: Ceiling) -> int:
        """The position of one of its ceilings."""
        return self.ceilings.index(ceiling)

    def _best(
        self, kind: str, *, precision: str | None = None, pipe: str | None = None, level: str | None = None
    ) -> Ceiling | None:
        return _preferred(
            c
            for c in self.ceilings
            if c.kind == kind and c.precision == precision and c.pipe == pipe and c.level == level
        )


RATED_AS = {
    "float8_e4m3fn": "float8",
    "float8_e5m2": "float8",
    "float8_e4m3fnuz": "float8",
    "float8_e5m2fnuz": "float8",
    "float4_e2m1fn_x2": "float4",
    "uint8": "int8",
    "qint8": "int8",
    "quint8": "int8",
    "complex64": "float32",
    "complex128": "float64",
}
"""Element types whose arithmetic a device rates under another name."""

_PREFERENCE = {"given": 0, "measured": 1, "derived": 2, "datasheet": 3}


def _preferred(ceilings: Iterable[Ceiling]) -> Ceiling | None:
    """The user's own word first, then what was measured, then what is printed."""
    return min(ceilings, key=lambda c: _PREFERENCE.get(c.origin, 9), default=None)
