"""Ceilings measured on this processor, and the cache that keeps them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import torchroof
from torchroof.capture import measure
from torchroof.device import cache
from torchroof.device.roof import Ceiling, Roof


@pytest.fixture(scope="module")
def measured() -> measure.Measured:
    return measure.measure(3.0)


def test_what_a_roof_needs_is_there(measured: measure.Measured) -> None:
    roof = Roof("here", measured.ceilings)
    compute, memory, launch = roof.compute("float32", "vector"), roof.bandwidth(), roof.launch()
    assert compute is not None and memory is not None and launch is not None
    assert (compute.unit, memory.unit, launch.unit) == ("FLOP/s", "byte/s", "s")
    # Any machine that runs torch lies between these: a fault in a unit or a factor of a thousand does not.
    assert 1e9 < compute.value < 1e14 and 5e8 < memory.value < 5e12 and 1e-8 < launch.value < 1e-3
    for c in measured.ceilings:
        assert c.origin == "measured" and "torch" in c.source and c.measured_at
        assert (c.capacity_bytes is not None) == (c.kind == "bandwidth" and c.level != "dram")


def test_nearer_memory_is_quicker(measured: measure.Measured) -> None:
    levels = {c.level: c for c in measured.ceilings if c.kind == "bandwidth"}
    found = [levels[name] for name in ("l2", "l3", "dram") if name in levels]
    assert found == sorted(found, key=lambda c: -c.value)


def test_a_product_is_two_flops_a_multiply_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """With runs of exactly 2 ms the small product of 256 cubed extrapolates to 0.128 s at 1024 cubed, so 1024
    is chosen: 2 x 1024^3 FLOPs in 2 ms are 1.073741824e12 FLOP/s."""
    monkeypatch.setattr(measure, "_times", lambda *_: [0.002, 0.002])
    generator = torch.Generator().manual_seed(0)
    (found,) = measure._product(torch.float32, generator, time.perf_counter() + 10)
    assert found.value == 1_073_741_824_000.0
    assert found.source == "torch mm of 1024x1024, best of 2"


def test_a_copy_moves_its_bytes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working set of 8 MiB is a source of 4 MiB and its copy: 8,388,608 bytes in 1 ms."""
    monkeypatch.setattr(measure, "_times", lambda *_: [0.003, 0.001])
    found = measure._copy("l3", 8 << 20, 32 << 20, time.perf_counter() + 10)
    assert found.value == 8_388_608_000.0 and found.capacity_bytes == 33_554_432
    assert found.source == "torch copy_ of 4 MiB, best of 2"


def test_a_slow_type_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """7 ms at 256 cubed are 0.448 s at 1024 cubed, more than a product may take."""
    monkeypatch.setattr(measure, "_times", lambda *_: [0.007])
    generator = torch.Generator().manual_seed(0)
    assert measure._product(torch.float16, generator, time.perf_counter() + 10) == []


def test_a_narrow_type_that_is_much_quicker_has_its_own_pipe() -> None:
    def product(precision: str, value: float) -> Ceiling:
        return measure._measured("compute", value, "FLOP/s", "torch", precision=precision, pipe="vector")

    found = measure._with_pipes([product("float32", 100.0), product("bfloat16", 151.0), product("float16", 149.0)])
    assert [(c.precision, c.pipe) for c in found] == [
        ("float32", "vector"),
        ("bfloat16", "matrix"),
        ("float16", "vector"),
    ]


def test_without_time_nothing_is_measured_and_a_note_says_so() -> None:
    found = measure.measure(-1.0)
    assert found.ceilings == ()
    assert "products in float32" in found.notes[0] and "main memory" in found.notes[0]


def test_nothing_of_the_users_is_touched(measured: measure.Measured) -> None:
    torch.manual_seed(7)
    state = torch.get_rng_state()
    settings = (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        measure.measure(0.1)
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(torch.get_rng_state(), state)
    assert (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()) == settings


def _ceiling(value: float = 1e11, at: str = "2026-01-01T00:00:00+00:00") -> Ceiling:
    return Ceiling(
        kind="bandwidth",
        level="dram",
        value=value,
        unit="byte/s",
        origin="measured",
        source="torch",
        measured_at=at,
    )


def test_measured_once_then_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def once(budget_s: float) -> measure.Measured:
        runs.append(budget_s)
        return measure.Measured((_ceiling(),))

    monkeypatch.setattr(measure, "measure", once)
    first, second = measure.cpu_ceilings(), measure.cpu_ceilings()
    assert runs == [3.0] and first == second
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        measure.cpu_ceilings()
    finally:
        torch.set_num_threads(threads)
    assert len(runs) == 2  # another number of threads is another machine


def test_an_incomplete_measurement_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure", lambda _: measure.Measured((_ceiling(),), ("no time",)))
    assert measure.cpu_ceilings().notes == ("no time",)
    assert cache.load(measure.cache_key()) is None


def test_a_live_run_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure", lambda _: measure.Measured((_ceiling(4e10),)))
    with torchroof.profile() as prof:
        torch.ones(3)
    assert prof.report.data.devices[0].ceilings == (_ceiling(4e10),)
    assert prof.report.data.devices[0].name == f"{cache.cpu_name()}, {_threads()}"


def _threads() -> str:
    n = torch.get_num_threads()
    return f"{n} thread" if n == 1 else f"{n} threads"


def test_a_cache_that_cannot_be_written_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(measure, "measure", lambda _: measure.Measured((_ceiling(),)))
    found = measure.cpu_ceilings()
    assert found.ceilings == (_ceiling(),) and "could not be kept" in found.notes[0]


def test_the_newest_of_this_processor() -> None:
    assert cache.latest() is None
    cache.store("one", [_ceiling(1.0, "2026-01-01T00:00:00+00:00")], name="one")
    cache.store("two", [_ceiling(2.0, "2026-03-01T00:00:00+00:00")], name="two")
    cache.store("three", [_ceiling(3.0, "2026-02-01T00:00:00+00:00")], name="three")
    newest = cache.latest()
    assert newest is not None and (newest.name, newest.ceilings[0].value) == ("two", 2.0)
    other = next(p for p in cache.cache_folder().iterdir() if json.loads(p.read_text())["key"] == "two")
    other.write_text(json.dumps(json.loads(other.read_text()) | {"cpu": "another processor"}))
    newest = cache.latest()
    assert newest is not None and newest.name == "three"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"version": 9}', '{"version": 1, "key": "k"}'])
def test_a_damaged_file_counts_as_absent(content: str) -> None:
    cache.store("k", [_ceiling()], name="n")
    assert cache.load("k") is not None
    (file,) = cache.cache_folder().iterdir()
    file.write_text(content)
    assert cache.load("k") is None and cache.latest() is None
    cache.store("k", [_ceiling(5.0)], name="n")
    kept = cache.load("k")
    assert kept is not None and kept.ceilings[0].value == 5.0
    assert len(list(cache.cache_folder().iterdir())) == 1  # no draft is left


def test_a_file_of_another_version_counts_as_absent() -> None:
    cache.store("k", [_ceiling()], name="n")
    (file,) = cache.cache_folder().iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": cache.VERSION + 1}))
    assert cache.load("k") is None


def test_reading_the_cache_needs_no_torch() -> None:
    cache.store("k", [_ceiling()], name="n")
    code = "import sys; from torchroof.device import cache; print(cache.latest().name, 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert run.stdout.split() == ["n", "False"]
