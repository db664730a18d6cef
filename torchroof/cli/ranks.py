"""`torchroof report` for a folder or several files: ranks analysed side by side, and one merged report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from torchroof import rank_reports, reports
from torchroof.cli import exit_codes
from torchroof.errors import OptionError, OutputError, TraceError
from torchroof.ranks.running import Progress, traces_in
from torchroof.report import codec
from torchroof.trace.file import MEMORY_LIMIT, opened
from torchroof.views.output import Write, output
from torchroof.views.text import clean

_OF_ONE = ("explain", "chart", "depth", "filter", "logdir", "by")
"""Options that are about one trace."""


_PART = 1 << 20


def files_of(names: list[str]) -> list[str]:
    """The files meant: those named, and of a folder the traces in it. Raises TraceError for a name of nothing."""
    found: list[str] = []
    for name in names:
        if len(names) > 1 and name and not os.path.exists(name):
            raise TraceError(f"{name}: no such file; check the path")
        found.extend(map(str, traces_in(name)) if name and os.path.isdir(name) else [name])
    return found


def run(files: list[str], args: argparse.Namespace) -> int:
    """Prints or writes the merged report. 2 where a file could not be read whole, unless that was allowed."""
    _check(files, args)
    limit = MEMORY_LIMIT if args.memory is None else int(args.memory * 2**30)
    with ExitStack() as stack:
        files = _as_files(files, limit, stack)
        write = None if args.output in (None, "-") else stack.enter_context(output(args.output))
        executor = stack.enter_context(_dask(args.dask)) if args.dask else None
        progress = stack.enter_context(_bar(len(files)))
        report = rank_reports.analyze_ranks(
            files,
            args.device,
            args.ceilings,
            roof=args.roof,
            layers_from=args.layers_from,
            memory_limit=limit,
            executor=executor,
            progress=progress,
        )
        stack.callback(_show, report, args, write)
    bad = [rank for rank in report.data.ranks if rank.fault or rank.cut]
    for rank in bad:
        why = rank.fault or f"{rank.source}: the file ends in the middle of the trace"
        print(f"torchroof: rank {rank.rank}: {clean(why)}", file=sys.stderr)
    return exit_codes.UNUSABLE if bad and not args.partial else exit_codes.DONE


def _as_files(names: list[str], limit: int, stack: ExitStack) -> list[str]:
    """The files, with copies of what comes through pipes: ranks are read in processes that do not have those."""
    pipes = [i for i, name in enumerate(names) if os.path.exists(name) and not os.path.isfile(name)]
    if not pipes:
        return names
    found, folder = list(names), Path(stack.enter_context(TemporaryDirectory(prefix="torchroof-")))
    for i in pipes:
        copy = folder / str(i) / os.path.basename(names[i])
        copy.parent.mkdir()
        with opened(names[i]) as source, copy.open("wb") as target:
            while target.tell() <= limit and (part := source.read(_PART)):  # what never ends is a rank cut short
                target.write(part)
        found[i] = str(copy)
    return found


def _check(files: list[str], args: argparse.Namespace) -> None:
    chosen = [name for name in _OF_ONE if getattr(args, name) not in (None, False)]
    if chosen:
        raise OptionError(f"--{chosen[0]} is about one trace, and {len(files)} were given; name one of them")
    if args.format not in ("table", "json"):
        raise OptionError(f"several ranks are shown as table or json, not as {args.format}")
    for name in files:
        if reports.is_saved_report(name):
            raise OptionError(f"{name} is a saved report, and ranks are merged from their traces; name those")
        if args.output and Path(args.output).resolve() == Path(name).resolve():
            raise OutputError(f"{args.output} is one of the traces; choose another name for the output")


def _show(report: rank_reports.RanksReport, args: argparse.Namespace, write: Write | None) -> None:
    from torchroof.views.terminal import plain_text, screen_width, show

    if args.format == "json":
        text = codec.encode(report.data)
        if write:
            write(reports.packed(text, args.output))
        else:
            sys.stdout.write(text.decode())
        return
    page = report.page(reports.TOP if args.top is None else args.top or None)
    if write:
        write(plain_text(page, screen_width()).encode() + b"\n")
    else:
        show(page)


@contextmanager
def _bar(files: int) -> Iterator[Progress | None]:
    """A progress bar on standard error, where that is a screen."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("ranks", total=files)
        yield lambda done, of: bar.update(task, completed=done, total=of)


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    """The executor of a dask cluster. Its workers need torchroof, and see the same files."""
    try:
        from distributed import Client
    except ImportError:
        raise OptionError("--dask needs dask.distributed; pip install 'torchroof[dask]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as why:
        raise OptionError(f"no dask cluster answers at {address}: {' '.join(str(why).split())}") from None
    with client:
        yield client.get_executor()
