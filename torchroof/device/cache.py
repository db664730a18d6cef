"""Ceilings measured on this machine, kept between runs. Reading them needs no torch.

One JSON file per device, driver, torch version, power limit and thread count, in ``$TORCHROOF_CACHE_DIR`` or the
system's folder for caches. A file that cannot be used counts as absent.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from torchroof.device.ceilings_file import ceilings_from_json, ceilings_to_json
from torchroof.device.roof import Ceiling
from torchroof.errors import CeilingsError

VERSION = 2
_TEXTS = ("key", "device", "kind", "name")


@dataclass(frozen=True, slots=True)
class Cached:
    """One measurement: under which key, of which device, in words for the reader, and the ceilings.

    ``kind`` is ``cpu`` or an accelerator's, ``device`` the name that a trace of it has (of a CPU without the
    threads), ``quiet`` whether nothing else ran meanwhile, ``attempts`` how often it was tried, ``doubted``
    how often a run surpassed what was kept, since `torchroof calibrate` last measured.
    """

    key: str
    device: str
    kind: str
    name: str
    ceilings: tuple[Ceiling, ...]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = True
    attempts: int = 1
    doubted: int = 0

    @property
    def measured_at(self) -> str:
        """ISO 8601 in UTC, of the latest ceiling; empty where none says it."""
        return max((c.measured_at or "" for c in self.ceilings), default="")


def cache_folder() -> Path:
    """Where measured ceilings lie; the folder need not exist."""
    if chosen := os.environ.get("TORCHROOF_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "torchroof"


def load(key: str) -> Cached | None:
    """What was stored under this key."""
    found = _read(_file(key))
    return found if found is not None and found.key == key else None


def store(measured: Cached) -> None:
    """Keeps ceilings of this machine, in place of earlier ones. Raises OSError."""
    path = _file(measured.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        **{name: getattr(measured, name) for name in _TEXTS},
        "version": VERSION,
        "quiet": measured.quiet,
        "attempts": measured.attempts,
        "doubted": measured.doubted,
        "conditions": dict(measured.conditions),
        "ceilings": ceilings_to_json(measured.ceilings),
    }
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-", suffix=".json")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def measured_here() -> tuple[Cached, ...]:
    """Every measurement of this machine's devices, whatever the torch version and thread count, newest first."""
    try:
        files = sorted(cache_folder().glob("ceilings-*.json"))
    except OSError:
        return ()
    here = cpu_name()
    found = [c for c in map(_read, files) if c is not None and (c.kind != "cpu" or c.device == here)]
    return tuple(sorted(found, key=lambda c: c.measured_at, reverse=True))


def cpu_name() -> str:
    """The processor's model as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "CPU"


def _file(key: str) -> Path:
    return cache_folder() / f"ceilings-{sha256(key.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> Cached | None:
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != VERSION:
            return None
        texts = {name: content[name] for name in _TEXTS}
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(content["conditions"], dict):
            return None
        return Cached(
            **texts,
            ceilings=ceilings_from_json(content["ceilings"]),
            conditions=content["conditions"],
            quiet=bool(content["quiet"]),
            attempts=int(content["attempts"]),
            doubted=int(content.get("doubted", 0)),
        )
    except (OSError, ValueError, KeyError, TypeError, CeilingsError):
        return None
