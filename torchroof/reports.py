"""The report as users hold it: made from a trace or a file, printed, saved, taken as DataFrames."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from torchroof.device.roof import PREFERENCES, Ceiling
from torchroof.errors import (
    NO_PATH,
    OptionError,
    OutputError,
    ReportFileError,
    TruncatedTrace,
    UnknownDevice,
    reason_of,
)
from torchroof.report import codec, lenses, summary
from torchroof.report.explain import Account, explain
from torchroof.report.model import Kernel, ReportData, Row, Step

if TYPE_CHECKING:
    import pandas as pd

    from torchroof.device.cache import Cached
    from torchroof.report.difference import Difference
    from torchroof.report.picture import Picture
    from torchroof.report.roofs import Wish
    from torchroof.views.explain import Explanation
    from torchroof.views.table import Page
    from torchroof.work import Model

LAYERS_FROM = ("auto", "annotations")
"""Where layers are taken from: scopes of ours or ``nn.Module`` events, or the user's own ranges."""
TRIVIAL = 0.001
"""Lines at the end of a printed table that come to less than this part of a step are told together."""
TOP = 20
"""Lines of a printed table where no number is asked for."""
_GZIP = b"\x1f\x8b"
_GZIP_LEVEL = 6


class Report:
    """What one trace tells, layer by layer.

    ``print(report)`` shows the table; in a notebook it shows itself. ``data`` is the whole report as plain
    values, ``layers``, ``rows``, ``kernels`` and ``steps`` are pandas DataFrames of its tables: sums over the
    counted steps in integer nanoseconds and bytes, unknown figures as ``<NA>``.
    """

    def __init__(self, data: ReportData) -> None:
        self.data = data

    def lines(
        self,
        by: str = "layer",
        sort: str = "headroom",
        top: int | None = None,
        *,
        fold: bool = False,
        depth: int | None = None,
        filter: str | None = None,
    ) -> lenses.Lines:
        """The lines of the table: ``by`` layer, op, phase or kernel, ``sort`` headroom, time or flops.

        ``fold`` makes equal layers one line, ``depth`` sums layers into their ancestor of so many names, and
        ``filter`` is a regular expression that a line's path, class or one of its ops has to match; the other
        lines are in the rest. Raises OptionError.
        """
        return lenses.lines(self.data, by=by, sort=sort, top=top, fold=fold, depth=depth, filter=filter)

    def explain(self, path: str) -> Explained:
        """The whole accounting of one layer, of a pattern as the table shows it, or of ``(optimizer)`` and the like.

        It prints itself, like a report. Raises OptionError, naming what is near, where nothing has the path.
        """
        return Explained(explain(self.data, path))

    @property
    def headline(self) -> summary.Headline:
        """The figures above the table."""
        return summary.headline(self.data)

    @property
    def by(self) -> str:
        """What a line of the printed table is: a layer, or an op where the trace knows no layers."""
        return "layer" if any(row.path is not None for row in self.data.rows) else "op"

    def page(
        self,
        by: str | None = None,
        sort: str = "headroom",
        top: int | None = TOP,
        *,
        fold: bool = True,
        depth: int | None = None,
        filter: str | None = None,
        chart: bool = False,
    ) -> Page:
        """The page that `print` shows, for rich: ``rich.print(report.page(by="op", top=5))``.

        Lines under a thousandth of a step are summed with what ``top`` leaves out, unless that is None.
        ``chart`` draws the roofline above the table.
        """
        from torchroof.views.table import Page

        least = 0.0 if top is None else TRIVIAL
        lines = lenses.lines(self.data, by or self.by, sort, top, fold=fold, depth=depth, filter=filter, least=least)
        picture = self.picture(by, fold=fold, depth=depth, filter=filter) if chart else None
        return Page(self.data, self._headline_of(lines.by, fold), lines, picture)

    def _headline_of(self, by: str, fold: bool) -> summary.Headline:
        """The headline above a table: its worst line is one that such a table has."""
        if by == self.by:
            return self.headline
        found = lenses.lines(self.data, by, fold=fold).lines if by in ("layer", "op") else ()
        return summary.headline(self.data, candidates=found)

    def picture(
        self, by: str | None = None, *, fold: bool = True, depth: int | None = None, filter: str | None = None
    ) -> Picture:
        """The roofline's geometry, a point per line of the table: what the chart and the SVG draw.

        Raises OptionError, also for ``by="kernel"``: work belongs to ops.
        """
        from torchroof.report.picture import picture

        return picture(self.data, self.lines(by or self.by, fold=fold, depth=depth, filter=filter))

    def to_svg(self, by: str | None = None, *, theme: str = "auto") -> str:
        """The roofline as a self-contained SVG; ``theme`` is light, dark or auto (as the reader's system is)."""
        from torchroof.views.svg import svg

        return svg(self.picture(by), theme)

    @cached_property
    def layers(self) -> pd.DataFrame:
        """The printed table, every line of it, unformatted: layers, or ops where the trace knows no layers."""
        from torchroof.views.frames import frame_of_lines

        return frame_of_lines(self.lines(self.by))

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One line per device, layer, phase, op and precision."""
        from torchroof.views.frames import frame_of

        return frame_of(Row, self.data.rows)

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """Kernels by name, layer, phase and op."""
        from torchroof.views.frames import frame_of

        return frame_of(Kernel, self.data.kernels)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Every step of the file, and whether it counted."""
        from torchroof.views.frames import frame_of

        return frame_of(Step, self.data.per_step)

    def to_json(self) -> str:
        """The whole report as one line of JSON, as docs/report-schema.md describes it."""
        return codec.encode(self.data).decode().rstrip("\n")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as JSON, gzipped if the name ends in ``.gz``. Raises OutputError."""
        from torchroof.views.output import output

        with output(path) as write:
            write(packed(codec.encode(self.data), path))

    def write_logdir(
        self,
        logdir: str | os.PathLike[str],
        trace_path: str | os.PathLike[str] | None = None,
        *,
        step: int | None = None,
        name: str | None = None,
        fresh: bool | None = None,
        events: bool = True,
    ) -> str:
        """Writes a folder for TensorBoard: the report for its torchroof tab, scalars, a text table and a picture.

        Beside them lie the report as JSON and a copy of the trace, if one is given. ``step`` is the place on
        TensorBoard's axis (default: the last step), ``name`` the run's (default: torchroof). A repeated write makes a
        new run, ``torchroof-2``; one with a larger ``step`` goes on in the run that is there, if it is not to be
        ``fresh``. Gives the run's name. ``events=False`` leaves out what is TensorBoard's. Raises OutputError,
        OptionError for a name that leads out of the folder, and TraceError where there is no such trace.
        """
        from torchroof.views.tensorboard import logdir as folder

        _check_logdir(logdir, trace_path, name or folder.RUN)
        made = (self.lines(self.by, top=TOP, fold=True), logdir, trace_path, step, name or folder.RUN, self.picture())
        return folder.write(self.data, self.headline, *made, fresh=fresh, events=events)

    def write_summaries(self, writer: Any, step: int | None = None) -> None:
        """Writes the same into the run of a `torch.utils.tensorboard.SummaryWriter`.

        ``step`` is the place on TensorBoard's axis (default: the last step); one that does not rise becomes the next
        that does. Raises OutputError for a writer that is closed.
        """
        from torchroof.views.tensorboard import logdir as folder

        lines, at = self.lines(self.by, top=TOP, fold=True), folder.last_step(self.data) if step is None else step
        folder.write_through(writer, self.data, self.headline, lines, at, self.picture())

    def difference(self, other: Report, by: str = "layer") -> Difference:
        """What changed from ``other``, the baseline, to this report: per layer, op or phase, in means per step."""
        from torchroof.report.difference import difference

        return difference(self.data, other.data, by)

    def to_html(self) -> str:
        """The report as one HTML page with everything in it: it opens from disk, and loads nothing from elsewhere."""
        from torchroof.views.page import html

        return html(self.data)

    def __str__(self) -> str:
        from torchroof.views.terminal import plain_text, screen_width

        return plain_text(self.page(), screen_width())

    def __repr__(self) -> str:
        return f"<torchroof.Report: {self.data.steps} steps, {len(self.data.rows)} rows>"

    def __rich__(self) -> Page:
        return self.page()

    def _repr_html_(self) -> str:
        from torchroof.views.terminal import html

        return f"{self.to_svg()}\n{html(self.page())}"


class Explained:
    """The accounting of one layer. ``print`` shows it; ``data`` are the same figures as plain values."""

    def __init__(self, data: Account) -> None:
        self.data = data

    def to_json(self) -> str:
        """The accounting as one line of JSON: sums over the counted steps, in ns, FLOPs and bytes."""
        return codec.encode(self.data).decode().rstrip("\n")

    def __str__(self) -> str:
        from torchroof.views.terminal import plain_text, screen_width

        return plain_text(self.__rich__(), screen_width())

    def __rich__(self) -> Explanation:
        from torchroof.views.explain import Explanation

        return Explanation(self.data, time.time())

    def _repr_html_(self) -> str:
        from torchroof.views.terminal import html

        return html(self.__rich__())


def analyze(
    path: str | os.PathLike[str],
    device: str | None = None,
    ceilings: Sequence[Ceiling | Mapping[str, Any]] | str | os.PathLike[str] | None = None,
    *,
    roof: str | None = None,
    partial: bool = False,
    layers_from: str = "auto",
    memory_limit: int | None = None,
    models: Iterable[Model] = (),
) -> Report:
    """The report of a Kineto trace (``.json`` or ``.json.gz``).

    ``device`` names a device of the catalogue, or ``"local"`` for the ceilings that were measured on this
    machine, of the same device; ``ceilings`` are the limits themselves, objects of their JSON form, or a JSON file.
    Without either, the trace says what it ran on. ``roof`` is ``"measured"`` or ``"datasheet"``, where both are
    known; without it what was measured judges. Of a file that ends early, ``partial`` gives the report of its
    whole part; without it TruncatedTrace is raised, which carries that report. ``layers_from="annotations"``
    takes the ranges of `record_function` for layers. ``memory_limit`` in bytes (default: 8 GiB) is what one
    file may take. Raises TraceError, OptionError, UnknownDevice and CeilingsError. ``models`` are formulas of
    ops of your own (see `torchroof.work`); RegistrationError for an op that has one.
    """
    from torchroof.join.ranges import with_ranges_as_layers
    from torchroof.report.build import analyse
    from torchroof.trace.file import MEMORY_LIMIT
    from torchroof.trace.reader import read

    wish = roof_wish(device, ceilings, roof, layers_from)
    table = read(path, partial=True, memory_limit=memory_limit or MEMORY_LIMIT)
    if layers_from == "annotations":
        table = with_ranges_as_layers(table)
    made = analyse(table, device=wish.device, ceilings=wish.ceilings, local=wish.local, roof=wish.prefer, models=models)
    report = Report(made)
    if table.cut and not partial:
        cut = TruncatedTrace(table.cut)
        cut.report = report
        raise cut
    return report


def roof_wish(
    device: str | None,
    ceilings: Sequence[Ceiling | Mapping[str, Any]] | str | os.PathLike[str] | None,
    roof: str | None,
    layers_from: str = "auto",
) -> Wish:
    """The roof that was asked for, as values; and whether ``layers_from`` can be asked for. No trace is read yet.

    Raises OptionError, UnknownDevice and CeilingsError.
    """
    from torchroof.device.catalog import find
    from torchroof.device.ceilings_file import given_ceilings
    from torchroof.report.roofs import Wish

    if layers_from not in LAYERS_FROM:
        raise OptionError(f"layers cannot come from {layers_from!r}; choose one of {', '.join(LAYERS_FROM)}")
    if roof not in (None, *PREFERENCES):
        raise OptionError(f"roof must be one of {', '.join(PREFERENCES)}, not {roof!r}")
    if device is not None and not isinstance(device, str):
        raise OptionError(f"device must be the name of a device, not {device!r}")
    ceilings = given_ceilings(ceilings)
    local = None
    if device == "local":
        device, local = None, _measured_here() if ceilings is None else None
    elif device is not None:
        find(device)
    return Wish(device, ceilings, local, roof)


def _measured_here() -> Sequence[Cached]:
    from torchroof.device import cache

    measured = cache.measured_here()
    if not measured:
        raise UnknownDevice("no ceilings have been measured on this machine; run `torchroof calibrate` first")
    return measured


def load(path: str | os.PathLike[str]) -> Report:
    """The report that `Report.save` wrote, whole. Raises ReportFileError."""
    try:
        text = Path(path).read_bytes()
        if text.startswith(_GZIP):
            text = gzip.decompress(text)
    except (EOFError, zlib.error, gzip.BadGzipFile) as why:
        raise ReportFileError(f"{path} is a damaged gzip file: {why}; make it again from its trace") from None
    except (*NO_PATH, TypeError) as why:
        raise ReportFileError(f"cannot read the report {path!s}: {reason_of(why)}") from None
    return Report(codec.decode(text, str(path)))


def is_saved_report(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a saved report does. A file that cannot be read is none, nor is one read only once."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            head = file.read(4096)
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, 256)
    except (OSError, ValueError, zlib.error):
        return False
    return codec.looks_like_report(head)


def folder_in(logdir: str | os.PathLike[str], name: object = "") -> Path:
    """A subfolder of a logdir. Raises OptionError for what is no path, and for a name that leads out of it."""
    if not isinstance(logdir, str | os.PathLike) or not isinstance(where := os.fspath(logdir), str) or "\0" in where:
        raise OptionError(f"logdir must be the path of a folder, not {logdir!r}")
    if not isinstance(name, str) or "\0" in name or PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise OptionError(f"{name!r} names no folder inside a logdir; give a plain name, such as exp1")
    return Path(where, name)


def _check_logdir(logdir: str | os.PathLike[str], trace: str | os.PathLike[str] | None, name: str) -> None:
    """What is to be copied must be there, and no report may replace it."""
    from torchroof.trace.file import opened

    folder_in(logdir, name)
    if trace is None:
        return
    opened(trace).close()
    with suppress(*NO_PATH):
        for target in Path(logdir).glob("*.report.json"):
            if os.path.samefile(trace, target):
                raise OutputError(f"{target} is the trace itself; choose another logdir, or rename the trace")


def packed(text: bytes, path: str | os.PathLike[str]) -> bytes:
    """The bytes for a file of this name: gzipped, without a date, if it ends in ``.gz``."""
    named_gz = os.fspath(path).endswith(".gz")
    return gzip.compress(text, _GZIP_LEVEL, mtime=0) if named_gz else text
