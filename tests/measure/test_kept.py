"""Measurements kept between runs: under which key, when they are made again, and what of two is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import torchroof
from torchroof.device import cache
from torchroof.device.cache import Cached
from torchroof.device.roof import Ceiling
from torchroof.measure import calibrate, live
from torchroof.measure.calibrate import Calibration, better, distrust, live_ceilings
from torchroof.measure.conditions import cache_key
from torchroof.measure.memory import rising
from torchroof.measure.products import with_pipes


def dram(value: float = 1e11, at: str = "2026-01-01T00:00:00+00:00") -> Ceiling:
    return Ceiling(
        kind="bandwidth", level="dram", value=value, unit="byte/s", origin="measured", source="torch", measured_at=at
    )


def kept(
    key: str = "k", *ceilings: Ceiling, device: str | None = None, kind: str = "cpu", quiet: bool = True
) -> Cached:
    name = cache.cpu_name() if device is None else device
    return Cached(key, name, kind, f"{name} here", ceilings or (dram(),), {"threads": 2}, quiet)


class Measuring:
    """Stands in for the measurement: gives what it is told to, and counts how often it is asked."""

    def __init__(self, *results: Calibration) -> None:
        self.results, self.asked = list(results), 0

    def __call__(self, *_: object) -> Calibration:
        self.asked += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


def one(*ceilings: Ceiling, quiet: bool = True, complete: bool = True) -> Calibration:
    return Calibration("a cpu", ceilings, quiet=quiet, complete=complete)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process would begin."""
    monkeypatch.setattr(calibrate, "_met", {})


def test_measured_once_then_kept(monkeypatch: pytest.MonkeyPatch, cpu: torch.device) -> None:
    runs = Measuring(one(dram()))
    monkeypatch.setattr(calibrate, "calibrate", runs)
    first = live_ceilings(cpu)
    forget(monkeypatch)
    assert live_ceilings(cpu).ceilings == first.ceilings and runs.asked == 1
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        live_ceilings(cpu)
    finally:
        torch.set_num_threads(threads)
    assert runs.asked == 2  # another number of threads is another machine


@pytest.mark.parametrize("flaw", [{"quiet": False}, {"complete": False}])
def test_what_was_measured_beside_other_work_is_measured_again_and_the_best_kept(
    flaw: dict[str, bool], monkeypatch: pytest.MonkeyPatch, cpu: torch.device
) -> None:
    launch = replace(dram(), kind="launch", level=None, unit="s", value=2e-6)
    slow, quick = replace(launch, value=3e-6), replace(launch, value=1e-6)
    runs = Measuring(
        one(dram(3.0), slow, **flaw), one(dram(2.0), launch, **flaw), one(dram(1.0), quick, **flaw), one(dram(9.0))
    )
    monkeypatch.setattr(calibrate, "calibrate", runs)
    monkeypatch.setattr(calibrate, "busy_reason", lambda device: "other work")
    found = []
    for _ in range(5):
        forget(monkeypatch)
        assert live_ceilings(cpu) == live_ceilings(cpu)  # in one process it is not tried twice
        found.append(live_ceilings(cpu))
    values = [tuple(c.value for c in f.ceilings) for f in found]
    assert values == [(3.0, 3e-6), (3.0, 2e-6), (3.0, 1e-6), (3.0, 1e-6), (3.0, 1e-6)]
    assert runs.asked == 3  # a machine that is never quiet does not pay for ever
    assert "quiet" not in flaw or "torchroof calibrate" in found[-1].notes[0]
    monkeypatch.setattr(calibrate, "busy_reason", lambda device: None)
    forget(monkeypatch)
    # A quiet moment is used whenever it comes; more time for a slow machine never comes.
    assert [c.value for c in live_ceilings(cpu).ceilings] == ([9.0] if "quiet" in flaw else [3.0, 1e-6])


def test_a_roof_that_a_run_surpasses_is_told_first_and_measured_again(
    monkeypatch: pytest.MonkeyPatch, cpu: torch.device
) -> None:
    low = replace(dram(1.0), kind="compute", level=None, precision="float32", pipe="vector", unit="FLOP/s")
    runs = Measuring(one(dram(1e3), low), one(dram(1e15), replace(low, value=1e16)))
    monkeypatch.setattr(calibrate, "calibrate", runs)
    model, words = torch.nn.Linear(64, 64), []
    for _ in range(3):
        forget(monkeypatch)
        with torchroof.profile(model) as prof:
            model(torch.ones(64, 64))
        words.append(" ".join(" ".join(str(prof.report).split("\n\n")[1:3]).split()))
    assert words[0].startswith("The roof is too low to judge by: kernels reach")
    assert "torchroof calibrate" in words[0]
    assert "of the roof" not in words[0] and "MFU" not in words[0]
    assert not any("too low" in said for said in words[1:])
    assert runs.asked == 2


def test_a_quiet_moment_in_the_same_process_is_used(monkeypatch: pytest.MonkeyPatch, cpu: torch.device) -> None:
    runs = Measuring(one(dram(9.0), quiet=False), one(dram(5.0)))
    monkeypatch.setattr(calibrate, "calibrate", runs)
    busy = iter(["other work", None])
    monkeypatch.setattr(calibrate, "busy_reason", lambda device: next(busy))
    assert [live_ceilings(cpu).ceilings[0].value for _ in range(4)] == [9.0, 9.0, 5.0, 5.0]


def test_a_formula_that_counts_too_much_does_not_have_the_roof_measured_for_ever(
    monkeypatch: pytest.MonkeyPatch, cpu: torch.device
) -> None:
    runs = Measuring(one(dram()))
    monkeypatch.setattr(calibrate, "calibrate", runs)
    for _ in range(8):
        forget(monkeypatch)
        live_ceilings(cpu)
        distrust(cpu)
    assert runs.asked == 3


def test_of_an_accelerator_the_kept_ceilings_are_used_until_a_run_surpasses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = torch.device("cuda", 0)
    monkeypatch.setattr(live, "cache_key", lambda device: "k")
    monkeypatch.setattr(live, "driver_properties", lambda device: {"name": "NVIDIA H100 80GB HBM3"})
    monkeypatch.setattr(live, "match", lambda told: SimpleNamespace(entry="known"))
    monkeypatch.setattr(live, "device_name", lambda device: "a card")
    for quiet in (True, False):  # beside other work: with a doubt
        cache.store(kept("k", dram(7.0), kind="cuda", quiet=quiet))
        found = live.before_run(card)
        assert [c.value for c in found.ceilings] == [7.0] and bool(found.notes) is not quiet
    cache.store(replace(kept("k", dram(7.0), kind="cuda", quiet=False), doubted=1))
    found = live.before_run(card)
    assert found.ceilings == () and "a run surpassed them" in found.notes[0]


def test_a_quiet_measurement_replaces_a_disturbed_one(monkeypatch: pytest.MonkeyPatch, cpu: torch.device) -> None:
    runs = Measuring(one(dram(9.0), quiet=False), one(dram(5.0)))
    monkeypatch.setattr(calibrate, "calibrate", runs)
    live_ceilings(cpu)
    for _ in range(3):
        forget(monkeypatch)
        again = live_ceilings(cpu)
    assert again.ceilings == (dram(5.0),) and again.notes == () and runs.asked == 2


def test_better_is_a_higher_rate_and_a_shorter_time() -> None:
    read = replace(dram(4.0), pattern="read")
    assert better([dram(1.0), read], [dram(2.0)]) == (dram(2.0), read)
    times = [replace(dram(v), kind="host", level=None, unit="s") for v in (1.0, 2.0)]
    assert better(times[1:], times[:1]) == (times[0],)


def test_a_cache_is_quicker_than_what_lies_behind_it_or_its_rate_is_none() -> None:
    """An update of 131 MB/s in a cache was interrupted; so was a copy in l1, and all of that level."""

    def at(level: str, pattern: str, value: float) -> Ceiling:
        return replace(dram(value), level=level, pattern=pattern)

    sound = (at("l2", "copy", 190e9), at("l3", "copy", 58e9), at("l3", "read", 60e9), at("dram", "copy", 22e9))
    behind = (at("dram", "read", 20e9), at("dram", "update", 21e9))
    odd = (at("l1", "copy", 33e9), at("l1", "update", 900e9), at("l2", "update", 131e6), at("l2", "read", 56e6))
    single = replace(dram(1e11), kind="compute", level=None, precision="float32", pipe="vector", unit="FLOP/s")
    assert set(rising((*odd, *sound, *behind, single))) == {*sound, *behind, single}
    assert set(better((*odd, single), (*sound, *behind))) == {*sound, *behind, single}


def test_a_forced_measurement_beside_other_work_leaves_a_quiet_one_as_it_is(
    monkeypatch: pytest.MonkeyPatch, cpu: torch.device
) -> None:
    cache.store(replace(kept(cache_key(cpu), dram(9.0)), quiet=True))
    monkeypatch.setattr(calibrate, "calibrate", lambda *_: one(dram(99.0), quiet=False))
    monkeypatch.setattr("torchroof.measure.quiet.busy_reason", lambda device: "other work")
    found = torchroof.calibrate("cpu", quick=True, force=True)
    assert found.ceilings == (dram(9.0),) and "was not kept" in found.data.notes[0] and "note:" in str(found)
    stored = cache.load(cache_key(cpu))
    assert stored is not None and stored.quiet and stored.ceilings == (dram(9.0),)


def test_which_pipe_a_product_ran_on_is_told_by_the_figures_that_are_kept() -> None:
    """Beside other work float32 suffered most, and float16 seemed to have units of its own: 13 is over 1.5 x 6."""
    single = replace(dram(), kind="compute", level=None, precision="float32", pipe="vector", unit="FLOP/s", value=6e9)
    disturbed = with_pipes([single, replace(single, precision="float16", value=13e9)])
    sound = with_pipes([replace(single, value=190e9), replace(single, precision="float16", value=127e9)])
    assert [c.pipe for c in disturbed] == ["vector", "matrix"]
    for found in (better(disturbed, sound), better(sound, disturbed)):
        assert sorted((c.precision, c.pipe, c.value) for c in found) == [
            ("float16", "vector", 127e9),
            ("float32", "vector", 190e9),
        ]


def test_a_live_run_carries_them_in_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "calibrate", Measuring(one(dram(4e10))))
    with torchroof.profile() as prof:
        torch.ones(3)
    (device,) = prof.report.data.devices
    threads = torch.get_num_threads()
    assert device.ceilings == (dram(4e10),)
    assert device.name == f"{cache.cpu_name()}, {threads} thread{'s' if threads > 1 else ''}"


def test_ceilings_of_other_threads_than_the_runs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "calibrate", Measuring(one(dram(4e10))))
    threads = torch.get_num_threads()
    try:
        with torchroof.profile() as prof:
            torch.set_num_threads(threads + 1)
            torch.ones(3)
    finally:
        torch.set_num_threads(threads)
    data = prof.report.data
    assert data.devices[0].ceilings == () and str(threads + 1) in str(data.devices[0].name)
    assert any(f"changed from {threads} to {threads + 1} inside the block" in note.text for note in data.notes)


def test_a_fault_in_measuring_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Calibration:
        raise ZeroDivisionError("seeded")

    monkeypatch.setattr(calibrate, "calibrate", fail)
    with torchroof.profile() as prof:
        torch.ones(3)
    assert any("no ceilings were measured: ZeroDivisionError: seeded" in n.text for n in prof.report.data.notes)


def test_a_cache_that_cannot_be_written_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu: torch.device
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHROOF_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(calibrate, "calibrate", Measuring(one(dram())))
    found = live_ceilings(cpu)
    assert found.ceilings == (dram(),) and "could not be kept" in found.notes[0]


def test_the_newest_of_this_machine_come_first() -> None:
    assert cache.measured_here() == ()
    for key, month in (("one", 1), ("two", 3), ("three", 2)):
        cache.store(kept(key, dram(month, f"2026-0{month}-01T00:00:00+00:00")))
    cache.store(kept("far", dram(9.0, "2027-01-01T00:00:00+00:00"), device="another processor"))
    cache.store(kept("card", dram(4.0, "2026-04-01T00:00:00+00:00"), device="a card", kind="cuda"))
    assert [c.key for c in cache.measured_here()] == ["card", "two", "three", "one"]


def test_what_is_stored_is_read_back_whole() -> None:
    stored = kept("k", replace(dram(), pattern="read", median_value=9e10, capacity_bytes=1 << 20), quiet=False)
    cache.store(stored)
    assert cache.load("k") == stored


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"version": 9}', '{"version": 2, "key": "k"}'])
def test_a_damaged_file_counts_as_absent(content: str) -> None:
    cache.store(kept())
    assert cache.load("k") is not None
    (file,) = cache.cache_folder().iterdir()
    file.write_text(content)
    assert cache.load("k") is None and cache.measured_here() == ()
    cache.store(kept("k", dram(5.0)))
    found = cache.load("k")
    assert found is not None and found.ceilings[0].value == 5.0
    assert len(list(cache.cache_folder().iterdir())) == 1  # no draft is left


def test_a_file_of_another_version_counts_as_absent() -> None:
    cache.store(kept())
    (file,) = cache.cache_folder().iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": cache.VERSION + 1}))
    assert cache.load("k") is None


def test_reading_the_cache_needs_no_torch() -> None:
    cache.store(kept())
    code = "import sys; from torchroof.device import cache; print(len(cache.measured_here()), 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert run.stdout.split() == ["1", "False"]


def test_the_key_names_all_that_a_measurement_depends_on(cpu: torch.device) -> None:
    key = cache_key(cpu)
    for part in (
        cache.cpu_name(),
        f"{torch.get_num_threads()} thread",
        f"torch {torch.__version__}",
        "precision highest",
    ):
        assert part in key
