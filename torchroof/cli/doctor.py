"""`torchroof doctor`: does what torchroof needs work on this machine?"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from torchroof.cli import exit_codes
from torchroof.diagnosis import diagnose

if TYPE_CHECKING:
    from torchroof.measure.checks import Check

NAME = "doctor"
HELP = "try out what profiling needs here, expected beside found"
_MARKS = {"ok": ("ok", "green"), "doubt": ("doubt", "yellow"), "fault": ("FAULT", "bold red"), "left out": ("–", "dim")}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Try out what profiling needs here. The exit code is 1 when something is off by more than it may."
    )
    add = parser.add_argument
    add("--device", metavar="NAME", help="cpu, cuda, cuda:1, … (default: the best that torch can use here)")
    add("--format", choices=("table", "json"), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    # This process is ours alone: without this torch writes two lines per window to stderr.
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")
    found = []
    for check in diagnose(args.device):
        found.append(check)
        if args.format == "table":
            _print(check)
    faults = [check for check in found if check.outcome == "fault"]
    if args.format == "json":
        print(json.dumps([asdict(check) for check in found], indent=1, ensure_ascii=False))
    else:
        print(_outcome(found, len(faults)))
    return exit_codes.FAILED if faults else exit_codes.DONE


def _outcome(found: list[Check], faults: int) -> str:
    doubts = sum(check.outcome == "doubt" for check in found)
    if faults:
        return f"{faults} of {len(found)} checks failed."
    return f"Nothing is off, but {doubts} of {len(found)} checks leave a doubt." if doubts else "Nothing is off."


def _print(check: Check) -> None:
    """One line, and what to do where something is off; each appears as soon as it is known."""
    from rich.console import Console
    from rich.text import Text

    from torchroof.views.terminal import screen_width
    from torchroof.views.text import clean

    console = Console(file=sys.stdout, width=screen_width(), highlight=False, soft_wrap=True)
    mark, style = _MARKS[check.outcome]
    line = Text.assemble((f"{mark:6}", style), f"{check.name}: {clean(check.found)}")
    if check.expected:
        line.append(f"  (expected: {clean(check.expected)})", "dim")
    console.print(line)
    if check.advice and check.outcome != "ok":
        console.print(Text(f"      {clean(check.advice)}", "dim"))
