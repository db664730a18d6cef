"""The files of the catalogue: `configs/devices/*.toml`, and the index that saves parsing them.

Parsing all TOML files takes about 0.07 s, which a command that answers in 0.3 s cannot spend. The index
holds the same entries as JSON and the checksum of each file: while the checksums agree it is read instead,
and where one does not (a file was edited) that file is parsed, so a stale index is slow, never wrong.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchroof.device.entry import Entry, entry_of, parse_entry
from torchroof.errors import CeilingsError

INDEX = "index.json"


def read_shelf(folder: Path) -> tuple[Entry, ...]:
    """All entries of a folder, in the order of files and of entries in them. Raises CeilingsError."""
    index = _read_index(folder)
    entries: dict[str, Entry] = {}
    for path in sorted(folder.glob("*.toml")):
        data = path.read_bytes()
        known = index.get(path.name)
        if known is not None and known.get("checksum") == checksum(data):
            found = [entry_of(key, table) for key, table in known["entries"].items()]
        else:
            found = [parse_entry(key, table, path.name) for key, table in _tables(path.name, data).items()]
        for entry in found:
            if entry.key in entries:
                raise CeilingsError(f"{path.name}: [{entry.key}] is in the catalogue already")
            entries[entry.key] = entry
    _check_variants(entries)
    return tuple(entries.values())


def index_text(folder: Path) -> str:
    """The index of a folder's TOML files, every entry checked."""
    files: dict[str, Any] = {}
    for path in sorted(folder.glob("*.toml")):
        data = path.read_bytes()
        tables = _tables(path.name, data)
        for key, table in tables.items():
            parse_entry(key, table, path.name)
        files[path.name] = {"checksum": checksum(data), "entries": tables}
    return json.dumps(files, indent=None, separators=(",", ":")).replace('},"', '},\n"') + "\n"


def checksum(data: bytes) -> int:
    """CRC-32 of a file, line ends made equal so that a checkout with other ones agrees."""
    return zlib.crc32(data.replace(b"\r\n", b"\n"))


def _read_index(folder: Path) -> Mapping[str, Any]:
    try:
        index = json.loads((folder / INDEX).read_bytes())
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) else {}


def _tables(name: str, data: bytes) -> dict[str, Any]:
    import tomllib  # 8 ms that only a stale index pays

    try:
        tables = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise CeilingsError(f"{name} is not readable TOML: {why}") from None
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise CeilingsError(f"{name}: {key} = {table!r} stands outside any device")
    return tables


def _check_variants(entries: Mapping[str, Entry]) -> None:
    for entry in entries.values():
        if entry.variant_of is not None and entry.variant_of not in entries:
            raise CeilingsError(f"[{entry.key}] variant_of = {entry.variant_of!r} is not in the catalogue")
