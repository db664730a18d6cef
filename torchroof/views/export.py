"""A table's lines as plain columns, and those as CSV: base units, sums over the counted steps."""

from __future__ import annotations

import csv
import io
from typing import Any

from torchroof.report.lenses import Line, Lines
from torchroof.report.model import PHASES
from torchroof.views.text import clean


def plain_columns(lines: Lines) -> dict[str, list[Any]]:
    """The columns of the table by name, the rest as its last line.

    A time by phase has a column of its own for each phase that occurs. ``share_of_step`` is a fraction of
    ``step_ns``; ``steps`` repeats the divisor that turns sums into means per step.
    """
    listed = [*lines.lines, *([lines.rest] if lines.rest else [])]
    table: dict[str, list[Any]] = {}
    for name in Line.__struct_fields__:
        if name != "phase_ns":
            table[name] = [getattr(line, name) for line in listed]
            continue
        table["share_of_step"] = [line.kernel_ns / lines.step_ns if lines.step_ns else None for line in listed]
        for phase in PHASES:
            if phase in lines.total.phase_ns:
                table[f"{phase}_ns"] = [line.phase_ns.get(phase, 0) for line in listed]
    table["steps"] = [lines.steps] * len(listed)
    return table


def csv_text(lines: Lines) -> str:
    """The table as CSV with a header; unknown is empty. Names lose what a terminal would obey, and
    get a quote in front where a spreadsheet would take them for a formula."""
    table = plain_columns(lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows([_plain(value) for value in row] for row in zip(*table.values(), strict=True))
    return text.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
