"""Follows the schedule through a run: opens and closes windows at the user's steps."""

from __future__ import annotations

import time
from pathlib import Path

from torchroof.capture.torch_private import profiler_running
from torchroof.capture.window import RecordingLost, Settings, Window

_KEPT = 1000


class Recording:
    """A run from entering the block to leaving it. After `start` nothing here raises: faults become ``notes``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._schedule = settings.schedule
        self._step = 0
        self._window: Window | None = None
        self._kept = 0
        self._begun_ns: int | None = None
        self.unrecorded_ns: list[int] = []
        """Wall times of steps that no window recorded (the first thousand): what recorded ones are held against.
        The very first is none of them: what is made at first use costs it many times as much."""
        self.notes: list[str] = []
        """What went wrong, in sentences."""

    @property
    def steps(self) -> int:
        """How often `step` was called."""
        return self._step

    def start(self) -> None:
        """Begins with step 0; it is recorded unless the schedule waits. Raises what torch's profiler raises."""
        if self._schedule.begins_window(0):
            self._open()
        self._begin()

    def step(self) -> Path | None:
        """Ends a step and begins the next; the trace of the window that this closes, if it does."""
        ended, self._step = self._step, self._step + 1
        if self._begun_ns is not None and ended and len(self.unrecorded_ns) < _KEPT:
            self.unrecorded_ns.append(time.perf_counter_ns() - self._begun_ns)
        closed: Path | None = None
        try:
            if self._window is not None:
                self._window.end_step()
                if self._window.stopped or self._schedule.ends_window(ended):
                    closed = self._close(interrupted=False)
            if self._window is not None:
                self._window.begin_step(self._step)
            elif self._schedule.begins_window(self._step):
                self._open_if_free()
        except Exception as fault:
            self._give_up(fault)
        self._begin()
        return closed

    def _begin(self) -> None:
        self._begun_ns = time.perf_counter_ns() if self._window is None else None

    def finish(self, *, interrupted: bool) -> Path | None:
        """Ends the run; the trace of the window that was open, if one was.

        One without a complete step gives way to the window before it.
        """
        try:
            if self._window is not None and self._kept and not self._window.complete:
                self._window.abandon()
                self._window = None
            return self._close(interrupted=interrupted)
        except Exception as fault:
            self._give_up(fault)
            return None

    def _open(self) -> None:
        window = Window(self._settings, self._step)
        try:
            window.start()
        except BaseException:
            window.abandon()
            raise
        self._window = window

    def _open_if_free(self) -> None:
        """Another profiler may have been started since the block was entered; ours would empty its recording."""
        if profiler_running():
            self.notes.append(f"no window was opened at step {self._step}: another torch profiler was recording")
        else:
            self._open()

    def _close(self, *, interrupted: bool) -> Path | None:
        window, self._window = self._window, None
        if window is None:
            return None
        try:
            path = window.close(interrupted=interrupted, unrecorded_ns=self.unrecorded_ns)
            self._kept += 1
            return path
        except BaseException:
            window.abandon()
            raise

    def _give_up(self, fault: Exception) -> None:
        kind = "" if isinstance(fault, RecordingLost) else f"{type(fault).__name__}: "
        self.notes.append(f"a window was lost: {kind}{fault}")
        window, self._window = self._window, None
        if window is not None:
            try:
                window.abandon()
            except Exception as again:
                self.notes.append(f"the profiler did not stop: {type(again).__name__}: {again}")
