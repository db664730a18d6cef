"""The roofline's geometry against hand calculation: every point and line where it must be."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_maker import DRAM, FLOAT16, FLOAT32, MS, ROWS, drawn, report, row

from torchroof.errors import OptionError
from torchroof.report.lenses import lines
from torchroof.report.model import Device
from torchroof.report.picture import RANKED, Picture, Point, picture
from torchroof.report.placing import Box, choose


def point(found: Picture, label: str) -> Point:
    (one,) = [p for p in found.points if p.label == label]
    return one


def test_a_point_lies_at_its_intensity_and_rate() -> None:
    fc1 = point(drawn(*ROWS), "net.fc1")
    assert (fc1.x, fc1.y) == (pytest.approx(log10(200)), pytest.approx(log10(2e13)))
    assert fc1.intensity == 200 and fc1.flops_per_s == pytest.approx(2e13)
    # 2e11 FLOPs in the floor's 2 ms.
    assert fc1.attainable_flops_per_s == pytest.approx(1e14) and fc1.efficiency == pytest.approx(0.2)
    assert fc1.share == pytest.approx(0.1) and fc1.phases == {"forward": 1.0} and fc1.bound == "compute"


def test_a_layer_is_the_sum_of_its_rows_and_judged_by_the_sum_of_their_floors() -> None:
    # 2e11 + 1e11 FLOPs over 1e9 + 2e9 bytes in 10 + 20 ms: 100 FLOPs per byte, 1e13 FLOP/s; floors 2 + 2 ms.
    forward, backward = ROWS[0], row("net.fc1", 100_000_000_000, 2_000_000_000, 20, 2, phase="backward")
    fc1 = point(drawn(forward, backward), "net.fc1")
    assert (fc1.x, fc1.y) == (pytest.approx(2), pytest.approx(13))
    assert fc1.attainable_flops_per_s == pytest.approx(3e11 / 4e-3)
    assert list(fc1.phases.items()) == [("backward", pytest.approx(2 / 3)), ("forward", pytest.approx(1 / 3))]


def test_work_without_flops_stands_in_the_strip_by_its_share_of_the_bandwidth() -> None:
    found = drawn(*ROWS)
    copy = point(found, "net.copy")
    assert copy.x is None and copy.y == pytest.approx(0.25) and copy.intensity == 0
    assert found.strip is not None and found.strip.low < 0.25 < found.strip.high
    assert [t.text for t in found.strip.ticks] == ["0%", "50%", "100%"]
    assert drawn(*(r for r in ROWS if r.flops != 0)).strip is None


def test_without_a_roof_the_strip_is_of_bytes_and_there_is_a_note() -> None:
    bare = [msgspec.structs.replace(r, floor_ns=None, floor_known_ns=0, bound=None) for r in ROWS[:3]]
    found = drawn(*bare, ceilings=())
    assert found.ceilings == () and len(found.points) == 3
    assert point(found, "net.copy").y == pytest.approx(log10(1e9 / 4e-3))
    assert found.strip is not None and found.strip.title == "byte/s"
    assert any("no roof" in note for note in found.notes)


def test_unknown_work_is_counted_and_never_drawn() -> None:
    found = drawn(*ROWS)
    assert "net.custom" not in {p.label for p in found.points}
    assert found.unplaced == 1 and found.unplaced_share == pytest.approx(0.03)
    assert "not drawn: 1 with 3.0% of step time, work or efficiency unknown" in found.notes


def test_work_of_unknown_bytes_has_no_place() -> None:
    assert drawn(row("net.a", 10**9, None, 1, 0.1)).unplaced == 1


def test_a_point_above_the_roof_is_drawn_where_it_is() -> None:
    odd = point(drawn(*ROWS), "net.odd")
    # The roof over 4 FLOPs per byte is 4e12 FLOP/s.
    assert odd.y == pytest.approx(log10(8e12)) and odd.efficiency == pytest.approx(2)
    assert odd.attainable_flops_per_s == pytest.approx(4e12)
    assert any("above the roof: 1;" in note for note in drawn(*ROWS).notes)
    strip = drawn(row("net.copy", 0, 10**9, 1, 3)).strip
    assert strip is not None and strip.high > 3


def test_a_ceiling_bends_at_its_ridge_point() -> None:
    ceilings = {c.name: c for c in drawn(*ROWS).ceilings}
    matrix, vector, dram = ceilings["float16 matrix"], ceilings["float32 vector"], ceilings["dram"]
    # 1e14 FLOP/s over 1e12 byte/s: 100 FLOPs per byte.
    assert (matrix.x0, matrix.y0, matrix.y1) == (pytest.approx(2), pytest.approx(14), pytest.approx(14))
    assert (dram.x1, dram.y1) == (pytest.approx(2), pytest.approx(14))
    assert (vector.x0, vector.y0) == (pytest.approx(1), pytest.approx(13))
    # A decade up for each to the right.
    assert dram.y1 - dram.y0 == pytest.approx(dram.x1 - dram.x0)
    assert dram.y0 - dram.x0 == pytest.approx(12)
    assert vector.measured and not matrix.measured
    assert matrix.label == "float16 matrix 100 TFLOP/s, datasheet"


def test_only_ceilings_that_concern_the_work_are_drawn() -> None:
    float8 = replace(FLOAT16, precision="float8", value=2e14)
    l2 = replace(DRAM, level="l2", value=4e12, capacity_bytes=50_000_000)
    printed = replace(FLOAT32, origin="datasheet", value=2e13)
    roof = (FLOAT16, FLOAT32, DRAM, float8, l2, printed)
    names = [(c.name, c.origin) for c in drawn(*ROWS, ceilings=roof).ceilings]
    # The datasheet's float32 stands beside the measured one.
    assert names == [
        ("float16 matrix", "datasheet"),
        ("float32 vector", "datasheet"),
        ("float32 vector", "measured"),
        ("dram", "measured"),
    ]
    cached = msgspec.structs.replace(ROWS[1], ceiling=4)
    drawn_lines = {c.name: c for c in drawn(ROWS[0], cached, ceilings=roof).ceilings}
    # Under the faster level a compute ceiling begins earlier: 1e14 over 4e12.
    assert drawn_lines["float16 matrix"].x0 == pytest.approx(log10(25)) == drawn_lines["l2"].x1
    assert drawn_lines["dram"].x1 == pytest.approx(2)


def test_ceilings_that_coincide_are_one_line() -> None:
    alike = replace(FLOAT16, precision="bfloat16")
    rows = (ROWS[0], msgspec.structs.replace(ROWS[0], path="net.fc2", precision="bfloat16"))
    names = [c.name for c in drawn(*rows, ceilings=(FLOAT16, alike, DRAM)).ceilings]
    assert names == ["float16 matrix = bfloat16 matrix", "dram"]


def test_flagged_points_come_first_then_those_with_most_to_win() -> None:
    data = report(*ROWS)
    table = lines(data)
    flags = [msgspec.structs.replace(line, flagged=line.label == "net.norm") for line in table.lines]
    found = picture(data, msgspec.structs.replace(table, lines=tuple(flags)))
    assert [p.label for p in found.ranked] == ["net.norm", "net.fc1", "net.copy", "net.odd"]
    many = drawn(*(row(f"net.{i}", 10**9, 10**8, 1 + i, 0.5) for i in range(12)))
    assert [p.label for p in many.ranked] == [f"net.{i}" for i in range(11, 11 - RANKED, -1)]
    assert [p.share for p in many.points] == sorted((p.share for p in many.points), reverse=True)


def test_a_device_with_other_ceilings_is_told() -> None:
    data = report(*ROWS)
    other = Device(index=1, name="Another", matched=None, ceilings=(DRAM,))
    found = picture(msgspec.structs.replace(data, devices=(other, *data.devices)), lines(data))
    assert found.device == "A device" and any("1 other device" in note for note in found.notes)


def test_by_kernel_is_refused_and_by_op_is_not() -> None:
    assert {p.label for p in drawn(*ROWS, by="op").points} == {"aten::mm", "aten::native_layer_norm", "aten::copy_"}
    with pytest.raises(OptionError, match="kernel has no FLOPs of its own"):
        drawn(*ROWS, by="kernel")


def test_what_a_filter_leaves_out_is_told() -> None:
    data = report(*ROWS)
    found = picture(data, lines(data, filter="fc1"))
    # 5 + 4 + 0.5 + 3 of 100 ms.
    assert [p.label for p in found.points] == ["net.fc1"]
    assert "left out by the filter: 4 more with 12% of step time" in found.notes


def test_nothing_to_draw_is_a_picture_too() -> None:
    found = drawn()
    assert found.points == () and found.x.low < found.x.high and any("nothing to place" in n for n in found.notes)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**16), st.integers(1, 10**13), st.integers(1, 10**5), st.integers(0, 10**5)),
        min_size=1,
        max_size=20,
    )
)
def test_every_point_and_line_lies_within_the_axes(facts: list[tuple[int, int, int, int]]) -> None:
    rows = [row(f"net.{i}", flops, moved, us / 1e3, floor / 1e3) for i, (flops, moved, us, floor) in enumerate(facts)]
    found = drawn(*rows)
    assert len(found.points) + found.unplaced == len(rows)
    for p in found.points:
        axis = found.y if p.x is not None else found.strip
        assert axis is not None and 0 <= axis.fraction(p.y) <= 1
        assert p.x is None or 0 <= found.x.fraction(p.x) <= 1
    for c in found.ceilings:
        assert all(0 <= found.x.fraction(x) <= 1 for x in (c.x0, c.x1)) and c.x0 <= c.x1
        assert all(-1e-9 <= found.y.fraction(y) <= 1 for y in (c.y0, c.y1))
    for axis in (found.x, found.y):
        assert all(axis.low <= t.at <= axis.high for t in axis.ticks) and len(axis.ticks) >= 2


def test_a_tick_is_named_by_its_power_of_ten() -> None:
    ticks = {t.text: t.at for t in drawn(*ROWS).y.ticks}
    assert ticks["10T"] == 13 and ticks["100T"] == 14
    assert {t.text: t.at for t in drawn(*ROWS).x.ticks}["10"] == 1


def test_a_tick_beyond_all_names_is_short() -> None:
    ticks = drawn(row("net.a", 10**18, 1, 1e-6, 0.5)).y.ticks  # 10^18 FLOPs in a nanosecond
    assert {t.text for t in ticks} >= {"1e24"} and max(len(t.text) for t in ticks) <= 4


def test_shares_are_of_the_step() -> None:
    assert point(drawn(ROWS[0], step_ms=20), "net.fc1").share == pytest.approx(10 * MS / (20 * MS))


def test_a_label_takes_the_first_place_that_meets_least() -> None:
    frame = Box(0, 0, 100, 100)
    at = [(Box(x, 0, x + 10, 10),) for x in (0, 20, 40, 95)]
    assert choose(at, frame, [Box(5, 5, 6, 6)]) == 1
    assert choose(at, frame, [Box(5, 5, 6, 6)], avoided=[Box(25, 0, 26, 1)]) == 2
    assert choose(at[:2], frame, [Box(5, 5, 6, 6)], avoided=[Box(25, 0, 26, 1)]) == 1
    assert choose([at[3]], frame, []) is None
    assert choose(at[:1], frame, [Box(10, 0, 20, 10)]) == 0  # an edge in common is no overlap
