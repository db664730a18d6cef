"""Work on parameters and gradients that lies in no range of an optimizer: clipping, scaling, averaging."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchroof.join.columns import pick
from torchroof.join.lineage import Nest, Phase
from torchroof.tensors import OpCall, TensorSpec
from torchroof.trace.dialects import parameter_work
from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import NONE, HostKind, TraceTable

Shape = tuple[int, ...]


def works_on_parameters(table: TraceTable, nest: Nest, facts: CaptureFacts | None) -> NDArray[np.bool_]:
    """Which spans lie in an op outside of everything else that works on lists of tensors, each of them of the shape
    of a parameter that some optimizer steps."""
    chosen = np.zeros(len(nest), dtype=bool)
    shapes = {tuple(shape) for optimizer in facts.optimizers for shape in optimizer.shape} if facts else set()
    names = [i for i, name in enumerate(table.names) if parameter_work(name)]
    if not shapes or not names:
        return chosen
    candidates = np.flatnonzero(np.isin(nest.name, names) & (nest.kind == HostKind.OP) & (nest.phase == Phase.OUTSIDE))
    for i in candidates.tolist():
        signature = int(table.host.signature[nest.span[i]])
        chosen[i] = signature != NONE and _lists(table.signatures[signature]) <= shapes
    reached = -1
    while (count := int(chosen.sum())) != reached:
        reached = count
        chosen |= pick(chosen, nest.parent, False)
    return chosen


def _lists(call: OpCall) -> set[Shape]:
    """The shapes in an op's lists of tensors."""
    lists = (operand for operand in call.operands if isinstance(operand, tuple))
    return {tensor.shape for found in lists for tensor in found if isinstance(tensor, TensorSpec) and tensor.shape}
