"""What changed between two reports, layer by layer. Figures are means per step: the runs may differ in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from torchroof.report.lenses import lines
from torchroof.report.line import Line, line_of
from torchroof.report.model import CAUSES, ReportData, Row
from torchroof.report.tree import Node, within


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One layer (or op, or phase) before and after. Differences are after − before, in ns per step.

    ``status`` is ``both``, ``added`` (only after) or ``removed`` (only before). An added layer changed by all of its
    time. Headroom is what could be won back at least.
    """

    label: str
    path: str | None
    type: str | None
    status: str
    before: Line | None
    after: Line | None
    kernel_ns: float
    busy_ns: float
    host_ns: float
    headroom_least_ns: float


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """``before`` is the baseline. Lines are sorted by how much their time changed."""

    by: str
    before_steps: int
    """Divisor for means per step of the baseline's lines (steps x devices)."""
    after_steps: int
    before_step_ns: float
    after_step_ns: float
    causes: dict[str, float]
    """Change of each cause of step time, ns per step. They sum to the change of step time."""
    lines: tuple[Change, ...]


def difference(data: ReportData, baseline: ReportData, by: str = "layer") -> Difference:
    """What changed from ``baseline`` to ``data``; lines are matched by their label: path, op or phase."""
    before, after = _lines(baseline, by), _lines(data, by)
    steps = divisor(baseline), divisor(data)
    labels = dict.fromkeys([*after, *before])
    changes = [_change(label, before.get(label), after.get(label), steps) for label in labels]
    return Difference(
        by=by,
        before_steps=steps[0],
        after_steps=steps[1],
        before_step_ns=baseline.totals.step_ns / steps[0],
        after_step_ns=data.totals.step_ns / steps[1],
        causes={
            cause: data.totals.causes.get(cause, 0) / steps[1] - baseline.totals.causes.get(cause, 0) / steps[0]
            for cause in CAUSES
        },
        lines=tuple(sorted(changes, key=lambda c: (-abs(c.kernel_ns), c.label))),
    )


def divisor(data: ReportData) -> int:
    """Sums over the counted steps become means per step and device by it."""
    return max(1, data.steps) * max(1, len(data.devices))


def _lines(data: ReportData, by: str) -> dict[str, Line]:
    return {line.label: line for line in lines(data, by).lines}


def _change(label: str, before: Line | None, after: Line | None, steps: tuple[int, int]) -> Change:
    known = after or before
    assert known is not None, "a label comes from one of the two"

    def changed(name: str) -> float:
        was = getattr(before, name) if before else 0
        now = getattr(after, name) if after else 0
        return float(now / steps[1] - was / steps[0])

    return Change(
        label=label,
        path=known.path,
        type=known.type,
        status="both" if before and after else "added" if after else "removed",
        before=before,
        after=after,
        kernel_ns=changed("kernel_ns"),
        busy_ns=changed("busy_ns"),
        host_ns=changed("host_ns"),
        headroom_least_ns=changed("headroom_least_ns"),
    )


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline laid beside the nodes of a tree, position by position; None where it has nothing of a node."""

    total: Line | None
    own: Line | None


def beside(nodes: Sequence[Node], baseline: ReportData) -> tuple[Beside, ...]:
    """The baseline's lines for each node: of all that lies within the same paths, and of their own ops."""
    inside, own, loose = within(baseline.rows), _own(baseline.rows), _loose(baseline)
    return tuple(
        Beside(total=_of(node.stands_for, inside), own=_of(node.stands_for, own))
        if node.path is not None
        else Beside(total=loose.get(node.label), own=None)
        for node in nodes
    )


def _of(paths: Sequence[str], rows: Mapping[str, list[Row]]) -> Line | None:
    found = [row for path in paths for row in rows.get(path, ())]
    return line_of("", found) if found else None


def _own(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.path is not None:
            found.setdefault(row.path, []).append(row)
    return found


def _loose(data: ReportData) -> dict[str, Line]:
    return {line.label: line for line in lines(data).lines if line.path is None}
