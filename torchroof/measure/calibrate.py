"""What a device can do, measured with the torch and the threads that a run will use, and kept for later runs.

The user's random state, autocast, grad mode, default device, element type and modes (those that count FLOPs or make
fake tensors) play no part and are not touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchroof.device import cache
from torchroof.device.cache import Cached
from torchroof.device.roof import Ceiling
from torchroof.measure.bench import Bench, dtype_name
from torchroof.measure.conditions import cache_key, conditions, device_name
from torchroof.measure.floors import floors
from torchroof.measure.hardware import MIB
from torchroof.measure.memory import Point, levels, rising
from torchroof.measure.products import Product, Shape, best_product, is_chain, products, vector_rate, with_pipes
from torchroof.measure.quiet import Moment, busy_reason

Progress = Callable[[float, str], None]
"""Called with the part that is done (0 to 1) and what comes next."""

UNSTEADY = 0.8
"""A best run whose median is under this part of it is not to be relied on."""
_ATTEMPTS = 3
"""So often is a processor that was never quiet measured again, by as many runs, before they look first."""
_DOUBTS = 2
"""So often does a run that surpasses the roof have it measured again: after that a formula is the likelier fault."""


def _cubes(*sizes: int) -> tuple[Shape, ...]:
    return tuple((n, n, n) for n in sizes)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried. Times in seconds; ``main_memory`` bounds the working set that stands for it, in bytes."""

    total_s: float
    shapes: tuple[Shape, ...]
    shapes_on_accelerator: tuple[Shape, ...]
    longest_product_s: float
    each_product_s: float
    each_traffic_s: float
    floors_s: float
    main_memory: int | None = None


LIVE = Effort(3.0, _cubes(1024, 2048), _cubes(4096), 0.1, 0.12, 0.06, 0.1, main_memory=384 * MIB)
"""Before a run is recorded."""
QUICK = Effort(
    7.5, (*_cubes(1024, 2048), (4096, 1024, 4096)), _cubes(4096, 8192), 0.2, 0.25, 0.12, 0.2, main_memory=1024 * MIB
)
FULL = Effort(
    110.0,
    (*_cubes(1024, 1536, 2048, 3072, 4096), (2048, 4096, 2048), (4096, 1024, 4096)),
    (*_cubes(2048, 4096, 8192, 16384), (8192, 4096, 8192), (16384, 4096, 4096)),
    1.5,
    1.2,
    0.5,
    0.5,
)


@dataclass(frozen=True)
class Calibration:
    """What was measured: ceilings, under which conditions, and sentences on what is missing or doubtful.

    ``quiet`` is whether nothing else ran meanwhile, ``seconds`` how long it took, ``sweep`` a copy's rate by
    working set.
    """

    device: str
    ceilings: tuple[Ceiling, ...]
    notes: tuple[str, ...] = ()
    conditions: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = True
    complete: bool = True
    seconds: float = 0.0
    sweep: tuple[Point, ...] = ()


def calibrate(device: torch.device, effort: Effort, progress: Progress | None = None) -> Calibration:
    """Measures in about ``effort.total_s`` seconds, what matters most first.

    What a roof cannot do without is measured however long it takes, the rest if time is left.
    """
    start, moment = time.perf_counter(), Moment.now()
    tell = progress or (lambda *_: None)
    bench = Bench(device, start + effort.total_s)
    found: list[Ceiling] = []
    missing: list[str] = []
    sweep: list[Point] = []
    parts = _parts(device, effort, sweep)
    with _without_modes(), torch.no_grad(), torch.autocast(device.type, enabled=False):
        for number, part in enumerate(parts):
            tell(number / len(parts), part.name)
            share = part.weight / sum(p.weight for p in parts[number:])
            if bench.left_s <= 0 and part.optional:
                missing.append(part.name)
                continue
            try:
                found.extend(part.measure(bench.until(max(0.0, share * bench.left_s))))
            except Exception as why:  # a kernel that this build lacks, no memory: the rest is still of use
                if not part.optional:
                    missing.append(f"{part.name} ({(str(why) or type(why).__name__).splitlines()[0]})")
    tell(1.0, "done")
    load = moment.since() if moment is not None else None
    disturbed = load.too_much_for(_host_threads(device)) if load is not None else None
    return Calibration(
        device=device_name(device),
        ceilings=tuple(_sure(c, disturbed) for c in with_pipes(found)),
        notes=_notes(device, found, missing, disturbed),
        conditions=conditions(device),
        quiet=disturbed is None,
        complete=not missing,
        seconds=time.perf_counter() - start,
        sweep=tuple(sweep),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One measurement. ``weight`` is its share of the time, ``optional`` whether it may fail without a word."""

    name: str
    weight: float
    measure: Callable[[Bench], Iterable[Ceiling]]
    optional: bool = False


def _parts(device: torch.device, effort: Effort, sweep: list[Point]) -> list[_Part]:
    """What matters most first."""
    on_host = device.type == "cpu"
    shapes = effort.shapes if on_host else effort.shapes_on_accelerator

    def product(kind: Product) -> _Part:
        def measure(bench: Bench) -> list[Ceiling]:
            return best_product(bench, kind, shapes, effort.longest_product_s, effort.each_product_s)

        return _Part(f"products in {kind.precision}", 1, measure, optional=not kind.needed)

    def memory(bench: Bench) -> tuple[Ceiling, ...]:
        found = levels(bench, each_s=effort.each_traffic_s, largest=effort.main_memory)
        sweep.extend(found.sweep)
        return found.ceilings

    def vector(dtype: torch.dtype) -> _Part:
        def measure(bench: Bench) -> list[Ceiling]:
            return vector_rate(bench, dtype, effort.each_product_s)

        return _Part(f"multiply-adds in {dtype_name(dtype)}", 0.5, measure, optional=True)

    first, *others = map(product, products(device))
    floor = _Part("launch and host floors", 0.3, lambda bench: floors(bench, effort.floors_s))
    chains = [] if on_host else [vector(torch.float32), vector(torch.float64)]
    return [first, floor, _Part("memory levels", 4, memory), *chains, *others]


def _host_threads(device: torch.device) -> int:
    return torch.get_num_threads() if device.type == "cpu" else 1


def _sure(ceiling: Ceiling, disturbed: str | None) -> Ceiling:
    middle = ceiling.median_value
    steady = middle is None or middle >= UNSTEADY * ceiling.value
    return replace(ceiling, confidence="low" if disturbed else "high" if steady else "medium")


def _notes(device: torch.device, found: list[Ceiling], missing: list[str], disturbed: str | None) -> tuple[str, ...]:
    where = "this CPU" if device.type == "cpu" else device_name(device)
    notes = [f"not measured on {where}, for lack of time: {', '.join(missing)}"] if missing else []
    if disturbed:
        notes.append(
            f"the ceilings of {where} may be too low: {disturbed} while they were measured; "
            "`torchroof calibrate` measures them again"
        )
    if not found:
        notes.append(f"nothing could be measured on {where}")
    return tuple(notes)


# -- kept between runs --------------------------------------------------------------------------------------

_met: dict[tuple[str, str], Calibration] = {}
"""By folder and key, what this process has used: nothing is measured twice before a run."""


@contextmanager
def _without_modes() -> Iterator[None]:
    """Takes away the modes through which the user's ops go, so that ours run as they are."""
    disable = getattr(torch.utils._python_dispatch, "_disable_current_modes", nullcontext)
    with disable(), torch._C.DisableTorchFunction():
        yield


def live_ceilings(device: torch.device, effort: Effort | None = None) -> Calibration:
    """The ceilings of a device before a run: those kept from an earlier one, else measured now and kept.

    What was measured beside other work, or in too little time, is measured again by the next few runs, and the
    best of each is kept; by later ones, and by the same process, only in a quiet moment, which then replaces it.
    """
    key = cache_key(device)
    if (met := _met.get(_place(key))) is not None and (met.quiet or busy_reason(device)):
        return met
    kept = cache.load(key)
    if kept is not None and (kept.quiet or (kept.attempts >= _ATTEMPTS and busy_reason(device))):
        return recall(kept)
    new = calibrate(device, effort or LIVE)
    if not new.ceilings:
        return new
    doubted = 0 if kept is None else kept.doubted
    return keep(key, device, new, None if new.quiet and new.complete else kept, doubted=doubted)


def distrust(device: torch.device) -> None:
    """A run surpassed what is kept of its device: the next one measures it again, but not for ever."""
    key = cache_key(device)
    kept = cache.load(key)
    if kept is not None and kept.quiet and kept.doubted < _DOUBTS:
        _met.pop(_place(key), None)
        with suppress(OSError):
            cache.store(replace(kept, quiet=False, attempts=0, doubted=kept.doubted + 1))


def keep(key: str, device: torch.device, new: Calibration, kept: Cached | None, *, doubted: int = 0) -> Calibration:
    """Keeps a measurement, joined with the best of an earlier one if that is given."""
    attempts = 1
    if kept is not None:
        new, attempts = replace(new, ceilings=better(kept.ceilings, new.ceilings)), kept.attempts + 1
    new = replace(new, notes=new.notes + store(key, device, new, attempts=attempts, doubted=doubted))
    _met[_place(key)] = new
    return new


def unheeded(kept: Cached, disturbed: Calibration) -> Calibration:
    """What was kept from a quiet moment, after a measurement beside other work: it stays as it was."""
    note = "what was just measured was not kept: other work ran meanwhile, and these ceilings are from a quiet moment"
    return replace(recall(kept), notes=(note,), seconds=disturbed.seconds)


def _place(key: str) -> tuple[str, str]:
    return str(cache.cache_folder()), key


def recall(kept: Cached) -> Calibration:
    """A measurement that was kept, as if it were made now."""
    return Calibration(kept.name, kept.ceilings, _doubts(kept), kept.conditions, kept.quiet)


def store(
    key: str, device: torch.device, found: Calibration, *, attempts: int = 1, doubted: int = 0
) -> tuple[str, ...]:
    """Keeps a measurement; a sentence where that cannot be done.

    A machine that is too slow to measure all in a run's time is not asked for ever.
    """
    try:
        cache.store(
            Cached(
                key=key,
                device=cache.cpu_name() if device.type == "cpu" else found.device,
                kind=device.type,
                name=found.device,
                ceilings=found.ceilings,
                conditions=dict(found.conditions),
                quiet=found.quiet and (found.complete or attempts >= _ATTEMPTS),
                attempts=attempts,
                doubted=doubted,
            )
        )
    except OSError as why:
        return (f"the measured ceilings could not be kept in {cache.cache_folder()}: {why.strerror or why}",)
    return ()


def _doubts(kept: Cached) -> tuple[str, ...]:
    if kept.quiet:
        return ()
    return (
        "the ceilings may be too low or incomplete, because other work ran whenever they were measured; "
        "run `torchroof calibrate` at a quiet moment",
    )


def better(old: Iterable[Ceiling], new: Iterable[Ceiling]) -> tuple[Ceiling, ...]:
    """Of two measurements of the same limit the better one: the higher rate, or the shorter time.

    Which pipe a product ran on is told anew: it was told by figures that are replaced here.
    """
    best: dict[tuple[object, ...], Ceiling] = {}
    for ceiling in (*old, *new):
        key = (ceiling.kind, ceiling.precision, is_chain(ceiling), ceiling.level, ceiling.pattern)
        known = best.get(key)
        if known is None or (ceiling.value < known.value if ceiling.unit == "s" else ceiling.value > known.value):
            best[key] = ceiling
    return rising(with_pipes(best.values()))
