"""Kernels as rows count them: whole, or divided among the layers that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchroof.join.attribute import Attribution, Reason, Source
from torchroof.report.ledger import Ledger
from torchroof.report.sharing import Shares, Weights, divide_whole
from torchroof.trace.table import NONE, Int8, Int64


@dataclass(frozen=True, slots=True)
class Parts:
    """One entry per kernel and layer. The parts of a kernel add up to it in every column."""

    kernel: Int64
    layer: Int64
    source: Int8
    ns: Int64
    busy_ns: Int64
    host_ns: Int64
    primary: NDArray[np.bool_]
    """The part that the kernel is counted with: the largest."""
    weights: Int64
    """Index into ``weightings`` for parts of shared kernels, NONE for whole ones."""
    place: Int64
    """Which of the weights is the part's own."""
    weightings: tuple[Weights, ...]

    def __len__(self) -> int:
        return len(self.kernel)


def divide_kernels(attribution: Attribution, ledger: Ledger, shares: Shares) -> Parts:
    """The parts of all kernels that are in a row."""
    kernels = attribution.kernels
    inside = np.flatnonzero(kernels.reason == Reason.NONE)
    shared = np.isin(kernels.op[inside], list(shares.weights)) if shares.weights else np.zeros(len(inside), dtype=bool)
    whole, split = inside[~shared], inside[shared]
    numbers: dict[Weights, int] = {}
    columns: list[list[int]] = [[] for _ in range(7)]
    for k in split.tolist():
        weights = shares.weights[int(kernels.op[k])]
        number = numbers.setdefault(weights, len(numbers))
        values = [w for _, w in weights]
        primary = values.index(max(values))
        ns, busy, host = int(kernels.ns[k]), int(ledger.busy_ns[k]), int(ledger.host_ns[k])
        # Busy and hidden time are divided each, so that no part is busier than it is long.
        divided = [divide_whole(amount, values) for amount in (busy, ns - busy, host)]
        for place, (layer, _) in enumerate(weights):
            busy_part, hidden_part, host_part = (d[place] for d in divided)
            numbered = number if place == primary else -2 - number
            row = (k, layer, busy_part + hidden_part, busy_part, host_part, numbered, place)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return _assemble(attribution, ledger, whole, columns, tuple(numbers))


def _assemble(
    attribution: Attribution,
    ledger: Ledger,
    whole: NDArray[np.int64],
    columns: Sequence[list[int]],
    weightings: tuple[Weights, ...],
) -> Parts:
    kernel, layer, ns, busy, host, number, place = (np.array(c, dtype=np.int64) for c in columns)
    join = np.concatenate
    size = len(whole)
    return Parts(
        kernel=join((whole, kernel)),
        layer=join((attribution.layer[whole].astype(np.int64), layer)),
        source=join((attribution.source[whole], np.full(len(kernel), Source.PARAMETERS_STEPPED, dtype=np.int8))),
        ns=join((attribution.kernels.ns[whole], ns)),
        busy_ns=join((ledger.busy_ns[whole], busy)),
        host_ns=join((ledger.host_ns[whole], host)),
        primary=join((np.ones(size, dtype=bool), number >= 0)),
        weights=join((np.full(size, NONE, dtype=np.int64), np.where(number >= 0, number, -2 - number))),
        place=join((np.zeros(size, dtype=np.int64), place)),
        weightings=weightings,
    )
