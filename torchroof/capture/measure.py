"""What this processor can do, measured with the torch and the threads that the run will use.

Best of several, on an idle moment before the recording starts. The user's random state, autocast, grad mode,
default device and element type play no part and are not touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import torch

from torchroof.capture.environment import cpu_description, matmul_precision
from torchroof.device import cache
from torchroof.device.roof import Ceiling

BUDGET_S = 3.0
_PRODUCT_S = 0.4
"""A dtype whose product of 1024 cubed would take longer is left out; float32 never is."""
_SHORT_S = 0.06
"""Products shorter than this: of many short runs one is likely undisturbed."""
_MATRIX_PIPE = 1.5
"""A narrow type that is so many times as quick as float32 has a pipe of its own."""
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """Ceilings, and a sentence on what is missing from them."""

    ceilings: tuple[Ceiling, ...]
    notes: tuple[str, ...] = ()


def cpu_ceilings(budget_s: float = BUDGET_S) -> Measured:
    """The ceilings of this processor: those kept from an earlier run, else measured now and kept."""
    key = cache_key()
    kept = cache.load(key)
    if kept is not None:
        return Measured(kept.ceilings)
    measured = measure(budget_s)
    if measured.notes:
        return measured
    try:
        cache.store(key, measured.ceilings, name=cpu_description())
    except OSError as why:
        note = f"the measured ceilings could not be kept in {cache.cache_folder()}: {why.strerror or why}"
        return Measured(measured.ceilings, (note,))
    return measured


def cache_key() -> str:
    """All that a measurement depends on."""
    version = f"torch {torch.__version__}"
    return f"{cpu_description()}, {version}, float32 matmul precision {matmul_precision()}"


def measure(budget_s: float = BUDGET_S) -> Measured:
    """Measures in at most about ``budget_s`` seconds, what matters most first, each part if time is left."""
    end = time.perf_counter() + budget_s
    generator = torch.Generator(device="cpu").manual_seed(0)
    parts: dict[str, Callable[[], Iterable[Ceiling]]] = {
        "main memory": lambda: _bandwidths(end),
        "launch floor": lambda: _launch_floor(end),
        **{f"products in {_name(d)}": partial(_product, d, generator, end) for d in _DTYPES},
    }
    found: list[Ceiling] = []
    missing: list[str] = []
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        for name in sorted(parts, key=lambda n: n != f"products in {_name(torch.float32)}"):
            if time.perf_counter() > end:
                missing.append(name)
                continue
            try:
                found.extend(parts[name]())
            except (RuntimeError, MemoryError) as why:
                missing.append(f"{name} ({(str(why) or type(why).__name__).splitlines()[0]})")
    notes = (f"not measured on this CPU, for lack of time: {', '.join(missing)}",) if missing else ()
    return Measured(_with_pipes(found), notes)


def _measured(kind: str, value: float, unit: str, source: str, **which: object) -> Ceiling:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Ceiling(
        kind=kind,
        value=value,
        unit=unit,
        origin="measured",
        source=source,
        measured_at=now,
        **which,  # type: ignore[arg-type]
    )


def _times(run: Callable[[], object], repeats: int, limit_s: float, end: float) -> list[float]:
    """Seconds of each run after a first one that does not count; at least one."""
    run()
    taken: list[float] = []
    stop = min(time.perf_counter() + limit_s, end)
    while len(taken) < repeats and (not taken or time.perf_counter() + min(taken) < stop):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return taken


def _launch_floor(end: float) -> Iterator[Ceiling]:
    one = torch.ones(1, dtype=torch.float32, device="cpu")
    taken = _times(lambda: torch.add(one, one), 3000, 0.1, end)
    yield _measured("launch", median(taken), "s", f"torch add of one element, median of {len(taken)}")


def _product(dtype: torch.dtype, generator: torch.Generator, end: float) -> list[Ceiling]:
    """FLOP/s of the product of two normal random square matrices; nothing where it would take too long."""
    try_out = _product_of(256, dtype, generator)
    small = min(_times(try_out, 20, 0.05, end))
    if small * (1024 / 256) ** 3 > _PRODUCT_S:  # slow, or disturbed: look again before leaving it out
        small = min(small, *_times(try_out, 20, 0.15, end))
    size = next((n for n in (2048, 1536) if small * (n / 256) ** 3 <= _SHORT_S), 1024)
    if small * (size / 256) ** 3 > _PRODUCT_S and dtype is not torch.float32:
        return []
    taken = _times(_product_of(size, dtype, generator), 30, 0.3, end)
    source = f"torch mm of {size}x{size}, best of {len(taken)}"
    rate = 2 * size**3 / min(taken)
    return [_measured("compute", rate, "FLOP/s", source, precision=_name(dtype), pipe="vector")]


def _with_pipes(found: list[Ceiling]) -> tuple[Ceiling, ...]:
    """A narrow type that is clearly quicker than float32 has a pipe of its own."""
    plain = next((c.value for c in found if c.precision == _name(torch.float32)), None)
    narrow = {_name(d) for d in _DTYPES if d.itemsize < 4}
    return tuple(
        replace(c, pipe="matrix")
        if plain is not None and c.precision in narrow and c.value > _MATRIX_PIPE * plain
        else c
        for c in found
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _product_of(size: int, dtype: torch.dtype, generator: torch.Generator) -> Callable[[], object]:
    a, b = (torch.randn(size, size, generator=generator, dtype=torch.float32, device="cpu").to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _bandwidths(end: float) -> Iterator[Ceiling]:
    """Copies whose two sides lie in L2, in L3, in main memory; a level no quicker than the next is left out."""
    sizes = cache_sizes()
    l2, l3 = sizes.get(2, _MIB), sizes.get(3, 32 * _MIB)
    main = _copy("dram", _main_memory_set(l3), None, end)
    third = _copy("l3", l3 // 4, l3, end) if l3 > l2 else None
    second = _copy("l2", l2 // 2, l2, end)
    slower = main
    for nearer in (third, second):
        if nearer is not None and nearer.value > slower.value:
            yield nearer
            slower = nearer
    yield main


def _copy(level: str, working_set: int, capacity: int | None, end: float) -> Ceiling:
    """``working_set`` bytes are read and written in all: half of them are the source."""
    elements = working_set // 2 // 4
    source = torch.full((elements,), 1.0, dtype=torch.float32, device="cpu")
    target = torch.full_like(source, 2.0)
    taken = _times(lambda: target.copy_(source), 400, 0.2, end)
    words = f"torch copy_ of {_size(elements * 4)}, best of {len(taken)}"
    rate = 2 * elements * 4 / min(taken)
    return _measured("bandwidth", rate, "byte/s", words, level=level, capacity_bytes=capacity)


def _size(size: int) -> str:
    return f"{size // _MIB} MiB" if size >= _MIB else f"{size // 1024} KiB"


def _main_memory_set(l3: int) -> int:
    """Far more than the caches hold, at most an eighth of the memory that is free."""
    wanted = min(max(256 * _MIB, 4 * l3), 512 * _MIB)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return wanted
    return max(min(wanted, free // 8), 16 * _MIB)


def cache_sizes() -> dict[int, int]:
    """Bytes of the data caches that the first core uses, by level; empty where the system does not tell."""
    sizes: dict[int, int] = {}
    for index in sorted(_CACHES.glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            text = (index / "size").read_text().strip()
            unit = {"K": 1024, "M": _MIB, "G": 1024 * _MIB}.get(text[-1:], 1)
            sizes[int((index / "level").read_text())] = int(text.rstrip("KMG")) * unit
        except (OSError, ValueError):
            continue
    return sizes
