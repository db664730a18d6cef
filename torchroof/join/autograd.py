"""Backward to forward: which forward op made an autograd node, and so which layer owns the node's work.

In this order, each link naming its source: the file's forward-backward flows; the sequence number on the
forward thread, of which the last-started forward op counts; the interval of sequence numbers that a layer
call spanned (custom functions, compiled regions). Where the interval is known, a forward op of another layer is not
believed: it carries the number without having made the node. Never the nearest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from torchroof.join.columns import distinct, pick
from torchroof.join.intervals import Intervals
from torchroof.join.layers import Layers
from torchroof.join.lineage import INSIDE_BACKWARD, NameKind, Nest, Phase
from torchroof.trace.metadata import CaptureFacts
from torchroof.trace.table import NONE, Int8, Int32, TraceTable


class Source(IntEnum):
    """Where the link from a kernel to its layer comes from, or why there is none."""

    NONE = 0
    SCOPE = 1
    MODULE = 2
    FLOW = 3
    SEQUENCE = 4
    INTERVAL = 5
    THREAD_UNKNOWN = 6
    NO_FORWARD = 7
    NO_NUMBER = 8
    PARAMETER = 9
    PARAMETER_UNKNOWN = 10
    PARAMETERS_STEPPED = 11


SOURCE_TEXTS = {
    Source.NONE: "no layer scope",
    Source.SCOPE: "layer scope",
    Source.MODULE: "module event",
    Source.FLOW: "fwdbwd flow",
    Source.SEQUENCE: "sequence number",
    Source.INTERVAL: "sequence interval",
    Source.THREAD_UNKNOWN: "forward thread unknown",
    Source.NO_FORWARD: "forward op not in the trace",
    Source.NO_NUMBER: "autograd node without a sequence number",
    Source.PARAMETER: "parameter's gradient",
    Source.PARAMETER_UNKNOWN: "no layer known to own the parameter",
    Source.PARAMETERS_STEPPED: "parameters stepped",
}

_HIGHEST_ORDER = 16
"""Of derivatives of derivatives that are followed back to the forward pass."""


@dataclass(frozen=True, slots=True)
class Links:
    """Per span of the nest; only autograd nodes, and the sums of gradients in them, have entries other than NONE."""

    forward: Int32
    """The forward op (a position in the nest)."""
    call: Int32
    """The layer (an index into the capture's layers) where only the interval of a call told it."""
    source: Int8


@dataclass(slots=True)
class _Threads:
    """The forward threads: trace threads by the number that backward nodes know them by."""

    by_number: dict[int, int]
    only: int | None

    def find(self, number: int) -> int | None:
        return self.by_number.get(number, self.only)


def link_backward(table: TraceTable, nest: Nest, layers: Layers, facts: CaptureFacts | None) -> Links:
    """Link each autograd node to the forward op or the layer call that made it."""
    host = table.host
    forward = np.full(len(nest), NONE, dtype=np.int32)
    call = np.full(len(nest), NONE, dtype=np.int32)
    source = np.zeros(len(nest), dtype=np.int8)
    nodes = np.flatnonzero(nest.name_kind >= NameKind.AUTOGRAD_NODE)
    if not len(nodes):
        return Links(forward, call, source)
    sequence = host.sequence[nest.span]
    forward_thread = host.forward_thread[nest.span]
    by_number = _forward_ops(nest, sequence, forward_thread)
    by_flow, threads = _follow_flows(table, nest, nodes, sequence, forward_thread)
    threads.only = _only_thread(nest, nodes, by_number, forward_thread)
    made_in = Intervals(table, facts)
    layer_of = pick(layers.entered, nest.layer)
    numbers = zip(nodes.tolist(), sequence[nodes].tolist(), forward_thread[nodes].tolist(), strict=True)
    for i, number, thread_number in numbers:
        if number < 0:
            source[i] = Source.NO_NUMBER
            continue
        target, how = by_flow.get((number, thread_number)), Source.FLOW
        thread = threads.find(thread_number) if target is None else int(nest.thread[target])
        if thread is None:
            source[i] = Source.THREAD_UNKNOWN
            continue
        if target is None:
            target, how = by_number.get((number, thread)), Source.SEQUENCE
        layer = made_in.find(thread, number)
        # An op that made no node carries the number of the next node, which may be another layer's.
        if target is not None and layer in (None, int(layer_of[target])):
            forward[i], source[i] = target, how
        elif layer is not None and layer != NONE:
            call[i], source[i] = layer, Source.INTERVAL
        else:
            source[i] = Source.NO_FORWARD
    sums = np.flatnonzero(nest.is_node & (nest.name_kind < NameKind.AUTOGRAD_NODE))
    for column in (forward, call, source):
        column[sums] = column[nest.parent[sums]]
    return Links(forward, call, source)


def layers_of_nodes(nest: Nest, layers: Layers, links: Links) -> Int32:
    """The layer (an index) of each autograd node, NONE for every other span.

    A node that was made inside another one (double backward) belongs where that one belongs.
    """
    is_node = nest.is_node
    first = np.where(is_node, np.arange(len(nest)), NONE)
    for _ in range(_HIGHEST_ORDER):
        around = pick(nest.owner, pick(links.forward, first))
        inside = pick(is_node, around, False)
        if not inside.any():
            break
        first = np.where(inside, around, first)
    through = pick(layers.entered, pick(nest.layer, pick(links.forward, first)))
    return np.where(through != NONE, through, pick(links.call, first)).astype(np.int32)


def _forward_ops(nest: Nest, sequence: np.ndarray, forward_thread: np.ndarray) -> dict[tuple[int, int], int]:
    """The last-started forward op by (sequence number, thread): spans are sorted by start within a thread."""
    candidates = np.flatnonzero((sequence >= 0) & (forward_thread <= 0) & (nest.name_kind < NameKind.AUTOGRAD_NODE))
    return {
        (number, thread): i
        for i, number, thread in zip(
            candidates.tolist(), sequence[candidates].tolist(), nest.thread[candidates].tolist(), strict=True
        )
    }


def _only_thread(
    nest: Nest, nodes: np.ndarray, by_number: dict[tuple[int, int], int], forward_thread: np.ndarray
) -> int | None:
    """The one thread with forward ops. Where all nodes were made on one thread, recomputation on others is no matter:
    it lies inside nodes."""
    threads = {thread for _, thread in by_number}
    if len(threads) > 1 and len(distinct(forward_thread[nodes][forward_thread[nodes] > 0])) == 1:
        in_node = pick(nest.phase, nest.parent, Phase.OUTSIDE)
        threads = {thread for (_, thread), i in by_number.items() if in_node[i] not in INSIDE_BACKWARD}
    return threads.pop() if len(threads) == 1 else None


def _by_moment(nest: Nest, positions: np.ndarray) -> dict[tuple[int, int], int]:
    """Positions by thread and start; where several start together, the last of those given."""
    moments = zip(nest.thread[positions].tolist(), nest.start_ns[positions].tolist(), strict=True)
    return dict(zip(moments, positions.tolist(), strict=True))


def _follow_flows(
    table: TraceTable, nest: Nest, nodes: np.ndarray, sequence: np.ndarray, forward_thread: np.ndarray
) -> tuple[dict[tuple[int, int], int], _Threads]:
    flows = table.flows
    if not len(flows.from_ns):
        return {}, _Threads({}, None)
    starts = _by_moment(nest, np.flatnonzero(np.isin(nest.start_ns, flows.from_ns)))
    node_at = _by_moment(nest, nodes[::-1])  # of an engine's event and the node in it the engine's
    targets: dict[tuple[int, int], int] = {}
    votes: dict[int, Counter[int]] = {}
    columns = (flows.from_thread, flows.from_ns, flows.to_thread, flows.to_ns)
    for from_thread, from_ns, to_thread, to_ns in zip(*(c.tolist() for c in columns), strict=True):
        node, origin = node_at.get((to_thread, to_ns)), starts.get((from_thread, from_ns))
        if node is None or origin is None or sequence[node] < 0:
            continue
        key = (int(sequence[node]), int(forward_thread[node]))
        targets[key] = origin
        votes.setdefault(key[1], Counter())[from_thread] += 1
    return targets, _Threads({number: count.most_common(1)[0][0] for number, count in votes.items()}, None)
