"""AccumulateGrad to the layer whose parameter it serves.

The node has no sequence number. The engine runs it as soon as its gradient is complete, on the thread of the
node that completed it, so that node's layer is the candidate; it is believed only where the capture says that
this layer owns a parameter of the gradient's shape. Else the one layer that owns such a parameter has it.
What the node before summed to complete that gradient goes where the gradient goes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from torchroof.join.autograd import Links, Source, layers_of_nodes
from torchroof.join.layers import Layers
from torchroof.join.lineage import NameKind, Nest
from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import NONE, TraceTable

Shape = tuple[int, ...]


def link_accumulation(table: TraceTable, nest: Nest, layers: Layers, links: Links, facts: CaptureFacts | None) -> Links:
    """The links with AccumulateGrad nodes added: their layer is in ``call``."""
    nodes = np.flatnonzero(nest.name_kind >= NameKind.AUTOGRAD_NODE)
    is_one = nest.name_kind[nodes] == NameKind.ACCUMULATE_GRAD
    if not is_one.any():
        return links
    owners = _owners_of_shapes(facts)
    if not owners:
        source = links.source.copy()
        source[nodes[is_one]] = Source.PARAMETER_UNKNOWN
        return replace(links, source=source)
    layer_of = layers_of_nodes(nest, layers, links)
    forward, call, source = links.forward.copy(), links.call.copy(), links.source.copy()
    before: dict[int, int] = {}
    columns = (nodes, nest.thread[nodes], nest.parent[nodes], is_one)
    for i, thread, around, accumulates in zip(*(column.tolist() for column in columns), strict=True):
        if not accumulates:
            before[thread] = around if around != NONE and nest.name_kind[around] == NameKind.EVALUATION else i
            continue
        shape = _gradient_shape(table, nest, i)
        node = before.get(thread, NONE)
        maker = int(layer_of[node]) if node != NONE else NONE
        owner = _owner(maker, owners.get(shape, frozenset()) if shape is not None else frozenset())
        call[i], source[i] = owner, Source.PARAMETER_UNKNOWN if owner == NONE else Source.PARAMETER
        if node != NONE and owner not in (NONE, maker):
            for j in _sums_of(table, nest, node, shape):
                forward[j], call[j], source[j] = NONE, owner, Source.PARAMETER
    return Links(forward, call, source)


def _owner(maker: int, holders: frozenset[int]) -> int:
    """Who of those that hold such a parameter has the gradient: its maker, else the only one, else nobody."""
    if maker in holders:
        return maker
    return next(iter(holders)) if len(holders) == 1 else NONE


def _sums_of(table: TraceTable, nest: Nest, node: int, shape: Shape | None) -> list[int]:
    """The sums that the engine made, after a node, of gradients of a shape."""
    end = int(np.searchsorted(nest.thread, nest.thread[node], side="right"))
    end = node + 1 + int(np.searchsorted(nest.start_ns[node + 1 : end], nest.end_ns[node], side="right"))
    inside = np.arange(node + 1, end)
    sums = inside[nest.is_node[inside] & (nest.name_kind[inside] < NameKind.AUTOGRAD_NODE)]
    return [i for i in sums[nest.parent[sums] == node].tolist() if _shape(table, nest, i) == shape]


def _owners_of_shapes(facts: CaptureFacts | None) -> dict[Shape, frozenset[int]]:
    """The layers (by index) that hold a parameter of a shape."""
    found: dict[Shape, set[int]] = defaultdict(set)
    for index, layer in enumerate(facts.layers if facts else ()):
        for parameter in layer.parameters:
            found[parameter.shape].add(index)
    return {shape: frozenset(holders) for shape, holders in found.items()}


def _gradient_shape(table: TraceTable, nest: Nest, node: int) -> Shape | None:
    """The shape of the gradient: the first operand of the node, which the engine's event around it encloses."""
    shape = _shape(table, nest, node)
    if shape is None and node + 1 < len(nest) and nest.parent[node + 1] == node:
        return _shape(table, nest, node + 1)
    return shape


def _shape(table: TraceTable, nest: Nest, span: int) -> Shape | None:
    """The shape of a span's first tensor."""
    signature = int(table.host.signature[nest.span[span]])
    tensors = table.signatures[signature].tensors() if signature != NONE else ()
    return tensors[0].shape if tensors else None
