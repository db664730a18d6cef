"""Rows: kernels grouped by device, layer, phase, op, precision and pipe, with their work and their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torchroof.device.roof import Ceiling
from torchroof.join.attribute import PHASE_NAMES, SOURCE_TEXTS, Attribution, Phase, Source
from torchroof.join.columns import distinct, group, total_by
from torchroof.report.ledger import Ledger
from torchroof.report.model import Row
from torchroof.report.parts import Parts, divide_kernels
from torchroof.report.pricing import Price, Prices
from torchroof.report.roofs import Chosen
from torchroof.report.sharing import Shares, Weights, divide_whole
from torchroof.report.tax import Tax
from torchroof.roofline.place import attainable
from torchroof.roofline.verdict import bound
from torchroof.trace.table import NONE, Int64


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows, and for each kernel which row it is in (NONE: unattributed)."""

    rows: tuple[Row, ...]
    of_kernel: Int64


def build_rows(
    attribution: Attribution, ledger: Ledger, prices: Prices, shares: Shares, chosen: Mapping[int, Chosen]
) -> Rows:
    """All rows of a report, in order of device, layer, phase, op, precision and pipe."""
    kernels = attribution.kernels
    of_kernel = np.full(len(kernels), NONE, dtype=np.int64)
    parts = divide_kernels(attribution, ledger, shares)
    if not len(parts):
        return Rows((), of_kernel)
    told = [(p.op, p.precision, p.pipe) for p in prices.table]
    labels = sorted(set(told), key=lambda texts: [(text is not None, text or "") for text in texts])
    number = {texts: at for at, texts in enumerate(labels)}
    label = np.array([number[texts] for texts in told])[prices.price[parts.kernel]]
    keys, row = group(kernels.device[parts.kernel], parts.layer, attribution.phase[parts.kernel], label)
    of_kernel[parts.kernel[parts.primary]] = row[parts.primary]
    groups = _groups(attribution, parts, row, shares, len(keys))
    sums = _Sums(attribution, prices, parts, row, len(keys))
    rows = []
    for r, (device, layer, phase, text) in enumerate(keys.tolist()):
        name = attribution.layers[layer] if layer != NONE else None
        op, precision, pipe = labels[text]
        identity = {
            "device": device,
            "path": name.path if name else None,
            "type": name.type if name else None,
            "phase": PHASE_NAMES[Phase(phase)],
            "op": op,
            "precision": precision,
            "pipe": pipe,
            "shared": groups.get(r),
        }
        rows.append(sums.row(r, identity, chosen[device]))
    return Rows(tuple(rows), of_kernel)


def _groups(attribution: Attribution, parts: Parts, row: Int64, shares: Shares, size: int) -> dict[int, str]:
    """The group's name of each row that holds parts of shared kernels."""
    shared = np.flatnonzero(parts.weights != NONE)
    ops = attribution.kernels.op[parts.kernel[shared]]
    return {r: shares.group[op] for r, op in zip(row[shared].tolist(), ops.tolist(), strict=True)}


@dataclass(slots=True)
class _Work:
    """Work of a row's calls, added up in exact integers; ns parts of the floor as floats until the end."""

    calls: int = 0
    flops: int | None = None
    flops_full: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    bytes_upper: int | None = None
    floor_ns: float | None = None
    compute_ns: float = 0.0
    memory_ns: float = 0.0
    compute: Ceiling | None = None
    bandwidths: Counter[Ceiling] = field(default_factory=Counter)
    modelled: bool = False
    placed_flops: int = 0
    placed_bytes: int = 0
    """FLOPs and bytes of the calls of which both are known: only these tell an intensity."""

    def add(self, price: Price, calls: int, weights: Weights | None, place: int, counted: bool) -> None:
        """Adds the work of calls, or of a part of each: that of one row among those that share it."""
        self.calls += calls if counted else 0
        part = 1.0 if weights is None else weights[place][1] / sum(w for _, w in weights)
        amounts = _amounts(price, weights, place)
        for name, value in amounts.items():
            if value is not None:
                setattr(self, name, (getattr(self, name) or 0) + value * calls)
        moved = _plus(amounts["bytes_read"], amounts["bytes_written"])
        if amounts["flops"] is not None and moved is not None:
            self.placed_flops += amounts["flops"] * calls
            self.placed_bytes += moved * calls
        self.modelled |= price.flops is not None or price.bytes_read is not None
        at = price.placement
        if at.floor_ns is not None:
            self.floor_ns = (self.floor_ns or 0.0) + at.floor_ns * calls * part
            self.compute_ns += (at.compute_ns or 0.0) * calls * part
            self.memory_ns += (at.memory_ns or 0.0) * calls * part
            self.compute = self.compute or at.compute
            if at.bandwidth is not None:
                self.bandwidths[at.bandwidth] += calls * part * (at.memory_ns or 0.0)  # type: ignore[assignment]


class _Sums:
    """Everything that a row adds up, by row number."""

    def __init__(self, attribution: Attribution, prices: Prices, parts: Parts, row: Int64, size: int) -> None:
        kernels = attribution.kernels
        price = prices.price[parts.kernel]
        self._prices = prices
        self.kernels = np.bincount(row, weights=parts.primary, minlength=size).astype(np.int64)
        self.kernel_ns = total_by(row, parts.ns, size)
        self.busy_ns = total_by(row, parts.busy_ns, size)
        self.host_ns = total_by(row, parts.host_ns, size)
        tax = prices.tax[parts.kernel]
        self.tax_ns = {kind: total_by(row, parts.ns * (tax == kind), size) for kind in Tax}
        self.known_ns = {
            name: total_by(row, parts.ns * np.array(known, dtype=bool)[price], size)
            for name, known in (
                ("flops", [p.flops is not None for p in prices.table]),
                ("bytes", [_plus(p.bytes_read, p.bytes_written) is not None for p in prices.table]),
                ("floor", [p.placement.floor_ns is not None for p in prices.table]),
                ("unknown", [p.reason is not None for p in prices.table]),
            )
        }
        # Whether a kernel is short or its grid small is asked of the whole kernel, also where it is shared.
        self.touched = np.bincount(row, minlength=size)
        self.whole_ns = total_by(row, kernels.ns[parts.kernel], size)
        self.blocks = total_by(row, np.maximum(kernels.blocks[parts.kernel], 0), size)
        self.gridless = np.bincount(row, weights=kernels.blocks[parts.kernel] == NONE, minlength=size)
        self.collective = np.bincount(row, weights=kernels.collective[parts.kernel], minlength=size)
        self.per_step = _per_step(attribution, parts, row, size)
        self.source = _dominant(row, parts.source, parts.ns, size)
        self.price = _dominant(row, price, parts.ns, size)
        self.work = [_Work() for _ in range(size)]
        calls_of_rows, weightings = _calls(attribution, prices, parts, row)
        for r, p, weights, place, counted, calls in calls_of_rows:
            chosen = weightings[weights] if weights != NONE else None
            self.work[r].add(prices.table[p], calls, chosen, place, bool(counted))

    def row(self, r: int, identity: dict[str, object], chosen: Chosen) -> Row:
        """The finished row: sums, and the rates and the verdict that follow from them."""
        work, kernel_ns, busy_ns = self.work[r], int(self.kernel_ns[r]), int(self.busy_ns[r])
        known = {name: int(column[r]) for name, column in self.known_ns.items()}
        host_ns, kernels = int(self.host_ns[r]), int(self.kernels[r])
        floor_ns = None if work.floor_ns is None else round(work.floor_ns)
        efficiency = _rate(work.floor_ns, known["floor"])
        moved = _plus(work.bytes_read, work.bytes_written)
        intensity = work.placed_flops / work.placed_bytes if work.placed_bytes else None
        bandwidth = work.bandwidths.most_common(1)[0][0] if work.bandwidths else None
        side = None if floor_ns is None else "compute" if work.compute_ns > work.memory_ns else "memory"
        judge = work.compute if side == "compute" else bandwidth if side else None
        roof_known = intensity is not None and work.compute is not None and bandwidth is not None
        launch = chosen.roof.launch() if chosen.roof else None
        return Row(
            **identity,  # type: ignore[arg-type]
            calls=work.calls,
            kernels=kernels,
            kernel_ns=kernel_ns,
            busy_ns=busy_ns,
            host_ns=host_ns,
            cast_ns=int(self.tax_ns[Tax.CAST][r]),
            layout_ns=int(self.tax_ns[Tax.LAYOUT][r]),
            flops=work.flops,
            flops_full=work.flops_full,
            flops_known_ns=known["flops"],
            bytes_read=work.bytes_read,
            bytes_written=work.bytes_written,
            bytes_upper=work.bytes_upper,
            bytes_known_ns=known["bytes"],
            intensity=intensity,
            achieved_flops_per_s=_per_second(work.flops, known["flops"]),
            achieved_bytes_per_s=_per_second(moved, known["bytes"]),
            attainable_flops_per_s=attainable(intensity, work.compute, bandwidth) if roof_known else None,  # type: ignore[arg-type]
            floor_ns=floor_ns,
            floor_known_ns=known["floor"],
            efficiency=efficiency,
            headroom_ns=None if floor_ns is None else max(0, busy_ns - floor_ns) + host_ns,
            side=side,
            bound=self._bound(r, work, side, bandwidth, efficiency, launch, chosen),
            ceiling=chosen.roof.index(judge) if chosen.roof and judge else None,
            attribution=SOURCE_TEXTS[Source(int(self.source[r]))],
            unknown=self._prices.table[int(self.price[r])].reason if known["unknown"] else None,
            judged=self._prices.table[int(self.price[r])].judged,
            kernel_ns_per_step=tuple(self.per_step[r].tolist()),
        )

    def _bound(
        self,
        r: int,
        work: _Work,
        side: str | None,
        bandwidth: Ceiling | None,
        efficiency: float | None,
        launch: Ceiling | None,
        chosen: Chosen,
    ) -> str | None:
        if chosen.roof is None:
            return None
        touched = int(self.touched[r])
        communication = bool(self.collective[r] == touched)
        return bound(
            modelled=work.modelled or communication,
            communication=communication,
            side=side,
            level=bandwidth.level if bandwidth else None,
            mean_kernel_ns=int(self.whole_ns[r]) / touched,
            launch_ns=launch.value * 1e9 if launch else None,
            blocks=None if self.gridless[r] else int(self.blocks[r]) // touched,
            multiprocessors=chosen.multiprocessors,
            efficiency=efficiency,
        )


def _per_step(attribution: Attribution, parts: Parts, row: Int64, size: int) -> Int64:
    kernels, counted = attribution.kernels, np.flatnonzero(np.array(attribution.steps.counted, dtype=bool))
    sums = np.zeros((size, len(counted)), dtype=np.int64)
    column = np.searchsorted(counted, kernels.step[parts.kernel])
    np.add.at(sums, (row, column), parts.ns)
    return sums


def _dominant(row: Int64, choice: np.ndarray, ns: Int64, size: int) -> Int64:
    """For each row the choice that took the most time; the lowest of equal ones."""
    pairs, number = group(row, choice)
    weight = total_by(number, ns, len(pairs))
    best = np.zeros(size, dtype=np.int64)
    order = np.lexsort((-pairs[:, 1], weight, pairs[:, 0]))
    best[pairs[order, 0]] = pairs[order, 1]
    return best


def _calls(
    attribution: Attribution, prices: Prices, parts: Parts, row: Int64
) -> tuple[list[list[int]], tuple[Weights, ...]]:
    """(row, price, weights, place, counted, number of calls), and the weights that are meant: a call belongs to the
    row of its kernels, and where they lie in several, to these by kernel time. It is counted once, in the row of
    the kernel that was launched first."""
    kernels = attribution.kernels
    inside = np.unique(parts.kernel, return_index=True)[0]
    inside = inside[kernels.op[inside] != NONE]
    order = inside[np.lexsort((kernels.start_ns[inside], kernels.launch_ns[inside]))]
    _, first = np.unique(kernels.op[order], return_index=True)
    chosen = np.zeros(len(kernels), dtype=bool)
    chosen[order[first]] = True
    apart = _apart(kernels.op[parts.kernel].astype(np.int64), parts.place, row)
    mine = np.flatnonzero(chosen[parts.kernel] & ~apart)
    columns = (row[mine], prices.price[parts.kernel[mine]], parts.weights[mine], parts.place[mine], parts.primary[mine])
    keys, number = group(*columns)
    whole = [[*key, n] for key, n in zip(keys.tolist(), np.bincount(number).tolist(), strict=True)]
    split, weightings = _split(attribution, prices, parts, row, chosen, np.flatnonzero(apart))
    return whole + split, weightings


def _apart(op: Int64, place: Int64, row: Int64) -> NDArray[np.bool_]:
    """The parts of calls whose kernels lie in several rows, as when they ran on several devices."""
    keys, number = group(op, place)
    low, high = np.full(len(keys), row.max(initial=0)), np.zeros(len(keys), dtype=np.int64)
    np.minimum.at(low, number, row)
    np.maximum.at(high, number, row)
    return np.isin(op, keys[(low != high) & (keys[:, 0] != NONE), 0])


def _split(
    attribution: Attribution, prices: Prices, parts: Parts, row: Int64, first: NDArray[np.bool_], apart: Int64
) -> tuple[list[list[int]], tuple[Weights, ...]]:
    """The calls whose kernels lie in several rows, as `_calls` gives them."""
    weightings = list(parts.weightings)
    calls: list[list[int]] = []
    ops = attribution.kernels.op[parts.kernel[apart]]
    for op in distinct(ops).tolist():
        mine = apart[ops == op]
        rows = distinct(row[mine]).tolist()
        ns = [int(parts.ns[mine][row[mine] == r].sum()) for r in rows]
        home = int(row[mine][first[parts.kernel[mine]] & parts.primary[mine]][0])
        weightings.append(tuple(zip(rows, ns if any(ns) else [1] * len(ns), strict=True)))
        for place, r in enumerate(rows):
            price = int(prices.price[parts.kernel[mine[row[mine] == r][0]]])
            calls.append([r, price, len(weightings) - 1, place, r == home, 1])
    return calls, tuple(weightings)


def _amounts(price: Price, weights: Weights | None, place: int) -> dict[str, int | None]:
    """What one call counts, or the part of it that is the row's at this place.

    Bytes read and written count together or not at all, so that the known time of a row's bytes is that of all of
    them. What exceeds a lower bound is divided for itself, so that no part of a bound falls below its part of the
    other.
    """
    moved = _plus(price.bytes_read, price.bytes_written)
    amounts = {
        "flops": price.flops,
        "bytes_read": None if moved is None else price.bytes_read,
        "bytes_written": None if moved is None else price.bytes_written,
        "flops_full": None if price.flops is None else _minus(price.flops_full, price.flops),
        "bytes_upper": None if moved is None else _minus(price.bytes_upper, moved),
    }
    if weights is not None:
        shares = [w for _, w in weights]
        amounts = {name: None if v is None else divide_whole(v, shares)[place] for name, v in amounts.items()}
    moved = _plus(amounts["bytes_read"], amounts["bytes_written"])
    return amounts | {
        "flops_full": _plus(amounts["flops_full"], amounts["flops"]),
        "bytes_upper": _plus(amounts["bytes_upper"], moved),
    }


def _minus(a: int | None, b: int) -> int | None:
    return None if a is None else a - b


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _rate(part: float | None, ns: int) -> float | None:
    return None if part is None or ns == 0 else part / ns


def _per_second(amount: int | None, ns: int) -> float | None:
    return None if amount is None or ns == 0 else amount * 1e9 / ns
