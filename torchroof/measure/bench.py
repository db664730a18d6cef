"""Times work on a device: warm-up, then many runs of which the best and the median are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

import torch

from torchroof.device.roof import Ceiling

Run = Callable[[], object]

_BATCH = 8
"""Runs on an accelerator between two waits for it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each run that counted; there is at least one."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass
class Bench:
    """One device under measurement, until ``end`` (of `time.perf_counter`).

    Numbers come from a generator of its own, so the user's random state stays.
    """

    device: torch.device
    end: float
    generator: torch.Generator = field(init=False)
    _flusher: torch.Tensor | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.generator = torch.Generator(device=self.device).manual_seed(0)

    @property
    def on_host(self) -> bool:
        return bool(self.device.type == "cpu")

    @property
    def left_s(self) -> float:
        return self.end - time.perf_counter()

    def until(self, seconds: float) -> Bench:
        """The same device with at most so many seconds from now."""
        part = Bench(self.device, min(self.end, time.perf_counter() + seconds))
        part._flusher = self._flusher
        return part

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Normal random numbers: constant ones draw less power and run faster than real data does."""
        made = torch.randn(*shape, generator=self.generator, dtype=torch.float32, device=self.device)
        return made if dtype is torch.float32 else made.to(dtype)

    def times(self, run: Run, repeats: int, limit_s: float, *, flush_bytes: int = 0) -> Timing:
        """Seconds of each run after a first one that does not count.

        ``flush_bytes`` other bytes are written before each run, outside of its time.
        """
        run()
        self.wait()
        stop = min(time.perf_counter() + limit_s, self.end)
        timed = self._on_host if self.on_host else self._on_accelerator
        return Timing(tuple(timed(run, repeats, stop, flush_bytes)))

    def wait(self) -> None:
        """Until the device has done all that was given to it."""
        if not self.on_host:
            getattr(torch, self.device.type).synchronize(self.device)

    def _flush(self, size: int) -> None:
        if size <= 0:
            return
        if self._flusher is None or self._flusher.numel() < size:
            self._flusher = torch.empty(size, dtype=torch.uint8, device=self.device)
        self._flusher.fill_(1)

    def _on_host(self, run: Run, repeats: int, stop: float, flush_bytes: int) -> list[float]:
        taken: list[float] = []
        while len(taken) < repeats and (not taken or time.perf_counter() + min(taken) < stop):
            self._flush(flush_bytes)
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
        return taken

    def _on_accelerator(self, run: Run, repeats: int, stop: float, flush_bytes: int) -> list[float]:
        """By the device's own events, several runs between two waits."""
        events = getattr(torch, self.device.type).Event
        taken: list[float] = []
        while len(taken) < repeats and (not taken or time.perf_counter() < stop):
            pairs = []
            for _ in range(min(_BATCH, repeats - len(taken))):
                self._flush(flush_bytes)
                before, after = events(enable_timing=True), events(enable_timing=True)
                before.record()
                run()
                after.record()
                pairs.append((before, after))
            self.wait()
            taken.extend(before.elapsed_time(after) / 1e3 for before, after in pairs)
        return taken


def measured(kind: str, value: float, unit: str, source: str, **which: object) -> Ceiling:
    """A ceiling that was measured now."""
    return Ceiling(
        kind=kind,
        value=value,
        unit=unit,
        origin="measured",
        source=source,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        **which,  # type: ignore[arg-type]
    )


def dtype_name(dtype: torch.dtype) -> str:
    """torch's name without the prefix: ``float32``."""
    return str(dtype).removeprefix("torch.")
