"""The layers of a report as a tree: containers hold what is in them, equal siblings are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from torchroof.report.flags import flag_lines
from torchroof.report.fold import folds
from torchroof.report.lenses import Group, common, layer_label, time_per_call, without_rows
from torchroof.report.line import Line, line_of
from torchroof.report.model import PHASES, Layer, ReportData, Row


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A layer, several equal ones, or what has no layer. Nodes follow their parents; ``parent`` is a position.

    ``total`` is everything within, ``own`` what it ran itself (None for a container that only calls others, or
    for a leaf, whose total it would repeat); the phases divide ``total`` and ``own`` in the same way.
    """

    label: str
    """The names below the parent's: ``attention.self``; in parentheses for what has no layer."""
    within: str | None = None
    """Which of the parent's equals it lies in, where it is not in all of them."""
    path: str | None
    """A path or a pattern; None for what has no layer."""
    parent: int | None
    members: tuple[str, ...] = ()
    """The layers it stands for, where they are several."""
    type: str | None = None
    calls: int | None = None
    aliases: tuple[str, ...] = ()
    inputs: str | None = None
    outputs: str | None = None
    parameters: str | None = None
    flagged: bool = False
    """It is a bottleneck by its own ops, by the rule of the table."""
    why: str | None = None
    total: Line
    own: Line | None = None
    ran: Line | None = None
    """What it ran itself, under its whole name, as a line of a table; None for a container that only calls others."""
    phases: dict[str, Line]
    own_phases: dict[str, Line] = {}

    @property
    def stands_for(self) -> tuple[str, ...]:
        return self.members or (() if self.path is None else (self.path,))


def tree(data: ReportData, *, fold: bool = True) -> tuple[Node, ...]:
    """The layers that ran kernels, below their containers; then, by phase and reason, what has no layer.

    Sums are over the counted steps. With ``fold`` equal siblings are one node, as in the folded table.
    """
    grower = _Grower(data, fold)
    roots = {row.path for row in data.rows if row.path is not None}
    if "" in roots or any(layer.path == "" for layer in data.layers):
        if roots:
            grower.grow(Group("(root)", path="", layer=grower.layers.get("")), None, 0)
    else:
        grower.branches(("",), None, 0)
    loose: dict[str, list[Row]] = {}
    for row in data.rows:
        if row.path is None:
            loose.setdefault(layer_label(row, None), []).append(row)
    for label, rows in loose.items():
        grower.add(label, None, None, rows)
    for group in without_rows(data):
        grower.bare(group)
    return _flagged(grower.nodes, grower.own_rows, data)


def within(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows in each layer and in each container of layers, by its path."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.path is not None:
            for path in _ancestors(row.path):
                found.setdefault(path, []).append(row)
    return found


def phases_of(rows: Sequence[Row]) -> dict[str, Line]:
    """A line for each phase with rows, in the order of a step."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.phase, []).append(row)
    order = [*(p for p in PHASES if p in found), *(p for p in found if p not in PHASES)]
    return {phase: line_of(phase, found[phase]) for phase in order}


def _flagged(nodes: Sequence[Node], own: Sequence[list[Row]], data: ReportData) -> tuple[Node, ...]:
    """The nodes with flags, by what each ran itself (``own``): containers that only call others have none.

    They are asked in the order of the table's lines, which decides among equals.
    """
    place = {id(row): at for at, row in enumerate(data.rows)}
    at = [i for i, node in enumerate(nodes) if node.ran is not None]
    at.sort(key=lambda i: min((place[id(row)] for row in own[i]), default=len(place)))
    flags = flag_lines([ran for i in at if (ran := nodes[i].ran)], [own[i] for i in at], data.totals.step_ns)
    found = list(nodes)
    for i, line in zip(at, flags, strict=True):
        found[i] = replace(nodes[i], flagged=line.flagged, why=line.why, ran=line)
    return tuple(found)


class _Grower:
    """Adds nodes from the root to the leaves."""

    def __init__(self, data: ReportData, fold: bool) -> None:
        self.nodes: list[Node] = []
        self.fold = fold
        self.layers = {layer.path: layer for layer in data.layers}
        self.rows = within(data.rows)
        self.own: dict[str, list[Row]] = {}
        for row in data.rows:
            if row.path is not None:
                self.own.setdefault(row.path, []).append(row)
        self.children: dict[str, list[str]] = {}
        for path in self.rows:
            if path:
                self.children.setdefault(path.rpartition(".")[0], []).append(path)
        self.inside: dict[str, list[Layer]] = {}
        for layer in data.layers:
            for path in _ancestors(layer.path):
                self.inside.setdefault(path, []).append(layer)
        self.own_rows: list[list[Row]] = []
        """Of each node what it ran itself."""

    def grow(self, group: Group, parent: int | None, depth: int) -> None:
        """The node of a group and everything below it; ``depth`` is the number of names in its parent's path."""
        members = group.members or (group.path or "",)
        group = self._hoisted(group, members)
        members = group.members or (group.path or "",)
        at = self.add(group.path or "(root)", parent, group, self._of(members, self.rows), members, depth)
        self.branches(members, at, members[0].count(".") + 1 if members[0] else 0)

    def branches(self, members: Sequence[str], parent: int | None, depth: int) -> None:
        """The nodes one below the members of a node."""
        for group in self._groups(members):
            self.grow(group, parent, depth)

    def add(
        self,
        label: str,
        parent: int | None,
        group: Group | None,
        rows: list[Row],
        members: tuple[str, ...] = (),
        depth: int = 0,
    ) -> int:
        names, inside = self._named(label, parent, depth) if group and group.path else (label, None)
        own = self._of(members, self.own) if members else rows
        mixed = len(own) != len(rows)
        line = line_of(label, rows, group.layer if group else None)
        times = f" ×{len(members)}" if len(members) > 1 else ""
        self.own_rows.append(own)
        self.nodes.append(
            Node(
                label=names,
                within=inside,
                path=group.path if group else None,
                parent=parent,
                members=members if len(members) > 1 else (),
                type=group.layer.type if group and group.layer else None,
                calls=group.layer.calls if group and group.layer else None,
                aliases=group.layer.aliases if group and group.layer else (),
                inputs=line.inputs,
                outputs=line.outputs,
                parameters=line.parameters,
                total=line,
                own=line_of(label, own) if mixed and own else None,
                ran=line_of(f"{label}{times}", own, group.layer if group else None) if own else None,
                phases=phases_of(rows),
                own_phases=phases_of(own) if mixed else {},
            )
        )
        return len(self.nodes) - 1

    def bare(self, group: Group) -> None:
        """The node of what has no row: kernels without an owner, waiting without one."""
        line = group.line()
        self.nodes.append(Node(label=group.label, path=None, parent=None, total=line, ran=line, phases={}))
        self.own_rows.append([])

    def _named(self, path: str, parent: int | None, depth: int) -> tuple[str, str | None]:
        parts = path.split(".")
        above = self.nodes[parent].path if parent is not None else ""
        inside = ".".join(parts[:depth])
        return ".".join(parts[depth:]), inside if inside != above else None

    def _hoisted(self, group: Group, members: tuple[str, ...]) -> Group:
        """A container that is never called itself and holds one thing gives way to it: a list of modules."""
        while group.layer is None and not any(member in self.own for member in members):
            inner = self._groups(members)
            if len(inner) != 1:
                break
            group = inner[0]
            members = group.members or (group.path or "",)
        return group

    def _groups(self, members: Sequence[str]) -> list[Group]:
        paths = [child for member in members for child in self.children.get(member, ()) if child]
        groups = {path: Group(path, rows=self.rows[path], path=path, layer=self.layers.get(path)) for path in paths}
        if not self.fold or len(groups) < 3:
            return list(groups.values())
        known = [layer for member in members for layer in self.inside.get(member, ())]
        alike = len(members) > 1  # below equal containers it is the place that counts, and their times are spread
        times = {path: 1.0 if alike else time_per_call(group) for path, group in groups.items()}
        made = []
        for found in folds(known, times):
            layers = [self.layers[path] for path in found.paths if path in self.layers]
            made.append(
                Group(found.pattern, path=found.pattern, layer=common(found.pattern, layers), members=found.paths)
            )
            for path in found.paths:
                del groups[path]
        return [*made, *groups.values()]

    def _of(self, members: Sequence[str], rows: Mapping[str, list[Row]]) -> list[Row]:
        return [row for member in members for row in rows.get(member, ())]


def _ancestors(path: str) -> Iterator[str]:
    """The path and those of all containers that it lies in, the root's last."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""
