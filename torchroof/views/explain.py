"""The accounting of one layer as a page: each phase's ops with their work, their limit and their kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from torchroof import units
from torchroof.report.ceilings import ceiling_text
from torchroof.report.explain import Account, Part
from torchroof.report.line import Line
from torchroof.report.model import Kernel, Tensor
from torchroof.views import palette, table
from torchroof.views.text import clean

_FIELD = 12
_TAXES = {"casts": "to another element type", "layout": "into another order in memory"}
"""Cells of the names at the left."""
_MOST_KERNELS = 4
"""Kernels named for one op; the rest are counted."""
_MOST_MEMBERS = 6
_MORE = 1.01
_ROUNDING = 0.01
"""An upper bound of bytes is told where it is this much over the lower one."""
_FOUND_BY = {
    "no layer scope": "nothing: no layer's scope is around its launch",
    "layer scope": "the layer's scope around its launch",
    "module event": "the module's event around its launch",
    "fwdbwd flow": "the trace's arrow from the forward op",
    "sequence number": "autograd's sequence number of the forward op",
    "sequence interval": "autograd's sequence numbers during the layer's call",
    "parameter's gradient": "the parameter whose gradient it is",
    "parameters stepped": "the parameters that it steps",
}
"""Where the link to the layer comes from, in words."""


@dataclass(frozen=True)
class Explanation:
    """An account as rich draws it, at the width of the console that prints it. ``now`` as for a headline."""

    account: Account
    now: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(table.NARROWEST, min(options.max_width, table.WIDEST))
        yield from self._views(width, options.ascii_only)

    def _views(self, width: int, ascii_only: bool) -> Iterator[RenderableType]:
        account = self.account
        yield (
            Text()
            .append(clean(account.path or "(root)", ascii_only), "bold")
            .append(clean(_identity(account), ascii_only))
        )
        yield _grid(_facts(account), ascii_only)
        for phase, parts in groupby(account.parts, key=lambda part: part.phase):
            yield Text("")
            yield Text(clean(phase, ascii_only), palette.HEADING)
            yield from self._phase(phase, list(parts), ascii_only)
        if not account.parts and account.children is None:
            yield Text("")
            yield Text("No kernel of it ran in the counted steps.")
        if account.children is not None:
            yield Text("")
            yield from table.draw(account.children, width, ascii_only)

    def _phase(self, phase: str, parts: list[Part], ascii_only: bool) -> Iterator[RenderableType]:
        told: set[str | None] = set()
        kinds = Counter(part.op for part in parts)
        for part in parts:
            heading = f"  {part.op or '(no op)'}"
            more = f"  {part.precision or ''}  {_calls(part.calls, self.account.steps, part.shared)}"
            yield Text().append(clean(heading, ascii_only), "bold").append(clean(more, ascii_only))
            kernels = [k for k in self.account.kernels if k.phase == phase and k.op == part.op and part.op not in told]
            told.add(part.op)
            whose = ", of all its types together" if kinds[part.op] > 1 else ""
            yield _grid(_steps(part, kernels, self.account.steps, self.now, whose), ascii_only, indent=4)


def _grid(rows: Iterable[tuple[str, str, str]], ascii_only: bool, indent: int = 0) -> Table:
    """Rows of a name, a figure and how it comes about; a row without a figure has words over both columns."""
    grid = Table.grid(padding=0)
    grid.add_column(style=palette.QUIET, width=_FIELD + indent, no_wrap=True)
    grid.add_column()
    for name, figure, how in rows:
        text = Text(clean(figure, ascii_only))
        if how:
            text.append(clean(f"{'  ' if figure else ''}{how}", ascii_only), palette.QUIET if figure else "")
        grid.add_row(Text(" " * indent + clean(name, ascii_only)), text)
    return grid


def _identity(account: Account) -> str:
    kind = f"  {account.type}" if account.type else ""
    count = f"  ×{len(account.members)}" if len(account.members) > 1 else ""
    return f"{count}{kind}"


def _facts(account: Account) -> Iterator[tuple[str, str, str]]:
    if len(account.members) > 1:
        more = len(account.members) - _MOST_MEMBERS
        yield "stands for", ", ".join(account.members[:_MOST_MEMBERS]) + (f" and {more} more" if more > 0 else ""), ""
    if account.aliases:
        yield "also", ", ".join(account.aliases), ""
    if account.calls is not None:
        yield "calls", f"{units.digits(account.calls / account.steps)} per step", ""
    for name, tensors in (("in", account.inputs), ("out", account.outputs), ("parameters", account.parameters)):
        if tensors:
            yield name, ", ".join(map(_tensor, tensors)), ""
    yield "time", _time(account.total, account), ""
    if len(account.kernel_ns_per_step) > 1:
        low, high = units.span(min(account.kernel_ns_per_step), max(account.kernel_ns_per_step))
        yield "varies", f"{low} to {high} over {len(account.kernel_ns_per_step)} steps", ""
    if account.children is not None and account.members:
        yield "its own ops", _time(account.own, account), ""
    for name, ns in (("casts", account.total.cast_ns), ("layout", account.total.layout_ns)):
        if ns:
            yield name, f"{_per_step(ns, account.steps)} per step", _TAXES[name]
    if account.total.headroom_ns is not None:
        least = "at least " if account.total.headroom_is_least else ""
        won = f"{least}{_per_step(account.total.headroom_least_ns, account.steps)} per step"
        yield "headroom", won, _efficiency(account.total)
    if account.why:
        yield ("flagged" if account.flagged else "in short"), account.why, ""
    for copy in account.copies:
        size = f", {units.quantity(copy.bytes, 'B')}" if copy.bytes is not None else ""
        yield "copies", f"{_per_step(copy.ns, account.steps)} per step", f"{copy.kind}, {copy.phase}{size}"


def _time(line: Line, account: Account) -> str:
    share = units.percent(line.kernel_ns / account.step_ns if account.step_ns else None)
    host = f", host {_per_step(line.host_ns, account.steps)}" if line.host_ns else ""
    return f"{_per_step(line.kernel_ns, account.steps)} per step ({share} of it){host}"


def _efficiency(line: Line) -> str:
    return "" if line.efficiency is None else f"{units.percent(line.efficiency)} of what the roof allows"


def _steps(part: Part, kernels: list[Kernel], steps: int, now: float, whose: str) -> Iterator[tuple[str, str, str]]:
    """The accounting of one op, in the order in which it is worked out; figures are per step. ``whose`` says of
    which entries the kernels are, where not of this one alone: an op's are not told apart by element type."""

    def per_step(value: int | None, unit: str = "") -> str:
        return units.UNKNOWN if value is None else units.quantity(value / steps, unit)

    yield "FLOPs", per_step(part.flops), part.formula or "no work model"
    if part.flops_full is not None and part.flops_full != part.flops:
        yield "unmasked", per_step(part.flops_full), "FLOPs with what the mask leaves out"
    read, written = per_step(part.bytes_read, "B"), per_step(part.bytes_written, "B")
    least = (part.bytes_read or 0) + (part.bytes_written or 0)
    more = part.bytes_upper is not None and part.bytes_upper > _MORE * least
    upper = f" at least, at most {per_step(part.bytes_upper, 'B')} in all" if more else ""
    yield "bytes", "", f"{read} read and {written} written{upper}"
    for reason in part.unknown:
        yield "unknown", "", reason
    for ceiling in part.ceilings:
        yield "ceiling", "", f"{ceiling_text(ceiling, now)}; {ceiling.source}"
    for why in part.judged:
        yield "judged so", "", why
    if part.floor_ns is not None:
        yield (
            "floor",
            _per_step(part.floor_ns, steps) if part.floor_ns else "<1 ns",
            _floor_words(part),
        )
    rates = [units.quantity(part.achieved_flops_per_s, "FLOP/s")] if part.achieved_flops_per_s else []
    rates += [units.quantity(part.achieved_bytes_per_s, "B/s")] if part.achieved_bytes_per_s else []
    yield "took", _per_step(part.kernel_ns, steps), " and ".join(rates)
    if part.host_ns:
        yield "host", _per_step(part.host_ns, steps), f"nothing ran while it was being launched{_of_host_floor(part)}"
    if part.headroom_ns is not None:
        share = "" if part.efficiency is None else f"efficiency {_share(part)}: floor ÷ time"
        yield "headroom", _per_step(part.headroom_ns, steps), share
    yield "bound", part.bound or units.UNKNOWN, _why(part)
    if [kernel.name for kernel in kernels] != [part.op]:
        yield from _kernels(kernels, steps, whose)
    yield "found by", "", ", ".join(_FOUND_BY.get(source, source) for source in part.attribution)


def _floor_words(part: Part) -> str:
    """That the floor is that of the ceiling named, or that calls were judged by several, of which that took most."""
    if not part.ceilings:
        return ""
    ceiling = part.ceilings[0]
    moved = (part.bytes_read or 0) + (part.bytes_written or 0)
    alone_ns = ((part.flops or 0) if ceiling.kind == "compute" else moved) / ceiling.value * 1e9
    if abs(alone_ns - (part.floor_ns or 0)) <= max(_ROUNDING * alone_ns, part.kernels):
        return "the least time, by that ceiling"
    return "the least time, call by call: other calls were judged by other ceilings"


def _of_host_floor(part: Part) -> str:
    if part.host_floor_ns is None or not part.calls or part.shared:
        return ""
    times = units.digits(part.host_ns / part.calls / part.host_floor_ns, 2)
    return f": {units.duration(part.host_ns / part.calls)} a call, {times} x the least that an op takes the host"


def _share(part: Part) -> str:
    return units.percent(part.efficiency or units.LEAST)


def _why(part: Part) -> str:
    if part.bound == "latency" and part.because and part.host_ns <= part.busy_ns:
        return part.because
    return part.verdict + (f": {part.because}" if part.because else "")


def _kernels(kernels: list[Kernel], steps: int, whose: str) -> Iterator[tuple[str, str, str]]:
    for kernel in kernels[:_MOST_KERNELS]:
        times = units.digits(kernel.kernels / steps)
        yield "kernel", f"{_per_step(kernel.kernel_ns, steps)}", f"{times} × {kernel.name}{whose}"
        if kernel.blocks is not None:
            yield "", "", f"{units.digits(kernel.blocks / kernel.kernels)} blocks a launch{_waves(kernel)}"
    if rest := kernels[_MOST_KERNELS:]:
        ns = sum(kernel.kernel_ns for kernel in rest)
        yield "", _per_step(ns, steps), f"{len(rest)} more names"


def _waves(kernel: Kernel) -> str:
    """How often the device takes in as many blocks as it holds, and what part of its places stays empty."""
    if kernel.waves is None or kernel.wave_efficiency is None:
        return ""
    fit = kernel.resident_blocks
    holds = f", {fit} at a time on a multiprocessor" if fit is not None else ""
    empty = units.percent(1 - kernel.wave_efficiency)
    return f"{holds}: {units.digits(kernel.waves, 2)} waves, {empty} of their places empty"


def _calls(calls: int, steps: int, shared: bool = False) -> str:
    """A call that several layers share is counted in one of them, and has a part of its time and work in each."""
    if shared:
        return "its part of calls that it shares with other layers"
    return f"{units.digits(calls / steps)} call{'' if calls == steps else 's'} per step"


def _per_step(ns: int, steps: int) -> str:
    return units.duration(ns / steps)


def _tensor(tensor: Tensor) -> str:
    return f"{'×'.join(map(str, tensor.shape)) or 'scalar'} {tensor.dtype or units.UNKNOWN}"
