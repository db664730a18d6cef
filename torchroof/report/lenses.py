"""Lenses: a report's rows grouped and sorted for a table. Pure functions; views only draw what they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from torchroof.errors import OptionError
from torchroof.join.kernels import REASON_TEXTS, Reason
from torchroof.report.flags import why
from torchroof.report.fold import folds
from torchroof.report.line import Line, Lines, line_of, sum_of
from torchroof.report.model import Layer, ReportData, Row, Unattributed
from torchroof.roofline.verdict import flagged

__all__ = ["BY", "SORT", "Line", "Lines", "line_of", "lines"]

BY = ("layer", "op", "phase", "kernel")
SORT = ("headroom", "time", "flops")

OUTSIDE_STEPS = REASON_TEXTS[Reason.OUTSIDE_STEPS]


def lines(
    data: ReportData,
    by: str = "layer",
    sort: str = "headroom",
    top: int | None = None,
    *,
    fold: bool = False,
    depth: int | None = None,
    filter: str | None = None,
) -> Lines:
    """The report as a table's lines. ``by`` is one of BY, ``sort`` one of SORT (largest first).

    ``fold`` makes one line of equal layers (see `torchroof.report.fold`). ``depth`` sums layers whose path
    has more components into their ancestor of so many; 0 is the model. ``filter`` is a regular expression,
    searched for with case in a line's label and in the path, class and op of its rows; lines without a
    match are in the rest, with those that ``top`` leaves out. In a folded or summed table the flags are of
    its lines: the fewest that hold half of all headroom, each at least 3 % of the step.

    Raises OptionError for a ``by`` or ``sort`` that is none, a ``top`` under 1, a ``depth`` under 0 or of
    anything but layers, and a ``filter`` that is no regular expression.
    """
    _check(by, sort, top, depth)
    wanted = filter_of(filter)
    groups = _kernel_groups(data) if by == "kernel" else row_groups(data, by, depth)
    matching: list[Group] = []
    others: list[Group] = []
    for group in groups:
        (matching if wanted is None or any(map(wanted.search, group.words())) else others).append(group)
    if by == "layer" and fold:
        matching, others = folded(matching, data.layers), folded(others, data.layers)
    kept = len(matching)
    found = [group.line() for group in (*matching, *others)]
    if by == "layer" and (fold or depth is not None):
        found = _flagged(found, (*matching, *others), data.totals.step_ns)
    candidates = sorted(found[:kept], key=_ORDER[sort])
    shown = candidates if top is None else candidates[:top]
    hidden = [*candidates[len(shown) :], *found[kept:]]
    apart = [] if by == "kernel" else [_unattributed_line(u) for u in data.unattributed if u.reason == OUTSIDE_STEPS]
    return Lines(
        by=by,
        sort=sort,
        steps=max(1, data.steps) * max(1, len(data.devices)),
        step_ns=data.totals.step_ns,
        lines=tuple(shown),
        rest=sum_of(f"({len(hidden)} more)", hidden) if hidden else None,
        total=sum_of("total", found),
        apart=tuple(apart),
        filter=filter,
    )


def _check(by: str, sort: str, top: int | None, depth: int | None) -> None:
    if by not in BY:
        raise OptionError(f"cannot group by {by!r}; choose one of {', '.join(BY)}")
    if sort not in SORT:
        raise OptionError(f"cannot sort by {sort!r}; choose one of {', '.join(SORT)}")
    if top is not None and top < 1:
        raise OptionError(f"cannot show the top {top}; give a number of at least 1")
    if depth is not None and depth < 0:
        raise OptionError(f"there is no depth {depth}; give 0 for the whole model, 1 for its parts, and so on")
    if depth is not None and by != "layer":
        raise OptionError(f"a depth is one of layers, and this table is by {by}; leave out one of the two")


def filter_of(filter: str | None) -> re.Pattern[str] | None:
    """The regular expression of a filter, None for none. Raises OptionError."""
    if filter is None:
        return None
    try:
        return re.compile(filter)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"the filter {filter!r} is no regular expression: {error}; put \\ before . [ ( * +") from None


def _possible(line: Line) -> int:
    """Headroom, or all of a line's time where it is not known: that much could be won at most."""
    return line.busy_ns + line.host_ns if line.headroom_ns is None else line.headroom_ns


_ORDER: dict[str, Callable[[Line], tuple[Any, ...]]] = {
    "headroom": lambda line: (-_possible(line), -line.kernel_ns, line.label),
    "time": lambda line: (-line.kernel_ns, -line.host_ns, line.label),
    "flops": lambda line: (-(line.flops or 0), -line.kernel_ns, line.label),
}


@dataclass(slots=True, eq=False)
class Group:
    """What becomes one line: rows under a label, or a line that is made already."""

    label: str
    rows: list[Row] = field(default_factory=list)
    path: str | None = None
    layer: Layer | None = None
    members: tuple[str, ...] = ()
    """The paths of the layers that were folded into it."""
    made: Line | None = None
    searched: set[str] = field(default_factory=set)
    """What a filter looks at beside label and rows."""

    def line(self) -> Line:
        return self.made or line_of(self.label, self.rows, self.layer, path=self.path, members=len(self.members) or 1)

    def words(self) -> set[str]:
        told = {text for row in self.rows for text in (row.path, row.type, row.op) if text is not None}
        if self.layer and self.layer.type:
            told.add(self.layer.type)
        return told | self.searched | {self.label}


def row_groups(data: ReportData, by: str, depth: int | None = None) -> list[Group]:
    """The rows by label, and what has no row, in the order of the report."""
    layers = {layer.path: layer for layer in data.layers}
    groups: dict[str, Group] = {}
    for row in data.rows:
        path = _cut(row.path, depth) if by == "layer" else None
        label = layer_label(row, path) if by == "layer" else _LABELS[by](row)
        group = groups.get(label)
        if group is None:
            layer = layers.get(path) if path is not None else None
            group = groups[label] = Group(label, path=path, layer=layer)
        group.rows.append(row)
    left = [Group(f"({u.reason})", made=_unattributed_line(u)) for u in data.unattributed if u.reason != OUTSIDE_STEPS]
    return [*groups.values(), *left]


def _cut(path: str | None, depth: int | None) -> str | None:
    """The path of the ancestor at a depth, which is the number of its components; the model's is 0."""
    return path if path is None or depth is None else ".".join(path.split(".")[:depth])


_NO_LAYER = {
    "outside": "(outside layers)",
    "forward": "(forward, no layer)",
    "backward": "(backward, no layer)",
}


def layer_label(row: Row, path: str | None) -> str:
    if path is None:
        return _NO_LAYER.get(row.phase, f"({row.phase})")
    return path or "(root)"


def _op_label(row: Row) -> str:
    return row.op or "(no op)"


def _phase_label(row: Row) -> str:
    return row.phase


_LABELS: dict[str, Callable[[Row], str]] = {"op": _op_label, "phase": _phase_label}


def folded(groups: Sequence[Group], layers: Sequence[Layer]) -> list[Group]:
    """The groups with equal layers made one; the rest in their order."""
    by_path = {group.path: group for group in groups if group.path is not None}
    left = {group.label: group for group in groups}
    made = []
    for found in folds(layers, {path: _time(group) for path, group in by_path.items()}):
        members = [by_path[path] for path in found.paths]
        for member in members:
            del left[member.label]
        made.append(
            Group(
                f"{found.pattern} ×{len(members)}",
                rows=[row for member in members for row in member.rows],
                path=found.pattern,
                layer=_common(found.pattern, [m.layer for m in members if m.layer]),
                members=found.paths,
            )
        )
    return [*made, *left.values()]


def _time(group: Group) -> float:
    """Kernel time per call."""
    calls = group.layer.calls if group.layer else 0
    return sum(row.kernel_ns for row in group.rows) / max(1, calls)


def _common(pattern: str, layers: Sequence[Layer]) -> Layer | None:
    """What equal layers have in common; what they differ in is left out. None where nothing is known of them."""
    if not layers:
        return None
    first = layers[0]

    def shared(name: str) -> Any:
        return getattr(first, name) if len({getattr(layer, name) for layer in layers}) == 1 else ()

    return Layer(
        path=pattern,
        type=first.type,
        calls=sum(layer.calls for layer in layers),
        inputs=shared("inputs"),
        outputs=shared("outputs"),
        parameters=shared("parameters"),
    )


def _flagged(found: Sequence[Line], groups: Sequence[Group], step_ns: int) -> list[Line]:
    """The lines with flags of their own, by the same rule as a report's layers."""
    chosen = flagged([line.headroom_ns or 0 for line in found], step_ns)
    replaced = []
    for position, (line, group) in enumerate(zip(found, groups, strict=True)):
        flag = position in chosen and group.path is not None
        replaced.append(msgspec.structs.replace(line, flagged=flag, why=why(group.rows) if flag else None))
    return replaced


def _unattributed_line(entry: Unattributed) -> Line:
    return Line(
        label=f"({entry.reason})",
        kernels=entry.kernels,
        kernel_ns=entry.kernel_ns,
        busy_ns=entry.busy_ns,
        host_ns=entry.host_ns,
    )


def _kernel_groups(data: ReportData) -> list[Group]:
    """Kernels by name: counts and time over the whole file; work belongs to ops, not to kernels."""
    groups: dict[str, Group] = {}
    for kernel in data.kernels:
        group = groups.setdefault(kernel.name, Group(kernel.name, made=Line(label=kernel.name)))
        before = group.made or Line(label=kernel.name)
        phases = dict(before.phase_ns)
        if kernel.phase is not None:
            phases[kernel.phase] = phases.get(kernel.phase, 0) + kernel.kernel_ns
        group.made = Line(
            label=kernel.name,
            kernels=before.kernels + kernel.kernels,
            kernel_ns=before.kernel_ns + kernel.kernel_ns,
            phase_ns=phases,
        )
        group.searched.update(_told(kernel.path, kernel.op))
    return list(groups.values())


def _told(*texts: str | None) -> Iterable[str]:
    return (text for text in texts if text is not None)
