"""Ops that never ran: where checkpointing stops a recomputation early, it cuts the last op of the layer short.

The op has its event, operands and all, but the exception that ends the recomputation comes before its work.
"""

from __future__ import annotations

import numpy as np

from torchroof.join.layers import Layers
from torchroof.join.lineage import Nest
from torchroof.trace.metadata import CallColumns, CaptureFacts
from torchroof.trace.table import NONE, HostKind, Int32, TraceTable


def find_cut_ops(table: TraceTable, nest: Nest, layers: Layers, facts: CaptureFacts | None) -> frozenset[int]:
    """The claiming ops (positions in the nest) that were cut short."""
    found: set[int] = set()
    ids = {text: i for i, text in enumerate(table.thread_ids)}
    scopes = np.flatnonzero(nest.kind == HostKind.SCOPE).astype(np.int32)
    for columns in facts.calls if facts else ():
        cut = set(columns.cut) & set(columns.recompute)
        thread = ids.get(str(columns.thread))
        if not cut or thread is None:
            continue
        mine = scopes[nest.thread[scopes] == thread]
        if not _agree(mine, columns, layers):
            continue
        for position in cut:
            last = _last_claim(nest, int(mine[position]))
            if last != NONE:
                found.add(last)
    return frozenset(found)


def _agree(scopes: Int32, columns: CallColumns, layers: Layers) -> bool:
    """Whether the thread's scopes in the trace are the calls that the hooks counted, one by one."""
    return bool(layers.entered[scopes].tolist() == columns.layer)


def _last_claim(nest: Nest, scope: int) -> int:
    """The last claiming op inside a scope."""
    thread_end = int(np.searchsorted(nest.thread, nest.thread[scope], side="right"))
    later = nest.start_ns[scope + 1 : thread_end]
    inside = slice(scope + 1, scope + 1 + int(np.searchsorted(later, nest.end_ns[scope], side="right")))
    places = np.flatnonzero(nest.claim[inside] != NONE)
    return int(nest.claim[scope + 1 + places[-1]]) if len(places) else NONE
