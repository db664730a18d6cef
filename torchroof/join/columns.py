"""Looking positions up in a column when some of them are NONE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchroof.trace.table import NONE


def pick(column: NDArray[Any], position: NDArray[Any], absent: int = NONE) -> NDArray[Any]:
    """``column[position]``, and ``absent`` where the position is NONE. An empty column has only absent."""
    if not len(column):
        return np.full(len(position), absent, dtype=column.dtype)
    return np.where(position == NONE, absent, column[position]).astype(column.dtype)
