"""`torchroof explain`: the accounting of one op, step by step."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from torchroof.cli.console import show
from torchroof.device.roof import Roof
from torchroof.errors import OperandError
from torchroof.roofline.place import Placement, pipe_of, place, ridge
from torchroof.tensors import DType, OpCall, dtype_named, parse_shape
from torchroof.units import UNKNOWN, digits, duration, quantity
from torchroof.work.algebra import Work
from torchroof.work.calls import SPELLINGS, Window, call_of
from torchroof.work.registry import MATRIX_FAMILIES

NAME = "explain"
HELP = "work out the FLOPs, bytes and least time of one op"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Work out the FLOPs, bytes and least time of one op from its shapes."
    parser.epilog = "example: torchroof explain mm 512x256 256x512 --dtype float32 --device 'RTX A6000'"
    parser.add_argument("op", metavar="OP", help=", ".join(SPELLINGS))
    parser.add_argument("shapes", metavar="SHAPE", nargs="*", help="sizes joined by x, for example 512x256")
    parser.add_argument(
        "--dtype", default="float32", help="element type of every operand and of the result (%(default)s)"
    )
    parser.add_argument("--device", metavar="NAME", help="judge it by this device (see: torchroof devices)")
    for name, default in (("stride", "1"), ("padding", "0"), ("dilation", "1")):
        parser.add_argument(f"--{name}", default=default, help="of conv2d: one number, or HEIGHTxWIDTH")
    parser.add_argument("--groups", default="1", help="of conv2d")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(args: argparse.Namespace) -> int:
    account = account_for(args)
    if args.format == "json":
        print(json.dumps(account.as_json(), indent=2))
    else:
        _print(account)
    return 0


@dataclass(frozen=True, slots=True)
class Account:
    """One op's work and, where a device was named, its placement."""

    op: str
    call: OpCall
    dtype: DType
    family: str | None
    work: Work
    words: str
    roof: Roof | None
    placement: Placement

    @property
    def macs(self) -> int | None:
        """Multiply-adds of a product or convolution; None for other ops."""
        if self.family not in MATRIX_FAMILIES or self.work.flops is None or self.dtype.kind == "complex":
            return None
        return self.work.flops // 2

    @property
    def ridge_point(self) -> float | None:
        compute, bandwidth = self.placement.compute, self.placement.bandwidth
        return ridge(compute, bandwidth) if compute and bandwidth else None

    def as_json(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "dtype": self.dtype.name,
            "device": self.roof.name if self.roof else None,
            "macs": self.macs,
            "flops": self.work.flops,
            "bytes": self.work.bytes_moved,
            "bytes_read": self.work.bytes_read,
            "bytes_written": self.work.bytes_written,
            "intensity": self.work.intensity,
            "ridge_point": self.ridge_point,
            "memory_ns": self.placement.memory_ns,
            "compute_ns": self.placement.compute_ns,
            "floor_ns": self.placement.floor_ns,
            "side": self.placement.side,
        }


def account_for(args: argparse.Namespace) -> Account:
    """The accounting that the arguments ask for. Raises OperandError, UnknownOp and UnknownDevice."""
    from torchroof.device.catalog import find
    from torchroof.work.standard import STANDARD

    dtype = dtype_named(args.dtype)
    if dtype is None:
        raise OperandError(f"{args.dtype!r} is no element type; write for example float32, bfloat16 or int8")
    shapes = [parse_shape(text) for text in args.shapes]
    call = call_of(args.op, shapes, dtype, _window(args))
    priced = STANDARD.price(call)
    if priced.work.flops is None and priced.work.bytes_moved is None:
        raise OperandError(f"{args.op} {' '.join(args.shapes)} {dtype}: {priced.reason}")
    roof = find(args.device).roof() if args.device is not None else None
    placement = place(priced.work, priced.family, dtype.name, roof)
    words = STANDARD.models[call.name].words
    return Account(args.op, call, dtype, priced.family, priced.work, words, roof, placement)


def _window(args: argparse.Namespace) -> Window:
    groups = _pair(args.groups, "groups", 1)
    if groups[0] != groups[1]:
        raise OperandError(f"--groups {args.groups} is not one number")
    return Window(
        stride=_pair(args.stride, "stride", 1),
        padding=_pair(args.padding, "padding", 0),
        dilation=_pair(args.dilation, "dilation", 1),
        groups=groups[0],
    )


def _pair(text: str, name: str, least: int) -> tuple[int, int]:
    try:
        numbers = [int(n) for n in text.lower().replace(",", "x").split("x")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or min(numbers) < least:
        raise OperandError(f"--{name} {text} is not one or two whole numbers from {least} on")
    return numbers[0], numbers[-1]


def _print(account: Account) -> None:
    from rich.table import Table
    from rich.text import Text

    operands = " ".join("x".join(map(str, t.shape)) or "scalar" for t in account.call.tensors())
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    for label, value, how in (*_work_steps(account), *_roof_steps(account)):
        grid.add_row(label, value, Text(how))
    show(
        Text.assemble((account.op, "bold"), f"  {account.call.name}  {operands}  {account.dtype}"),
        grid,
        Text(_conclusion(account), "bold"),
    )


Step = tuple[str, str, str]


def _work_steps(account: Account) -> list[Step]:
    work = account.work
    steps = []
    if account.macs is not None:
        steps.append(("multiply-adds", _whole(account.macs), "MACs"))
    multiply_add = "2 per multiply-add" if account.macs is not None else account.words
    steps += [
        ("FLOPs", _whole(work.flops), multiply_add),
        ("bytes read", _whole(work.bytes_read), "each distinct element once"),
        ("bytes written", _whole(work.bytes_written), "the result, once"),
        ("bytes", _whole(work.bytes_moved), quantity(work.bytes_moved, "B") + " read and written"),
        ("intensity", _ratio(work.intensity), "FLOPs per byte"),
    ]
    return steps


def _roof_steps(account: Account) -> list[Step]:
    if account.roof is None:
        return []
    placed = account.placement
    compute, bandwidth = placed.compute, placed.bandwidth
    steps = [("device", account.roof.name, f"{pipe_of(account.family)} work in {account.dtype}")]
    if compute:
        rate = f"{quantity(compute.value, compute.unit)}"
        steps.append(("compute", rate, f"{compute.precision} {compute.pipe}, {_origin(compute)}"))
    if bandwidth:
        steps.append(("bandwidth", quantity(bandwidth.value, "B/s"), f"{bandwidth.level}, {_origin(bandwidth)}"))
    steps += [
        ("ridge point", _ratio(account.ridge_point, 3), "FLOPs per byte: compute ÷ bandwidth"),
        ("moving data", duration(placed.memory_ns), "bytes ÷ bandwidth"),
        ("computing", duration(placed.compute_ns), "FLOPs ÷ compute"),
        ("floor", duration(placed.floor_ns), "the larger of the two"),
    ]
    return steps


def _origin(ceiling: Any) -> str:
    sure = f", confidence {ceiling.confidence}" if ceiling.confidence else ""
    return f"{ceiling.origin}{sure}"


def _conclusion(account: Account) -> str:
    if account.roof is None:
        return "Name a device with --device to see how long this takes at least."
    placed = account.placement
    if placed.side is None:
        return f"No floor: {placed.reason}."
    said = f"{placed.side.capitalize()} side: at least {duration(placed.floor_ns)} on {account.roof.name}"
    return f"{said}." if placed.reason is None else f"{said} ({placed.reason})."


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _ratio(value: float | None, significant: int = 4) -> str:
    return UNKNOWN if value is None else digits(value, significant)
