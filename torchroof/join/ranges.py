"""The user's own ranges as layers: for traces that know none, or where the ranges are what one thinks in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torchroof.errors import OptionError
from torchroof.join.nesting import nest
from torchroof.trace.dialects import REGION_PREFIXES, is_autograd_wrapper
from torchroof.trace.metadata import KEY
from torchroof.trace.table import NONE, HostKind, TraceTable


def with_ranges_as_layers(table: TraceTable) -> TraceTable:
    """The same trace with its `record_function` ranges as layer scopes, and no others.

    A range's path is the names around it and its own, joined by dots. The marks that torch makes itself (steps,
    optimizers, loaders, compiled regions) stay annotations. Raises OptionError where there is no range.
    """
    host = table.host
    chosen = np.flatnonzero(_ranges(table))
    if not len(chosen):
        raise OptionError(
            f"{table.source} has no ranges of record_function to take for layers; leave out --layers-from annotations"
        )
    parent = nest(host.start_ns[chosen], host.end_ns[chosen], host.thread[chosen])
    names = list(table.names)
    numbers: dict[str, int] = {}
    paths: list[str] = []
    for name, around in zip(host.name[chosen].tolist(), parent.tolist(), strict=True):
        own = table.names[name]
        paths.append(own if around == NONE else f"{paths[around]}.{own}")
    for path in dict.fromkeys(paths):
        numbers[path] = len(names)
        names.append(path)
    kind, name_of = host.kind.copy(), host.name.copy()
    kind[host.kind == HostKind.SCOPE] = HostKind.ANNOTATION
    kind[chosen] = HostKind.SCOPE
    name_of[chosen] = [numbers[path] for path in paths]
    return replace(
        table, names=tuple(names), host=replace(host, kind=kind, name=name_of), metadata=_without_layers(table)
    )


def _ranges(table: TraceTable) -> NDArray[np.bool_]:
    """Which host spans are the user's ranges. Files of 2020-21 have them among the ops: named without ``::``."""
    by_torch = np.array([name.startswith(REGION_PREFIXES) for name in table.names], dtype=bool)
    host = table.host
    if not len(host):
        return np.zeros(0, dtype=bool)
    own = ~by_torch[host.name]
    ranges = np.asarray((host.kind == HostKind.ANNOTATION) & own)
    if ranges.any():
        return ranges
    plain = np.array(["::" not in name and not is_autograd_wrapper(name) for name in table.names], dtype=bool)
    return np.asarray((host.kind == HostKind.OP) & own & plain[host.name] & (host.signature == NONE))


def _without_layers(table: TraceTable) -> dict[str, object]:
    facts = table.metadata.get(KEY)
    if not isinstance(facts, dict):
        return dict(table.metadata)
    return {**table.metadata, KEY: {k: v for k, v in facts.items() if k not in ("layers", "calls")}}
