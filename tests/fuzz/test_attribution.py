"""Random training runs in which the sizes of every matrix tell the truth: every op is on the right layer and phase.

A third of the seeds call backward on another Python thread; a third are read as a GPU would have written them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import laws
import pytest
import torch
from gpu_writer import KERNEL, GpuWriter
from runs import Plan, Run, dispatched, profiled
from trees import BATCH
from truth import MATRICES, Event, Truth, load, never_ran, read_events

from torchroof.join import attribute
from torchroof.join.attribute import PHASE_NAMES, SOURCE_TEXTS, Attribution
from torchroof.report import build
from torchroof.report.sharing import share_optimizers
from torchroof.trace.reader import read
from torchroof.trace.table import NONE, TraceTable
from torchroof.work.standard import STANDARD

MODES = ("the calling thread", "another thread", "a GPU")
SEEDS = 42
FEWEST = 3_400
"""Ops checked in each mode, over all of its seeds."""


@dataclass(frozen=True)
class Recorded:
    """A run's trace as one mode reads it, and what must be true of it."""

    plan: Plan
    table: TraceTable
    truth: Truth
    events: list[Event]
    by_place: dict[tuple[str, int, str], Event]
    never_ran: frozenset[int]
    """Numbers of events."""
    launched: frozenset[int] | None
    """On a GPU, the numbers of the events that have kernels."""


@cache
def recorded(seed: int) -> Recorded:
    mode = MODES[seed % 3]
    plan = Plan.of(seed, backward_thread=mode == "another thread")
    run = Run(plan)
    owners = run.owners
    prof = profiled(run)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        prof.export_trace(path)
        raw = load(path)
        events = read_events(raw)
        truth = Truth(owners, events, plan.traits.twice)
        cut = never_ran(truth, events, dispatched(plan))
        launched = None
        if mode == "a GPU":
            writer = GpuWriter(raw, events, cut, seed)
            alone = plan.trees == 1 and not plan.traits.reentrant and not plan.traits.twice
            path = writer.write(Path(folder) / "gpu.json", run.made, flows=not (alone and seed % 2))
            launched = frozenset(writer.launched)
        table = read(path)
    by_place = {(e.thread, e.start_ns, e.name): e for e in events}
    return Recorded(plan, table, truth, events, by_place, frozenset(e.number for e in cut), launched)


def event_of_kernel(run: Recorded, found: Attribution, kernel: int) -> Event:
    """The raw event whose operands tell the truth of a kernel."""
    if run.launched is not None:
        return _numbered(run)[int(run.table.names[found.kernels.name[kernel]].removeprefix(KERNEL))]
    op, nest = int(found.kernels.op[kernel]), found.nest
    return run.by_place[run.table.thread_ids[nest.thread[op]], int(nest.start_ns[op]), run.table.names[nest.name[op]]]


def _numbered(run: Recorded) -> dict[int, Event]:
    return {e.number: e for e in run.events}


def check(run: Recorded) -> tuple[int, Counter[Any]]:
    """How many ops were checked, and those that are in the wrong place."""
    found = attribute.attribute(run.table, STANDARD.role)
    shares = share_optimizers(run.table, found).weights
    numbered = _numbered(run)
    checked, wrong, seen = 0, Counter[Any](), set[int]()
    for kernel in range(len(found.kernels)):
        if run.launched is not None:
            event = numbered[int(run.table.names[found.kernels.name[kernel]].removeprefix(KERNEL))]
        else:
            event = event_of_kernel(run, found, kernel)
        seen.add(event.number)
        right = run.truth.answer(event)
        if right is None or (right[1] == "optimizer" and run.plan.foreach and run.launched is not None):
            continue  # what runs inside a foreach op is divided as the whole is
        checked += 1
        layer = int(found.layer[kernel])
        path = found.layers[layer].path if layer != NONE else None
        if right[1] == "optimizer":
            # The op is the optimizer's; what it does is shared out, here to one layer alone.
            owners = [
                found.layers[i].path if i != NONE else None for i, _ in shares.get(int(found.kernels.op[kernel]), ())
            ]
            path = owners[0] if len(owners) == 1 else None
        got = (path, PHASE_NAMES[int(found.phase[kernel])])
        if got != right or found.kernels.step[kernel] == NONE:
            wrong[event.name, event.shapes[:2], right, got, SOURCE_TEXTS[int(found.source[kernel])]] += 1
    wrong += _products_lost(run, seen) + _cut_ops(run, found)
    return checked, wrong


def _products_lost(run: Recorded, seen: set[int]) -> Counter[Any]:
    """Products that are no kernel. The second order of a convolution is one op with products inside."""
    lost = (e for e in run.events if e.name in MATRICES and e.number not in seen)
    if run.launched is not None:
        return Counter(("lost", e.name, e.shapes[:2]) for e in lost if e.number in run.launched)
    return Counter(("lost", e.name, e.shapes[:2]) for e in lost)


def _cut_ops(run: Recorded, found: Attribution) -> Counter[Any]:
    if run.launched is not None:
        return Counter()
    nest, names = found.nest, run.table.names
    cut = {
        run.by_place[run.table.thread_ids[nest.thread[i]], int(nest.start_ns[i]), names[nest.name[i]]].number
        for i in found.cut_ops
    }
    known = {e.number for e in run.events if run.truth.answer(e) is not None}
    return Counter(("cut or not", n) for n in (cut & known) ^ run.never_ran)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("mode", MODES)
def test_every_op_is_on_the_right_layer_and_phase(mode: str) -> None:
    checked, wrong = 0, {}
    for seed in range(MODES.index(mode), SEEDS, len(MODES)):
        count, faults = check(recorded(seed))
        checked += count
        if faults:
            wrong[seed] = faults.most_common(5)
    assert not wrong
    assert checked >= FEWEST


@pytest.mark.parametrize("mode", MODES)
def test_reports_keep_the_laws_and_count_each_product_for_its_layer(mode: str) -> None:
    for seed in range(MODES.index(mode), SEEDS, 3 * len(MODES)):
        run = recorded(seed)
        data = build.analyse(run.table)
        laws.check(data)
        flops: Counter[Any] = Counter()
        for row in data.rows:
            if row.op in ("aten::mm", "aten::addmm") and row.flops:
                flops[row.path, row.phase] += row.flops
        assert flops == _flops(run), seed


def _flops(run: Recorded) -> Counter[Any]:
    """A product of widths a and b does 2·batch·a·b FLOPs, whichever way round, unless it never ran."""
    flops: Counter[Any] = Counter()
    for event in run.events:
        answer = run.truth.answer(event) if event.name in ("aten::mm", "aten::addmm") else None
        ran = event.number not in run.never_ran and (run.launched is None or event.number in run.launched)
        if answer is not None and ran:
            left, right = (event.shapes[i] for i in MATRICES[event.name])
            flops[answer] += 2 * left[0] * left[1] * right[1]
            assert BATCH in (*left, *right)
    return flops
