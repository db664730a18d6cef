"""The whole accounting of one layer: what it ran, what that had to do, and which limit judged it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from torchroof import units
from torchroof.device.roof import Ceiling, Roof
from torchroof.errors import OptionError
from torchroof.report.flags import why
from torchroof.report.fold import pattern_of
from torchroof.report.lenses import UNOWNED_HOST, layer_label, lines
from torchroof.report.line import Line, Lines, known_sum, line_of
from torchroof.report.model import PHASES, Copy, Device, Kernel, Layer, ReportData, Row, Tensor
from torchroof.report.naming import is_layer, layers_named
from torchroof.roofline.place import pipe_of, ridge
from torchroof.roofline.verdict import IDLE_UNITS_EFFICIENCY, LATENCY_FACTOR, words
from torchroof.work.plugins import installed
from torchroof.work.registry import Registry

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one op did in one phase, as a report's rows tell it; rows of equal layers are added up.

    Sums are over the counted steps. ``ceilings`` are those that judged, ``attribution`` and ``unknown`` as in
    the rows, without repetition.
    """

    phase: str
    op: str | None
    precision: str | None
    calls: int
    kernels: int
    kernel_ns: int
    busy_ns: int
    host_ns: int
    flops: int | None
    flops_full: int | None
    flops_known_ns: int
    bytes_read: int | None
    bytes_written: int | None
    bytes_upper: int | None
    bytes_known_ns: int
    intensity: float | None
    floor_ns: int | None
    floor_known_ns: int
    headroom_ns: int | None
    achieved_flops_per_s: float | None
    achieved_bytes_per_s: float | None
    efficiency: float | None
    side: str | None
    bound: str | None
    verdict: str
    """The bound in words."""
    because: str | None
    """What makes it so, with the figures compared."""
    formula: str | None
    """How the op's FLOPs are counted, in words; None for an op without a work model."""
    ceilings: tuple[Ceiling, ...]
    attribution: tuple[str, ...]
    unknown: tuple[str, ...]
    judged: tuple[str, ...] = ()
    """Why it is judged by this precision and pipe."""
    host_floor_ns: float | None = None
    """The least time that the device's host spends on an op, where it was measured."""
    shared: bool = False
    """Its calls work for other layers, too (an optimizer's over all parameters): ``calls`` are those that are counted
    here, each in one layer only, and the rest is this layer's part."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One layer, or several equal ones as one. ``total`` is ``own`` and everything within it."""

    schema: str = "torchroof.explain/1"
    path: str
    """A path, a pattern, or a label in parentheses for what has no layer."""
    type: str | None
    members: tuple[str, ...]
    """The paths that the pattern stands for; one for a layer."""
    aliases: tuple[str, ...] = ()
    calls: int | None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    parameters: tuple[Tensor, ...] = ()
    flagged: bool = False
    why: str | None = None
    """In words the op of its own that could win back most."""
    steps: int
    """Divisor for means per step (steps x devices)."""
    step_ns: int
    kernel_ns_per_step: tuple[int, ...] = ()
    """Kernel time of ``total`` in each counted step."""
    parts: tuple[Part, ...]
    """Its own ops by phase, those with the most headroom first; without those of the layers in it."""
    kernels: tuple[Kernel, ...]
    """The kernels of ``parts``."""
    copies: tuple[Copy, ...]
    own: Line
    total: Line
    children: Lines | None
    """For a container its own and its children's lines, each child with all within it, equal ones folded; for an op
    the layers that ran it."""


def explain(data: ReportData, path: str, registry: Registry | None = None) -> Account:
    """The accounting of a layer, of a pattern of equal layers, of an op, or of a label such as ``(optimizer)``.

    ``registry`` gives the formulas in words (default: the installed ones). Raises OptionError where nothing has
    the path.
    """
    if not isinstance(path, str):
        raise OptionError(f"{path!r} is no layer's path; give a text, such as encoder.layer.0")
    registry = registry or installed().registry
    loose = [row for row in data.rows if row.path is None and layer_label(row, None) == path]
    if loose:
        return _account(data, path, (), loose, loose, registry)
    ran = [row for row in data.rows if row.op is not None and row.op in (path, f"aten::{path}")]
    if ran and not is_layer(data, path):
        return _account(data, ran[0].op or path, (), ran, ran, registry)
    if path == UNOWNED_HOST or any(path == f"({entry.reason})" for entry in data.unattributed):
        raise OptionError(
            f"nothing is known of {path} but its time: no op and no layer own it; --by kernel lists kernels"
        )
    name, members = layers_named(data, path)
    chosen = set(members)
    own = [row for row in data.rows if row.path in chosen]
    within = [row for row in data.rows if row.path is not None and _is_within(row.path, members)]
    return _account(data, name, members, own, within, registry)


def _is_within(path: str, members: Sequence[str]) -> bool:
    return any(path == member or not member or path.startswith(f"{member}.") for member in members)


def _account(
    data: ReportData, name: str, members: tuple[str, ...], own: list[Row], within: list[Row], registry: Registry
) -> Account:
    chosen = set(members)
    layers = [layer for layer in data.layers if layer.path in chosen]
    part = _of_rows(data, within)
    whole = lines(part)
    keys = {(row.path, row.phase, row.op) for row in own}
    return Account(
        path=name,
        type=_same(layer.type for layer in layers),
        members=members,
        aliases=layers[0].aliases if len(layers) == 1 else (),
        calls=sum(layer.calls for layer in layers) if layers else None,
        inputs=_same(layer.inputs for layer in layers) or (),
        outputs=_same(layer.outputs for layer in layers) or (),
        parameters=_same(layer.parameters for layer in layers) or (),
        flagged=any(layer.flagged for layer in layers) or _is_flagged(data, name),
        why=why(own) if own else None,
        steps=whole.steps,
        step_ns=whole.step_ns,
        kernel_ns_per_step=tuple(map(sum, zip(*(row.kernel_ns_per_step for row in within), strict=True))),
        parts=parts_of(data, own, registry, layer=bool(members)),
        kernels=_merged(name, (k for k in data.kernels if (k.path, k.phase, k.op) in keys)),
        copies=tuple(c for c in data.copies if c.path in chosen),
        own=_own(name, own, layers),
        total=msgspec.structs.replace(whole.total, label="total"),
        children=_children(part, members) if members else _layers_of_op(part, name),
    )


def _is_flagged(data: ReportData, label: str) -> bool:
    """Whether a line without a layer is flagged, in a table of ops where no layer is known."""
    by = "layer" if data.layers else "op"
    return any(line.flagged for line in lines(data, by=by).lines if line.label == label and line.path is None)


def _layers_of_op(data: ReportData, name: str) -> Lines | None:
    """The layers that ran an op. None for what is no op, or where no layer is known."""
    is_op = any(row.op == name for row in data.rows)
    return lines(data, fold=True) if is_op and any(row.path is not None for row in data.rows) else None


def _of_rows(data: ReportData, rows: Sequence[Row]) -> ReportData:
    """A report of these rows alone."""
    totals = msgspec.structs.replace(data.totals, host_unowned_ns=0)
    return msgspec.structs.replace(data, rows=tuple(rows), unattributed=(), totals=totals)


def _same(values: Iterable[T]) -> T | None:
    """The one value that all have; None where they differ."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else None


def _own(name: str, rows: list[Row], layers: list[Layer]) -> Line:
    if not rows:
        return Line(label="(own)", path=name)
    return msgspec.structs.replace(line_of("(own)", rows, path=name), calls=sum(x.calls for x in layers) or None)


def _children(data: ReportData, members: Sequence[str]) -> Lines | None:
    """The lines of a container: what lies one deeper, and its own. None for what has nothing within it."""
    known = [*(layer.path for layer in data.layers), *(row.path for row in data.rows if row.path is not None)]
    if not any(path not in members and _is_within(path, members) for path in known):
        return None
    depth = members[0].count(".") + 1 if members[0] else 0
    grouped = lines(data, depth=depth + 1, fold=True)
    own = {*members, pattern_of(members)}
    named = [msgspec.structs.replace(x, label="(own)") if x.path in own else x for x in grouped.lines]
    return msgspec.structs.replace(grouped, lines=tuple(named))


def parts_of(data: ReportData, rows: Iterable[Row], registry: Registry, *, layer: bool = True) -> tuple[Part, ...]:
    """The parts of a layer's rows, or of several equal layers' rows: phases in their order, most headroom first.

    Without ``layer`` the rows are all that an op has anywhere.
    """
    devices = {device.index: device for device in data.devices}
    groups: dict[tuple[str, str | None, str | None, str | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.phase, row.op, row.precision, row.pipe), []).append(row)
    parts = [_part(same, devices, registry, layer) for same in groups.values()]
    place = {phase: position for position, phase in enumerate(PHASES)}

    def order(part: Part) -> tuple[int, int, int, str]:
        return place.get(part.phase, len(place)), -(part.headroom_ns or 0), -part.kernel_ns, part.op or ""

    return tuple(sorted(parts, key=order))


def _part(rows: list[Row], devices: dict[int, Device], registry: Registry, layer: bool) -> Part:
    first, line = rows[0], line_of("", rows)
    device = devices.get(first.device)
    model = registry.model(first.op) if first.op else None
    judging = dict.fromkeys(
        devices[row.device].ceilings[row.ceiling] for row in rows if row.ceiling is not None and row.device in devices
    )
    return Part(
        phase=first.phase,
        op=first.op,
        precision=first.precision,
        calls=sum(row.calls for row in rows),
        kernels=line.kernels,
        kernel_ns=line.kernel_ns,
        busy_ns=line.busy_ns,
        host_ns=line.host_ns,
        flops=line.flops,
        flops_full=known_sum(row.flops_full for row in rows),
        flops_known_ns=line.flops_known_ns,
        bytes_read=known_sum(row.bytes_read for row in rows),
        bytes_written=known_sum(row.bytes_written for row in rows),
        bytes_upper=known_sum(row.bytes_upper for row in rows),
        bytes_known_ns=line.bytes_known_ns,
        intensity=line.intensity,
        floor_ns=line.floor_ns,
        floor_known_ns=line.floor_known_ns,
        headroom_ns=line.headroom_ns,
        achieved_flops_per_s=line.achieved_flops_per_s,
        achieved_bytes_per_s=line.achieved_bytes_per_s,
        efficiency=line.efficiency,
        side=line.side,
        bound=line.bound,
        verdict=words(line.bound, line.efficiency, host_ns=line.host_ns, busy_ns=line.busy_ns),
        because=_because(line, rows, device, registry),
        formula=model.words if model else None,
        ceilings=tuple(judging),
        attribution=tuple(dict.fromkeys(row.attribution for row in rows)),
        unknown=tuple(dict.fromkeys(row.unknown for row in rows if row.unknown)),
        judged=tuple(dict.fromkeys(row.judged for row in rows if row.judged)),
        host_floor_ns=_host_floor_ns(device),
        shared=layer and any(row.shared for row in rows),
    )


def _host_floor_ns(device: Device | None) -> float | None:
    floor = None if device is None else Roof(device.name or "", device.ceilings).host()
    return None if floor is None else floor.value * 1e9


def _because(line: Line, rows: Sequence[Row], device: Device | None, registry: Registry) -> str | None:
    """The comparison that made the bound; None where there is none to tell."""
    if line.bound == "communication":
        return "all of its kernels are collectives"
    if line.bound in (None, "unmodelled") or device is None or not device.ceilings:
        return None
    roof = Roof(device.name or "", device.ceilings)
    if line.bound == "latency":
        return _latency(line, rows, roof)
    row = rows[0]
    pipe = row.pipe or pipe_of(registry.family(row.op or ""))
    compute = roof.compute(row.precision, pipe) if row.precision else None
    judge = None if row.ceiling is None else device.ceilings[row.ceiling]
    bandwidth = judge if judge is not None and judge.kind == "bandwidth" else roof.bandwidth()
    return _sides(line, compute, bandwidth)


def _latency(line: Line, rows: Sequence[Row], roof: Roof) -> str:
    """Kernels that are short, of the layer that has the shortest; else a grid that is small."""
    launch = roof.launch()
    mean = min((row.kernel_ns / row.kernels for row in rows if row.kernels), default=0.0)
    if launch is not None and mean < LATENCY_FACTOR * launch.value * 1e9:
        return (
            f"a kernel takes {units.duration(mean)} on average, less than {units.digits(LATENCY_FACTOR)} x what one "
            f"that does next to nothing takes, {units.duration(launch.value * 1e9)}"
        )
    return (
        f"it has fewer blocks than the device has multiprocessors, and reaches less than "
        f"{units.percent(IDLE_UNITS_EFFICIENCY)} of its roof"
    )


def _sides(line: Line, compute: Ceiling | None, bandwidth: Ceiling | None) -> str | None:
    if line.flops == 0 and line.bytes is not None:
        told = "it does no arithmetic that counts, so only its bytes can bind it"
    elif line.intensity is None or compute is None or bandwidth is None:
        return None
    else:
        point = ridge(compute, bandwidth)
        if (line.intensity > point) != (line.side == "compute"):
            longer, shorter = ("FLOPs", "bytes") if line.side == "compute" else ("bytes", "FLOPs")
            return f"call by call, {longer} take longer than {shorter}"
        told = (
            f"{units.digits(line.intensity)} FLOPs per byte, and the ridge point of {compute.precision} {compute.pipe} "
            f"over {bandwidth.level} is {units.digits(point)}"
        )
    if line.bound == "cache" and bandwidth is not None:
        told += f"; its tensors were touched so recently that {bandwidth.level} still held them, or it was that quick"
    return told


def _merged(path: str, kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Kernels by name, phase and op, as one layer's; the longest first."""
    groups: dict[tuple[str, str | None, str | None], list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.name, kernel.phase, kernel.op), []).append(kernel)
    merged = [
        msgspec.structs.replace(
            same[0],
            path=path,
            kernels=sum(k.kernels for k in same),
            kernel_ns=sum(k.kernel_ns for k in same),
            blocks=known_sum(k.blocks for k in same) if all(k.blocks is not None for k in same) else None,
            resident_blocks=same[0].resident_blocks if len({k.resident_blocks for k in same}) == 1 else None,
            waves=_mean([(k.waves, k.kernels) for k in same]),
            wave_efficiency=_mean([(k.wave_efficiency, k.kernel_ns) for k in same]),
        )
        for same in groups.values()
    ]
    return tuple(sorted(merged, key=lambda k: (-k.kernel_ns, k.name, k.phase or "", k.op or "")))


def _mean(weighted: Iterable[tuple[float | None, int]]) -> float | None:
    """Of what has a weight; None where one of these is unknown."""
    found = [(value, weight) for value, weight in weighted if weight]
    if not found or any(value is None for value, _ in found):
        return None
    return sum((value or 0.0) * weight for value, weight in found) / sum(weight for _, weight in found)
