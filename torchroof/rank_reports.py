"""The report of several ranks as users hold it: made from files or a folder, printed, saved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchroof.device.roof import Ceiling
from torchroof.errors import TraceError
from torchroof.ranks.merge import merge
from torchroof.ranks.model import RanksData
from torchroof.ranks.one import Options
from torchroof.ranks.running import Progress, analyse_ranks, traces_in
from torchroof.report import codec
from torchroof.reports import TOP, packed, roof_wish
from torchroof.trace.file import MEMORY_LIMIT

if TYPE_CHECKING:
    from torchroof.views.ranks import RanksPage

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class RanksReport:
    """What the traces of several ranks tell together. ``print`` shows it; ``data`` are the plain values."""

    def __init__(self, data: RanksData) -> None:
        self.data = data

    def page(self, top: int | None = TOP) -> RanksPage:
        """The page that `print` shows, for rich, with so many lines of each table."""
        from torchroof.views.ranks import RanksPage

        return RanksPage(self.data, top)

    def to_json(self) -> str:
        """The whole report as one line of JSON, as docs/report-schema.md describes it."""
        return codec.encode(self.data).decode().rstrip("\n")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as JSON, gzipped if the name ends in ``.gz``. Raises OutputError."""
        from torchroof.views.output import output

        with output(path) as write:
            write(packed(codec.encode(self.data), path))

    def __str__(self) -> str:
        from torchroof.views.terminal import plain_text, screen_width

        return plain_text(self.page(), screen_width())

    def __repr__(self) -> str:
        return f"<torchroof.RanksReport: {len(self.data.ranks)} ranks>"

    def __rich__(self) -> RanksPage:
        return self.page()

    def _repr_html_(self) -> str:
        from torchroof.views.terminal import html

        return html(self.page())


def analyze_ranks(
    paths: Paths,
    device: str | None = None,
    ceilings: Sequence[Ceiling | Mapping[str, Any]] | str | os.PathLike[str] | None = None,
    *,
    roof: str | None = None,
    layers_from: str = "auto",
    memory_limit: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> RanksReport:
    """One merged report of several ranks: of the traces in a folder, or of the files given.

    A rank is what its file says it is, else what the file's name says (``rank3``), else its place. A file that
    cannot be read is a rank with a ``fault``. ``executor`` (any of `concurrent.futures`, or that of a dask
    client) does the work; by default a pool of processes, one per core, and as with every such pool a script
    needs ``if __name__ == "__main__"``. ``progress(done, of)`` is called after each file. The rest is as in
    `analyze`. Raises TraceError where no file can be read, OptionError, UnknownDevice and CeilingsError.
    """
    wish = roof_wish(device, ceilings, roof, layers_from)
    single = isinstance(paths, str | os.PathLike)
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if single and Path(names[0]).is_dir():
        names = list(traces_in(names[0]))
    if not names:
        raise TraceError("no trace was given; name a folder of traces, or the files")
    options = Options(wish, layers_from, memory_limit or MEMORY_LIMIT)
    files = analyse_ranks(names, options, executor, progress)
    faults = [file.fault for file in files if file.fault]
    if len(faults) == len(files):
        more = f"; so with {len(files) - 1} more files" if len(files) > 1 else ""
        raise TraceError(f"{faults[0]}{more}")
    return RanksReport(merge(files))
