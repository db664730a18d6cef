"""Profiles a training loop: `profile` joins the capture, the analysis and what is written to a logdir."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torchroof.capture.schedule import Schedule, schedule
from torchroof.device.roof import Ceiling
from torchroof.errors import NO_PATH, CaptureError, OptionError, OutputError, ProfilerRunning, TorchMissing, reason_of

if TYPE_CHECKING:
    import torch
    from torch.utils.tensorboard import SummaryWriter

    from torchroof.capture.recorder import Recording
    from torchroof.capture.window import Settings
    from torchroof.reports import Report
    from torchroof.work import Model

__all__ = ["profile", "schedule"]

_GZIP_LEVEL = 6


class profile:
    """Records a training loop and reports it layer by layer.

    ::

        with torchroof.profile(model, logdir="runs/exp1") as prof:
            for batch in loader:
                train_step(batch)
                prof.step()
        print(prof.report)

    ``model`` is a module, a dict of modules by name, or nothing: then the outermost module that is called is
    the root. ``schedule`` says which steps are recorded and which count; without `step` the whole block is
    one step. ``logdir`` receives the trace, the report and what TensorBoard shows, in its subfolder ``name``
    if one is given. ``writer`` is a SummaryWriter of yours: what TensorBoard shows then goes into its run, and
    needs no logdir.
    ``record_shapes=False`` makes recording cheaper and leaves FLOPs and bytes unknown. A window ends at
    ``max_events`` host events. ``device`` names a device of the catalogue and ``ceilings`` are its limits
    (values, objects of the JSON form, or a JSON file); both go before what the run tells. ``measure=False``
    measures no ceilings at first use. ``models`` are formulas for ops of your own (see `torchroof.work`).

    Entering raises OptionError, UnknownDevice, CeilingsError, RegistrationError, OutputError or CaptureError
    for arguments that cannot be used, and ProfilerRunning under a running torch profiler. After that nothing
    raises here: what goes wrong is in ``notes``.
    """

    _active: profile | None = None
    _entering = threading.Lock()

    def __init__(
        self,
        model: torch.nn.Module | Mapping[str, torch.nn.Module] | None = None,
        *,
        schedule: Schedule | None = None,
        logdir: str | os.PathLike[str] | None = None,
        name: str | None = None,
        writer: SummaryWriter | None = None,
        record_shapes: bool = True,
        max_events: int = 2_000_000,
        device: str | None = None,
        ceilings: Sequence[Ceiling | Mapping[str, Any]] | str | os.PathLike[str] | None = None,
        measure: bool = True,
        models: Iterable[Model] = (),
    ) -> None:
        self._model = model
        self._models = models
        self._schedule = schedule
        self._where, self._name = logdir, name
        self._logdir: Path | None = None
        self._writer = writer
        self._run: str | None = None
        self._record_shapes = record_shapes
        self._max_events = max_events
        self._device = device
        self._ceilings = ceilings
        self._measure = measure
        self._measured_for: torch.device | None = None
        self._recording: Recording | None = None
        self._entered = False
        self._trace: Path | None = None
        self._windows = 0
        self._report: Report | None = None
        self._yielded = 0
        self._unrecorded_ns: list[int] = []
        self._notes: list[str] = []

    def __enter__(self) -> profile:
        if self._entered:
            raise CaptureError("this profile has been entered before; make a new one for each block")
        require_torch()
        with profile._entering:
            _refuse_nesting()
            profile._active = self
        try:
            self._recording, self._entered = self._start(), True
        except BaseException:
            profile._active = None
            raise
        return self

    def _start(self) -> Recording:
        settings = self._settings()
        from torchroof.capture.recorder import Recording

        recording = Recording(settings)
        try:
            recording.start()
        except Exception as why:
            raise CaptureError(f"torch's profiler did not start: {why}") from why
        return recording

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recording, self._recording = self._recording, None
        profile._active = None
        if recording is None:
            return
        self._unrecorded_ns = recording.unrecorded_ns
        if self._report is not None:
            self._report = self._with_later_steps(self._report)
        self._take(recording.finish(interrupted=raised is not None))
        self._notes.extend(recording.notes)
        if self._trace is None and not recording.notes:
            self._notes.append(f"the block ended after {recording.steps} steps, before any was recorded")

    def step(self) -> None:
        """Ends a step of the loop and begins the next."""
        if self._recording is not None:
            self._take(self._recording.step())

    @property
    def report(self) -> Report:
        """The report of the last window that closed. Raises CaptureError where there is none."""
        if self._report is None:
            self._report = self._with_later_steps(self._analyze(self._closed_trace()))
        return self._report

    @property
    def reports(self) -> Iterator[Report]:
        """The report of the window that closed since this was asked last, if one did. None is kept: with a
        schedule that repeats, ask after each `step`."""
        if self._windows > self._yielded:
            self._yielded = self._windows
            yield self.report

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong in recording and writing, in sentences; what a trace holds is in its report."""
        return (*self._notes, *(self._recording.notes if self._recording else ()))

    def export_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace of the last window, gzipped if the name ends in ``.gz``. Perfetto opens it.

        Raises CaptureError where no window has closed and OutputError where the file cannot be written.
        """
        trace, target = self._closed_trace(), Path(path)
        try:
            with trace.open("rb") as source:
                if target.name.endswith(".gz"):
                    with gzip.open(target, "wb", _GZIP_LEVEL) as packed:
                        shutil.copyfileobj(source, packed, 1 << 20)
                else:
                    with target.open("wb") as plain:
                        shutil.copyfileobj(source, plain, 1 << 20)
        except NO_PATH as why:
            raise OutputError(f"cannot write {target}: {reason_of(why)}") from None

    def _settings(self) -> Settings:
        """Checks every argument and makes what the recording needs."""
        import torch

        from torchroof.capture.paths import roots_of
        from torchroof.capture.window import Settings
        from torchroof.reports import folder_in
        from torchroof.work.plugins import installed
        from torchroof.work.registry import formulas

        chosen = self._schedule if self._schedule is not None else Schedule()
        if not isinstance(chosen, Schedule):
            raise OptionError("profile: schedule must come from torchroof.schedule(…)")
        if not isinstance(self._max_events, int) or isinstance(self._max_events, bool) or self._max_events < 1:
            raise OptionError(f"profile: max_events must be a whole number over 0, not {self._max_events!r}")
        for option, value in (("record_shapes", self._record_shapes), ("measure", self._measure)):
            if not isinstance(value, bool):
                raise OptionError(f"profile: {option} must be True or False, not {value!r}")
        roots = roots_of(self._model)
        self._models = formulas(self._models)
        installed().registry.extended(self._models)  # refuses a formula whose op has one before anything is recorded
        self._check_device()
        if self._where is not None:
            self._logdir = folder_in(self._where, "" if self._name is None else self._name)
            _check_folder(self._logdir)
        if self._writer is not None and getattr(self._writer, "file_writer", None) is None:
            raise OptionError("profile: writer must be an open torch.utils.tensorboard.SummaryWriter")
        on_cpu = _runs_on_cpu(roots)
        ceilings, notes = self._measured(on_cpu)
        return Settings(
            roots=roots,
            schedule=chosen,
            folder=self._scratch_folder(),
            record_shapes=self._record_shapes,
            max_events=self._max_events,
            on_cpu=on_cpu,
            ceilings=ceilings,
            threads=torch.get_num_threads() if on_cpu and ceilings else None,
            notes=notes,
        )

    def _check_device(self) -> None:
        from torchroof.reports import roof_wish

        self._ceilings = roof_wish(self._device, self._ceilings, None).ceilings

    def _measured(self, on_cpu: bool) -> tuple[tuple[Ceiling, ...], tuple[str, ...]]:
        """The ceilings of the device that will be judged, which travel in the trace."""
        if self._ceilings is not None or self._device is not None:
            return (), ()
        if not self._measure:
            said = "the ceilings of this CPU were not measured, because measure=False was given"
            return (), (said,) if on_cpu else ()
        from torchroof.measure.live import before_run

        try:
            device = _device_to_judge(on_cpu)
            measured = before_run(device)
        except Exception as why:
            return (), (f"no ceilings were measured: {type(why).__name__}: {why}",)
        self._measured_for = device
        return measured.ceilings, measured.notes

    def _scratch_folder(self) -> Path:
        try:
            folder = Path(tempfile.mkdtemp(prefix="torchroof-"))
        except OSError as why:
            raise OutputError(f"cannot make a temporary folder for the trace: {why.strerror or why}") from None
        weakref.finalize(self, _remove_folder, folder, os.getpid())
        return folder

    def _take(self, trace: Path | None) -> None:
        """A window has closed: the one before it is forgotten."""
        if trace is None:
            return
        if self._trace is not None and self._trace != trace:
            with suppress(OSError):
                self._trace.unlink()
        self._trace, self._report = trace, None
        self._windows += 1
        if self._logdir is not None:
            try:
                self._write_logdir(self._logdir, trace)
            except Exception as why:
                self._notes.append(f"{self._logdir} was not written: {type(why).__name__}: {why}")
        if self._writer is not None:
            try:
                self.report.write_summaries(self._writer)
            except Exception as why:
                self._notes.append(f"nothing was written through the writer: {type(why).__name__}: {why}")

    def _write_logdir(self, logdir: Path, trace: Path) -> None:
        report, packed = self.report, trace.with_suffix(".json.gz")
        try:
            self.export_trace(packed)
            repeats = self._schedule is not None and self._schedule.repeat != 1
            last = max((step.index for step in report.data.per_step), default=0)
            self._run = report.write_logdir(
                logdir,
                packed,
                step=last if repeats else None,
                name=self._run,
                fresh=self._run is None,
                events=self._writer is None,
            )
        finally:
            packed.unlink(missing_ok=True)

    def _closed_trace(self) -> Path:
        if self._trace is not None:
            return self._trace
        if not self._entered:
            raise CaptureError("nothing has been recorded: use the profile in a with statement first")
        if self._recording is not None:
            raise CaptureError("no window has closed yet: ask for the report after the block, or after a step")
        reason = "; ".join(self._notes)
        raise CaptureError(f"there is no report: {reason}")

    def _with_later_steps(self, report: Report) -> Report:
        """The report with the steps that came after its window, which were not recorded, beside those before."""
        overhead = report.data.totals.overhead
        if overhead is None or not self._unrecorded_ns:
            return report
        from torchroof.capture.window import unrecorded
        from torchroof.report.totals import with_overhead

        return type(report)(with_overhead(report.data, overhead | unrecorded(self._unrecorded_ns)))

    def _analyze(self, trace: Path) -> Report:
        from torchroof.reports import analyze

        report = analyze(trace, device=self._device, ceilings=self._ceilings, models=self._models)
        if self._measured_for is not None:
            from torchroof.measure.calibrate import distrust
            from torchroof.report.suspicions import speaks_of_the_device

            if speaks_of_the_device(report.data):
                distrust(self._measured_for)
        return report


def require_torch() -> None:
    """Raises TorchMissing where torch cannot be imported."""
    try:
        import torch  # noqa: F401
    except ImportError as why:
        raise TorchMissing(
            f"profiling needs torch, and it cannot be imported ({why}); pip install 'torchroof[torch]'"
        ) from None


def _refuse_nesting() -> None:
    from torchroof.capture.torch_private import profiler_running

    if profile._active is not None:
        raise CaptureError(
            "torchroof.profile is already recording in this process; leave that block first, or drop this one"
        )
    if profiler_running():
        raise ProfilerRunning(
            "a torch profiler is already recording here, and a second one would empty its recording; "
            "leave that profiler first, or export its trace and give the file to torchroof.analyze"
        )


def _runs_on_cpu(roots: Mapping[str, Any]) -> bool:
    """Whether the CPU is the device to judge: no accelerator here, or the models given lie on the CPU."""
    from torchroof.capture.torch_private import device_type

    if device_type() == "cpu":
        return True
    places = {p.device.type for root in roots.values() for p in root.parameters()}
    return places == {"cpu"}


def _device_to_judge(on_cpu: bool) -> torch.device:
    import torch

    from torchroof.capture.torch_private import device_type

    kind = "cpu" if on_cpu else device_type()
    return torch.device(kind) if on_cpu else torch.device(kind, getattr(torch, kind).current_device())


def _check_folder(folder: Path) -> None:
    """Makes the folder and tries to write in it, before the training begins."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except NO_PATH as why:
        raise OutputError(f"cannot write to the logdir {folder}: {reason_of(why)}") from None


def _remove_folder(folder: Path, owner: int) -> None:
    """Only in the process that made it: a forked loader's worker must leave it alone."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
