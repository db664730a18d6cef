"""Kernels by name and row, with the grids that they were launched with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from torchroof.join.attribute import PHASE_NAMES, Attribution, Phase, Reason
from torchroof.join.columns import group, pick, total_by
from torchroof.join.kernels import Kernels as JoinedKernels
from torchroof.report.model import Kernel
from torchroof.report.pricing import Prices
from torchroof.report.roofs import Chosen
from torchroof.report.rows import Rows
from torchroof.trace.table import NONE, Int64, TraceTable


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
    grids = _Grids(kernels, here, number, len(keys), chosen)
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
            blocks=grids.blocks(places),
            wave_efficiency=grids.wave_efficiency(places),
        )
        for (name, path, phase, op), places in sums.items()
    ]
    return tuple(sorted(listed, key=lambda k: (-k.kernel_ns, k.name, k.path or "", k.phase or "", k.op or "")))


class _Grids:
    """The grids of the kernels of each group: how many blocks, and how well they fill their waves."""

    def __init__(
        self,
        kernels: JoinedKernels,
        here: NDArray[np.bool_],
        group: Int64,
        groups: int,
        chosen: Mapping[int, Chosen],
    ) -> None:
        blocks, ns, device = kernels.blocks[here], kernels.ns[here], kernels.device[here]
        multiprocessors = np.zeros(len(blocks), dtype=np.int64)
        for index, roof in chosen.items():
            multiprocessors[device == index] = roof.multiprocessors or 0
        known = (blocks > 0) & (multiprocessors > 0)
        places = -(-blocks // np.maximum(multiprocessors, 1)) * multiprocessors
        filled = np.where(known, blocks / np.maximum(places, 1), 0.0)
        self._blocks = total_by(group, np.maximum(blocks, 0), groups)
        self._gridless = np.bincount(group, weights=blocks <= 0, minlength=groups)
        self._unplaced = np.bincount(group, weights=~known, minlength=groups)
        self._ns = total_by(group, ns, groups)
        self._filled_ns = np.bincount(group, weights=ns * filled, minlength=groups)

    def blocks(self, places: list[int]) -> int | None:
        return None if self._gridless[places].any() else int(self._blocks[places].sum())

    def wave_efficiency(self, places: list[int]) -> float | None:
        ns = int(self._ns[places].sum())
        return None if self._unplaced[places].any() or not ns else float(self._filled_ns[places].sum() / ns)
