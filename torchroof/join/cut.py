"""Ops that never ran: where checkpointing stops a recomputation early, it cuts the last op of the layer short.

The op has its event, operands and all, but the exception that ends the recomputation comes before its work.
"""

from __future__ import annotations

import numpy as np

from torchroof.join.layers import Layers
from torchroof.join.lineage import NameKind, Nest
from torchroof.trace.dialects import KEEPS_A_TENSOR, saves_its_result
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
            op = _cut_op(table, nest, int(mine[position]))
            if op != NONE:
                found.add(op)
    return frozenset(found)


def _agree(scopes: Int32, columns: CallColumns, layers: Layers) -> bool:
    """Whether the thread's scopes in the trace are the calls that the hooks counted, one by one."""
    return bool(layers.entered[scopes].tolist() == columns.layer)


def _cut_op(table: TraceTable, nest: Nest, scope: int) -> int:
    """The claiming op that was cut at the end of a scope; NONE where the last one has run.

    It has run where it keeps its result (and so could be cut only then), where more ran inside it than the keeping of
    tensors, and where it lies inside an op without a model: a function of the user's own keeps tensors at its end.
    """
    thread_end = int(np.searchsorted(nest.thread, nest.thread[scope], side="right"))
    later = nest.start_ns[scope + 1 : thread_end]
    inside = np.arange(scope + 1, scope + 1 + int(np.searchsorted(later, nest.end_ns[scope], side="right")))
    works = inside[(nest.claim[inside] != NONE) | (nest.name_kind[inside] == NameKind.UNMODELLED)]
    claim = int(nest.claim[works[-1]]) if len(works) else NONE
    if claim == NONE or saves_its_result(table.names[nest.name[claim]]):
        return NONE
    if any(table.names[nest.name[i]] not in KEEPS_A_TENSOR for i in works[works > claim]):
        return NONE
    around = int(nest.parent[claim])
    while around not in (NONE, scope) and nest.kind[around] == HostKind.OP:
        if nest.name_kind[around] == NameKind.UNMODELLED:
            return NONE
        around = int(nest.parent[around])
    return claim
