"""Which layers are alike: those that one line of a table can stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from torchroof.report.model import Layer

LEAST = 3
"""Fewer layers are not folded: a pair is as quickly read as its pattern."""
OUTLIER = 0.2
"""A layer whose time is further off the median than this part of it, in every step, is no equal of the others."""
_RUNS = 4
"""With more runs of numbers than these only the first and the last are written."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_COUNTED = re.compile(r"(?P<name>.+)_(?P<number>0|[1-9][0-9]{0,8})")
_NUMBER = re.compile(r"(?P<name>.*?)(?P<number>[0-9]+)")

Point = tuple[int, ...]
Times = Mapping[str, float | Sequence[float]]
"""Kernel time per call by path: one number, or one for each step."""


@dataclass(frozen=True, slots=True)
class Fold:
    """``pattern`` stands for all of ``paths``: ``encoder.layer.[0–11].fc1``."""

    pattern: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """What a layer has in common with its equals (``kind``), and where it stands among them (``point``)."""

    kind: tuple[Any, ...]
    point: Point


def folds(layers: Sequence[Layer], times: Times) -> list[Fold]:
    """The folds of the layers that have a time.

    ``layers`` are all layers of the report: their nesting tells which containers are built alike. Layers as
    slow as each other fold, so layers that are all twice as slow as their equals make a second line. What is slow in
    some steps only is noise, and folds. What is in no fold stays as it is.
    """
    places = _places(layers, times)
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for path in times:
        kinds.setdefault(places[path].kind, []).append(path)
    found = []
    for paths in kinds.values():
        for alike in _alike(paths, times):
            at = {places[path].point: path for path in alike}
            for block in _blocks(at):
                members = tuple(at[point] for point in product(*block))
                if len(members) >= LEAST:
                    found.append(Fold(pattern_of(members), members))
    return found


def _alike(paths: Sequence[str], times: Times) -> list[list[str]]:
    """The paths within OUTLIER of their median in some step, then the same of those faster and of those slower."""
    if not paths:
        return []
    steps = {path: _by_step(times[path]) for path in paths}
    middles = [median(step) for step in zip(*steps.values(), strict=True)]
    off = {path: [t - m for t, m in zip(own, middles, strict=True)] for path, own in steps.items()}
    faster = [p for p in paths if all(d < -OUTLIER * m for d, m in zip(off[p], middles, strict=True))]
    slower = [p for p in paths if all(d > OUTLIER * m for d, m in zip(off[p], middles, strict=True))]
    apart = {*faster, *slower}
    inside = [path for path in paths if path not in apart]
    return [inside, *_alike(faster, times), *_alike(slower, times)]


def _by_step(times: float | Sequence[float]) -> Sequence[float]:
    return times if isinstance(times, Sequence) else (times,)


def _blocks(points: Iterable[Point]) -> list[tuple[tuple[int, ...], ...]]:
    """Points as products of sets of numbers, one set for each coordinate; together they hold each point once."""
    within: dict[int, set[Point]] = {}
    for point in points:
        if not point:
            return [()]
        within.setdefault(point[0], set()).add(point[1:])
    same: dict[frozenset[Point], list[int]] = {}
    for first in sorted(within):
        same.setdefault(frozenset(within[first]), []).append(first)
    return [(tuple(firsts), *block) for rest, firsts in same.items() for block in _blocks(rest)]


def _places(layers: Sequence[Layer], paths: Iterable[str]) -> dict[str, Place]:
    known = {layer.path: layer for layer in layers}
    if layers and all(_is_counted(layer) for layer in layers):
        tree = _Counted.of(known)
        return {path: tree.place(path) for path in paths}
    return {path: _place(path, known.get(path)) for path in paths}


def _place(path: str, layer: Layer | None) -> Place:
    """By the path as the model names it: equal but for its whole numbers, of one class, parameters alike."""
    parts = path.split(".")
    indexed = [bool(_INDEX.fullmatch(part)) for part in parts]
    names = tuple(None if number else part for part, number in zip(parts, indexed, strict=True))
    kind = (names, layer.type, layer.parameters) if layer else (names, None, ())
    return Place(kind, tuple(int(part) for part, number in zip(parts, indexed, strict=True) if number))


def _is_counted(layer: Layer) -> bool:
    """Whether the path is one that torch's own profiler makes: class and number, as in ``Linear_16``."""
    match = _COUNTED.fullmatch(layer.path.rpartition(".")[2])
    return match is not None and match["name"] == layer.type


@dataclass(frozen=True, slots=True)
class _Counted:
    """Layers that are named by class and a number that runs over the whole model.

    The numbers of equals differ then in every part of the path, so a layer is known by its position: the
    how-many-eth of its class in its container. Containers of one class with the same layers in them are
    equals; layers without children are told apart by position, for ``Linear_4`` and ``Linear_5`` of one
    container may be of any two sizes.
    """

    rank: dict[str, int]
    built: dict[str, tuple[str, int | None]]
    """Class, and which of the structures that occur is in it; None for a layer without children."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> _Counted:
        children: dict[str, set[str]] = {}
        for path in paths:
            while path:
                parent = path.rpartition(".")[0]
                children.setdefault(parent, set()).add(path)
                path = parent
        rank: dict[str, int] = {}
        for siblings in children.values():
            seen: dict[str, int] = {}
            for path in sorted(siblings, key=lambda p: _counted(p)[1]):
                name = _counted(path)[0]
                rank[path] = seen[name] = seen.get(name, -1) + 1
        built: dict[str, tuple[str, int | None]] = {}
        structures: dict[tuple[Any, ...], int] = {}
        for path in sorted(rank, key=lambda p: -p.count(".")):
            within = tuple(
                sorted((built[c][0], -1 if built[c][1] is None else built[c][1]) for c in children.get(path, ()))
            )
            structure = structures.setdefault(within, len(structures)) if within else None
            built[path] = (_counted(path)[0], structure)
        return cls(rank, built)

    def place(self, path: str) -> Place:
        kind: list[Any] = []
        point = []
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            built = self.built.get(prefix, (prefix, None))
            kind.append(built)
            if built[1] is None:
                kind.append(self.rank.get(prefix))
            else:
                point.append(self.rank[prefix])
        return Place(tuple(kind), tuple(point))


def _counted(path: str) -> tuple[str, int]:
    match = _COUNTED.fullmatch(path.rpartition(".")[2])
    return (match["name"], int(match["number"])) if match else (path, 0)


def pattern_of(paths: Sequence[str]) -> str:
    """One path for several that differ in numbers only: ``layer.[0–4,6–11].fc1``."""
    columns = zip(*(path.split(".") for path in paths), strict=True)
    return ".".join(_part(sorted(set(column))) for column in columns)


def _part(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    found = [_NUMBER.fullmatch(part) for part in parts]
    numbers = sorted(int(match["number"]) for match in found if match)
    return f"{found[0]['name'] if found[0] else ''}[{_ranges(numbers)}]"


def _ranges(numbers: Sequence[int]) -> str:
    """``0–4,6–11``; of many runs the first and the last: ``0–2,…,47``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    return ",".join(texts if len(texts) <= _RUNS else (texts[0], "…", texts[-1]))
