"""`torchroof calibrate`: measure what this machine's device can do."""

from __future__ import annotations

import argparse
import json
import sys

from torchroof.calibration import Calibrated, calibrate
from torchroof.cli import exit_codes
from torchroof.cli.console import show
from torchroof.device.ceilings_file import ceilings_to_json

NAME = "calibrate"
HELP = "measure the ceilings of a device here, and keep them"
EPILOG = """
examples:
  torchroof calibrate
  torchroof calibrate --device cpu --quick
  torchroof calibrate --format ceilings > mine.json     # torchroof report trace.json.gz --ceilings mine.json
Later profiles of this device are judged by what was measured; --device local does so for any trace of it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, … (default: the best that torch can use here)")
    add("--quick", action="store_true", help="less than 10 s on a CPU, instead of less than 2 min")
    add("--force", action="store_true", help="measure also while other work keeps the device busy")
    add(
        "--format",
        choices=("table", "json", "ceilings"),
        default="table",
        help="json: all of it; ceilings: a file for --ceilings (default: table)",
    )


def run(args: argparse.Namespace) -> int:
    found = _with_bar(args)
    if args.format == "table":
        show(found.__rich__())
        return exit_codes.DONE
    data = found.as_json() if args.format == "json" else ceilings_to_json(found.ceilings)
    print(json.dumps(data, indent=1, ensure_ascii=False))
    for note in found.data.notes:
        print(f"note: {note}", file=sys.stderr)
    return exit_codes.DONE


def _with_bar(args: argparse.Namespace) -> Calibrated:
    """A progress bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        return calibrate(args.device, quick=args.quick, force=args.force)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("measuring {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("…", total=1.0)

        def tell(done: float, what: str) -> None:
            bar.update(task, completed=done, description=what, refresh=True)

        return calibrate(args.device, quick=args.quick, force=args.force, progress=tell)
