"""Whether the device is ours alone: a ceiling that is measured beside other work is too low."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from torchroof.measure.hardware import allowed_cpus

_STAT = Path("/proc/stat")
_LOOK_S = 0.4
_NEEDED = 0.85
"""The part of the wanted CPUs that must be free."""
_BUSY_GPU = 5
"""Per cent of time in which an idle accelerator may run kernels."""


@dataclass(frozen=True, slots=True)
class Load:
    """CPUs that others kept busy over a time, and that the hypervisor took away (``steal``); of ``cpus``."""

    cpus: int
    others: float
    steal: float

    def too_much_for(self, threads: int) -> str | None:
        """Why a measurement with so many threads would read too low; None where it would not."""
        free = self.cpus - self.others - self.steal
        if free >= _NEEDED * min(threads, self.cpus):
            return None
        stolen = f" and the hypervisor {self.steal:.1f}" if self.steal >= 0.05 else ""
        return f"other work kept {self.others:.1f} of its {self.cpus} CPUs busy{stolen}"


@dataclass(frozen=True, slots=True)
class Moment:
    """What the counters read; `since` tells what happened from there on."""

    at: float
    own_s: float
    busy_s: float
    steal_s: float

    @staticmethod
    def now() -> Moment | None:
        """None where the system has no such counters."""
        counted = _counters()
        return None if counted is None else Moment(time.perf_counter(), time.process_time(), *counted)

    def since(self) -> Load | None:
        now = Moment.now()
        cpus = len(allowed_cpus())
        if now is None or now.at - self.at < 0.05:
            return None
        seconds = now.at - self.at
        others = max(0.0, (now.busy_s - self.busy_s) - (now.own_s - self.own_s)) / seconds
        return Load(cpus, min(others, cpus), min(max(0.0, now.steal_s - self.steal_s) / seconds, cpus))


def _counters() -> tuple[float, float] | None:
    """Busy and stolen seconds of the CPUs that this process may use, since the system started."""
    wanted = {f"cpu{n}" for n in allowed_cpus()}
    try:
        tick = os.sysconf("SC_CLK_TCK")
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        rows = [[int(n) for n in words[1:]] for words in lines if words and words[0] in wanted]
    except (OSError, ValueError, AttributeError):
        return None
    if not rows:
        return None
    # user nice system idle iowait irq softirq steal; guest time is in user time already
    busy = sum(r[0] + r[1] + r[2] + r[5] + r[6] for r in rows)
    return busy / tick, sum(r[7] if len(r) > 7 else 0 for r in rows) / tick


def busy_reason(device: torch.device) -> str | None:
    """Why this is no moment to measure, in words; None where it is one, or where nobody can tell."""
    start = Moment.now()
    time.sleep(_LOOK_S)
    load = start.since() if start is not None else None
    if device.type == "cpu":
        return load.too_much_for(torch.get_num_threads()) if load is not None else None
    used = utilization(device)
    if used is not None and used > _BUSY_GPU:
        return f"other work kept it busy {used} % of the time"
    return load.too_much_for(1) if load is not None else None


def utilization(device: torch.device) -> int | None:
    """Per cent of the last moment in which the accelerator ran kernels, where the driver's library tells."""
    try:
        return int(torch.cuda.utilization(device))
    except Exception:
        return None
