"""`torchroof devices`: which ceilings are known, from where, and how sure they are."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from torchroof.cli.console import show
from torchroof.device.cache import measured_here
from torchroof.device.catalog import entries, find
from torchroof.device.ceilings_file import ceilings_to_json
from torchroof.device.entry import PRECISIONS, Entry
from torchroof.device.roof import Ceiling, Roof
from torchroof.units import age, digits, duration, quantity

if TYPE_CHECKING:
    from rich.table import Table

NAME = "devices"
HELP = "show what ceilings are known, from where, how sure"

_STYLES = {"high": "green", "medium": "yellow", "low": "red"}
_UNKNOWN = "–"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show the devices whose ceilings are known; with a NAME, all ceilings of that one."
    parser.add_argument("device", metavar="NAME", nargs="*", help="a device, for example H100 SXM")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(args: argparse.Namespace) -> int:
    chosen = find(" ".join(args.device)) if args.device else None
    if args.format == "json":
        data = as_json(chosen) if chosen else [as_json(e) for e in entries()]
        print(json.dumps(data, indent=2, ensure_ascii=False))
    elif chosen:
        _print_one(chosen)
    else:
        _print_all(entries())
    return 0


def as_json(entry: Entry) -> dict[str, Any]:
    """A device and its ceilings, in base units; ceilings as in a report."""
    return {
        "key": entry.key,
        "name": entry.name,
        "patterns": list(entry.patterns),
        "vendor": entry.vendor,
        "architecture": entry.architecture,
        "multiprocessors": entry.multiprocessors,
        "boost_hz": entry.boost_hz,
        "memory_bytes": entry.memory_bytes,
        "l2_bytes": entry.l2_bytes,
        "sparsity": entry.sparsity,
        "caution": entry.caution,
        "source": entry.source,
        "confidence": entry.confidence,
        "ceilings": ceilings_to_json(entry.roof().ceilings),
    }


# -- all of them --------------------------------------------------------------------------------------------


def _print_all(known: Sequence[Entry]) -> None:
    show(
        "Dense peaks in TFLOP/s (int8: TOP/s), of matrix units where not vector.",
        _overview(known),
        f"{len(known)} devices; 'torchroof devices NAME' names the sources.",
        *_measured_here(time.time()),
    )


def _measured_here(now: float) -> Iterator[str]:
    """A line per device of this machine that was measured, the newest measurement first."""
    kept = measured_here()
    if not kept:
        yield "Nothing was measured on this machine yet: 'torchroof calibrate'."
    for one in kept:
        when = datetime.fromisoformat(one.measured_at).timestamp() if one.measured_at else now
        doubt = "" if one.quiet else " beside other work"
        yield f"Measured {age(max(0.0, now - when))}{doubt}: {one.name}"


def _overview(known: Sequence[Entry]) -> Table:
    table = _table()
    table.add_column("device", no_wrap=True)
    table.add_column("GiB", justify="right", no_wrap=True)
    table.add_column("GB/s", justify="right", no_wrap=True)
    for heading in ("fp32\nvector", "tf32", "fp16", "fp8", "int8"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("sure", no_wrap=True)
    maker = None
    for entry in known:
        if entry.vendor != maker:
            table.add_section()
            table.add_row(f"[bold]{entry.vendor}[/]")
            maker = entry.vendor
        matrix, vector = entry.matrix_flops_per_s, entry.vector_flops_per_s
        half = matrix.get("float16") or matrix.get("bfloat16") or vector.get("float16")
        table.add_row(
            entry.name,
            _UNKNOWN if entry.memory_bytes is None else f"{entry.memory_bytes / 2**30:g}",
            f"{entry.memory_bandwidth_bytes_per_s / 1e9:.0f}",
            *map(_tera, (vector.get("float32"), matrix.get("tf32"), half)),
            *map(_tera, (matrix.get("float8"), matrix.get("int8"))),
            f"[{_STYLES[entry.confidence]}]{entry.confidence}[/]",
        )
    return table


def _tera(value: float | None) -> str:
    return _UNKNOWN if value is None else digits(value / 1e12)


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")


# -- one of them --------------------------------------------------------------------------------------------


def _print_one(entry: Entry) -> None:
    from rich.text import Text

    sure = entry.confidence
    told = [
        Text.assemble((f"{label}: ", "bold"), text)
        for label, text in (("caution", entry.caution), ("source", entry.source))
        if text
    ]
    show(
        Text.assemble((entry.name, "bold"), f"  {entry.vendor} {entry.architecture}"),
        Text(_figures(entry)),
        _ceilings(entry.roof()),
        Text("ridge: the FLOPs per byte above which a kernel is judged by that ceiling.", "dim"),
        *told,
        Text.assemble(("confidence: ", "bold"), (sure, _STYLES[sure]), ". ", _sparsity(entry)),
    )


def _figures(entry: Entry) -> str:
    figures = [
        entry.multiprocessors is not None and f"{entry.multiprocessors} multiprocessors",
        entry.boost_hz is not None and f"boost {quantity(entry.boost_hz, 'Hz', 4)}",
        entry.memory_bytes is not None and f"{entry.memory_bytes / 2**30:g} GiB of memory",
        entry.l2_bytes is not None and f"{entry.l2_bytes / 2**20:g} MiB of L2",
    ]
    return ", ".join(f for f in figures if f)


def _sparsity(entry: Entry) -> str:
    if entry.sparsity == 1:
        return "All rates are dense."
    return f"All rates are dense; 2:4 sparsity multiplies what supports it by {entry.sparsity:g}."


def _ceilings(roof: Roof) -> Table:
    table = _table()
    for heading in ("ceiling", "on"):
        table.add_column(heading, no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("ridge", justify="right", no_wrap=True)
    table.add_column("from", overflow="fold")
    for ceiling in sorted(roof.ceilings, key=_order):
        table.add_row(*_ceiling_row(ceiling, roof))
    return table


def _order(ceiling: Ceiling) -> tuple[int, int]:
    kinds = ("compute", "bandwidth", "launch", "host")
    precision = PRECISIONS.index(ceiling.precision) if ceiling.precision in PRECISIONS else 0
    return kinds.index(ceiling.kind), precision


def _ceiling_row(ceiling: Ceiling, roof: Roof) -> tuple[str, str, str, str, str]:
    if ceiling.kind == "compute":
        operations = (ceiling.precision or "").startswith("int")
        value = quantity(ceiling.value, "OP/s" if operations else "FLOP/s", 4)
        memory = roof.bandwidth()
        ridge = digits(ceiling.value / memory.value) if memory else _UNKNOWN
        return ceiling.precision or "", ceiling.pipe or "", value, ridge, ceiling.origin
    if ceiling.kind == "bandwidth":
        on = " ".join(filter(None, (ceiling.level, ceiling.pattern)))
        return "bandwidth", on, quantity(ceiling.value, "B/s", 4), "", ceiling.origin
    value = duration(ceiling.value * 1e9)
    return f"{ceiling.kind} time", "", value, "", f"{ceiling.origin} ({ceiling.source})"
