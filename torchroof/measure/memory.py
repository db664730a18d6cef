"""Bandwidth of each memory level: copies, reads and updates of working sets from the first cache to main memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

import torch

from torchroof.device.roof import Ceiling
from torchroof.measure.bench import Bench, Run, measured
from torchroof.measure.hardware import MIB, Cache, caches, free_bytes

_LEAST_SET = 32 * 1024
_ITEM = 4
"""Bytes of a float32, which all of it is done in."""
_LEAST_RUNS = 3
"""A rate from fewer runs may be that of an interrupted one."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A way to move a working set: ``run`` works on ``parts`` equal parts of it and moves each once."""

    name: str
    pattern: str
    parts: int
    run: Callable[..., object]
    passes: int = 1
    """How often each part is moved: an update reads it and writes it."""

    def of(self, arena: torch.Tensor, working_set: int) -> tuple[Run, int]:
        """A run over so many bytes at the beginning of the arena, and the bytes that it moves."""
        elements = min(working_set // _ITEM, arena.numel()) // self.parts
        operands = [arena[i * elements : (i + 1) * elements] for i in range(self.parts)]
        return lambda: self.run(*operands), self.parts * self.passes * elements * _ITEM


@dataclass(frozen=True, slots=True)
class Point:
    """One step of the sweep: a copy's rate (bytes per second, best) over a working set of so many bytes."""

    working_set: int
    rate: float


@dataclass(frozen=True)
class Levels:
    """The ceilings, and the sweep that shows where levels lie."""

    ceilings: tuple[Ceiling, ...]
    sweep: tuple[Point, ...]


TRAFFIC = (
    Traffic("copy_", "copy", 2, lambda a, b: a.copy_(b)),
    Traffic("mul_", "update", 1, lambda a: a.mul_(1.0), passes=2),
    Traffic("dot", "read", 2, torch.dot),
    Traffic("sum", "read", 1, torch.sum),
    Traffic("triad", "copy", 3, lambda a, b, c: torch.add(b, c, alpha=0.5, out=a)),
)
"""What each pattern is measured by; the best of them is the ceiling."""


def _arena(bench: Bench, size: int) -> torch.Tensor:
    """Normal random numbers, the same ones again after 16 MiB: a billion of them would take long to make."""
    some = bench.normal(min(size // _ITEM, 4 * MIB))
    whole = torch.empty(size // _ITEM, dtype=torch.float32, device=bench.device)
    for start in range(0, whole.numel(), some.numel()):
        part = whole[start : start + some.numel()]
        part.copy_(some[: part.numel()])
    return whole


def levels(bench: Bench, *, each_s: float, largest: int | None = None) -> Levels:
    """A ceiling per level and pattern of traffic, the nearest level first.

    Copies of every size show at which one a level is quickest, where the rest of its traffic is measured, and where
    it ends. A level that is no quicker than the next is left out: torch's own time per op hides it. ``each_s`` is
    for one kind of traffic at one size, ``largest`` bounds the working set that stands for main memory.
    """
    known = caches(bench.device)
    main = main_memory_set(bench.device, known, largest)
    arena = _arena(bench, main)
    points = tuple(_sweep(bench, arena, each_s / 2))
    sizes = {c.level: _within(c, before, points) for before, c in pairwise((Cache("", 0), *known))}
    found = {level: _level(bench, arena, level, size, each_s) for level, size in [*sizes.items(), ("dram", main)]}
    kept = _quicker_ones([(c, found[c.level]) for c in known], found["dram"])
    slower = [*(rates for _, rates in kept), found["dram"]][1:]
    ceilings = [
        replace(ceiling, capacity_bytes=_capacity(cache, rates, following, points))
        for (cache, rates), following in zip(kept, slower, strict=True)
        for ceiling in rates
    ]
    return Levels(rising((*ceilings, *found["dram"])), points)


def main_memory_copy(bench: Bench, each_s: float) -> float:
    """Bytes per second of a copy in main memory."""
    arena = _arena(bench, main_memory_set(bench.device, caches(bench.device), 1024 * MIB))
    run, moved = TRAFFIC[0].of(arena, arena.numel() * _ITEM)
    return moved / bench.times(run, 20, each_s).best


def _within(cache: Cache, before: Cache, points: tuple[Point, ...]) -> int:
    """The working set at which copies are quickest, of those that lie in this cache and not in the one before it."""
    least, most = max(_LEAST_SET, 2 * before.capacity_bytes), cache.capacity_bytes // 2
    inside = [p for p in points if least <= p.working_set <= most]
    return max(inside, key=lambda p: p.rate).working_set if inside else max(_LEAST_SET, most)


def main_memory_set(device: torch.device, known: Sequence[Cache], largest: int | None) -> int:
    """Over four times what the caches hold, and at most a quarter of the memory that is free."""
    wanted = max(256 * MIB, 4 * sum(c.capacity_bytes for c in known))
    if largest is not None:
        wanted = min(wanted, largest)
    free = free_bytes(device)
    return wanted if free is None else max(16 * MIB, min(wanted, free // 4))


def _level(bench: Bench, arena: torch.Tensor, level: str, working_set: int, each_s: float) -> list[Ceiling]:
    """The best of each pattern's kinds of traffic. A cache's rate is that of several runs; those of main memory are
    long, and may be few."""
    best: dict[str, Ceiling] = {}
    for traffic in TRAFFIC:
        if bench.left_s <= 0 and best:
            break
        run, moved = traffic.of(arena, working_set)
        timing = bench.times(run, 400, each_s)
        if len(timing.seconds) < _LEAST_RUNS and level != "dram":
            continue
        ceiling = measured(
            "bandwidth",
            moved / timing.best,
            "byte/s",
            f"torch {traffic.name} over {_size(working_set)}, best of {len(timing.seconds)}",
            level=level,
            pattern=traffic.pattern,
            median_value=moved / timing.median,
        )
        if traffic.pattern not in best or ceiling.value > best[traffic.pattern].value:
            best[traffic.pattern] = ceiling
    return list(best.values())


def _sweep(bench: Bench, arena: torch.Tensor, each_s: float) -> Iterator[Point]:
    """Copies of doubling working sets, from within the first cache to main memory."""
    size = _LEAST_SET
    while size <= arena.numel() * _ITEM and bench.left_s > 0:
        run, moved = TRAFFIC[0].of(arena, size)
        yield Point(size, moved / bench.times(run, 400, each_s).best)
        size *= 2


def _quicker_ones(known: list[tuple[Cache, list[Ceiling]]], main: list[Ceiling]) -> list[tuple[Cache, list[Ceiling]]]:
    kept: list[tuple[Cache, list[Ceiling]]] = []
    slower = _copying(main)
    for cache, rates in reversed(known):
        if _copying(rates) > slower:
            kept.insert(0, (cache, rates))
            slower = _copying(rates)
    return kept


def rising(ceilings: Iterable[Ceiling]) -> tuple[Ceiling, ...]:
    """The ceilings without a cache's rate that is no higher than that of a level behind it for the same traffic: then
    something interrupted the measuring. A level that copies no faster goes as a whole."""
    found = tuple(ceilings)
    behind: dict[str | None, float] = {}
    dropped: set[int] = set()
    for level in sorted({c.level for c in found if c.level is not None}, key=_from_behind, reverse=True):
        here = [(i, c) for i, c in enumerate(found) if c.level == level and c.kind == "bandwidth"]
        copies = [c.value for _, c in here if c.pattern == "copy"]
        slow = bool(copies) and max(copies) <= behind.get("copy", 0.0)
        dropped |= {i for i, c in here if slow or c.value <= behind.get(c.pattern, 0.0)}
        for i, c in here:
            if i not in dropped:
                behind[c.pattern] = max(behind.get(c.pattern, 0.0), c.value)
    return tuple(c for i, c in enumerate(found) if i not in dropped)


def _from_behind(level: str) -> tuple[bool, str]:
    return level == "dram", level


def _copying(rates: list[Ceiling]) -> float:
    return next((c.value for c in rates if c.pattern == "copy"), 0.0)


def _capacity(cache: Cache, rates: list[Ceiling], following: list[Ceiling], points: tuple[Point, ...]) -> int:
    """How much the level holds: what the system says, or less where the sweep falls to the next level before."""
    between = sqrt(_copying(rates) * _copying(following))
    slow = [p.working_set for p in points if p.working_set <= cache.capacity_bytes and p.rate < between]
    quick = [p.working_set for p in points if p.working_set <= cache.capacity_bytes and p.rate >= between]
    if not slow or not quick or max(slow) < max(quick):
        return cache.capacity_bytes
    return max(quick)


def _size(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"
