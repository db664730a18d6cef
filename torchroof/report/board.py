"""Everything that the page shows, as plain values: the page draws and sorts, and works nothing out.

`board` is what is shown at once, `details` what a selection opens. Both are functions of the report alone, so the
page's figures are the report's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from torchroof.device.roof import Ceiling
from torchroof.report.ceilings import judging
from torchroof.report.difference import beside, difference, divisor
from torchroof.report.explain import Part, parts_of
from torchroof.report.lenses import lines, row_groups
from torchroof.report.line import Line, line_of
from torchroof.report.model import (
    CAUSES,
    IDLE_CAUSES,
    PHASES,
    Copy,
    Device,
    Finding,
    Note,
    ReportData,
    Row,
    Step,
    Totals,
    Unattributed,
)
from torchroof.report.picture import roofs
from torchroof.report.summary import Headline, headline
from torchroof.report.tree import Node, phases_of, tree
from torchroof.work.plugins import installed

SCHEMA = "torchroof.page/1"


class Figures(msgspec.Struct, frozen=True, array_like=True):
    """The figures of a line, in this order: sums over the counted steps, and the rates that follow."""

    kernels: int
    kernel_ns: int
    busy_ns: int
    host_ns: int
    flops: int | None
    flops_known_ns: int
    bytes: int | None
    bytes_known_ns: int
    floor_ns: int | None
    floor_known_ns: int
    headroom_ns: int | None
    headroom_least_ns: int
    headroom_most_ns: int
    intensity: float | None
    achieved_flops_per_s: float | None
    achieved_bytes_per_s: float | None
    efficiency: float | None
    partial: bool
    side: str | None
    bound: str | None


FIGURES = Figures.__struct_fields__


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the page's table; as `Node`, with figures in place of lines."""

    label: str
    within: str | None = None
    path: str | None = None
    parent: int | None = None
    members: tuple[str, ...] = ()
    type: str | None = None
    calls: int | None = None
    aliases: tuple[str, ...] = ()
    inputs: str | None = None
    outputs: str | None = None
    parameters: str | None = None
    flagged: bool = False
    why: str | None = None
    total: Figures
    own: Figures | None = None
    phases: dict[str, Figures] = {}
    own_phases: dict[str, Figures] = {}


class RoofLine(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling as a line of the chart: ``value`` in FLOP/s (``compute``) or byte/s (``bandwidth``)."""

    kind: str
    name: str
    value: float
    origin: str


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling that judged a row, and how it compares to the other of its kind, in words that follow its value."""

    ceiling: Ceiling
    beside: str


class Board(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    figures: tuple[str, ...] = FIGURES
    """What the numbers of an entry are, in order."""
    headline: Headline
    judging: tuple[Judging, ...]
    """The ceilings that judged a row, those of most kernel time first."""
    environment: dict[str, Any]
    devices: tuple[Device, ...]
    steps: int
    divisor: int
    """Sums become means per step by it: steps x devices."""
    per_step: tuple[Step, ...]
    totals: Totals
    total: Figures
    """Of all lines together."""
    phases: tuple[str, ...]
    """Those that occur, in the order of a step."""
    all_phases: tuple[str, ...] = PHASES
    idle: tuple[str, ...] = IDLE_CAUSES
    causes: tuple[str, ...] = CAUSES
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]
    unattributed: tuple[Unattributed, ...]
    copies: tuple[Copy, ...]
    roofs: tuple[RoofLine, ...]
    tree: tuple[Entry, ...]
    """Layers, equal siblings folded."""
    folds: bool
    """Whether any were: then the details have a plain tree, too."""
    ops: tuple[Entry, ...]
    by: str
    """What to show first: ``layer``, or ``op`` where the trace knows no layers."""


class KernelColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The report's kernels, one by one; texts are positions in ``texts``."""

    texts: tuple[str | None, ...]
    name: tuple[int, ...]
    path: tuple[int, ...]
    phase: tuple[int, ...]
    op: tuple[int, ...]
    kernels: tuple[int, ...]
    kernel_ns: tuple[int, ...]


class Details(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    plain: tuple[Entry, ...] | None
    """The tree with a node for each layer; None where nothing was folded."""
    parts: dict[str, tuple[Part, ...]]
    """The accounting of an entry's own ops, by path, pattern, or label of what has no layer."""
    op_parts: dict[str, tuple[Part, ...]]
    """The accounting of an op over all layers."""
    kernels: KernelColumns
    placed: tuple[Entry, ...]
    """Kernels with work of their own: those that are the only ones of their ops. The rest cannot be placed."""


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows of one report, for the file that holds it."""

    page: Board
    details: Details


def whole(data: ReportData) -> Whole:
    return Whole(page=board(data), details=details(data))


def board(data: ReportData) -> Board:
    """What the page shows of a report."""
    folded = tree(data)
    total = lines(data, by="phase").total
    found = {row.phase for row in data.rows}
    return Board(
        headline=_headline(data, folded),
        judging=tuple(Judging(ceiling=judge.ceiling, beside=judge.beside) for judge in judging(data)),
        environment=data.environment,
        devices=data.devices,
        steps=data.steps,
        divisor=divisor(data),
        per_step=data.per_step,
        totals=data.totals,
        total=figures(total),
        phases=(*(p for p in PHASES if p in found), *sorted(found - set(PHASES))),
        notes=data.notes,
        findings=data.findings,
        unattributed=data.unattributed,
        copies=data.copies,
        roofs=_roofs(data),
        tree=tuple(map(_entry, folded)),
        folds=any(node.members for node in folded),
        ops=_ops(data),
        by="layer" if any(row.path is not None for row in data.rows) else "op",
    )


def _headline(data: ReportData, nodes: Sequence[Node]) -> Headline:
    """The headline, whose worst layer is one of the page's: the table folds layers elsewhere, the page by container."""
    if not any(row.path is not None for row in data.rows):
        return headline(data)
    return headline(data, candidates=[node.ran for node in nodes if node.ran is not None])


def details(data: ReportData) -> Details:
    """What a selection on the page opens."""
    registry = installed().registry
    own: dict[str, list[Row]] = {}
    by_op: dict[str, list[Row]] = {}
    for group in row_groups(data, "layer"):
        if group.rows:
            own[group.label if group.path is None else group.path] = group.rows
    folded = tree(data)
    for node in folded:
        if node.members and node.path is not None:
            own[node.path] = [row for member in node.members for row in own.get(member, ())]
    for row in data.rows:
        by_op.setdefault(row.op or "(no op)", []).append(row)
    return Details(
        plain=tuple(map(_entry, tree(data, fold=False))) if any(node.members for node in folded) else None,
        parts={key: parts_of(data, rows, registry) for key, rows in own.items() if rows},
        op_parts={op: parts_of(data, rows, registry, layer=False) for op, rows in by_op.items()},
        kernels=_kernels(data),
        placed=_placed(data),
    )


def figures(line: Line) -> Figures:
    return Figures(*(getattr(line, name) for name in FIGURES))


def _entry(node: Node) -> Entry:
    return Entry(
        label=node.label,
        within=node.within,
        path=node.path,
        parent=node.parent,
        members=node.members,
        type=node.type,
        calls=node.calls,
        aliases=node.aliases,
        inputs=node.inputs,
        outputs=node.outputs,
        parameters=node.parameters,
        flagged=node.flagged,
        why=node.why,
        total=figures(node.total),
        own=figures(node.own) if node.own else None,
        phases=_divided(node.phases),
        own_phases=_divided(node.own_phases),
    )


def _divided(phases: dict[str, Line]) -> dict[str, Figures]:
    return {phase: figures(line) for phase, line in phases.items()}


def _line_entry(label: str, rows: Sequence[Row]) -> Entry:
    line = line_of(label, rows)
    return Entry(label=label, calls=line.calls, total=figures(line), phases=_divided(phases_of(rows)))


def _ops(data: ReportData) -> tuple[Entry, ...]:
    """The lines of the table by op, with what has no row."""
    rows = {group.label: group.rows for group in row_groups(data, "op")}
    return tuple(
        Entry(
            label=line.label,
            calls=line.calls,
            flagged=line.flagged,
            why=line.why,
            total=figures(line),
            phases=_divided(phases_of(rows.get(line.label, []))),
        )
        for line in lines(data, by="op").lines
    )


def _roofs(data: ReportData) -> tuple[RoofLine, ...]:
    return tuple(
        RoofLine(kind=kind, name=name, value=value, origin=origin) for kind, value, origin, name in roofs(data)
    )


def _kernels(data: ReportData) -> KernelColumns:
    texts: dict[str | None, int] = {}

    def position(text: str | None) -> int:
        return texts.setdefault(text, len(texts))

    columns = [
        tuple(position(getattr(kernel, column)) for kernel in data.kernels)
        for column in ("name", "path", "phase", "op")
    ]
    return KernelColumns(
        name=columns[0],
        path=columns[1],
        phase=columns[2],
        op=columns[3],
        kernels=tuple(kernel.kernels for kernel in data.kernels),
        kernel_ns=tuple(kernel.kernel_ns for kernel in data.kernels),
        texts=tuple(texts),
    )


def _placed(data: ReportData) -> tuple[Entry, ...]:
    """Work belongs to ops. It is a kernel's where the op launched no other kernel in that layer and phase."""
    names: dict[tuple[str | None, str | None, str | None], set[str]] = {}
    for kernel in data.kernels:
        names.setdefault((kernel.path, kernel.phase, kernel.op), set()).add(kernel.name)
    rows: dict[str, list[Row]] = {}
    for row in data.rows:
        of_row = names.get((row.path, row.phase, row.op), set())
        if len(of_row) == 1 and row.op is not None:
            rows.setdefault(next(iter(of_row)), []).append(row)
    return tuple(_line_entry(name, found) for name, found in rows.items())


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """Of a node: everything within, and its own."""

    total: Figures | None
    own: Figures | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline laid beside a board: figures by position in its lists, None where the baseline has nothing."""

    schema: str = SCHEMA
    headline: Headline
    divisor: int
    totals: Totals
    total: Figures
    causes: dict[str, float]
    """Change of each cause in ns per step."""
    tree: tuple[Pair, ...]
    plain: tuple[Pair, ...] | None
    ops: tuple[Figures | None, ...]
    removed: tuple[Entry, ...]
    """Layers, and what has no layer, that only the baseline has."""
    removed_ops: tuple[Entry, ...]


def comparison(data: ReportData, baseline: ReportData) -> Comparison:
    """What the page shows of a baseline beside `board`."""
    folded, plain = tree(data), tree(data, fold=False)
    change = difference(data, baseline)
    ops = {entry.label: entry for entry in _ops(baseline)}
    mine = [entry.label for entry in _ops(data)]
    return Comparison(
        headline=_headline(baseline, tree(baseline)),
        divisor=divisor(baseline),
        totals=baseline.totals,
        total=figures(lines(baseline, by="phase").total),
        causes=change.causes,
        tree=_pairs(folded, baseline),
        plain=_pairs(plain, baseline) if any(node.members for node in folded) else None,
        ops=tuple(ops[label].total if label in ops else None for label in mine),
        removed=tuple(
            Entry(label=c.label, path=c.path, type=c.type, total=figures(c.before))
            for c in change.lines
            if c.status == "removed" and c.before
        ),
        removed_ops=tuple(entry for label, entry in ops.items() if label not in mine),
    )


def _pairs(nodes: Sequence[Node], baseline: ReportData) -> tuple[Pair, ...]:
    return tuple(
        Pair(figures(b.total) if b.total else None, figures(b.own) if b.own else None) for b in beside(nodes, baseline)
    )
