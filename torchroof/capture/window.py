"""One recorded window: torch's profiler, our hooks around it, and the marks of its steps."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function

from torchroof.capture.environment import cpu_description, environment
from torchroof.capture.optimizers import OptimizerSteps
from torchroof.capture.schedule import Schedule, StepKind
from torchroof.capture.scopes import ModuleScopes
from torchroof.capture.torch_private import new_profiler, pause, private_api, recording_lost, same_devices
from torchroof.capture.watch import EventLimit
from torchroof.device.roof import Ceiling
from torchroof.trace.metadata import KEY, STEP_PREFIX, CaptureFacts, facts_as_json

HOOK_NS = 5_000
"""What a layer call costs while recorded, both hooks and the scope: measured on one CPU, so an estimate."""


@dataclass(frozen=True)
class Settings:
    """What every window of a run is recorded with."""

    roots: Mapping[str, nn.Module]
    schedule: Schedule
    folder: Path
    """Where trace files are put."""
    record_shapes: bool = True
    max_events: int = 2_000_000
    on_cpu: bool = True
    """Whether the CPU is the device to judge."""
    ceilings: tuple[Ceiling, ...] = ()
    threads: int | None = None
    """With how many the ceilings were measured, where that matters."""
    notes: tuple[str, ...] = ()


class RecordingLost(Exception):
    """Another torch profiler took over while the window was open."""

    def __init__(self) -> None:
        super().__init__("another torch profiler was started inside the block, and took the recording away")


class Window:
    """Opened by `start`, closed once by `close` (or `abandon`). Steps are numbered over the whole run."""

    def __init__(self, settings: Settings, step: int) -> None:
        self._settings = settings
        self._step = step
        self._complete: list[int] = []
        self._mark: Any = None
        self._profiler: Any = None
        self._scopes = ModuleScopes(settings.roots)
        self._optimizers = OptimizerSteps()
        self._limit = EventLimit(settings.max_events, self._stop)
        self._interrupted = False
        self._unrecorded_ns: Sequence[int] = ()
        self._compilations = 0
        self._compiling: list[int] = []
        self.stopped = False
        """Whether the event limit ended the recording."""

    @property
    def complete(self) -> tuple[int, ...]:
        """Numbers of the steps that were recorded from their begin to their end."""
        return tuple(self._complete)

    def start(self) -> None:
        """Starts the profiler, the hooks and the first step."""
        profiler = new_profiler(self._settings.record_shapes)
        profiler.start()
        self._profiler = profiler
        self._scopes.install()
        self._optimizers.install()
        self._limit.start()
        self.begin_step(self._step)

    def begin_step(self, number: int) -> None:
        if self.stopped:
            return
        self._step = number
        mark = record_function(f"{STEP_PREFIX}{number}")
        mark.__enter__()
        self._mark = mark

    def end_step(self) -> None:
        """The step is complete, unless the event limit was reached inside it. Raises RecordingLost."""
        self._check()
        self._scopes.drop_stale()
        if self._end_mark():
            self._complete.append(self._step)
            before, self._compilations = self._compilations, self._scopes.compilations
            if self._compilations != before:
                self._compiling.append(self._step)
        self._limit.check()

    def close(self, *, interrupted: bool, unrecorded_ns: Sequence[int] = ()) -> Path:
        """Stops, writes the trace with all that the hooks learnt, and returns the file.

        ``interrupted``: an exception left the block in the middle of the step. ``unrecorded_ns``: lengths of the
        run's steps without recording so far. Raises RecordingLost.
        """
        self._check()
        self._interrupted, self._unrecorded_ns = interrupted, unrecorded_ns
        self._limit.end()
        self._end_mark()
        self._remove_hooks()
        profiler, self._profiler = self._profiler, None
        try:
            profiler.add_metadata_json(KEY, facts_as_json(self._facts_or_less()))
            profiler.add_metadata_json("host_name", '""')
        finally:
            profiler.stop()
        path = self._settings.folder / f"window-{self._step}.json"
        profiler.export_chrome_trace(str(path))
        _forget_folder(path)
        return path

    def abandon(self) -> None:
        """Takes hooks and profiler away after a fault; nothing is kept."""
        self._limit.end()
        self._remove_hooks()
        profiler, self._profiler = self._profiler, None
        if profiler is not None and (self.stopped or not recording_lost()):
            self._end_mark()
            profiler.stop()

    def _check(self) -> None:
        if not self.stopped and recording_lost():
            raise RecordingLost

    def _stop(self) -> None:
        """The event limit is reached: nothing more is recorded, the window stays to be closed."""
        self.stopped = True
        self._end_mark()
        self._remove_hooks()
        pause(self._profiler)

    def _remove_hooks(self) -> None:
        self._scopes.remove()
        self._optimizers.remove()

    def _end_mark(self) -> bool:
        """False where no step was open."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)
        return mark is not None

    def _facts_or_less(self) -> CaptureFacts:
        """A fault in gathering them must not cost the recording."""
        try:
            return self._facts()
        except Exception as fault:
            note = f"what the hooks learnt was lost: {type(fault).__name__}: {fault}"
            return CaptureFacts(counted_steps=self._counted()[0], notes=(note,))

    def _facts(self) -> CaptureFacts:
        settings = self._settings
        counted, notes = self._counted()
        calls = self._scopes.count
        return CaptureFacts(
            layers=self._scopes.layers(),
            calls=self._scopes.calls(),
            counted_steps=counted,
            optimizers=self._optimizers.facts(self._scopes.parameter_owners()),
            optimizer_steps=self._optimizers.steps,
            environment=environment(),
            ceilings=self._ceilings(),
            device_names={"0": cpu_description()} if settings.on_cpu else {},
            overhead={"layer_calls": calls, "hook_ns_estimate": calls * HOOK_NS, **unrecorded(self._unrecorded_ns)},
            notes=(*settings.notes, *self._thread_notes(), *private_api().missing, *notes, *self._scope_notes()),
        )

    def _ceilings(self) -> dict[str, list[dict[str, Any]]]:
        """By device: the CPU's, or those of the accelerator in use for each one of the same name."""
        written = [asdict(c) for c in self._settings.ceilings]
        if not written or self._thread_notes():
            return {}
        return {str(i): written for i in ((0,) if self._settings.on_cpu else same_devices())}

    def _thread_notes(self) -> tuple[str, ...]:
        """That the run has other threads than its ceilings were measured with: then they are another machine's."""
        before, now = self._settings.threads, torch.get_num_threads()
        if before is None or before == now:
            return ()
        return (
            f"the number of threads was changed from {before} to {now} inside the block, and ceilings were measured "
            "with the former: they are left out, so there is no roof; set the number of threads before the block",
        )

    def _counted(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The steps that count, and sentences on what is unusual about them."""
        schedule, notes = self._settings.schedule, []
        if self.stopped:
            notes.append(
                f"recording stopped at its limit of {self._settings.max_events} events; "
                "raise max_events, or call prof.step() more often and record fewer steps"
            )
        active = [n for n in self._complete if schedule.kind(n) is StepKind.ACTIVE]
        compiling = [n for n in active if n in self._compiling]
        if compiling:
            alone = len(compiling) == len(active)
            active = active if alone else [n for n in active if n not in compiling]
            notes.append(
                f"torch.compile compiled in {_steps(compiling)}; "
                + ("no other was recorded, so their times include it" if alone else "not counted")
            )
        if active:
            if len(active) + len(compiling) < schedule.active:
                notes.append(f"{len(active)} of {schedule.active} active steps were completed; these count")
            return tuple(active), tuple(notes)
        if self._complete:
            notes.append("no active step was completed, so the warm-up steps that were recorded count")
            return tuple(self._complete), tuple(notes)
        if self._interrupted or self.stopped or self._step > 0:
            notes.append("no step was completed, so the part of the step that was recorded counts")
        return (self._step,), tuple(notes)

    def _scope_notes(self) -> list[str]:
        notes = [f"{text} ({n} times)" for text, n in self._scopes.faults.items()]
        unseen = self._scopes.unseen_calls()
        if unseen:
            notes.append(f"{unseen} layer calls ran on threads that the profiler does not record")
        return notes


def unrecorded(steps_ns: Sequence[int]) -> dict[str, int | None]:
    """Of the steps without recording: how many, and their median length."""
    return {
        "unrecorded_steps": len(steps_ns),
        "unrecorded_step_ns": round(median(steps_ns)) if steps_ns else None,
    }


def _steps(numbers: list[int]) -> str:
    """``step 3``, ``steps 3, 4``."""
    return f"step{'s' if len(numbers) > 1 else ''} " + ", ".join(map(str, numbers))


_TRACE_NAME = re.compile(rb'("traceName"\s*:\s*)"(?:[^"\\]|\\.)*"')
_TAIL = 1 << 16


def _forget_folder(trace: Path) -> None:
    """The trace names itself by its whole path, and that of a temporary folder is nobody's business."""
    with trace.open("r+b") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(start)
        tail = file.read()
        named = _TRACE_NAME.sub(lambda m: m[1] + b'"%b"' % trace.name.encode(), tail)
        if named != tail:
            file.seek(start)
            file.write(named)
            file.truncate()
