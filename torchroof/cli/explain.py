"""`torchroof explain`: the accounting of one op, step by step, or the list of what can be accounted for."""

from __future__ import annotations

import argparse
import json
from typing import Any

from torchroof.cli.account import Account, FromHost, conclusion, steps_of
from torchroof.cli.console import show
from torchroof.cli.formulas import CONVENTIONS, Listed, listed
from torchroof.device.roof import Roof
from torchroof.errors import OperandError, OptionError, UnknownOp
from torchroof.roofline.place import place
from torchroof.tensors import DType, OpCall, TensorSpec, dtype_named, parse_shape
from torchroof.work.calls import SPELLINGS, Window, call_of
from torchroof.work.plugins import installed
from torchroof.work.registry import Registry
from torchroof.work.tiling import Gemm, gemm_of, tiled

NAME = "explain"
HELP = "work out the FLOPs, bytes and least time of one op"

LINK_BYTES_PER_S = 31.5e9
"""PCIe 4.0 with 16 lanes: 16 GT/s x 16 x 128/130 ÷ 8 bits."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Work out the FLOPs, bytes and least time of one op from its shapes."
    parser.epilog = "example: torchroof explain mm 512x256 256x512 --dtype float32 --device 'RTX A6000'"
    add = parser.add_argument
    add("op", metavar="OP", nargs="?", help=f"{', '.join(SPELLINGS)}, or any op of --list that takes tensors only")
    add("shapes", metavar="SHAPE", nargs="*", help="sizes joined by x, for example 512x256")
    add(
        "--list",
        nargs="?",
        const="",
        metavar="FAMILY",
        help="what is modelled: all, a family, or ops with this in the name",
    )
    add("--dtype", default="float32", help="element type of every operand and of the result (%(default)s)")
    add("--device", metavar="NAME", help="judge it by this device (see: torchroof devices)")
    for name, default in (("stride", "1"), ("padding", "0"), ("dilation", "1")):
        add(f"--{name}", default=default, help="of conv2d: one number, or HEIGHTxWIDTH")
    add("--groups", default="1", help="of conv2d")
    add("--causal", action="store_true", help="of attention: a query sees no key after its own place")
    add("--tile", type=int, metavar="N", help="of a product: how often its factors are read in tiles of N x N")
    add(
        "--from-host",
        nargs="?",
        type=float,
        const=LINK_BYTES_PER_S / 1e9,
        metavar="GB/S",
        help="add the copies from and to the host, over a link of so many GB/s (31.5: PCIe 4.0 x16), and the launch",
    )
    add("--format", choices=("table", "json"), default="table")


def run(args: argparse.Namespace) -> int:
    if args.list is not None:
        return _list(args)
    if args.op is None:
        raise OptionError("name an op and its shapes, or ask for --list")
    account = account_for(args)
    if args.format == "json":
        print(json.dumps(account.as_json(), indent=2))
    else:
        _print(account)
    return 0


def account_for(args: argparse.Namespace) -> Account:
    """The accounting that the arguments ask for. Raises OperandError, UnknownOp and UnknownDevice."""
    from torchroof.device.catalog import find

    dtype = dtype_named(args.dtype)
    if dtype is None:
        raise OperandError(f"{args.dtype!r} is no element type; write for example float32, bfloat16 or int8")
    registry = installed().registry
    shapes = [parse_shape(text) for text in args.shapes]
    call = _call(args, shapes, dtype, registry)
    priced, model = registry.price(call), registry.model(call.name)
    if model is None or (priced.work.flops is None and priced.work.bytes_moved is None):
        raise OperandError(f"{args.op} {' '.join(args.shapes)} {dtype}: {priced.reason}")
    roof = find(args.device).roof() if args.device is not None else None
    gemm = _gemm(call, priced.work.bytes_written, dtype)
    return Account(
        op=args.op,
        call=call,
        dtype=dtype,
        family=priced.family,
        work=priced.work,
        words=model.words,
        source=model.source,
        roof=roof,
        placement=place(priced.work, priced.family, dtype.name, roof),
        gemm=gemm,
        tilings=_tilings(args, gemm, dtype),
        host=_from_host(args, priced.work.bytes_moved, roof),
    )


def _call(args: argparse.Namespace, shapes: list[tuple[int, ...]], dtype: DType, registry: Registry) -> OpCall:
    """A short name's call, or that of any op with a model, with these tensors as its operands."""
    short = args.op.removeprefix("aten::")
    if short in SPELLINGS:
        return call_of(args.op, shapes, dtype, _window(args))
    full = args.op if "::" in args.op else f"aten::{args.op}"
    if registry.model(full) is None:
        raise UnknownOp(
            f"no op named {args.op!r} has a work model; `torchroof explain --list` shows those that have, "
            f"and the short names are {', '.join(SPELLINGS)}"
        )
    return OpCall(full, tuple(TensorSpec(shape, dtype) for shape in shapes))


def _gemm(call: OpCall, written: int | None, dtype: DType) -> Gemm | None:
    count = None if written is None else written * 8 // dtype.bits
    return gemm_of(call, None if count is None else TensorSpec((count,), dtype))


def _tilings(args: argparse.Namespace, gemm: Gemm | None, dtype: DType) -> tuple[Any, ...]:
    if args.tile is None:
        return ()
    if gemm is None:
        raise OptionError(f"--tile is for products: {args.op} is none")
    sides = (1,) if args.tile == 1 else (1, args.tile)
    return tuple(tiled(gemm, side, dtype.bits / 8) for side in sides)


def _from_host(args: argparse.Namespace, moved: int | None, roof: Roof | None) -> FromHost | None:
    if args.from_host is None:
        return None
    if not 0 < args.from_host < 1e6:
        raise OptionError(f"--from-host {args.from_host:g} is no link; give its GB/s, for example 31.5")
    if moved is None:
        raise OptionError(f"--from-host needs the bytes of {args.op}, which are unknown")
    launch = roof.launch() if roof is not None else None
    return FromHost(moved, args.from_host * 1e9, launch.value * 1e9 if launch else None)


def _window(args: argparse.Namespace) -> Window:
    groups = _pair(args.groups, "groups", 1)
    if groups[0] != groups[1]:
        raise OperandError(f"--groups {args.groups} is not one number")
    return Window(
        stride=_pair(args.stride, "stride", 1),
        padding=_pair(args.padding, "padding", 0),
        dilation=_pair(args.dilation, "dilation", 1),
        groups=groups[0],
        causal=args.causal,
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
    for label, value, how in steps_of(account):
        grid.add_row(label, value, Text(how))
    show(
        Text.assemble((account.op, "bold"), f"  {account.call.name}  {operands}  {account.dtype}"),
        grid,
        Text(_sentences(account.words, account.source), "dim"),
        Text(conclusion(account), "bold"),
    )


def _list(args: argparse.Namespace) -> int:
    if args.op is not None:
        raise OptionError(f"--list takes no shapes; for one op write: torchroof explain {args.op} SHAPES")
    registry = installed().registry
    found = listed(registry, args.list or None)
    if not found:
        families = ", ".join(sorted({model.family for model in registry.models.values()}))
        raise UnknownOp(f"nothing that is modelled is called {args.list!r}; families are {families}")
    if args.format == "json":
        print(json.dumps([_as_json(group) for group in found], indent=2))
    else:
        _print_list(found)
    return 0


def _as_json(group: Listed) -> dict[str, Any]:
    return {"family": group.family, "ops": list(group.ops), "formula": group.words, "source": group.source}


def _print_list(found: tuple[Listed, ...]) -> None:
    from rich.text import Text

    lines: list[Text] = [Text(line, "dim") for line in CONVENTIONS]
    family = None
    for group in found:
        if group.family != family:
            family = group.family
            lines.append(Text(f"\n{family}", "bold"))
        lines.append(Text("\n" + ", ".join(group.ops)))
        lines.append(Text(f"  {_sentences(group.words, group.source)}", "dim"))
    show(*lines)


def _sentences(words: str, source: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}. Source: {source}."
