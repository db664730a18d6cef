"""The outside of a trace: where in its text the list of events lies, or the lists.

The text is never parsed as one. It is cut at places where one event may end and the next begin; a piece that
decodes as a JSON list was cut at the right place, since a cut inside a string or inside an event leaves a
piece that cannot. What lies around the list is decoded as one object with null in the list's place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NoReturn, TypeVar

import msgspec

from torchroof.errors import NotATrace, TraceError, TruncatedTrace
from torchroof.trace.file import MEMORY_LIMIT, gibibytes
from torchroof.trace.mending import BETWEEN, MOST_LOST, REACH, Salvage, object_of
from torchroof.trace.outline import EVENTS_KEY, Outline

_WIDEST_PART = 16
"""One event, or what stands before the events, may be this fraction of the limit at most."""
CHUNK_BYTES = 1 << 19
"""Bytes of JSON that are decoded at once: few enough for the events made of them to stay in a cache."""

_BOM = b"\xef\xbb\xbf"
_LAST = re.compile(rb"\}\s*(?:,\s*)?\]")
_AT_BYTE = re.compile(r" \(byte (\d+)\)")
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, or is nested beyond reading."""
_MOST_ENDS = 1000
_MOST_TRIED = 1 << 22
"""Places that look like the end of the list and bytes around them, of those that are tried in a malformed file."""
_MOST_KEYS = 30
"""Places that look like the list's beginning, of those that are tried in a malformed file."""
REPORT_SCHEMA = "torchroof.report/"

Events = TypeVar("Events")
Piece = tuple[bytes, Events, int, bool]
"""A piece's text, what it decodes to, how many bytes of the file it used, whether it is the last."""


class Container:
    """One file's text, read once from front to back.

    `events` yields the decoded pieces; when it is exhausted, ``metadata`` holds everything else. What is not
    JSON is mended where that can be done and left out otherwise; a file that ends early is read as far as it
    goes. ``mends``, ``lost`` and ``cut`` tell of it.
    """

    def __init__(
        self, pieces: Iterator[bytes], source: str, chunk_bytes: int = CHUNK_BYTES, limit: int = MEMORY_LIMIT
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.byte_order_mark = False
        self.mends: Counter[str] = Counter()
        """What was mended, by kind (see `mending.WORDS`)."""
        self.lost = 0
        """Places where no event could be read."""
        self.lists = 0
        """Lists of events that were read: one, unless the file has the key more than once."""
        self.cut: str | None = None
        """Why the file ends before the trace does, as an error's text; None where it is whole."""
        self._pieces = pieces
        self._source = source
        self._chunk = chunk_bytes
        self._widest = max(limit // _WIDEST_PART, 4 * chunk_bytes)
        self._text = b""
        self._before = 0
        """Bytes of the file in front of ``_text``."""
        self._ended = False
        self._cut_text = f"{source}: the file ends in the middle of the trace; copy or record it again"

    def events(self, decode: Callable[[bytes], Events]) -> Iterator[tuple[bytes, Events]]:
        """Each piece as the text of a JSON list and as what ``decode`` made of it."""
        head: bytes | None = self._find_list()
        while head is not None:
            front, last = head, False
            while not last:
                text, decoded, used, last = self._next_piece(decode, self._chunk)
                self._drop(used)
                yield text, decoded
            self.lists += 1
            head = self._find_next_list(front)
        self._read_metadata(front)

    # reading on

    def _fill(self, wanted: int = 0) -> bool:
        """Reads at least one piece more, up to ``wanted`` bytes in hand; False at the end of the file."""
        parts = [self._text]
        length = len(self._text)
        if length > self._widest:
            raise TraceError(
                f"{self._source}: no event ends within {gibibytes(length)} from byte {self._before}; "
                "if it is a trace all the same, raise --memory"
            )
        while not self._ended and (len(parts) == 1 or length < wanted):
            piece = self._read()
            if piece is not None:
                parts.append(piece)
                length += len(piece)
        self._text = b"".join(parts)
        return len(parts) > 1

    def _read(self) -> bytes | None:
        try:
            piece = next(self._pieces, None)
        except TruncatedTrace as why:
            self.cut = self._cut_text = str(why)
            piece = None
        self._ended = piece is None
        return piece

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
        if self.cut and not start:
            raise TruncatedTrace(self.cut)
        if start != b"{":
            what = "holds nothing but blanks" if not start else "is not JSON"
            if _is_json(self._text):
                what = "is JSON but no object"
            raise NotATrace(f"{self._source} {what}; a Kineto trace is a JSON object with traceEvents")
        head = self._next_head(b"") or self._mended_head()
        return self._refuse_without_events() if head is None else head

    def _find_next_list(self, front: bytes) -> bytes | None:
        """Reads on behind one more list's bracket; the text in front of it. Without one None, and all is read."""
        head = self._next_head(front + b"null") if front else None
        while head is None and self._fill(2 * len(self._text)):
            pass
        return head

    def _next_head(self, front: bytes) -> bytes | None:
        """The text in front of the next list of events, which begins with what is ``front`` of the text in hand.

        None where there is none to the end of the file, or where that text is malformed.
        """
        outline = Outline(depth=1 if front else 0)
        while (place := outline.list_of_events(self._text)) is None:
            if not self._fill(2 * len(self._text)):
                return None
        head = self._text[:place]
        if not _is_object(front + head + b"null}"):
            return None
        self._drop(place + 1)
        return front + head

    def _mended_head(self) -> bytes | None:
        """The same where that text has to be mended first."""
        while self._fill(2 * len(self._text)):
            pass
        for match in islice(EVENTS_KEY.finditer(self._text), _MOST_KEYS):
            head = self._text[: match.end()]
            if object_of(head + b"null}", _decode_object, self.mends) is not None:
                self._drop(match.end() + 1)
                return head
        return None

    def _refuse_without_events(self) -> NoReturn:
        try:
            found = _decode_object(self._text)
        except _FAULTS as fault:
            self._refuse_malformed(fault, self._text, _position(fault, self._text), self._before)
        if str(found.get("schema", "")).startswith(REPORT_SCHEMA):
            raise NotATrace(f"{self._source}: this is a torchroof report; use torchroof.load")
        what = "its traceEvents is no list" if "traceEvents" in found else "it has no traceEvents"
        raise NotATrace(f"{self._source} is JSON but no Kineto trace: {what}")

    # the list

    def _next_piece(self, decode: Callable[[bytes], Events], least: int) -> Piece[Events]:
        """A piece of at least so many bytes, or the rest of the list."""
        while True:
            cut, start = BETWEEN.search(self._text, least), least
            while cut is None:  # in a long event, what was searched is not searched again
                brace = self._text.rfind(b"}", start)
                start = brace if brace >= 0 else max(start, len(self._text))
                if not self._fill(2 * len(self._text)):
                    break
                cut = BETWEEN.search(self._text, start)
            if cut is None:
                return self._last_piece(decode)
            text = b"[%b]" % self._text[: cut.start(1)]
            try:
                return text, decode(text), cut.end(1), False
            except _FAULTS as fault:
                if _is_trailing(fault):
                    return self._up_to_end(decode, text, _position(fault, text))
                if _position(fault, text) < len(text) - 1 or "UTF-8" in str(fault):
                    text, used = self._salvaged(decode, self._text[: cut.start(1)], whole=False)
                    if used:
                        return text, decode(text), used, False
                least = cut.end(1) + least // 2  # inside an event or a string: go on, in growing steps

    def _salvaged(self, decode: Callable[[bytes], Events], text: bytes, *, whole: bool) -> tuple[bytes, int]:
        """What can be read of malformed events, as the text of a list, and how much of the text that took.

        A comma behind the text is part of what was used, unless some of the text is left.
        """
        again = object_of(b"[" + text + b"]", lambda mended: (decode(mended), mended)[1], self.mends)
        if again is not None:
            return again, len(text) + (not whole)
        salvage = Salvage(text, decode, self.mends, whole=whole)
        self.lost += salvage.lost
        if self.lost >= MOST_LOST:
            raise NotATrace(f"{self._source}: not valid JSON in {MOST_LOST:,} places and more; record the trace again")
        done = salvage.used == len(text)
        return salvage.text, salvage.used + (done and not whole)

    def _last_piece(self, decode: Callable[[bytes], Events]) -> Piece[Events]:
        """All of the text is in hand: the list ends in it, or the file is cut."""
        end = _LAST.search(self._text)
        if end is not None and _is_tail(self._text[end.end() :]):
            text = b"[" + self._text[: end.end()]
            try:
                return text, decode(text), end.end(), True
            except _FAULTS:
                pass  # a string that looks like the end, or malformed text: look again, the slow way
        text = b"[" + self._text
        try:
            return text, decode(text), len(self._text), True
        except _FAULTS as why:
            fault = why
        if _is_trailing(fault):
            return self._up_to_end(decode, text, _position(fault, text))
        cut = self._cut_piece(decode) if "truncated" in str(fault) else None
        piece = cut or self._mended_end(decode, sure=True) or self._mended_end(decode, sure=False)
        if piece is None and isinstance(fault, RecursionError):
            self._refuse_malformed(fault, text, 0, 0)
        return piece or self._rest(decode)

    def _cut_piece(self, decode: Callable[[bytes], Events]) -> Piece[Events] | None:
        """The whole events of a list that never ends; None where some of them are malformed."""
        text = self._text.rstrip().removesuffix(b",")
        places = [0, *(match.start(1) for match in BETWEEN.finditer(text))]
        for end in (len(text), *places[: -REACH - 1 : -1]):
            whole = b"[" + text[:end] + b"]"
            try:
                piece = whole, decode(whole), len(self._text), True
            except _FAULTS:
                continue
            self.cut = self._cut_text
            return piece
        return None

    def _mended_end(self, decode: Callable[[bytes], Events], *, sure: bool) -> Piece[Events] | None:
        """The last piece of a list that does end, but is malformed; None where no end is to be seen.

        A name in the last event can look like the end of everything. So when it has to be ``sure``, the rest
        of the object says something, or everything in front of it can be read.
        """
        left = _MOST_TRIED
        for end in islice(_LAST.finditer(self._text), _MOST_ENDS):
            tail = self._text[end.end() :]
            left -= len(tail)
            if left < 0 and left + len(tail) < _MOST_TRIED:
                break
            if not _is_tail(tail, mend=True, may_be_cut=not sure):
                continue
            left -= end.end()
            before = self.mends.copy(), self.lost
            text, _ = self._salvaged(decode, self._text[: end.start() + 1], whole=True)
            if not sure or tail.strip() not in (b"", b"}") or self.lost == before[1]:
                self.mends["commas"] += b"," in end.group()
                return text, decode(text), end.end(), True
            self.mends, self.lost = before
        return None

    def _rest(self, decode: Callable[[bytes], Events]) -> Piece[Events]:
        """What can be read of a list that is malformed and never ends. Its last event is the one that was cut."""
        self.cut = self._cut_text
        last = max((match.start(1) for match in BETWEEN.finditer(self._text)), default=0)
        text, _ = self._salvaged(decode, self._text[:last], whole=True)
        return text, decode(text), len(self._text), True

    def _up_to_end(self, decode: Callable[[bytes], Events], text: bytes, at: int) -> Piece[Events]:
        end = text.rindex(b"]", 0, at - 1) + 1  # msgspec names the byte behind the first that trails
        return text[:end], decode(text[:end]), end - 1, True

    # the rest

    def _read_metadata(self, head: bytes) -> None:
        if not head:
            if self._text.strip():
                self._refuse_more(self._before)
            return
        text = head + b"null" + (b"}" if self.cut and not self._text.strip() else self._text)
        try:
            found = _decode_object(text)
        except _FAULTS as fault:
            if _is_trailing(fault):
                self._refuse_more(self._before + _position(fault, text) - 1 - len(head + b"null"))
            if "truncated" in str(fault):
                self.cut = self.cut or self._cut_text
                text = head + b"null}"
            mended = object_of(text, _decode_object, self.mends)
            if mended is None:
                before = self._before - len(head) - 4
                self._refuse_malformed(fault, text, _position(fault, text), before)
            found = mended
        found.pop("traceEvents", None)
        self.metadata = found

    def _refuse_more(self, at: int) -> NoReturn:
        why = f"more text follows the trace at byte {at}; save each trace as a file of its own"
        raise NotATrace(f"{self._source}: {why}")

    def _refuse_malformed(self, fault: Exception, text: bytes, at: int, before: int) -> NoReturn:
        """Says what is wrong with the text at a place, where mending did not help."""
        if "truncated" in str(fault):
            raise TruncatedTrace(self._cut_text) from None
        if isinstance(fault, RecursionError):
            raise NotATrace(
                f"{self._source}: its JSON is nested too deeply to be read; record the trace again"
            ) from None
        what = _AT_BYTE.sub("", str(fault)).removeprefix("JSON is malformed: ")
        where = f"{self._source}: not valid JSON at byte {max(0, before + at)}"
        raise NotATrace(f"{where}: {what}; record the trace again") from None


def _is_trailing(fault: Exception) -> bool:
    return "trailing characters" in str(fault)


def _position(fault: Exception, text: bytes) -> int:
    """Where the decoder stopped; the end of the text where it wanted more."""
    found = _AT_BYTE.search(str(fault))
    return int(found.group(1)) if found else len(text)


def _decode_object(text: bytes) -> dict[str, Any]:
    value = msgspec.json.decode(text)
    if not isinstance(value, dict):
        raise msgspec.DecodeError("no object")
    return value


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except _FAULTS:
        return False
    return True


def _is_object(text: bytes) -> bool:
    try:
        _decode_object(text)
    except _FAULTS:
        return False
    return True


def _is_tail(text: bytes, *, mend: bool = False, may_be_cut: bool = False) -> bool:
    """Whether a text can follow the list of events: nothing, or the rest of the object.

    With ``mend`` also one that can be mended, and where it ``may_be_cut``, the beginning of one.
    """
    rest = text.strip()
    if rest in (b"", b"}"):
        return True
    if rest.startswith(b"}"):
        return False
    try:
        _decode_object(b'{"":null' + text)
    except _FAULTS as fault:
        if may_be_cut and "truncated" in str(fault):
            return True
        return mend and object_of(b'{"":null' + text, _decode_object, Counter()) is not None
    return True
