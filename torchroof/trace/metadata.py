"""What our hooks leave inside a trace file: one JSON object under the top-level key ``torchroof``.

The capture writes it before the window closes, the join reads it. Lists run in parallel columns, so that a
hundred thousand layer calls cost a few bytes each.
"""

from __future__ import annotations

from typing import Any

import msgspec

KEY = "torchroof"
VERSION = 1

SCOPE_PREFIX = "torchroof: "
"""A layer call's scope is named this plus the layer's path; the root's path is empty."""

STEP_PREFIX = "ProfilerStep#"


class TensorFact(msgspec.Struct, frozen=True, array_like=True):
    shape: tuple[int, ...]
    dtype: str
    """torch's name without the prefix: ``float32``."""


class ShapeFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """Shapes that a layer was called with; a new one is stored only when it differs from those before."""

    inputs: tuple[TensorFact, ...] = ()
    outputs: tuple[TensorFact, ...] = ()


class LayerFact(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    type: str
    aliases: tuple[str, ...] = ()
    """Other paths of the same module (shared, tied)."""
    parameters: tuple[TensorFact, ...] = ()
    """Parameters held by the module itself and by modules below it that were not called, not by other layers."""
    shapes: tuple[ShapeFact, ...] = ()


class CallColumns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The layer calls of one thread, in the order in which they were entered."""

    thread: int
    """The system's thread id, as the trace writes it in ``tid``."""
    layer: list[int]
    """Index into ``layers``."""
    before: list[int]
    """Autograd sequence number on entering; -1 where it could not be read."""
    after: list[int]
    """Autograd sequence number on leaving: nodes made inside have before <= number < after."""
    recompute: list[int] = []
    """Positions (in this thread's order) of calls that ran inside a backward pass."""
    cut: list[int] = []
    """Positions of calls that an exception left."""


class OptimizerFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters that an optimizer steps (those with a gradient), in its own order, as parallel columns."""

    type: str
    layer: list[int]
    """Index into ``layers``; -1 where no layer that ran owns the parameter."""
    shape: list[tuple[int, ...]]
    bytes: list[int]


class CaptureFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    version: int = VERSION
    layers: tuple[LayerFact, ...] = ()
    calls: tuple[CallColumns, ...] = ()
    counted_steps: tuple[int, ...] | None = None
    """Numbers N of the ``ProfilerStep#N`` marks that count; None: all complete ones."""
    optimizers: tuple[OptimizerFact, ...] = ()
    optimizer_steps: list[int] = []
    """For each ``Optimizer.step#`` range in the file, by start: which of ``optimizers`` it was."""
    environment: dict[str, Any] = {}
    ceilings: dict[str, list[dict[str, Any]]] = {}
    """By device index as text ("0"): ceilings in the report's form."""
    device_names: dict[str, str] = {}
    """By device index as text: the device's name, for devices that ``deviceProperties`` does not list (CPUs)."""
    overhead: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


def facts_as_json(facts: CaptureFacts) -> str:
    """The value to store under KEY. The version is spelled out, or a later reader would take it for its own."""
    rest = msgspec.json.encode(facts).decode().removeprefix("{")
    return f'{{"version":{facts.version}' + ("," if rest != "}" else "") + rest


def capture_facts(metadata: dict[str, Any] | Any) -> CaptureFacts | None:
    """Our facts out of a file's top-level keys; None where they are absent or of a newer kind."""
    raw = metadata.get(KEY)
    if not isinstance(raw, dict):
        return None
    try:
        facts = msgspec.convert(raw, CaptureFacts, strict=False)
    except msgspec.ValidationError:
        return None
    return facts if facts.version == VERSION else None
