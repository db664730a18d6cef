"""What a file tells of the machine and software that made it; never a host's or a user's name."""

from __future__ import annotations

from typing import Any

from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import TraceTable

_KEYS = (
    "torch",
    "python",
    "cuda",
    "rocm",
    "driver",
    "threads",
    "allow_tf32_matmul",
    "allow_tf32_cudnn",
    "float32_matmul_precision",
    "cudnn_benchmark",
    "world_size",
    "rank",
)
_PASSED_ON = (
    "record_shapes",
    "with_stack",
    "with_modules",
    "profile_memory",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
    "rocprofiler-sdk_version",
)


def describe_environment(table: TraceTable, facts: CaptureFacts | None) -> dict[str, Any]:
    """The environment: fixed keys, None where the file does not say, then whatever else is known."""
    found: dict[str, Any] = dict.fromkeys(_KEYS)
    found.update(facts.environment if facts else {})
    metadata = table.metadata
    distributed = metadata.get("distributedInfo")
    if isinstance(distributed, dict):
        for key in ("rank", "world_size", "backend"):
            if found.get(key) is None and isinstance(distributed.get(key), int | str):
                found[key] = distributed[key]
    found.update({k: metadata[k] for k in _PASSED_ON if isinstance(metadata.get(k), int | float | str)})
    return found
