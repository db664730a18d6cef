"""A folder that TensorBoard reads: the trace, the report as JSON, standard scalars and one text table."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from torchroof.errors import OutputError
from torchroof.report import codec
from torchroof.report.lenses import Lines
from torchroof.report.model import ReportData
from torchroof.report.picture import Picture
from torchroof.report.summary import Headline
from torchroof.views.drawing import HEIGHT, WIDTH
from torchroof.views.output import output
from torchroof.views.tensorboard import png, summary

RUN = "torchroof"
"""The run's own folder, and how files begin. Events beside the user's own would stop theirs from being read."""


def write(
    data: ReportData,
    headline: Headline,
    lines: Lines,
    logdir: str | os.PathLike[str],
    trace_path: str | os.PathLike[str] | None = None,
    step: int | None = None,
    name: str = RUN,
    picture: Picture | None = None,
) -> None:
    """Writes ``NAME.report.json``, ``NAME.trace.json`` if one is given, and events in the run ``NAME``.

    ``step`` is the scalars' place on TensorBoard's axis, by default the index of the last step; with one, the
    files carry it in their names, so that several windows can share a folder. ``picture`` is added as an
    image. Raises OutputError.
    """
    folder = Path(logdir)
    suffix = "" if step is None else f".{step}"
    at = step if step is not None else max((s.index for s in data.per_step), default=0)
    try:
        (folder / name).mkdir(parents=True, exist_ok=True)
        with output(folder / f"{name}{suffix}.report.json") as put:
            put(codec.encode(data))
        if trace_path is not None:
            _copy_trace(Path(trace_path), folder, f"{name}{suffix}")
        _write_events(data, headline, lines, picture, folder / name, at)
    except OSError as why:
        raise OutputError(f"cannot write to {logdir}: {why.strerror or why}; choose another logdir") from None


def _copy_trace(trace: Path, folder: Path, stem: str) -> None:
    ending = ".json.gz" if trace.name.endswith(".gz") else ".json"
    target = folder / f"{stem}.trace{ending}"
    if not (target.exists() and target.samefile(trace)):
        shutil.copyfile(trace, target)


def _write_events(
    data: ReportData, headline: Headline, lines: Lines, picture: Picture | None, folder: Path, step: int
) -> None:
    event = Event(wall_time=time.time(), step=step)
    for tag, value in summary.scalars(data, headline, lines):
        event.summary.value.append(summary.scalar(tag, value))
    event.summary.value.append(summary.text(f"{RUN}/layers", summary.markdown(headline, lines)))
    if picture is not None:
        drawn = png.png(picture)
        event.summary.value.append(summary.image(f"{RUN}/roofline", png.SCALE * WIDTH, png.SCALE * HEIGHT, drawn))
    writer = EventFileWriter(str(folder))
    try:
        writer.add_event(event)
    finally:
        writer.close()
