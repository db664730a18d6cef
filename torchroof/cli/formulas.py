"""`torchroof explain --list`: every op that has a work model, with its formula in words, and what is counted how."""

from __future__ import annotations

from dataclasses import dataclass

from torchroof.work.registry import Registry

CONVENTIONS = (
    "A multiply-add is 2 FLOPs; an addition, product, division, root, exponential and the like is 1.",
    "Comparing, selecting, sorting, rounding, casts, copies and random numbers are 0; so is what a product fuses.",
    "Bytes: each distinct stored element that is read or written, once; an expanded axis stores one.",
    "What a trace does not tell is unknown, never 0.",
)
"""The most important; docs/counting.md has all."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Ops that are counted alike."""

    family: str
    ops: tuple[str, ...]
    words: str
    source: str


def listed(registry: Registry, wanted: str | None = None) -> tuple[Listed, ...]:
    """The models of a family, or of ops with some text in their name; of every op without one."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    families = {model.family for model in registry.models.values()}
    for op, model in registry.models.items():
        if wanted is None or model.family == wanted or (wanted not in families and wanted in op):
            groups.setdefault((model.family, model.words, model.source), []).append(op)
    return tuple(Listed(family, tuple(ops), words, source) for (family, words, source), ops in groups.items())
