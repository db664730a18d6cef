"""The layers of a trace: from our scopes and what the hooks wrote, else from ``nn.Module`` events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from torchroof.join.lineage import Nest
from torchroof.trace.metadata import CaptureFacts, LayerFact
from torchroof.trace.table import NONE, HostKind, Int32, TraceTable

_MODULE_PREFIX = "nn.Module: "


@dataclass(frozen=True, slots=True)
class LayerName:
    """A layer by its path; ``fact`` is what the hooks knew of it, None without our hooks."""

    path: str
    type: str | None
    fact: LayerFact | None = None


@dataclass(frozen=True, slots=True)
class Layers:
    """Every layer, and for each span of the nest that enters one, which (NONE elsewhere)."""

    names: tuple[LayerName, ...] = ()
    entered: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))


def find_layers(table: TraceTable, nest: Nest, facts: CaptureFacts | None) -> Layers:
    """The layers of the file. Paths of module events are the names along their nesting, joined by dots."""
    if (nest.kind == HostKind.SCOPE).any():
        return _from_scopes(table, nest, facts)
    if (nest.kind == HostKind.MODULE).any():
        return _from_module_events(table, nest)
    known = tuple(LayerName(f.path, f.type, f) for f in facts.layers) if facts else ()
    return Layers(known, np.full(len(nest), NONE, dtype=np.int32))


def _from_scopes(table: TraceTable, nest: Nest, facts: CaptureFacts | None) -> Layers:
    names = [LayerName(f.path, f.type, f) for f in facts.layers] if facts else []
    by_path = {layer.path: i for i, layer in enumerate(names)}
    entered = np.full(len(nest), NONE, dtype=np.int32)
    scopes = np.flatnonzero(nest.kind == HostKind.SCOPE)
    by_name: dict[int, int] = {}
    for i, name in zip(scopes.tolist(), nest.name[scopes].tolist(), strict=True):
        layer = by_name.get(name)
        if layer is None:
            path = table.names[name]
            layer = by_path.get(path, NONE)
            if layer == NONE:
                layer = by_path[path] = len(names)
                names.append(LayerName(path, None))
            by_name[name] = layer
        entered[i] = layer
    return Layers(tuple(names), entered)


def _from_module_events(table: TraceTable, nest: Nest) -> Layers:
    """Modules are told apart by class and number; the first nesting in which one is met names it."""
    names: list[LayerName] = []
    known: dict[tuple[int, int], int] = {}
    entered = np.full(len(nest), NONE, dtype=np.int32)
    module_ids = table.host.module_id[nest.span]
    events = np.flatnonzero(nest.kind == HostKind.MODULE)
    enclosing = np.where(nest.parent[events] >= 0, nest.layer[np.maximum(nest.parent[events], 0)], NONE)
    for i, around in zip(events.tolist(), enclosing.tolist(), strict=True):
        key = (int(nest.name[i]), int(module_ids[i]))
        layer = known.get(key)
        if layer is None:
            own = table.names[key[0]].removeprefix(_MODULE_PREFIX)
            path = own if around == NONE else f"{names[entered[around]].path}.{own}"
            layer = known[key] = len(names)
            names.append(LayerName(path, own.rpartition("_")[0] or own))
        entered[i] = layer
    return Layers(tuple(names), entered)
