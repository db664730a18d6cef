"""SI quantities as text. The only place that scales by powers of ten."""

from __future__ import annotations

from dataclasses import dataclass

_LARGE = ("", "k", "M", "G", "T", "P", "E")
_NS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
LEAST = 1e-9
"""A fraction that is written as less than the least that is told."""
UNKNOWN = "?"
"""How an unknown figure is written; never as 0."""


def digits(value: float, significant: int = 3) -> str:
    """A number at so many significant digits, without an exponent and without trailing noise."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 10 ** (significant - 1):
        return f"{value:.0f}"
    text = f"{value:.{significant}g}"
    return text if "e" not in text else f"{value:.{significant + 6}f}".rstrip("0").rstrip(".")


def quantity(value: float | None, unit: str, significant: int = 3) -> str:
    """``1.23 GFLOP/s`` from 1.23e9 and ``FLOP/s``. Unknown (None) is ``?``."""
    if value is None:
        return UNKNOWN
    scaled, step = float(value), 0
    while abs(scaled) >= 999.5 and step < len(_LARGE) - 1:
        scaled /= 1e3
        step += 1
    text = f"{scaled:.0f}" if step == 0 and scaled == int(scaled) else digits(scaled, significant)
    return f"{text} {_LARGE[step]}{unit}".strip()


def duration(ns: float | None, significant: int = 3) -> str:
    """Nanoseconds as ns, µs, ms or s."""
    if ns is None:
        return UNKNOWN
    for scale, unit in _NS:
        if abs(ns) >= 0.9995 * scale:
            return f"{digits(ns / scale, significant)} {unit}"
    return f"{digits(ns, significant)} ns" if ns else "0 ns"


def span(shortest_ns: float, longest_ns: float, significant: int = 3) -> tuple[str, str]:
    """Two durations in the unit of the longer, named once: ``0.53`` and ``3.33 s``."""
    longest = duration(longest_ns, significant)
    unit = longest.rpartition(" ")[2]
    scale = next((scale for scale, name in _NS if name == unit), 1.0)
    return digits(shortest_ns / scale, significant), longest


def milliseconds(ns: float | None) -> str:
    """Nanoseconds as a bare number of milliseconds for a column headed ms."""
    if ns is None:
        return UNKNOWN
    value = ns / 1e6
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}" if value >= 0.001 else "0" if ns == 0 else "<0.001"


def in_milliseconds(ns: float) -> float:
    """Nanoseconds as a number of milliseconds."""
    return ns / 1e6


def percent(fraction: float | None) -> str:
    """A fraction as a percentage: one decimal under 10 %, none above."""
    if fraction is None:
        return UNKNOWN
    value = fraction * 100
    if value == 0:
        return "0%"
    if abs(value) < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if abs(value) < 9.95 else f"{value:.0f}%"


def share(fraction: float | None) -> str:
    """A fraction as a bare number for a column headed %: one decimal always, so that the column adds up."""
    if fraction is None:
        return UNKNOWN
    if fraction == 0:
        return "0"
    return f"{fraction * 100:.1f}" if fraction >= 0.0005 else "<0.1"


def age(seconds: float) -> str:
    """``just now``, ``3 min``, ``5 h``, ``12 days``."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min ago"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.0f} h ago"
    return f"{seconds / 86400:.0f} days ago"


_SCALES = ((1e10, 1e9, "s"), (1e6, 1e6, "ms"), (1e3, 1e3, "µs"), (0.0, 1.0, "ns"))
"""From this many nanoseconds on; nanoseconds in the unit; the unit."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """One unit and one number of decimals for all times of a table, so that its columns can be added up."""

    unit: str
    ns: float
    """Nanoseconds in the unit."""
    decimals: int

    @classmethod
    def of(cls, largest_ns: float) -> TimeScale:
        """The scale that shows a time with four significant digits."""
        _, ns, unit = next(scale for scale in _SCALES if largest_ns >= scale[0])
        whole = len(f"{largest_ns / ns:.0f}")
        return cls(unit, ns, 0 if unit == "ns" else max(0, 4 - whole))

    def text(self, ns: float | None) -> str:
        """A time as a bare number: ``12.34``, ``<0.01`` for what would round to 0, ``?`` for unknown."""
        if ns is None:
            return UNKNOWN
        rounded = f"{ns / self.ns:.{self.decimals}f}"
        if ns > 0 and not float(rounded):
            return f"<{10**-self.decimals:.{self.decimals}f}"
        return rounded if ns else "0"
