"""Steady state: steps at the front that still run what no step before them ran are warm-up, not steps that count.

The first steps choose algorithms, load modules, grow pools and make an optimizer's state. A step is settled when
each of its kernels (on a CPU: each op with its operands' shapes) has run in a step before it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from torchroof.join.lineage import NameKind, Nest
from torchroof.join.steps import Steps
from torchroof.tensors import OpCall, TensorSpec
from torchroof.trace.table import NONE, DeviceKind, Int32, Int64, Note, TraceTable


def drop_unsettled(table: TraceTable, nest: Nest, steps: Steps, launch: Int32) -> tuple[Steps, tuple[Note, ...]]:
    """Counts no step before the first settled one. Where none is settled, all go on counting, and a note says so.

    ``launch`` is the launch of each device span.
    """
    counted = np.flatnonzero(np.array(steps.counted, dtype=bool))
    if len(counted) < 2:
        return steps, ()
    keys, moments, texts = _kernels(table, launch) if len(table.device) else _ops(table, nest)
    news = _first_seen(keys, steps.at(moments))
    settled = [int(s) for s in counted if s not in news]
    if not settled:
        last = texts[news[int(counted[-1])]]
        text = f"No step had settled: each ran something for the first time, the last one {last}. All count; unless "
        return steps, (Note("steady state", f"{text}shapes are meant to change, record more steps."),)
    early = [int(s) for s in counted if s < settled[0]]
    if not early:
        return steps, ()
    names = ", ".join(str(steps.number[s]) for s in early)
    who = f"Step {names} does not count: it" if len(early) == 1 else f"Steps {names} do not count: they"
    text = f"{who} still ran things for the first time, such as {texts[news[early[-1]]]}."
    kept = tuple(counts and place not in early for place, counts in enumerate(steps.counted))
    return replace(steps, counted=kept), (Note("steady state", text, len(early)),)


def _kernels(table: TraceTable, launch: Int32) -> tuple[Int64, Int64, list[str]]:
    """Each launched kernel's name, the moment of its launch; and what the names read."""
    rows = np.flatnonzero((table.device.kind == DeviceKind.KERNEL) & (launch != NONE))
    return table.device.name[rows].astype(np.int64), table.host.start_ns[launch[rows]], list(table.names)


def _ops(table: TraceTable, nest: Nest) -> tuple[Int64, Int64, list[str]]:
    """A number for each op's name and shapes, its moment; and what the numbers stand for."""
    chosen = np.flatnonzero((nest.name_kind == NameKind.MODELLED) | (nest.name_kind == NameKind.UNMODELLED))
    names, signatures = nest.name[chosen].tolist(), table.host.signature[nest.span[chosen]].tolist()
    shapes = [_shapes(call) for call in table.signatures]
    numbers: dict[tuple[int, str], int] = {}
    keys = [
        numbers.setdefault((name, shapes[signature] if signature != NONE else ""), len(numbers))
        for name, signature in zip(names, signatures, strict=True)
    ]
    texts = [f"{table.names[name]} {shape}".rstrip() for name, shape in numbers]
    return np.array(keys, dtype=np.int64), nest.start_ns[chosen], texts


def _shapes(call: OpCall) -> str:
    """Shapes without values: a learning rate that changes is nothing new."""
    found = (s for o in call.operands for s in (o if isinstance(o, tuple) else (o,)) if isinstance(s, TensorSpec))
    return " ".join("×".join(map(str, s.shape)) for s in found if s.shape)


def _first_seen(keys: Int64, step: Int32) -> dict[int, int]:
    """The steps in which a key came up that none before had, each with one such key."""
    inside = np.flatnonzero(step != NONE)
    order = inside[np.lexsort((step[inside], keys[inside]))]
    _, first = np.unique(keys[order], return_index=True)
    return dict(zip(step[order[first]].tolist(), keys[order[first]].tolist(), strict=True))
