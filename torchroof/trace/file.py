"""A trace file's bytes, inflated where they are gzipped, and how many of them are too many."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from torchroof.errors import NO_PATH, NotATrace, TraceError, TruncatedTrace, reason_of

MEMORY_LIMIT = 8 << 30
"""Bytes that one file may take up at most unless a caller says otherwise: as columns in memory by a careful
estimate, and as text where it is gzipped."""

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 18


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading; every way in which it cannot be is a TraceError."""
    try:
        if not os.fspath(path):
            raise TraceError("the name of the trace is empty; name a file")
        if Path(path).is_dir():
            raise TraceError(f"{path} is a folder; name one trace file in it")
        return Path(path).open("rb")
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file; check the path") from None
    except PermissionError:
        raise TraceError(f"{path}: no permission to read it; check the file's mode and owner") from None
    except NO_PATH as fault:
        raise TraceError(f"{path!s}: cannot be opened ({reason_of(fault)}); check the path") from None


def blocks(file: BinaryIO, source: str, limit: int = MEMORY_LIMIT) -> Iterator[bytes]:
    """The file's bytes in pieces, inflated if its first two bytes are those of gzip, to ``limit`` at most.

    Raises TruncatedTrace after the last piece of gzip data that end early.
    """
    try:
        first = file.read(_BLOCK)
        if not first:
            raise TraceError(f"{source} is empty; record the trace again")
        if first.startswith(_GZIP):
            yield from _inflated(file, first, source, limit)
            return
        while first:
            yield first
            first = file.read(_BLOCK)
    except OSError as fault:
        raise TraceError(f"{source}: cannot be read ({reason_of(fault)})") from None


def _inflated(file: BinaryIO, packed: bytes, source: str, limit: int) -> Iterator[bytes]:
    inflater, total = zlib.decompressobj(wbits=31), 0
    while packed:
        try:
            piece = inflater.decompress(packed, _BLOCK)
        except zlib.error:
            raise NotATrace(f"{source}: the gzip data are damaged; copy or record the trace again") from None
        total += len(piece)
        if total > limit:
            raise TraceError(
                f"{source} inflates to more than {gibibytes(limit)}; record a shorter window, or raise --memory"
            )
        if piece:
            yield piece
        packed = inflater.unconsumed_tail or inflater.unused_data or file.read(_BLOCK)
        if inflater.eof and packed:
            if not packed.startswith(_GZIP):
                return
            inflater = zlib.decompressobj(wbits=31)
    if not inflater.eof:
        yield inflater.flush()
        raise TruncatedTrace(f"{source}: the gzip data end early; copy or record the trace again")


def gibibytes(size: int) -> str:
    """A limit in words: ``8 GiB``."""
    return f"{size / 2**30:.3g} GiB"
