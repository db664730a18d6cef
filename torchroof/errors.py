"""Everything that torchroof raises on purpose.

::

    TorchroofError                    one clear line for the user; the command line prints it and exits with 2
    ├── InputError                    what was given cannot be used
    │   ├── TraceError                a trace file cannot be read: missing, a folder, empty, unreadable
    │   │   ├── NotATrace             it is no Kineto trace: not JSON, or JSON without traceEvents
    │   │   └── TruncatedTrace        the file ends before the trace does
    │   ├── ReportFileError           a saved report cannot be read
    │   ├── CeilingsError             a ceilings file, or a catalogue entry, is not well formed
    │   ├── UnknownDevice             no device of that name; the message lists the near ones
    │   ├── UnknownOp                 no work model of that name
    │   ├── OperandError              operands do not fit the op: shapes, types, counts
    │   └── OptionError               an option has a value outside its range
    ├── OutputError                   a file or folder cannot be written
    ├── RegistrationError             a work model is registered twice, or badly
    └── CaptureError                  profiling or measuring cannot start
        ├── DeviceBusy            other work runs on the device that is to be measured
        ├── ProfilerRunning           another torch profiler is recording
        └── TorchMissing              torch is not installed

Every message says what was wrong and what to do, in one line.
"""

from __future__ import annotations

NO_PATH = (OSError, ValueError)
"""What the system raises for a path that it cannot use: missing, too long, with a NUL in it."""


def reason_of(fault: Exception) -> str:
    """Why the system refused, in its words."""
    return getattr(fault, "strerror", None) or str(fault)


class TorchroofError(Exception):
    """The root of the tree above."""


class InputError(TorchroofError):
    """What was given cannot be used."""


class TraceError(InputError):
    """A trace file cannot be read."""


class NotATrace(TraceError):
    """The file is no Kineto trace."""


class TruncatedTrace(TraceError):
    """The file ends before the trace does."""

    report: object = None
    """The `Report` of what is whole; None where that is nothing."""


class ReportFileError(InputError):
    """A saved report cannot be read."""


class CeilingsError(InputError):
    """A ceilings file, or an entry of the device catalogue, is not well formed."""


class UnknownDevice(InputError):
    """No device of that name is in the catalogue."""


class UnknownOp(InputError):
    """No work model of that name."""


class OperandError(InputError):
    """The operands do not fit the op."""


class OptionError(InputError):
    """An option has a value outside its range."""


class OutputError(TorchroofError):
    """A file or folder cannot be written."""


class RegistrationError(TorchroofError):
    """A work model is registered twice, or badly."""


class CaptureError(TorchroofError):
    """Profiling or measuring cannot start."""


class DeviceBusy(CaptureError):
    """Other work runs on the device that is to be measured."""


class ProfilerRunning(CaptureError):
    """Another torch profiler is recording."""


class TorchMissing(CaptureError):
    """torch is not installed."""
