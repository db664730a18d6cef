"""Numbers for the values that repeat: names, threads and join keys.

Each table is a dict that makes the number of a new value on first sight, so that the many look-ups after it
run without a line of Python.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from torchroof.trace import dialects
from torchroof.trace.table import NONE, DeviceKind, HostKind, Int64

KINDS = 16
"""A name's code is its number times this, plus the kind of the event."""
ON_DEVICE = 8
"""Added to the kind of what runs on a device."""
_LONGEST = 100_000
"""Characters of a name that are kept: more than any real one has, and few enough to be looked through often."""
_OWN = 2**62
"""The first number of a join key that is none itself."""
_INTEGER = re.compile(r"-?\d{1,40}")


class Names(dict[str, int]):
    """Each distinct name by number, in order of first use."""

    bytes = 0
    """What they take in memory, about."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        self.bytes += 200 + len(name)
        return number


class CategoryNames(dict[str, int]):
    """The codes of names met in one category; NONE for a name that is dropped, or all of a dropped category."""

    def __init__(self, names: Names, kind: HostKind | DeviceKind | None) -> None:
        super().__init__()
        self._names = names
        self._kind = kind

    def __missing__(self, name: str) -> int:
        self._names.bytes += 100 + len(name)
        code = self[name] = self._code(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
        return code

    def _code(self, name: str) -> int:
        if self._kind is None:
            return NONE
        if isinstance(self._kind, DeviceKind):
            return self._names[name] * KINDS + ON_DEVICE + self._kind
        found = dialects.host_kind(self._kind, name)
        return NONE if found is None else self._names[found[1]] * KINDS + found[0]


class Categories(dict["str | None", CategoryNames]):
    """The names of each category as the file spells it."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, category: str | None) -> CategoryNames:
        table = self[category] = CategoryNames(self._names, dialects.kind_of((category or "").lower()))
        return table


class Threads(dict[tuple[Any, Any], int]):
    """Threads by (pid, tid), which files write as numbers or as text."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_by_number: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def __missing__(self, key: tuple[Any, Any]) -> int:
        text = tuple(str(part).removeprefix("thread ").removeprefix("stream ").strip() for part in key)
        assert len(text) == 2
        number = self._numbers.setdefault(text, len(self._numbers))
        if number == len(self.keys_by_number):
            self.keys_by_number.append(text)
        self[key] = number
        return number


class Keys(dict[Any, int]):
    """Join keys as numbers: an integer of the file as it is, where it is one that a column holds well; numbers
    from `_OWN` on for whatever else files write (longer or negative integers, text). Absent is NONE."""

    def __init__(self) -> None:
        super().__init__({None: NONE, NONE: NONE, "": NONE})
        self._next = _OWN
        self.used = False
        """Whether the file has any such key."""

    def numbers(self, values: list[Any]) -> Int64:
        try:
            column = np.array(values, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            column = self._one_by_one(values)
        else:
            if column.ndim != 1 or not ((column >= NONE) & (column < _OWN)).all():
                column = self._one_by_one(values)
        self.used |= bool((column != NONE).any())
        return column

    def _one_by_one(self, values: list[Any]) -> Int64:
        return np.array([NONE if isinstance(v, list | dict) else self[v] for v in values], dtype=np.int64)

    def __missing__(self, key: Any) -> int:
        if isinstance(key, str) and _INTEGER.fullmatch(key):
            number = self[int(key)]
        elif isinstance(key, int) and 0 <= key < _OWN:
            number = int(key)
        else:
            number, self._next = self._next, self._next + 1
        self[key] = number
        return number
