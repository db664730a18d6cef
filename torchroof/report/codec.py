"""The report as JSON bytes and back."""

from __future__ import annotations

import re

import msgspec

from torchroof.errors import ReportFileError
from torchroof.report.model import SCHEMA, ReportData

_BOM = b"\xef\xbb\xbf"
_FIRST = re.compile(rb'\s*\{\s*"([a-z_]+)"\s*:\s*(.{0,20})', re.DOTALL)
"""A JSON object's first key, and how its value begins."""
_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TRACE = "is a trace, not a saved report; read it with torchroof.analyze"
_ENCODER = msgspec.json.Encoder()


class _Schema(msgspec.Struct):
    schema: str | None = None


def encode(data: msgspec.Struct) -> bytes:
    """One line of JSON, keys in the order of the model. Equal reports give equal bytes."""
    return _ENCODER.encode(data) + b"\n"


def decode(text: bytes, source: str) -> ReportData:
    """The report that `encode` wrote. ``source`` names it in errors. Raises ReportFileError."""
    text = text.removeprefix(_BOM)
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
    except _FAULTS as why:
        told = _TRACE if _is_trace(text) else f"is not a torchroof report: {why}"
        raise ReportFileError(f"{source} {told}") from None
    if schema is None and _is_trace(text):
        raise ReportFileError(f"{source} {_TRACE}")
    if schema != SCHEMA:
        told = f"has the schema {schema!r}" if schema else "has no schema"
        raise ReportFileError(f"{source} {told}, and this version reads {SCHEMA!r}; make it again from its trace")
    try:
        data = msgspec.json.decode(text, type=ReportData)
    except _FAULTS as why:
        raise ReportFileError(f"{source} is a damaged torchroof report: {why}") from None
    known = {device.index: len(device.ceilings) for device in data.devices}
    if any(row.ceiling is not None and not 0 <= row.ceiling < known.get(row.device, 0) for row in data.rows):
        raise ReportFileError(f"{source} is a damaged torchroof report: a row has a ceiling that no device has")
    return data


def _is_trace(text: bytes) -> bool:
    return b'"traceEvents"' in text or b'"ph"' in text


def looks_like_report(head: bytes) -> bool:
    """Whether the first bytes of a JSON text are those of a report of any version, in whatever order its keys are."""
    first = _FIRST.match(head.removeprefix(_BOM))
    if first is None or first[1].decode() not in ReportData.__struct_fields__:
        return False
    return first[1] != b"schema" or first[2].startswith(b'"torchroof.report/')
