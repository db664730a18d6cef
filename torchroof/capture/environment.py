"""What a run depends on besides the code: versions, threads, precision switches, rank. No host or user names."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch

from torchroof.capture.torch_private import device_type
from torchroof.device.cache import cpu_name


def environment() -> dict[str, Any]:
    """The run's settings as torch tells them; what it does not tell is None."""
    return {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "rocm": getattr(torch.version, "hip", None),
        "driver": driver_version(),
        "device_type": device_type(),
        "threads": torch.get_num_threads(),
        "allow_tf32_matmul": _tf32(torch.backends.cuda.matmul, "allow_tf32", "fp32_precision"),
        "allow_tf32_cudnn": _tf32(torch.backends.cudnn, "allow_tf32", "conv.fp32_precision"),
        "float32_matmul_precision": matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "world_size": _process_group("get_world_size"),
        "rank": _process_group("get_rank"),
    }


def cpu_description() -> str:
    """The processor and how many threads torch uses, for a table's headline."""
    threads = torch.get_num_threads()
    return f"{cpu_name()}, {threads} thread{'s' if threads != 1 else ''}"


def matmul_precision() -> str | None:
    """How float32 products may be done: the old switch, or the new one where that is in use."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:  # torch refuses to tell the old switch once the new one was used
        return _attribute(torch.backends, "mkldnn.matmul.fp32_precision")


def _tf32(backend: Any, old: str, new: str) -> bool | None:
    """Whether TF32 is allowed, asked as for `matmul_precision`."""
    try:
        return bool(getattr(backend, old))
    except (RuntimeError, AttributeError):
        told = _attribute(backend, new)
        return None if told is None else told == "tf32"


def _attribute(start: Any, dotted: str) -> str | None:
    for name in dotted.split("."):
        start = getattr(start, name, None)
    return None if start is None else str(start)


def driver_version() -> str | None:
    """The NVIDIA driver's version, where the kernel module tells it."""
    try:
        first = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").split("\n")[0]
    except OSError:
        return None
    words = first.replace("  ", " ").split()
    return next((w for w in words if w[0].isdigit() and "." in w), None)


def _process_group(question: str) -> int | None:
    """World size or rank of the process group; else what the launcher's environment says; else None."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(getattr(distributed, question)())
    text = os.environ.get({"get_world_size": "WORLD_SIZE", "get_rank": "RANK"}[question], "")
    return int(text) if text.isdecimal() else None
