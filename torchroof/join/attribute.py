"""Attribution: every kernel and copy of a trace with its op, layer, phase and step, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from torchroof.join.accumulation import link_accumulation
from torchroof.join.autograd import SOURCE_TEXTS, Links, Source, layers_of_nodes, link_backward
from torchroof.join.clocks import with_starts
from torchroof.join.columns import distinct, pick
from torchroof.join.cpu import join_cpu_kernels
from torchroof.join.cut import find_cut_ops
from torchroof.join.kernels import REASON_TEXTS, Kernels, Reason
from torchroof.join.launches import anchors_of, join_kernels, launch_of_device_spans
from torchroof.join.layers import LayerName, Layers, find_layers
from torchroof.join.lineage import PHASE_NAMES, NameKind, Nest, Phase, trace_lineage
from torchroof.join.parameters import works_on_parameters
from torchroof.join.passes import count_backward, count_optimizer_steps
from torchroof.join.steady import drop_unsettled
from torchroof.join.steps import Steps, find_steps
from torchroof.tensors import Role
from torchroof.trace.metadata import CaptureFacts, capture_facts
from torchroof.trace.table import NONE, DeviceKind, HostKind, Int8, Int32, Int64, Note, TraceTable

__all__ = [
    "PHASE_NAMES",
    "REASON_TEXTS",
    "SOURCE_TEXTS",
    "Attribution",
    "Copies",
    "Kernels",
    "LayerName",
    "Nest",
    "Phase",
    "Reason",
    "RunKind",
    "Source",
    "Steps",
    "attribute",
]


class RunKind(Enum):
    DEVICE = "device"
    """Kernels of a device are in the file."""
    CPU = "cpu"
    """Neither device events nor launches: the ops are the kernels."""
    LOST = "lost"
    """Launches without kernels: the device's activity was lost, and nothing can be said of it."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies and memsets of devices. ``launch_ns`` is the copy's own start where no launch is known."""

    name: Int32
    device: Int32
    stream: Int64
    start_ns: Int64
    end_ns: Int64
    bytes: Int64
    step: Int32
    layer: Int32
    phase: Int8
    launch_ns: Int64
    launch_thread: Int32


@dataclass(frozen=True)
class Attribution:
    """The join's result. ``layer``, ``phase`` and ``source`` have one entry per kernel."""

    run: RunKind
    nest: Nest
    links: Links
    steps: Steps
    layers: tuple[LayerName, ...]
    layer_calls: tuple[int, ...]
    """Calls of each layer in the counted steps."""
    backward_passes: int
    optimizer_steps: int
    """In the counted steps."""
    kernels: Kernels
    layer: Int32
    phase: Int8
    source: Int8
    copies: Copies
    cut_ops: frozenset[int]
    """Ops (positions in the nest) that have events but never ran."""
    facts: CaptureFacts | None
    notes: tuple[Note, ...]


def attribute(table: TraceTable, role: Callable[[str], Role]) -> Attribution:
    """Join a trace. ``role`` says what an op's name is to the accounting: a registry's `role`."""
    facts = capture_facts(table.metadata)
    nest = trace_lineage(table, role)
    layers = find_layers(table, nest, facts)
    links = link_accumulation(table, nest, layers, link_backward(table, nest, layers, facts), facts)
    run = _run_kind(table)
    launch = launch_of_device_spans(table)
    table, early = with_starts(table, launch)
    steps = find_steps(table, nest, facts)
    unsettled: tuple[Note, ...] = ()
    if facts is not None:
        steps, unsettled = drop_unsettled(table, nest, steps, launch)
    anchor = anchors_of(table, nest, launch)
    if run is RunKind.CPU:
        kernels = join_cpu_kernels(nest, steps)
    else:
        kernels = join_kernels(table, nest, steps, launch, anchor)
    owners = _Owners(nest, layers, links, works_on_parameters(table, nest, facts))
    # Work is charged where its op is, so the op's kernels are there, too: they never part.
    known = np.isin(pick(nest.name_kind, kernels.op, NameKind.OTHER), (NameKind.MODELLED, NameKind.FALLS_THROUGH))
    place = np.where(known, kernels.op, kernels.anchor)
    layer, source = owners.layers_at(place)
    return Attribution(
        run=run,
        nest=nest,
        links=links,
        steps=steps,
        layers=layers.names,
        layer_calls=_calls(nest, layers, steps),
        backward_passes=count_backward(table, nest, steps),
        optimizer_steps=count_optimizer_steps(table, nest, steps),
        kernels=kernels,
        layer=layer,
        phase=owners.phases_at(place),
        source=source,
        copies=_copies(table, steps, launch, anchor, owners),
        # On a device an op that was cut launched nothing, and so has no kernel.
        cut_ops=find_cut_ops(table, nest, layers, facts) if run is RunKind.CPU else frozenset(),
        facts=facts,
        notes=(*_notes(table, run), *early, *unsettled),
    )


def _run_kind(table: TraceTable) -> RunKind:
    if (table.device.kind == DeviceKind.KERNEL).any():
        return RunKind.DEVICE
    launches = (table.host.kind == HostKind.LAUNCH).any()
    return RunKind.LOST if launches or len(table.device) else RunKind.CPU


class _Owners:
    """Layer, phase and source of any span of the nest, worked out once per span."""

    def __init__(self, nest: Nest, layers: Layers, links: Links, on_parameters: NDArray[np.bool_]) -> None:
        owner = nest.owner
        is_node = pick(nest.is_node, owner, False)
        by_node = pick(layers_of_nodes(nest, layers, links), owner)
        self._layer = np.where(is_node, by_node, pick(layers.entered, owner)).astype(np.int32)
        scoped = bool((nest.kind == HostKind.SCOPE).any())
        scope_source = np.where(owner == NONE, Source.NONE, Source.SCOPE if scoped else Source.MODULE)
        self._source = np.where(is_node, pick(links.source, owner, Source.NONE), scope_source).astype(np.int8)
        self._phase = _phases(nest, links, layered=bool(layers.names))
        self._phase[on_parameters & (self._phase == Phase.OUTSIDE)] = Phase.OPTIMIZER

    def layers_at(self, position: Int32) -> tuple[Int32, Int8]:
        return pick(self._layer, position), pick(self._source, position, Source.NONE)

    def phases_at(self, position: Int32) -> Int8:
        return pick(self._phase, position, Phase.OUTSIDE)


def _phases(nest: Nest, links: Links, layered: bool) -> Int8:
    """Phases, with forward for what autograd proves to be forward, and for all the rest of a file without layers."""
    phase = nest.phase.copy()
    if not layered:
        phase[phase == Phase.OUTSIDE] = Phase.FORWARD
        return phase
    partners = distinct(links.forward[links.forward != NONE])
    claims = nest.claim[partners]
    made = np.zeros(len(nest), dtype=bool)
    made[partners] = True
    made[claims[claims != NONE]] = True
    is_op, reached = nest.kind == HostKind.OP, -1
    while (count := int(made.sum())) != reached:
        # An op inside a forward op is forward too.
        reached = count
        made |= is_op & pick(made, nest.parent, False)
    # A closure's loss lies in its optimizer's range.
    phase[made & ((phase == Phase.OUTSIDE) | (phase == Phase.OPTIMIZER))] = Phase.FORWARD
    return phase


def _calls(nest: Nest, layers: Layers, steps: Steps) -> tuple[int, ...]:
    entries = np.flatnonzero(layers.entered != NONE)
    entries = entries[steps.counted_at(nest.start_ns[entries]) != NONE]
    return tuple(np.bincount(layers.entered[entries], minlength=len(layers.names)).tolist())


def _copies(table: TraceTable, steps: Steps, launch: Int32, anchor: Int32, owners: _Owners) -> Copies:
    rows = np.flatnonzero(table.device.kind != DeviceKind.KERNEL)
    device = table.device
    launch, anchor = launch[rows], anchor[rows]
    has_launch = launch != NONE
    launch_ns = np.where(has_launch, pick(table.host.start_ns, launch), device.start_ns[rows])
    layer, _ = owners.layers_at(anchor)
    return Copies(
        name=device.name[rows],
        device=device.device[rows],
        stream=device.stream[rows],
        start_ns=device.start_ns[rows],
        end_ns=device.end_ns[rows],
        bytes=device.bytes[rows],
        step=np.where(has_launch, steps.counted_at(launch_ns), NONE).astype(np.int32),
        layer=layer,
        phase=owners.phases_at(anchor),
        launch_ns=launch_ns,
        launch_thread=pick(table.host.thread, launch),
    )


def _notes(table: TraceTable, run: RunKind) -> list[Note]:
    notes = [note for note in table.notes if note.kind != "no_kernels"]
    if run is RunKind.LOST and len(notes) < len(table.notes):
        notes.append(
            Note(
                "device activity lost",
                "The file has launches but no kernels: the device's activity was lost (another tool held the "
                "profiling interface, or the window closed too early). Kernel time is unknown, not zero.",
            )
        )
    return notes
