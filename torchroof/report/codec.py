"""The report as JSON bytes and back."""

from __future__ import annotations

import re

import msgspec

from torchroof.errors import ReportFileError
from torchroof.report.model import SCHEMA, ReportData

_HEAD = re.compile(rb'\s*\{\s*"schema"\s*:\s*"torchroof\.report/')
_TRACE = "is a trace, not a saved report; read it with torchroof.analyze"
_ENCODER = msgspec.json.Encoder()


class _Schema(msgspec.Struct):
    schema: str | None = None


def encode(data: msgspec.Struct) -> bytes:
    """One line of JSON, keys in the order of the model. Equal reports give equal bytes."""
    return _ENCODER.encode(data) + b"\n"


def decode(text: bytes, source: str) -> ReportData:
    """The report that `encode` wrote. ``source`` names it in errors. Raises ReportFileError."""
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
    except (msgspec.DecodeError, UnicodeDecodeError) as why:
        told = _TRACE if _is_trace(text) else f"is not a torchroof report: {why}"
        raise ReportFileError(f"{source} {told}") from None
    if schema is None and _is_trace(text):
        raise ReportFileError(f"{source} {_TRACE}")
    if schema != SCHEMA:
        told = f"has the schema {schema!r}" if schema else "has no schema"
        raise ReportFileError(f"{source} {told}, and this version reads {SCHEMA!r}; make it again from its trace")
    try:
        return msgspec.json.decode(text, type=ReportData)
    except (msgspec.DecodeError, UnicodeDecodeError) as why:
        raise ReportFileError(f"{source} is a damaged torchroof report: {why}") from None


def _is_trace(text: bytes) -> bool:
    return b'"traceEvents"' in text or b'"ph"' in text


def looks_like_report(head: bytes) -> bool:
    """Whether the first bytes of a JSON text are those of a report of any version."""
    return _HEAD.match(head) is not None
