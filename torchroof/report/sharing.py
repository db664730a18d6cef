"""Work that several layers share: an optimizer's kernels, divided by the bytes of the parameters stepped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchroof.join.attribute import Attribution, Phase
from torchroof.join.lineage import NameKind
from torchroof.tensors import OpCall, TensorSpec
from torchroof.trace.dialects import OPTIMIZER_STEP, parameter_work
from torchroof.trace.metadata import OptimizerFact
from torchroof.trace.table import NONE, TraceTable

Weights = tuple[tuple[int, float], ...]
"""Layers (NONE: no layer known) with their weights, which need not add up to one."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The ops that are shared out: their weights, and the name of the range in which they ran."""

    weights: dict[int, Weights]
    """By op (a position in the nest)."""
    group: dict[int, str]


def share_optimizers(table: TraceTable, attribution: Attribution) -> Shares:
    """How each optimizer op is divided. Ops on tensors of a parameter's shape go to the layers that own such a
    parameter, all others to all layers that the optimizer steps, by bytes."""
    shares = Shares({}, {})
    facts = attribution.facts
    if facts is None or not facts.optimizers:
        return shares
    kernels, nest = attribution.kernels, attribution.nest
    mine = (attribution.phase == Phase.OPTIMIZER) & (kernels.op != NONE) & (attribution.layer == NONE)
    spans = _optimizer_of_spans(table, attribution, facts.optimizers, facts.optimizer_steps)
    # Work in no range (clipping, averaging) may be on the parameters of any optimizer.
    books = [_Book([o]) for o in facts.optimizers] + [_Book(facts.optimizers)]
    memo: dict[tuple[int, int], Weights] = {}
    for op in np.unique(kernels.op[mine], return_index=True)[0].tolist():
        span = _enclosing(attribution, op)
        optimizer = spans.get(span) if span != NONE else NONE
        if optimizer is None:
            continue
        signature = int(table.host.signature[nest.span[op]])
        key = (optimizer, signature)
        if key not in memo:
            memo[key] = books[optimizer].weights(table.signatures[signature] if signature != NONE else None)
        if memo[key]:
            shares.weights[op] = memo[key]
            shares.group[op] = _group(table.names[nest.name[span if span != NONE else op]])
    return shares


def _group(name: str) -> str:
    """What a range, or an op in none, is called: ``SGD.step``, ``SGD.zero_grad``, ``GradScaler``."""
    return parameter_work(name) or name.partition("#")[2] or name


def divide_whole(total: int, weights: Sequence[float]) -> list[int]:
    """A whole number divided by weights with largest remainders: the parts add up to it exactly."""
    whole = sum(weights)
    exact = [total * w / whole for w in weights]
    parts = [int(x) for x in exact]
    missing = total - sum(parts)
    order = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[: max(0, missing)]:
        parts[i] += 1
    parts[order[0]] += total - sum(parts)  # totals beyond 2^53 lose more than the remainders
    return parts


def _enclosing(attribution: Attribution, op: int) -> int:
    """The optimizer's range around an op (NONE where there is none)."""
    nest = attribution.nest
    while op != NONE and nest.name_kind[op] != NameKind.OPTIMIZER:
        op = int(nest.parent[op])
    return op


def _optimizer_of_spans(
    table: TraceTable, attribution: Attribution, optimizers: Sequence[OptimizerFact], steps: Sequence[int]
) -> dict[int, int]:
    """The optimizer of each range: steps in order, and ranges such as zero_grad by the optimizer's type."""
    nest = attribution.nest
    ranges = np.flatnonzero(nest.name_kind == NameKind.OPTIMIZER)
    ranges = ranges[np.argsort(nest.start_ns[ranges], kind="stable")].tolist()
    stepping = [i for i in ranges if table.names[nest.name[i]].startswith(OPTIMIZER_STEP)]
    by_type: dict[str, set[int]] = defaultdict(set)
    for index, optimizer in enumerate(optimizers):
        by_type[optimizer.type].add(index)
    found: dict[int, int] = {}
    for i in ranges:
        kind = table.names[nest.name[i]].partition("#")[2].partition(".")[0]
        if len(by_type[kind]) == 1:
            found[i] = next(iter(by_type[kind]))
    if len(stepping) == len(steps):
        found |= {i: s for i, s in zip(stepping, steps, strict=True) if 0 <= s < len(optimizers)}
    return found


class _Book:
    """The parameters of one optimizer, or of several, by shape."""

    def __init__(self, optimizers: Sequence[OptimizerFact]) -> None:
        self._owners: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        self._all: dict[int, float] = defaultdict(float)
        for optimizer in optimizers:
            for layer, shape, size in zip(optimizer.layer, optimizer.shape, optimizer.bytes, strict=True):
                self._owners[tuple(shape)].append((layer, size))
                self._all[layer] += size

    def weights(self, call: OpCall | None) -> Weights:
        """The layers that an op's tensors belong to; a shape that several own is theirs in equal parts."""
        found: dict[int, float] = defaultdict(float)
        for shape in _shapes(call):
            owners = self._owners.get(shape, ())
            for layer, size in owners:
                found[layer] += size / len(owners)
        chosen = found if sum(found.values()) > 0 else self._all
        return tuple(sorted((layer, weight) for layer, weight in chosen.items() if weight > 0))


def _shapes(call: OpCall | None) -> list[tuple[int, ...]]:
    """The shapes that an op works on: its longest list of tensors, else its first tensor with dimensions."""
    lists = [o for o in call.operands if isinstance(o, tuple)] if call else []
    tensors = [[t.shape for t in found if isinstance(t, TensorSpec) and t.shape] for found in lists]
    longest = max(tensors, key=len, default=[])
    if longest or call is None:
        return longest
    return [o.shape for o in call.operands if isinstance(o, TensorSpec) and o.shape][:1]
