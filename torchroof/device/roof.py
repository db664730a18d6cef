"""Ceilings and the roof they make."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One limit of a device.

    ``kind`` is ``compute`` (``precision`` and ``pipe`` are set), ``bandwidth`` (``level`` is set),
    ``launch`` (least time of a kernel) or ``host`` (least time of an op on the host). ``value`` is in
    ``unit``: ``FLOP/s``, ``byte/s`` or ``s``. ``origin`` is ``datasheet``, ``measured``, ``derived`` or
    ``given``. ``capacity_bytes`` is the size of a memory level, ``measured_at`` an ISO 8601 time in UTC.

    ``pattern`` says of a measured bandwidth for which traffic it holds (one of PATTERNS; None: for any), and
    ``median_value`` what half of the measurements reached, where ``value`` is the best of them.
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
    pattern: str | None = None
    median_value: float | None = None


PATTERNS = ("copy", "read", "update")
"""Kinds of memory traffic with bandwidths of their own: what is read and written elsewhere, what is hardly
written, and what is written where it was read. Caches fetch a line before they write to it, so a copy moves
more than its bytes and an update does not."""

PREFERENCES = ("measured", "datasheet")


@dataclass(frozen=True)
class Roof:
    """The ceilings of one device; questions about them have one answer, or None where nothing is known.

    Of several ceilings for the same thing the user's own (``given``) judges, then the one of the origin that
    ``prefer`` names, then any other.
    """

    name: str
    ceilings: tuple[Ceiling, ...]
    matched: str | None = None
    """The catalogue's key, None for a device that is not in it."""
    prefer: str = "measured"
    last_cache_bytes: int | None = None
    """The size of the device's last cache where it is known without its bandwidth."""

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

    def bandwidth(self, reach_bytes: int | None = None, pattern: str = "copy") -> Ceiling | None:
        """The bandwidth ceiling (byte/s) of the nearest memory level that holds so many bytes.

        ``reach_bytes`` is how much was touched since the data in question was; None, or more than any level
        with a capacity holds, means main memory (``dram``). Of a level's ceilings the one for the ``pattern``
        of traffic answers, where it has one.
        """
        level = "dram"
        if reach_bytes is not None:
            holding = [(c, level_of) for c, level_of in self.levels() if c >= reach_bytes]
            level = min(holding)[1] if holding else level
        found = [c for c in self.ceilings if c.kind == "bandwidth" and c.level == level]
        order = (pattern, None, "copy")
        return min(
            found,
            key=lambda c: (self._rank(c), order.index(c.pattern) if c.pattern in order else len(order)),
            default=None,
        )

    def levels(self) -> tuple[tuple[int, str], ...]:
        """Capacity (bytes) and name of each memory level that has one, the smallest first."""
        found = {
            (c.capacity_bytes, c.level)
            for c in self.ceilings
            if c.kind == "bandwidth" and c.capacity_bytes is not None and c.level is not None
        }
        return tuple(sorted(found))

    def launch(self) -> Ceiling | None:
        """The least time of a kernel (s)."""
        return self._best("launch")

    def ridge_point(self, precision: str, pipe: str) -> float | None:
        """FLOPs per byte at which main memory and the compute ceiling meet."""
        compute, memory = self.compute(precision, pipe), self.bandwidth()
        return compute.value / memory.value if compute and memory else None

    def host(self) -> Ceiling | None:
        """The least time that the host spends on an op (s)."""
        return self._best("host")

    def sibling(self, ceiling: Ceiling, origin: str) -> Ceiling | None:
        """The limit on the same thing from another origin: what a datasheet says of what was measured."""
        same = [
            c
            for c in self.ceilings
            if c.origin == origin
            and (c.kind, c.precision, c.pipe, c.level) == (ceiling.kind, ceiling.precision, ceiling.pipe, ceiling.level)
        ]
        return min(same, key=lambda c: c.pattern not in (ceiling.pattern, None, "copy"), default=None)

    def index(self, ceiling: Ceiling) -> int:
        """The position of one of its ceilings."""
        return self.ceilings.index(ceiling)

    def _best(self, kind: str, *, precision: str | None = None, pipe: str | None = None) -> Ceiling | None:
        found = [c for c in self.ceilings if c.kind == kind and c.precision == precision and c.pipe == pipe]
        return min(found, key=lambda c: (self._rank(c), -c.value), default=None)

    def _rank(self, ceiling: Ceiling) -> int:
        order = ("given", self.prefer, *(o for o in _PREFERENCE if o != self.prefer))
        return order.index(ceiling.origin) if ceiling.origin in order else len(order)


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

_PREFERENCE = ("measured", "derived", "datasheet")
