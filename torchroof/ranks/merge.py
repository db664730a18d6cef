"""Several ranks merged: spreads per layer, collectives divided, and the rank that the others wait for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from torchroof import units
from torchroof.ranks.model import LayerSpread, Rank, RanksData, Spread, Straggler
from torchroof.ranks.one import RankFile
from torchroof.ranks.waiting import Split, split
from torchroof.report.lenses import Line

_IN_NAME = re.compile(r"rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_MOST_NAMED = 8
_TRIFLE = 0.01
"""A rank that costs the others less than this part of a step is no straggler."""


def merge(files: Sequence[RankFile]) -> RanksData:
    """The merged report of the ranks in these files, in order of rank."""
    numbers, clash = rank_numbers(files)
    order = sorted(range(len(files)), key=lambda i: (numbers[i], i))
    files, numbers = [files[i] for i in order], [numbers[i] for i in order]
    good = [i for i, file in enumerate(files) if file.totals is not None]
    world = max((f.world_size for f in files if f.world_size is not None), default=None)
    groups = {name: size for file in files for name, size in file.groups.items()}
    parts = split([numbers[i] for i in good], [files[i].collectives for i in good], world, groups)
    place = {i: k for k, i in enumerate(good)}
    ranks = tuple(_rank(numbers[i], file, parts, place.get(i)) for i, file in enumerate(files))
    by = "layer" if any(files[i].layered for i in good) else "op"
    layers = _layers([(numbers[i], files[i]) for i in good], by)
    read = [rank for rank in ranks if rank.fault is None]
    return RanksData(
        world_size=world,
        ranks=ranks,
        by=by,
        step_ns=_spread([(r.step_ns / r.parts, r.rank) for r in read if r.kernel_ns is not None]),
        layers=layers,
        collectives=tuple(parts.collectives),
        straggler=_straggler(read, parts, layers),
        notes=tuple(_notes(files, numbers, world, parts, clash)),
    )


def rank_numbers(files: Sequence[RankFile]) -> tuple[list[int], bool]:
    """Each file's rank: as it says itself, else as its name says, else the lowest number that is free.

    Where two files would be one rank, all are numbered by their order, and the second value is True.
    """
    told: list[int | None] = []
    for file in files:
        named = _IN_NAME.search(file.source)
        told.append(file.rank if file.rank is not None else int(named[1]) if named else None)
    known = [n for n in told if n is not None]
    if len(set(known)) < len(known):
        return list(range(len(files))), True
    free = iter(sorted(set(range(len(files))) - set(known)))
    return [next(free) if number is None else number for number in told], False


def _rank(number: int, file: RankFile, parts: Split, place: int | None) -> Rank:
    totals = file.totals
    if totals is None or place is None:
        return Rank(rank=number, source=file.source, fault=file.fault)
    split_whole = place not in parts.unsplit and totals.kernel_ns is not None
    return Rank(
        rank=number,
        source=file.source,
        cut=file.cut,
        steps=file.steps,
        parts=_parts(file),
        step_ns=totals.step_ns,
        kernels=totals.kernels,
        kernel_ns=totals.kernel_ns,
        busy_ns=totals.busy_ns,
        host_ns=totals.causes["host"],
        collective_ns=None if totals.kernel_ns is None else parts.collective_ns[place],
        waiting_ns=parts.waiting_ns[place] if split_whole else None,
        moving_ns=parts.moving_ns[place] if split_whole else None,
        waited_for_ns=parts.waited_for_ns[place] if split_whole else None,
    )


def _parts(file: RankFile) -> int:
    return max(1, file.steps) * max(1, file.devices)


def _layers(files: Sequence[tuple[int, RankFile]], by: str) -> tuple[LayerSpread, ...]:
    """Every layer with its spread, the one that differs most first."""
    met: dict[str, list[tuple[int, int, Line]]] = {}
    for number, file in files:
        for line in file.layers if by == "layer" else file.ops:
            met.setdefault(line.label, []).append((number, _parts(file), line))
    found = []
    for label, here in met.items():
        kernel = _spread([(line.kernel_ns / parts, number) for number, parts, line in here])
        host = _spread([(line.host_ns / parts, number) for number, parts, line in here])
        headroom = [(line.headroom_ns / parts, number) for number, parts, line in here if line.headroom_ns is not None]
        assert kernel is not None and host is not None
        found.append(
            LayerSpread(
                label=label,
                ranks=len(here),
                kernel_ns=kernel,
                host_ns=host,
                headroom_ns=_spread(headroom),
            )
        )
    return tuple(sorted(found, key=lambda layer: (-layer.kernel_ns.max, layer.label)))


def _spread(values: Sequence[tuple[float, int]]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(value for value, _ in values)
    most = max(values, key=lambda pair: (pair[0], -pair[1]))
    return Spread(ordered[0], median(ordered), ordered[-1], most[1])


def _straggler(ranks: Sequence[Rank], parts: Split, layers: Sequence[LayerSpread]) -> Straggler | None:
    """The rank that the others wait for most; without collectives the one with the longest step."""
    timed = [rank for rank in ranks if rank.kernel_ns is not None and rank.step_ns]
    if len(timed) < 2:
        return None
    step = median(rank.step_ns / rank.parts for rank in timed)
    if sum(parts.waiting_ns):
        waited_ns = dict(zip((rank.rank for rank in ranks), parts.waited_for_ns, strict=True))
        worst = max(timed, key=lambda rank: waited_ns[rank.rank])
        ns = waited_ns[worst.rank] / worst.parts / (len(timed) - 1)
        share = waited_ns[worst.rank] / sum(parts.waiting_ns)
        text = f"the others wait for rank {worst.rank}, {units.duration(ns)} of each step: {share:.0%} of all waiting"
    else:
        worst = max(timed, key=lambda rank: rank.step_ns / rank.parts)
        ns = worst.step_ns / worst.parts - step
        text = f"rank {worst.rank} has the longest step, {ns / step:.0%} over the median"
    if ns < _TRIFLE * step:
        return None
    return Straggler(rank=worst.rank, ns=ns, text=text + _because(worst.rank, layers, _TRIFLE * step))


def _because(rank: int, layers: Iterable[LayerSpread], least_ns: float) -> str:
    """The layer in which the rank is longest over the median, where that is worth telling."""
    behind = [
        (spread.max - spread.median, layer.label, what)
        for layer in layers
        for spread, what in ((layer.kernel_ns, "kernels"), (layer.host_ns, "host"))
        if spread.max_rank == rank and layer.ranks > 1
    ]
    ns, label, what = max(behind, default=(0.0, "", ""))
    if ns < least_ns:
        return ""
    return f"; it is slowest in {label}, whose {'host time is' if what == 'host' else 'kernels take'} longer there"


def _notes(
    files: Sequence[RankFile], numbers: Sequence[int], world: int | None, parts: Split, clash: bool
) -> Iterable[str]:
    if clash:
        yield "several files are of the same rank, so ranks are numbered by the order of the files"
    present = len(files)
    if world is not None and present < world:
        yield f"{present} of {world} ranks are here"
    if parts.apart:
        yield (
            f"the kernels of {parts.apart:,} collectives have no instant in common, so clocks of ranks disagree; there "
            "the shortest kernel is taken for the one that did not wait"
        )
    said: dict[str, dict[str, list[int]]] = {}
    for file, number in zip(files, numbers, strict=True):
        for kind, text in file.notes:
            said.setdefault(kind, {}).setdefault(text, []).append(number)
    for texts in said.values():
        of = [number for those in texts.values() for number in those]
        yield next(iter(texts)) + _who(of, len(files), alike=len(texts) == 1)


def _who(ranks: Sequence[int], of: int, *, alike: bool) -> str:
    """Which ranks a note is about, where not all say the same."""
    if alike and len(ranks) == of:
        return ""
    listed = ", ".join(map(str, ranks[:_MOST_NAMED])) + (", …" if len(ranks) > _MOST_NAMED else "")
    return f" (rank {listed})" if alike else f" (rank {ranks[0]}; {len(ranks) - 1} other ranks say the like)"
