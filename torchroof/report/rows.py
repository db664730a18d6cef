"""Rows: kernels grouped by device, layer, phase, op and precision, with their work and their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from torchroof.device.roof import Ceiling
from torchroof.join.attribute import PHASE_NAMES, SOURCE_TEXTS, Attribution, Phase, Reason, Source
from torchroof.join.columns import group
from torchroof.report.ledger import Ledger
from torchroof.report.model import Row
from torchroof.report.pricing import Price, Prices
from torchroof.report.roofs import Chosen
from torchroof.roofline.place import attainable
from torchroof.roofline.verdict import bound
from torchroof.trace.table import NONE, Int64


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows, and for each kernel which row it is in (NONE: unattributed)."""

    rows: tuple[Row, ...]
    of_kernel: Int64


def build_rows(
    attribution: Attribution, ledger: Ledger, prices: Prices, chosen: Mapping[int, Chosen]
) -> Rows:
    """All rows of a report, in order of device, layer, phase, op and precision."""
    kernels = attribution.kernels
    inside = np.flatnonzero(kernels.reason == Reason.NONE)
    of_kernel = np.full(len(kernels), NONE, dtype=np.int64)
    if not len(inside):
        return Rows((), of_kernel)
    texts: dict[tuple[str | None, str | None], int] = {}
    label_of_price = np.array([texts.setdefault((p.op, p.precision), len(texts)) for p in prices.table])
    label = label_of_price[prices.price[inside]]
    distinct, of_kernel[inside] = group(
        kernels.device[inside], attribution.layer[inside], attribution.phase[inside], label
    )
    sums = _Sums(attribution, ledger, prices, of_kernel, len(distinct))
    labels = list(texts)
    rows = []
    for r, (device, layer, phase, text) in enumerate(distinct.tolist()):
        name = attribution.layers[layer] if layer != NONE else None
        op, precision = labels[text]
        identity = {
            "device": device,
            "path": name.path if name else None,
            "type": name.type if name else None,
            "phase": PHASE_NAMES[Phase(phase)],
            "op": op,
            "precision": precision,
        }
        rows.append(sums.row(r, identity, chosen[device]))
    return Rows(tuple(rows), of_kernel)


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

    def add(self, price: Price, calls: int) -> None:
        self.calls += calls
        for name in ("flops", "flops_full", "bytes_read", "bytes_written", "bytes_upper"):
            value = getattr(price, name)
            if value is not None:
                setattr(self, name, (getattr(self, name) or 0) + value * calls)
        self.modelled |= price.flops is not None or price.bytes_read is not None
        place = price.placement
        if place.floor_ns is not None:
            self.floor_ns = (self.floor_ns or 0.0) + place.floor_ns * calls
            self.compute_ns += (place.compute_ns or 0.0) * calls
            self.memory_ns += (place.memory_ns or 0.0) * calls
            self.compute = self.compute or place.compute
            if place.bandwidth is not None:
                self.bandwidths[place.bandwidth] += calls * (place.memory_ns or 0.0)  # type: ignore[assignment]


class _Sums:
    """Everything that a row adds up, by row number."""

    def __init__(
        self, attribution: Attribution, ledger: Ledger, prices: Prices, of_kernel: Int64, size: int
    ) -> None:
        kernels = attribution.kernels
        inside = of_kernel != NONE
        row = of_kernel[inside]
        self._prices = prices
        self.kernels = np.bincount(row, minlength=size)
        self.kernel_ns = _total(row, kernels.ns[inside], size)
        self.busy_ns = _total(row, ledger.busy_ns[inside], size)
        self.host_ns = _total(row, ledger.host_ns[inside], size)
        price = prices.price[inside]
        self.known_ns = {
            name: _total(row, kernels.ns[inside] * np.array(known, dtype=bool)[price], size)
            for name, known in (
                ("flops", [p.flops is not None for p in prices.table]),
                ("bytes", [p.bytes_read is not None and p.bytes_written is not None for p in prices.table]),
                ("floor", [p.placement.floor_ns is not None for p in prices.table]),
                ("unknown", [p.reason is not None for p in prices.table]),
                ("matrix", [p.matrix for p in prices.table]),
            )
        }
        self.blocks = _total(row, np.maximum(kernels.blocks[inside], 0), size)
        self.gridless = np.bincount(row, weights=kernels.blocks[inside] == NONE, minlength=size)
        self.collective = np.bincount(row, weights=kernels.collective[inside], minlength=size)
        self.per_step = _per_step(attribution, of_kernel, size)
        self.source = _dominant(row, attribution.source[inside], kernels.ns[inside], size, len(Source))
        self.price = _dominant(row, price, kernels.ns[inside], size, len(prices.table))
        self.work = [_Work() for _ in range(size)]
        for r, p, calls in _calls(attribution, prices, of_kernel):
            self.work[r].add(prices.table[p], calls)

    def row(self, r: int, identity: dict[str, object], chosen: Chosen) -> Row:
        """The finished row: sums, and the rates and the verdict that follow from them."""
        work, kernel_ns, busy_ns = self.work[r], int(self.kernel_ns[r]), int(self.busy_ns[r])
        known = {name: int(column[r]) for name, column in self.known_ns.items()}
        host_ns, kernels = int(self.host_ns[r]), int(self.kernels[r])
        floor_ns = None if work.floor_ns is None else round(work.floor_ns)
        efficiency = _rate(work.floor_ns, known["floor"])
        moved = _plus(work.bytes_read, work.bytes_written)
        intensity = work.flops / moved if work.flops is not None and moved else None
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
        kernels = int(self.kernels[r])
        communication = bool(self.collective[r] == kernels)
        return bound(
            modelled=work.modelled or communication,
            communication=communication,
            side=side,
            level=bandwidth.level if bandwidth else None,
            mean_kernel_ns=int(self.kernel_ns[r]) / kernels,
            launch_ns=launch.value * 1e9 if launch else None,
            blocks=None if self.gridless[r] else int(self.blocks[r]) // kernels,
            multiprocessors=chosen.multiprocessors,
            efficiency=efficiency,
        )


def _total(row: Int64, values: Int64, size: int) -> Int64:
    """Exact integer sums by row."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, row, values)
    return sums


def _per_step(attribution: Attribution, of_kernel: Int64, size: int) -> Int64:
    kernels, counted = attribution.kernels, np.flatnonzero(np.array(attribution.steps.counted, dtype=bool))
    sums = np.zeros((size, len(counted)), dtype=np.int64)
    inside = np.flatnonzero(of_kernel != NONE)
    column = np.searchsorted(counted, kernels.step[inside])
    np.add.at(sums, (of_kernel[inside], column), kernels.ns[inside])
    return sums


def _dominant(row: Int64, choice: np.ndarray, ns: Int64, size: int, choices: int) -> Int64:
    """For each row the choice that took the most time; the lowest of equal ones."""
    pairs, number = group(row, choice)
    weight = _total(number, ns, len(pairs))
    best = np.zeros(size, dtype=np.int64)
    order = np.lexsort((-pairs[:, 1], weight, pairs[:, 0]))
    best[pairs[order, 0]] = pairs[order, 1]
    return best


def _calls(attribution: Attribution, prices: Prices, of_kernel: Int64) -> list[tuple[int, int, int]]:
    """(row, price, number of calls): a call belongs to the row of its first-launched kernel."""
    kernels = attribution.kernels
    inside = np.flatnonzero((of_kernel != NONE) & (kernels.op != NONE))
    order = inside[np.lexsort((kernels.start_ns[inside], kernels.launch_ns[inside]))]
    _, first = np.unique(kernels.op[order], return_index=True)
    chosen = order[first]
    pairs, number = group(of_kernel[chosen], prices.price[chosen])
    return [(r, p, n) for (r, p), n in zip(pairs.tolist(), np.bincount(number).tolist(), strict=True)]


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _rate(part: float | None, ns: int) -> float | None:
    return None if part is None or ns == 0 else part / ns


def _per_second(amount: int | None, ns: int) -> float | None:
    return None if amount is None or ns == 0 else amount * 1e9 / ns
