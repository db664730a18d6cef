"""The windows that TensorBoard's data provider has of us: listed without loading them, read one at a time."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tensorboard.data import provider

from torchroof.errors import ReportFileError
from torchroof.report import codec
from torchroof.report.model import SCHEMA, ReportData
from torchroof.views.tensorboard.names import PLUGIN

_KEPT = 8
"""Reports kept decoded: a window, its neighbours, and baselines."""
_KEPT_ANSWERS = 16
"""Answers kept encoded: page and details of as many reports."""
_MOST_BYTES = 1 << 29
"""A report that unpacks to more is refused."""
_ALL = 1 << 20
"""As many windows as there are: TensorBoard has thinned them out already."""


class Place(msgspec.Struct, frozen=True):
    """One window's address."""

    run: str
    tag: str
    step: int


class Window(msgspec.Struct, frozen=True):
    step: int
    wall_time: float


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The windows of a run under one tag, by rising step."""

    run: str
    tag: str
    windows: tuple[Window, ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """``notes`` tell what was passed over: summaries that are not ours to read."""

    series: tuple[Series, ...]
    notes: tuple[str, ...]


class Windows:
    """Reads through the data provider, which both of TensorBoard's loaders have."""

    def __init__(self, data_provider: Any) -> None:
        self._provider = data_provider
        self._lock = threading.Lock()
        self._reports: OrderedDict[tuple[Any, ...], ReportData] = OrderedDict()
        self._answers: OrderedDict[tuple[int, str], tuple[ReportData, bytes]] = OrderedDict()

    def listed(self, context: Any, experiment: str) -> Listed:
        """All windows of all runs, the run that was written to last first."""
        found = self._provider.list_blob_sequences(context, experiment_id=experiment, plugin_name=PLUGIN)
        kept: list[tuple[str, str]] = []
        notes: list[str] = []
        for run, tags in found.items():
            for tag, series in tags.items():
                schema = _schema(series.plugin_content)
                if schema == SCHEMA:
                    kept.append((run, tag))
                else:
                    notes.append(f"{run}: {tag} was passed over, {_told(schema)}")
        steps = self._steps(context, experiment, None) if kept else {}
        series_of = [_series(run, tag, steps.get(run, {}).get(tag, ())) for run, tag in kept]
        filled = [one for one in series_of if one.windows]
        notes += [f"{one.run}: {one.tag} was passed over, it holds no report" for one in series_of if not one.windows]
        return Listed(
            series=tuple(sorted(filled, key=lambda one: (-one.windows[-1].wall_time, one.run, one.tag))),
            notes=tuple(sorted(notes)),
        )

    def report(self, context: Any, experiment: str, place: Place) -> ReportData | None:
        """The report of a window, None where there is none. Raises ReportFileError for one that cannot be read."""
        only = provider.RunTagFilter(runs=[place.run], tags=[place.tag])
        steps = self._steps(context, experiment, only).get(place.run, {}).get(place.tag, ())
        chosen = next((datum for datum in reversed(steps) if datum.step == place.step and datum.values), None)
        if chosen is None:
            return None
        key = (experiment, place, chosen.wall_time)
        with self._lock:
            if key in self._reports:
                self._reports.move_to_end(key)
                return self._reports[key]
        blob = self._provider.read_blob(context, blob_key=chosen.values[0].blob_key)
        data = codec.decode(_unpacked(blob), "the summary")
        with self._lock:
            self._reports[key] = data
            while len(self._reports) > _KEPT:
                self._reports.popitem(last=False)
        return data

    def answer(self, kind: str, data: ReportData, show: Callable[[ReportData], msgspec.Struct]) -> bytes:
        """What is shown of a report, encoded; kept, for it may take seconds for a big one."""
        key = (id(data), kind)  # the report is kept beside it, so that no other gets its identity
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key][1]
        text = codec.encode(show(data))
        with self._lock:
            self._answers[key] = (data, text)
            while len(self._answers) > _KEPT_ANSWERS:
                self._answers.popitem(last=False)
        return text

    def _steps(self, context: Any, experiment: str, only: Any) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self._provider.read_blob_sequences(
            context, experiment_id=experiment, plugin_name=PLUGIN, downsample=_ALL, run_tag_filter=only
        )
        return found


def _series(run: str, tag: str, data: Any) -> Series:
    """A repeated step counts once: its last."""
    windows = {datum.step: Window(datum.step, datum.wall_time) for datum in data if datum.values}
    return Series(run=run, tag=tag, windows=tuple(windows[step] for step in sorted(windows)))


def _schema(content: Any) -> str | None:
    try:
        return bytes(content).decode() or None
    except (TypeError, ValueError):
        return None


def _told(schema: str | None) -> str:
    if schema is None or not schema.startswith("torchroof.report/"):
        return "it is no report of torchroof's"
    return f"it has the schema {schema}, and this version reads {SCHEMA}"


def _unpacked(blob: bytes) -> bytes:
    """The JSON of a blob. Raises ReportFileError."""
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(blob, _MOST_BYTES)
    except zlib.error as why:
        raise ReportFileError(f"the summary is damaged: {why}") from None
    if not unpacking.eof:
        told = "is larger than 512 MB" if len(text) >= _MOST_BYTES else "ends too early"
        raise ReportFileError(f"the summary {told}")
    return text
