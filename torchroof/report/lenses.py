"""Lenses: a report's rows grouped and sorted for a table. Pure functions; views only draw what they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from torchroof.errors import OptionError
from torchroof.join.kernels import REASON_TEXTS, Reason
from torchroof.report.flags import flag_lines
from torchroof.report.fold import folds
from torchroof.report.line import Line, Lines, line_of, sum_of
from torchroof.report.model import Kernel, Layer, ReportData, Row, Unattributed

__all__ = ["BY", "SORT", "Line", "Lines", "line_of", "lines"]

BY = ("layer", "op", "phase", "kernel")
SORT = ("headroom", "time", "flops")

OUTSIDE_STEPS = REASON_TEXTS[Reason.OUTSIDE_STEPS]
UNOWNED_HOST = "(host, no owner)"
"""Waiting that no kernel is charged with: before the first kernel of a recording, before copies, at the end."""


def lines(
    data: ReportData,
    by: str = "layer",
    sort: str = "headroom",
    top: int | None = None,
    *,
    fold: bool = False,
    depth: int | None = None,
    filter: str | None = None,
    least: float = 0.0,
) -> Lines:
    """The report as a table's lines. ``by`` is one of BY, ``sort`` one of SORT (largest first).

    ``fold`` makes one line of equal layers (see `torchroof.report.fold`). ``depth`` sums layers whose path
    has more components into their ancestor of so many; 0 is the model. ``filter`` is a regular expression, searched
    for with case, and chooses before anything is summed: layers by path, class and ops (or by the label or class
    of the line that they are summed into), rows by path, class and op where lines are ops or phases, and kernels by
    name, path and op. What does not match is in the rest, with what ``top`` leaves out.

    ``least`` is a part of step time: lines at the end of which neither kernel time nor headroom comes to so much are
    in the rest, too, unless there is but one.

    Lines of layers and ops are flagged: those with the most headroom until they hold half of it, each 3 % of the step.
    Raises OptionError for a ``by`` or ``sort`` that is none, a ``top`` under 1, a ``depth`` under 0 or of
    anything but layers, and a ``filter`` that is no regular expression.
    """
    _check(by, sort, top, depth)
    matching, others = _chosen(data, by, depth, filter_of(filter))
    if by == "layer" and fold:
        matching, others = folded(matching, data.layers), folded(others, data.layers)
    groups = (*matching, *others)
    found = [group.line() for group in groups]
    if by in ("layer", "op"):
        found = flag_lines(found, [group.rows for group in groups], data.totals.step_ns)
    candidates = sorted(found[: len(matching)], key=_ORDER[sort])
    shown = _worth_a_line(candidates if top is None else candidates[:top], least * data.totals.step_ns)
    hidden = [*candidates[len(shown) :], *found[len(matching) :]]
    return Lines(
        by=by,
        sort=sort,
        steps=max(1, data.steps) * max(1, len(data.devices)),
        step_ns=data.totals.step_ns,
        lines=tuple(shown),
        rest=sum_of(f"({len(hidden)} more)", hidden) if hidden else None,
        total=sum_of("total", found),
        apart=tuple(unattributed_line(u) for u in data.unattributed if u.reason == OUTSIDE_STEPS),
        filter=filter,
    )


def _worth_a_line(found: list[Line], least_ns: float) -> list[Line]:
    """The lines without those at the end that are too small to matter; a single one of them stays."""
    kept = len(found)
    while kept and max(found[kept - 1].kernel_ns, found[kept - 1].headroom_most_ns) < least_ns:
        kept -= 1
    return found[: kept if kept < len(found) - 1 else len(found)]


def flag_layers(data: ReportData) -> ReportData:
    """The report with its layers flagged, as the lines of an unfolded table are."""
    flags = {line.path: line.why for line in lines(data).lines if line.flagged and line.path is not None}
    layers = (
        msgspec.structs.replace(layer, flagged=layer.path in flags, why=flags.get(layer.path)) for layer in data.layers
    )
    return msgspec.structs.replace(data, layers=tuple(layers))


def _check(by: str, sort: str, top: int | None, depth: int | None) -> None:
    if by not in BY:
        raise OptionError(f"cannot group by {by!r}; choose one of {', '.join(BY)}")
    if sort not in SORT:
        raise OptionError(f"cannot sort by {sort!r}; choose one of {', '.join(SORT)}")
    if top is not None and (not _is_whole(top) or top < 1):
        raise OptionError(f"cannot show the top {top!r}; give a whole number of at least 1")
    if depth is not None and (not _is_whole(depth) or depth < 0):
        raise OptionError(f"there is no depth {depth!r}; give 0 for the whole model, 1 for its parts, and so on")
    if depth is not None and by != "layer":
        raise OptionError(f"a depth is one of layers, and this table is by {by}; leave out one of the two")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def filter_of(filter: str | None) -> re.Pattern[str] | None:
    """The regular expression of a filter, None for none. Raises OptionError."""
    if filter is None:
        return None
    if not isinstance(filter, str):
        raise OptionError(f"the filter {filter!r} is no text; give a regular expression")
    try:
        return re.compile(filter)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"the filter {filter!r} is no regular expression: {error}; put \\ before . [ ( * +") from None


_ORDER: dict[str, Callable[[Line], tuple[Any, ...]]] = {
    "headroom": lambda line: (-line.headroom_most_ns, -line.kernel_ns, line.label),
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

    def line(self) -> Line:
        return self.made or line_of(self.label, self.rows, self.layer, path=self.path, members=len(self.members) or 1)


def _chosen(
    data: ReportData, by: str, depth: int | None, wanted: re.Pattern[str] | None
) -> tuple[list[Group], list[Group]]:
    """The groups of what a filter matches, and those of the rest; without a filter there is no rest."""
    if by == "kernel":
        kernels = [(k, wanted is None or _found(wanted, k.name, k.path, k.op)) for k in data.kernels]
        return _kernel_groups(k for k, here in kernels if here), _kernel_groups(k for k, here in kernels if not here)
    without = without_rows(data)
    if wanted is None:
        return [*row_groups(data, by, depth), *without], []
    inside = _matching_layers(data, depth, wanted) if by == "layer" else _matching_rows(data.rows, by, wanted)
    mine = [row for row, here in zip(data.rows, inside, strict=True) if here]
    rest = [row for row, here in zip(data.rows, inside, strict=True) if not here]
    named = [_found(wanted, group.label) for group in without]
    return (
        [*row_groups(data, by, depth, mine), *(g for g, here in zip(without, named, strict=True) if here)],
        [*row_groups(data, by, depth, rest), *(g for g, here in zip(without, named, strict=True) if not here)],
    )


def _found(wanted: re.Pattern[str], *texts: str | None) -> bool:
    return any(wanted.search(text) for text in texts if text is not None)


def _matching_rows(rows: Sequence[Row], by: str, wanted: re.Pattern[str]) -> list[bool]:
    return [_found(wanted, row.path, row.type, row.op, _LABELS[by](row)) for row in rows]


def _matching_layers(data: ReportData, depth: int | None, wanted: re.Pattern[str]) -> list[bool]:
    """For each row whether its layer matches: all rows of a layer do, or none."""
    types: dict[str | None, str | None] = {layer.path: layer.type for layer in data.layers}
    labels = [(layer_label(row, row.path), layer_label(row, _cut(row.path, depth))) for row in data.rows]
    matching: set[str] = set()
    for row, (own, shown) in zip(data.rows, labels, strict=True):
        if own not in matching:
            told = (own, shown, row.path, row.type, row.op, types.get(row.path), types.get(shown))
            matching.update([own] if _found(wanted, *told) else [])
    return [own in matching for own, _ in labels]


def row_groups(data: ReportData, by: str, depth: int | None = None, rows: Sequence[Row] | None = None) -> list[Group]:
    """The rows by label, in the order of the report; ``rows`` are some of the report's, all if not given."""
    layers = {layer.path: layer for layer in data.layers}
    groups: dict[str, Group] = {}
    for row in data.rows if rows is None else rows:
        path = _cut(row.path, depth) if by == "layer" else None
        label = layer_label(row, path) if by == "layer" else _LABELS[by](row)
        group = groups.get(label)
        if group is None:
            layer = layers.get(path) if path is not None else None
            group = groups[label] = Group(label, path=path, layer=layer)
        group.rows.append(row)
    return list(groups.values())


def without_rows(data: ReportData) -> list[Group]:
    """What has no row: kernels without an owner by reason, and host time that no kernel ends."""
    groups = [Group(f"({u.reason})", made=unattributed_line(u)) for u in data.unattributed if u.reason != OUTSIDE_STEPS]
    if unowned := data.totals.host_unowned_ns:
        made = Line(label=UNOWNED_HOST, host_ns=unowned, headroom_most_ns=unowned)
        groups.append(Group(UNOWNED_HOST, made=made))
    return groups


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
    for found in folds(layers, {path: time_per_call(group) for path, group in by_path.items()}):
        members = [by_path[path] for path in found.paths]
        for member in members:
            del left[member.label]
        made.append(
            Group(
                f"{found.pattern} ×{len(members)}",
                rows=[row for member in members for row in member.rows],
                path=found.pattern,
                layer=common(found.pattern, [m.layer for m in members if m.layer]),
                members=found.paths,
            )
        )
    return [*made, *left.values()]


def time_per_call(group: Group) -> tuple[float, ...]:
    """Kernel time per call in each step; in all steps together where they are not known apart."""
    calls = max(1, group.layer.calls if group.layer else 0)
    steps = [row.kernel_ns_per_step for row in group.rows]
    if len({len(times) for times in steps}) != 1 or not steps[0]:
        return (sum(row.kernel_ns for row in group.rows) / calls,)
    return tuple(sum(step) * len(steps[0]) / calls for step in zip(*steps, strict=True))


def common(pattern: str, layers: Sequence[Layer]) -> Layer | None:
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


def unattributed_line(entry: Unattributed) -> Line:
    return Line(
        label=f"({entry.reason})",
        kernels=entry.kernels,
        kernel_ns=entry.kernel_ns,
        busy_ns=entry.busy_ns,
        host_ns=entry.host_ns,
        headroom_least_ns=entry.host_ns,
        headroom_most_ns=entry.busy_ns + entry.host_ns,
    )


def _kernel_groups(kernels: Iterable[Kernel]) -> list[Group]:
    """Kernels by name: their number and time. Work belongs to ops, not to kernels."""
    named: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        named.setdefault(kernel.name, []).append(kernel)
    groups = []
    for name, same in named.items():
        phases: dict[str, int] = {}
        for kernel in same:
            if kernel.phase is not None:
                phases[kernel.phase] = phases.get(kernel.phase, 0) + kernel.kernel_ns
        count, ns = sum(k.kernels for k in same), sum(k.kernel_ns for k in same)
        groups.append(Group(name, made=Line(label=name, kernels=count, kernel_ns=ns, phase_ns=phases)))
    return groups
