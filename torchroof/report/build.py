"""The one composer: a trace becomes a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from torchroof.device.cache import Cached
from torchroof.device.roof import Ceiling
from torchroof.join.attribute import (
    PHASE_NAMES,
    REASON_TEXTS,
    Attribution,
    Phase,
    RunKind,
    attribute,
)
from torchroof.join.kernels import Kernels as JoinedKernels
from torchroof.report.environment import describe_environment
from torchroof.report.grids import list_kernels
from torchroof.report.layers import list_layers
from torchroof.report.ledger import Ledger, keep_ledger
from torchroof.report.lenses import flag_layers
from torchroof.report.model import Copy, Device, Kernel, Note, ReportData, Step, Unattributed
from torchroof.report.pricing import Prices, price_calls
from torchroof.report.residency import serve
from torchroof.report.roofs import Chosen, Wish, choose_roofs
from torchroof.report.rows import Rows, build_rows
from torchroof.report.sharing import share_optimizers
from torchroof.report.suspicions import low_roof_note, suspicions
from torchroof.report.totals import add_up
from torchroof.trace.table import NONE, TraceTable
from torchroof.work.plugins import installed
from torchroof.work.registry import Model


def analyse(
    table: TraceTable,
    *,
    device: str | None = None,
    ceilings: Sequence[Ceiling] | None = None,
    local: Sequence[Cached] | None = None,
    roof: str | None = None,
    models: Iterable[Model] = (),
) -> ReportData:
    """The report of one trace.

    ``device`` names a device of the catalogue whose roof judges in place of the file's own; ``ceilings``
    replace all others; ``local`` are measurements of this machine's devices, to be used in place of the file's
    own; ``roof`` (measured or datasheet) says which of two limits judges; ``models`` are formulas besides those
    that are installed. Raises UnknownDevice, OptionError, and RegistrationError for a formula whose op has one.
    A device that nobody knows leaves the report without a roof.
    """
    registry = installed().registry.extended(models)
    attribution = attribute(table, registry.role)
    if attribution.run is RunKind.LOST:
        return _lost(table, attribution)
    ledger = keep_ledger(table, attribution)
    wish = Wish(device, ceilings, local, roof)
    on_cpu = attribution.run is RunKind.CPU
    found = choose_roofs(table.metadata, attribution.facts, ledger.devices, wish, on_cpu=on_cpu)
    chosen = {c.index: c for c in found}
    shares = share_optimizers(table, attribution)

    def judged(by: Mapping[int, Chosen]) -> tuple[Prices, Rows, tuple[Kernel, ...]]:
        roofs = {i: c.roof for i, c in by.items()}
        prices = serve(table, attribution, price_calls(table, attribution, registry, roofs), roofs)
        rows = build_rows(attribution, ledger, prices, shares, by)
        return prices, rows, list_kernels(table, attribution, prices, rows, by)

    judges = chosen
    prices, rows, kernels = judged(judges)
    suspected = suspicions(rows.rows, kernels, chosen)
    doubts = suspected.notes
    if suspected.too_low is not None:
        doubts = (low_roof_note(suspected.too_low, rows.rows, chosen), *doubts)
        judges = {i: replace(c, roof=None) for i, c in chosen.items()}
        prices, rows, kernels = judged(judges)
    unattributed = _unattributed(attribution, ledger)
    totals = add_up(attribution, ledger, rows, prices, unattributed, judges)
    unflagged = ReportData(
        environment=describe_environment(table, attribution.facts),
        devices=tuple(_device(c) for c in chosen.values()),
        steps=sum(attribution.steps.counted),
        per_step=_steps(attribution),
        totals=totals,
        layers=list_layers(attribution),
        rows=rows.rows,
        kernels=kernels,
        copies=_copies(table, attribution),
        unattributed=unattributed,
        notes=(*_notes(table, attribution, chosen), *doubts),
    )
    return flag_layers(unflagged)


def _lost(table: TraceTable, attribution: Attribution) -> ReportData:
    """A file whose device activity was lost: kernel time is unknown, and no law is stated for it."""
    return ReportData(
        environment=describe_environment(table, attribution.facts),
        steps=sum(attribution.steps.counted),
        per_step=_steps(attribution),
        totals=add_up(attribution, None, Rows((), np.zeros(0, dtype=np.int64)), None, (), {}),
        layers=list_layers(attribution),
        copies=_copies(table, attribution),
        notes=_notes(table, attribution, {}),
    )


def _device(chosen: Chosen) -> Device:
    roof = chosen.roof
    return Device(
        index=chosen.index,
        name=chosen.name,
        matched=roof.matched if roof else None,
        ceilings=roof.ceilings if roof else (),
    )


def _steps(attribution: Attribution) -> tuple[Step, ...]:
    steps = attribution.steps
    lengths = (steps.end_ns - steps.start_ns).tolist()
    return tuple(
        Step(index=n, ns=ns, counted=counts) for n, ns, counts in zip(steps.number, lengths, steps.counted, strict=True)
    )


def _unattributed(attribution: Attribution, ledger: Ledger) -> tuple[Unattributed, ...]:
    kernels: JoinedKernels = attribution.kernels
    found = []
    for reason, text in REASON_TEXTS.items():
        here = kernels.reason == reason
        if here.any():
            found.append(
                Unattributed(
                    reason=text,
                    kernels=int(here.sum()),
                    kernel_ns=int(kernels.ns[here].sum()),
                    busy_ns=int(ledger.busy_ns[here].sum()),
                    host_ns=int(ledger.host_ns[here].sum()),
                )
            )
    return tuple(found)


def _copies(table: TraceTable, attribution: Attribution) -> tuple[Copy, ...]:
    """Copies and memsets of the counted steps, and those whose launch is not in the file."""
    copies = attribution.copies
    sums: dict[tuple[str, str | None, str], tuple[int, int | None, int]] = {}
    known_ns = copies.end_ns - copies.start_ns
    columns = (copies.name, copies.layer, copies.phase, copies.bytes, known_ns, copies.step)
    for name, layer, phase, size, ns, step in zip(*(c.tolist() for c in columns), strict=True):
        if step == NONE and attribution.steps.marked:
            continue
        path = attribution.layers[layer].path if layer != NONE else None
        key = (table.names[name], path, PHASE_NAMES[Phase(phase)])
        calls, total, spent = sums.get(key, (0, 0, 0))
        total = None if total is None or size == NONE else total + size
        sums[key] = (calls + 1, total, spent + ns)
    listed = [
        Copy(kind=kind, path=path, phase=phase, calls=calls, bytes=size, ns=ns)
        for (kind, path, phase), (calls, size, ns) in sums.items()
    ]
    return tuple(sorted(listed, key=lambda c: (-c.ns, c.kind, c.path or "", c.phase or "")))


def _notes(table: TraceTable, attribution: Attribution, chosen: dict[int, Chosen]) -> tuple[Note, ...]:
    notes = [Note(kind=n.kind, text=n.text, count=n.count) for n in attribution.notes]
    said: set[str] = set()
    for c in chosen.values():
        for text in c.notes:
            if text not in said:
                said.add(text)
                notes.append(Note(kind="roof", text=text))
    if attribution.facts:
        notes.extend(Note(kind="capture", text=text) for text in attribution.facts.notes)
    notes.extend(Note(kind="work models", text=text) for text in installed().problems)
    if len(attribution.kernels) and not table.signatures:
        notes.append(
            Note(
                kind="no shapes",
                text="The file has no operand shapes, so no work is known; record with record_shapes=True.",
            )
        )
    if attribution.run is RunKind.CPU and not attribution.facts and len(attribution.kernels):
        notes.append(
            Note(
                kind="cpu run",
                text="The file has neither kernels nor launches of a device, so its ops on the host are the kernels. "
                "If it was recorded on a GPU, the device's activity is missing, and these times are not the device's.",
            )
        )
    windows = len(attribution.steps.runs())
    if windows > 1:
        text = f"The counted steps are of {windows} windows: what lies between two windows counts nowhere."
        notes.append(Note(kind="windows", text=text, count=windows))
    if not attribution.steps.marked and attribution.run is not RunKind.LOST:
        notes.append(Note(kind="no steps", text="The file has no step marks: it counts as one step."))
    return tuple(notes)
