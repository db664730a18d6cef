"""Which memory serves a call, on hand-made CPU runs whose reuse is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trace_maker import TraceMaker

from torchroof.device.roof import Ceiling
from torchroof.report.build import analyse
from torchroof.report.model import ReportData, Row
from torchroof.trace.reader import read

DRAM = Ceiling(kind="bandwidth", level="dram", value=1e9, unit="byte/s", origin="measured", source="test")
L3 = replace(DRAM, level="l3", value=4e9, capacity_bytes=1_000_000)
L2 = replace(DRAM, level="l2", value=20e9, capacity_bytes=100_000)
PEAK = replace(DRAM, kind="compute", level=None, precision="float32", pipe="vector", value=1e15, unit="FLOP/s")
ROOF = (PEAK, L2, L3, DRAM)
"""Bytes per ns: 1 from main memory, 4 from L3, 20 from L2."""


class Run:
    """Ops in a row on one thread, without launches: a CPU's run."""

    def __init__(self) -> None:
        self.trace, self.now = TraceMaker(metadata={"schemaVersion": 1}), 1000

    def op(self, name: str, ns: int, *shapes: list[int], types: list[str] | None = None) -> Run:
        self.trace.op(name, self.now, self.now + ns, shapes=list(shapes), types=types)
        self.now += ns + 1000
        return self

    def report(self, folder: Path, ceilings: tuple[Ceiling, ...] = ROOF) -> ReportData:
        return analyse(read(self.trace.save(folder)), ceilings=ceilings)

    def rows(self, folder: Path, ceilings: tuple[Ceiling, ...] = ROOF) -> dict[str, Row]:
        return {str(row.op): row for row in self.report(folder, ceilings).rows}


def floors(rows: dict[str, Row]) -> dict[str, int | None]:
    return {op.removeprefix("aten::"): row.floor_ns for op, row in rows.items()}


def test_the_first_touch_comes_from_main_memory(tmp_path: Path) -> None:
    """10,000 numbers: 40,000 bytes read and as many written take 80,000 ns from main memory."""
    rows = Run().op("aten::relu", 90_000, [10_000]).rows(tmp_path)
    assert floors(rows) == {"relu": 80_000}
    assert rows["aten::relu"].bound == "memory"


def test_a_tensor_just_produced_is_in_the_cache(tmp_path: Path) -> None:
    """tanh reads what relu wrote 80,000 bytes ago; that fits 100,000 of L2: 80,000 / 20 = 4,000 ns."""
    rows = Run().op("aten::relu", 90_000, [10_000]).op("aten::tanh", 90_000, [10_000]).rows(tmp_path)
    assert floors(rows) == {"relu": 80_000, "tanh": 4_000}
    assert rows["aten::tanh"].bound == "cache"
    assert rows["aten::tanh"].efficiency == pytest.approx(4_000 / 90_000)


def test_what_lies_between_pushes_it_to_the_next_level_and_out(tmp_path: Path) -> None:
    """30,000 other numbers are 240,000 bytes of traffic: more than L2 holds, less than L3. 80,000 / 4 = 20,000 ns.
    300,000 other numbers are 2,400,000 bytes: more than L3 holds."""
    for others, expected in ((30_000, 20_000), (300_000, 80_000)):
        run = Run().op("aten::relu", 90_000, [10_000]).op("aten::exp", 9_000_000, [others])
        rows = run.op("aten::tanh", 90_000, [10_000]).rows(tmp_path)
        assert floors(rows)["tanh"] == expected


def test_tensors_of_another_size_are_not_those(tmp_path: Path) -> None:
    rows = Run().op("aten::relu", 90_000, [10_000]).op("aten::tanh", 90_000, [9_999]).rows(tmp_path)
    assert floors(rows)["tanh"] == 2 * 4 * 9_999


def test_two_operands_of_one_size_may_be_an_old_and_a_new_one(tmp_path: Path) -> None:
    """A gradient that was just made, and an activation that was saved long ago: three times 40,000 bytes."""
    run = Run().op("aten::relu", 90_000, [10_000])
    rows = run.op("aten::threshold_backward", 130_000, [10_000], [10_000]).rows(tmp_path)
    assert floors(rows)["threshold_backward"] == 120_000


def test_a_weight_of_equal_size_is_not_the_one_before(tmp_path: Path) -> None:
    """Two layers with weights of 100 x 100: the second's cannot be in the cache for the first's sake."""
    run = Run().op("aten::mm", 100_000, [4, 100], [100, 100]).op("aten::mm", 100_000, [8, 100], [100, 100])
    (row,) = run.report(tmp_path).rows
    # 400 + 10,000 + 400 numbers, and 800 + 10,000 + 800.
    assert row.floor_ns == 4 * (10_800 + 11_600)


def test_the_same_call_again_finds_all_it_touched(tmp_path: Path) -> None:
    """43,200 bytes moved since the same product began; the first is taken to follow on another: 43,200 / 20 each."""
    run = Run()
    for _ in range(3):
        run.op("aten::mm", 100_000, [4, 100], [100, 100])
    (row,) = run.report(tmp_path).rows
    assert row.floor_ns == 3 * 2_160 and row.bound == "cache"


def test_what_was_quicker_than_main_memory_was_in_a_cache(tmp_path: Path) -> None:
    """80,000 bytes in 30,000 ns: main memory needs 80,000, L3 20,000. The slowest level that is quick enough judges."""
    rows = Run().op("aten::relu", 30_000, [10_000]).rows(tmp_path)
    assert floors(rows) == {"relu": 20_000} and rows["aten::relu"].bound == "cache"
    rows = Run().op("aten::relu", 10_000, [10_000]).rows(tmp_path)
    assert floors(rows) == {"relu": 4_000}


def test_quicker_than_every_level_that_holds_it_stays_a_suspicion(tmp_path: Path) -> None:
    """80,000 bytes in 2,000 ns: L2 needs 4,000. And 4,000,000 bytes, which no cache holds, in half their time."""
    for ns, elements in ((2_000, 10_000), (2_000_000, 500_000)):
        rows = Run().op("aten::relu", ns, [elements]).op("aten::tanh", 9_000_000, [500_000]).rows(tmp_path)
        assert rows["aten::relu"].efficiency == pytest.approx(2.0)
    assert rows["aten::relu"].bound == "memory"


def test_without_caches_nothing_changes(tmp_path: Path) -> None:
    rows = Run().op("aten::relu", 90_000, [10_000]).op("aten::tanh", 90_000, [10_000]).rows(tmp_path, (PEAK, DRAM))
    assert floors(rows) == {"relu": 80_000, "tanh": 80_000}


def test_each_kind_of_traffic_has_its_own_bandwidth(tmp_path: Path) -> None:
    """40,000 bytes: a copy moves 80,000 at 1, an update 80,000 at 2, a sum reads 40,004 at 4 bytes per ns."""
    kinds = (("copy", 1e9), ("update", 2e9), ("read", 4e9))
    ceilings = (PEAK, *(replace(DRAM, pattern=pattern, value=value) for pattern, value in kinds))
    run = Run().op("aten::relu", 90_000, [10_000]).op("aten::relu_", 90_000, [10_000])
    run.op("aten::copy_", 90_000, [10_000], [10_000]).op("aten::sum", 90_000, [10_000])
    assert floors(run.rows(tmp_path, ceilings)) == {"relu": 80_000, "relu_": 40_000, "copy_": 80_000, "sum": 10_001}


def test_a_faster_cache_never_lengthens_a_floor(tmp_path: Path) -> None:
    def made() -> Run:
        run = Run()
        for size in (100, 10_000, 10_000, 100_000, 10_000, 400_000):
            run.op("aten::relu", 50_000, [size])
        return run

    slow, quick = (made().rows(tmp_path, (PEAK, L2, replace(L3, value=v), DRAM)) for v in (4e9, 8e9))
    assert (quick["aten::relu"].floor_ns or 0) <= (slow["aten::relu"].floor_ns or 0)
