"""What the system tells of memory: how large the caches are that a run can use, and how much memory is free."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

MIB = 1 << 20
_CPUS = Path("/sys/devices/system/cpu")
_DEFAULT = {1: 32 * 1024, 2: MIB, 3: 32 * MIB}
"""Bytes of a core's caches where the system does not tell."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A level between the arithmetic and main memory, as large as the run's threads have it together."""

    level: str
    capacity_bytes: int


def caches(device: torch.device) -> tuple[Cache, ...]:
    """The caches of a device, nearest first."""
    if device.type == "cpu":
        sizes = host_cache_sizes(torch.get_num_threads())
        return tuple(Cache(f"l{level}", size) for level, size in sorted(sizes.items()))
    properties = getattr(torch, device.type).get_device_properties(device)
    size = getattr(properties, "L2_cache_size", 0) or 0
    return (Cache("l2", int(size)),) if size else ()


def host_cache_sizes(threads: int) -> dict[int, int]:
    """Bytes of data cache by level that so many threads have together, each on a core of its own.

    A cache that each core has for itself counts once per thread, one that they share once.
    """
    found: dict[int, dict[str, int]] = {}
    for cpu in sorted(allowed_cpus()):
        for folder in sorted(_CPUS.glob(f"cpu{cpu}/cache/index*")):
            told = _told(folder)
            if told is not None:
                level, sharers, size = told
                found.setdefault(level, {})[sharers] = size
    if not found:
        return {level: size * (threads if level < 3 else 1) for level, size in _DEFAULT.items()}
    return {
        level: sum(sorted(instances.values(), reverse=True)[: max(1, threads)]) for level, instances in found.items()
    }


def _told(folder: Path) -> tuple[int, str, int] | None:
    """Level, the cores that share it, and bytes; None for a cache of instructions or one that is not told."""
    try:
        if (folder / "type").read_text().strip() == "Instruction":
            return None
        text = (folder / "size").read_text().strip()
        unit = {"K": 1024, "M": MIB, "G": 1024 * MIB}.get(text[-1:], 1)
        size = int(text.rstrip("KMG")) * unit
        return int((folder / "level").read_text()), (folder / "shared_cpu_list").read_text().strip(), size
    except (OSError, ValueError):
        return None


def allowed_cpus() -> frozenset[int]:
    """The CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def free_bytes(device: torch.device) -> int | None:
    """Memory that can be taken without harm; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
