"""Measuring on this processor, and the arithmetic from a time to a ceiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from torchroof.device.roof import PATTERNS, Ceiling, Roof
from torchroof.measure import calibrate as measuring
from torchroof.measure import hardware, memory, products
from torchroof.measure.bench import Bench, Timing, measured
from torchroof.measure.hardware import Cache
from torchroof.measure.quiet import Load

TINY = replace(
    measuring.LIVE,
    total_s=60.0,
    shapes=((256, 256, 256),),
    each_product_s=0.02,
    each_traffic_s=0.02,
    main_memory=32 << 20,
)
"""Enough time on the busiest machine, little to do on any."""


@pytest.fixture(scope="module")
def found() -> measuring.Calibration:
    return measuring.calibrate(torch.device("cpu"), TINY)


@pytest.fixture
def bench(cpu: torch.device) -> Bench:
    return Bench(cpu, time.perf_counter() + 10)


def timed(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    monkeypatch.setattr(Bench, "times", lambda *_, **__: Timing(seconds))


def test_what_a_roof_needs_is_there(found: measuring.Calibration) -> None:
    roof = Roof("here", found.ceilings)
    compute, main, launch, host = roof.compute("float32", "vector"), roof.bandwidth(), roof.launch(), roof.host()
    assert compute is not None and main is not None and launch is not None and host is not None
    assert (compute.unit, main.unit, launch.unit, host.unit) == ("FLOP/s", "byte/s", "s", "s")
    # Any machine that runs torch lies between these, however busy it is: bytes per ns or TFLOP/s do not.
    assert 1e7 < compute.value < 1e14 and 1e7 < main.value < 5e12 and 1e-8 < launch.value < 1e-3
    for c in found.ceilings:
        assert c.origin == "measured" and "torch" in c.source and c.measured_at and c.confidence
        assert (c.capacity_bytes is not None) == (c.kind == "bandwidth" and c.level != "dram")
        assert (c.pattern in PATTERNS) == (c.kind == "bandwidth")
        assert c.median_value is None or c.median_value <= c.value


def test_nearer_memory_is_smaller_and_copies_quicker(found: measuring.Calibration) -> None:
    copies = [c for c in found.ceilings if c.kind == "bandwidth" and c.pattern == "copy"]
    assert [c.value for c in copies] == sorted((c.value for c in copies), reverse=True)
    assert copies[-1].level == "dram"
    sizes = [c.capacity_bytes or 1 << 60 for c in copies]
    assert sizes == sorted(sizes)


def test_the_sweep_doubles_up_to_main_memory(found: measuring.Calibration) -> None:
    sizes = [p.working_set for p in found.sweep]
    assert sizes == [32 * 1024 << i for i in range(len(sizes))]


def test_a_product_is_two_flops_a_multiply_add(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """2 x 1024^3 FLOPs in 2 ms are 1.073741824e12 FLOP/s; half of the runs took 4 ms or more."""
    timed(monkeypatch, 0.002, 0.004, 0.005)
    kind = products.Product("float32", products._plain(torch.float32))
    (found,) = products.best_product(bench, kind, [(1024, 1024, 1024)], 1.0, 0.1)
    assert (found.value, found.median_value) == (1_073_741_824_000.0, 536_870_912_000.0)
    assert found.source == "torch product of 1024x1024 and 1024x1024, best of 3"


def test_the_best_of_several_shapes_is_the_ceiling(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """In equal times the largest product is the quickest; one that would take too long is passed over.

    1 ms at 256 cubed are 0.512 s at 2048 cubed and 4.1 s at 4096 cubed.
    """
    timed(monkeypatch, 0.001)
    kind = products.Product("float32", products._plain(torch.float32))
    shapes = [(256, 256, 256), (2048, 2048, 2048), (512, 128, 512), (4096, 4096, 4096)]
    (found,) = products.best_product(bench, kind, shapes, 1.0, 0.1)
    assert found.value == 2 * 2048**3 / 0.001


@pytest.mark.parametrize(("needed", "count"), [(False, 0), (True, 1)])
def test_a_slow_type_is_left_out_unless_it_is_needed(
    needed: bool, count: int, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    """7 ms at 256 cubed are 0.448 s at 1024 cubed."""
    timed(monkeypatch, 0.007)
    kind = products.Product("float16", products._plain(torch.float16), needed)
    assert len(products.best_product(bench, kind, [(1024, 1024, 1024)], 0.4, 0.1)) == count


@pytest.mark.parametrize(
    ("name", "expected"),
    [("copy_", 8 << 20), ("sum", 8 << 20), ("dot", 8 << 20), ("mul_", 16 << 20), ("triad", 8388600)],
)
def test_the_bytes_that_each_kind_of_traffic_moves(name: str, expected: int, bench: Bench) -> None:
    """Of 8 MiB: a copy reads one half and writes the other, an update reads and writes all of it; a third of
    2,097,152 numbers are 699,050 in each of three parts."""
    traffic = next(t for t in memory.TRAFFIC if t.name == name)
    run, moved = traffic.of(torch.zeros(4 << 20), 8 << 20)
    assert moved == expected
    run()


def test_a_level_is_as_quick_as_its_bytes_over_the_best_time(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    timed(monkeypatch, 0.003, 0.001, 0.002)
    found = {c.pattern: c for c in memory._level(bench, torch.zeros(1 << 20), "l2", 1 << 20, 0.1)}
    assert found["copy"].value == 1_048_576_000.0 and found["update"].value == 2_097_152_000.0
    assert found["copy"].median_value == 524_288_000.0
    assert found["read"].source == "torch dot over 1 MiB, best of 3"


def test_a_rate_of_one_run_is_none_in_a_cache_and_one_in_main_memory(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setattr(Bench, "times", lambda *_, **__: Timing((1e-3, 2e-3)))
    for level, patterns in (("l2", set()), ("dram", {"copy", "update", "read"})):
        assert {c.pattern for c in memory._level(bench, torch.zeros(1 << 20), level, 1 << 20, 0.1)} == patterns


def test_a_level_that_is_no_quicker_than_the_next_is_left_out(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    rates = {"l1": 50.0, "l2": 90.0, "l3": 30.0, "dram": 20.0}
    known = (Cache("l1", 32 << 10), Cache("l2", 1 << 20), Cache("l3", 8 << 20))
    monkeypatch.setattr(memory, "caches", lambda _: known)
    monkeypatch.setattr(
        memory,
        "_level",
        lambda _bench, _arena, level, *_: [
            measured("bandwidth", rates[level], "byte/s", "torch", level=level, pattern="copy")
        ],
    )
    monkeypatch.setattr(memory, "_sweep", lambda *_: ())
    found = memory.levels(bench, each_s=0.1, largest=1 << 20)
    assert [(c.level, c.capacity_bytes) for c in found.ceilings] == [("l2", 1 << 20), ("l3", 8 << 20), ("dram", None)]


def test_where_no_cache_is_quicker_there_is_main_memory(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """As on a machine so busy that every level reads alike."""
    monkeypatch.setattr(memory, "caches", lambda _: (Cache("l2", 1 << 20), Cache("l3", 8 << 20)))
    timed(monkeypatch, 0.001)
    monkeypatch.setattr(memory, "_within", lambda *_: 32 << 10)
    monkeypatch.setattr(memory, "_sweep", lambda *_: ())
    found = memory.levels(bench, each_s=0.1, largest=1 << 20)
    assert {c.level for c in found.ceilings} == {"dram"}


def test_a_level_is_measured_where_its_copies_are_quickest() -> None:
    """Of the sizes over twice the cache before (64 KiB) and up to half of its own (8 MiB): not 32 KiB, not 8 MiB."""
    points = tuple(
        memory.Point(s << 10, r) for s, r in ((32, 99.0), (128, 20.0), (1024, 50.0), (4096, 40.0), (8192, 60.0))
    )
    l1, l2 = Cache("l1", 32 << 10), Cache("l2", 8 << 20)
    assert memory._within(l2, l1, points) == 1 << 20
    assert memory._within(l2, l1, ()) == 4 << 20


def test_a_level_ends_where_the_sweep_falls_to_the_next() -> None:
    """100 and 25 have 50 between them: 4 MiB is still quick, 8 MiB is not, though the system says 16 MiB."""
    copy = [measured("bandwidth", v, "byte/s", "torch", level="l3", pattern="copy") for v in (100.0, 25.0)]
    points = tuple(memory.Point(s << 20, r) for s, r in ((2, 90.0), (4, 51.0), (8, 49.0), (16, 20.0), (64, 10.0)))
    level = Cache("l3", 16 << 20)
    assert memory._capacity(level, copy[:1], copy[1:], points) == 4 << 20
    assert memory._capacity(level, copy[:1], copy[1:], ()) == 16 << 20
    # One slow point among quick ones is a disturbance, not an end.
    assert memory._capacity(level, copy[:1], copy[1:], (memory.Point(1 << 20, 10.0), points[1])) == 16 << 20


def test_main_memory_is_beyond_the_caches_and_within_what_is_free(
    monkeypatch: pytest.MonkeyPatch, cpu: torch.device
) -> None:
    caches = [Cache("l2", 4 << 20), Cache("l3", 300 << 20)]
    for free, largest, expected in (
        (None, None, 4 * 304 << 20),
        (64 << 30, None, 4 * 304 << 20),
        (1 << 30, None, 256 << 20),
        (64 << 30, 384 << 20, 384 << 20),
    ):
        monkeypatch.setattr(memory, "free_bytes", lambda _, free=free: free)
        assert memory.main_memory_set(cpu, caches, largest) == expected


def test_private_caches_count_once_a_thread_and_shared_ones_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    from pathlib import Path

    root = Path(str(tmp_path))
    for cpu in range(4):
        for index, (level, kind, size, shared) in enumerate(
            (
                ("1", "Data", "32K", cpu),
                ("1", "Instruction", "64K", cpu),
                ("2", "Unified", "2M", cpu),
                ("3", "Unified", "30M", "0-3"),
            )
        ):
            folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
                (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(hardware, "_CPUS", root)
    monkeypatch.setattr(hardware, "allowed_cpus", lambda: frozenset(range(4)))
    assert hardware.host_cache_sizes(1) == {1: 32 << 10, 2: 2 << 20, 3: 30 << 20}
    assert hardware.host_cache_sizes(3) == {1: 96 << 10, 2: 6 << 20, 3: 30 << 20}
    assert hardware.host_cache_sizes(9) == {1: 128 << 10, 2: 8 << 20, 3: 30 << 20}


def product(precision: str, value: float, source: str = "torch product") -> Ceiling:
    return measured("compute", value, "FLOP/s", source, precision=precision, pipe="vector")


def test_a_narrow_type_that_is_much_quicker_has_a_pipe_of_its_own() -> None:
    found = products.with_pipes([product("float32", 100.0), product("bfloat16", 151.0), product("float16", 149.0)])
    assert [(c.precision, c.pipe) for c in found] == [
        ("float32", "vector"),
        ("bfloat16", "matrix"),
        ("float16", "vector"),
    ]


def test_chained_multiply_adds_are_the_vector_units_of_an_accelerator() -> None:
    """An A100 in TFLOP/s: float64 products run on tensor cores, float32 ones without TF32 do not."""
    chain = "chained multiply-adds in registers"
    found = products.with_pipes(
        [
            product("float32", 18.5),
            product("float32", 19.0, chain),
            product("float64", 9.5, chain),
            product("float64", 18.0),
            product("tf32", 130.0),
            product("bfloat16", 260.0),
        ]
    )
    assert {(c.precision, c.pipe, c.value) for c in found} == {
        ("float32", "vector", 19.0),
        ("float64", "vector", 9.5),
        ("float64", "matrix", 18.0),
        ("tf32", "matrix", 130.0),
        ("bfloat16", "matrix", 260.0),
    }


def test_without_time_there_is_still_a_roof_and_a_note_on_the_rest(cpu: torch.device) -> None:
    found = measuring.calibrate(cpu, replace(TINY, total_s=-1.0))
    assert {c.precision for c in found.ceilings if c.kind == "compute"} == {"float32"}
    assert {"launch", "host", "bandwidth"} < {c.kind for c in found.ceilings} and not found.complete
    assert "products in bfloat16" in found.notes[0] and "float32" not in found.notes[0]


def test_nothing_of_the_users_is_touched(cpu: torch.device) -> None:
    torch.manual_seed(7)
    state = torch.get_rng_state()
    settings = (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        measuring.calibrate(cpu, TINY)
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(torch.get_rng_state(), state)
    assert (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()) == settings


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} went through the user's mode")


class Called(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} went through the user's mode")


@pytest.mark.parametrize("mode", [Seen, Called, FakeTensorMode], ids=lambda mode: mode.__name__)
def test_the_users_modes_are_not_asked(mode: Any, cpu: torch.device) -> None:
    with mode():
        found = measuring.calibrate(cpu, replace(TINY, total_s=-1.0))
    assert {"compute", "bandwidth"} <= {c.kind for c in found.ceilings}
    assert all(c.value < 1e13 for c in found.ceilings)  # fake tensors would multiply in no time


@contextmanager
def switched(switch: Callable[[Any], None], to: Any, back: Any) -> Iterator[None]:
    switch(to)
    try:
        yield
    finally:
        switch(back)


@pytest.mark.parametrize(
    "way",
    [
        lambda: FlopCounterMode(display=False),
        torch.inference_mode,
        lambda: torch.device("meta"),
        lambda: switched(torch.set_default_dtype, torch.float64, torch.float32),
        lambda: switched(torch.use_deterministic_algorithms, True, False),
        torch.autograd.detect_anomaly,
    ],
    ids=["flop counter", "inference", "default device", "default dtype", "deterministic", "anomaly"],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_the_users_settings_play_no_part_and_stay(way: Callable[[], Any], cpu: torch.device) -> None:
    with way() as mode:
        before = (torch.is_inference_mode_enabled(), torch.get_default_dtype(), torch.get_default_device())
        found = measuring.calibrate(cpu, replace(TINY, total_s=-1.0))
        assert (torch.is_inference_mode_enabled(), torch.get_default_dtype(), torch.get_default_device()) == before
        if isinstance(mode, FlopCounterMode):
            assert mode.get_total_flops() == 0
    (product,) = (c for c in found.ceilings if c.kind == "compute")
    assert product.precision == "float32" and 1e6 < product.value < 1e13
    assert {"bandwidth", "launch", "host"} <= {c.kind for c in found.ceilings}
    assert measuring.calibrate(cpu, replace(TINY, total_s=-1.0)).ceilings


def test_tf32_is_switched_and_put_back() -> None:
    backend = torch.backends.cuda.matmul
    before = backend.allow_tf32
    with products.tf32(not before):
        assert backend.allow_tf32 is not before
    assert backend.allow_tf32 is before


@pytest.mark.parametrize(
    ("load", "threads", "busy"),
    [
        (Load(2, 0.0, 0.0), 2, False),
        (Load(2, 0.2, 0.0), 2, False),
        (Load(2, 0.4, 0.0), 2, True),
        (Load(2, 0.1, 0.3), 2, True),
        (Load(8, 5.0, 0.0), 2, False),
        (Load(8, 7.0, 0.0), 2, True),
        (Load(2, 0.0, 0.0), 16, False),
    ],
)
def test_a_machine_is_busy_when_the_threads_have_no_cpu_each(load: Load, threads: int, busy: bool) -> None:
    reason = load.too_much_for(threads)
    assert (reason is not None) == busy
    if reason:
        assert f"{load.others:.1f} of its {load.cpus} CPUs" in reason
        assert ("hypervisor" in reason) == (load.steal > 0)
