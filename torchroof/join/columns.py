"""Looking positions up in a column when some of them are NONE, and grouping by several columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.trace.table import NONE, Int64


def pick(column: NDArray[Any], position: NDArray[Any], absent: int = NONE) -> NDArray[Any]:
    """``column[position]``, and ``absent`` where the position is NONE. An empty column has only absent."""
    if not len(column):
        return np.full(len(position), absent, dtype=column.dtype)
    return np.where(position == NONE, absent, column[position]).astype(column.dtype)


def distinct(column: NDArray[Any]) -> NDArray[Any]:
    """The distinct values in ascending order."""
    # Asking for the index, too, spares numpy.unique an import of numpy.ma.
    return np.unique(column, return_index=True)[0]


def group(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows of parallel columns in ascending order, and for each row the number of its group.

    As `numpy.unique` along an axis, which costs an import of `numpy.ma` and compares rows as bytes.
    """
    rows = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
    order = np.lexsort(rows.T[::-1])
    arranged = rows[order]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (arranged[1:] != arranged[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(fresh) - 1
    return arranged[fresh], number


def total_by(group: Int64, values: Int64, groups: int) -> Int64:
    """Exact integer sums of each group."""
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums
