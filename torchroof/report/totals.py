"""Totals: what the rows, the remainder and the ledger add up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from torchroof.device.roof import Ceiling, Roof
from torchroof.join.attribute import Attribution, Phase
from torchroof.join.columns import group, pick
from torchroof.report.ledger import Ledger
from torchroof.report.model import CAUSES, ReportData, Row, Totals, Unattributed
from torchroof.report.pricing import Prices
from torchroof.report.roofs import Chosen
from torchroof.report.rows import Rows
from torchroof.roofline.place import pipe_of
from torchroof.trace.table import NONE


def add_up(
    attribution: Attribution,
    ledger: Ledger | None,
    rows: Rows,
    prices: Prices | None,
    unattributed: tuple[Unattributed, ...],
    chosen: Mapping[int, Chosen],
) -> Totals:
    """The totals of a report; without a ledger (the device's activity was lost) they are unknown."""
    if ledger is None or prices is None:
        return _nothing(attribution)
    causes = _causes(attribution, ledger, rows, unattributed)
    flops = _known(r.flops for r in rows.rows)
    floor = _known(r.floor_ns for r in rows.rows)
    matrix_flops, matrix_ns, useful_ns, executed_ns = _matrix(attribution, prices, rows, chosen)
    return Totals(
        kernels=len(attribution.kernels),
        kernel_ns=int(attribution.kernels.ns.sum()),
        busy_ns=sum(r.busy_ns for r in rows.rows) + sum(u.busy_ns for u in unattributed) + ledger.copy_ns,
        span_ns=ledger.span_ns,
        step_ns=ledger.step_ns,
        causes=causes,
        host_unowned_ns=ledger.host_unowned_ns,
        attributed_ns=sum(r.kernel_ns for r in rows.rows if r.op is not None),
        layered_ns=sum(r.kernel_ns for r in rows.rows if r.path is not None),
        flops=flops,
        flops_known_ns=sum(r.flops_known_ns for r in rows.rows),
        bytes=_known(
            None if r.bytes_read is None and r.bytes_written is None else (r.bytes_read or 0) + (r.bytes_written or 0)
            for r in rows.rows
        ),
        bytes_known_ns=sum(r.bytes_known_ns for r in rows.rows),
        floor_ns=floor,
        floor_known_ns=sum(r.floor_known_ns for r in rows.rows),
        step_efficiency=_share(floor, ledger.step_ns),
        mfu=_share(useful_ns, ledger.step_ns),
        hfu=_share(executed_ns, ledger.step_ns),
        matrix_flops=matrix_flops,
        matrix_ns=matrix_ns,
        backward_passes=attribution.backward_passes,
        optimizer_steps=attribution.optimizer_steps,
        overhead=attribution.facts.overhead if attribution.facts else None,
    )


def with_overhead(data: ReportData, overhead: dict[str, Any]) -> ReportData:
    """The report with what recording cost, where more of that is known than its trace tells."""
    return replace(data, totals=replace(data.totals, overhead=overhead))


def _nothing(attribution: Attribution) -> Totals:
    return Totals(
        kernels=None,
        kernel_ns=None,
        busy_ns=0,
        span_ns=0,
        step_ns=0,
        causes=dict.fromkeys(CAUSES, 0),
        host_unowned_ns=0,
        attributed_ns=0,
        layered_ns=0,
        flops=None,
        flops_known_ns=0,
        bytes=None,
        bytes_known_ns=0,
        floor_ns=None,
        step_efficiency=None,
        mfu=None,
        hfu=None,
        overhead=attribution.facts.overhead if attribution.facts else None,
    )


def _share(part: float | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole


def _known(values: object) -> int | None:
    known = [v for v in values if v is not None]  # type: ignore[attr-defined]
    return sum(known) if known else None


def _causes(
    attribution: Attribution, ledger: Ledger, rows: Rows, unattributed: tuple[Unattributed, ...]
) -> dict[str, int]:
    """Every cause of step time. A kernel's busy share goes to its row's bound, a collective's to communication."""
    causes = dict.fromkeys(CAUSES, 0)
    collective = attribution.kernels.collective.astype(bool) & (rows.of_kernel != NONE)
    communication = int(ledger.busy_ns[collective].sum())
    per_row = np.zeros(len(rows.rows), dtype=np.int64)
    np.add.at(per_row, rows.of_kernel[collective], ledger.busy_ns[collective])
    for row, exposed in zip(rows.rows, per_row.tolist(), strict=True):
        causes[row.bound or "unplaced"] += row.busy_ns - exposed
    causes["communication"] += communication
    causes["copy"] += ledger.copy_ns
    causes["unattributed"] += sum(u.busy_ns for u in unattributed)
    causes["data"] += ledger.data_ns
    causes["sync"] += ledger.sync_ns
    causes["host"] += int(ledger.host_ns.sum()) + ledger.host_unowned_ns
    return causes


def _matrix(
    attribution: Attribution, prices: Prices, rows: Rows, chosen: Mapping[int, Chosen]
) -> tuple[int | None, int, float | None, float | None]:
    """FLOPs and kernel time of products, convolutions and attention, and the ns that these FLOPs take at the
    device's peak: without recomputation, and with it (None where a peak or all FLOPs are unknown)."""
    kernels = attribution.kernels
    is_matrix = np.array([p.matrix for p in prices.table], dtype=bool)
    inside = rows.of_kernel != NONE
    mine = inside & pick(is_matrix, prices.price, 0).astype(bool)
    matrix_ns = int(kernels.ns[mine].sum())
    calls = np.flatnonzero(mine & (kernels.op != NONE))
    _, first = np.unique(kernels.op[calls], return_index=True)
    first = calls[first]
    recomputed = attribution.phase[first] == Phase.RECOMPUTE
    keys, number = group(prices.price[first], kernels.device[first], recomputed)
    flops: int | None = None
    useful = again = 0.0
    known = bool(inside.any()) and _any_work(rows.rows)
    for (p, device, redone), count in zip(keys.tolist(), np.bincount(number).tolist(), strict=True):
        price = prices.table[p]
        if price.flops is None:
            continue
        products = (price.flops - price.flops_beside) * count
        flops = (flops or 0) + products
        roof = chosen[device].roof
        peak = peak_of(roof, price.precision, price.family) if roof else None
        known = known and peak is not None
        taken = products / peak.value * 1e9 if peak else 0.0
        useful, again = (useful, again + taken) if redone else (useful + taken, again)
    if not known or (flops is None and matrix_ns):
        return flops, matrix_ns, None, None
    return flops, matrix_ns, useful, useful + again


def _any_work(rows: tuple[Row, ...]) -> bool:
    return any(r.flops is not None for r in rows)


def peak_of(roof: Roof, precision: str | None, family: str | None) -> Ceiling | None:
    """The peak that MFU is taken of: the datasheet's where the device has one, else the measured one."""
    if precision is None:
        return None
    printed = Roof(roof.name, tuple(c for c in roof.ceilings if c.origin == "datasheet"), roof.matched)
    pipe = pipe_of(family)
    return printed.compute(precision, pipe) or roof.compute(precision, pipe)
