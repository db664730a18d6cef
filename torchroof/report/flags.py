"""Which lines are bottlenecks, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from torchroof.report.line import Line, line_of
from torchroof.report.model import Row
from torchroof.roofline.verdict import flagged, words

WAITS = "the device waits for the host before its kernels"
"""Why a line without rows is flagged: nothing but waiting is known of it."""


def flag_lines(found: Sequence[Line], rows: Sequence[Sequence[Row]], step_ns: int) -> list[Line]:
    """The lines with flags: those with the most headroom until they hold half of it, each 3 % of ``step_ns``.

    ``rows`` are those of each line. Headroom is what could be won back at least. Without any floor nothing is
    flagged: there is no headroom to speak of.
    """
    judged = any(line.headroom_ns is not None for line in found)
    chosen = flagged([line.headroom_least_ns for line in found], step_ns) if judged else set()
    return [
        msgspec.structs.replace(line, flagged=i in chosen, why=why(mine) if i in chosen else None)
        for i, (line, mine) in enumerate(zip(found, rows, strict=True))
    ]


def why(rows: Sequence[Row]) -> str:
    """The verdict in words of the op that could win back most, and which op in which phase it is.

    Rows of several layers are added up by op first. An op and a phase are named where there is more than one.
    """
    if not rows:
        return WAITS
    groups: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.phase, row.op), []).append(row)
    lines = {key: line_of("", same) for key, same in groups.items()}
    (phase, op), worst = max(lines.items(), key=lambda item: item[1].headroom_least_ns)
    said = words(worst.bound, worst.efficiency, host_ns=worst.host_ns, busy_ns=worst.busy_ns)
    several_ops = len({name for _, name in groups}) > 1
    several_phases = len({name for name, _ in groups}) > 1
    where = [op.removeprefix("aten::")] if op is not None and several_ops else []
    where += [phase] if several_phases else []
    return f"{said} in {', '.join(where)}" if where else said
