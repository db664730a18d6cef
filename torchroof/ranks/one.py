"""One rank: what is kept of its file for the merged report. It runs wherever an executor puts it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from torchroof.errors import TorchroofError
from torchroof.join.launches import collectives
from torchroof.join.ranges import with_ranges_as_layers
from torchroof.report.build import analyse
from torchroof.report.lenses import Line, lines
from torchroof.report.model import Totals
from torchroof.report.roofs import Wish
from torchroof.trace.reader import read
from torchroof.trace.table import NONE, Int64, TraceTable

CollectiveKey = tuple[str | None, str]
"""Process group (None where the file does not name it) and what is done in it."""


@dataclass(frozen=True)
class Options:
    """How every rank is analysed: all values, nothing that a worker would have to look up."""

    wish: Wish = field(default_factory=Wish)
    layers_from: str = "auto"
    memory_limit: int = 8 << 30


@dataclass(frozen=True)
class Intervals:
    """The communication kernels of one kind on one rank, in order of start, in ns of the wall clock."""

    start_ns: Int64
    end_ns: Int64


@dataclass(frozen=True)
class RankFile:
    """What one file tells of its rank. With a ``fault`` it tells nothing else."""

    path: str
    fault: str | None = None
    rank: int | None = None
    """As the file says it."""
    world_size: int | None = None
    groups: dict[str, int] = field(default_factory=dict)
    """How many ranks a process group has, where the file says so."""
    cut: bool = False
    steps: int = 0
    devices: int = 0
    totals: Totals | None = None
    layers: tuple[Line, ...] = ()
    ops: tuple[Line, ...] = ()
    layered: bool = False
    collectives: dict[CollectiveKey, Intervals] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    """Kind and text."""

    @property
    def source(self) -> str:
        return Path(self.path).name


def analyse_rank(path: str, options: Options) -> RankFile:
    """A rank's figures, or why its file has none. Only what is wrong with the program itself raises."""
    try:
        table = read(path, partial=True, memory_limit=options.memory_limit)
        if options.layers_from == "annotations":
            table = with_ranges_as_layers(table)
        wish = options.wish
        data = analyse(table, device=wish.device, ceilings=wish.ceilings, local=wish.local, roof=wish.prefer)
    except TorchroofError as why:
        return RankFile(path, fault=str(why))
    except MemoryError:
        return RankFile(path, fault=f"{os.path.basename(path)}: not enough memory to read it")
    rank, size, groups = _distributed(table)
    return RankFile(
        path,
        rank=rank,
        world_size=size,
        groups=groups,
        cut=table.cut is not None,
        steps=data.steps,
        devices=len(data.devices),
        totals=data.totals,
        layers=lines(data, by="layer").lines,
        ops=lines(data, by="op").lines,
        layered=any(row.path is not None for row in data.rows),
        collectives=_collectives(table),
        notes=tuple((note.kind, note.text) for note in data.notes),
    )


def _distributed(table: TraceTable) -> tuple[int | None, int | None, dict[str, int]]:
    """Rank, world size and group sizes out of ``distributedInfo``, as far as they make sense."""
    told = table.metadata.get("distributedInfo")
    if not isinstance(told, dict):
        return None, None, {}
    groups = {}
    listed = told.get("pg_config")
    for group in listed if isinstance(listed, list) else ():
        if isinstance(group, dict) and (size := _whole(group.get("pg_size"))) is not None:
            groups[str(group.get("pg_name"))] = size
    return _whole(told.get("rank")), _whole(told.get("world_size")), groups


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _collectives(table: TraceTable) -> dict[CollectiveKey, Intervals]:
    base = table.metadata.get("baseTimeNanoseconds")
    shift = base if isinstance(base, int) and 0 <= base < 2**62 else 0
    device = table.device
    kinds: dict[CollectiveKey, list[int]] = {}
    for i in np.flatnonzero(collectives(table)).tolist():
        what, group = int(device.collective[i]), int(device.group[i])
        name = table.names[what] if what != NONE else _short(table.names[device.name[i]])
        kinds.setdefault((table.names[group] if group != NONE else None, name), []).append(i)
    return {key: Intervals(device.start_ns[at] + shift, device.end_ns[at] + shift) for key, at in kinds.items()}


def _short(kernel_name: str) -> str:
    """A kernel's name without its operands, which may differ between ranks."""
    return kernel_name.removeprefix("void ").split("(")[0].split("<")[0].strip() or kernel_name
