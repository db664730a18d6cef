"""`torchroof demo`: trains a small network for a few steps and prints its table."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from torchroof.cli import exit_codes
from torchroof.errors import CaptureError, OptionError
from torchroof.profiling import profile, require_torch, schedule
from torchroof.workloads import NAMES

if TYPE_CHECKING:
    from torchroof.reports import Report

NAME = "demo"
HELP = "train a small network here and print its table"
_DEVICES = ("cpu", "cuda", "xpu")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", choices=NAMES, default=NAMES[0], metavar="NAME", help=f"{', '.join(NAMES)} (default: {NAMES[0]})")
    add("--steps", type=_count, metavar="N", help="steps that count, after one to warm up (default: 3)")
    add("--batch-size", type=_count, metavar="N", help="samples in a batch (default: the network's own)")
    add("--device", choices=_DEVICES, help="default: the best that torch can use here; cuda is ROCm's, too")
    add("--logdir", metavar="DIR", help="also write trace, report and TensorBoard scalars there")
    add("--format", choices=("table", "json"), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    # This process is ours alone: without this torch writes two lines per window to stderr.
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")
    require_torch()
    prof = _train(args)
    report = prof.report
    if args.format == "json":
        print(report.to_json())
    else:
        _print_table(report)
    notes = [*prof.notes] if args.format == "table" else [*prof.notes, *(n.text for n in report.data.notes)]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return exit_codes.DONE


def _train(args: argparse.Namespace) -> profile:
    from torchroof.workloads.networks import build, sizes

    chosen = sizes(args.model, batch_size=args.batch_size, steps=args.steps)
    device = _device(args.device)
    what = f"training {args.model} on {device}: {chosen.steps} steps that count, after two to warm up"
    print(f"{what}; the first run on a machine measures its limits, too", file=sys.stderr)
    try:
        workload = build(args.model, chosen, device)
        workload.step()
    except RuntimeError as why:
        first = (str(why).strip().splitlines() or ["no reason given"])[0]
        raise CaptureError(f"{args.model} cannot be trained here: {first}; try a smaller --batch-size") from None
    plan = schedule(warmup=1, active=chosen.steps)
    with profile(workload.model, schedule=plan, logdir=args.logdir) as prof:
        for _ in range(1 + chosen.steps):
            workload.step()
            prof.step()
    return prof


def _device(wanted: str | None) -> str:
    from torchroof.capture.torch_private import device_type

    best = device_type()
    if wanted in (None, "cpu", best):
        return wanted or best
    raise OptionError(f"torch can use no {wanted} device here; leave --device out to use {best}")


def _print_table(report: Report) -> None:
    from torchroof.views.terminal import show

    show(report.page())


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number over 0")
    return int(text)
