"""Under what conditions was measured: names, versions, threads, clocks, power. What cannot be read is left out."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from torchroof.capture.environment import cpu_description, driver_version, matmul_precision


def device_name(device: torch.device) -> str:
    """As a trace of a run on this device names it."""
    if device.type == "cpu":
        return cpu_description()
    return str(getattr(torch, device.type).get_device_name(device))


def conditions(device: torch.device) -> dict[str, Any]:
    """What a measurement depends on or is changed by."""
    found: dict[str, Any] = {
        "device": device_name(device),
        "torch": str(torch.__version__),
        "float32_matmul_precision": matmul_precision(),
    }
    if device.type == "cpu":
        found["threads"] = torch.get_num_threads()
        with suppress(AttributeError, RuntimeError):
            found["instructions"] = torch.backends.cpu.get_cpu_capability()
        return found
    found["driver"] = driver_version() or torch.version.cuda or getattr(torch.version, "hip", None)
    return found | _electrical(device)


def cache_key(device: torch.device) -> str:
    """All that a measurement depends on and that stays between runs, as text."""
    found = conditions(device)
    on_accelerator = ("device", "driver", "torch", "power_limit_w")
    names = ("device", "torch", "float32_matmul_precision") if device.type == "cpu" else on_accelerator
    labels = {"torch": "torch ", "float32_matmul_precision": "float32 matmul precision "}
    return ", ".join(f"{labels.get(n, '')}{found[n]}" for n in names if found.get(n) is not None)


def _electrical(device: torch.device) -> dict[str, Any]:
    """Clocks, power, temperature and throttling, each only where the driver's library tells."""
    found: dict[str, Any] = {}
    for name, unit, ask in (
        ("clock_mhz", 1, torch.cuda.clock_rate),
        ("temperature_c", 1, torch.cuda.temperature),
        ("power_w", 1000, torch.cuda.power_draw),
    ):
        with suppress(Exception):
            found[name] = ask(device) / unit
    with suppress(Exception):
        found |= _by_nvml(device)
    return found


_THROTTLING = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


def _by_nvml(device: torch.device) -> dict[str, Any]:
    """Limits and throttle reasons by NVIDIA's management library. Raises whatever it raises."""
    import pynvml  # type: ignore[import-untyped, import-not-found, unused-ignore]

    pynvml.nvmlInit()
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    handle = pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
    reasons = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    return {
        "power_limit_w": pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        "power_default_w": pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,
        "clock_limit_mhz": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "throttled_by": [words for bit, words in _THROTTLING.items() if reasons & bit],
    }
