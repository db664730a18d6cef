"""The laws that hold for every report, as one check."""

from __future__ import annotations

from typing import Any

import pytest

from torchroof.report.lenses import BY, OUTSIDE_STEPS, Lines, lines
from torchroof.report.model import CAUSES, ReportData, Row
from torchroof.report.summary import headline

ADDITIVE = ("kernels", "kernel_ns", "busy_ns", "host_ns")


def check(data: ReportData) -> None:
    """Both ledgers close to the nanosecond, every sum is the sum of its parts, and nothing unknown is zero."""
    totals = data.totals
    assert set(totals.causes) == set(CAUSES)
    assert sum(totals.causes.values()) == totals.step_ns
    assert all(ns >= 0 for ns in totals.causes.values())
    if totals.kernel_ns is None:
        assert data.rows == () and data.unattributed == ()
        return
    _check_kernels(data)
    _check_rows(data)
    _check_lenses(data)


def _check_kernels(data: ReportData) -> None:
    totals, rows, rest = data.totals, data.rows, data.unattributed
    assert sum(r.kernel_ns for r in rows) + sum(u.kernel_ns for u in rest) == totals.kernel_ns
    assert sum(r.kernels for r in rows) + sum(u.kernels for u in rest) == totals.kernels
    counted = [u for u in rest if u.reason != OUTSIDE_STEPS]
    assert sum(k.kernel_ns for k in data.kernels) == sum(x.kernel_ns for x in (*rows, *counted))
    assert sum(k.kernels for k in data.kernels) == sum(x.kernels for x in (*rows, *counted))
    host = sum(r.host_ns for r in rows) + sum(u.host_ns for u in rest) + totals.host_unowned_ns
    assert host == totals.causes["host"]
    busy = sum(r.busy_ns for r in rows) + sum(u.busy_ns for u in rest) + totals.causes["copy"]
    idle = sum(totals.causes[c] for c in ("data", "sync", "host"))
    assert busy == totals.busy_ns == totals.step_ns - idle


def _check_rows(data: ReportData) -> None:
    assert len({(r.device, r.path, r.phase, r.op, r.precision, r.pipe) for r in data.rows}) == len(data.rows)
    for row in data.rows:
        assert 0 <= row.busy_ns <= row.kernel_ns
        assert min(row.cast_ns, row.layout_ns) >= 0 and row.cast_ns + row.layout_ns <= row.kernel_ns
        assert sum(row.kernel_ns_per_step) == row.kernel_ns and len(row.kernel_ns_per_step) == data.steps
        _check_known(row, row.flops, row.flops_known_ns, row.achieved_flops_per_s)
        assert (row.floor_ns is None) == (row.headroom_ns is None)
        if row.floor_ns is not None:
            assert row.headroom_ns == max(0, row.busy_ns - row.floor_ns) + row.host_ns
        if row.floor_ns is None or row.flops is None or row.bytes_read is None:
            assert row.unknown or row.kernel_ns == 0, row
        if row.flops is not None and row.flops_full is not None:
            assert row.flops <= row.flops_full
        known = (row.bytes_read is None, row.bytes_written is None, row.bytes_upper is None)
        assert known in ((True,) * 3, (False,) * 3), row
        _check_known(row, row.bytes_read, row.bytes_known_ns, row.achieved_bytes_per_s)
        if row.bytes_read is not None and row.bytes_written is not None and row.bytes_upper is not None:
            assert row.bytes_read + row.bytes_written <= row.bytes_upper


def _check_known(row: Row, amount: int | None, known_ns: int, per_second: float | None) -> None:
    """What is unknown has no time. Calls that took 0 ns may be all that is known; then the rest says why it is not."""
    if amount is None:
        assert known_ns == 0, row
    elif known_ns == 0 and row.kernel_ns:
        assert row.unknown, row
    assert per_second is None or known_ns > 0, row


def _check_lenses(data: ReportData) -> None:
    for by in BY:
        whole, top = lines(data, by), lines(data, by, top=3)
        apart = sum(line.kernel_ns for line in whole.apart)
        assert whole.total.kernel_ns + apart == data.totals.kernel_ns
        assert sum(line.kernel_ns for line in whole.lines) + apart == data.totals.kernel_ns
        shown = [*top.lines, *([top.rest] if top.rest else [])]
        for name in (*ADDITIVE, "headroom_least_ns", "headroom_most_ns") if by != "kernel" else ADDITIVE[:2]:
            assert sum(getattr(line, name) for line in shown) == getattr(top.total, name)
            assert getattr(top.total, name) == getattr(whole.total, name)
        for name in ("flops", "bytes", "floor_ns", "headroom_ns"):
            known = [getattr(line, name) for line in shown if getattr(line, name) is not None]
            assert (sum(known) if known else None) == getattr(whole.total, name)
        check_headroom(data, whole)
        if by != "kernel":
            assert sum(line.host_ns for line in (*whole.lines, *whole.apart)) == data.totals.causes["host"]
            assert whole.total.flops == data.totals.flops
            assert whole.total.floor_ns == data.totals.floor_ns
    _check_reading(data)
    _check_page(data)


def check_headroom(data: ReportData, whole: Lines) -> None:
    """What could be won lies between two sums, and the flagged lines hold half of the lower one if they can."""
    for line in (*whole.lines, whole.total):
        assert (line.headroom_ns or 0) <= line.headroom_least_ns <= line.headroom_most_ns
        assert line.headroom_most_ns <= line.busy_ns + line.host_ns
    rows = [r for r in data.rows if r.headroom_ns is None]
    if whole.by != "kernel":
        waiting = sum(x.host_ns for x in (*rows, *(u for u in data.unattributed if u.reason != OUTSIDE_STEPS)))
        assert whole.total.headroom_least_ns == (whole.total.headroom_ns or 0) + waiting
    flags = [line for line in whole.lines if line.flagged]
    others = [line.headroom_least_ns for line in whole.lines if not line.flagged]
    assert all(line.why for line in flags)
    if whole.by not in ("layer", "op") or whole.total.headroom_ns is None:
        assert not flags
    elif 2 * sum(line.headroom_least_ns for line in flags) < whole.total.headroom_least_ns:
        assert 100 * max(others) < 3 * whole.step_ns


def _check_page(data: ReportData) -> None:
    """What the head of the page says of the whole agrees with what its foot says."""
    head = headline(data)
    if head.with_bytes is None:
        return
    total = lines(data).total
    assert head.with_bytes + head.without_work == pytest.approx(1)
    assert head.without_work_ns * lines(data).steps == pytest.approx(total.kernel_ns - total.bytes_known_ns)
    assert sum(part.ns for part in head.left_over) == pytest.approx(head.without_work_ns)
    flagged = {line.path for line in lines(data).lines if line.flagged and line.path is not None}
    assert {layer.path for layer in data.layers if layer.flagged} == flagged & {layer.path for layer in data.layers}


READINGS: tuple[dict[str, Any], ...] = (
    {"fold": True},
    {"fold": True, "top": 4},
    {"depth": 0},
    {"depth": 2},
    {"depth": 3, "fold": True},
    {"filter": "Linear|mm"},
    {"filter": "[02468]", "fold": True, "top": 3},
)
"""Ways to read a big model: none of them may lose a nanosecond, a call or a byte."""


def _check_reading(data: ReportData) -> None:
    whole = lines(data).total
    for options in READINGS:
        read = lines(data, **options)
        shown = [*read.lines, *([read.rest] if read.rest else [])]
        for name in (*ADDITIVE, "headroom_least_ns", "headroom_most_ns"):
            assert sum(getattr(line, name) for line in shown) == getattr(whole, name), options
        for name in ("flops", "bytes", "floor_ns", "headroom_ns"):
            known = [getattr(line, name) for line in shown if getattr(line, name) is not None]
            assert (sum(known) if known else None) == getattr(whole, name), options
        for phase, ns in whole.phase_ns.items():
            assert sum(line.phase_ns.get(phase, 0) for line in shown) == ns, options
