"""Kernels by name and row, with the grids that they were launched with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.join.attribute import PHASE_NAMES, Attribution, Phase, Reason
from torchroof.join.columns import group, pick, total_by
from torchroof.join.kernels import Kernels as JoinedKernels
from torchroof.report.model import Kernel
from torchroof.report.pricing import Prices
from torchroof.report.roofs import Chosen
from torchroof.report.rows import Rows
from torchroof.trace.table import NONE, Int32, Int64, TraceTable


def list_kernels(
    table: TraceTable, attribution: Attribution, prices: Prices, rows: Rows, chosen: Mapping[int, Chosen]
) -> tuple[Kernel, ...]:
    """Kernels of the counted steps by name and row, largest first; those in no row have neither layer nor phase nor
    op, but for graph replays, which keep the layer and the op, or else the range, that was around the launch."""
    kernels, nest = attribution.kernels, attribution.nest
    here = kernels.reason != Reason.OUTSIDE_STEPS
    replay = kernels.reason == Reason.GRAPH_REPLAY
    labelled = (rows.of_kernel != NONE) | replay
    op_name = np.where(rows.of_kernel != NONE, prices.price, NONE)
    around = np.where(kernels.op != NONE, kernels.op, kernels.anchor)
    op_name = np.where(replay & (around != NONE), -2 - pick(nest.name, around), op_name)
    layer, phase = (np.where(labelled, column, NONE) for column in (attribution.layer, attribution.phase))
    keys, number = group(*(column[here] for column in (kernels.name, layer, phase, op_name)))
    counts = np.bincount(number, minlength=len(keys)).tolist()
    spent = total_by(number, kernels.ns[here], len(keys)).tolist()
    grids = _Grids(table, kernels, here, number, len(keys), chosen)
    sums: dict[tuple[str, str | None, str | None, str | None], list[int]] = {}
    for place, (name, at, when, price) in enumerate(keys.tolist()):
        key = (
            table.names[name],
            attribution.layers[at].path if at != NONE else None,
            PHASE_NAMES[Phase(when)] if when != NONE else None,
            prices.table[price].op if price >= 0 else table.names[-2 - price] if price < NONE else None,
        )
        sums.setdefault(key, []).append(place)
    listed = [
        Kernel(
            name=name,
            path=path,
            phase=phase,
            op=op,
            kernels=sum(counts[place] for place in places),
            kernel_ns=sum(spent[place] for place in places),
            **grids.of(places),
        )
        for (name, path, phase, op), places in sums.items()
    ]
    return tuple(sorted(listed, key=lambda k: (-k.kernel_ns, k.name, k.path or "", k.phase or "", k.op or "")))


class _Grids:
    """The grids of the kernels of each group: how many blocks, how many waves they make, and how full these are."""

    def __init__(
        self,
        table: TraceTable,
        kernels: JoinedKernels,
        here: NDArray[np.bool_],
        group: Int64,
        groups: int,
        chosen: Mapping[int, Chosen],
    ) -> None:
        blocks, ns = kernels.blocks[here], kernels.ns[here]
        resident, at_a_time = _places(table, kernels.span[here], kernels.device[here], chosen)
        waves = np.where(blocks > 0, blocks, 0) / np.maximum(at_a_time, 1)
        filled = waves / np.maximum(np.ceil(waves), 1)
        self._count = np.bincount(group, minlength=groups)
        self._blocks = total_by(group, np.maximum(blocks, 0), groups)
        self._gridless = np.bincount(group, weights=blocks <= 0, minlength=groups)
        self._unplaced = np.bincount(group, weights=(blocks <= 0) | (at_a_time <= 0), minlength=groups)
        self._ns = total_by(group, ns, groups)
        self._waves = np.bincount(group, weights=waves, minlength=groups)
        self._filled_ns = np.bincount(group, weights=ns * filled, minlength=groups)
        self._least, self._most = np.full(groups, np.iinfo(np.int64).max), np.zeros(groups, dtype=np.int64)
        np.minimum.at(self._least, group, resident)
        np.maximum.at(self._most, group, resident)

    def of(self, places: list[int]) -> dict[str, Any]:
        """The fields of `Kernel` for some groups together."""
        count, ns = int(self._count[places].sum()), int(self._ns[places].sum())
        placed = not self._unplaced[places].any()
        least, most = int(self._least[places].min()), int(self._most[places].max())
        return {
            "blocks": None if self._gridless[places].any() else int(self._blocks[places].sum()),
            "resident_blocks": most if placed and least == most else None,
            "waves": float(self._waves[places].sum() / count) if placed else None,
            "wave_efficiency": float(self._filled_ns[places].sum() / ns) if placed and ns else None,
        }


def _places(table: TraceTable, span: Int32, device: Int32, chosen: Mapping[int, Chosen]) -> tuple[Int64, Int64]:
    """Blocks of each kernel that one multiprocessor, and that the device, hold at a time; 0 where it is unknown."""
    spans = table.device
    resident, multiprocessors = np.zeros((2, len(span)), dtype=np.int64)
    for index, one in chosen.items():
        mine = np.flatnonzero((device == index) & (span != NONE))
        if one.multiprocessor is not None and one.multiprocessors and len(mine):
            at = span[mine]
            resident[mine] = one.multiprocessor.resident(
                spans.threads[at], spans.registers[at], spans.shared_memory[at]
            )
            multiprocessors[mine] = one.multiprocessors
    return resident, resident * multiprocessors
