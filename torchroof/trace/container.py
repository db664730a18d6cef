"""The outside of a trace file: its bytes, inflated where gzipped, and where its list of events lies.

The text is never parsed as one. It is cut at places where one event may end and the next begin; a piece that
decodes as a JSON list was cut at the right place, since a cut inside a string or inside an event leaves a
piece that cannot. What lies around the list is decoded as one object with null in the list's place.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import msgspec

from torchroof.errors import NotATrace, TraceError, TruncatedTrace

INFLATED_LIMIT = 8 << 30
"""Bytes of JSON that are read from a gzipped file at most."""
CHUNK_BYTES = 1 << 18
"""Bytes of JSON that are decoded at once: few enough for the events made of them to stay in a cache."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 18
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*(?=\[)')
_KEY_WIDTH = 4096
"""Bytes that the key and its bracket can take up together, blanks included."""
_BETWEEN = re.compile(rb"\}\s*(,)\s*(?=\{)")
_LAST = re.compile(rb"\}\s*\]")
_AT_BYTE = re.compile(r" \(byte (\d+)\)")
_BARE_WORD = re.compile(rb"(?<=[\s:,\[])-?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
REPORT_SCHEMA = "torchroof.report/"

Events = TypeVar("Events")
Piece = tuple[bytes, Events, int, bool]
"""A piece's text, what it decodes to, how many bytes of the file it used, whether it is the last."""


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading; every way in which it cannot be is a TraceError."""
    try:
        if Path(path).is_dir():
            raise TraceError(f"{path} is a folder; name one trace file in it")
        return Path(path).open("rb")
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file; check the path") from None
    except PermissionError:
        raise TraceError(f"{path}: no permission to read it; check the file's mode and owner") from None
    except (OSError, ValueError) as fault:
        raise TraceError(f"{path!s}: cannot be opened ({_reason(fault)}); check the path") from None


def _reason(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or str(fault)


def blocks(file: BinaryIO, source: str) -> Iterator[bytes]:
    """The file's bytes in pieces, inflated if its first two bytes are those of gzip."""
    try:
        first = file.read(_BLOCK)
        if not first:
            raise TraceError(f"{source} is empty; record the trace again")
        if first.startswith(_GZIP):
            yield from _inflated(file, first, source)
            return
        while first:
            yield first
            first = file.read(_BLOCK)
    except OSError as fault:
        raise TraceError(f"{source}: cannot be read ({_reason(fault)})") from None


def _inflated(file: BinaryIO, packed: bytes, source: str) -> Iterator[bytes]:
    inflater, total = zlib.decompressobj(wbits=31), 0
    while packed:
        try:
            piece = inflater.decompress(packed, _BLOCK)
        except zlib.error:
            raise NotATrace(f"{source}: the gzip data are damaged; copy or record the trace again") from None
        total += len(piece)
        if total > INFLATED_LIMIT:
            limit = f"{INFLATED_LIMIT / 2**30:g} GiB"
            raise TraceError(f"{source} inflates to more than {limit}; record a shorter window")
        if piece:
            yield piece
        packed = inflater.unconsumed_tail or inflater.unused_data or file.read(_BLOCK)
        if inflater.eof and packed:
            if not packed.startswith(_GZIP):
                return
            inflater = zlib.decompressobj(wbits=31)
    if not inflater.eof:
        raise TruncatedTrace(f"{source}: the gzip data end early; copy or record the trace again")


class Container:
    """One file's text, read once from front to back.

    `events` yields the decoded pieces; when it is exhausted, ``metadata`` holds everything else.
    """

    def __init__(self, pieces: Iterator[bytes], source: str, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.metadata: dict[str, Any] = {}
        self.byte_order_mark = False
        self._pieces = pieces
        self._source = source
        self._chunk = chunk_bytes
        self._text = b""
        self._before = 0
        """Bytes of the file in front of ``_text``."""
        self._ended = False

    def events(self, decode: Callable[[bytes], Events]) -> Iterator[tuple[bytes, Events]]:
        """Each piece as the text of a JSON list and as what ``decode`` made of it."""
        head = self._find_list()
        least, last = self._chunk, False
        while not last:
            text, decoded, used, last = self._next_piece(decode, least)
            self._drop(used)
            yield text, decoded
        while self._fill(2 * len(self._text)):
            pass
        self._read_metadata(head)

    # reading on

    def _fill(self, wanted: int = 0) -> bool:
        """Reads at least one piece more, up to ``wanted`` bytes in hand; False at the end of the file."""
        parts = [self._text]
        length = len(self._text)
        while not self._ended and (len(parts) == 1 or length < wanted):
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
            else:
                parts.append(piece)
                length += len(piece)
        self._text = b"".join(parts)
        return len(parts) > 1

    def _drop(self, count: int) -> None:
        self._text = self._text[count:]
        self._before += count

    # the list's beginning

    def _find_list(self) -> bytes:
        """Reads on behind the list's opening bracket; returns the text in front of it."""
        self._fill()
        if self._text.startswith(_BOM):
            self.byte_order_mark = True
            self._drop(len(_BOM))
        while not (start := self._text.lstrip()[:1]) and self._fill():
            pass
        if start == b"[":
            self._drop(self._text.index(b"[") + 1)
            return b""
        if start != b"{":
            what = "holds nothing but blanks" if not start else "is not JSON"
            raise NotATrace(f"{self._source} {what}; a Kineto trace is a JSON object with traceEvents")
        position = 0
        while True:
            for match in _EVENTS_KEY.finditer(self._text, position):
                head = self._text[: match.end()]
                if _is_object(head + b"null}"):
                    self._drop(match.end() + 1)
                    return head
            position = max(0, len(self._text) - _KEY_WIDTH)
            if not self._fill(2 * len(self._text)):
                self._refuse_without_events()

    def _refuse_without_events(self) -> NoReturn:
        found = self._decode_object(self._text, self._before)
        if str(found.get("schema", "")).startswith(REPORT_SCHEMA):
            raise NotATrace(f"{self._source}: this is a torchroof report; use torchroof.load")
        what = "its traceEvents is no list" if "traceEvents" in found else "it has no traceEvents"
        raise NotATrace(f"{self._source} is JSON but no Kineto trace: {what}")

    # the list

    def _next_piece(self, decode: Callable[[bytes], Events], least: int) -> Piece[Events]:
        """A piece of at least so many bytes, or the rest of the list."""
        while True:
            cut = _BETWEEN.search(self._text, least)
            while cut is None and self._fill(2 * least):
                cut = _BETWEEN.search(self._text, least)
            if cut is None:
                return self._last_piece(decode)
            text = b"[%b]" % self._text[: cut.start(1)]
            try:
                return text, decode(text), cut.end(1), False
            except msgspec.DecodeError as fault:
                if _is_trailing(fault):
                    return self._up_to_end(decode, text, _position(fault, text))
                at = _position(fault, text)
                if at < len(text) - 1 or "UTF-8" in str(fault):
                    self._refuse_malformed(fault, self._text, at - 1)
                least = cut.end(1) + least // 2  # inside an event or a string: go on, in growing steps

    def _last_piece(self, decode: Callable[[bytes], Events]) -> Piece[Events]:
        """All of the text is in hand: the list ends in it, or the file is cut."""
        end = _LAST.search(self._text)
        if end is not None and _is_tail(self._text[end.end() :]):
            text = b"[" + self._text[: end.end()]
            try:
                return text, decode(text), end.end(), True
            except msgspec.DecodeError:
                pass  # a string that looks like the end, or malformed text: look again, the slow way
        text = b"[" + self._text
        try:
            return text, decode(text), len(self._text), True
        except msgspec.DecodeError as fault:
            at = _position(fault, text)
            if _is_trailing(fault):
                return self._up_to_end(decode, text, at)
            self._refuse_malformed(fault, self._text, at - 1)

    def _up_to_end(self, decode: Callable[[bytes], Events], text: bytes, at: int) -> Piece[Events]:
        end = text.rindex(b"]", 0, at - 1) + 1  # msgspec names the byte behind the first that trails
        return text[:end], decode(text[:end]), end - 1, True

    # the rest

    def _read_metadata(self, head: bytes) -> None:
        if head:
            self.metadata = self._decode_object(head + b"null" + self._text, self._before - len(head) - 4)
            self.metadata.pop("traceEvents", None)
        elif self._text.strip():
            raise NotATrace(f"{self._source}: not valid JSON at byte {self._before}: text follows the list")

    def _decode_object(self, text: bytes, before: int) -> dict[str, Any]:
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError as fault:
            self._refuse_malformed(fault, text, _position(fault, text), before)
        assert isinstance(value, dict)
        return value

    def _refuse_malformed(self, fault: Exception, text: bytes, at: int, before: int | None = None) -> NoReturn:
        """Says what is wrong with the text at a place. A tolerant second reading would begin here."""
        if "truncated" in str(fault):
            raise TruncatedTrace(
                f"{self._source}: the file ends in the middle of the trace; copy or record it again"
            ) from None
        word = _BARE_WORD.search(text, max(0, at - 6), at + 10)  # the decoder stops inside the word or before it
        if word:
            at, what = word.start(), f"the bare word {word.group().decode()}, which JSON does not have"
        else:
            what = _AT_BYTE.sub("", str(fault)).removeprefix("JSON is malformed: ")
        place = max(0, (self._before if before is None else before) + at)
        where = f"{self._source}: not valid JSON at byte {place}"
        raise NotATrace(f"{where}: {what}; record the trace again") from None


def _is_trailing(fault: Exception) -> bool:
    return "trailing characters" in str(fault)


def _position(fault: Exception, text: bytes) -> int:
    """Where the decoder stopped; the end of the text where it wanted more."""
    found = _AT_BYTE.search(str(fault))
    return int(found.group(1)) if found else len(text)


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False


def _is_tail(text: bytes) -> bool:
    """Whether a text can follow the list of events: nothing, or the rest of the object."""
    return not text.strip() or _is_object(b'{"":null' + text)
