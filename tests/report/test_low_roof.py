"""A roof that kernels surpass all together is set aside, and said to be; one that they pass with an excuse is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import laws
import pytest
from trace_maker import TraceMaker

from torchroof.device.roof import Ceiling
from torchroof.report.board import board
from torchroof.report.build import analyse
from torchroof.report.lenses import lines
from torchroof.report.model import ReportData
from torchroof.report.picture import picture
from torchroof.report.summary import headline
from torchroof.report.suspicions import low_roof, speaks_of_the_device
from torchroof.reports import Report
from torchroof.trace.reader import read

DRAM = Ceiling(kind="bandwidth", level="dram", value=1e9, unit="byte/s", origin="measured", source="test")
PEAK = replace(DRAM, kind="compute", level=None, value=2e9, unit="FLOP/s", precision="float32", pipe="vector")


def report(folder: Path, *ops: tuple[str, int], ceilings: tuple[Ceiling, ...] = (PEAK, DRAM)) -> ReportData:
    """A CPU's run of products (8x64 by 64x8: 4,352 ns at least) and of sums over 1,000 elements (4,004 ns at least)."""
    trace, now = TraceMaker(metadata={"schemaVersion": 1}), 1000
    for name, ns in ops:
        trace.op(name, now, now + ns, shapes=[[8, 64], [64, 8]] if name == "aten::mm" else [[1000]])
        now += ns + 1000
    data = analyse(read(trace.save(folder)), ceilings=ceilings)
    laws.check(data)
    return data


def test_a_roof_that_all_surpass_is_set_aside_and_that_is_said_first(tmp_path: Path) -> None:
    data = report(tmp_path, ("aten::mm", 3_000), ("aten::mm", 3_000), ("aten::sum", 5_500))
    assert low_roof(data) is not None
    assert (data.totals.floor_ns, data.totals.step_efficiency, data.totals.mfu, data.totals.hfu) == (None,) * 4
    assert all((row.floor_ns, row.efficiency, row.headroom_ns, row.bound) == (None,) * 4 for row in data.rows)
    assert all(row.flops is not None and row.bytes_read is not None for row in data.rows)
    assert data.devices[0].ceilings == (PEAK, DRAM)
    (over,) = (note.text for note in data.notes if note.kind == "suspicion")
    assert over.startswith("mm (float32) reaches 145% of its roof") and over.endswith("likely the roof is too low")
    told = headline(data)
    assert told.verdict == low_roof(data) and told.worst is None and told.mfu is None and told.roof_set_aside
    assert "reach 111% of it, all together" in told.verdict  # 2 x 4,352 and 4,004 in 11,500
    assert low_roof(data) not in told.notes
    assert board(data).roofs == () and picture(data, lines(data)).ceilings == ()
    words = " ".join(str(Report(data)).split())
    assert "roof set aside, for it is too low" in words
    assert "won back" not in words and "headroom" not in words.split("bytes hold.")[1].split("left over")[0]


def test_the_bandwidths_alone_may_be_too_low(tmp_path: Path) -> None:
    """Products take most of the time and are under their roof, and sums surpass theirs more than any noise does."""
    found = {}
    for name, ns in (("a fifth", 2_000), ("too little", 600)):
        ceilings = (PEAK, replace(DRAM, value=4004 / ns / 1.6 * 1e9))
        found[name] = report(tmp_path, ("aten::mm", 8_000), ("aten::sum", ns), ceilings=ceilings)
    assert "reach 160% of it, where bytes bind them." in (low_roof(found["a fifth"]) or "")
    assert low_roof(found["too little"]) is None


def test_under_a_mode_that_fakes_tensors_the_roof_is_not_to_blame(tmp_path: Path) -> None:
    data = report(tmp_path, ("aten::mm", 1_000), ("PythonDispatchMode", 900))
    assert "nothing was computed" in (low_roof(data) or "") and not speaks_of_the_device(data)
    assert speaks_of_the_device(report(tmp_path, ("aten::mm", 1_000)))


def test_one_formula_that_counts_too_much_does_not_take_the_roof_away(tmp_path: Path) -> None:
    """Most of the time is under the roof, whatever the sum of all is."""
    data = report(tmp_path, ("aten::mm", 100), ("aten::sum", 4_100))
    assert sum(row.floor_ns or 0 for row in data.rows) > 1.5 * sum(row.kernel_ns for row in data.rows)
    assert low_roof(data) is None and data.totals.step_efficiency is not None


@pytest.mark.parametrize(
    ("origin", "aside"), [("measured", True), ("datasheet", True), ("derived", True), ("given", False)]
)
def test_a_roof_that_was_given_judges_whatever_it_says(tmp_path: Path, origin: str, aside: bool) -> None:
    ceilings = (replace(PEAK, origin=origin), replace(DRAM, origin=origin))
    data = report(tmp_path, ("aten::mm", 1_000), ceilings=ceilings)
    assert (low_roof(data) is None) == (origin == "given")
    assert "--device" in (low_roof(data) or "--device") or origin == "measured"


def test_a_higher_clock_than_the_printed_one_is_an_excuse(tmp_path: Path) -> None:
    quick = replace(PEAK, origin="datasheet", value=1e9)
    data = report(tmp_path, ("aten::mm", 7_600), ceilings=(quick, replace(DRAM, origin="datasheet")))
    assert data.rows[0].efficiency == pytest.approx(8192 / 7600)
    assert low_roof(data) is None


def test_ceilings_that_were_measured_beside_other_work_are_told_before_any_efficiency(tmp_path: Path) -> None:
    sure = headline(report(tmp_path, ("aten::mm", 5_000)))
    doubtful = tuple(replace(c, confidence="low") for c in (PEAK, DRAM))
    unsure = headline(report(tmp_path, ("aten::mm", 5_000), ceilings=doubtful))
    assert "other work" not in sure.verdict.lower()
    assert unsure.verdict.startswith(sure.verdict) and "they may be too low" in unsure.verdict
