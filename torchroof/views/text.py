"""Names made fit for a screen: layer, op and kernel names come from a file, hostile until cleaned."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

_ASCII = str.maketrans("…×µμ→·—–−─▶█▓▒░’‘“”≥≤\N{NO-BREAK SPACE}", "~xuu>----->#=+.''\"\">< ")
"""Stands in, one for one, where a terminal has ASCII only."""
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories that steer a terminal or reorder text: controls, bidi marks, line separators."""
_FOLDED = re.compile(r"(\S+)( [×x][0-9]+)")
"""A pattern and how many layers it stands for."""
_LISTED = re.compile(r"\[([0-9]+)[0-9–,…]*,[0-9–,…]*?([0-9]+)\]")
"""Numbers with gaps, of which a short label keeps the first and the last."""


@lru_cache(maxsize=4096)
def clean(text: str, ascii_only: bool = False) -> str:
    """The text without anything that a terminal obeys: each such character becomes ``?``."""
    if not text.isascii() or not text.isprintable():
        text = "".join("?" if unicodedata.category(c) in _UNSAFE else c for c in text)
    if ascii_only and not text.isascii():
        text = text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text


def shorten(label: str, width: int) -> str:
    """A label cut to so many cells, in the middle.

    A dotted path keeps its last name, then its numbers (they tell ``layer.3`` from ``layer.11``), then as
    many names from the end as fit; behind a pattern of equal layers their count is kept too.
    """
    if cell_len(label) <= width:
        return label
    folded = _FOLDED.fullmatch(label)
    path, count = (folded[1], folded[2]) if folded else (label, "")
    if folded:
        path = _LISTED.sub(r"[\1…\2]", path)
    parts = path.split(".")
    if len(parts) > 2 and " " not in path and (short := _shorten_path(parts, width - cell_len(count))) is not None:
        return short + count
    tail = (width - 1) * 3 // 5
    return set_cell_size(label, width - 1 - tail).rstrip(" ") + "…" + _last_cells(label, tail)


def _shorten_path(parts: list[str], width: int) -> str | None:
    numbers = [i for i, part in enumerate(parts) if part.isdecimal() or part.startswith("[")]
    order = [len(parts) - 1, *reversed(numbers), *range(len(parts) - 2, -1, -1)]
    kept: set[int] = set()
    for index in order:
        if cell_len(_elided(parts, kept | {index})) <= width:
            kept.add(index)
        elif index == len(parts) - 1 or index in numbers:
            return None
    return _elided(parts, kept)


def _elided(parts: list[str], kept: set[int]) -> str:
    """The kept parts of a path; ``…`` stands for each run of parts left out."""
    text, last = "", -1
    for index in sorted(kept):
        if index > last + 1:
            text += "…"
        elif text:
            text += "."
        text += parts[index]
        last = index
    return text


def _last_cells(text: str, width: int) -> str:
    start = len(text)
    while start and cell_len(text[start - 1 :]) <= width:
        start -= 1
    return text[start:]
