"""The best matrix product of each element type, and what the vector units do without memory in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from torchroof.device.roof import Ceiling
from torchroof.measure.bench import Bench, Run, Timing, dtype_name, measured

Shape = tuple[int, int, int]
"""M, K, N of the product of an M x K and a K x N matrix."""

_PROBE: Shape = (256, 256, 256)
_PIPE_RATIO = 1.5
"""A product that is so many times as quick as the vector units runs on a pipe of its own."""


@dataclass(frozen=True, slots=True)
class Product:
    """A kind of product. ``make`` gives something that runs it once, or raises where this torch cannot."""

    precision: str
    make: Callable[[Bench, Shape], Run]
    needed: bool = False
    """Measured however slow it is."""


def products(device: torch.device) -> tuple[Product, ...]:
    """Those to try on a device, what matters most first; which of them there are, trying tells."""
    plain = [Product(dtype_name(d), _plain(d)) for d in (torch.bfloat16, torch.float16, torch.float64)]
    integers = Product("int8", _integers)
    if device.type == "cpu":
        return (Product("float32", _plain(torch.float32), needed=True), *plain, integers)
    single = Product("float32", _with_tf32(False), needed=True)
    return (single, Product("tf32", _with_tf32(True)), *plain, integers, Product("float8", _eighths))


def best_product(
    bench: Bench, kind: Product, shapes: Sequence[Shape], longest_s: float, each_s: float
) -> list[Ceiling]:
    """The best FLOP/s over the shapes; nothing where even 1024 cubed would take longer than ``longest_s``.

    Shapes that would take longer are passed over, the smallest one never where the product is needed.
    """
    probe = bench.times(kind.make(bench, _PROBE), 20, 0.05).best
    if _scaled(probe, (1024, 1024, 1024)) > longest_s:  # slow, or disturbed: look again before leaving it out
        probe = min(probe, bench.times(kind.make(bench, _PROBE), 20, 0.15).best)
    if _scaled(probe, (1024, 1024, 1024)) > longest_s and not kind.needed:
        return []
    fitting = [s for s in shapes if _scaled(probe, s) <= longest_s] or [min(shapes, key=_multiplies)]
    rates: list[tuple[float, Shape, Timing]] = []
    for shape in fitting:
        if rates and bench.left_s <= 0:
            break
        timing = bench.times(kind.make(bench, shape), 40, each_s, flush_bytes=_flush_bytes(bench))
        rates.append((2 * _multiplies(shape) / timing.best, shape, timing))
    rate, shape, timing = max(rates)
    source = f"torch product of {shape[0]}x{shape[1]} and {shape[1]}x{shape[2]}, best of {len(timing.seconds)}"
    middle = 2 * _multiplies(shape) / timing.median
    return [measured("compute", rate, "FLOP/s", source, precision=kind.precision, pipe="vector", median_value=middle)]


def _multiplies(shape: Shape) -> int:
    return shape[0] * shape[1] * shape[2]


def _scaled(probe_s: float, shape: Shape) -> float:
    return probe_s * _multiplies(shape) / _multiplies(_PROBE)


def _flush_bytes(bench: Bench) -> int:
    """An accelerator's operands begin in main memory. A host's are left where they are: a ceiling is the best."""
    return 0 if bench.on_host else 256 << 20


def with_pipes(found: Iterable[Ceiling]) -> tuple[Ceiling, ...]:
    """Each product on its pipe: one that clearly outruns the vector units has a matrix pipe.

    The vector rate is that of chained multiply-adds where one was measured, else that of the float32 product.
    """
    found = tuple(found)
    chains = {c.precision: c.value for c in found if is_chain(c)}
    products = {c.precision: c.value for c in found if c.kind == "compute" and not is_chain(c)}
    single = chains.get("float32", products.get("float32"))
    return tuple(c for c in (_piped(c, chains, single) for c in found) if c is not None)


def is_chain(ceiling: Ceiling) -> bool:
    """Whether it is the rate of chained multiply-adds, not that of a product."""
    return ceiling.kind == "compute" and "chained" in ceiling.source


def _piped(ceiling: Ceiling, chains: dict[str | None, float], single: float | None) -> Ceiling | None:
    """The ceiling on its pipe; None for a product on the vector units that a chain of multiply-adds beats."""
    if ceiling.kind != "compute" or is_chain(ceiling):
        return ceiling
    vector = chains.get(ceiling.precision)
    if ceiling.precision in ("tf32", "float8"):
        return replace(ceiling, pipe="matrix")
    wide = ceiling.precision in ("float32", "float64")
    reference = vector if vector is not None else None if wide else single
    if reference is not None and ceiling.value > _PIPE_RATIO * reference:
        return replace(ceiling, pipe="matrix")
    return None if vector is not None and vector >= ceiling.value else replace(ceiling, pipe="vector")


# -- the operands -------------------------------------------------------------------------------------------


def _plain(dtype: torch.dtype) -> Callable[[Bench, Shape], Run]:
    def make(bench: Bench, shape: Shape) -> Run:
        m, k, n = shape
        a, b = bench.normal(m, k, dtype=dtype), bench.normal(k, n, dtype=dtype)
        out = torch.empty(m, n, dtype=dtype, device=bench.device)
        return lambda: torch.mm(a, b, out=out)

    return make


def _with_tf32(allowed: bool) -> Callable[[Bench, Shape], Run]:
    def make(bench: Bench, shape: Shape) -> Run:
        plain = _plain(torch.float32)(bench, shape)

        def run() -> None:
            with tf32(allowed):
                plain()

        return run

    return make


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Products of float32 on TF32 units or not, and afterwards as it was; by whichever switch is in use."""
    backend = torch.backends.cuda.matmul
    name, value = "allow_tf32", allowed
    try:
        old = backend.allow_tf32
    except RuntimeError:  # torch refuses to tell the old switch once the new one was used
        name, value = "fp32_precision", "tf32" if allowed else "ieee"  # type: ignore[assignment]
        old = backend.fp32_precision
    setattr(backend, name, value)
    try:
        yield
    finally:
        setattr(backend, name, old)


def _integers(bench: Bench, shape: Shape) -> Run:
    m, k, n = shape
    a, b = ((bench.normal(*size) * 32).clamp(-127, 127).to(torch.int8) for size in ((m, k), (n, k)))
    second = b.t()
    return lambda: torch._int_mm(a, second)


def _eighths(bench: Bench, shape: Shape) -> Run:
    m, k, n = shape
    a, b = (bench.normal(*size).to(torch.float8_e4m3fn) for size in ((m, k), (n, k)))
    one, second = torch.ones((), device=bench.device), b.t()
    return lambda: torch._scaled_mm(a, second, one, one, out_dtype=torch.bfloat16)


# -- the vector units ---------------------------------------------------------------------------------------

_CHAINS, _LINKS = 8, 512
_SOURCE = """
template <typename T> T multiply_adds(T x, T y) {
  T %s;
  for (int i = 0; i < %d; ++i) { %s }
  return %s;
}
"""


def vector_rate(bench: Bench, dtype: torch.dtype, seconds: float) -> list[Ceiling]:
    """FLOP/s of chained multiply-adds in registers, by torch's run-time compiler for accelerators.

    On a host torch has no such thing: there the float32 product, which runs on the vector units, stands for it.
    """
    if bench.on_host:
        return []
    names = [f"a{i}" for i in range(_CHAINS)]
    code = _SOURCE % (
        ", ".join(f"{a} = x + T({i})" for i, a in enumerate(names)),
        _LINKS,
        " ".join(f"{a} = {a} * y + x;" for a in names),
        " + ".join(names),
    )
    chain = torch.cuda.jiterator._create_jit_fn(code)
    x = bench.normal(1 << 22, dtype=dtype)
    y = torch.full_like(x, 0.5)
    timing = bench.times(lambda: chain(x, y), 20, seconds)
    flops = 2 * _CHAINS * _LINKS * x.numel()
    source = f"chained multiply-adds in registers, best of {len(timing.seconds)}"
    return [
        measured(
            "compute",
            flops / timing.best,
            "FLOP/s",
            source,
            precision=dtype_name(dtype),
            pipe="vector",
            median_value=flops / timing.median,
        )
    ]
