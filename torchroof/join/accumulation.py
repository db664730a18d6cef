"""AccumulateGrad to the layer whose parameter it serves.

The node has no sequence number. The engine runs it as soon as its gradient is complete, on the thread of the
node that completed it, so that node's layer is the candidate; it is believed only where the capture says that
this layer owns a parameter of the gradient's shape. Else the one layer that owns such a parameter has it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from torchroof.join.autograd import Links, Source
from torchroof.join.columns import pick
from torchroof.join.layers import Layers
from torchroof.join.lineage import NameKind, Nest
from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import NONE, TraceTable

Shape = tuple[int, ...]


def link_accumulation(table: TraceTable, nest: Nest, layers: Layers, links: Links, facts: CaptureFacts | None) -> Links:
    """The links with AccumulateGrad nodes added: their layer is in ``call``."""
    nodes = np.flatnonzero(nest.name_kind >= NameKind.AUTOGRAD_NODE)
    if not (nest.name_kind[nodes] == NameKind.ACCUMULATE_GRAD).any():
        return links
    owners = _owners_of_shapes(facts)
    layer_of = pick(layers.entered, pick(nest.layer, links.forward))
    layer_of = np.where(layer_of != NONE, layer_of, links.call)
    call, source = links.call.copy(), links.source.copy()
    producer: dict[int, int] = {}
    for i in nodes.tolist():
        thread = int(nest.thread[i])
        if nest.name_kind[i] != NameKind.ACCUMULATE_GRAD:
            producer[thread] = int(layer_of[i])
            continue
        holders = owners.get(_gradient_shape(table, nest, i) or (NONE,), frozenset())
        candidate = producer.get(thread, NONE)
        if candidate in holders:
            call[i], source[i] = candidate, Source.PARAMETER
        elif len(holders) == 1:
            call[i], source[i] = next(iter(holders)), Source.PARAMETER
        else:
            source[i] = Source.PARAMETER_UNKNOWN
    return replace(links, call=call, source=source)


def _owners_of_shapes(facts: CaptureFacts | None) -> dict[Shape, frozenset[int]]:
    """The layers (by index) that hold a parameter of a shape."""
    found: dict[Shape, set[int]] = defaultdict(set)
    for index, layer in enumerate(facts.layers if facts else ()):
        for parameter in layer.parameters:
            found[parameter.shape].add(index)
    return {shape: frozenset(holders) for shape, holders in found.items()}


def _gradient_shape(table: TraceTable, nest: Nest, node: int) -> Shape | None:
    """The shape of the gradient: the first operand of the node, which the engine's event around it encloses."""
    for i in (node, node + 1):
        inside = i == node or (i < len(nest) and nest.parent[i] == node)
        signature = int(table.host.signature[nest.span[i]]) if inside else NONE
        tensors = table.signatures[signature].tensors() if signature != NONE else ()
        if tensors:
            return tensors[0].shape
    return None
