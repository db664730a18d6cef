"""Microseconds as a trace writes them, made into integer nanoseconds.

The unit is always the microsecond, whatever ``displayTimeUnit`` says. Below 2**43 us (101 days) a float64 is
fine enough to tell every nanosecond; above, its decimals are lost and the decimal text is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT_LIMIT_US = float(2**43)
_INT64 = 2**63
_WIDEST = 40
"""Characters that a sensible time has at most; a longer one is no time (and would be slow to read)."""


class TextNeeded(Exception):
    """Raised where floats have lost digits: the events must be decoded again with their numbers as text."""


def exact_ns(value: Any) -> int | None:
    """One time in us (a number, or a number as text) as ns, ties to even; None where it is no time."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        whole, _, fraction = value.partition(".")
        if len(fraction) <= 3 and whole.lstrip("-").isdecimal() and (not fraction or fraction.isdecimal()):
            ns = int(whole + fraction.ljust(3, "0")) if len(whole) < _WIDEST else _INT64
            return ns if -_INT64 < ns < _INT64 else None
    try:
        number = Decimal(value) if len(str(value)) <= _WIDEST else None
        if number is None or not number.is_finite() or abs(number) >= 2**60:
            return None
        ns = int((number * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (InvalidOperation, TypeError, ValueError):
        return None
    return ns if -_INT64 < ns < _INT64 else None


def nanoseconds(values: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Times in us as ns, and which of them could be read (None: all).

    Raises `TextNeeded` where the values are floats that do not hold every digit.
    """
    if values and isinstance(values[0], str):
        ns = _from_texts(values)
        if ns is not None:
            return ns, None
    else:
        column = _array(values)
        if column.dtype.kind == "i" and (not len(column) or np.abs(column).max() < 2**53):
            return column.astype(np.int64) * 1000, None
        if column.dtype.kind == "f" and any(isinstance(value, float) for value in values):
            return _from_floats(column), None
    exact = [exact_ns(value) for value in values]
    read = np.array([ns is not None for ns in exact], dtype=np.bool_)
    return np.array([ns or 0 for ns in exact], dtype=np.int64), None if read.all() else read


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """The values as one column, or an empty column of objects where they do not make one."""
    try:
        column = np.array(values)
    except (ValueError, OverflowError):
        column = np.zeros(0, dtype=np.object_)
    return column if column.ndim == 1 else np.zeros(0, dtype=np.object_)


def _from_texts(values: Sequence[Any]) -> NDArray[np.int64] | None:
    """Decimal texts as ns; None where they need one by one what `exact_ns` does."""
    try:
        ns = _equally_long("\n".join(values), len(values))
        if ns is not None:
            return ns
    except TypeError:
        pass  # numbers without decimals are no text
    try:
        floats = np.array(list(map(float, values)))
        return _from_floats(floats) if np.isfinite(floats).all() else None
    except (TextNeeded, TypeError, ValueError, OverflowError):
        return None


def _equally_long(lines: str, count: int) -> NDArray[np.int64] | None:
    """Lines of digits, a point and three digits, all equally long; None where they are not."""
    width = lines.find("\n") + 1 or len(lines) + 1
    if not 6 <= width <= 21 or len(lines) + 1 != width * count or not lines.isascii():
        return None
    digits = np.frombuffer(f"{lines}\n".encode(), dtype=np.uint8).reshape(count, width)
    point = width - 5
    if (digits[:, point] != ord(".")).any():
        return None
    digits = np.delete(digits, (point, width - 1), axis=1) - ord("0")
    if (digits > 9).any():  # also a line's end that is not in the last column
        return None
    ns = np.zeros(count, dtype=np.int64)
    for place in digits.T:
        ns = ns * 10 + place
    return ns


def _from_floats(us: NDArray[np.float64]) -> NDArray[np.int64]:
    if np.abs(us).max(initial=0.0) >= FLOAT_LIMIT_US:
        raise TextNeeded  # also where no decimals are seen: they may have been rounded away
    whole = np.floor(us)
    thousandths = (us - whole) * 1000
    rounded = np.rint(thousandths)
    if _has_finer_digits(us, thousandths - rounded):
        raise TextNeeded
    return whole.astype(np.int64) * 1000 + rounded.astype(np.int64)


def _has_finer_digits(us: NDArray[np.float64], rest: NDArray[np.float64]) -> bool:
    """Whether some value has more than three decimals, and so may be a tie that a float cannot settle.

    What is left after rounding to ns is then more than the float's own error (one spacing, in ns).
    """
    return bool((np.abs(rest) > np.spacing(np.abs(us)) * 1000 + 1e-9).any())
