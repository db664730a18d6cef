"""Text that is nearly JSON, made into JSON: what writers of traces are known to get wrong.

Bare words (nan, inf) become null, stray backslashes and control characters are escaped, bytes that are no
UTF-8 become U+FFFD, commas before a closing bracket go, and a name with bare quotes in it gets them escaped.
Text that is JSON already stays what it is, so mending can be tried on anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import msgspec

Decoded = TypeVar("Decoded")
Decode = Callable[[bytes], Decoded]

_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*+"?|(?<![\w.])[-+]?(?:nan|inf(?:inity)?)\b|,(?=\s*[\]}])|(?<=:)(?=\s*[,}\]])|(?<=,)(?=\s*,)',
    re.DOTALL | re.IGNORECASE,
)
"""A string (the last one may never end), a bare word, a comma too many, or the place of a value that is missing."""
_BACKSLASH = re.compile(rb'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NEXT_KEY = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*:'
_NAME = re.compile(rb'"name"\s*:\s*"')
_NAME_END = re.compile(rb'"\s*(?:,\s*' + _NEXT_KEY + rb"|\})")
_UNESCAPED_QUOTE = re.compile(rb'(\\\\)|\\"|"')

BETWEEN = re.compile(rb"\}\s*(,)\s*(?=\{)")
"""Where one event may end and the next begin."""
REACH = 24
"""Pieces that an event which holds such places is looked for in."""
MOST_LOST = 1000
"""Places without a readable event from which on a text is no trace."""
_WIDEST = 1 << 20
"""Bytes that are searched for one name's end."""

WORDS = {
    "words": "bare words such as nan read as null",
    "escapes": "strings with a stray backslash or control character",
    "bytes": "stretches of bytes that are no UTF-8",
    "commas": "commas too many",
    "values": "values missing",
    "names": "names with quotes inside",
}
"""What was mended, in words, behind a count."""


def mended(text: bytes, found: Counter[str]) -> bytes:
    """The text with everything put right that a string or a bare word can have wrong by itself."""
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
        found["bytes"] += 1

    def put_right(token: re.Match[bytes]) -> bytes:
        old = token.group()
        if old.startswith(b'"'):
            new = _BACKSLASH.sub(_kept_or_doubled, old) if b"\\" in old else old
            new = _CONTROL.sub(_escaped, new)
            found["escapes"] += new != old
            return new
        found["words" if len(old) > 1 else "commas" if old else "values"] += 1
        return b"null" if len(old) != 1 else b""

    return _TOKEN.sub(put_right, text)


def _kept_or_doubled(backslash: re.Match[bytes]) -> bytes:
    return backslash[1] or rb"\\"


def _escaped(control: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % control.group()[0]


def with_names_closed(text: bytes, found: Counter[str]) -> bytes:
    """The text with the quotes escaped that a name has inside: it ends where an event's next key follows."""
    parts, at = [], 0
    while len(text) < _WIDEST and (name := _NAME.search(text, at)) and (end := _NAME_END.search(text, name.end())):
        old = text[name.end() : end.start()]
        new = _without_bare_quotes(old)
        found["names"] += new != old
        parts += [text[at : name.end()], new, end.group()]
        at = end.end()
    return b"".join((*parts, text[at:]))


def _without_bare_quotes(name: bytes) -> bytes:
    if len(name) - len(name.rstrip(b"\\")) & 1:
        name += b"\\"  # a path's last backslash must not swallow the quote
    return _UNESCAPED_QUOTE.sub(lambda m: m.group() if m.group() != b'"' else b'\\"', name)


def object_of(text: bytes, decode: Decode[Decoded], found: Counter[str]) -> Decoded | None:
    """What a mended text decodes to, None where even that is no JSON. ``found`` grows only where it is."""
    for closing in (False, True):
        notes: Counter[str] = Counter()
        attempt = mended(with_names_closed(text, notes) if closing else text, notes)
        try:
            value = decode(attempt)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        found.update(notes)
        return value
    return None


class Salvage:
    """The events of a stretch of text that does not decode as a whole.

    ``text`` is a JSON list of those that could be read and ``used`` how far the reading came; what is behind
    may be the beginning of an event that goes on. ``lost`` counts the places where no event could be read.
    """

    def __init__(self, text: bytes, decode: Decode[object], found: Counter[str], *, whole: bool) -> None:
        self.lost = 0
        self._decode = decode
        self._found = found
        ends = [match.start(1) for match in BETWEEN.finditer(text)]
        self._starts = [0, *(end + 1 for end in ends)]
        self._ends = [*ends, len(text)]
        self._all = text
        kept, self.used = self._events(whole)
        self.text = b"[" + b",".join(kept) + b"]"

    def _events(self, whole: bool) -> tuple[list[bytes], int]:
        kept: list[bytes] = []
        at, count = 0, len(self._ends)
        while at < count and self.lost < MOST_LOST:
            event, last = self._event(at)
            if event is not None:
                kept.append(event)
            elif not whole and last == count - 1 and last - at < REACH:
                return kept, self._starts[at]
            else:
                self.lost += bool(self._all[self._starts[at] : self._ends[at]].strip())
                last = at
            at = last + 1
        return kept, len(self._all)

    def _event(self, at: int) -> tuple[bytes | None, int]:
        """The event that begins with a piece, and its last piece; or None, and the last piece looked at."""
        last, limit = at, min(len(self._ends) - 1, at + REACH)
        while True:
            text = self._all[self._starts[at] : self._ends[last]]
            fault = self._fault(text)
            if fault is None:
                return text, last
            if "truncated" not in fault or last == limit:
                break
            last += 1
        for end in range(at, min(at + 3, limit + 1)):
            again = object_of(self._all[self._starts[at] : self._ends[end]], self._checked, self._found)
            if again is not None:
                return again, end
        return None, last

    def _checked(self, text: bytes) -> bytes:
        self._decode(b"[" + text + b"]")
        return text

    def _fault(self, text: bytes) -> str | None:
        try:
            self._checked(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            return str(fault)
        return None
