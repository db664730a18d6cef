"""A folder that TensorBoard reads: the trace, the report as JSON, and a run of events beside the user's own."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from torchroof.errors import OutputError
from torchroof.report import codec
from torchroof.report.lenses import Lines
from torchroof.report.model import ReportData
from torchroof.report.picture import Picture
from torchroof.report.summary import Headline
from torchroof.views.output import output
from torchroof.views.tensorboard import summary
from torchroof.views.tensorboard.summary import FIRST_TAG

RUN = "torchroof"
"""The run's own folder, and how files begin. Events beside the user's own would stop theirs from being read."""
_EVENTS = re.compile(r"events\.out\.tfevents\.[0-9]+\.([0-9]+)\.torchroof")
_MOST_RUNS = 10_000
_LOOKED_AT = 128
"""Bytes of an event: its time, its step and its first tag, by which one of ours is known."""


def write(
    data: ReportData,
    headline: Headline,
    lines: Lines,
    logdir: str | os.PathLike[str],
    trace_path: str | os.PathLike[str] | None = None,
    step: int | None = None,
    name: str = RUN,
    picture: Picture | None = None,
    *,
    fresh: bool | None = None,
    events: bool = True,
) -> str:
    """Writes ``NAME.report.json``, ``NAME.trace.json`` if one is given, and events in the run ``NAME``; gives its name.

    ``step`` is the place on TensorBoard's axis, by default the index of the last step; with one, the files carry it
    in their names, so that several windows can share a folder. TensorBoard forgets what came before a step that is
    not larger, so such a write makes the next run of ``NAME``, ``NAME-2``, … that is free; so does one that is
    ``fresh``, which a write without a step is. ``picture`` is added as an image, ``events=False`` leaves the run out.
    Raises OutputError.
    """
    folder = Path(logdir)
    suffix = "" if step is None else f".{step}"
    at = last_step(data) if step is None else step
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if events:
            name = _free(folder, name, at, fresh=step is None if fresh is None else fresh)
        with output(folder / f"{name}{suffix}.report.json") as put:
            put(codec.encode(data))
        if trace_path is not None:
            _copy_trace(Path(trace_path), folder, f"{name}{suffix}")
        if events:
            (folder / name).mkdir(exist_ok=True)
            _write_events(summary.values(data, headline, lines, picture), folder / name, at)
    except OSError as why:
        raise OutputError(f"cannot write to {logdir}: {why.strerror or why}; choose another logdir") from None
    return name


def write_through(
    writer: Any, data: ReportData, headline: Headline, lines: Lines, step: int, picture: Picture | None = None
) -> None:
    """Writes the same events through a SummaryWriter of torch, into the user's own run.

    A step that is not larger than the last one that stands in the run, of this writer or an earlier one in the same
    folder, becomes the next one: a training that is taken up again goes on. Raises OutputError for a writer that is
    closed or none.
    """
    file_writer: Any = getattr(writer, "file_writer", None)
    if not hasattr(file_writer, "add_summary"):
        raise OutputError("the SummaryWriter is closed, or none of torch's; give profile an open one")
    if writer not in _LAST_STEPS:
        _LAST_STEPS[writer] = last_step_in(Path(str(getattr(writer, "log_dir", ""))))
    step = max(step, _LAST_STEPS[writer] + 1)
    _LAST_STEPS[writer] = step
    file_writer.add_summary(Summary(value=list(summary.values(data, headline, lines, picture))), step)
    file_writer.flush()


_LAST_STEPS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def last_step_in(run: Path) -> int:
    """The last step at which a report stands in the event files of a run, -1 where there is none."""
    try:
        files = [file for file in run.iterdir() if "tfevents" in file.name]
    except OSError:
        return -1
    return max((step for file in files for step in _steps_in(file)), default=-1)


def _steps_in(file: Path) -> Iterator[int]:
    """The steps of the events of ours. Of each record in the file only the beginning is looked at: a length of 8 bytes,
    its checksum of 4, the event, and that one's checksum."""
    with suppress(Exception), file.open("rb") as source:  # a damaged file ends there
        size = os.fstat(source.fileno()).st_size
        while len(head := source.read(12 + _LOOKED_AT)) > 12:
            length, start = int.from_bytes(head[:8], "little"), source.tell() - len(head) + 12
            if start + length > size:
                return
            if FIRST_TAG.encode() in head[12 : 12 + length]:
                source.seek(start)
                event = Event.FromString(source.read(length))
                if any(value.tag == FIRST_TAG for value in event.summary.value):
                    yield event.step
            source.seek(start + length + 4)


def last_step(data: ReportData) -> int:
    return max((step.index for step in data.per_step), default=0)


def _free(folder: Path, name: str, step: int, *, fresh: bool) -> str:
    """The run that takes a step: the name itself, or numbered, where its last step is not smaller."""
    for number in range(1, _MOST_RUNS):
        run = name if number == 1 else f"{name}-{number}"
        last = _last_written(folder / run)
        if last is None or (not fresh and last < step):
            return run
    raise OutputError(f"{folder} has {_MOST_RUNS} runs of the name {name}; choose another logdir")


def _last_written(run: Path) -> int | None:
    """The last step in a run of ours, as its files' names tell; a foreign events file is beyond every step."""
    if not run.is_dir():
        return None
    steps = []
    for file in run.iterdir():
        if "tfevents" in file.name:
            match = _EVENTS.fullmatch(file.name)
            steps.append(int(match[1]) if match else 2**63)
    return max(steps, default=None)


def _copy_trace(trace: Path, folder: Path, stem: str) -> None:
    ending = ".json.gz" if trace.name.endswith(".gz") else ".json"
    target = folder / f"{stem}.trace{ending}"
    if not (target.exists() and target.samefile(trace)):
        shutil.copyfile(trace, target)


def _write_events(values: list[Summary.Value], run: Path, step: int) -> None:
    """One file for the window, whole from the first moment: readers take a run's files in the order of their names."""
    now = time.time()
    target = run / f"events.out.tfevents.{int(now):010d}.{step:012d}.torchroof"
    draft = run / f".{target.name.replace('tfevents', 'draft')}"
    events = [
        Event(wall_time=now, file_version="brain.Event:2"),
        Event(wall_time=now, step=step, summary=Summary(value=values)),
    ]
    try:
        with draft.open("wb") as file:
            records = RecordWriter(file)
            for event in events:
                records.write(event.SerializeToString())
            records.flush()
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
