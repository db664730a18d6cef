"""What each host span inherits from the spans around it: who claims it, its layer scope, its phase.

Whatever is inherited comes from the nearest span of some kind at or around the span.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchroof.join.columns import pick
from torchroof.join.nesting import nearest, nest
from torchroof.tensors import Role
from torchroof.trace.dialects import (
    ACCUMULATE_GRAD,
    EVALUATE_PREFIX,
    GRADIENT_SUMS,
    is_autograd_wrapper,
    is_dataloader_next,
    is_optimizer,
)
from torchroof.trace.table import NONE, HostKind, Int8, Int32, Int64, TraceTable


class Phase(IntEnum):
    OUTSIDE = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    DATA = 4
    RECOMPUTE = 5
    GRAD_ACCUMULATE = 6


PHASE_NAMES = {
    Phase.OUTSIDE: "outside",
    Phase.FORWARD: "forward",
    Phase.BACKWARD: "backward",
    Phase.OPTIMIZER: "optimizer",
    Phase.DATA: "data",
    Phase.RECOMPUTE: "recompute",
    Phase.GRAD_ACCUMULATE: "grad_accumulate",
}


class NameKind(IntEnum):
    """What a name is, decided once per distinct name."""

    MODELLED = 0
    FALLS_THROUGH = 1
    FREE = 2
    UNMODELLED = 3
    OPTIMIZER = 4
    DATA = 5
    OTHER = 6
    AUTOGRAD_NODE = 7
    """A node of the autograd graph. From here on all kinds are nodes."""
    EVALUATION = 8
    """The engine's event around a node, which also sums gradients."""
    ACCUMULATE_GRAD = 9
    """The node that adds to a parameter's gradient, and the engine's event around it."""


_ROLES = {
    Role.MODELLED: NameKind.MODELLED,
    Role.FALLS_THROUGH: NameKind.FALLS_THROUGH,
    Role.FREE: NameKind.FREE,
    Role.UNMODELLED: NameKind.UNMODELLED,
}


@dataclass(frozen=True, slots=True)
class Nest:
    """The host spans that can enclose others (all but launches), with what they inherit.

    Every column has one entry per span; positions refer to this table, `span` to the trace's host table.
    """

    span: Int32
    start_ns: Int64
    end_ns: Int64
    thread: Int32
    name: Int32
    kind: Int8
    name_kind: Int8
    parent: Int32
    claim: Int32
    """The outermost modelled op at or around the span."""
    op: Int32
    """The innermost op at or around the span."""
    layer: Int32
    """The innermost layer scope at or around the span."""
    owner: Int32
    """The innermost of layer scope, autograd node and sum of gradients at or around the span: it decides the layer."""
    phase: Int8

    @property
    def is_node(self) -> NDArray[np.bool_]:
        """Which spans have their layer by a link: autograd nodes, and the engine's sums of gradients around them."""
        return np.asarray((self.owner == np.arange(len(self))) & (self.kind == HostKind.OP))

    def __len__(self) -> int:
        return len(self.span)


def name_kinds(table: TraceTable, role: Callable[[str], Role]) -> list[tuple[int, int]]:
    """Per distinct name: what it is as an op and what it is as an annotation."""
    kinds = []
    for name in table.names:
        as_op = _node_kind(name) if is_autograd_wrapper(name) else _ROLES[role(name)]
        as_annotation = NameKind.OTHER
        if is_dataloader_next(name):
            as_annotation = NameKind.DATA
        elif is_optimizer(name):
            as_annotation = NameKind.OPTIMIZER
        kinds.append((int(as_op), int(as_annotation)))
    return kinds


def _node_kind(name: str) -> NameKind:
    if name.endswith(ACCUMULATE_GRAD):
        return NameKind.ACCUMULATE_GRAD
    return NameKind.EVALUATION if name.startswith(EVALUATE_PREFIX) else NameKind.AUTOGRAD_NODE


def trace_lineage(table: TraceTable, role: Callable[[str], Role]) -> Nest:
    """Nest the host spans and hand down claims, layers and phases. ``role`` tells what an op's name is."""
    host = table.host
    spans = np.flatnonzero(host.kind != HostKind.LAUNCH).astype(np.int32)
    start, end, thread = host.start_ns[spans], host.end_ns[spans], host.thread[spans]
    name, kind = host.name[spans], host.kind[spans]
    kinds = np.array(name_kinds(table, role), dtype=np.int8).reshape(-1, 2)
    name_kind = np.full(len(spans), NameKind.OTHER, dtype=np.int8)
    ops, annotations = kind == HostKind.OP, kind == HostKind.ANNOTATION
    name_kind[ops] = kinds[name[ops], 0]
    name_kind[annotations] = kinds[name[annotations], 1]
    named = name_kind >= NameKind.AUTOGRAD_NODE
    name_kind[ops & ~named & (host.forward_thread[spans] > 0)] = NameKind.AUTOGRAD_NODE
    parent = nest(start, end, thread)
    _pass_on(name, name_kind, parent)
    scoped = bool((kind == HostKind.SCOPE).any())
    scope_kind = HostKind.SCOPE if scoped else HostKind.MODULE
    sums = ops & np.isin(name, [i for i, text in enumerate(table.names) if text in GRADIENT_SUMS])
    sums &= pick(name_kind, parent, NameKind.OTHER) == NameKind.EVALUATION
    columns = inherit(parent, name_kind, ops, kind == scope_kind, sums)
    return Nest(spans, start, end, thread, name, kind, name_kind, parent, *columns)


def _pass_on(name: Int32, name_kind: Int8, parent: Int32) -> None:
    """A modelled op that calls itself only passes on: autocast casts the operands and calls the op again with
    those that it really works on."""
    again = np.flatnonzero((parent != NONE) & (name_kind == NameKind.MODELLED))
    outer = parent[again]
    name_kind[outer[(name[outer] == name[again]) & (name_kind[outer] == NameKind.MODELLED)]] = NameKind.FALLS_THROUGH


INSIDE_BACKWARD = (int(Phase.BACKWARD), int(Phase.RECOMPUTE), int(Phase.GRAD_ACCUMULATE))
"""A layer entered in one of these runs its forward pass again."""
_SET_PHASE = {
    NameKind.OPTIMIZER: Phase.OPTIMIZER,
    NameKind.DATA: Phase.DATA,
    NameKind.AUTOGRAD_NODE: Phase.BACKWARD,
    NameKind.EVALUATION: Phase.BACKWARD,
    NameKind.ACCUMULATE_GRAD: Phase.GRAD_ACCUMULATE,
}
_PHASES = np.array([_SET_PHASE.get(kind, Phase.OUTSIDE) for kind in NameKind], dtype=np.int8)


def inherit(
    parent: Int32,
    name_kind: Int8,
    is_op: NDArray[np.bool_],
    is_scope: NDArray[np.bool_],
    is_sum: NDArray[np.bool_],
) -> tuple[Int32, Int32, Int32, Int32, Int8]:
    """Claim, op, layer, owner and phase of each span, as `Nest` has them. ``is_sum``: the engine's sums of
    gradients."""
    is_node = is_sum | (is_op & (name_kind >= NameKind.AUTOGRAD_NODE))
    is_modelled = is_op & (name_kind == NameKind.MODELLED)
    inside_modelled = pick(nearest(parent, is_modelled), parent) != NONE
    layer = nearest(parent, is_scope)
    set_to = np.where(is_sum, Phase.GRAD_ACCUMULATE, _PHASES[name_kind])
    setter = nearest(parent, ~is_scope & (set_to != Phase.OUTSIDE))
    phase = pick(set_to, setter, Phase.OUTSIDE)
    entered = np.where(np.isin(phase, INSIDE_BACKWARD), Phase.RECOMPUTE, Phase.FORWARD)
    phase = np.where(layer > setter, entered, phase)
    return (
        nearest(parent, is_modelled & ~inside_modelled),
        nearest(parent, is_op),
        layer,
        nearest(parent, is_scope | is_node),
        phase.astype(np.int8),
    )
