"""`torchroof report`: the table of a trace, or the same as JSON or CSV."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchroof import reports
from torchroof.cli import exit_codes, ranks
from torchroof.device.roof import PREFERENCES
from torchroof.errors import NO_PATH, OptionError, OutputError, TruncatedTrace, reason_of
from torchroof.report import codec
from torchroof.report.lenses import BY, SORT, filter_of
from torchroof.reports import Report
from torchroof.views.output import Write, output
from torchroof.views.text import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

NAME = "report"
HELP = "the per-layer roofline table of a trace"
EPILOG = """
examples:
  torchroof report trace.json.gz --device "RTX A6000"
  torchroof report trace.json.gz --by op --sort time --top 10
  torchroof report trace.json.gz --filter "(?i)attention" --by op
  torchroof report trace.json.gz --explain encoder.layer.0.fc1
  torchroof report trace.json.gz --chart
  torchroof report trace.json.gz --format svg -o roof.svg
  torchroof report trace.json.gz --format html -o report.html
  torchroof report trace.json.gz --format json -o report.json.gz
  torchroof report killed.json.tmp --partial
  torchroof report traces/ --format json -o ranks.json
  torchroof report trace.json.gz --logdir runs/exp1
The table is as wide as the terminal (or COLUMNS). JSON is the whole report, CSV the --by table in base units,
HTML the whole report as a page that opens from disk.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "files",
        metavar="TRACE",
        nargs="+",
        help="a Kineto trace or a saved report (.json or .json.gz); a folder or several files are ranks of one job",
    )
    add = parser.add_argument
    add(
        "--device",
        metavar="NAME",
        help="a device of `torchroof devices`, or local: what was measured here of the trace's device",
    )
    add("--roof", choices=PREFERENCES, help="which judges where both are known (default: what was measured)")
    add("--ceilings", metavar="FILE", help="the device's limits as a JSON list, see docs/report-schema.md")
    add("--partial", action="store_true", help="a trace that ends early is no error: report its whole part")
    add("--layers-from", choices=reports.LAYERS_FROM, default="auto", help="take record_function ranges for layers")
    add("--memory", type=_size, metavar="GIB", help="what one trace may take, in memory or inflated (default: 8)")
    add("--dask", metavar="ADDRESS", help="for several ranks: let the workers of a dask cluster analyse them")
    add("--format", choices=("table", "json", "csv", "svg", "html"), default="table", help="default: table")
    add("-o", "--output", metavar="FILE", help="write there instead of to the screen; json: gzipped for .gz")
    add("--top", type=_count, metavar="N", help=f"lines shown, 0 for all (default: {reports.TOP}, in csv all)")
    add("--by", choices=BY, help="what a line is (default: layer; op where the trace knows no layers)")
    add("--sort", choices=SORT, default="headroom", help="what comes first (default: headroom)")
    add("--no-fold", dest="fold", action="store_false", help="a line for each of several equal layers (csv: always)")
    add("--depth", type=_count, metavar="N", help="sum layers into their ancestor of N names; 0 is the whole model")
    add("--filter", metavar="REGEX", help="what has a matching path, class or op; the others go into the rest")
    add("--chart", action="store_true", help="draw the roofline above the table")
    add("--explain", metavar="PATH", help="the whole accounting of one layer or op in place of the table")
    add("--logdir", metavar="DIR", help="also write a folder for TensorBoard: its torchroof tab, scalars, trace, JSON")


def run(args: argparse.Namespace) -> int:
    files = ranks.files_of(args.files)
    if len(files) > 1:
        return ranks.run(files, args)
    args.file = files[0]
    _check(args)
    with ExitStack() as stack:
        write: Write = _to_screen
        if args.output not in (None, "-"):
            write = stack.enter_context(output(args.output))
        if args.logdir:
            _make_folder(args.logdir)
        report, code = _report(args)
        if args.explain is not None:
            _explain(report, args, write)
        else:
            _FORMATS[args.format](report, args, write)
        if args.logdir:
            copied = os.path.isfile(args.file) and not reports.is_saved_report(args.file)  # a pipe can be read once
            run = report.write_logdir(args.logdir, args.file if copied else None)
            told = f"wrote the run {run} in {args.logdir}; tensorboard --logdir {args.logdir} shows it"
            print(told, file=sys.stderr)
    return code


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _size(text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = 0.0
    if not 0 < size < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of GiB over 0")
    return size


def _check(args: argparse.Namespace) -> None:
    """What needs no analysis to be refused."""
    if args.dask:
        raise OptionError("--dask is for several ranks, and one trace was given")
    if args.explain is not None and args.format in ("csv", "html"):
        raise OptionError("--explain is no table of lines: it has no csv or page; give it with --format table or json")
    filter_of(args.filter)
    if args.chart and args.format != "table":
        raise OptionError(f"--chart belongs to the table, not to {args.format}; for a picture use --format svg")
    if args.explain and args.format == "svg":
        raise OptionError("--explain is a text about one layer, not a picture; leave out --format svg")
    if args.output and args.output != "-" and _same(args.output, args.file):
        raise OutputError(f"{args.output} is the trace itself; choose another name for the output")


def _same(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except NO_PATH:
        return False


def _make_folder(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except NO_PATH as why:
        raise OutputError(f"cannot make the folder {path}: {reason_of(why)}") from None


def _report(args: argparse.Namespace) -> tuple[Report, int]:
    """The report and the exit code: of a trace that ends early there is a report, and it was bad input."""
    if reports.is_saved_report(args.file):
        if args.device or args.ceilings or args.roof or args.layers_from != "auto":
            raise OptionError(
                f"{args.file} is a saved report, and its roof and layers cannot be changed; "
                "give --device, --ceilings, --roof or --layers-from with the trace it was made of"
            )
        return reports.load(args.file), exit_codes.DONE
    try:
        return reports.analyze(args.file, partial=args.partial, **analysis_options(args)), exit_codes.DONE
    except TruncatedTrace as cut:
        if not isinstance(cut.report, Report):
            raise
        print(f"torchroof: {clean(str(cut))}; with --partial this is no error", file=sys.stderr)
        return cut.report, exit_codes.UNUSABLE


def analysis_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of how a trace is analysed, as keywords of `analyze`."""
    limit = None if args.memory is None else int(args.memory * 2**30)
    return {
        "device": args.device,
        "ceilings": args.ceilings,
        "roof": args.roof,
        "layers_from": args.layers_from,
        "memory_limit": limit,
    }


def _table(report: Report, args: argparse.Namespace, write: Write) -> None:
    top = reports.TOP if args.top is None else args.top or None
    lens = {"fold": args.fold, "depth": args.depth, "filter": args.filter}
    _show(report.page(args.by, args.sort, top, chart=args.chart, **lens), write)


def _show(page: RenderableType, write: Write) -> None:
    from torchroof.views.terminal import plain_text, screen_width, show

    if write is _to_screen:
        show(page)
    else:
        write(plain_text(page, screen_width()).encode() + b"\n")


def _explain(report: Report, args: argparse.Namespace, write: Write) -> None:
    account = report.explain(args.explain)
    if args.format == "table":
        return _show(account.__rich__(), write)
    text = codec.encode(account.data)
    return write(text if write is _to_screen else reports.packed(text, args.output))


def _json(report: Report, args: argparse.Namespace, write: Write) -> None:
    text = codec.encode(report.data)
    write(text if write is _to_screen else reports.packed(text, args.output))
    _print_notes(report)


def _csv(report: Report, args: argparse.Namespace, write: Write) -> None:
    from torchroof.views.export import csv_text

    lines = report.lines(args.by or report.by, args.sort, args.top or None, depth=args.depth, filter=args.filter)
    write(csv_text(lines).encode())
    _print_notes(report)


def _svg(report: Report, args: argparse.Namespace, write: Write) -> None:
    from torchroof.views.svg import svg

    picture = report.picture(args.by, fold=args.fold, depth=args.depth, filter=args.filter)
    write(svg(picture).encode() + b"\n")
    _print_notes(report)


def _html(report: Report, args: argparse.Namespace, write: Write) -> None:
    write(report.to_html().encode())
    _print_notes(report)


_FORMATS = {"table": _table, "json": _json, "csv": _csv, "svg": _svg, "html": _html}


def _print_notes(report: Report) -> None:
    for note in report.data.notes:
        print(f"note: {clean(note.text)}", file=sys.stderr)


def _to_screen(text: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
