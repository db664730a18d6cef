"""What this processor can do, measured with the torch and the threads that the run will use.

Best of several, on an idle moment before the recording starts. The user's random state, autocast, grad mode,
default device and element type play no part and are not touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import torch

from torchroof.capture.environment import cpu_description
from torchroof.device import cache
from torchroof.device.roof import Ceiling

BUDGET_S = 3.0
_PRODUCT_S = 0.4
"""A dtype whose product of 1024 cubed would take longer is left out."""
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
    precision = torch.get_float32_matmul_precision()
    return f"{cpu_description()}, torch {torch.__version__}, float32 matmul precision {precision}"


def measure(budget_s: float = BUDGET_S) -> Measured:
    """Measures in at most ``budget_s`` seconds, each part when there is time for it."""
    end = time.perf_counter() + budget_s
    missing: list[str] = []
    found: list[Ceiling] = []
    parts: tuple[tuple[str, Callable[[float], Iterator[Ceiling]]], ...] = (
        ("the launch floor", _launch_floor),
        ("bandwidths", _bandwidths),
        ("matrix products", _products),
    )
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        for name, part in parts:
            if time.perf_counter() > end:
                missing.append(name)
                continue
            try:
                found.extend(part(end))
            except (RuntimeError, MemoryError) as why:
                missing.append(f"{name} ({str(why).splitlines()[0] if str(why) else type(why).__name__})")
    notes = (f"ceilings not measured on this CPU: {', '.join(missing)}",) if missing else ()
    return Measured(tuple(found), notes)


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


def _products(end: float) -> Iterator[Ceiling]:
    generator = torch.Generator(device="cpu").manual_seed(0)
    float32_rate: float | None = None
    for dtype in _DTYPES:
        found = _product(dtype, generator, end)
        if found is None:
            continue
        rate, source = found
        name = str(dtype).removeprefix("torch.")
        narrow = dtype.itemsize < 4 and float32_rate is not None
        pipe = "matrix" if narrow and rate > _MATRIX_PIPE * (float32_rate or 0.0) else "vector"
        float32_rate = rate if dtype is torch.float32 else float32_rate
        yield _measured("compute", rate, "FLOP/s", source, precision=name, pipe=pipe)


def _product(dtype: torch.dtype, generator: torch.Generator, end: float) -> tuple[float, str] | None:
    """FLOP/s of the product of two normal random square matrices; None where it would take too long."""
    if time.perf_counter() > end:
        return None
    small = min(_times(_product_of(256, dtype, generator), 3, 0.05, end))
    size = next((n for n in (2048, 1536, 1024) if small * (n / 256) ** 3 <= _PRODUCT_S / 4), 1024)
    expected = small * (size / 256) ** 3
    if expected > _PRODUCT_S or time.perf_counter() + 2 * expected > end:
        return None
    taken = _times(_product_of(size, dtype, generator), 9, _PRODUCT_S, end)
    return 2 * size**3 / min(taken), f"torch mm of {size}x{size}, best of {len(taken)}"


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
    taken = _times(lambda: target.copy_(source), 400, 0.25, end)
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
