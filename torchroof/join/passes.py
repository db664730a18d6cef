"""How often the counted steps went backward, and how often they stepped an optimizer: micro-steps of accumulation."""

from __future__ import annotations

import numpy as np

from torchroof.join.columns import pick
from torchroof.join.lineage import NameKind, Nest
from torchroof.join.steps import Steps
from torchroof.trace.dialects import OPTIMIZER_STEP
from torchroof.trace.table import NONE, TraceTable


def count_backward(table: TraceTable, nest: Nest, steps: Steps) -> int:
    """Backward passes of the counted steps.

    The engine runs the ready node with the highest sequence number first, and what a node makes ready is older than
    it: within a pass the numbers fall. So a pass begins wherever they do not, on the thread that runs most nodes.
    """
    node = (nest.name_kind >= NameKind.AUTOGRAD_NODE) & (table.host.sequence[nest.span] != NONE)
    inside = pick(nest.owner, nest.parent)
    node &= pick(nest.name_kind, inside, NameKind.OTHER) < NameKind.AUTOGRAD_NODE
    nodes = np.flatnonzero(node & (steps.counted_at(nest.start_ns) != NONE))
    if not len(nodes):
        return 0
    threads = nest.thread[nodes]
    nodes = nodes[threads == np.bincount(threads).argmax()]
    numbers = table.host.sequence[nest.span[nodes[np.argsort(nest.start_ns[nodes], kind="stable")]]]
    return 1 + int((numbers[1:] >= numbers[:-1]).sum())


def count_optimizer_steps(table: TraceTable, nest: Nest, steps: Steps) -> int:
    """Steps of optimizers within the counted steps."""
    names = [i for i, name in enumerate(table.names) if name.startswith(OPTIMIZER_STEP)]
    ranges = (nest.name_kind == NameKind.OPTIMIZER) & np.isin(nest.name, names)
    return int((ranges & (steps.counted_at(nest.start_ns) != NONE)).sum())
