"""What a file tells of the machine and software that made it; never a host's or a user's name."""

from __future__ import annotations

from typing import Any

from torchroof.trace.dialects import ENVIRONMENT_KEYS, VERSION_KEYS
from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import TraceTable


def describe_environment(table: TraceTable, facts: CaptureFacts | None) -> dict[str, Any]:
    """The environment: fixed keys, None where the file does not say, then whatever else is known."""
    found: dict[str, Any] = dict.fromkeys(ENVIRONMENT_KEYS)
    found.update(facts.environment if facts else {})
    metadata = table.metadata
    distributed = metadata.get("distributedInfo")
    if isinstance(distributed, dict):
        for key in ("rank", "world_size", "backend"):
            if found.get(key) is None and isinstance(distributed.get(key), int | str):
                found[key] = distributed[key]
    found.update({k: metadata[k] for k in VERSION_KEYS if isinstance(metadata.get(k), int | float | str)})
    return found
